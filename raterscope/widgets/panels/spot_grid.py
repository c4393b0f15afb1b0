"""Grid of spot crops at one scale, for deciding on many at once."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from raterscope.text.numbers import count
from raterscope.widgets.key_help import KeyButton, KeyHelp
from raterscope.widgets.panels.cards import CardGrid, Cards
from raterscope.widgets.parts import ChoiceBox, plain_label

__all__ = ["KINDS", "WHERE", "SpotGrid"]

PICTURE = 112

KINDS = {
    "disputed": "disputed",
    "detected": "detected",
    "rejected": "rejected",
    "decided": "decided by you",
}
"""Lists of spots that can be shown."""

WHERE = {"image": "on this image", "study": "on all images"}

EMPTY = {
    "disputed": "No disputed spots {}.",
    "detected": "No detected spots {} wait for your decision.",
    "rejected": "No rejected spots {} wait for your decision.",
    "decided": "No decisions {} yet.",
}


class SpotGrid(CardGrid):
    """Spots of one list as crops at the same scale.

    Signals
    -------
    asked
        Other spots are wanted: `kind` and `everywhere`.
    opened : int
        The spot that was double-clicked, or selected with Return.
    accept_requested, reject_requested, skip_requested
    left
        The image is wanted again.
    """

    KEY_HELP = KeyHelp(
        "In the grid of spots",
        (
            ("Click, Shift, Ctrl", "select several"),
            ("Ctrl+A", "select all"),
            ("Return", "show the spot on its image"),
        ),
    )

    asked = Signal()
    opened = Signal(int)
    accept_requested = Signal()
    reject_requested = Signal()
    skip_requested = Signal()
    left = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Spots", parent, picture=PICTURE, several=True)
        self.kind_choice, self.where_choice = ChoiceBox(), ChoiceBox()
        self.kind_choice.setAccessibleName("List of spots")
        self.where_choice.setAccessibleName("Images of the spots")
        for box, choices in ((self.kind_choice, KINDS), (self.where_choice, WHERE)):
            for key, words in choices.items():
                box.addItem(words, key)
            box.currentIndexChanged.connect(self.asked)
        self._chosen = plain_label("", "small")
        self.accept = KeyButton("A", "accept", "accent", "Accept all selected spots")
        self.reject = KeyButton("R", "reject", "rejected", "Reject all selected spots")
        self.skip = KeyButton(
            "S", "skip", "second", "Leave the selected spots undecided and move them to the end"
        )
        back = KeyButton("G", "image", "second", "Return to the image")
        for button, signal in (
            (self.accept, self.accept_requested), (self.reject, self.reject_requested),
            (self.skip, self.skip_requested), (back, self.left),
        ):  # fmt: skip
            button.clicked.connect(signal)
        for index, box in enumerate((self.kind_choice, self.where_choice)):
            box.setMinimumContentsLength(9)
            self._header.row.insertWidget(1 + index, box)
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 8, 4)
        row.setSpacing(8)
        for widget in (self.accept, self.reject, self.skip, back):
            row.addWidget(widget)
        row.addStretch(1)
        row.addWidget(self._chosen)
        self._column.insertLayout(1, row)
        self.view.returned.connect(self._on_opened)
        self.view.doubleClicked.connect(self._on_opened)
        self.selection_changed.connect(self._on_selection)
        self._on_selection()

    @property
    def kind(self) -> str:
        """Key of the selected list, see `KINDS`."""
        return str(self.kind_choice.currentData())

    @property
    def everywhere(self) -> bool:
        """True if spots of all images are listed."""
        return bool(self.where_choice.currentData() == "study")

    def show_spots(self, spots: Cards, scale: str, *, reset: bool) -> None:
        """Show spots.

        Parameters
        ----------
        spots : Cards
        scale : str
            How wide each crop is: "40 px".
        reset : bool
            From the first on; else in the place of those that were shown.
        """
        where = "on any image" if self.everywhere else "on this image"
        total = len(spots.numbers)
        wide = f"each {scale} wide" if total > 1 else f"{scale} wide"
        self._header.set_aside(f"{count(total, 'spot')}, {wide}" if total else "")
        show = self.show_cards if reset else self.exchange
        show(spots, EMPTY[self.kind].format(where), f"Spots {KINDS[self.kind]} {where}")
        self._on_selection()

    def _on_selection(self) -> None:
        count = len(self.view.selectionModel().selectedIndexes())
        self._chosen.setText(f"{count:,} selected" if count else "")
        for button in (self.accept, self.reject, self.skip):
            button.setEnabled(bool(count))

    def _on_opened(self, index: QModelIndex) -> None:
        current = self.current
        if index.isValid() and current is not None:
            self.opened.emit(current)
