"""A short name for the input of a run: the same clicks give the same digest, on any machine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from raterscope.algorithms.clicks.data import Clicks

__all__ = ["digest_of"]


def digest_of(clicks: Mapping[str, Clicks]) -> str:
    """Compute the SHA-256 of the clicks on some images, known spots included.

    Parameters
    ----------
    clicks : mapping of image name to Clicks

    Returns
    -------
    str
        "sha256:" and hexadecimal digits.
    """
    machine = hashlib.sha256()
    for name, one in sorted(clicks.items()):
        columns = [
            one.x,
            one.y,
            one.annotator,
            np.array(one.extent),
            one.known.x,
            one.known.y,
            one.known.present,
        ]
        for text in (name, *one.annotators):
            machine.update(len(text.encode()).to_bytes(8, "little") + text.encode())
        for column in columns:
            little = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<"))
            machine.update(len(little).to_bytes(8, "little") + little.tobytes())
    return f"sha256:{machine.hexdigest()}"
