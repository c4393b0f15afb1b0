"""Runs of a question compared: flagged annotators, and differences from the ranking shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs.catalogue import PATHS
from raterscope.algorithms.pairs.data import BoolArray, PairFusion
from raterscope.algorithms.pairs.ranking import ranks
from raterscope.algorithms.pairs.selection import t_test_flags
from raterscope.algorithms.progress import Watch
from raterscope.app.kinds.pairs.runs import compare_with_truth
from raterscope.app.session import LatestTask
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.pairs import true_ranking_of
from raterscope.app.workspaces.pairs.scene import Scene
from raterscope.app.workspaces.pairs.screen import MEASURES, PairsCore, PairsPart
from raterscope.text import count
from raterscope.widgets.tables.comparison_table import NOT_KNOWN, ComparisonRow

MOST_RUNS = 12
RULE_WORDS = {"flip": "flip test", "knockoffs": "knockoffs"}


_OF_FLAGS = 3
"""Number of measures of flags; the others are of a ranking."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of a run for one question."""

    run: RunEntry
    rate: float
    rule: str
    annotator_ids: NDArray[np.int32]  # (p,): the annotators' numbers in the study
    # flagged, test: (p,): flags by the run's rule, and by the t test with Benjamini-Hochberg at the same rate
    flagged: BoolArray
    test: BoolArray
    rank: NDArray[np.int32]  # (n,): corrected ranks of the items; 0 for items never compared
    # (before, corrected): Kendall's tau with the ground-truth ranking; NaN without one
    tau: tuple[float, float]


class RunComparison(PairsPart):
    """Fills the table of runs while it is visible."""

    def __init__(self, core: PairsCore) -> None:
        super().__init__(core)
        self._table = core.screen.methods
        self._task = LatestTask()
        self._due = False
        self._table.header.set_title("Methods")
        self._table.run_chosen.connect(self._on_chosen)
        core.session.scene_changed.connect(self._on_scene)
        core.session.cleared.connect(self._clear)

    def _clear(self) -> None:
        self._task.cancel()
        self._due = False
        self._table.set_rows(())

    def _on_scene(self, scene: Scene) -> None:
        if scene.run is None:
            self._clear()
        else:
            self._task.cancel()
            self._due = True
            self.read_runs()

    def read_runs(self) -> None:
        """Read the runs once, if the table is visible."""
        contents = self._document.contents
        if not self._due or contents is None or not self._table.isVisible():
            return
        scene = self._session.scene
        if scene.run is None:
            return
        self._due = False
        question = scene.question.id
        runs = [run.id for run in contents.runs_of("pairs") if question in run.items][-MOST_RUNS:]
        if scene.run.id not in runs:
            runs = [scene.run.id, *runs[1:]]
        job = self._document.read_beside("Reading runs", partial(_read, question, runs), quiet=True)
        self._task.follow(job, partial(self._on_read, scene.run.id))

    def _on_read(self, run_shown: int, outcomes: Sequence[Outcome]) -> None:
        self._table.set_rows(rows_of(outcomes, run_shown), count(len(outcomes), "run"))

    def _on_chosen(self, key: object) -> None:
        if isinstance(key, int):
            self._core.runs.choose(key)


def rows_of(outcomes: Sequence[Outcome], run_shown: int) -> tuple[ComparisonRow, ...]:
    """Return the rows: the latest run first, and last the t test on the run shown."""
    reference = next((outcome for outcome in outcomes if outcome.run.id == run_shown), None)
    if reference is None:
        return ()
    flagged = reference.annotator_ids[reference.flagged]
    rows = [_row(outcome, outcome.flagged, reference, flagged) for outcome in reversed(outcomes)]
    tip = "Each bias tested separately, at the rate of the run shown"
    figures = _figures(reference, reference.test, reference, flagged)[:_OF_FLAGS]
    unknown = (NOT_KNOWN,) * (len(MEASURES) - _OF_FLAGS)
    return (*rows, ComparisonRow(None, "t test", "\nBenjamini-Hochberg", (*figures, *unknown), tip))


def _row(
    outcome: Outcome, flagged: BoolArray, reference: Outcome, flagged_shown: NDArray[np.int32]
) -> ComparisonRow:
    run = outcome.run
    title = PATHS[run.algorithm].title if run.algorithm in PATHS else run.algorithm
    title = f"{RULE_WORDS[outcome.rule]}, {title}"
    shown = ", shown" if outcome is reference else ""
    words = f"\n{run.started.astimezone():%H:%M}, q = {outcome.rate:.2f}{shown}"
    return ComparisonRow(run.id, title, words, _figures(outcome, flagged, reference, flagged_shown))


def _figures(
    outcome: Outcome, flagged: BoolArray, reference: Outcome, flagged_shown: NDArray[np.int32]
) -> tuple[tuple[float, float, float], ...]:
    flagged_here = outcome.annotator_ids[flagged]
    both = len(np.intersect1d(flagged_here, flagged_shown))
    # Items are numbered by first appearance: later ones come last.
    items = min(len(outcome.rank), len(reference.rank))
    moved = int((outcome.rank[:items] != reference.rank[:items]).sum())
    values = (len(flagged_here), len(flagged_here) - both, len(flagged_shown) - both, moved, *outcome.tau)
    return tuple((float(value), np.nan, np.nan) for value in values)


def _read(question: int, runs: Sequence[int], study: Study, watch: Watch) -> list[Outcome]:
    outcomes = []
    for done, run in enumerate(runs):
        watch(done / len(runs), "reading runs")
        fusion, entry = study.runs.result(run, question), study.runs.get(run)
        if fusion is not None:
            outcomes.append(
                Outcome(
                    run=entry,
                    rate=fusion.rate,
                    rule=fusion.rule,
                    annotator_ids=study.comparison_set(question, entry.imported).annotator_ids,
                    flagged=fusion.flagged,
                    test=t_test_flags(fusion),
                    rank=ranks(fusion.corrected, fusion.component),
                    tau=_tau_of(study, question, entry, fusion),
                )
            )
    return outcomes


def _tau_of(study: Study, question: int, entry: RunEntry, fusion: PairFusion) -> tuple[float, float]:
    truth = true_ranking_of(study, question, study.comparison_set(question, entry.imported).items)
    if truth is None:
        return np.nan, np.nan
    agreement = compare_with_truth(fusion.score, fusion.corrected, fusion.component, truth)
    return agreement.original.tau, agreement.corrected.tau
