"""Base of all figures: title, placeholder text, parts that are pointed at and chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QStackedWidget, QToolTip, QVBoxLayout, QWidget

from raterscope.figures.table import PlotTable
from raterscope.widgets import theme
from raterscope.widgets.figure_menu import FigureMenu
from raterscope.widgets.key_help import KeyHelp
from raterscope.widgets.parts import Header, plain_label, plain_tip
from raterscope.widgets.text_size import enlarge, set_lengths, text_size, usual

__all__ = ["Figure", "FigurePanel", "row_of"]

Part = TypeVar("Part")
FAR = 1 << 20
"""So many steps of an arrow key lead to the end of any figure."""
ARROWS = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Up: (0, -1),
    Qt.Key.Key_Down: (0, 1),
}


def row_of(numbers: NDArray[Any], number: int | None) -> int | None:
    """Return the row of a number; None where it is not among them."""
    rows = np.flatnonzero(numbers == number)
    return int(rows[0]) if len(rows) else None


class FigurePanel(QWidget):
    """A figure with its title above it, brief where there is little room; a sentence if nothing is drawn.

    `page` is shown in place of the figure that it contains.
    """

    def __init__(
        self, title: str, figure: QWidget, nothing: str, parent: QWidget | None = None, *, brief: str = "",
        page: QWidget | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.header = Header(title, brief=brief)
        if isinstance(figure, Figure):
            figure.header = self.header
        self.setAccessibleName(title)
        self._pages = QStackedWidget()
        self._belongs = nothing
        self._nothing = plain_label(nothing, "second", wrap=True)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._pages.addWidget(self._nothing)
        self._pages.addWidget(page or figure)
        self.setFocusProxy(figure)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(4)
        column.addWidget(self.header)
        column.addWidget(self._pages, 1)

    def set_filled(self, filled: bool) -> None:
        """Show the figure, or the sentence that says what belongs here."""
        self._pages.setCurrentIndex(int(filled))

    def set_nothing(self, why: str = "") -> None:
        """Set the placeholder text; by default that of the constructor."""
        self._nothing.setText(why or self._belongs)

    @property
    def filled(self) -> bool:
        """Whether the figure is shown."""
        return self._pages.currentIndex() == 1


class Figure(QWidget, Generic[Part]):
    """Parts that are pointed at, walked with the arrow keys and chosen with a click, Return or Space.

    A part is whatever `part_at` gives; `words` says it, in the tooltip and to those who hear it.

    Attributes
    ----------
    header : Header or None
        What stands above it, for its pictures.
    menu : FigureMenu
        What leaves it.
    """

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        set_lengths(self, minimumWidth=96, minimumHeight=72)
        self.pointed: Part | None = None
        self.header: Header | None = None
        self.menu = FigureMenu(self, self)
        self._still: QPixmap | None = None
        self._picturing = False
        theme.notifier().changed.connect(self._on_look)

    @property
    def room(self) -> QRectF:
        """The rectangle of the figure, in pixels of the usual text size."""
        return QRectF(0.0, 0.0, self.width() / text_size(), self.height() / text_size())

    def part_at(self, _position: QPointF) -> Part | None:
        """Return the part at a position of the room, None for the background."""
        raise NotImplementedError

    def words(self, _part: Part) -> str:
        """Describe a part in a few words, as plain text."""
        raise NotImplementedError

    def step(self, _part: Part | None, _across: int, _down: int) -> Part | None:
        """Return the part that an arrow key leads to; from None, the first."""
        raise NotImplementedError

    def end(self, part: Part | None, across: int) -> Part | None:
        """Return the part at the left (-1) or the right end (1) of what the arrow keys walk."""
        first = self.step(None, 0, 0) if part is None else part
        if first is None:
            return None
        for by in (FAR, 1):
            after = self.step(first, across * by, 0)
            while after is not None and after != first:
                first, after = after, self.step(after, across * by, 0)
        return first

    def choose(self, _part: Part) -> None:
        """Act on a click on a part."""
        raise NotImplementedError

    def draw(self, _painter: QPainter) -> None:
        """Paint the figure."""
        raise NotImplementedError

    def table(self) -> PlotTable:
        """Return the numbers that are drawn."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Repaint the figure, also the cached part."""
        self._still = None
        self.update()

    def paint_still(self, painter: QPainter, paint: Callable[[QPainter], None]) -> None:
        """Paint what keeps still: on the screen from a copy that is kept until `redraw`."""
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
        """Lay out again as well: the room may have changed."""
        self.resizeEvent(QResizeEvent(self.size(), self.size()))
        self.redraw()

    def heading(self) -> tuple[str, str]:
        """Return the title, and the text at its right."""
        return (self.accessibleName(), "") if self.header is None else self.header.words()

    def picture_size(self) -> QSize:
        """Return the size of the figure."""
        return self.room.size().toSize()

    def paint_picture(self, painter: QPainter) -> None:
        """Paint the figure without what is pointed at."""
        pointed, self.pointed, self._picturing = self.pointed, None, True
        try:
            self.draw(painter)
        finally:
            self.pointed, self._picturing = pointed, False

    def point(self, part: Part | None) -> None:
        """Mark a part as the one that is looked at."""
        if part != self.pointed:
            self.pointed = part
            self.setAccessibleDescription(self.words(part) if part is not None else "")
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the figure, and a frame while it has the keys."""
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            room = enlarge(painter, self.rect())
            self.draw(painter)
            if self.hasFocus() and self.pointed is None:
                painter.setPen(QPen(QColor(theme.current().accent), 1))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRect(room.adjusted(0.5, 0.5, -0.5, -0.5))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Mark what is under the pointer."""
        self.point(self.part_at(usual(event.position())))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose what is under the pointer."""
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
        """Walk with the arrows, Home and End, choose with Return or Space."""
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
            tip = plain_tip(self.words(part)) if part is not None else self.toolTip()
            QToolTip.showText(event.globalPos(), tip, self)
            return True
        if event.type() in (QEvent.Type.Leave, QEvent.Type.FocusOut):
            self.point(None)
        return super().event(event)
