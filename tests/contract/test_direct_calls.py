"""Layers that skip what surrounds the calls of their own children."""

import operator

import keras
import numpy as np
import pytest

from keras_gating import _backend
from keras_gating import _keras
from keras_gating import functional
from keras_gating import layers
from keras_gating._backend import in_place
from keras_gating.functional.attention_weights import attention_weights
from keras_gating.functional.gate import gated
from tests.cases import ONE_EACH
from tests.contract.helpers import assert_all_close
from tests.contract.helpers import by_case
from tests.contract.helpers import create
from tests.contract.helpers import draw
from tests.contract.helpers import outputs
from tests.gradients import gradients
from tests.marks import once
from tests.utils import normal
from tests.utils import random_weights
from tests.utils import tensor
from tests.utils import to_numpy

only_torch = pytest.mark.skipif(
    keras.config.backend() != "torch", reason="memory and hooks are torch's own"
)


@pytest.mark.parametrize(**by_case(ONE_EACH))
def test_whole_calls_compute_the_same(case, monkeypatch):
    layer = random_weights(create(case))
    values = draw(case)
    with _backend.no_gradients():
        direct = outputs(case, layer, values)
        monkeypatch.setattr(_keras, "is_watched", lambda layer: True)
        assert_all_close(direct, outputs(case, layer, values))


@once
@pytest.mark.parametrize(**by_case(ONE_EACH))
def test_children_are_called_directly(case, monkeypatch):
    layer = random_weights(create(case))
    values = draw(case)
    outputs(case, layer, values)
    called = []
    whole_call = keras.layers.Layer.__call__

    def call(self, *args, **kwargs):
        called.append(self)
        return whole_call(self, *args, **kwargs)

    monkeypatch.setattr(keras.layers.Layer, "__call__", call)
    outputs(case, layer, values)
    if isinstance(layer, layers.GatedAttentionBlock):
        # Its children are what others use by themselves.
        assert len(called) == 4
    else:
        assert called == [layer]


@once
@pytest.mark.parametrize(**by_case(ONE_EACH))
def test_gradients_of_whole_calls_are_the_same(case, monkeypatch):
    layer = random_weights(create(case))
    inputs = [x for x in draw(case).values() if isinstance(x, np.ndarray)]
    cotangent = normal(*outputs(case, layer)[0].shape)
    direct = gradients(layer, inputs, cotangent)
    monkeypatch.setattr(_keras, "is_watched", lambda layer: True)
    whole = gradients(layer, inputs, cotangent)
    for a, b in zip(keras.tree.flatten(direct), keras.tree.flatten(whole)):
        assert_all_close([a], [b], 1e-5)


class OwnParts(layers.GatedAttention):
    """Puts a layer in the place of one of its own."""

    def __init__(self, name, make, **kwargs):
        super().__init__(2, 4, **kwargs)
        self.place = (name, make)

    def build(self, query_shape, value_shape):
        super().build(query_shape, value_shape)
        name, make = self.place
        setattr(self, name, make(getattr(self, name)))


@pytest.mark.parametrize(
    "name, make, arguments",
    [
        (
            "output_dense",
            lambda inner: keras.Sequential([inner, keras.layers.Dropout(0.5)]),
            {},
        ),
        (
            "context_norm",
            lambda inner: keras.layers.Dropout(0.5),
            {"context_normalization": "rms"},
        ),
    ],
)
def test_layers_put_in_place_of_children_are_called_as_usual(
    name, make, arguments
):
    layer = random_weights(build_on(OwnParts(name, make, **arguments)))
    x = normal(2, 5, 8)
    plain, trained = (to_numpy(layer(x, x, training=t)) for t in (False, True))
    assert np.abs(plain - trained).max() > 0.1


def build_on(layer):
    layer(normal(2, 5, 8), normal(2, 5, 8))
    return layer


