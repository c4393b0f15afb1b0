"""Tables of raters: comparison with the consensus, and a mask model's estimates (bias, Sigma, dof, tau)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QResizeEvent
from PySide6.QtWidgets import QHeaderView

from raterscope.text import small_figure, with_minus
from raterscope.widgets import theme
from raterscope.widgets.painting import paint_bar, paint_rater, paint_text, rater_colour, readable
from raterscope.widgets.parts import plain_tip
from raterscope.widgets.tables.rows import (
    ROW,
    Index,
    Row,
    RowDelegate,
    RowsTable,
    ShownModel,
    ShownTable,
    keys_in,
)
from raterscope.widgets.theme import pixels, set_lengths

HELP = {
    "rater": "The colour is the same in all views",
    "weight": "How closely the consensus follows the rater where raters differ. 1: most closely",
    "bias mm": "How far the rater's outline lies beyond the consensus's (+) or short of it (-), mean, mm",
    "spread": "Standard deviation of that over both outlines, in mm",
    "dof": "Degrees of freedom of the rater's errors: the fewer, the more of them are gross",
    "Dice": "Overlap with the consensus, from 0 to 1",
    "HD95 mm": "95th percentile of the distances between the rater's surface and the consensus's, in mm",
    "HD": "Hausdorff distance: the largest distance between the rater's surface and the consensus's, in mm",
    "sens.": "Sensitivity: share of the structure that the rater marks",
    "spec.": "Specificity: share of the background that the rater leaves unmarked",
}
FIELDS = {
    "weight": "weight", "bias mm": "bias_mm", "spread": "deviation_mm", "dof": "dof", "Dice": "dice",
    "HD95 mm": "hausdorff95", "HD": "hausdorff", "sens.": "sensitivity", "spec.": "specificity",
}  # fmt: skip
FIGURES = tuple(FIELDS)
SPOKEN = {
    "weight": "weight {}", "bias mm": "bias {} mm", "spread": "spread {} mm", "dof": "{} degrees of freedom",
    "Dice": "Dice {}", "HD95 mm": "95th percentile of the distance {} mm",
    "HD": "Hausdorff distance {} mm", "sens.": "sensitivity {}",
    "spec.": "specificity {}",
}  # fmt: skip
DECIMALS = {"bias mm": 1, "spread": 1, "dof": 1, "HD95 mm": 1, "HD": 1}


@dataclass(frozen=True, slots=True)
class RaterRow:
    """One rater, in one case or in all.

    `dice`, `sensitivity`, `specificity`: against the consensus, 0 to 1.
    """

    number: int  # index that determines the colour
    name: str
    weight: float = math.nan  # 0 to 1
    # bias_mm, deviation_mm: mean and standard deviation of the distance from the consensus, positive outside
    # of it
    bias_mm: float = math.nan
    deviation_mm: float = math.nan
    dof: float = math.nan  # degrees of freedom; infinite for Gaussian errors
    dice: float = math.nan
    # hausdorff95, hausdorff: in mm
    hausdorff95: float = math.nan
    hausdorff: float = math.nan
    sensitivity: float = math.nan
    specificity: float = math.nan
    excluded: bool = False
    excluded_reason: str = ""
    note: str = ""  # text beside the name: "drew nothing", "program"
    counts_as: str = ""  # of a program: "counts as 0.5 raters"


class FiguresModel(ShownModel[Row]):
    """Model of raters by name, with a number in every other column, NaN where unknown.

    `fields`: the field of a row by column. `left`: columns aligned left.
    """

    def __init__(self, columns: Mapping[str, str], fields: Mapping[str, str], *left: str) -> None:
        super().__init__(columns, "rater", falling=False)
        self.unit = "mm"
        """Unit of lengths: "px" for an image without a pixel size."""
        self._fields, self._left = fields, ("rater", *left)

    def figure(self, row: Row, column: str) -> float:
        """Return a value by the name of its column."""
        return float(getattr(row, self._fields[column]))

    def sort_key(self, row: Row, column: str) -> float | str:
        """Return the sort key: the index for raters, else the value."""
        number: Any = getattr(row, "number")  # noqa: B009
        return float(number) if column == "rater" else self.figure(row, column)

    def known(self, column: str) -> bool:
        """Return True if a column has any value."""
        return column == "rater" or not all(math.isnan(self.figure(row, column)) for row in self.rows)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Return the column titles with the unit."""
        if role == Qt.ItemDataRole.TextAlignmentRole and orientation == Qt.Orientation.Horizontal:
            left = self.columns[section] in self._left
            side = Qt.AlignmentFlag.AlignLeft if left else Qt.AlignmentFlag.AlignRight
            return side | Qt.AlignmentFlag.AlignVCenter
        text = super().headerData(section, orientation, role)
        return text.replace("mm", self.unit) if isinstance(text, str) else text


