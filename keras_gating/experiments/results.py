"""What an experiment returns, and how it is written."""

import dataclasses
import importlib.metadata
import json
import os
import platform
import time
from pathlib import Path

import keras

import keras_gating

# The first distribution found gives the backend's version.
_DISTRIBUTIONS = {
    "jax": ("jax",),
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-intel"),
    "torch": ("torch",),
}


@dataclasses.dataclass
class Results:
    """The outcome of one run of an experiment.

    Everything but `arrays` is written to the JSON file, so it consists of
    dictionaries, lists, strings, finite numbers and `None`.

    Args:
        experiment: name of the experiment, its sub-command.
        seeds: the seeds that were used, in order.
        settings: what the run was told to do.
        measurements: what came out.
        elapsed_seconds: wall time of the run.
        environment: versions and machine, see `environment()`.
        command: the command line, or `None` for a call from Python.
        arrays: what the pictures need beyond the measurements; not written.
    """

    experiment: str
    seeds: list
    settings: dict
    measurements: dict
    elapsed_seconds: float
    environment: dict = dataclasses.field(default_factory=lambda: environment())
    command: str | None = None
    arrays: dict = dataclasses.field(
        default_factory=dict, repr=False, compare=False
    )

    def to_dict(self):
        """Everything that is written, as plain containers."""
        content = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name != "arrays"
        }
        return json.loads(_dumps(content))

    def write(self, folder):
        """Writes `<experiment>.json` and returns its path."""
        path = Path(folder) / f"{self.experiment}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_dumps(self.to_dict()) + "\n", encoding="utf-8")
        return path

    @classmethod
    def read(cls, path):
        """Reads what `write` wrote; `arrays` is empty then."""
        return cls(**json.loads(Path(path).read_text(encoding="utf-8")))


def environment():
    """Versions and machine that a result depends on."""
    backend = keras.config.backend()
    return {
        "keras_gating": keras_gating.__version__,
        "keras": keras.__version__,
        "backend": backend,
        "backend_version": _backend_version(backend),
        "numpy": importlib.metadata.version("numpy"),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
    }


def stopwatch():
    """Returns a function that gives the seconds since this call."""
    start = time.perf_counter()
    return lambda: time.perf_counter() - start


def _backend_version(backend):
    for distribution in _DISTRIBUTIONS.get(backend, (backend,)):
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def _dumps(content):
    # NaN and infinity are no JSON; raising beats a file others cannot read.
    return json.dumps(content, indent=2, allow_nan=False)
