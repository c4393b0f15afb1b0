"""The pairs workspace: biased annotators at a chosen false discovery rate, and the corrected ranking."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs.catalogue import PairPlan
from raterscope.algorithms.pairs.data import HIGHEST_RATE, BoolArray
from raterscope.algorithms.pairs.evidence import Evidence, PairIndex, evidence
from raterscope.algorithms.progress import Watch
from raterscope.app.assessment import MATTERS, Change
from raterscope.app.contents import Contents
from raterscope.app.review import BiasSubject, CommentSubject, Decision, ReviewState, SampledItem
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.study.records import ImageEntry
from raterscope.app.workspaces.comments import Comments
from raterscope.app.workspaces.layout import ActionEntry
from raterscope.app.workspaces.navigation import QuestionNavigation
from raterscope.app.workspaces.pairs import view
from raterscope.app.workspaces.pairs.bias_review import BiasReview, RateCut
from raterscope.app.workspaces.pairs.scene import (
    CLEARED,
    FLAGGED,
    OPEN,
    Analysis,
    PairsSession,
    Ranking,
    Scene,
    analyse,
    error_probabilities,
    read_scene,
)
from raterscope.app.workspaces.pairs.screen import ComparisonContents, PairsCore, PairsScreen, RunComparison
from raterscope.app.workspaces.review_order import RemainingQuestions, next_unit
from raterscope.app.workspaces.run_history import Calibration
from raterscope.app.workspaces.sample_queue import StudyQueue
from raterscope.app.workspaces.screen import BlindTexts
from raterscope.app.workspaces.task_pictures import TaskPictures
from raterscope.widgets.layouts import DeferredContent

BLIND = BlindTexts("Blind mode: hide names", "Names are hidden.", "Names are shown.")


class PairsWorkspace(PairsScreen):
    """Review of biased annotators: the evidence for each, and the ranking without their biases."""

    PLAN = PairPlan

    def build(self) -> Iterator[None]:
        """Make the widgets, then connect them with the study."""
        yield from super().build()
        document, jobs = self._document, self._jobs
        self.session = self._session = PairsSession(self)
        self.core = core = PairsCore(self, document, jobs, self.session, "pairs", BLIND)
        self._evidence: Evidence | None = None
        self._course: tuple[Evidence, int] | None = None
        """Evidence and behaviour of the drawn course."""
        self._gathering = LatestTask()
        self._pair: tuple[int, int] | None = None
        """The two items of the listed comparisons."""
        self._deferred_table = DeferredContent(self.ranking_table)
        self._filter = ("", "undecided")
        self.navigation = QuestionNavigation(
            document, jobs, core.runs, "comparisons", read_scene, analyse, self.question
        )
        self.rate_cut = RateCut(core)
        self.bias_review = BiasReview(core, self._go_elsewhere, self._go_in_study)
        self.remaining = RemainingQuestions(
            document, self.runs, self.queue, "pairs", error_probabilities, _settled,
            ReviewState.contested_annotators, noun="decision",
            tip="A decision matters where an annotator is flagged, or not flagged, wrongly with a "
            f"probability of {MATTERS:g} or more, by the p values of all annotators. Others are certain.",
        )  # fmt: skip
        self.study_queue = StudyQueue(document, self, self.remaining, lambda: self.session.blind)
        self.contents = ComparisonContents(core)
        self.run_comparison = RunComparison(core)
        self.calibration = Calibration(document, self.trust, self.queue, "pairs", costly=True)
        self.pictures = TaskPictures(document, jobs, self)
        self._connect()
        core.connect_screen(self.navigation)
        yield
        self._make_actions()

    def _connect(self) -> None:
        self.session.scene_amended.connect(self._on_amended)
        self.session.blind_changed.connect(self._on_blind)
        self.session.blind_changed.connect(self.study_queue.show_tab)
        self.study_queue.chosen.connect(self._go_to_annotator)
        for widget in (self.queue, self.path, self.sides, self.bars):
            widget.chosen.connect(self.choose)
        self.queue.filter_changed.connect(self._on_filter)
        self.bars.rate_changed.connect(self.rate_cut.move)
        self.rate_cut.moved.connect(self._flags_changed)
        self.rate_cut.cut_settled.connect(self._sort)
        self.rate_cut.ranked.connect(self._on_ranked)
        self.rate_cut.matched.connect(self._on_matched)
        self.rate_cut.detected.connect(self._on_detected)
        self.rate_cut.refused.connect(self.refused)
        self.bias_review.message.connect(self.message)
        self.bias_review.exhausted.connect(self._on_exhausted)
        self.core.sample.chosen.connect(self._go_to_sampled)
        self.comments = Comments(self.core, self.evidence, self._to_comment)
        self.queue.chosen.connect(self.comments.refresh)
        self.ranking.pair_chosen.connect(self._on_pair)
        self.ranking_table.pair_chosen.connect(self._on_pair)
        for grid in (self.ranking, self.ranking_table, self.comparisons, self.evidence.pairs):
            self.pictures.serve(grid.pictures)
        self.left_tabs.currentChanged.connect(self.run_comparison.read_runs)

    def _make_actions(self) -> None:
        described: tuple[ActionEntry, ...] = (
            ("Next annotator", "Tab", partial(self.bias_review.go, 1)),
            ("Previous annotator", "Shift+Tab", partial(self.bias_review.go, -1)),
            ("Flag as biased", "F", partial(self.bias_review.judge, "flag")),
            ("Clear of bias", "C", partial(self.bias_review.judge, "clear")),
            ("Skip", "S", partial(self.bias_review.judge, "skip")),
            ("Exclude flagged annotators", "X", self._exclude_flagged),
            ("Exclude annotator, or restore", "Shift+X", self.bias_review.exclusions.exclude),
            ("Show the comparison large, or the biases again", "D", self.contents.tab.toggle),
            *self.comments.actions,
            *self.core.navigation_actions("question"),
            ("Leave the panel", "Esc", self.close_fuse_panel),
        )
        self.add_actions(described, (self.path, self.sides, self.bars, self.queue.view, self.evidence))

    # Display

    def show_scene(self, scene: Scene | None, analysis: Analysis | None) -> None:
        """Show a question."""
        self.session.show(None if scene is None else replace(scene, blind=self.session.blind), analysis)

    def show_change(self, change: Change) -> None:
        """Select an annotator whose flag differs in another run."""
        if change.name in self.annotators_on_screen():
            self.choose_annotator(change.name)

    def annotators_on_screen(self) -> Sequence[str]:
        """Return the annotators of the question."""
        return self.session.scene.pairs.annotators if self.session.shown else ()

    def choose_annotator(self, name: str) -> None:
        """Choose an annotator everywhere."""
        number = self.annotators_on_screen().index(name)
        self.queue.select(number)
        self.queue.chosen.emit(number)

    def view_state(self) -> dict[str, Any]:
        """Return the annotator and the cut too."""
        chosen, cut = self.queue.current, self.rate_cut.cut
        name = None if chosen is None else self.annotators_on_screen()[chosen]
        return {**super().view_state(), "annotator": name, "rate": None if cut is None else cut.rate}

    def restore_view(self, state: Mapping[str, Any]) -> None:
        """Select the annotator, and move the cut."""
        super().restore_view(state)
        self.study_queue.begin_elsewhere()
        rate = state.get("rate")
        if isinstance(rate, float) and 0.0 < rate <= HIGHEST_RATE:
            self.bars.slider.setValue(round(100 * rate))
        if state.get("annotator") in self.annotators_on_screen():
            self.choose_annotator(state["annotator"])

    @property
    def flagged(self) -> BoolArray:
        """Annotators that count as biased: flagged by run or expert, not cleared, not excluded."""
        cut, decided = self.rate_cut.cut, self.bias_review.decided
        took_part = self.session.analysis.took_part if self.session.shown else np.zeros(0, dtype=bool)
        drawn = np.zeros(len(decided), dtype=bool) if cut is None else cut.flagged
        return np.asarray(took_part & ((drawn & (decided != CLEARED)) | (decided == FLAGGED)), dtype=bool)

    def forget_study(self) -> None:
        """Drop all data of the previous study."""
        self.pictures.forget()
        self.study_queue.reset()

    def on_study_changed(self) -> None:
        """Count the remaining annotators."""
        self.remaining.reread()

    def on_cleared(self) -> None:
        """Clear the screen, because there is no question."""
        self.remaining.select(None)
        self.calibration.set_decided(0)
        self.calibration.show(None, ())
        self._forget_items({})
        self.core.show_notices("")
        self.queue.set_view(None)
        self.path.show_path(None)
        self.sides.show_sides(None)
        self.bars.show_statistics(None)
        self.status_changed.emit("")
        self.choose(None)

    def on_scene(self, scene: Scene) -> None:
        """Show a question and the notes of its run."""
        annotator = self._annotator_to_keep(scene, self.session.analysis)
        self.remaining.select(scene.question.id)
        self._calibrate()
        self._forget_items(scene.pictures)
        self._show_notices(scene)
        self._draw()
        self.rate_cut.rank(self.flagged)
        self.choose(self.queue.first if annotator is None else annotator)

    def _forget_items(self, pictures: Mapping[int, ImageEntry]) -> None:
        """Prepare for the items of another question."""
        self._evidence = self._pair = None
        self.pictures.set_tasks(pictures)
        self.ranking.set_nothing("" if self.rate_cut.cut is None else "Ranking the items…")
        self.ranking.show_ranking(None)
        self._deferred_table.cancel()
        self.ranking_table.show_ranking(None)
        self.comparisons.show_pairs(None)
        for widget in (self.ranking, self.ranking_table, self.comparisons, self.evidence.pairs):
            widget.pictures.forget()

    def _calibrate(self) -> None:
        """Update the calibration of the run shown."""
        scene = self.session.scene
        fusion = scene.fusion
        self.calibration.set_decided(int((self.bias_review.decided != OPEN).sum()))
        doubtful = fusion is not None and bool(fusion.sides)
        run = None if fusion is None else scene.run
        self.calibration.show(run, (scene.question.id,), "flip test", doubtful=doubtful)

    def _annotator_to_keep(self, scene: Scene, analysis: Analysis) -> int | None:
        """Return the annotator to keep selected with another run; None after the first fusion."""
        previous, current = self.session.previous, self.queue.current
        if previous is None or previous.question.id != scene.question.id:
            return None
        first = previous.fusion is None and scene.fusion is not None
        return None if first or current is None or not analysis.took_part[current] else current

    @while_shown
    def _draw(self) -> None:
        """Draw the plots of all annotators."""
        scene, analysis, cut = self.session.scene, self.session.analysis, self.rate_cut.cut
        self._sort()
        annotators = self._uncovered(scene)
        self.path.set_nothing(view.why_no_path(scene, annotators))
        self.path.show_path(view.path_view(scene, cut, self._behaviour(scene, analysis), annotators))
        self.sides.show_sides(view.sides_view(scene, analysis, *self._visible_flags(scene, analysis)))
        self.bars.set_nothing("" if len(annotators) else view.COVERED)
        self.bars.show_statistics(view.statistics_view(scene, analysis, cut, self.flagged, annotators))
        self._show_status()

    def _visible_flags(self, scene: Scene, analysis: Analysis) -> tuple[BoolArray, NDArray[np.int8]]:
        """Return flags and behaviours, except hidden ones."""
        annotators = self._uncovered(scene)
        flagged, behaviour = np.zeros_like(self.flagged), np.full(len(scene.pairs.annotators), -1, np.int8)
        flagged[annotators] = self.flagged[annotators]
        behaviour[annotators] = self._behaviour(scene, analysis)[annotators]
        return flagged, behaviour

    def _uncovered(self, scene: Scene) -> NDArray[np.int64]:
        return view.uncovered(scene, self.bias_review.decided)

    def _behaviour(self, scene: Scene, analysis: Analysis) -> NDArray[np.int8]:
        return view.behaviour_shown(scene, analysis, self.rate_cut.cut, self.flagged)

    def _show_status(self) -> None:
        session = self.session
        text = view.status(session.scene, session.analysis, self.rate_cut.cut, self.flagged)
        self.status_changed.emit(text)

    @while_shown
    def _sort(self) -> None:
        scene, analysis = self.session.scene, self.session.analysis
        cut, decided, flagged = self.rate_cut.cut, self.bias_review.decided, self.flagged
        contested, by_name = frozenset(self.bias_review.contested), self.core.notes_by_name
        numbers = {name: number for number, name in enumerate(scene.pairs.annotators)} if by_name else {}
        notes = {numbers[name]: counts for name, counts in by_name.items() if name in numbers}
        order = view.listed(scene, analysis, cut, decided, flagged, *self._filter, contested, notes)
        listed = view.annotators_view(scene, analysis, cut, decided, flagged, order, contested, notes)
        self.queue.set_view(listed)

    def _on_filter(self, text: str, key: str) -> None:
        self._filter = (text, key)
        self._sort()

    # Cut and ranking

    @while_shown
    def _flags_changed(self) -> None:
        """Show the flags, and start to rank the items again."""
        self.rate_cut.rank(self.flagged)
        self._show_flags()

    def _show_flags(self) -> None:
        scene, analysis, cut = self.session.scene, self.session.analysis, self.rate_cut.cut
        if cut is None:
            return
        annotators, behaviour = self._uncovered(scene), self._behaviour(scene, analysis)
        self.bars.set_cut(view.rate_cut(scene, analysis, cut, self.flagged, annotators))
        self.path.figure.set_cut(view.path_cut(scene, cut), behaviour[annotators])
        took_part = analysis.took_part
        flagged, behaviour_known = self._visible_flags(scene, analysis)
        self.sides.set_flagged(flagged[took_part], behaviour_known[took_part])
        self._show_status()
        self._show_bias()
        self._show_course()

    def _on_detected(self) -> None:
        """Show which annotators are decidable at this rate; the flags are the same."""
        self._sort()
        self._show_flags()

    @property
    def _ranking(self) -> Ranking | None:
        """The ranking; None while it is hidden."""
        covered = view.covers_ranking(self.session.scene, self.session.analysis, self.bias_review.decided)
        return None if covered else self.rate_cut.ranking

    def _on_ranked(self) -> None:
        if self._ranking is None:
            self.ranking.set_nothing(view.COVERED_RANKING)
        self.ranking.show_ranking(view.ranking_view(self.session.scene, self._ranking))

    def _on_matched(self) -> None:
        work = partial(self._show_wins, self.session.scene, self.session.analysis, self._ranking)
        self._deferred_table.request(work)
        self._show_bias()

    def _show_wins(self, scene: Scene, analysis: Analysis, ranking: Ranking | None) -> None:
        self.ranking_table.show_ranking(view.ranking_rows(scene, analysis, ranking))

    @while_shown
    def _on_pair(self, first: int, second: int) -> None:
        self._pair = (first, second)
        self._show_comparisons()
        self.left_tabs.setCurrentWidget(self.comparisons)

    @while_shown
    def _show_comparisons(self) -> None:
        if self._pair is not None:
            session, hidden = self.session, self._ranking is None
            shown = None if hidden else view.between_view(session.scene, session.analysis, *self._pair)
            self.comparisons.show_pairs(shown)

    # One annotator

    def choose(self, annotator: int | None) -> None:
        """Select an annotator everywhere, or none."""
        for widget in (self.queue, self.path, self.sides, self.bars):
            widget.select(annotator)
        if self.session.shown:
            scene = self.session.scene
            name = None if annotator is None else scene.pairs.annotators[annotator]
            self.study_queue.select(scene.question.id, name)
        self.evidence.over_time.setVisible(not self._covers(annotator))
        self._evidence = None
        self._show_bias()
        self._gathering.cancel()
        index = self.session.analysis.index if self.session.shown else None
        if annotator is None or index is None:
            self.evidence.over_time.set_nothing(view.UNFUSED)
            self.evidence.over_time.show_course(None)
            self._course = None
            self.evidence.pairs.show_pairs(None)
            return
        job = self._jobs.start("Gathering evidence", partial(_evidence, index, annotator), quiet=True)
        self._gathering.follow(job, self._on_evidence)

    def _on_evidence(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._show_bias()
        self._show_course()
        self._show_bias_evidence()

    def _show_bias_evidence(self) -> None:
        evidence = self._evidence
        if evidence is not None:
            decided = int(self.bias_review.decided[evidence.annotator])
            self.evidence.pairs.show_pairs(view.evidence_pairs_view(self.session.scene, evidence, decided))

    def _covers(self, annotator: int | None) -> bool:
        if annotator is None or not self.session.shown:
            return False
        return view.covers(self.session.scene, int(self.bias_review.decided[annotator]))

    def _show_course(self) -> None:
        evidence = self._evidence
        if evidence is not None:
            behaviour = int(self._behaviour(self.session.scene, self.session.analysis)[evidence.annotator])
            if self._course is None or self._course[0] is not evidence or self._course[1] != behaviour:
                self._course = evidence, behaviour
                self.evidence.over_time.set_nothing()
                self.evidence.over_time.show_course(view.course_view(evidence.time, behaviour))

    def _show_bias(self) -> None:
        """Show the evidence on the selected annotator, and the decision."""
        annotator = self.queue.current
        if annotator is None or not self.session.shown:
            self.evidence.show_annotator(None)
            return
        scene, analysis = self.session.scene, self.session.analysis
        self.evidence.show_annotator(
            view.bias_view(
                scene, analysis, annotator, self.rate_cut.cut, bool(self.flagged[annotator]),
                int(self.bias_review.decided[annotator]), int(self._behaviour(scene, analysis)[annotator]),
                self._evidence, self.rate_cut.match, self.bias_review.contested.get(annotator, ""),
            )
        )  # fmt: skip

    # Decisions

    @while_shown
    def _on_blind(self, blind: bool) -> None:
        """Hide names, and the evidence on undecided annotators, or show all."""
        self.session.amend(replace(self.session.scene, blind=blind))
        self._show_notices(self.session.scene)

    def _show_notices(self, scene: Scene) -> None:
        """Show the notices of the run, which name annotators, except in blind mode."""
        self.core.show_notices(" ".join(scene.fusion.notices) if scene.fusion and not scene.blind else "")

    def _on_amended(self) -> None:
        annotator = self.queue.current
        self._draw()
        self._on_ranked()
        self._on_matched()
        self._show_comparisons()
        self.choose(annotator)

    def _exclude_flagged(self) -> None:
        self.bias_review.exclude_flagged(self.flagged)

    def on_decided(self, decision: Decision, contents: Contents) -> None:
        """Show a decision that was stored; after undo, select its annotator."""
        self.remaining.recount()
        if contents.item_of(decision, "pairs") is not None:
            decided, flagged = self.bias_review.decided, self.flagged
            self.bias_review.refresh()
            self.calibration.set_decided(int((self.bias_review.decided != OPEN).sum()))
            if not np.array_equal(decided, self.bias_review.decided):
                self._show_judgement(ranks=not np.array_equal(flagged, self.flagged))
            else:  # a skip, a comment or a bookmark
                self._sort()
            back = contents.brought_back(decision)
            if isinstance(back, BiasSubject) and back.annotator in self.annotators_on_screen():
                self.choose_annotator(back.annotator)

    def _go_in_study(self, step: int) -> bool | None:
        """Continue in the sample or in the queue of all questions; return None to continue in this list."""
        if self.core.sample.active:
            return self.core.sample.go(step)
        if not (self.study_queue.active and self.session.shown and self._filter == ("", "undecided")):
            return None
        scene, current = self.session.scene, self.queue.current
        name = None if current is None else scene.pairs.annotators[current]
        return self.study_queue.go(scene.question.id, name, step)

    def _to_comment(self) -> CommentSubject:
        chosen = self.queue.current
        name = "" if chosen is None else self.annotators_on_screen()[chosen]
        return CommentSubject(of="pairs", name=name)

    def _go_to_sampled(self, sampled: SampledItem, by_hand: bool) -> None:
        self._go_to_annotator(sampled.item, sampled.name, by_hand)

    def _go_to_annotator(self, question: int, name: str, by_hand: bool) -> None:
        """Go to an annotator of any question."""
        if self.navigation.on_screen == question:
            self._select_annotator(name, by_hand)
        else:
            self.navigation.visit(question, partial(self._select_annotator, name, by_hand))

    def _select_annotator(self, name: str, by_hand: bool) -> None:
        self.choose_annotator(name)
        self.bias_review.set_by_hand(by_hand)

    def _go_elsewhere(self, step: int, skipped: bool, _finish: bool) -> bool:
        """Continue with the next question that has undecided annotators; return whether there is one."""
        current = self.session.scene.question.id if self.session.shown else None
        units = self.remaining.units() if self._filter == ("", "undecided") else []
        question = next_unit(units, current, step, skipped=skipped)
        if question is not None:
            self.navigation.show(question)
        return question is not None

    def _on_exhausted(self) -> None:
        self.message.emit(self.core.sample.nothing_left() or self.remaining.nothing_left())

    def _show_judgement(self, *, ranks: bool) -> None:
        """Show decisions, and their effect if the flags changed."""
        if self.session.blind:  # decided annotators are uncovered
            self._draw()
            self._on_ranked()
            self._on_matched()
            self.choose(self.queue.current)
            self.rate_cut.rank(self.flagged)
            return
        self._sort()
        if ranks:
            self._flags_changed()
        else:
            self._show_bias()

    # Fusing

    def show_comparison(self, _runs: Sequence[int]) -> None:
        """Show the table of methods."""
        self.left_tabs.setCurrentWidget(self.methods)


def _settled(review: ReviewState, question: int) -> tuple[Collection[str], Collection[str]]:
    return review.judged(question).keys(), ()


def _evidence(index: PairIndex, annotator: int, watch: Watch) -> Evidence:
    watch(0.0, "gathering evidence")
    return evidence(index, annotator)
