"""Counts of FLOPs against closed forms and the backends' own counts."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

from keras_gating import functional
from keras_gating import layers
from keras_gating.diagnostics import cost_table
from keras_gating.diagnostics import timing
from keras_gating.diagnostics.contractions import contractions
from keras_gating.diagnostics.cost_result import Cost
from keras_gating.diagnostics.cost_result import CostTable
from tests.utils import normal

BACKEND = keras.config.backend()
# Batch, positions and features of sequences; all sizes differ.
B, T, D = 2, 7, 12
N, H, R = 3, 4, 5  # heads, their size, a rank
# Height, width and channels of images.
IMAGES = (2, 9, 8, 6)


# Four projections, query · key and weights · value, 2 FLOPs a term.
ATTENTION = 2 * B * T * D * 4 * N * H + 2 * B * N * T * T * 2 * H


def attention(**arguments):
    return layers.GatedAttention(N, H, **arguments)


def unit(**arguments):
    # The product of all pairs, as the formula of the paper has it.
    return layers.GatedAttentionUnit(key_dim=H, expansion_factor=2, **arguments)


SEQUENCES = {
    "dense": (keras.layers.Dense(5), 2 * B * T * D * 5),
    "keras attention": (keras.layers.MultiHeadAttention(N, H), ATTENTION),
    "wide values": (
        attention(value_dim=R, use_gate=False),
        2 * B * T * D * N * (2 * H + 2 * R) + 2 * B * N * T * T * (H + R),
    ),
    "no gate": (attention(use_gate=False), ATTENTION),
    "elementwise": (attention(), ATTENTION + 2 * B * T * D * N * H),
    "headwise": (
        attention(gate_granularity="headwise"),
        ATTENTION + 2 * B * T * D * N,
    ),
    "shared": (
        attention(gate_granularity="shared"),
        ATTENTION + 2 * B * T * D * H,
    ),
    "low rank": (
        attention(gate_rank=R),
        ATTENTION + 2 * B * T * R * (D + N * H),
    ),
    "constant": (attention(gate_source="constant"), ATTENTION),
    "gate": (layers.Gate(), 2 * B * T * D * D),
    "product": (layers.Gate(source="constant"), 0),
    "glu": (layers.SwiGLU(R), 2 * B * T * D * 2 * R),
    "feed-forward": (layers.GatedFeedForward(R), 2 * B * T * 3 * D * R),
    "unit": (
        unit(),
        2 * B * T * D * (2 * 2 * D + H)
        + 2 * B * T * T * (H + 2 * D)
        + 2 * B * T * 2 * D * D,
    ),
}
MAPS = {
    "convolution": (
        keras.layers.Conv2D(4, (3, 2), groups=2, data_format="channels_last"),
        2 * (2 * 7 * 7 * 4) * (3 * 2 * 3),
    ),
    "depthwise": (
        keras.layers.DepthwiseConv2D(
            3, depth_multiplier=2, data_format="channels_last"
        ),
        2 * (2 * 7 * 6 * 12) * 9,
    ),
    "transposed": (
        keras.layers.Conv2DTranspose(
            4, 3, strides=2, data_format="channels_last"
        ),
        2 * (2 * 9 * 8 * 6) * (9 * 4),
    ),
    "se": (
        layers.SqueezeExcite(ratio=2, data_format="channels_last"),
        2 * 2 * 2 * 6 * 3,
    ),
    "eca": (
        layers.ECA(kernel_size=3, data_format="channels_last"),
        2 * 2 * 6 * 3,
    ),
    "cbam": (
        layers.CBAM(ratio=2, kernel_size=3, data_format="channels_last"),
        # Means and maxima go through one network; two maps of both follow.
        2 * (2 * 2 * 2 * 6 * 3) + 2 * (2 * 9 * 8) * (9 * 2),
    ),
}


def test_flops_are_those_of_the_formulas():
    for cases, shape in ((SEQUENCES, (B, T, D)), (MAPS, IMAGES)):
        costs = cost_table(
            {name: layer for name, (layer, _) in cases.items()},
            shape,
            measure=False,
        )
        found = {name: cost.flops for name, cost in costs.items()}
        assert found == {name: flops for name, (_, flops) in cases.items()}
        for name, (layer, _) in cases.items():
            assert costs[name].parameters == layer.count_params()
            assert costs[name].seconds is None


def test_loops_count_as_often_as_they_run():
    # Four blocks of two rows each.
    x = ops.convert_to_tensor(normal(B, 8, D))
    layer = unit(block_size=2)
    layer(x)
    products = sum(c.multiply_adds for c in contractions(lambda: layer(x)))
    pairs = 8 * 8
    dense = D * (2 * 2 * D + H) + 2 * D * D
    expected = B * (8 * dense + pairs * (H + 2 * D))
    if BACKEND == "tensorflow":
        # One more block, from which it learns the shapes: attention, and the
        # projections that make the gate and the output of its rows.
        expected += B * 2 * (8 * (H + 2 * D) + 2 * 2 * D * D)
    assert products == expected


@pytest.mark.skipif(BACKEND != "jax", reason="Others run the loop to count.")
def test_a_loop_without_a_known_end_is_refused():
    def call():
        return ops.while_loop(
            lambda x: ops.sum(x) < 1.0, lambda x: (x @ x,), (ops.ones((2, 2)),)
        )

    with pytest.raises(ValueError, match="depends on values.*dot_general"):
        contractions(call)


def own_count(layer, *inputs):
    """FLOPs of a call by the backend's own analysis."""
    if BACKEND == "jax":
        import jax

        lowered = jax.jit(lambda *x: layer(*x)).lower(*inputs)
        return lowered.cost_analysis()["flops"]
    if BACKEND == "tensorflow":
        import tensorflow as tf

        function = tf.function(lambda *x: layer(*x), autograph=False)
        graph = function.get_concrete_function(*inputs).graph
        kit = tf.compat.v1.profiler
        builder = kit.ProfileOptionBuilder
        options = builder(builder.float_operation()).with_empty_output()
        with graph.as_default():
            return kit.profile(graph, options=options.build()).total_float_ops
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    # It does not know the fused attention of the CPU.
    with (
        torch.no_grad(),
        functional.explicit_attention(),
        FlopCounterMode(display=False) as counter,
    ):
        layer(*inputs)
    return counter.get_total_flops()


