"""Tutorials run, and their notebooks are what their scripts make.

`make tutorials` writes the notebooks. What they quote from full runs of the
experiments is compared in `test_tutorials_figures.py`.
"""

import ast
import os
import re
import tomllib
from pathlib import Path

import keras
import matplotlib
import matplotlib.pyplot as plt
import nbformat
import pytest

from tutorials.execute import METADATA
from tutorials.execute import WIDGET
from tutorials.execute import converted
from tutorials.execute import scripts

ROOT = Path(__file__).parents[1]
SCRIPTS = scripts()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
URL = PROJECT["urls"]["Repository"]
NAME = URL.removeprefix("https://github.com/")
each_tutorial = pytest.mark.parametrize(
    "script", SCRIPTS, ids=lambda script: script.stem
)


def notebook(script):
    return nbformat.read(script.with_suffix(".ipynb"), as_version=4)


def outputs(script):
    cells = notebook(script).cells
    return [output for cell in cells for output in cell.get("outputs", ())]


def printed(output):
    """All text of an output, also that beside a picture."""
    data = output.get("data", {})
    texts = [data[kind] for kind in data if kind.startswith("text/")]
    return "".join([output.get("text", ""), *texts])


def test_every_notebook_has_a_script():
    notebooks = (ROOT / "tutorials").glob("*.ipynb")
    assert {p.stem for p in notebooks} == {p.stem for p in SCRIPTS}
    numbers = [int(script.stem[:2]) for script in SCRIPTS]
    assert numbers == sorted(set(numbers))


@each_tutorial
def test_notebook_is_what_the_script_makes(script):
    made, stored = converted(script), notebook(script)
    assert [(c.id, c.cell_type, c.source) for c in stored.cells] == [
        (c.id, c.cell_type, c.source) for c in made.cells
    ]
    assert 8 <= len(made.cells) <= 30


@each_tutorial
def test_outputs_are_complete_and_clean(script):
    stored = notebook(script)
    # No widgets, no times, no machine.
    assert stored.metadata == METADATA
    assert all(cell.metadata == {} for cell in stored.cells)
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert [c.execution_count for c in code] == list(range(1, len(code) + 1))
    everything = outputs(script)
    assert not [o for o in everything if o.output_type == "error"]
    assert not [o for o in everything if o.get("name") == "stderr"]
    assert not [o for o in everything if WIDGET in o.get("data", {})]
    assert sum("image/png" in o.get("data", {}) for o in everything) >= 2
    assert "jax" in printed(everything[0])
    text = script.read_text() + "".join(map(printed, everything))
    assert not re.search(r"(?<![\w.])/(home|root|tmp|usr|work|content)/", text)


@each_tutorial
def test_badge_comes_first(script):
    badge, _, rest = converted(script).cells[0].source.partition("\n\n")
    colab = "https://colab.research.google.com"
    image = f"{colab}/assets/colab-badge.svg"
    link = f"{colab}/github/{NAME}/blob/main/tutorials/{script.stem}.ipynb"
    assert badge == f"[![Open In Colab]({image})]({link})"
    assert re.fullmatch(r"# [^\n]+\n\n.+", rest, re.DOTALL)


def test_setup_is_the_same_everywhere():
    setups = {converted(script).cells[1].source for script in SCRIPTS}
    (setup,) = setups
    assert f'REPOSITORY = "{URL}"' in setup
    # The backend is chosen before the first import of Keras, then checked.
    chosen = setup.index('os.environ.setdefault("KERAS_BACKEND", "jax")')
    imported = re.search(r"^(import|from) keras", setup, re.MULTILINE)
    assert chosen < imported.start() < setup.index("restart the runtime")
    # Only in Colab is anything installed, and no backend.
    (branch,) = [n for n in ast.parse(setup).body if isinstance(n, ast.If)]
    assert ast.unparse(branch.test) == "'google.colab' in sys.modules"
    install = ast.unparse(branch)
    assert setup.count("pip") == install.count("pip")
    assert not re.search(r"upgrade|-U|\bjax\b|tensorflow|torch", install)
    extra = PROJECT["optional-dependencies"]["experiments"]
    required = " ".join(PROJECT["dependencies"] + extra)
    assert not re.search("jax|tensorflow|torch|\\[", required)


@each_tutorial
def test_nothing_else_installs_or_chooses_a_backend(script):
    for cell in converted(script).cells[2:]:
        if cell.cell_type == "code":
            assert not re.search(r"\bpip\b|KERAS_BACKEND|^[!%]", cell.source)


def test_links_name_the_repository():
    files = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "tutorials").iterdir(),
        ROOT / "mkdocs.yml",
    ]
    pattern = r"github(?:usercontent)?\.com(?:/github)?/([\w.-]+/keras-gating)"
    named = {
        (path.name, name)
        for path in files
        if path.is_file()
        for name in re.findall(pattern, path.read_text())
    }
    assert len(named) > 1
    assert {name for _, name in named} == {NAME}


# In full on JAX, where float64 takes a test run of its own.
@pytest.mark.float64
@each_tutorial
def test_tutorial_runs(script, monkeypatch, tmp_path):
    backend = keras.config.backend()
    monkeypatch.setattr(os, "environ", os.environ.copy())
    os.environ["KERAS_BACKEND"] = backend
    os.environ["KERAS_GATING_QUICK"] = "0" if backend == "jax" else "1"
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.extend(plt.get_fignums()))
    with matplotlib.rc_context():
        source = script.read_text()
        exec(compile(source, str(script), "exec"), {"__name__": "__main__"})
    plt.close("all")
    assert shown