@pytest.mark.parametrize(
    "make, path",
    [
        (lambda dtype: layers.GatedAttention(2, 4, dtype=dtype), "output_gate"),
        (
            lambda dtype: layers.GatedAttention(
                2, 4, gate_site="query", dtype=dtype
            ),
            "query_gate",
        ),
        (
            lambda dtype: layers.GatedAttention(2, 4, gate_rank=2, dtype=dtype),
            "output_gate.reduction",
        ),
        (lambda dtype: layers.GatedFeedForward(8, dtype=dtype), "hidden"),
        (lambda dtype: layers.SqueezeExcite(2, dtype=dtype), "reduction"),
    ],
)
def test_one_child_in_another_dtype(make, path):
    layer = make("mixed_bfloat16")
    shape = (2, 5, 8)
    is_attention = isinstance(layer, layers.GatedAttention)
    layer.build(*[shape] * (1 + is_attention))
    random_weights(layer)
    inputs = [tensor(normal(*shape))] * (1 + is_attention)
    before = to_numpy(keras.ops.cast(layer(*inputs), "float32"))
    child = layer
    for name in path.split("."):
        child = getattr(child, name)
    child.dtype_policy = "float32"
    after = layer(*inputs)
    assert keras.backend.standardize_dtype(after.dtype) == "bfloat16"
    after = to_numpy(keras.ops.cast(after, "float32"))
    assert_all_close([after], [before], 0.05)


def test_inputs_that_are_not_cast():
    layer = layers.GatedAttention(2, 4, dtype="mixed_bfloat16", autocast=False)
    x = tensor(normal(2, 5, 8))
    assert keras.backend.standardize_dtype(layer(x, x).dtype) == "bfloat16"


def test_another_dtype_that_is_not_cast():
    layer = layers.CBAM(data_format="channels_last", autocast=False)
    x = tensor(normal(2, 5, 5, 4))
    layer(x)
    y = layer(keras.ops.cast(x, "float16"))
    assert keras.backend.standardize_dtype(y.dtype) == "float32"


class _UnitWithLayers(layers.GatedAttentionUnit):
    """With a layer of layers in the place of the last projection."""

    def __init__(self):
        super().__init__(4, norm_first=True)

    def build(self, inputs_shape):
        super().build(inputs_shape)
        self.output_dense = layers.FeedForward(6, output_dim=8)
        self.output_dense.build((2, 5, self.hidden_dim))


@only_torch
@pytest.mark.parametrize(
    "make, shape, child",
    [
        (lambda: layers.SwiGLU(6), (2, 4, 8), "projection"),
        (
            lambda: layers.CBAM(data_format="channels_last"),
            (2, 5, 5, 4),
            "channel_gate",
        ),
        (
            lambda: layers.CBAM(data_format="channels_last"),
            (2, 5, 5, 4),
            "spatial_gate",
        ),
        *(
            (
                lambda: layers.GatedAttentionUnit(4, norm_first=True),
                (2, 5, 8),
                name,
            )
            for name in (
                "normalization",
                "hidden_dense",
                "shared_dense",
                "output_dense",
            )
        ),
        (_UnitWithLayers, (2, 5, 8), "output_dense.projection"),
    ],
)
def test_what_a_hook_has_seen_stays(make, shape, child):
    import torch

    layer = make()
    x = tensor(normal(*shape))
    layer(x)
    seen = []

    def hook(module, inputs, output):
        seen.append((inputs[0], inputs[0].clone(), output, output.clone()))

    operator.attrgetter(child)(layer).register_forward_hook(hook)
    with torch.no_grad():
        layer(x)
    (kept,) = seen
    assert torch.equal(kept[0], kept[1]) and torch.equal(kept[2], kept[3])


