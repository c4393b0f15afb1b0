"""What stands where on the labels screen; `workspace` says what it does."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSplitter, QTabWidget, QVBoxLayout, QWidget

from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.fusion import TruthSettings
from raterscope.app.workspaces.labels.comparing import Comparing
from raterscope.app.workspaces.screen import WorkspaceScreen
from raterscope.widgets import theme
from raterscope.widgets.panels.community_cards import CommunityCards
from raterscope.widgets.panels.drift_panel import DriftPanel
from raterscope.widgets.panels.exclusion_panel import ExclusionPanel
from raterscope.widgets.panels.fuse_panel import FusePanel
from raterscope.widgets.panels.task_grid import TaskGrid
from raterscope.widgets.panels.task_list import TaskList
from raterscope.widgets.panels.task_panel import TaskPanel
from raterscope.widgets.parts import ChoiceBox
from raterscope.widgets.plots.calibration_plot import CalibrationPlot
from raterscope.widgets.plots.confusion_matrix import ConfusionMatrix
from raterscope.widgets.plots.confusion_wall import ConfusionWall
from raterscope.widgets.plots.curves_plot import CurvesPlot
from raterscope.widgets.plots.objective_plot import ObjectivePlot
from raterscope.widgets.plots.participation_bars import ParticipationBars
from raterscope.widgets.plots.similarity_matrix import SimilarityMatrix

__all__ = ["LabelsScreen"]


class LabelsScreen(WorkspaceScreen):
    """The widgets of the labels workspace in their frame."""

    queue: TaskList

    def __init__(self, parent: QWidget | None = None) -> None:
        self.question = ChoiceBox()
        self.question.setAccessibleName("Question")
        self.describe = QPushButton("Answers…")
        self.describe.setToolTip("The order of the labels, what each stands for, and the prior")
        self.wall = ConfusionWall()
        self.cards = CommunityCards()
        self.similarity = SimilarityMatrix()
        self.participation = ParticipationBars()
        self.behind = TaskGrid()
        self.matrix = ConfusionMatrix()
        self.drift = DriftPanel()
        self.exclusion = ExclusionPanel()
        self.task_panel = TaskPanel()
        self.curves = CurvesPlot()
        self.calibration = CalibrationPlot()
        self.progress = ObjectivePlot("bound", "Fuse to see how the answer settles.")
        self.comparing = Comparing()
        people = _split(Qt.Orientation.Vertical, (self.wall, self.cards), (430, 190))
        alike = _split(Qt.Orientation.Horizontal, (self.similarity, self.participation), (520, 300))
        self.middle_tabs = QTabWidget()
        for title, widget in (("Annotators", people), ("Similarity", alike), ("Tasks", self.behind)):
            self.middle_tabs.addTab(widget, title)
        canvas = QWidget()
        column = QVBoxLayout(canvas)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._top())
        column.addWidget(self.middle_tabs, 1)
        canvas.setFocusProxy(self.wall)
        why = _split(Qt.Orientation.Vertical, (self.matrix, self.drift, self.exclusion), (220, 320, 90))
        self.plots = QTabWidget()
        for title, plot in (
            ("ROC", self.curves), ("Calibration", self.calibration), ("Progress", self.progress),
        ):  # fmt: skip
            self.plots.addTab(plot, title)
        super().__init__(
            TaskList(),
            canvas,
            why,
            (self.task_panel, self.plots, self.comparing),
            FusePanel(
                LABELLERS, None, TruthSettings, titles=("Fuse the labels with",), item="question",
                alone="Each question is fused by itself in either way", truth=False,
            ),
            (200, 420, 280, 330),
            parent,
        )  # fmt: skip

    def _top(self) -> QWidget:
        bar = QWidget()
        theme.set_role(bar, "panel")
        row = QHBoxLayout(bar)
        row.setContentsMargins(12, 6, 12, 6)
        row.setSpacing(8)
        row.addWidget(self.question, 1)
        row.addStretch(1)
        row.addWidget(self.describe)
        return bar


def _split(direction: Qt.Orientation, parts: tuple[QWidget, ...], sizes: tuple[int, ...]) -> QSplitter:
    splitter = QSplitter(direction)
    splitter.setHandleWidth(1)
    for part in parts:
        splitter.addWidget(part)
    splitter.setSizes(sizes)
    return splitter
