"""What happens when the package is imported or started, by backend."""

import json

import keras
import pytest

import _keras_gating_launcher as launcher
import keras_gating
from tests.marks import once
from tests.worlds import World

BACKENDS = ("jax", "tensorflow", "torch")
CURRENT = keras.config.backend()
IMPORT = ("-c", "import keras_gating")


@once
@pytest.mark.parametrize("installed", ["jax", "torch"])
def test_missing_backend_is_one_error_that_says_what_to_type(
    tmp_path, installed
):
    # Keras tries TensorFlow when nothing tells it otherwise.
    world = World(tmp_path, hidden=BACKENDS, shown=[installed])
    process = world.run(*IMPORT)
    assert process.returncode == 1
    assert process.stderr.count("Traceback") == 1
    assert "ImportError: Keras is set to the backend 'tensorflow'" in (
        process.stderr
    )
    assert f"Installed: {installed}." in process.stderr
    assert f"\n    export KERAS_BACKEND={installed}\n" in process.stderr
    assert f'os.environ["KERAS_BACKEND"] = "{installed}"' in process.stderr


@once
def test_no_backend_at_all(tmp_path):
    process = World(tmp_path, hidden=BACKENDS).run(*IMPORT)
    assert process.returncode == 1
    assert process.stderr.count("Traceback") == 1
    assert "ImportError: keras_gating needs a Keras backend" in process.stderr
    assert "pip install 'keras-gating[jax]'" in process.stderr


def test_the_advice_works_in_the_same_process(tmp_path):
    missing = "torch" if CURRENT != "torch" else "jax"
    world = World(tmp_path, hidden=[missing])
    configuration = world.keras_home / "keras.json"
    configuration.write_text(json.dumps({"backend": missing}))
    process = world.run(
        "-c",
        "import os\n"
        "try:\n"
        "    import keras_gating\n"
        "except ImportError as error:\n"
        "    print(error)\n"
        f"os.environ['KERAS_BACKEND'] = {CURRENT!r}\n"
        "import keras_gating, keras\n"
        "print('backend', keras.config.backend())\n",
    )
    assert process.returncode == 0, process.stderr
    assert f"the backend '{missing}', which is not installed" in process.stdout
    assert process.stdout.endswith(f"backend {CURRENT}\n")


def test_other_import_errors_stay_as_they_are(tmp_path):
    world = World(tmp_path, hidden=["absl"])
    process = world.run(*IMPORT, KERAS_BACKEND=CURRENT)
    assert process.returncode == 1
    assert "ModuleNotFoundError: No module named 'absl'" in process.stderr
    assert "KERAS_BACKEND" not in process.stderr


