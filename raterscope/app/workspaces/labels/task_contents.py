"""The selected task, large: its picture at full size or its texts, read in the background."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Watch
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.study import Study
from raterscope.app.study.records import ImageEntry
from raterscope.app.study.task_contents import read_contents
from raterscope.app.workspaces.labels.screen import LabelsCore, LabelsPart
from raterscope.app.workspaces.labels.tasks import TaskReview
from raterscope.app.workspaces.task_links import ask_to_open, load_picture
from raterscope.widgets.panels.task_content import TaskContent


class TaskContents(LabelsPart):
    """Shows the selected task in the centre while that view is open."""

    def __init__(self, core: LabelsCore, tasks: TaskReview) -> None:
        super().__init__(core)
        self._view = core.screen.content
        self._tabs = core.screen.middle_tabs
        self._tasks = tasks
        self._before = 0
        self._content: TaskContent | None = None
        self._reading, self._loading = LatestTask(), LatestTask()
        tasks.selected.connect(self._show)
        core.session.cleared.connect(self._clear)
        self._tabs.currentChanged.connect(self._show)
        self._view.back_wanted.connect(self.toggle)
        self._view.link_chosen.connect(partial(ask_to_open, self._view))

    def toggle(self) -> None:
        """Show the task in the centre, or the view that was there before."""
        if self._tabs.currentWidget() is self._view:
            self._tabs.setCurrentIndex(self._before)
        else:
            self._before = self._tabs.currentIndex()
            self._tabs.setCurrentWidget(self._view)

    def _clear(self) -> None:
        self._reading.cancel()
        self._loading.cancel()
        self._content = None
        self._view.show_content(None)

    @while_shown
    def _show(self, _selected: object = None) -> None:
        task = self._tasks.current
        if task is None:
            self._clear()
        elif self._tabs.currentWidget() is self._view:
            scene = self._session.scene
            name = scene.labels.tasks[task]
            if self._content is None or self._content.name != name:
                work = partial(_read, name, scene.question.id, scene.pictures.get(task))
                job = self._document.ask("Reading the task", work)
                self._reading.follow(job, self._on_read)

    def _on_read(self, content_and_path: tuple[TaskContent, Path | None]) -> None:
        self._content, path = content_and_path
        self._loading.cancel()
        self._view.show_content(self._content)
        if path is not None:
            job = self._jobs.start("Reading a picture", partial(load_picture, path), quiet=True)
            self._loading.follow(job, self._on_loaded)

    def _on_loaded(self, pixels: NDArray[np.uint8] | None) -> None:
        content = self._content
        if content is not None:
            self._content = TaskContent(content.name, pixels is not None, pixels, content.texts)
            self._view.show_content(self._content)


def _read(
    name: str, question: int, entry: ImageEntry | None, study: Study, watch: Watch
) -> tuple[TaskContent, Path | None]:
    watch(0.0, "reading the task")
    path = None if entry is None else study.locate(entry)
    return TaskContent(name, path is not None, None, read_contents(study, question, name)), path
