"""Annotators of a pairs study as a filtered list, and comparisons as pairs of cards."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QModelIndex, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap, QResizeEvent
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.pairs.data import BEHAVIOUR_WORDS
from raterscope.widgets import theme
from raterscope.widgets.figures.figure_panel import ModeSwitch
from raterscope.widgets.layouts import vertical
from raterscope.widgets.painting import ThumbnailCache, paint_text
from raterscope.widgets.panels.lists import LineKind, LinesOnDemand, LongList
from raterscope.widgets.panels.queue_items import QueueItem
from raterscope.widgets.panels.queue_panel import NOTED, LongQueue
from raterscope.widgets.parts import Header, Placeholder
from raterscope.widgets.theme import set_lengths

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
    "bookmarked": "bookmarked",
    "commented": "with comment",
}
"""Filters of the queue: key and text."""

EMPTY = {
    "undecided": "You have flagged or cleared every annotator.",
    "flagged": "No annotator is flagged. Change the false discovery rate, or press F to flag an annotator.",
    "bad": "No flagged annotator is one-sided.",
    "ugly": "No flagged annotator leans to one side.",
    "good": "No annotator is free of bias. Look under flagged and not decidable.",
    "not decidable": "Every annotator who is not flagged has enough comparisons to show a bias.",
    "decided": "No decisions yet. Press F to flag an annotator, or C to clear one.",
    "untested": "Every annotator has enough comparisons to be tested.",
    **{note.key: note.empty for note in NOTED},
}
"""Message for an empty list, by filter."""

FUSE_FIRST = "Press Fuse (F5) to test every annotator for bias."
BY_FUSION = frozenset({"flagged", "bad", "ugly", "good", "not decidable"})
"""Filters that are empty before the first fusion."""

OPEN, FLAGGED, CLEARED = 0, 1, 2
DECISIONS = {FLAGGED: "flagged by you", CLEARED: "cleared by you"}


@dataclass(frozen=True, eq=False)
class AnnotatorsView:
    """Annotators as arrays; list lines are created on demand."""

    names: Sequence[str]  # (p,)
    total: int  # number of annotators with comparisons
    order: NDArray[np.integer]  # (M,): annotators shown, in display order
    # left, right: (p,): number of choices of each side
    left: NDArray[np.integer]
    right: NDArray[np.integer]
    # (p,): indices into `BEHAVIOURS`; -1 for untested annotators and before a fusion
    behaviour: NDArray[np.integer]
    decided: NDArray[np.integer]  # (p,): `OPEN`, `FLAGGED` or `CLEARED`
    # (p,): length of the bar, 0 to 1: 1 - q value, or share of selecting draws; NaN if untested
    doubt: NDArray[np.floating] | None = None
    by_flips: bool = False  # whether the bars are 1 - q value
    contested: frozenset[int] = frozenset()  # annotators with conflicting decisions of several experts
    # annotator to the numbers of comments and bookmarks
    notes: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    # (left, right, ties) of annotators that the run excludes
    excluded: Mapping[int, tuple[int, int, int]] = field(default_factory=dict)

    def item(self, number: int) -> QueueItem:
        """Return the list line of an annotator."""
        behaviour, decided = int(self.behaviour[number]), int(self.decided[number])
        doubt = None if self.doubt is None else float(self.doubt[number])
        if doubt is not None and not np.isfinite(doubt):
            doubt = None
        amount = "" if doubt is None else f"share {doubt:.2f}"
        if doubt is not None and self.by_flips:
            amount = f"q {1 - doubt:.2f}" if doubt <= 0.995 else "q < 0.01"
        state = DECISIONS.get(decided, "")
        if not state and behaviour >= 0:
            state = BEHAVIOUR_WORDS[behaviour]
        elif not state and self.doubt is not None:
            state = "not tested"
        if number in self.contested:
            state = "contested"
        if number in self.excluded:
            state = "excluded"
        left, right, _ = self.excluded.get(number, (self.left[number], self.right[number], 0))
        counts = f"{left:,} left, {right:,} right"
        detail = f"{state}: {counts}" if state else counts
        notes = self.notes.get(number, {})
        return QueueItem(
            number, self.names[number], detail, doubt, decided != OPEN, counts=notes, amount=amount
        )


class AnnotatorList(LongQueue):
    """Annotators in the given order."""

    def __init__(self) -> None:
        super().__init__("Annotators", ANNOTATOR_FILTERS, empty=EMPTY)

    def why_empty(self, key: str) -> str:
        """Return why the list is empty for a filter."""
        unfused = isinstance(self._shown, AnnotatorsView) and self._shown.doubt is None
        return FUSE_FIRST if unfused and key in BY_FUSION else super().why_empty(key)


MODES = {
    "against": ("against", "Comparisons where other annotators, or the ranking, chose the other side"),
    "for": ("for", "Comparisons where other annotators, or the ranking, chose the same side"),
}
NOTHING = {
    "": "Press Fuse (F5), then select an annotator to see the comparisons for and against a bias.",
    "against": "No comparison is evidence against this annotator.",
    "for": "No comparison is evidence for this annotator.",
    "all": "This annotator has no comparisons in this run.",
}
NOTHING_OF_ITEMS = {
    "": "Select a crossing of two lines in the ranking, or two items (the second with Ctrl), "
    "to see who compared them.",
    "all": "No annotator compared these two items.",
}
SIDE, GAP, PAD = 44.0, 6.0, 6.0
TALL, LOW = 56, 48


@dataclass(frozen=True, eq=False)
class PairsView:
    """M comparisons, the most informative first."""

    name: str  # annotator or items of the comparisons: "obs_13", "05 and 11"
    comparison: NDArray[np.integer]  # (M,): identifiers used in signals
    # left, right: (M,): item numbers
    left: NDArray[np.integer]
    right: NDArray[np.integer]
    # (M,): above 0 if the left item was preferred, below 0 for the right one, 0 for a tie
    choice: NDArray[np.floating]
    # others_left, others: (M,): of the other annotators who compared the two items, number who preferred the
    # left one, and number who preferred either
    others_left: NDArray[np.integer]
    others: NDArray[np.integer]
    ranking: NDArray[np.floating]  # (M,): score of the left item minus that of the right one; NaN if unknown
    names: Sequence[str]  # names of all items
    pictures: bool = False  # whether the items have pictures
    annotators: tuple[str, ...] = ()  # (M,): annotator of each comparison, if there are several
    # (M,): whether a comparison is evidence against its annotator; by default if the answer differs from the
    # majority or, without a majority, from the ranking
    against: NDArray[np.bool_] | None = None
    covered: bool = False  # whether other annotators' answers and the evidence are hidden

    def __post_init__(self) -> None:
        count = len(self.comparison)
        lengths = {len(self.left), len(self.right), len(self.choice), len(self.others_left), len(self.others),
                   len(self.ranking), count if self.against is None else len(self.against)}  # fmt: skip
        if lengths != {count} or len(self.annotators) not in (0, count):
            raise ValueError(f"not as much of everything as there are comparisons: {count}")
        if self.against is not None:
            return
        answer = np.sign(np.asarray(self.choice, dtype=float))
        crowd = np.sign(2.0 * self.others_left - self.others)
        expected = np.where(crowd != 0, crowd, np.sign(np.nan_to_num(self.ranking)))
        object.__setattr__(self, "against", answer * expected < 0)

    def is_contrary(self) -> NDArray[np.bool_]:
        """Return whether each comparison contradicts the annotator's bias-free answer."""
        assert self.against is not None
        return self.against

    def line(self, row: int) -> PairLine:
        """Return the line of a comparison."""
        return PairLine(
            int(self.comparison[row]),
            int(self.left[row]),
            int(self.right[row]),
            self.names[self.left[row]],
            self.names[self.right[row]],
            int(np.sign(self.choice[row])),
            bool(self.is_contrary()[row]) and not self.covered,
            (f"{self.annotators[row]} " if self.annotators else "") + f"chose {_side(self.choice[row])}",
            "" if self.covered else self._others(row),
        )

    def _others(self, row: int) -> str:
        """Describe the other annotators' answers, and the ranking's if it differs from their majority."""
        count, left = int(self.others[row]), int(self.others_left[row])
        most, side = (left, "left") if 2 * left >= count else (count - left, "right")
        answer = f"{most:,} of {count:,} others chose {side}" if count > 1 else f"the other one chose {side}"
        if not count:
            answer = "no other comparison"
        ranked = _side(self.ranking[row]) if np.isfinite(self.ranking[row]) and self.ranking[row] else ""
        return f"{answer}; ranking: {ranked}" if ranked and (2 * left == count or ranked != side) else answer