@only_torch
def test_hooks_of_every_kind():
    import torch

    modules = torch.nn.modules.module
    layer = build_on(layers.GatedAttention(2, 4))
    child = layer.query_dense
    x = torch.ones(2, 5, 8, requires_grad=True)
    for register in (
        child.register_forward_pre_hook,
        child.register_forward_hook,
        child.register_full_backward_pre_hook,
        child.register_full_backward_hook,
        modules.register_module_forward_hook,
        modules.register_module_full_backward_hook,
    ):
        seen = []
        handle = register(lambda module, *_, seen=seen: seen.append(module))
        try:
            layer(x, x).sum().backward()
        finally:
            handle.remove()
        assert any(module is child for module in seen)
    layer(x, x)
    calls = []
    forward = child.forward
    child.forward = lambda *args: (calls.append(args), forward(*args))[1]
    layer(x, x)
    assert len(calls) == 1


@only_torch
def test_a_gate_that_is_replaced_leaves_inputs_alone():
    import torch

    layer = layers.CBAM(data_format="channels_last")
    x = tensor(normal(2, 5, 5, 4))
    layer(x)
    layer.channel_gate.call = lambda inputs, mask=None: inputs
    before = x.clone()
    with torch.no_grad():
        layer(x)
    assert torch.equal(x, before)


def test_symbolic_tensors():
    x = keras.Input((5, 8))
    assert functional.relu2(x).shape == x.shape
    assert functional.quadratic_attention(x, x, x).shape == x.shape
    assert in_place.product(x, x).shape == x.shape
    assert in_place.total(x, x).shape == x.shape
    assert in_place.quotient(x, 2).shape == x.shape
    assert in_place.hidden(x, x > 0).shape == x.shape
    mask = keras.Input((5,), dtype="bool")
    for is_causal in (False, True):
        context = functional.mixed_chunk_attention(
            (x, x), (x, x), x, 5, key_mask=mask, is_causal=is_causal
        )
        assert context.shape == x.shape
    square = keras.ops.ones((8, 8))
    assert in_place.plus_product(x, x, square).shape == x.shape
    assert in_place.activated(keras.activations.relu, x).shape == x.shape


def test_a_product_that_overwrites():
    value, logits = normal(3, 4), normal(3, 1, seed=1)
    expected = value / (1.0 + np.exp(-logits))
    x = tensor(value)
    with _backend.no_gradients():
        y = gated(
            x, tensor(logits), keras.activations.sigmoid, overwrite="inputs"
        )
    np.testing.assert_allclose(to_numpy(y), expected, rtol=1e-5)
    is_torch = keras.config.backend() == "torch"
    np.testing.assert_allclose(
        to_numpy(x), expected if is_torch else value, rtol=1e-5
    )


@pytest.mark.parametrize("leading", [(), (3,), (2, 3)])
def test_a_sum_with_a_product(leading):
    x, a, b = normal(*leading, 4, 5), normal(*leading, 4, 6), normal(6, 5)
    b = np.broadcast_to(b, (*leading, 6, 5))
    expected = x + a @ b
    row, first = tensor(x[..., :1, :].copy()), x[..., :1, :]
    x, a, b, before = (tensor(y.copy()) for y in (x, a, b, x))
    in_place.plus_product(keras.ops.broadcast_to(row, x.shape), a, b)
    np.testing.assert_array_equal(to_numpy(row), first)
    y = in_place.plus_product(x, a, b)
    is_torch = keras.config.backend() == "torch"
    for actual, wanted in (
        (y, expected),
        (x, expected if is_torch else before),
    ):
        np.testing.assert_allclose(
            to_numpy(actual), to_numpy(wanted), rtol=1e-5, atol=1e-6
        )


@only_torch
def test_a_sum_with_a_product_of_others():
    """Of broadcast tensors, and of several dtypes."""
    x, a, b = normal(2, 4, 5), normal(4, 6), normal(6, 5)
    wide = tensor(x.astype("float64"))
    for base in (tensor(x), wide):
        y = in_place.plus_product(base, tensor(a), tensor(b))
        np.testing.assert_allclose(to_numpy(y), x + a @ b, rtol=1e-5, atol=1e-6)


