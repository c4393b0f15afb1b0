"""What stands where on the clicks screen; `workspace` says what it does."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QTabWidget, QVBoxLayout, QWidget

from raterscope.algorithms.clicks import CLUSTERERS, DETECTORS
from raterscope.algorithms.clicks.assignment import AssignmentSettings
from raterscope.widgets.canvas.image_canvas import ImageCanvas
from raterscope.widgets.panels.evidence_panel import EvidencePanel
from raterscope.widgets.panels.fuse_panel import FusePanel
from raterscope.widgets.panels.history_panel import HistoryPanel
from raterscope.widgets.panels.jobs_panel import JobsPanel
from raterscope.widgets.panels.queue_panel import QueuePanel
from raterscope.widgets.plots.objective_plot import ObjectivePlot
from raterscope.widgets.plots.reliability_plot import ReliabilityPlot
from raterscope.widgets.tables.annotator_table import AnnotatorTable

__all__ = ["ClicksScreen"]

QUEUE_WIDTH, EVIDENCE_WIDTH, BOTTOM_HEIGHT = 236, 360, 212


class ClicksScreen(QWidget):
    """The five regions, divided as the expert likes; what Fuse opens lies over them."""

    PARTS = ("whole", "middle", "upper", "bottom")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.queue = QueuePanel()
        self.canvas = ImageCanvas()
        self.evidence = EvidencePanel()
        self.history = HistoryPanel()
        self.job_list = JobsPanel()
        self.table = AnnotatorTable()
        self.objective = ObjectivePlot()
        self.reliability = ReliabilityPlot()
        self.fuse_panel = FusePanel(CLUSTERERS, DETECTORS, AssignmentSettings, parent=self)
        self.fuse_panel.hide()
        self._arrange()

    def _arrange(self) -> None:
        self.left_tabs, self.right_tabs = QTabWidget(), QTabWidget()
        self.left_tabs.addTab(self.history, "History")
        self.left_tabs.addTab(self.job_list, "Jobs")
        self.right_tabs.addTab(self.objective, "Objective")
        self.right_tabs.addTab(self.reliability, "Reliability")
        self.bottom = _splitter(
            Qt.Orientation.Horizontal, (self.left_tabs, self.table, self.right_tabs), (0, 1, 1)
        )
        self.upper = _splitter(Qt.Orientation.Horizontal, (self.canvas, self.evidence), (1, 0))
        self.middle = _splitter(Qt.Orientation.Vertical, (self.upper, self.bottom), (1, 0))
        self.whole = _splitter(Qt.Orientation.Horizontal, (self.queue, self.middle), (0, 1))
        self.whole.setSizes([QUEUE_WIDTH, 1200])
        self.upper.setSizes([840, EVIDENCE_WIDTH])
        self.middle.setSizes([640, BOTTOM_HEIGHT])
        self.bottom.setSizes([210, 660, 340])
        self.setFocusProxy(self.canvas)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.whole)

    def layout_state(self) -> dict[str, QByteArray]:
        """Give how the window is divided, to be remembered."""
        return {name: getattr(self, name).saveState() for name in self.PARTS}

    def restore_layout(self, name: str, state: QByteArray) -> None:
        """Divide the window as it was."""
        getattr(self, name).restoreState(state)

    def toggle_fuse_panel(self) -> None:
        """Open what Fuse opens, beneath its button, or close it."""
        if self.fuse_panel.isVisible():
            self.close_fuse_panel()
        else:
            self.fuse_panel.show()
            self._place_fuse_panel()
            self.fuse_panel.raise_()
            self.fuse_panel.setFocus()

    def close_fuse_panel(self) -> None:
        """Close what Fuse opens; the keys that were its own are the canvas's again."""
        held_keys = _holds(self.fuse_panel, self.fuse_panel.window().focusWidget())
        self.fuse_panel.hide()
        if held_keys:
            self.canvas.setFocus()

    def go_to_region(self, step: int) -> None:
        """Let the keyboard go from one region of the screen to the next, round the end."""
        regions = (self.queue, self.canvas, self.evidence, self.left_tabs, self.table, self.right_tabs)
        focus = self.focusWidget()
        here = next((i for i, region in enumerate(regions) if _holds(region, focus)), 0)
        region = regions[(here + step) % len(regions)]
        takers = (region.focusProxy() or region, *region.findChildren(QWidget))
        for widget in takers:
            if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isVisible() and widget.isEnabled():
                widget.setFocus(Qt.FocusReason.TabFocusReason)
                return

    def _place_fuse_panel(self) -> None:
        width = min(self.fuse_panel.sizeHint().width(), self.width() - 16)
        height = min(self.fuse_panel.sizeHint().height(), self.height() - 16)
        self.fuse_panel.setGeometry(self.width() - width - 8, 8, width, height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the panel at its edge."""
        super().resizeEvent(event)
        if self.fuse_panel.isVisible():
            self._place_fuse_panel()


def _splitter(direction: Qt.Orientation, parts: Sequence[QWidget], stretch: Sequence[int]) -> QSplitter:
    splitter = QSplitter(direction)
    splitter.setHandleWidth(1)
    splitter.setChildrenCollapsible(True)
    for index, part in enumerate(parts):
        splitter.addWidget(part)
        splitter.setStretchFactor(index, stretch[index])
    return splitter


def _holds(region: QWidget, widget: QWidget | None) -> bool:
    return widget is not None and (region is widget or region.isAncestorOf(widget))
