"""Records of the pair readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["PairTable"]


@dataclass(frozen=True, eq=False)
class PairTable:
    """The comparisons of many annotators, E in all, by column.

    Attributes
    ----------
    path : Path
        The file they come from.
    question : str
        What was asked, where the file asks several things or names it; else empty.
    annotators, items : tuple of names
        Each once, in the order of first appearance; an item stays though its comparisons are left out.
    annotator, left, right : (E,) int32
        An item is never compared with itself.
    choice : (E,) float64
        Above 0 where the left item was preferred, below 0 for the right one, 0 for a tie; 1 and -1 unless
        the file has numbers. Finite.
    time : (E,) float64, optional
        Seconds from any origin, NaN where it is not known.
    pictures : mapping of item index to a file name or path
        Where the file says which picture an item is; else an item's own name is looked for.
    missing : int
        Rows without an answer, which are left out.
    notices : tuple of str
        What the person should know of how the file was read, a sentence each.
    """

    path: Path
    question: str
    annotators: tuple[str, ...]
    items: tuple[str, ...]
    annotator: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    choice: NDArray[np.float64]
    time: NDArray[np.float64] | None = None
    pictures: Mapping[int, str] = field(default_factory=dict)
    missing: int = 0
    notices: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.choice)
