"""What a step frees is kept for the next one, where the C library is glibc; elsewhere nothing changes.

Afterwards glibc's own settings hold, not those that somebody had made in this process before.

Every step asks for the same large tensors. glibc gives those above 32 MB back to the system one by one, which fills
each with zeros when it comes again: about a tenth of a training step on two cores.
"""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# numbers of malloc.h
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4
_KEPT = {_MMAP_MAX: 0, _TRIM_THRESHOLD: -1}
# where glibc ends by itself once large tensors have been freed
_GIVEN_BACK = {_MMAP_MAX: 65536, _TRIM_THRESHOLD: 64 << 20, _MMAP_THRESHOLD: 32 << 20}


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Inside this block; after it, what is free goes back to the system."""
    library = _glibc()
    if library is None:
        yield
        return
    global _blocks
    _blocks += 1
    _set(library, _KEPT)
    try:
        yield
    finally:
        _blocks -= 1
        if not _blocks:
            _set(library, _GIVEN_BACK)
            library.malloc_trim(0)


_blocks = 0  # under way, one within the other


def _glibc() -> Any:
    """The library, or None where the process uses another."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") else None


def _set(library: Any, options: dict[int, int]) -> None:
    for number, value in options.items():
        library.mallopt(number, value)
