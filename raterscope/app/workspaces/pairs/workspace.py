"""The pairs workspace: biased annotators at a chosen false discovery rate, and the corrected ranking."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.pairs.data import HIGHEST_RATE, BoolArray
from raterscope.algorithms.pairs.evidence import Evidence, PairIndex, evidence
from raterscope.algorithms.pairs.fusion import PairPlan
from raterscope.algorithms.progress import Watch
from raterscope.app.comparison import Change
from raterscope.app.disputes import MATTERS
from raterscope.app.document import Document
from raterscope.app.jobs import Jobs
from raterscope.app.kinds.pairs.running import Answer, Inputs, fuse_inputs, gather, keep
from raterscope.app.review import BiasSubject, Decision, ReviewState
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.study import RunEntry
from raterscope.app.study.records import ImageEntry
from raterscope.app.workspaces.blind_mode import BlindMode
from raterscope.app.workspaces.calibration import Calibration
from raterscope.app.workspaces.pairs import view
from raterscope.app.workspaces.pairs.bias_review import BiasReview
from raterscope.app.workspaces.pairs.rate_cut import RateCut
from raterscope.app.workspaces.pairs.run_comparison import RunComparison
from raterscope.app.workspaces.pairs.scene import (
    CLEARED,
    FLAGGED,
    OPEN,
    Analysis,
    PairsSession,
    Scene,
    analyse,
    annotators_asked,
    read_scene,
)
from raterscope.app.workspaces.pairs.screen import PairsScreen
from raterscope.app.workspaces.question_navigation import QuestionNavigation
from raterscope.app.workspaces.review_order import RemainingQuestions, next_unit
from raterscope.app.workspaces.runs import FusionWork, Runs
from raterscope.app.workspaces.task_pictures import TaskPictures
from raterscope.widgets.panels.fuse_panel import RunRequest

__all__ = ["PairsWorkspace"]


class PairsWorkspace(PairsScreen):
    """One screen: which annotator, what speaks for a bias, what the ranking is without it."""

    def __init__(self, document: Document, jobs: Jobs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._jobs = jobs
        self.session = self._session = PairsSession(self)
        self._evidence: Evidence | None = None
        self._gathering = LatestTask()
        self.hiding = BlindMode(
            document, "pairs", self, "Hide names", "Names are hidden.", "Names are shown."
        )
        self._between: tuple[int, int] | None = None
        """The items whose comparisons are listed."""
        self._change: Change | None = None
        """The change to be looked at once its question is on screen."""
        self._filter = ("", "undecided")
        self._notices = ""
        self.runs = Runs(document, jobs, self, "pairs", _request_of)
        self.fusing = self.runs.fusing
        self.questions = QuestionNavigation(
            document, jobs, self.question, self.runs, "pairs", "comparisons", read_scene, analyse
        )
        self.cutting = RateCut(jobs, self.session, self)
        self.judging = BiasReview(document, self, self.session, self._go_elsewhere)
        self.left = RemainingQuestions(
            document, self.runs, self.queue, "pairs", annotators_asked, _settled, noun="annotator",
            tip="A decision matters where an annotator is flagged, or not flagged, wrongly with a "
            f"probability of {MATTERS:g} or more, by the p values of all annotators.",
        )  # fmt: skip
        self.comparing = RunComparison(document, self.methods, self.session, self)
        self.trusting = Calibration(document, self.trust, self.queue, "pairs", costly=True)
        self.pictures = TaskPictures(document, jobs, self)
        self._connect()
        self._make_actions()
        self._on_replaced()

    def _connect(self) -> None:
        self._document.replaced.connect(self._on_replaced)
        self._document.changed.connect(self._on_changed)
        self._document.decided.connect(self._on_decided)
        self.questions.arrived.connect(self._on_arrived)
        self.session.scene_changed.connect(self._on_scene)
        self.session.cleared.connect(self._on_cleared)
        self.session.scene_amended.connect(self._on_amended)
        self.questions.refused.connect(self.refused)
        for place in (self.queue, self.path, self.sides, self.bars):
            place.chosen.connect(self.choose)
        self.queue.filter_changed.connect(self._on_filter)
        self.hiding.changed.connect(self._on_hiding)
        self.bars.rate_changed.connect(self.cutting.move)
        self.cutting.moved.connect(self._flags_changed)
        self.cutting.rested.connect(self._sort)
        self.cutting.ranked.connect(self._on_ranked)
        self.cutting.detected.connect(self._on_detected)
        self.cutting.refused.connect(self.refused)
        self.judging.said.connect(self.said)
        self.judging.exhausted.connect(self._on_exhausted)
        self.ranking.pair_chosen.connect(self._on_pair)
        self.ranking.picture_wanted.connect(partial(self._on_picture_wanted, self.ranking))
        self.between.picture_wanted.connect(partial(self._on_picture_wanted, self.between))
        self.evidence.pairs.picture_wanted.connect(partial(self._on_picture_wanted, self.evidence.pairs))
        self.pictures.ready.connect(self._on_picture)
        self.comparing.run_chosen.connect(self.runs.choose)
        self.left_tabs.currentChanged.connect(self.comparing.look)
        self.fuse_panel.run_requested.connect(self._on_run_requested)
        self.fuse_panel.compare_requested.connect(self._on_compare_requested)

    def _make_actions(self) -> None:
        described = (
            ("Next annotator", "Tab", partial(self.judging.go, 1)),
            ("Previous annotator", "Shift+Tab", partial(self.judging.go, -1)),
            ("Flag as biased", "F", partial(self.judging.judge, "flag")),
            ("Clear of bias", "C", partial(self.judging.judge, "clear")),
            ("Skip", "S", partial(self.judging.judge, "skip")),
            ("Set flagged annotators aside everywhere", "X", self._set_aside),
            self.hiding.action,
            ("Next question", "PgDown", partial(self.questions.step, 1)),
            ("Previous question", "PgUp", partial(self.questions.step, -1)),
            ("Leave the panel", "Esc", self.close_fuse_panel),
        )
        self.add_actions(described, (self.path, self.sides, self.bars, self.queue.view, self.evidence))

    # What is shown

    def current_item(self) -> int | None:
        """Give the study's number of the question on screen."""
        return self.questions.current

    def go_to(self, item: int) -> None:
        """Show a question."""
        self.questions.show(item)

    def go_to_change(self, change: Change) -> None:
        """Look at an annotator that another run judges otherwise."""
        self._change = None
        if not self.session.shown or self.session.scene.question.id != change.item:
            self._change = change
            self.questions.show(change.item)
        elif change.name in self.annotators_here():
            self.choose_annotator(change.name)

    def annotators_here(self) -> Sequence[str]:
        """Name the annotators of the question."""
        return self.session.scene.pairs.annotators if self.session.shown else ()

    def choose_annotator(self, name: str) -> None:
        """Choose an annotator everywhere."""
        number = self.annotators_here().index(name)
        self.queue.select(number)
        self.queue.chosen.emit(number)

    def whereabouts(self) -> dict[str, Any]:
        """Tell the annotator and the cut too."""
        chosen, cut = self.queue.current, self.cutting.cut
        name = None if chosen is None else self.annotators_here()[chosen]
        return {**super().whereabouts(), "annotator": name, "rate": None if cut is None else cut.rate}

    def return_to(self, told: Mapping[str, Any]) -> None:
        """Look at the annotator that one looked at, with the cut where one had put it."""
        super().return_to(told)
        rate = told.get("rate")
        if isinstance(rate, float) and 0.0 < rate <= HIGHEST_RATE:
            self.bars.slider.setValue(round(100 * rate))
        if told.get("annotator") in self.annotators_here():
            self.choose_annotator(told["annotator"])

    @property
    def flagged(self) -> BoolArray:
        """Who counts as biased: flagged by the run or by the expert, not cleared and not set aside."""
        cut, decided = self.cutting.cut, self.judging.decided
        there = self.session.analysis.took_part if self.session.shown else np.zeros(0, dtype=bool)
        drawn = np.zeros(len(decided), dtype=bool) if cut is None else cut.flagged
        return np.asarray(there & ((drawn & (decided != CLEARED)) | (decided == FLAGGED)), dtype=bool)

    def _on_replaced(self) -> None:
        self.runs.forget()
        self.pictures.forget()
        self.questions.reset()
        self._on_changed()

    def _on_changed(self) -> None:
        self.runs.show_history()
        self.left.reread()
        self.questions.refresh()
        self.tell_stale()

    def _on_arrived(self, scene: Scene | None, analysis: Analysis | None) -> None:
        self.session.show(None if scene is None else replace(scene, blind=self.hiding.on), analysis)

    def _on_cleared(self) -> None:
        self.left.select(None)
        self.trusting.set_decided(0)
        self.trusting.show(None, ())
        self._forget_items({})
        self._say_notices("")
        self.queue.set_view(None)
        self.path.show_path(None)
        self.sides.show_sides(None)
        self.bars.show_statistics(None)
        self.status_changed.emit("")
        self.choose(None)

    def _on_scene(self, scene: Scene) -> None:
        kept = self._kept(scene, self.session.analysis)
        self.left.select(scene.question.id)
        self._calibrate()
        self._forget_items(scene.pictures)
        self._say_notices(" ".join(scene.fusion.notices) if scene.fusion else "")
        self._draw()
        self.cutting.rank(self.flagged)
        self.choose(self.queue.first if kept is None else kept)
        if self._change is not None:
            self.go_to_change(self._change)

    def _forget_items(self, pictures: Mapping[int, ImageEntry]) -> None:
        """Make way for the items of another question."""
        self._evidence = self._between = None
        self.pictures.set_tasks(pictures)
        self.ranking.show_ranking(None)
        self.between.show_pairs(None)
        for place in (self.ranking, self.between, self.evidence.pairs):
            place.forget_pictures()

    def _say_notices(self, notices: str) -> None:
        if notices != self._notices:
            self._notices = notices
            self.said.emit(notices)

    def _calibrate(self) -> None:
        """Compare the flags of the run shown with what is known."""
        scene = self.session.scene
        fusion = scene.fusion
        self.trusting.set_decided(int((self.judging.decided != OPEN).sum()))
        doubtful = fusion is not None and bool(fusion.sides)
        run = None if fusion is None else scene.run
        self.trusting.show(run, (scene.question.id,), "flip test", doubtful=doubtful)

    def _kept(self, scene: Scene, analysis: Analysis) -> int | None:
        """Give who is still looked at with another answer; where it is the first one, one begins anew."""
        before, current = self.session.before, self.queue.current
        if before is None or before.question.id != scene.question.id:
            return None
        first = before.fusion is None and scene.fusion is not None
        return None if first or current is None or not analysis.took_part[current] else current

    @while_shown
    def _draw(self) -> None:
        """Draw everything that is of all annotators."""
        scene, analysis, cut = self.session.scene, self.session.analysis, self.cutting.cut
        self._sort()
        who = self._uncovered(scene)
        self.path.set_nothing(view.why_no_path(scene, who))
        self.path.show_path(view.path_view(scene, cut, self._behaviour(scene, analysis), who))
        self.sides.show_sides(view.sides_view(scene, analysis, *self._told(scene, analysis)))
        self.bars.show_statistics(view.statistics_view(scene, analysis, cut, self.flagged, who))
        self._show_status()

    def _told(self, scene: Scene, analysis: Analysis) -> tuple[BoolArray, NDArray[np.int8]]:
        """Give who is flagged and what each does, as far as that is not hidden."""
        who = self._uncovered(scene)
        flagged, behaviour = np.zeros_like(self.flagged), np.full(len(scene.pairs.annotators), -1, np.int8)
        flagged[who], behaviour[who] = self.flagged[who], self._behaviour(scene, analysis)[who]
        return flagged, behaviour

    def _uncovered(self, scene: Scene) -> NDArray[np.int64]:
        return view.uncovered(scene, self.judging.decided)

    def _behaviour(self, scene: Scene, analysis: Analysis) -> NDArray[np.int8]:
        return view.behaviour_shown(scene, analysis, self.cutting.cut, self.flagged)

    def _show_status(self) -> None:
        session = self.session
        words = view.status(session.scene, session.analysis, self.cutting.cut, self.flagged)
        self.status_changed.emit(words)

    @while_shown
    def _sort(self) -> None:
        scene, analysis = self.session.scene, self.session.analysis
        cut, decided, flagged = self.cutting.cut, self.judging.decided, self.flagged
        order = view.listed(scene, analysis, cut, decided, flagged, *self._filter)
        self.queue.set_view(view.annotators_view(scene, analysis, cut, decided, flagged, order))

    def _on_filter(self, words: str, which: str) -> None:
        self._filter = (words, which)
        self._sort()

    # The cut, and the ranking that follows from it

    @while_shown
    def _flags_changed(self) -> None:
        """Show who is flagged now, and have the items ranked anew."""
        scene, analysis, cut = self.session.scene, self.session.analysis, self.cutting.cut
        if cut is None:
            return
        who, behaviour = self._uncovered(scene), self._behaviour(scene, analysis)
        self.bars.set_cut(view.rate_cut(scene, analysis, cut, self.flagged, who))
        self.path.set_cut(view.path_cut(scene, cut), behaviour[who])
        there = analysis.took_part
        flagged, told = self._told(scene, analysis)
        self.sides.set_flagged(flagged[there], told[there])
        self._show_status()
        self._show_bias()
        self._show_course()
        self.cutting.rank(self.flagged)

    def _on_detected(self) -> None:
        """Show who is decidable at this rate."""
        self._sort()
        self._flags_changed()

    def _on_ranked(self) -> None:
        self.ranking.show_ranking(view.ranking_view(self.session.scene, self.cutting.ranking))

    @while_shown
    def _on_pair(self, one: int, other: int) -> None:
        self._between = (one, other)
        self._show_between()
        self.left_tabs.setCurrentWidget(self.between)

    @while_shown
    def _show_between(self) -> None:
        if self._between is not None:
            session = self.session
            self.between.show_pairs(view.between_view(session.scene, session.analysis, *self._between))

    # One annotator

    def choose(self, annotator: int | None) -> None:
        """Look at an annotator everywhere, or at nobody."""
        for place in (self.queue, self.path, self.sides, self.bars):
            place.select(annotator)
        self.evidence.over_time.setVisible(not self._covers(annotator))
        self._evidence = None
        self._show_bias()
        self._gathering.cancel()
        index = self.session.analysis.index if self.session.shown else None
        if annotator is None or index is None:
            self.evidence.over_time.set_nothing(view.UNFUSED)
            self.evidence.over_time.show_course(None)
            self.evidence.pairs.show_pairs(None)
            return
        job = self._jobs.start("Gathering evidence", partial(_evidence, index, annotator), quiet=True)
        self._gathering.follow(job, self._on_evidence)

    def _on_evidence(self, found: Evidence) -> None:
        self._evidence = found
        self._show_bias()
        self._show_course()
        self._show_speaking()

    def _show_speaking(self) -> None:
        found = self._evidence
        if found is not None:
            decided = int(self.judging.decided[found.annotator])
            self.evidence.pairs.show_pairs(view.speaking_view(self.session.scene, found, decided))

    def _covers(self, annotator: int | None) -> bool:
        if annotator is None or not self.session.shown:
            return False
        return view.covers(self.session.scene, int(self.judging.decided[annotator]))

    def _show_course(self) -> None:
        found = self._evidence
        if found is not None:
            behaviour = int(self._behaviour(self.session.scene, self.session.analysis)[found.annotator])
            self.evidence.over_time.set_nothing()
            self.evidence.over_time.show_course(view.course_view(found.time, behaviour))

    def _show_bias(self) -> None:
        """Show what is known of the annotator looked at, and what came of it."""
        annotator = self.queue.current
        if annotator is None or not self.session.shown:
            self.evidence.show_annotator(None)
            return
        scene, analysis = self.session.scene, self.session.analysis
        self.evidence.show_annotator(
            view.bias_view(
                scene, analysis, annotator, self.cutting.cut, bool(self.flagged[annotator]),
                int(self.judging.decided[annotator]), int(self._behaviour(scene, analysis)[annotator]),
                self._evidence,
            )
        )  # fmt: skip

    def _on_picture_wanted(self, place: QObject, item: int) -> None:
        picture = self.pictures.get(item)
        if picture is not None or self.pictures.lacks(item):
            place.set_picture(item, picture)  # type: ignore[attr-defined]

    def _on_picture(self, item: int, picture: QImage | None) -> None:
        for place in (self.ranking, self.between, self.evidence.pairs):
            place.set_picture(item, picture)

    # What the expert does

    @while_shown
    def _on_hiding(self, hidden: bool) -> None:
        """Call annotators by number and hide what is said of those who are not decided, or show all again."""
        self.session.amend(replace(self.session.scene, blind=hidden))

    def _on_amended(self) -> None:
        kept = self.queue.current
        self._draw()
        self._show_between()
        self.choose(kept)

    def _set_aside(self) -> None:
        self.judging.set_aside(self.flagged)

    def _on_decided(self, decision: Decision) -> None:
        contents = self._document.contents
        if contents is None:
            return
        self.runs.show_history()
        self.left.recount()
        if contents.item_of(decision, "pairs") is not None:
            decided, flagged = self.judging.decided, self.flagged
            self.judging.refresh()
            self.trusting.set_decided(int((self.judging.decided != OPEN).sum()))
            if not np.array_equal(decided, self.judging.decided):  # else somebody was passed over
                self._judged(ranks=not np.array_equal(flagged, self.flagged))
            back = contents.brought_back(decision)
            if isinstance(back, BiasSubject) and back.annotator in self.annotators_here():
                self.choose_annotator(back.annotator)
        self.tell_stale()

    def _go_elsewhere(self, step: int, skipped: bool, _finish: bool) -> bool:
        """Go on with the next question in which somebody is left to be judged; tells whether there is."""
        here = self.session.scene.question.id if self.session.shown else None
        units = self.left.units() if self._filter == ("", "undecided") else []
        found = next_unit(units, here, step, skipped=skipped)
        if found is not None:
            self.questions.show(found)
        return found is not None

    def _on_exhausted(self) -> None:
        self.said.emit(self.left.nothing_left())

    def _judged(self, *, ranks: bool) -> None:
        """Show whom the expert flags and clears, and what follows if others are flagged now than before."""
        if self.hiding.on:  # what was decided is uncovered
            self._draw()
            self.choose(self.queue.current)
            self.cutting.rank(self.flagged)
            return
        self._sort()
        if ranks:
            self._flags_changed()
        else:
            self._show_bias()

    # Fusing

    def _on_run_requested(self, wanted: RunRequest) -> None:
        plan = PairPlan(wanted.algorithm, wanted.settings)
        work = FusionWork("pairs", "question", gather, partial(_fuse, plan), keep)
        self.runs.start(wanted, work, self.questions.current)

    def _on_compare_requested(self, _runs: Sequence[int]) -> None:
        self.close_fuse_panel()
        self.left_tabs.setCurrentWidget(self.methods)


def _settled(review: ReviewState, question: int) -> tuple[Collection[str], Collection[str]]:
    return review.judged(question).keys(), ()


def _fuse(plan: PairPlan, inputs: Inputs, watch: Watch) -> Answer:
    return fuse_inputs(inputs, plan, watch)


def _evidence(index: PairIndex, annotator: int, watch: Watch) -> Evidence:
    watch(0.0, "gathering evidence")
    return evidence(index, annotator)


def _request_of(run: RunEntry) -> RunRequest:
    plan = PairPlan.from_dict(run.settings)
    return RunRequest(plan.algorithm, plan.settings)
