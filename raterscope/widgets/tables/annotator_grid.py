"""Table of the annotators of all kinds: columns with intervals, sorted and filtered by arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QItemSelection, QItemSelectionModel, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QAction, QColor, QFont, QFontMetrics, QKeyEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QWidget

from raterscope.text import counted, estimate, figure, p_text
from raterscope.widgets import theme
from raterscope.widgets.hints import KeyHelp
from raterscope.widgets.layouts import vertical
from raterscope.widgets.painting import paint_annotator, paint_text
from raterscope.widgets.parts import FilterField, Header, Menu, plain_label, plain_tip
from raterscope.widgets.tables.rows import Index, RowDelegate, SortedModel, paint_interval, row_view
from raterscope.widgets.theme import pixels, set_lengths

Form = Literal["annotator", "count", "share", "value", "signed", "p", "words"]

ROW_HEIGHT = 34
HEADER_HEIGHT = 40
WIDTHS: dict[Form, int] = {
    "annotator": 148, "count": 64, "share": 112, "value": 92, "signed": 92, "p": 72, "words": 124,
}  # fmt: skip
NARROWEST, WIDEST = 0.9, 1.6
"""Minimum and maximum width of a column, as a multiple of its default width."""
MAX_WORDS = 220
"""Maximum width of a text column, in unscaled pixels; the tooltip shows the full text."""
PADDING = 20
"""Padding beside the text of a cell or header, in unscaled pixels."""
FIGURE_WIDTH = 38
"""Width of the number beside its bar, in unscaled pixels."""


@dataclass(frozen=True, eq=False)
class GridColumn:
    """A column of N values."""

    name: str  # identity
    # group, title: the two lines of the header: "labels", "accuracy"
    group: str
    title: str
    help: str  # tooltip of the header
    # "annotator": a name with its symbol; "count"; "share": with a bar from 0 to 1; "value": 0 or more;
    # "signed": with its sign; "p": a p value; "words": a text
    form: Form
    values: NDArray[Any]  # (N,): numbers, NaN if unknown, or texts
    # low, high: (N,): bounds of the interval
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    marked: NDArray[np.bool_] | None = None  # (N,): values that stand out
    unit: str = ""
    shown: bool = True  # whether it is shown at first; the menu of the header shows and hides columns

    def interval(self, row: int) -> tuple[float, float]:
        """Return the bounds of a value's interval; NaN if unknown."""
        if self.low is None or self.high is None:
            return math.nan, math.nan
        return float(self.low[row]), float(self.high[row])

    @cached_property
    def _usual_interval(self) -> tuple[float, float]:
        """Return the interval of median width, which determines the digits of all values in a column."""
        if self.low is None or self.high is None:
            return math.nan, math.nan
        known = np.flatnonzero(np.isfinite(self.low) & np.isfinite(self.high))
        if not len(known):
            return math.nan, math.nan
        width = (self.high - self.low)[known]
        return self.interval(int(known[np.argsort(width, kind="stable")[len(known) // 2]]))

    @cached_property
    def longest(self) -> str:
        """Longest text of a text column."""
        return max(map(str, self.values), key=len, default="") if self.form == "words" else ""

    def text_of(self, row: int, *, brief: bool = False) -> str:
        """Return a value as text, with its interval unless `brief`; empty if unknown."""
        value = self.values[row]
        if self.form in ("annotator", "words"):
            return str(value)
        if not math.isfinite(value):
            return ""
        if self.form == "count":
            return f"{value:,.0f}"
        if self.form == "p":
            return p_text(float(value))
        text = figure(value, *self._usual_interval) if brief else estimate(value, *self.interval(row))
        sign = "+" if self.form == "signed" and value > 0 and text.strip("0.") else ""
        return f"{sign}{text}{f' {self.unit}' if self.unit else ''}"


@dataclass(frozen=True, eq=False)
class AnnotatorGrid:
    """N annotators with their columns."""

    keys: tuple[str, ...]  # (N,): identities, which names on screen may hide
    numbers: NDArray[np.int64]  # (N,): determine colour and symbol
    excluded: NDArray[np.bool_]  # (N,)
    columns: tuple[GridColumn, ...]  # the first one is the name


EMPTY = AnnotatorGrid((), np.empty(0, np.int64), np.empty(0, bool), ())


class GridModel(SortedModel):
    """Model of the rows of a grid that pass a mask, in order."""

    def __init__(self) -> None:
        super().__init__("marks", falling=True)
        self.grid = EMPTY
        self.order: NDArray[np.int64] = np.empty(0, np.int64)
        self._passing: NDArray[np.bool_] | None = None

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        return [column.name for column in self.grid.columns]

    def set_grid(self, grid: AnnotatorGrid, passing: NDArray[np.bool_] | None) -> None:
        """Replace all rows."""
        self.grid, self._passing = grid, passing
        self.arrange()

    def choose(self, passing: NDArray[np.bool_] | None) -> None:
        """Keep the rows of a mask; None keeps all."""
        self._passing = passing
        self.arrange()

    def _arrange(self) -> None:
        rows = np.arange(len(self.grid.keys))
        if self._passing is not None:
            rows = rows[self._passing]
        if self.grid.columns and len(rows):
            values = self.grid.columns[self.sorted_by[0]].values[rows]
            if values.dtype == object:
                texts = np.array([str(value).casefold() for value in values], dtype=str)
                unknown, _, keys = texts == "", None, np.unique(texts, return_inverse=True)[1]
            else:
                unknown, keys = ~np.isfinite(values), np.nan_to_num(values.astype(np.float64))
            rows = rows[np.lexsort((rows, -keys if self._falling else keys, unknown))]
        self.order = rows.astype(np.int64)

    def row_of(self, key: str) -> int:
        """Return the row of an annotator; -1 if it is filtered out."""
        if key not in self.grid.keys:
            return -1
        at = np.flatnonzero(self.order == self.grid.keys.index(key))
        return int(at[0]) if len(at) else -1

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Return the two lines of a column's header, with an arrow on the sorted one."""
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(self.grid.columns):
            return None
        column = self.grid.columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return f"{column.group}\n{column.title}{self.arrow(column.name)}"
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(column.help)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if column.form == "count" else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the text of a cell."""
        row, column = int(self.order[index.row()]), self.grid.columns[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.text_of(row)
        if role == Qt.ItemDataRole.ToolTipRole:
            name, text = self.grid.columns[0].text_of(row), column.text_of(row) or "unknown"
            return plain_tip(name if index.column() == 0 else f"{name}: {column.title} {text}")
        if role == Qt.ItemDataRole.AccessibleTextRole:
            out = ", excluded" if index.column() == 0 and self.grid.excluded[row] else ""
            return f"{column.group} {column.title} {column.text_of(row) or 'unknown'}{out}".strip()
        return None


class GridDelegate(RowDelegate):
    """Delegate for cells of the grid: a name with its symbol, a number with a bar of its interval, a text."""

    height = ROW_HEIGHT

    def paint_cell(self, painter: QPainter, box: QRectF, index: Index, *, selected: bool) -> None:
        """Paint the content of a cell."""
        model = index.model()
        assert isinstance(model, GridModel)
        row, column = int(model.order[index.row()]), model.grid.columns[index.column()]
        out, palette = bool(model.grid.excluded[row]), theme.current()
        if selected and index.column() == 0:
            painter.fillRect(QRectF(box.left(), box.top(), 3, box.height()), QColor(palette.accent))
        inner = box.adjusted(8, 0, -8, 0)
        marked = column.marked is not None and bool(column.marked[row]) and not out
        colour = palette.third if out else palette.rejected if marked else palette.text
        faint = palette.third if out else palette.second
        if column.form == "annotator":
            centre = QPointF(inner.left() + 8, inner.center().y())
            paint_annotator(painter, centre, int(model.grid.numbers[row]), 4.5, shown=not out)
            font = QFont(painter.font())
            font.setStrikeOut(out)
            painter.setFont(font)
            paint_text(painter, inner.adjusted(22, 0, 0, 0), column.text_of(row), colour)
        elif column.form == "count":
            paint_text(painter, inner, column.text_of(row) or "–", faint, side=Qt.AlignmentFlag.AlignRight)
        elif column.form == "words":
            paint_text(painter, inner, column.text_of(row), faint)
        elif not math.isfinite(column.values[row]):
            paint_text(painter, inner, "–", palette.third)
        else:
            self._paint_figure(painter, inner, column, row, colour)

    def _paint_figure(
        self, painter: QPainter, box: QRectF, column: GridColumn, row: int, colour: str
    ) -> None:
        text = column.text_of(row, brief=True)
        if column.form != "share":
            paint_text(painter, box, text, colour)
            return
        room = max(FIGURE_WIDTH, QFontMetrics(painter.font()).horizontalAdvance(text) + 6)
        paint_text(painter, QRectF(box.left(), box.top(), room, box.height()), text, colour)
        bar = QRectF(box.left() + room, box.center().y() - 1.5, box.width() - room, 3)
        palette = theme.current()
        ink = palette.accent if colour == palette.text else colour
        paint_interval(painter, bar, float(column.values[row]), column.interval(row), ink)


class _FilterField(FilterField):
    """Filter field; Esc, Return and Down move the focus to the table."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Leave the field, or edit its text."""
        if event.key() in (Qt.Key.Key_Escape, Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Down):
            self.left.emit()
        else:
            super().keyPressEvent(event)


class AnnotatorGridView(QWidget):
    """Table of annotators with its filter and header."""

    chosen = Signal(object)  # keys of the selected annotators, the current one first

    KEY_HELP = KeyHelp(
        "In the table of annotators",
        (("Up, Down", "previous, next annotator"), ("Shift+Up, Shift+Down", "select several"),
         ("Ctrl+A", "select all")),
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self.header = Header("All kinds")
        self.filter = _FilterField()
        self.filter.setPlaceholderText("Filter: words, or a rule such as accuracy < .6 and votes >= 50")
        self.filter.setClearButtonEnabled(True)
        self.filter.setAccessibleName("Filter annotators by words or by a rule")
        self._problem = plain_label("", "error", wrap=True)
        self._problem.hide()
        self._nothing = plain_label("", "second", wrap=True)
        self._nothing.hide()
        self.model = GridModel()
        self.model.setParent(self)
        self.view = row_view(self.model, GridDelegate(), "Annotators of all kinds")
        self.view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.view.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        set_lengths(self.view.verticalHeader(), defaultSectionSize=ROW_HEIGHT)
        self.view.horizontalHeader().setStretchLastSection(True)
        self.selected: tuple[str, ...] = ()
        """Keys of the selected annotators, the current one first."""
        self._quiet = False
        self._columns: tuple[tuple[str, bool], ...] = ()
        self._hidden: dict[str, bool] = {}
        """Columns that the user showed or hid."""
        top = vertical(
            self.header, self.filter, self._problem, self._nothing, margins=(12, 12, 12, 4), spacing=8
        )
        vertical(top, (self.view, 1), inside=self, spacing=4)
        self.setFocusProxy(self.view)
        self.filter.left.connect(self.view.setFocus)
        self.view.selectionModel().selectionChanged.connect(self._on_selection)
        header = self.view.horizontalHeader()
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header.customContextMenuRequested.connect(self._on_header_menu)
        theme.notifier().changed.connect(self._set_widths)

    def set_grid(self, grid: AnnotatorGrid, passing: NDArray[np.bool_] | None = None) -> None:
        """Replace the annotators; selection and scroll position are kept."""
        position = self.view.verticalScrollBar().value()
        self._keeping_selection(lambda: self.model.set_grid(grid, passing))
        columns = tuple((column.name, column.shown) for column in grid.columns)
        if columns != self._columns:
            self._columns = columns
            self.view.horizontalHeader().setSortIndicator(*self.model.sorted_by)
            self._set_widths()
        else:
            self._share_room()
        self.view.verticalScrollBar().setValue(position)
        self._settle()

    def choose_rows(self, passing: NDArray[np.bool_] | None, problem: str = "") -> None:
        """Show the rows of a mask; or show an error of the filter, and keep the rows unchanged."""
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))
        if not problem:
            self._keeping_selection(lambda: self.model.choose(passing))
            self._settle()

    def set_nothing(self, text: str) -> None:
        """Show a sentence above the table; empty for none."""
        self._nothing.setText(text)
        self._nothing.setVisible(bool(text))

    def select(self, keys: Sequence[str], *, scroll: bool = True) -> None:
        """Select annotators, the first one current."""
        rows = [row for row in map(self.model.row_of, keys) if row >= 0]
        flags = QItemSelectionModel.SelectionFlag
        selection, last = QItemSelection(), max(self.model.columnCount() - 1, 0)
        for row in rows:
            selection.select(self.model.index(row, 0), self.model.index(row, last))
        model = self.view.selectionModel()
        if rows:
            model.setCurrentIndex(self.model.index(rows[0], 0), flags.NoUpdate)
        model.select(selection, flags.ClearAndSelect)
        if rows and scroll:
            self.view.scrollTo(self.model.index(rows[0], 0))

    def _keeping_selection(self, change: Any) -> None:
        keys, self._quiet = self.selected, True
        change()
        self.select(keys, scroll=False)
        self._quiet = False
        self._on_selection()

    def _on_selection(self) -> None:
        if self._quiet:
            return
        selection = self.view.selectionModel().selection()
        ranges = [selection.at(number) for number in range(selection.size())]
        rows = sorted({row for each in ranges for row in range(each.top(), each.bottom() + 1)})
        current = self.view.currentIndex().row()
        rows.sort(key=lambda row: row != current)
        keys = tuple(self.model.grid.keys[int(self.model.order[row])] for row in rows)
        if keys != self.selected:
            self.selected = keys
            self.chosen.emit(keys)
            self._settle()

    def _settle(self) -> None:
        total, listed, selected = len(self.model.grid.keys), self.model.rowCount(), len(self.selected)
        words = [
            counted(total, "annotator") if listed == total else f"{listed:,} of {counted(total, 'annotator')}"
        ]
        words += (
            [f"{int(self.model.grid.excluded.sum()):,} excluded"] if self.model.grid.excluded.any() else []
        )
        words += [f"{selected:,} selected"] if selected > 1 else []
        self.header.set_subtitle(", ".join(words) if total else "")

    def _set_widths(self) -> None:
        header = self.view.horizontalHeader()
        set_lengths(header, height=HEADER_HEIGHT)
        shown = [self._hidden.get(column.name, not column.shown) for column in self.model.grid.columns]
        for at, hidden in enumerate(shown):
            self.view.setColumnHidden(at, hidden)
        self._share_room()

    def _share_room(self) -> None:
        """Widen the columns if the view has more space; narrow them slightly if all fit then."""
        columns = [
            (at, self._usual_width(column))
            for at, column in enumerate(self.model.grid.columns)
            if not self.view.isColumnHidden(at)
        ]
        total, room = sum(width for _, width in columns), self.view.viewport().width()
        narrow = ("count", "p", "words") if total > room else ("count", "p")
        fixed = sum(width for at, width in columns if self.model.grid.columns[at].form in narrow)
        factor = min((room - fixed) / (total - fixed), WIDEST) if total > fixed else 1.0
        factor = factor if factor >= NARROWEST else 1.0
        for at, width in columns:
            wide = self.model.grid.columns[at].form not in narrow
            self.view.horizontalHeader().resizeSection(at, int(factor * width) if wide else width)

    def _usual_width(self, column: GridColumn) -> int:
        """Return the default width of a column: for its title, or for the text of a text column."""
        usual = pixels(WIDTHS[column.form])
        if column.form == "count":
            title = self.view.horizontalHeader().fontMetrics().horizontalAdvance(f"{column.title} \u25be")
            return max(usual, title + pixels(PADDING))
        words = QFontMetrics(theme.font()).horizontalAdvance(column.longest) + PADDING
        return max(usual, pixels(min(words, MAX_WORDS)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Divide the space among the columns."""
        super().resizeEvent(event)
        self._share_room()

    def _on_header_menu(self, at: QPoint) -> None:
        menu = Menu("", self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for number, column in enumerate(self.model.grid.columns[1:], start=1):
            action = QAction(f"{column.group} {column.title}".strip(), menu)
            action.setCheckable(True)
            action.setChecked(not self.view.isColumnHidden(number))
            action.setData(number)
            menu.addAction(action)
        menu.triggered.connect(self._on_column)
        menu.popup(self.view.horizontalHeader().mapToGlobal(at))

    def _on_column(self, action: QAction) -> None:
        number = int(action.data())
        self._hidden[self.model.grid.columns[number].name] = not action.isChecked()
        self.view.setColumnHidden(number, not action.isChecked())
        self._share_room()
