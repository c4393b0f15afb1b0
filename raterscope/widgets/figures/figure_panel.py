"""Base of all figures: panel, title, placeholder text, mode switch, and a canvas that paints with Qt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import numpy as np
import shiboken6
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPaintEngine,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QPolygonF,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QToolTip, QWidget

from raterscope.figures.canvas import Anchor, Canvas, Pen, Point, Points
from raterscope.figures.colours import Symbol
from raterscope.figures.description import PlotTable
from raterscope.widgets import theme
from raterscope.widgets.figure_menu import FigureMenu
from raterscope.widgets.hints import KeyHelp, TitledPage
from raterscope.widgets.layouts import horizontal
from raterscope.widgets.painting import paint_focus_frame
from raterscope.widgets.parts import ARROWS, Header, plain_tip
from raterscope.widgets.theme import enlarge, pixels, set_lengths, text_size, usual

Part = TypeVar("Part")
FAR = 1 << 20
"""Number of steps of an arrow key that reaches the end of any figure."""


def row_of(numbers: NDArray[Any], number: int | None) -> int | None:
    """Return the row of a number; None if it is missing."""
    rows = np.flatnonzero(numbers == number)
    return int(rows[0]) if len(rows) else None


class FigurePanel(TitledPage):
    """A figure with its title above it, short if there is little space; a sentence if nothing is drawn.

    `page`: widget that contains the figure, shown instead of it.
    """

    def __init__(
        self, title: str, figure: QWidget, nothing: str, *, brief: str = "",
        page: QWidget | None = None,
    ) -> None:  # fmt: skip
        super().__init__(Header(title, brief=brief), page or figure, nothing)
        self._figure: Any = figure
        if isinstance(figure, Figure):
            figure.header = self.header
        self.setAccessibleName(title)
        self.setFocusProxy(figure)

    def select(self, part: Any, /) -> None:
        """Select a part of the figure, or none, without a signal."""
        self._figure.select(part)


class Figure(QWidget, Generic[Part]):
    """Figure whose parts respond to pointing and arrow keys, and are selected by a click, Return or Space.

    A part is a result of `part_at`; `words` describes it, in the tooltip and for screen readers.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        set_lengths(self, minimumWidth=96, minimumHeight=72)
        self.pointed: Part | None = None
        self._selected: Any = None
        self.header: Header | None = None  # header above it, whose title is also that of its pictures
        self.menu = FigureMenu(self, self, self.table)  # menu to copy and save the figure
        self._still: QPixmap | None = None
        self._picturing = False
        theme.notifier().changed.connect(self._on_look)

    def select(self, part: Any, /) -> None:
        """Select a part, or none, without a signal."""
        if part != self._selected:
            self._selected = part
            self.redraw()

    @property
    def room(self) -> QRectF:
        """The rectangle of the figure, in pixels at normal text size."""
        return QRectF(0.0, 0.0, self.width() / text_size(), self.height() / text_size())

    def part_at(self, _position: QPointF) -> Part | None:
        """Return the part at a position of the room, None for the background."""
        raise NotImplementedError

    def text_of(self, _part: Part) -> str:
        """Describe a part in a few words, as plain text."""
        raise NotImplementedError

    def tip_at(self, _position: QPointF) -> str:
        """Return the tooltip at a position outside all parts, such as the full name at an axis."""
        return ""

    def step(self, _part: Part | None, _across: int, _down: int) -> Part | None:
        """Return the next part in the direction of an arrow key; from None, the first."""
        raise NotImplementedError

    def end(self, part: Part | None, across: int) -> Part | None:
        """Return the part at the left (-1) or the right end (1) for the arrow keys."""
        first = self.step(None, 0, 0) if part is None else part
        if first is None:
            return None
        for by in (FAR, 1):
            after = self.step(first, across * by, 0)
            while after is not None and after != first:
                first, after = after, self.step(after, across * by, 0)
        return first

    def choose(self, _part: Part) -> None:
        """Handle a click on a part."""
        raise NotImplementedError

    def draw(self, _painter: QPainter) -> None:
        """Paint the figure."""
        raise NotImplementedError

    def table(self) -> PlotTable:
        """Return the drawn numbers as a table."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Repaint the figure, including the cached picture."""
        self._still = None
        self.update()

    def paint_still(self, painter: QPainter, paint: Callable[[QPainter], None]) -> None:
        """Paint static contents: on the screen from a picture that is cached until `redraw`."""
        if self._picturing:
            painter.save()
            paint(painter)
            painter.restore()
            return
        ratio = self.devicePixelRatioF() * text_size()
        if self._still is None or self._still.devicePixelRatio() != ratio:
            self._still = QPixmap(self.size() * self.devicePixelRatioF())
            self._still.setDevicePixelRatio(ratio)
            self._still.fill(Qt.GlobalColor.transparent)
            with QPainter(self._still) as still:
                still.setRenderHint(QPainter.RenderHint.Antialiasing)
                paint(still)
        painter.drawPixmap(0, 0, self._still)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Repaint in another size."""
        super().resizeEvent(event)
        self._still = None

    def _on_look(self) -> None:
        """Lay out again, because the available space may have changed."""
        self.resizeEvent(QResizeEvent(self.size(), self.size()))
        self.redraw()

    def heading(self) -> tuple[str, str]:
        """Return the title, and the text at its right."""
        return (self.accessibleName(), "") if self.header is None else self.header.text()

    def picture_size(self) -> QSize:
        """Return the size of the figure."""
        return self.room.size().toSize()

    def paint_picture(self, painter: QPainter) -> None:
        """Paint the figure without the mark of the pointer."""
        pointed, self.pointed, self._picturing = self.pointed, None, True
        try:
            self.draw(painter)
        finally:
            self.pointed, self._picturing = pointed, False

    def point(self, part: Part | None) -> None:
        """Mark a part as the one under the pointer."""
        if part != self.pointed:
            self.pointed = part
            self.setAccessibleDescription(self.text_of(part) if part is not None else "")
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the figure, and a frame while it has the keyboard focus."""
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            room = enlarge(painter, self.rect())
            self.draw(painter)
            if self.hasFocus() and self.pointed is None:
                paint_focus_frame(painter, room, theme.current())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Mark the part under the pointer."""
        self.point(self.part_at(usual(event.position())))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select the part under the pointer."""
        part = self.part_at(usual(event.position()))
        if part is not None and event.button() == Qt.MouseButton.LeftButton:
            self.point(part)
            self.choose(part)

    KEY_HELP = KeyHelp(
        "In a figure",
        (
            ("Arrows", "go from part to part"),
            ("Home, End", "go to the first, the last"),
            ("Return", "choose what is pointed at"),
        ),
    )

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move with the arrows, Home and End; select with Return or Space."""
        key = Qt.Key(event.key())
        if key in ARROWS:
            self.point(self.step(self.pointed, *ARROWS[key]))
        elif key in (Qt.Key.Key_Home, Qt.Key.Key_End):
            self.point(self.end(self.pointed, 1 if key == Qt.Key.Key_End else -1))
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and self.pointed is not None:
            self.choose(self.pointed)
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """Describe the part under the pointer in a tooltip."""
        if event.type() == QEvent.Type.ToolTip:
            assert isinstance(event, QHelpEvent)
            part = self.part_at(usual(QPointF(event.pos())))
            text = self.tip_at(usual(QPointF(event.pos()))) if part is None else self.text_of(part)
            tip = plain_tip(text) if text else self.toolTip()
            QToolTip.showText(event.globalPos(), tip, self)
            return True
        if event.type() in (QEvent.Type.Leave, QEvent.Type.FocusOut):
            self.point(None)
        return super().event(event)


class ModeSwitch(QWidget):
    """Switch between modes by click or arrow keys; the first mode is preset.

    `modes`: key of every mode, its label and its tooltip.
    """

    chosen = Signal(str)  # name of the mode

    def __init__(self, modes: Mapping[str, tuple[str, str]]) -> None:
        super().__init__()
        self._group = QButtonGroup(self)
        self._tips = {name: tip for name, (_, tip) in modes.items()}
        self.buttons = {name: _Word(word) for name, (word, _) in modes.items()}
        row = horizontal(inside=self)
        for name, button in self.buttons.items():
            button.setObjectName(name)
            button.setToolTip(plain_tip(self._tips[name]))
            self._group.addButton(button)
            row.addWidget(button)
        next(iter(self.buttons.values())).setChecked(True)
        self._group.buttonToggled.connect(self._on_toggled)

    @property
    def mode(self) -> str:
        """Name of the current mode."""
        return next(name for name, button in self.buttons.items() if button.isChecked())

    def set_mode(self, name: str) -> None:
        """Set a mode, with the signal of a click."""
        self.buttons[name].setChecked(True)

    def set_available(self, name: str, available: bool, why_not: str = "") -> None:
        """Enable or disable a mode, with a reason; the first mode replaces a disabled one."""
        button = self.buttons[name]
        button.setEnabled(available)
        button.setToolTip(plain_tip(self._tips[name] if available else why_not))
        if not available and button.isChecked():
            next(iter(self.buttons.values())).setChecked(True)

    def _on_toggled(self, button: QAbstractButton, on: bool) -> None:
        if on:
            self.chosen.emit(button.objectName())


class _Word(QAbstractButton):
    def __init__(self, word: str) -> None:
        super().__init__()
        self.setText(word)
        self.setCheckable(True)
        self.setAccessibleName(word)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def sizeHint(self) -> QSize:
        words = QFontMetrics(theme.font(theme.CAPTION)).horizontalAdvance(self.text())
        return QSize(pixels(words + 14), pixels(20))

    def paintEvent(self, _event: QPaintEvent) -> None:
        palette = theme.current()
        with QPainter(self) as painter:
            box = enlarge(painter, self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(QColor(palette.accent), 1) if self.hasFocus() else Qt.PenStyle.NoPen)
            painter.setBrush(QColor(palette.raised) if self.isChecked() else Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, 4, 4)
            tone = palette.text if self.isChecked() else palette.second if self.isEnabled() else palette.line
            painter.setPen(QColor(tone))
            painter.setFont(theme.font(theme.CAPTION))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, self.text())


FEW_DISCS, FEW = 150, 12
"""Maximum number of discs, and of other symbols, drawn one by one; of more, one is drawn and copied."""
_SIDES = {
    "start": (0.0, Qt.AlignmentFlag.AlignLeft),
    "middle": (0.5, Qt.AlignmentFlag.AlignHCenter),
    "end": (1.0, Qt.AlignmentFlag.AlignRight),
}


class QtCanvas(Canvas):
    """Canvas on an active painter, with antialiasing."""

    def __init__(self, painter: QPainter) -> None:
        self._painter = painter

    def line(self, points: Points, pen: Pen) -> None:
        """Draw a line through points."""
        self._painter.setPen(_pen(pen))
        self._painter.setBrush(Qt.BrushStyle.NoBrush)
        self._painter.drawPolyline(polygon_of(points))

    def polygon(self, points: Points, fill: str, opacity: float = 1.0) -> None:
        """Fill a polygon."""
        self._painter.setPen(Qt.PenStyle.NoPen)
        self._painter.setBrush(_colour(fill, opacity))
        self._painter.drawPolygon(polygon_of(points))

    def area(self, points: Points, fill: str, opacity: float = 1.0) -> None:
        """Fill a large polygon without antialiasing, which is faster."""
        self._painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        self.polygon(points, fill, opacity)
        self._painter.setRenderHint(QPainter.RenderHint.Antialiasing)

    def disc(
        self, centre: Point, radius: float, fill: str, edge: Pen | None = None, opacity: float = 1.0
    ) -> None:
        """Draw a disc."""
        self._painter.setPen(_pen(edge) if edge else QPen(Qt.PenStyle.NoPen))
        self._painter.setBrush(_colour(fill, opacity) if fill else Qt.BrushStyle.NoBrush)
        self._painter.drawEllipse(QPointF(*centre), radius, radius)

    def text(
        self, position: Point, text: str, colour: str, size: float, anchor: Anchor = "middle",
        *, turn: float = 0.0,
    ) -> None:  # fmt: skip
        """Write a line of text."""
        painter, font = self._painter, theme.font(round(size))
        width = QFontMetricsF(font).horizontalAdvance(text) + 2
        share, side = _SIDES[anchor]
        painter.save()
        painter.setFont(font)
        painter.setPen(QColor(colour))
        painter.translate(QPointF(*position))
        painter.rotate(turn)
        box = QRectF(-share * width, -size, width, 2 * size)
        painter.drawText(box, side | Qt.AlignmentFlag.AlignVCenter, text)
        painter.restore()

    def width_of(self, text: str, size: float) -> float:
        """Return the width of a text."""
        return text_width(text, size)

    @contextmanager
    def clipped(self, upper_left: Point, lower_right: Point) -> Iterator[None]:
        """Paint nothing outside a rectangle within the context."""
        self._painter.save()
        clip = QRectF(QPointF(*upper_left), QPointF(*lower_right))
        self._painter.setClipRect(clip, Qt.ClipOperation.IntersectClip)
        try:
            yield
        finally:
            self._painter.restore()

    def segments(self, ends: NDArray[np.floating], pen: Pen) -> None:
        """Draw straight lines."""
        self._painter.setPen(_pen(pen))
        for (x0, y0), (x1, y1) in ends.tolist():
            self._painter.drawLine(QPointF(x0, y0), QPointF(x1, y1))

    def rectangles(self, boxes: NDArray[np.floating], fill: str, opacity: float = 1.0) -> None:
        """Fill rectangles without antialiasing, so that neighbours touch."""
        painter, smooth = self._painter, QPainter.RenderHint.Antialiasing
        painter.setRenderHint(smooth, False)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(_colour(fill, opacity))
        sides = np.asarray(boxes, dtype=np.float64)
        sizes = np.column_stack([sides[:, :2], sides[:, 2:] - sides[:, :2]])
        painter.drawRects([QRectF(*size) for size in sizes.tolist()])
        painter.setRenderHint(smooth)

    def symbols(
        self, centres: NDArray[np.floating], symbol: Symbol, sizes: NDArray[np.floating], pen: Pen, fill: str
    ) -> None:
        """Draw one symbol at many centres."""
        painter = self._painter
        few = FEW_DISCS if symbol == "disc" else FEW
        if len(centres) <= few or np.ptp(sizes) > 0 or painter.paintEngine().type() == QPaintEngine.Type.SVG:
            super().symbols(centres, symbol, sizes, pen, fill)
        elif symbol == "disc" and fill and not pen.colour:
            round_pen = _pen(Pen(fill, float(sizes[0]), (), pen.opacity))
            round_pen.setCapStyle(Qt.PenCapStyle.RoundCap)
            painter.setPen(round_pen)
            painter.drawPoints(polygon_of(centres))
        else:
            half = 0.75 * float(sizes[0]) + pen.width
            ratio = painter.device().devicePixelRatioF() * painter.worldTransform().m11()
            stamp = QPixmap(round(2 * half * ratio), round(2 * half * ratio))
            stamp.setDevicePixelRatio(ratio)
            stamp.fill(Qt.GlobalColor.transparent)
            with QPainter(stamp) as stamper:
                stamper.setRenderHint(QPainter.RenderHint.Antialiasing)
                QtCanvas(stamper).symbols(np.array([(half, half)]), symbol, sizes[:1], pen, fill)
            for x, y in (centres - half).tolist():
                painter.drawPixmap(QPointF(x, y), stamp)


def text_width(text: str, size: float) -> float:
    """Return the width of a text in the window's font, in pixels at normal text size."""
    return QFontMetricsF(theme.font(round(size))).horizontalAdvance(text)


def polygon_of(points: Points) -> QPolygonF:
    """Convert points, (P, 2), to a QPolygonF."""
    array = np.ascontiguousarray(points, dtype=np.float64).reshape(-1, 2)
    polygon = QPolygonF()
    polygon.resize(len(array))
    if len(array):
        view: Any = shiboken6.VoidPtr  # its stub knows fewer arguments
        np.frombuffer(view(polygon.data(), array.nbytes, True), np.float64).reshape(-1, 2)[:] = array
    return polygon


def _colour(colour: str, opacity: float) -> QColor:
    ink = QColor(colour)
    ink.setAlphaF(opacity)
    return ink


def _pen(pen: Pen) -> QPen:
    qt_pen = QPen(_colour(pen.colour, pen.opacity), pen.width)
    if pen.dashes:
        qt_pen.setDashPattern([length / max(pen.width, 1e-6) for length in pen.dashes])
    return qt_pen