def ours(layer, *inputs):
    layer(*inputs)
    return 2 * sum(
        c.multiply_adds for c in contractions(lambda: layer(*inputs))
    )


def test_flops_are_those_the_backend_counts():
    x = ops.convert_to_tensor(normal(B, T, D))
    images = ops.convert_to_tensor(normal(*IMAGES))
    # Products and nothing else.
    for layer, inputs in (
        (keras.layers.Dense(5, use_bias=False), x),
        (keras.layers.EinsumDense("btd,dnh->btnh", (T, N, H)), x),
        (
            keras.layers.Conv2D(
                4, 3, use_bias=False, data_format="channels_last"
            ),
            images,
        ),
        (
            keras.layers.DepthwiseConv2D(
                3, use_bias=False, data_format="channels_last"
            ),
            images,
        ),
    ):
        assert ours(layer, inputs) == own_count(layer, inputs)
    # torch's count leaves out what is elementwise, as ours does.
    elementwise = 0 if BACKEND == "torch" else 1
    layer = layers.BilinearGLU(R, use_bias=False)
    product = elementwise * B * T * R
    assert ours(layer, x) + product == own_count(layer, x)
    # What a gate adds to attention: its network and its product.
    both = [
        attention(use_bias=False, gate_activation="linear", use_gate=use_gate)
        for use_gate in (True, False)
    ]
    gate = np.subtract(*[ours(layer, x, x) for layer in both])
    assert gate == 2 * B * T * D * N * H
    product = elementwise * B * T * N * H
    own = np.subtract(*[own_count(layer, x, x) for layer in both])
    assert own == gate + product


