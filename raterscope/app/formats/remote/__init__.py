"""Files at addresses, such as ``https://host/mask.nii.gz`` or ``s3://bucket/case1/*.nii.gz``, and OME-Zarr.

Only a command with an address opens a connection. A file is downloaded once, into a folder that you keep, and
again only if the remote file has changed. An OME-Zarr image, local or not, is read chunk by chunk into a
NIfTI file. Both need ``raterscope[remote]``.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from raterscope.algorithms.progress import Cancelled, Watch, silent, steps_of
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks.naming import strip_suffixes
from raterscope.app.formats.output_files import draft_for, write_bytes

MISSING = "reading from addresses and of OME-Zarr needs fsspec; `pip install raterscope[remote]`"
LARGEST = 1 << 34
"""Maximum size of a downloaded file, bytes."""

_MAX_FILES = 10_000
_BLOCK = 1 << 22
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
_VERSION = ("size", "ETag", "etag", "Last-Modified", "LastModified", "mtime", "created", "Content-MD5")


def is_address(word: str) -> bool:
    """Return whether a text is the address of remote files."""
    return _SCHEME.match(word) is not None


def is_zarr(path: Path) -> bool:
    """Return whether a path is a local OME-Zarr image."""
    return path.is_dir() and any((path / name).is_file() for name in (".zattrs", "zarr.json"))


def fetch(address: str, folder: Path, watch: Watch = silent) -> list[Path]:
    """Download the files of an address, unless the local copies are current; return them sorted by name.

    `address`: address of a file, of files by a pattern, or of an OME-Zarr image; or the path of a local
        OME-Zarr image.
    `folder`: folder for the files.
    `watch`: called with each block.
    Raises `InputError` if there is no such file, it is too large, or a library is missing.
    Raises `OSError` if the connection fails; another attempt may succeed.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise InputError(MISSING) from error
    if "::" in address:
        raise InputError(f"{_shown(address)}: chained addresses are not read")
    with _connection_errors(address):
        system, path = url_to_fs(address)
        if any(step.endswith(".zarr") for step in path.split("/")) or not is_address(address):
            return [_fetch_zarr(system, path, address, folder, watch)]
        names = sorted(system.glob(path)) if "*" in path else [path]
        if not names:
            raise InputError(f"{_shown(address)}: no file matches")
        if len(names) > _MAX_FILES:
            raise InputError(f"{_shown(address)}: more than {_MAX_FILES:,} files match")
        return [_fetch_file(system, name, folder, step) for name, step in steps_of(watch, names)]


def fetch_all(addresses: Sequence[str], folder: Path, watch: Watch = silent) -> list[Path]:
    """Download the files of several addresses; see `fetch`."""
    return [path for address, step in steps_of(watch, addresses) for path in fetch(address, folder, step)]


def _fetch_file(system: Any, path: str, folder: Path, watch: Watch) -> Path:
    info = system.info(path)
    if info.get("type") == "directory":
        raise InputError(f"{_shown(path)}: is a folder; write a pattern, such as {_shown(path)}/*.nii.gz")
    size = info.get("size")
    if size is not None:
        _check_size(path, size, folder)
    target = _claim(folder, _local_path(folder, path), path)
    if _is_current(folder, target, path, [info]):
        return target
    written, draft = 0, draft_for(target)
    try:
        with system.open(path, "rb", block_size=_BLOCK) as source, draft.open("wb") as file:
            while block := source.read(_BLOCK):
                written += len(block)
                _check_size(path, written, folder)
                file.write(block)
                watch(written / max(size or written, written), f"Downloading {target.name}")
        if size is not None and written != size:
            raise OSError(f"{written:,} bytes of {size:,} arrived")
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    _note_version(folder, path, [info])
    return target


