"""Settings of the interpreter's garbage collector, and of glibc's allocator (without effect elsewhere).

References
----------
mallopt(3) and malloc_trim(3), Linux man-pages.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from typing import Any

HEAPS = 2
_HEAPS_AT_MOST = -8
_TRIM_ABOVE = -1
_MAP_ABOVE = -3
"""Numbers of the parameters M_ARENA_MAX, M_TRIM_THRESHOLD and M_MMAP_THRESHOLD in malloc.h."""

_LARGEST_MAPPED = 32 << 20
"""The largest value that glibc accepts for M_MMAP_THRESHOLD."""


def share_heaps() -> None:
    """Let all threads share two heaps. With eight per core, the default of glibc, memory fragments."""
    _set(_HEAPS_AT_MOST, HEAPS)


def collect_garbage_rarely() -> None:
    """Search for unused cycles of objects after 50,000 new objects instead of 700.

    Loading modules and compiling kernels make many objects, of which few become garbage.
    """
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


def keep_freed_memory(most: int = 2**31 - 1) -> None:
    """Keep the memory of freed arrays for the next ones, which then need no new pages of zeros.

    `most`: number of bytes to keep. Only commands that end after their work keep all.
    """
    _set(_TRIM_ABOVE, most)
    _set(_MAP_ABOVE, _LARGEST_MAPPED)


def free_gradually(*collections: dict[Any, Any]) -> None:
    """Empty dictionaries in a thread, entry by entry: to free many objects at once stops all threads."""

    def empty() -> None:
        for collection in collections:
            while collection:
                collection.popitem()

    threading.Thread(target=empty, name="Freeing memory", daemon=True).start()


def release_freed_memory() -> None:
    """Return freed memory to the system: larger arrays could not use it."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def _set(parameter: int, value: int) -> None:
    allocator = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if allocator is not None:
        allocator(parameter, value)
