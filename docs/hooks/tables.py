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
# Of benchmarks whose file names do not say it.
TITLES = {
    "channel": "Channel gates",
    "decoding": "A step of decoding",
    "distribution": "Memory of devices",
    "feedforward": "Gated feed-forward layers",
    "gau": "Gated attention unit",
    "imports": "Import",
    "qwen": "Gated attention of Qwen",
}


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
    """Every full run that is kept in docs/results: an overview, and by name."""
    runs = {}
    for path in sorted(RESULTS.glob("benchmark_*.json")):
        name = path.stem.removeprefix("benchmark_").partition("_")[0]
        run = json.loads(path.read_text())
        if run["quick"]:
            raise ValueError(
                f"{path.name} is a quick run, whose ratios say nothing."
            )
        backend = run["environment"]["backend"]
        runs.setdefault(name, {})[backend] = run
    if not runs:
        return (
            "No full run is kept in the repository yet. The programs below "
            "print their tables where you run them."
        )
    overview = table(
        ["goals met", *BACKENDS.values()],
        [
            [
                f"[{title_of(name)}](#{anchor_of(name)})",
                *(goals(of_name[b]) if b in of_name else "" for b in BACKENDS),
            ]
            for name, of_name in runs.items()
        ],
    )
    sections = [
        "\n\n".join([f"### {title_of(name)}", *map(details, of_name.values())])
        for name, of_name in runs.items()
    ]
    return "\n\n".join([overview, *sections])


def title_of(name):
    return TITLES.get(name, name.capitalize())


def anchor_of(name):
    return title_of(name).lower().replace(" ", "-")


def goals(run):
    """How many of the goals a run has met."""
    met = sum(row["ratio"] <= row["goal"] for row in run["rows"])
    return f"{met} of {len(run['rows'])}"


def details(run):
    """A box to unfold: where it ran, and one row for each ratio."""
    environment = run["environment"]
    place = ", ".join(f"{k} {v}" for k, v in environment.items())
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
    summary = f"{BACKENDS[environment['backend']]}: {goals(run)} goals met"
    return (
        f'<details markdown="1"><summary>{summary}</summary>\n\n{place}\n\n'
        f"{table(header, rows)}\n\n</details>"
    )


def table(header, rows):
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


TABLES = {
    "<!-- table of tested versions -->": tested_versions,
    "<!-- results of benchmarks -->": benchmark_results,
}