def test_one_installed_backend_is_enough(tmp_path):
    world = World(tmp_path, hidden=[b for b in BACKENDS if b != CURRENT])
    process = world.run(
        "-c",
        "import keras_gating, keras\n"
        "layer = keras_gating.layers.Gate(scale=2.0)\n"
        "print(keras.config.backend(), float(keras.ops.sum(\n"
        "    layer(keras.ops.ones((2, 3))))))\n",
        KERAS_BACKEND=CURRENT,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout == f"{CURRENT} 6.0\n"


def test_import_only_registers_the_layers(tmp_path):
    process = World(tmp_path).run(
        "-c",
        "import json, logging, os, random, sys, warnings\n"
        "import keras, numpy\n"
        "def state():\n"
        "    return [\n"
        "        keras.config.floatx(), keras.config.epsilon(),\n"
        "        keras.config.image_data_format(),\n"
        "        keras.config.dtype_policy().name,\n"
        "        dict(os.environ), os.getcwd(),\n"
        "        repr(random.getstate()), repr(numpy.random.get_state()),\n"
        "        repr(warnings.filters), repr(logging.root.handlers),\n"
        "    ]\n"
        "before = state()\n"
        "modules = set(sys.modules)\n"
        "objects = set(keras.saving.get_custom_objects())\n"
        "import keras_gating\n"
        "print(json.dumps({\n"
        "    'same': state() == before,\n"
        "    'modules': sorted(set(sys.modules) - modules),\n"
        "    'objects': sorted(\n"
        "        set(keras.saving.get_custom_objects()) - objects),\n"
        "    'layers': sorted(keras_gating.layers.__all__),\n"
        "}))\n",
        KERAS_BACKEND=CURRENT,
    )
    assert process.returncode == 0, process.stderr
    seen = json.loads(process.stdout)
    assert seen["same"]
    assert seen["layers"]
    registered = {
        name.removeprefix("keras_gating>") for name in seen["objects"]
    }
    assert set(seen["layers"]) <= registered
    assert all(name.startswith("keras_gating>") for name in seen["objects"])
    packages = {name.partition(".")[0] for name in seen["modules"]}
    unwanted = {*BACKENDS, "matplotlib", "sklearn"} - {CURRENT}
    assert packages.isdisjoint(unwanted)
    for name in ("experiments", "surgery.attention", "surgery.weights"):
        assert f"keras_gating.{name}" not in seen["modules"]
    # What surgery puts into models, which may be loaded without it.
    assert {"WithGatedAttention", "KerasMaskAttention"} <= registered


@once
def test_names_that_are_imported_when_they_are_asked_for():
    for package in (keras_gating, keras_gating.surgery):
        assert set(package.__all__) <= set(dir(package))
        for name in package.__all__:
            assert getattr(package, name).__name__.endswith(name)
        with pytest.raises(AttributeError, match="has no attribute 'gates'"):
            _ = package.gates


@pytest.fixture
def choose(monkeypatch, tmp_path):
    """The launcher's choice, given what is installed and set."""

    def choose(argv=(), installed=BACKENDS, variable=None, configured=None):
        monkeypatch.setattr(
            launcher.importlib.util,
            "find_spec",
            lambda name: name if name in installed else None,
        )
        monkeypatch.setenv("KERAS_HOME", str(tmp_path))
        monkeypatch.delenv("KERAS_BACKEND", raising=False)
        if variable is not None:
            monkeypatch.setenv("KERAS_BACKEND", variable)
        if configured is not None:
            (tmp_path / "keras.json").write_text(configured)
        return launcher._choose(list(argv))

    return choose


@pytest.mark.parametrize(
    ("expected", "given"),
    [
        ("jax", {}),
        ("tensorflow", {"installed": ("tensorflow", "torch")}),
        ("torch", {"installed": ("torch",)}),
        ("torch", {"argv": ["demo", "--backend", "torch", "--quick"]}),
        ("torch", {"argv": ["demo", "--backend=torch"], "variable": "jax"}),
        ("torch", {"argv": ["--backend=jax", "--backend", "torch"]}),
        ("tensorflow", {"variable": "tensorflow"}),
        ("jax", {"variable": ""}),
        ("torch", {"configured": '{"backend": "torch"}'}),
        ("jax", {"variable": "jax", "configured": '{"backend": "torch"}'}),
        ("jax", {"configured": '{"backend": "openvino"}'}),
        ("jax", {"configured": "not JSON"}),
        (
            "torch",
            {
                "installed": ("torch",),
                "configured": '{"backend": "tensorflow"}',
            },
        ),
    ],
)
def test_launcher_chooses_the_backend(choose, expected, given):
    assert choose(**given) == expected


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (["unknown", "'theano'", "--backend"], {"argv": ["--backend=theano"]}),
        (["unknown", "''", "--backend"], {"argv": ["--backend="]}),
        (["unknown", "'numpy'", "KERAS_BACKEND"], {"variable": "numpy"}),
        (
            ["'torch'", "--backend", "not installed", "installed: jax"],
            {"argv": ["--backend", "torch"], "installed": ("jax",)},
        ),
        (
            ["'torch'", "KERAS_BACKEND", "not installed", "jax, tensorflow"],
            {"variable": "torch", "installed": ("jax", "tensorflow")},
        ),
        (["pip install 'keras-gating[jax]'"], {"installed": ()}),
    ],
)
def test_launcher_refuses_a_backend(choose, words, given):
    with pytest.raises(ValueError) as error:
        choose(**given)
    message = str(error.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_command_line_starts_with_the_only_backend(tmp_path):
    world = World(tmp_path, hidden=[b for b in BACKENDS if b != CURRENT])
    process = world.run("-m", "_keras_gating_launcher", "--help")
    assert process.returncode == 0, process.stderr
    assert "usage: keras-gating" in process.stdout


@once
@pytest.mark.parametrize("arguments", [["--help"], ["demo"]])
def test_command_line_without_a_backend(tmp_path, arguments):
    world = World(tmp_path, hidden=BACKENDS)
    process = world.run("-m", "_keras_gating_launcher", *arguments)
    assert process.returncode == 2
    assert process.stdout == ""
    assert process.stderr.count("\n") == 1
    assert "pip install 'keras-gating[jax]'" in process.stderr
