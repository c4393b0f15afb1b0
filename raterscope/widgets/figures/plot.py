"""What all plots share: a header, axes with names and units, the theme's colours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyqtgraph as pg
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from raterscope.figures.table import PlotTable
from raterscope.widgets import theme
from raterscope.widgets.figure_menu import FigureMenu
from raterscope.widgets.figures.axis import WrittenAxis
from raterscope.widgets.figures.legend import Legend
from raterscope.widgets.parts import Header, plain_label
from raterscope.widgets.text_size import pixels

__all__ = ["Plot", "pen"]

pg.setConfigOptions(imageAxisOrder="row-major", antialias=True)


def pen(colour: str, width: float = 1.6, dashes: tuple[float, ...] = ()) -> object:
    """Make a pen of the theme for pyqtgraph."""
    made = pg.mkPen(colour, width=width)
    if dashes:
        made.setDashPattern(dashes)
    return made


class Plot(QWidget):
    """A plot with its title above it; where there is nothing to plot, a sentence.

    The wheel zooms, a drag pans, a double click shows all again; the right button offers copies.

    Parameters
    ----------
    title : str
    across, down : str
        Names of the axes, with units.
    nothing : str
        What belongs here.
    """

    def __init__(
        self, title: str, across: str, down: str, nothing: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(title)
        self.header = Header(title)
        axes = {side: WrittenAxis(side) for side in ("bottom", "left")}
        self.plot = pg.PlotWidget(enableMenu=False, axisItems=axes)
        self.plot.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.plot.setAccessibleName(f"{title}: {down} against {across}")
        self.item = self.plot.getPlotItem()
        self.item.hideButtons()
        self.item.layout.setContentsMargins(
            0, 6, 16, 3
        )  # room for half of the last figure, and for a p of a name
        self.legend = Legend()
        self.item.layout.addItem(self.legend, 2, 3)
        # Without a parent it would outlive the window that is closed.
        self.item.ctrlMenu.setParent(self, self.item.ctrlMenu.windowFlags())
        self._axes = {"bottom": across, "left": down}
        self._pages = QStackedWidget()
        self._nothing = plain_label(nothing, "second", wrap=True)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._pages.addWidget(self._nothing)
        self._pages.addWidget(self.plot)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 8, 4)
        column.setSpacing(4)
        column.addWidget(self.header)
        column.addWidget(self._pages, 1)
        self.plot.scene().sigMouseClicked.connect(self._on_mouse_clicked)
        self.menu = FigureMenu(self, self.plot)
        theme.notifier().changed.connect(self._on_theme)
        self._on_theme()

    def set_filled(self, filled: bool) -> None:
        """Show the plot, or the sentence that says what belongs here."""
        self._pages.setCurrentIndex(int(filled))

    def set_nothing(self, words: str) -> None:
        """Say what is missing where there is nothing to plot."""
        self._nothing.setText(words)

    @property
    def filled(self) -> bool:
        """Whether the plot is shown."""
        return self._pages.currentIndex() == 1

    def draw(self) -> None:
        """Draw everything anew in the theme's colours."""

    def show_all(self) -> None:
        """Undo zoom and pan."""
        self.item.autoRange()

    def table(self) -> PlotTable:
        """Give the numbers that are drawn."""
        raise NotImplementedError

    def heading(self) -> tuple[str, str]:
        """Give the title and the word beside it."""
        return self.header.words()

    def picture_size(self) -> QSize:
        """Give how large the plot is."""
        size: QSize = self.plot.size()
        return size

    def paint_picture(self, painter: QPainter) -> None:
        """Paint the plot as it is zoomed."""
        # Outside of an export pyqtgraph stamps its dots from a small picture of one.
        drawn = [item for item in self.plot.scene().items() if hasattr(item, "setExportMode")]
        options = {"painter": painter, "antialias": True, "resolutionScale": 1.0}
        for item in drawn:
            item.setExportMode(True, {**options, "background": self.plot.backgroundBrush().color()})
        try:
            with self._sharp(painter.device().devicePixelRatio()):
                self.plot.render(painter, QRectF(self.plot.rect()), self.plot.viewport().rect())
        finally:
            for item in drawn:
                item.setExportMode(False)

    @contextmanager
    def _sharp(self, scale: float) -> Iterator[None]:
        """Draw lines wider meanwhile: pyqtgraph's pens count the pixels of the picture, not the window's."""
        drawn = [getattr(item, "opts", None) for item in self.plot.scene().items()]
        kept = [(opts, opts["pen"]) for opts in drawn if opts and isinstance(opts.get("pen"), QPen)]
        for opts, line in kept:
            opts["pen"] = QPen(line)
            opts["pen"].setWidthF(line.widthF() * scale)
        self._draw_axes(scale)
        try:
            yield
        finally:
            for opts, line in kept:
                opts["pen"] = line
            self._draw_axes()

    def _on_mouse_clicked(self, event: object) -> None:
        double = getattr(event, "double", None)
        if double is not None and double():
            self.show_all()

    def _on_theme(self) -> None:
        self.plot.setBackground(theme.current().surface)
        self._draw_axes()
        self.draw()

    def _draw_axes(self, width: float = 1.0) -> None:
        look = theme.current()
        for name, words in self._axes.items():
            axis = self.item.getAxis(name)
            axis.setPen(pen(look.line, width))
            axis.setTextPen(look.second)
            axis.setTickFont(theme.widget_font(theme.CAPTION))
            axis.setStyle(tickLength=-4, hideOverlappingLabels=False)
            axis.setLabel(words, **{"color": look.second, "font-size": f"{pixels(theme.CAPTION)}px"})
