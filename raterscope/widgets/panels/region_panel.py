"""Panel of one disputed region: volume, raters, explanation, and decision keys."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QAction, QPainter
from PySide6.QtWidgets import QGridLayout, QWidget

from raterscope.text import counted, percent
from raterscope.widgets import theme
from raterscope.widgets.hints import KeyButton, key_grid
from raterscope.widgets.layouts import STRETCH, ScrollRegion, horizontal, rule, stacked, vertical
from raterscope.widgets.painting import paint_bar, paint_rater, paint_text, rater_colour, readable
from raterscope.widgets.panels.lists import ChoiceList, LineKind
from raterscope.widgets.panels.task_panel import PROGRAM
from raterscope.widgets.parts import Header, Menu, Placeholder, announce, plain_label
from raterscope.widgets.theme import pixels, set_lengths

SHARE, VERDICT = 88, 112
MAX_VISIBLE_ROWS = 9
"""Maximum number of raters for which the list requests space."""
MIN_MM = 0.05


@dataclass(frozen=True, slots=True)
class RegionVote:
    """One rater's marking of a region."""

    number: int  # index that determines the colour
    name: str
    inside: float  # share of the region's volume that the rater marks, 0 to 1
    # largest distance of the rater's outline from the consensus in the region, positive if outside, negative
    # if inside; NaN if unknown
    distance_mm: float = math.nan
    weight: float = math.nan  # local weight in the region, 0 to 1; NaN if unknown
    unit: str = "mm"  # unit of the distance; "px" if the pixel size is unknown
    program: bool = False  # whether it is a program

    @property
    def title(self) -> str:
        """Name on screen."""
        return f"{self.name}{PROGRAM}" if self.program else self.name

    def direction(self) -> str:
        """Describe the distance: "6.1 mm beyond"."""
        if math.isnan(self.distance_mm):
            return ""
        if abs(self.distance_mm) < MIN_MM:
            return "as consensus"
        away = abs(self.distance_mm)
        figure = f"{away:.0f}" if away >= 99.95 else f"{away:.1f}"
        return f"{figure} {self.unit} {'beyond' if self.distance_mm > 0 else 'short'}"


class RegionVotes(ChoiceList[RegionVote]):
    """Raters of one region, by name."""

    chosen = Signal(str)  # name of the selected rater

    def __init__(self) -> None:
        super().__init__(_VoteKind(), "Votes by rater")

    def set_lines(self, lines: Sequence[RegionVote]) -> None:
        """Replace the raters, and request the necessary space."""
        super().set_lines(lines)
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        """Return a height that fits the raters, up to a limit."""
        rows = min(max(len(self.lines), 2), MAX_VISIBLE_ROWS)
        return QSize(pixels(120), rows * pixels(_VoteKind.height) + 2 * self.frameWidth())

    def minimumSizeHint(self) -> QSize:
        """Return a height that fits two raters."""
        return QSize(pixels(120), 2 * pixels(_VoteKind.height))


class _VoteKind(LineKind[RegionVote]):
    height = 24

    def key(self, line: RegionVote) -> Hashable:
        return line.name

    def text_of(self, line: RegionVote) -> str:
        text = "inside" if line.inside >= 0.5 else "outside"
        parts = [line.title, f"{text}: marks {percent(line.inside)} of the region", line.direction()]
        if math.isfinite(line.weight):
            parts.append(f"local weight {line.weight:.2f}")
        return ", ".join(part for part in parts if part)

    def paint_line(self, painter: QPainter, box: QRectF, line: RegionVote) -> None:
        palette, right = theme.current(), box.right() - 10
        painter.setFont(theme.font())
        sample = QRectF(box.left(), box.top(), 18, box.height())
        paint_rater(painter, sample, line.number)
        name = QRectF(box.left() + 26, box.top(), right - VERDICT - SHARE - box.left() - 34, box.height())
        paint_text(painter, name, line.name, palette.text, elide=Qt.TextElideMode.ElideMiddle)
        share = QRectF(right - VERDICT - SHARE, box.top(), SHARE, box.height())
        inside = line.inside >= 0.5
        tone = palette.text if inside else palette.third
        paint_text(painter, share, "inside" if inside else "outside", tone)
        hue = readable(rater_colour(line.number)).name()
        paint_bar(painter, QRectF(share.left() + 54, box.center().y() - 3, 32, 6), line.inside, hue)
        room = QRectF(right - VERDICT, box.top(), VERDICT, box.height())
        text = "program" if line.program else line.direction()
        paint_text(painter, room, text, palette.second, side=Qt.AlignmentFlag.AlignRight)


