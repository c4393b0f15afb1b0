"""How the communities shown came about: found at earlier moments once that is looked at."""

from __future__ import annotations

from functools import partial
from weakref import WeakKeyDictionary

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QPushButton

from raterscope.app.jobs import Job, Jobs
from raterscope.app.kinds.labels.answers import Groups
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.workspaces.labels.grouping import Course, follow_groups, obstacle, triangles_now
from raterscope.app.workspaces.labels.scene import LabelsSession
from raterscope.app.workspaces.labels.screen import LabelsScreen
from raterscope.text.numbers import percent
from raterscope.widgets import theme

__all__ = ["Flowing"]

NO_GROUPS = "Find communities to see how they change over time."
STOPPED = "The communities were not followed to the end."


class Flowing(QObject):
    """Joins the picture of communities over time with those chosen.

    Signals
    -------
    chosen(tuple of int)
        The annotators of a block or a band.
    """

    chosen = Signal(object)

    def __init__(self, jobs: Jobs, screen: LabelsScreen, session: LabelsSession, parent: QObject) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._screen = screen
        self._session = session
        self._groups: Groups | None = None
        self._kept: WeakKeyDictionary[Groups, Course] = WeakKeyDictionary()
        self._task = LatestTask()
        self._stopped = False
        self.follow, self.stop = QPushButton("Follow them"), QPushButton("Cancel")
        for button in (self.follow, self.stop):
            theme.set_role(button, "link")
            button.hide()
            screen.flow.header.row.addWidget(button)
        self.follow.ensurePolished()
        screen.flow.header.setMinimumHeight(self.follow.sizeHint().height())  # also without buttons
        self.follow.clicked.connect(self._on_follow)
        self.stop.clicked.connect(self.cancel)
        screen.middle_tabs.currentChanged.connect(self._draw)
        screen.flow.block_chosen.connect(self._on_block)
        screen.flow.band_chosen.connect(self._on_band)

    @property
    def course(self) -> Course | None:
        """What is drawn."""
        return None if self._groups is None else self._kept.get(self._groups)

    def show(self, groups: Groups | None) -> None:
        """Take another question, answer or grouping."""
        before, self._groups = self._groups, groups
        if groups is before and before is not None:
            return
        self._task.cancel()
        self._stopped = False
        if groups is None:
            self._screen.triangles.show_triangles(None)
            self._say(NO_GROUPS)
        else:
            self._show_groups(groups)
        self._settle()

    def _show_groups(self, groups: Groups) -> None:
        scene = self._session.scene
        self._screen.triangles.show_triangles(triangles_now(scene, groups))
        if groups in self._kept:
            self._show(self._kept[groups])
        else:
            self._say(obstacle(scene, groups))
            self._draw()

    def cancel(self) -> None:
        """Give up the search under way."""
        self._task.stop()

    @while_shown
    def _draw(self) -> None:
        scene, groups = self._session.scene, self._groups
        if (
            groups is None or groups in self._kept or self._stopped
            or self._task.busy or obstacle(scene, groups)
            or self._screen.middle_tabs.currentWidget() not in (self._screen.flow, self._screen.triangles)
        ):  # fmt: skip
            return
        work = partial(follow_groups, scene, self._session.analysis, groups)
        job = self._jobs.start("Following communities over time", work)
        self._task.follow(
            job, partial(self._on_followed, groups), progressed=self._on_progress,
            failed=self._screen.refused.emit, stopped=self._on_stopped,
        )  # fmt: skip
        self._say("Finding the communities of earlier moments.")
        self._settle()

    def _on_follow(self) -> None:
        self._stopped = False
        self._draw()

    def _on_progress(self, job: Job) -> None:
        self._say(f"Finding the communities of earlier moments: {percent(job.fraction)}.")

    def _on_followed(self, groups: Groups, course: Course) -> None:
        self._kept[groups] = course
        self._show(course)
        self._settle()

    def _show(self, course: Course) -> None:
        self._screen.flow.show_flow(course.view)
        self._screen.triangles.show_triangles(course.triangles)

    def _on_stopped(self) -> None:
        self._stopped = True
        self._say(STOPPED)
        self._settle()

    def _say(self, words: str) -> None:
        self._screen.flow.show_nothing(words or NO_GROUPS)

    def _settle(self) -> None:
        self.stop.setVisible(self._task.busy)
        self.follow.setVisible(self._stopped)

    def _on_block(self, moment: int, community: int) -> None:
        if self.course is not None:
            self.chosen.emit(self.course.block(moment, community))

    def _on_band(self, moment: int, community: int, goal: int) -> None:
        if self.course is not None:
            self.chosen.emit(self.course.band(moment, community, goal))
