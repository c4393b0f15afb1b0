"""Shared parts of the campaigns: options, seeded cases, verdicts on errors, the summary, worker processes.

A case has a number; its random numbers follow from the seed, the campaign and that number alone, so that
``--seed S --case N`` repeats one case wherever and however fast it runs.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import os
import resource
import signal
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from random import Random
from typing import Any

from raterscope.algorithms.progress import RefusedError
from raterscope.app.errors import InputError

__all__ = [
    "Defect", "Limits", "Outcome", "Summary", "cases", "error_outcome", "in_workers", "parser", "random_of",
    "sentence_defect",
]  # fmt: skip

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")  # before Qt is loaded, also by the workers

SHOWN = 40
"""Defects that a summary lists in full."""

LONGEST_SENTENCE = 700


@dataclass(frozen=True)
class Defect:
    """A defect, and the case that repeats it."""

    row: str
    case: int
    text: str


@dataclass(frozen=True)
class Outcome:
    """Outcome of one case: the column that counts it, and a description of a defect."""

    row: str
    column: str
    defect: str = ""
    megabytes: float = 0.0
    seconds: float = 0.0


@dataclass
class Summary:
    """Counts of outcomes by row and column, and the defects."""

    title: str
    seed: int
    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    defects: list[Defect] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    begun: float = field(default_factory=time.monotonic)

    def add(self, case: int, outcome: Outcome) -> None:
        """Count an outcome, and report a defect at once."""
        self.counts[outcome.row][outcome.column] += 1
        if outcome.defect:
            self.fail(outcome.row, case, outcome.defect)

    def fail(self, row: str, case: int, words: str) -> None:
        """Record a defect."""
        self.counts[row]["defects"] += 1
        self.defects.append(Defect(row, case, words))
        print(f"DEFECT {row}, --seed {self.seed} --case {case}: {words}", file=sys.stderr, flush=True)

    def table(self) -> str:
        """Lay the counts out as text."""
        columns = list(dict.fromkeys(name for row in self.counts.values() for name in sorted(row)))
        columns = [name for name in columns if name != "defects"] + ["defects"]
        rows = {name: [counts[column] for column in columns] for name, counts in sorted(self.counts.items())}
        if len(rows) > 1:
            rows["total"] = [sum(values) for values in zip(*rows.values(), strict=True)]
        width = max([len(name) for name in rows] + [6])
        lines = [f"{self.title}, seed {self.seed}, {time.monotonic() - self.begun:.0f} s"]
        lines.append(" " * width + "".join(f"{name:>{max(len(name) + 2, 10)}}" for name in columns))
        for name, values in rows.items():
            cells = zip(values, columns, strict=True)
            shown = "".join(f"{value:>{max(len(column) + 2, 10)},}" for value, column in cells)
            lines.append(f"{name:<{width}}{shown}")
        return "\n".join([*lines, *self.notes])

    def end(self) -> int:
        """Print the table and the defects, and return the exit status, 1 where there are defects."""
        print(self.table())
        kinds: dict[tuple[str, str], list[int]] = defaultdict(list)
        for item in self.defects:
            kinds[item.row, item.text].append(item.case)
        for (row, words), numbers in list(kinds.items())[:SHOWN]:
            more = f" and {len(numbers) - 1} more" if len(numbers) > 1 else ""
            print(f"- {row}, case {numbers[0]}{more}: {words}")
        if len(kinds) > SHOWN:
            print(f"- and {len(kinds) - SHOWN} more")
        return 1 if self.defects else 0


def parser(module: str, description: str | None, seconds: float = 60.0) -> argparse.ArgumentParser:
    """Make the parser with the options that all campaigns have."""
    arguments = argparse.ArgumentParser(
        prog=f"python -m tests.campaigns.{module}", description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    arguments.add_argument(
        "--seed", type=int, default=1, help="seed of all random numbers (default: %(default)s)"
    )
    arguments.add_argument("--seconds", type=float, default=seconds, help="time limit (default: %(default)s)")
    arguments.add_argument("--cases", type=int, help="most cases (default: as many as the time allows)")
    arguments.add_argument("--case", type=int, help="repeat this case alone")
    return arguments


def random_of(*names: object) -> Random:
    """Return random numbers that follow from these names alone."""
    return Random("/".join(map(str, names)))


def cases(options: argparse.Namespace, deadline: float | None = None) -> Iterator[int]:
    """Number the cases until time or their most is reached; the first runs whatever the time."""
    if options.case is not None:
        yield options.case
        return
    end = time.monotonic() + options.seconds if deadline is None else deadline
    number = 0
    while (options.cases is None or number < options.cases) and (number == 0 or time.monotonic() < end):
        yield number
        number += 1


def sentence_defect(text: str, names: Sequence[str] = ()) -> str:
    """Describe what is wrong with an error message; empty for one sentence that names one of the files."""
    if not text.strip() or not text.rstrip().endswith((".", "?", "!", "…")):
        return f"no sentence: {text!r}"
    if any(not letter.isprintable() for letter in text):
        return f"a line break or control character in: {text!r}"
    if "internal error" in text or "Traceback" in text:
        return f"an internal error: {text!r}"
    if len(text) > LONGEST_SENTENCE:
        return f"{len(text)} characters long: {text[:200]!r}"
    if names and not any(name in text for name in names):
        return f"no file is named in: {text!r}"
    return ""


def error_outcome(row: str, error: BaseException, names: Sequence[str] = ()) -> Outcome:
    """Judge an exception: a refusal in one sentence is allowed, anything else is a defect."""
    if isinstance(error, (InputError, RefusedError)):
        column = "memory" if "memory" in str(error) else "refused"
        named = names if isinstance(error, InputError) else ()
        return Outcome(row, column, sentence_defect(str(error), named))
    frames = traceback.extract_tb(error.__traceback__)
    ours = [
        frame
        for frame in frames
        if "raterscope" in frame.filename and "campaigns/tests" not in frame.filename
    ]
    position = (ours or frames or [None])[-1]
    where = f" at {Path(position.filename).name}:{position.lineno} {position.name}" if position else ""
    words = " ".join(str(error).split())[:160]
    return Outcome(row, "raised", f"{type(error).__name__}: {words}{where}")


@dataclass(frozen=True)
class Limits:
    """Limits of time and memory of one case.

    Attributes
    ----------
    cpu : float
        Seconds of processor time, which does not depend on what else the machine does.
    wall : float
        Seconds in all, against waiting for ever.
    memory : int
        Bytes of address space above what the process had at its start.
    """

    cpu: float = 30.0
    wall: float = 300.0
    memory: int = 3 << 30


def in_workers(
    function: Callable[..., Outcome],
    tasks: Iterable[tuple[int, str, tuple[Any, ...]]],
    summary: Summary,
    limits: Limits,
    jobs: int = 1,
) -> None:
    """Run cases in worker processes under limits and add their outcomes to the summary.

    Parameters
    ----------
    function : callable
        At the top of a module; called with a task's arguments, it gives its outcome.
    tasks : iterable of (case, row, arguments)
    summary : Summary
    limits : Limits
        A process that breaks them is ended: a defect, and the next case gets a new process.
    jobs : int
        0: in this process, without limits.
    """
    if jobs == 0:
        for case, _, arguments in tasks:
            summary.add(case, function(*arguments))
        return
    context = multiprocessing.get_context("spawn")
    waiting = iter(tasks)
    workers: dict[Connection, SpawnProcess] = {}
    at: dict[Connection, tuple[int, str, float]] = {}

    def start() -> None:
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, function, limits))
        process.start()
        theirs.close()
        workers[ours] = process

    def give(pipe: Connection) -> None:
        task = next(waiting, None)
        if task is not None:
            at[pipe] = (task[0], task[1], time.monotonic())
            pipe.send(task[2])

    def bury(pipe: Connection, why: str) -> None:
        case, row, _ = at.pop(pipe)
        process = workers.pop(pipe)
        process.kill()
        process.join()
        pipe.close()
        summary.add(case, Outcome(row, "ended", why))

    try:
        for _ in range(jobs):
            start()
        for pipe in list(workers):
            pipe.recv()  # ready
            give(pipe)
        while at:
            for pipe in wait(list(at), 0.5):
                assert isinstance(pipe, Connection)
                try:
                    outcome = pipe.recv()
                except (EOFError, OSError):
                    workers[pipe].join()
                    bury(pipe, _cause_of_death(workers[pipe].exitcode, limits))
                    start()
                    fresh = list(workers)[-1]
                    fresh.recv()
                    give(fresh)
                    continue
                case, row, _ = at.pop(pipe)
                if isinstance(outcome, str):
                    outcome = Outcome(row, "failed", outcome)
                summary.add(case, outcome)
                give(pipe)
            for pipe, (_, _, since) in list(at.items()):
                if time.monotonic() - since > limits.wall:
                    bury(pipe, f"no answer in {limits.wall:.0f} s")
                    start()
                    fresh = list(workers)[-1]
                    fresh.recv()
                    give(fresh)
    finally:
        for pipe, process in workers.items():
            process.kill()
            process.join()
            pipe.close()


def _cause_of_death(status: int | None, limits: Limits) -> str:
    if status == -signal.SIGXCPU:
        return f"more than {limits.cpu:.0f} s of processor time"
    if status is not None and status < 0:
        return f"the process died of {signal.Signals(-status).name}"
    return f"the process ended with status {status}"


def _serve(pipe: Connection, function: Callable[..., Outcome], limits: Limits) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    faulthandler.disable()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries' warnings about damaged files
    function_ready = getattr(sys.modules[function.__module__], "warm_up", None)
    if function_ready is not None:
        function_ready()
    address_space = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (address_space + limits.memory,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pipe.send(None)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    with suppress(EOFError, BrokenPipeError):
        while True:
            arguments = pipe.recv()
            used = time.process_time()
            resource.setrlimit(resource.RLIMIT_CPU, (int(used + limits.cpu) + 1, hard))
            try:
                pipe.send(function(*arguments))
            except Exception as error:  # a defect of the campaign
                pipe.send(f"the campaign failed: {error_outcome('', error).defect or error}")
