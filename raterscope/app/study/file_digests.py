"""Digests of files, by which a study recognises its images.

A PNG is identified by the checksums that it contains, see `formats.png`: its pixels need not be read at
import. Every other file, and images that earlier versions imported, have the SHA-256 of their bytes. Before
an image is shown, and when its file has moved, all bytes of the file are compared with the digest.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path

from raterscope.algorithms.progress import Cancelled, Watch, silent, steps_of
from raterscope.app.errors import plain
from raterscope.app.formats.png import BY_CHECKSUMS, SIGNATURE, has_right_checksums, read_chunks
from raterscope.app.formats.records import ImageFile, VolumeFile, refuse_special
from raterscope.app.study.opening import translated_errors
from raterscope.app.workers import processors

_BLOCK = 4 << 20
_CLOCK_STEP = 3_000_000_000
"""Nanoseconds within which a file may be written twice with the same time."""
_MOST_DIGESTS = 20_000
_DIGESTS: dict[tuple[int, ...], str] = {}
_CHECKED: dict[tuple[int, ...], str] = {}


def digest_of_images(files: Sequence[ImageFile | VolumeFile], watch: Watch) -> list[str]:
    """Compute the digests of images on all processors: SHA-256 does not hold the interpreter's lock."""
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
    """Compute the digest of an image: of a PNG by its checksums, else of the whole file."""
    refuse_special(path)
    with path.open("rb") as file:
        is_png = file.read(len(SIGNATURE)) == SIGNATURE
        digest = read_chunks(file).digest if is_png else None
    return digest or digest_of_file(path, watch)


def has_digest(path: Path, digest: str, watch: Watch = silent, words: str = "reading") -> bool:
    """Compare an image with the digest that it had; all bytes are read, unless the file is unchanged."""
    if not digest.startswith(BY_CHECKSUMS):
        return digest_of_file(path, watch, words) == digest
    stamp = _stamp(path)
    if _CHECKED.get(stamp) != digest:
        if digest_of_image(path) != digest or not has_right_checksums(path, watch, words):
            return False
        _remember(path, stamp, digest, _CHECKED)
    return True


def digest_of_files(paths: Sequence[Path], watch: Watch = silent) -> str:
    """Compute the SHA-256 of several files' digests, in order."""
    machine = hashlib.sha256()
    for path, step in steps_of(watch, paths):
        machine.update(digest_of_file(path, step).encode())
    return f"sha256:{machine.hexdigest()}"


def digest_of_file(path: Path, watch: Watch = silent, words: str = "reading") -> str:
    """Compute the SHA-256 of a file, "sha256:" and hexadecimal digits.

    Known for a file that was read before and has the same times: slides have gigabytes.
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
            watch(min(read / size, 1.0), words)
    digest = f"sha256:{machine.hexdigest()}"
    _remember(path, stamp, digest, _DIGESTS)
    return digest


def _remember(path: Path, stamp: tuple[int, ...], digest: str, known: dict[tuple[int, ...], str]) -> None:
    """Cache the digest of a file that was not written while it was read."""
    if _stamp(path) == stamp and time.time_ns() - max(stamp[-2:]) > _CLOCK_STEP:
        if len(known) >= _MOST_DIGESTS:
            known.clear()
        known[stamp] = digest


def _stamp(path: Path) -> tuple[int, ...]:
    """Return the file's identity, size and times, which change with its content."""
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
