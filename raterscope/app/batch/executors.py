"""Executors of a cohort: local processes, a dask cluster, and scripts for SLURM and Snakemake.

The first two answer a task's future with the task's result, or with one of two errors: `WorkerDiedError` if
the task's own process died, `LostError` if nothing is known of the task, because the connection to the
cluster broke.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from raterscope import __version__
from raterscope.app.errors import InputError
from raterscope.app.workers import Workers, collect_garbage_rarely, keep_freed_memory

Result = TypeVar("Result")

CONNECT_SECONDS = 30
RECONNECT_SECONDS = 120
_COUNT_SECONDS = 5.0
_KEPT = 64 << 20
"""Bytes of freed memory that a dask worker keeps, as glibc does after it freed a large array."""


class WorkerDiedError(Exception):
    """The process of a task died."""


class LostError(Exception):
    """The connection to the scheduler broke; its tasks may be unfinished."""


class CaseExecutor(Protocol):
    """Executor with the number of tasks to submit at a time."""

    @property
    def slots(self) -> int:
        """Tasks to submit at a time."""

    @property
    def task_seconds(self) -> float:
        """Target duration of a task in seconds, if each task has an overhead; 0: one case per task."""

    def submit(self, function: Callable[..., Result], /, *arguments: Any) -> Future[Result]:
        """Begin a task."""

    def shutdown(self) -> None:
        """End all tasks at once."""


MakeExecutor = Callable[[], CaseExecutor]


class LocalExecutor:
    """Local processes, each with a thread that feeds it and replaces it if it dies.

    `jobs`: number of processes.
    """

    def __init__(self, jobs: int) -> None:
        self.slots = 2 * jobs  # no process waits for the next task
        self.task_seconds = 0.0
        self._threads = ThreadPoolExecutor(jobs, thread_name_prefix="case")
        self._mine = threading.local()
        self._started: list[Workers] = []
        self._starting = threading.Lock()  # starting a process changes the environment temporarily
        self._ended = False

    def submit(self, function: Callable[..., Result], /, *arguments: Any) -> Future[Result]:
        """Begin a task in a free process."""
        return self._threads.submit(self._call, function, arguments)

    def shutdown(self) -> None:
        """End all processes at once."""
        self._ended = True
        self._threads.shutdown(cancel_futures=True)
        for workers in self._started:
            workers.__exit__()

    def _call(self, function: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
        workers: Workers | None = getattr(self._mine, "workers", None)
        with self._starting:
            if workers is None:
                workers = self._mine.workers = Workers(1)
                self._started.append(workers)
            if not workers.running:
                workers.start()
        for result in workers.answer(function, {"": arguments}, self._check).values():
            return result
        raise WorkerDiedError

    def _check(self, _: int) -> None:
        if self._ended:
            raise CancelledError


class DaskExecutor:
    """Workers of a dask cluster.

    A worker that joins later is used, too. dask itself repeats a task whose worker died, on another worker.

    `address`: address of the scheduler.
    `output`: folder that every worker must see.
    `connect_seconds`: seconds to wait for the scheduler.
    Raises `InputError` if dask is not installed, or workers have another version or do not see the folder.
    Raises `LostError` if no scheduler answers.
    """

    task_seconds = 3.0

    def __init__(self, address: str, output: Path, connect_seconds: float = CONNECT_SECONDS) -> None:
        try:
            from distributed import Client, KilledWorker
        except ImportError as error:
            raise InputError(
                "dask.distributed is not installed; `pip install raterscope[cluster]`"
            ) from error
        self._killed = KilledWorker
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # we report a lost connection
        try:
            self._client = Client(address, timeout=connect_seconds, set_as_default=False)
        except (OSError, ValueError) as error:
            raise LostError(f"no scheduler answers at {address}: {error}") from error
        self._slots = self._counted = 0.0
        try:
            self._check_workers(output)
        except BaseException:
            self.shutdown()
            raise

    @property
    def slots(self) -> int:
        """Tasks to submit at a time: more than the workers, so that none waits for the next task."""
        if time.monotonic() - self._counted > _COUNT_SECONDS:
            try:
                self._slots = sum(self._client.ncores().values())
            except Exception as error:  # of many libraries
                raise LostError(str(error)) from error
            self._counted = time.monotonic()
        return int(self._slots * 1.5) + 1

    def submit(self, function: Callable[..., Result], /, *arguments: Any) -> Future[Result]:
        """Begin a task on any worker."""
        answer: Future[Result] = Future()
        answer.set_running_or_notify_cancel()
        try:
            task = self._client.submit(_in_worker, function, *arguments, pure=False)
        except Exception as error:
            answer.set_exception(LostError(str(error)))
            return answer
        task.add_done_callback(lambda done: self._pass_on(done, answer))
        return answer

    def shutdown(self) -> None:
        """Cancel what has not begun, and leave the cluster."""
        self._client.close(timeout=5)

    def _pass_on(self, task: Any, answer: Future[Any]) -> None:
        try:
            if task.status == "finished":
                answer.set_result(task.result(timeout=RECONNECT_SECONDS))
                return
            error = task.exception(timeout=CONNECT_SECONDS) if task.status == "error" else LostError()
        except BaseException as problem:  # a cancelled task is no Exception in some versions
            error = LostError(str(problem))
        answer.set_exception(WorkerDiedError() if isinstance(error, self._killed) else error)

    def _check_workers(self, output: Path) -> None:
        """Refuse a cluster whose workers have another version, or do not see the output folder."""
        probe = output / f".probe-{uuid4().hex}"
        probe.touch()
        try:
            answers = self._client.run(_look, probe, on_error="return")
        finally:
            probe.unlink()
        for worker, answer in answers.items():
            if isinstance(answer, BaseException):
                raise InputError(f"the worker {worker} cannot run raterscope: {answer}")
            version, sees = answer
            if version != __version__:
                raise InputError(
                    f"the worker {worker} has raterscope {version}, this computer {__version__}; "
                    "install the same version"
                )
            if not sees:
                raise InputError(
                    f"the worker {worker} does not see the folder {output}; choose one on a shared disk"
                )


def _in_worker(function: Callable[..., Result], *arguments: Any) -> Result:
    _prepare_worker()
    with _profiler_paused():
        return function(*arguments)


@cache
def _prepare_worker() -> None:
    collect_garbage_rarely()  # as in the processes of `Workers`
    keep_freed_memory(
        _KEPT
    )  # dask's nannies make the allocator return all memory, which takes a third of the time of small cases


@contextmanager
def _profiler_paused() -> Iterator[None]:
    """Pause dask's profiler, which interrupts the task a hundred times a second."""
    from distributed import get_worker

    worker = get_worker()
    profiler = worker.periodic_callbacks.get("profile")
    if profiler is None:  # it is off
        yield
        return
    worker.loop.add_callback(profiler.stop)
    try:
        yield
    finally:
        worker.loop.add_callback(profiler.start)


