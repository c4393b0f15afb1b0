"""Compiled kernels: the folder in which they are stored, and their compilation before they are needed.

The table ``resources/kernels.json`` lists the kernels of each kind and algorithm with the types of their
arguments (`scripts/record_kernels.py` writes it). They are compiled in worker processes, because the compiler
holds the interpreter's lock: all of them by `prepare`, and those of one command by `compiling_beside`, while
the command runs. All processes share the folder of compiled kernels.
"""

from __future__ import annotations

import json
import os
import platform
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module, resources, util
from itertools import chain
from pathlib import Path
from threading import Thread

import raterscope
from raterscope.algorithms.progress import Watch
from raterscope.app.workers import collect_garbage_rarely, in_processes, processors

_VARIABLE = "NUMBA_CACHE_DIR"
_CLAIMS = "RATERSCOPE_CLAIMED_KERNELS"  # as `CLAIMS` of `algorithms.compiling`, which loads numba
_STAMP = "raterscope-prepared.json"
_MAX_PROCESSES = 3
_NICENESS = 10
_PREPARING = "Preparing the algorithms for this computer (once after installation)"

Kernel = tuple[str, str, str]
"""Module, name, and the types of the arguments."""


def choose_folder() -> None:
    """Set a private temporary folder for numba, in this process and all child processes.

    To be called before numba is loaded. Nothing is set where the installation or the cache folder can be
    written.
    """
    if _VARIABLE in os.environ or os.access(Path(raterscope.__file__).parent, os.W_OK):
        return
    if not _can_be_written(_user_folder()):
        folder = _private_folder()
        if folder is not None:
            os.environ[_VARIABLE] = str(folder)


def _user_folder() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("numba")


