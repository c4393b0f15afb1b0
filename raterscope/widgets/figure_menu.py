"""Context menu of a figure: copy as an image, save as pixels or SVG, and export its data."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

from PySide6.QtCore import QBuffer, QEvent, QIODevice, QObject, QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QColor,
    QContextMenuEvent,
    QFontMetrics,
    QGuiApplication,
    QImage,
    QKeySequence,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from raterscope.figures.description import PlotTable
from raterscope.widgets import theme
from raterscope.widgets.hints import KeyHelp
from raterscope.widgets.painting import paint_focus_frame, paint_text
from raterscope.widgets.parts import Menu

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


class WholeView(QWidget):
    """View without a separate title in pictures, which show the same as the widget."""

    def heading(self) -> tuple[str, str]:
        """Return no title: the view has its own labels."""
        return "", ""

    def picture_size(self) -> QSize:
        """Return the visible size."""
        return self.size()

    def paint_picture(self, painter: QPainter) -> None:
        """Paint the view without focus marks."""
        raise NotImplementedError

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the view, and the focus frame."""
        with QPainter(self) as painter:
            painter.save()
            self.paint_picture(painter)
            painter.restore()
            if self.hasFocus():
                paint_focus_frame(painter, QRectF(self.rect()))


def paint_to_image(figure: Drawn, scale: float, caption: str = "") -> QImage:
    """Paint a figure into an image.

    `scale`: image pixels per window pixel. `caption`: line below the figure, also stored as the image's
    description; empty for none.
    """
    size = _exported_size(figure, caption)
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

    size, buffer = _exported_size(figure, caption), QBuffer()
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
    """Adapt SVG for other viewers: add a fallback font, and keep cells sharp in browsers."""
    svg = re.sub(rb'font-family="([^"]*)"', rb'font-family="\1, sans-serif"', svg)
    return svg.replace(_SHARP, b'style="image-rendering:optimizeSpeed;image-rendering:pixelated"')


def _exported_size(figure: Drawn, caption: str) -> QSize:
    size = figure.picture_size()
    if figure.heading()[0]:
        size += QSize(2 * MARGIN, HEADING + 2 * MARGIN)
    return size + QSize(0, HEADING) if caption else size


def _paint(figure: Drawn, painter: QPainter, size: QSize, caption: str) -> None:
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.fillRect(QRectF(0, 0, size.width(), size.height()), QColor(theme.current().surface))
    title, subtitle = figure.heading()
    if caption:
        painter.setFont(theme.font(theme.CAPTION))
        box = QRectF(MARGIN, size.height() - HEADING, size.width() - 2 * MARGIN, HEADING - 6)
        paint_text(painter, box, caption, theme.current().second)
    if title:
        _paint_heading(
            painter, QRectF(MARGIN, MARGIN, size.width() - 2 * MARGIN, HEADING - 6), title, subtitle
        )
        painter.translate(MARGIN, MARGIN + HEADING)
    figure.paint_picture(painter)


def _paint_heading(painter: QPainter, box: QRectF, title: str, subtitle: str) -> None:
    palette = theme.current()
    painter.setFont(theme.font(bold=True))
    width = QFontMetrics(painter.font()).horizontalAdvance(title) + 12
    paint_text(painter, box, title, palette.text)
    painter.setFont(theme.font(theme.CAPTION))
    remaining = box.adjusted(width, 0, 0, 0)
    if remaining.width() > 0:
        paint_text(painter, remaining, subtitle, palette.second, side=Qt.AlignmentFlag.AlignRight)


SHARP = 2.0
"""Minimum scale of an exported picture of a figure."""

Content = QImage | PlotTable | bytes


@dataclass(frozen=True, eq=False)
class SavedContent:
    """Content that is saved to a file."""

    title: str  # title of the figure
    suffix: str  # file suffix: ".svg", ".png" or ".csv"
    content: Content
    of_image: bool = False  # whether it shows the image on screen, whose name the file then gets