class RaterModel(FiguresModel[RaterRow]):
    """Raters as text, with their visibility: hidden, or alone."""

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the text of a cell, or its row."""
        row, column = self.at(index.row()), self.columns[index.column()]
        if role == ROW:
            return row
        if role == Qt.ItemDataRole.DisplayRole:
            return row.name if column == "rater" else _text(self.figure(row, column), column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(self._tip(row, column).replace(" mm", f" {self.unit}"))
        if role == Qt.ItemDataRole.AccessibleTextRole:
            text = self._screen_reader_text(row, column).replace(" mm", f" {self.unit}")
            return text if column != "rater" or self.shown(row) else f"{text}, hidden"
        return None

    def is_blank(self, row: RaterRow) -> bool:
        """Return whether a row has a note and no values, in a table with values."""
        blank = row.note and all(math.isnan(self.figure(row, column)) for column in FIGURES)
        return bool(blank) and any(map(self.known, FIGURES))

    def note_width(self, metrics: QFontMetrics, row: RaterRow) -> int:
        """Return the space for a row's note beside its name; 0 for a note in place of missing values."""
        width = metrics.horizontalAdvance(row.note) if row.note else 0
        inside = math.isnan(row.weight) and self.known("weight") and width <= WIDTHS["weight"] - NOTE_EDGES
        return 0 if inside or not width or self.is_blank(row) else width + NOTE_GAP

    def _screen_reader_text(self, row: RaterRow, column: str) -> str:
        if column == "rater":
            return ", ".join(filter(None, (row.name, "excluded" if row.excluded else "", row.note)))
        value = self.figure(row, column)
        if math.isnan(value):
            return f"{column} unknown"
        return direction(value) if column == "bias mm" else SPOKEN[column].format(_text(value, column))

    def _tip(self, row: RaterRow, column: str) -> str:
        if column != "rater":
            return f"{row.name}: {self._screen_reader_text(row, column)}"
        known = [
            self._screen_reader_text(row, column)
            for column in FIGURES
            if not math.isnan(self.figure(row, column))
        ]
        out = "excluded" if row.excluded else ""
        reason = f"excluded: {row.excluded_reason}" if row.excluded_reason else out
        parts = ", ".join(filter(None, (reason, row.note, row.counts_as, *known)))
        return f"{row.name}: {parts or 'not fused yet'}"


def direction(bias_mm: float) -> str:
    """Describe the direction of a bias: "draws 1.9 mm beyond the consensus: over"."""
    if abs(bias_mm) < 0.05:
        return "no bias against the consensus"
    beyond = bias_mm > 0
    direction = "beyond the consensus: over" if beyond else "short of the consensus: under"
    return f"draws {abs(bias_mm):.1f} mm {direction}"


def _text(value: float, column: str) -> str:
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    sign = "+" if column == "bias mm" else ""
    words = f"{value:{sign}.{DECIMALS.get(column, 2)}f}"
    return words[1:] if words[0] in "+-" and not words.strip("+-0.") else with_minus(words)


NOTHING = "Import the masks of several raters to compare them here."
WIDTHS = {
    "weight": 60, "bias mm": 68, "spread": 58, "dof": 44, "Dice": 46, "HD95 mm": 76, "HD": 46, "sens.": 50,
    "spec.": 50,
}  # fmt: skip
NAME_WIDTH, NAME_EDGES, NOTE_GAP, NOTE_EDGES, WIDEST_NAME = 92, 46, 8, 3, 150
"""Widths of the name column, in pixels.

In this order: minimum; space beside a name, before a note, and beside a note among the weights; maximum,
without a note, for which other columns are hidden.
"""
EDGES = 24
"""Margins above, between and below titles and raters."""
MAX_VISIBLE_ROWS, MIN_VISIBLE_ROWS = 9, 3
"""Number of raters for which the table requests space, and minimum number in a low window."""
LAST_KEPT = ("weight", "bias mm", "Dice", "HD95 mm", "spread", "dof", "sens.", "spec.", "HD")
"""Columns by priority; those that do not fit are in the name's tooltip."""


