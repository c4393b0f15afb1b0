"""Differences between two runs of one item: what each kind of annotation fills in.

The runs of a study are compared in `raterscope.app.changes`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from raterscope.app.review import ReviewState
from raterscope.app.study import RunEntry, Study

Box = tuple[int, int, int]


@dataclass(frozen=True)
class Change:
    """One item that another run sees otherwise.

    Attributes
    ----------
    item : int
        The image or question.
    words : str
        "0.44 -> 0.93, a detection now: spot at (140, 30), smear_2".
    size : float
        By which changes are ordered, the largest first.
    point : (x, y), optional
        Of a spot, pixels.
    name : str
        The structure, task or annotator; empty for a spot.
    box : (origin, shape), optional
        Of a region, voxels.
    """

    item: int
    words: str
    size: float
    point: tuple[float, float] | None = None
    name: str = ""
    box: tuple[Box, Box] | None = None


@dataclass
class Differences:
    """Differences found so far between two runs.

    Attributes
    ----------
    disputed_before, disputed_after : int
        Disputed details by each run; of pairs, flagged annotators.
    ranks : int
        Of pairs: items that changed their rank.
    newly_disputed : int
        Changes that are new disputes alone.
    decided : int
        Details that were disputed and are decided since.
    changes : list of Change
    """

    disputed_before: int = 0
    disputed_after: int = 0
    ranks: int = 0
    newly_disputed: int = 0
    decided: int = 0
    changes: list[Change] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class ComparedItem:
    """One item and what the two runs say of it."""

    study: Study
    state: ReviewState
    item: int
    where: str
    earlier: RunEntry
    later: RunEntry
    then: Any
    now: Any

    def change(self, words: str, size: float, **about: Any) -> Change:
        """Make a change of this item; `about` as in `Change`."""
        return Change(self.item, f"{words}{self.where}", float(size), **about)


def step_in_words(old: float, new: float) -> str:
    """Write a step from one share to another: "0.44 → 0.93"."""
    return f"{share_in_words(old)} \N{RIGHTWARDS ARROW} {share_in_words(new)}"


def share_in_words(value: float) -> str:
    """Write a share with two decimals."""
    return f"{value:.2f}"
