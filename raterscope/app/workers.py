"""Work distributed over processes that can be killed at any moment, also within a library's call.

The pool of the standard library hangs if a worker is killed while a large task is sent to it. Here each
worker has its own pipe, and gets a task only when it waits for one.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar

Result = TypeVar("Result")

POLL = 0.05  # seconds
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that set the number of threads of linear algebra libraries."""


def in_processes(
    function: Callable[..., Result],
    tasks: Mapping[str, Sequence[Any]],
    jobs: int,
    tick: Callable[[int], None],
    meanwhile: Callable[[str], Result] | None = None,
) -> dict[str, Result]:
    """Call a function for each task in worker processes.

    Parameters
    ----------
    function : callable
        At the top of a module, so that a process can find it. It answers and does not raise.
    tasks : mapping of name to arguments
        In the order in which they are begun.
    jobs : int
        Processes at most.
    tick : callable
        Called every 50 ms with the number of finished tasks. What it raises ends the processes at once.
    meanwhile : callable, optional
        Answers the task of a name in this process; called for the last tasks until all workers have started.

    Returns
    -------
    dict
        The answer to every task but those whose process died.
    """
    waiting = list(tasks)
    answers: dict[str, Result] = {}
    with _started(function, min(jobs, len(tasks))) as workers:
        current: dict[Connection, str] = {}
        starting = set(workers)
        while workers and (waiting or current):
            tick(len(answers))
            helps = meanwhile is not None and bool(starting)
            for pipe in wait(list(workers), 0 if helps else POLL):
                assert isinstance(pipe, Connection)
                starting.discard(pipe)
                try:
                    answer = pipe.recv()
                except (EOFError, OSError):  # the process died, and what it was at with it
                    current.pop(pipe, None)
                    del workers[pipe]
                    continue
                if pipe in current:
                    answers[current.pop(pipe)] = answer
                if waiting:
                    name = waiting.pop(0)
                    current[pipe] = name
                    with suppress(OSError):  # it died meanwhile: the next reading says so
                        pipe.send(tasks[name])
            if meanwhile is not None and starting and waiting:
                name = waiting.pop()
                answers[name] = meanwhile(name)
    return answers


def processors() -> int:
    """Count the processors that this program may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def _started(function: Callable[..., Any], jobs: int) -> Iterator[dict[Connection, SpawnProcess]]:
    """Start workers, keyed by pipe; kill the remaining ones at the end."""
    context = multiprocessing.get_context("spawn")
    started: list[tuple[Connection, SpawnProcess]] = []
    try:
        with _one_thread_each():
            for _ in range(jobs):
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(theirs, function), daemon=True)
                process.start()
                theirs.close()
                started.append((ours, process))
        yield dict(started)
    finally:
        for pipe, process in started:
            process.kill()
            pipe.close()
        for _, process in started:
            process.join()
            process.close()


def _serve(pipe: Connection, function: Callable[..., Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    pipe.send(None)  # ready
    with suppress(EOFError, BrokenPipeError):  # the parent has ended
        while True:
            pipe.send(function(*pipe.recv()))


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Limit processes that start within the context to one thread for linear algebra."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
