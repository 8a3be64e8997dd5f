"""Times of calls that take turns."""

import itertools
import time

# More rounds than necessary only until they took so long.
_SECONDS = 4.0


def time_in_turns(calls, min_rounds, max_rounds, clock=None):
    """Seconds of functions that take turns.

    What disturbs the machine then falls on all of them, and the ratio within
    a round suffers less than the times. The order changes from round to round:
    what a call leaves in caches and in the allocator slows down the one after
    it, which must not always be the same.

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
    seconds = {name: [] for name in calls}
    orders = itertools.cycle(_balanced_orders(list(calls)))
    start = time.perf_counter()
    for i in range(max_rounds):
        if i >= min_rounds and time.perf_counter() - start > _SECONDS:
            break
        for name in next(orders):
            before = clock()
            calls[name]()
            seconds[name].append(clock() - before)
    return seconds


def _balanced_orders(names):
    """Orders in which all come after each of the others, and first, as often.

    Williams 1949, Australian Journal of Scientific Research A 2, 149.
    """
    count = len(names)
    there_and_back = [
        k // 2 if k % 2 == 0 else count - (k + 1) // 2 for k in range(count)
    ]
    orders = [
        [names[(k + i) % count] for k in there_and_back] for i in range(count)
    ]
    # An odd count needs the way back as well.
    return orders + [order[::-1] for order in orders]
