"""References of a study to image files: entries, names, paths and digests.

A PNG is identified by the checksums that it contains, see `formats.image_structure`: its pixels need not be
read at import. Every other file, and images that earlier versions imported, have the SHA-256 of their bytes.
Before an image is shown, and when its file has moved, all bytes of the file are compared with the digest.
"""

from __future__ import annotations

import hashlib
import math
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from itertools import takewhile
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING
from unicodedata import normalize

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Cancelled, Watch, silent, steps_of
from raterscope.app.errors import StudyError, plain
from raterscope.app.formats.image_structure import (
    BY_CHECKSUMS,
    PNG_SIGNATURE,
    has_right_checksums,
    read_chunks,
)
from raterscope.app.formats.records import ImageFile, VolumeFile
from raterscope.app.formats.untrusted import refuse_name, refuse_special
from raterscope.app.study.opening import translated_errors
from raterscope.app.study.records import ImageEntry
from raterscope.app.study.rows import GRID, IMAGE, grid_row, image_of
from raterscope.app.workers import processors

if TYPE_CHECKING:
    pass


_BLOCK = 4 << 20
_CLOCK_STEP = 3_000_000_000
"""Interval within which a file may be written twice with the same time stamp, nanoseconds."""
_MAX_DIGESTS = 20_000
_DIGESTS: dict[tuple[int, ...], str] = {}
_CHECKED: dict[tuple[int, ...], str] = {}


def digest_of_images(files: Sequence[ImageFile | VolumeFile], watch: Watch) -> list[str]:
    """Compute the digests of images on all processors; SHA-256 releases the interpreter's lock."""
    cancelled = threading.Event()

    def check(*_: object, **__: object) -> None:
        if cancelled.is_set():
            raise Cancelled

    def digest(file: ImageFile | VolumeFile) -> str:
        with translated_errors(file.path, "read"):
            if isinstance(file, ImageFile):
                return digest_of_file(file.path, check)
            return digest_of_files(file.files, check)

    digests = [file.digest if isinstance(file, ImageFile) else None for file in files]
    unread = [at for at, known in enumerate(digests) if known is None]
    with ThreadPoolExecutor(processors()) as pool:
        futures = [pool.submit(digest, files[at]) for at in unread]
        try:
            for done, (at, future) in enumerate(zip(unread, futures, strict=True)):
                step = partial(watch, done / len(unread), f"reading {plain(files[at].name)}")
                step()
                while not wait([future], timeout=0.05).done:
                    step()
                digests[at] = future.result()
        except BaseException:
            cancelled.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [digest for digest in digests if digest is not None]


def digest_of_image(path: Path, watch: Watch = silent) -> str:
    """Compute the digest of an image: of a PNG from its checksums, otherwise of the whole file."""
    refuse_special(path)
    with path.open("rb") as file:
        is_png = file.read(len(PNG_SIGNATURE)) == PNG_SIGNATURE
        digest = read_chunks(file).digest if is_png else None
    return digest or digest_of_file(path, watch)


def has_digest(path: Path, digest: str, watch: Watch = silent, text: str = "reading") -> bool:
    """Compare an image with its stored digest; all bytes are read, unless the file is unchanged."""
    if not digest.startswith(BY_CHECKSUMS):
        return digest_of_file(path, watch, text) == digest
    stamp = _stamp(path)
    if _CHECKED.get(stamp) != digest:
        if digest_of_image(path) != digest or not has_right_checksums(path, watch, text):
            return False
        _remember(path, stamp, digest, _CHECKED)
    return True


def digest_of_files(paths: Sequence[Path], watch: Watch = silent) -> str:
    """Compute the SHA-256 of several files' digests, in order."""
    machine = hashlib.sha256()
    for path, step in steps_of(watch, paths):
        machine.update(digest_of_file(path, step).encode())
    return f"sha256:{machine.hexdigest()}"


def digest_of_file(path: Path, watch: Watch = silent, text: str = "reading") -> str:
    """Compute the SHA-256 of a file, "sha256:" and hexadecimal digits.

    Cached for a file that was read before and has the same times, because slides have gigabytes.
    """
    refuse_special(path)
    stamp = _stamp(path)
    if stamp in _DIGESTS:
        return _DIGESTS[stamp]
    machine, read, size = hashlib.sha256(), 0, max(path.stat().st_size, 1)
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            machine.update(block)
            read += len(block)
            watch(min(read / size, 1.0), text)
    digest = f"sha256:{machine.hexdigest()}"
    _remember(path, stamp, digest, _DIGESTS)
    return digest


