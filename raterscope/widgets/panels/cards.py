"""Cards with an image and text: model, views, grid and row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import (
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QScrollArea,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from raterscope.widgets import theme
from raterscope.widgets.painting import ThumbnailCache, paint_text, without_picture
from raterscope.widgets.parts import Header, plain_label, plain_tip
from raterscope.widgets.tables.rows import Index, TableModel
from raterscope.widgets.theme import enlarge, pixels, set_lengths

WORDS, PAD = 47, 6
FIGURE_ROOM = 28.0
LINE = 24
"""Height of a line of text."""


def size_of(picture: int) -> QSize:
    """Return the size of a card for a picture of this side length."""
    return QSize(picture + 2 * PAD, picture + WORDS + 2 * PAD)


@dataclass(frozen=True, slots=True)
class Card:
    """Text of one card."""

    title: str
    # second, figure: texts side by side below the title
    second: str = ""
    figure: str = ""
    third: str = ""  # below these, or the second column of a line
    tone: str = "second"  # colour role of the figure in the theme


class Cards(Protocol):
    """Sequence of cards that are created on demand."""

    @property
    def numbers(self) -> NDArray[np.integer]:
        """Identifiers of the cards in display order; each identifies a picture."""

    @property
    def pictures(self) -> bool:
        """True if the cards have pictures."""

    def card(self, index: int) -> Card:
        """Return the card at an index."""

    def text_of(self, index: int) -> str:
        """Return the text of the card at an index."""


class CardView(QTableView):
    """List view that extends the selection in reading order with Shift and wraps at the end of a line."""

    returned = Signal(QModelIndex)  # Return was pressed on a card

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
        """Extend the selection with Shift."""
        self._extending = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        super().mousePressEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Extend the selection with Shift; Return opens a card."""
        self._extending = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self.returned.emit(self.currentIndex())
        else:
            super().keyPressEvent(event)

    def currentChanged(self, current: Index, previous: Index) -> None:
        """Extend the selection from the new current card with Shift."""
        if not self._extending:
            self._from = max(self._cards.position_of(current), 0)
        super().currentChanged(current, previous)

    def setSelection(self, rect: QRect, command: QItemSelectionModel.SelectionFlag) -> None:
        """Select the cards below the rubber band, or from the anchor to the current card in reading order."""
        to = self._cards.position_of(self.currentIndex())
        if not self._extending or to < 0 or self.state() == QAbstractItemView.State.DragSelectingState:
            super().setSelection(rect, command)
            return
        self.selectionModel().select(self._cards.run(*sorted((self._from, to))), command)

    def moveCursor(
        self, action: QAbstractItemView.CursorAction, modifiers: Qt.KeyboardModifier
    ) -> QModelIndex:
        """Return the previous or next card in reading order."""
        step = {
            QAbstractItemView.CursorAction.MoveLeft: -1, QAbstractItemView.CursorAction.MoveRight: 1,
        }.get(action)  # fmt: skip
        index = self._cards.position_of(self.currentIndex())
        if step is None or index < 0:
            return super().moveCursor(action, modifiers)
        return self._cards.at(min(max(index + step, 0), self._cards.many - 1))


