"""Choosing an algorithm of a catalogue and setting it."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from raterscope.algorithms.catalogue import Algorithm
from raterscope.algorithms.settings import Settings
from raterscope.resources.bibliography import cite
from raterscope.widgets.panels.settings_form import SettingsForm
from raterscope.widgets.parts import ChoiceBox, plain_label, plain_tip

__all__ = ["AlgorithmPicker"]


class AlgorithmPicker(QWidget):
    """A list of algorithms, what the chosen one does, and its form.

    What was set stays when another algorithm is looked at.

    Signals
    -------
    changed
    """

    changed = Signal()

    def __init__(
        self, title: str, algorithms: Mapping[str, Algorithm], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._algorithms = dict(algorithms)
        self._forms: dict[str, SettingsForm] = {}
        self.choice = ChoiceBox()
        self.choice.setAccessibleName(title)
        for name, algorithm in self._algorithms.items():
            self.choice.addItem(algorithm.title, name)
        self._summary = plain_label("", "small", wrap=True)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(8)
        self._column.addWidget(plain_label(title.upper(), "caption"))
        self._column.addWidget(self.choice)
        self._column.addWidget(self._summary)
        self.choice.currentIndexChanged.connect(self._on_choice)
        self._show(self.algorithm)

    @property
    def algorithm(self) -> str:
        """Name of the algorithm chosen."""
        return str(self.choice.currentData())

    @property
    def form(self) -> SettingsForm:
        """The form of the algorithm chosen."""
        return self._forms[self.algorithm]

    def settings(self) -> Settings:
        """Give what is set; SettingsError says what will not do."""
        return self.form.settings()

    def error(self) -> str:
        """Give the sentence that says what will not do."""
        return self.form.error()

    def choose(self, algorithm: str, settings: Settings | None = None) -> None:
        """Choose an algorithm and fill its form."""
        place = self.choice.findData(algorithm)
        if place < 0:
            raise KeyError(algorithm)
        self.choice.setCurrentIndex(place)
        if settings is not None:
            self.form.set_settings(settings)
            self.changed.emit()

    def _on_choice(self) -> None:
        self._show(self.algorithm)
        self.changed.emit()

    def _show(self, name: str) -> None:
        algorithm = self._algorithms[name]
        source = cite(algorithm.source)
        self._summary.setText(algorithm.summary)
        self._summary.setToolTip(plain_tip(source))
        self.choice.setToolTip(plain_tip(f"{algorithm.summary} {source}"))
        if name not in self._forms:
            form = SettingsForm(algorithm.settings)
            form.changed.connect(self.changed)
            self._forms[name] = form
            self._column.addWidget(form)
        for other, form in self._forms.items():
            form.setVisible(other == name)
