"""Table of annotators: clicks, reliability, sensitivity, precision, weight, reliability over images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QItemSelectionModel, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QColor,
    QFont,
    QFontMetrics,
    QHelpEvent,
    QPainter,
    QPen,
    QPolygonF,
    QTransform,
)
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QLineEdit, QStyleOptionViewItem, QToolTip

from raterscope.figures.drawing import DENSE, column_spans
from raterscope.text import UNKNOWN, counted, estimate, figure, part_of_one
from raterscope.widgets import theme
from raterscope.widgets.painting import paint_annotator, paint_text
from raterscope.widgets.parts import plain_tip
from raterscope.widgets.tables.rows import (
    ROW,
    Index,
    RowDelegate,
    ShownModel,
    ShownTable,
    keys_in,
    paint_interval,
)
from raterscope.widgets.theme import pixels, set_lengths, usual

DOTS_FROM = 6.0
"""Minimum distance between two images, in pixels, to draw dots on the line."""

COURSE_PEN = 1.3


@dataclass(frozen=True, eq=False)
class Course:
    """Reliability of an annotator on each of K images, in study order."""

    images: Sequence[str]  # (K,)
    clicks: NDArray[np.integer]  # (K,)
    # reliability, sensitivity: (K,): NaN if unknown
    reliability: NDArray[np.floating]
    sensitivity: NDArray[np.floating]

    @cached_property
    def line(self) -> tuple[QPolygonF, ...]:
        """Polygons of the reliability in the unit square, one for each uninterrupted part."""
        known = np.isfinite(self.reliability)
        across = np.linspace(0.0, 1.0, len(known))
        down = 1.0 - np.clip(np.nan_to_num(self.reliability), 0.0, 1.0)
        points = [QPointF(x, y) for x, y in zip(across.tolist(), down.tolist(), strict=True)]
        breaks = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(np.int8)))
        return tuple(QPolygonF(points[begin:end]) for begin, end in breaks.reshape(-1, 2).tolist())

    @cached_property
    def _range(self) -> tuple[float, float]:
        """Lowest and highest reliability over all images; NaN if unknown."""
        known = self.reliability[np.isfinite(self.reliability)]
        return (float(known.min()), float(known.max())) if len(known) else (math.nan, math.nan)

    @property
    def lowest(self) -> float:
        """Lowest reliability over all images; NaN if unknown."""
        return self._range[0]

    def summary(self) -> str:
        """Summarise the course: "0.62 to 0.97 on 8 images"."""
        on, (low, high) = f"on {counted(len(self.images), 'image')}", self._range
        return f"{figure(low)} to {figure(high)} {on}" if math.isfinite(low) else f"unknown {on}"

    def text_of(self, index: int) -> str:
        """Describe one image: "two.png: reliability 0.93 of 14 clicks, sensitivity 0.80"."""
        marks = counted(int(self.clicks[index]), "click")
        reliability, sensitivity = float(self.reliability[index]), float(self.sensitivity[index])
        text = f"reliability {figure(reliability)} of {marks}" if math.isfinite(reliability) else marks
        return f"{self.images[index]}: {text}" + (
            f", sensitivity {figure(sensitivity)}" if math.isfinite(sensitivity) else ""
        )

    def place_at(self, share: float) -> int:
        """Return the index of the image nearest to a given share of the line's length."""
        return round(min(max(share, 0.0), 1.0) * (len(self.images) - 1))


def paint_course(painter: QPainter, box: QRectF, course: Course) -> None:
    """Paint the reliability from 0 (bottom) to 1 (top) of a box, interrupted where unknown."""
    palette = theme.current()
    painter.setPen(QPen(QColor(palette.line), 1))
    for edge in (box.top(), box.bottom()):
        painter.drawLine(QPointF(box.left(), edge), QPointF(box.right(), edge))
    step = box.width() / max(len(course.images) - 1, 1)
    onto = QTransform(box.width(), 0, 0, box.height(), box.left(), box.top())
    ink = QColor(palette.accent)
    if step * DENSE < 1:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ink)
        for outline in _dense_outlines(course, round(box.width()), COURSE_PEN / box.height()):
            painter.drawPolygon(onto.map(outline))
        return
    painter.setPen(QPen(ink, COURSE_PEN))
    for unbroken in course.line:
        points = onto.map(unbroken)
        painter.drawPolyline(points)
        if points.count() == 1 or step >= DOTS_FROM:
            painter.save()
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(ink)
            for point in map(points.at, range(points.count())):
                painter.drawEllipse(point, 1.8, 1.8)
            painter.restore()


