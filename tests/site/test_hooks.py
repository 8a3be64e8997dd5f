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


def test_benchmarks_become_a_table(tables, tmp_path):
    text = tables["section"](tmp_path / "benchmark_gau.json", RUN)
    place = "keras 3.15.1, processors 2"
    assert text.startswith(f"## Gated attention unit\n\n{place}\n\n| what")
    row = (
        "| chunked, forward | 89.2 / 86.6 ms | 1.03 | 1.01 – 1.09 | ≤ 1 | no |"
    )
    assert text.endswith(row)
    text = tables["section"](tmp_path / "benchmark_speed_jax.json", RUN)
    assert text.startswith("## Speed on JAX\n")
    with pytest.raises(ValueError, match="quick"):
        tables["section"](tmp_path / "b.json", {**RUN, "quick": True})


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