def _can_be_written(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _private_folder() -> Path | None:
    """Make the folder; None if another user can write into it, because code in it is executed."""
    user = os.getuid() if hasattr(os, "getuid") else None
    try:
        folder = Path(tempfile.gettempdir()) / f"raterscope-compiled-{user or 0}"
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    own = user is None or (status.st_uid == user and not status.st_mode & 0o077)
    return folder if stat.S_ISDIR(status.st_mode) and own else None


def is_prepared() -> bool:
    """Return whether `prepare` compiled all kernels of this installation."""
    return "" in _stamped()


def prepare(watch: Watch, jobs: int | None = None, *, low_priority: bool = False) -> tuple[int, int]:
    """Compile the missing kernels, default algorithms first; return how many are compiled, and the total.

    `watch`: called every 50 ms; its exceptions end the worker processes at once.
    `jobs`: number of worker processes; by default one for each processor.
    `low_priority`: give the workers a low priority.
    Kernels whose compilation fails are compiled when they are called.
    """
    table = _table()
    default = _interleaved([algorithms.get("", []) for algorithms in table.values()])
    kernels = list(dict.fromkeys([*default, *_kernels(table)]))
    tasks = {str(index): (*kernel, low_priority) for index, kernel in enumerate(kernels)}

    def tick(done: int) -> None:
        watch(done / len(tasks), f"{_PREPARING}: {done} of {len(tasks)}")

    answers = in_processes(_compile, tasks, jobs or processors(), tick)
    done = sum(answers.values())
    if done == len(kernels):
        _stamp([""])
    return done, len(kernels)


def kinds_of(algorithm: str) -> list[str]:
    """Return the kinds that have an algorithm of this name."""
    return [kind for kind, algorithms in _table().items() if algorithm in algorithms]


@contextmanager
def compiling_beside(kind: str, algorithm: str = "") -> Iterator[None]:
    """Compile the kernels of an algorithm in helper processes while the command runs, the last ones first.

    Each kernel is compiled once: the command waits for kernels that a helper has begun, helpers take another
    one. No helper is started if all kernels are known to be compiled, or on a single processor. The compiler
    itself, the kernels' modules and SciPy are loaded in another thread, while the command reads its files.

    `algorithm`: its name; empty for the default.
    """
    name = f"{kind} {algorithm}"
    helpers = min(processors() - 1, _MAX_PROCESSES)
    has_kernels = algorithm in _table().get(kind, {})
    if has_kernels:
        modules = dict.fromkeys(module for module, *_ in _table()[kind][algorithm])
        Thread(target=_load, args=(modules,)).start()
    if helpers < 1 or not has_kernels or {"", name} & _stamped():
        yield
        return
    words = [sys.executable, "-m", "raterscope.app.compiled", kind, algorithm, str(helpers)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as claims:
        os.environ[_CLAIMS] = claims
        running = [
            subprocess.Popen([*words, str(number)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for number in range(helpers)
        ]
        try:
            yield
            _stamp([name])
        finally:
            os.environ.pop(_CLAIMS, None)
            for helper in running:
                helper.kill()
                helper.wait()


def _load(modules: Iterable[str]) -> None:
    from raterscope.algorithms.compiling import load_compiler

    load_compiler()
    for module in (*modules, "scipy.special"):  # of the first interval
        import_module(module)


def _compile(module: str, name: str, signature: str, low_priority: bool, waits: bool = True) -> bool:
    """Compile a kernel, or load it; False if that fails, as the kernel is then compiled when it is called.

    `waits`: as for `compile_signature`.
    """
    if low_priority:
        _lower_priority()
    try:
        from raterscope.algorithms.compiling import compile_signature

        compile_signature(getattr(import_module(module), name), signature, waits=waits)
    except Exception:
        return False
    return True


@cache
def _lower_priority() -> None:
    if hasattr(os, "nice"):
        with suppress(OSError):
            os.nice(_NICENESS)


@cache
def _table() -> Mapping[str, Mapping[str, Sequence[Kernel]]]:
    text = (resources.files("raterscope.resources") / "kernels.json").read_text(encoding="utf-8")
    return {
        kind: {
            algorithm: [(module, name, signature) for module, name, signature in kernels]
            for algorithm, kernels in algorithms.items()
        }
        for kind, algorithms in json.loads(text).items()
    }


def _kernels(table: Mapping[str, Mapping[str, Sequence[Kernel]]]) -> list[Kernel]:
    return [kernel for algorithms in table.values() for kernels in algorithms.values() for kernel in kernels]


def _interleaved(lists: Sequence[Sequence[Kernel]]) -> list[Kernel]:
    """Merge lists by taking one of each in turn."""
    longest = max(map(len, lists), default=0)
    return [kernels[index] for index in range(longest) for kernels in lists if index < len(kernels)]


def _stamp_file() -> Path:
    package = Path(raterscope.__file__).parent
    folder = os.environ.get(_VARIABLE)
    if folder is None:
        folder = str(package / "__pycache__") if os.access(package, os.W_OK) else str(_user_folder())
    return Path(folder) / _STAMP


def _stamped() -> frozenset[str]:
    """Return the algorithms compiled for the present code, interpreter and compiler; "" stands for all."""
    try:
        stored = json.loads(_stamp_file().read_text(encoding="utf-8"))
        return frozenset(map(str, stored[_fingerprint()]))
    except (OSError, ValueError, KeyError, TypeError):
        return frozenset()


def _stamp(names: Sequence[str]) -> None:
    """Record the compiled algorithms; without the record they are only searched again."""
    file = _stamp_file()
    text = json.dumps({_fingerprint(): sorted({*_stamped(), *names})})
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f"{file.name}.{os.getpid()}")
        draft.write_text(text, encoding="utf-8")
        draft.replace(file)


@cache
def _fingerprint() -> str:
    """Identify the sources of the kernels, numba, the interpreter and the processor."""
    package = Path(raterscope.__file__).parent
    modules = {
        module
        for algorithms in _table().values()
        for kernels in algorithms.values()
        for module, *_ in kernels
    }
    compiler = util.find_spec("numba")
    files = [package.parent / f"{module.replace('.', '/')}.py" for module in sorted(modules)]
    files.append(package / "algorithms" / "compiling.py")
    if compiler is not None and compiler.origin is not None:
        files.append(Path(compiler.origin))
    times = [file.stat().st_mtime_ns if file.exists() else 0 for file in files]
    return f"{hash(tuple(times)):x} {sys.version_info[:3]} {platform.machine()} {platform.node()}"


def _help(kind: str, algorithm: str, helpers: int, number: int) -> None:
    """Compile every n-th kernel of an algorithm, in the order of the table, while the command runs."""
    collect_garbage_rarely()
    kernels, command = _table().get(kind, {}).get(algorithm, ()), os.getppid()
    claimed: list[Kernel] = []  # by the command or another helper; with these may be kernels that call them
    for kernel in chain(list(kernels)[number::helpers], claimed):
        if os.getppid() != command:  # it was killed
            return
        if not _compile(*kernel, low_priority=False, waits=kernel in claimed):
            claimed += [] if kernel in claimed else [kernel]


if __name__ == "__main__":
    _help(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
