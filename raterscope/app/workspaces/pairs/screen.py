"""Layout of the pairs screen, with its table of runs and the selected comparison as annotators saw it.

`workspace` implements the behaviour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt

from raterscope.algorithms.pairs.catalogue import PATHS
from raterscope.algorithms.pairs.data import BoolArray, PairFusion
from raterscope.algorithms.pairs.ranking import ranks
from raterscope.algorithms.pairs.selection import t_test_flags
from raterscope.algorithms.progress import Watch
from raterscope.app.kinds.pairs.runs import compare_with_truth
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.labels import read_contents, split_comparison
from raterscope.app.study.pairs import true_ranking_of
from raterscope.app.workspaces.layout import split_widgets
from raterscope.app.workspaces.pairs.scene import PairsSession, Scene
from raterscope.app.workspaces.screen import WorkspaceCore, WorkspacePart, WorkspaceScreen
from raterscope.app.workspaces.task_pictures import ContentTab, load_picture
from raterscope.text import counted, with_minus
from raterscope.widgets.figures.bias_path import BiasPath
from raterscope.widgets.figures.position_bias import KnockoffBars, SideCounts
from raterscope.widgets.figures.ranking_shift import RankingShift
from raterscope.widgets.layouts import TabPages
from raterscope.widgets.panels.annotator_card import BiasPanel
from raterscope.widgets.panels.evaluation_panels import TrustPanel
from raterscope.widgets.panels.fuse_panel import FusePanel
from raterscope.widgets.panels.pair_browser import AnnotatorList, PairGrid
from raterscope.widgets.panels.task_content import TaskContent, TaskContentView
from raterscope.widgets.parts import ChoiceBox
from raterscope.widgets.tables.comparison_tables import (
    NOT_KNOWN,
    ComparisonRow,
    ComparisonTable,
    Measure,
    RankingTable,
)

NO_TRUST = "Press Fuse (F5) to see how often the test is wrong on these comparisons."

NO_COMPARISON = "Select a comparison in the list at the right to see it here."

NOTHING = (
    "Press Fuse (F5) to list runs, the annotators that each flags, and how they differ from the run shown."
)


def _tau(value: float, _low: float, _high: float) -> str:
    return with_minus(f"{value:.3f}") if np.isfinite(value) else "–"


def _many(value: float, _low: float, _high: float) -> str:
    return f"{value:,.0f}" if np.isfinite(value) else "–"


MEASURES = (
    Measure("flagged", "Annotators that the run flags, before you decided", "none", _many),
    Measure("more", "Of those, flagged here but not in the run shown", "none", _many),
    Measure("fewer", "Flagged in the run shown but not here", "none", _many),
    Measure("moved", "Items whose corrected rank differs from the run shown", "none", _many),
    Measure(
        "tau before",
        "Kendall's tau of the ranking of all answers with the imported ground truth",
        "none",
        _tau,
    ),
    Measure("tau", "Kendall's tau of the corrected ranking with the imported ground truth", "none", _tau),
)


class PairsScreen(WorkspaceScreen):
    """Widgets of the pairs workspace."""

    queue: AnnotatorList
    evidence: BiasPanel

    CANVAS_SCROLLS = True

    def build(self) -> Iterator[None]:
        """Make the widgets."""
        self.path, self.sides, self.bars = BiasPath(), SideCounts(), KnockoffBars()
        above = split_widgets(Qt.Orientation.Horizontal, (self.path, self.sides), (520, 320))
        middle = split_widgets(Qt.Orientation.Vertical, (above, self.bars), (390, 210))
        self.middle_tabs = TabPages()
        self.middle_tabs.addTab(middle, "Biases")
        yield
        self.ranking_table = RankingTable()
        self.content = TaskContentView(title="Comparison", back="biases", nothing=NO_COMPARISON, sounds=False)
        self.middle_tabs.addTab(self.ranking_table, "Ranking and wins")
        self.middle_tabs.addTab(self.content, "Comparison")
        self.middle_tabs.setFocusProxy(self.bars)
        self.middle_tabs.tabBar().setAccessibleName("Biases, ranking, comparison")
        yield
        queue, evidence, self.ranking = AnnotatorList(), BiasPanel(), RankingShift()
        yield
        fuse_panel = FusePanel(
            PATHS, titles=("Find biased annotators by",), item="question", all_compared=True
        )
        yield
        yield from self.lay_out(queue, self.middle_tabs, evidence, (self.ranking,), fuse_panel, (680, 520))
        self.comparisons = PairGrid(of_items=True)
        self.methods = ComparisonTable(MEASURES, NOTHING)
        self.trust = TrustPanel(("p value", "share below"), NO_TRUST)
        self.left_tabs.insertTab(0, self.comparisons, "Comparisons")
        self.left_tabs.insertTab(1, self.methods, "Methods")
        self.left_tabs.insertTab(2, self.trust, "Trust")
        self.question = ChoiceBox("Question", letters=8)
        self.queue.add_above(self.question)
        self.left_tabs.setCurrentWidget(self.history)
        self.left_tabs.tabBar().setAccessibleName("Comparisons, methods, trust, history and jobs")
        self.put_first_below()
        yield


PairsCore = WorkspaceCore[PairsScreen, PairsSession]
PairsPart = WorkspacePart[PairsScreen, PairsSession]


MAX_RUNS = 12
RULE_WORDS = {"flip": "flip test", "knockoffs": "knockoffs"}


_OF_FLAGS = 3
"""Number of measures of flags; the other measures concern a ranking."""


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
    """Table of runs, filled while it is visible."""

    def __init__(self, core: PairsCore) -> None:
        super().__init__(core)
        self._table = core.screen.methods
        self._task = LatestTask()
        self._due = False
        self._table.header.set_title("Methods")
        self._table.run_chosen.connect(core.runs.choose)
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
        if not self._due or not self._table.isVisible():
            return
        scene = self._session.scene
        if scene.run is None:
            return
        self._due = False
        question = scene.question.id
        runs = [run.id for run in self._document.runs_of("pairs") if question in run.items][-MAX_RUNS:]
        if scene.run.id not in runs:
            runs = [scene.run.id, *runs[1:]]
        job = self._document.read_beside("Reading runs", partial(_read, question, runs), quiet=True)
        self._task.follow(job, partial(self._on_read, scene.run.id))

    def _on_read(self, run_shown: int, outcomes: Sequence[Outcome]) -> None:
        runs = counted(len(outcomes), "run")
        self._table.set_rows(rows_of(outcomes, run_shown), f"{runs}, before your decisions")


def rows_of(outcomes: Sequence[Outcome], run_shown: int) -> tuple[ComparisonRow, ...]:
    """Return the rows: the latest run first, and the t test on the run shown last."""
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
    text = f"\n{run.started.astimezone():%H:%M}, q = {outcome.rate:.2f}{shown}"
    return ComparisonRow(run.id, title, text, _figures(outcome, flagged, reference, flagged_shown))


def _figures(
    outcome: Outcome, flagged: BoolArray, reference: Outcome, flagged_shown: NDArray[np.int32]
) -> tuple[tuple[float, float, float], ...]:
    flagged_here = outcome.annotator_ids[flagged]
    both = len(np.intersect1d(flagged_here, flagged_shown))
    # Items are numbered by first appearance: new items come last.
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


GAP = 0.05
"""Gap between two pictures, as a share of their width."""


@dataclass(frozen=True)
class _ReadComparison:
    content: TaskContent
    paths: tuple[Path, ...]


class ComparisonContents(PairsPart):
    """Large view of the selected comparison, while its tab in the centre is open."""

    def __init__(self, core: PairsCore) -> None:
        super().__init__(core)
        self._view = core.screen.content
        self.tab = ContentTab(core.screen.middle_tabs, self._view)
        self._comparison: int | None = None
        self._drawn: int | None = None
        self._content: TaskContent | None = None
        self._reading, self._loading = LatestTask(), LatestTask()
        for grid in (core.screen.evidence.pairs, core.screen.comparisons):
            grid.chosen.connect(self.show)
            grid.listed.connect(self.show)
        core.session.scene_changed.connect(self._clear)
        core.session.cleared.connect(self._clear)
        core.session.scene_amended.connect(self._draw_again)
        core.screen.middle_tabs.currentChanged.connect(self._draw)

    def show(self, comparison: int) -> None:
        """Show a comparison."""
        self._comparison = comparison
        self._draw()

    def _clear(self) -> None:
        self._reading.cancel()
        self._loading.cancel()
        self._comparison = self._drawn = self._content = None
        self._view.show_content(None)

    def _draw_again(self) -> None:
        self._drawn = None
        self._draw()

    @while_shown
    def _draw(self, _tab: int = 0) -> None:
        if not self.tab.open or self._comparison in (None, self._drawn):
            return
        assert self._comparison is not None
        self._drawn = self._comparison
        work = partial(_read_comparison, self._session.scene, self._comparison)
        self._reading.follow(self._document.ask("Reading the comparison", work), self._on_read)

    def _on_read(self, read: _ReadComparison) -> None:
        self._content = read.content
        self._loading.cancel()
        self._view.show_content(read.content)
        if read.paths:
            job = self._jobs.start("Reading pictures", partial(_load, read.paths), quiet=True)
            self._loading.follow(job, self._on_loaded)

    def _on_loaded(self, pixels: NDArray[np.uint8] | None) -> None:
        if self._content is not None:
            self._content = replace(self._content, has_picture=pixels is not None, pixels=pixels)
            self._view.show_content(self._content)


def _read_comparison(scene: Scene, comparison: int, study: Study, watch: Watch) -> _ReadComparison:
    watch(0.0, "reading the comparison")
    pairs = scene.pairs
    sides = int(pairs.left[comparison]), int(pairs.right[comparison])
    names = [pairs.items[item] for item in sides]
    choice = float(pairs.choice[comparison])
    chosen = f"preferred {names[choice < 0]}" if choice else "had no preference"
    annotator = scene.names[int(pairs.annotator[comparison])]
    number = -1 if pairs.task is None else int(pairs.task[comparison])
    task = "" if number < 0 else scene.tasks[number]
    stored = read_contents(study, scene.question.id, task) if task else {}
    texts, *answers = split_comparison(stored, names[0], names[1], set(pairs.items))
    if not any(answers):
        answers = ["\n\n".join(read_contents(study, scene.question.id, name).values()) for name in names]
    heads = tuple(
        f"{letter}: {name}{', preferred' if choice * sign > 0 else ''}"
        for letter, name, sign in zip("AB", names, (1, -1), strict=True)
    )
    if any(answers):
        texts |= dict(zip(heads, answers, strict=True))
    paths = tuple(study.locate(scene.pictures[item]) for item in sides if item in scene.pictures)
    located = tuple(path for path in paths if path is not None)
    both = located if len(located) == 2 and not texts else ()
    shown = f"A: {names[0]}, B: {names[1]}" if both else ""
    title = " | ".join(filter(None, (task, shown, f"{annotator} {chosen}")))
    if not texts and not both:
        texts = dict(zip(heads, names, strict=True))
    return _ReadComparison(TaskContent(title, bool(both), None, texts, (heads[0], heads[1])), both)


def _load(paths: tuple[Path, ...], watch: Watch) -> NDArray[np.uint8] | None:
    """Read two pictures, and put them side by side; None if one cannot be read."""
    pictures = [load_picture(path, watch) for path in paths]
    if any(picture is None for picture in pictures):
        return None
    coloured = [
        np.repeat(picture[..., None], 3, axis=2) if picture.ndim == 2 else picture[..., :3]
        for picture in pictures
        if picture is not None
    ]
    height = max(len(picture) for picture in coloured)
    width = sum(picture.shape[1] for picture in coloured)
    gap = max(round(GAP * width), 1)
    pixels = np.zeros((height, width + gap, 3), dtype=np.uint8)
    left = 0
    for picture in coloured:
        top = (height - len(picture)) // 2
        pixels[top : top + len(picture), left : left + picture.shape[1]] = picture
        left += picture.shape[1] + gap
    return pixels