class FigureMenu(QObject):
    """Context menu of a figure, opened by right click, the Menu key or Shift+F10; Ctrl+C copies directly.

    `widget`: widget that receives clicks and keys. `table`: returns the drawn values, to be saved as CSV.
    Without it, the figure shows the image on screen. `with_svg`: whether the figure can be saved as SVG;
    otherwise its pictures have screen resolution. `by_click`: whether a right click opens it.
    """

    KEY_HELP = KeyHelp("On a figure or an image", (("Shift+F10", "copy, save"), ("Ctrl+C", "copy as image")))

    leaving = Signal(object)  # content to save
    reported = Signal(str)  # message for the status line

    caption: Callable[[], str] = staticmethod(str)
    """Function that returns a caption naming the run; empty for none."""

    def __init__(
        self,
        figure: Drawn,
        widget: QWidget,
        table: Callable[[], PlotTable] | None = None,
        *,
        with_svg: bool = True,
        by_click: bool = True,
    ) -> None:
        super().__init__(widget)
        self._figure, self._place, self._table, self._by_click = figure, widget, table, by_click
        self._with_svg = with_svg
        self.copy = self._action("Copy as image", self._on_copy)
        self.copy.setShortcut(QKeySequence.StandardKey.Copy)
        self.copy.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        self._keys = self._action("Copy and save", self._on_keys)
        self._keys.setShortcut(QKeySequence("Shift+F10"))
        self._keys.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        widget.addActions([self.copy, self._keys])
        widget.installEventFilter(self)
        if isinstance(widget, QAbstractScrollArea):
            widget.viewport().installEventFilter(self)

    def report_through(self, other: FigureMenu) -> None:
        """Use the connections of another menu, for a figure made after the window connected its menus."""
        self.leaving.connect(other.leaving)
        self.reported.connect(other.reported)
        self.caption = lambda: other.caption()

    @cached_property
    def menu(self) -> Menu:
        """The menu, made when it is first opened, because a window has many figures."""
        menu = Menu(self._place)
        menu.setAccessibleName("Picture")
        menu.addActions([action for action in (self.copy, self.svg, self.png) if action is not None])
        if self.csv is not None:
            menu.addSeparator()
            menu.addAction(self.csv)
        return menu

    @cached_property
    def svg(self) -> QAction | None:
        """The action that saves the figure as SVG; None for a figure without lines."""
        return self._action("Save as SVG…", self._on_svg) if self._with_svg else None

    @cached_property
    def png(self) -> QAction:
        """The action that saves the figure as PNG."""
        return self._action("Save as PNG…", self._on_png)

    @cached_property
    def csv(self) -> QAction | None:
        """The action that saves the drawn values; None for a figure without a table."""
        if self._table is None:
            return None
        return self._action("Save data as CSV…", partial(self._on_csv, self._table))

    def _action(self, text: str, slot: Callable[[], object]) -> QAction:
        action = QAction(text, self._place)
        action.triggered.connect(slot)
        return action

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Open the menu on its triggers."""
        if isinstance(event, QContextMenuEvent):
            if event.reason() != QContextMenuEvent.Reason.Mouse:
                self._on_keys()
                return True
            if self._by_click:
                self.menu.popup(event.globalPos())
                return True
        return super().eventFilter(watched, event)

    def _on_keys(self) -> None:
        self.menu.popup(self._place.mapToGlobal(QPoint(24, 24)))

    def _scale(self) -> float:
        ratio = self._place.devicePixelRatioF()
        return max(SHARP, ratio) if self._with_svg else ratio

    def _leave(self, suffix: str, content: Content) -> None:
        title = self._figure.heading()[0] or self._place.accessibleName()
        self.leaving.emit(SavedContent(title, suffix, content, self._table is None))

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setImage(paint_to_image(self._figure, self._scale(), self.caption()))
        of = self.caption()
        self.reported.emit(f"Copied the image{f' of {of}' if of else ''}.")

    def _on_png(self) -> None:
        self._leave(".png", paint_to_image(self._figure, self._scale(), self.caption()))

    def _on_svg(self) -> None:
        self._leave(".svg", paint_svg(self._figure, self.caption()))

    def _on_csv(self, table: Callable[[], PlotTable]) -> None:
        self._leave(".csv", table())
