"""The tasks behind a cell of a confusion matrix, or of a community: pictures, or names without them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QImage, QPainter, QPen, QPixmap, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from raterscope.widgets import theme
from raterscope.widgets.figures import count
from raterscope.widgets.painting import paint_words
from raterscope.widgets.parts import Header, plain_label, plain_tip
from raterscope.widgets.picture_shelf import PictureShelf

__all__ = ["GridView", "TaskGrid"]

Index = QModelIndex | QPersistentModelIndex
PICTURE, WORDS, PAD = 88, 47, 6
FIGURE_ROOM = 28.0
CARD = QSize(PICTURE + 2 * PAD, PICTURE + WORDS + 2 * PAD)
LINE = 24


@dataclass(frozen=True, eq=False)
class GridView:
    """Tasks as arrays; nothing is made of one before it is looked at.

    Attributes
    ----------
    title : str
        What they have in common: "said 3 where true is not".
    tasks : (M,) int
        Which tasks, in the order to show them.
    names : sequence of N str
        Of all tasks.
    classes : tuple of J str
    posterior : (N, J) float, optional
    outputs : tuple of L str
    given : (M,) int, optional
        The output that was given to each of `tasks`; -1 for none.
    pictures : bool
        Whether the tasks have pictures.
    """

    title: str
    tasks: NDArray[np.integer]
    names: Sequence[str]
    classes: tuple[str, ...]
    posterior: NDArray[np.floating] | None = None
    outputs: tuple[str, ...] = ()
    given: NDArray[np.integer] | None = None
    pictures: bool = True

    def said(self, place: int) -> str:
        """Say what was given to the task at a place: "said 3"."""
        given = -1 if self.given is None else int(self.given[place])
        return f"said {self.outputs[given]}" if given >= 0 else ""

    def model_words(self, place: int) -> str:
        """Say what the model makes of the task at a place: "not 0.93"."""
        return " ".join(self.model(place)).strip()

    def model(self, place: int) -> tuple[str, str]:
        """Give the most probable class of the task at a place, and its probability."""
        if self.posterior is None:
            return "", ""
        row = self.posterior[self.tasks[place]]
        return self.classes[int(row.argmax())], f"{row.max():.2f}"

    def words(self, place: int) -> str:
        """Say the task at a place."""
        parts = (self.names[self.tasks[place]], self.said(place), self.model_words(place))
        return ", ".join(part for part in parts if part)


class TaskGrid(QWidget):
    """A click, or an arrow key, chooses a task. Pictures are asked for when they come in sight.

    Signals
    -------
    chosen : int
        The task gone to.
    picture_wanted : int
        A task in sight whose picture is not here; answer with `set_picture`.
    """

    chosen = Signal(int)
    picture_wanted = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._header = Header("Tasks")
        self._nothing = plain_label("", "second", wrap=True)
        self._model = _GridModel(self)
        self._view: GridView | None = None
        self._shelf = PictureShelf(PICTURE, self._in_sight, self)
        self._shelf.wanted.connect(self.picture_wanted)
        self.view = QTableView()
        self.view.setModel(self._model)
        self._delegate = _CardDelegate(self._shelf.kept, self.view)
        self.view.setItemDelegate(self._delegate)
        self.view.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.view.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.view.setShowGrid(False)
        self.view.setTabKeyNavigation(False)
        self.view.setStyleSheet("selection-background-color: transparent;")
        self.view.setMouseTracking(True)
        for header in (self.view.horizontalHeader(), self.view.verticalHeader()):
            header.hide()
            header.setMinimumSectionSize(1)
        self.view.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.view.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 4, 8)
        column.setSpacing(4)
        self._header.row.setContentsMargins(0, 0, 8, 0)
        column.addWidget(self._header)
        column.addWidget(self._nothing)
        column.addWidget(self.view, 1)
        self.setFocusProxy(self.view)
        self.view.verticalScrollBar().valueChanged.connect(self._shelf.rest)
        self._shelf.changed.connect(self.view.viewport().update)
        self.view.selectionModel().currentChanged.connect(self._on_current)
        self.show_tasks(None)

    def show_tasks(self, view: GridView | None) -> None:
        """Show tasks, or say how they come here. Pictures of before are kept."""
        self._view = view
        self._shelf.ask_again()
        many = 0 if view is None else len(view.tasks)
        self._header.set_title("Tasks", "" if view is None else view.title)
        self._header.set_aside("" if view is None else count(many, "task"))
        self._nothing.setText(
            "Click a cell of a confusion matrix, or a community: its tasks are shown here."
            if view is None
            else "No task is of this kind."
        )
        self._nothing.setVisible(not many)
        self.view.setVisible(bool(many))
        self.view.setAccessibleName("Tasks" if view is None else view.title)
        self._arrange(anew=True)
        self.view.scrollToTop()

    def set_picture(self, task: int, picture: QImage | None) -> None:
        """Give the picture that was asked for; None says that there is none."""
        self._shelf.keep(task, picture)

    def forget_pictures(self) -> None:
        """Drop all pictures: other tasks bear the numbers now."""
        self._shelf.forget()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put as many beside each other as there is room for."""
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self, *, anew: bool = False) -> None:
        pictures = self._view is not None and self._view.pictures
        room = self.width() - 16 - self.view.verticalScrollBar().sizeHint().width()
        columns = max(1, room // CARD.width()) if pictures else 1
        if anew or columns != self._model.columns:
            # What was current is another place of the table now; what is meant stays the same.
            place = -1 if anew else self._model.place(self.view.currentIndex())
            self.view.verticalHeader().setDefaultSectionSize(CARD.height() if pictures else LINE)
            self._model.show_view(self._view, columns)
            if place >= 0:
                self.view.selectionModel().blockSignals(True)
                self.view.setCurrentIndex(self._model.at(place))
                self.view.selectionModel().blockSignals(False)
        self._shelf.rest()

    def _in_sight(self) -> list[int]:
        if self._view is None or not self._view.pictures or not self.view.isVisible():
            return []
        first, last = self.view.rowAt(0), self.view.rowAt(self.view.viewport().height() - 1)
        last = self._model.rowCount() - 1 if last < 0 else last
        columns = self._model.columns
        return [int(task) for task in self._view.tasks[max(first, 0) * columns : (last + 1) * columns]]

    def _on_current(self, index: QModelIndex) -> None:
        place = self._model.place(index)
        if place >= 0 and self._view is not None:
            self.chosen.emit(int(self._view.tasks[place]))


class _GridModel(QAbstractTableModel):
    """Tasks row by row."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.view: GridView | None = None
        self.columns = 1

    def show_view(self, view: GridView | None, columns: int) -> None:
        self.beginResetModel()
        self.view, self.columns = view, columns
        self.endResetModel()

    def place(self, index: Index) -> int:
        """Give which of the tasks stands at an index, -1 for none."""
        place = index.row() * self.columns + index.column()
        many = 0 if self.view is None else len(self.view.tasks)
        return place if index.isValid() and place < many else -1

    def at(self, place: int) -> QModelIndex:
        """Give where a task stands."""
        return self.index(place // self.columns, place % self.columns)

    def rowCount(self, parent: Index | None = None) -> int:
        many = 0 if self.view is None else len(self.view.tasks)
        return 0 if parent is not None and parent.isValid() else -(-many // self.columns)

    def columnCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else self.columns

    def flags(self, index: Index) -> Qt.ItemFlag:
        return super().flags(index) if self.place(index) >= 0 else Qt.ItemFlag.NoItemFlags

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        place = self.place(index)
        if place < 0 or self.view is None:
            return None
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return self.view.words(place)
        return plain_tip(self.view.words(place)) if role == Qt.ItemDataRole.ToolTipRole else None


class _CardDelegate(QStyledItemDelegate):
    """Paints a picture with its words, or the words in a line."""

    def __init__(self, pictures: OrderedDict[int, QPixmap | None], parent: QWidget) -> None:
        super().__init__(parent)
        self.pictures = pictures

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        model = index.model()
        assert isinstance(model, _GridModel)
        place = model.place(index)
        if place < 0 or model.view is None:
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint = self._card if model.view.pictures else self._line
        paint(painter, QRectF(option.rect), model.view, place, option.state)
        painter.restore()

    def _card(
        self, painter: QPainter, box: QRectF, view: GridView, place: int, state: QStyle.StateFlag
    ) -> None:
        look = theme.current()
        task = int(view.tasks[place])
        frame = QRectF(box.center().x() - CARD.width() / 2 + 2, box.top() + 2, CARD.width() - 4,
                       CARD.height() - 4)  # fmt: skip
        picture = QRectF(frame.left() + PAD - 2, frame.top() + PAD - 2, PICTURE, PICTURE)
        painter.fillRect(picture, QColor(theme.DARK.canvas))
        kept = self.pictures.get(task)
        if kept is not None:
            self.pictures.move_to_end(task)
            target = QRectF(QPointF(), kept.deviceIndependentSize())
            target.moveCenter(picture.center())
            painter.drawPixmap(target.topLeft(), kept)
        else:
            painter.setPen(QColor(theme.DARK.second))
            painter.setFont(theme.font(theme.CAPTION))
            words = "no picture" if task in self.pictures else "…"
            painter.drawText(picture, Qt.AlignmentFlag.AlignCenter, words)
        painter.setFont(theme.font(theme.CAPTION))
        name = QRectF(picture.left(), picture.bottom() + 2, PICTURE, 15)
        paint_words(painter, name, view.names[task], look.text, elide=Qt.TextElideMode.ElideMiddle)
        name.translate(0, 15)
        likeliest, share = view.model(place)
        middle, right = Qt.TextElideMode.ElideMiddle, Qt.AlignmentFlag.AlignRight
        paint_words(painter, name.adjusted(0, 0, -FIGURE_ROOM, 0), likeliest, look.second, elide=middle)
        paint_words(painter, name, share, look.second, side=right)
        name.translate(0, 14)
        paint_words(painter, name, view.said(place), look.third, elide=middle)
        if state & (QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_MouseOver):
            selected = bool(state & QStyle.StateFlag.State_Selected)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(look.accent if selected else look.line), 2 if selected else 1))
            painter.drawRoundedRect(frame, 5, 5)

    def _line(
        self, painter: QPainter, box: QRectF, view: GridView, place: int, state: QStyle.StateFlag
    ) -> None:
        look, middle = theme.current(), Qt.TextElideMode.ElideMiddle
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box, QColor(look.raised))
        painter.setFont(theme.font())
        inner = box.adjusted(6, 0, -8, 0)
        task, ends = (
            int(view.tasks[place]),
            [inner.left() + share * inner.width() for share in (0, 0.42, 0.62, 1)],
        )
        rooms = [
            QRectF(left, inner.top(), right - left - 8, inner.height()) for left, right in pairwise(ends)
        ]
        paint_words(painter, rooms[0], view.names[task], look.text, elide=middle)
        paint_words(painter, rooms[1], view.said(place), look.second, elide=middle)
        likeliest, share = view.model(place)
        paint_words(painter, rooms[2], share, look.second, side=Qt.AlignmentFlag.AlignRight)
        paint_words(painter, rooms[2].adjusted(0, 0, -36, 0), likeliest, look.second, elide=middle)
