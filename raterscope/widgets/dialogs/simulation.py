"""What is simulated, with which parameters, into which folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QDialog,
    QFormLayout,
    QFrame,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from raterscope.algorithms.settings import Settings
from raterscope.widgets.dialogs.buttons import add_buttons
from raterscope.widgets.dialogs.folder_field import FolderField
from raterscope.widgets.panels.settings_form import SettingsForm
from raterscope.widgets.parts import ChoiceBox, plain_label
from raterscope.widgets.text_size import set_lengths

__all__ = ["SetupOffer", "SimulationDialog"]

_WORDS = (
    "Simulates annotations with ground truth and opens them as a study. Defaults are a paper's parameters."
)


@dataclass(frozen=True)
class SetupOffer:
    """A set-up that can be simulated.

    Attributes
    ----------
    name : str
    title : str
        In the list.
    summary : str
        What is drawn, and from which paper.
    settings : type of Settings
    """

    name: str
    title: str
    summary: str
    settings: type[Settings]


class SimulationDialog(QDialog):
    """Choose a set-up; open it with ``open()`` and read `name`, `settings` and `folder` when accepted.

    Parameters
    ----------
    setups : sequence of SetupOffer
    place : str
        The folder below which a new one is proposed.
    parent : QWidget, optional
    """

    def __init__(self, setups: Sequence[SetupOffer], place: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Simulate")
        set_lengths(self, minimumWidth=560)
        self._setups, self._place = list(setups), place.rstrip("/")
        self.setup = ChoiceBox()
        self.setup.setAccessibleName("Set-up")
        self._summary = plain_label("", "second", wrap=True)
        self.forms = [SettingsForm(one.settings) for one in self._setups]
        pages = QWidget()
        rows = QVBoxLayout(pages)
        rows.setContentsMargins(0, 0, 8, 0)
        for one, form in zip(self._setups, self.forms, strict=True):
            self.setup.addItem(one.title, one.name)
            form.changed.connect(self._follow)
            rows.addWidget(form)
        rows.addStretch(1)
        room = QScrollArea()
        room.setWidgetResizable(True)
        room.setFrameShape(QFrame.Shape.NoFrame)
        room.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        room.setWidget(pages)
        set_lengths(room, minimumHeight=360)
        self.place = FolderField("New folder", inside=True)
        self.place.changed.connect(self._follow)
        top, bottom = QFormLayout(), QFormLayout()
        top.addRow("Set-up", self.setup)
        bottom.addRow("New folder", self.place)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(8)
        column.addWidget(plain_label("Simulate", "title"))
        column.addWidget(plain_label(_WORDS, "second", wrap=True))
        column.addLayout(top)
        column.addWidget(self._summary)
        column.addWidget(room, 1)
        column.addLayout(bottom)
        column.addSpacing(8)
        self.accepting = add_buttons(self, column, "Simulate")
        self._proposed = ""
        self.setup.currentIndexChanged.connect(self._show)
        self._show(0)

    @property
    def name(self) -> str:
        """The set-up chosen."""
        return self._setups[self.setup.currentIndex()].name

    @property
    def settings(self) -> Settings:
        """Its parameters."""
        return self.forms[self.setup.currentIndex()].settings()

    @property
    def folder(self) -> str:
        """Where the data go."""
        return self.place.text

    def _show(self, number: int) -> None:
        for at, form in enumerate(self.forms):
            form.setVisible(at == number)
        self._summary.setText(self._setups[number].summary)
        if self.place.text == self._proposed:  # what a person typed stays
            self._proposed = f"{self._place}/simulated-{self._setups[number].name}"
            self.place.text = self._proposed
        self._follow()

    def _follow(self) -> None:
        self.accepting.setEnabled(bool(self.folder) and not self.forms[self.setup.currentIndex()].error())
