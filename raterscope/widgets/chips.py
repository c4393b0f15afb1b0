"""Small translucent switches that lie on the edge of an image."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from raterscope.widgets import theme
from raterscope.widgets.text_size import enlarge, pixels
from raterscope.widgets.wrapping import WrappingRow

__all__ = ["Chip", "ChipRow", "paint_chip_ground"]

HEIGHT = 28
"""Of a chip, in pixels of the usual size."""


def paint_chip_ground(painter: QPainter, box: QRectF) -> None:
    """Paint the ground of what lies over an image: dark in both themes, since the image's ground is."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.colour(theme.DARK.surface, 225))
    painter.drawRoundedRect(box, 5, 5)


class Chip(QAbstractButton):
    """A switch with a dot that is lit while it is on."""

    def __init__(self, word: str, tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setText(word)
        self.setCheckable(True)
        self.setToolTip(tip)
        self.setAccessibleName(f"Show {word}")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def sizeHint(self) -> QSize:
        """Give room for dot and word."""
        words = QFontMetrics(theme.font()).horizontalAdvance(self.text())
        return QSize(pixels(words + 32), pixels(HEIGHT))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint dot and word."""
        with QPainter(self) as painter:
            self._paint(painter)

    def _paint(self, painter: QPainter) -> None:
        look, box = theme.DARK, enlarge(painter, self.rect())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        centre = QPointF(14, box.height() / 2)
        if self.isChecked():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(look.accent))
        else:
            painter.setPen(QPen(QColor(look.third), 1.2))
        painter.drawEllipse(centre, 4, 4)
        painter.setPen(QColor(look.text if self.isChecked() else look.second))
        painter.setFont(theme.font())
        room = box.adjusted(24, 0, 0, 0)
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, self.text())
        if self.hasFocus():
            painter.setPen(QPen(QColor(look.accent), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(2.5, 2.5, -2.5, -2.5), 4, 4)


class ChipRow(WrappingRow):
    """Several switches on one ground."""

    toggled = Signal(str, bool)

    def __init__(self, chips: dict[str, tuple[str, str]], parent: QWidget | None = None) -> None:
        """Make a switch of every ``name: (word, tooltip)``."""
        self._chips = {name: Chip(word, tip) for name, (word, tip) in chips.items()}
        super().__init__(tuple(self._chips.values()), 0, 0, parent=parent)
        for name, chip in self._chips.items():
            chip.setObjectName(name)
            chip.toggled.connect(self._on_toggled)

    def fit(self, room: int) -> None:
        """Take as much of a width as is needed, and more lines where it is too little."""
        width = min(self.sizeHint().width(), room)
        self.resize(width, self.heightForWidth(width))

    def set_on(self, name: str, on: bool) -> None:
        """Set one switch without a signal."""
        chip = self._chips[name]
        blocked = chip.blockSignals(True)
        chip.setChecked(on)
        chip.blockSignals(blocked)
        chip.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the common ground."""
        with QPainter(self) as painter:
            paint_chip_ground(painter, QRectF(self.rect()))

    def _on_toggled(self, on: bool) -> None:
        self.toggled.emit(self.sender().objectName(), on)