NARROWEST = 336
STATES = {
    "undecided": ("disputed", "undecided"),
    "contested": ("disputed", "contested"),
    "accepted": ("accent", "consensus accepted"),
    "taken": ("accent", "version of {} used"),
    "mended": ("accent", "edited by you"),
    "skipped": ("plain", "skipped"),
}
NONE_CHOSEN = (
    "Press Tab for the next disputed region, or select one in a view, "
    "to see how large it is and which raters include it."
)
COVERED = (
    "The raters' outlines and the model's result are hidden. Draw with B and E, then press A to accept your "
    "drawing of this region. The outlines appear when every region is settled."
)
COVERED_SETTLED = (
    "You settled this region. The raters' outlines and the model's result stay hidden until every region is "
    "settled. Press Tab for the next one."
)
NOT_DRAWN = (
    "The raters' outlines and the model's result are hidden. Draw the structure with B and E, then press A "
    "to accept your drawing and show theirs. Tab goes to the next disputed region, where A accepts only that."
)
ACCEPT = ("consensus", "accent", "Accept the consensus and go to the next region")
ACCEPT_DRAWN = ("my drawing", "accent", "Accept your drawing")
NO_MASKS = "Import the masks of several raters (Ctrl+I) to find disputed regions."
NOT_FUSED = "Press Fuse (F5) to find disputed regions."
NOT_DISPUTED = (
    "No region of this structure is disputed. Edit the consensus with B and E, or press Tab for the next "
    "disputed structure."
)
ONE_RATER = (
    "Only one rater marked this structure: the consensus is their outline. Import the masks of other raters "
    "(Ctrl+I) to find disputed regions."
)


@dataclass(frozen=True, slots=True)
class RegionEvidence:
    """Evidence for one disputed region."""

    title: str  # "Region 1"
    state: str  # {"undecided", "contested", "accepted", "taken", "mended", "skipped"}
    doubt: float  # disputed volume, or area in a plane; NaN if unknown
    unit: str = "ml"  # "ml" or "mm²"
    sentence: str = ""  # why it is disputed
    votes: tuple[RegionVote, ...] = ()  # farthest from the consensus first
    taken_from: str = ""  # the rater whose version was used
    position: str = ""  # position: "slices 77 to 84"


class _EvidencePage(QWidget):
    """Page of a region, at least as high as its wrapped sentence and two raters."""

    def minimumSizeHint(self) -> QSize:
        """Return the minimum at the current width."""
        hint, layout = super().minimumSizeHint(), self.layout()
        return hint if layout is None else QSize(hint.width(), layout.minimumHeightForWidth(self.width()))


