"""Event files for TensorBoard, written without TensorFlow."""

import itertools
import os
import socket
import time
from pathlib import Path

from keras_gating._extras import require

_number = itertools.count()


class EventFile:
    """A file that TensorBoard reads, of scalars and histograms.

    It is made at the first `write`.

    Args:
        folder: local folder; it is made if it does not exist.
    """

    def __init__(self, folder):
        is_path = isinstance(folder, (str, os.PathLike))
        if not is_path or "://" in os.fspath(folder):
            raise ValueError(
                "`log_dir` must be the path of a local folder. Received: "
                f"log_dir={folder!r}"
            )
        self._writer_of = require(
            "tensorboard.summary.writer.record_writer", "tensorboard"
        ).RecordWriter
        self._events = require(
            "tensorboard.compat.proto.event_pb2", "tensorboard"
        )
        self._summaries = require(
            "tensorboard.compat.proto.summary_pb2", "tensorboard"
        )
        self._folder = Path(folder)
        self._file = None
        self._records = None

    def write(self, step, scalars, statistics):
        """Adds what was found at one step, and sees to it that it is on disk.

        Args:
            step: integer, the place on the horizontal axis.
            scalars: numbers by tag.
            statistics: `GateStatistics`, for a histogram of each gate.
        """
        if self._file is None:
            self._open()
        make = self._summaries.Summary.Value
        values = [
            make(tag=tag, simple_value=number)
            for tag, number in scalars.items()
        ]
        values += [
            make(
                tag=f"gate/{path}",
                histo=self._histogram(summary, *statistics.histogram(path)),
            )
            for path, summary in statistics.items()
        ]
        self._add(step=step, summary=self._summaries.Summary(value=values))
        self._file.flush()

    def _histogram(self, summary, counts, edges):
        count, mean = summary["count"], summary["mean"]
        return self._summaries.HistogramProto(
            min=summary["lowest"],
            max=summary["highest"],
            num=count,
            sum=count * mean,
            sum_squares=count * (mean**2 + summary["spread"] ** 2),
            bucket_limit=edges[1:],
            bucket=counts.sum(axis=0),
        )

    def close(self):
        """Closes the file; another `write` begins a new one."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self):
        self._folder.mkdir(parents=True, exist_ok=True)
        # TensorBoard takes files with `tfevents` in their names, in the order
        # of the names.
        name = (
            f"events.out.tfevents.{int(time.time()):010d}."
            f"{socket.gethostname()}.{os.getpid()}.{next(_number)}.gates"
        )
        self._file = open(self._folder / name, "wb")
        self._records = self._writer_of(self._file)
        self._add(file_version="brain.Event:2")

    def _add(self, **fields):
        event = self._events.Event(wall_time=time.time(), **fields)
        self._records.write(event.SerializeToString())
