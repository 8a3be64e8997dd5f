"""The site as a reader's browser shows it."""

import json
import re

import pytest

from .conftest import ROOT
from .conftest import SITE

PAGES = sorted(
    path.parent.relative_to(SITE).as_posix().removeprefix(".")
    for path in SITE.rglob("index.html")
)
NOTEBOOKS = sorted((ROOT / "tutorials").glob("[0-9][0-9]_*.ipynb"))
PHONE = {"width": 390, "height": 844}
MATH = "mjx-container svg"


def test_the_site_is_there():
    assert {"", "getting-started", "faq", "api/attention"} <= set(PAGES)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path or "home")
def test_page_loads_alone_and_fits_a_phone(visit, path):
    page = visit.open(path and f"{path}/")
    assert not visit.problems
    broken = page.evaluate(
        "[...document.images].filter(i => i.complete && !i.naturalWidth)"
        ".map(i => i.src)"
    )
    assert not broken
    page.set_viewport_size(PHONE)
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE["width"]
    # Text between dollars or backslashes that nothing has typeset.
    text = page.inner_text(".md-content")
    assert not re.search(r"\\[\[(]|\$\$|\\frac|\\sigma", text)


def test_search_finds_what_people_type(visit):
    page = visit.open("")
    page.keyboard.press("/")
    for query, target in (
        ("GatedAttention", "api/attention/"),
        ("GAU", "guides/gated-attention-unit/"),
        ("FlashAttention", "faq/"),
        ("SE block", "api/channel-gates/"),
        ("null results", "guides/when-not/"),
    ):
        page.keyboard.press("Control+a")
        page.keyboard.type(query)
        link = page.locator(f".md-search-result__item a[href*='{target}']")
        link.first.wait_for(timeout=10_000)
    assert not visit.problems


def assert_formulas_are_seen(page):
    """Also on a phone, where Material's rules once shrank them to a point."""
    for width in (1280, PHONE["width"]):
        page.set_viewport_size({"width": width, "height": 844})
        boxes = [formula.bounding_box() for formula in page.locator(MATH).all()]
        assert boxes
        assert all(min(box["width"], box["height"]) > 4 for box in boxes)


def test_formulas_are_typeset(visit):
    page = visit.open("guides/choosing/")
    assert page.locator(MATH).count() == page.locator(".arithmatex").count()
    assert_formulas_are_seen(page)


def test_titles_have_the_words_people_search_for():
    for path, words in (
        ("api/gated-attention-unit", "GAU, FLASH; not FlashAttention"),
        ("api/channel-gates", "SE block, squeeze-and-excitation"),
        ("guides/coming-from", "timm"),
    ):
        html = (SITE / path / "index.html").read_text()
        assert words in re.search("<title>(.*?)</title>", html).group(1)


def test_pages_without_formulas_load_no_mathjax(visit):
    page = visit.open("getting-started/")
    names = page.evaluate(
        "performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    assert any(name.endswith("math.js") for name in names)
    assert not any("mathjax" in name for name in names)


def test_dark_mode_is_a_click_away(visit):
    page = visit.open("")
    background = (
        "getComputedStyle(document.querySelector('.md-content'))"
        ".getPropertyValue('--md-default-bg-color')"
    )
    light = page.evaluate(background)
    page.click("label[title='Dark mode']")
    assert page.get_attribute("body", "data-md-color-scheme") == "slate"
    assert page.evaluate(background) != light


def test_home_shows_surface_swap_and_table(visit):
    page = visit.open("")
    for selector in (
        ".curvature-explorer[data-compact] >> css=img, canvas, svg",
        "text=gated_attention/gate",
        ".tabbed-labels >> text=PyTorch",
        "td >> text=✓",
    ):
        assert page.locator(selector).first.is_visible(), selector


def outputs(notebook, kind):
    """How many outputs of one MIME type a notebook has."""
    return sum(
        kind in output.get("data", {})
        for cell in json.loads(notebook.read_text())["cells"]
        for output in cell.get("outputs", ())
    )


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_there_with_its_outputs(visit, notebook):
    page = visit.open(f"tutorials/{notebook.stem}/")
    shown = page.locator(".jp-RenderedImage img")
    assert shown.count() == outputs(notebook, "image/png") > 0
    for image in shown.all():
        assert image.evaluate("image => image.naturalWidth") > 0
    source = "".join(
        "".join(cell["source"])
        for cell in json.loads(notebook.read_text())["cells"]
        if cell["cell_type"] == "markdown"
    )
    if "$" in source:
        assert_formulas_are_seen(page)
    assert page.locator(".jp-CodeCell .highlight code span").count() > 0


@pytest.mark.skipif(not NOTEBOOKS, reason="there are no tutorials")
def test_tutorials_are_listed_in_order(visit):
    links = visit.open("tutorials/").locator(".md-content li a")
    targets = [link.get_attribute("href") for link in links.all()]
    assert targets == [f"{notebook.stem}/" for notebook in NOTEBOOKS]
