"""Real text for language models: source files of the standard library.

They are on every machine that runs Python and need no download. Their text
differs a little from one version of Python to the next, so losses compare
within one version only; `Text.digest` tells whether two runs read the same.
"""

import hashlib
import sysconfig
from pathlib import Path

import numpy as np

# Modules that lie in one file in all versions of Python from 3.11.
TRAINING = (
    "argparse ast base64 bdb calendar cmd codecs collections/__init__ "
    "configparser contextlib copy csv dataclasses dis doctest enum fileinput "
    "fractions ftplib functools gettext glob gzip heapq inspect ipaddress "
    "json/decoder json/encoder locale logging/__init__ mailbox mimetypes pdb "
    "pickle pickletools platform plistlib poplib pprint profile pstats pydoc "
    "queue random selectors shelve shlex shutil socket socketserver ssl "
    "string subprocess tarfile tempfile threading timeit tokenize trace "
    "traceback typing unittest/case unittest/mock uuid warnings webbrowser"
).split()
VALIDATION = "difflib optparse smtplib statistics textwrap weakref".split()

# Line feed, the printable characters of ASCII, and one for all others.
ALPHABET = "\n" + "".join(map(chr, range(32, 127)))
VOCABULARY = len(ALPHABET) + 1


class Text:
    """Training and validation text as integers below `VOCABULARY`.

    Args:
        training, validation: modules, as paths without suffix below the
            folder of the standard library.
    """

    def __init__(self, training=TRAINING, validation=VALIDATION):
        self.training = encode(_read(training))
        self.validation = encode(_read(validation))
        both = self.training.tobytes() + self.validation.tobytes()
        self.digest = hashlib.sha256(both).hexdigest()[:16]


def encode(text):
    """Each character's place in `ALPHABET`, or the last number."""
    table = np.full(256, VOCABULARY - 1, "uint8")
    table[[ord(c) for c in ALPHABET]] = np.arange(len(ALPHABET))
    # One byte for a character; "?" is in the alphabet, byte 255 is not.
    codes = np.array([min(ord(c), 255) for c in text], "uint8")
    return table[codes]


def windows(codes, starts, length):
    """Inputs and next characters, `(len(starts), length)` each."""
    places = np.asarray(starts)[:, None] + np.arange(length + 1)
    cut = codes[places].astype("int32")
    return cut[:, :-1], cut[:, 1:]


def random_windows(codes, rng, count, length):
    """`windows` at random places."""
    starts = rng.integers(0, len(codes) - length, size=count)
    return windows(codes, starts, length)


def even_windows(codes, count, length):
    """`windows` at even distances from the first to the last."""
    starts = np.linspace(0, len(codes) - length - 1, count).astype(int)
    return windows(codes, starts, length)


def _read(modules):
    folder = Path(sysconfig.get_path("stdlib"))
    texts = []
    for module in modules:
        path = folder / f"{module}.py"
        if not path.is_file():
            raise FileNotFoundError(
                "This experiment reads the source files of Python's standard "
                f"library, and {path} is not there."
            )
        texts.append(path.read_text(encoding="utf-8"))
    return "\n".join(texts)
