"""Kernels where nothing that is compiled can be kept in its usual places."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

READ_ONLY = """
import sys, tempfile
from numba.core import caching
caching.CacheImpl._locator_classes = [caching.UserProvidedCacheLocator]  # none of the usual places
tempfile.tempdir = sys.argv[1]
from raterscope.algorithms.compiling import compiled

def double(x):
    return 2 * x

def half(x):
    return x / 2

print(compiled()(double)(21), compiled()(half)(42))
"""


def fused_with_temporary_files_in(folder: Path) -> subprocess.CompletedProcess[str]:
    script = folder.parent / "script.py"  # numba asks for the source's file
    script.write_text(READ_ONLY)
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    words = [sys.executable, str(script), str(folder)]
    return subprocess.run(words, capture_output=True, text=True, env=environment)


def test_a_read_only_installation_keeps_what_is_compiled_in_a_temporary_folder(tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    done = fused_with_temporary_files_in(folder)
    assert (done.stdout, done.stderr) == ("42 21.0\n", "")
    (kept,) = folder.iterdir()
    assert len(list(kept.rglob("*.nbc"))) == 2
    if os.name != "nt":
        assert kept.stat().st_mode & 0o077 == 0


def test_without_any_folder_it_compiles_at_each_start_and_says_so_once(tmp_path: Path) -> None:
    done = fused_with_temporary_files_in(tmp_path / "nowhere")
    assert done.stdout == "42 21.0\n"
    assert done.stderr.count("\n") == 1
    assert "NUMBA_CACHE_DIR" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX permissions")
def test_a_folder_that_others_can_write_is_not_run_from(tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    foreign = tmp_path / "temporary" / f"raterscope-compiled-{os.getuid()}"
    foreign.mkdir()
    foreign.chmod(0o777)
    done = fused_with_temporary_files_in(tmp_path / "temporary")
    assert done.stdout == "42 21.0\n"
    assert "NUMBA_CACHE_DIR" in done.stderr
    assert list(foreign.iterdir()) == []
