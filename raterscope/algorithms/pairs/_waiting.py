"""Waiting for the calls of libraries without falling silent."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from raterscope.algorithms.progress import Watch

__all__ = ["waited"]

_FRESH = 0.05

T = TypeVar("T")


def waited(work: Callable[[], T], watch: Watch, fraction: float, words: str, *, small: bool = False) -> T:
    """Let a library's call, which tells nothing until it is done, run in another thread."""
    if small:
        return work()
    pool = ThreadPoolExecutor(1)
    try:
        waiting = pool.submit(work)
        while True:
            watch(fraction, words)
            try:
                return waiting.result(timeout=_FRESH)
            except TimeoutError:
                continue
    finally:
        pool.shutdown(wait=False)
