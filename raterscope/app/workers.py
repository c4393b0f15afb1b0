"""Worker processes that may be killed at any moment, and settings of their memory.

The pool of the standard library hangs if a worker is killed while it receives a large task. Here each worker
has its own pipe, and gets a task only when it waits for one.

References
----------
mallopt(3) and malloc_trim(3), Linux man-pages.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

HEAPS = 2
_HEAPS_AT_MOST = -8
_TRIM_ABOVE = -1
_MAP_ABOVE = -3
"""Numbers of the parameters M_ARENA_MAX, M_TRIM_THRESHOLD and M_MMAP_THRESHOLD in malloc.h."""

_LARGEST_MAPPED = 32 << 20
"""Maximum of M_MMAP_THRESHOLD that glibc accepts."""


def limit_heaps() -> None:
    """Let all threads share two heaps; glibc's default of eight per core fragments the memory."""
    _set(_HEAPS_AT_MOST, HEAPS)


def collect_garbage_rarely() -> None:
    """Search for unused cycles of objects after 50,000 new objects instead of 700.

    Loading modules and compiling kernels create many objects, but little garbage.
    """
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


def keep_freed_memory(most: int = 2**31 - 1) -> None:
    """Keep the memory of freed arrays for later arrays, which then need no new pages.

    All threads and Arrow share one heap, because memory freed in one heap is not available to others.

    `most`: number of bytes to keep. Only commands that end after their work keep all.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # read when Arrow is loaded
    _set(_HEAPS_AT_MOST, 1)
    _set(_TRIM_ABOVE, most)
    _set(_MAP_ABOVE, _LARGEST_MAPPED)


def free_gradually(*collections: dict[Any, Any]) -> None:
    """Empty dictionaries in a thread, entry by entry: freeing many objects at once stops all threads."""

    def empty() -> None:
        for collection in collections:
            while collection:
                collection.popitem()

    threading.Thread(target=empty, name="Freeing memory", daemon=True).start()


def release_freed_memory() -> None:
    """Return freed memory to the system, because larger arrays could not use it."""
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


Result = TypeVar("Result")

POLL = 0.05  # seconds
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that set the number of threads of linear algebra libraries."""

_READY = None
"""First message of a worker; an answer is a tuple."""


