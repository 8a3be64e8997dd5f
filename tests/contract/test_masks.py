"""Masks reach the layer, survive it and hide what they should."""

import warnings

import keras
import numpy as np
import pytest
from keras.src import backend

from tests.cases import CASES
from tests.contract.case import Same
from tests.contract.helpers import apply
from tests.contract.helpers import assert_all_close
from tests.contract.helpers import by_case
from tests.contract.helpers import create
from tests.contract.helpers import create_for
from tests.contract.helpers import draw
from tests.contract.helpers import outputs
from tests.utils import random_weights
from tests.utils import tensor
from tests.utils import to_numpy

MASKED = [case for case in CASES if case.masked]
# An explicit `mask` takes the place of the Keras mask, in Keras too.
MASKED_OPTIONS = [
    (case, option)
    for case in MASKED
    for option in case.options_with_none
    if callable(option.arguments) or "mask" not in option.arguments
]


def padding(case, values):
    """Boolean masks by input: the first row is full, the second is not."""
    masks = {}
    for name in case.masked:
        batch, length = values[name].shape[:2]
        lengths = np.full((batch, 1), length - 2)
        lengths[0] = length
        masks[name] = np.arange(length) < lengths
    return masks


def with_masks(values, masks):
    """Tensors that carry their mask, as those of `Masking` do."""
    values = {
        name: tensor(x) if isinstance(x, np.ndarray) else x
        for name, x in values.items()
    }
    for name, mask in masks.items():
        backend.set_keras_mask(values[name], tensor(mask))
    return values


def mask_arguments(case, masks):
    """The same masks as call arguments."""
    if case.single_input:
        return {"mask": tensor(next(iter(masks.values())))}
    arguments = {f"{name}_mask": tensor(mask) for name, mask in masks.items()}
    for name, spec in case.inputs.items():
        if isinstance(spec, Same):
            arguments[f"{name}_mask"] = arguments[f"{spec.name}_mask"]
    return arguments


def pairwise(case, masks):
    """The mask of pairs that these masks of queries and keys amount to."""
    query, value = case.inputs
    spec = case.inputs[value]
    value = spec.name if isinstance(spec, Same) else value
    return masks[query][:, :, None] & masks[value][:, None, :]


def check_mask_survives(case, option):
    layer, values = create_for(case, option)
    masks = padding(case, values)
    before = keras.tree.map_structure(np.array, values)
    values = with_masks(values, masks)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        result = apply(case, layer, values)
    for name, mask in masks.items():
        kept = backend.get_keras_mask(values[name])
        assert kept is not None, f"{name!r} lost its mask"
        np.testing.assert_array_equal(to_numpy(kept), mask)
        np.testing.assert_array_equal(to_numpy(values[name]), before[name])
    output = keras.tree.flatten(result)[0]
    mask = backend.get_keras_mask(output)
    assert mask is not None, "the output has no mask"
    np.testing.assert_array_equal(to_numpy(mask), masks[case.masked[0]])


def check_padding_is_invisible(case, filling):
    """Valid rows equal those of the unpadded sequences, one at a time."""
    layer = random_weights(create(case))
    values = draw(case)
    masks = padding(case, values)
    for name, mask in masks.items():
        # NaN in some features, infinities in others, or one large number.
        width = values[name].shape[-1]
        values[name][~mask] = np.resize(filling, width)
    padded = to_numpy(apply(case, layer, with_masks(values, masks)))
    batch = len(padded)
    for row in range(batch):
        single = {
            name: value
            if isinstance(value, Same)
            else value[row : row + 1, masks[name][row]]
            if name in masks
            else value[row : row + 1, masks[case.masked[0]][row]]
            for name, value in values.items()
        }
        alone = outputs(case, layer, single)[0][0]
        valid = padded[row][masks[case.masked[0]][row]]
        assert_all_close([valid], [alone], tolerance=1e-5)


@pytest.mark.parametrize(
    ("case", "option"),
    MASKED_OPTIONS,
    ids=[f"{case.id}-{option.id}" for case, option in MASKED_OPTIONS],
)
def test_mask_survives(case, option):
    check_mask_survives(case, option)


@pytest.mark.parametrize(**by_case(MASKED))
def test_keras_mask_equals_mask_argument(case):
    layer = random_weights(create(case))
    values = draw(case)
    masks = padding(case, values)
    attached = apply(case, layer, with_masks(values, masks))
    passed = apply(case, layer, values, **mask_arguments(case, masks))
    assert_all_close([to_numpy(attached)], [to_numpy(passed)])


@pytest.mark.parametrize(**by_case(MASKED))
def test_compute_mask(case):
    layer = create(case)
    values = draw(case)
    mask = padding(case, values)[case.masked[0]]
    first = tensor(values[case.masked[0]])
    result = layer.compute_mask(first, tensor(mask))
    np.testing.assert_array_equal(to_numpy(result), mask)


