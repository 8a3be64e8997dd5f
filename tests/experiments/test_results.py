import json
import sys

import keras
import numpy as np
import pytest

import keras_gating
from keras_gating.experiments.extras import MissingExtraError
from keras_gating.experiments.extras import require
from keras_gating.experiments.results import Results
from keras_gating.experiments.results import environment


def results(**measurements):
    return Results(
        experiment="example",
        seeds=[0, 1],
        settings={"quick": True},
        measurements=measurements,
        elapsed_seconds=1.5,
        command="keras-gating example",
        arrays={"surface": np.zeros(3)},
    )


def test_results_survive_their_file(tmp_path):
    written = results(share=0.25, missing=None, titles=["f₀₁", "½"])
    path = written.write(tmp_path / "new" / "folder")
    assert path.name == "example.json"
    assert Results.read(path) == written
    assert Results.read(path).arrays == {}


def test_file_says_what_the_result_depends_on(tmp_path):
    content = json.loads(results().write(tmp_path).read_text(encoding="utf-8"))
    assert content["seeds"] == [0, 1]
    assert content["command"] == "keras-gating example"
    assert content["elapsed_seconds"] == 1.5
    assert content["environment"] == environment()
    backend = keras.config.backend()
    module = sys.modules[backend]
    assert content["environment"]["backend"] == backend
    assert content["environment"]["backend_version"] == module.__version__
    assert content["environment"]["keras"] == keras.__version__
    assert content["environment"]["keras_gating"] == keras_gating.__version__
    assert content["environment"]["numpy"] == np.__version__
    version = ".".join(map(str, sys.version_info[:3]))
    assert content["environment"]["python"] == version


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_json_is_not_written(tmp_path, value):
    with pytest.raises(ValueError, match="JSON compliant"):
        results(value=value).write(tmp_path)
    assert not list(tmp_path.iterdir())


def test_missing_package_names_the_line_to_type(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError) as caught:
        require("sklearn")
    message = str(caught.value)
    assert "sklearn" in message and "\n" not in message
    assert 'pip install "keras-gating[experiments]"' in message
    assert caught.value.__suppress_context__


def test_unknown_module_of_an_installed_package_is_no_missing_extra():
    with pytest.raises(ModuleNotFoundError) as caught:
        require("rich.no_such_module")
    assert not isinstance(caught.value, MissingExtraError)
