"""The confusion matrix: rates with intervals, counts, or differences from the crowd."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetrics, QKeyEvent, QPainter, QPen, QWheelEvent

from raterscope.figures.description import PlotTable
from raterscope.text import decimals
from raterscope.widgets import theme
from raterscope.widgets.colour_maps import PUOR
from raterscope.widgets.figures.cells import (
    BAR_HEIGHT,
    cell_at,
    cell_beside,
    cell_gap,
    colours_of,
    ink_on,
    paint_cell,
    paint_colour_bar,
    paint_small_cells,
    rate_table,
)
from raterscope.widgets.figures.figure_panel import Figure
from raterscope.widgets.hints import KeyHelp
from raterscope.widgets.names import distinguishing_labels
from raterscope.widgets.painting import fits, paint_text
from raterscope.widgets.theme import usual

LARGEST = (88.0, 64.0)
SPLIT = "true ↓  given →"
NAMES_FROM, SPARSE_NAMES = 9.0, 13.0
"""Minimum height of a row for names of all rows, and height of a name if some are omitted, in pixels."""
TURNED_FROM, TURNED_ROOM = 12.0, 64.0
MANY = 12
"""Maximum number of classes in the original order, and without zoom."""
LEAST = 0.01
"""Minimum side of a cell, in pixels, so that a thousand classes can be drawn at once."""
BLOCK, ZOOM = 5, 0.75
"""Minimum number of rows of a block, and the share of a block that remains after a step of the wheel."""


@dataclass(frozen=True, eq=False)
class MatrixView:
    """The confusion matrix of one annotator, or of several together."""

    title: str  # "Annotator 79142"
    subtitle: str  # "2,965 votes | accuracy 0.88 (0.85 to 0.91)"
    # classes, outputs: names of the J true classes (rows) and the L possible answers (columns)
    classes: tuple[str, ...]
    outputs: tuple[str, ...]
    # mean, low, high: (J, L): rate of each output for each true class, with its interval; NaN if unknown
    mean: NDArray[np.floating]
    low: NDArray[np.floating]
    high: NDArray[np.floating]
    counts: NDArray[np.floating]  # (J, L): expected numbers of votes
    crowd: NDArray[np.floating] | None = None  # (J, L) or None: the rates of all annotators together
    name: str = ""  # name of the annotator, if the title does not contain it
    # (L,) or None: class that each output stands for, negative for none; None if unknown
    meaning: NDArray[np.integer] | None = None
    # (J,) and (L,), or None: drawing order of classes and outputs; None for the original order
    order: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None
    folded: MatrixView | None = None  # the matrix of the parent classes, if any

    def __post_init__(self) -> None:
        shape = (len(self.classes), len(self.outputs))
        shapes = {"mean": self.mean, "low": self.low, "high": self.high, "counts": self.counts}
        if self.crowd is not None:
            shapes["crowd"] = self.crowd
        for name, values in shapes.items():
            if np.shape(values) != shape:
                raise ValueError(f"{name} of shape {np.shape(values)} for {shape} classes and outputs")


@dataclass(frozen=True)
class _Lettering:
    """Style of the numbers in the cells; no numbers without a font."""

    font: QFont | None
    under: bool = False
    short: bool = False


class MatrixFigure(Figure[tuple[int, int]]):
    """Cells of a confusion matrix; a block of it can be enlarged."""

    chosen = Signal(int, int)  # true class and output

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._view: MatrixView | None = None
        self._mode = "rates"
        self._block: tuple[slice, slice] | None = None
        """Visible rows and columns, in order; None for all."""

    def show_view(self, view: MatrixView) -> None:
        """Show a matrix; the enlarged block is kept for the same classes."""
        if self._view is None or (self._view.classes, self._view.outputs) != (view.classes, view.outputs):
            self._block = None
            self.pointed = None
        self._view = view
        self.update()

    def set_mode(self, mode: str) -> None:
        """Show "rates", "counts" or the "difference" from the crowd."""
        self._mode = mode
        if self.pointed is not None:
            self.setAccessibleDescription(self.text_of(self.pointed))
        self.update()

    def zoom(self, steps: float, at: tuple[int, int] | None = None) -> None:
        """Show fewer rows and columns around a cell, or more of them with negative steps."""
        view = self._view
        if view is None:
            return
        rows, columns = (list(part) for part in self._all())
        true, output = at or self.pointed or (self._rows()[0], self._columns()[0])
        block = []
        for names, shown, name in ((rows, self._rows(), true), (columns, self._columns(), output)):
            size = max(min(round(len(shown) * ZOOM**steps), len(names)), min(BLOCK, len(names)))
            first = names.index(shown[0])
            share = (names.index(name) - first + 0.5) / len(shown)
            start = round(names.index(name) + 0.5 - share * size)
            start = min(max(start, 0), len(names) - size)
            block.append(slice(start, start + size))
        near, column = block[0], columns.index(output)
        if len(rows) == len(columns) and near.start <= column < near.stop:
            block[1] = near  # keeps the diagonal
        whole = all(
            part.stop - part.start == len(names) for part, names in zip(block, (rows, columns), strict=True)
        )
        self._block = None if whole else (block[0], block[1])
        self.update()

    def _all(self) -> tuple[list[int], list[int]]:
        """Return all classes and outputs in drawing order."""
        view = self._view
        assert view is not None
        if view.order is not None:
            return view.order[0].tolist(), view.order[1].tolist()
        return list(range(len(view.classes))), list(range(len(view.outputs)))

    def _rows(self) -> list[int]:
        rows = self._all()[0]
        return rows if self._block is None else rows[self._block[0]]

    def _columns(self) -> list[int]:
        columns = self._all()[1]
        return columns if self._block is None else columns[self._block[1]]

    def _scroll_to(self, part: tuple[int, int]) -> None:
        """Move the block so that it contains a cell."""
        if self._block is None:
            return
        moved = []
        for names, shown, name in zip(self._all(), self._block, part, strict=True):
            number, size = names.index(name), shown.stop - shown.start
            start = min(max(shown.start, number - size + 1), number)
            moved.append(slice(start, start + size))
        self._block = moved[0], moved[1]

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom into the block around the pointer."""
        delta, view = event.angleDelta().y(), self._view
        if view is None or not delta or max(len(view.classes), len(view.outputs)) <= MANY:
            super().wheelEvent(event)
            return
        self.zoom(delta / 120, self.part_at(usual(event.position())))
        event.accept()

    KEY_HELP = KeyHelp("In a matrix of many classes", (("+, -", "zoom into a block"),))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Zoom with + and -."""
        steps = {"+": 1, "=": 1, "-": -1}.get(event.text())
        view = self._view
        if steps is None or view is None or max(len(view.classes), len(view.outputs)) <= MANY:
            super().keyPressEvent(event)
        else:
            self.zoom(steps)

    def tip_at(self, position: QPointF) -> str:
        """Return the full name of the class or answer beside a row or above a column."""
        view = self._view
        if view is None:
            return ""
        grid, width, height, _ = self._grid()
        rows, columns = self._rows(), self._columns()
        if position.x() < grid.left() and grid.top() <= position.y() < grid.bottom():
            row = min(int((position.y() - grid.top()) / height), len(rows) - 1)
            return f"true {view.classes[rows[row]]}"
        if position.y() < grid.top() and grid.left() <= position.x() < grid.right():
            column = min(int((position.x() - grid.left()) / width), len(columns) - 1)
            return f"answer {view.outputs[columns[column]]}"
        return ""

    def text_of(self, part: tuple[int, int]) -> str:
        """Describe a cell."""
        view = self._view
        assert view is not None
        where = f"true {view.classes[part[0]]}, answer {view.outputs[part[1]]}"
        main, interval = self._rate(part)
        text = f"{where}: {main}{f' ({interval})' if interval else ''}, {self._count(part)}"
        if view.crowd is None or not np.isfinite(view.crowd[part]):
            return text
        within = view.low[part] <= view.crowd[part] <= view.high[part]
        beside = ", within the interval" if within else f", difference {self._difference(part)}"
        return f"{text}; the crowd {view.crowd[part]:.2f}{beside}"

    def _digits(self, part: tuple[int, int]) -> int:
        view = self._view
        assert view is not None
        return min(2, decimals(float(view.low[part]), float(view.high[part])))

    def _rate(self, part: tuple[int, int]) -> tuple[str, str]:
        view, digits = self._view, self._digits(part)
        assert view is not None
        mean, low, high = float(view.mean[part]), float(view.low[part]), float(view.high[part])
        if not np.isfinite(mean):
            return "not known", ""
        ends = f"{low:.{digits}f} to {high:.{digits}f}" if np.isfinite(low + high) else ""
        return f"{mean:.{digits}f}", ends

    def _count(self, part: tuple[int, int]) -> str:
        view = self._view
        assert view is not None
        number = float(view.counts[part])
        if not np.isfinite(number):
            return "votes not known"
        if 0 < number < 0.5:
            return "less than one vote"
        rounded = round(number)
        return f"{rounded:,} vote" + ("" if rounded == 1 else "s")

    def _difference(self, part: tuple[int, int]) -> str:
        view = self._view
        assert view is not None
        assert view.crowd is not None
        gap, digits = float(view.mean[part] - view.crowd[part]), self._digits(part)
        if not np.isfinite(gap):
            return ""
        text = f"{abs(gap):.{digits}f}"
        return text if not text.strip("0.") else f"{'+' if gap > 0 else '−'}{text}"

    def _text(self, part: tuple[int, int]) -> tuple[str, str]:
        """Return the text of a cell, and the text below it."""
        view = self._view
        assert view is not None
        if self._mode == "counts":
            number = float(view.counts[part])
            return ("" if not np.isfinite(number) else "<1" if 0 < number < 0.5 else f"{number:,.0f}"), ""
        if self._mode == "difference":
            assert view.crowd is not None
            return self._difference(part), f"of {view.crowd[part]:.2f}"
        main, ends = self._rate(part)
        return ("" if main == "not known" else main), ends.replace(" to ", " – ")

    def _scale(self) -> tuple[NDArray[np.floating], float, float, NDArray[np.uint8], str]:
        """Return the colour scale: values, ends, colour table, label."""
        view = self._view
        assert view is not None
        if self._mode == "counts":
            most = float(np.nanmax(view.counts, initial=0.0))
            return view.counts, 0.0, max(1.0, float(np.ceil(most))), rate_table(), "votes"
        if self._mode == "difference":
            assert view.crowd is not None
            gap = np.asarray(view.mean - view.crowd)
            span = max(0.1, float(np.ceil(10 * np.nanmax(np.abs(gap), initial=0.0)) / 10))
            return gap, -span, span, PUOR, "rate less the crowd's"
        return view.mean, 0.0, 1.0, rate_table(), "rate"

    def part_at(self, position: QPointF) -> tuple[int, int] | None:
        """Return the cell at a position."""
        view = self._view
        if view is None:
            return None
        rows, columns = self._rows(), self._columns()
        cell = cell_at(position, self._grid()[0], len(rows), len(columns))
        return None if cell is None else (rows[cell[0]], columns[cell[1]])

    def step(self, part: tuple[int, int] | None, across: int, down: int) -> tuple[int, int] | None:
        """Return the next cell; the block moves along."""
        if self._view is None:
            return None
        if part is None:
            return self._rows()[0], self._columns()[0]
        rows, columns = self._all()
        cell = rows.index(part[0]), columns.index(part[1])
        row, column = cell_beside(cell, across, down, len(rows), len(columns))
        after = rows[row], columns[column]
        self._scroll_to(after)
        return after

    def choose(self, part: tuple[int, int]) -> None:
        """Select a cell."""
        self.chosen.emit(*part)

    def table(self) -> PlotTable:
        """Return the numbers of all cells."""
        view = self._view
        assert view is not None
        values = {"rate": view.mean, "low": view.low, "high": view.high, "votes": view.counts}
        axes = {"true": view.classes, "given": view.outputs}
        return PlotTable.of_cells(axes, {**values, "rate of the crowd": view.crowd})

    def _grid(self) -> tuple[QRectF, float, float, bool]:
        """Return the rectangle of all cells, width and height of a cell, and whether names are rotated."""
        view = self._view
        if view is None:
            return QRectF(), 1.0, 1.0, False
        shown = [view.classes[row] for row in self._rows()]
        answers = [view.outputs[column] for column in self._columns()]
        rows, columns = len(shown), len(answers)
        metrics = QFontMetrics(theme.font(theme.CAPTION))
        longest = max(metrics.horizontalAdvance(name) for name in (*shown, SPLIT))
        left = min(longest + 10.0, self.room.width() / 3)
        width = min(LARGEST[0], (self.room.width() - left - 2) / columns)
        widest = max(metrics.horizontalAdvance(name) for name in answers)
        narrow = TURNED_FROM <= width < min(30.0, widest + 4.0)
        # The names of the rows have priority.
        below = BAR_HEIGHT + 8
        high = self.room.height() - TURNED_ROOM - below >= rows * NAMES_FROM
        turned = high and (narrow or (self._block is not None and width < widest + 4.0))
        top = min(TURNED_ROOM, widest + 6.0) if turned else 20.0
        if self.room.height() - top - below < rows * NAMES_FROM <= self.room.height() - top:
            below = 0  # no colour scale
        height = min(LARGEST[1], (self.room.height() - top - below) / rows)
        width, height = max(width, LEAST), max(height, LEAST)
        height = min(height, width) if rows > 5 else height
        return QRectF(left, top, width * columns, height * rows), width, height, turned

    def draw(self, painter: QPainter) -> None:
        """Draw names, cells and the colour scale."""
        view = self._view
        if view is None:
            return
        palette = theme.current()
        grid, width, height, turned = self._grid()
        values, low, high, table, text = self._scale()
        colours = colours_of(values, low, high, table)
        gap = cell_gap(min(width, height))
        lettering = self._lettering(width - gap, height - gap)
        rows, columns = self._rows(), self._columns()
        if gap == 0:
            unknown = QColor(palette.raised)
            colours[~np.isfinite(values)] = unknown.red(), unknown.green(), unknown.blue()
            if self._mode != "difference":  # of several cells in one pixel, the largest is shown
                pooled = _pooled(values[np.ix_(rows, columns)], int(grid.height()), int(grid.width()))
                painted = colours_of(pooled, low, high, table)
                painted[~np.isfinite(pooled)] = unknown.red(), unknown.green(), unknown.blue()
            else:
                painted = colours[np.ix_(rows, columns)]
            paint_small_cells(painter, grid, painted)
        else:
            for row, true in enumerate(rows):
                for column, output in enumerate(columns):
                    box = self._box(grid, width, height, row, column)
                    known = bool(np.isfinite(values[true, output]))
                    ground = QColor(*map(int, colours[true, output])) if known else QColor(palette.raised)
                    paint_cell(painter, box, ground)
                    self._draw_numbers(painter, box, lettering, (true, output), ink_on(ground))
        self._draw_names(painter, grid, width, height, turned)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if self.pointed is not None and self.pointed[0] in rows and self.pointed[1] in columns:
            cell = rows.index(self.pointed[0]), columns.index(self.pointed[1])
            painter.setPen(QPen(QColor(palette.text), 1, Qt.PenStyle.DashLine))
            painter.drawRect(self._box(grid, width, height, *cell).adjusted(-1, -1, 1, 1))
        if grid.bottom() + BAR_HEIGHT > self.room.bottom():
            return
        bar = QRectF(grid.left(), grid.bottom() + 6, min(max(grid.width(), 150.0), 260.0), BAR_HEIGHT)
        bar.setRight(min(bar.right(), self.room.width() - 2.0))
        if self._block is not None:
            text = f"{text}; {len(rows)} of {len(view.classes)} classes"
        elif max(len(view.classes), len(view.outputs)) > MANY:
            text = f"{text}; wheel zooms"
        paint_colour_bar(painter, bar, table, low, high, text)

    @staticmethod
    def _box(grid: QRectF, width: float, height: float, row: int, column: int) -> QRectF:
        gap = cell_gap(min(width, height))
        return QRectF(grid.left() + column * width, grid.top() + row * height, width - gap, height - gap)

    def _lettering(self, width: float, height: float) -> _Lettering:
        """Choose the largest style of numbers that fits into every cell."""
        if width < 14 or height < 13:
            return _Lettering(None)
        columns = self._columns()
        texts = [self._text((row, column)) for row in self._rows() for column in columns]
        large, small = theme.font(theme.FIGURE, bold=True), theme.font(theme.CAPTION)
        main = max(QFontMetrics(large).horizontalAdvance(text) for text, _ in texts)
        under = max(QFontMetrics(small).horizontalAdvance(text) for _, text in texts)
        if under and max(main, under) + 6 <= width and height >= 38:
            return _Lettering(large, under=True)
        if main + 6 <= width and height >= 20:
            return _Lettering(large)
        least = max(QFontMetrics(small).horizontalAdvance(_without_zero(text)) for text, _ in texts)
        if least + 2 <= width and height >= 13:
            return _Lettering(small, short=True)
        return _Lettering(None)

    def _draw_numbers(
        self, painter: QPainter, box: QRectF, lettering: _Lettering, part: tuple[int, int], ink: QColor
    ) -> None:
        if lettering.font is None:
            return
        main, under = self._text(part)
        painter.setPen(ink)
        painter.setFont(lettering.font)
        if not lettering.under:
            text = _without_zero(main) if lettering.short else main
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
            return
        middle = box.center().y()
        painter.drawText(QRectF(box.left(), middle - 18, box.width(), 20), Qt.AlignmentFlag.AlignCenter, main)
        painter.setFont(theme.font(theme.CAPTION))
        painter.drawText(QRectF(box.left(), middle + 3, box.width(), 14), Qt.AlignmentFlag.AlignCenter, under)

    def _draw_names(self, painter: QPainter, grid: QRectF, width: float, height: float, turned: bool) -> None:
        view, palette = self._view, theme.current()
        assert view is not None
        painter.setFont(theme.font(theme.CAPTION))
        corner = QRectF(0, grid.top() - 20, grid.left() - 6, 16)
        paint_text(painter, corner, SPLIT, palette.third)
        shown = [view.classes[row] for row in self._rows()]
        answers = [view.outputs[column] for column in self._columns()]
        brief, middle = distinguishing_labels((*shown, *answers)), Qt.TextElideMode.ElideMiddle
        # With many classes, only some are named.
        every = 1 if height >= NAMES_FROM else math.ceil(SPARSE_NAMES / height)
        tall = max(height, SPARSE_NAMES)
        for row, name in list(enumerate(shown))[::every]:
            box = QRectF(0, grid.top() + (row + 0.5) * height - tall / 2, grid.left() - 6, tall)
            paint_text(painter, box, name, palette.second, elide=middle, brief=brief[name])
        if not turned and width < TURNED_FROM:
            return
        for column, name in enumerate(answers):
            box = self._box(grid, width, height, 0, column)
            if turned:
                painter.save()
                painter.translate(box.center().x(), grid.top() - 4)
                painter.rotate(-90)
                upright = QRectF(0, -8, grid.top() - 4, 16)
                paint_text(painter, upright, name, palette.second, brief=brief[name])
                painter.restore()
            else:
                above = QRectF(box.left(), grid.top() - 20, box.width(), 16)
                if width < 30.0 and not fits(brief[name], painter.fontMetrics(), above.width()):
                    continue  # the rows have the same names
                centre = Qt.AlignmentFlag.AlignHCenter
                paint_text(painter, above, name, palette.second, side=centre, brief=brief[name])


def _pooled(values: NDArray[np.floating], down: int, across: int) -> NDArray[np.floating]:
    """Return the maxima of blocks of values, at most one block per pixel."""
    for axis, pixels in enumerate((down, across)):
        size = values.shape[axis]
        if 0 < pixels < size:
            starts = np.linspace(0, size, pixels + 1).astype(int)[:-1]
            values = np.fmax.reduceat(values, starts, axis=axis)
    return values


def _without_zero(text: str) -> str:
    return text.replace("0.", ".", 1) if text.lstrip("+−").startswith("0.") else text
