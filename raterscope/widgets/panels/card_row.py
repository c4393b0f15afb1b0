"""Cards side by side, which scroll where there is too little room for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QWidget

from raterscope.widgets import theme

__all__ = ["CardRow"]

Card = TypeVar("Card", bound=QWidget)


class CardRow(QScrollArea, Generic[Card]):
    """A row of cards, hidden while there are none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.cards: list[Card] = []
        inner = QWidget()
        theme.set_role(inner, "panel")
        self._row = QHBoxLayout(inner)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(8)
        self._row.addStretch(1)
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidget(inner)

    def set_cards(self, cards: Sequence[Card]) -> None:
        """Show other cards."""
        for card in self.cards:
            self._row.removeWidget(card)
            card.hide()
            card.deleteLater()
        self.cards = list(cards)
        for place, card in enumerate(self.cards):
            self._row.insertWidget(place, card, 0, Qt.AlignmentFlag.AlignTop)
        self.setVisible(bool(self.cards))
