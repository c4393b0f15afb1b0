"""The history: what was decided and done, the latest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import (
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from raterscope.widgets import theme
from raterscope.widgets.key_cap import KeyButton
from raterscope.widgets.parts import Header, plain_label, plain_tip

__all__ = ["HistoryEntry", "HistoryPanel"]

ROW_HEIGHT = 26
Index = QModelIndex | QPersistentModelIndex
ENTRY = Qt.ItemDataRole.UserRole


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One line of the history.

    Attributes
    ----------
    time : datetime
        Shown in local time.
    words : str
        "reject spot 11".
    tone : {"accepted", "rejected", "disputed", "plain"}
    in_effect : bool
        False where it was taken back: struck through.
    """

    time: datetime
    words: str
    tone: str = "plain"
    in_effect: bool = True


class HistoryPanel(QWidget):
    """The journal in words, with Undo and Redo.

    Signals
    -------
    undo_requested, redo_requested
    """

    undo_requested = Signal()
    redo_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        header = Header("History")
        self.undo = KeyButton("Ctrl+Z", "undo", "second", "Take the last decision back")
        self.redo = KeyButton("Ctrl+Y", "redo", "second", "Let the decision last taken back hold again")
        self.undo.clicked.connect(self.undo_requested)
        self.redo.clicked.connect(self.redo_requested)
        header.row.addWidget(self.undo)
        header.row.addWidget(self.redo)
        self._model = _HistoryModel(self)
        self.view = QListView()
        self.view.setModel(self._model)
        self.view.setItemDelegate(_HistoryDelegate(self.view))
        self.view.setUniformItemSizes(True)
        self.view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.view.setAccessibleName("History")
        self._nothing = plain_label("What you decide is listed here, and kept.", "second", wrap=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 4, 4)
        column.setSpacing(4)
        column.addWidget(header)
        column.addWidget(self._nothing)
        column.addWidget(self.view, 1)
        self.set_entries(())
        self.set_undoable(False, False)

    def set_entries(self, entries: Sequence[HistoryEntry]) -> None:
        """Show entries, the latest first; the list returns to its top."""
        self._model.set_entries(tuple(entries))
        self._nothing.setVisible(not entries)
        self.view.scrollToTop()

    def set_undoable(self, undo: bool, redo: bool) -> None:
        """Say whether there is something to take back, or to let hold again."""
        self.undo.setEnabled(undo)
        self.redo.setEnabled(redo)


class _HistoryModel(QAbstractListModel):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.entries: tuple[HistoryEntry, ...] = ()

    def set_entries(self, entries: tuple[HistoryEntry, ...]) -> None:
        self.beginResetModel()
        self.entries = entries
        self.endResetModel()

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.entries)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        entry = self.entries[index.row()]
        if role == ENTRY:
            return entry
        words = entry.words if entry.in_effect else f"{entry.words} (taken back)"
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return words
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(f"{entry.time.astimezone():%Y-%m-%d %H:%M:%S}  {words}")
        return None


class _HistoryDelegate(QStyledItemDelegate):
    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(120, ROW_HEIGHT)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        entry: HistoryEntry = index.data(ENTRY)
        look = theme.current()
        tones = {"accepted": look.accent, "rejected": look.rejected, "disputed": look.disputed}
        box = QRectF(option.rect)
        painter.save()
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box, QColor(look.raised))
        painter.setFont(theme.font())
        painter.setPen(QColor(look.third))
        time = f"{entry.time.astimezone():%H:%M}"
        middle = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(box.adjusted(2, 0, 0, 0), middle, time)
        words = QFont(theme.font())
        words.setStrikeOut(not entry.in_effect)
        painter.setFont(words)
        painter.setPen(QColor(tones.get(entry.tone, look.second) if entry.in_effect else look.third))
        room = box.adjusted(50, 0, -4, 0)
        text = QFontMetrics(words).elidedText(entry.words, Qt.TextElideMode.ElideRight, int(room.width()))
        painter.drawText(room, middle, text)
        painter.restore()