class CardModel(TableModel):
    """Cards arranged in rows."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.cards: Cards | None = None
        self.columns = 1

    @property
    def many(self) -> int:
        """Number of cards."""
        return 0 if self.cards is None else len(self.cards.numbers)

    def show_cards(self, cards: Cards | None, columns: int) -> None:
        """Show other cards with this many columns."""
        self.beginResetModel()
        self.cards, self.columns = cards, columns
        self.endResetModel()

    def position_of(self, index: Index) -> int:
        """Return the card number at a model index, -1 for none."""
        number = index.row() * self.columns + index.column()
        return number if index.isValid() and number < self.many else -1

    def at(self, index: int) -> QModelIndex:
        """Return the model index of a card."""
        return self.index(index // self.columns, index % self.columns)

    def run(self, first: int, last: int) -> QItemSelection:
        """Return the selection of consecutive cards in reading order."""
        selection = QItemSelection()
        for row in range(first // self.columns, last // self.columns + 1):
            left = first if row == first // self.columns else row * self.columns
            right = last if row == last // self.columns else (row + 1) * self.columns - 1
            selection.select(self.at(left), self.at(right))
        return selection

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows, and of cards per row."""
        return -(-self.many // self.columns), self.columns

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Make cells without a card unselectable."""
        return super().flags(index) if self.position_of(index) >= 0 else Qt.ItemFlag.NoItemFlags

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the text of a card."""
        number = self.position_of(index)
        if number < 0 or self.cards is None:
            return None
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return self.cards.text_of(number)
        return plain_tip(self.cards.text_of(number)) if role == Qt.ItemDataRole.ToolTipRole else None


class CardDelegate(QStyledItemDelegate):
    """Delegate that paints a card: a picture with text, or the text in one line."""

    def __init__(self, pictures: ThumbnailCache, side: int, parent: QWidget) -> None:
        super().__init__(parent)
        self.pictures, self.damaged = pictures.kept, pictures.damaged
        self._side = side

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint a card, or its line."""
        model = index.model()
        assert isinstance(model, CardModel)
        number = model.position_of(index)
        if number < 0 or model.cards is None:
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        card, box = model.cards.card(number), enlarge(painter, option.rect)
        if model.cards.pictures:
            self._card(painter, box, card, int(model.cards.numbers[number]), option.state)
        else:
            self._line(painter, box, card, option.state)
        painter.restore()

    def _card(self, painter: QPainter, box: QRectF, card: Card, number: int, state: QStyle.StateFlag) -> None:
        palette, side = theme.current(), self._side
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
            text = without_picture(number in self.damaged) if number in self.pictures else "…"
            painter.drawText(picture, Qt.AlignmentFlag.AlignCenter, text)
        painter.setFont(theme.font(theme.CAPTION))
        name = QRectF(picture.left(), picture.bottom() + 2, side, 15)
        paint_text(painter, name, card.title, palette.text, elide=Qt.TextElideMode.ElideMiddle)
        name.translate(0, 15)
        middle, right = Qt.TextElideMode.ElideMiddle, Qt.AlignmentFlag.AlignRight
        paint_text(painter, name.adjusted(0, 0, -FIGURE_ROOM, 0), card.second, palette.second, elide=middle)
        paint_text(painter, name, card.figure, getattr(palette, card.tone), side=right)
        name.translate(0, 14)
        paint_text(painter, name, card.third, palette.third, elide=middle)
        marked = QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_MouseOver
        if state & (marked | QStyle.StateFlag.State_HasFocus):
            selected = bool(state & QStyle.StateFlag.State_Selected)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(palette.accent if selected else palette.line), 2 if selected else 1))
            painter.drawRoundedRect(frame, 5, 5)

    def _line(self, painter: QPainter, box: QRectF, card: Card, state: QStyle.StateFlag) -> None:
        palette, middle = theme.current(), Qt.TextElideMode.ElideMiddle
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box, QColor(palette.raised))
        painter.setFont(theme.font())
        inner = box.adjusted(6, 0, -8, 0)
        ends = [inner.left() + share * inner.width() for share in (0, 0.42, 0.62, 1)]
        rooms: Sequence[QRectF] = [
            QRectF(left, inner.top(), right - left - 8, inner.height()) for left, right in pairwise(ends)
        ]
        paint_text(painter, rooms[0], card.title, palette.text, elide=middle)
        paint_text(painter, rooms[1], card.third, palette.second, elide=middle)
        paint_text(
            painter, rooms[2], card.figure, getattr(palette, card.tone), side=Qt.AlignmentFlag.AlignRight
        )
        paint_text(painter, rooms[2].adjusted(0, 0, -36, 0), card.second, palette.second, elide=middle)


PICTURE = 88


class CardGrid(QWidget):
    """Grid of cards. A click or an arrow key selects a card; pictures are requested when they come into view.

    `picture`: side length of a picture. `several`: whether several cards can be selected: with Ctrl, Shift,
    the rubber band or Ctrl+A.
    """

    chosen = Signal(int)  # number of the new current card

    def __init__(self, title: str, *, picture: int = PICTURE, several: bool = False) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self._header = Header(title)
        self._nothing = plain_label("", "second", wrap=True)
        self._model = CardModel(self)
        self._cards: Cards | None = None
        self._held_keys = False
        """Whether the cards had the keyboard focus before they became empty."""
        self._size = size_of(picture)
        self.pictures = ThumbnailCache(picture, self._visible_items, self)
        self._title = title
        self.view = CardView(self._model)
        self.view.setAccessibleName(title)
        self._delegate = CardDelegate(self.pictures, picture, self.view)
        self.view.setItemDelegate(self._delegate)
        if several:
            self.view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(12, 8, 4, 8)
        self._column.setSpacing(4)
        self._header.row.setContentsMargins(0, 0, 8, 0)
        self._column.addWidget(self._header)
        self._column.addWidget(self._nothing)
        self._column.addWidget(self.view, 1)
        self._column.addStretch(0)  # fills the space without cards
        self.setFocusProxy(self.view)
        self.view.verticalScrollBar().valueChanged.connect(self.pictures.rest)
        self.pictures.changed.connect(self.view.viewport().update)
        self.view.selectionModel().currentChanged.connect(self._on_current)
        theme.notifier().changed.connect(self._arrange)

    def show_cards(self, cards: Cards | None, nothing: str, name: str) -> None:
        """Show other cards from the first one on, or the reason why there are none. Known pictures are kept.

        `nothing`: message if there are none. `name`: accessible name.
        """
        self._take(cards, nothing, name)
        self._arrange(reset=True)
        self.view.scrollToTop()

    def exchange(self, cards: Cards, nothing: str, name: str) -> None:
        """Replace the cards in place; scroll position and current index are kept."""
        index = self._model.position_of(self.view.currentIndex())
        scrolled = self.view.verticalScrollBar().value()
        self._take(cards, nothing, name)
        self._arrange(reset=True)
        self.view.verticalScrollBar().setValue(scrolled)
        if len(cards.numbers):
            self.view.setCurrentIndex(self._model.at(min(max(index, 0), len(cards.numbers) - 1)))

    @property
    def numbers(self) -> NDArray[np.integer]:
        """Identifiers of the cards, in order."""
        return np.empty(0, dtype=np.int64) if self._cards is None else self._cards.numbers

    @property
    def selected(self) -> list[int]:
        """Numbers of the selected cards, in display order."""
        positions = sorted(
            self._model.position_of(index) for index in self.view.selectionModel().selectedIndexes()
        )
        return [int(self.numbers[index]) for index in positions]

    @property
    def current(self) -> int | None:
        """Number of the current card."""
        return self.number_at(self.view.currentIndex())

    @property
    def visible_items(self) -> list[int]:
        """Numbers of the cards with an entirely visible picture."""
        room = self.view.viewport().rect()
        visible = (
            index
            for index in self._visible_places()
            if room.contains(self.view.visualRect(self._model.at(index)))
        )
        numbers = (int(self.numbers[index]) for index in visible)
        return [number for number in numbers if self.pictures.kept.get(number) is not None]

    def number_at(self, index: Index) -> int | None:
        """Return the card number at an index; None without a card."""
        position = self._model.position_of(index)
        return int(self.numbers[position]) if position >= 0 else None

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the number of columns to the width."""
        super().resizeEvent(event)
        self._arrange()

    def _take(self, cards: Cards | None, nothing: str, name: str) -> None:
        self._cards = cards
        self.pictures.ask_again()
        total = 0 if cards is None else len(cards.numbers)
        self._nothing.setText(nothing)
        self._nothing.setVisible(not total)
        self._held_keys = self._held_keys or self.view.hasFocus()
        self.view.setVisible(bool(total))
        if total and self._held_keys:
            self.view.setFocus()
            self._held_keys = False
        self.view.setAccessibleName(name or self._title)

    def _arrange(self, *, reset: bool = False) -> None:
        pictures = self._cards is not None and self._cards.pictures
        room = self.width() - 16 - self.view.verticalScrollBar().sizeHint().width()
        columns = max(1, room // pixels(self._size.width())) if pictures else 1
        if reset or columns != self._model.columns:
            # The current card is at another place in the table now.
            index = -1 if reset else self._model.position_of(self.view.currentIndex())
            high = self._size.height() if pictures else LINE
            set_lengths(self.view.verticalHeader(), defaultSectionSize=high)
            self._model.show_cards(self._cards, columns)
            if index >= 0:
                self.view.selectionModel().blockSignals(True)
                self.view.setCurrentIndex(self._model.at(index))
                self.view.selectionModel().blockSignals(False)
        self.pictures.rest()

    def _visible_items(self) -> list[int]:
        return [int(self.numbers[index]) for index in self._visible_places()]

    def _visible_places(self) -> range:
        if self._cards is None or not self._cards.pictures or not self.view.isVisible():
            return range(0)
        first, last = self.view.rowAt(0), self.view.rowAt(self.view.viewport().height() - 1)
        last = self._model.rowCount() - 1 if last < 0 else last
        columns = self._model.columns
        return range(max(first, 0) * columns, min((last + 1) * columns, len(self._cards.numbers)))

    def _on_current(self, index: QModelIndex) -> None:
        number = self.number_at(index)
        if number is not None:
            self.chosen.emit(number)


RowCard = TypeVar("RowCard", bound=QWidget)


class CardRow(QScrollArea, Generic[RowCard]):
    """Row of cards, hidden while it is empty."""

    def __init__(self) -> None:
        super().__init__()
        self.cards: list[RowCard] = []
        inner = QWidget()
        theme.set_role(inner, "panel")
        self._row = QHBoxLayout(inner)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(8)
        self._row.addStretch(1)
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidget(inner)

    def set_cards(self, cards: Sequence[RowCard]) -> None:
        """Replace the cards."""
        for card in self.cards:
            self._row.removeWidget(card)
            card.hide()
            card.deleteLater()
        self.cards = list(cards)
        for index, card in enumerate(self.cards):
            self._row.insertWidget(index, card, 0, Qt.AlignmentFlag.AlignTop)
        self.setVisible(bool(self.cards))
