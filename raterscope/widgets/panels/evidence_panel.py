"""The evidence: why a spot stands as it does, and the keys that settle it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.figures import UNKNOWN, figure
from raterscope.widgets.key_cap import KeyButton
from raterscope.widgets.panels.crop_view import CropView
from raterscope.widgets.panels.voter_list import VoterLine, VoterList
from raterscope.widgets.parts import Header, plain_label, rule

__all__ = ["Evidence", "EvidencePanel", "VoterLine"]

NARROWEST = 320

TONES = {
    "detected": "accent",
    "accepted": "accent",
    "added": "accent",
    "rejected": "rejected",
    "turned down": "rejected",
    "disputed": "disputed",
}
WORDS = {"turned down": "rejected by you", "accepted": "accepted by you", "added": "added by you"}


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of one spot.

    Attributes
    ----------
    title : str
        "Spot 14".
    state : str
        One of "detected", "rejected", "disputed", "accepted", "turned down", "added".
    probability, low, high : float
        The number that decides, with its 95 % interval; NaN where not known.
    caption : str
        What the number is: "posterior parasite".
    votes, annotators : int
        Who clicked, of those who looked.
    lines : tuple of VoterLine
        The most reliable first.
    why : str
        A sentence or two.
    aside : str
        More about the votes: "15 of them by unreliable annotators".
    crop : (H, W) or (H, W, 3) uint8, optional
        The spot and what surrounds it.
    crop_radius : float
        Half the width of the crop, in the units of `covariance`.
    covariance : (2, 2) float, optional
        For the ellipse in the crop.
    coverage : float
        Share of the distribution in the ellipse.
    """

    title: str
    state: str
    probability: float
    low: float
    high: float
    caption: str
    votes: int
    annotators: int
    lines: tuple[VoterLine, ...] = ()
    why: str = ""
    aside: str = ""
    crop: NDArray[np.uint8] | None = None
    crop_radius: float = 1.0
    covariance: NDArray[np.floating] | None = None
    coverage: float = 0.95