@lru_cache(maxsize=256)
def _dense_outlines(course: Course, columns: int, pen: float) -> tuple[QPolygonF, ...]:
    """Return the outline of a line over many images: its range in each column of pixels, in the unit square.

    Drawing its strokes would take as long as drawing the rest of the window.
    """
    known = np.flatnonzero(np.isfinite(course.reliability))
    if not len(known):
        return ()
    x = known * (columns / max(len(course.images) - 1, 1))
    y = 1.0 - np.clip(course.reliability[known], 0.0, 1.0)
    low, high = (span[:, 0] for span in column_spans(x, y[:, None], columns, stepped=False))
    run = np.cumsum(np.diff(known, prepend=known[0]) > 1)
    after = np.searchsorted(x, np.arange(columns) + 0.5)
    covered = run[np.maximum(after - 1, 0)] == run[np.minimum(after, len(x) - 1)]
    covered &= (after > 0) & (after < len(x))
    covered[np.clip(x.astype(np.int64), 0, columns - 1)] = True
    edges = np.flatnonzero(np.diff(covered, prepend=False, append=False)).reshape(-1, 2).tolist()
    outlines = []
    for begin, end in edges:
        across = np.repeat(np.arange(begin, end + 1), 2)[1:-1] / columns
        top, bottom = np.repeat(low[begin:end] - pen / 2, 2), np.repeat(high[begin:end] + pen / 2, 2)
        corners = np.concatenate([np.column_stack([across, top]), np.column_stack([across, bottom])[::-1]])
        outlines.append(QPolygonF([QPointF(*corner) for corner in corners.tolist()]))
    return tuple(outlines)


Figures = tuple[float, float, float]
HELP = {
    "annotator": "Colour and shape are the same in all views",
    "clicks": "Clicks on the images shown",
    "reliability": "Share of clicks that are votes for a spot, with 95 % interval",
    "sensitivity": "Share of the structures found by the crowd on which the annotator has a vote, with "
    "95 % interval. Structures that fewer than two annotators marked are not among them",
    "precision": "Share of the annotator's marks that are on structures, with 95 % interval",
    "weight": "Excluded or down-weighted annotators, and the reason",
    "by image": "Reliability on each image in study order, from 0 (bottom) to 1 (top). Sorts by the lowest",
}
COLUMNS = tuple(HELP)


@dataclass(frozen=True, slots=True)
class AnnotatorRow:
    """One annotator."""

    index: int  # determines colour and symbol
    name: str
    clicks: int
    # reliability, sensitivity, precision: (value, low, high); NaN if unknown
    reliability: Figures
    sensitivity: Figures
    precision: Figures
    weight: float = 1.0  # weight in a fusion; 0 if excluded
    why: str = ""  # reason for a weight below 1
    course: Course | None = None  # values by image, if several are fused

    @property
    def excluded(self) -> bool:
        """True if the annotator is excluded."""
        return self.weight == 0

    @property
    def part(self) -> str:
        """Reduced weight in words: "out", "× ½"; empty for full weight."""
        if self.excluded:
            return "out"
        return "" if self.weight == 1 else f"× {part_of_one(self.weight)}"

    def figures(self, column: str) -> Figures:
        """Return an estimate by the name of its column."""
        return {
            "reliability": self.reliability,
            "sensitivity": self.sensitivity,
            "precision": self.precision,
        }[column]


