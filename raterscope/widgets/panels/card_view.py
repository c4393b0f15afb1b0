"""Cards as a table shows them: pictures with their words, or the words in lines without pictures."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import (
    QAbstractTableModel,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPen, QPixmap
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
from raterscope.widgets.painting import paint_words
from raterscope.widgets.parts import plain_tip
from raterscope.widgets.text_size import enlarge

__all__ = ["LINE", "Card", "CardDelegate", "CardModel", "CardView", "Cards", "size_of"]

Index = QModelIndex | QPersistentModelIndex
WORDS, PAD = 47, 6
FIGURE_ROOM = 28.0
LINE = 24
"""The height of a line of words."""


def size_of(picture: int) -> QSize:
    """Give the size of a card with a picture of this side."""
    return QSize(picture + 2 * PAD, picture + WORDS + 2 * PAD)


@dataclass(frozen=True, slots=True)
class Card:
    """The words of a card.

    Attributes
    ----------
    title : str
    second, figure : str
        Side by side beneath it.
    third : str
        Beneath these, or in a line the second column.
    tone : str
        The colour of the figure, a name of the theme's.
    """

    title: str
    second: str = ""
    figure: str = ""
    third: str = ""
    tone: str = "second"


class Cards(Protocol):
    """Cards of which nothing is made before it is looked at."""

    @property
    def numbers(self) -> NDArray[np.integer]:
        """What each stands for, in the order to show them; its picture is known by it."""

    @property
    def pictures(self) -> bool:
        """Whether there are pictures."""

    def card(self, place: int) -> Card:
        """Make the card at a place."""

    def words(self, place: int) -> str:
        """Say the card at a place."""


class CardView(QTableView):
    """Selects in reading order with Shift, and goes on to the next line at a line's end.

    Signals
    -------
    returned(QModelIndex)
        Return was pressed on a card.
    """

    returned = Signal(QModelIndex)

    def __init__(self, model: CardModel) -> None:
        super().__init__()
        self._cards = model
        self._from = 0
        self._extending = False
        self.setModel(model)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.setShowGrid(False)
        self.setTabKeyNavigation(False)
        self.setStyleSheet("selection-background-color: transparent;")
        self.setMouseTracking(True)
        for header in (self.horizontalHeader(), self.verticalHeader()):
            header.hide()
            header.setMinimumSectionSize(1)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Heed Shift."""
        self._extending = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        super().mousePressEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Heed Shift, and Return."""
        self._extending = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self.returned.emit(self.currentIndex())
        else:
            super().keyPressEvent(event)

    def currentChanged(self, current: Index, previous: Index) -> None:
        """Select from here on with Shift."""
        if not self._extending:
            self._from = max(self._cards.place(current), 0)
        super().currentChanged(current, previous)

    def setSelection(self, rect: QRect, command: QItemSelectionModel.SelectionFlag) -> None:
        """Select what the mouse is drawn over, or from the last card to this one in reading order."""
        to = self._cards.place(self.currentIndex())
        if not self._extending or to < 0 or self.state() == QAbstractItemView.State.DragSelectingState:
            super().setSelection(rect, command)
            return
        self.selectionModel().select(self._cards.run(*sorted((self._from, to))), command)

    def moveCursor(
        self, action: QAbstractItemView.CursorAction, modifiers: Qt.KeyboardModifier
    ) -> QModelIndex:
        """Go to the card before or after, in reading order."""
        step = {
            QAbstractItemView.CursorAction.MoveLeft: -1, QAbstractItemView.CursorAction.MoveRight: 1,
        }.get(action)  # fmt: skip
        place = self._cards.place(self.currentIndex())
        if step is None or place < 0:
            return super().moveCursor(action, modifiers)
        return self._cards.at(min(max(place + step, 0), self._cards.many - 1))


class CardModel(QAbstractTableModel):
    """Cards row by row."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.cards: Cards | None = None
        self.columns = 1

    @property
    def many(self) -> int:
        """How many cards there are."""
        return 0 if self.cards is None else len(self.cards.numbers)

    def show_cards(self, cards: Cards | None, columns: int) -> None:
        """Show others, so many beside each other."""
        self.beginResetModel()
        self.cards, self.columns = cards, columns
        self.endResetModel()

    def place(self, index: Index) -> int:
        """Give which of the cards stands at an index, -1 for none."""
        place = index.row() * self.columns + index.column()
        return place if index.isValid() and place < self.many else -1

    def at(self, place: int) -> QModelIndex:
        """Give where a card stands."""
        return self.index(place // self.columns, place % self.columns)

    def run(self, first: int, last: int) -> QItemSelection:
        """Select cards in reading order."""
        found = QItemSelection()
        for row in range(first // self.columns, last // self.columns + 1):
            left = first if row == first // self.columns else row * self.columns
            right = last if row == last // self.columns else (row + 1) * self.columns - 1
            found.select(self.at(left), self.at(right))
        return found

    def rowCount(self, parent: Index | None = None) -> int:
        """Count the rows of cards."""
        return 0 if parent is not None and parent.isValid() else -(-self.many // self.columns)

    def columnCount(self, parent: Index | None = None) -> int:
        """Count the cards beside each other."""
        return 0 if parent is not None and parent.isValid() else self.columns

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Let nobody choose where no card is."""
        return super().flags(index) if self.place(index) >= 0 else Qt.ItemFlag.NoItemFlags

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Say a card."""
        place = self.place(index)
        if place < 0 or self.cards is None:
            return None
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return self.cards.words(place)
        return plain_tip(self.cards.words(place)) if role == Qt.ItemDataRole.ToolTipRole else None


class CardDelegate(QStyledItemDelegate):
    """Paints a picture with its words, or the words in a line."""

    def __init__(self, pictures: OrderedDict[int, QPixmap | None], side: int, parent: QWidget) -> None:
        super().__init__(parent)
        self.pictures = pictures
        self._side = side

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint a card, or its line."""
        model = index.model()
        assert isinstance(model, CardModel)
        place = model.place(index)
        if place < 0 or model.cards is None:
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        card, box = model.cards.card(place), enlarge(painter, option.rect)
        if model.cards.pictures:
            self._card(painter, box, card, int(model.cards.numbers[place]), option.state)
        else:
            self._line(painter, box, card, option.state)
        painter.restore()

    def _card(self, painter: QPainter, box: QRectF, card: Card, number: int, state: QStyle.StateFlag) -> None:
        look, side = theme.current(), self._side
        width, height = size_of(side).width(), size_of(side).height()
        frame = QRectF(round(box.center().x() - width / 2) + 2, box.top() + 2, width - 4, height - 4)
        picture = QRectF(frame.left() + PAD - 2, frame.top() + PAD - 2, side, side)
        painter.fillRect(picture, QColor(theme.DARK.canvas))
        kept = self.pictures.get(number)
        if kept is not None:
            self.pictures.move_to_end(number)
            target = QRectF(QPointF(), kept.deviceIndependentSize())
            target.moveCenter(picture.center())
            painter.drawPixmap(target.topLeft(), kept)
        else:
            painter.setPen(QColor(theme.DARK.second))
            painter.setFont(theme.font(theme.CAPTION))
            words = "no image" if number in self.pictures else "…"
            painter.drawText(picture, Qt.AlignmentFlag.AlignCenter, words)
        painter.setFont(theme.font(theme.CAPTION))
        name = QRectF(picture.left(), picture.bottom() + 2, side, 15)
        paint_words(painter, name, card.title, look.text, elide=Qt.TextElideMode.ElideMiddle)
        name.translate(0, 15)
        middle, right = Qt.TextElideMode.ElideMiddle, Qt.AlignmentFlag.AlignRight
        paint_words(painter, name.adjusted(0, 0, -FIGURE_ROOM, 0), card.second, look.second, elide=middle)
        paint_words(painter, name, card.figure, getattr(look, card.tone), side=right)
        name.translate(0, 14)
        paint_words(painter, name, card.third, look.third, elide=middle)
        marked = QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_MouseOver
        if state & (marked | QStyle.StateFlag.State_HasFocus):
            selected = bool(state & QStyle.StateFlag.State_Selected)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(look.accent if selected else look.line), 2 if selected else 1))
            painter.drawRoundedRect(frame, 5, 5)

    def _line(self, painter: QPainter, box: QRectF, card: Card, state: QStyle.StateFlag) -> None:
        look, middle = theme.current(), Qt.TextElideMode.ElideMiddle
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box, QColor(look.raised))
        painter.setFont(theme.font())
        inner = box.adjusted(6, 0, -8, 0)
        ends = [inner.left() + share * inner.width() for share in (0, 0.42, 0.62, 1)]
        rooms: Sequence[QRectF] = [
            QRectF(left, inner.top(), right - left - 8, inner.height()) for left, right in pairwise(ends)
        ]
        paint_words(painter, rooms[0], card.title, look.text, elide=middle)
        paint_words(painter, rooms[1], card.third, look.second, elide=middle)
        paint_words(
            painter, rooms[2], card.figure, getattr(look, card.tone), side=Qt.AlignmentFlag.AlignRight
        )
        paint_words(painter, rooms[2].adjusted(0, 0, -36, 0), card.second, look.second, elide=middle)
