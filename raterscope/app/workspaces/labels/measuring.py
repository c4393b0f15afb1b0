"""How good answers are by known truths: the curves of the one shown, and every run beside the plain vote."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject

from raterscope.algorithms.labels import OPEN
from raterscope.algorithms.labels.assessment import assess
from raterscope.algorithms.labels.catalogue import labeller_title
from raterscope.algorithms.labels.voting import majority
from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.labels.answers import truth_about
from raterscope.app.labels.running import measured
from raterscope.app.study import Study
from raterscope.app.study.labels import labels_of
from raterscope.app.study.records import Scheme
from raterscope.app.workspaces.labels.comparing import Measured, curves_of
from raterscope.app.workspaces.labels.scene import Analysis, Scene
from raterscope.app.workspaces.labels.screen import LabelsScreen
from raterscope.widgets.plots.calibration_plot import CalibrationLine

__all__ = ["Measuring"]

MOST_RUNS = 12


class Measuring(QObject):
    """Draws the curves of the answer shown, and fills the table of methods."""

    def __init__(self, document: Document, screen: LabelsScreen) -> None:
        super().__init__(screen)
        self._document = document
        self._screen = screen
        self._asked = 0
        self._known: dict[int | None, tuple[object, Measured | None]] = {}
        """What was measured of a run, with what that rests on."""

    def stop(self) -> None:
        """Drop what is under way: something else is about to be shown."""
        self._asked += 1

    def show(self, scene: Scene | None, analysis: Analysis | None) -> None:
        """Take another question or answer."""
        self._asked += 1
        self._draw(scene, analysis)
        contents = self._document.contents
        if scene is None or contents is None:
            self._known.clear()
            self._screen.comparing.show_runs(())
            return
        runs = [run.id for run in contents.runs_of("labels") if scene.question.id in run.items]
        self._measure(self._asked, scene.question.id, (*runs[-MOST_RUNS:], None), ())

    def _draw(self, scene: Scene | None, analysis: Analysis | None) -> None:
        screen = self._screen
        if analysis is None or scene is None or analysis.model is None or scene.run is None:
            screen.curves.set_curves(())
            screen.calibration.set_lines(())
            return
        named = [(labeller_title(scene.run.algorithm), analysis.model)]
        if analysis.crowd_vote is not None:
            named.append(("the vote", analysis.crowd_vote))
        screen.curves.set_curves([curve for name, one in named for curve in curves_of(name, one)])
        screen.calibration.set_lines(
            [
                CalibrationLine(
                    name, one.calibration.posterior, one.calibration.share, one.calibration.count,
                    one.calibration.error,
                )
                for name, one in named
            ]
        )  # fmt: skip

    def _measure(
        self, asked: int, question: int, left: tuple[int | None, ...], found: tuple[Measured, ...]
    ) -> None:
        """Measure one run after the other, so that a decision between them need not wait for all."""
        if not left:
            self._screen.comparing.show_runs(found)
            return
        job = self._document.ask("Measuring a run", partial(_measured, question, left[0], self._known))
        job.finished.connect(partial(self._on_measured, asked, question, left[1:], found))

    def _on_measured(
        self, asked: int, question: int, left: tuple[int | None, ...], found: tuple[Measured, ...],
        one: Measured | None,
    ) -> None:  # fmt: skip
        if asked == self._asked:
            self._measure(asked, question, left, found if one is None else (*found, one))


def _measured(
    question: int,
    run: int | None,
    known: dict[int | None, tuple[object, Measured | None]],
    study: Study,
    watch: Watch,
) -> Measured | None:
    """Measure a run, or with None the vote, on the truths that it was not told; once, while they stay."""
    watch(0.0, "measuring a run")
    scheme = study.question(question).scheme
    when = None if run is None else study.run(run).started
    rests_on = question, study.last_import(), scheme, when
    if run not in known or known[run][0] != rests_on:
        known[run] = rests_on, _measure(question, run, scheme, study)
    return known[run][1]


def _measure(question: int, run: int | None, scheme: Scheme, study: Study) -> Measured | None:
    truth = study.crowd(question).truth
    if not (truth != OPEN).any():
        return None
    if run is None:
        vote = assess(majority(labels_of(study, question)).posterior, truth, scheme.classes)
        return None if vote is None else Measured(None, vote)
    result = study.result(run, question)
    if result is None:
        return None
    fusion = result.fusion
    own = truth_about(study, study.question(question), fusion)
    found = assess(fusion.posterior, measured(result, own), fusion.classes)
    return None if found is None else Measured(study.run(run), found, fusion.power)
