"""Lets the API pages read docstrings in the style of Keras.

An extension of griffe, which mkdocstrings parses docstrings with. It knows
"Args" but not "Call arguments", and takes an example for prose if a blank line
follows its heading.
"""

import re

import griffe

_EXAMPLE = re.compile(r"^>>> .*\n(?:.+\n?)*", re.MULTILINE)


class KerasDocstrings(griffe.Extension):
    """Rewrites every docstring before it is parsed."""

    def on_object(self, *, obj, **kwargs):
        """Called by griffe for each object it has loaded."""
        if obj.docstring is None or "```" in obj.docstring.value:
            return
        text = obj.docstring.value.replace(
            "\nCall arguments:\n", "\nArgs: Call arguments\n"
        )
        obj.docstring.value = _EXAMPLE.sub(
            lambda match: f"```pycon\n{match.group().rstrip()}\n```\n", text
        )
