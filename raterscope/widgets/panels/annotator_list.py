"""The queue of annotators who compared pairs: whose bias to decide next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.pairs.data import BEHAVIOUR_WORDS
from raterscope.widgets.panels.long_queue import LongQueue
from raterscope.widgets.panels.queue_panel import QueueItem

__all__ = ["ANNOTATOR_FILTERS", "CLEARED", "FLAGGED", "OPEN", "AnnotatorList", "AnnotatorsView"]

ANNOTATOR_FILTERS = {
    "undecided": "undecided",
    "all": "all annotators",
    "flagged": "flagged",
    "bad": "one-sided",
    "ugly": "leaning",
    "good": "no bias found",
    "not decidable": "not decidable",
    "decided": "decided by you",
    "untested": "not tested",
}
"""What the queue can be narrowed to: key and words."""

EMPTY = {
    "undecided": "You have flagged or cleared every annotator.",
    "flagged": "No annotator is flagged. Change the false discovery rate, or press F to flag an annotator.",
    "bad": "No flagged annotator is one-sided.",
    "ugly": "No flagged annotator leans to one side.",
    "good": "No annotator is free of bias. Look under flagged and not decidable.",
    "not decidable": "Every annotator who is not flagged has enough comparisons to show a bias.",
    "decided": "No decisions yet. Press F to flag an annotator, or C to clear one.",
    "untested": "Every annotator has enough comparisons to be tested.",
}
"""What is said where nobody is of that kind."""

FUSE_FIRST = "Press Fuse (F5) to test every annotator for bias."
BY_FUSION = frozenset({"flagged", "bad", "ugly", "good", "not decidable"})
"""What nobody is before there is a fusion."""

OPEN, FLAGGED, CLEARED = 0, 1, 2
DECISIONS = {FLAGGED: "flagged by you", CLEARED: "cleared by you"}


@dataclass(frozen=True, eq=False)
class AnnotatorsView:
    """Annotators as arrays; nothing is made of one before its line is looked at.

    Attributes
    ----------
    names : sequence of p str
    whole : int
        How many of them there are to be listed: those who compared something.
    order : (M,) int
        Which annotators are shown, and in which order.
    left, right, ties : (p,) int
    behaviour : (p,) int
        Numbers in `BEHAVIOURS`; -1 for those not tested, and for all before there is a fusion.
    doubt : (p,) float, optional
        What the bar shows, 0 to 1: 1 - q value, or the share of draws that select; NaN for those not tested.
    decided : (p,) int
        `OPEN`, `FLAGGED` or `CLEARED`.
    """

    names: Sequence[str]
    whole: int
    order: NDArray[np.integer]
    left: NDArray[np.integer]
    right: NDArray[np.integer]
    ties: NDArray[np.integer]
    behaviour: NDArray[np.integer]
    decided: NDArray[np.integer]
    doubt: NDArray[np.floating] | None = None

    def item(self, number: int) -> QueueItem:
        """Make the line of an annotator."""
        behaviour, decided = int(self.behaviour[number]), int(self.decided[number])
        doubt = None if self.doubt is None else float(self.doubt[number])
        if doubt is not None and not np.isfinite(doubt):
            doubt = None
        state = DECISIONS.get(decided, "")
        if not state and behaviour >= 0:
            state = BEHAVIOUR_WORDS[behaviour]
        elif not state and self.doubt is not None:
            state = "not tested"
        counts = f"{self.left[number]:,} left, {self.right[number]:,} right"
        if self.ties[number]:
            counts += f", {self.ties[number]:,} tied"
        detail = f"{state}: {counts}" if state else counts
        return QueueItem(number, self.names[number], detail, doubt, decided != OPEN)


class AnnotatorList(LongQueue):
    """Annotators in the order given."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Annotators", ANNOTATOR_FILTERS, parent, empty=EMPTY)

    def why_empty(self, key: str) -> str:
        """Say why nobody is of a kind; before a fusion nobody can be of some."""
        unfused = isinstance(self._shown, AnnotatorsView) and self._shown.doubt is None
        return FUSE_FIRST if unfused and key in BY_FUSION else super().why_empty(key)
