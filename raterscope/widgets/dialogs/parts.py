"""Parts that dialogs share: the buttons, and a field for a folder."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFileDialog, QLineEdit, QPushButton, QWidget

from raterscope.widgets import theme
from raterscope.widgets.layouts import Part, horizontal, vertical


def lay_out(dialog: QDialog, *parts: Part, accept: str) -> QPushButton:
    """Put parts below each other in a dialog, with Cancel and a button that accepts, which is returned."""
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
    accepting = box.addButton(accept, QDialogButtonBox.ButtonRole.AcceptRole)
    theme.set_role(accepting, "primary")
    box.accepted.connect(dialog.accept)
    box.rejected.connect(dialog.reject)
    vertical(*parts, box, inside=dialog, margins=(16, 16, 16, 16), spacing=8)
    # The default button takes effect only for buttons that are in the dialog.
    box.button(QDialogButtonBox.StandardButton.Cancel).setAutoDefault(False)
    accepting.setDefault(True)
    return accepting


class FolderField(QWidget):
    """Field for a folder, with a button that opens a chooser.

    `name`: purpose of the folder, for screen readers and as the title of the chooser. `inside`: whether the
    chosen folder is the parent: the present name is kept below it.
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
