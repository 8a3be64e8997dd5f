"""Times of calls that take turns."""

import time

# More rounds than necessary only until they took so long.
_SECONDS = 4.0


def time_in_turns(calls, min_rounds, max_rounds, clock=None):
    """Seconds of functions that take turns.

    What disturbs the machine then falls on all of them, and the ratio within
    a round suffers less than the times. Who is first changes from round to
    round.

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
    start = time.perf_counter()
    for i in range(max_rounds):
        if i >= min_rounds and time.perf_counter() - start > _SECONDS:
            break
        first = i % len(names)
        for name in names[first:] + names[:first]:
            before = clock()
            calls[name]()
            seconds[name].append(clock() - before)
    return seconds
