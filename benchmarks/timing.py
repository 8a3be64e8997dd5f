"""Processor times of calls that take turns."""

import time

from keras_gating import _backend
from keras_gating.diagnostics import timing


def time_in_turns(calls, rounds):
    """Processor seconds of functions that take turns, one round not counted.

    Unlike the time on the clock they hardly depend on what else runs; with
    one thread they are the time on the clock of an idle machine. On an
    accelerator it is the time on the clock: the processor only waits there.

    Args:
        calls: functions without arguments, by name.
        rounds: how many calls of each to time.

    Returns:
        Lists of seconds, by name.
    """
    for call in calls.values():
        call()
    on_cpu = _backend.platform() == "cpu"
    clock = time.process_time if on_cpu else time.perf_counter
    return timing.time_in_turns(calls, rounds, rounds, clock)
