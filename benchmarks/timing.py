"""Times of calls that take turns."""

import time


def time_in_turns(calls, rounds):
    """Processor seconds of functions that take turns, one round not counted.

    Unlike the time on the clock they hardly depend on what else runs; with
    one thread they are the time on the clock of an idle machine. Who is first
    changes from round to round.

    Args:
        calls: functions without arguments, by name.
        rounds: how many calls of each to time.

    Returns:
        Lists of seconds, by name.
    """
    names = list(calls)
    seconds = {name: [] for name in names}
    for i in range(-1, rounds):
        first = i % len(names)
        for name in names[first:] + names[:first]:
            start = time.process_time()
            calls[name]()
            if i >= 0:
                seconds[name].append(time.process_time() - start)
    return seconds
