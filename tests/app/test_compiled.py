"""Compilation in advance, and the folder of compiled kernels where the usual ones cannot be written."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import signature
from pathlib import Path
from threading import Timer

import numpy as np
import pytest
from numba.core.errors import TypingError

from raterscope.algorithms.compiling import (
    CLAIMS,
    ClaimedError,
    compile_signature,
    parse_types,
    signature_text,
)
from raterscope.algorithms.compiling import compiled as compiled_kernel
from raterscope.algorithms.progress import Cancelled
from raterscope.app import compiled

READ_ONLY = """
import os, sys, tempfile
from pathlib import Path
from numba.core import caching
import raterscope
caching.CacheImpl._locator_classes = [caching.UserProvidedCacheLocator]  # none of the usual places
access, installed = os.access, Path(raterscope.__file__).parent
os.access = lambda path, mode: Path(path) != installed and access(path, mode)

from raterscope.app.compiled import choose_folder
from raterscope.algorithms import compiling

def double(x):
    return 2 * x

def half(x):
    return x / 2

for folder in sys.argv[1:]:
    tempfile.tempdir = folder
    os.environ.pop("NUMBA_CACHE_DIR", None)
    choose_folder()
    caching.config.CACHE_DIR = os.environ.get("NUMBA_CACHE_DIR", "")  # which numba reads when it is loaded
    compiling._warn_without_cache.cache_clear()
    print(folder, compiling.compiled()(double)(21), compiling.compiled()(half)(42))
    print("after", folder, file=sys.stderr, flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, where no folder can be made")
def test_a_read_only_installation_keeps_what_is_compiled_in_a_private_temporary_folder(
    tmp_path: Path,
) -> None:
    """It warns once where there is none, and takes none that others can write."""
    private, absent, foreign = (tmp_path / name for name in ("private", "absent", "foreign"))
    private.mkdir()
    taken = foreign / f"raterscope-compiled-{os.getuid()}"
    taken.mkdir(parents=True)
    taken.chmod(0o777)
    script = tmp_path / "script.py"  # numba asks for the source's file
    script.write_text(READ_ONLY)
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(Path(__file__).parents[2]), "XDG_CACHE_HOME": "/proc/nowhere"}
    words = [sys.executable, str(script), *map(str, (private, absent, foreign))]
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert done.stdout == "".join(f"{folder} 42 21.0\n" for folder in (private, absent, foreign)), done.stderr
    with_private, without, with_foreign, rest = re.split(r"after .*\n", done.stderr)
    assert with_private == rest == ""
    assert without.count("\n") == with_foreign.count("\n") == 1
    assert "NUMBA_CACHE_DIR" in without
    assert "NUMBA_CACHE_DIR" in with_foreign
    (kept,) = private.iterdir()
    assert len(list(kept.rglob("*.nbc"))) == 2
    assert kept.stat().st_mode & 0o077 == 0
    assert not absent.exists()
    assert list(taken.iterdir()) == []


def test_every_recorded_kernel_is_there_with_types_that_are_read() -> None:
    """The table is read as it was written; `scripts/record_kernels.py` writes it again."""
    for module, name, text in dict.fromkeys(compiled._kernels(compiled._table())):
        kernel = getattr(import_module(module), name)
        types = parse_types(kernel, text)
        assert signature_text(kernel, types) == text, (module, name)
        assert len(types) == len(signature(kernel.py_func).parameters), (module, name)


