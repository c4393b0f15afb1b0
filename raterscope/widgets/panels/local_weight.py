"""Where one rater is trusted: the local weight, or the local scale tau, about a region, small."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QImage, QPaintEngine, QPainter, QPen
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from raterscope.figures.table import PlotTable
from raterscope.widgets import theme
from raterscope.widgets.canvas.pictures import to_picture
from raterscope.widgets.colour_maps import CIVIDIS
from raterscope.widgets.figures.cells import BAR_HEIGHT, colours_of, paint_colour_bar
from raterscope.widgets.figures.figure_panel import Figure
from raterscope.widgets.figures.mode_switch import ModeSwitch
from raterscope.widgets.parts import Header, plain_label
from raterscope.widgets.text_size import set_lengths

__all__ = ["LocalWeight"]

SHARP = 4.0
"""Pixels of a voxels' picture for one of the figure, where it is to stay sharp."""

NOTHING = "Select a rater to see where the consensus follows that rater."

MEASURES = {
    "weight": ("weight", "The rater's share of the weight behind the consensus"),
    "tau": ("tau", "Local scale: divides the rater's Sigma. Low where the rater is far from the others"),
}


class LocalWeight(QWidget):
    """A heat map with its colour bar; voxels stay voxels. It can be copied and saved, its numbers too.

    Signals
    -------
    measure_chosen : str
        "weight" or "tau".
    """

    measure_chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._header = Header("Local weight")
        self._measures = ModeSwitch(MEASURES)
        self._measures.chosen.connect(self.measure_chosen)
        self._header.row.addWidget(self._measures)
        self._nothing = plain_label(NOTHING, "second", wrap=True)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._map = _Map(self._header)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._nothing)
        self._pages.addWidget(self._map)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(6)
        column.addWidget(self._header)
        column.addWidget(self._pages, 1)

    def set_nothing(self, why: str = "") -> None:
        """Say why nothing is seen here; by default what belongs here."""
        self._nothing.setText(why or NOTHING)

    @property
    def measure(self) -> str:
        """What is to be shown, "weight" or "tau"."""
        return self._measures.mode

    def show_local(
        self,
        title: str,
        values: NDArray[np.floating] | None,
        low: float = 0.0,
        high: float = 1.0,
        aspect: float = 1.0,
        corner: tuple[int, int] = (0, 0),
    ) -> None:
        """Show a crop of a rater's weight or tau.

        Parameters
        ----------
        title : str
            "Local weight, rater 4" or "Local tau, rater 4".
        values : (H, W) float or None
            None where there is none to show.
        low, high : float
            Ends of the scale.
        aspect : float
            Height of a voxel over its width.
        corner : tuple of int
            Row and column of the slice at which the crop begins.
        """
        self._header.set_title(title)
        known = values is not None and values.size > 0
        self._pages.setCurrentIndex(int(known))
        if values is not None and known:
            self._map.show_map(self.measure, values, low, high, aspect, corner)
            least, most = float(np.nanmin(values)), float(np.nanmax(values))
            self._map.setAccessibleName(f"{title}: from {least:.2f} to {most:.2f}")
            said = "" if self.measure == "tau" else ". 1: the consensus follows the rater, 0: it does not"
            self._map.setToolTip(f"From {least:.2f} to {most:.2f} here{said}")


class _Map(Figure[tuple[int, int]]):
    """A part is a cell of the map: row and column."""

    def __init__(self, header: Header) -> None:
        super().__init__("Local weight")
        self.header = header
        self._values: NDArray[np.floating] = np.empty((0, 0))
        self._corner = (0, 0)
        self._picture: QImage | None = None
        self._measure = "weight"
        self._ends = (0.0, 1.0)
        self._aspect = 1.0
        set_lengths(self, minimumHeight=BAR_HEIGHT + 48)

    def sizeHint(self) -> QSize:
        return QSize(336, BAR_HEIGHT + 104)

    def show_map(
        self,
        measure: str,
        values: NDArray[np.floating],
        low: float,
        high: float,
        aspect: float,
        corner: tuple[int, int],
    ) -> None:
        self._measure, self._values, self._corner = measure, values, corner
        self._picture = to_picture(colours_of(values, low, high, CIVIDIS))
        self._ends, self._aspect = (low, high), aspect
        self.point(None)
        self.redraw()

    def words(self, part: tuple[int, int]) -> str:
        row, column = part
        place = f"row {self._corner[0] + row + 1}, column {self._corner[1] + column + 1}"
        return f"{place}: {self._measure} {self._values[row, column]:.2f}"

    def part_at(self, place: QPointF) -> tuple[int, int] | None:
        if self._picture is None:
            return None
        box, (rows, columns) = self._box(), self._values.shape
        if not box.contains(place):
            return None
        row = int((place.y() - box.top()) / box.height() * rows)
        column = int((place.x() - box.left()) / box.width() * columns)
        return min(row, rows - 1), min(column, columns - 1)

    def step(self, part: tuple[int, int] | None, across: int, down: int) -> tuple[int, int] | None:
        rows, columns = self._values.shape
        if not rows or not columns:
            return None
        if part is None:
            return 0, 0
        row, column = part
        return min(max(row + down, 0), rows - 1), min(max(column + across, 0), columns - 1)

    def choose(self, part: tuple[int, int]) -> None:
        """Do nothing more than point at it: a place of the map selects nothing."""
        self.point(part)

    def table(self) -> PlotTable:
        (down, across), (high, wide) = self._corner, self._values.shape
        rows, columns = np.arange(down + 1, down + 1 + high), np.arange(across + 1, across + 1 + wide)
        return PlotTable.of_cells({"row": rows, "column": columns}, {self._measure: self._values})

    def draw(self, painter: QPainter) -> None:
        if self._picture is None:
            return
        box, picture = self._box(), self._picture
        if painter.paintEngine().type() == QPaintEngine.Type.SVG:  # who shows it would blur so small an image
            picture = picture.scaled((box.size() * SHARP).toSize().expandedTo(picture.size()))
        painter.drawImage(box, picture)
        bar = QRectF(0, box.bottom() + 6, self.room.width(), BAR_HEIGHT)
        paint_colour_bar(painter, bar, CIVIDIS, *self._ends, self._measure)
        if self.pointed is not None:
            (row, column), (rows, columns) = self.pointed, self._values.shape
            wide, high = box.width() / columns, box.height() / rows
            cell = QRectF(box.left() + column * wide, box.top() + row * high, wide, high)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            for colour, width in ((theme.current().canvas, 3.0), ("#ffffff", 1.2)):
                painter.setPen(QPen(QColor(colour), width))
                painter.drawRect(cell.adjusted(-1, -1, 1, 1))

    def _box(self) -> QRectF:
        """Give where the map is, in pixels of the room."""
        assert self._picture is not None
        room = self.room.adjusted(0, 0, 0, -BAR_HEIGHT - 6)
        whole = QRectF(0, 0, self._picture.width(), self._picture.height() * self._aspect).size()
        size = whole.scaled(room.size(), Qt.AspectRatioMode.KeepAspectRatio)
        return QRectF(room.left(), room.top(), size.width(), size.height())
