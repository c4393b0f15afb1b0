"""Digest of the input of a run: the same marks give the same digest on any machine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import Clicks

__all__ = ["Fingerprint", "digest_of"]


class Fingerprint:
    """SHA-256 of what is given one after the other; as text "sha256:" and hexadecimal digits."""

    def __init__(self) -> None:
        self._machine = hashlib.sha256()

    def texts(self, *texts: str) -> None:
        """Take texts, each with its length."""
        for text in texts:
            self.content(len(text.encode()).to_bytes(8, "little") + text.encode())

    def arrays(self, *arrays: NDArray[Any] | None) -> None:
        """Take arrays, or that there is none."""
        for array in arrays:
            self.content(b"-" if array is None else np.ascontiguousarray(array).tobytes())

    def content(self, content: bytes) -> None:
        """Take bytes as they are."""
        self._machine.update(content)

    def __str__(self) -> str:
        return f"sha256:{self._machine.hexdigest()}"


def digest_of(clicks: Mapping[str, Clicks]) -> str:
    """Compute the SHA-256 of the clicks on some images, with known and viewed spots, weights and scores.

    Parameters
    ----------
    clicks : mapping of image name to Clicks

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
    found = Fingerprint()
    for name, one in sorted(clicks.items()):
        columns = [
            one.x,
            one.y,
            one.annotator,
            np.array(one.extent),
            one.known.x,
            one.known.y,
            one.known.present,
            *([] if one.weights is None else [one.weights]),
        ]
        found.texts(name, *one.annotators)
        if one.control is not None:
            found.texts("positive" if one.control else "negative")
        if one.viewed is not None and len(one.viewed):
            found.texts("viewed")
            columns.append(one.viewed)
        if one.scores is not None:
            found.texts("scores")
            columns.append(one.scores)
        for column in columns:
            little = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<"))
            found.content(len(little).to_bytes(8, "little") + little.tobytes())
    return str(found)
