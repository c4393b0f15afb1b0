"""The queue of tasks: what to decide next, the most disputed first, for any number of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QModelIndex, Signal
from PySide6.QtWidgets import QWidget

from raterscope.widgets.figures import count
from raterscope.widgets.panels.lists import LongList
from raterscope.widgets.panels.queue_panel import QueueFrame, QueueItem, QueueKind
from raterscope.widgets.parts import ChoiceBox

__all__ = ["FILTERS", "TaskList", "TasksView"]

FILTERS = {
    "undecided": "undecided",
    "all": "all tasks",
    "decided": "decided",
    "disagree": "disagree with truth",
    "community": "of the chosen community",
    "few": "few votes",
}
"""What the queue can be narrowed to: key and words."""

WHOLE_ROW = 3
"""Posteriors of so many classes are written whole; of more, the two largest with their classes."""


@dataclass(frozen=True, eq=False)
class TasksView:
    """Tasks as arrays; nothing is made of one before its line is looked at.

    Attributes
    ----------
    names : sequence of N str
    order : (M,) int
        Which tasks are shown, and in which order.
    classes : tuple of J str
    votes : (N,) int
    decided, known : (N,) int
        Class that the expert decided, and class known otherwise; -1 for none.
    posterior : (N, J) float, optional
        None before there is a fusion.
    entropy : (N,) float, optional
        Doubt, 0 to 1.
    """

    names: Sequence[str]
    order: NDArray[np.integer]
    classes: tuple[str, ...]
    votes: NDArray[np.integer]
    decided: NDArray[np.integer]
    known: NDArray[np.integer]
    posterior: NDArray[np.floating] | None = None
    entropy: NDArray[np.floating] | None = None

    def item(self, task: int) -> QueueItem:
        """Give the line of a task."""
        settled = max(int(self.decided[task]), int(self.known[task]))
        if self.decided[task] >= 0:
            detail = f"decided: {self.classes[self.decided[task]]}"
        elif settled >= 0:
            detail = f"known: {self.classes[settled]}"
        elif self.posterior is not None:
            detail = posterior_words(self.classes, self.posterior[task])
        else:
            detail = count(int(self.votes[task]), "vote")
        doubt = None if self.entropy is None else float(self.entropy[task])
        return QueueItem(task, self.names[task], detail, doubt, settled >= 0)


def posterior_words(classes: Sequence[str], posterior: NDArray[np.floating]) -> str:
    """Say a posterior in a few words: "posterior 0.51 / 0.49", "frog .62, toad .31"."""
    if len(classes) <= WHOLE_ROW:
        return "posterior " + " / ".join(f"{share:.2f}" for share in posterior)
    two = np.argsort(-posterior, kind="stable")[:2]
    return ", ".join(f"{classes[place]} {_short(float(posterior[place]))}" for place in two)


def _short(share: float) -> str:
    """Write a share without the nought before the point."""
    return f"{share:.2f}".removeprefix("0")


class _Lines(Sequence[QueueItem]):
    """The lines of a view, made one by one."""

    def __init__(self, view: TasksView) -> None:
        self._view = view

    def __len__(self) -> int:
        return len(self._view.order)

    @overload
    def __getitem__(self, row: int) -> QueueItem: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[QueueItem]: ...
    def __getitem__(self, row: int | slice) -> QueueItem | Sequence[QueueItem]:
        if isinstance(row, slice):
            return [self._view.item(int(task)) for task in self._view.order[row]]
        return self._view.item(int(self._view.order[row]))


class TaskList(QueueFrame):
    """Tasks in the order given, with a filter that others carry out: it may take longer than a frame.

    Signals
    -------
    chosen : int
        Task that the user went to.
    filter_changed : str, str
        Words that the name is to contain, and a key of `FILTERS`.
    """

    chosen = Signal(int)
    filter_changed = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        self.choice = ChoiceBox()
        self.choice.setAccessibleName("Which tasks")
        for key, words in FILTERS.items():
            self.choice.addItem(words, key)
        self.view: LongList[QueueItem] = LongList(QueueKind(), "Tasks")
        super().__init__("Tasks", self.choice, self.view, parent)
        self._tasks: TasksView | None = None
        self._current = -1
        self._quiet = False
        self.filter.textChanged.connect(self._on_filter)
        self.choice.currentIndexChanged.connect(self._on_filter)
        self.view.selectionModel().currentChanged.connect(self._on_current)
        self.set_tasks(None)

    def set_tasks(self, tasks: TasksView | None) -> None:
        """Show other tasks, or that there are none; what is current stays, and the list's place."""
        self._tasks = tasks
        self._quiet = True
        self.view.set_lines(() if tasks is None else _Lines(tasks))
        self._quiet = False
        shown = len(self.view.lines)
        whole = 0 if tasks is None else len(tasks.names)
        self.header.set_aside(count(whole) if shown == whole else f"{count(shown)} of {count(whole)}")
        self.say_empty("" if shown else "No match." if whole else "Nothing here yet.")
        row = self._row(self._current)
        if row >= 0:
            place = self.view.verticalScrollBar().value()
            self._mark(row)
            self.view.verticalScrollBar().setValue(place)

    def select(self, task: int | None) -> None:
        """Make a task current, without a signal; None makes none."""
        self._current = -1 if task is None else task
        self._mark(self._row(self._current))

    @property
    def current(self) -> int | None:
        """The task that is current."""
        return self._current if self._current >= 0 else None

    def go(self, by: int) -> None:
        """Go some lines down, or up where `by` is below 0, past the done ones, and say so."""
        lines = self.view.lines
        row = self._row(self._current)
        # Where what was current has left the list, the first one shown is the next.
        row = row + by if row >= 0 else 0
        while 0 <= row < len(lines):
            if not lines[row].done:
                self.view.go_to(row)
                return
            row += 1 if by > 0 else -1

    def _row(self, task: int) -> int:
        if self._tasks is None or task < 0:
            return -1
        found = np.flatnonzero(self._tasks.order == task)
        return int(found[0]) if len(found) else -1

    def _mark(self, row: int) -> None:
        self._quiet = True
        self.view.go_to(row)
        self._quiet = False

    def _on_current(self, index: QModelIndex) -> None:
        if self._quiet or not index.isValid() or self._tasks is None:
            return
        task = int(self._tasks.order[index.row()])
        if task != self._current:
            self._current = task
            self.chosen.emit(task)

    def _on_filter(self) -> None:
        self.filter_changed.emit(self.filter.text().strip(), str(self.choice.currentData()))
