"""Which rows came before: 64-bit identities of rows, kept sorted.

Two of n different rows share an identity with a chance of n^2 / 2^65: less than one in ten million for a
million rows. A row that happens to would be taken for one that came before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.app.formats.growing.positions import FilePosition

__all__ = ["Memory", "added", "contains", "identities", "identity_of"]

UintArray = npt.NDArray[np.uint64]
BoolArray = npt.NDArray[np.bool_]

_NONE: UintArray = np.empty(0, dtype=np.uint64)


def identities(columns: Sequence[Sequence[str]], numbers: Sequence[FloatArray]) -> UintArray:
    """Give rows of names and numbers an identity each; all NaN are the same.

    Parameters
    ----------
    columns : sequence of columns of N names
    numbers : sequence of (N,) float64

    Returns
    -------
    (N,) uint64
    """
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    for names in columns:
        told = {name: identity_of(name) for name in set(names)}
        mixed = _mixed(mixed ^ np.fromiter((told[name] for name in names), np.uint64, len(names)))
    for values in numbers:
        same = np.where(np.isnan(values), np.nan, values + 0.0)
        mixed = _mixed(mixed ^ same.astype("<f8").view("<u8").astype(np.uint64))
    return mixed


def identity_of(*texts: str) -> int:
    """Give some texts an identity."""
    joined = "\x00".join(texts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "little")


def _mixed(values: UintArray) -> UintArray:
    """Stir 64 bits so that each depends on all, as the generator SplitMix64 does ([steele2014]_).

    References
    ----------
    .. [steele2014] G. L. Steele, D. Lea and C. H. Flood, "Fast splittable pseudorandom number generators",
       Proceedings of OOPSLA 2014 (2014) 453-472, doi:10.1145/2660193.2660195.
    """
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def contains(kept: bytes, one: int) -> bool:
    """Tell whether an identity is among those kept."""
    return bool(_counts(_unpacked(kept), np.array([one], dtype=np.uint64))[0])


def added(kept: bytes, more: Sequence[int]) -> bytes:
    """Keep some more identities."""
    return _packed(_merged(_unpacked(kept), np.sort(np.array(more, dtype=np.uint64))))


class Memory:
    """The rows that each file of a source gave, as multisets.

    A file may hold a row twice: two clicks at one place. Where it is replaced, or where the row comes in
    another file, a row counts as new only if it comes more often than it came in any file before. A row with
    a time, or one that says that somebody marked nothing, cannot rightly come twice.
    """

    def __init__(self, files: Mapping[str, FilePosition]) -> None:
        self._seen = {name: _unpacked(one.seen) for name, one in files.items()}
        self._again = {name: _unpacked(one.again) for name, one in files.items() if one.again is not None}

    def __len__(self) -> int:
        return sum(map(len, self._seen.values()))

    def begin_again(self, name: str) -> None:
        """Take note that a file was replaced and is read from its beginning."""
        if len(self._seen.get(name, _NONE)):
            self._again[name] = _NONE

    def kept(self, name: str) -> tuple[bytes, bytes | None]:
        """Give what is to be kept of a file: `seen` and `again` of its position."""
        again = self._again.get(name)
        return _packed(self._seen.get(name, _NONE)), None if again is None else _packed(again)

    def take(self, name: str, rows: UintArray, once: BoolArray) -> BoolArray:
        """Take in rows of a file, and tell which are new.

        Parameters
        ----------
        name : str
        rows : (N,) uint64
            Their identities.
        once : (N,) bool
            Which cannot rightly come twice.

        Returns
        -------
        (N,) bool
        """
        order = np.argsort(rows, kind="stable")
        rows, once = rows[order], once[order]
        seen, again = self._seen.get(name, _NONE), self._again.get(name)
        given = _counts(seen, rows)
        before = np.zeros_like(given) if again is None else given
        for other, theirs in self._seen.items():
            if other != name:
                before = np.maximum(before, _counts(theirs, rows))
        number = np.arange(len(rows)) - np.searchsorted(rows, rows)
        number += given if again is None else _counts(again, rows)
        kept = ~once | (number == 0)
        if again is None:
            self._seen[name] = _merged(seen, rows[kept])
        else:
            self._seen[name] = _merged(seen, rows[kept & (number >= given)])
            self._again[name] = _merged(again, rows[kept])
            if len(self._again[name]) == len(self._seen[name]):
                del self._again[name]
        new = np.empty(len(rows), dtype=bool)
        new[order] = kept & np.where(once, before == 0, number >= before)
        return new


def _counts(kept: UintArray, rows: UintArray) -> npt.NDArray[np.int64]:
    left = np.searchsorted(kept, rows, side="left")
    return (np.searchsorted(kept, rows, side="right") - left).astype(np.int64)


def _merged(kept: UintArray, more: UintArray) -> UintArray:
    """Put sorted identities in among others."""
    return np.insert(kept, np.searchsorted(kept, more), more)


def _unpacked(kept: bytes) -> UintArray:
    return np.frombuffer(kept, dtype="<u8").astype(np.uint64, copy=False)


def _packed(rows: UintArray) -> bytes:
    return rows.astype("<u8", copy=False).tobytes()
