"""Evidence panel for one spot: posterior, votes, annotators, explanation, and decision keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QVBoxLayout, QWidget

from raterscope.text import UNKNOWN, figure
from raterscope.widgets import theme
from raterscope.widgets.hints import KeyButton, key_grid
from raterscope.widgets.layouts import STRETCH, horizontal, rule, scroll_area, stacked, vertical
from raterscope.widgets.panels.class_bars import LOW_BAR, ClassBar, ClassBars
from raterscope.widgets.panels.spot_details import (
    SIDE,
    TONES,
    WORDS,
    CropView,
    EvidenceLine,
    SpotTabs,
    VoterLine,
)
from raterscope.widgets.parts import Header, placeholder, plain_label, plain_tip
from raterscope.widgets.theme import set_lengths

NARROWEST, LOWEST = 320, 360
MOST_CLASSES = 6
"""Classes in sight; more are scrolled."""

CHOOSE = (
    "Select a spot on the image, or press Tab for the next disputed one, "
    "to see its votes and why the model decided as it did."
)
COVERED = "Votes, names and the model's answer are hidden until you decide."
SMALL_SIDE, HIGH = 128, 540
MOST_SAY = 3


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence for one spot."""

    title: str  # "Spot 14"
    # one of "detected", "rejected", "disputed", "accepted", "turned down", "added"; of a covered one
    # "undecided"
    state: str
    # probability, low, high: posterior and its 95 % interval; NaN if unknown
    probability: float
    low: float
    high: float
    caption: str  # name of the number: "posterior parasite"
    # votes, annotators: number of annotators who clicked, and who saw the image
    votes: int
    annotators: int
    lines: tuple[VoterLine, ...] = ()  # the most reliable first
    # sources and their statements, a line each: "votes" and "5 of 14 marked it"
    says: tuple[tuple[str, str], ...] = ()
    why: str = ""  # why they differ, in one or two sentences
    neighbours: tuple[EvidenceLine, ...] = ()  # the nearest first
    where: str = ""  # name of the image if it is not on screen
    # whether votes and posterior are hidden; `before` then describes the spot decided last
    covered: bool = False
    before: str = ""
    crop: NDArray[np.uint8] | None = None  # (H, W) or (H, W, 3): the spot and its surroundings
    crop_radius: float = 1.0  # half the width of the crop, in the units of `covariance`
    covariance: NDArray[np.floating] | None = None  # (2, 2): for the ellipse in the crop
    coverage: float = 0.95  # share of the distribution in the ellipse
    classes: tuple[ClassBar, ...] = ()  # classes that the spot may have; () without classes


