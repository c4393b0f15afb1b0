"""Locations of a study's images: names, paths and digests."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.formats.records import refuse_name, refuse_special
from raterscope.app.study.records import ImageEntry

__all__ = ["Names", "digest_of_file", "digest_of_files", "has_changed", "locate", "size_of", "stored_path"]

_BLOCK = 4 << 20
_UNSURE = 3_000_000_000
"""Nanoseconds within which a file may be written twice at what its disk says is the same time."""
_MOST_DIGESTS = 20_000
_DIGESTS: dict[tuple[int, ...], str] = {}


class Names:
    """Finds the image that a table means.

    By its full name, else without folders and capitals, else without the suffix too.
    """

    def __init__(self, entries: Iterable[ImageEntry]) -> None:
        self._exact: dict[str, ImageEntry] = {}
        self._loose: dict[str, ImageEntry | None] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: ImageEntry) -> None:
        """Let an image be found."""
        self._exact[entry.name] = entry
        for key in {_base(entry.name), _stem(entry.name)}:
            other = self._loose.get(key, entry)
            self._loose[key] = entry if other is not None and other.id == entry.id else None

    def find(self, name: str) -> ImageEntry | None:
        """Find an image; None where there is none, or where several would do."""
        return self._exact.get(name) or self._loose.get(_base(name)) or self._loose.get(_stem(name))


def stored_path(path: Path, study: Path) -> str:
    """Write a path as the study keeps it: relative, with forward slashes, when beside or below the study."""
    path = path.resolve()
    kept = path.relative_to(study.parent).as_posix() if path.is_relative_to(study.parent) else str(path)
    refuse_name(path, kept)
    return kept


def locate(entry: ImageEntry, study: Path) -> Path | None:
    """Find an image's file: where it was, else beside the study if its size in bytes agrees.

    A stranger's study may name any path: one that climbs out of the study's folder by ".." or names another
    computer is not followed.
    """
    same = (place for place, size in _candidates(entry, study) if entry.size in (None, size))
    return next(same, None)


def has_changed(entry: ImageEntry, study: Path) -> bool:
    """Tell whether a file is where the image was, but is not the image any more."""
    return locate(entry, study) is None and any(_candidates(entry, study))


def _candidates(entry: ImageEntry, study: Path) -> Iterator[tuple[Path, int | None]]:
    """Give the files that an image may be, and their sizes in bytes."""
    if not entry.path:
        return
    name = PureWindowsPath(entry.path).name
    candidates = []
    if not entry.path.startswith(("\\\\", "//")) and ".." not in PurePosixPath(entry.path).parts:
        candidates.append(study.parent / entry.path)
    for place in (*candidates, study.parent / name):
        try:
            if place.is_file() or place.is_dir():
                yield place, size_of(place)
        except (OSError, ValueError):
            continue


def size_of(path: Path) -> int | None:
    """Give a file's size in bytes; None for a folder, in which other files may come and go."""
    return None if path.is_dir() else path.stat().st_size


def digest_of_files(paths: Sequence[Path], watch: Watch = silent, words: str = "reading") -> str:
    """Compute the SHA-256 of several files' digests, in order."""
    machine = hashlib.sha256()
    for done, path in enumerate(paths):
        step = part(watch, done / len(paths), (done + 1) / len(paths))
        machine.update(digest_of_file(path, step, words).encode())
    return f"sha256:{machine.hexdigest()}"


def digest_of_file(path: Path, watch: Watch = silent, words: str = "reading") -> str:
    """Compute the SHA-256 of a file, "sha256:" and hexadecimal digits.

    Of a file that has been read before and not changed since, as its times tell, it is known: slides have
    gigabytes.
    """
    refuse_special(path)
    stamp = _stamp(path)
    if stamp in _DIGESTS:
        return _DIGESTS[stamp]
    machine, done, size = hashlib.sha256(), 0, max(path.stat().st_size, 1)
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            machine.update(block)
            done += len(block)
            watch(min(done / size, 1.0), words)
    digest = f"sha256:{machine.hexdigest()}"
    if _stamp(path) == stamp and time.time_ns() - max(stamp[-2:]) > _UNSURE:
        if len(_DIGESTS) >= _MOST_DIGESTS:
            _DIGESTS.clear()
        _DIGESTS[stamp] = digest
    return digest


def _stamp(path: Path) -> tuple[int, ...]:
    """Give what changes with a file's content: which file it is, its size, when it was written."""
    now = path.stat()
    return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns


def _base(name: str) -> str:
    """Give a name without the folders of any system."""
    return (name.replace("\\", "/").rstrip("/").rpartition("/")[2] or name).casefold()


def _stem(name: str) -> str:
    base = _base(name).removesuffix(".gz")
    stem, dot, suffix = base.rpartition(".")
    return stem if dot and stem and len(suffix) <= 5 and suffix.isalnum() else base
