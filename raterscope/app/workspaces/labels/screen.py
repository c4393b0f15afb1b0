"""Layout of the labels screen; `workspace` holds its behaviour."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QTabWidget, QWidget

from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.fusion import QuestionSettings
from raterscope.app.workspaces.core import WorkspaceCore, WorkspacePart
from raterscope.app.workspaces.labels.method_table import MethodTable
from raterscope.app.workspaces.labels.scene import LabelsSession
from raterscope.app.workspaces.screen import WorkspaceScreen, split_widgets
from raterscope.widgets import theme
from raterscope.widgets.figures.community_flow import CommunityFlow
from raterscope.widgets.figures.community_plots import CommunityTriangles, ParticipationBars
from raterscope.widgets.figures.confusion_wall import ConfusionWall
from raterscope.widgets.figures.evaluation_plots import ConvergencePlot, CurvesPlot, DecisionPlot
from raterscope.widgets.figures.similarity_matrix import SimilarityMatrix
from raterscope.widgets.layouts import horizontal
from raterscope.widgets.panels.card_panels import CommunityCards, TaskGrid, TaskList
from raterscope.widgets.panels.confusion_panel import ConfusionPanel
from raterscope.widgets.panels.drift_panel import DriftPanel
from raterscope.widgets.panels.evaluation_panels import CostPanel, FoldsPanel, TrustPanel, scrolled
from raterscope.widgets.panels.exclusion_panel import ExclusionPanel
from raterscope.widgets.panels.fuse_panel import FusePanel
from raterscope.widgets.panels.lists import AskList
from raterscope.widgets.panels.task_content import TaskContentView
from raterscope.widgets.panels.task_panel import TaskPanel
from raterscope.widgets.parts import ChoiceBox
from raterscope.widgets.theme import set_lengths

NO_VOTES = "Press Fuse (F5) to see which tasks need another vote, and which annotator to ask."
NO_TRUST = "Press Fuse (F5) to see how far to trust the consensus."

EXCLUDING = [240, 0, 420]
LEAST_MATRIX = 176
"""Smallest height at which the rates of four classes are readable."""
BOTH_FROM = 560
"""From this height on the confusion matrix stays visible beside the preview of an exclusion."""


class LabelsScreen(WorkspaceScreen):
    """Widgets of the labels workspace."""

    queue: TaskList

    CANVAS_SCROLLS = True

    def build(self) -> Iterator[None]:
        """Make the widgets."""
        self.middle_tabs = QTabWidget()
        self.matrix, self.drift = ConfusionPanel(), DriftPanel()
        yield
        self.exclusion = ExclusionPanel()
        set_lengths(self.matrix, minimumHeight=LEAST_MATRIX)
        self._sizes_before: list[int] | None = None
        self.evidence_split = split_widgets(
            Qt.Orientation.Vertical, (self.matrix, self.drift, self.exclusion)
        )
        yield
        queue, self.task_panel = TaskList(), TaskPanel()
        yield
        fuse_panel = FusePanel(
            LABELLERS, None, QuestionSettings, titles=("Fuse the labels with",), item="question",
            all_compared=True,
        )  # fmt: skip
        yield
        yield from self.lay_out(
            queue, self.middle_tabs, self.evidence_split, (self.task_panel,), fuse_panel, (1, 1)
        )
        self.wall, self.cards = ConfusionWall(), CommunityCards()
        annotator_split = split_widgets(Qt.Orientation.Vertical, (self.wall, self.cards))
        self.middle_tabs.addTab(annotator_split, "Annotators")
        yield
        self.content = TaskContentView()
        self.middle_tabs.addTab(self.content, "Task")
        yield
        self.similarity, self.participation = SimilarityMatrix(), ParticipationBars()
        similarity_split = split_widgets(Qt.Orientation.Horizontal, (self.similarity, self.participation))
        self.middle_tabs.addTab(similarity_split, "Similarity")
        self.flow, self.triangles = CommunityFlow(), CommunityTriangles()
        self.middle_tabs.addTab(self.flow, "Over time")
        self.middle_tabs.addTab(self.triangles, "Triangles")
        yield
        self.cell_tasks = TaskGrid()
        self.middle_tabs.addTab(self.cell_tasks, "Tasks")
        yield
        self.folds = FoldsPanel()
        self.middle_tabs.addTab(scrolled(self.folds, "Cross-validation"), "Cross-validation")
        yield
        self.cost = CostPanel()
        self.middle_tabs.addTab(scrolled(self.cost, "Cost"), "Cost")
        yield
        self.describe = QPushButton("Answers…")
        theme.set_role(self.describe, "link")
        self.describe.setToolTip("Order of the labels, their classes, and the prior")
        self.middle_tabs.setCornerWidget(_beside_tabs(self.describe))
        self.middle_tabs.setFocusProxy(self.wall)
        self.question = ChoiceBox()
        self.question.setAccessibleName("Question")
        self.question.setMinimumContentsLength(8)
        self.queue.add_above(self.question)
        yield
        self.method_table = MethodTable()
        self.curves = CurvesPlot("Import known truths to see ROC curves.")
        self.trust = TrustPanel(("posterior", "share right"), NO_TRUST)
        yield
        self.ask = AskList("vote", "expected information", "bit", NO_VOTES, budgeted=True)
        self.decisions = DecisionPlot()
        self.progress = ConvergencePlot("bound", "Press Fuse (F5) to see convergence.")
        for index, (title, plot) in enumerate(
            (
                ("Methods", self.method_table),
                ("ROC", self.curves),
                ("Trust", self.trust),
                ("Ask next", self.ask),
                ("Rates", self.decisions),
                ("Convergence", self.progress),
            )
        ):
            self.left_tabs.insertTab(index, plot, title)
        self.left_tabs.setCurrentIndex(0)
        self.middle_tabs.tabBar().setAccessibleName("Views of the annotators")
        self.put_first_below()
        for index in (0, 1):
            self.bottom.setStretchFactor(index, 1)
        self.divisions |= {
            annotator_split: [380, 240],
            similarity_split: [520, 300],
            self.evidence_split: [264, 300, 52],
            self.bottom: [600, 600],
        }
        yield

    def make_room(self, needed: bool) -> None:
        """Give the preview of an exclusion the room of the widgets above it, or give it back."""
        if needed and self._sizes_before is None:
            self._sizes_before = self.evidence_split.sizes()
            self.drift.hide()
            self.matrix.setVisible(self.evidence_split.height() >= BOTH_FROM)
            self.evidence_split.setSizes(EXCLUDING)
        elif not needed and self._sizes_before is not None:
            self.drift.show()
            self.matrix.show()
            self.evidence_split.setSizes(self._sizes_before)
            self._sizes_before = None


LabelsCore = WorkspaceCore[LabelsScreen, LabelsSession]
LabelsPart = WorkspacePart[LabelsScreen, LabelsSession]


def _beside_tabs(widget: QWidget) -> QWidget:
    bar = QWidget()
    horizontal(widget, inside=bar, margins=(8, 0, 12, 0))
    return bar
