"""Times of calls that take turns."""

import random
import time

# More rounds than necessary only until they took so long.
_SECONDS = 4.0


def time_in_turns(calls, min_rounds, max_rounds, clock=None):
    """Seconds of functions that take turns.

    What disturbs the machine then falls on all of them, and the ratio within
    a round suffers less than the times. Each round has an order of its own, the
    same in every run: what a call leaves in caches and in the allocator slows
    down the one after it, which must not always be the same.

    Args:
        calls: functions without arguments, by name.
        min_rounds: number of rounds, if one takes long.
        max_rounds: the same, if it does not.
        clock: function that tells the seconds. Defaults to
            `time.perf_counter`.

    Returns:
        Lists of seconds, one for each round, by name.
    """
    clock = clock or time.perf_counter
    names = list(calls)
    seconds = {name: [] for name in names}
    order = random.Random(0)
    start = time.perf_counter()
    for i in range(max_rounds):
        if i >= min_rounds and time.perf_counter() - start > _SECONDS:
            break
        for name in order.sample(names, len(names)):
            before = clock()
            calls[name]()
            seconds[name].append(clock() - before)
    return seconds
