"""The bar above the slice views: structure, map and probability band."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLabel, QSlider, QWidget

from raterscope.app.workspaces.masks import view
from raterscope.app.workspaces.masks.regions import length_unit
from raterscope.app.workspaces.masks.scene import Scene
from raterscope.widgets import theme
from raterscope.widgets.parts import ChoiceBox, plain_label, plain_tip
from raterscope.widgets.text_size import set_lengths
from raterscope.widgets.volume.scene import HeatMap

__all__ = ["MAPS", "MapBar", "heat_map"]

MAPS = {
    "none": "no map",
    "disagreement": "disagreement of the raters",
    "doubt": "doubt of the model",
    "another": "another rater includes it",
    "truth": "the true outline includes it",
    "uncertainty": "95 % half-width, mm",
    "probability": "probability of the model",
    "weight": "weight of the rater chosen",
    "tau": "tau of the rater chosen",
    "difference": "difference of two raters",
}
BANDS = (50, 80, 95)
_ENOUGH = 100_000
"""Voxels that tell how far a scale goes."""
ROOM_FOR_WORDS = 560


class MapBar(QWidget):
    """What lies over the image.

    Signals
    -------
    structure_chosen(str)
    map_chosen(str)
        One of `MAPS`.
    band_chosen(float)
        Probability that the band about the consensus's outline covers; 0 for none.
    opacity_chosen(float)
        Of fills and maps, 0 to 1.
    truth_chosen(bool)
        Whether the truth is to be seen.
    """

    structure_chosen = Signal(str)
    map_chosen = Signal(str)
    band_chosen = Signal(float)
    opacity_chosen = Signal(float)
    truth_chosen = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.structure = ChoiceBox()
        self.structure.setAccessibleName("Structure")
        set_lengths(self.structure, minimumWidth=80)
        self._structure_words = plain_label("structure", "small")
        self.map = ChoiceBox()
        self.map.setAccessibleName("Map over the image")
        set_lengths(self.map, minimumWidth=100)
        self.map.setToolTip(plain_tip("What lies over the image as a heat map (D goes from one to the next)"))
        for name, words in MAPS.items():
            self.map.addItem(words, name)
        self.band = QCheckBox("band")
        self.band.setToolTip(
            plain_tip("Where another rater's outline lies with this probability, at each place by itself")
        )
        self.truth = QCheckBox("truth")
        self.truth.setToolTip(plain_tip("The outline that is known to be true, dashed"))
        self.truth.toggled.connect(self.truth_chosen)
        self.truth.hide()
        self.share = ChoiceBox()
        self.share.setMinimumContentsLength(4)
        set_lengths(self.share, minimumWidth=100)
        self.share.setAccessibleName("Probability that the band covers")
        for share in BANDS:
            self.share.addItem(f"{share} %", share / 100)
        self.share.setCurrentIndex(len(BANDS) - 1)
        self.opacity = QSlider(Qt.Orientation.Horizontal)
        self.opacity.setRange(10, 100)
        self.opacity.setValue(60)
        set_lengths(self.opacity, maximumWidth=90)
        set_lengths(self.opacity, minimumWidth=48)
        self.opacity.setAccessibleName("Opacity of fills and maps")
        self.opacity.setToolTip(plain_tip("Opacity of fills and maps, in percent"))
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 4, 12, 4)
        row.setSpacing(8)
        for widget in (self._structure_words, self.structure):
            row.addWidget(widget)
        row.addStretch(1)
        row.addWidget(self.truth)
        self._faint_words = (_faint("map"), _faint("opacity"))
        for piece in (self._faint_words[0], self.map, self.band, self.share, self._faint_words[1]):
            row.addWidget(piece)
        row.addWidget(self.opacity)
        self.structure.currentIndexChanged.connect(self._on_structure)
        self.map.currentIndexChanged.connect(self._on_map)
        self.band.toggled.connect(self._on_band)
        self.share.currentIndexChanged.connect(self._on_band)
        self.opacity.valueChanged.connect(self._on_opacity)
        self.set_structures((), "")

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave the room to the choices where there is little; tooltips tell what they are."""
        super().resizeEvent(event)
        self._make_room()

    def _make_room(self) -> None:
        room, several = self.width() >= ROOM_FOR_WORDS, self.structure.count() > 1
        for words in self._faint_words:
            words.setVisible(room)
        self._structure_words.setVisible(room and several)
        self.structure.setVisible(several)
        self.opacity.setVisible(room or not several)

    @property
    def chosen(self) -> str:
        """Name of the map."""
        return str(self.map.currentData())

    @property
    def covered(self) -> float:
        """Probability that the band covers; 0 for no band."""
        return float(self.share.currentData()) if self.band.isChecked() else 0.0

    def set_structures(self, names: Sequence[str], shown: str) -> None:
        """Offer structures, without a signal; one alone is not offered."""
        self.structure.blockSignals(True)
        self.structure.clear()
        self.structure.addItems(list(names))
        self.structure.setCurrentIndex(max(self.structure.findText(shown), 0))
        self.structure.blockSignals(False)
        self._make_room()

    def choose_map(self, name: str) -> None:
        """Choose a map."""
        self.map.setCurrentIndex(self.map.findData(name))

    def set_truth_there(self, there: bool) -> None:
        """Say whether there is a truth that may be seen; who decides does not see it unasked."""
        self.truth.setVisible(there)

    def set_possible(self, possible: bool) -> None:
        """Say whether a map and a band may be seen now."""
        for choice in (self.map, self.band, self.share):
            choice.setEnabled(possible)

    def next_map(self) -> None:
        """Go from one map to the next, round the end."""
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