class EvidencePanel(QWidget):
    """One spot: its number large, its votes, its annotators, a sentence in words, the keys.

    Signals
    -------
    accept_requested, reject_requested, skip_requested, add_requested, move_requested, undo_requested
    voter_chosen : int
        Index of the annotator.
    """

    accept_requested = Signal()
    reject_requested = Signal()
    skip_requested = Signal()
    add_requested = Signal()
    move_requested = Signal()
    undo_requested = Signal()
    voter_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setMinimumWidth(NARROWEST)
        self._header = Header("Evidence")
        self._pages = QStackedWidget()
        self._pages.addWidget(_nothing())
        self._pages.addWidget(self._spot())
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        top = QVBoxLayout()
        top.setContentsMargins(12, 12, 12, 8)
        top.addWidget(self._header)
        column.addLayout(top)
        column.addWidget(self._pages, 1)
        column.addLayout(self._keys())
        self.show_spot(None)

    def show_spot(self, evidence: Evidence | None) -> None:
        """Show a spot, or that none is selected."""
        known = evidence is not None
        self._pages.setCurrentIndex(int(known))
        for button in (self.accept, self.reject, self.skip, self.move_key):
            button.setEnabled(known)
        if evidence is None:
            self._header.set_title("Evidence")
            self._header.set_aside("")
            return
        tone = TONES[evidence.state]
        self._header.set_title(evidence.title)
        self._header.set_aside(WORDS.get(evidence.state, evidence.state), tone)
        self._crop.show_crop(evidence.crop, evidence.crop_radius, evidence.covariance, evidence.coverage,
                             evidence.state)  # fmt: skip
        number = figure(evidence.probability, evidence.low, evidence.high)
        self._number.setText("–" if number == UNKNOWN else number)
        theme.set_role(self._number, f"number-{tone}")
        self._caption.setText(evidence.caption)
        interval = math.isfinite(evidence.low) and math.isfinite(evidence.high)
        low = figure(evidence.low, evidence.low, evidence.high)
        high = figure(evidence.high, evidence.low, evidence.high)
        self._interval.setText(f"{low} to {high}" if interval else "")
        for label in (self._interval, self._interval_caption):
            label.setVisible(interval)
        self._votes.setText(f"{evidence.votes} of {evidence.annotators} votes")
        self._aside.setText(evidence.aside)
        self._aside.setVisible(bool(evidence.aside))
        self._voters.set_lines(evidence.lines)
        self._why.setText(evidence.why)
        self._why_title.setText({"disputed": "WHY DISPUTED"}.get(evidence.state, "WHY"))
        self._numbers.setAccessibleName(
            f"{evidence.title}, {evidence.state}, {evidence.caption} {self._number.text()}"
        )

    def set_undoable(self, undo: bool) -> None:
        """Say whether there is a decision to take back."""
        self.undo.setEnabled(undo)

    def _spot(self) -> QWidget:
        self._crop = CropView()
        self._number = plain_label("", "number-plain", selectable=True)
        self._number.setMinimumHeight(38)
        self._caption = plain_label("", "small", wrap=True)
        self._interval = plain_label()
        self._interval_caption = plain_label("95 % interval", "small")
        self._votes = plain_label()
        self._aside = plain_label("", "small", wrap=True)
        self._voters = VoterList()
        self._voters.chosen.connect(self.voter_chosen)
        self._why_title = plain_label("WHY", "caption")
        self._why = plain_label("", "second", wrap=True, selectable=True)
        self._numbers = QWidget()
        numbers = QVBoxLayout(self._numbers)
        numbers.setContentsMargins(0, 0, 0, 0)
        numbers.setSpacing(0)
        numbers.addWidget(self._number)
        numbers.addWidget(self._caption)
        for first, second in ((self._interval, self._interval_caption), (self._votes, self._aside)):
            numbers.addSpacing(8)
            numbers.addWidget(first)
            numbers.addWidget(second)
        numbers.addStretch(1)
        beside = QHBoxLayout()
        beside.setSpacing(14)
        beside.setContentsMargins(12, 0, 12, 12)
        beside.addWidget(self._crop, 0, Qt.AlignmentFlag.AlignTop)
        beside.addWidget(self._numbers, 1)
        who = QVBoxLayout()
        who.setContentsMargins(12, 12, 4, 0)
        who.setSpacing(4)
        voters = Header("Who clicked", "reliability")
        voters.row.setContentsMargins(0, 0, 10, 0)
        who.addWidget(voters)
        who.addWidget(self._voters, 1)
        why = QVBoxLayout()
        why.setContentsMargins(12, 12, 12, 12)
        why.setSpacing(4)
        why.addWidget(self._why_title)
        why.addWidget(self._why)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(beside)
        column.addWidget(rule())
        column.addLayout(who, 1)
        column.addWidget(rule())
        column.addLayout(why)
        return page

    def _keys(self) -> QVBoxLayout:
        self.accept = KeyButton("A", "accept", "accent", "It is there; on to the next disputed spot")
        self.reject = KeyButton("R", "reject", "rejected", "It is not there; on to the next disputed spot")
        self.skip = KeyButton("S", "skip", "second", "Leave it open; on to the next disputed spot")
        self.add = KeyButton("N", "add", "second", "Add a spot that nobody found")
        self.move_key = KeyButton("M", "move", "second", "Move the spot to its right place")
        self.undo = KeyButton("Z", "undo", "second", "Take the last decision back")
        self.accept.clicked.connect(self.accept_requested)
        self.reject.clicked.connect(self.reject_requested)
        self.skip.clicked.connect(self.skip_requested)
        self.add.clicked.connect(self.add_requested)
        self.move_key.clicked.connect(self.move_requested)
        self.undo.clicked.connect(self.undo_requested)
        grid = QGridLayout()
        grid.setContentsMargins(12, 8, 12, 12)
        grid.setSpacing(4)
        for place, button in enumerate(
            (self.accept, self.reject, self.skip, self.add, self.move_key, self.undo)
        ):
            grid.addWidget(button, place // 3, place % 3, Qt.AlignmentFlag.AlignLeft)
        for third in range(3):
            grid.setColumnStretch(third, 1)
        column = QVBoxLayout()
        column.setSpacing(0)
        column.addWidget(rule())
        column.addLayout(grid)
        return column


def _nothing() -> QWidget:
    page = QWidget()
    column = QVBoxLayout(page)
    column.setContentsMargins(12, 0, 12, 12)
    column.setSpacing(8)
    words = (
        "Choose a spot on the image, or press Tab for the next disputed one: "
        "why it stands as it does is shown here."
    )
    column.addWidget(plain_label(words, "second", wrap=True))
    column.addStretch(1)
    return page
