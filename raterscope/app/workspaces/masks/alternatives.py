"""The consensuses of a mixture, side by side; the one chosen is drawn in the views."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.masks.data import BoolArray, MaskFusion
from raterscope.app.workspaces.masks.scene import Piece
from raterscope.widgets.canvas.pictures import to_picture
from raterscope.widgets.panels.alternatives_panel import AlternativeCard, AlternativesPanel

__all__ = ["Alternatives"]

_GROUND, _OTHER, _THIS = 34, 96, 235
"""Greys of a card's picture: background, what only another consensus holds, what this one holds."""


class Alternatives(QObject):
    """Joins the cards with the fusion shown.

    Signals
    -------
    shown(Piece or None)
        The consensus to be drawn; None for that of the fusion.
    """

    shown = Signal(object)

    def __init__(self, panel: AlternativesPanel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._panel = panel
        self._fusion: MaskFusion | None = None
        panel.alternative_chosen.connect(self._on_chosen)

    def show(self, fusion: MaskFusion | None, numbers: Mapping[str, int]) -> None:
        """Take another fusion."""
        self._fusion = fusion
        self._panel.set_alternatives([] if fusion is None else _cards(fusion, numbers))

    def _on_chosen(self, place: int) -> None:
        if self._fusion is not None and place < len(self._fusion.alternatives):
            self.shown.emit(Piece(self._fusion.origin, self._fusion.alternatives[place].mask[0]))


def _cards(fusion: MaskFusion, numbers: Mapping[str, int]) -> list[AlternativeCard]:
    if not fusion.alternatives:
        return []
    masks = np.stack([one.mask[0] for one in fusion.alternatives])
    # The slice on which they differ most.
    differ = (masks != masks[0]).any(axis=0).sum(axis=(1, 2))
    at = int(differ.argmax())
    cards = []
    for number, alternative in enumerate(fusion.alternatives, start=1):
        members = sorted(
            zip(fusion.annotators, alternative.responsibility.tolist(), strict=True), key=lambda one: -one[1]
        )
        cards.append(
            AlternativeCard(
                title=f"Consensus {number}",
                weight=alternative.weight,
                members=[(name, numbers.get(name, 0), share) for name, share in members],
                picture=to_picture(_picture(alternative.mask[0, at], np.any(masks[:, at], axis=0))),
            )
        )
    return cards


def _picture(this: BoolArray, anyone: BoolArray) -> NDArray[np.uint8]:
    grey = np.where(this, _THIS, np.where(anyone, _OTHER, _GROUND)).astype(np.uint8)
    rows, columns = np.flatnonzero(anyone.any(axis=1)), np.flatnonzero(anyone.any(axis=0))
    if not len(rows):
        return grey
    return grey[max(rows[0] - 2, 0) : rows[-1] + 3, max(columns[0] - 2, 0) : columns[-1] + 3]
