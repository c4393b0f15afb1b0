"""Grey-value windows of a volume: presets by modality, a choice that stays, and typed numbers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QDoubleSpinBox, QWidget

from raterscope.widgets import theme
from raterscope.widgets.layouts import horizontal
from raterscope.widgets.parts import keeps_key, plain_label, plain_tip
from raterscope.widgets.theme import set_lengths
from raterscope.widgets.volume.plane import PRESETS, Window, automatic_window, in_words, looks_like_ct

AUTOMATIC, FROM_FILE, FULL = "automatic", "file", "full"
_SAMPLED = 200_000


class WindowChoice:
    """Windows offered for the volume on screen, and the choice, which stays for further volumes.

    A window of CT stays as its numbers. Values of other modalities have no unit: their window stays relative
    to the automatic one.
    """

    def __init__(self) -> None:
        self.offered: dict[str, tuple[str, Window]] = {}
        self.preset = ""
        self.modality = ""
        """Modality of the volume; "CT" also if only its values look like that."""
        self._automatic: Window = (0.0, 1.0)
        self._kept: dict[str, str | Window] = {}

    def offer(self, values: NDArray[np.generic] | None, modality: str, window: Window | None) -> Window:
        """Find the windows of a volume, and return the one to show: the choice made before, or the usual."""
        self.offered, self.preset = {}, ""
        if values is None or values.ndim != 3:
            return 0.5, 1.0
        is_ct = modality == "CT" or (not modality and looks_like_ct(values))
        self.modality = "CT" if is_ct else modality
        self._automatic = automatic_window(values)
        if window is not None:
            self.offered[FROM_FILE] = ("from the file", window)
        if is_ct:
            self.offered |= {p.name: (p.words, (p.centre, p.width)) for p in PRESETS}
        self.offered[AUTOMATIC] = ("automatic", self._automatic)
        if not is_ct:
            self.offered[FULL] = ("full range", _full_window(values))
        kept = self._kept.get(self.modality)
        if isinstance(kept, tuple):
            return self._restored(kept)
        first = FROM_FILE if window is not None else "soft" if modality == "CT" else AUTOMATIC
        self.preset = kept if kept in self.offered and kept is not None else first
        return self.offered[self.preset][1]

    def choose(self, name: str) -> Window | None:
        """Choose a preset; None if it is not offered."""
        if name not in self.offered:
            return None
        self.preset = self._kept[self.modality] = name
        return self.offered[name][1]

    def set(self, centre: float, width: float) -> None:
        """Choose a window by its numbers."""
        self.preset = ""
        if self.modality != "CT":
            middle, wide = self._automatic
            centre, width = (centre - middle) / wide, width / wide
        self._kept[self.modality] = (centre, width)

    def entries(self) -> list[tuple[str, str]]:
        """Return the name and the words of each preset."""
        return [(name, f"{words}   {in_words(*window)}") for name, (words, window) in self.offered.items()]

    def words(self, centre: float, width: float) -> str:
        """Describe the window on screen."""
        return f"{in_words(centre, width)} {self.offered[self.preset][0] if self.preset else ''}".strip()

    def _restored(self, kept: Window) -> Window:
        if self.modality == "CT":
            return kept
        middle, wide = self._automatic
        return middle + kept[0] * wide, kept[1] * wide


def _full_window(values: NDArray[np.generic]) -> Window:
    every = max(1, round((values.size / _SAMPLED) ** (1 / 3)))
    sample = np.asarray(values[::every, ::every, ::every], dtype=np.float64)
    sample = sample[np.isfinite(sample)]
    low, high = (float(sample.min()), float(sample.max())) if sample.size else (0.0, 1.0)
    return (low + high) / 2, max(high - low, 1e-6)


class WindowEntry(QWidget):
    """Fields for width and level of the window, over the views."""

    entered = Signal(float, float)  # centre and width
    left = Signal()  # Esc or Return was pressed

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName("Window by numbers")
        theme.set_role(self, "popover")
        self.width_box, self.level_box = QDoubleSpinBox(), QDoubleSpinBox()
        for box, words in ((self.width_box, "Window width"), (self.level_box, "Window level")):
            box.setAccessibleName(words)
            box.setToolTip(plain_tip(words))
            box.setButtonSymbols(QDoubleSpinBox.ButtonSymbols.NoButtons)
            box.setKeyboardTracking(False)
            box.valueChanged.connect(self._on_value)
            set_lengths(box, width=84)
        horizontal(
            plain_label("width"), self.width_box, plain_label("level"), self.level_box,
            inside=self, margins=(12, 8, 12, 8), spacing=8,
        )  # fmt: skip
        self.hide()

    def open_with(self, centre: float, width: float) -> None:
        """Show the numbers, with the width to be typed first."""
        digits = max(0, min(6, 2 - math.floor(math.log10(max(width, 1e-9)))))
        for box, value, lowest in ((self.width_box, width, 10.0**-digits), (self.level_box, centre, -1e9)):
            with QSignalBlocker(box):
                box.setDecimals(digits)
                box.setRange(lowest, 1e9)
                box.setSingleStep(max(width / 50, 10.0**-digits))
                box.setValue(value)
        self.adjustSize()
        self.show()
        self.raise_()
        self.width_box.setFocus()
        self.width_box.selectAll()

    def event(self, event: QEvent) -> bool:
        """Keep Tab for the fields: over the views it is a shortcut."""
        return keeps_key(event, Qt.Key.Key_Tab, Qt.Key.Key_Backtab) or super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Leave with Return or Esc."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Escape):
            self.left.emit()
        else:
            super().keyPressEvent(event)

    def _on_value(self) -> None:
        self.entered.emit(self.level_box.value(), self.width_box.value())
