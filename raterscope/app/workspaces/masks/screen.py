"""Layout of the masks screen, with the bar of structure, map and band; `workspace` has the behaviour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QCheckBox, QLabel, QSlider, QWidget

from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.app.kinds.masks.annotators import BASES
from raterscope.app.kinds.masks.methods import FIGURES
from raterscope.app.workspaces.masks.scene import MasksSession
from raterscope.app.workspaces.screen import WorkspaceCore, WorkspacePanel, WorkspacePart, WorkspaceScreen
from raterscope.widgets import theme
from raterscope.widgets.figures.agreement_plots import AgreementMatrix, Dendrogram
from raterscope.widgets.figures.evaluation_plots import ConvergencePlot
from raterscope.widgets.layouts import STRETCH, TabPages, horizontal, rule, vertical
from raterscope.widgets.panels.evaluation_panels import MethodsPanel, TrustPanel
from raterscope.widgets.panels.fuse_panel import FusePanel
from raterscope.widgets.panels.queue_panel import FILTERS, NOTED, QueuePanel
from raterscope.widgets.panels.rater_panels import AlternativesPanel, LocalWeight, RaterTreePanel
from raterscope.widgets.panels.region_panel import RegionPanel
from raterscope.widgets.parts import ChoiceBox, plain_label, plain_tip
from raterscope.widgets.tables.rater_table import ModelTable, RaterTable
from raterscope.widgets.theme import pixels, set_lengths
from raterscope.widgets.volume.volume_view import VolumeView

MAPS = {
    "none": "no map",
    "disagreement": "disagreement of the raters",
    "doubt": "doubt of the model",
    "another": "another rater includes it",
    "truth": "the true outline includes it",
    "uncertainty": "95 % half-width, mm",
    "probability": "probability of the model",
    "weight": "weight of the selected rater",
    "tau": "tau of the selected rater",
    "difference": "difference of two raters",
}
BANDS = (50, 80, 95)
ROOM_FOR_WORDS = 560
MIN_TABLE = 132
"""Minimum height of the raters' table, with larger text too, so that the keys below stay visible."""
MIN_BOTH = 440
"""Minimum height for this table above the evidence of a region, which lists the same raters."""
LARGE_TEXT = 1.4
"""Text size from which the controls above the slices take two rows."""


