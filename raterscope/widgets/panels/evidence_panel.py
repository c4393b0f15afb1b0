"""Evidence for one spot: posterior, votes, annotators, crop, other runs, explanation, and decision keys."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QModelIndex, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QVBoxLayout, QWidget

from raterscope.algorithms.clicks.data import ellipses
from raterscope.text import UNKNOWN, figure, part_of_one
from raterscope.widgets import theme
from raterscope.widgets.canvas.annotation_layers import state_style
from raterscope.widgets.canvas.tiles import to_picture
from raterscope.widgets.figure_menu import FigureMenu, WholeView
from raterscope.widgets.hints import KeyButton, key_grid
from raterscope.widgets.layouts import STRETCH, TabPages, horizontal, rule, scroll_area, stacked, vertical
from raterscope.widgets.painting import paint_annotator, paint_bar, paint_text
from raterscope.widgets.panels.class_bars import LOW_BAR, ClassBar, ClassBars
from raterscope.widgets.panels.lists import ChoiceList, LineKind, LineList
from raterscope.widgets.parts import Header, Placeholder, plain_label, plain_tip
from raterscope.widgets.theme import set_lengths

_SIDE = 152
"""Preferred side of the square."""

NARROWEST, LOWEST = 320, 360
MAX_CLASSES = 6
"""Maximum number of visible classes; more classes scroll."""

CHOOSE = (
    "Select a spot on the image, or press Tab for the next disputed one, "
    "to see its votes and why the model decided as it did."
)
COVERED = "Votes, names and the model's answer are hidden until you decide."
SMALL_SIDE, HIGH = 128, 540
MAX_STATEMENTS = 3

TONES = {
    "detected": "accent",
    "accepted": "accent",
    "added": "accent",
    "rejected": "rejected",
    "turned down": "rejected",
    "disputed": "disputed",
    "undecided": "second",
}
"""Text colour of each state."""

WORDS = {"turned down": "rejected by you", "accepted": "accepted by you", "added": "added by you"}
"""Displayed names of states that differ from their keys."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence for one spot."""

    title: str  # "Spot 14"
    # one of "detected", "rejected", "disputed", "accepted", "turned down", "added"; "undecided" for a covered
    # spot
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
    # sources and their statements, one line each: "votes" and "5 of 14 marked it"
    says: tuple[tuple[str, str], ...] = ()
    why: str = ""  # why they differ, in one or two sentences
    neighbours: tuple[EvidenceLine, ...] = ()  # the nearest first
    where: str = ""  # name of the image if it is not on screen
    # whether votes and posterior are hidden; `before` then describes the last decided spot
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
    runs_requested = Signal()  # the tab of other runs became visible; answer with `about.show_runs`

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        set_lengths(self, minimumWidth=NARROWEST)
        self.setMinimumHeight(LOWEST)  # with larger text too: the page scrolls, the keys stay visible
        self._header = Header("Evidence")
        self._header.row.addStretch(0)
        self._nothing = Placeholder(CHOOSE)
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
            self._header.set_subtitle("")
            return
        tone = TONES[evidence.state]
        self._header.set_title(evidence.title, evidence.where)
        # Without a name, the state follows the title, because at the right large text would hide it.
        self._header.row.setStretch(1, int(bool(evidence.where)))
        words = WORDS.get(evidence.state, evidence.state)
        self._header.set_subtitle(words, tone, brief=words.removesuffix(" by you"))
        self._crop.show_crop(evidence.crop, evidence.crop_radius, evidence.covariance, evidence.coverage,
                             evidence.state, evidence.title)  # fmt: skip
        covered = evidence.covered
        self.classes.show_bars(evidence.classes, low=True)
        self._named.setVisible(bool(evidence.classes))
        lines = min(len(evidence.classes), MAX_CLASSES)
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

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Shrink the crop in a low panel, so that everything stays visible."""
        super().resizeEvent(event)
        self._crop.set_side(_SIDE if self.height() >= HIGH else SMALL_SIDE)

    def set_undoable(self, undo: bool, text: str = "") -> None:
        """Show which decision Undo reverts, if any."""
        self.undo.setEnabled(undo)
        self.undo.setToolTip(plain_tip(f"Undo: {text}" if text else "Undo the last decision"))

    def _fill(self, page: QWidget) -> None:
        """Make the contents, parents first: Qt styles all descendants of a widget that is moved."""
        self._crop, self._numbers = CropView(), QWidget()
        self._named, self._others, self._last = QWidget(), QWidget(), QWidget()
        self._says = self._reasons()
        beside = horizontal(
            (self._crop, 0, Qt.AlignmentFlag.AlignTop),
            (self._numbers, 1),
            margins=(12, 0, 12, 12),
            spacing=14,
        )
        vertical(beside, self._named, rule(), (self._others, 1), self._says, (self._last, 1), inside=page)
        self._number = plain_label("", "number-plain", selectable=True)
        set_lengths(self._number, minimumHeight=38)
        self._caption = plain_label("", "small", wrap=True)
        self._interval = plain_label()
        self._interval_caption = plain_label("95 % interval", "small")
        self._votes = plain_label()
        self._covered = plain_label("", "second", wrap=True)
        self._before = plain_label("", "second", wrap=True, selectable=True)
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
        self.classes = ClassBars()
        horizontal(self.classes, inside=self._named, margins=(10, 0, 8, 6))
        self.about = _SpotTabs(self._others)
        self.about.currentChanged.connect(self._ask_for_runs)
        horizontal(self.about, inside=self._others, margins=(4, 2, 0, 0))
        vertical(self._before, STRETCH, inside=self._last, margins=(12, 12, 12, 0), spacing=None)

    def _reasons(self) -> QWidget:
        """Describe the answers of votes and model, and why they differ."""
        self._why_title = plain_label("WHY", "caption")
        self._why = plain_label("", "second", wrap=True, selectable=True)
        self._rows = [
            (plain_label("", "small"), plain_label(selectable=True, wrap=True)) for _ in range(MAX_STATEMENTS)
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
        grid.addWidget(self._why, MAX_STATEMENTS + 1, 0, 1, 2)
        vertical(rule(), grid, inside=part)
        return part

    def _ask_for_runs(self) -> None:
        if self._pages.currentIndex() and self.about.currentIndex() == RUNS and not self._others.isHidden():
            self.runs_requested.emit()

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


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """List entry for a neighbour or a run."""

    key: Hashable  # description of the selection
    # title, detail: "spot 12", "14 px away"; the run, "5 of 14 votes"
    title: str
    detail: str
    figure: str  # its posterior; empty without one
    state: str  # a key of `TONES`; empty without a spot
    tip: str  # the line in full


class EvidenceLines(QWidget):
    """List of lines, or a sentence if it is empty.

    `name`: accessible name of the list.
    """

    chosen = Signal(object)  # key of the line that was clicked, or selected with Return

    def __init__(self, name: str) -> None:
        super().__init__()
        self.view: LineList[EvidenceLine] = LineList(_Kind(), name)
        self.view.clicked.connect(self._on_chosen)
        self.view.activated.connect(self._on_chosen)
        self._nothing = plain_label("", "second", wrap=True)
        vertical(
            (self._nothing, 0, Qt.AlignmentFlag.AlignTop),
            (self.view, 1),
            inside=self,
            margins=(4, 4, 0, 0),
            spacing=None,
        )
        self.setFocusProxy(self.view)

    def show_lines(self, lines: Sequence[EvidenceLine], nothing: str = "") -> None:
        """Show lines, or why there are none."""
        self.view.set_lines(lines)
        self.view.setVisible(bool(lines))
        self._nothing.setText(nothing)
        self._nothing.setVisible(not lines)

    def _on_chosen(self, index: QModelIndex) -> None:
        if index.isValid():
            self.chosen.emit(self.view.lines[index.row()].key)


class _Kind(LineKind[EvidenceLine]):
    height = 24

    def text_of(self, line: EvidenceLine) -> str:
        return line.tip

    def paint_line(self, painter: QPainter, box: QRectF, line: EvidenceLine) -> None:
        palette = theme.current()
        painter.setFont(theme.font())
        metrics = QFontMetrics(painter.font())
        inner = box.adjusted(4, 0, -8, 0)
        word = WORDS.get(line.state, line.state)
        state = metrics.horizontalAdvance(word) + 4 if word else 0
        figure = metrics.horizontalAdvance("0.000") + 8 if line.figure else 0
        right = Qt.AlignmentFlag.AlignRight
        paint_text(painter, inner, word, getattr(palette, TONES.get(line.state, "third")), side=right)
        inner.setRight(inner.right() - state)
        paint_text(painter, inner.adjusted(0, 0, -6, 0), line.figure, palette.text, side=right)
        inner.setRight(inner.right() - figure)
        detail = metrics.horizontalAdvance(line.detail) + 8
        paint_text(painter, inner, line.detail, palette.second, side=right)
        inner.setRight(inner.right() - detail)
        paint_text(painter, inner, line.title, palette.text, elide=Qt.TextElideMode.ElideMiddle)


BAR = 96


@dataclass(frozen=True, slots=True)
class VoterLine:
    """List entry for one annotator of a spot."""

    annotator: int  # index that determines colour and symbol
    name: str
    clicked: bool
    reliability: float  # 0 to 1, NaN if unknown
    weight: float = 1.0  # weight of the vote

    @property
    def label(self) -> str:
        """Name of the annotator, with the weight if it is below 1."""
        return self.name if self.weight == 1 else f"{self.name}  × {part_of_one(self.weight)}"


class VoterList(ChoiceList[VoterLine]):
    """Annotators of one spot, by their index."""

    chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__(_VoterKind(), "Who clicked")


class _VoterKind(LineKind[VoterLine]):
    height = 24

    def key(self, line: VoterLine) -> Hashable:
        return line.annotator

    def text_of(self, line: VoterLine) -> str:
        text = "clicked" if line.clicked else "did not click"
        known = f"reliability {line.reliability:.2f}" if math.isfinite(line.reliability) else ""
        return ", ".join(part for part in (line.label, text, known) if part)

    def paint_line(self, painter: QPainter, box: QRectF, line: VoterLine) -> None:
        palette = theme.current()
        paint_annotator(painter, QPointF(box.left() + 8, box.center().y()), line.annotator, 4)
        left, right = box.left() + 20, box.right() - 8
        bar_left = right - 36 - BAR
        painter.setFont(theme.font())
        label_left = bar_left - QFontMetrics(painter.font()).horizontalAdvance("clicked") - 12
        name = QRectF(left, box.top(), label_left - left - 8, box.height())
        paint_text(painter, name, line.label, palette.text, elide=Qt.TextElideMode.ElideMiddle)
        text = QRectF(label_left, box.top(), 80, box.height())
        clicked = line.clicked
        paint_text(
            painter, text, "clicked" if clicked else "did not", palette.text if clicked else palette.third
        )
        known = math.isfinite(line.reliability)
        bar = QRectF(bar_left, box.center().y() - 3, BAR, 6)
        paint_bar(painter, bar, line.reliability, theme.annotator_style(line.annotator)[0])
        figure = f"{line.reliability:.2f}" if known else "–"
        room = QRectF(right - 34, box.top(), 34, box.height())
        paint_text(
            painter, room, figure, palette.text if known else palette.third, side=Qt.AlignmentFlag.AlignRight
        )


MIN_LIST = 48
NEIGHBOURS, RUNS = 1, 2
READING = "Reading the other runs…"
ALONE = "No other spot nearby."


class _SpotTabs(TabPages):
    """Tabs for voters, neighbours and other runs of a spot."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._voter: int | None = None
        self.voters = VoterList()
        self.near = EvidenceLines("Spots nearby")
        self.runs = EvidenceLines("The spot in other runs")
        for view in (self.voters, self.near.view, self.runs.view):
            set_lengths(view, minimumHeight=MIN_LIST)
            view.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self.tabBar().setAccessibleName("About the spot")
        for title, tip, part in (
            (
                "Who clicked",
                "Annotators who marked the spot, and those who saw it and did not",
                self._headed_voters(),
            ),
            ("Nearby", "Nearby spots and their distance", self.near),
            ("Other runs", "Results of other runs at this position", self.runs),
        ):
            margins = QWidget()
            self.setTabToolTip(self.addTab(margins, title), tip)
            vertical(part, inside=margins, margins=(8, 0, 4, 4))

    def show_spot(self, voters: Sequence[VoterLine], near: Sequence[EvidenceLine]) -> None:
        """Show the voters and non-voters, and nearby spots."""
        self.voters.set_lines(voters)
        self.voters.choose(self._voter)
        clicked = sum(line.clicked for line in voters)
        self._counts.setText(f"{clicked} clicked, {len(voters) - clicked} did not" if voters else "")
        self.near.show_lines(near, ALONE)

    def show_runs(self, lines: Sequence[EvidenceLine] | None, nothing: str = "") -> None:
        """Show the results of other runs for the spot; None while they are being read."""
        self.runs.show_lines(lines or (), READING if lines is None else nothing)

    def choose_voter(self, annotator: int | None) -> None:
        """Mark an annotator among the voters, without a signal."""
        self._voter = annotator
        self.voters.choose(annotator)

    def bring_neighbours(self) -> None:
        """Show the tab of nearby spots."""
        self.setCurrentIndex(NEIGHBOURS)

    def bring_runs(self) -> None:
        """Show the tab of other runs."""
        self.setCurrentIndex(RUNS)

    def _headed_voters(self) -> QWidget:
        self._counts = plain_label("", "small")
        part = QWidget()
        above = horizontal(
            (self._counts, 1), plain_label("reliability", "small"), margins=(4, 0, 8, 0), spacing=None
        )
        vertical(above, (self.voters, 1), inside=part, margins=(0, 4, 0, 0), spacing=2)
        part.setFocusProxy(self.voters)
        return part