class AnnotatorModel(ShownModel[AnnotatorRow]):
    """Model of the annotators that pass a filter."""

    def __init__(self) -> None:
        super().__init__(HELP, "clicks", falling=True)
        self._filter: list[str] = []

    def key(self, row: AnnotatorRow) -> int:
        """Return the index of an annotator."""
        return row.index

    def choose(self, text: str) -> None:
        """Filter the rows whose name or reason contains all words."""
        self._filter = text.casefold().split()
        self.arrange()

    def passes(self, row: AnnotatorRow) -> bool:
        """Return True if name or reason contains all words."""
        return all(word in f"{row.name} {row.why}".casefold() for word in self._filter)

    def sort_key(self, row: AnnotatorRow, column: str) -> float | str:
        """Sort by the estimate, not by its interval."""
        if column == "annotator":
            return row.name.casefold()
        if column == "weight":
            return row.weight
        if column == "by image":
            return math.nan if row.course is None else row.course.lowest
        return float(row.clicks) if column == "clicks" else row.figures(column)[0]

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Return the column titles, with an arrow on the sorted one."""
        if role == Qt.ItemDataRole.TextAlignmentRole and self.columns[section] == "clicks":
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        text = super().headerData(section, orientation, role)
        return f"{text}{self.arrow(str(text))}" if role == Qt.ItemDataRole.DisplayRole else text

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the text of a cell, or its row."""
        row, column = self.at(index.row()), COLUMNS[index.column()]
        if role == ROW:
            return row
        if role == Qt.ItemDataRole.DisplayRole:
            return _text(row, column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(f"{row.name}: {_text(row, column)}" if column != "annotator" else row.name)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{column} {_text(row, column) or ('1' if column == 'weight' else 'no')}"
        return None


def _text(row: AnnotatorRow, column: str) -> str:
    if column == "annotator":
        return row.name
    if column == "clicks":
        return f"{row.clicks:,}"
    if column == "weight":
        text = (
            "excluded" if row.excluded else "" if row.weight == 1 else f"counts as {part_of_one(row.weight)}"
        )
        return f"{text}: {row.why}" if row.why else text
    if column == "by image":
        return "" if row.course is None else row.course.summary()
    words = estimate(*row.figures(column))
    return "–" if words == UNKNOWN else words


class AnnotatorDelegate(RowDelegate):
    """Delegate for the cells of the table of annotators."""

    def paint_cell(self, painter: QPainter, box: QRectF, index: Index, **_: bool) -> None:
        """Paint name, number, weight, course, or an estimate with a bar of its interval."""
        row: AnnotatorRow = index.data(ROW)
        model = index.model()
        assert isinstance(model, AnnotatorModel)
        palette, column = theme.current(), COLUMNS[index.column()]
        words, visible = str(index.data()), model.shown(row)
        ink = palette.text if visible and not row.excluded else palette.third
        inner, middle = box.adjusted(8, 0, -8, 0), Qt.TextElideMode.ElideMiddle
        if column == "annotator":
            centre = QPointF(inner.left() + 6, box.center().y())
            paint_annotator(painter, centre, row.index, 4.5, shown=visible)
            font = QFont(painter.font())
            font.setStrikeOut(row.excluded)
            painter.setFont(font)
            paint_text(painter, inner.adjusted(20, 0, 0, 0), words, ink, elide=middle)
        elif column == "clicks":
            paint_text(painter, inner, words, ink, side=Qt.AlignmentFlag.AlignRight)
        elif column == "by image":
            if row.course is not None:
                paint_course(painter, course_box(box), row.course)
        elif column == "weight":
            if row.part:
                _paint_weight(painter, inner, row)
        else:
            value, *interval = row.figures(column)
            brief = figure(value, *interval)  # bar and tooltip show the interval
            paint_text(painter, inner.adjusted(0, 0, 0, -5), words, ink, brief=brief)
            if math.isfinite(value):
                bar = QRectF(inner.left(), inner.bottom() - 5, inner.width(), 2)
                paint_interval(painter, bar, value, (interval[0], interval[1]), palette.accent, (2.0, 1.0))

    def helpEvent(
        self,
        event: QHelpEvent,
        view: QAbstractItemView,
        option: QStyleOptionViewItem,
        index: Index,
    ) -> bool:
        """Show the image below the pointer in a tooltip."""
        row = index.data(ROW) if index.isValid() else None
        if row is None or row.course is None or COLUMNS[index.column()] != "by image":
            return super().helpEvent(event, view, option, index)
        cell = QRectF(option.rect)
        box = course_box(QRectF(usual(cell.topLeft()), usual(cell.bottomRight())))
        image = row.course.place_at((usual(QPointF(event.pos())).x() - box.left()) / box.width())
        QToolTip.showText(event.globalPos(), plain_tip(f"{row.name}, {row.course.text_of(image)}"), view)
        return True


def course_box(cell: QRect | QRectF) -> QRectF:
    """Return the rectangle of the course within its cell, in unscaled pixels."""
    return QRectF(cell).adjusted(10, 6, -10, -6)


def _paint_weight(painter: QPainter, box: QRectF, row: AnnotatorRow) -> None:
    """Paint the weight as a chip, and the reason as far as it fits."""
    palette = theme.current()
    tone = QColor(palette.rejected if row.excluded else palette.second)
    chip = QRectF(0, 0, QFontMetrics(painter.font()).horizontalAdvance(row.part) + 10, 17)
    chip.moveTo(box.left(), box.center().y() - chip.height() / 2)
    painter.setPen(QPen(tone, 1))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(chip, 4, 4)
    painter.drawText(chip, Qt.AlignmentFlag.AlignCenter, row.part)
    rest, middle = box.adjusted(chip.width() + 6, 0, 0, 0), Qt.TextElideMode.ElideMiddle
    paint_text(painter, rest, row.why, palette.second, elide=middle)


WIDTHS = {"annotator": 128, "clicks": 76, "by image": 92, "weight": 120}
NARROWEST = 76


class AnnotatorTable(ShownTable[AnnotatorRow]):
    """Table of annotators with sorting and filter, by index."""

    weigh_requested = Signal(int)

    KEY_HELP = keys_in("In the annotator table")

    def __init__(self) -> None:
        self.model: AnnotatorModel = AnnotatorModel()
        super().__init__("Annotators", self.model, AnnotatorDelegate(), noun="annotator", marks="clicks")
        self.filter = QLineEdit(placeholderText="Filter", clearButtonEnabled=True)
        set_lengths(self.filter, minimumWidth=70, maximumWidth=160)
        self.filter.setAccessibleName("Filter annotators by name or reason")
        self.header.row.insertWidget(1, self.filter)
        header = self.view.horizontalHeader()
        set_lengths(header, minimumSectionSize=NARROWEST)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        for column, name in enumerate(COLUMNS):
            if name not in WIDTHS:
                header.setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
        self._weigh = self.make_action("Down-weight…", self.weigh_requested.emit)
        self._fully = self.make_action("Restore annotator", self.include_requested.emit)
        self.filter.textChanged.connect(self._on_filter)
        theme.notifier().changed.connect(self._set_widths)
        self._set_widths()
        self._settle()

    def select(self, key: object, compared: int | None = None) -> None:
        """Select an annotator, and one to compare with, without a signal."""
        super().select(key)
        if self.current is not None and compared is not None and (row := self.model.row_of(compared)) >= 0:
            flags = QItemSelectionModel.SelectionFlag
            self.view.selectionModel().select(self.model.index(row, 0), flags.Select | flags.Rows)

    def more_actions(self, row: AnnotatorRow) -> Sequence[QAction]:
        """Return the actions that change a weight."""
        return (self._weigh, self._fully) if row.part and not row.excluded else (self._weigh,)

    def _set_widths(self) -> None:
        for name, width in WIDTHS.items():
            self.view.setColumnWidth(COLUMNS.index(name), pixels(width))

    def _on_filter(self, text: str) -> None:
        self._keeping_selection(lambda: self.model.choose(text))

    def _settle(self) -> None:
        super()._settle()
        # While all annotators count fully, the space of the weight is used for other columns.
        self.view.setColumnHidden(COLUMNS.index("weight"), not any(row.part for row in self.model.rows))
        by_image = any(row.course is not None for row in self.model.rows)
        self.view.setColumnHidden(COLUMNS.index("by image"), not by_image)
        total, excluded = len(self.model.rows), sum(row.excluded for row in self.model.rows)
        weighed = sum(0 < row.weight < 1 for row in self.model.rows)
        words = [counted(total, "annotator")] if total else []
        words += [f"{excluded} excluded"] if excluded else []
        words += [f"{weighed} down-weighted"] if weighed else []
        words += [f"{len(self.model.hidden)} hidden"] if self.model.hidden else []
        words += ["one shown alone"] if self.model.solo is not None else []
        self.header.set_subtitle(", ".join(words))
