"""How something leaves without names: in which format, and whether with its images."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QFormLayout,
    QVBoxLayout,
    QWidget,
)

from raterscope.widgets.dialogs.buttons import add_buttons
from raterscope.widgets.parts import plain_label
from raterscope.widgets.text_size import set_lengths

__all__ = ["DeidentifiedExportDialog"]

_WORDS = (
    "Names, numbers, dates, institutions and descriptions are removed. UIDs, cases and raters get other "
    "names, the same in every export of this study. Pixels stay as they are: text that is burned into them "
    "stays too."
)
_IMAGES = "Export the images too, so that other programs can show the masks on them"


class DeidentifiedExportDialog(QDialog):
    """Choose format and images; open it with ``open()`` and read `format` and `with_images` when accepted.

    Parameters
    ----------
    title : str
        What leaves.
    formats : sequence of str
        In words, the usual one first.
    images : bool
        Whether there are images to be written.
    parent : QWidget, optional
    """

    def __init__(
        self, title: str, formats: Sequence[str], images: bool, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(f"Export {title.lower()}, de-identified")
        set_lengths(self, minimumWidth=440)
        self.formats = QComboBox()
        self.formats.addItems(list(formats))
        self.images = QCheckBox(_IMAGES)
        self.images.setVisible(images)
        form = QFormLayout()
        form.addRow("Format", self.formats)
        self.formats.setAccessibleName("Format")
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(8)
        column.addWidget(plain_label(f"Export {title.lower()}, de-identified", "title"))
        column.addWidget(plain_label(_WORDS, "second", wrap=True))
        column.addLayout(form)
        column.addWidget(self.images)
        column.addSpacing(8)
        self.accepting = add_buttons(self, column, "Choose file…")

    @property
    def format(self) -> str:
        """The format chosen, in words."""
        return self.formats.currentText()

    @property
    def with_images(self) -> bool:
        """Whether images are to be written too."""
        return not self.images.isHidden() and self.images.isChecked()
