"""Parts of installed packages that the bundled program never loads; tests/test_bundle.py checks it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path, PurePath

Entry = tuple[str, str, str]
"""Place in the bundle, file, and kind of file, as PyInstaller lists them."""

MODULES = (
    "IPython", "PIL._avif", "PySide6.QtDBus", "PySide6.QtNetwork", "PySide6.QtQml", "PySide6.QtQuick",
    "cryptography", "markdown_it", "matplotlib", "pkg_resources", "pyarrow._acero", "pyarrow._azurefs",
    "pyarrow._dataset", "pyarrow._dataset_orc", "pyarrow._dataset_parquet", "pyarrow._flight",
    "pyarrow._dataset_parquet_encryption", "pyarrow._gcsfs", "pyarrow._hdfs", "pyarrow._orc",
    "pyarrow._parquet_encryption", "pyarrow._s3fs", "pyarrow._substrait", "pygments", "pytest", "rich",
    "setuptools", "tkinter",
)  # fmt: skip
"""Modules that packages import only if they are there, or that no part of the program imports."""

FILES = (
    "PySide6/Qt/translations", "plugins/egldeviceintegrations", "plugins/generic",
    "plugins/networkinformation",
    "plugins/tls", "platforms/libqeglfs", "platforms/libqlinuxfb", "platforms/libqminimal",
    "platforms/libqvkkhrdisplay", "platforms/libqvnc", "platformthemes/libqgtk3", "pyarrow/include",
    "pyarrow/src", "pyarrow/tests", "pydicom/data/test_files", "pynetdicom/tests",
)  # fmt: skip
"""Beginnings of files after any folder: Qt's platforms without a window system, its GTK theme (the desktop's
portal has the same file dialogs), headers and test data."""

CODECS = (
    "_ccitt", "_deflate", "_imagecodecs", "_imcd", "_jpeg2k", "_jpeg8", "_jpegls", "_jpegxl", "_jpegxr",
    "_lerc", "_ljpeg", "_lzma", "_png", "_shared", "_shared_cython", "_webp", "_zlib", "_zstd", "imagecodecs",
)  # fmt: skip
"""Modules of imagecodecs that TIFF and DICOM files use; it loads each when it is first called."""


def used(place: str) -> bool:
    """Return whether the program may load this file of the bundle."""
    name = PurePath(place).as_posix()
    codec = re.fullmatch(r"imagecodecs/(\w+)(\.abi3|\.cpython-\w+-[\w-]+)?\.\w+", name)
    if codec and codec[1] not in (*CODECS, "__init__", "__main__"):
        return False
    if any(re.match(f"{module.replace('.', '/')}[./]", name) for module in MODULES):
        return False
    return not any(f"/{part}" in f"/{name}" for part in FILES)


def needed(entries: Iterable[Entry]) -> list[Entry]:
    """Return the used files, without the shared libraries that only unused files load."""
    kept = [entry for entry in entries if used(entry[0])]
    loaded: set[str] = set()
    for place, file, kind in kept:
        if not _is_library(place, kind):
            loaded |= _libraries_of(file) if kind in ("BINARY", "EXTENSION") else set()
    return [
        entry for entry in kept if not _is_library(entry[0], entry[2]) or PurePath(entry[0]).name in loaded
    ]


def strip(folder: Path) -> None:
    """Remove the symbols for debuggers, an eighth of the bundle, from libraries that load without them.

    Those of NumPy's and SciPy's linear algebra do not: their wheels changed them so that `strip` breaks them.
    """
    if shutil.which("strip") is None:
        return
    for library in (path for path in folder.rglob("*.so*") if path.is_file() and not path.is_symlink()):
        stripped = library.with_name(f"{library.name}.stripped")
        subprocess.run(["strip", "-o", stripped, library], capture_output=True, check=False)
        if (
            stripped.exists()
            and subprocess.run(["ldd", stripped], capture_output=True, check=False).returncode == 0
        ):
            stripped.replace(library)
        stripped.unlink(missing_ok=True)


def _is_library(place: str, kind: str) -> bool:
    path = PurePath(place)
    loaded_by_name = path.name.startswith("libpython") or {"plugins", "llvmlite"} & set(path.parts)
    return (
        kind in ("BINARY", "SYMLINK")
        and re.match(r"lib[^.].*\.so", path.name) is not None
        and not loaded_by_name
    )


def _libraries_of(file: str) -> set[str]:
    listing = subprocess.run(["ldd", file], capture_output=True, text=True, check=False).stdout
    return {line.split()[0].rsplit("/", 1)[-1] for line in listing.splitlines() if line.split()}
