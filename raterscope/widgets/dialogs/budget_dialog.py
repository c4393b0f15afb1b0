"""Dialog for a budget of votes: its settings, and a table of what annotators cost."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QDialog, QFileDialog, QPushButton, QWidget

from raterscope.algorithms.settings import Settings
from raterscope.widgets.dialogs.parts import lay_out
from raterscope.widgets.layouts import horizontal
from raterscope.widgets.panels.settings_form import SettingsForm
from raterscope.widgets.parts import plain_label
from raterscope.widgets.theme import set_lengths


class BudgetDialog(QDialog):
    """Dialog for a budget; open it with ``open()``.

    Parameters
    ----------
    settings : Settings
        Initial settings.
    costs : str
        Describes the present costs.

    Attributes
    ----------
    costs : Path or None
        The chosen table of costs; None to keep the present ones.
    cleared : bool
        Whether all annotators are to cost the same again.
    """

    def __init__(self, settings: Settings, costs: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Budget of votes")
        set_lengths(self, minimumWidth=460)
        self.costs: Path | None = None
        self.cleared = False
        self.form = SettingsForm(type(settings), settings)
        self.form.build()
        self._words = plain_label(costs, "second", wrap=True)
        self.choose, self.clear = QPushButton("Read costs…"), QPushButton("Equal costs")
        self.choose.setToolTip("A table with the columns annotator, cost of a vote, and most")
        for button in (self.choose, self.clear):
            button.setAutoDefault(False)
        self.choose.clicked.connect(self._on_choose)
        self.clear.clicked.connect(self._on_clear)
        row = horizontal((self._words, 1), self.choose, self.clear, spacing=8)
        self._accept = lay_out(self, self.form, row, accept="Assign votes")
        self.form.changed.connect(lambda: self._accept.setEnabled(not self.form.error()))

    def set_costs(self, path: Path) -> None:
        """Choose a table of costs."""
        self.costs, self.cleared = path, False
        self._words.setText(f"Costs of {path.name}")

    def _on_choose(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, "Costs of annotators", "", "Tables (*.csv *.tsv)")
        if name:
            self.set_costs(Path(name))

    def _on_clear(self) -> None:
        self.costs, self.cleared = None, True
        self._words.setText("All votes cost the same")