class RegionPanel(QWidget):
    """Evidence for one disputed region: volume, raters, explanation, and decision keys."""

    evidence_changed = Signal()  # the evidence of a region appeared or disappeared
    accept_requested = Signal()
    take_requested = Signal(str)  # name of the rater whose version shall be used
    brush_requested = Signal()
    erase_requested = Signal()
    interpolate_requested = Signal()
    skip_requested = Signal()
    undo_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        # returns the raters in the order of their digits
        self.rater_order: Callable[[], Sequence[str]] = tuple
        theme.set_role(self, "panel")
        set_lengths(self, minimumWidth=NARROWEST)
        self._header = Header("Region")
        self._nothing = Placeholder(NONE_CHOSEN)
        self._nothing.setContentsMargins(12, 0, 12, 12)
        page = _EvidencePage()
        self._pages = stacked(self._nothing, page)
        self._pages.currentChanged.connect(self.evidence_changed)
        top = vertical(self._header, margins=(12, 12, 12, 4))
        whole = vertical(top, (ScrollRegion(self._pages, always=True), 1), inside=self)
        self._fill(page)
        whole.addWidget(rule())
        whole.addLayout(self._keys())
        self.show_region(None)

    @property
    def has_evidence(self) -> bool:
        """Whether the evidence of a region is shown."""
        return self._pages.currentIndex() > 0

    def show_region(self, evidence: RegionEvidence | None, nothing: str = NONE_CHOSEN) -> None:
        """Show a region, or why there is none: such as `NOT_FUSED`."""
        self._evidence = evidence
        known = evidence is not None
        self.accept.set_word(*ACCEPT)
        self._pages.setCurrentIndex(int(known))
        for button in (self.accept, self.skip):
            button.setEnabled(known)
        self.take.setEnabled(evidence is not None and bool(evidence.votes))
        if evidence is None:
            self._nothing.setText(nothing)
            self._header.set_title("Region")
            self._header.set_subtitle("")
            return
        tone, text = STATES[evidence.state]
        text = text.format(evidence.taken_from or "a rater")
        self._header.set_title(evidence.title)
        self._header.set_subtitle(text, tone if tone != "plain" else "small")
        self._number.setText("–" if math.isnan(evidence.doubt) else _volume(evidence.doubt))
        theme.set_role(self._number, f"number-{tone}")
        self._unit.setText(f"{evidence.unit} disputed")
        self._place.setText(evidence.position)
        raters = [vote for vote in evidence.votes if not vote.program]
        inside = sum(vote.inside >= 0.5 for vote in raters)
        self._tally.setText(f"{inside} of {counted(len(raters), 'rater')} inside")
        self._sentence.setText(evidence.sentence)
        self._sentence.setVisible(bool(evidence.sentence))
        self.votes.set_lines(evidence.votes)
        region = f"{evidence.title}, {text}, {self._number.text()} {self._unit.text()}, {self._tally.text()}"
        if region != self._figures.accessibleName():
            self._figures.setAccessibleName(region)
            announce(self, region)

    def show_covered(self, region: RegionEvidence | None) -> None:
        """Hide the raters' masks until the expert has drawn every region."""
        self.show_region(None)
        settled = region is not None and region.state not in ("undecided", "contested", "skipped")
        self.accept.set_word(*ACCEPT_DRAWN)
        self.accept.setEnabled(not settled)
        self._nothing.setText(NOT_DRAWN)
        if region is not None:
            self._nothing.setText(f"{region.position}\n{COVERED_SETTLED if settled else COVERED}".strip())
            self.skip.setEnabled(not settled)
            self._header.set_title(region.title)
            tone, text = STATES[region.state]
            self._header.set_subtitle(text.format("a rater"), tone if settled else "disputed")

    def set_tool(self, tool: str | None) -> None:
        """Show the current tool: "brush", "eraser" or None."""
        self.brush.setChecked(tool == "brush")
        self.erase.setChecked(tool == "eraser")

    def set_tools_enabled(self, drawing: bool, interpolating: bool) -> None:
        """Enable the drawing tools and the interpolation."""
        self.brush.setEnabled(drawing)
        self.erase.setEnabled(drawing)
        self.interpolate.setEnabled(interpolating)

    def open_take(self) -> None:
        """Open the menu of raters whose version can be used; digits select, as for solo."""
        if self._evidence is None or not self._evidence.votes:
            return
        self._menu.clear()
        digits = {name: digit for digit, name in enumerate(self.rater_order(), start=1)}
        votes = [(digits.get(vote.name, 10), vote) for vote in self._evidence.votes]
        for digit, vote in sorted(votes, key=itemgetter(0)):
            name = vote.title.replace("&", "&&")
            text = f"&{digit}  {name}" if digit < 10 else f"     {name}"
            action = self._menu.addAction(text + (f"  ({vote.direction()})" if vote.direction() else ""))
            action.setData(vote.name)
        self._menu.popup(self.take.mapToGlobal(QPoint(0, -self._menu.sizeHint().height())))
        self._menu.setActiveAction(self._menu.actions()[0])

    def _on_taken(self, action: QAction) -> None:
        self.take_requested.emit(str(action.data()))

    def _fill(self, page: QWidget) -> None:
        """Make the contents, parents first: Qt styles all descendants of a widget that is moved."""
        self._number = plain_label("", "number-plain", selectable=True)
        set_lengths(self._number, minimumHeight=38)
        self._unit = plain_label("", "small")
        self._place = plain_label("", "small")
        self._tally = plain_label()
        self._sentence = plain_label("", "second", wrap=True, selectable=True)
        self.votes = RegionVotes()
        self._figures = QWidget()
        captions = vertical(STRETCH, self._unit, 7)
        beside = vertical(STRETCH)
        for label in (self._tally, self._place):
            label.setAlignment(Qt.AlignmentFlag.AlignRight)
            beside.addWidget(label)
        beside.addStretch(1)
        horizontal(
            self._number, captions, STRETCH, beside, inside=self._figures, margins=(12, 0, 12, 4), spacing=8
        )
        sentence = vertical(self._sentence, margins=(12, 0, 12, 10))
        header = Header("Raters here", "distance from consensus")
        header.row.setContentsMargins(0, 0, 10, 0)
        votes = vertical(header, (self.votes, 1), margins=(12, 8, 4, 4), spacing=4)
        vertical(self._figures, sentence, rule(), (votes, 1), inside=page)

    def _keys(self) -> QGridLayout:
        self.accept = KeyButton("A", *ACCEPT)
        self.take = KeyButton("T", "use rater…", "second", "Use one rater's version of this region")
        self.skip = KeyButton("S", "skip", "second", "Leave undecided and go to the next region")
        self.brush = KeyButton("B", "brush", "second", "Add to the consensus with a brush")
        self.erase = KeyButton("E", "eraser", "second", "Erase from the consensus")
        self.interpolate = KeyButton("I", "interpolate", "second", "Interpolate between the drawn slices")
        self.undo = KeyButton("Z", "undo", "second", "Undo the last decision")
        self._menu = Menu("Use the version of", self)
        self._menu.triggered.connect(self._on_taken)
        for tool in (self.brush, self.erase):
            tool.setCheckable(True)
        return key_grid(
            (self.accept, self.accept_requested),
            (self.take, self.open_take),
            (self.skip, self.skip_requested),
            (self.interpolate, self.interpolate_requested),
            (self.brush, self.brush_requested),
            (self.erase, self.erase_requested),
            (self.undo, self.undo_requested),
        )


def _volume(amount: float) -> str:
    return f"{amount:.2f}" if amount < 0.1 else f"{amount:.1f}" if amount < 10 else f"{amount:,.0f}"
