"""The curvature explorer in a browser, and its numbers against `geometry`."""

import json
import re

import numpy as np
import pytest

from .conftest import ROOT

# Made by `tests/geometry/explorer.py` and held to `geometry` there.
REFERENCE = json.loads((ROOT / "tests" / "data" / "explorer.json").read_text())
PHONE = {"width": 390, "height": 844}
MEASURE = "const measure = await import('../assets/explorer/measure.js');"


@pytest.fixture
def explorer(browser, address):
    """Opens the page, which must end without a problem."""
    contexts, problems = [], []

    def on_request(request):
        if not request.url.startswith((address, "data:")):
            problems.append(request.url)

    def open_page(fragment="", **options):
        options.setdefault("viewport", {"width": 1280, "height": 900})
        options.setdefault("reduced_motion", "reduce")
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", on_request)
        page.goto(address + "explorer/" + fragment)
        page.wait_for_selector(".curvature-explorer[data-ready]")
        page.wait_for_selector("[data-number=absolute]:not(:empty)")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not problems


def shown(page, name):
    """A number that the page shows; 0 also for what it takes for rounding."""
    text = page.inner_text(f"[data-number={name}]").replace("−", "-")
    assert "·" not in text, "a power of ten"
    return float(re.sub(r"[^-\d.].*", "", text) or "nan")


