"""Dialog of the position of a second series, which stays open beside the slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QDialog, QDoubleSpinBox, QGridLayout, QPushButton, QWidget

from raterscope.widgets import theme
from raterscope.widgets.layouts import STRETCH, horizontal, vertical
from raterscope.widgets.parts import ChoiceBox, plain_label
from raterscope.widgets.theme import set_lengths

LARGEST_SHIFT = 5_000.0
"""Largest typed shift, mm."""

_AXES = ("x, to the left", "y, to the back", "z, to the head")
Numbers = tuple[float, ...]


class RegistrationDialog(QDialog):
    """Dialog beside the slices that stays open while values are applied; open it with ``show()``.

    `case`: name of the case. `series`: other volumes by their numbers. `selected`: the first to show.
    """

    series_chosen = Signal(int)
    register_requested = Signal(int)  # number of the series
    apply_requested = Signal(int, tuple, tuple)  # series, shift (x, y, z) in mm, rotation in degrees
    reset_requested = Signal(int)

    def __init__(
        self, case: str, series: Mapping[int, str], selected: int | None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Register second series")
        self.series_box = ChoiceBox("Series to move", series)
        self.series_box.choose(selected)
        self.position = plain_label("", "second", wrap=True)
        values = QWidget()
        grid = QGridLayout(values)
        grid.setContentsMargins(0, 0, 0, 0)
        for column, axis in enumerate(_AXES, start=1):
            grid.addWidget(plain_label(axis, "small"), 0, column)
        self.shift = self._editors(grid, 1, "Shift", LARGEST_SHIFT, " mm")
        self.rotation = self._editors(grid, 2, "Rotation", 180.0, "°")
        self.registering = _button("Register", self._on_register)
        theme.set_role(self.registering, "primary")
        self.applying = _button("Apply values", self._on_apply)
        self.resetting = _button("Reset position", self._on_reset)
        close = _button("Close", self.reject)
        vertical(
            plain_label(f"Move a series onto {case}", "title", wrap=True), self.series_box, self.position, 4,
            values, 8, horizontal(self.resetting, STRETCH, close, self.applying, self.registering, spacing=8),
            inside=self, margins=(16, 16, 16, 16), spacing=8,
        )  # fmt: skip
        self.registering.setDefault(True)
        self.series_box.currentIndexChanged.connect(lambda _index: self.series_chosen.emit(self.series))
        self.series_box.setFocus()

    def _editors(
        self, grid: QGridLayout, row: int, noun: str, largest: float, unit: str
    ) -> list[QDoubleSpinBox]:
        grid.addWidget(plain_label(noun), row, 0)
        editors = []
        for column, axis in enumerate(_AXES, start=1):
            editor = QDoubleSpinBox(minimum=-largest, maximum=largest, decimals=2, suffix=unit)
            about = axis.partition(",")[0]
            editor.setAccessibleName(f"Rotation about {about}" if noun == "Rotation" else f"Shift {axis}")
            editor.valueChanged.connect(self._on_typed)
            set_lengths(editor, minimumWidth=110)
            grid.addWidget(editor, row, column)
            editors.append(editor)
        return editors

    @property
    def series(self) -> int:
        """Number of the chosen series."""
        return int(self.series_box.key)

    def show_motion(self, shift: Sequence[float], rotation: Sequence[float], words: str, moved: bool) -> None:
        """Show the present position of the series.

        `shift`: (x, y, z) in mm. `rotation`: about x, y and z, degrees. `moved`: whether it can be reset.
        """
        for editor, value in zip((*self.shift, *self.rotation), (*shift, *rotation), strict=True):
            with QSignalBlocker(editor):
                editor.setValue(value)
        self.position.setText(words)
        layout = self.layout()
        if layout is not None:  # a longer sentence takes more lines
            layout.activate()
            self.resize(self.width(), max(self.height(), layout.totalHeightForWidth(self.width())))
        self.resetting.setEnabled(moved)
        self.applying.setEnabled(False)

    def _on_typed(self) -> None:
        self.applying.setEnabled(True)

    def _on_register(self) -> None:
        self.register_requested.emit(self.series)
        self.accept()

    def _on_apply(self) -> None:
        shift, rotation = (tuple(editor.value() for editor in row) for row in (self.shift, self.rotation))
        self.apply_requested.emit(self.series, shift, rotation)

    def _on_reset(self) -> None:
        self.reset_requested.emit(self.series)


def _button(words: str, pressed: object) -> QPushButton:
    button = QPushButton(words, autoDefault=False)
    button.clicked.connect(pressed)
    return button
