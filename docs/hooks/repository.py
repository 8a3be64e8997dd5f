"""Links to the repository, whose address is in pyproject.toml alone.

With `repo_url` the theme would ask GitHub for the number of its stars.
"""

import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def on_config(config):
    """Puts a link into the footer of every page."""
    urls = tomllib.loads(PROJECT.read_text())["project"]["urls"]
    config.extra["social"] = [
        {
            "icon": "fontawesome/brands/github",
            "link": urls["Repository"],
            "name": "Source code",
        }
    ]
    return config
