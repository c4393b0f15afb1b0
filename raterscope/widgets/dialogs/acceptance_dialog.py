"""Dialog for an acceptance plan: limits, risks and seed, with the plan that follows from them."""

from __future__ import annotations

from PySide6.QtWidgets import QDialog, QWidget

from raterscope.algorithms.settings import Settings
from raterscope.widgets.dialogs.parts import lay_out
from raterscope.widgets.panels.settings_form import SettingsForm
from raterscope.widgets.parts import plain_label
from raterscope.widgets.theme import set_lengths

HINT = (
    "The queue then shows a random sample of them. Decide each: an answer that you change is an error, and "
    "their number accepts or rejects all of them."
)


LINES = 3
"""Lines of a single plan, for which the dialog keeps room."""


class AcceptanceDialog(QDialog):
    """Dialog for a plan; open it with ``open()``, and show the plan whenever `form` changes.

    Parameters
    ----------
    lot : str
        What the sample is drawn from: "840 undecided tasks in the runs shown".
    settings : type of Settings
        Described in the form.
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
