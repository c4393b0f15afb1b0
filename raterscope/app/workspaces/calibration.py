"""Calibration of the run shown: a plot, a sentence, and a warning where data contradict the run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QObject, QTimer

from raterscope.algorithms.progress import Watch
from raterscope.app.assessment import FEW, Trust, bin_intervals
from raterscope.app.document import Document
from raterscope.app.kinds.registry import KINDS
from raterscope.app.session import LatestTask
from raterscope.app.study import RunEntry, Study
from raterscope.figures.evaluation import CalibrationLine
from raterscope.widgets.panels.evaluation_panels import TrustPanel
from raterscope.widgets.panels.queue_panel import QueueFrame

_WAIT = 400
"""Milliseconds after a decision before it is counted: the next one may follow."""


class Calibration(QObject):
    """Calibration of a run, which fills the trust panel in the background.

    `queue`: its header shows contradictions to the run. `kind`: kind of annotation. `costly`: whether the
    comparison takes long. It then runs only if the panel is visible or something may contradict the run; see
    `show`.
    """

    def __init__(
        self, document: Document, panel: TrustPanel, queue: QueueFrame, kind: str, *, costly: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(panel)
        self._document, self._panel, self._queue = document, panel, queue
        self._kind, self._costly = kind, costly
        self._run: RunEntry | None = None
        self._items: tuple[int, ...] = ()
        self._title = ""
        self._beside: tuple[CalibrationLine, ...] = ()
        self._trust: Trust | None = None
        self._doubtful = self._due = self._stale = False
        self._decided = 0
        self._task = LatestTask()
        self._wait = QTimer(self, singleShot=True, interval=_WAIT)
        self._wait.timeout.connect(self.compare)
        panel.seen.connect(self.compare)
        document.changed.connect(self._on_changed)
        document.radius_changed.connect(self._on_changed)

    def show(
        self, run: RunEntry | None, items: Sequence[int], title: str = "", *, doubtful: bool = False
    ) -> None:
        """Show the calibration of another run.

        `items`: the images or the question compared. `title`: title of the run's line in the plot.
        `doubtful`: whether something is already known to contradict the run.
        """
        previous = _key(self._run), self._items
        self._run, self._items, self._title = run, tuple(items) if run is not None else (), title
        self._doubtful = doubtful
        if (_key(run), self._items) == previous:
            return
        self._task.cancel()
        self._due = self._stale = run is not None
        self._show_trust(None)
        self.compare()

    def show_beside(self, lines: Sequence[CalibrationLine]) -> None:
        """Draw the calibration of other methods beside that of the run."""
        self._beside = tuple(lines)
        self._draw()

    def set_decided(self, decided: int) -> None:
        """Set the number of items that the expert has decided."""
        if decided == self._decided:
            return
        self._decided = decided
        if self._run is not None and (self._trust is None or not self._trust.by_truth):
            self._due = True
            self._wait.start()

    def compare(self) -> None:
        """Compare, if the panel is visible or something may contradict the run."""
        if not self._due or not self._items:
            return
        may = self._doubtful or self._decided >= FEW or (not self._costly and self._stale)
        if not (may or self._panel.isVisible()):
            return
        self._due = self._stale = False
        work = partial(_trust, self._kind, self._items)
        job = self._document.read_beside("Calibrating", work, quiet=True)
        self._task.follow(job, self._show_trust)

    def _on_changed(self) -> None:
        """Compare again after a change of truths or of the matching radius."""
        self._due = self._stale = self._run is not None
        self.compare()

    def _show_trust(self, trust: Trust | None) -> None:
        self._trust = trust
        self._draw()
        self._queue.set_doubt(
            "" if trust is None else trust.doubt_in_words(), "" if trust is None else trust.in_words()
        )

    def _draw(self) -> None:
        trust, lines = self._trust, list(self._beside)
        if trust is not None and trust.judged:
            calibration = trust.calibration
            low, high = bin_intervals(calibration) if trust.independent else (None, None)
            lines.insert(
                0,
                CalibrationLine(
                    self._title,
                    calibration.posterior,
                    calibration.share,
                    calibration.count,
                    calibration.error,
                    low,
                    high,
                ),
            )
        self._panel.show_trust(lines, "" if trust is None else trust.in_words())


def _key(run: RunEntry | None) -> object:
    return None if run is None else (run.id, run.started)


def _trust(kind: str, items: Sequence[int], study: Study, watch: Watch) -> Trust | None:
    return KINDS[kind].functions.trust(study, items, watch) if items else None
