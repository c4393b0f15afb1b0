"""Dialogs for an acceptance plan and for a budget of votes."""

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

    `settings`: initial settings. `costs`: describes the present costs.
    """

    def __init__(self, settings: Settings, costs: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Budget of votes")
        set_lengths(self, minimumWidth=460)
        self.costs: Path | None = None  # the chosen table of costs; None to keep the present ones
        self.cleared = False  # whether all annotators are to cost the same again
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


HINT = (
    "The queue then shows a random sample of them. Decide each: an answer that you change is an error, and "
    "their number accepts or rejects all of them."
)

LINES = 3
"""Lines of a single plan, for which the dialog keeps room."""


class AcceptanceDialog(QDialog):
    """Dialog for a plan; open it with ``open()``, and show the plan whenever `form` changes.

    `lot`: what the sample is drawn from: "840 undecided tasks in the runs shown". `settings`: described in
    the form.
    """

    def __init__(self, lot: str, settings: type[Settings], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Start an acceptance plan")
        set_lengths(self, minimumWidth=460)
        self.form = SettingsForm(settings)
        self.form.build()
        self._plan = plain_label("", wrap=True)
        set_lengths(self._plan, minimumHeight=LINES * 18)
        self.draw = lay_out(
            self,
            plain_label(lot, "title", wrap=True),
            plain_label(HINT, "second", wrap=True),
            4,
            self.form,
            8,
            self._plan,
            accept="Draw the sample",
        )
        self.draw.setEnabled(False)

    def show_plan(self, words: str, *, ready: bool) -> None:
        """Show a plan, or why there is none."""
        self._plan.setText(words)
        self.draw.setEnabled(ready)
        self.adjustSize()