@pytest.mark.parametrize(
    "filling", [(np.nan, np.inf, -np.inf), (1e4,)], ids=["nan", "large"]
)
@pytest.mark.parametrize(**by_case([c for c in MASKED if c.padded]))
def test_padding_is_invisible(case, filling):
    check_padding_is_invisible(case, filling)


@pytest.mark.parametrize(
    **by_case([c for c in MASKED if c.single_input or c.attention_mask])
)
def test_masking_layer_in_a_compiled_model(case):
    layer = random_weights(create(case))
    values = draw(case)
    masks = padding(case, values)
    for name, mask in masks.items():
        values[name][~mask] = 0.0
    symbols = {
        name: keras.Input((None, *values[name].shape[2:])) for name in masks
    }
    masked = {
        name: Same(spec.name)
        if isinstance(spec, Same)
        else keras.layers.Masking()(symbols[name])
        for name, spec in case.inputs.items()
    }
    model = keras.Model(list(symbols.values()), apply(case, layer, masked))
    compiled = model.predict_on_batch([values[name] for name in symbols])
    eager = apply(case, layer, values, **mask_arguments(case, masks))
    assert_all_close([compiled], [to_numpy(eager)], tolerance=1e-5)


@pytest.mark.parametrize(**by_case([c for c in MASKED if c.attention_mask]))
def test_keras_mask_and_attention_mask(case):
    layer = random_weights(create(case))
    values = draw(case)
    masks = padding(case, values)
    pairs = pairwise(case, masks)
    allowed = np.random.default_rng(2).random(pairs.shape) < 0.7
    allowed[..., 0] = True
    both = apply(
        case,
        layer,
        with_masks(values, masks),
        attention_mask=tensor(allowed),
    )
    merged = apply(case, layer, values, attention_mask=tensor(allowed & pairs))
    one = apply(case, layer, values, attention_mask=tensor(allowed))
    valid = masks[case.masked[0]]
    both, merged, one = (to_numpy(x)[valid] for x in (both, merged, one))
    assert_all_close([both], [merged])
    assert np.abs(both - one).max() > 1e-3


@pytest.mark.parametrize(**by_case([c for c in CASES if c.cache]))
def test_keras_mask_and_attention_mask_with_cache(case):
    layer = random_weights(create(case))
    values = draw(case)
    x = next(iter(values.values()))
    batch, length = x.shape[:2]
    mask = np.ones((batch, length), bool)
    mask[1, 1] = False  # left of valid tokens, so that it must be remembered
    allowed = np.ones((batch, length, length), bool)
    allowed[0, -1, 0] = False
    name = next(iter(values))
    expected = apply(
        case,
        layer,
        with_masks(values, {name: mask}),
        attention_mask=tensor(allowed),
        use_causal_mask=True,
    )
    cache, pieces, slots = layer.init_cache(batch, 2 * length), [], length
    for start, stop in ((0, 3), (3, length)):
        part = {**values, name: x[:, start:stop]}
        rows = np.pad(allowed[:, start:stop], ((0, 0), (0, 0), (0, slots)))
        before = [to_numpy(leaf) for leaf in keras.tree.flatten(cache)]
        piece, new_cache = apply(
            case,
            layer,
            with_masks(part, {name: mask[:, start:stop]}),
            attention_mask=tensor(rows),
            use_causal_mask=True,
            cache=cache,
            cache_update_index=start,
        )
        for a, b in zip(before, keras.tree.flatten(cache)):
            np.testing.assert_array_equal(a, to_numpy(b))
        cache = new_cache
        pieces.append(to_numpy(piece))
    actual = np.concatenate(pieces, axis=1)
    assert_all_close([actual], [to_numpy(expected)], tolerance=1e-5)


@pytest.mark.parametrize(
    "extra", ["nothing", "attention_mask", "keras_mask", "scores"]
)
@pytest.mark.parametrize(**by_case([c for c in CASES if c.causal]))
def test_causal_outputs_do_not_see_later_tokens(case, extra):
    layer = random_weights(create(case))
    values = draw(case)
    name, x = next(iter(values.items()))
    batch, length = x.shape[:2]
    call = {"use_causal_mask": True}
    masks = {}
    if extra == "attention_mask":
        call["attention_mask"] = tensor(np.ones((batch, length, length), bool))
    elif extra == "keras_mask":
        masks = {name: np.ones((batch, length), bool)}
    elif extra == "scores":
        call["return_attention_scores"] = True
    first = outputs(case, layer, with_masks(values, masks), **call)[0]
    changed = {**values, name: x.copy()}
    changed[name][:, -1] += 3.0
    second = outputs(case, layer, with_masks(changed, masks), **call)[0]
    assert_all_close([second[:, :-1]], [first[:, :-1]])
    assert np.abs(second[:, -1] - first[:, -1]).max() > 1e-3
