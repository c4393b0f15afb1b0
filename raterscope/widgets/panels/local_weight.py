"""Where one rater is trusted: the local weight about a region, small."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.canvas.colour_maps import CIVIDIS
from raterscope.widgets.canvas.pictures import to_picture
from raterscope.widgets.parts import Header, plain_label
from raterscope.widgets.plots.colour_bar import BAR_HEIGHT, colours_of, paint_colour_bar

__all__ = ["LocalWeight"]


class LocalWeight(QWidget):
    """A heat map with its colour bar; voxels stay voxels."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._header = Header("Local weight")
        words = "Choose a rater: where the consensus follows that rater, and where not, is drawn here."
        self._nothing = plain_label(words, "second", wrap=True)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._map = _Map()
        self._pages = QStackedWidget()
        self._pages.addWidget(self._nothing)
        self._pages.addWidget(self._map)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(6)
        column.addWidget(self._header)
        column.addWidget(self._pages, 1)

    def show_weight(
        self,
        title: str,
        values: NDArray[np.floating] | None,
        low: float = 0.0,
        high: float = 1.0,
        aspect: float = 1.0,
    ) -> None:
        """Show a crop of a rater's weight.

        Parameters
        ----------
        title : str
            "Local weight, rater 4".
        values : (H, W) float or None
            None where there is none to show.
        low, high : float
            Ends of the scale.
        aspect : float
            Height of a voxel over its width.
        """
        self._header.set_title(title)
        known = values is not None and values.size > 0
        self._pages.setCurrentIndex(int(known))
        if values is not None and known:
            self._map.show_map(values, low, high, aspect)
            least, most = float(np.nanmin(values)), float(np.nanmax(values))
            self._map.setAccessibleName(f"{title}: from {least:.2f} to {most:.2f}")
            self._map.setToolTip(f"From {least:.2f} to {most:.2f} here; 1 follows the rater, 0 does not")


class _Map(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self._picture: QImage | None = None
        self._ends = (0.0, 1.0)
        self._aspect = 1.0
        self.setMinimumHeight(BAR_HEIGHT + 48)

    def sizeHint(self) -> QSize:
        return QSize(336, BAR_HEIGHT + 104)

    def show_map(self, values: NDArray[np.floating], low: float, high: float, aspect: float) -> None:
        self._picture = to_picture(colours_of(values, low, high, CIVIDIS))
        self._ends, self._aspect = (low, high), aspect
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self._picture is None:
            return
        with QPainter(self) as painter:
            room = QRectF(self.rect()).adjusted(0, 0, 0, -BAR_HEIGHT - 6)
            whole = QRectF(0, 0, self._picture.width(), self._picture.height() * self._aspect).size()
            size = whole.scaled(room.size(), Qt.AspectRatioMode.KeepAspectRatio)
            box = QRectF(room.left(), room.top(), size.width(), size.height())
            painter.drawImage(box, self._picture)
            bar = QRectF(0, box.bottom() + 6, self.width(), BAR_HEIGHT)
            paint_colour_bar(painter, bar, CIVIDIS, *self._ends, "weight")