def _fetch_zarr(system: Any, path: str, address: str, folder: Path, watch: Watch) -> Path:
    from raterscope.app.formats.remote.ome_zarr import convert

    if "http" in system.protocol:  # no listing
        names = [f"{path.rstrip('/')}/{name}" for name in (".zattrs", "zarr.json")]
        version = [system.info(name) for name in names if system.exists(name)]
    else:
        version = list(system.find(path, detail=True).values())
    if not version:
        raise InputError(f"{_shown(address)}: there is no OME-Zarr image")
    target = _local_path(folder, path)
    name = f"{target.name.removesuffix('.zarr').removesuffix('.ome')}.nii.gz"
    target = _claim(folder, target.with_name(name), path)
    if not _is_current(folder, target, path, version):
        convert(address, target, watch)
        _note_version(folder, path, version)
    return target


def _check_size(path: str, size: int, folder: Path) -> None:
    if size > LARGEST:
        raise InputError(f"{_shown(path)}: is larger than {LARGEST >> 30} GB")
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if size > shutil.disk_usage(existing).free:
        raise OSError("not enough room on the disk")


def _local_path(folder: Path, path: str) -> Path:
    """Return the local path of a file: folders as in its address, because their names may mean annotators."""
    url = urlsplit(path)
    parts = [url.scheme, url.netloc.rpartition("@")[2], url.path] if is_address(path) else [path]
    names = [part for whole in parts for part in whole.split("/") if part not in ("", ".")]
    if not names or path.endswith("/"):
        raise InputError(f"{_shown(path)}: names no file")
    return folder.joinpath(*map(_file_name, names))


def _claim(folder: Path, target: Path, path: str) -> Path:
    """Return a file name used only for this address: `ct.zarr` and `ct.ome.zarr` both need `ct.nii.gz`."""
    stem, owner = strip_suffixes(target), _version_file(folder, path).name
    for number in count(1):
        claimed = (
            target if number == 1 else target.with_name(target.name.replace(stem, f"{stem}-{number}", 1))
        )
        note = _version_file(folder, str(claimed.relative_to(folder))).with_suffix(".owner")
        note.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), note.open("x") as file:
            file.write(owner)
        if note.read_text() == owner:
            return claimed
    raise AssertionError


def _file_name(name: str) -> str:
    safe = re.sub(r"[^\w.+-]|^\.", "-", name)[-100:]
    return safe if safe == name else f"{hashlib.sha256(name.encode()).hexdigest()[:8]}-{safe}"


def _version_file(folder: Path, path: str) -> Path:
    return folder / ".versions" / hashlib.sha256(path.encode()).hexdigest()[:32]


def _version(infos: Sequence[dict[str, Any]]) -> str:
    return json.dumps([[str(info.get(name)) for name in _VERSION] for info in infos])


def _is_current(folder: Path, target: Path, path: str, infos: Sequence[dict[str, Any]]) -> bool:
    """Return whether the local file has this version; otherwise prepare its folder."""
    note = _version_file(folder, path)
    if target.exists() and note.exists() and note.read_text() == _version(infos):
        return True
    target.parent.mkdir(parents=True, exist_ok=True)
    note.parent.mkdir(exist_ok=True)
    note.unlink(missing_ok=True)
    return False


def _note_version(folder: Path, path: str, infos: Sequence[dict[str, Any]]) -> None:
    write_bytes(_version_file(folder, path), _version(infos).encode())


def _shown(address: str) -> str:
    """Return an address without passwords and signatures."""
    if not is_address(address):
        return plain(address, 200)
    url = urlsplit(address)
    return plain(f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}", 200)


@contextmanager
def _connection_errors(address: str) -> Iterator[None]:
    """Convert the libraries' errors, distinguishing bad input from a bad connection."""
    try:
        yield
    except (InputError, Cancelled, MemoryError):
        raise
    except FileNotFoundError as error:
        if isinstance(error.__cause__, OSError) or getattr(error.__cause__, "status", 0) >= 500:
            raise OSError(f"{_shown(address)}: {error.__cause__}") from error
        raise InputError(f"{_shown(address)}: there is no such file") from error
    except (ImportError, ValueError) as error:  # the library of a scheme is missing, the scheme unknown
        raise InputError(f"{_shown(address)}: {error}") from error
    except Exception as error:
        raise OSError(f"{_shown(address)}: {type(error).__name__}: {error}") from error