def test_traffic():
    costs = cost_table(
        {
            "dense": keras.layers.Dense(5, use_bias=False),
            "product": layers.Gate(source="constant"),
            "nothing": keras.layers.Identity(),
        },
        (B, T, D),
        measure=False,
    )
    x = 4 * B * T * D
    found = {name: cost.traffic for name, cost in costs.items()}
    assert found == {
        "dense": x + 4 * D * 5 + 4 * B * T * 5,
        "product": x + 4 * D + x,
        "nothing": 2 * x,
    }
    half = cost_table(
        [keras.layers.Dense(5, use_bias=False, dtype="float16", name="half")],
        (B, T, D),
        measure=False,
    )
    # A cast reads the inputs in float32. On the CPU Keras has torch multiply
    # float16 in float32.
    size = 4 if keras.config.backend() == "torch" else 2
    assert half["half"].traffic == x + size * D * 5 + size * B * T * 5
    # The gate's network reads the query once more, and writes the gate.
    no_gate, gated = cost_table(
        {
            "none": attention(use_gate=False, use_bias=False),
            "gated": attention(use_bias=False),
        },
        (B, T, D),
        measure=False,
    ).values()
    added = x + 4 * D * N * H + 4 * B * T * N * H
    assert gated.traffic - no_gate.traffic == added


def test_several_inputs():
    context, source = (B, T, N, H), (B, T, D)
    costs = cost_table([layers.Gate(name="gate")], [context, source], False)
    assert costs["gate"].flops == 2 * B * T * D * N * H


def test_nests_of_inputs():
    """Models say what they take; of other layers the shapes say it."""
    tokens = keras.Input((T,), dtype="int32", name="tokens")
    features = keras.Input((T, D), name="features")
    embedded = keras.layers.Embedding(5, D)(tokens)
    outputs = keras.layers.Dense(R)(embedded + features)
    by_list = keras.Model([tokens, features], outputs, name="list")
    by_name = keras.Model(
        {"tokens": tokens, "features": features}, outputs, name="names"
    )
    one = keras.Sequential(by_list.layers[-1:], name="one")
    flops = 2 * B * T * D * R
    for model, shapes in (
        (by_list, [(B, T), (B, T, D)]),
        (by_name, {"features": (B, T, D), "tokens": (B, T)}),
        (one, [(B, T, D)]),
    ):
        assert cost_table([model], shapes, False)[model.name].flops == flops
        if model is not one:
            with pytest.raises(ValueError, match="structure of the inputs of"):
                cost_table([model], [(B, T, D)] * 3, False)
    add = {"add": keras.layers.Add()}
    assert cost_table(add, [[(B, T), (B, T)]], repeats=1)["add"].flops == 0
    # The same shape for all.
    other = keras.Input((T, D))
    pair = {"pair": keras.Model([features, other], features + 1.0)}
    # Two inputs and an output.
    traffic = cost_table(pair, (B, T, D), False)["pair"].traffic
    assert traffic == 3 * 4 * B * T * D


def test_sequential_models_say_what_they_take():
    """With a `keras.Input`, and without one when they are built."""
    embedding = keras.layers.Embedding(5, D)
    tokens = keras.Sequential([keras.Input((T,), dtype="int32"), embedding])
    dense = keras.Sequential([keras.layers.Dense(R)])
    add = keras.Sequential([keras.layers.Add()])
    for _ in range(2):
        costs = cost_table({"tokens": tokens}, (B, T), measure=False)
        assert costs["tokens"].parameters == 5 * D
        costs = cost_table({"dense": dense}, (B, D), measure=False)
        assert costs["dense"].flops == 2 * B * D * R
        costs = cost_table({"add": add}, [[(B, T), (B, T)]], measure=False)
        assert costs["add"].flops == 0


class Foreign(keras.layers.Layer):
    """Products that the backend does not do itself."""

    def call(self, inputs):
        return inputs + foreign(inputs)


