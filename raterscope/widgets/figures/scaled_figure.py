"""Figures of annotators between two axes: the box, a scale that may be logarithmic, the choice."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPen, QResizeEvent
from PySide6.QtWidgets import QWidget

from raterscope.widgets import theme
from raterscope.widgets.figures.figure_panel import Figure, FigurePanel, row_of
from raterscope.widgets.figures.mode_switch import ModeSwitch
from raterscope.widgets.painting import paint_words

__all__ = [
    "ScaledFigure",
    "ScaledPanel",
    "paint_value_scale",
    "walked",
]


class ScaledPanel(FigurePanel):
    """A figure with the switch of its scale beside its title.

    Parameters
    ----------
    scales : mapping of str to (str, str)
        "log" and what else there is, as `ModeSwitch` takes them.

    Signals
    -------
    chosen : int
        Number of an annotator.
    """

    chosen = Signal(int)

    def __init__(
        self,
        title: str,
        figure: ScaledFigure,
        nothing: str,
        scales: Mapping[str, tuple[str, str]],
        parent: QWidget | None = None,
        *,
        brief: str = "",
    ) -> None:
        super().__init__(title, figure, nothing, parent, brief=brief)
        self._scaled = figure
        self.scale = ModeSwitch(scales)
        self.header.row.addWidget(self.scale)
        self.scale.hide()
        self.scale.chosen.connect(self._on_scale)
        figure.chosen.connect(self.chosen)

    def set_filled(self, filled: bool) -> None:
        """Show the figure and its switch, or the sentence that says what belongs here."""
        self.scale.setVisible(filled)
        super().set_filled(filled)

    def select(self, number: int | None) -> None:
        """Select an annotator without a signal, or nobody."""
        self._scaled.select(number)

    def _on_scale(self, mode: str) -> None:
        self._scaled.set_logarithmic(mode == "log")


class ScaledFigure(Figure[int]):
    """A part is a row of the view.

    Parameters
    ----------
    name : str
    margins : (left, top, right, bottom) float
        About the box between the axes, pixels.

    Signals
    -------
    chosen : int
        Number of an annotator.
    """

    chosen = Signal(int)

    def __init__(self, name: str, margins: tuple[float, float, float, float]) -> None:
        super().__init__(name)
        self._margins = margins
        self._numbers: NDArray[np.integer] = np.empty(0, np.int64)
        self._selected: int | None = None
        self._logarithmic = True

    def lay_out(self) -> None:
        """Work out anew where everything lies."""
        raise NotImplementedError

    def set_numbers(self, numbers: NDArray[np.integer] | None) -> None:
        """Take the annotators of another view, None for no view; who is selected stays."""
        self.point(None)
        kept = None if self._selected is None else int(self._numbers[self._selected])
        self._numbers = np.empty(0, np.int64) if numbers is None else numbers
        self.select(kept)

    def select(self, number: int | None) -> None:
        """Select an annotator without a signal, or nobody."""
        self._selected = row_of(self._numbers, number)
        self.update()

    def choose(self, part: int) -> None:
        """Select the annotator of a row, and say so."""
        self._selected = part
        self.update()
        self.chosen.emit(int(self._numbers[part]))

    def set_logarithmic(self, logarithmic: bool) -> None:
        """Lay everything out by logarithms, or as it is."""
        self._logarithmic = logarithmic
        self.lay_out()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay everything out in the new room."""
        super().resizeEvent(event)
        self.lay_out()

    def box(self) -> QRectF:
        """Give the room between the axes."""
        left, top, right, bottom = self._margins
        return QRectF(
            left, top, max(self.room.width() - left - right, 8.0), max(self.room.height() - top - bottom, 8.0)
        )

    def draw_axes(self, painter: QPainter, box: QRectF) -> None:
        """Draw the lines to the left of the box and below it."""
        painter.setPen(QPen(QColor(theme.current().line), 1))
        painter.drawLine(box.topLeft(), box.bottomLeft())
        painter.drawLine(box.bottomLeft(), box.bottomRight())


def walked(order: NDArray[np.integer], part: int, by: int) -> int:
    """Give the row that lies so many places on in an order, or at its end."""
    row = int(np.flatnonzero(order == part)[0]) + by
    return int(order[min(max(row, 0), len(order) - 1)])


APART = 14.0
HEIGHT = 16.0


def paint_value_scale(
    painter: QPainter, box: QRectF, least: float, most: float, zero: float, digits: int = 2
) -> None:
    """Write the numbers left of a plot.

    Parameters
    ----------
    painter : QPainter
    box : QRectF
        The plot; there is room for a number between the widget's edge and its left side.
    least, most : float
        What its lower and its upper edge stand for.
    zero : float
        How high 0 lies, in pixels from the top of the widget.
    digits : int
        That count.
    """
    look, right = theme.current(), Qt.AlignmentFlag.AlignRight
    painter.setFont(theme.font(theme.CAPTION))
    ends = [(most, box.top() + HEIGHT / 2 - 3), (least, box.bottom() - HEIGHT / 2 + 3)]
    for value, y in [(0.0, zero), *((value, y) for value, y in ends if abs(y - zero) > APART)]:
        room = QRectF(0, y - HEIGHT / 2, box.left() - 6, HEIGHT)
        paint_words(painter, room, f"{value:.{digits}g}".replace("-", "−"), look.third, side=right)
