"""Writes tables that follow from other files of the repository."""

import itertools
import json
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
TESTS = ROOT / ".github" / "workflows" / "tests.yml"
RESULTS = ROOT / "docs" / "results"
BACKENDS = {"jax": "JAX", "tensorflow": "TensorFlow", "torch": "PyTorch"}
# Of benchmarks whose file names are abbreviations.
TITLES = {"gau": "Gated attention unit"}


def on_page_markdown(markdown, **kwargs):
    """Puts the tables in the place of their markers."""
    for marker, table in TABLES.items():
        if marker in markdown:
            markdown = markdown.replace(marker, table())
    return markdown


def tested_versions():
    """What the continuous integration tests, from its configuration."""
    job = yaml.safe_load(TESTS.read_text())["jobs"]["tests"]
    matrix = dict(job["strategy"]["matrix"])
    included = matrix.pop("include", [])
    combinations = [
        dict(zip(matrix, values))
        for values in itertools.product(*matrix.values())
    ]
    for extra in included:
        if set(extra) != set(matrix):
            raise ValueError(
                f"An entry under `include` in {TESTS.name} must name "
                f"{sorted(matrix)}, and names {sorted(extra)}."
            )
    tested = {
        (run["backend"], run["keras"], run["python"])
        for run in (*combinations, *included)
    }
    oldest = re.search(r"keras==([\d.]+)\.\*", job["env"]["KERAS_PIN"]).group(1)
    names = {"oldest": oldest, "newest": "newest"}
    columns = sorted(
        {(keras, python) for _, keras, python in tested},
        key=lambda column: (
            column[0] == "newest",
            [int(part) for part in column[1].split(".")],
        ),
    )
    header = [f"Keras {names[k]}, Python {python}" for k, python in columns]
    rows = [
        [name, *("✓" if (key, *c) in tested else "" for c in columns)]
        for key, name in BACKENDS.items()
    ]
    return table(["backend", *header], rows)


def benchmark_results():
    """Every full run that is kept in docs/results."""
    sections = [
        section(path, json.loads(path.read_text()))
        for path in sorted(RESULTS.glob("benchmark_*.json"))
    ]
    return "\n\n".join(sections) or (
        "No full run is kept in the repository yet. The programs below print "
        "their tables where you run them."
    )


def section(path, run):
    """A heading, where it ran, and one row for each ratio."""
    if run["quick"]:
        raise ValueError(
            f"{path.name} is a quick run, whose ratios say nothing."
        )
    name, _, backend = path.stem.removeprefix("benchmark_").partition("_")
    title = TITLES.get(name, name.capitalize())
    if backend:
        title += f" on {BACKENDS[backend]}"
    place = ", ".join(f"{k} {v}" for k, v in run["environment"].items())
    rows = [
        [
            row["what"],
            f"{row['ours']:.3g} / {row['other']:.3g} {row['unit']}",
            f"{row['ratio']:.3g}",
            f"{row['low']:.3g} – {row['high']:.3g}" if "low" in row else "",
            f"≤ {row['goal']:.3g}",
            "yes" if row["ratio"] <= row["goal"] else "no",
        ]
        for row in run["rows"]
    ]
    header = ["what", "ours / other", "ratio", "quartiles", "goal", "met"]
    return f"## {title}\n\n{place}\n\n{table(header, rows)}"


def table(header, rows):
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


TABLES = {
    "<!-- table of tested versions -->": tested_versions,
    "<!-- results of benchmarks -->": benchmark_results,
}
