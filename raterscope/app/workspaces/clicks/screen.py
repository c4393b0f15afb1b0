"""Layout of the clicks screen; `workspace` implements its behaviour."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtWidgets import QStackedWidget

from raterscope.algorithms.clicks import CLUSTERERS, DETECTORS
from raterscope.algorithms.clicks.voting import AssignmentSettings
from raterscope.app.workspaces.clicks.scene import ClicksSession
from raterscope.app.workspaces.screen import WorkspaceCore, WorkspacePanel, WorkspacePart, WorkspaceScreen
from raterscope.widgets.canvas.image_canvas import ImageCanvas
from raterscope.widgets.figures.count_plots import CountsPlot, StreamCurves
from raterscope.widgets.figures.evaluation_plots import ConvergencePlot, ReliabilityPlot
from raterscope.widgets.layouts import ScrollRegion, TabPages
from raterscope.widgets.panels.card_panels import SpotGrid
from raterscope.widgets.panels.evaluation_panels import CrowdSizePanel, TrustPanel, scrolled
from raterscope.widgets.panels.evidence_panel import EvidencePanel
from raterscope.widgets.panels.fuse_panel import FusePanel
from raterscope.widgets.panels.lists import SuggestionList
from raterscope.widgets.panels.measurement_panels import MeasurePanel, ParasitaemiaPanel
from raterscope.widgets.panels.queue_items import QueueFilter
from raterscope.widgets.panels.queue_panel import NOTED, QueuePanel
from raterscope.widgets.panels.stream_panel import StreamPanel
from raterscope.widgets.tables.annotator_table import AnnotatorTable

TRUST_AXES = ("posterior", "share of structures")
NO_TRUST = "Press Fuse (F5) to see how far to trust the posteriors."
FILTERS = (
    QueueFilter("all", "all"),
    QueueFilter("undecided", "undecided", "Every image is settled: no spot is disputed."),
    QueueFilter("flagged", "flagged", "No image is flagged; F flags the one on screen."),
    *NOTED,
    QueueFilter("detections", "detections over", "No image has more detections."),
    QueueFilter("disputed", "disputed over", "No image has more disputed spots."),
)


IN_FOCUS = "least in focus first"
ORDERS = ("most disputed first", IN_FOCUS, "most saturated first")


class ClicksScreen(WorkspaceScreen):
    """Widgets of the clicks workspace."""

    queue: QueuePanel
    canvas: ImageCanvas
    evidence: EvidencePanel

    def build(self) -> Iterator[None]:
        """Make the widgets."""
        canvas, self.grid, self.pages = ImageCanvas(), SpotGrid(), QStackedWidget()
        self.pages.addWidget(canvas)
        self._grid_page = ScrollRegion(self.grid)
        self.pages.addWidget(self._grid_page)
        self.middle_tabs, self.right_tabs = TabPages(), TabPages()
        yield
        queue = QueuePanel("Images", FILTERS, orders=ORDERS)
        yield
        evidence = EvidencePanel()
        yield
        fuse_panel = FusePanel(CLUSTERERS, DETECTORS, AssignmentSettings)
        yield
        below = (self.middle_tabs, self.right_tabs)
        yield from self.lay_out(queue, self.pages, evidence, below, fuse_panel, (246, 620, 338))
        self.canvas = canvas
        self.show_grid(False)
        self.table = AnnotatorTable()
        self.middle_tabs.addTab(self.table, "Annotators")
        self.middle_tabs.setFocusProxy(self.table)
        self.counts, self.curves = CountsPlot(), StreamCurves()
        self.middle_tabs.addTab(self.counts, "Counts")
        self.middle_tabs.addTab(self.curves, "Replay")
        yield
        self.measure, self.parasitaemia = MeasurePanel(), ParasitaemiaPanel()
        self.middle_tabs.addTab(self.parasitaemia, "Parasitaemia")
        self.middle_tabs.addTab(self.measure, "Measure")
        yield
        self.crowd_size = CrowdSizePanel()
        self.middle_tabs.addTab(scrolled(self.crowd_size, "Crowd size"), "Crowd size")
        yield
        self.trust = TrustPanel(TRUST_AXES, NO_TRUST)
        self.middle_tabs.addTab(self.trust, "Trust")
        yield
        self.objective, self.reliability = ConvergencePlot(), ReliabilityPlot()
        self.ask = SuggestionList(
            "annotator", "corrected decisions", "", "Press Fuse (F5) to see which annotator to ask next."
        )
        self.right_tabs.addTab(self.objective, "Convergence")
        self.right_tabs.addTab(self.reliability, "Reliability")
        self.right_tabs.addTab(self.ask, "Ask next")
        yield
        self.stream = StreamPanel()
        self.left_tabs.addTab(self.stream, "Stream")
        for tabs, name in (
            (self.middle_tabs, "Annotators, counts and measures"),
            (self.right_tabs, "Plots of this image"),
            (self.left_tabs, "History, jobs and stream"),
        ):
            tabs.tabBar().setAccessibleName(name)
        yield

    @property
    def grid_shown(self) -> bool:
        """Whether a grid of spots is shown instead of the image."""
        return self.pages.currentWidget() is self._grid_page

    def show_grid(self, shown: bool) -> None:
        """Show a grid of spots instead of the image, or the image."""
        page = self.grid if shown else self.canvas
        had_focus = self.pages.isVisible() and self.pages.isAncestorOf(self.focusWidget())
        self.pages.setCurrentWidget(self._grid_page if shown else page)
        self.pages.setFocusProxy(page)
        self.setFocusProxy(page)
        if had_focus:
            page.setFocus()


ClicksCore = WorkspaceCore[ClicksScreen, ClicksSession]
ClicksPanel = WorkspacePanel[ClicksScreen, ClicksSession]
ClicksPart = WorkspacePart[ClicksScreen, ClicksSession]
