"""How reliable every annotator was on one image after the other, worked out once somebody looks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from PySide6.QtCore import QObject

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.jobs import Jobs
from raterscope.app.session import LatestTask
from raterscope.app.workspaces.clicks.annotators import Annotators
from raterscope.app.workspaces.clicks.screen import ClicksScreen
from raterscope.app.workspaces.clicks.spots import Known
from raterscope.app.workspaces.queueing import Queueing
from raterscope.widgets.tables.course import Course

__all__ = ["OverImages"]


class OverImages(QObject):
    """Gives the table of annotators its small lines, in the study's order of images."""

    def __init__(
        self, document: Document, jobs: Jobs, screen: ClicksScreen, queueing: Queueing, annotators: Annotators
    ) -> None:
        super().__init__(screen)
        self._document, self._jobs, self._screen = document, jobs, screen
        self._queueing, self._annotators = queueing, annotators
        self._task = LatestTask()
        self._stale = True
        queueing.all_read.connect(self._on_read)
        document.replaced.connect(self._on_replaced)
        screen.middle_tabs.currentChanged.connect(self._look)

    def _on_replaced(self) -> None:
        self._task.cancel()
        self._annotators.forget()

    def _on_read(self) -> None:
        self._stale = True
        self._look()

    def _look(self) -> None:
        contents = self._document.contents
        seen = self._screen.middle_tabs.currentWidget() is self._screen.table
        if not self._stale or contents is None or not seen:
            return
        self._stale = False
        self._task.cancel()
        results = self._queueing.results
        fused = [
            (one.name, results[one.id])
            for one in contents.images
            if one.id in results and results[one.id].fusion is not None
        ]
        if len(fused) < 2:
            self._annotators.set_courses({})
            return
        job = self._jobs.start("Following annotators", partial(_courses, fused), quiet=True)
        self._task.follow(job, self._annotators.set_courses)


def _courses(fused: Sequence[tuple[str, Known]], watch: Watch) -> dict[str, Course]:
    """Follow everybody who looked at two images or more."""
    rows: dict[str, list[tuple[str, int, float, float]]] = {}
    for done, (image, known) in enumerate(fused):
        watch(done / len(fused), "following annotators")
        assert known.fusion is not None
        rates = known.fusion.rates
        figures = rates.clicks.tolist(), rates.reliability[:, 0].tolist(), rates.sensitivity[:, 0].tolist()
        for name, *one in zip(known.annotators, *figures, strict=True):
            rows.setdefault(name, []).append((image, *one))
    return {name: _course(mine) for name, mine in rows.items() if len(mine) > 1}


def _course(rows: Sequence[tuple[str, int, float, float]]) -> Course:
    images, clicks, reliability, sensitivity = zip(*rows, strict=True)
    return Course(images, np.array(clicks), np.array(reliability), np.array(sensitivity))
