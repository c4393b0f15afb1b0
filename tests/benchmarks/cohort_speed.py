"""Speed of cohorts: cases per hour with one and two workers, dask against local processes, and overhead.

    python -m tests.benchmarks.cohort_speed [--quick] [--cases 2000] [--side 256] [--tasks 10000]

The cases are nodules of LIDC-IDRI, if `RATERSCOPE_DATA` names a folder with them, or simulated ones; each is
used many times. Workers have started, and kernels are compiled, before the time begins. Efficiency is the
time of one worker on one processor divided by twice that of two workers on two, which must be idle: a single
worker would use both for some steps of large volumes. The processor time is that of all processes: client,
scheduler, nannies and workers. It depends less on other programs, but what dask does many times a second
counts for longer if they slow the cases down. "With start" is from before the first process starts to after
the last has ended. The last rows process tasks that do nothing: what remains is the overhead of scheduling.
Rows of dask need `raterscope[cluster]`; the cluster starts as the guide recommends.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nibabel
import numpy as np

from raterscope.algorithms.progress import silent
from raterscope.app.batch.cohort import run_cases
from raterscope.app.batch.executors import CaseExecutor, DaskExecutor, LocalExecutor
from raterscope.app.batch.manifest import Case
from raterscope.app.batch.task import CaseRecord, GroupRecord

Start = Callable[[int], AbstractContextManager[CaseExecutor]]
"""Starts so many workers."""

_SIDE = 48
_DISTINCT = 20
_LARGE = 3
"""Distinct nodules in the cubes of a given side."""
_RATERS = 4


def read_nodules() -> list[np.ndarray]:
    """Read nodules, (rater, Z, Y, X); simulate them where there is no data."""
    folder = Path(os.environ.get("RATERSCOPE_DATA", "")) / "masks" / "lidc" / "nodulebin"
    files = sorted(folder.glob("*.npz"))[:_DISTINCT]
    if files:
        return [np.load(file)["masks"] for file in files]
    return list(simulate(_SIDE, _DISTINCT))


def simulate(side: int, count: int) -> Iterator[np.ndarray]:
    """Simulate nodules in cubes, (rater, Z, Y, X)."""
    rng = np.random.default_rng(0)
    grid = np.stack(np.mgrid[:side, :side, :side]).astype(np.float32) - side / 2
    for radius in rng.uniform(side / 8, side / 3, count):
        yield np.stack([
            np.hypot.reduce(grid / rng.uniform(0.8, 1.2, (3, 1, 1, 1)).astype(np.float32))
            < radius + rng.normal(0, 1)
            for _ in range(_RATERS)
        ]).astype(np.uint8)  # fmt: skip


def write_cases(folder: Path, count: int, side: int | None = None) -> list[Case]:
    """Write the masks of nodules, in cubes of a side, and list so many cases of them."""
    files = []
    for number, raters in enumerate(read_nodules() if side is None else simulate(side, _LARGE)):
        nodule = folder / f"nodule{number}"
        nodule.mkdir()
        for rater, mask in enumerate(raters):
            nibabel.save(nibabel.Nifti1Image(mask.T, np.eye(4)), nodule / f"rater{rater}.nii.gz")
        files.append(tuple(sorted(nodule.iterdir())))
    return [Case(f"case{n}", "masks", files[n % len(files)], "staple") for n in range(count)]


def answer(cases: Sequence[tuple[Case, int]], output: Path) -> GroupRecord:
    """Do nothing in place of a group of cases."""
    records = (
        CaseRecord(case.name, case.kind, "done", "", "", 0.0, 0.0, attempt, "", {}) for case, attempt in cases
    )
    return GroupRecord(tuple(records), 0.01 * len(cases))


class _Lent:
    """An executor that has started already and stays, perhaps with another task."""

    def __init__(self, executor: CaseExecutor, task: Callable[..., GroupRecord] | None = None) -> None:
        self._executor, self._task = executor, task

    @property
    def slots(self) -> int:
        return self._executor.slots

    @property
    def task_seconds(self) -> float:
        return self._executor.task_seconds

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        return self._executor.submit(self._task or function, *arguments)

    def shutdown(self) -> None:
        pass


@dataclass(frozen=True)
class Speed:
    """Seconds elapsed, of all processors and with the start of all processes; memory of a worker in MB."""

    elapsed: float
    processor: float
    with_start: float
    memory: float


def processor_seconds() -> float:
    """Sum the processor time of this process and of all that it started (Linux)."""
    parents, seconds = {}, {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = file.read_text().rpartition(")")[2].split()
            number = int(file.parent.name)
            parents[number] = int(fields[1])
            seconds[number] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    total, processes = 0.0, [os.getpid()]
    while processes:
        process = processes.pop()
        total += seconds[process]
        processes += [number for number, parent in parents.items() if parent == process]
    return total


def measure(cases: list[Case], start: Start, workers: int) -> Speed:
    """Start workers, process a few cases, then all, which are timed."""
    at_first = processor_seconds()
    with start(workers) as executor:
        lent = _Lent(executor)
        with tempfile.TemporaryDirectory() as folder:
            run_cases(cases[: 4 * workers], Path(folder), lambda: lent, silent)
        with tempfile.TemporaryDirectory() as folder:
            before, begun = processor_seconds(), time.perf_counter()
            records = run_cases(cases, Path(folder), lambda: lent, silent)
            elapsed, processor = time.perf_counter() - begun, processor_seconds() - before
    failed = [record for record in records.values() if record.status != "done"]
    assert not failed, failed[0]
    memory = max(record.memory_mb for record in records.values())
    return Speed(elapsed, processor, processor_seconds() - at_first, memory)


def measure_nothing(count: int, executor: CaseExecutor) -> float:
    """Return the milliseconds for each of many tasks that do nothing, the table of them included."""
    cases = [Case(f"case{n}", "masks", (), "staple") for n in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        run_cases(cases[:10], Path(folder), lambda: _Lent(executor, answer), silent)
        begun = time.perf_counter()
        run_cases(cases, Path(folder), lambda: _Lent(executor, answer), silent)
        return 1e3 * (time.perf_counter() - begun) / count


@contextmanager
def local(workers: int) -> Iterator[CaseExecutor]:
    """Start local workers, on as many processors."""
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(processors)[:workers])
    executor = LocalExecutor(workers)
    try:
        yield executor
    finally:
        executor.shutdown()
        os.sched_setaffinity(0, processors)


@contextmanager
def dask(workers: int) -> Iterator[CaseExecutor]:
    """Start a scheduler and workers on this computer."""
    environment = {**os.environ, "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s"}

    def begin(program: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{program}", "--no-dashboard", *options]
        return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "scheduler.json")
        scheduler = begin("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        while not file.exists():
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        worker = begin(
            "worker", address, "--nworkers", str(workers), "--nthreads", "1", "--local-directory", folder
        )
        executor = DaskExecutor(address, Path(folder))
        try:
            executor._client.wait_for_workers(workers)
            yield executor
        finally:
            executor.shutdown()
            for process in (worker, scheduler):
                process.terminate()
                process.wait()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="60 cases and 2,000 tasks")
    parser.add_argument("--cases", type=int)
    parser.add_argument("--side", type=int, help="simulate volumes of so many voxels on a side")
    parser.add_argument("--tasks", type=int, help="0 measures none")
    options = parser.parse_args()
    count = options.cases or (60 if options.quick else 2000)
    tasks = (2000 if options.quick else 10_000) if options.tasks is None else options.tasks
    executors: list[tuple[str, Start, int]] = [("local", local, 1), ("local", local, 2)]
    if importlib.util.find_spec("distributed") is not None:
        executors.append(("dask", dask, 2))
    print("workers      cases  seconds  cases per hour  efficiency  processor, s  with start  memory, MB")
    speeds = []
    with tempfile.TemporaryDirectory() as folder:
        cases = write_cases(Path(folder), count, options.side)
        for name, start, workers in executors:
            speed = measure(cases, start, workers)
            speeds.append(speed)
            efficiency = speeds[0].elapsed / workers / speed.elapsed
            hourly = 3600 * count / speed.elapsed
            print(
                f"{name}, {workers:<3d} {count:7,d} {speed.elapsed:8.1f} {hourly:15,.0f} "
                f"{efficiency:11.2f} {speed.processor:13.2f} {speed.with_start:11.2f} {speed.memory:11.0f}",
                flush=True,
            )
    if len(speeds) > 2:
        more = [speeds[2].processor / speeds[1].processor, speeds[2].with_start / speeds[1].with_start]
        print(f"processor time of dask against local: {more[0] - 1:+.1%}, with start {more[1] - 1:+.1%}")
    if not tasks:
        return
    print("\ntasks that do nothing   number  ms for each")
    for name, start, workers in executors:
        with start(workers) as executor:
            print(f"{name + ', ' + str(workers):22s} {tasks:7,d} {measure_nothing(tasks, executor):12.2f}")


if __name__ == "__main__":
    main()
