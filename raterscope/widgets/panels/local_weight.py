"""Where one rater is trusted: the local weight, or the local scale tau, about a region, small."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QImage, QPaintEngine, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from raterscope.figures.table import PlotTable
from raterscope.widgets import theme
from raterscope.widgets.canvas.pictures import to_picture
from raterscope.widgets.colour_maps import CIVIDIS
from raterscope.widgets.figure_menu import FigureMenu
from raterscope.widgets.figures.colour_bar import BAR_HEIGHT, colours_of, paint_colour_bar
from raterscope.widgets.figures.mode_switch import ModeSwitch
from raterscope.widgets.parts import Header, plain_label
from raterscope.widgets.text_size import enlarge, set_lengths, text_size

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


class _Map(QWidget):
    def __init__(self, header: Header) -> None:
        super().__init__()
        self._header = header
        self._values: NDArray[np.floating] = np.empty((0, 0))
        self._corner = (0, 0)
        self.setAccessibleName("Local weight")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.menu = FigureMenu(self, self)
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
        self.update()

    def heading(self) -> tuple[str, str]:
        return self._header.words()

    def picture_size(self) -> QSize:
        return QSize(round(self.width() / text_size()), round(self.height() / text_size()))

    def table(self) -> PlotTable:
        (down, across), (high, wide) = self._corner, self._values.shape
        rows, columns = np.arange(down + 1, down + 1 + high), np.arange(across + 1, across + 1 + wide)
        return PlotTable.of_cells({"row": rows, "column": columns}, {self._measure: self._values})

    def paint_picture(self, painter: QPainter) -> None:
        if self._picture is None:
            return
        room = QRectF(QPointF(), self.picture_size().toSizeF()).adjusted(0, 0, 0, -BAR_HEIGHT - 6)
        whole = QRectF(0, 0, self._picture.width(), self._picture.height() * self._aspect).size()
        size = whole.scaled(room.size(), Qt.AspectRatioMode.KeepAspectRatio)
        box = QRectF(room.left(), room.top(), size.width(), size.height())
        picture = self._picture
        if painter.paintEngine().type() == QPaintEngine.Type.SVG:  # who shows it would blur so small an image
            picture = picture.scaled((size * SHARP).toSize().expandedTo(picture.size()))
        painter.drawImage(box, picture)
        bar = QRectF(0, box.bottom() + 6, room.width(), BAR_HEIGHT)
        paint_colour_bar(painter, bar, CIVIDIS, *self._ends, self._measure)

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            enlarge(painter, self.rect())
            self.paint_picture(painter)
            if self.hasFocus():
                painter.resetTransform()
                painter.setPen(QPen(QColor(theme.current().accent), 1))
                painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
