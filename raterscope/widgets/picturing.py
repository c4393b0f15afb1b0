"""Export of a figure with its title, as pixels or as SVG."""

from __future__ import annotations

import re
from typing import Protocol

from PySide6.QtCore import QBuffer, QIODevice, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPainter

from raterscope.widgets import theme
from raterscope.widgets.painting import paint_words

__all__ = ["Drawn", "paint_svg", "paint_to_image"]

MARGIN, HEADING = 12, 24
DOTS_PER_INCH = 96
_SHARP = b'image-rendering="optimizeSpeed"'


class Drawn(Protocol):
    """Protocol of a view that can be painted outside the window."""

    def heading(self) -> tuple[str, str]:
        """Return the title and the text at the right; empty if the figure needs none."""

    def picture_size(self) -> QSize:
        """Return the size in window pixels."""

    def paint_picture(self, painter: QPainter) -> None:
        """Paint the figure at the painter's origin in the current theme, without pointer and focus marks."""


def paint_to_image(figure: Drawn, scale: float, caption: str = "") -> QImage:
    """Paint a figure into an image.

    Parameters
    ----------
    figure : Drawn
    scale : float
        Image pixels per window pixel.
    caption : str
        Line below the figure, also stored as the image's description; empty for none.
    """
    size = _whole(figure, caption)
    image = QImage(size * scale, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(scale)
    with QPainter(image) as painter:
        _paint(figure, painter, size, caption)
    if caption:
        image.setText("Description", caption)
    return image


def paint_svg(figure: Drawn, caption: str = "") -> bytes:
    """Paint a figure as SVG with lines and text; see `paint_to_image`."""
    from PySide6.QtSvg import QSvgGenerator

    size, buffer = _whole(figure, caption), QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setResolution(DOTS_PER_INCH)
    generator.setSize(size)
    generator.setViewBox(QRect(0, 0, size.width(), size.height()))
    generator.setTitle(" ".join(filter(None, figure.heading())))
    generator.setDescription(", ".join(filter(None, ("Raterscope", caption))))
    with QPainter(generator) as painter:
        _paint(figure, painter, size, caption)
    return _for_other_readers(bytes(buffer.data().data()))


def _for_other_readers(svg: bytes) -> bytes:
    """Add a fallback font, and keep cells sharp in browsers."""
    svg = re.sub(rb'font-family="([^"]*)"', rb'font-family="\1, sans-serif"', svg)
    return svg.replace(_SHARP, b'style="image-rendering:optimizeSpeed;image-rendering:pixelated"')


def _whole(figure: Drawn, caption: str) -> QSize:
    size = figure.picture_size()
    if figure.heading()[0]:
        size += QSize(2 * MARGIN, HEADING + 2 * MARGIN)
    return size + QSize(0, HEADING) if caption else size


def _paint(figure: Drawn, painter: QPainter, size: QSize, caption: str) -> None:
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.fillRect(QRectF(0, 0, size.width(), size.height()), QColor(theme.current().surface))
    title, aside = figure.heading()
    if caption:
        painter.setFont(theme.font(theme.CAPTION))
        box = QRectF(MARGIN, size.height() - HEADING, size.width() - 2 * MARGIN, HEADING - 6)
        paint_words(painter, box, caption, theme.current().second)
    if title:
        _paint_heading(painter, QRectF(MARGIN, MARGIN, size.width() - 2 * MARGIN, HEADING - 6), title, aside)
        painter.translate(MARGIN, MARGIN + HEADING)
    figure.paint_picture(painter)


def _paint_heading(painter: QPainter, box: QRectF, title: str, aside: str) -> None:
    look = theme.current()
    painter.setFont(theme.font(bold=True))
    width = QFontMetrics(painter.font()).horizontalAdvance(title) + 12
    paint_words(painter, box, title, look.text)
    painter.setFont(theme.font(theme.CAPTION))
    rest = box.adjusted(width, 0, 0, 0)
    if rest.width() > 0:
        paint_words(painter, rest, aside, look.second, side=Qt.AlignmentFlag.AlignRight)
