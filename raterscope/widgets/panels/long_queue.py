"""A queue of any length: arrays of which a line is made when it is looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, overload

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QModelIndex, Signal
from PySide6.QtWidgets import QWidget

from raterscope.text.numbers import count
from raterscope.widgets.panels.lists import LongList
from raterscope.widgets.panels.queue_panel import QueueFrame, QueueItem, QueueKind
from raterscope.widgets.parts import ChoiceBox

__all__ = ["LongQueue", "QueueView"]


class QueueView(Protocol):
    """What a queue shows."""

    @property
    def names(self) -> Sequence[str]:
        """Of all there are."""

    @property
    def whole(self) -> int:
        """How many there are to be listed, whatever is filtered."""

    @property
    def order(self) -> NDArray[np.integer]:
        """Which of them are shown, and in which order."""

    def item(self, number: int) -> QueueItem:
        """Make the line of one."""


class LongQueue(QueueFrame):
    """Lines in the order given, with a filter that others carry out: it may take longer than a frame.

    Parameters
    ----------
    title : str
    filters : mapping of str to str
        What the queue can be narrowed to: key and words.
    empty : mapping of str to str, optional
        What is said where nothing is of such a kind, by the keys of the filters.

    Signals
    -------
    chosen : int
        Number that the user went to.
    filter_changed : str, str
        Words that the name is to contain, and a key of the filters.
    """

    chosen = Signal(int)
    filter_changed = Signal(str, str)

    def __init__(
        self,
        title: str,
        filters: Mapping[str, str],
        parent: QWidget | None = None,
        *,
        empty: Mapping[str, str] | None = None,
    ) -> None:
        self._empty = empty or {}
        self.choice = ChoiceBox()
        self.choice.setAccessibleName(f"List of {title.lower()}")
        for key, words in filters.items():
            self.choice.addItem(words, key)
        self.view: LongList[QueueItem] = LongList(QueueKind(), title)
        super().__init__(title, self.choice, self.view, parent)
        self._shown: QueueView | None = None
        self._current = -1
        self._quiet = False
        self.filter.textChanged.connect(self._on_filter)
        self.choice.currentIndexChanged.connect(self._on_filter)
        self.view.selectionModel().currentChanged.connect(self._on_current)
        self.set_view(None)

    def set_view(self, view: QueueView | None) -> None:
        """Show others, or that there are none; what is current stays, and the list's place."""
        self._shown = view
        self._quiet = True
        self.view.set_lines(() if view is None else _Lines(view))
        self._quiet = False
        shown = len(self.view.lines)
        whole = 0 if view is None else view.whole
        self.header.set_aside(count(whole) if shown == whole else f"{count(shown)} of {count(whole)}")
        self.say_empty("" if shown else self._why_empty() if whole else "No items yet.")
        row = self._row(self._current)
        if row >= 0:
            place = self.view.verticalScrollBar().value()
            self._mark(row)
            self.view.verticalScrollBar().setValue(place)

    def select(self, number: int | None) -> None:
        """Make one current, without a signal; None makes none."""
        self._current = -1 if number is None else number
        self._mark(self._row(self._current))

    @property
    def current(self) -> int | None:
        """Which one is current."""
        return self._current if self._current >= 0 else None

    @property
    def first(self) -> int | None:
        """Which one stands first in the list."""
        shown = self._shown
        return None if shown is None or not len(shown.order) else int(shown.order[0])

    def go(self, by: int) -> None:
        """Go some lines down, or up where `by` is below 0, past the done ones, and say so."""
        row = self._row(self._current)
        # Where what was current has left the list, the first one shown is the next.
        self._go_from(row + by if row >= 0 else 0, by)

    def begin(self, by: int) -> None:
        """Go to the first line that is not done, or to the last where `by` is below 0, and say so."""
        self._go_from(0 if by > 0 else len(self.view.lines) - 1, by)

    def _go_from(self, row: int, by: int) -> None:
        lines = self.view.lines
        while 0 <= row < len(lines):
            if not lines[row].done:
                self.view.go_to(row)
                return
            row += 1 if by > 0 else -1

    @property
    def order(self) -> NDArray[np.integer]:
        """Which ones are listed, and in which order."""
        return np.empty(0, dtype=np.int64) if self._shown is None else self._shown.order

    @property
    def row(self) -> int | None:
        """The line of the current one; None where it is not listed."""
        row = self._row(self._current)
        return None if row < 0 else row

    def why_empty(self, key: str) -> str:
        """Say why nothing is of a kind, by its key among the filters."""
        return self._empty.get(key, "")

    def _why_empty(self) -> str:
        words = self.filter.text().strip()
        if not words:
            return self.why_empty(str(self.choice.currentData()))
        kind = self.choice.currentText()
        return f"No name under “{kind}” contains “{words}”. Shorten it, or select another list above."

    def _row(self, number: int) -> int:
        if self._shown is None or number < 0:
            return -1
        found = np.flatnonzero(self._shown.order == number)
        return int(found[0]) if len(found) else -1

    def _mark(self, row: int) -> None:
        self._quiet = True
        self.view.go_to(row)
        self._quiet = False

    def _on_current(self, index: QModelIndex) -> None:
        if self._quiet or not index.isValid() or self._shown is None:
            return
        number = int(self._shown.order[index.row()])
        if number != self._current:
            self._current = number
            self.chosen.emit(number)

    def _on_filter(self) -> None:
        self.filter_changed.emit(self.filter.text().strip(), str(self.choice.currentData()))


class _Lines(Sequence[QueueItem]):
    """The lines of a view, made one by one."""

    def __init__(self, view: QueueView) -> None:
        self._view = view

    def __len__(self) -> int:
        return len(self._view.order)

    @overload
    def __getitem__(self, row: int) -> QueueItem: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[QueueItem]: ...
    def __getitem__(self, row: int | slice) -> QueueItem | Sequence[QueueItem]:
        if isinstance(row, slice):
            return [self._view.item(int(number)) for number in self._view.order[row]]
        return self._view.item(int(self._view.order[row]))
