"""Painting of texts, bars and annotator symbols, and a cache of thumbnails."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import lru_cache

from PySide6.QtCore import QObject, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPainter, QPainterPath, QPen, QPixmap, QPolygonF
from PySide6.QtWidgets import QWidget

from raterscope.figures import colours
from raterscope.figures.colours import ANNOTATOR_COLOURS, DARK, OUTLINES, Theme
from raterscope.widgets import theme
from raterscope.widgets.theme import text_size

BOOKMARK = "\N{BLACK STAR}"
"""Symbol of bookmarks in lists and pictures."""
NO_BREAK = "\N{NO-BREAK SPACE}"


def paint_text(
    painter: QPainter,
    box: QRectF,
    text: str,
    colour: str,
    *,
    side: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft,
    elide: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
    brief: str = "",
) -> None:
    """Paint one line of text in the painter's font; if it does not fit, paint its short form, elided."""
    painter.setPen(QColor(colour))
    metrics = QFontMetrics(painter.font())
    text = text.replace("\n", " ")  # a file's name may have an end of line
    if brief and not fits(text, metrics, box.width()):
        text = brief
    short = metrics.elidedText(text, elide, int(box.width()))
    painter.drawText(box, side | Qt.AlignmentFlag.AlignVCenter, short)


def fits(text: str, metrics: QFontMetrics, room: float) -> bool:
    """Return whether text fits without eliding; its width, in whole pixels, may equal the available one."""
    return metrics.elidedText(text, Qt.TextElideMode.ElideRight, int(room)) == text


def in_two_lines(text: str, metrics: QFontMetrics, room: float) -> list[str]:
    """Break text into a line that fits, and the rest, which may be too long; "%" stays at its number."""
    words = text.replace(" %", f"{NO_BREAK}%").split(" ")
    first = len(words)
    while first > 1 and not fits(" ".join(words[:first]), metrics, room):
        first -= 1
    parts = (" ".join(part) for part in (words[:first], words[first:]))
    return [part.replace(NO_BREAK, " ") for part in parts if part]


def in_lines(text: str, metrics: QFontMetrics, room: float, most: int) -> list[str]:
    """Break text between words into at most `most` lines.

    A line that is too long is elided in the middle, because names differ at their start and end.
    """
    first, *others = in_two_lines(text, metrics, room)
    middle = Qt.TextElideMode.ElideMiddle
    if not others or most == 1:
        return [metrics.elidedText(text if most == 1 else first, middle, int(room))]
    first = metrics.elidedText(first, middle, int(room))
    return [first, *in_lines(others[0], metrics, room, most - 1)]


def paint_bar(painter: QPainter, box: QRectF, share: float, colour: str) -> None:
    """Paint a bar with round ends, filled from the left; NaN leaves it empty."""
    painter.setPen(Qt.PenStyle.NoPen)
    filled = min(max(share, 0.0), 1.0) if share == share else 0.0
    radius = box.height() / 2
    for width, ground in ((box.width(), theme.current().line), (box.width() * filled, colour)):
        if width > 0:
            painter.setBrush(QColor(ground))
            painter.drawRoundedRect(QRectF(box.left(), box.top(), width, box.height()), radius, radius)


def paint_focus_frame(painter: QPainter, box: QRectF, palette: Theme = DARK) -> None:
    """Paint the frame of a widget with the keyboard focus, within its box."""
    painter.setPen(QPen(QColor(palette.accent), 1))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5))


@lru_cache(maxsize=128)
def symbol_path(symbol: str, radius: float) -> QPainterPath:
    """Return the outline of a `Symbol` around the origin; `radius`: radius of a disc of the same weight."""
    path = QPainterPath()
    if symbol == "disc":
        path.addEllipse(QPointF(), radius, radius)
    elif symbol == "cross":
        half = 0.8 * radius
        path.moveTo(-half, -half)
        path.lineTo(half, half)
        path.moveTo(-half, half)
        path.lineTo(half, -half)
    else:
        path.addPolygon(QPolygonF([QPointF(radius * x, radius * y) for x, y in OUTLINES[symbol]]))
        path.closeSubpath()
    return path


