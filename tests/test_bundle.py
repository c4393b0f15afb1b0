"""The bundle leaves out parts of packages; what the program imports must not be among them."""

import ast
import os
import re
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SPECIFICATION = spec_from_file_location("bundle_contents", ROOT / "scripts/bundle_contents.py")
contents = module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(contents)
OTHERS = ("distributed", "zarr", "s3fs", "openslide", "pylidc", "SimpleITK", "fsspec", "argparse_manpage")
"""Packages of extras that are not in the bundle, and one that only `make packages` needs."""


IMPORT = re.compile(rb"^[ \t]*((?:from [\w.]+ )?import (?:\([^)]*\)|.+))$", re.MULTILINE)
"""A statement of import, at any place in the code; to parse all code takes fifteen times as long."""


def imports() -> set[str]:
    """Return all modules that the program imports from other packages."""
    found = set()
    for file in (ROOT / "raterscope").rglob("*.py"):
        for statement in IMPORT.findall(file.read_bytes()):
            try:
                (node,) = ast.parse(statement).body
            except SyntaxError:  # a sentence that begins with the word
                continue
            if isinstance(node, ast.Import):
                found |= {name.name for name in node.names}
            elif node.level == 0:
                found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return {name for name in found if name.split(".")[0] not in ("raterscope", *OTHERS)}


PROGRAM = """
import importlib, io, sys
for name in sys.argv[1].split(","):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:  # a name in a module, or not installed here
        assert not any(error.name == left or error.name.startswith(left + ".") for left in EXCLUDED), error
import pyarrow
from pyarrow import compute, csv, parquet
table = csv.read_csv(io.BytesIO(b"task,label\\n1,x\\n2,y\\n"))
stored = io.BytesIO()
parquet.write_table(table, stored)
assert parquet.ParquetFile(stored).read().num_rows == compute.count(table["label"]).as_py() == 2
print(*{getattr(module, "__file__", None) or "" for module in sys.modules.values()}, sep="\\n")
if sys.platform == "linux":
    print(*{line.split()[-1] for line in open("/proc/self/maps")}, sep="\\n")
"""


def test_no_module_that_the_program_imports_is_left_out_of_the_bundle():
    block = (
        f"EXCLUDED = {contents.MODULES!r}\n"
        "import importlib.abc, sys\n"
        "class Absent(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if any(name == left or name.startswith(left + '.') for left in EXCLUDED):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", block + PROGRAM, ",".join(sorted(imports()))],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
    )

    assert answer.returncode == 0, answer.stderr
    loaded = {
        line.rsplit("/site-packages/", 1)[1]
        for line in answer.stdout.splitlines()
        if "/site-packages/" in line
    }
    assert len(loaded) > 1000
    assert [file for file in sorted(loaded) if not contents.used(file)] == []


def test_the_bundle_has_the_codecs_of_tiff_and_dicom():
    imagecodecs = pytest.importorskip("imagecodecs.imagecodecs")
    import tifffile.tifffile

    from raterscope.app.formats.volumes import dicom

    sources = [
        tifffile.tifffile.__file__,
        dicom.__file__,
        *map(str, Path(dicom.__file__).parents[1].rglob("pyramids/*.py")),
    ]
    called = {
        name
        for source in sources
        for name in re.findall(
            r"(?:\bimagecodecs\.|\bimport |\")([a-z0-9]+_(?:de|en)code)\b", Path(source).read_text("utf-8")
        )
    }
    modules = {module for module, names in imagecodecs._MODULES.items() if called & set(names)}

    assert {"jpeg2k_decode", "jpegls_decode", "lzw_decode", "zstd_encode"} <= called
    assert modules - {""} - set(contents.CODECS) - {"_jetraw"} == set()  # Jetraw is not in the packages


def test_files_and_libraries_of_unused_parts_are_left_out(tmp_path):
    assert contents.used("imagecodecs/_jpeg2k.abi3.so")
    assert not contents.used("imagecodecs/_avif.abi3.so")
    assert not contents.used("PySide6/Qt/plugins/tls/libqopensslbackend.so")
    assert contents.used("PySide6/Qt/plugins/platforms/libqxcb.so")
    assert not contents.used("pyarrow/_dataset_parquet.cpython-311-x86_64-linux-gnu.so")
    executable = shutil.which("ls")
    if executable is None or shutil.which("ldd") is None:
        pytest.skip("no program whose libraries could be listed")
    entries = [
        ("module.so", executable, "EXTENSION"),
        ("libc.so.6", executable, "BINARY"),
        ("libunused.so.1", executable, "BINARY"),
        ("data.txt", executable, "DATA"),
    ]

    assert [entry[0] for entry in contents.needed(entries)] == ["module.so", "libc.so.6", "data.txt"]
