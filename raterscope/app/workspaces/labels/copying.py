"""Who says the same as somebody else far more often than two people who look for themselves would."""

from __future__ import annotations

from functools import partial

import numpy as np
from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.labels.copying import Copying, copies
from raterscope.algorithms.progress import Watch
from raterscope.app.jobs import Jobs
from raterscope.app.session import LatestTask
from raterscope.app.workspaces.labels.scene import LabelsSession, Scene
from raterscope.app.workspaces.labels.screen import LabelsScreen
from raterscope.text.numbers import percent

__all__ = ["Copies", "in_words"]


class Copies(QObject):
    """Says beneath the communities that some copy, and chooses them: one group after the other.

    Signals
    -------
    chosen : tuple of int
        The annotators of a group.
    """

    chosen = Signal(object)

    def __init__(self, jobs: Jobs, screen: LabelsScreen, session: LabelsSession) -> None:
        super().__init__(screen)
        self._jobs = jobs
        self._cards = screen.cards
        self._task = LatestTask()
        self._groups: tuple[tuple[int, ...], ...] = ()
        self._next = 0
        self._cards.copies.clicked.connect(self._on_clicked)
        session.scene_changed.connect(self._on_scene)
        session.cleared.connect(self._clear)

    def _clear(self) -> None:
        self._task.cancel()
        self._groups, self._next = (), 0
        self._cards.tell_copies("")

    def _on_scene(self, scene: Scene) -> None:
        self._clear()
        if scene.fusion is not None:
            job = self._jobs.start("Comparing annotators", partial(_copies, scene), quiet=True)
            self._task.follow(job, self._on_found)

    def _on_found(self, found: Copying) -> None:
        self._groups = found.groups()
        self._cards.tell_copies(in_words(found))

    def _on_clicked(self) -> None:
        if self._groups:
            self.chosen.emit(self._groups[self._next % len(self._groups)])
            self._next += 1


def in_words(found: Copying) -> str:
    """Say how many copy and how that is known; nothing where nobody does."""
    groups = found.groups()
    if not groups:
        return ""
    many = sum(map(len, groups))
    in_groups = f" in {len(groups)} groups" if len(groups) > 1 else ""
    whole = float(found.common.sum())
    same, expected = float(found.same.sum()) / whole, float(np.sum(found.expected)) / whole
    instead = ", or the others share a mistake" if found.outvoting else ""
    return (
        f"{many:,} annotators{in_groups} may copy{instead}: {percent(same)} the same answers, "
        f"{percent(expected)} expected. Choose them"
    )


def _copies(scene: Scene, watch: Watch) -> Copying:
    assert scene.fusion is not None
    return copies(scene.labels, scene.fusion, watch)