def _remember(path: Path, stamp: tuple[int, ...], digest: str, known: dict[tuple[int, ...], str]) -> None:
    """Cache the digest of a file that was not written while it was read."""
    if _stamp(path) == stamp and time.time_ns() - max(stamp[-2:]) > _CLOCK_STEP:
        if len(known) >= _MAX_DIGESTS:
            known.clear()
        known[stamp] = digest


def _stamp(path: Path) -> tuple[int, ...]:
    """Return the file's identity, size and times, which change with its content."""
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


class ImageNames:
    """Lookup of images by the names that tables use.

    An image is found by its full name, otherwise without folders and letter case, otherwise also without the
    suffix. Of several images with such a name, the one in the folder given by the name is used.

    `folder`: the folder to which stored paths are relative.
    """

    def __init__(self, entries: Iterable[ImageEntry], folder: Path | None = None) -> None:
        self._exact: dict[str, ImageEntry] = {}
        self._loose: dict[str, dict[int, ImageEntry]] = {}
        self._folder = folder
        for entry in entries:
            self.add(entry)

    def add(self, entry: ImageEntry) -> None:
        """Add an image."""
        self._exact[entry.name] = entry
        for key in {_base(entry.name), _stem(entry.name)}:
            self._loose.setdefault(key, {})[entry.id] = entry

    def find(self, name: str) -> ImageEntry | None:
        """Find an image; None without a match or with several."""
        if name in self._exact:
            return self._exact[name]
        entries = self.called(name)
        if len(entries) < 2:
            return entries[0] if entries else None
        shared = [self._shared_folders(name, entry) for entry in entries]
        most = max(shared)
        return entries[shared.index(most)] if most and shared.count(most) == 1 else None

    def called(self, name: str) -> list[ImageEntry]:
        """Return the images with this name in any folder."""
        return [*(self._loose.get(_base(name)) or self._loose.get(_stem(name)) or {}).values()]

    def all_meant(self, name: str) -> list[str]:
        """Return the names of the images that a name without folder may refer to."""
        return [] if _folders(name) else [entry.name for entry in self.called(name)]

    def find_each(self, names: Sequence[str]) -> list[ImageEntry | None]:
        """Find the images of the names in one table.

        If one name contains the folder of its image, names with other folders refer to other images.
        """
        found = [self.find(name) for name in names]
        places: dict[int, list[int]] = {}
        for place, entry in enumerate(found):
            if entry is not None:
                places.setdefault(entry.id, []).append(place)
        for same in places.values() if len(places) < len(names) else ():
            entry = found[same[0]]
            if len(same) > 1 and entry is not None:
                shared = [self._shared_folders(names[place], entry) for place in same]
                for place, count in zip(same, shared, strict=True):
                    if not count and any(shared) and _folders(names[place]):
                        found[place] = None
        return found

    def _shared_folders(self, name: str, entry: ImageEntry) -> int:
        """Return how many last folders of a name are also those of an image or of its name."""
        path = str((self._folder or Path()) / (entry.path or ""))
        return max(_count_shared(_folders(name), _folders(text)) for text in (entry.name, path))


def _folders(name: str) -> list[str]:
    """Return the folders in a name or path, the last first, case-folded."""
    return normalize("NFC", name).replace("\\", "/").rstrip("/").casefold().split("/")[-2::-1]


