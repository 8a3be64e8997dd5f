"""What the hooks of the site write into its pages."""

import json
import runpy

import pytest

from .conftest import ROOT

HOOKS = ROOT / "docs" / "hooks"
RUN = {
    "quick": False,
    "environment": {"keras": "3.15.1", "processors": 2},
    "rows": [
        {
            "what": "chunked, forward",
            "unit": "ms",
            "ours": 89.24,
            "other": 86.56,
            "ratio": 1.0309,
            "low": 1.006,
            "high": 1.0856,
            "goal": 1.0,
        }
    ],
}


@pytest.fixture(scope="module")
def tables():
    return runpy.run_path(str(HOOKS / "tables.py"))


@pytest.fixture(scope="module")
def tutorials():
    return runpy.run_path(str(HOOKS / "tutorials.py"))


def test_tested_versions_are_those_of_the_workflow(tables):
    header, _, *rows = tables["tested_versions"]().split("\n")
    assert [row.split(" | ")[0] for row in rows] == [
        "| JAX",
        "| TensorFlow",
        "| PyTorch",
    ]
    assert "Keras 3.12, Python 3.11" in header
    # Three backends: the oldest and the newest Keras on the oldest Python, and
    # the newest on two more.
    assert [row.count("✓") for row in rows] == [4, 4, 4]


def test_benchmarks_become_tables(tables, tmp_path, monkeypatch):
    write = tables["benchmark_results"]
    monkeypatch.setitem(write.__globals__, "RESULTS", tmp_path)
    assert "No full run" in write()
    for name in ("speed_jax", "speed_torch", "gau"):
        backend = name.partition("_")[2] or "torch"
        environment = {"backend": backend, **RUN["environment"]}
        path = tmp_path / f"benchmark_{name}.json"
        path.write_text(json.dumps({**RUN, "environment": environment}))
    overview, *sections = write().split("\n\n### ")
    assert overview.split("\n")[2:] == [
        "| [Gated attention unit](#gated-attention-unit) |  |  | 0 of 1 |",
        "| [Speed](#speed) | 0 of 1 |  | 0 of 1 |",
    ]
    assert [text.partition("\n")[0] for text in sections] == [
        "Gated attention unit",
        "Speed",
    ]
    assert sections[1].count("<summary>") == 2
    assert "<summary>JAX: 0 of 1 goals met</summary>" in sections[1]
    row = (
        "| chunked, forward | 89.2 / 86.6 ms | 1.03 | 1.01 – 1.09 | ≤ 1 | no |"
    )
    for text in ("backend torch, keras 3.15.1, processors 2\n", row):
        assert text in sections[0]
    path.write_text(json.dumps({**RUN, "quick": True}))
    with pytest.raises(ValueError, match="quick"):
        write()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A title\n\n**What\nis it?** More.", ("A title", "What is it?")),
        ("[![b](c)](d)\n\n# A title\n\nIs it so?\n", ("A title", "Is it so?")),
        ("# [![b](c)](d)\n\n# A title\n\nIs it so?", None),
        ("## A title\n\nIs it so?", None),
    ],
)
def test_title_and_question_of_a_notebook(tutorials, tmp_path, text, expected):
    path = tmp_path / "01_a.ipynb"
    cell = {"cell_type": "markdown", "source": text.splitlines(True)}
    path.write_text(json.dumps({"cells": [cell]}))
    if expected is None:
        with pytest.raises(ValueError, match="01_a.ipynb must begin"):
            tutorials["title_and_question"](path)
    else:
        assert tutorials["title_and_question"](path) == expected
