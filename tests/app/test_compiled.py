"""Kernels where nothing that is compiled can be kept in its usual places."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

READ_ONLY = """
import os, sys, tempfile
from pathlib import Path
from numba.core import caching
import raterscope
caching.CacheImpl._locator_classes = [caching.UserProvidedCacheLocator]  # none of the usual places
tempfile.tempdir = sys.argv[1]
access, installed = os.access, Path(raterscope.__file__).parent
os.access = lambda path, mode: Path(path) != installed and access(path, mode)

from raterscope.app.compiled import choose_folder
choose_folder()
caching.config.CACHE_DIR = os.environ.get("NUMBA_CACHE_DIR", "")  # which numba reads when it is loaded
from raterscope.algorithms.compiling import compiled

def double(x):
    return 2 * x

def half(x):
    return x / 2

print(compiled()(double)(21), compiled()(half)(42))
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, where nobody can make a folder")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "temporary").mkdir()
    return tmp_path / "temporary"


def computed(folder: Path) -> subprocess.CompletedProcess[str]:
    script = folder.parent / "script.py"  # numba asks for the source's file
    script.write_text(READ_ONLY)
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(Path(__file__).parents[2]), "XDG_CACHE_HOME": "/proc/nowhere"}
    words = [sys.executable, str(script), str(folder)]
    return subprocess.run(words, capture_output=True, text=True, env=environment)


def test_a_read_only_installation_keeps_what_is_compiled_in_a_temporary_folder(folder: Path) -> None:
    done = computed(folder)
    assert (done.stdout, done.stderr) == ("42 21.0\n", "")
    (kept,) = folder.iterdir()
    assert len(list(kept.rglob("*.nbc"))) == 2
    assert kept.stat().st_mode & 0o077 == 0


def test_without_any_folder_it_compiles_at_each_start_and_says_so_once(folder: Path) -> None:
    folder.rmdir()
    done = computed(folder)
    assert done.stdout == "42 21.0\n"
    assert done.stderr.count("\n") == 1
    assert "NUMBA_CACHE_DIR" in done.stderr


def test_a_folder_that_others_can_write_is_not_run_from(folder: Path) -> None:
    foreign = folder / f"raterscope-compiled-{os.getuid()}"
    foreign.mkdir()
    foreign.chmod(0o777)
    done = computed(folder)
    assert done.stdout == "42 21.0\n"
    assert "NUMBA_CACHE_DIR" in done.stderr
    assert list(foreign.iterdir()) == []
