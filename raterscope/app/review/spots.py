"""Decisions on the spots of an image and on the image, and spots viewed without a decision.

A spot is identified by its position. Decisions concern the same spot if their `about` is the same, if the
spot has the same number in the same run, or if they lie within a pixel. After a new fusion, `match` finds the
cluster of a decided spot.

A missing decision is informative only if the expert saw the spot. A spot counts as viewed if it was selected
on its image for at least `LONG_ENOUGH` seconds. In the grid of spots, its crop must be visible that long
while other visible spots are decided. A spot that was only visible on the image does not count, because the
expert may not have noticed it. A skipped spot does not count either: to skip means "I do not know".
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, get_args

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray, KnownSpots
from raterscope.app.review.decision import Decision
from raterscope.app.review.samples import SampledItem
from raterscope.app.review.subjects import ImageSubject, SpotOf, SpotsSubject, SpotSubject
from raterscope.app.review.tasks import ItemDecisions
from raterscope.text import counted

Verdict = Literal["accepted", "rejected", "skipped", "added"]

SAME_PLACE = 1.0
_SUPERSEDED: Mapping[str, Collection[str] | None] = {
    "accept": ("accept", "reject", "skip"),
    "reject": None,
    "move": ("accept", "reject", "move", "skip"),
    "add": (),
    "skip": ("skip",),
    "reopen": None,
}
"""By verb of a decision, the verbs of the earlier decisions on a spot that it supersedes; None for all.

