"""Navigation between questions: the question on screen, read from the study and analysed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.jobs import Jobs
from raterscope.app.session import LatestTask
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.records import Item
from raterscope.app.workspaces.runs import Runs
from raterscope.widgets.parts import ChoiceBox

__all__ = ["QuestionNavigation"]


class Scene(Protocol):
    """What is read of one question."""

    @property
    def question(self) -> Item:
        """The question."""

    @property
    def run(self) -> RunEntry | None:
        """The run that is shown; None before there is one."""


class QuestionNavigation(QObject):
    """Joins the box that questions are chosen in, runs and jobs: reads what is wanted, and looks into it.

    Parameters
    ----------
    document : Document
    jobs : Jobs
    box : ChoiceBox
        Seen where there is a choice.
    runs : Runs
    kind : str
        Whose questions are listed.
    noun : str
        What they consist of, in the plural, as the jobs call it.
    read : callable
        ``read(question, run, study, watch)`` gives the scene, in the study's thread.
    analyse : callable
        ``analyse(scene, watch)`` gives what follows from it, in a thread of its own.

    Signals
    -------
    arrived(scene, analysis)
        What is to be shown; None twice where there is no question.
    refused(str)
    """

    arrived = Signal(object, object)
    refused = Signal(str)

    def __init__(
        self,
        document: Document,
        jobs: Jobs,
        box: ChoiceBox,
        runs: Runs,
        kind: str,
        noun: str,
        read: Callable[[int, int | None, Study, Watch], Scene],
        analyse: Callable[[Any, Watch], object],
    ) -> None:
        super().__init__(runs)
        self._document = document
        self._jobs = jobs
        self._box = box
        self._runs = runs
        self._kind = kind
        self._noun = noun
        self._read = read
        self._analyse = analyse
        self.current: int | None = None
        """The study's number of the question on screen."""
        self._task = LatestTask()
        box.activated.connect(self._on_chosen)
        runs.chosen.connect(self.again)

    def reset(self) -> None:
        """Begin anew: another study."""
        self.current = None
        self.again()

    def refresh(self) -> None:
        """List the questions there are now, and show the one on screen anew; if it has gone, the first."""
        contents = self._document.contents
        questions = contents.of(self._kind) if contents else ()
        self._box.clear()
        for one in questions:
            self._box.addItem(one.name, one.id)
        self._box.setVisible(len(questions) > 1)
        numbers = [one.id for one in questions]
        if self.current not in numbers:
            self.current = numbers[0] if numbers else None
        if self.current is not None:
            self._box.setCurrentIndex(numbers.index(self.current))
        self.again()

    def step(self, by: int) -> None:
        """Go to the next or previous question."""
        there = self._box.currentIndex() + by
        if 0 <= there < self._box.count():
            self._box.setCurrentIndex(there)
            self._on_chosen(there)

    def show(self, question: int) -> None:
        """Go to a question, by its number in the study."""
        there = self._box.findData(question)
        if there >= 0:
            self._box.setCurrentIndex(there)
            self._on_chosen(there)

    def again(self) -> None:
        """Read the question on screen with the answer that is to be shown."""
        self._task.cancel()
        if self.current is None:
            self.arrived.emit(None, None)
            return
        run = self._runs.run_of(self.current)
        job = self._document.ask(f"Reading {self._noun}", partial(self._read, self.current, run))
        self._task.follow(job, self._on_scene)

    def _on_chosen(self, place: int) -> None:
        self.current = self._box.itemData(place)
        self.again()

    def _on_scene(self, scene: Scene) -> None:
        self._runs.list_runs(scene.question, scene.run)
        job = self._jobs.start(f"Looking at the {self._noun}", partial(self._analyse, scene), quiet=True)
        self._task.follow(job, partial(self.arrived.emit, scene), failed=self.refused.emit)
