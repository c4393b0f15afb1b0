"""A spot, enlarged."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.clicks.ellipses import ellipses
from raterscope.widgets import theme
from raterscope.widgets.canvas.pictures import to_picture
from raterscope.widgets.canvas.spot_layer import state_style
from raterscope.widgets.figure_menu import DrawnMenu

__all__ = ["SIDE", "CropView"]

SIDE = 152
"""The side of the square where there is room."""


class CropView(QWidget):
    """A square of the image about a spot, with its ellipse; it can be copied and saved."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFixedSize(SIDE, SIDE)
        self.setAccessibleName("The spot, enlarged")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.menu = DrawnMenu(self, self)
        self._title = ""
        self._picture: QImage | None = None
        self._radii: tuple[float, float] | None = None
        self._turn = 0.0
        self._state = "detected"

    def set_side(self, side: int) -> None:
        """Take more room, or less."""
        self.setFixedSize(side, side)

    def sizeHint(self) -> QSize:
        """Keep a square."""
        return self.maximumSize()

    def show_crop(
        self,
        crop: NDArray[np.uint8] | None,
        radius: float,
        covariance: NDArray[np.floating] | None,
        coverage: float,
        state: str,
        title: str = "",
    ) -> None:
        """Show another spot; `radius` is half the crop's width in the units of the covariance.

        The title is what it is called where it is saved.
        """
        self._title = title
        self._picture = None if crop is None or not crop.size else to_picture(crop)
        self._state = state
        self._radii = None
        if covariance is not None and np.any(covariance):
            long, short, angle = ellipses(np.asarray(covariance)[None], coverage)[0]
            self._radii = (float(long / radius), float(short / radius))
            self._turn = float(np.degrees(angle))
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint crop and ellipse, and a frame while it has the keys."""
        with QPainter(self) as painter:
            painter.save()
            self.paint_picture(painter)
            painter.restore()
            if self.hasFocus():
                painter.setPen(QPen(QColor(theme.DARK.accent), 1))
                painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))

    def heading(self) -> tuple[str, str]:
        """Give which spot it is."""
        return self._title, ""

    def picture_size(self) -> QSize:
        """Give how large the square is."""
        return self.size()

    def paint_picture(self, painter: QPainter) -> None:
        """Paint crop and ellipse."""
        box = QRectF(self.rect())
        painter.fillRect(box, QColor(theme.DARK.canvas))
        if self._picture is None:
            painter.setPen(QColor(theme.DARK.second))
            painter.setFont(theme.widget_font(theme.CAPTION))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, "no image")
        else:
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
            painter.drawImage(box, self._picture)
        if self._radii is None:
            return
        style = state_style(self._state)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(box.center())
        painter.rotate(self._turn)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        pen = QPen(QColor(style.colour), 1.8)
        if style.dashes:
            pen.setDashPattern(style.dashes)
        for stroke in (QPen(theme.colour(theme.DARK.canvas, 150), 3.6), pen):
            painter.setPen(stroke)
            half = box.width() / 2
            painter.drawEllipse(QPointF(), self._radii[0] * half, self._radii[1] * half)
