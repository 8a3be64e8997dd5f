"""Gives a page the title of its first heading, in the browser and in search.

The navigation has shorter names, which would take its place.
"""

import re


def on_page_content(html, page, **kwargs):
    """Reads the heading; the home page keeps the name of the site."""
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", html, re.DOTALL)
    if heading is not None and not page.is_homepage:
        text = re.sub(r"<a class=\"headerlink\".*?</a>", "", heading.group(1))
        text = re.sub(r"<[^>]+>", "", text)
        page.meta.setdefault("title", " ".join(text.split()))
    return html