def heat_map(
    scene: Scene, structure: str, name: str, rater: str | None, pair: tuple[str, str] | None
) -> tuple[HeatMap | None, str]:
    """Make a map, or say why there is none.

    Returns
    -------
    map : HeatMap or None
    why : str
        Why there is none, in a sentence; empty where there is one or none was asked for.
    """
    fusion = scene.fusion(structure)
    if name == "none":
        return None, ""
    if name == "difference":
        found = None if pair is None else view.difference(scene, structure, *pair)
        return found, "" if found else "Choose two raters in the matrix of agreement to see their difference."
    if name == "disagreement" and structure in scene.votes:
        votes = scene.votes[structure]
        words = "disagreement of the raters"
        return HeatMap(votes.disagreement, votes.origin, 0.0, 1.0, "doubt", words), ""
    if fusion is None:
        return None, "Press Fuse (F5) to show the uncertainty of the consensus."
    if name == "doubt":
        return HeatMap(fusion.doubt()[0], fusion.origin, 0.0, 1.0, "doubt", "doubt of the model"), ""
    if name == "probability":
        return HeatMap(
            fusion.probability[0], fusion.origin, 0.0, 1.0, "probability", "probability of the model"
        ), ""
    if name in ("another", "truth", "uncertainty"):
        return _calibrated(scene, structure, name)
    every = fusion.tau if name == "tau" else fusion.weight
    if every is None:
        return None, view.nothing_local(fusion, name)
    if rater not in fusion.annotators:
        return None, "Choose a rater in the table to see where that rater is followed."
    layer = every[0, fusion.annotators.index(rater)]
    if name == "tau":
        top = view.highest_tau(fusion)
        return HeatMap(layer.astype(np.float32), fusion.origin, 0.0, top, "weight", f"tau of {rater}"), ""
    top = min(1.0, 2 / len(fusion.annotators))  # twice what each has where all are followed alike
    return HeatMap(layer, fusion.origin, 0.0, top, "weight", f"weight of {rater}", 1 / 255), ""


def _calibrated(scene: Scene, structure: str, name: str) -> tuple[HeatMap | None, str]:
    """Make a map from the raters' spread, or say why there is none."""
    report = scene.report(structure)
    found = None if report is None else report.calibration
    if found is None:
        return None, "This run has no such map: it takes two raters and a mark. Press Fuse (F5) again."
    if name == "uncertainty":
        values = found.half_width()
        some = values.ravel()[:: max(1, values.size // _ENOUGH)]
        words = f"half-width of another rater's 95 % band, {length_unit(scene.image.lattice)}"
        return HeatMap(values, found.origin, 0.0, float(np.percentile(some, 99)) or 1.0, "doubt", words), ""
    values = found.another_rater() if name == "another" else found.true_outline()
    why = "" if name == "another" else found.notices()[-1] if found.assumed else ""
    words = "probability that another rater includes it"
    if name == "truth":
        words = "probability that the true outline includes it"
    return HeatMap(values, found.origin, 0.0, 1.0, "probability", words), why


def _faint(words: str) -> QLabel:
    label = plain_label(words, "small")
    label.setContentsMargins(8, 0, 0, 0)
    return label