def foreign(x):
    if BACKEND == "jax":
        import jax

        return jax.pure_callback(lambda x: x, x, x)
    if BACKEND == "tensorflow":
        import tensorflow as tf

        def same(x):
            return tf.numpy_function(np.copy, [x], x.dtype)

        # Run eagerly it would be no operation.
        return tf.function(same, autograph=False)(x)
    return foreign_of_torch()(x)


@functools.cache
def foreign_of_torch():
    import torch

    def double(x: torch.Tensor) -> torch.Tensor:
        return 2.0 * x

    name = "keras_gating_tests::double"
    return torch.library.custom_op(name, double, mutates_args=())


class Inverse(keras.layers.Layer):
    def call(self, inputs):
        return ops.inv(inputs + 9.0 * ops.eye(3)) @ inputs


NAMES = {
    "jax": ("pure_callback", "lu"),
    "tensorflow": ("PyFunc", "MatrixInverse"),
    "torch": ("keras_gating_tests::double", "linalg_inv_ex"),
}


def test_what_nobody_can_count_is_unknown(capsys):
    costs = cost_table(
        {
            "dense": keras.layers.Dense(3),
            "foreign": Foreign(),
            "inv": Inverse(),
        },
        (2, 3, 3),
        measure=False,
    )
    for name, part in zip(("foreign", "inv"), NAMES[BACKEND]):
        cost = costs[name]
        assert cost.flops is None
        assert any(part in x for x in cost.unknown), cost.unknown
        assert costs.relative()[name]["flops"] is None
    assert costs["dense"].unknown == ()
    pytest.importorskip("rich")
    costs.print()
    printed = capsys.readouterr().out
    assert printed.count("unknown") == 3
    assert costs["foreign"].unknown[0] in printed


@pytest.mark.skipif(BACKEND != "tensorflow", reason="Graphs of TensorFlow.")
def test_graphs_that_run_once_are_counted():
    import tensorflow as tf

    x = tf.ones((2, 3))
    kernel = tf.Variable(tf.ones((3, 4)))
    product = tf.function(lambda: x @ kernel)
    (found,) = contractions(product)
    assert found.multiply_adds == 2 * 3 * 4
    # It was compiled before, and is not looked into.
    (found,) = contractions(product)
    assert found.multiply_adds is None
    twice = tf.function(lambda x: x @ tf.ones((3, 3)))
    found = contractions(lambda: twice(twice(x)))
    assert [c.multiply_adds for c in found] == [2 * 3 * 3, None]
    # Nobody knows how often a loop in a graph runs.
    loop = tf.function(
        lambda x: tf.while_loop(
            lambda x: tf.reduce_sum(x) < 9.0,
            lambda x: (x @ tf.ones((3, 3)),),
            (x,),
        )
    )
    found = contractions(lambda: loop(x))
    assert None in [c.multiply_adds for c in found]


@pytest.mark.skipif(BACKEND != "jax", reason="Kernels of JAX.")
def test_the_inside_of_a_kernel_of_jax_is_not_counted():
    import jax
    from jax.experimental import pallas

    def kernel(x, y, out):
        out[...] = x[...] @ y[...]

    def product(x):
        shape = jax.ShapeDtypeStruct((2, 2), "float32")
        return pallas.pallas_call(kernel, shape)(x, x)

    x = ops.ones((2, 2))
    (found,) = contractions(lambda: product(x))
    assert (found.name, found.multiply_adds) == ("pallas_call", None)


def test_times_are_medians_of_calls_in_turn(monkeypatch):
    clock = iter([0.0, *(t for n in (1, 5, 2, 9) for t in (0.0, float(n)))])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock, 0.0))
    model = keras.Sequential([keras.layers.Dense(2), layers.Gate()])
    costs = cost_table(
        {"model": model, "dropout": keras.layers.Dropout(0.5)},
        (2, 3),
        repeats=2,
    )
    # Rounds: model 1 s, dropout 5 s; dropout 2 s, model 9 s.
    assert costs["model"].seconds == 5.0
    assert costs["dropout"].seconds == 3.5


