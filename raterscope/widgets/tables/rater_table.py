"""Table of raters: weight, bias, overlap and distances against the consensus."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QModelIndex, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QAction, QColor, QContextMenuEvent, QFont, QFontMetrics, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from raterscope.widgets import theme
from raterscope.widgets.layouts import stacked, vertical
from raterscope.widgets.painting import paint_bar, paint_rater, paint_words, rater_colour, readable
from raterscope.widgets.parts import Header, Menu, placeholder, plain_tip
from raterscope.widgets.tables.rows import (
    ROW,
    Index,
    RowKeys,
    RowsModel,
    keys_in,
    row_named,
    row_view,
    select_row,
)
from raterscope.widgets.theme import enlarge, pixels, set_lengths

HELP = {
    "rater": "The colour is the same in all views",
    "weight": "How closely the consensus follows the rater where raters differ. 1: most closely",
    "bias mm": "How far the rater's outline lies beyond the consensus's (+) or short of it (-), mean, mm",
    "spread": "Standard deviation of that over the consensus's outline, in mm",
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
    """One rater of one case, or of all.

    Attributes
    ----------
    dice, sensitivity, specificity : float
        Against the consensus, 0 to 1.
    """

    number: int  # index that determines the colour
    name: str
    weight: float = math.nan  # 0 to 1
    # bias_mm, deviation_mm: mean and standard deviation of the distance from the consensus, positive where
    # the rater draws beyond it
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

    def figure(self, column: str) -> float:
        """Return a value by the name of its column."""
        return float(getattr(self, FIELDS[column]))


class RaterModel(RowsModel[RaterRow]):
    """Raters as text, with their visibility: hidden, or alone."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(HELP, "rater", parent, falling=False)
        self.unit = "mm"
        """Unit of lengths: "px" for an image without a pixel size."""
        self.hidden: frozenset[str] = frozenset()
        self.solo: str | None = None

    def set_shown(self, hidden: frozenset[str], solo: str | None) -> None:
        """Set which raters are hidden or alone."""
        self.hidden, self.solo = hidden, solo
        if self.rowCount():
            self.dataChanged.emit(self.index(0, 0), self.index(self.rowCount() - 1, len(HELP) - 1))

    def shown(self, name: str) -> bool:
        """Return True if a rater's outline is drawn."""
        return name == self.solo if self.solo is not None else name not in self.hidden

    def sort_key(self, row: RaterRow, column: str) -> float | str:
        """Return the sort key: the index for raters, else the value."""
        return float(row.number) if column == "rater" else row.figure(column)

    def known(self, column: str) -> bool:
        """Return True if a column has any value."""
        return column == "rater" or not all(math.isnan(row.figure(column)) for row in self.rows)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Return the column titles."""
        if role == Qt.ItemDataRole.TextAlignmentRole and orientation == Qt.Orientation.Horizontal:
            left = self.columns[section] in ("rater", "weight")
            side = Qt.AlignmentFlag.AlignLeft if left else Qt.AlignmentFlag.AlignRight
            return side | Qt.AlignmentFlag.AlignVCenter
        words = super().headerData(section, orientation, role)
        return words.replace("mm", self.unit) if isinstance(words, str) else words

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the text of a cell, or its row."""
        row, column = self.at(index.row()), self.columns[index.column()]
        if role == ROW:
            return row
        if role == Qt.ItemDataRole.DisplayRole:
            return row.name if column == "rater" else _words(row.figure(column), column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(_tip(row, column).replace(" mm", f" {self.unit}"))
        if role == Qt.ItemDataRole.AccessibleTextRole:
            words = _spoken(row, column).replace(" mm", f" {self.unit}")
            return words if column != "rater" or self.shown(row.name) else f"{words}, hidden"
        return None


def direction(bias_mm: float) -> str:
    """Describe the direction of a bias: "draws 1.9 mm beyond the consensus: over"."""
    if abs(bias_mm) < 0.05:
        return "no bias against the consensus"
    beyond = bias_mm > 0
    direction = "beyond the consensus: over" if beyond else "short of the consensus: under"
    return f"draws {abs(bias_mm):.1f} mm {direction}"


def _words(value: float, column: str) -> str:
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    sign = "+" if column == "bias mm" else ""
    words = f"{value:{sign}.{DECIMALS.get(column, 2)}f}"
    return words[1:] if words[0] in "+-" and not words.strip("+-0.") else words


def _spoken(row: RaterRow, column: str) -> str:
    if column == "rater":
        return ", ".join(part for part in (row.name, "excluded" if row.excluded else "", row.note) if part)
    value = row.figure(column)
    if math.isnan(value):
        return f"{column} unknown"
    return direction(value) if column == "bias mm" else SPOKEN[column].format(_words(value, column))


def _tip(row: RaterRow, column: str) -> str:
    if column != "rater":
        return f"{row.name}: {_spoken(row, column)}"
    known = [_spoken(row, column) for column in FIGURES if not math.isnan(row.figure(column))]
    reason = f"excluded: {row.excluded_reason}" if row.excluded_reason else "excluded" if row.excluded else ""
    return f"{row.name}: " + (
        ", ".join(part for part in (reason, row.note, row.counts_as, *known) if part) or "not fused yet"
    )


NOTHING = "Import the masks of several raters to compare them here."
WIDTHS = {
    "weight": 60, "bias mm": 68, "spread": 58, "dof": 44, "Dice": 46, "HD95 mm": 76, "HD": 46, "sens.": 50,
    "spec.": 50,
}  # fmt: skip
NAME_WIDTH, NOTE_WIDTH = 92, 84
NAME_EDGES, WIDEST_NAME = 46, 150
"""Room beside a name, and the widest column for which other columns are hidden."""
EDGES = 24
"""Margins above, between and below titles and raters."""
MOST_IN_SIGHT, LEAST_IN_SIGHT = 9, 3
"""Numbers of raters for which the table requests space, and needs it in a low window."""
LAST_KEPT = ("weight", "bias mm", "Dice", "HD95 mm", "spread", "dof", "sens.", "spec.", "HD")
"""Columns by priority: those that do not fit are in the name's tooltip."""


class RaterTable(QWidget):
    """Table of raters.

    Return shows a rater alone, Space hides, Delete excludes; the context menu does the same. Columns without
    values or without room are hidden.
    """

    # rater_chosen, exclude_requested, include_requested: name of a rater
    rater_chosen = Signal(str)
    exclude_requested = Signal(str)
    include_requested = Signal(str)
    soloed = Signal(object)  # rater whose outline is shown alone
    hidden_changed = Signal(object)  # raters whose outlines are hidden

    def __init__(self) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self._header = Header("Raters")
        self._header.row.setContentsMargins(12, 0, 12, 0)
        self.model = RaterModel(self)
        self.view = row_view(self.model, _RaterDelegate(), "Raters")
        header = self.view.horizontalHeader()
        set_lengths(header, minimumSectionSize=min(WIDTHS.values()))
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self._nothing = placeholder(NOTHING)
        self._nothing.setContentsMargins(12, 0, 12, 0)
        self._pages = stacked(self._nothing, self.view)
        self._solo = self._action("Show alone", self.toggle_solo)
        self._hide = self._action("Hide", self.toggle_hidden)
        self._exclude = self._action("Exclude…", self._on_exclude)
        self._show_all = QAction("Show all raters", self)
        self._show_all.triggered.connect(self.show_all)
        RowKeys(self.view, self._solo, self._hide, self._exclude, self._has_current)
        self.setFocusProxy(self.view)
        vertical(self._header, (self._pages, 1), inside=self, margins=(0, 8, 0, 0), spacing=4)
        self._quiet = False
        self.view.selectionModel().currentRowChanged.connect(self._on_current)
        theme.notifier().changed.connect(self._set_widths)
        self._set_widths()

    def set_rows(self, rows: Sequence[RaterRow], unit: str = "mm") -> None:
        """Replace the raters, with lengths in a unit; order and selection stay."""
        current = self.current
        self._quiet = True
        self.model.unit = unit
        self.model.set_rows(tuple(rows))
        self._quiet = False
        self.select(current)
        self._settle()
        self.updateGeometry()

    def set_nothing(self, reason: str = "") -> None:
        """Show why the table is empty; by default what belongs here."""
        self._nothing.setText(reason or NOTHING)

    def select(self, name: str | None) -> None:
        """Select a rater, without a signal; None clears the selection."""
        self._quiet = True
        select_row(self.view, row_named(self.model, name))
        self._quiet = False

    @property
    def current(self) -> str | None:
        """Name of the rater selected."""
        index = self.view.currentIndex()
        return self.model.at(index.row()).name if index.isValid() else None

    def columns_shown(self) -> list[str]:
        """Return the columns that have values and room."""
        return [name for i, name in enumerate(self.model.columns) if not self.view.isColumnHidden(i)]

    def sizeHint(self) -> QSize:
        """Return a height that fits the raters, up to a limit."""
        return self._fitted(super().sizeHint(), MOST_IN_SIGHT)

    def minimumSizeHint(self) -> QSize:
        """Return a height that fits some raters."""
        return self._fitted(super().minimumSizeHint(), LEAST_IN_SIGHT)

    def _fitted(self, hint: QSize, most: int) -> QSize:
        if self.model.rows:
            lines = self.view.verticalHeader()
            rows = min(lines.length(), most * lines.defaultSectionSize())
            heads = self._header.sizeHint().height() + self.view.horizontalHeader().sizeHint().height()
            hint.setHeight(EDGES + heads + rows)
        return hint

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show as many columns as fit."""
        super().resizeEvent(event)
        self._settle()
        self.view.scrollTo(self.view.currentIndex())

    KEY_HELP = keys_in("In the rater table")

    def toggle_solo(self, name: str) -> None:
        """Show a rater's outline alone, or all again."""
        solo = None if self.model.solo == name else name
        self._set_shown(self.model.hidden, solo)
        self.soloed.emit(solo)

    def toggle_hidden(self, name: str) -> None:
        """Hide a rater's outline, or show it again."""
        self._set_shown(self.model.hidden ^ {name}, self.model.solo)
        self.hidden_changed.emit(self.model.hidden)

    def show_all(self) -> None:
        """Show all outlines again."""
        self._set_shown(frozenset(), None)
        self.hidden_changed.emit(self.model.hidden)
        self.soloed.emit(None)

    def leave_solo(self) -> None:
        """End solo mode, without a signal."""
        self._set_shown(self.model.hidden, None)

    def _set_shown(self, hidden: frozenset[str], solo: str | None) -> None:
        self.model.set_shown(hidden, solo)
        self._settle()

    def _has_current(self) -> bool:
        return self.current is not None

    def _action(self, words: str, slot: Callable[[str], object]) -> QAction:
        action = QAction(words, self)
        action.triggered.connect(partial(self._on_action, slot))
        return action

    def _on_action(self, slot: Callable[[str], object], _checked: bool = False) -> None:
        if self.current is not None:
            slot(self.current)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Open the context menu with what Delete does."""
        name = self.current
        if name is None:
            return
        out = self.model.at(row_named(self.model, name)).excluded
        self._solo.setText("Show all raters" if self.model.solo == name else "Show alone")
        self._hide.setText("Show" if name in self.model.hidden else "Hide")
        self._exclude.setText(f"Restore {name}" if out else f"Exclude {name}…")
        menu = Menu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addActions([self._solo, self._hide, self._exclude])
        if self.model.hidden:
            menu.addAction(self._show_all)
        menu.popup(event.globalPos())

    def _on_exclude(self, name: str) -> None:
        out = self.model.at(row_named(self.model, name)).excluded
        (self.include_requested if out else self.exclude_requested).emit(name)

    def _on_current(self, index: QModelIndex) -> None:
        if not self._quiet and index.isValid():
            self.rater_chosen.emit(self.model.at(index.row()).name)

    def _set_widths(self) -> None:
        for name, width in WIDTHS.items():
            self.view.setColumnWidth(self.model.columns.index(name), pixels(width))
        self._settle()

    def _settle(self) -> None:
        self._pages.setCurrentIndex(int(bool(self.model.rows)))
        hidden = len(self.model.hidden & {row.name for row in self.model.rows})
        aside = f"{hidden} hidden" if hidden else "1-9: show one alone"
        self._header.set_aside(aside if self.model.rows else "")
        metrics = QFontMetrics(theme.font())
        widest = max((metrics.horizontalAdvance(row.name) for row in self.model.rows), default=0) + NAME_EDGES
        name_width = min(max(NAME_WIDTH, widest), WIDEST_NAME)
        name_width += NOTE_WIDTH if any(row.note for row in self.model.rows) else 0
        room = self.width() - pixels(name_width) - self.view.verticalScrollBar().sizeHint().width()
        for name in LAST_KEPT:
            known = self.model.known(name)
            room -= pixels(WIDTHS[name]) if known else 0
            self.view.setColumnHidden(self.model.columns.index(name), not known or room < 0)


class _RaterDelegate(QStyledItemDelegate):
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row: RaterRow = index.data(ROW)
        palette, column = theme.current(), (("rater", *FIGURES))[index.column()]
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.save()
        box = enlarge(painter, option.rect)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if chosen:
            painter.fillRect(box, QColor(palette.raised))
        font = QFont(theme.font())
        font.setStrikeOut(row.excluded and column == "rater")
        painter.setFont(font)
        model = index.model()
        assert isinstance(model, RaterModel)
        visible = model.shown(row.name)
        tone = palette.third if row.excluded or not visible else palette.text
        if column == "rater":
            sample = QRectF(box.left() + 12, box.top(), 18, box.height())
            if visible:
                paint_rater(painter, sample, row.number)
            name = box.adjusted(38, 0, -4, 0)
            if row.note:
                paint_words(painter, name, row.note, palette.disputed, side=Qt.AlignmentFlag.AlignRight)
                name.setRight(name.right() - NOTE_WIDTH)
            paint_words(painter, name, row.name, tone, elide=Qt.TextElideMode.ElideMiddle)
        elif column == "weight" and row.weight == row.weight:
            bar = QRectF(box.left() + 8, box.center().y() - 3, box.width() - 16, 6)
            hue = palette.third if row.excluded else readable(rater_colour(row.number)).name()
            paint_bar(painter, bar, row.weight, hue)
        else:
            room = box.adjusted(2, 0, -8, 0)
            side = Qt.AlignmentFlag.AlignLeft if column == "weight" else Qt.AlignmentFlag.AlignRight
            paint_words(painter, room, str(index.data()), tone, side=side)
        painter.restore()
