"""The tasks behind a cell of a confusion matrix, or of a community: pictures, or names without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtWidgets import QWidget

from raterscope.text.numbers import count
from raterscope.widgets.panels.card_grid import CardGrid
from raterscope.widgets.panels.card_view import Card

__all__ = ["GridView", "TaskGrid"]


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

    @property
    def numbers(self) -> NDArray[np.integer]:
        """The tasks, by which their pictures are known."""
        return self.tasks

    def card(self, place: int) -> Card:
        """Give the task at a place with what was given to it and what the model makes of it."""
        likeliest, share = self._model(place)
        return Card(self.names[self.tasks[place]], likeliest, share, self._said(place))

    def words(self, place: int) -> str:
        """Say the task at a place: "task 12, said 3, not 0.93"."""
        model = " ".join(self._model(place)).strip()
        parts = (self.names[self.tasks[place]], self._said(place), model)
        return ", ".join(part for part in parts if part)

    def _said(self, place: int) -> str:
        given = -1 if self.given is None else int(self.given[place])
        return f"answered {self.outputs[given]}" if given >= 0 else ""

    def _model(self, place: int) -> tuple[str, str]:
        if self.posterior is None:
            return "", ""
        row = self.posterior[self.tasks[place]]
        return self.classes[int(row.argmax())], f"{row.max():.2f}"


class TaskGrid(CardGrid):
    """A click, or an arrow key, chooses a task. Pictures are asked for when they come in sight."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Tasks", parent)
        self.show_tasks(None)

    def show_tasks(self, view: GridView | None) -> None:
        """Show tasks, or say how they come here. Pictures of before are kept."""
        self._header.set_title("Tasks", "" if view is None else view.title)
        self._header.set_aside("" if view is None else count(len(view.tasks), "task"))
        nothing = (
            "Select a cell of a confusion matrix to see its tasks."
            if view is None
            else "No tasks in this cell."
        )
        self.show_cards(view, nothing, "Tasks" if view is None else view.title)
