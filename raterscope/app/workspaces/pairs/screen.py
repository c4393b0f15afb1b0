"""Layout of the pairs screen; `workspace` holds its behaviour."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTabWidget

from raterscope.algorithms.pairs.catalogue import PATHS
from raterscope.app.workspaces.core import WorkspaceCore, WorkspacePart
from raterscope.app.workspaces.pairs.scene import PairsSession
from raterscope.app.workspaces.screen import WorkspaceScreen, split_widgets
from raterscope.widgets.figures.bias_path import BiasPath
from raterscope.widgets.figures.knockoff_bars import KnockoffBars
from raterscope.widgets.figures.position_bias import SideCounts
from raterscope.widgets.figures.ranking_shift import RankingShift
from raterscope.widgets.panels.bias_panel import BiasPanel
from raterscope.widgets.panels.evaluation_panels import TrustPanel
from raterscope.widgets.panels.fuse_panel import FusePanel
from raterscope.widgets.panels.pair_browser import AnnotatorList, PairGrid
from raterscope.widgets.panels.task_content import TaskContentView
from raterscope.widgets.parts import ChoiceBox
from raterscope.widgets.tables.comparison_table import ComparisonTable, Measure
from raterscope.widgets.tables.ranking_table import RankingTable

NO_TRUST = "Press Fuse (F5) to see how often the test is wrong on these comparisons."

NO_COMPARISON = "Select a comparison in the list at the right to see it here."

NOTHING = (
    "Press Fuse (F5) to list runs, the annotators that each flags, and how they differ from the run shown."
)


def _tau(value: float, _low: float, _high: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else "–"


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
        self.middle_tabs = QTabWidget()
        self.middle_tabs.addTab(middle, "Biases")
        yield
        self.ranking_table = RankingTable()
        self.content = TaskContentView(title="Comparison", back="biases", nothing=NO_COMPARISON)
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
        self.question = ChoiceBox()
        self.question.setAccessibleName("Question")
        self.question.setMinimumContentsLength(8)
        self.queue.add_above(self.question)
        self.left_tabs.setCurrentWidget(self.history)
        self.left_tabs.tabBar().setAccessibleName("Comparisons, methods, trust, history and jobs")
        self.put_first_below()
        yield


PairsCore = WorkspaceCore[PairsScreen, PairsSession]
PairsPart = WorkspacePart[PairsScreen, PairsSession]