class RaterTable(ShownTable[RaterRow]):
    """Table of raters by name. Columns without values or space are hidden."""

    KEY_HELP = keys_in("In the rater table")

    def __init__(self) -> None:
        self.model: RaterModel = RaterModel(HELP, FIELDS, "weight")
        super().__init__(
            "Raters", self.model, _RaterDelegate(), noun="rater", marks="outline", nothing=NOTHING
        )
        header = self.view.horizontalHeader()
        set_lengths(header, minimumSectionSize=min(WIDTHS.values()))
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        theme.notifier().changed.connect(self._set_widths)
        self.model.layoutChanged.connect(self._join_blank_cells)
        self._set_widths()

    def set_rows(self, rows: Sequence[RaterRow], unit: str = "mm") -> None:
        """Replace the raters, with the unit of lengths; order and selection are kept."""
        self.model.unit = unit
        super().set_rows(rows)
        self.updateGeometry()

    def columns_shown(self) -> list[str]:
        """Return the columns with values that fit."""
        return [name for i, name in enumerate(self.model.columns) if not self.view.isColumnHidden(i)]

    def sizeHint(self) -> QSize:
        """Return a height that fits the raters, up to a limit."""
        return self._fitted(super().sizeHint(), MAX_VISIBLE_ROWS)

    def minimumSizeHint(self) -> QSize:
        """Return a height that fits some raters."""
        return self._fitted(super().minimumSizeHint(), MIN_VISIBLE_ROWS)

    def _fitted(self, hint: QSize, most: int) -> QSize:
        if self.model.rows:
            lines = self.view.verticalHeader()
            rows = min(lines.length(), most * lines.defaultSectionSize())
            heads = self.header.sizeHint().height() + self.view.horizontalHeader().sizeHint().height()
            hint.setHeight(EDGES + heads + rows)
        return hint

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show as many columns as fit."""
        super().resizeEvent(event)
        self._settle()
        self.view.scrollTo(self.view.currentIndex())

    def _set_widths(self) -> None:
        for name, width in WIDTHS.items():
            self.view.setColumnWidth(self.model.columns.index(name), pixels(width))
        self._settle()

    def _settle(self) -> None:
        super()._settle()
        hidden = len(self.model.hidden & {row.name for row in self.model.rows})
        subtitle = f"{hidden} hidden" if hidden else "1-9: show one alone"
        self.header.set_subtitle(subtitle if self.model.rows else "")
        metrics = QFontMetrics(theme.font())
        notes = [self.model.note_width(metrics, row) for row in self.model.rows]
        names = [metrics.horizontalAdvance(row.name) + NAME_EDGES for row in self.model.rows]
        widest = max(map(sum, zip(names, notes, strict=True)), default=0)
        name_width = min(max(NAME_WIDTH, widest), max(WIDEST_NAME, NAME_WIDTH + max(notes, default=0)))
        room = self.width() - pixels(name_width) - self.view.verticalScrollBar().sizeHint().width()
        for name in LAST_KEPT:
            known = self.model.known(name)
            room -= pixels(WIDTHS[name]) if known else 0
            self.view.setColumnHidden(self.model.columns.index(name), not known or room < 0)
        self._join_blank_cells()

    def _join_blank_cells(self) -> None:
        """Join the cells of rows without values, to make space for their note."""
        self.view.clearSpans()
        columns = [at for at in range(1, len(self.model.columns)) if not self.view.isColumnHidden(at)]
        if len(columns) > 1:
            for at in range(self.model.rowCount()):
                if self.model.is_blank(self.model.at(at)):
                    self.view.setSpan(at, columns[0], 1, columns[-1] - columns[0] + 1)


class _RaterDelegate(RowDelegate):
    def paint_cell(self, painter: QPainter, box: QRectF, index: Index, **_: bool) -> None:
        row: RaterRow = index.data(ROW)
        model = index.model()
        assert isinstance(model, RaterModel)
        palette, column, visible = theme.current(), model.columns[index.column()], model.shown(row)
        tone = palette.third if row.excluded or not visible else palette.text
        if column == "rater":
            sample = QRectF(box.left() + 12, box.top(), 18, box.height())
            if visible:
                paint_rater(painter, sample, row.number)
            name = box.adjusted(38, 0, -4, 0)
            font = QFont(painter.font())
            font.setStrikeOut(row.excluded)
            painter.setFont(font)
            if room := model.note_width(QFontMetrics(painter.font()), row):
                paint_text(painter, name, row.note, palette.disputed, side=Qt.AlignmentFlag.AlignRight)
                name.setRight(name.right() - room)
            paint_text(painter, name, row.name, tone, elide=Qt.TextElideMode.ElideMiddle)
        elif model.is_blank(row):
            paint_text(painter, box.adjusted(2, 0, 0, 0), row.note, palette.disputed)
        elif column == "weight" and not math.isnan(row.weight):
            bar = QRectF(box.left() + 8, box.center().y() - 3, box.width() - 16, 6)
            hue = palette.third if row.excluded else readable(rater_colour(row.number)).name()
            paint_bar(painter, bar, row.weight, hue)
        elif column == "weight":
            inside = row.note and not model.note_width(QFontMetrics(painter.font()), row)
            words, hue = (row.note, palette.disputed) if inside else (str(index.data()), tone)
            paint_text(painter, box.adjusted(2, 0, 0, 0), words, hue)
        else:
            number = box.adjusted(2, 0, -8, 0)
            paint_text(painter, number, str(index.data()), tone, side=Qt.AlignmentFlag.AlignRight)


NO_MODEL = "Press Fuse (F5) to see the model's estimates for each rater."
MODEL_HELP = {
    "rater": "The colour is the same in all views",
    "model bias mm": "Bias b of the model: mean of the rater's signed distances less the consensus's, over "
    "all voxels, in mm. Most voxels lie where all raters agree, so that it is far smaller than the bias "
    "along the outline",
    "√Σ mm": "Square root of the model's Sigma of the rater, in mm. Not comparable between algorithms",
    "SD mm": "Standard deviation of the rater's distances about the consensus by the model, in mm: "
    "comparable between algorithms",
    "dof": "Degrees of freedom of the rater's errors: the fewer, the more of them are gross",
    "τ": "Local scale: median over the voxels where raters differ. Sigma is divided by it, so that it is low "
    "where the rater is far from the consensus",
    "τ here": "Local scale at the crosshair",
}
MODEL_FIELDS = {
    "model bias mm": "bias_mm", "√Σ mm": "sigma_mm", "SD mm": "deviation_mm", "dof": "dof", "τ": "tau",
    "τ here": "tau_here",
}  # fmt: skip
MODEL_WIDTH = 74
SIGNED = "model bias mm"


@dataclass(frozen=True, slots=True)
class ModelRow:
    """Model estimates for one rater; NaN where the model has none."""

    number: int  # index that determines the colour
    name: str
    # bias_mm, sigma_mm, deviation_mm: bias, square root of Sigma, square root of the covariance
    bias_mm: float = math.nan
    sigma_mm: float = math.nan
    deviation_mm: float = math.nan
    dof: float = math.nan
    # tau, tau_here: median where raters differ, and value at the crosshair
    tau: float = math.nan
    tau_here: float = math.nan


class ModelTable(RowsTable[ModelRow]):
    """Table of a model's estimates, one rater per row; columns without values are hidden."""

    def __init__(self) -> None:
        self.model: _ModelModel = _ModelModel(MODEL_HELP, MODEL_FIELDS)
        super().__init__(
            "Model estimates", self.model, _ModelDelegate(), name="Model estimates for each rater",
            nothing=NO_MODEL, margins=(12, 8, 12, 4),
        )  # fmt: skip
        header = self.view.horizontalHeader()
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        set_lengths(header, minimumSectionSize=40)

    def set_rows(self, rows: Sequence[ModelRow], unit: str = "mm", subtitle: str = "") -> None:
        """Replace the raters, with the unit of lengths; order and selection are kept."""
        self.model.unit = unit
        super().set_rows(rows)
        self.header.set_subtitle(subtitle if rows else "")

    def _settle(self) -> None:
        super()._settle()
        for column, name in enumerate(self.model.columns[1:], start=1):
            self.view.setColumnWidth(column, pixels(MODEL_WIDTH + 28 * (name == SIGNED)))
            self.view.setColumnHidden(column, not self.model.known(name))