@only_torch
def test_blocks_that_are_joined():
    import torch

    blocks = [torch.randn(2, 3, 4) for _ in range(3)]
    expected = torch.cat(blocks, dim=1)
    assert torch.equal(in_place.joined(iter(blocks), 3), expected)
    for block in blocks:
        block.requires_grad_()
    in_place.joined(iter(blocks), 3).sum().backward()
    assert all(torch.equal(x.grad, torch.ones_like(x)) for x in blocks)

    def scaled(factor):
        return in_place.joined((factor * x.detach() for x in blocks), 3)

    slope = torch.func.jacfwd(scaled)(torch.tensor(2.0))
    assert torch.equal(slope, expected)


@only_torch
def test_gradients_of_a_sum_with_a_product():
    import torch

    tensors = [
        torch.randn(2, 3, *shape, dtype=torch.float64, requires_grad=True)
        for shape in ((4, 5), (4, 6), (6, 5))
    ]
    assert torch.autograd.gradcheck(
        in_place.plus_product, tensors, check_forward_ad=True
    )
    x, a, b = (y.detach() for y in tensors)
    with torch.no_grad():
        mapped = torch.vmap(lambda a: in_place.plus_product(x, a, b))
        sums = mapped(torch.stack([a, a]))
    assert torch.allclose(sums[1], x + a @ b)


@only_torch
def test_the_gradient_of_a_squared_relu_by_hand():
    import torch

    def weights(scores):
        return attention_weights(scores, "relu2")

    x = torch.randn(3, 4, dtype=torch.float64).requires_grad_()
    assert "Relu2" in type(weights(x).grad_fn).__name__
    assert torch.autograd.gradcheck(weights, x)
    assert torch.autograd.gradgradcheck(weights, x)
    before = x.detach().clone()
    np.testing.assert_allclose(
        to_numpy(weights(x)), np.maximum(to_numpy(before), 0.0) ** 2
    )
    assert torch.equal(x, before)
    # What differentiates in ways of its own has the usual operations.
    expected = torch.diag_embed(2.0 * torch.relu(before))
    for transformation in (torch.func.jacrev, torch.func.jacfwd):
        rows = torch.vmap(transformation(weights))(x)
        assert torch.allclose(rows, expected)
    # Tensors that the transformation is not about.
    squares = torch.relu(before) ** 2
    factors = torch.arange(1.0, 4.0, dtype=torch.float64)
    products = torch.vmap(lambda factor: factor * weights(x))(factors)
    assert torch.allclose(products, factors[:, None, None] * squares)
    for transformation in (torch.func.jacrev, torch.func.jacfwd):
        slopes = transformation(lambda f: f.sum() * weights(x))(factors)
        assert torch.allclose(slopes, squares[..., None].expand(3, 4, 3))


@only_torch
@pytest.mark.parametrize("name", ["relu", "sigmoid", "silu", "tanh", "gelu"])
def test_activations_in_place(name):
    function = keras.activations.get(name)
    x = tensor(normal(3, 4))
    expected = to_numpy(function(x))
    with _backend.no_gradients():
        y = in_place.activated(function, x)
    np.testing.assert_allclose(to_numpy(y), expected, rtol=1e-6)
    assert (y is x) == (name != "gelu")


@pytest.mark.parametrize("divisor", [4, 0.5, "tensor"])
def test_a_quotient(divisor):
    dividend = normal(3, 4)
    if divisor == "tensor":
        divisor = tensor(np.array([[1.0], [2.0], [4.0]], "float32"))
    expected = dividend / to_numpy(divisor)
    x = tensor(dividend.copy())
    with _backend.no_gradients():
        y = in_place.quotient(x, divisor)
    np.testing.assert_allclose(to_numpy(y), expected, rtol=1e-6)
    is_torch = keras.config.backend() == "torch"
    assert (y is x) == is_torch
    if not is_torch:
        np.testing.assert_array_equal(to_numpy(x), dividend)


