"""Ask why an annotator is excluded, or why something else is done that takes a reason."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from raterscope.widgets.dialogs.buttons import add_buttons
from raterscope.widgets.panels.reason_field import COMMON_REASONS, ReasonField
from raterscope.widgets.parts import plain_label
from raterscope.widgets.text_size import set_lengths

__all__ = ["ReasonDialog"]


class ReasonDialog(QDialog):
    """Ask for the reason of an act; open it with ``open()`` and read `reason` when accepted.

    Parameters
    ----------
    annotator : str
        Name of who, or of what, it is done to.
    reasons : sequence of str
        Offered on the keys Alt+1, Alt+2 ...
    act, what : str
        What is done, and to what: "Exclude" and "an annotator".
    hint : str
        What comes of it, in a sentence.
    """

    def __init__(
        self,
        annotator: str,
        reasons: Sequence[str] = COMMON_REASONS,
        parent: QWidget | None = None,
        *,
        act: str = "Exclude",
        hint: str = "The marks stay in the study but do not count in fusions.",
        what: str = "an annotator",
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(f"{act} {what}")
        set_lengths(self, minimumWidth=380)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(8)
        column.addWidget(plain_label(f"{act} {annotator}", "title", wrap=True))
        column.addWidget(plain_label(hint, "second", wrap=True))
        column.addSpacing(4)
        self._field = ReasonField(reasons)
        self.buttons, self.words = self._field.buttons, self._field.words
        column.addWidget(self._field)
        column.addSpacing(8)
        self.exclude = add_buttons(self, column, act)
        self.exclude.setEnabled(False)
        self._field.changed.connect(self.exclude.setEnabled)
        self.words.setFocus()

    @property
    def reason(self) -> str:
        """The reason given."""
        return self._field.reason