def _count_shared(names: Sequence[str], others: Sequence[str]) -> int:
    pairs = zip(names, others, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def stored_path(path: Path, study: Path) -> str:
    """Return a path as stored: relative with forward slashes if beside or below the study."""
    path = Path(os.path.realpath(path))
    stored = path.relative_to(study.parent).as_posix() if path.is_relative_to(study.parent) else str(path)
    refuse_name(path, stored)
    return stored


def locate(entry: ImageEntry, study: Path) -> Path | None:
    """Find an image's file: at its stored path, otherwise beside the study if its size agrees.

    An untrusted study may name any path: paths that leave the study's folder by ".." or name another computer
    are not followed.
    """
    matches = (path for path, size in _candidates(entry, study) if entry.size in (None, size))
    return next(matches, None)


def has_changed(entry: ImageEntry, study: Path) -> bool:
    """Return whether an image's path now contains another file."""
    return locate(entry, study) is None and any(_candidates(entry, study))


def _candidates(entry: ImageEntry, study: Path) -> Iterator[tuple[Path, int | None]]:
    """Yield files that may be the image, with their sizes in bytes."""
    if not entry.path:
        return
    name = PureWindowsPath(entry.path).name
    candidates = []
    if not entry.path.startswith(("\\\\", "//")) and ".." not in PurePosixPath(entry.path).parts:
        candidates.append(study.parent / entry.path)
    for path in (*candidates, study.parent / name):
        try:
            if path.is_file() or path.is_dir():
                yield path, size_of(path)
        except (OSError, ValueError):
            continue


def size_of(path: Path) -> int | None:
    """Return a file's size in bytes; None for a folder, whose files may change."""
    return None if path.is_dir() else path.stat().st_size


def _base(name: str) -> str:
    """Return a name without folders, case-folded, in one coding of accents (macOS has another)."""
    return normalize("NFC", name.replace("\\", "/").rstrip("/").rpartition("/")[2] or name).casefold()


def _stem(name: str) -> str:
    base = _base(name).removesuffix(".gz")
    stem, dot, suffix = base.rpartition(".")
    return stem if dot and stem and len(suffix) <= 5 and suffix.isalnum() else base


def read_image_entries(
    connection: sqlite3.Connection, study: Path, number: int | None = None
) -> list[ImageEntry]:
    """Read all entries in the order of import, or a single one."""
    select = f"SELECT {', '.join(IMAGE + GRID)} FROM images LEFT JOIN grids ON grids.image = images.id"
    # Two statements: a single one for both cases would make SQLite scan all images to find one.
    if number is None:
        rows = connection.execute(f"{select} ORDER BY id")
    else:
        rows = connection.execute(f"{select} WHERE id = ?", (number,))
    return [image_of(row, study) for row in rows]


def add_file(
    connection: sqlite3.Connection, study: Path, file: ImageFile, digest: str, names: ImageNames
) -> ImageEntry:
    """Add an image file within the current transaction.

    The same content under the same name, with its folder or without, is the same image. An entry with only a
    size gets its file. Another image of the same name is distinguished by its folder.
    """
    short = file.path.name
    for known in (file.name, short, f"{file.path.resolve().parent.name}/{short}"):
        entry = names.find(known)
        if entry is not None and _is_same_file(entry, file.path, digest):
            return entry
    existing = names.find(file.name)
    if existing is not None and existing.path is None:
        refuse_other_size(file, existing)
        connection.execute("UPDATE images SET pixel_size = ? WHERE id = ?", (file.pixel_size, existing.id))
        return set_image_file(connection, study, existing.id, file.path, digest)
    name, folders = file.name, iter(file.path.resolve().parts[-2::-1] if existing is not None else ())
    while connection.execute("SELECT 1 FROM images WHERE name = ?", (name,)).fetchone():
        folder = next(folders, None)
        name = f"{name}'" if folder is None else f"{folder}/{name}"
    _refuse_no_size(name, file.width, file.height)
    values = (
        name, stored_path(file.path, study), float(file.width), float(file.height), size_of(file.path),
        digest, file.pixel_size,
    )  # fmt: skip
    (number,) = connection.execute(
        f"INSERT INTO images({', '.join(IMAGE[1:])}) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id", values
    ).fetchone()
    return ImageEntry(number, *values)


def add_volume(
    connection: sqlite3.Connection, study: Path, file: VolumeFile, digest: str, names: ImageNames
) -> ImageEntry:
    """Add a volume within the current transaction, unless it exists."""
    _, rows, columns = file.grid.shape
    existing = names.find(file.name)
    if (
        existing is not None
        and existing.digest is None
        and existing.grid is not None
        and existing.grid.shape == file.grid.shape
    ):
        entry = set_image_file(connection, study, existing.id, file.path, digest)
    else:
        image = ImageFile(file.name, file.path, columns, rows, file.pixel_size)
        entry = add_file(connection, study, image, digest, names)
    connection.execute(
        f"INSERT OR REPLACE INTO grids(image, {', '.join(GRID)}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        grid_row(entry.id, file.grid, file.modality, file.identifier),
    )
    return read_image_entries(connection, study, entry.id)[0]


def add_grid(connection: sqlite3.Connection, study: Path, name: str, grid: Grid) -> ImageEntry:
    """Add a volume with a known geometry but no file, within the current transaction."""
    entry = add_size(connection, study, name, grid.shape[2], grid.shape[1])
    connection.execute(
        f"INSERT INTO grids(image, {', '.join(GRID)}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        grid_row(entry.id, grid, "", ""),
    )
    return read_image_entries(connection, study, entry.id)[0]


def add_size(
    connection: sqlite3.Connection, study: Path, name: str, width: float, height: float
) -> ImageEntry:
    """Add an image with a known size but no file, within the current transaction."""
    _refuse_no_size(name, width, height)
    (number,) = connection.execute(
        "INSERT INTO images(name, width, height) VALUES (?, ?, ?) RETURNING id", (name, width, height)
    ).fetchone()
    return read_image_entries(connection, study, number)[0]


def _is_same_file(entry: ImageEntry, path: Path, digest: str) -> bool:
    """Compare a file's digest with an image's; earlier versions stored another digest of PNG files."""
    if entry.digest is None or not digest.startswith(BY_CHECKSUMS) or entry.size != size_of(path):
        return entry.digest == digest
    with translated_errors(path, "read"):
        return entry.digest == digest or has_digest(path, entry.digest)


def _refuse_no_size(name: str, width: float, height: float) -> None:
    if not (math.isfinite(width) and math.isfinite(height) and width > 0 and height > 0):
        raise StudyError(f"the size of {plain(name)} is {width:g} x {height:g}; expected pixels above 0")


def set_image_file(
    connection: sqlite3.Connection, study: Path, number: int, path: Path, digest: str
) -> ImageEntry:
    """Set an image's file and digest, within the current transaction."""
    connection.execute(
        "UPDATE images SET path = ?, size = ?, digest = ? WHERE id = ?",
        (stored_path(path, study), size_of(path), digest, number),
    )
    return read_image_entries(connection, study, number)[0]


def find_moved_volume(entry: ImageEntry, path: Path) -> tuple[Path, str]:
    """Find a volume in a file or folder, and return its path and digest.

    Raises `InputError` if it is not there.
    """
    from raterscope.app.formats.volumes import find_volumes

    volume = volume_of(entry, find_volumes(path))
    if volume is None:
        raise StudyError(f"does not hold {plain(entry.name)}, {entry.lattice.in_words()}", file=path)
    return volume.path, digest_of_files(volume.files)


def volume_of(entry: ImageEntry, volumes: Iterable[VolumeFile]) -> VolumeFile | None:
    """Return the volume that is an image of the study; None if none has its series and grid.

    A series may contain several volumes on one grid, such as repeats of a scan, whose names or files differ.
    """
    same = [
        volume
        for volume in volumes
        if entry.identifier in ("", volume.identifier) and volume.grid.same_as(entry.lattice)
    ]
    if len(same) > 1:
        of_name = [volume for volume in same if volume.name == entry.name]
        same = of_name or [v for v in same if digest_of_files(v.files) == entry.digest] or same
    return same[0] if same else None


def uneven_slices_note(entry: ImageEntry, volumes: Iterable[VolumeFile]) -> str:
    """Return a note if an older version assumed even slices for uneven ones; otherwise empty."""
    grid = entry.lattice
    if grid.slice_offsets is not None:
        return ""
    if any(volume.grid.shape == grid.shape and volume.grid.uneven for volume in volumes):
        return (
            "; an older version of Raterscope assumed even slice distances and may have shifted masks: "
            "import the series and its masks into a new study"
        )
    return ""


def refuse_other_size(file: ImageFile, entry: ImageEntry) -> None:
    """Refuse a file whose size differs from its entry's."""
    if (file.width, file.height) != (round(entry.width), round(entry.height)):
        raise StudyError(
            f"has {file.width} x {file.height} pixels, but the clicks on {plain(entry.name)} were made on "
            f"{entry.width:g} x {entry.height:g}",
            file=file.path,
        )


def check_moved_file(entry: ImageEntry, path: Path) -> tuple[Path, str]:
    """Check that a moved file is the image, and return its path and digest."""
    if entry.grid is None:
        from raterscope.app.formats.image_heads import read_image

        file = read_image(path)
        with translated_errors(path, "read"):
            digest = digest_of_image(path)
            is_other = entry.digest is not None and not has_digest(path, entry.digest)
        if entry.digest is None:
            refuse_other_size(file, entry)
    else:
        path, digest = find_moved_volume(entry, path)
        is_other = entry.digest not in (None, digest)
    if is_other:
        name = plain(entry.name)
        raise StudyError(
            f"is another image than {name} was when it was added: its content differs", file=path
        )
    return path, digest
