"""Memory that the tensors of torch take at the peak of a call."""

import json
import tempfile
from pathlib import Path

import torch


def peak_of_tensors(function):
    """By how much a call raises what torch has allocated, at its peak.

    Unlike the memory of the process it has nothing of what the library for
    matrix products keeps for itself, nor of free memory that the allocator
    has not returned, and it is the same in every run.

    Args:
        function: function without arguments.

    Returns:
        Bytes.
    """
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        function()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    changes = sorted(
        (event["ts"], event["args"]["Total Allocated"], event["args"]["Bytes"])
        for event in events
        if event["name"] == "[memory]"
    )
    _, total, change = changes[0]
    return max(total for _, total, _ in changes) - (total - change)
