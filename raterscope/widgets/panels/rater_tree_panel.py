"""The tree of raters over cases, and what their distance is made from."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.figures.dendrogram import Dendrogram
from raterscope.widgets.parts import ChoiceBox, plain_label

__all__ = ["RaterTreePanel"]


class RaterTreePanel(QWidget):
    """A dendrogram with a choice of the distance above it.

    Signals
    -------
    basis_chosen : str
        Name of the distance.
    """

    basis_chosen = Signal(str)

    def __init__(self, tree: Dendrogram, bases: Mapping[str, str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.choice = ChoiceBox()
        self.choice.setAccessibleName("Distance between raters")
        for name, words in bases.items():
            self.choice.addItem(words, name)
        label = plain_label("Distance", "second")
        label.setBuddy(self.choice)
        row = QHBoxLayout()
        row.setContentsMargins(12, 6, 12, 0)
        row.setSpacing(8)
        row.addWidget(label)
        row.addWidget(self.choice)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(row)
        column.addWidget(tree, 1)
        self.setFocusProxy(tree)
        self.choice.currentIndexChanged.connect(lambda _at: self.basis_chosen.emit(self.basis))

    @property
    def basis(self) -> str:
        """Name of the chosen distance."""
        return str(self.choice.currentData())
