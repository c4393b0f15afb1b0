"""What the expert decided on the regions of an image's masks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import OPEN, Settled
from raterscope.app.review.decision import Decision
from raterscope.app.review.subjects import RegionSubject

__all__ = ["Region", "RegionsOfImage", "known_voxels"]

Box = tuple[int, int, int]


@dataclass(frozen=True)
class Region:
    """A decision on a region that stands.

    Attributes
    ----------
    decision : int
    verb : str
        accept, take, paint or skip.
    subject : RegionSubject
    run : int or None
        The run that was on screen.
    voxels : int or None
        The study's number for the voxels that it settles; None for one passed over.
    """

    decision: int
    verb: str
    subject: RegionSubject
    run: int | None
    voxels: int | None


class RegionsOfImage:
    """The decisions on one image, while the journal is read."""

    def __init__(self) -> None:
        self.regions: list[Region] = []

    def take(self, decision: Decision, _item: int) -> None:
        """Let a decision join those that stand; what it settles has the last word over earlier ones."""
        assert isinstance(decision.subject, RegionSubject)
        region = Region(decision.id, decision.verb, decision.subject, decision.run, decision.voxels)
        self.regions.append(region)

    def fixed(self) -> list[int]:
        """Give what a fusion is held to."""
        return [region.decision for region in self.regions if region.voxels is not None]


def known_voxels(
    regions: Iterable[Region], settled: Mapping[int, Settled], structure: str, origin: Box, shape: Box
) -> NDArray[np.int8] | None:
    """Lay everything that was settled of a structure over a part of the image, the latest on top.

    Parameters
    ----------
    regions : iterable of Region
        As `ReviewState.regions` gives them.
    settled : mapping of `Region.voxels` to Settled
    structure : str
    origin, shape : (slice, row, column)
        The part.

    Returns
    -------
    (Z, Y, X) int8 or None
        1 inside, 0 outside, `OPEN` elsewhere; None where nothing is settled.
    """
    known: NDArray[np.int8] | None = None
    for region in regions:
        if region.subject.structure != structure or region.voxels is None:
            continue
        piece = settled[region.voxels]
        low = [max(a, b) for a, b in zip(origin, piece.origin, strict=True)]
        high = [
            min(a + n, b + m)
            for a, n, b, m in zip(origin, shape, piece.origin, piece.value.shape, strict=True)
        ]
        if any(stop <= start for start, stop in zip(low, high, strict=True)):
            continue
        there = tuple(slice(a - o, b - o) for a, b, o in zip(low, high, piece.origin, strict=True))
        here = tuple(slice(a - o, b - o) for a, b, o in zip(low, high, origin, strict=True))
        value = piece.value[there]
        if known is None:
            known = np.full(shape, OPEN, dtype=np.int8)
        known[here] = np.where(value == OPEN, known[here], value)
    return known
