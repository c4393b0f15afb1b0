"""Context menu of a figure: copy it as an image, save it, and export its data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QAction, QContextMenuEvent, QGuiApplication, QImage, QKeySequence
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from raterscope.figures.table import PlotTable
from raterscope.widgets.key_help import KeyHelp
from raterscope.widgets.parts import Menu
from raterscope.widgets.picturing import Drawn, paint_svg, paint_to_image

__all__ = ["DrawnMenu", "FigureMenu", "Leaving", "PictureMenu", "Plotted"]

SHARP = 2.0
"""Minimum scale of an exported picture of a figure."""

Content = QImage | PlotTable | bytes


class Plotted(Drawn, Protocol):
    """Figure that also provides its values as a table."""

    def table(self) -> PlotTable:
        """Return the values that are drawn."""


@dataclass(frozen=True, eq=False)
class Leaving:
    """Content to save to a file.

    Attributes
    ----------
    title : str
        Title of the figure.
    suffix : str
        File suffix: ".svg", ".png" or ".csv".
    content : bytes, QImage or PlotTable
    of_image : bool
        Whether it shows the image on screen, whose name the file then gets.
    """

    title: str
    suffix: str
    content: Content
    of_image: bool = False


class _Menu(Menu):
    KEY_HELP = KeyHelp(
        "On a figure or an image",
        (
            ("Shift+F10", "copy, save"),
            ("Ctrl+C", "copy as image"),
        ),
    )


class PictureMenu(QObject):
    """Context menu of a picture, opened by right click, the Menu key or Shift+F10; Ctrl+C copies directly.

    The picture has screen resolution.

    Parameters
    ----------
    figure : Drawn
    widget : QWidget
        Widget that receives clicks and keys.
    by_click : bool
        Whether a right click opens it.

    Signals
    -------
    leaving : Leaving
        Content to save.
    said : str
        Message for the status line.
    """

    leaving = Signal(object)
    said = Signal(str)

    OF_IMAGE = True

    caption: Callable[[], str] = staticmethod(str)
    """Function that returns a caption naming the run; empty for none."""

    def __init__(self, figure: Drawn, widget: QWidget, *, by_click: bool = True) -> None:
        super().__init__(widget)
        self._figure, self._place, self._by_click = figure, widget, by_click
        self.menu = _Menu(widget)
        self.menu.setAccessibleName("Picture")
        self.copy = self._action("Copy as image")
        self.copy.triggered.connect(self._on_copy)
        self.copy.setShortcut(QKeySequence.StandardKey.Copy)
        self.copy.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        self._keys = QAction("Copy and save", widget)
        self._keys.setShortcut(QKeySequence("Shift+F10"))
        self._keys.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        self._keys.triggered.connect(self._on_keys)
        widget.addActions([self.copy, self._keys])
        self.png = self._action("Save as PNG…")
        self.png.triggered.connect(self._on_png)
        widget.installEventFilter(self)
        if isinstance(widget, QAbstractScrollArea):
            widget.viewport().installEventFilter(self)

    def _action(self, words: str) -> QAction:
        action = QAction(words, self._place)
        self.menu.addAction(action)
        return action

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Open the menu on its triggers."""
        if isinstance(event, QContextMenuEvent):
            if event.reason() != QContextMenuEvent.Reason.Mouse:
                self._on_keys()
                return True
            if self._by_click:
                self.open_at(event.globalPos())
                return True
        return super().eventFilter(watched, event)

    def open_at(self, position: QPoint) -> None:
        """Open the menu at a screen position."""
        self.menu.popup(position)

    def _on_keys(self) -> None:
        self.open_at(self._place.mapToGlobal(QPoint(24, 24)))

    def _scale(self) -> float:
        return self._place.devicePixelRatioF()

    def _leave(self, suffix: str, content: Content) -> None:
        title = self._figure.heading()[0] or self._place.accessibleName()
        self.leaving.emit(Leaving(title, suffix, content, self.OF_IMAGE))

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setImage(paint_to_image(self._figure, self._scale(), self.caption()))
        of = self.caption()
        self.said.emit(f"Copied the image{f' of {of}' if of else ''}.")

    def _on_png(self) -> None:
        self._leave(".png", paint_to_image(self._figure, self._scale(), self.caption()))


class DrawnMenu(PictureMenu):
    """Context menu of a figure with lines, which is saved as SVG too.

    Parameters
    ----------
    figure : Drawn
    widget : QWidget
    """

    def __init__(self, figure: Drawn, widget: QWidget) -> None:
        super().__init__(figure, widget)
        self.svg = QAction("Save as SVG…", widget)
        self.menu.insertAction(self.png, self.svg)
        self.svg.triggered.connect(self._on_svg)

    def _scale(self) -> float:
        return max(SHARP, super()._scale())

    def _on_svg(self) -> None:
        self._leave(".svg", paint_svg(self._figure, self.caption()))


class FigureMenu(DrawnMenu):
    """Context menu of a figure with lines and values, which is saved as SVG and CSV too.

    Parameters
    ----------
    figure : Plotted
    widget : QWidget
    """

    OF_IMAGE = False

    def __init__(self, figure: Plotted, widget: QWidget) -> None:
        super().__init__(figure, widget)
        self._plotted = figure
        self.menu.addSeparator()
        self.csv = self._action("Save data as CSV…")
        self.csv.triggered.connect(self._on_csv)

    def _on_csv(self) -> None:
        self._leave(".csv", self._plotted.table())
