"""Where the items of two rankings stand: a place in either row, components apart from each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF

__all__ = ["AFTER", "BEFORE", "GUTTER", "LARGEST", "RankingView", "Rows"]

BEFORE, AFTER = 0, 1
GUTTER, MARGIN, SPACE = 48.0, 6.0, 7.0
SMALLEST, LARGEST = 22.0, 60.0
STRIP_SHARE, STRIP_LEAST, STRIP_MOST = 0.25, 24.0, 80.0
REACH = 6.0

GAP = 0.7
"""Between components, in cards."""


@dataclass(frozen=True, eq=False)
class RankingView:
    """Scores of n items before and after the biases of the flagged are taken out.

    Places, who is swapped and the length follow from what is given.

    Attributes
    ----------
    names : sequence of n str
    before, after : (n,) float
        Scores, the best item highest; NaN for an item that was never compared.
    before_interval, after_interval : (2, n) float
        Lower and upper ends of 95 %.
    component : (n,) int
        Items of one component can be compared; negative for an item that was never compared.
    rank_before, rank_after : (n,) int
        Rank within the component, from 1, which items of equal scores share; 0 for one without a score.
    pictures : bool
        Whether the items have pictures.
    place_before, place_after : (n,) float
        Where an item stands in either row, in cards from the left; NaN for one without a rank.
    swapped : (n,) bool
        Whether an item's rank differs.
    length : float
        Of the first row, in cards.
    """

    names: Sequence[str]
    before: NDArray[np.floating]
    after: NDArray[np.floating]
    before_interval: NDArray[np.floating]
    after_interval: NDArray[np.floating]
    component: NDArray[np.integer]
    rank_before: NDArray[np.integer]
    rank_after: NDArray[np.integer]
    pictures: bool = False
    place_before: NDArray[np.floating] = field(init=False)
    place_after: NDArray[np.floating] = field(init=False)
    swapped: NDArray[np.bool_] = field(init=False)
    length: float = field(init=False)

    def __post_init__(self) -> None:
        many = len(self.names)
        ranks = (self.rank_before, self.rank_after)
        if {len(self.before), len(self.after), len(self.component), *map(len, ranks)} != {many}:
            raise ValueError(f"not as much of everything as there are items: {many}")
        if {np.shape(self.before_interval), np.shape(self.after_interval)} != {(2, many)}:
            raise ValueError(f"intervals not of shape (2, {many})")
        object.__setattr__(self, "place_before", self._places(self.rank_before))
        object.__setattr__(self, "place_after", self._places(self.rank_after))
        object.__setattr__(self, "swapped", self.rank_before != self.rank_after)
        last = self.place_before[np.isfinite(self.place_before)]
        object.__setattr__(self, "length", float(last.max()) + 1 if len(last) else 0.0)

    def _places(self, rank: NDArray[np.integer]) -> NDArray[np.floating]:
        place, items = np.full(len(rank), np.nan), np.flatnonzero(rank)
        order = items[np.lexsort((rank[items], self.component[items]))]
        further = np.diff(self.component[order], prepend=self.component[order[:1]]) != 0
        place[order] = np.arange(len(order)) + GAP * np.cumsum(further)
        return place

    def in_order(self, *, after: bool = False) -> NDArray[np.int64]:
        """Give the ranked items from left to right."""
        place = self.place_after if after else self.place_before
        return np.argsort(place, kind="stable")[: int(np.isfinite(place).sum())]

    def crosses(self, first: int, second: int) -> bool:
        """Say whether the lines of two items cross."""
        here = self.place_before[first] - self.place_before[second]
        return bool(here * (self.place_after[first] - self.place_after[second]) < 0)

    def words(self, item: int) -> str:
        """Say an item and its ranks."""
        if not self.rank_before[item]:
            return f"{self.names[item]}, never compared"
        here, there = int(self.rank_before[item]), int(self.rank_after[item])
        ends = self.after_interval[:, item]
        score = f"score {self.after[item]:.2f}"
        score += f" ({ends[0]:.2f} to {ends[1]:.2f})" if np.isfinite(ends).all() else ""
        moved = f"rank {here} before, {there} after" if here != there else f"rank {here}, before and after"
        return f"{self.names[item]}: {moved}; {score}"


@dataclass(frozen=True, eq=False)
class Rows:
    """The cards of a view on a piece of screen.

    Attributes
    ----------
    view : RankingView
    width, height : float
        Of the screen, in pixels.
    scrolled : float
        How far the rows are moved to the left.
    intervals : bool
        Whether a strip beside each row has the scores.
    """

    view: RankingView
    width: float
    height: float
    scrolled: float
    intervals: bool

    @property
    def strip(self) -> float:
        """How high the strip of scores beside a row is."""
        high = min(max(STRIP_SHARE * self.height, STRIP_LEAST), STRIP_MOST)
        return high if self.intervals else 0.0

    @property
    def side(self) -> float:
        """How wide and high a card is."""
        return min(max(0.29 * (self.height - 2 * self.strip), SMALLEST), LARGEST)

    @property
    def pitch(self) -> float:
        """From one card to the next."""
        return self.side + SPACE

    @property
    def whole(self) -> float:
        """How wide all of it is."""
        return GUTTER + self.view.length * self.pitch + MARGIN

    def top(self, row: int) -> float:
        """Give where the cards of a row begin."""
        return self.strip + 2 if row == BEFORE else self.height - self.strip - self.side - 4

    def x(self, places: NDArray[np.floating]) -> NDArray[np.floating]:
        """Give where the left edges of cards at places are."""
        return np.asarray(GUTTER + places * self.pitch - self.scrolled)

    def card(self, item: int, row: int) -> QRectF:
        """Give where an item's card is."""
        place = (self.view.place_before, self.view.place_after)[row][item]
        left = GUTTER + float(place) * self.pitch - self.scrolled
        return QRectF(left, self.top(row), self.side, self.side)

    def shown(self, row: int) -> NDArray[np.bool_]:
        """Say whose cards of a row are in sight."""
        left = self.x((self.view.place_before, self.view.place_after)[row])
        return np.asarray((left + self.side >= GUTTER) & (left <= self.width))

    def passing(self) -> NDArray[np.bool_]:
        """Say whose line may be in sight, though neither card is."""
        before, after = self.x(self.view.place_before), self.x(self.view.place_after)
        return np.asarray(
            (np.fmax(before, after) + self.side >= GUTTER) & (np.fmin(before, after) <= self.width)
        )

    def parts_at(self, place: QPointF) -> tuple[int, ...]:
        """Give the item at a place; two where their lines cross, none on the ground."""
        view = self.view
        if place.x() < GUTTER:
            return ()
        for row, places in ((BEFORE, view.place_before), (AFTER, view.place_after)):
            if self.top(row) <= place.y() <= self.top(row) + self.side:
                left = self.x(places)
                found = np.flatnonzero((left <= place.x()) & (place.x() <= left + self.side))
                return tuple(found[:1].tolist())
        begin, end = self.top(BEFORE) + self.side, self.top(AFTER)
        if not begin < place.y() < end:
            return ()
        share = (place.y() - begin) / (end - begin)
        middle = view.place_before + share * (view.place_after - view.place_before)
        away = np.abs(self.x(middle) + self.side / 2 - place.x())
        near = np.flatnonzero(away <= REACH)
        near = near[np.argsort(away[near], kind="stable")]
        if not len(near):
            return ()
        first = int(near[0])
        crossing = [other for other in near[1:].tolist() if view.crosses(first, other)]
        return (first, *crossing[:1])