def paint_annotator(
    painter: QPainter, centre: QPointF, index: int, radius: float, *, shown: bool = True
) -> None:
    """Paint an annotator's mark: filled, or hollow while the annotator is hidden."""
    hue, symbol = theme.annotator_style(index)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.translate(centre)
    if shown:
        edge = QColor(hue) if theme.current().dark else QColor(hue).darker(150)
        painter.setPen(QPen(edge, 1))
        painter.setBrush(QColor(hue))
    else:
        painter.setPen(QPen(QColor(hue), 1.2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(symbol_path(symbol, radius))
    painter.restore()


def rater_colour(index: int) -> str:
    """Return the colour of an annotator's line, which has no symbol.

    The palette repeats, but raters of one case mostly have consecutive numbers.
    """
    return ANNOTATOR_COLOURS[index % len(ANNOTATOR_COLOURS)]


def paint_rater(painter: QPainter, box: QRectF, index: int) -> None:
    """Paint a short piece of an annotator's line along the middle of a box."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(readable(rater_colour(index)), 3))
    painter.drawLine(QPointF(box.left() + 2, box.center().y()), QPointF(box.right() - 2, box.center().y()))
    painter.restore()


def readable(hue: str) -> QColor:
    """Return a colour of the palette that is readable on the theme's background: darker on a light one."""
    return QColor(colours.readable(hue, theme.current()))


def without_picture(damaged: bool) -> str:
    """Return the caption in place of a picture: its file is not the imported image, or there is none."""
    return "damaged\nor replaced" if damaged else "no image"


MAX_PICTURES = 1000
SETTLED_MS = 40


class ThumbnailCache(QObject):
    """Thumbnails by number.

    `side`: longest side of a thumbnail, in device-independent pixels. `visible_items`: returns the visible
    numbers. `parent`: widget that shows the thumbnails.
    """

    picture_requested = Signal(int)  # number of a missing picture; answer with `keep`
    changed = Signal()  # a picture arrived, or all were discarded

    def __init__(self, side: int, visible_items: Callable[[], Iterable[int]], parent: QWidget) -> None:
        super().__init__(parent)
        self._device = parent
        self._side, self._visible_items = side, visible_items
        self.kept: OrderedDict[int, QPixmap | None] = OrderedDict()
        self.damaged: set[int] = set()
        self._requested: set[int] = set()
        self._settle_timer = QTimer(self, singleShot=True, interval=SETTLED_MS)
        self._settle_timer.timeout.connect(self._ask)

    def rest(self) -> None:
        """Restart the timer after which visible pictures are requested."""
        self._settle_timer.start()

    def ask_again(self) -> None:
        """Repeat requests that were not answered."""
        self._requested.clear()
        self._settle_timer.start()

    def keep(self, number: int, picture: QImage | None) -> None:
        """Store a picture; None if there is none, a null image if it is damaged."""
        small = None
        if picture is not None and not picture.isNull():
            keep, smooth = Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.SmoothTransformation
            ratio = self._device.devicePixelRatioF() * text_size()
            side = round(self._side * ratio)
            small = QPixmap.fromImage(picture.scaled(side, side, keep, smooth))
            small.setDevicePixelRatio(ratio)
        (self.damaged.discard if small is not None or picture is None else self.damaged.add)(number)
        self.kept[number] = small
        self.kept.move_to_end(number)
        while len(self.kept) > MAX_PICTURES:
            self.kept.popitem(last=False)
        self._requested.discard(number)
        self.changed.emit()

    def forget(self) -> None:
        """Discard all pictures, because the numbers now belong to other items."""
        self.kept.clear()
        self.damaged.clear()
        self.ask_again()
        self.changed.emit()

    def _ask(self) -> None:
        for number in self._visible_items():
            if number not in self._requested and number not in self.kept:
                self._requested.add(number)
                self.picture_requested.emit(number)
