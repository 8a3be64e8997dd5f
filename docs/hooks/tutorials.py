"""Adds the notebooks of tutorials/ to the site.

mkdocs-jupyter turns a notebook into HTML that carries JupyterLab's styles and
scripts, half a megabyte on each page. Here it gets those of the site instead,
so that dark mode, the buttons to copy and narrow screens work as elsewhere, and
nothing is fetched from another server.
"""

import json
import re
from pathlib import Path

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

FOLDER = Path(__file__).parents[2] / "tutorials"
MARKER = "<!-- list of tutorials -->"

# Of the converted page: the script for formulas, the cells.
_SCRIPT = re.compile(r'<script src="[^"]+">\s*</script>')
_CELLS = re.compile(
    r'<div class="jupyter-wrapper">.*<!-- jupyter-wrapper -->', re.DOTALL
)
# An input cell has its code twice, for a copy button of its own.
_COPY = re.compile(
    r'<div class="zeroclipboard-container">.*?</clipboard-copy>\s*</div>'
    r'|<div class="clipboard-copy-txt"[^>]*>.*?</div>',
    re.DOTALL,
)
_CODE = re.compile(
    r'<div class="highlight(?:-ipynb)?[^"]*"><pre>(.*?)</pre></div>', re.DOTALL
)
# The badge is a picture on another server.
_BADGE = re.compile(r'<img [^>]*src="[^"]*colab-badge\.svg"[^>]*>')
_NO_DESCRIPTION = 'alt="No description has been provided for this image"'


def notebooks():
    """Paths of the notebooks, in their order."""
    return sorted(FOLDER.glob("[0-9][0-9]_*.ipynb"))


def on_config(config):
    """Puts the notebooks into the navigation, below their overview."""
    (section,) = (item for item in config.nav if "Tutorials" in item)
    section["Tutorials"].extend(f"tutorials/{p.name}" for p in notebooks())
    return config


# Before mkdocs-jupyter looks for its files.
@event_priority(100)
def on_files(files, config):
    """Adds the notebooks, which lie outside of the documentation's folder."""
    for path in notebooks():
        files.append(
            File(
                f"{FOLDER.name}/{path.name}",
                src_dir=str(FOLDER.parent),
                dest_dir=config.site_dir,
                use_directory_urls=config.use_directory_urls,
            )
        )
    return files


def on_page_markdown(markdown, page, **kwargs):
    """Lists the tutorials on their overview."""
    if MARKER not in markdown:
        return markdown
    lines = []
    for path in notebooks():
        title, question = title_and_question(path)
        lines.append(f"1. [{title}]({path.name})  \n    {question}")
    return markdown.replace(MARKER, "\n".join(lines))


def title_and_question(path):
    """The first heading of a notebook, and the question it asks.

    That is what is printed bold in the paragraph after the heading, or all of
    the paragraph.
    """
    cells = json.loads(path.read_text())["cells"]
    text = "\n\n".join(
        "".join(cell["source"])
        for cell in cells
        if cell["cell_type"] == "markdown"
    )
    match = re.search(r"^# ([^\[\n]+)\n+((?:.+\n?)+)", text, re.MULTILINE)
    if match is None or re.search(r"^#+ \[", text, re.MULTILINE):
        raise ValueError(
            f"{path.name} must begin with its badge, a heading '# Title' "
            "without links, and a paragraph that asks its question. Received: "
            f"{text[:60]!r}…"
        )
    title, paragraph = match.groups()
    paragraph = " ".join(paragraph.split())
    question = re.search(r"\*\*(.+?\?)\*\*", paragraph)
    return title, question.group(1) if question else paragraph


def on_page_content(html, page, **kwargs):
    """Leaves the cells of a converted notebook, in the style of the site."""
    if not page.file.src_uri.endswith(".ipynb"):
        return html
    scripts = _SCRIPT.findall(html)
    cells = _CELLS.search(html).group()
    cells = _COPY.sub("", cells)
    cells = _CODE.sub(
        r'<div class="highlight"><pre><code>\1</code></pre></div>', cells
    )
    cells = _BADGE.sub("Open in Colab", cells)
    cells = cells.replace('class="anchor-link"', 'class="headerlink"')
    cells = cells.replace(_NO_DESCRIPTION, 'alt="Output of the code above"')
    return "\n".join([*scripts, cells])