@dataclass(frozen=True, slots=True)
class PairLine:
    """List entry for one comparison."""

    # comparison, left, right: numbers of the comparison and its items
    comparison: int
    left: int
    right: int
    left_name: str
    right_name: str
    choice: int  # 1 if the left item was preferred, -1 for the right one, 0 for a tie
    against: bool  # whether it is evidence against its annotator
    # answer, others: the answer, and the others' answers
    answer: str
    others: str


class PairGrid(QWidget):
    """Grid of comparisons: two items, the preferred one framed, and the other annotators' answers.

    `of_items`: whether the comparisons are of two items by all annotators. Comparisons of one annotator are
    grouped by the evidence that they give.
    """

    chosen = Signal(int)  # number of the selected comparison
    listed = Signal(int)  # number of the first of newly listed comparisons

    def __init__(self, *, of_items: bool = False) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self._of_items = of_items
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.header = Header("Pairs")
        self.modes = ModeSwitch(MODES)
        self.header.row.addWidget(self.modes)
        self._nothing = Placeholder()
        self._view: PairsView | None = None
        self._rows: NDArray[np.int64] = np.empty(0, np.int64)
        self._quiet = False
        self.pictures = ThumbnailCache(round(SIDE), self._visible_items, self)
        self._kind = _PairKind(self.pictures.kept)
        self.view: LongList[PairLine] = LongList(self._kind, "Pairs")
        self.header.row.setContentsMargins(0, 0, 8, 0)
        vertical(
            self.header, (self._nothing, 1), (self.view, 1), inside=self, margins=(12, 8, 4, 8), spacing=4
        )
        self.setFocusProxy(self.view)
        self.modes.chosen.connect(self._arrange)
        self.pictures.changed.connect(self.view.viewport().update)
        self.view.verticalScrollBar().valueChanged.connect(self.pictures.rest)
        self.view.selectionModel().currentChanged.connect(self._on_current)
        self.show_pairs(None)

    def show_pairs(self, view: PairsView | None) -> None:
        """Show comparisons, or how to get some. Known pictures are kept."""
        self._view = view
        self._kind.pictures = self.pictures.kept if view is not None and view.pictures else None
        self.header.set_title("Pairs", "" if view is None else view.name)
        high = TALL if view is not None and view.pictures else LOW
        set_lengths(self.view.verticalHeader(), defaultSectionSize=high)
        self.modes.setVisible(view is not None and not self._whole(view))
        self._arrange()
        self.view.scrollToTop()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Request the pictures that became visible."""
        super().resizeEvent(event)
        self.pictures.rest()

    def _arrange(self) -> None:
        view = self._view
        mode = "all" if self._whole(view) else self.modes.mode
        self._rows = np.arange(0 if view is None else len(view.comparison))
        if view is not None and not self._whole(view):
            self._rows = np.flatnonzero(view.is_contrary() == (mode == "against"))
        self._quiet = True
        self.view.set_lines(() if view is None else LinesOnDemand(self._rows, view.line))
        self._quiet = False
        total = 0 if view is None else len(view.comparison)
        lines = f"{total:,}" if self._whole(view) else f"{len(self._rows):,} of {total:,}"
        self.header.set_subtitle("" if view is None else lines)
        nothing = NOTHING_OF_ITEMS if self._of_items else NOTHING
        self._nothing.setText("" if len(self._rows) else nothing["" if view is None else mode])
        self._nothing.setVisible(not len(self._rows))
        self.view.setVisible(len(self._rows) > 0)
        self.pictures.ask_again()
        if view is not None and len(self._rows):
            self.listed.emit(int(view.comparison[self._rows[0]]))

    def _whole(self, view: PairsView | None) -> bool:
        """Return whether all comparisons are listed, without separating evidence for and against."""
        return self._of_items or (view is not None and view.covered)

    def _visible_items(self) -> list[int]:
        view = self._view
        if view is None or not view.pictures or not self.view.isVisible():
            return []
        first, last = self.view.rowAt(0), self.view.rowAt(self.view.viewport().height() - 1)
        rows = self._rows[max(first, 0) : (last if last >= 0 else len(self._rows)) + 1]
        return [int(item) for item in np.unique(np.concatenate([view.left[rows], view.right[rows]]))]

    def _on_current(self, index: QModelIndex) -> None:
        if index.isValid() and not self._quiet:
            self.chosen.emit(self.view.lines[index.row()].comparison)


class _PairKind(LineKind[PairLine]):
    height = LOW

    def __init__(self, pictures: Mapping[int, QPixmap | None]) -> None:
        super().__init__()
        self.pictures: Mapping[int, QPixmap | None] | None = pictures

    def key(self, line: PairLine) -> Hashable:
        return line.comparison

    def text_of(self, line: PairLine) -> str:
        return f"{line.left_name} or {line.right_name}: {_answers_in_words(line)}"

    def paint_line(self, painter: QPainter, box: QRectF, line: PairLine) -> None:
        palette = theme.current()
        inner = box.adjusted(4, 4, -8, -4)
        sides = ((line.left, line.left_name, 1), (line.right, line.right_name, -1))
        painter.setFont(theme.font(theme.CAPTION))
        if self.pictures is not None:
            cards = [
                QRectF(inner.left() + position * (SIDE + GAP), inner.top() + 2, SIDE, SIDE)
                for position in (0, 1)
            ]
            for card, (item, name, side) in zip(cards, sides, strict=True):
                self._paint_picture(painter, card, item, name)
                self._frame(painter, card, preferred=side == line.choice, against=line.against)
            words = QRectF(cards[1].right() + 10, inner.top() + 7, inner.right() - cards[1].right() - 10, 18)
        else:
            half = (inner.width() - GAP) / 2
            for position, (_, name, side) in enumerate(sides):
                card = QRectF(inner.left() + position * (half + GAP), inner.top(), half, 20)
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(QColor(palette.raised))
                painter.drawRoundedRect(card, 4, 4)
                room, middle = card.adjusted(PAD, 0, -PAD, 0), Qt.TextElideMode.ElideMiddle
                paint_text(painter, room, name, palette.text, elide=middle)
                self._frame(painter, card, preferred=side == line.choice, against=line.against)
            words = QRectF(inner.left(), inner.top() + 22, inner.width(), 16)
        painter.setFont(theme.font(theme.CAPTION))
        if self.pictures is None:
            paint_text(painter, words, _answers_in_words(line), palette.second)
            return
        paint_text(painter, words, line.answer, palette.text)
        paint_text(painter, words.translated(0, 17), line.others, palette.second)

    def _paint_picture(self, painter: QPainter, card: QRectF, item: int, name: str) -> None:
        assert self.pictures is not None
        painter.fillRect(card, QColor(theme.DARK.canvas))
        picture = self.pictures.get(item)
        if picture is None:
            text = name if item in self.pictures else "…"
            paint_text(painter, card.adjusted(2, 0, -2, 0), text, theme.DARK.second,
                        side=Qt.AlignmentFlag.AlignHCenter, elide=Qt.TextElideMode.ElideMiddle)  # fmt: skip
            return
        size = picture.size().toSizeF().scaled(card.size(), Qt.AspectRatioMode.KeepAspectRatio)
        target = QRectF(0, 0, size.width(), size.height())
        target.moveCenter(card.center())
        painter.drawPixmap(target, picture, QRectF(picture.rect()))

    def _frame(self, painter: QPainter, card: QRectF, *, preferred: bool, against: bool) -> None:
        if not preferred:
            return
        palette = theme.current()
        pen = QPen(QColor(palette.rejected if against else palette.accent), 2)
        if against:
            pen.setDashPattern([3, 1.5])
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(card, 4, 4)


def _answers_in_words(line: PairLine) -> str:
    return ", ".join(filter(None, (line.answer, line.others)))


def _side(value: float) -> str:
    return "left" if value > 0 else "right" if value < 0 else "neither"