def test_hidden_numbers():
    x = np.array([[1.0, np.nan, 3.0], [np.inf, 5.0, 6.0]], "float32")
    visible = tensor(np.array([[True, False, True], [False, True, True]]))
    expected = [[1.0, 0.0, 3.0], [0.0, 5.0, 6.0]]
    whole, row = tensor(x.copy()), tensor(x[:1].copy())
    with _backend.no_gradients():
        y, wide = in_place.hidden(whole, visible), in_place.hidden(row, visible)
    np.testing.assert_array_equal(to_numpy(y), expected)
    assert (y is whole) == (keras.config.backend() == "torch")
    # A result that is larger has a place of its own.
    np.testing.assert_array_equal(to_numpy(row), x[:1])
    np.testing.assert_array_equal(to_numpy(wide)[0], expected[0])
    # Nor does one number that stands for many change.
    with _backend.no_gradients():
        rows = keras.ops.broadcast_to(row, (2, 3))
        one = in_place.hidden(rows, tensor(np.array([[True] * 3, [False] * 3])))
    np.testing.assert_array_equal(to_numpy(one), [x[0], [0.0] * 3])
    np.testing.assert_array_equal(to_numpy(row), x[:1])


@only_torch
def test_gradients_of_what_may_be_overwritten():
    import torch

    tensors = [
        torch.rand(3, 4, dtype=torch.float64, requires_grad=True)
        for _ in range(2)
    ]
    visible = torch.eye(3, 4) > 0
    # The gradient of the exponential needs what is given to the function.
    for function in (
        lambda x, y: in_place.quotient(x.exp(), y + 1.0),
        lambda x, y: in_place.hidden((x * y).exp(), visible),
    ):
        assert torch.autograd.gradcheck(
            function, tensors, check_forward_ad=True
        )


@only_torch
def test_tensors_that_must_stay():
    import torch

    x, factor = torch.ones(3, 4), torch.full((3, 4), 2.0)
    doubled = torch.full((3, 4), 2.0)
    # Gradients need the factors, expanded tensors have one number for many,
    # and a mapped factor has several products.
    leaf = torch.ones(3, 4, requires_grad=True)
    assert torch.equal(in_place.product(leaf * 1.0, factor), doubled)
    product = in_place.product(x, leaf * 2.0)
    product.sum().backward()
    assert torch.equal(leaf.grad, doubled)
    with torch.no_grad():
        row = torch.ones(1, 4)
        wide = in_place.product(row.expand(3, 4), factor)
        assert torch.equal(wide, doubled) and torch.equal(row, torch.ones(1, 4))
        mapped = torch.vmap(lambda f: in_place.product(x, f))
        assert torch.equal(mapped(torch.stack([factor] * 2))[1], doubled)
    assert torch.equal(x, torch.ones(3, 4))


@only_torch
def test_forward_derivatives_of_what_overwrites():
    import torch

    x = torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64)

    def both(function):
        jacobian = torch.func.jacfwd(function)
        return jacobian(x), torch.func.jacfwd(jacobian)(x)

    def gate(x, overwrite):
        tanh = keras.activations.tanh
        return gated(x * 1.0, x * 1.0, tanh, overwrite=overwrite)

    first, second = both(functional.relu2)
    assert torch.equal(first.diagonal(), torch.tensor([2.0, 4.0, 0.0]).double())
    assert torch.equal(second.sum((1, 2)), torch.tensor([2, 2, 0]).double())
    for kept, lost in zip(
        both(lambda x: gate(x, None)), both(lambda x: gate(x, "both"))
    ):
        assert torch.equal(kept, lost)
    forward = torch.autograd.forward_ad
    with torch.no_grad(), forward.dual_level():
        dual = forward.make_dual(x, torch.ones_like(x))
        kept, lost = (
            forward.unpack_dual(gate(dual, o)) for o in (None, "both")
        )
    assert torch.equal(kept.tangent, lost.tangent)
