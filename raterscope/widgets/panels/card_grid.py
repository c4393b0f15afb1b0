"""Cards beside and beneath each other, one or several of which are chosen; their pictures come as wanted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QImage, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QVBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.panels.card_view import LINE, CardDelegate, CardModel, Cards, CardView, size_of
from raterscope.widgets.parts import Header, plain_label
from raterscope.widgets.picture_shelf import PictureShelf
from raterscope.widgets.text_size import pixels, set_lengths

__all__ = ["CardGrid"]

Index = QModelIndex | QPersistentModelIndex
PICTURE = 88


class CardGrid(QWidget):
    """A click, or an arrow key, chooses a card. Pictures are asked for when they come in sight.

    Parameters
    ----------
    title : str
    picture : int
        Side of a picture.
    several : bool
        Whether several can be selected: with Ctrl, Shift, by drawing the mouse over them, all with Ctrl+A.

    Signals
    -------
    chosen : int
        The number gone to.
    selection_changed
    picture_wanted : int
        A number in sight whose picture is not here; answer with `set_picture`.
    """

    chosen = Signal(int)
    selection_changed = Signal()
    picture_wanted = Signal(int)

    def __init__(
        self, title: str, parent: QWidget | None = None, *, picture: int = PICTURE, several: bool = False
    ) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._header = Header(title)
        self._nothing = plain_label("", "second", wrap=True)
        self._model = CardModel(self)
        self._cards: Cards | None = None
        self._held_keys = False
        """Whether the keys were the cards' before there were none."""
        self._size = size_of(picture)
        self._shelf = PictureShelf(picture, self._in_sight, self)
        self._shelf.wanted.connect(self.picture_wanted)
        self._title = title
        self.view = CardView(self._model)
        self.view.setAccessibleName(title)
        self._delegate = CardDelegate(self._shelf.kept, picture, self.view)
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
        self._column.addStretch(0)  # takes the room where there are no cards
        self.setFocusProxy(self.view)
        self.view.verticalScrollBar().valueChanged.connect(self._shelf.rest)
        self._shelf.changed.connect(self.view.viewport().update)
        self.view.selectionModel().currentChanged.connect(self._on_current)
        theme.notifier().changed.connect(self._on_look)
        self.view.selectionModel().selectionChanged.connect(self.selection_changed)

    def show_cards(self, cards: Cards | None, nothing: str, name: str) -> None:
        """Show others from the first on, or say why there are none. Pictures of before are kept.

        Parameters
        ----------
        cards : Cards or None
        nothing : str
            What is said where there are none.
        name : str
            What they are, for those who hear it.
        """
        self._take(cards, nothing, name)
        self._arrange(anew=True)
        self.view.scrollToTop()

    def exchange(self, cards: Cards, nothing: str, name: str) -> None:
        """Show others: what was scrolled to stays, and what takes the place of the current is current."""
        place, scrolled = self._model.place(self.view.currentIndex()), self.view.verticalScrollBar().value()
        self._take(cards, nothing, name)
        self._arrange(anew=True)
        self.view.verticalScrollBar().setValue(scrolled)
        if len(cards.numbers):
            self.view.setCurrentIndex(self._model.at(min(max(place, 0), len(cards.numbers) - 1)))

    @property
    def numbers(self) -> NDArray[np.integer]:
        """What the cards stand for, in their order."""
        return np.empty(0, dtype=np.int64) if self._cards is None else self._cards.numbers

    @property
    def selected(self) -> list[int]:
        """The numbers that are selected, in their order."""
        places = sorted(self._model.place(index) for index in self.view.selectionModel().selectedIndexes())
        return [int(self.numbers[place]) for place in places]

    @property
    def current(self) -> int | None:
        """The number gone to last."""
        return self.number_at(self.view.currentIndex())

    @property
    def in_sight(self) -> list[int]:
        """The numbers of the cards that are wholly in sight with their picture."""
        room = self.view.viewport().rect()
        whole = (
            place
            for place in self._places_in_sight()
            if room.contains(self.view.visualRect(self._model.at(place)))
        )
        numbers = (int(self.numbers[place]) for place in whole)
        return [number for number in numbers if self._shelf.kept.get(number) is not None]

    def number_at(self, index: Index) -> int | None:
        """Give the number at an index; None where no card is."""
        place = self._model.place(index)
        return int(self.numbers[place]) if place >= 0 else None

    def set_picture(self, number: int, picture: QImage | None) -> None:
        """Give the picture that was asked for; None says that there is none."""
        self._shelf.keep(number, picture)

    def forget_pictures(self) -> None:
        """Drop all pictures: others bear the numbers now."""
        self._shelf.forget()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put as many beside each other as there is room for."""
        super().resizeEvent(event)
        self._arrange()

    def _on_look(self) -> None:
        self._arrange()

    def _take(self, cards: Cards | None, nothing: str, name: str) -> None:
        self._cards = cards
        self._shelf.ask_again()
        many = 0 if cards is None else len(cards.numbers)
        self._nothing.setText(nothing)
        self._nothing.setVisible(not many)
        self._held_keys = self._held_keys or self.view.hasFocus()
        self.view.setVisible(bool(many))
        if many and self._held_keys:
            self.view.setFocus()
            self._held_keys = False
        self.view.setAccessibleName(name or self._title)

    def _arrange(self, *, anew: bool = False) -> None:
        pictures = self._cards is not None and self._cards.pictures
        room = self.width() - 16 - self.view.verticalScrollBar().sizeHint().width()
        columns = max(1, room // pixels(self._size.width())) if pictures else 1
        if anew or columns != self._model.columns:
            # What was current is another place of the table now; what is meant stays the same.
            place = -1 if anew else self._model.place(self.view.currentIndex())
            high = self._size.height() if pictures else LINE
            set_lengths(self.view.verticalHeader(), defaultSectionSize=high)
            self._model.show_cards(self._cards, columns)
            if place >= 0:
                self.view.selectionModel().blockSignals(True)
                self.view.setCurrentIndex(self._model.at(place))
                self.view.selectionModel().blockSignals(False)
        self._shelf.rest()

    def _in_sight(self) -> list[int]:
        return [int(self.numbers[place]) for place in self._places_in_sight()]

    def _places_in_sight(self) -> range:
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
