"""Rules on the files of the project."""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import keras_gating

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "keras_gating").rglob("*.py"))
BACKENDS = {"jax", "jaxlib", "tensorflow", "torch"}


def imported(tree):
    """Top-level names of everything a module imports, at any depth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "attr", getattr(node.func, "id", None))
            argument = node.args[0]
            is_import = name in ("import_module", "__import__")
            if is_import and isinstance(argument, ast.Constant):
                yield argument.value.partition(".")[0]


@pytest.mark.parametrize(
    "source",
    [
        "import jax.numpy as jnp",
        "def f():\n    from torch import nn",
        "import importlib\nimportlib.import_module('tensorflow.math')",
    ],
)
def test_backend_imports_are_seen(source):
    assert BACKENDS & set(imported(ast.parse(source)))


def test_one_part_knows_the_backends():
    knowing = {
        path.parent.name
        for path in MODULES
        if BACKENDS & set(imported(ast.parse(path.read_text())))
    }
    assert knowing == {"_backend"}


def test_one_file_knows_what_keras_hides():
    """Private modules of Keras, and private attributes of its objects."""
    hidden = re.compile(
        r"keras\.src|\w\._(flatten_layers|inbound_nodes|keras_history|layers"
        r"|nodes_by_depth|parent_path|tracker)\b"
    )
    knowing = {path.name for path in MODULES if hidden.search(path.read_text())}
    assert knowing == {"_keras.py"}


@pytest.mark.parametrize(
    "path", MODULES, ids=lambda path: str(path.relative_to(ROOT))
)
def test_a_file_holds_one_idea(path):
    """About 300 lines of code; what a docstring explains is not counted."""
    source = path.read_text()
    documented = sum(
        node.end_lineno - node.lineno + 1
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
    assert len(source.splitlines()) - documented <= 320


def test_imports_point_downward():
    """Each part of the package imports only from the parts before it."""
    below = {"_backend": [], "_extras": [], "_keras": []}
    below["functional"] = ["_backend"]
    # Geometry takes any callable and knows no layer.
    below["geometry"] = ["_backend", "functional"]
    below["layers"] = [*below["geometry"], "_keras"]
    seen = [*below["layers"], "layers", "geometry", "_extras"]
    below["diagnostics"] = below["surgery"] = below["distribution"] = seen
    below["experiments"] = [*seen, "diagnostics", "surgery"]
    below["cli"] = [*below["experiments"], "experiments"]
    for path in MODULES:
        part = path.relative_to(ROOT / "keras_gating").parts[0]
        part = part.removesuffix(".py")
        if part == "__init__":
            continue
        for match in re.finditer(
            r"^\s*from keras_gating(?:\.(\w+))?\S* import (\w+)",
            path.read_text(),
            flags=re.MULTILINE,
        ):
            used = match.group(1) or match.group(2)
            allowed = (part, *below[part])
            assert used in allowed, f"{path.name} imports {used}"


def test_one_version():
    version = keras_gating.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(rf"^version: {re.escape(version)}$", citation, re.M)
    heading = "Unreleased" if ".dev" in version else version
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## \[{re.escape(heading)}\]", changelog, re.M)


def test_the_repository_is_named_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    url = project["project"]["urls"]["Repository"]
    files = [
        *(path for path in ROOT.glob("*.*") if path.is_file()),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "keras_gating").rglob("*.py"),
    ]
    naming = {path.name for path in files if url in path.read_text()}
    assert naming == {"pyproject.toml"}


def test_wheel_has_the_launcher_and_the_type_marker(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
        + ["-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert keras_gating.__version__ in wheel.name
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"_keras_gating_launcher.py", "keras_gating/py.typed"} <= names
    modules = {str(path.relative_to(ROOT)) for path in MODULES}
    assert modules <= names
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "_keras_gating_launcher.py",
        "keras_gating",
    }