@pytest.fixture
def one_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A table of the smallest kernel alone, and an empty folder for what is compiled."""
    (kernel,) = [k for k in dict.fromkeys(compiled._kernels(compiled._table())) if k[1] == "count_votes"][:1]
    monkeypatch.setattr(compiled, "_table", lambda: {"labels": {"": [kernel], "pooled": [kernel]}})
    monkeypatch.setattr(compiled, "processors", lambda: 2)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    fingerprint = compiled._fingerprint
    fingerprint.cache_clear()
    yield tmp_path
    fingerprint.cache_clear()


def test_what_is_prepared_is_compiled_in_the_folder_and_noted(one_kernel: Path) -> None:
    reported: list[float] = []
    assert not compiled.is_prepared()
    assert compiled.prepare(lambda fraction, _words: reported.append(fraction), jobs=1) == (1, 1)
    assert compiled.is_prepared()
    assert reported
    assert list(one_kernel.rglob("*count_votes*.nbc"))


def test_a_kernel_that_does_not_compile_is_counted_and_nothing_is_noted(
    one_kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((module, name, _),) = set(compiled._kernels(compiled._table()))
    monkeypatch.setattr(compiled, "_table", lambda: {"labels": {"": [(module, name, "float64")]}})
    assert compiled.prepare(lambda _fraction, _words: None, jobs=1) == (0, 1)
    assert not compiled.is_prepared()


def test_preparing_is_cancelled_at_once_and_not_noted(one_kernel: Path) -> None:
    def cancel(_fraction: float, _words: str) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        compiled.prepare(cancel, jobs=1)
    assert not compiled.is_prepared()


def test_a_command_starts_helpers_until_its_kernels_are_compiled(
    one_kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    start = subprocess.Popen

    def record(words: list[str], **options: object) -> "subprocess.Popen[bytes]":
        started.append(words[-4:])
        return start([sys.executable, "-c", "import time; time.sleep(60)"], **options)  # type: ignore[call-overload]

    monkeypatch.setattr(compiled.subprocess, "Popen", record)
    with compiled.compiling_beside("labels", "unknown"):
        assert started == []
    with pytest.raises(ZeroDivisionError), compiled.compiling_beside("labels"):
        raise ZeroDivisionError
    with compiled.compiling_beside("labels"):
        assert started == [["labels", "", "1", "0"]] * 2  # the one that failed is not noted
    with compiled.compiling_beside("labels"):
        pass
    assert len(started) == 2


def test_a_note_of_other_sources_does_not_count(one_kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled._stamp(["", "labels pooled"])
    assert compiled.is_prepared()
    monkeypatch.setattr(compiled, "_fingerprint", lambda: "other")
    assert not compiled.is_prepared()


RENAMED = """

from typing import NamedTuple
from raterscope.algorithms.compiling import compiled

class {name}(NamedTuple):
    first: float
    second: float

@compiled()
def add(pair):
    return pair.first + pair.second

def call():
    return add({name}(1.0, 2.0))
"""


@pytest.mark.parametrize("damage", ["renamed type", "truncated index", "truncated code"])
def test_stored_code_that_cannot_be_read_is_compiled_again(tmp_path: Path, monkeypatch, damage: str):
    """As after an update that renames an argument's type, or a crash while code was stored."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    name = f"kernels_{damage.replace(' ', '_')}"
    module = tmp_path / f"{name}.py"
    module.write_text(RENAMED.format(name="Pair"))
    assert import_module(name).call() == 3.0
    del sys.modules[name]
    if damage == "renamed type":
        module.write_text(RENAMED.format(name="Both"))
    else:
        (stored,) = tmp_path.rglob("*.nbi" if damage == "truncated index" else "*.nbc")
        stored.write_bytes(stored.read_bytes()[:-20])
    try:
        assert import_module(name).call() == 3.0
    finally:
        sys.modules.pop(name, None)


TWO_TYPES = """
from raterscope.algorithms.compiling import compiled

@compiled()
def half(values):
    return values[0] / 2
"""