A spot that is accepted after it was added or moved keeps its position.
"""
REACH = 3.0
REACH_OF_REJECTED = 1.5
SHORTEST_REACH = 3.0


@dataclass(frozen=True)
class Spot:
    """A spot that the expert has decided."""

    # x, y: position, after any move
    x: float
    y: float
    verdict: Verdict  # accepted, rejected, skipped or added
    decision: int  # the last decision on it that is in effect
    # anchor_x, anchor_y: position of the decided cluster, which a move does not change; it identifies the
    # cluster
    anchor_x: float
    anchor_y: float
    number: int | None = None  # the number that it had on screen
    # how experts disagree on a skipped spot: "anna: reject; ben: accept". Empty for other spots.
    contested: str = ""
    label: str = ""  # class decided by the expert; empty if undecided


@dataclass(frozen=True)
class Flag:
    """Flag of an image: reason and decision."""

    reason: str
    decision: int


@dataclass(frozen=True)
class Control:
    """Control mark of an image, and the decision."""

    holds: bool  # whether the image is known to hold structures; otherwise it is known to hold none
    decision: int

    def in_words(self) -> str:
        """Describe the mark: "negative control"."""
        return f"{'positive' if self.holds else 'negative'} control"


class SpotsOfImage:
    """Decided spots, flag and control mark of one image, collected while the journal is read."""

    def __init__(self) -> None:
        self.spots: list[Spot] = []
        self.flag: Flag | None = None
        self.control: Control | None = None
        self.decisions = ItemDecisions()
        self._by_decision: dict[int, list[int]] = {}
        self._by_number: dict[tuple[int, int], int] = {}
        self._by_cell: dict[tuple[int, int], list[int]] = {}

    def apply(self, decision: Decision, image: int) -> None:
        """Apply a decision to its spots, or create them."""
        subject = decision.subject
        if isinstance(subject, ImageSubject):
            self._mark(decision)
        elif isinstance(subject, SpotsSubject):
            for spot in subject.by_image.get(image, ()):
                self._judge(decision, spot, spot.x, spot.y, spot.run, spot.about, subject.label)
        elif isinstance(subject, SpotSubject):
            at_x = subject.x if subject.from_x is None else subject.from_x
            at_y = subject.y if subject.from_y is None else subject.from_y
            self._judge(decision, subject, at_x, at_y, decision.run, decision.about, subject.label)

    def _mark(self, decision: Decision) -> None:
        """Apply a decision on the whole image to its flag or control mark."""
        if "flag" in decision.verb:
            self.flag = Flag(decision.reason, decision.id) if decision.verb == "flag" else None
            self.decisions.add("image", decision.id, decision.verb)
            return
        marked = decision.verb != "uncontrol"
        self.control = Control(decision.verb == "positive", decision.id) if marked else None
        self.decisions.add("control", decision.id, decision.verb)

    def _judge(
        self, decision: Decision, subject: SpotSubject | SpotOf, at_x: float, at_y: float, run: int | None,
        about: int | None, label: str,
    ) -> None:  # fmt: skip
        verb = decision.verb
        index = None if verb == "add" else self._find(run, about, subject.number, at_x, at_y)
        if index is None:
            index = len(self.spots)
            self.spots.append(Spot(at_x, at_y, "skipped", decision.id, at_x, at_y, subject.number))
        before = self.spots[index]
        after = replace(before, number=before.number if subject.number is None else subject.number)
        if verb == "reopen":
            after = replace(
                after, verdict="skipped", decision=decision.id, contested=decision.reason, label=""
            )
        elif verb != "skip":
            verdict = _verdict(before.verdict, verb)
            label = "" if verdict == "rejected" else label or before.label
            after = replace(after, verdict=verdict, decision=decision.id, contested="", label=label)
        if verb == "move":
            after = replace(after, x=subject.x, y=subject.y)
            if before.verdict == "added":
                after = replace(after, anchor_x=subject.x, anchor_y=subject.y)
        self.spots[index] = after
        self.decisions.add(index, decision.id, verb, _SUPERSEDED[verb])
        for point in {(after.x, after.y), (after.anchor_x, after.anchor_y)}:
            self._by_cell.setdefault(_cell(*point), []).append(index)
        self._by_decision.setdefault(decision.id, []).append(index)
        if run is not None and subject.number is not None:
            self._by_number[run, subject.number] = index

    def fixed(self) -> list[object]:
        """Return the decisions that a fusion holds fixed: spots and the control mark."""
        spots = sorted(
            (spot.anchor_x, spot.anchor_y, spot.verdict != "rejected", spot.label)
            for spot in self.spots
            if spot.verdict != "skipped"
        )
        return [*spots, *([] if self.control is None else [self.control.holds])]

    def settled_subjects(self) -> tuple[str, ...]:
        """Describe how many spots are settled."""
        count = sum(spot.verdict != "skipped" for spot in self.spots)
        return (counted(count, "spot"),) if count else ()

    def undone_since(self, current: SpotsOfImage | None, undone: Container[int]) -> list[int]:
        """Return the decisions on spots that are undecided now, and an undone control mark."""
        marked = [] if self.control is None else [self.control.decision]
        return [
            spot.decision
            for spot in self.spots
            if spot.verdict != "skipped"
            and (current is None or not current.settles(spot.anchor_x, spot.anchor_y))
        ] + [
            decision
            for decision in marked
            if decision in undone and (current is None or current.control is None)
        ]

    def verdict_on(self, sampled: SampledItem, since: int) -> tuple[int, bool] | None:
        """Return the decision on a detection, and whether it confirms the detection (accepted or moved)."""
        x, y = sampled.x or 0.0, sampled.y or 0.0
        index = self._find(sampled.run, None, sampled.number, x, y)
        if index is None:  # decided in another run
            index = self._nearest(range(len(self.spots)), x, y, SHORTEST_REACH)
        spot = None if index is None else self.spots[index]
        if spot is None or spot.decision <= since or spot.verdict == "skipped":
            return None
        return spot.decision, spot.verdict != "rejected"

    def settles(self, x: float, y: float) -> bool:
        """Return whether there is an accepted, added or rejected spot at a position."""
        return any(
            math.hypot(self.spots[index].anchor_x - x, self.spots[index].anchor_y - y) <= SAME_PLACE
            for index in self._near(x, y)
            if self.spots[index].verdict != "skipped"
        )

    def _find(self, run: int | None, about: int | None, number: int | None, x: float, y: float) -> int | None:
        if about in self._by_decision:
            return self._nearest(self._by_decision[about], x, y, math.inf)
        if run is not None and number is not None:
            index = self._by_number.get((run, number))
            if index is not None:
                return index
        return self._nearest(self._near(x, y), x, y, SAME_PLACE)

    def _nearest(self, among: Sequence[int], x: float, y: float, nearest: float) -> int | None:
        nearest_index = None
        for index in among:
            spot = self.spots[index]
            for spot_x, spot_y in ((spot.x, spot.y), (spot.anchor_x, spot.anchor_y)):
                distance = math.hypot(spot_x - x, spot_y - y)
                if distance <= nearest:
                    nearest, nearest_index = distance, index
        return nearest_index

    def _near(self, x: float, y: float) -> list[int]:
        """List the spots in the grid cell of a position or its neighbours."""
        column, row = _cell(x, y)
        cells = ((column + right, row + down) for right in (-1, 0, 1) for down in (-1, 0, 1))
        return sorted({index for cell in cells for index in self._by_cell.get(cell, ())})


def known_spots(spots: Sequence[Spot], truth: tuple[FloatArray, FloatArray] | None = None) -> KnownSpots:
    """Return the spots that the next fusion of an image holds fixed.

    `spots`: spots of the image that the expert has decided. `truth`: (x, y), imported true positions to be
    held fixed too; a decision within a pixel of one overrides it.
    """
    if not spots and truth is None:
        return KnownSpots.none()
    decided = [spot for spot in spots if spot.verdict != "skipped"]
    x = [spot.anchor_x for spot in decided]
    y = [spot.anchor_y for spot in decided]
    present = [spot.verdict != "rejected" for spot in decided]
    classes = [spot.label for spot in decided]
    if truth is not None:
        for true_x, true_y in zip(*truth, strict=True):
            if all(math.hypot(true_x - a, true_y - b) > SAME_PLACE for a, b in zip(x, y, strict=True)):
                x.append(float(true_x))
                y.append(float(true_y))
                present.append(True)
                classes.append("")
    return KnownSpots(
        np.array(x, dtype=float), np.array(y, dtype=float), np.array(present, dtype=bool),
        tuple(classes) if any(classes) else (),
    )  # fmt: skip


def match(spots: Sequence[Spot], mean: FloatArray, covariance: FloatArray) -> list[int | None]:
    """Match decided spots with clusters by position; None for a spot without a cluster.

    The nearest pairs are matched first, each spot at most once. The maximum distance is three standard
    deviations along the cluster's long axis, 1.5 for a rejected spot, and never less than three pixels. A
    rejection that matched another cluster would hide a structure. A fusion, which knows the click scatter,
    matches decisions by Mahalanobis distance instead (`algorithms.clicks.voting.clusters_of_spots`), and
    treats no cluster as narrower than the scatter. Here, the result may be of any clusterer.

    `mean`: (M, 2). `covariance`: (M, 2, 2).
    """
    clusters: list[int | None] = [None] * len(spots)
    if not spots or not len(mean):
        return clusters
    anchors = np.array([(spot.anchor_x, spot.anchor_y) for spot in spots])
    distance = np.hypot(*(anchors[:, None, :] - mean[None, :, :]).transpose(2, 0, 1))
    middle = (covariance[:, 0, 0] + covariance[:, 1, 1]) / 2
    half_gap = np.hypot((covariance[:, 0, 0] - covariance[:, 1, 1]) / 2, covariance[:, 0, 1])
    longest = np.sqrt(np.maximum(middle + half_gap, 0.0))
    times = np.array([REACH_OF_REJECTED if spot.verdict == "rejected" else REACH for spot in spots])
    rows, columns = np.nonzero(distance <= np.maximum(times[:, None] * longest, SHORTEST_REACH))
    used: set[int] = set()
    for pair in np.argsort(distance[rows, columns], kind="stable"):
        spot, cluster = int(rows[pair]), int(columns[pair])
        if clusters[spot] is None and cluster not in used:
            clusters[spot] = cluster
            used.add(cluster)
    return clusters


def _cell(x: float, y: float) -> tuple[int, int]:
    return math.floor(x / SAME_PLACE), math.floor(y / SAME_PLACE)


def _verdict(before: Verdict, verb: str) -> Verdict:
    if verb == "add" or (verb in ("accept", "move") and before == "added"):
        return "added"
    return "rejected" if verb == "reject" else "accepted"


ViewedHow = Literal["selected", "listed"]
"""Kind of view of a spot: "selected" on its image, or "listed" in the grid of spots."""

LONG_ENOUGH = 0.5
"""Minimum seconds on screen for a spot to count as viewed."""

_HOW = get_args(ViewedHow)


@dataclass(frozen=True, kw_only=True)
class View:
    """A spot that was viewed and left without a decision."""

    image: int  # the image's number in the study
    # x, y: position of the spot, pixels
    x: float
    y: float
    number: int | None = None  # the number that it had on screen
    run: int | None = None  # the run whose result was on screen
    how: ViewedHow = "selected"  # selected or listed
    seconds: float  # seconds for which it was visible
    id: int = 0  # counts from 1; 0 until the study has recorded it
    at: datetime | None = None  # end of the view; None until the study has recorded it
    who: str = ""  # filled with the user's name by the study when it is empty

    def __post_init__(self) -> None:
        if not (math.isfinite(self.x) and math.isfinite(self.y)):
            raise ValueError(f"a view of a spot at {self.x}, {self.y}; expected finite numbers.")
        if not 0 <= self.seconds < math.inf:
            raise ValueError(f"a view of {self.seconds} seconds; expected a finite number from 0 on.")
        if self.how not in _HOW:
            raise ValueError(f"a view is {self.how!r}; expected one of {', '.join(_HOW)}.")


def viewed_places(views: Sequence[View], spots: Sequence[Spot]) -> FloatArray:
    """Return the positions, (V, 2) pixels, of an image's viewed spots without a decision.

    Views of the same spot, also in different runs, count once, at the last position.

    `views`: views of the image, the oldest first. `spots`: spots of the image that were decided or skipped.
    """
    judged = np.array([(spot.anchor_x, spot.anchor_y) for spot in spots]).reshape(-1, 2)
    points: list[tuple[float, float]] = []
    for view in reversed(views):
        known = np.concatenate([judged, np.array(points).reshape(-1, 2)])
        away = np.hypot(known[:, 0] - view.x, known[:, 1] - view.y)
        if view.seconds >= LONG_ENOUGH and not (away <= SHORTEST_REACH).any():
            points.append((view.x, view.y))
    return np.array(points[::-1], dtype=np.float64).reshape(-1, 2)
