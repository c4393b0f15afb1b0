"""What the lists of lines share: one height, words for tooltips and readers, a painter of its own."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Generic, TypeVar

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from raterscope.widgets import theme
from raterscope.widgets.parts import plain_tip
from raterscope.widgets.text_size import enlarge, pixels, set_lengths

__all__ = ["LineKind", "LineList", "LongList"]

Line = TypeVar("Line")
Index = QModelIndex | QPersistentModelIndex
LINE = Qt.ItemDataRole.UserRole


class LineKind(QStyledItemDelegate, Generic[Line]):
    """How one kind of line looks, and what is said of it."""

    height = 26
    """Of a line, in pixels of the usual size; its box when it is painted is in these too."""

    def key(self, line: Line) -> Hashable:
        """Give what tells a line from the others; lines of equal keys are the same line, changed."""
        return line

    def words(self, line: Line) -> str:
        """Say the line."""
        raise NotImplementedError

    def tip(self, line: Line) -> str:
        """Say what the tooltip tells, as plain text."""
        return self.words(line)

    def paint_line(self, painter: QPainter, box: QRectF, line: Line) -> None:
        """Paint what stands on the ground."""
        raise NotImplementedError

    def paint_ground(self, painter: QPainter, box: QRectF, state: QStyle.StateFlag) -> None:
        """Paint the ground of the line."""
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box, QColor(theme.current().raised))

    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        """Give every line the same height."""
        return QSize(pixels(120), pixels(self.height))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint ground and line."""
        painter.save()
        box = enlarge(painter, option.rect)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self.paint_ground(painter, box, option.state)
        self.paint_line(painter, box, index.data(LINE))
        painter.restore()


class LineList(QTableView, Generic[Line]):
    """Lines of one kind, walked by keyboard; none of them is a widget, so there may be thousands.

    A table of one column: a list measures every line anew whenever one of them has changed.

    Parameters
    ----------
    kind : LineKind
    name : str
        What the list is, for those who hear it.
    """

    def __init__(self, kind: LineKind[Line], name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        kind.setParent(self)
        self._model = _LineModel(kind, self)
        self.setModel(self._model)
        self.setItemDelegate(kind)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setShowGrid(False)
        self.setTabKeyNavigation(False)
        theme.set_role(self, "lines")
        self.setMouseTracking(True)
        self.setAccessibleName(name)
        self.horizontalHeader().hide()
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.set_height(kind.height)

    def set_height(self, height: int) -> None:
        """Make every line so high, in pixels of the usual size."""
        self._model.kind.height = height
        set_lengths(self.verticalHeader(), minimumSectionSize=height, defaultSectionSize=height)

    @property
    def lines(self) -> Sequence[Line]:
        """The lines shown."""
        return self._model.lines

    def set_lines(self, lines: Sequence[Line]) -> None:
        """Show other lines; where they are the same ones, changed, what is current stays."""
        self._model.set_lines(tuple(lines))

    def index_of(self, key: Hashable) -> QModelIndex:
        """Give the place of a line; an invalid one where it is not among them."""
        kind = self._model.kind
        row = next((row for row, line in enumerate(self.lines) if kind.key(line) == key), -1)
        return self._model.index(row)

    def moveCursor(
        self, action: QAbstractItemView.CursorAction, modifiers: Qt.KeyboardModifier
    ) -> QModelIndex:
        """Go to the first line by Home and to the last by End; of a table they are a row's ends."""
        ends = {QAbstractItemView.CursorAction.MoveHome: 0,
                QAbstractItemView.CursorAction.MoveEnd: len(self.lines) - 1}  # fmt: skip
        return self._model.index(ends[action]) if action in ends else super().moveCursor(action, modifiers)


class LongList(LineList[Line]):
    """Lines that are made only when they are looked at, so that there may be millions."""

    def set_lines(self, lines: Sequence[Line]) -> None:
        """Show other lines; none is current, and the list keeps its place."""
        place = self.verticalScrollBar().value()
        self._model.replace(lines)
        self.verticalScrollBar().setValue(place)

    def go_to(self, row: int) -> None:
        """Make a line current and bring it in sight; -1 makes none current."""
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
        if list(map(self.kind.key, lines)) == list(map(self.kind.key, self.lines)):
            changed = [row for row, line in enumerate(lines) if line != self.lines[row]]
            self.lines = lines
            if changed:
                self.dataChanged.emit(self.index(changed[0]), self.index(changed[-1]))
            return
        self.replace(lines)

    def replace(self, lines: Sequence[Any]) -> None:
        self.beginResetModel()
        self.lines = lines
        self.endResetModel()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.lines)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        line = self.lines[index.row()]
        if role == LINE:
            return line
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return self.kind.words(line)
        return plain_tip(self.kind.tip(line)) if role == Qt.ItemDataRole.ToolTipRole else None
