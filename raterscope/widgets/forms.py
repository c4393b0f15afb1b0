"""Forms: dialog with fields and two buttons, fields beside their labels, field for a folder."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QLineEdit,
    QPushButton,
    QWidget,
)

from raterscope.widgets import theme
from raterscope.widgets.layouts import Part, horizontal, vertical
from raterscope.widgets.parts import plain_label
from raterscope.widgets.theme import set_lengths


class FormDialog(QDialog):
    """Dialog with a heading, an explanation, fields, and Cancel beside a button that accepts.

    `title`: title of the window. `width`, `height`: its minimum size. Subclasses call `lay_out` once.
    """

    accepting: QPushButton

    def __init__(
        self, title: str, parent: QWidget | None = None, *, width: int = 460, height: int = 0
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        set_lengths(self, minimumWidth=width, minimumHeight=height)

    def lay_out(
        self, heading: str, about: str, *parts: Part | Mapping[str, QWidget], accept: str
    ) -> QDialogButtonBox:
        """Place heading, explanation (both may be empty) and parts below each other; return the buttons.

        A mapping is a form: fields by label; the label is also the field's name for screen readers, unless it
        has one.
        """
        box = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.accepting = box.addButton(accept, QDialogButtonBox.ButtonRole.AcceptRole)
        theme.set_role(self.accepting, "primary")
        box.accepted.connect(self.accept)
        box.rejected.connect(self.reject)
        words = [plain_label(text, role, wrap=True) for text, role in ((heading, "title"), (about, "second"))]
        vertical(
            *(label for label in words if label.text()),
            *(form_of(part) if isinstance(part, Mapping) else part for part in parts),
            box,
            inside=self, margins=(16, 16, 16, 16), spacing=8,
        )  # fmt: skip
        # The default button must already be in the dialog.
        box.button(QDialogButtonBox.StandardButton.Cancel).setAutoDefault(False)
        self.accepting.setDefault(True)
        return box

    def showEvent(self, event: QShowEvent) -> None:
        """Reserve space for wrapped text, because Qt limits a dialog to two thirds of the screen."""
        super().showEvent(event)
        layout = self.layout()
        if layout is not None:
            self.resize(self.width(), max(self.height(), layout.totalMinimumHeightForWidth(self.width())))


def form_of(fields: Mapping[str, QWidget]) -> QFormLayout:
    """Place fields below each other, each beside its label; a label of blanks only is empty."""
    form = QFormLayout()
    form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    for label, field in fields.items():
        form.addRow(label.strip(), field)
        if not field.accessibleName():
            field.setAccessibleName(label.strip())
    return form


class FolderField(QWidget):
    """Field for a folder, with a button that opens a chooser.

    `name`: purpose of the folder, for screen readers and as the title of the chooser. `inside`: whether the
    chosen folder is the parent; the current name is kept below it.
    """

    changed = Signal()

    def __init__(self, name: str, *, inside: bool = False) -> None:
        super().__init__()
        self._name, self._inside = name, inside
        self.editor = QLineEdit()
        self.editor.setAccessibleName(name)
        self.editor.textChanged.connect(self.changed)
        self.chooser = QPushButton("Choose…")
        self.chooser.setAccessibleName(f"Choose: {name}")
        self.chooser.setAutoDefault(False)
        self.chooser.clicked.connect(self._choose)
        horizontal((self.editor, 1), self.chooser, inside=self, spacing=None)

    @property
    def text(self) -> str:
        """The folder, empty for none."""
        return self.editor.text().strip()

    @text.setter
    def text(self, folder: str) -> None:
        self.editor.setText(folder)

    def _choose(self) -> None:
        above, slash, last = self.text.replace("\\", "/").rpartition("/")
        chosen = QFileDialog.getExistingDirectory(self, self._name, above if self._inside else self.text)
        if chosen:
            self.text = f"{chosen}/{last}" if self._inside and slash else chosen
