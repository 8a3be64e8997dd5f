"""One quick run of the whole command line, shared by the tests."""

import contextlib
import io
from typing import NamedTuple

import keras
import pytest

from keras_gating import cli


class Demo(NamedTuple):
    code: int
    folder: object
    printed: str
    arguments: list


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    if keras.config.backend() != "jax":
        pytest.skip("the demo runs on JAX, its experiments on every backend")
    folder = tmp_path_factory.mktemp("demo") / "made" / "here"
    arguments = ["demo", "--quick", "--seeds", "2", "--out", str(folder)]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = cli.main(arguments)
    return Demo(code, folder, printed.getvalue(), arguments)
