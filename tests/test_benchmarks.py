"""The benchmarks run, at sizes that say nothing about speed."""

import json
import os
import runpy
import sys
from pathlib import Path
from unittest import mock

import keras
import pytest

from tests.marks import once

FOLDER = Path(__file__).parents[1] / "benchmarks"
BACKEND = keras.config.backend()


@pytest.fixture
def rows_of(tmp_path, monkeypatch):
    """Runs a benchmark in this process and returns its rows."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)

    def run(name):
        options = ["--quick", "--backend", BACKEND, "--out", str(tmp_path)]
        path = FOLDER / f"{name}.py"
        monkeypatch.setattr(sys, "argv", [str(path), *options])
        with mock.patch.dict(os.environ):
            runpy.run_path(str(path), run_name="__main__")
        written = tmp_path / f"benchmark_{name}_{BACKEND}.json"
        if not written.exists():
            return []
        return json.loads(written.read_text())["rows"]

    yield run
    for name in set(sys.modules) - before:
        if (FOLDER / f"{name}.py").exists():
            del sys.modules[name]


def test_decoding(rows_of):
    step, copies = rows_of("decoding")
    assert step["relative_error"] < 1e-5 and step["ratio"] > 0
    # Given the cache to keep, JAX and torch write in place.
    assert copies["ratio"] == {"jax": 0, "tensorflow": 1, "torch": 0}[BACKEND]


@once
def test_attention(rows_of):
    rows = rows_of("attention")
    assert len(rows) == 6
    assert all(row["relative_error"] < 1e-5 for row in rows[::3])
    assert [row["goal"] for row in rows[:3]] == [0.97, 1.23, 1.02]


def test_qwen(rows_of):
    """Beside keras-hub, and where they are there beside transformers."""
    rows = rows_of("qwen")
    assert any("keras-hub" in row["what"] for row in rows)
    # Each peer has two passes and a step.
    assert len(rows) % 3 == 0
    assert max(row["relative_error"] for row in rows) < 1e-5


@once
def test_feedforward(rows_of):
    rows = rows_of("feedforward")
    # Two variants, each forward, and forward and backward.
    assert len({row["what"] for row in rows}) == 4
    assert all(row["ours"] > 0 < row["other"] for row in rows)


@once
def test_channel(rows_of, capsys):
    """Beside timm where it is there; where not, it says so."""
    rows = rows_of("channel")
    if rows:
        assert max(row["relative_error"] for row in rows) < 1e-5
    else:
        assert "timm is not installed" in capsys.readouterr().out
