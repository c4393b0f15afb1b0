"""Layout of the masks screen; `workspace` holds its behaviour."""

from __future__ import annotations

from PySide6.QtWidgets import QTabWidget, QVBoxLayout, QWidget

from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.app.kinds.masks.methods import FIGURES
from raterscope.app.kinds.masks.rater_clusters import BASES
from raterscope.app.workspaces.core import WorkspaceCore, WorkspacePanel, WorkspacePart
from raterscope.app.workspaces.masks.maps import MapBar
from raterscope.app.workspaces.masks.scene import MasksSession
from raterscope.app.workspaces.screen import WorkspaceScreen
from raterscope.widgets.figures.agreement_matrix import AgreementMatrix
from raterscope.widgets.figures.course_plots import ConvergencePlot
from raterscope.widgets.figures.dendrogram import Dendrogram
from raterscope.widgets.panels.evaluation_panels import MethodsPanel, TrustPanel
from raterscope.widgets.panels.fuse_panel import FusePanel
from raterscope.widgets.panels.queue_panel import QueuePanel
from raterscope.widgets.panels.rater_panels import AlternativesPanel, LocalWeight, RaterTreePanel
from raterscope.widgets.panels.region_panel import RegionPanel
from raterscope.widgets.parts import rule
from raterscope.widgets.tables.model_table import ModelTable
from raterscope.widgets.tables.rater_table import RaterTable
from raterscope.widgets.volume.volume_view import VolumeView

__all__ = ["BOUND", "MasksCore", "MasksPanel", "MasksPart", "MasksScreen"]

NO_TRUST = "Press Fuse (F5) to see how far to trust the maps and bands."
_METHODS = {name: (one.title, one.summary) for name, one in FUSERS.items()}
_TICKED = ("laplace", "student", "gaussian", "staple", "majority")
"""Methods that are compared unless others are chosen: those that take seconds on a volume."""
BOUND = "Fuse to see how the bound rises."


class MasksScreen(WorkspaceScreen):
    """The widgets of the masks workspace in their frame."""

    queue: QueuePanel

    def __init__(self, parent: QWidget | None = None) -> None:
        self.maps = MapBar()
        self.volume = VolumeView()
        self.table = RaterTable()
        self.region_panel = RegionPanel()
        self.local_weight = LocalWeight()
        self.model_table = ModelTable()
        self.matrix = AgreementMatrix("Pairwise Dice")
        self.tree = Dendrogram()
        self.tree_panel = RaterTreePanel(self.tree, BASES)
        self.alternatives = AlternativesPanel()
        self.trust = TrustPanel(("probability", "share inside"), NO_TRUST)
        self.methods = MethodsPanel(_METHODS, FIGURES, _TICKED)
        self.bound = ConvergencePlot("bound", BOUND)
        self.tabs = QTabWidget()
        self.tabs.addTab(self.local_weight, "Local weight")
        self.tabs.addTab(self.model_table, "Model")
        self.tabs.addTab(self.tree_panel, "Raters over cases")
        self.tabs.addTab(self.alternatives, "Alternatives")
        canvas = QWidget()
        column = QVBoxLayout(canvas)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.maps)
        column.addWidget(self.volume, 1)
        canvas.setFocusProxy(self.volume)
        why = QWidget()
        whom_and_where = QVBoxLayout(why)
        whom_and_where.setContentsMargins(0, 0, 0, 0)
        whom_and_where.setSpacing(0)
        whom_and_where.addWidget(self.table)
        whom_and_where.addWidget(rule())
        whom_and_where.addWidget(self.region_panel, 1)
        super().__init__(
            QueuePanel("Cases"),
            canvas,
            why,
            (self.matrix, self.tabs, self.bound),
            FusePanel(
                FUSERS, titles=("Fuse the masks with",), item="case",
                alone="Each case is fused by itself in either way", truth=False,
            ),
            (190, 224, 552, 214),
            parent,
        )  # fmt: skip


MasksCore = WorkspaceCore[MasksScreen, MasksSession]
MasksPanel = WorkspacePanel[MasksScreen, MasksSession]
MasksPart = WorkspacePart[MasksScreen, MasksSession]
