"""How far to trust the flags shown, worked out where it is looked at or where something contradicts them."""

from __future__ import annotations

from functools import partial

import numpy as np
from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.jobs import Job
from raterscope.app.study import Study
from raterscope.app.trust import FEW, Trust, trust_in_pairs
from raterscope.app.workspaces.pairs.scene import OPEN, Scene
from raterscope.widgets.panels.trust_panel import TrustPanel
from raterscope.widgets.plots.calibration_plot import CalibrationLine

__all__ = ["AXES", "NOTHING", "Trusting"]

AXES = ("p value", "share below")
NOTHING = "Fuse pairs (F5): how often the test is wrong on these comparisons is drawn here."


class Trusting(QObject):
    """Fills the panel of one question's answer.

    Signals
    -------
    doubted : str
        How the data contradict the promised rate; empty where they do not.
    """

    doubted = Signal(str)

    def __init__(self, document: Document, panel: TrustPanel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._panel = panel
        self._scene: Scene | None = None
        self._due = False
        self._decided = 0
        self._job: Job | None = None

    def show(self, scene: Scene | None) -> None:
        """Take another question or answer."""
        self._stop()
        self._scene = scene if scene is not None and scene.fusion is not None else None
        self._due = self._scene is not None
        self._panel.show_trust(None, "")
        self.doubted.emit("")
        self.look()

    def set_decided(self, decided: np.ndarray) -> None:
        """Take what the expert decided of each annotator."""
        many = int((decided != OPEN).sum())
        if many != self._decided:
            self._decided = many
            self._due = self._scene is not None
            self.look()

    def look(self) -> None:
        """Work out what is not known yet, where it is in sight or may contradict the rate."""
        scene = self._scene
        if scene is None or scene.fusion is None or not self._due:
            return
        if not (self._panel.isVisible() or scene.fusion.sides or self._decided >= FEW):
            return
        self._stop()
        self._due = False
        job = self._document.read_beside("Calibrating", partial(_trust, scene.question.id), quiet=True)
        self._job = job
        job.finished.connect(partial(self._on_trust, job))

    def _stop(self) -> None:
        if self._job is not None:
            self._job.cancel()
            self._job = None

    def _on_trust(self, job: Job, trust: Trust | None) -> None:
        if job is not self._job:
            return
        self._job = None
        if trust is None:
            return
        found = trust.calibration
        line = CalibrationLine("flip test", found.posterior, found.share, found.count, found.error)
        self._panel.show_trust(line if trust.judged else None, trust.in_words())
        self.doubted.emit(trust.in_words() if trust.contradicted else "")


def _trust(question: int, study: Study, watch: Watch) -> Trust | None:
    return trust_in_pairs(study, question, watch)