class EvidencePanel(QWidget):
    """Evidence for one spot: posterior, votes, annotators, explanation, and decision keys."""

    accept_requested = Signal()
    reject_requested = Signal()
    skip_requested = Signal()
    add_requested = Signal()
    move_requested = Signal()
    undo_requested = Signal()
    voter_chosen = Signal(int)  # index of the annotator
    neighbour_chosen = Signal(object)  # key of a neighbour's line
    run_chosen = Signal(object)  # key of a run's line
    class_chosen = Signal(int)  # index of the class that was decided by a click or Return
    runs_wanted = Signal()  # the tab of other runs became visible; answer with `show_runs`

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        set_lengths(self, minimumWidth=NARROWEST)
        self.setMinimumHeight(LOWEST)  # with larger text too: the page scrolls, the keys stay visible
        self._header = Header("Evidence")
        self._header.row.addStretch(0)
        self._nothing = placeholder(CHOOSE)
        self._nothing.setContentsMargins(12, 0, 12, 12)
        page = QWidget()
        self._pages = stacked(self._nothing, scroll_area(page))
        top = vertical(self._header, margins=(12, 12, 12, 8))
        vertical(top, (self._pages, 1), self._keys(), inside=self)
        self._fill(page)
        self.show_spot(None)

    def show_spot(self, evidence: Evidence | None, nothing: str = CHOOSE) -> None:
        """Show a spot; None shows the empty state."""
        known = evidence is not None
        self._pages.setCurrentIndex(int(known))
        for button in (self.accept, self.reject, self.skip, self.move_key):
            button.setEnabled(known)
        if evidence is None:
            self._nothing.setText(nothing)
            self._header.set_title("Evidence")
            self._header.set_aside("")
            return
        tone = TONES[evidence.state]
        self._header.set_title(evidence.title, evidence.where)
        # Without a name the state follows the title: at the right, large text would scroll it out of view.
        self._header.row.setStretch(1, int(bool(evidence.where)))
        words = WORDS.get(evidence.state, evidence.state)
        self._header.set_aside(words, tone, brief=words.removesuffix(" by you"))
        self._crop.show_crop(evidence.crop, evidence.crop_radius, evidence.covariance, evidence.coverage,
                             evidence.state, evidence.title)  # fmt: skip
        covered = evidence.covered
        self.classes.show_bars(evidence.classes, low=True)
        self._named.setVisible(bool(evidence.classes))
        lines = min(len(evidence.classes), MOST_CLASSES)
        self.classes.setFixedHeight(lines * LOW_BAR + 2 * self.classes.frameWidth())
        self._covered.setText(COVERED)
        self._before.setText(evidence.before)
        for widget, seen in (
            (self._covered, covered), (self._last, covered),
            (self._number, not covered), (self._caption, not covered), (self._votes, not covered),
            (self._others, not covered), (self._says, not covered),
        ):  # fmt: skip
            widget.setVisible(seen)
        number = figure(evidence.probability, evidence.low, evidence.high)
        self._number.setText("–" if number == UNKNOWN else number)
        theme.set_role(self._number, f"number-{tone if tone != 'second' else 'plain'}")
        self._caption.setText(evidence.caption)
        interval = math.isfinite(evidence.low) and math.isfinite(evidence.high) and not covered
        low = figure(evidence.low, evidence.low, evidence.high)
        high = figure(evidence.high, evidence.low, evidence.high)
        self._interval.setText(f"{low} to {high}" if interval else "")
        for label in (self._interval, self._interval_caption):
            label.setVisible(interval)
        self._votes.setText(f"{evidence.votes} of {evidence.annotators} votes")
        self.about.show_spot(evidence.lines, evidence.neighbours)
        for row, labels in enumerate(self._rows):
            statement = evidence.says[row] if row < len(evidence.says) else ("", "")
            for label, words in zip(labels, statement, strict=True):
                label.setText(words)
                label.setVisible(bool(words))
        self._why.setText(evidence.why)
        self._why.setVisible(bool(evidence.why))
        self._why_title.setText({"disputed": "WHY DISPUTED"}.get(evidence.state, "WHY"))
        text = (
            "other annotators' marks are hidden" if covered else f"{evidence.caption} {self._number.text()}"
        )
        self._numbers.setAccessibleName(f"{evidence.title}, {evidence.state}, {text}")
        self._ask_for_runs()

    def show_runs(self, lines: Sequence[EvidenceLine] | None, nothing: str = "") -> None:
        """Show the results of other runs for the spot; None while they are being read."""
        self.about.show_runs(lines, nothing)

    def choose_voter(self, annotator: int | None) -> None:
        """Mark an annotator among the voters, without a signal."""
        self.about.choose_voter(annotator)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Shrink the crop in a low panel, so that everything stays visible."""
        super().resizeEvent(event)
        self._crop.set_side(SIDE if self.height() >= HIGH else SMALL_SIDE)

    def show_neighbours(self) -> None:
        """Show the tab of nearby spots."""
        self.about.bring_neighbours()

    def show_other_runs(self) -> None:
        """Show the tab of other runs."""
        self.about.bring_runs()

    def set_undoable(self, undo: bool, words: str = "") -> None:
        """Show which decision Undo takes back, if any."""
        self.undo.setEnabled(undo)
        self.undo.setToolTip(plain_tip(f"Undo: {words}" if words else "Undo the last decision"))

    def _fill(self, page: QWidget) -> None:
        self._crop = CropView()
        self._number = plain_label("", "number-plain", selectable=True)
        set_lengths(self._number, minimumHeight=38)
        self._caption = plain_label("", "small", wrap=True)
        self._interval = plain_label()
        self._interval_caption = plain_label("95 % interval", "small")
        self._votes = plain_label()
        self._covered = plain_label("", "second", wrap=True)
        self._before = plain_label("", "second", wrap=True, selectable=True)
        self._numbers = QWidget()
        vertical(
            self._number,
            self._caption,
            8,
            self._interval,
            self._interval_caption,
            8,
            self._votes,
            self._covered,
            STRETCH,
            inside=self._numbers,
        )
        beside = horizontal(
            (self._crop, 0, Qt.AlignmentFlag.AlignTop),
            (self._numbers, 1),
            margins=(12, 0, 12, 12),
            spacing=14,
        )
        self.about = SpotTabs()
        self.about.voter_chosen.connect(self.voter_chosen)
        self.about.neighbour_chosen.connect(self.neighbour_chosen)
        self.about.run_chosen.connect(self.run_chosen)
        self.about.currentChanged.connect(self._ask_for_runs)
        self.classes = ClassBars()
        self.classes.decided.connect(self.class_chosen)
        self._named = QWidget()
        horizontal(self.classes, inside=self._named, margins=(10, 0, 8, 6))
        self._others = QWidget()
        horizontal(self.about, inside=self._others, margins=(4, 2, 0, 0))
        self._says = self._reasons()
        self._last = QWidget()
        vertical(self._before, STRETCH, inside=self._last, margins=(12, 12, 12, 0), spacing=None)
        vertical(beside, self._named, rule(), (self._others, 1), self._says, (self._last, 1), inside=page)

    def _reasons(self) -> QWidget:
        """Describe what the votes say, what the model says, and why they differ."""
        self._why_title = plain_label("WHY", "caption")
        self._why = plain_label("", "second", wrap=True, selectable=True)
        self._rows = [
            (plain_label("", "small"), plain_label(selectable=True, wrap=True)) for _ in range(MOST_SAY)
        ]
        part = QWidget()
        grid = QGridLayout()
        grid.setContentsMargins(12, 10, 12, 10)
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(3)
        grid.setColumnStretch(1, 1)
        grid.addWidget(self._why_title, 0, 0, 1, 2)
        for row, (source, statement) in enumerate(self._rows, start=1):
            grid.addWidget(source, row, 0, Qt.AlignmentFlag.AlignBaseline)
            grid.addWidget(statement, row, 1, Qt.AlignmentFlag.AlignBaseline)
        grid.addWidget(self._why, MOST_SAY + 1, 0, 1, 2)
        vertical(rule(), grid, inside=part)
        return part

    def _ask_for_runs(self) -> None:
        if self._pages.currentIndex() and self.about.runs_visible and not self._others.isHidden():
            self.runs_wanted.emit()

    def _keys(self) -> QVBoxLayout:
        self.accept = KeyButton("A", "accept", "accent", "Accept the spot and go to the next disputed one")
        self.reject = KeyButton("R", "reject", "rejected", "Reject the spot and go to the next disputed one")
        self.skip = KeyButton(
            "S", "skip", "second", "Leave the spot undecided and go to the next disputed one"
        )
        self.add = KeyButton("N", "add", "second", "Add a missed spot")
        self.move_key = KeyButton("M", "move", "second", "Move the spot to the correct position")
        self.undo = KeyButton("Z", "undo", "second", "Undo the last decision")
        grid = key_grid(
            (self.accept, self.accept_requested),
            (self.reject, self.reject_requested),
            (self.skip, self.skip_requested),
            (self.add, self.add_requested),
            (self.move_key, self.move_requested),
            (self.undo, self.undo_requested),
        )
        return vertical(rule(), grid)
