"""The documentation names everything public, and its code runs."""

import doctest
import os
import re
from pathlib import Path

import pytest

import keras_gating

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


def python_blocks(page):
    """Python code of a page, every block at its own line for tracebacks."""
    text = page.read_text()
    pattern = r"^( *)```python\n(.*?)^ *```$"
    for match in re.finditer(pattern, text, re.MULTILINE | re.DOTALL):
        indent, code = match.groups()
        code = re.sub(f"^{indent}", "", code, flags=re.MULTILINE)
        yield "\n" * (text[: match.start()].count("\n") + 1) + code


WITH_CODE = [
    page
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES)
    if any(python_blocks(page))
]


def test_pages_with_code_are_found():
    names = {page.name for page in WITH_CODE}
    assert {"README.md", "getting-started.md", "attention.md"} <= names


@pytest.mark.parametrize(
    "page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT))
)
def test_code_on_pages_runs(page):
    namespace = {"__name__": "__main__"}
    for code in python_blocks(page):
        exec(compile(code, str(page), "exec"), namespace)


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
