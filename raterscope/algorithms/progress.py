"""Progress, cancellation and refusal of algorithms."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, Protocol, Self, TypeVar

T = TypeVar("T")

Check = Callable[[], object]
"""Callback of a step, called at least every 100 ms; it may raise `Cancelled`."""


class Cancelled(Exception):  # noqa: N818 - it is no error
    """Raised by a watch when the work is no longer needed. Algorithms do not catch it."""


class RefusedError(ValueError):
    """Data or settings that cannot be used. Its message is one sentence, shown to the user as it is."""


class Watch(Protocol):
    """Callback that an algorithm calls at least every 100 ms of work."""

    def __call__(
        self,
        fraction: float,
        text: str,
        *,
        objective: float | None = None,
        partial: Callable[[], object] | None = None,
    ) -> None:
        """Report progress.

        Parameters
        ----------
        fraction : float
            Share of the work done, 0 to 1, never decreasing.
        text : str
            The current step, for the user: "removing the weakest of 34 components".
        objective : float, optional
            Value of the objective.
        partial : callable, optional
            Makes a partial result. Called only if the result is drawn.

        Raises
        ------
        Cancelled
            If the work is no longer needed.
        """


def silent(fraction: float, text: str, **more: Any) -> None:
    """Ignore progress (the default watch)."""


def no_check() -> None:
    """Do nothing (the default check)."""


def part(watch: Watch, start: float, stop: float, prefix: str = "") -> Watch:
    """Return a watch for a step, whose 0 to 1 is reported as `start` to `stop` of the whole work.

    `prefix` is put before the text of the step.

    Examples
    --------
    >>> def watch(fraction, words, **_):
    ...     print(f"{100 * fraction:.0f} % {words}")
    >>> part(watch, 0.5, 1.0, "image 2: ")(0.5, "clustering")
    75 % image 2: clustering
    """
    if watch is silent:  # it would be called through every level of the work
        return watch

    def report(fraction: float, text: str, **more: Any) -> None:
        watch(start + (stop - start) * fraction, prefix + text, **more)

    return report


def steps_of(watch: Watch, items: Collection[T]) -> Iterator[tuple[T, Watch]]:
    """Yield each item with a watch for it; all items have equal shares of the work.

    Examples
    --------
    >>> def watch(fraction, words):
    ...     print(f"{100 * fraction:.0f} % {words}")
    >>> for name, step in steps_of(lambda *report, **_: watch(*report), ["a", "b"]):
    ...     step(1.0, name)
    50 % a
    100 % b
    """
    for done, item in enumerate(items):
        yield item, part(watch, done / len(items), (done + 1) / len(items))


def divided(watch: Watch, start: float, sizes: Sequence[float]) -> list[Watch]:
    """Return watches for consecutive steps, from `start` to the end, in proportion to their sizes.

    Examples
    --------
    >>> def watch(fraction, words, **_):
    ...     print(f"{100 * fraction:.0f} % {words}")
    >>> steps = divided(watch, 0.5, [0, 3, 1])
    >>> steps[1](1.0, "images")
    88 % images
    """
    ends = [start + (1 - start) * end / max(sum(sizes), 1e-9) for end in accumulate(sizes, initial=0.0)]
    return [part(watch, low, high) for low, high in pairwise(ends)]


def repeating(watch: Watch) -> tuple[Watch, Check]:
    """Return a watch, and a check that repeats the watch's last report.

    Code that makes partial results calls the check for cancellation, without changing the progress.
    """
    last = (0.0, "")

    def report(fraction: float, text: str, **more: Any) -> None:
        nonlocal last
        last = (fraction, text)
        watch(fraction, text, **more)

    def check() -> None:
        watch(*last)

    return report, check


def wrapping(watch: Watch, wrap: Callable[[object], object]) -> Watch:
    """Return a watch that converts partial results."""

    def report(
        fraction: float, text: str, *, partial: Callable[[], object] | None = None, **more: Any
    ) -> None:
        watch(fraction, text, partial=None if partial is None else lambda: wrap(partial()), **more)

    return report


def without_partials(watch: Watch) -> Watch:
    """Return a watch that drops partial results, for steps whose partial results are not useful."""

    def report(fraction: float, text: str, *, objective: float | None = None, **_more: Any) -> None:
        watch(fraction, text, objective=objective)

    return report


def watch_until(stopped: threading.Event) -> Watch:
    """Return a watch for other threads, which raises `Cancelled` after the event."""

    def watch(fraction: float, text: str, **_more: Any) -> None:  # noqa: ARG001 - as of every watch
        if stopped.is_set():
            raise Cancelled

    return watch


THREADS = min(4, os.cpu_count() or 1)
"""Number of parts that run in parallel."""


def parts_of(count: int, size: int) -> list[tuple[int, int]]:
    """Divide `count` items into parts of at most `size`; return the begin and end of each."""
    size = max(1, size)
    return [(begin, min(begin + size, count)) for begin in range(0, count, size)]


_FRESH = 0.05
"""Interval between two calls of a check or watch while other threads work, seconds."""


def run_parts(
    work: Callable[[int, int], T],
    parts: Sequence[tuple[int, int]],
    check: Check,
    stop: Callable[[], None] | None = None,
) -> list[T]:
    """Call ``work(begin, end)`` for every part, in several threads; return the results in order.

    Parameters
    ----------
    work : callable
        Runs without the interpreter's lock, and writes nothing that other parts read or write.
    parts : sequence of (begin, end)
    check : Check
        Called in this thread only: first, and several times a second; with one thread before each part.
    stop : callable, optional
        Called if the check or a part raises, to end the parts that still run.

    Examples
    --------
    >>> squares = [0] * 5
    >>> def work(begin, end):
    ...     squares[begin:end] = [n * n for n in range(begin, end)]
    ...     return end - begin
    >>> run_parts(work, parts_of(5, 2), no_check)
    [2, 2, 1]
    >>> squares
    [0, 1, 4, 9, 16]
    """
    results: list[T] = []
    if min(THREADS, len(parts)) < 2:
        for begin, end in parts:
            check()
            results.append(work(begin, end))
        return results
    from concurrent.futures import ThreadPoolExecutor, wait

    check()
    with ThreadPoolExecutor(min(THREADS, len(parts))) as pool:
        try:
            for waiting in [pool.submit(work, begin, end) for begin, end in parts]:
                while not waiting.done():
                    check()
                    wait([waiting], _FRESH)
                results.append(waiting.result())
        except BaseException:
            if stop is not None:
                stop()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
    return results


def wait_watching(
    work: Callable[[], T], watch: Watch, fraction: float, text: str, *, small: bool = False
) -> T:
    """Run a library call in another thread, and report progress while it works.

    Parameters
    ----------
    work : callable
    watch : Watch
        Called every 50 ms with `fraction` and `text`.
    fraction : float
    text : str
    small : bool
        Run the call in this thread, because it takes less than 50 ms.
    """
    from concurrent.futures import ThreadPoolExecutor

    if small:
        return work()
    pool = ThreadPoolExecutor(1)
    try:
        waiting = pool.submit(work)
        while True:
            watch(fraction, text)
            try:
                return waiting.result(timeout=_FRESH)
            except TimeoutError:
                continue
    finally:
        pool.shutdown(wait=False)


class Background:
    """Background threads for functions, which end early when the block is left.

    Each function must call `watch` often.
    """

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._stopped = threading.Event()
        self._pool = ThreadPoolExecutor(THREADS)
        self.watch = watch_until(self._stopped)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._pool.shutdown(cancel_futures=True)

    def start(self, run: Callable[[], T]) -> Callable[[Check], T]:
        """Start a function; return a function that waits for its result.

        While waiting, it calls its check several times a second, which may raise an exception.
        """
        from concurrent.futures import wait

        future = self._pool.submit(run)

        def result(check: Check) -> T:
            while not future.done():
                check()
                wait([future], _FRESH)
            return future.result()

        return result