class Half(keras.layers.Layer):
    """A layer whose `call` takes inputs alone, in half precision."""

    def call(self, inputs):
        assert keras.backend.standardize_dtype(inputs.dtype) == "float16"
        return inputs + 1.0


def test_calls_are_timed_as_users_make_them():
    costs = cost_table(
        {
            "half": Half(dtype="float16"),
            "normalization": keras.layers.LayerNormalization(),
            "squeeze": layers.SqueezeExcite(2, data_format="channels_last"),
        },
        (2, 3, 4),
        repeats=1,
    )
    assert all(cost.seconds > 0.0 for cost in costs.values())


def test_times_are_measured():
    small, large = cost_table(
        {"small": keras.layers.Dense(1), "large": keras.layers.Dense(3000)},
        (500, 1000),
        repeats=3,
    ).values()
    # A thousandth of the work, and the large one takes milliseconds.
    assert 0.0 < small.seconds < large.seconds


COSTS = CostTable(
    {
        "plain": Cost(1000, 2_000_000, 300, 0.004),
        "gated [b]": Cost(1500, 3_000_000, 600, 0.005),
        "free": Cost(0, 0, 300),
    },
    "jax",
    "cpu",
)


def test_the_table_is_relative_to_the_first_row():
    assert COSTS.relative()["gated [b]"] == {
        "parameters": 1.5,
        "flops": 1.5,
        "traffic": 2.0,
        "seconds": 1.25,
    }
    free = COSTS["free"]
    assert COSTS["plain"].relative_to(free)["flops"] is None
    assert COSTS.relative()["free"]["seconds"] is None
    assert COSTS.as_dict()["plain"] == {
        "parameters": 1000,
        "flops": 2_000_000,
        "traffic": 300,
        "seconds": 0.004,
    }
    with pytest.raises(KeyError, match="No layer 'gate'.*plain, gated"):
        COSTS["gate"]
    assert repr(COSTS) == "<CostTable of plain, gated [b], free>"


def test_the_table_is_printed(capsys):
    pytest.importorskip("rich")
    COSTS.print()
    printed = capsys.readouterr().out
    assert "Forward pass on jax, cpu" in printed
    (line,) = [x for x in printed.splitlines() if "gated [b]" in x]
    assert line.split() == (
        "gated [b] 1.5 k ×1.50 3 M ×1.50 600 B ×2.00 5 ms ×1.25".split()
    )
    assert "–" in printed.splitlines()[-2]


def test_the_table_becomes_a_frame():
    pytest.importorskip("pandas")
    frame = COSTS.as_frame()
    assert list(frame.index) == list(COSTS)
    assert frame.loc["gated [b]", "flops"] == 3_000_000


DENSE = keras.layers.Dense(2, name="dense")


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["layers=[]"], ([], (2, 3))),
        (["Keras layers", "function"], ([np.sum], (2, 3))),
        (["layers=<Dense"], (DENSE, (2, 3))),
        (["same name", "['dense', 'dense']"], ([DENSE, DENSE], (2, 3))),
        (["strings", "1"], ({1: DENSE}, (2, 3))),
        (["input_shape=(None, 3)"], ([DENSE], (None, 3))),
        (["input_shape=3"], ([DENSE], 3)),
        (["input_shape=(2, 0)"], ([DENSE], (2, 0))),
        (["input_shape=[]"], ([DENSE], [])),
        (["'dense'", "[(2, 3), (2, 3), (2, 3)]"], ([DENSE], [(2, 3)] * 3)),
        (["repeats=0"], ([DENSE], (2, 3), True, 0)),
    ],
)
def test_refuses_bad_arguments(words, arguments):
    with pytest.raises(ValueError) as error:
        cost_table(*arguments)
    for word in words:
        assert word in str(error.value)