class Workers:
    """Worker processes that start with the first tasks and stay for later tasks, until the context ends.

    `jobs`: maximum number of processes. `patience`: seconds without a task after which a process ends.
    """

    def __init__(self, jobs: int, patience: float | None = None) -> None:
        self.jobs = jobs
        self._patience = patience
        self._processes: dict[Connection, SpawnProcess] = {}
        self._starting: set[Connection] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End all processes."""
        for pipe, process in self._processes.items():
            process.kill()
            pipe.close()
        for process in self._processes.values():
            process.join()
            process.close()
        self._processes.clear()

    @property
    def running(self) -> bool:
        """Whether workers run or are starting."""
        return bool(self._processes)

    @property
    def all_alive(self) -> bool:
        """Whether no process ended since the last task."""
        return all(process.is_alive() for process in self._processes.values())

    def start(self, load: Callable[[], object] | None = None) -> None:
        """Start all processes, for tasks that follow soon.

        `load`: called in each process before its first task; a function at the top of a module.
        """
        self._start(self.jobs - len(self._processes), load)

    def answer(
        self,
        function: Callable[..., Result],
        tasks: Mapping[str, Sequence[Any]],
        tick: Callable[[int], None],
        meanwhile: Callable[[str], Result] | None = None,
        then: Callable[[str, Result], Mapping[str, Sequence[Any]]] | None = None,
    ) -> dict[str, Result]:
        """Call a function for each task; return the answers, except of tasks whose process died.

        `function`: defined at the top of a module, for other processes to import. It must not raise.
        `tasks`: arguments by name, in the order in which tasks start.
        `tick`: called every 50 ms with the number of finished tasks. Its exceptions end the tasks; leave the
            context then.
        `meanwhile`: answers a task, given its name, in this process; called for the last tasks until all new
            workers have started.
        `then`: called with each answer of a worker; returns further tasks, which start last.
        """
        from multiprocessing.connection import Connection, wait  # every command imports this module

        given, waiting = dict(tasks), list(tasks)
        answers: dict[str, Result] = {}
        current: dict[Connection, str] = {}

        def send_task(pipe: Connection) -> None:
            if waiting and pipe not in current:
                current[pipe] = waiting.pop(0)
                with suppress(OSError):  # it died meanwhile; the next read reports it
                    pipe.send((function, given[current[pipe]]))

        self._start(min(self.jobs, len(tasks)) - len(self._processes))
        pipes, starting = list(self._processes), self._starting
        for ready in self._processes.keys() - starting:
            send_task(ready)
        while pipes and (waiting or current):
            tick(len(answers))
            helps, fresh = meanwhile is not None and bool(starting), list[str]()
            for pipe in wait(pipes, 0 if helps else POLL):
                assert isinstance(pipe, Connection)
                starting.discard(pipe)
                try:
                    message = pipe.recv()
                except (EOFError, OSError):  # the process died during its task
                    current.pop(pipe, None)
                    pipes.remove(pipe)
                    self._end(pipe)
                    continue
                if message is not _READY:
                    fresh.append(current.pop(pipe))
                    answers[fresh[-1]] = message[0]
                send_task(pipe)
            if then is not None:
                for name in fresh:  # the processes work meanwhile
                    further = then(name, answers[name])
                    given.update(further)
                    waiting.extend(further)
                for ready in self._processes.keys() - starting:
                    send_task(ready)
            if meanwhile is not None and starting and waiting:
                name = waiting.pop()
                answers[name] = meanwhile(name)
        return answers

    def _start(self, count: int, load: Callable[[], object] | None = None) -> None:
        if count <= 0:
            return
        import multiprocessing

        context = multiprocessing.get_context("spawn")
        with _one_thread_each(), _holding_interrupts():
            for _ in range(count):
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(theirs, load, self._patience), daemon=True)
                process.start()
                theirs.close()
                self._processes[ours] = process
                self._starting.add(ours)

    def _end(self, pipe: Connection) -> None:
        process = self._processes.pop(pipe)
        process.kill()
        pipe.close()
        process.join()
        process.close()


def in_processes(
    function: Callable[..., Result],
    tasks: Mapping[str, Sequence[Any]],
    jobs: int,
    tick: Callable[[int], None],
) -> dict[str, Result]:
    """Call a function for each task in new worker processes, at most `jobs`; see `Workers.answer`."""
    with Workers(jobs) as workers:
        return workers.answer(function, tasks, tick)


class KeptWorkers:
    """Workers that stay for tasks that follow within half a minute; their start takes longer than a task.

    One set is kept; threads that need workers at the same time get others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: tuple[Workers, float] | None = None  # and the time from which they are idle

    def take(self, jobs: int) -> Workers:
        """Return workers, which are then ended or given back."""
        with self._lock:
            idle, self._idle = self._idle, None
        if idle is not None:
            workers, since = idle
            if workers.all_alive and time.monotonic() - since < _PATIENCE / 2:
                workers.jobs = jobs
                return workers
            workers.end()
        return Workers(jobs, _PATIENCE)

    def give(self, workers: Workers) -> None:
        """Keep workers without a task, instead of those kept before."""
        with self._lock:
            before, self._idle = self._idle, (workers, time.monotonic())
        if before is not None:
            before[0].end()


_PATIENCE = 60.0


def processors() -> int:
    """Count the processors that this program may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _serve(pipe: Connection, load: Callable[[], object] | None, patience: float | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    collect_garbage_rarely()
    if load is not None:
        load()
    with suppress(EOFError, ConnectionError):  # the parent has ended
        pipe.send(_READY)
        while pipe.poll(patience):
            function, arguments = pipe.recv()
            pipe.send((function(*arguments),))


@contextmanager
def _holding_interrupts() -> Iterator[None]:
    """Start processes that Ctrl-C never reaches, even before they ignore it; handle it here later."""
    from multiprocessing import resource_tracker

    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # its start would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # processes inherit it
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Limit processes started within the context to one thread for linear algebra."""
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
