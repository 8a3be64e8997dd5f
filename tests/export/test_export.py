"""Exported models compute what the Keras models do."""

import os
import pathlib
import re
import warnings

import keras
import pytest

from keras_gating import layers
from tests.export import formats
from tests.export import plain
from tests.export.cells import CELLS
from tests.export.cells import FAILS
from tests.export.cells import WORKS
from tests.export.cells import table
from tests.export.side_by_side import BRANCHES
from tests.export.side_by_side import OTHER_SIZES
from tests.export.side_by_side import side_by_side
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import random_weights

ROOT = pathlib.Path(__file__).parents[2]
TOLERANCE = 1e-5
HERE = [cell for cell in CELLS if cell.backend == keras.config.backend()]
# Artefacts for the sizes of the export alone.
FIXED = ("litert", "onnx_of_fixed_sizes")


# OpenVINO's converter starts processes of its own.
pytestmark = [
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),
    pytest.mark.filterwarnings(
        "ignore::pytest.PytestUnraisableExceptionWarning"
    ),
]
EVERY_CELL = os.environ.get("EXPORT_MATRIX") == "1"


def of_status(status):
    cells = [cell for cell in HERE if cell.status == status]
    return pytest.mark.parametrize("cell", cells, ids=[c.id for c in cells])


@pytest.fixture(autouse=True)
def no_warnings():
    """The converters' own, of which there are many."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def export(cell, parallel, folder):
    for package in cell.packages:
        pytest.importorskip(package)
    # Keras exports to ONNX only what was called before.
    parallel.expected({})
    return getattr(formats, cell.format)(parallel, folder)


def check(parallel, run, sizes):
    results = run(parallel.arrays(sizes))
    expected = parallel.expected(sizes)
    assert len(results) == len(expected)
    for branch, x, y in zip(parallel.branches, results, expected):
        try:
            assert_close(x, y, TOLERANCE)
        except AssertionError as error:
            error.add_note(f"in {branch} with {sizes}")
            raise


@of_status(WORKS)
def test_all_layers(cell, tmp_path):
    if not (cell.always or EVERY_CELL):
        pytest.skip("needs EXPORT_MATRIX=1")
    parallel = side_by_side(tuple(cell.without))
    run = export(cell, parallel, tmp_path)
    check(parallel, run, {})
    if cell.format not in FIXED:
        check(parallel, run, OTHER_SIZES)


@of_status(FAILS)
def test_fails_without_this_package_too(cell, tmp_path):
    """If this fails, upstream has mended it: try `WORKS`."""
    parallel = plain.plain(
        plain.normalization if cell.format == "onnx" else plain.dense
    )
    # Of a tensor, not of a list of one: nothing could be plainer.
    model = parallel.model
    parallel.model = keras.Model(model.inputs[0], model.outputs[0])
    with pytest.raises(Exception, match=cell.error):
        export(cell, parallel, tmp_path)


FAILURES = [
    (cell, failure)
    for cell in HERE
    for failure in cell.without.values()
    if failure.plain
]


@pytest.mark.parametrize(
    ("cell", "failure"), FAILURES, ids=[f.plain for _, f in FAILURES]
)
def test_a_plain_layer_fails_alike(cell, failure, tmp_path):
    parallel = plain.plain(getattr(plain, failure.plain))
    with pytest.raises(Exception, match=failure.error):
        run = export(cell, parallel, tmp_path)
        run(parallel.arrays({}))


@pytest.mark.skipif(keras.config.backend() != "torch", reason="torch.export")
@pytest.mark.skipif(not EVERY_CELL, reason="needs EXPORT_MATRIX=1")
def test_chunks_in_a_torch_program(tmp_path):
    """A dynamic length works, beyond one chunk and in whole ones."""
    import torch

    x = keras.Input((None, 4))
    layer = layers.GatedAttentionUnit(key_dim=4, chunk_size=3)
    model = keras.Model(x, layer(x, use_causal_mask=True))
    random_weights(layer)
    path = tmp_path / "model.pt2"
    chunks = torch.export.Dim("chunks", min=3)
    model.export(
        path,
        format="torch",
        verbose=False,
        input_signature=[keras.InputSpec(shape=(2, 9, 4), dtype="float32")],
        dynamic_shapes={0: torch.export.Dim("batch"), 1: 3 * chunks},
    )
    inputs = torch.from_numpy(normal(3, 15, 4))
    result = torch.export.load(path).module()(inputs)
    assert_close(result, model(inputs), TOLERANCE)


def test_every_layer_has_a_branch():
    assert {branch.case.layer for branch in BRANCHES} == {
        getattr(layers, name) for name in layers.__all__
    }


def test_the_guide_has_this_table():
    text = (ROOT / "docs" / "guides" / "export.md").read_text()
    (printed,) = re.findall(
        r"<!-- make export-matrix -->\n\n(.*?)\n\n<!-- end -->", text, re.DOTALL
    )
    assert printed == table()