def test_code_is_run_for_its_own_types_only(tmp_path: Path, monkeypatch):
    """As after two processes that compile a kernel for different types at the same time."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "kernels_of_two_types.py").write_text(TWO_TYPES)
    whole, single = np.array([3], dtype=np.int64), np.array([3.0], dtype=np.float32)
    try:
        for values in (whole, single):
            assert import_module("kernels_of_two_types").half(values) == 1.5
            del sys.modules["kernels_of_two_types"]
        first, second = tmp_path.rglob("*.nbc")
        one, other = first.read_bytes(), second.read_bytes()
        first.write_bytes(other)
        second.write_bytes(one)
        half = import_module("kernels_of_two_types").half
        assert [half(whole), half(single)] == [1.5, 1.5]
    finally:
        sys.modules.pop("kernels_of_two_types", None)


def test_files_of_code_do_not_depend_on_what_else_was_stored(tmp_path: Path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "kernels_of_two_types.py").write_text(TWO_TYPES)
    single = np.array([3.0], dtype=np.float32)
    named = []
    try:
        for earlier in ((), (np.array([3], dtype=np.int64),)):
            half = import_module("kernels_of_two_types").half
            for values in earlier:
                half(values)
            before = {file.name for file in tmp_path.rglob("*.nbc")}
            half(single)
            named.append({file.name for file in tmp_path.rglob("*.nbc")} - before)
            for file in tmp_path.rglob("*.nb?"):
                file.unlink()
            del sys.modules["kernels_of_two_types"]
    finally:
        sys.modules.pop("kernels_of_two_types", None)
    assert len(named[0]) == 1
    assert named[0] == named[1]


def test_what_another_process_compiles_is_left_to_it_or_awaited(tmp_path: Path, monkeypatch):
    claims, module = tmp_path / "claims", tmp_path / "kernels_of_two.py"
    claims.mkdir()
    monkeypatch.setenv(CLAIMS, str(claims))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module.write_text(RENAMED.format(name="Pair"))
    assert import_module(module.stem).call() == 3.0
    assert len(list(claims.iterdir())) == 1
    stored = {file: file.read_bytes() for file in tmp_path.rglob("*.nb?")}
    for file in stored:
        file.unlink()  # as before the other process has stored it
    del sys.modules[module.stem]
    try:
        kernels = import_module(module.stem)
        with pytest.raises(ClaimedError):
            compile_signature(kernels.add, "Pair<float64|float64>", waits=False)
        storing = Timer(0.2, lambda: [file.write_bytes(code) for file, code in stored.items()])
        storing.start()
        assert kernels.call() == 3.0
        storing.join()
        assert sum(kernels.add.stats.cache_hits.values()) == 1
        assert not kernels.add.stats.cache_misses
    finally:
        sys.modules.pop(module.stem, None)


def test_a_kernel_that_fails_is_free_for_others(tmp_path: Path, monkeypatch):
    monkeypatch.setenv(CLAIMS, str(tmp_path))

    @compiled_kernel()
    def first(pair):
        return pair.first

    with pytest.raises(TypingError):
        compile_signature(first, "float64")
    assert not list(tmp_path.iterdir())


LOCKS = """
import sys, threading, time
from numba.core.cpu import CPUContext
initialize, begun = CPUContext.init, threading.Event()

def initialize_slowly(context):  # it holds the lock of the context, and takes that of the compiler
    begun.set()
    time.sleep(0.2)
    initialize(context)

CPUContext.init = initialize_slowly
from raterscope.algorithms.compiling import compiled, load_compiler

def double(x):
    return 2 * x

first = threading.Thread(target=lambda: compiled()(double), daemon=True)
first.start()
begun.wait()
second = threading.Thread(target=load_compiler, daemon=True)
second.start()
for thread in (first, second):
    thread.join(30)
sys.exit(first.is_alive() or second.is_alive())
"""


def test_the_compiler_is_loaded_while_another_thread_makes_the_first_kernel(tmp_path: Path) -> None:
    """Each took a lock that the other one waited for, and the command stopped for ever."""
    script = tmp_path / "script.py"
    script.write_text(LOCKS)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    assert subprocess.run([sys.executable, str(script)], env=environment).returncode == 0


def test_the_compiler_is_loaded_without_linear_algebra() -> None:
    """numba searched SciPy for products of matrices, a fifth of the time of loading it; no kernel has any."""
    script = "import sys; from raterscope.algorithms.compiling import load_compiler; load_compiler()"
    script += "; sys.exit('scipy.linalg' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    assert subprocess.run([sys.executable, "-c", script], env=environment).returncode == 0
