"""The built site on a server of its own, and a browser.

These tests need no Keras: they run in the environment of the documentation, by
`make docs-test`, on what `make docs` has built into `site`.
"""

import functools
import http.server
import shutil
import threading
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
SITE = ROOT / "site"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Links must work below any address.
PREFIX = "/keras-gating/"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the site below the prefix, silently."""

    def translate_path(self, path):
        """Nothing is found outside of the prefix."""
        inside = path.startswith(PREFIX)
        path = path.removeprefix(PREFIX) if inside else "outside-of-the-prefix"
        return super().translate_path("/" + path)

    def log_message(self, *args):
        """Says nothing."""


@pytest.fixture(scope="session")
def address():
    """Where the site is served."""
    if not (SITE / "index.html").exists():
        pytest.fail("There is no built site. Run: make docs")
    handler = functools.partial(Handler, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{PREFIX}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser():
    """A Chromium of the system."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.fail(
            f"None of {', '.join(BROWSERS)} is installed. On Debian: "
            "apt-get install chromium"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


class Visit:
    """A page in the browser, and what went wrong on it."""

    def __init__(self, page, address):
        self.page = page
        self.address = address
        self.problems = []
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", self._on_request)
        page.on("response", self._on_response)

    def open(self, path):
        """Opens a page of the site, and waits until nothing is loading."""
        self.problems.clear()
        self.page.goto(self.address + path, wait_until="networkidle")
        return self.page

    def _on_console(self, message):
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type}: {message.text}")

    def _on_request(self, request):
        own = (self.address, "data:", "blob:")
        if not request.url.startswith(own):
            self.problems.append(f"request to elsewhere: {request.url}")

    def _on_response(self, response):
        if response.status >= 400:
            self.problems.append(f"{response.status}: {response.url}")


@pytest.fixture(scope="session")
def context(browser):
    """Shared by the tests, for its cache."""
    return browser.new_context()


@pytest.fixture
def visit(context, address):
    """A window of a desktop, wide enough for both sidebars."""
    page = context.new_page()
    page.set_viewport_size({"width": 1280, "height": 900})
    yield Visit(page, address)
    # Where the choice of light or dark is kept.
    page.evaluate("localStorage.clear()")
    page.close()