def _look(probe: Path) -> tuple[str, bool]:
    with os.scandir(probe.parent) as entries:  # network folders cache missing files
        list(entries)
    return __version__, probe.exists()


def local_executor(jobs: int) -> MakeExecutor:
    """Return a function that makes local executors."""
    return lambda: LocalExecutor(jobs)


def dask_executor(address: str, output: Path) -> MakeExecutor:
    """Return a function that connects to a scheduler; later calls wait longer for it."""
    connect_seconds = CONNECT_SECONDS

    def make() -> CaseExecutor:
        nonlocal connect_seconds
        executor = DaskExecutor(address, output, connect_seconds)
        connect_seconds = RECONNECT_SECONDS
        return executor

    return make


def _command(manifest: str, output: str, index: str, count: int) -> str:
    words = [sys.executable, "-m", "raterscope", "batch", manifest, "-o", output, "--jobs", "1"]
    return f"{shlex.join(words)} --shard {index}/{count}"


def slurm_script(manifest: Path, output: Path, count: int) -> tuple[str, str]:
    """Return the name and text of an array script for `sbatch`."""
    pattern = str(output).replace("%", "%%")  # a single one begins a placeholder
    lines = (
        "#!/bin/bash",
        "#SBATCH --job-name=raterscope",
        f"#SBATCH --array=1-{count}",
        "#SBATCH --cpus-per-task=1",
        "#SBATCH --requeue",  # after the failure of a node
        "#SBATCH --open-mode=append",
        f'#SBATCH --output="{pattern}/slurm-%a.log"',
        "# Submit the script again after exit status 75 (temporary fault) or scancel: it continues.",
        _command(str(manifest), str(output), '"$SLURM_ARRAY_TASK_ID"', count),
    )
    return "batch.sbatch", "\n".join(lines) + "\n"


def snakemake_script(manifest: Path, output: Path, count: int) -> tuple[str, str]:
    """Return the name and text of a Snakefile."""
    # In a shell command, braces of a path are doubled, or they would be wildcards.
    paths = [str(path).replace("{", "{{").replace("}", "}}") for path in (manifest, output)]
    command = _command(paths[0], paths[1], "{wildcards.shard}", count)
    lines = (
        "# snakemake -s Snakefile --cores 8 --keep-going --rerun-incomplete   (after a kill, first --unlock)",
        "# A shard with bad input fails after its other cases are done; status.csv lists them.",
        f"workdir: {str(output)!r}",
        "",
        "rule all:",
        f'    input: expand("shards/{{shard}}.done", shard=range(1, {count} + 1))',
        "",
        "rule shard:",
        '    output: touch("shards/{shard}.done")',
        f"    shell: {command!r}",
    )
    return "Snakefile", "\n".join(lines) + "\n"


SCRIPTS: dict[str, Callable[[Path, Path, int], tuple[str, str]]] = {
    "slurm": slurm_script,
    "snakemake": snakemake_script,
}
