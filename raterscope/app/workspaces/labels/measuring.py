"""How good answers are by known truths: the curves of the one shown, and every run beside the plain vote."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QObject

from raterscope.algorithms.labels import OPEN
from raterscope.algorithms.labels.assessment import assess
from raterscope.algorithms.labels.catalogue import labeller_title
from raterscope.algorithms.labels.voting import majority
from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.kinds.labels.answers import truth_about
from raterscope.app.kinds.labels.running import measured
from raterscope.app.session import LatestTask
from raterscope.app.study import Study
from raterscope.app.study.labels import labels_of
from raterscope.app.study.records import Scheme
from raterscope.app.workspaces.labels.comparing import Measured, curves_of
from raterscope.app.workspaces.labels.scene import Analysis, LabelsSession, Scene
from raterscope.app.workspaces.labels.screen import LabelsScreen
from raterscope.app.workspaces.trusting import Trusting
from raterscope.figures.evaluation import CalibrationLine

__all__ = ["Measuring"]

MOST_RUNS = 12

Known = dict[int | None, tuple[object, Measured | None]]
"""What was measured of runs, and with None of the vote, with what that rests on."""


class Measuring(QObject):
    """Draws the curves of the answer shown, and fills the table of methods."""

    def __init__(self, document: Document, screen: LabelsScreen, session: LabelsSession) -> None:
        super().__init__(screen)
        self._document = document
        self._session = session
        self._screen = screen
        self.trusting = Trusting(document, screen.trust, screen.queue, "labels")
        self._task = LatestTask()
        self._known: Known = {}
        session.scene_changed.connect(self._task.cancel)
        session.scene_settled.connect(self._on_scene)
        session.cleared.connect(self._clear)

    def _clear(self) -> None:
        self._task.cancel()
        self._screen.curves.set_curves(())
        self.trusting.show_beside(())
        self.trusting.show(None, ())
        self._known.clear()
        self._screen.comparing.show_runs(())

    def _on_scene(self, scene: Scene) -> None:
        self._draw(scene, self._session.analysis)
        run = scene.run
        title = "" if run is None else labeller_title(run.algorithm)
        self.trusting.show(run, (scene.question.id,), title)
        contents = self._document.contents
        if contents is None:
            return
        runs = [run.id for run in contents.runs_of("labels") if scene.question.id in run.items]
        wanted = scene.question.id, (*runs[-MOST_RUNS:], None)
        job = self._document.ask("Measuring runs", partial(_known, *wanted, dict(self._known)))
        self._task.follow(job, partial(self._on_known, wanted))

    def _draw(self, scene: Scene, analysis: Analysis) -> None:
        screen = self._screen
        if analysis.model is None or scene.run is None:
            screen.curves.set_curves(())
            self.trusting.show_beside(())
            return
        named = [(labeller_title(scene.run.algorithm), analysis.model)]
        if analysis.crowd_vote is not None:
            named.append(("the vote", analysis.crowd_vote))
        screen.curves.set_curves([curve for name, one in named for curve in curves_of(name, one)])
        self.trusting.show_beside(
            [
                CalibrationLine(
                    name, one.calibration.posterior, one.calibration.share, one.calibration.count,
                    one.calibration.error,
                )
                for name, one in named[1:]
            ]
        )  # fmt: skip

    def _on_known(self, wanted: tuple[int, tuple[int | None, ...]], found: list[Measured] | None) -> None:
        if found is not None:
            self._screen.comparing.show_runs(found)
            return
        work = partial(_measured, *wanted, dict(self._known))
        job = self._document.read_beside("Measuring runs", work, quiet=True)
        self._task.follow(job, self._on_measured)

    def _on_measured(self, known: Known) -> None:
        self._known = known
        self._screen.comparing.show_runs([one for _, one in known.values() if one is not None])


def _rests_on(question: int, run: int | None, study: Study) -> object:
    """Give what a measurement rests on: while that stays, it holds."""
    when = None if run is None else study.run(run).started
    return question, study.last_import(), study.question(question).scheme, when


def _known(
    question: int, runs: Sequence[int | None], known: Known, study: Study, watch: Watch
) -> list[Measured] | None:
    """Give what runs came to, of nothing where no truth is known; None where something has to be measured."""
    watch(0.0, "looking what is measured")
    if not (study.crowd(question).truth != OPEN).any():
        return []
    there = [known[run] for run in runs if run in known and known[run][0] == _rests_on(question, run, study)]
    return [one for _, one in there if one is not None] if len(there) == len(runs) else None


def _measured(question: int, runs: Sequence[int | None], known: Known, study: Study, watch: Watch) -> Known:
    """Measure runs, and with None the vote, on the truths that they were not told; what is known, once."""
    found: Known = {}
    scheme = study.question(question).scheme
    for done, run in enumerate(runs):
        watch(done / len(runs), "measuring a run")
        rests_on = _rests_on(question, run, study)
        held = run in known and known[run][0] == rests_on
        found[run] = known[run] if held else (rests_on, _measure(question, run, scheme, study))
    return found


def _measure(question: int, run: int | None, scheme: Scheme, study: Study) -> Measured | None:
    truth = study.crowd(question).truth
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
