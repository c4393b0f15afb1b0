"""Movable divider between the two compared sides of a view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QWidget

from raterscope.widgets import theme
from raterscope.widgets.hints import HEIGHT, MenuChip, paint_chip_ground
from raterscope.widgets.parts import announce
from raterscope.widgets.theme import enlarge, pixels, text_size

EDGE = 12
GRIP = 6.0
"""Pixels around the divider within which it can be dragged."""
NARROWEST = 48
"""Minimum width of a side to show its name."""
STEP = 0.05
"""Step of a key press, as a share of the width."""
_LEFT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft


@dataclass(frozen=True)
class Side:
    """Name of a side, and its other possible contents as ``(name, words)``."""

    title: str
    choices: tuple[tuple[str, str], ...] = ()


Sides = tuple[Side, Side]
"""The sides left and right of the divider."""


class Divider(QObject):
    """Position of the divider, and a chip on each side with its name and other choices.

    `view`: parent widget of the chips.
    """

    moved = Signal()
    side_chosen = Signal(int, str)  # 0 left or 1 right, and the name of the choice

    def __init__(self, view: QWidget) -> None:
        super().__init__(view)
        self.share = 0.5
        """Share of the width left of the divider."""
        self.sides: Sides | None = None
        self._view = view
        self._box, self._top = QRect(), 0
        self.chips = (self._chip("Left side", 0), self._chip("Right side", 1))

    def _chip(self, noun: str, side: int) -> MenuChip:
        chip = MenuChip(noun, f"What is shown on the {noun.lower()} of the divider", self._view)
        chip.chosen.connect(lambda name: self.side_chosen.emit(side, name))
        chip.hide()
        return chip

    def set_sides(self, sides: Sides | None) -> None:
        """Name both sides; None removes the divider."""
        if sides is not None and sides != self.sides:
            announce(self._view, f"Left {sides[0].title}, right {sides[1].title}")
        self.sides = sides
        for chip, side in zip(self.chips, sides or (), strict=False):
            chip.set_choices(side.choices)
            chip.set_text(side.title)
        self._place_chips()

    def across(self, width: float) -> float | None:
        """Return the divider's position in a view of this width; None without a divider."""
        return None if self.sides is None else self.share * width

    def is_at(self, across: float, width: float) -> bool:
        """Return whether a press at a position grabs the divider."""
        position = self.across(width)
        return position is not None and abs(across - position) <= GRIP

    def move(self, share: float) -> None:
        """Move the divider to a share of the width."""
        self.share = min(max(share, 0.0), 1.0)
        self._place_chips()
        self.moved.emit()

    def place(self, box: QRect, top: int) -> None:
        """Place the chips on a part of the view, below `top`."""
        self._box, self._top = box, top
        self._place_chips()

    def _place_chips(self) -> None:
        box, edge = self._box, pixels(EDGE)
        across = self.across(box.width())
        for right, chip in enumerate(self.chips):
            if across is None:
                chip.hide()
                continue
            room = round(box.width() - across if right else across) - 2 * edge
            width = min(chip.sizeHint().width(), room)
            left = round(across) + edge if right else round(across) - edge - width
            chip.setGeometry(box.left() + left, self._top + edge, max(width, 1), chip.sizeHint().height())
            chip.setVisible(room >= pixels(NARROWEST))
            chip.raise_()


def paint_divider(painter: QPainter, across: float, height: float) -> None:
    """Paint the line between two compared sides."""
    for colour, width in ((theme.DARK.canvas, 5), (theme.DARK.text, 2)):
        painter.setPen(QPen(QColor(colour), width))
        painter.drawLine(QPointF(across, 0), QPointF(across, height))


def paint_titles(painter: QPainter, across: float, titles: Sequence[str], top: float) -> None:
    """Paint the names of both sides into a picture, at the positions of the chips."""
    painter.save()
    enlarge(painter, QRectF())
    painter.setFont(theme.font())
    middle, upper = across / text_size(), top / text_size() + EDGE
    for right, title in enumerate(titles):
        width = QFontMetrics(painter.font()).horizontalAdvance(title) + 20.0
        box = QRectF(middle + EDGE if right else middle - EDGE - width, upper, width, HEIGHT)
        paint_chip_ground(painter, box)
        painter.setPen(QColor(theme.DARK.text))
        painter.drawText(box.adjusted(10, 0, 0, 0), _LEFT, title)
    painter.restore()
