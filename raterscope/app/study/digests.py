"""Digests of files and of the input of a run: the same on any machine."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.formats.records import refuse_special

_BLOCK = 4 << 20
_CLOCK_STEP = 3_000_000_000
"""Nanoseconds within which a file may be written twice with the same time."""
_MOST_DIGESTS = 20_000
_DIGESTS: dict[tuple[int, ...], str] = {}


_BATCH = 100_000
"""Texts that are joined before they are digested."""


class Fingerprint:
    """SHA-256 of texts, arrays and bytes in order; as text "sha256:" and hexadecimal digits."""

    def __init__(self) -> None:
        self._machine = hashlib.sha256()

    def texts(self, *texts: str) -> None:
        """Add texts, each with its length."""
        for first in range(0, len(texts), _BATCH):
            encoded = [text.encode() for text in texts[first : first + _BATCH]]
            self.content(b"".join([len(text).to_bytes(8, "little") + text for text in encoded]))

    def arrays(self, *arrays: NDArray[Any] | None) -> None:
        """Add arrays; None is distinguished from an empty array."""
        for array in arrays:
            self.content(b"-" if array is None else np.ascontiguousarray(array).tobytes())

    def content(self, content: bytes) -> None:
        """Add bytes."""
        self._machine.update(content)

    def __str__(self) -> str:
        return f"sha256:{self._machine.hexdigest()}"


def digest_of(clicks: Mapping[str, Clicks]) -> str:
    """Compute the SHA-256 of the clicks on some images, with known and viewed spots, weights and scores.

    Returns
    -------
    str
        "sha256:" and hexadecimal digits.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import separated_crowd
    >>> digest_of({"smear.png": separated_crowd(20, seed=3).clicks})[:15]
    'sha256:a58e7592'
    """
    fingerprint = Fingerprint()
    for name, image_clicks in sorted(clicks.items()):
        columns = [
            image_clicks.x,
            image_clicks.y,
            image_clicks.annotator,
            np.array(image_clicks.extent),
            image_clicks.known.x,
            image_clicks.known.y,
            image_clicks.known.present,
            *([] if image_clicks.weights is None else [image_clicks.weights]),
        ]
        fingerprint.texts(name, *image_clicks.annotators)
        if image_clicks.control is not None:
            fingerprint.texts("positive" if image_clicks.control else "negative")
        if image_clicks.viewed is not None and len(image_clicks.viewed):
            fingerprint.texts("viewed")
            columns.append(image_clicks.viewed)
        if image_clicks.scores is not None:
            fingerprint.texts("scores")
            columns.append(image_clicks.scores)
        for column in columns:
            little = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<"))
            fingerprint.content(len(little).to_bytes(8, "little") + little.tobytes())
    return str(fingerprint)


def digest_of_files(paths: Sequence[Path], watch: Watch = silent, words: str = "reading") -> str:
    """Compute the SHA-256 of several files' digests, in order."""
    machine = hashlib.sha256()
    for index, path in enumerate(paths):
        step = part(watch, index / len(paths), (index + 1) / len(paths))
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
    machine, read, size = hashlib.sha256(), 0, max(path.stat().st_size, 1)
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            machine.update(block)
            read += len(block)
            watch(min(read / size, 1.0), words)
    digest = f"sha256:{machine.hexdigest()}"
    if _stamp(path) == stamp and time.time_ns() - max(stamp[-2:]) > _CLOCK_STEP:
        if len(_DIGESTS) >= _MOST_DIGESTS:
            _DIGESTS.clear()
        _DIGESTS[stamp] = digest
    return digest


def _stamp(path: Path) -> tuple[int, ...]:
    """Return the file's identity, size and times, which change with its content."""
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