class MapBar(QWidget):
    """Bar above the slice views: structure, map over the image, probability band, opacity."""

    structure_chosen = Signal(str)
    map_chosen = Signal(str)  # one of `MAPS`
    band_chosen = Signal(float)  # probability of the band around the outline of the consensus; 0 for none
    opacity_chosen = Signal(float)  # opacity of fills and maps, 0 to 1

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self.structure = ChoiceBox("Structure")
        set_lengths(self.structure, minimumWidth=80)
        self._structure_label = plain_label("structure", "small")
        self.map = ChoiceBox("Map over the image", MAPS)
        set_lengths(self.map, minimumWidth=100)
        self.map.setToolTip(plain_tip("Heat map over the image (D shows the next one)"))
        self.band = QCheckBox("band")
        self.band.setToolTip(
            plain_tip("Where another rater's outline lies with this probability, at each point separately")
        )
        self.truth = QCheckBox("truth")
        self.truth.setToolTip(plain_tip("Outline of the ground truth, dashed"))
        self.truth.hide()
        shares = {share / 100: f"{share} %" for share in BANDS}
        self.share = ChoiceBox("Probability that the band covers", shares, letters=4)
        set_lengths(self.share, minimumWidth=100)
        self.share.setCurrentIndex(len(BANDS) - 1)
        self.opacity = QSlider(Qt.Orientation.Horizontal)
        self.opacity.setRange(10, 100)
        self.opacity.setValue(60)
        set_lengths(self.opacity, maximumWidth=90, minimumWidth=48)
        self.opacity.setAccessibleName("Opacity of fills and maps")
        self.opacity.setToolTip(plain_tip("Opacity of fills and maps, in percent"))
        self._faint_labels = (_faint("map"), _faint("opacity"))
        first = (self._structure_label, self.structure, STRETCH, self.truth, self._faint_labels[0], self.map)
        second = (self.band, self.share, self._faint_labels[1], self.opacity)
        self._rows = horizontal(
            (horizontal(*first, spacing=8), 1), horizontal(*second, spacing=8),
            inside=self, margins=(12, 4, 12, 4), spacing=8,
        )  # fmt: skip
        theme.notifier().changed.connect(self._arrange)
        self._arrange()
        self.structure.currentIndexChanged.connect(self._on_structure)
        self.map.currentIndexChanged.connect(self._on_map)
        self.band.toggled.connect(self._on_band)
        self.share.currentIndexChanged.connect(self._on_band)
        self.opacity.valueChanged.connect(self._on_opacity)
        self.set_structures((), "")

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Hide labels if there is little room."""
        super().resizeEvent(event)
        self._make_room()

    def _arrange(self) -> None:
        """Arrange the controls in two rows if the text is large."""
        directions = QBoxLayout.Direction
        large = theme.text_size() > LARGE_TEXT
        self._rows.setDirection(directions.TopToBottom if large else directions.LeftToRight)

    def _make_room(self) -> None:
        room, several = self.width() >= ROOM_FOR_WORDS, self.structure.count() > 1
        for words in self._faint_labels:
            words.setVisible(room)
        self._structure_label.setVisible(room and several)
        self.structure.setVisible(several)
        self.opacity.setVisible(room or not several)

    @property
    def chosen(self) -> str:
        """Key of the map."""
        return str(self.map.key)

    @property
    def covered(self) -> float:
        """Probability of the band; 0 for no band."""
        return float(self.share.key) if self.band.isChecked() else 0.0

    def set_structures(self, names: Sequence[str], selected: str) -> None:
        """Offer the choice of a structure, if there are several, without a signal."""
        self.structure.offer(names)
        with QSignalBlocker(self.structure):
            self.structure.choose(selected)
        self._make_room()

    def set_series(self, names: Mapping[int, str]) -> None:
        """Offer other series of the patient after the maps, by their numbers in the study."""
        self.map.offer(MAPS, names)

    @property
    def series(self) -> int | None:
        """Number of the chosen other series; None for a map."""
        return self.map.key if isinstance(self.map.key, int) else None

    def set_possible(self, possible: bool) -> None:
        """Enable or disable map and band."""
        for choice in (self.map, self.band, self.share):
            choice.setEnabled(possible)

    def next_map(self) -> None:
        """Show the next map, cyclically."""
        if not self.map.isEnabled():
            return
        self.map.setCurrentIndex((self.map.currentIndex() + 1) % self.map.count())

    def _on_structure(self, _index: int) -> None:
        self.structure_chosen.emit(self.structure.currentText())

    def _on_map(self, _index: int) -> None:
        self.map_chosen.emit(self.chosen)

    def _on_band(self, _on: object) -> None:
        self.band_chosen.emit(self.covered)

    def _on_opacity(self, percent: int) -> None:
        self.opacity_chosen.emit(percent / 100)


def _faint(text: str) -> QLabel:
    label = plain_label(text, "small")
    label.setContentsMargins(8, 0, 0, 0)
    return label


NO_TRUST = "Press Fuse (F5) to see how far to trust the maps and bands."
_METHODS = {name: (fuser.title, fuser.summary) for name, fuser in FUSERS.items()}
_TICKED = ("laplace", "student", "gaussian", "staple", "majority")
"""Methods compared by default: those that take seconds on a volume."""
BOUND = "Press Fuse (F5) to see convergence."


class MasksScreen(WorkspaceScreen):
    """Widgets of the masks workspace."""

    queue: QueuePanel

    def build(self) -> Iterator[None]:
        """Make the widgets."""
        self.maps, self.volume = MapBar(), VolumeView()
        canvas = QWidget()
        vertical(self.maps, (self.volume, 1), inside=canvas)
        canvas.setFocusProxy(self.volume)
        yield
        self.table, self.region_panel = RaterTable(), RegionPanel()
        self.table.setMinimumHeight(MIN_TABLE)
        reasons = _Reasons(self.table, self.region_panel)
        yield
        self.matrix, self.tabs, self.bound = (
            AgreementMatrix("Pairwise Dice"),
            TabPages(),
            ConvergencePlot("bound", BOUND),
        )
        queue = QueuePanel("Cases", (*FILTERS, *NOTED))
        yield
        fuse_panel = FusePanel(FUSERS, titles=("Fuse the masks with",), item="case")
        yield
        below = (self.matrix, self.tabs, self.bound)
        yield from self.lay_out(queue, canvas, reasons, below, fuse_panel, (245, 150, 580, 229))
        self.local_weight = LocalWeight()
        self.tabs.addTab(self.local_weight, "Local weight")
        self.model_table = ModelTable()
        self.tabs.addTab(self.model_table, "Model")
        yield
        self.tree = Dendrogram()
        self.tree_panel = RaterTreePanel(self.tree, BASES)
        self.tabs.addTab(self.tree_panel, "Raters over cases")
        self.alternatives = AlternativesPanel()
        self.tabs.addTab(self.alternatives, "Alternatives")
        yield
        self.trust = TrustPanel(("probability", "share inside"), NO_TRUST)
        self.methods = MethodsPanel(_METHODS, FIGURES, _TICKED)
        yield


class _Reasons(QWidget):
    """Table of raters above the region; in a low window, a selected region takes its place."""

    def __init__(self, table: RaterTable, region_panel: RegionPanel) -> None:
        super().__init__()
        self._table, self._region_panel = table, region_panel
        self._rule = rule()
        vertical(table, self._rule, (region_panel, 1), inside=self)
        region_panel.evidence_changed.connect(self._arrange)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Hide or show the table."""
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        both = self.height() >= pixels(MIN_BOTH) or not self._region_panel.has_evidence
        for widget in (self._table, self._rule):
            widget.setVisible(both)


MasksCore = WorkspaceCore[MasksScreen, MasksSession]
MasksPanel = WorkspacePanel[MasksScreen, MasksSession]
MasksPart = WorkspacePart[MasksScreen, MasksSession]
