"""Items of a review queue: contents, painting of lines, filters, and display order."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, insort
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyle

from raterscope.text import counted
from raterscope.widgets import theme
from raterscope.widgets.names import distinguishing_labels
from raterscope.widgets.painting import BOOKMARK, fits, paint_text
from raterscope.widgets.panels.lists import LineKind

FLAG = "\N{BLACK FLAG}"
COMMENT = "\N{LOWER RIGHT PENCIL}"
NOTES = {"bookmarked": "bookmarks", "commented": "comments"}
"""By key of a filter, the number of an item that it tests."""
_NOTES = (("bookmarks", BOOKMARK, "bookmarked"), ("comments", COMMENT, "with comment"))
"""By number of an item, its symbol and noun."""
IMAGE_SUFFIX = re.compile(r"\.(png|jpe?g|(ome\.)?tiff?|nii(\.gz)?|nrrd|mh[ad]|dcm)$", re.IGNORECASE)
"""Pattern of the part of a name that is shortened first."""
_SENTENCE = re.compile(r"(\S+ ){4}.*\D$", re.DOTALL)
"""Pattern of a sentence as a title, which is shortened at its end; file names differ at both ends."""


@dataclass(frozen=True, slots=True)
class QueueItem:
    """One line of the queue."""

    key: Hashable  # identity of the item; equal keys are the same item
    # title, detail: name, and a short description of the state
    title: str
    detail: str
    score: float | None  # doubt, 0 or more; None if unknown
    done: bool  # whether everything is decided
    flag: str | None = None  # reason of the flag; None without a flag
    counts: Mapping[str, int] = field(default_factory=dict)  # numbers for filters with a minimum
    amount: str = ""  # the doubt with its unit, as shown: "0.93 errors"


def chance_of_error(doubt: float) -> str:
    """Format the probability that a result is wrong."""
    return f"{100 * doubt:.0f} %"


@dataclass(frozen=True, slots=True)
class QueueFilter:
    """Filter of a queue."""

    key: str  # "all", "undecided", "flagged", a key of `NOTES`, or one of an item's counts
    text: str
    empty: str = ""  # text for an empty list

    @property
    def counts(self) -> bool:
        """True if the filter has a minimum count."""
        return self.key not in ("all", "undecided", "flagged", *NOTES)

    def passes(self, item: QueueItem, minimum: int) -> bool:
        """Return whether an item passes."""
        if self.key in NOTES:
            return item.counts.get(NOTES[self.key], 0) > 0
        if self.counts:
            return item.counts.get(self.key, 0) > minimum
        return self.key == "all" or (not item.done if self.key == "undecided" else item.flag is not None)


class QueuedItems:
    """Items of a queue, finished ones last, prepared for display.

    For 10,000 items this takes longer than a frame: create it in another thread. `short`: short titles of
    earlier items; they are computed again if titles changed. `done_last`: whether finished items come last.
    """

    def __init__(
        self,
        items: Sequence[QueueItem] = (),
        short: Mapping[str, str] | None = None,
        *,
        done_last: bool = True,
    ) -> None:
        self._done_last = done_last
        self._rank = {item.key: rank for rank, item in enumerate(items)}
        """Positions of the items in the input."""
        self._known = {item.key: item for item in items}
        self._items = sorted(items, key=self._sort_key)
        self._scores = sorted(item.score for item in items if item.score is not None)
        titles = {item.title for item in items}
        self.short = short if short is not None and titles == short.keys() else distinguishing_labels(titles)

    @property
    def listed(self) -> Sequence[QueueItem]:
        """All items in display order."""
        return self._items

    @property
    def most(self) -> float:
        """Score that fills the bar of a line."""
        return max(1.0, self._scores[-1]) if self._scores else 1.0

    def sorted_by(self, rank: Mapping[Hashable, float]) -> QueuedItems:
        """Return the items by rank, finished or not, then those without a rank."""
        items = sorted(self._items, key=lambda item: rank.get(item.key, math.inf))
        return QueuedItems(items, self.short, done_last=False)

    def of(self, key: Hashable) -> QueueItem | None:
        """Return an item by its key."""
        return self._known.get(key)

    def replace(self, item: QueueItem) -> None:
        """Replace an item by a changed one."""
        before = self._known[item.key]
        del self._items[self.row_in(self._items, before)]
        self._items.insert(self.row_in(self._items, item), item)
        self._known[item.key] = item
        if before.score is not None:
            del self._scores[bisect_left(self._scores, before.score)]
        if item.score is not None:
            insort(self._scores, item.score)

    def row_in(self, lines: Sequence[QueueItem], item: QueueItem) -> int:
        """Return the row at which an item is listed, or would be."""
        return bisect_left(lines, self._sort_key(item), key=self._sort_key)

    def _sort_key(self, item: QueueItem) -> tuple[bool, int]:
        return item.done and self._done_last, self._rank[item.key]


def shortened_title(title: str, brief: str, metrics: QFontMetrics, room: float) -> str:
    """Shorten a title to the available width: without its suffix, to `brief`, or elided once."""
    bare = IMAGE_SUFFIX.sub("", title)
    for name in (title, bare, brief):
        if fits(name, metrics, room):
            return name
    modes = Qt.TextElideMode
    if brief == title:
        mode = modes.ElideRight if _SENTENCE.match(title) else modes.ElideMiddle
        return metrics.elidedText(bare, mode, int(room))
    ending = brief.partition("…")[2] or brief  # names of one pattern share the first word
    return metrics.elidedText(f"…{ending}", modes.ElideLeft, int(room))


def is_named(item: QueueItem, words: Sequence[str]) -> bool:
    """Return whether a line contains all words."""
    text = f"{item.title} {item.detail} {item.flag or ''}".casefold()
    return all(word in text for word in words)


def _note_text(item: QueueItem) -> str:
    return "".join(f", {text}" for key, _, text in _NOTES if item.counts.get(key))


class QueueKind(LineKind[QueueItem]):
    """Queue line: name, disagreement, state, and a thin bar of disagreement."""

    height = 54
    most = 1.0
    """Value of a full bar: 1 for a probability, otherwise the largest value of the queue."""

    def __init__(self) -> None:
        super().__init__()
        self.short: Mapping[str, str] = {}
        self.measures: Mapping[Hashable, str] = {}
        self.covered = False
        """Whether results are hidden, as in blind mode."""

    def _shown(self, line: QueueItem) -> QueueItem:
        if not self.covered:
            return line
        decided = line.counts.get("decided", 0)
        detail = f"{counted(decided)} decided by you" if decided else "results hidden"
        return replace(
            line, detail=detail, score=None, amount="", done=line.done and decided > 0,
            counts={**line.counts, "decided": 0},
        )  # fmt: skip

    def text_of(self, line: QueueItem) -> str:
        """Return the text of a line."""
        line = self._shown(line)
        flagged = "" if line.flag is None else ", flagged"
        measure = f", {self.measures[line.key]}" if line.key in self.measures else ""
        done = ", done" if line.done else ""
        return f"{line.title}, {line.detail}{measure}{done}{flagged}{_note_text(line)}"

    def tip(self, line: QueueItem) -> str:
        """Return the line, its decided share, its disagreement, and why it was flagged, as a tooltip."""
        line = self._shown(line)
        decided = line.counts.get("decided", 0)
        more = f", {counted(decided)} decided by you" if decided else ""
        more += _note_text(line)
        more += f", {line.amount}" if line.amount and not line.done else ""
        more += f", {self.measures[line.key]}" if line.key in self.measures else ""
        return f"{line.title}: {line.detail}{more}" + (f"; flagged: {line.flag}" if line.flag else "")

    def paint_ground(self, painter: QPainter, box: QRectF, state: QStyle.StateFlag) -> None:
        """Paint a card, with an accent edge below the current line."""
        palette = theme.current()
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box.adjusted(8, 1, -8, -3), QColor(palette.raised))
            painter.fillRect(
                QRectF(box.left() + 8, box.top() + 1, 3, box.height() - 4), QColor(palette.accent)
            )
        elif state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(box.adjusted(8, 1, -8, -3), theme.colour(palette.raised, 130))

    def paint_line(self, painter: QPainter, box: QRectF, line: QueueItem) -> None:
        """Paint name, disagreement, state and bar."""
        palette, line = theme.current(), self._shown(line)
        inner = box.adjusted(18, 5, -18, -8)
        score = self.measures.get(line.key, "done" if line.done else line.amount)
        painter.setFont(theme.font(theme.CAPTION))
        width = QFontMetrics(painter.font()).horizontalAdvance(score) + 4
        painter.setPen(QColor(palette.accent if line.done else palette.second))
        painter.drawText(inner, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop, score)
        painter.setFont(theme.font())
        title = QRectF(inner.left(), inner.top() - 2, inner.width() - width, 18)
        if line.flag is not None:
            paint_text(painter, title, FLAG, palette.rejected)
            title.setLeft(title.left() + 16)
        for key, symbol, _ in _NOTES:
            if line.counts.get(key):
                paint_text(painter, title, symbol, palette.text if symbol == BOOKMARK else palette.second)
                title.setLeft(title.left() + 16)
        brief = self.short.get(line.title, line.title)
        name = shortened_title(line.title, brief, QFontMetrics(painter.font()), title.width())
        paint_text(painter, title, name, palette.text)
        painter.setFont(theme.font(theme.CAPTION))
        detail = QRectF(inner.left(), inner.top() + 17, inner.width(), 15)
        paint_text(painter, detail, line.detail, palette.second)
        bar = QRectF(inner.left(), box.bottom() - 10, inner.width(), 3)
        painter.fillRect(bar, QColor(palette.line))
        share = 0.0 if line.score is None else min(1.0, line.score / self.most)
        filled = QRectF(bar.topLeft(), QPointF(bar.left() + bar.width() * share, bar.bottom()))
        painter.fillRect(filled, QColor(palette.accent if line.done else palette.disputed))