class _ModelModel(FiguresModel[ModelRow]):
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row, column = self.at(index.row()), self.columns[index.column()]
        if role == ROW:
            return row
        text = row.name if column == "rater" else _model_text(self.figure(row, column), column)
        if role == Qt.ItemDataRole.DisplayRole:
            return text
        if role == Qt.ItemDataRole.AccessibleTextRole and column != "rater":
            return f"{column.replace('mm', self.unit)} {text}"
        return None


class _ModelDelegate(RowDelegate):
    def paint_cell(self, painter: QPainter, box: QRectF, index: Index, **_: bool) -> None:
        row: ModelRow = index.data(ROW)
        palette = theme.current()
        if index.column() == 0:
            paint_rater(painter, QRectF(box.left(), box.top(), 18, box.height()), row.number)
            name = box.adjusted(26, 0, -4, 0)
            paint_text(painter, name, row.name, palette.text, elide=Qt.TextElideMode.ElideMiddle)
        else:
            side = Qt.AlignmentFlag.AlignRight
            paint_text(painter, box.adjusted(2, 0, -6, 0), str(index.data()), palette.text, side=side)


def _model_text(value: float, column: str) -> str:
    if math.isnan(value):
        return "–"
    if column == "dof":
        return f"{value:.1f}" if value < 100 else "> 100"
    return small_figure(value, "+" if column == SIGNED else "")
