"""Which form of the page of the papers is made, and into which folder."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QDialog,
    QFormLayout,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

from raterscope.widgets.dialogs.buttons import add_buttons
from raterscope.widgets.dialogs.folder_field import FolderField
from raterscope.widgets.parts import plain_label
from raterscope.widgets.text_size import set_lengths

__all__ = ["PapersDialog"]

_WORDS = (
    "Reproduces the tables and figures of the papers again, from simulation and open data, and writes their "
    "figures beside ours to a web page. What was measured is kept in the folder: choose it again to go on."
)


class PapersDialog(QDialog):
    """Choose the form and the folders; open it with ``open()`` and read `full`, `folder` and `data` then.

    Parameters
    ----------
    folder : str
        The folder that is proposed.
    parent : QWidget, optional
    """

    def __init__(self, folder: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Reproduce the papers")
        set_lengths(self, minimumWidth=560)
        self.quick = QRadioButton("Quick: a few runs of everything, in minutes")
        self.complete = QRadioButton("Full: as many runs as the papers, in hours")
        self.quick.setChecked(True)
        self.place, self.open_data = FolderField("Folder of the page"), FolderField("Folder of open data")
        self.place.text = folder
        self.open_data.editor.setPlaceholderText("none: simulations only")
        self.place.changed.connect(self._follow)
        form = QFormLayout()
        form.addRow("Folder", self.place)
        form.addRow("Open data", self.open_data)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(8)
        column.addWidget(plain_label("Reproduce the papers", "title"))
        column.addWidget(plain_label(_WORDS, "second", wrap=True))
        column.addWidget(self.quick)
        column.addWidget(self.complete)
        column.addLayout(form)
        column.addSpacing(8)
        self.accepting = add_buttons(self, column, "Reproduce")

    @property
    def full(self) -> bool:
        """Whether as many runs are measured as the papers took."""
        return self.complete.isChecked()

    @property
    def folder(self) -> str:
        """Where the page goes."""
        return self.place.text

    @property
    def data(self) -> str:
        """The folder of open data, empty for none."""
        return self.open_data.text

    def _follow(self) -> None:
        self.accepting.setEnabled(bool(self.folder))
