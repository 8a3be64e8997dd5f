"""The documentation names everything public, and its code runs."""

import contextlib
import doctest
import io
import os
import re
import warnings
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_gating
from tests.export.cells import BACKENDS

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
PUBLIC = [
    f"keras_gating.{package.__name__.rpartition('.')[2]}.{name}"
    for package in (
        keras_gating.layers,
        keras_gating.diagnostics,
        keras_gating.distribution,
        keras_gating.functional,
        keras_gating.geometry,
        keras_gating.surgery,
    )
    for name in package.__all__
]


def resolve(path):
    _, package, name = path.split(".")
    return getattr(getattr(keras_gating, package), name)


@pytest.fixture(autouse=True)
def same_environment(monkeypatch, tmp_path):
    """Examples that set variables or write files leave nothing behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", os.environ.copy())


def test_every_public_name_is_on_one_api_page():
    pages = (ROOT / "docs" / "api").glob("*.md")
    text = "\n".join(page.read_text() for page in pages)
    documented = re.findall(r"^::: (\S+)$", text, re.MULTILINE)
    assert sorted(documented) == sorted(PUBLIC)


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs" / "api").glob("*.md")), ids=lambda p: p.name
)
def test_each_group_of_names_has_guidance(page):
    """A paragraph between each heading and the first name below it."""
    for section in re.split(r"^#+ ", page.read_text(), flags=re.MULTILINE)[1:]:
        heading, _, rest = section.partition("\n")
        prose = rest.partition(":::")[0].split()
        assert len(prose) >= 8, f"nothing is said under {heading!r}"


@pytest.mark.parametrize("path", PUBLIC)
def test_docstring_examples_run(path):
    found = doctest.DocTestFinder().find(
        resolve(path), path.rpartition(".")[2], globs={}
    )
    examples = [test for test in found if test.examples]
    assert examples, f"{path} has no example"
    for example in examples:
        report = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        runner.run(example, out=report.append)
        assert not runner.failures, "".join(report)


BLOCK = re.compile(
    # With a title it is for one backend.
    r'^( *)```python(?: title="On ([^"]*)")?\n(.*?)^ *```$'
    # What it prints.
    r'(?:\n\n```text(?: title="([^"]*)")?\n(.*?)^```$)?',
    re.MULTILINE | re.DOTALL,
)
# The numbers of trained models are those of one backend, nearly.
ONE_BACKEND = "On JAX"
TOLERANCE = 0.01
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


def python_blocks(page):
    """Python code of a page, every block at its own line for tracebacks.

    With each comes the title of its output and the output, or None.
    """
    text = page.read_text()
    for match in BLOCK.finditer(text):
        indent, backend, code, title, output = match.groups()
        if backend and backend != BACKENDS[keras.backend.backend()]:
            continue
        code = re.sub(f"^{indent}", "", code, flags=re.MULTILINE)
        line = text[: match.start()].count("\n") + 1
        yield "\n" * line + code, title, output


def values(lines):
    """The numbers in some lines, percentages as shares."""
    found = re.findall(rf"({NUMBER.pattern})(%?)", "\n".join(lines))
    return [float(n.replace(",", "")) / (100 if p else 1) for n, p in found]


def assert_same_output(printed, title, expected):
    """Equal, or of another backend, or as near as training comes."""
    printed, expected = (
        [line.rstrip() for line in text.strip("\n").split("\n")]
        for text in (printed, expected)
    )
    printed = [line for line in printed if line]
    if title is None:
        assert printed == expected
        return
    assert title.startswith(ONE_BACKEND)
    words = [
        [NUMBER.sub("", line).split() for line in text]
        for text in (printed, expected)
    ]
    assert words[0] == words[1]
    if keras.backend.backend() == "jax":
        np.testing.assert_allclose(
            values(printed), values(expected), atol=TOLERANCE
        )


# What these pages say is tested layer by layer on every backend.
ON_TORCH = (
    "backends.md",
    "choosing.md",
    "curvature-gate.md",
    "decoding.md",
    "masks-and-dtypes.md",
    "tuning.md",
    "when-not.md",
)
WITH_CODE = [
    page
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES)
    if BLOCK.search(page.read_text())
]


def test_pages_with_code_are_found():
    names = {page.name for page in WITH_CODE}
    assert {"README.md", "getting-started.md", "attention.md"} <= names


@pytest.mark.parametrize(
    "page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT))
)
def test_code_on_pages_runs(page):
    if page.name in ON_TORCH and keras.backend.backend() != "torch":
        pytest.skip("runs on torch, where calls are compiled least")
    if page.name == "export.md":
        if keras.backend.backend() == "jax":
            pytest.skip("runs where there are most formats")
        warnings.simplefilter("ignore")  # The converters' own.
        for package in ("ai_edge_litert", "onnxruntime", "openvino"):
            pytest.importorskip(package)
    namespace = {"__name__": "__main__"}
    for code, title, output in python_blocks(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), namespace)
        if output is not None:
            assert_same_output(printed.getvalue(), title, output)


def test_printed_output_is_compared():
    expected = "mean 0.500\n"
    assert_same_output("\nmean 0.500  \n\n", None, expected)
    for other in ("mean 0.501\n", "mode 0.500\n"):
        with pytest.raises(AssertionError):
            assert_same_output(other, None, expected)
    assert_same_output("mean 0.501\n", ONE_BACKEND, expected)
    with pytest.raises(AssertionError):
        assert_same_output("mode 0.500\n", ONE_BACKEND, expected)
    if keras.backend.backend() == "jax":
        with pytest.raises(AssertionError):
            assert_same_output("mean 0.600\n", ONE_BACKEND, expected)


SIGNED = re.compile(rf"[−+]?{NUMBER.pattern}")


def experiment_sections():
    """Text of each section of the experiments page, by its anchor."""
    text = (ROOT / "docs" / "experiments.md").read_text()
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading = section.partition("\n")[0].lower()
        words = re.sub(r"[^\w\s-]", "", heading)
        yield re.sub(r"[-\s]+", "-", words.strip()), section


SECTIONS = dict(experiment_sections())
FINDING = re.compile(r"\[([^\]]*)\]\((?:\.\./)?experiments\.md#([^)\s]+)\)")
CITING = [page for page in PAGES if FINDING.search(page.read_text())]


@pytest.mark.parametrize(
    "page", CITING, ids=lambda page: str(page.relative_to(ROOT))
)
def test_figures_are_those_of_the_experiment_they_link_to(page):
    for said, anchor in FINDING.findall(page.read_text()):
        found = set(SIGNED.findall(SECTIONS[anchor]))
        found |= {number.lstrip("−+") for number in found}
        invented = [n for n in SIGNED.findall(said) if n not in found]
        assert not invented, f"{said!r} is not in #{anchor}"


def test_every_page_is_in_the_navigation():
    configuration = (ROOT / "mkdocs.yml").read_text()
    navigation = configuration.partition("\nnav:\n")[2]
    listed = set(re.findall(r"\S+\.md", navigation))
    assert {str(p.relative_to(ROOT / "docs")) for p in PAGES} == listed


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_relative_links_lead_somewhere(page):
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)\s#]+)[^)]*\)", prose)
    broken = [
        target
        for target in targets
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not broken
