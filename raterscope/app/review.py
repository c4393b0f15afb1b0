"""The expert's decisions: one journal, and what follows from it.

A decision is never changed. Undo is a decision that takes another back, redo is the undo of an undo, and
everything that is shown (the verdict on each spot, who is excluded, what can be undone) is read off the
journal by `fold`.

A spot is known by its place. Decisions on the same spot find each other by `about`, by the number that the
spot had in the same run, or by lying within a pixel; after a new fusion `match` finds the cluster that a
decided spot has become.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray, KnownSpots
from raterscope.app.decision import VERBS, Decision, Verb, in_words, target_of

__all__ = [
    "VERBS",
    "Decision",
    "ReviewState",
    "Spot",
    "Verb",
    "Verdict",
    "differ",
    "fold",
    "in_words",
    "known_spots",
    "match",
    "redo",
    "undo",
]

Verdict = Literal["accepted", "rejected", "skipped", "added"]

SAME_PLACE = 1.0
REACH = 3.0
SHORTEST_REACH = 3.0


@dataclass(frozen=True)
class Spot:
    """A spot that the expert has judged.

    Attributes
    ----------
    x, y : float
        Where it is; where it was moved to, if it was.
    verdict : str
        accepted, rejected, skipped or added.
    decision : int
        The last decision on it that is in effect.
    anchor_x, anchor_y : float
        Where the cluster stood that was judged; a move does not change it, so that the cluster is found
        again.
    number : int or None
        The number that it had on screen.
    """

    x: float
    y: float
    verdict: Verdict
    decision: int
    anchor_x: float
    anchor_y: float
    number: int | None = None


@dataclass(frozen=True)
class ReviewState:
    """What the journal amounts to.

    Attributes
    ----------
    excluded : dict of annotator to reason
    undoable : Decision or None
        What Undo takes back next.
    redoable : Decision or None
        What Redo brings back next.
    """

    excluded: dict[str, str] = field(default_factory=dict)
    undoable: Decision | None = None
    redoable: Decision | None = None
    _spots: dict[int, list[Spot]] = field(default_factory=dict, repr=False)
    _dead: frozenset[int] = field(default=frozenset(), repr=False)
    _by_id: dict[int, Decision] = field(default_factory=dict, repr=False)
    _undo_of_redoable: int | None = None

    def spots(self, image: int) -> list[Spot]:
        """List the spots of an image that the expert has judged, by the first decision on each."""
        return list(self._spots.get(image, ()))

    def images(self) -> list[int]:
        """List the numbers of the images on which a spot has been judged."""
        return list(self._spots)

    def in_effect(self, decision: int) -> bool:
        """Tell whether a decision stands; one that was undone does not."""
        return decision in self._by_id and decision not in self._dead

    def decision(self, number: int) -> Decision | None:
        """Find a decision by its number."""
        return self._by_id.get(number)

    def in_words(self, decision: Decision) -> str:
        """Say a decision with what it undoes or redoes; see `in_words`."""
        return in_words(decision, self._by_id.get)


def fold(decisions: Iterable[Decision]) -> ReviewState:
    """Read the present state off the journal.

    Parameters
    ----------
    decisions : iterable of Decision
        All of them, in order, as the study gives them.
    """
    journal = list(decisions)
    dead: set[int] = set()
    for decision in reversed(journal):
        if decision.verb == "undo" and decision.id not in dead and decision.undoes is not None:
            dead.add(decision.undoes)
    by_id = {decision.id: decision for decision in journal}
    excluded: dict[str, str] = {}
    spots: dict[int, _SpotsOfImage] = {}
    for decision in journal:
        if decision.id in dead or decision.verb == "undo":
            continue
        if decision.annotator is not None and decision.verb == "exclude":
            excluded[decision.annotator] = decision.reason
        elif decision.annotator is not None and decision.verb == "include":
            excluded.pop(decision.annotator, None)
        elif decision.image is not None:
            spots.setdefault(decision.image, _SpotsOfImage()).take(decision)
    undoable, redone = _stacks(journal, by_id)
    redoable = target_of(by_id[redone], by_id.get)[0] if redone is not None else None
    return ReviewState(
        excluded=excluded,
        undoable=by_id[undoable] if undoable is not None else None,
        redoable=redoable,
        _spots={image: found.spots for image, found in spots.items()},
        _dead=frozenset(dead),
        _by_id=by_id,
        _undo_of_redoable=redone,
    )


def undo(state: ReviewState, decision: int | None = None) -> Decision | None:
    """Make the decision that takes back the last one, or the one named; None where there is none."""
    if decision is None:
        return None if state.undoable is None else Decision(verb="undo", undoes=state.undoable.id)
    return Decision(verb="undo", undoes=decision) if state.in_effect(decision) else None


def redo(state: ReviewState) -> Decision | None:
    """Make the decision that brings back what was undone last; None where nothing is to be brought back."""
    return None if state._undo_of_redoable is None else Decision(verb="undo", undoes=state._undo_of_redoable)


def known_spots(
    state: ReviewState, image: int, truth: tuple[FloatArray, FloatArray] | None = None
) -> KnownSpots:
    """Give the spots that the next fusion of an image holds fixed.

    Parameters
    ----------
    state : ReviewState
    image : int
        The image's number in the study.
    truth : (x, y), optional
        Imported true places to be held fixed too; a decision within a pixel of one has the last word.
    """
    decided = [spot for spot in state.spots(image) if spot.verdict != "skipped"]
    x = [spot.anchor_x for spot in decided]
    y = [spot.anchor_y for spot in decided]
    present = [spot.verdict != "rejected" for spot in decided]
    if truth is not None:
        for true_x, true_y in zip(*truth, strict=True):
            if all(math.hypot(true_x - a, true_y - b) > SAME_PLACE for a, b in zip(x, y, strict=True)):
                x.append(float(true_x))
                y.append(float(true_y))
                present.append(True)
    return KnownSpots(np.array(x, dtype=float), np.array(y, dtype=float), np.array(present, dtype=bool))


def differ(then: ReviewState, now: ReviewState, image: int | None = None) -> bool:
    """Tell whether a fusion from the one state would be held to other decisions than from the other.

    A decision that was made and undone between them, and a spot that was passed over, change nothing.

    Parameters
    ----------
    then, now : ReviewState
    image : int, optional
        The image; None asks for any.
    """
    if set(then.excluded) != set(now.excluded):
        return True
    images = {*then.images(), *now.images()} if image is None else {image}
    return any(_fixed(then, one) != _fixed(now, one) for one in images)


def match(spots: Sequence[Spot], mean: FloatArray, covariance: FloatArray) -> list[int | None]:
    """Find the cluster that each judged spot is, by place.

    The nearest pairs find each other first, and nobody twice. A cluster is within reach up to three standard
    deviations along its long axis, and at least three pixels.

    Parameters
    ----------
    spots : sequence of Spot
    mean : (M, 2) float64
    covariance : (M, 2, 2) float64

    Returns
    -------
    list of int or None
        A cluster a spot; None where no cluster stands there any more.
    """
    found: list[int | None] = [None] * len(spots)
    if not spots or not len(mean):
        return found
    anchors = np.array([(spot.anchor_x, spot.anchor_y) for spot in spots])
    distance = np.hypot(*(anchors[:, None, :] - mean[None, :, :]).transpose(2, 0, 1))
    middle = (covariance[:, 0, 0] + covariance[:, 1, 1]) / 2
    half_gap = np.hypot((covariance[:, 0, 0] - covariance[:, 1, 1]) / 2, covariance[:, 0, 1])
    longest = np.sqrt(np.maximum(middle + half_gap, 0.0))
    reach = np.maximum(REACH * longest, SHORTEST_REACH)
    rows, columns = np.nonzero(distance <= reach[None, :])
    taken: set[int] = set()
    for pair in np.argsort(distance[rows, columns], kind="stable"):
        spot, cluster = int(rows[pair]), int(columns[pair])
        if found[spot] is None and cluster not in taken:
            found[spot] = cluster
            taken.add(cluster)
    return found


class _SpotsOfImage:
    """The judged spots of one image, while the journal is read."""

    def __init__(self) -> None:
        self.spots: list[Spot] = []
        self._by_decision: dict[int, int] = {}
        self._by_number: dict[tuple[int, int], int] = {}
        self._by_cell: dict[tuple[int, int], list[int]] = {}

    def take(self, decision: Decision) -> None:
        """Let a decision change the spot that it is about, or make one."""
        assert decision.x is not None
        assert decision.y is not None
        at_x = decision.x if decision.from_x is None else decision.from_x
        at_y = decision.y if decision.from_y is None else decision.from_y
        index = self._find(decision, at_x, at_y)
        if index is None:
            index = len(self.spots)
            self.spots.append(Spot(at_x, at_y, "skipped", decision.id, at_x, at_y, decision.spot))
        before = self.spots[index]
        after = replace(before, number=before.number if decision.spot is None else decision.spot)
        if decision.verb != "skip":
            after = replace(after, verdict=_verdict(before.verdict, decision.verb), decision=decision.id)
        if decision.verb == "move":
            after = replace(after, x=decision.x, y=decision.y)
            if before.verdict == "added":
                after = replace(after, anchor_x=decision.x, anchor_y=decision.y)
        self.spots[index] = after
        for place in ((after.x, after.y), (after.anchor_x, after.anchor_y)):
            self._by_cell.setdefault(_cell(*place), []).append(index)
        self._by_decision[decision.id] = index
        if decision.run is not None and decision.spot is not None:
            self._by_number[decision.run, decision.spot] = index

    def _find(self, decision: Decision, x: float, y: float) -> int | None:
        if decision.about in self._by_decision:
            return self._by_decision[decision.about]
        if decision.verb == "add":
            return None
        if decision.run is not None and decision.spot is not None:
            index = self._by_number.get((decision.run, decision.spot))
            if index is not None:
                return index
        nearest, place = SAME_PLACE, None
        for index in self._near(x, y):
            spot = self.spots[index]
            for spot_x, spot_y in ((spot.x, spot.y), (spot.anchor_x, spot.anchor_y)):
                distance = math.hypot(spot_x - x, spot_y - y)
                if distance <= nearest:
                    nearest, place = distance, index
        return place

    def _near(self, x: float, y: float) -> list[int]:
        """List the spots that have been in the cell of a place, or in one beside it."""
        column, row = _cell(x, y)
        cells = ((column + right, row + down) for right in (-1, 0, 1) for down in (-1, 0, 1))
        return sorted({index for cell in cells for index in self._by_cell.get(cell, ())})


def _cell(x: float, y: float) -> tuple[int, int]:
    return math.floor(x / SAME_PLACE), math.floor(y / SAME_PLACE)


def _verdict(before: Verdict, verb: Verb) -> Verdict:
    if verb == "add" or (verb in ("accept", "move") and before == "added"):
        return "added"
    return "rejected" if verb == "reject" else "accepted"


def _stacks(journal: list[Decision], by_id: dict[int, Decision]) -> tuple[int | None, int | None]:
    """Walk the journal as somebody who presses Undo and Redo: what is on top of either pile.

    Returns
    -------
    undoable : int or None
        The decision that Undo takes back.
    redone : int or None
        The undo that Redo takes back.
    """
    done: dict[int, None] = {}
    undone: dict[int, int] = {}
    for decision in journal:
        if decision.verb != "undo":
            done[decision.id] = None
            undone.clear()
            continue
        target, times = target_of(decision, by_id.get)
        if target is None:
            continue
        done.pop(target.id, None)
        undone.pop(target.id, None)
        if times % 2:
            undone[target.id] = decision.id
        else:
            done[target.id] = None
    return next(reversed(done), None), next(reversed(undone.values()), None)


def _fixed(state: ReviewState, image: int) -> list[tuple[float, float, bool]]:
    return sorted(
        (spot.anchor_x, spot.anchor_y, spot.verdict != "rejected")
        for spot in state.spots(image)
        if spot.verdict != "skipped"
    )
