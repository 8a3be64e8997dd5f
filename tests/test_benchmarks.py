"""The programs in `benchmarks/` run and write what they measured."""

import json
import runpy
import sys
from pathlib import Path

import keras
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.skipif(
    keras.config.backend() != "torch", reason="the programs are the same"
)
def test_quick_run_of_feed_forward_layers(monkeypatch, tmp_path):
    program = FOLDER / "feedforward.py"
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(
        sys, "argv", [str(program), "--quick", "--out", str(tmp_path)]
    )
    runpy.run_path(str(program), run_name="__main__")
    (path,) = tmp_path.iterdir()
    assert path.name == "benchmark_feedforward_torch.json"
    run = json.loads(path.read_text())
    assert run["quick"]
    # Two variants, each forward, and forward and backward.
    assert len({row["what"] for row in run["rows"]}) == 4
    assert all(row["ours"] > 0 < row["other"] for row in run["rows"])


@pytest.mark.skipif(
    keras.config.backend() != "torch", reason="timm's layers are torch's"
)
def test_quick_run_of_channel_gates(monkeypatch, tmp_path, capsys):
    """Beside timm where it is there; where not, it says so."""
    program = FOLDER / "channel.py"
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(
        sys, "argv", [str(program), "--quick", "--out", str(tmp_path)]
    )
    runpy.run_path(str(program), run_name="__main__")
    written = list(tmp_path.iterdir())
    if not written:
        assert "timm is not installed" in capsys.readouterr().out
        return
    rows = json.loads(written[0].read_text())["rows"]
    assert max(row["relative_error"] for row in rows) < 1e-5