class CropView(WholeView):
    """Square crop of the image around a spot, with its ellipse; it can be copied and saved."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedSize(_SIDE, _SIDE)
        self.setAccessibleName("The spot, enlarged")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.menu = FigureMenu(self, self)
        self._title = ""
        self._picture: QImage | None = None
        self._radii: tuple[float, float] | None = None
        self._turn = 0.0
        self._state = "detected"

    def set_side(self, side: int) -> None:
        """Set the side of the square."""
        self.setFixedSize(side, side)

    def sizeHint(self) -> QSize:
        """Return a square."""
        return self.maximumSize()

    def show_crop(
        self,
        crop: NDArray[np.uint8] | None,
        radius: float,
        covariance: NDArray[np.floating] | None,
        coverage: float,
        state: str,
        title: str = "",
    ) -> None:
        """Show another spot; `radius` is half the width of the crop in the units of the covariance.

        The title names the saved file.
        """
        self._title = title
        self._picture = None if crop is None or not crop.size else to_picture(crop)
        self._state = state
        self._radii = None
        if covariance is not None and np.any(covariance):
            long, short, angle = ellipses(np.asarray(covariance)[None], coverage)[0]
            self._radii = (float(long / radius), float(short / radius))
            self._turn = float(np.degrees(angle))
        self.update()

    def heading(self) -> tuple[str, str]:
        """Return the title of the spot."""
        return self._title, ""

    def paint_picture(self, painter: QPainter) -> None:
        """Paint crop and ellipse."""
        box = QRectF(self.rect())
        painter.fillRect(box, QColor(theme.DARK.canvas))
        if self._picture is None:
            painter.setPen(QColor(theme.DARK.second))
            painter.setFont(theme.widget_font(theme.CAPTION))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, "no image")
        else:
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
            painter.drawImage(box, self._picture)
        if self._radii is None:
            return
        style = state_style(self._state)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(box.center())
        painter.rotate(self._turn)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        pen = QPen(QColor(style.colour), 1.8)
        if style.dashes:
            pen.setDashPattern(style.dashes)
        for stroke in (QPen(theme.colour(theme.DARK.canvas, 150), 3.6), pen):
            painter.setPen(stroke)
            half = box.width() / 2
            painter.drawEllipse(QPointF(), self._radii[0] * half, self._radii[1] * half)
