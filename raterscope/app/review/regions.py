"""Decisions on the regions of an image's masks."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import OPEN, Settled
from raterscope.app.errors import counted
from raterscope.app.review.decision import Decision
from raterscope.app.review.subjects import RegionSubject
from raterscope.app.review.tasks import LastWords

Box = tuple[int, int, int]

_DRAWN = "draw"
"""Paint that settles all of a region or of a structure, not a stroke alone."""
_WHOLE_REGION = ("accept", "take", _DRAWN, "skip")
_NOUNS = ("region", "brush stroke", "whole structure")


@dataclass(frozen=True)
class Region:
    """A decision on a region, in effect.

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
    """Decisions on the regions of one image, collected while the journal is read."""

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self.words = LastWords()

    def take(self, decision: Decision, _item: int) -> None:
        """Add a decision; its voxels override earlier ones."""
        if not isinstance(decision.subject, RegionSubject):  # what a structure stands for settles no voxel
            return
        region = Region(decision.id, decision.verb, decision.subject, decision.run, decision.voxels)
        self.regions.append(region)
        self._add_words(region)

    def _add_words(self, region: Region) -> None:
        """Supersede replaced decisions; a brush stroke replaces nothing beside it."""
        subject = region.subject
        words, key = self.words, _key(region)
        if subject.whole:
            words.supersede([key for key in words.subjects() if _structure(key) == subject.structure])
            words.add(key, region.decision, _DRAWN)
        elif region.verb != "paint":
            words.add(key, region.decision, region.verb, _WHOLE_REGION)
        elif subject.number is not None and subject.blind and not set(words.verbs(key)) - {"skip"}:
            words.add(key, region.decision, _DRAWN, _WHOLE_REGION)  # blind, a stroke has no number
        else:
            words.add(key, region.decision, "paint", ("skip",))

    def fixed(self) -> list[int]:
        """Return what a fusion is held to."""
        return [region.decision for region in self.regions if region.voxels is not None]

    def settled_subjects(self) -> tuple[str, ...]:
        """Say how many regions, strokes and whole structures are settled."""
        of = [_noun(subject) for subject in self.words.settled()]
        return tuple(counted(of.count(noun), noun) for noun in _NOUNS if noun in of)

    def undone_since(self, current: RegionsOfImage | None, dead: Container[int]) -> list[int]:
        """Return the undone decisions whose voxels are not all settled by others now."""
        words = LastWords() if current is None else current.words
        return [
            region.decision
            for region in self.regions
            if region.voxels is not None and region.decision in dead and not _is_settled(region, words)
        ]


def _key(region: Region) -> Hashable:
    """Name the subject of a decision: a region of a run, a stroke, a whole structure."""
    subject = region.subject
    if subject.whole:
        return (subject.structure, "whole structure")
    if subject.number is None:
        return (subject.structure, "brush stroke", region.decision)
    return (subject.structure, "region", region.run, subject.number)


def _structure(key: Hashable) -> str:
    assert isinstance(key, tuple)
    return str(key[0])


def _noun(key: Hashable) -> str:
    assert isinstance(key, tuple)
    return str(key[1])


def _is_settled(region: Region, words: LastWords) -> bool:
    """Return whether all of a decision's voxels are settled by others."""
    if words.verbs((region.subject.structure, "whole structure")):
        return True
    numbered = region.subject.number is not None and region.verb != "paint"
    return numbered and bool(set(words.verbs(_key(region))) & {"accept", "take", _DRAWN})


def known_voxels(
    regions: Iterable[Region], settled: Mapping[int, Settled], structure: str, origin: Box, shape: Box
) -> NDArray[np.int8] | None:
    """Combine the settled voxels of a structure within a box, the latest on top.

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
        source = tuple(slice(a - o, b - o) for a, b, o in zip(low, high, piece.origin, strict=True))
        target = tuple(slice(a - o, b - o) for a, b, o in zip(low, high, origin, strict=True))
        value = piece.value[source]
        if known is None:
            known = np.full(shape, OPEN, dtype=np.int8)
        known[target] = np.where(value == OPEN, known[target], value)
    return known
