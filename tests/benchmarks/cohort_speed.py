"""Speed of cohorts: cases per hour with one and two workers, dask against local processes, and overhead.

    python -m tests.benchmarks.cohort_speed [--quick] [--cases 2000] [--tasks 10000]

The cases are nodules of LIDC-IDRI, if `RATERSCOPE_DATA` names a folder with them, or simulated ones; each is
used many times. Workers have started, and kernels are compiled, before the time begins. Efficiency is the
time of one worker divided by twice that of two; it needs two idle processors. The last rows process tasks
that do nothing: what remains is the overhead of scheduling. Rows of dask need `raterscope[cluster]`.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nibabel
import numpy as np

from raterscope.algorithms.progress import silent
from raterscope.app.batch.executors import CaseExecutor, DaskExecutor, LocalExecutor
from raterscope.app.batch.manifest import Case
from raterscope.app.batch.records import CaseRecord
from raterscope.app.batch.running import run_cases
from raterscope.app.batch.task import GroupRecord

_SIDE = 48
_DISTINCT = 20
_RATERS = 4


def read_nodules() -> list[np.ndarray]:
    """Read nodules, (rater, Z, Y, X); simulate them where there is no data."""
    folder = Path(os.environ.get("RATERSCOPE_DATA", "")) / "masks" / "lidc" / "nodulebin"
    files = sorted(folder.glob("*.npz"))[:_DISTINCT]
    if files:
        return [np.load(file)["masks"] for file in files]
    rng = np.random.default_rng(0)
    grid = np.stack(np.mgrid[:_SIDE, :_SIDE, :_SIDE]).astype(float) - _SIDE / 2
    return [
        np.stack([
            np.hypot.reduce(grid / rng.uniform(0.8, 1.2, (3, 1, 1, 1))) < radius + rng.normal(0, 1)
            for _ in range(_RATERS)
        ]).astype(np.uint8)
        for radius in rng.uniform(6, 16, _DISTINCT)
    ]  # fmt: skip


def write_cases(folder: Path, count: int) -> list[Case]:
    """Write the masks of every nodule, and list so many cases of them."""
    nodules = read_nodules()
    files = []
    for number, raters in enumerate(nodules):
        place = folder / f"nodule{number}"
        place.mkdir()
        for rater, mask in enumerate(raters):
            nibabel.save(nibabel.Nifti1Image(mask.T, np.eye(4)), place / f"rater{rater}.nii.gz")
        files.append(tuple(sorted(place.iterdir())))
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


def measure(cases: list[Case], executor: CaseExecutor, workers: int) -> tuple[float, float]:
    """Process the cases with workers that have started; return the seconds and the largest memory, MB."""
    with tempfile.TemporaryDirectory() as folder:
        run_cases(cases[: 4 * workers], Path(folder), lambda: _Lent(executor), silent)
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        records = run_cases(cases, Path(folder), lambda: _Lent(executor), silent)
        seconds = time.perf_counter() - begun
    failed = [record for record in records.values() if record.status != "done"]
    assert not failed, failed[0]
    return seconds, max(record.memory_mb for record in records.values())


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
    """Start local workers."""
    executor = LocalExecutor(workers)
    try:
        yield executor
    finally:
        executor.shutdown()


@contextmanager
def dask(workers: int) -> Iterator[CaseExecutor]:
    """Start a cluster of processes on this computer."""
    from distributed import LocalCluster

    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
    ):
        executor = DaskExecutor(cluster.scheduler_address, Path(folder))
        try:
            yield executor
        finally:
            executor.shutdown()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="60 cases and 2,000 tasks")
    parser.add_argument("--cases", type=int)
    parser.add_argument("--tasks", type=int)
    options = parser.parse_args()
    count = options.cases or (60 if options.quick else 2000)
    tasks = options.tasks or (2000 if options.quick else 10_000)
    executors = [("local", local, 1), ("local", local, 2)]
    if importlib.util.find_spec("distributed") is not None:
        executors.append(("dask", dask, 2))
    print("workers                  cases  seconds  cases per hour  efficiency  memory of a worker, MB")
    with tempfile.TemporaryDirectory() as folder:
        cases = write_cases(Path(folder), count)
        one = 0.0
        for name, start, workers in executors:
            with start(workers) as executor:
                seconds, memory = measure(cases, executor, workers)
            one = one or seconds
            label, hourly = f"{name}, {workers}", 3600 * count / seconds
            efficiency = one / workers / seconds
            print(f"{label:22s} {count:7,d} {seconds:8.1f} {hourly:15,.0f} {efficiency:11.2f} {memory:24.0f}")
    print("\ntasks that do nothing   number  ms for each")
    for name, start, workers in executors:
        with start(workers) as executor:
            print(f"{name + ', ' + str(workers):22s} {tasks:7,d} {measure_nothing(tasks, executor):12.2f}")


if __name__ == "__main__":
    main()
