"""Work distributed over processes that can be killed at any moment, also within a library's call.

The pool of the standard library hangs if a worker is killed while a large task is sent to it. Here each
worker has its own pipe, and gets a task only when it waits for one.

Each array of a record costs microseconds to pickle. Records of one class are therefore sent as one array for
each field (`RecordBatch`).
"""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np

from raterscope.app.memory import collect_garbage_rarely

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess


Result = TypeVar("Result")

POLL = 0.05  # seconds
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that set the number of threads of linear algebra libraries."""

_READY = None
"""First message of a worker; an answer is a tuple."""


class Workers:
    """Worker processes that start with the first tasks and stay for later ones, until the context ends.

    Parameters
    ----------
    jobs : int
        Maximum number of processes.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._processes: dict[Connection, SpawnProcess] = {}
        self._starting: set[Connection] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe, process in self._processes.items():
            process.kill()
            pipe.close()
        for process in self._processes.values():
            process.join()
            process.close()
        self._processes.clear()

    @property
    def running(self) -> bool:
        """Whether workers are there already or start at present."""
        return bool(self._processes)

    def start(self) -> None:
        """Start all processes, for tasks that come soon."""
        self._start(self.jobs - len(self._processes))

    def answer(
        self,
        function: Callable[..., Result],
        tasks: Mapping[str, Sequence[Any]],
        tick: Callable[[int], None],
        meanwhile: Callable[[str], Result] | None = None,
    ) -> dict[str, Result]:
        """Call a function for each task.

        Parameters
        ----------
        function : callable
            At the top of a module, so that a process can find it. It answers and does not raise.
        tasks : mapping of name to arguments
            In the order in which they start.
        tick : callable
            Called every 50 ms with the number of finished tasks. What it raises ends the tasks; leave the
            context then.
        meanwhile : callable, optional
            Answers the task of a name in this process; called for the last tasks until all new workers have
            started.

        Returns
        -------
        dict
            The answer to every task but those whose process died.
        """
        from multiprocessing.connection import Connection, wait  # every command imports this module

        waiting = list(tasks)
        answers: dict[str, Result] = {}
        current: dict[Connection, str] = {}

        def give(pipe: Connection) -> None:
            if waiting and pipe not in current:
                current[pipe] = waiting.pop(0)
                with suppress(OSError):  # it died meanwhile: the next reading says so
                    pipe.send((function, tasks[current[pipe]]))

        self._start(min(self.jobs, len(tasks)) - len(self._processes))
        pipes, starting = list(self._processes), self._starting
        for ready in self._processes.keys() - starting:
            give(ready)
        while pipes and (waiting or current):
            tick(len(answers))
            helps = meanwhile is not None and bool(starting)
            for pipe in wait(pipes, 0 if helps else POLL):
                assert isinstance(pipe, Connection)
                starting.discard(pipe)
                try:
                    message = pipe.recv()
                except (EOFError, OSError):  # the process died, and what it was at with it
                    current.pop(pipe, None)
                    pipes.remove(pipe)
                    self._end(pipe)
                    continue
                if message is not _READY:
                    answers[current.pop(pipe)] = message[0]
                give(pipe)
            if meanwhile is not None and starting and waiting:
                name = waiting.pop()
                answers[name] = meanwhile(name)
        return answers

    def _start(self, count: int) -> None:
        if count <= 0:
            return
        import multiprocessing

        context = multiprocessing.get_context("spawn")
        with _one_thread_each(), _holding_interrupts():
            for _ in range(count):
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(theirs,), daemon=True)
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
    meanwhile: Callable[[str], Result] | None = None,
) -> dict[str, Result]:
    """Call a function for each task in at most so many new worker processes; see `Workers.answer`."""
    with Workers(jobs) as workers:
        return workers.answer(function, tasks, tick, meanwhile)


def processors() -> int:
    """Count the processors that this program may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _serve(pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    collect_garbage_rarely()
    pipe.send(_READY)
    with suppress(EOFError, BrokenPipeError):  # the parent has ended
        while True:
            function, arguments = pipe.recv()
            pipe.send((function(*arguments),))


@contextmanager
def _holding_interrupts() -> Iterator[None]:
    """Start processes that Ctrl-C never reaches, not even before they ignore it; this one answers later."""
    from multiprocessing import resource_tracker

    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # it would end the holding when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # processes inherit it
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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


Record = TypeVar("Record")


@dataclass(frozen=True, eq=False)
class _Arrays:
    """Arrays of one type and number of axes: their values one behind the other, and their shapes."""

    values: np.ndarray
    shapes: np.ndarray  # (arrays, axes)

    def split(self) -> Iterator[np.ndarray]:
        shapes = self.shapes.tolist()
        ends = np.cumsum(self.shapes.prod(axis=1)).tolist()
        begin = 0
        for shape, end in zip(shapes, ends, strict=True):
            array = self.values[begin:end]
            yield array if len(shape) == 1 else array.reshape(shape)
            begin = end


@dataclass(frozen=True, eq=False)
class RecordBatch(Generic[Record]):
    """Frozen dataclasses of one class, as columns.

    Attributes
    ----------
    columns : dict
        By field: arrays, a batch of the records in the field, or a list of values.
    """

    kind: type[Record]
    count: int
    columns: dict[str, Any]

    @classmethod
    def of(cls, records: Sequence[Record]) -> RecordBatch[Record]:
        """Make a batch of one or more records.

        Examples
        --------
        >>> from raterscope.algorithms.simulation.click_crowds import separated_crowd
        >>> clicks = [separated_crowd(20, seed=seed).clicks for seed in (3, 4)]
        >>> [len(each) for each in RecordBatch.of(clicks).records()] == [len(each) for each in clicks]
        True
        """
        kind: Any = type(records[0])
        names = [field.name for field in dataclasses.fields(kind)]
        columns = {name: to_column([getattr(record, name) for record in records]) for name in names}
        return cls(kind, len(records), columns)

    def records(self) -> list[Record]:
        """Return the records, as they were."""
        names = tuple(self.columns)
        columns = [_values(column) for column in self.columns.values()]
        records = []
        for values in zip(*columns, strict=True):
            record = object.__new__(self.kind)  # as unpickling does: it was checked when it was made
            record.__dict__.update(zip(names, values, strict=True))
            records.append(record)
        return records


def to_column(values: list[Any]) -> Any:
    """Return records or arrays of one kind as a batch, and other values as they are."""
    if not values:
        return values
    first = values[0]
    if any(type(value) is not type(first) for value in values):
        return values
    if isinstance(first, np.ndarray):
        same = all(
            array.dtype == first.dtype and array.ndim == first.ndim and array.flags.c_contiguous
            for array in values
        )
        if not same or not first.ndim:
            return values
        shapes = np.array([array.shape for array in values], dtype=np.int64)
        return _Arrays(np.concatenate([array.reshape(-1) for array in values]), shapes)
    if dataclasses.is_dataclass(first) and hasattr(first, "__dict__") and not isinstance(first, type):
        return RecordBatch.of(values)
    return values


def _values(column: Any) -> Sequence[Any] | Iterator[Any]:
    if isinstance(column, _Arrays):
        return column.split()
    return column.records() if isinstance(column, RecordBatch) else column


def from_column(column: Any) -> list[Any]:
    """Return the values that `to_column` was given."""
    return list(_values(column))
