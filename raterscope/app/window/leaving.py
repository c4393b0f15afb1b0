"""Before a study is left or the window closed: a question where that stops or loses what took long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMessageBox, QWidget

from raterscope.app.document import Document
from raterscope.app.jobs import Job, Jobs
from raterscope.app.window.asking import ask
from raterscope.app.window.keeping import Keeping
from raterscope.text.numbers import time_left

__all__ = ["Leaving"]

HARDLY_BEGUN = 2.0
"""Seconds: what has not run for longer is stopped without a question."""


class Leaving(QObject):
    """Lets the study be left and the window be closed, at once or when a question was answered so.

    Parameters
    ----------
    document : Document
    jobs : Jobs
    keeping : Keeping
    window : QWidget

    Signals
    -------
    message(str)
        What is waited for.
    """

    message = Signal(str)

    def __init__(self, document: Document, jobs: Jobs, keeping: Keeping, window: QWidget) -> None:
        super().__init__(window)
        self._document, self._jobs, self._keeping, self._window = document, jobs, keeping, window
        self._box: QMessageBox | None = None
        self._waits = False
        keeping.changed.connect(self._on_changed)

    def leave_study(self, then: Callable[[], object]) -> None:
        """Do something that leaves the study; what is made of it then stops, unless it leaves a file."""
        stopped = [job for job in self._jobs.at_stake(HARDLY_BEGUN) if not job.binding]
        if self._document.contents is None or not stopped:
            then()
        elif self._box is None:
            self._ask_to_stop(stopped, "Leaving the study", "Leave", then)

    def may_close(self) -> bool:
        """Tell whether the window may be closed at once; if not, it is once that is agreed to."""
        if self._box is not None:
            return False
        stopped = self._jobs.at_stake(HARDLY_BEGUN)
        if stopped:
            self._ask_to_stop(stopped, "Closing the window", "Close", self._window.close)
        elif self._keeping.writing:
            self._waits = True
            self.message.emit("The window closes when everything is saved.")
        elif self._keeping.held:
            self._box = ask(
                self._window,
                "Not saved yet",
                f"Closing the window discards {self._keeping.held}.",
                "Cancel and choose Save elsewhere to keep it.",
                "Close and discard",
                "Cancel",
                self._lose,
                self._on_answered,
            )
        else:
            return True
        return False

    def _ask_to_stop(
        self, stopped: Sequence[Job], leaving: str, act: str, then: Callable[[], object]
    ) -> None:
        running = " and ".join(_in_words(job) for job in stopped)
        it = "it" if len(stopped) == 1 else "them"
        self._box = ask(
            self._window,
            leaving,
            f"{running}. {leaving} stops {it}.",
            "Stopped jobs must be started again.",
            f"Stop {it} and {act.casefold()}",
            "Cancel",
            partial(self._stop, stopped, then),
            self._on_answered,
        )
        for job in stopped:
            job.ended.connect(partial(self._on_ended, self._box, stopped))

    def _stop(self, stopped: Sequence[Job], then: Callable[[], object]) -> None:
        self._box = None
        for job in stopped:
            job.cancel()
        then()

    def _lose(self) -> None:
        self._box = None
        self._keeping.discard()
        self._window.close()

    def _on_answered(self) -> None:
        self._box = None

    def _on_ended(self, box: QMessageBox, stopped: Sequence[Job]) -> None:
        """Go on as was wanted when there is nothing to be stopped any more."""
        if box is self._box and all(job.over for job in stopped):
            box.accept()

    def _on_changed(self) -> None:
        if self._waits and not self._keeping.writing:
            self._waits = False
            self._window.close()


def _in_words(job: Job) -> str:
    left = time_left(job.seconds_left)
    return f"{job.title} is {job.fraction:.0%} done{f', {left}' if left else ''}"
