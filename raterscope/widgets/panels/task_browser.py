"""Tasks of a labelling question, as a filtered list and as a grid of images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from PySide6.QtWidgets import QWidget

from raterscope.text.numbers import count
from raterscope.widgets.names import distinguishing_labels
from raterscope.widgets.panels.cards import Card, CardGrid
from raterscope.widgets.panels.queue_panel import LongQueue, QueueItem

__all__ = [
    "FILTERS",
    "GridView",
    "TaskGrid",
    "TaskList",
    "TasksView",
]


FILTERS = {
    "undecided": "undecided",
    "all": "all tasks",
    "decided": "decided",
    "disagree": "disagree with truth",
    "community": "of selected community",
    "few": "few votes",
}
"""Filters of the queue: key and text."""

EMPTY = {
    "undecided": "Every task is decided or has ground truth.",
    "decided": "No decisions yet.",
    "disagree": "No answer disagrees with the ground truth.",
    "community": "Select a community to list the tasks of its members.",
    "few": "Every task has more than a few votes.",
}
"""Message for an empty list, by filter."""

LEAST_SHARE = 0.005
"""Probability below which the second class is not shown."""

WHOLE_ROW = 3
"""Largest number of classes whose posteriors are all shown; else the two largest are."""


@dataclass(frozen=True, eq=False)
class TasksView:
    """Tasks as arrays; list lines are created on demand.

    Attributes
    ----------
    names : sequence of N str
    order : (M,) int
        Tasks shown, in display order.
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

    @property
    def whole(self) -> int:
        """Number of tasks."""
        return len(self.names)

    @cached_property
    def _brief(self) -> tuple[str, ...]:
        """Class names shortened to what distinguishes them, for narrow lines."""
        brief = distinguishing_labels(self.classes)
        return tuple(brief[name] for name in self.classes)

    def item(self, task: int) -> QueueItem:
        """Return the list line of a task."""
        settled = max(int(self.decided[task]), int(self.known[task]))
        if self.decided[task] >= 0:
            detail = f"decided: {self.classes[self.decided[task]]}"
        elif settled >= 0:
            detail = f"truth: {self.classes[settled]}"
        elif self.posterior is not None:
            detail = posterior_words(self._brief, self.posterior[task])
        else:
            detail = count(int(self.votes[task]), "vote")
        doubt = None if self.entropy is None else float(self.entropy[task])
        return QueueItem(task, self.names[task], detail, doubt, settled >= 0)


def posterior_words(classes: Sequence[str], posterior: NDArray[np.floating]) -> str:
    """Format a posterior: "posterior 0.51 / 0.49", "frog .62, toad .31", "grade 2: .62"."""
    if len(classes) <= WHOLE_ROW:
        return "posterior " + " / ".join(f"{share:.2f}" for share in posterior)
    two = np.argsort(-posterior, kind="stable")[:2]
    two = two[[True, posterior[two[1]] >= LEAST_SHARE]]
    return ", ".join(f"{_apart(classes[index])} {_short(float(posterior[index]))}" for index in two)


def _apart(name: str) -> str:
    """Separate a name that ends in a digit from the number that follows."""
    return f"{name}:" if name[-1:].isdigit() else name


def _short(share: float) -> str:
    """Format a share without the leading zero."""
    return f"{share:.2f}".removeprefix("0")


class TaskList(LongQueue):
    """Tasks in the given order, to be decided one after the other."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Tasks", FILTERS, parent, empty=EMPTY)

    def set_tasks(self, tasks: TasksView | None) -> None:
        """Show other tasks, or that there are none; the current task and the scroll position stay."""
        self.set_view(tasks)


@dataclass(frozen=True, eq=False)
class GridView:
    """Tasks as arrays for the grid; cards are created on demand.

    Attributes
    ----------
    title : str
        What they have in common: "said 3 where true is not".
    tasks : (M,) int
        Which tasks, in the order to show them.
    names : sequence of N str
        Names of all tasks.
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

    @property
    def numbers(self) -> NDArray[np.integer]:
        """Task numbers, which identify their pictures."""
        return self.tasks

    def card(self, index: int) -> Card:
        """Return the card of a task: the given output and the posterior."""
        likeliest, share = self._model(index)
        return Card(self.names[self.tasks[index]], likeliest, share, self._said(index))

    def words(self, index: int) -> str:
        """Return the text of a task: "task 12, said 3, not 0.93"."""
        model = " ".join(self._model(index)).strip()
        parts = (self.names[self.tasks[index]], self._said(index), model)
        return ", ".join(part for part in parts if part)

    def _said(self, index: int) -> str:
        output = -1 if self.given is None else int(self.given[index])
        return f"answered {self.outputs[output]}" if output >= 0 else ""

    def _model(self, index: int) -> tuple[str, str]:
        if self.posterior is None:
            return "", ""
        row = self.posterior[self.tasks[index]]
        return self.classes[int(row.argmax())], f"{row.max():.2f}"


class TaskGrid(CardGrid):
    """Grid of tasks.

    A click or an arrow key selects a task; pictures are requested when they come into view.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Tasks", parent)
        self.show_tasks(None)

    def show_tasks(self, view: GridView | None) -> None:
        """Show tasks, or how they come here. Known pictures are kept."""
        self._header.set_title("Tasks", "" if view is None else view.title)
        self._header.set_aside("" if view is None else count(len(view.tasks), "task"))
        nothing = (
            "Select a cell of a confusion matrix to see its tasks."
            if view is None
            else "No tasks in this cell."
        )
        self.show_cards(view, nothing, "Tasks" if view is None else view.title)
