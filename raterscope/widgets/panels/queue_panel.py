"""The queue: what to look at next, the most disputed first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFontMetrics, QPainter
from PySide6.QtWidgets import (
    QCheckBox,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from raterscope.widgets import theme
from raterscope.widgets.figures import count
from raterscope.widgets.parts import Header, plain_label, plain_tip

__all__ = ["QueueItem", "QueuePanel"]

ROW_HEIGHT = 54
NARROWEST = 208
Index = QModelIndex | QPersistentModelIndex
ITEM = Qt.ItemDataRole.UserRole


@dataclass(frozen=True, slots=True)
class QueueItem:
    """One line of the queue.

    Attributes
    ----------
    key : object
        What the item stands for; equal keys are the same item.
    title, detail : str
        Name, and state in a few words.
    score : float or None
        Doubt, 0 and more; None before there is any.
    done : bool
        True where nothing is left to decide.
    """

    key: object
    title: str
    detail: str
    score: float | None
    done: bool


class QueuePanel(QWidget):
    """Items to look at, with a filter. Done ones sink.

    Signals
    -------
    item_chosen : object
        Key of the item that the user went to.
    """

    item_chosen = Signal(object)

    def __init__(self, title: str = "Images", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setMinimumWidth(NARROWEST)
        self._header = Header(title, "most disputed")
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("filter")
        self.filter.setClearButtonEnabled(True)
        self.filter.setAccessibleName(f"Filter {title.lower()} by name")
        self.undecided = QCheckBox("undecided only")
        self._model = _QueueModel(self)
        self.view = QListView()
        self.view.setModel(self._model)
        self.view.setItemDelegate(_QueueDelegate(self.view))
        self.view.setUniformItemSizes(True)
        self.view.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.view.setAccessibleName(title)
        self.view.setMouseTracking(True)
        self._nothing = plain_label("", "second", wrap=True)
        self._nothing.hide()
        top = QVBoxLayout()
        top.setContentsMargins(12, 12, 12, 4)
        top.setSpacing(8)
        for widget in (self._header, self.filter, self.undecided, self._nothing):
            top.addWidget(widget)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(top)
        column.addWidget(self.view, 1)
        self.filter.textChanged.connect(self._refilter)
        self.undecided.toggled.connect(self._refilter)
        self.view.selectionModel().currentChanged.connect(self._on_current)
        self._quiet = False
        self._refilter()

    def set_items(self, items: Sequence[QueueItem]) -> None:
        """Show items in the order given, the done ones last; what is current stays, and the list's place."""
        self._model.items = sorted(items, key=_done)
        self._refilter()

    def set_current(self, key: object) -> None:
        """Mark one item without a signal; None marks none."""
        self._model.current = key
        self._mark_current(scroll=True)

    @property
    def current(self) -> object:
        """Key of the item marked."""
        return self._model.current

    def shown(self) -> list[QueueItem]:
        """Give the items that pass the filter, in their order."""
        return list(self._model.rows)

    def _refilter(self) -> None:
        place = self.view.verticalScrollBar().value()
        self._quiet = True
        self._model.choose(self.filter.text(), self.undecided.isChecked())
        self._quiet = False
        self._mark_current(scroll=False)
        self.view.verticalScrollBar().setValue(place)
        left = sum(not item.done for item in self._model.items)
        self._header.set_aside(f"{count(left)} to do" if self._model.items else "")
        empty = "" if self._model.rows else ("Nothing here yet." if not self._model.items else "No match.")
        self._nothing.setText(empty)
        self._nothing.setVisible(bool(empty))

    def _mark_current(self, *, scroll: bool) -> None:
        row = self._model.row_of(self._model.current)
        index = self._model.index(row) if row >= 0 else QModelIndex()
        self._quiet = True
        self.view.setCurrentIndex(index)
        self._quiet = False
        if scroll and index.isValid():
            self.view.scrollTo(index)

    def _on_current(self, index: QModelIndex) -> None:
        if self._quiet or not index.isValid():
            return
        key = self._model.rows[index.row()].key
        if key != self._model.current:
            self._model.current = key
            self.item_chosen.emit(key)


def _done(item: QueueItem) -> bool:
    return item.done


class _QueueModel(QAbstractListModel):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.items: list[QueueItem] = []
        self.rows: list[QueueItem] = []
        self.current: object = None
        self.most = 1.0

    def choose(self, text: str, undecided: bool) -> None:
        words = text.casefold().split()
        self.most = max([1.0, *(item.score for item in self.items if item.score is not None)])
        rows = [
            item
            for item in self.items
            if not (undecided and item.done)
            and all(word in f"{item.title} {item.detail}".casefold() for word in words)
        ]
        if [item.key for item in rows] == [item.key for item in self.rows]:
            self.rows = rows
            if rows:
                self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))
            return
        self.beginResetModel()
        self.rows = rows
        self.endResetModel()

    def row_of(self, key: object) -> int:
        return next((row for row, item in enumerate(self.rows) if item.key == key), -1)

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        item = self.rows[index.row()]
        if role == ITEM:
            return item
        if role == Qt.ItemDataRole.DisplayRole:
            return item.title
        if role == Qt.ItemDataRole.ToolTipRole:
            score = "" if item.score is None else f", doubt {item.score:.2f}"
            return plain_tip(f"{item.title}: {item.detail}{score}")
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{item.title}, {item.detail}" + (", done" if item.done else "")
        return None


class _QueueDelegate(QStyledItemDelegate):
    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(120, ROW_HEIGHT)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        item: QueueItem = index.data(ITEM)
        look = theme.current()
        box = QRectF(option.rect)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box.adjusted(8, 1, -8, -3), QColor(look.raised))
            painter.fillRect(QRectF(box.left() + 8, box.top() + 1, 3, box.height() - 4), QColor(look.accent))
        elif option.state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(box.adjusted(8, 1, -8, -3), theme.colour(look.raised, 130))
        inner = box.adjusted(18, 5, -18, -8)
        score = "done" if item.done else ("" if item.score is None else f"{item.score:.2f}")
        painter.setFont(theme.font(theme.CAPTION))
        width = QFontMetrics(painter.font()).horizontalAdvance(score) + 8
        painter.setPen(QColor(look.accent if item.done else look.second))
        painter.drawText(inner, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop, score)
        painter.setPen(QColor(look.text))
        painter.setFont(theme.font())
        _line(painter, QRectF(inner.left(), inner.top() - 2, inner.width() - width, 18), item.title)
        painter.setPen(QColor(look.second))
        painter.setFont(theme.font(theme.CAPTION))
        _line(painter, QRectF(inner.left(), inner.top() + 17, inner.width(), 15), item.detail)
        bar = QRectF(inner.left(), box.bottom() - 10, inner.width(), 3)
        painter.fillRect(bar, QColor(look.line))
        share = 0.0 if item.score is None else min(1.0, item.score / self._full(index))
        filled = QRectF(bar.topLeft(), QPointF(bar.left() + bar.width() * share, bar.bottom()))
        painter.fillRect(filled, QColor(look.accent if item.done else look.disputed))
        painter.restore()

    @staticmethod
    def _full(index: Index) -> float:
        """Give the doubt that fills the bar: a probability's largest, or the largest of the queue."""
        model = index.model()
        assert isinstance(model, _QueueModel)
        return model.most


def _line(painter: QPainter, box: QRectF, text: str) -> None:
    short = QFontMetrics(painter.font()).elidedText(text, Qt.TextElideMode.ElideMiddle, int(box.width()))
    painter.drawText(box, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, short)
