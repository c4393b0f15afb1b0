"""What stands where on the clicks screen; `workspace` says what it does."""

from __future__ import annotations

from PySide6.QtWidgets import QTabWidget, QWidget

from raterscope.algorithms.clicks import CLUSTERERS, DETECTORS
from raterscope.algorithms.clicks.assignment import AssignmentSettings
from raterscope.app.workspaces.screen import WorkspaceScreen
from raterscope.widgets.canvas.image_canvas import ImageCanvas
from raterscope.widgets.panels.ask_list import AskList
from raterscope.widgets.panels.evidence_panel import EvidencePanel
from raterscope.widgets.panels.fuse_panel import FusePanel
from raterscope.widgets.panels.queue_panel import QueueFilter, QueuePanel
from raterscope.widgets.panels.stream_panel import StreamPanel
from raterscope.widgets.plots.counts_plot import CountsPlot
from raterscope.widgets.plots.objective_plot import ObjectivePlot
from raterscope.widgets.plots.reliability_plot import ReliabilityPlot
from raterscope.widgets.plots.stream_curves import StreamCurves
from raterscope.widgets.tables.annotator_table import AnnotatorTable

__all__ = ["ClicksScreen"]

FILTERS = (
    QueueFilter("all", "all"),
    QueueFilter("undecided", "undecided", "Every image is settled: no spot is disputed."),
    QueueFilter("flagged", "flagged", "No image is flagged; F flags the one on screen."),
    QueueFilter("detections", "detections more than", "No image has more detections."),
    QueueFilter("disputed", "disputed more than", "No image has more disputed spots."),
)


class ClicksScreen(WorkspaceScreen):
    """The widgets of the clicks workspace in their frame."""

    queue: QueuePanel
    canvas: ImageCanvas
    evidence: EvidencePanel

    def __init__(self, parent: QWidget | None = None) -> None:
        self.table = AnnotatorTable()
        self.objective = ObjectivePlot()
        self.reliability = ReliabilityPlot()
        self.counts = CountsPlot()
        self.stream, self.curves = StreamPanel(), StreamCurves()
        self.ask = AskList("annotator", "decisions set right", "", "Whom to ask next is told here.")
        self.middle_tabs = QTabWidget()
        self.middle_tabs.addTab(self.table, "Annotators")
        self.middle_tabs.addTab(self.counts, "Counts")
        self.middle_tabs.addTab(self.curves, "Course")
        self.middle_tabs.setFocusProxy(self.table)
        self.right_tabs = QTabWidget()
        self.right_tabs.addTab(self.objective, "Objective")
        self.right_tabs.addTab(self.reliability, "Reliability")
        self.right_tabs.addTab(self.ask, "Ask next")
        super().__init__(
            QueuePanel("Images", FILTERS),
            ImageCanvas(),
            EvidencePanel(),
            (self.middle_tabs, self.right_tabs),
            FusePanel(CLUSTERERS, DETECTORS, AssignmentSettings),
            (300, 590, 320),
            parent,
        )
        self.left_tabs.addTab(self.stream, "Stream")
