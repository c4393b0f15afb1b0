"""The pairs workspace: who is biased to a side, at which rate of false alarms, and the ranking without it."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.pairs.data import BoolArray
from raterscope.algorithms.pairs.evidence import Evidence, PairIndex, evidence
from raterscope.algorithms.pairs.fusion import PairPlan
from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.jobs import Jobs
from raterscope.app.pairs.running import Answer, Inputs, fuse_questions, gather, keep
from raterscope.app.review import BiasSubject, Decision
from raterscope.app.workspaces.fusing import FusionWork
from raterscope.app.workspaces.labels.pictures import Pictures
from raterscope.app.workspaces.pairs import view
from raterscope.app.workspaces.pairs.scene import (
    CLEARED,
    FLAGGED,
    OPEN,
    Analysis,
    Cut,
    Ranking,
    Scene,
    analyse,
    cut_at,
    rank,
    read_scene,
)
from raterscope.app.workspaces.pairs.screen import PairsScreen
from raterscope.app.workspaces.runs import Runs
from raterscope.widgets.dialogs.reason import ReasonDialog
from raterscope.widgets.panels.fuse_panel import RunRequest

__all__ = ["PairsWorkspace"]

REASONS = {
    "flag": ("clicks one side always", "clicks one side when in doubt", "answers without looking"),
    "clear": ("agrees with the crowd", "the items lay so", "too few comparisons to say"),
}
HINTS = {
    "flag": "The ranking is made with this annotator's bias beside it.",
    "clear": "The ranking takes this annotator's answers as they are.",
}
STATES = {"flag": FLAGGED, "clear": CLEARED}


class PairsWorkspace(PairsScreen):
    """One screen: which annotator, what speaks for a bias, what the ranking is without it."""

    def __init__(self, document: Document, jobs: Jobs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._jobs = jobs
        self.scene: Scene | None = None
        self.analysis: Analysis | None = None
        self.cut: Cut | None = None
        self.ranked: Ranking | None = None
        self.decided: NDArray[np.int8] = np.empty(0, dtype=np.int8)
        self._evidence: Evidence | None = None
        self._current: int | None = None
        self._asked = self._cuts = self._ranks = self._looks = 0
        self._filter = ("", "undecided")
        self._notices = ""
        self.runs = Runs(document, jobs, self, "pairs")
        self.fusing = self.runs.fusing
        self.pictures = Pictures(document, jobs, self)
        self._connect()
        self._make_actions()
        self._on_replaced()

    def _connect(self) -> None:
        self._document.replaced.connect(self._on_replaced)
        self._document.changed.connect(self._on_changed)
        self._document.decided.connect(self._on_decided)
        self.question.activated.connect(self._on_question)
        for place in (self.queue, self.path, self.sides, self.bars):
            place.chosen.connect(self.choose)
        self.queue.filter_changed.connect(self._on_filter)
        self.bars.rate_changed.connect(self._move_cut)
        self.ranking.pair_chosen.connect(self._on_pair)
        self.evidence.flag_requested.connect(partial(self.judge, "flag"))
        self.evidence.clear_requested.connect(partial(self.judge, "clear"))
        self.evidence.skip_requested.connect(partial(self.judge, "skip"))
        self.ranking.picture_wanted.connect(partial(self._on_picture_wanted, self.ranking))
        self.between.picture_wanted.connect(partial(self._on_picture_wanted, self.between))
        self.evidence.pairs.picture_wanted.connect(partial(self._on_picture_wanted, self.evidence.pairs))
        self.pictures.ready.connect(self._on_picture)
        self.fuse_panel.run_requested.connect(self._on_run_requested)
        self.runs.chosen.connect(self._load)

    def _make_actions(self) -> None:
        described = (
            ("Next annotator", "Tab", partial(self.queue.go, 1)),
            ("Previous annotator", "Shift+Tab", partial(self.queue.go, -1)),
            ("Flag as biased", "F", partial(self.judge, "flag")),
            ("Clear of bias", "C", partial(self.judge, "clear")),
            ("Skip", "S", partial(self.judge, "skip")),
            ("Set flagged annotators aside everywhere", "X", self._set_aside),
            ("Next question", "PgDown", partial(self._step, 1)),
            ("Previous question", "PgUp", partial(self._step, -1)),
            ("Leave the panel", "Esc", self.close_fuse_panel),
        )
        self.add_actions(described, (self.path, self.sides, self.bars, self.queue.view, self.evidence))

    # What is shown

    def current_item(self) -> int | None:
        """Give the study's number of the question on screen."""
        return self._current

    @property
    def flagged(self) -> BoolArray:
        """Who counts as biased: flagged by the draws or by the expert, and not cleared."""
        drawn = np.zeros(len(self.decided), dtype=bool) if self.cut is None else self.cut.flagged
        return np.asarray((drawn & (self.decided != CLEARED)) | (self.decided == FLAGGED), dtype=bool)

    @property
    def _plus(self) -> bool:
        run = None if self.scene is None else self.scene.run
        return True if run is None else bool(run.settings.get("settings", {}).get("plus", True))

    def _on_replaced(self) -> None:
        self.runs.forget()
        self.pictures.forget()
        self._current = None
        self._show(None, None)
        self._on_changed()

    def _on_changed(self) -> None:
        self.runs.show_history()
        contents = self._document.contents
        questions = contents.of("pairs") if contents else ()
        self.question.clear()
        for one in questions:
            self.question.addItem(one.name, one.id)
        numbers = [one.id for one in questions]
        if self._current not in numbers:
            self._current = numbers[0] if numbers else None
        if self._current is not None:
            self.question.setCurrentIndex(numbers.index(self._current))
        self._load()
        self.tell_stale()

    def _on_question(self, place: int) -> None:
        self._current = self.question.itemData(place)
        self._load()

    def _step(self, by: int) -> None:
        there = self.question.currentIndex() + by
        if 0 <= there < self.question.count():
            self.question.setCurrentIndex(there)
            self._on_question(there)

    def _load(self) -> None:
        self._asked += 1
        if self._current is None:
            self._show(None, None)
            return
        run = self.runs.run_of(self._current)
        job = self._document.ask("Reading comparisons", partial(read_scene, self._current, run))
        job.finished.connect(partial(self._on_scene, self._asked))

    def _on_scene(self, asked: int, scene: Scene) -> None:
        if asked != self._asked:
            return
        self.runs.list_runs(scene.question.name, scene.run)
        job = self._jobs.start("Looking at the comparisons", partial(analyse, scene), quiet=True)
        job.finished.connect(partial(self._on_analysis, asked, scene))
        job.failed.connect(self.refused)

    def _on_analysis(self, asked: int, scene: Scene, analysis: Analysis) -> None:
        if asked == self._asked:
            self._show(scene, analysis)

    def _show(self, scene: Scene | None, analysis: Analysis | None) -> None:
        same = self.scene is not None and scene is not None and self.scene.question.id == scene.question.id
        kept = self.queue.current if same else None
        self.scene, self.analysis = scene, analysis
        self.cut = self.ranked = self._evidence = None
        self.pictures.set_tasks({} if scene is None else scene.pictures)
        self._read_decided()
        fusion = None if scene is None else scene.fusion
        self.ranking.show_ranking(None)
        self.between.show_pairs(None)
        for place in (self.ranking, self.between, self.evidence.pairs):
            place.forget_pictures()
        notices = " ".join(fusion.notices) if fusion else ""
        if notices != self._notices:
            self._notices = notices
            self.said.emit(notices)
        self._draw()
        if fusion is not None:
            self._move_cut(fusion.rate)
        self.choose(kept)

    def _draw(self) -> None:
        """Draw everything that is of all annotators."""
        scene, analysis = self.scene, self.analysis
        self._sort()
        if scene is None or analysis is None:
            self.path.show_path(None)
            self.sides.show_sides(None)
            self.bars.show_statistics(None)
        else:
            self.path.show_path(view.path_view(scene, self.cut, self.ranked))
            self.sides.show_sides(view.sides_view(scene, analysis, self.ranked, self.flagged))
            self.bars.show_statistics(view.statistics_view(scene, self.cut, self.flagged, self._plus))
        self._show_status()

    def _show_status(self) -> None:
        self.status_changed.emit(view.status(self.scene, self.cut, self.flagged))

    def _sort(self) -> None:
        scene, analysis = self.scene, self.analysis
        if scene is None or analysis is None:
            self.queue.set_view(None)
            return
        words, which = self._filter
        count = len(scene.pairs.annotators)
        keep = analysis.left + analysis.right + analysis.ties > 0
        behaviour = view.behaviour_shown(scene, self.ranked)
        if which == "undecided":
            keep &= self.decided == OPEN
        elif which == "flagged":
            keep &= self.flagged
        elif which == "decided":
            keep &= self.decided != OPEN
        elif which == "untested":
            keep &= behaviour < 0
        elif which in ("good", "ugly", "bad"):
            keep &= behaviour == ("good", "ugly", "bad").index(which)
        if words:
            part = words.casefold()
            keep &= np.fromiter((part in name.casefold() for name in scene.pairs.annotators), bool, count)
        share = np.zeros(count) if self.cut is None else np.nan_to_num(self.cut.share, nan=-1.0)
        found = np.flatnonzero(keep)
        order = found[np.argsort(-share[found], kind="stable")]
        self.queue.set_view(view.annotators_view(scene, analysis, self.cut, self.ranked, self.decided, order))

    def _on_filter(self, words: str, which: str) -> None:
        self._filter = (words, which)
        self._sort()

    # The cut, and the ranking that follows from it

    def _move_cut(self, rate: float) -> None:
        scene = self.scene
        if scene is None or scene.fusion is None:
            return
        self._cuts += 1
        work = partial(_cut, scene, rate, self._plus)
        job = self._jobs.start("Moving the cut", work, quiet=True)
        job.finished.connect(partial(self._on_cut, self._cuts, self._asked))
        job.failed.connect(self.refused)

    def _on_cut(self, number: int, asked: int, cut: Cut) -> None:
        if number != self._cuts or asked != self._asked or self.scene is None:
            return
        first = self.cut is None
        self.cut = cut
        if first:
            self._draw()
        self._flags_changed()

    def _flags_changed(self) -> None:
        """Show who is flagged now, and rank the items anew."""
        scene = self.scene
        if scene is None or self.cut is None:
            return
        behaviour = view.behaviour_shown(scene, self.ranked)
        self.bars.set_cut(view.rate_cut(self.cut, self.flagged, self._plus))
        self.path.set_cut(view.path_cut(scene, self.cut), behaviour)
        self.sides.set_flagged(self.flagged, behaviour)
        self._show_status()
        self._show_annotator()
        self._ranks += 1
        job = self._jobs.start("Ranking the items", partial(_rank, scene, self.flagged), quiet=True)
        job.finished.connect(partial(self._on_ranked, self._ranks, self._asked))
        job.failed.connect(self.refused)

    def _on_ranked(self, number: int, asked: int, ranking: Ranking) -> None:
        scene = self.scene
        if number != self._ranks or asked != self._asked or scene is None:
            return
        self.ranked = ranking
        behaviour = view.behaviour_shown(scene, ranking)
        self.path.set_cut(view.path_cut(scene, self.cut), behaviour)
        self.sides.set_flagged(self.flagged, behaviour)
        self.ranking.show_ranking(view.ranking_view(scene, ranking))
        self._sort()
        self._show_annotator()

    def _on_pair(self, one: int, other: int) -> None:
        if self.scene is not None and self.analysis is not None:
            self.between.show_pairs(view.between_view(self.scene, self.analysis, one, other))
            self.left_tabs.setCurrentWidget(self.between)

    # One annotator

    def choose(self, annotator: int | None) -> None:
        """Look at an annotator everywhere, or at nobody."""
        for place in (self.queue, self.path, self.sides, self.bars):
            place.select(annotator)
        self._evidence = None
        self._show_annotator()
        self._looks += 1
        index = None if self.analysis is None else self.analysis.index
        if annotator is None or index is None:
            return
        job = self._jobs.start("Gathering evidence", partial(_evidence, index, annotator), quiet=True)
        job.finished.connect(partial(self._on_evidence, self._looks))

    def _on_evidence(self, look: int, found: Evidence) -> None:
        if look == self._looks:
            self._evidence = found
            self._show_annotator()

    def _show_annotator(self) -> None:
        scene, analysis, annotator = self.scene, self.analysis, self.queue.current
        if scene is None or analysis is None or annotator is None:
            self.evidence.show_annotator(None)
            self.evidence.over_time.show_course(None)
            self.evidence.pairs.show_pairs(None)
            return
        behaviour = int(view.behaviour_shown(scene, self.ranked)[annotator])
        found = self._evidence
        self.evidence.show_annotator(
            view.bias_view(
                scene, analysis, annotator, self.cut, bool(self.flagged[annotator]),
                int(self.decided[annotator]), behaviour, found,
            )
        )  # fmt: skip
        self.evidence.over_time.show_course(
            None if found is None else view.course_view(found.time, behaviour)
        )
        self.evidence.pairs.show_pairs(None if found is None else view.speaking_view(scene, found))

    def _on_picture_wanted(self, place: QObject, item: int) -> None:
        picture = self.pictures.get(item)
        if picture is not None or self.pictures.lacks(item):
            place.set_picture(item, picture)  # type: ignore[attr-defined]

    def _on_picture(self, item: int, picture: QImage | None) -> None:
        for place in (self.ranking, self.between, self.evidence.pairs):
            place.set_picture(item, picture)

    # What the expert does

    def judge(self, verb: str) -> None:
        """Flag, clear or skip the annotator looked at; the first two with a reason."""
        scene, annotator = self.scene, self.queue.current
        if scene is None or annotator is None:
            self.queue.go(1)
            return
        name = scene.pairs.annotators[annotator]
        if verb == "skip":
            self._record(verb, name, "")
            return
        dialog = ReasonDialog(name, REASONS[verb], self, act=verb.capitalize(), hint=HINTS[verb])
        dialog.accepted.connect(partial(self._on_reason, verb, name, dialog))
        dialog.open()

    def _on_reason(self, verb: str, name: str, dialog: ReasonDialog) -> None:
        self._record(verb, name, dialog.reason)

    def _record(self, verb: str, name: str, reason: str) -> None:
        scene = self.scene
        if scene is not None:
            # Where those decided leave the list, the next one is found while this one is still in it.
            self.queue.go(1)
            self._document.record(
                Decision(
                    verb=verb, item=scene.question.id, subject=BiasSubject(annotator=name), reason=reason,
                    run=None if scene.run is None else scene.run.id,
                )
            )  # fmt: skip

    def _set_aside(self) -> None:
        """Leave the flagged out of the fusions of every kind in this study."""
        scene, contents = self.scene, self._document.contents
        if scene is None or contents is None:
            return
        names = tuple(
            name
            for name, flagged in zip(scene.pairs.annotators, self.flagged.tolist(), strict=True)
            if flagged and name not in contents.review.excluded
        )
        if not names:
            self.said.emit("Nobody is flagged who is not set aside already.")
            return
        self._document.record(Decision(verb="exclude", annotators=names, reason="biased to a side"))

    def _read_decided(self) -> None:
        scene, contents = self.scene, self._document.contents
        people = 0 if scene is None else len(scene.pairs.annotators)
        self.decided = np.zeros(people, dtype=np.int8)
        if scene is None or contents is None:
            return
        judged = contents.review.judged(scene.question.id)
        for at, name in enumerate(scene.pairs.annotators if judged else ()):
            if name in judged:
                self.decided[at] = STATES[judged[name].verb]

    def _on_decided(self, decision: Decision) -> None:
        contents = self._document.contents
        if contents is None:
            return
        self.runs.show_history()
        if contents.item_of(decision, "pairs") is not None:
            self._read_decided()
            self._sort()
            self._flags_changed()
        self.tell_stale()

    # Fusing

    def cancel_fusing(self) -> None:
        """Stop the fusion under way."""
        self.fusing.cancel()

    def tell_stale(self) -> None:
        """Say whether it is time to fuse again, and why."""
        self.runs.tell_stale()

    def _on_run_requested(self, wanted: RunRequest) -> None:
        plan = PairPlan(wanted.algorithm, wanted.settings)
        work = FusionWork("pairs", "question", gather, partial(_fuse, plan), keep)
        self.runs.start(wanted, work, self._current)


def _fuse(plan: PairPlan, inputs: Inputs, watch: Watch) -> Answer:
    return fuse_questions(inputs, plan, watch)


def _cut(scene: Scene, rate: float, plus: bool, watch: Watch) -> Cut:
    watch(0.0, "moving the cut")
    assert scene.fusion is not None
    return cut_at(scene.fusion, rate, plus)


def _rank(scene: Scene, flagged: BoolArray, watch: Watch) -> Ranking:
    return rank(scene, flagged, watch)


def _evidence(index: PairIndex, annotator: int, watch: Watch) -> Evidence:
    watch(0.0, "gathering evidence")
    return evidence(index, annotator)