def picture(page):
    """The surface as it is drawn."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => done()))")
    return page.evaluate("document.querySelector('.cx-canvas').toDataURL()")


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def test_numbers_agree_with_geometry(explorer):
    measured = explorer().evaluate(
        "async ({cases, points, resolution}) => {"
        + MEASURE
        + """
            return cases.map(({settings}) => ({
                curvature: measure.curvatures(settings, points),
                totals: measure.totals(settings, resolution),
            }));
        }""",
        REFERENCE,
    )
    assert len(measured) == len(REFERENCE["cases"]) >= 20
    for actual, expected in zip(measured, REFERENCE["cases"]):
        assert_close(
            actual["curvature"], expected["curvature"], expected["scale"]
        )
        totals = [actual["totals"][name] for name in ("absolute", "signed")]
        assert_close(totals, expected["totals"], [expected["totals"][0]] * 2)
        assert actual["totals"]["dropped"] == expected["dropped"]


def assert_close(actual, expected, scale):
    """To 1e-9 of a scale of their own, and NaN (or null) in the same places."""
    actual, expected, scale = (
        np.array(values, "float64") for values in (actual, expected, scale)
    )
    unknown = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(actual), unknown)
    error = np.abs(actual - expected)[~unknown]
    assert np.all(error <= 1e-9 * scale[~unknown] + 1e-15)


def test_counts_on_the_page(explorer):
    """In how many of 50 draws a gate raises the curvature."""
    page = explorer()
    three, eight = page.evaluate(
        "async () => {"
        + MEASURE
        + """
            const map = await import('../assets/explorer/map.js');
            const kinds = ['elementwise', 'headwise', 'constant'];
            return [3, 8].map((tokens) => {
                const counts = [0, 0, 0];
                for (let seed = 1; seed <= 50; seed++) {
                    const settings = {
                        ...map.DEFAULTS, tokens, features: 8, seed,
                    };
                    const total = (change) =>
                        measure.totals({...settings, ...change}).absolute;
                    const ungated = total({function: 'none'});
                    const least = Math.max(ungated, measure.ROUNDING);
                    kinds.forEach((granularity, i) => {
                        counts[i] += total({granularity}) > least;
                    });
                }
                return counts;
            });
        }"""
    )
    rows = [
        re.findall(r"(\d+) of 50|(never)", row)
        for row in page.locator("tr", has_text="of 50").all_inner_texts()
    ]
    assert [["".join(cell) for cell in row] for row in rows] == [
        [str(count or "never") for count in three],
        [str(count) for count in eight],
    ]


def test_settings_change_the_numbers(explorer):
    page = explorer()
    verdict = page.locator(".cx-verdict")
    assert shown(page, "absolute") > 0.1
    press(page, "3 tokens, no gate")
    page.wait_for_function(
        "document.querySelector('[data-number=absolute]').textContent === '0'"
    )
    assert shown(page, "centre") == shown(page, "largest") == 0.0
    assert "Flat, exactly" in verdict.inner_text()
    press(page, "8 tokens, no gate")
    page.wait_for_function(
        "document.querySelector('[data-number=absolute]').textContent !== '0'"
    )
    assert "without any gate" in verdict.inner_text()
    press(page, "Constant gate")
    page.wait_for_function(
        "document.querySelector('[data-number=absolute]').textContent === '0'"
    )
    page.select_option("select", "κ")
    page.get_by_label("Curvature κ").fill("2")
    page.wait_for_function(
        "document.querySelector('[data-number=centre]').textContent === '2.00'"
    )
    assert shown(page, "largest") == 2.0
    assert shown(page, "positive") == 100.0
    press(page, "Hyperbolic")
    page.wait_for_function(
        "document.querySelector('[data-number=centre]').textContent === '−1.00'"
    )
    assert shown(page, "positive") == 0.0
    assert not page.get_by_label("Tokens").is_visible()


def test_degenerate_points_are_counted(explorer):
    page = explorer()
    assert shown(page, "degenerate") == 0
    page.get_by_label("Tokens").fill("2")
    page.select_option("select", "none")
    page.wait_for_function(
        "document.querySelector('[data-number=absolute]').textContent === '–'"
    )
    assert shown(page, "degenerate") == 43 * 43
    assert "Degenerate" in page.inner_text(".cx-verdict")


def test_keyboard(explorer):
    page = explorer()
    page.locator(".cx-canvas").focus()
    start = picture(page)
    page.keyboard.press("ArrowRight")
    turned = picture(page)
    page.keyboard.press("ArrowUp")
    assert len({start, turned, picture(page)}) == 3
    page.keyboard.press("Home")
    assert picture(page) == start
    page.get_by_label("Gate strength").focus()
    page.keyboard.press("Home")
    page.wait_for_function(
        "document.querySelector('[data-number=absolute]').textContent === '0'"
    )
    assert picture(page) != start
    # The numbers, in words, a moment later.
    page.wait_for_function(
        "document.querySelector('[aria-live]').textContent.includes('total 0')"
    )
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    assert page.get_by_label("Gate strength").input_value() == "0.99"


def test_drag_and_dark_mode(explorer):
    page = explorer()
    start = picture(page)
    box = page.locator(".cx-canvas").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 260, box["y"] + 180)
    page.mouse.up()
    dragged = picture(page)
    assert dragged != start
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    assert picture(page) == dragged
    page.evaluate("document.body.dataset.mdColorScheme = 'slate'")
    assert picture(page) != dragged


def test_new_weights(explorer):
    page = explorer()
    before = picture(page)
    press(page, "New weights")
    assert picture(page) != before
    assert "seed 13" in page.inner_text(".cx-note")


def test_links_keep_settings(explorer):
    page = explorer()
    address = page.url
    press(page, "8 tokens, no gate")
    press(page, "New weights")
    page.get_by_label("8, projected").check()
    page.wait_for_function("location.hash.includes('features=8')")
    fragment = page.evaluate("location.hash")
    assert set(fragment[1:].split("&")) == {
        "function=none",
        "tokens=8",
        "seed=13",
        "features=8",
    }
    linked = explorer(fragment)
    names = ("absolute", "signed", "largest")
    assert [shown(linked, x) for x in names] == [shown(page, x) for x in names]
    assert "seed 13" in linked.inner_text(".cx-note")
    press(linked, "Elementwise gate")
    linked.evaluate("location.hash = '#tokens=2&function=none'")
    linked.wait_for_function(
        "document.querySelector('.cx-verdict').textContent"
        ".startsWith('Degenerate')"
    )
    # With all as at the start the address is that of the page again.
    start = explorer("#seed=12")
    press(start, "3 tokens, no gate")
    start.wait_for_function("location.hash === '#function=none'")
    press(start, "Elementwise gate")
    start.wait_for_function("location.hash === ''")
    assert start.url == address


@pytest.mark.parametrize(
    "fragment",
    [
        "#what-you-see",
        "#tokens=1&tokens=17&tokens=2.5&tokens=&tokens=x",
        "#function=cube&granularity=&features=4&seed=0&seed=1e99",
        "#kappa=NaN&strength=Infinity&strength=-1&toString=1&__proto__=2",
    ],
)
def test_links_without_settings_show_the_defaults(explorer, fragment):
    page = explorer(fragment)
    page.wait_for_selector("[data-number=absolute]:not(:empty)")
    reference = explorer()
    assert shown(page, "absolute") == shown(reference, "absolute")
    assert page.get_by_label("Tokens").input_value() == "3"
    assert page.get_by_label("Gate strength").input_value() == "1"


def test_examples_bend_in_sight_unless_motion_is_unwanted(explorer):
    strength = "document.querySelector('.cx-field input').value"
    begin = f"""async () => {{
        document.querySelector('.cx-examples [aria-pressed=true]').click();
        for (let frame = 0; frame < 3; frame++)
            await new Promise(requestAnimationFrame);
        return {strength};
    }}"""
    assert explorer().evaluate(begin) == "1"
    page = explorer(reduced_motion="no-preference")
    page.wait_for_function(f"{strength} === '1'")  # it opens with one
    assert float(page.evaluate(begin)) < 1.0
    page.wait_for_function(f"{strength} === '1'")


def test_phone(explorer):
    page = explorer(viewport=PHONE, has_touch=True, is_mobile=True)
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE["width"]
    canvas = page.locator(".cx-canvas").bounding_box()
    assert canvas["width"] > 300
    assert canvas["y"] + canvas["height"] < PHONE["height"]
    page.get_by_label("Gate strength").tap()
    assert 0.3 < float(page.get_by_label("Gate strength").input_value()) < 0.7


def test_compact(explorer):
    def fill(page):
        page.evaluate(
            """async () => {
                const {fillCompact} =
                    await import('../assets/explorer/compact.js');
                const place = document.querySelector('.curvature-explorer');
                place.setAttribute('data-compact', '');
                place.replaceChildren();
                fillCompact(place);
            }"""
        )
        return page

    page = fill(explorer())
    verdict = page.locator(".cx-verdict")
    assert re.search(r"total curvature \d\.\d+", verdict.inner_text())
    still = picture(page)
    page.wait_for_timeout(200)
    assert picture(page) == still
    page.get_by_role("slider", name="Gate").fill("0")
    assert "flat" in verdict.inner_text()
    page.get_by_role("link", name="Open the curvature explorer").click()
    page.wait_for_selector(".cx-numbers")

    page = fill(explorer(reduced_motion="no-preference"))
    page.wait_for_function(
        "document.querySelector('.cx-field input').value == 1"
    )
    moving = picture(page)
    page.wait_for_timeout(200)
    assert picture(page) != moving
    page.get_by_role("button", name="Stop turning").click()
    still = picture(page)
    page.wait_for_timeout(200)
    assert picture(page) == still
