"""Painted lists, short or very long, and the list of suggested questions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from operator import eq
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QPushButton, QTableView, QWidget

from raterscope.text import counted
from raterscope.widgets import theme
from raterscope.widgets.layouts import vertical
from raterscope.widgets.painting import paint_text
from raterscope.widgets.parts import Header, Placeholder, plain_label, plain_tip
from raterscope.widgets.tables.rows import RowDelegate, set_up_view
from raterscope.widgets.theme import set_lengths

Line = TypeVar("Line")
Index = QModelIndex | QPersistentModelIndex
LINE = Qt.ItemDataRole.UserRole


class LineKind(RowDelegate, Generic[Line]):
    """Painting, height and text of one kind of list line."""

    height = 26
    """Height in unscaled pixels, the unit of the box passed to `paint_line`."""

    def key(self, line: Line) -> Hashable:
        """Return the identity of a line, by default its `key`, else the line.

        Lines with equal keys are the same line, possibly changed.
        """
        key: Hashable = getattr(line, "key", line)
        return key

    def text_of(self, line: Line) -> str:
        """Return the text of a line."""
        raise NotImplementedError

    def tip(self, line: Line) -> str:
        """Return the tooltip, as plain text."""
        return self.text_of(line)

    def paint_line(self, painter: QPainter, box: QRectF, line: Line) -> None:
        """Paint the content of a line over its background."""
        raise NotImplementedError

    def paint_cell(self, painter: QPainter, box: QRectF, index: Index, **_: bool) -> None:
        """Paint the content of a line."""
        self.paint_line(painter, box, index.data(LINE))


class LineList(QTableView, Generic[Line]):
    """List with painted lines instead of widgets, for thousands of lines.

    It is a table with one column, because a list view measures all lines whenever one changes.

    `name`: accessible name of the list.
    """

    def __init__(self, kind: LineKind[Line], name: str) -> None:
        super().__init__()
        self._model = _LineModel(kind, self)
        set_up_view(self, self._model, name, kind)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        theme.set_role(self, "lines")
        self.setMouseTracking(True)
        self.horizontalHeader().hide()
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.set_height(kind.height)

    def set_height(self, height: int) -> None:
        """Set the height of all lines, in unscaled pixels."""
        self._model.kind.height = height
        set_lengths(self.verticalHeader(), minimumSectionSize=height, defaultSectionSize=height)

    @property
    def lines(self) -> Sequence[Line]:
        """The lines shown."""
        return self._model.lines

    def set_lines(self, lines: Sequence[Line]) -> None:
        """Replace the lines; if their keys are the same, the current line is kept."""
        self._model.set_lines(tuple(lines))

    def change_line(self, row: int, line: Line) -> None:
        """Replace one line by a changed line with the same key."""
        self._model.change(row, line)

    def remove_line(self, row: int) -> None:
        """Remove one line."""
        self._model.remove(row)

    def insert_line(self, row: int, line: Line) -> None:
        """Insert one line before a row."""
        self._model.insert(row, line)

    def index_of_row(self, row: int) -> QModelIndex:
        """Return the model index of a row; invalid without one."""
        return self._model.index(row)

    def index_of(self, key: Hashable) -> QModelIndex:
        """Return the model index of a line; invalid if it is not listed."""
        kind = self._model.kind
        row = next((row for row, line in enumerate(self.lines) if kind.key(line) == key), -1)
        return self._model.index(row)

    def moveCursor(
        self, action: QAbstractItemView.CursorAction, modifiers: Qt.KeyboardModifier
    ) -> QModelIndex:
        """Move to the first line with Home and the last line with End, instead of the ends of a row."""
        ends = {QAbstractItemView.CursorAction.MoveHome: 0,
                QAbstractItemView.CursorAction.MoveEnd: len(self.lines) - 1}  # fmt: skip
        return self._model.index(ends[action]) if action in ends else super().moveCursor(action, modifiers)

    def keyboardSearch(self, _letters: str) -> None:
        """Do nothing: letters are shortcuts, and Qt would compare other keys with the texts of all lines."""


class ChoiceList(LineList[Line]):
    """List that reports the line selected by the user."""

    chosen = Signal(object)  # key of the line

    def __init__(self, kind: LineKind[Line], name: str) -> None:
        super().__init__(kind, name)
        self._quiet = False
        self.selectionModel().currentChanged.connect(self._on_current)

    def choose(self, key: Hashable) -> None:
        """Make a line current and visible, without a signal; None clears the selection."""
        self._quiet = True
        self.setCurrentIndex(self.index_of(key))
        self._quiet = False

    def _on_current(self, index: QModelIndex) -> None:
        if index.isValid() and not self._quiet:
            self.chosen.emit(self._model.kind.key(self.lines[index.row()]))


class LinesOnDemand(Sequence[Line]):
    """Sequence of lines that are made on access.

    `numbers`: (N,), the number of each line. `make`: returns the line of a number.
    """

    def __init__(self, numbers: NDArray[np.integer], make: Callable[[int], Line]) -> None:
        self._numbers, self._make = numbers, make

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, row: int) -> Line: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[Line]: ...
    def __getitem__(self, row: int | slice) -> Line | Sequence[Line]:
        if isinstance(row, slice):
            return [self._make(int(number)) for number in self._numbers[row]]
        return self._make(int(self._numbers[row]))


class LongList(LineList[Line]):
    """List of lines created on demand, for millions of lines."""

    def set_lines(self, lines: Sequence[Line]) -> None:
        """Replace the lines; none is current, and the scroll position is kept."""
        position = self.verticalScrollBar().value()
        self._model.replace(lines)
        self.executeDelayedItemsLayout()  # otherwise it would later paint all of them again
        self.verticalScrollBar().setValue(position)

    def renew_lines(self, lines: Sequence[Line]) -> None:
        """Replace the lines by lines with the same keys; only changed lines are repainted."""
        height = self.viewport().height()
        first, last = self.rowAt(0), self.rowAt(height - 1)
        self._model.renew(lines, range(max(first, 0), last + 1 if last >= 0 else len(lines)))

    def is_line_visible(self, row: int) -> bool:
        """Return whether a line is completely visible."""
        height = self.viewport().height() - self.rowHeight(row)
        return row >= 0 and 0 <= self.rowViewportPosition(row) <= height

    def scroll_to_line(self, row: int) -> None:
        """Scroll an invisible line to the middle, so that few steps scroll."""
        if not self.is_line_visible(row):
            self.scrollTo(self._model.index(row), QAbstractItemView.ScrollHint.PositionAtCenter)

    def step_to(self, row: int) -> None:
        """Make a line current and visible."""
        self.scroll_to_line(row)
        self.go_to(row)

    def go_to(self, row: int) -> None:
        """Make a line current and visible; -1 makes none current."""
        index = self._model.index(row)
        self.setCurrentIndex(index)
        if index.isValid():
            self.scrollTo(index)


class _LineModel(QAbstractListModel):
    def __init__(self, kind: LineKind[Any], parent: QWidget) -> None:
        super().__init__(parent)
        self.kind = kind
        self.lines: Sequence[Any] = ()

    def set_lines(self, lines: tuple[Any, ...]) -> None:
        key, before = self.kind.key, self.lines
        if len(lines) == len(before) and all(map(eq, map(key, lines), map(key, before))):
            changed = [row for row, line in enumerate(lines) if line != self.lines[row]]
            self.lines = lines
            if changed:
                self.dataChanged.emit(self.index(changed[0]), self.index(changed[-1]))
            return
        self.replace(lines)

    def change(self, row: int, line: Any) -> None:
        self._own()[row] = line
        self.dataChanged.emit(self.index(row), self.index(row))

    def remove(self, row: int) -> None:
        self.beginRemoveRows(QModelIndex(), row, row)
        del self._own()[row]
        self.endRemoveRows()

    def insert(self, row: int, line: Any) -> None:
        self.beginInsertRows(QModelIndex(), row, row)
        self._own().insert(row, line)
        self.endInsertRows()

    def renew(self, lines: Sequence[Any], visible_items: range) -> None:
        before, self.lines = self.lines, lines
        for row in visible_items:
            if before[row] != lines[row]:
                self.dataChanged.emit(self.index(row), self.index(row))

    def _own(self) -> list[Any]:
        """Return the lines as a mutable list."""
        if not isinstance(self.lines, list):
            self.lines = list(self.lines)
        return self.lines

    def replace(self, lines: Sequence[Any]) -> None:
        self.beginResetModel()
        self.lines = lines
        self.endResetModel()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.lines)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = index.row()
        line = self.lines[row]
        if role == LINE:
            return line
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return self.kind.text_of(line)
        return plain_tip(self.kind.tip(line)) if role == Qt.ItemDataRole.ToolTipRole else None


NAME_SHARE, GAIN, BARE_GAIN = 0.42, 76.0, 48.0
"""Share of a line for the name; width of the gain in pixels, with and without a unit."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """List entry for one suggested question."""

    key: Hashable  # identifies the line in signals
    name: str  # name of the task or the annotator: "cell-004", "w-0412"
    why: str  # annotator to ask, or reason: "ask v-5103", "finds 0.94 of what is there"
    gain: float  # expected gain of the answer, in the list's unit
    more: str = ""  # additional sentence of the tooltip


class SuggestionList(QWidget):
    """Suggested questions, the one with the largest gain first.

    `noun`: noun for one answer: "vote". `measure`, `unit`: name and unit of the gain: "expected information",
    "bit"; no unit for a number. `nothing`: message for the empty state. `budgeted`: whether a budget can be
    set.
    """

    chosen = Signal(object)  # key of the selected line

    def __init__(self, noun: str, measure: str, unit: str, nothing: str, *, budgeted: bool = False) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self._noun, self._measure, self._empty = noun, measure, nothing
        self.header = Header("Ask next")
        self.budget = QPushButton("Budget…")
        self.header.row.addWidget(self.budget)
        theme.set_role(self.budget, "link")
        self.budget.setToolTip("Number of votes, load and cost of annotators")
        self.budget.setHidden(not budgeted)
        self.facts = plain_label("", "small", wrap=True, selectable=True)
        self.facts.hide()
        self.list: ChoiceList[Suggestion] = ChoiceList(
            _SuggestionKind(unit), f"{noun.capitalize()}s to ask for"
        )
        self._nothing = Placeholder()
        vertical(
            self.header,
            self.facts,
            (self._nothing, 1),
            (self.list, 1),
            inside=self,
            margins=(12, 8, 12, 8),
            spacing=4,
        )
        self.setFocusProxy(self.list)
        self.list.chosen.connect(self.chosen)
        self.show_lines(())

    def show_lines(self, lines: Sequence[Suggestion], nothing: str = "", facts: str = "") -> None:
        """Show the suggestions with a summary, or why there are none."""
        self.facts.setText(facts)
        self.facts.setVisible(bool(facts))
        self._nothing.setText(nothing or self._empty)
        self.list.set_lines(lines)
        self.list.setVisible(bool(lines))
        self._nothing.setVisible(not lines)
        self.header.set_subtitle(f"{counted(len(lines), self._noun)}, {self._measure}" if lines else "")


class _SuggestionKind(LineKind[Suggestion]):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def text_of(self, line: Suggestion) -> str:
        return f"{line.name}: {line.why}, {self._gain(line)}"

    def tip(self, line: Suggestion) -> str:
        return f"{self.text_of(line)} expected. {line.more}".strip()

    def paint_line(self, painter: QPainter, box: QRectF, line: Suggestion) -> None:
        palette = theme.current()
        painter.setFont(theme.font(theme.BODY))
        gain = self._gain(line)
        middle = box.left() + NAME_SHARE * box.width()
        least = GAIN if self._unit else BARE_GAIN
        right = box.right() - max(least, QFontMetrics(painter.font()).horizontalAdvance(gain) + 14)
        left = QRectF(box.left() + 6, box.top(), middle - box.left() - 14, box.height())
        paint_text(painter, left, line.name, palette.text, elide=Qt.TextElideMode.ElideMiddle)
        reason_box = QRectF(middle, box.top(), right - middle - 8, box.height())
        paint_text(painter, reason_box, line.why, palette.second)
        figure = QRectF(right, box.top(), box.right() - right - 6, box.height())
        paint_text(painter, figure, gain, palette.text, side=Qt.AlignmentFlag.AlignRight)

    def _gain(self, line: Suggestion) -> str:
        return f"{line.gain:.2f} {self._unit}".rstrip()
