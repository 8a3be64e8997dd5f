"""How much memory a call needs at most."""

import contextlib
import ctypes
import gc
from pathlib import Path

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")
# Of glibc's malloc.h. Blocks beyond the first size are mapped one by one, and
# what is free at the top beyond the second is returned.
_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
_SMALLEST_MAPPED = 2**16
# Where it ends up by itself when large blocks come and go.
_threshold = 2**25


def peak_memory(function):
    """By how much a call raises the memory of the process, at its peak.

    Call the function once before, so that what it compiles and keeps does not
    count. The kernel of Linux keeps the highest resident size of a process,
    and lets it be set back; only what lies on the CPU counts.

    Gaps that earlier calls left in the memory of the allocator are filled
    again, in other places each time, which may add up to as much as the call
    needs. Where `return_memory` comes first in the process there are none.

    Args:
        function: function without arguments.

    Returns:
        Bytes, or `None` where the system does not tell.
    """
    gc.collect()
    with _nothing_kept():
        try:
            _RESET.write_text("5")
            before = _resident("VmRSS")
        except (OSError, KeyError):
            return None
        function()
        return max(_resident("VmHWM") - before, 0)


def return_memory():
    """Lets the allocator of glibc return what is freed, for the whole process.

    The peak of many small tensors is then the sum of them. Calls take longer.
    """
    _map_from(_SMALLEST_MAPPED)


def keep_memory():
    """Lets the allocator of glibc keep what is freed, for the whole process."""
    _map_from(2**30)
    libc = _glibc()
    if libc is not None:
        libc.mallopt(_TRIM_THRESHOLD, 2**31 - 1)


def _map_from(size):
    """Sets the size from which blocks are mapped, also for calls to come."""
    global _threshold
    _threshold = size
    libc = _glibc()
    if libc is not None:
        libc.mallopt(_MMAP_THRESHOLD, size)


def _resident(key):
    """Bytes of an entry of the process's status, which is in kB."""
    lines = _STATUS.read_text().splitlines()
    sizes = dict(line.split(":", 1) for line in lines)
    return 1024 * int(sizes[key].split()[0])


@contextlib.contextmanager
def _nothing_kept():
    """Lets the allocator of glibc return what is freed, and at once.

    What it keeps for later would hide that a call uses it.
    """
    libc = _glibc()
    if libc is None:
        yield
        return
    libc.malloc_trim(0)
    libc.mallopt(_MMAP_THRESHOLD, _SMALLEST_MAPPED)
    try:
        yield
    finally:
        libc.mallopt(_MMAP_THRESHOLD, _threshold)


def _glibc():
    """The C library if it is that of GNU, else `None`."""
    try:
        libc = ctypes.CDLL(None)
        return libc if libc.mallopt and libc.malloc_trim else None
    except (AttributeError, OSError, TypeError):
        return None
