"""Table of annotators: clicks, reliability, sensitivity, precision, weight, reliability by image."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import (
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QAction, QColor, QFont, QFontMetrics, QHelpEvent, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolTip,
    QVBoxLayout,
    QWidget,
)

from raterscope.text import UNKNOWN, counted, estimate, figure, part_of_one
from raterscope.widgets import theme
from raterscope.widgets.painting import paint_annotator
from raterscope.widgets.parts import Header, Menu, plain_tip
from raterscope.widgets.tables.course import Course, paint_course
from raterscope.widgets.tables.rows import (
    ROW,
    ROW_HEIGHT,
    Index,
    RowKeys,
    RowsModel,
    keys_in,
    row_view,
    select_row,
)
from raterscope.widgets.theme import enlarge, pixels, set_lengths, usual

Figures = tuple[float, float, float]
HELP = {
    "annotator": "Colour and shape are the same in all views",
    "clicks": "Clicks on the images shown",
    "reliability": "Share of clicks that are not outliers, with 95 % interval",
    "sensitivity": "Share of structures that the annotator marked, with 95 % interval",
    "precision": "Share of the annotator's marks that are on structures, with 95 % interval",
    "weight": "Excluded or down-weighted annotators, and the reason",
    "by image": "Reliability on each image in study order, from 0 (bottom) to 1 (top). Sorts by the lowest",
}
COLUMNS = tuple(HELP)


@dataclass(frozen=True, slots=True)
class AnnotatorRow:
    """One annotator."""

    index: int  # gives colour and symbol
    name: str
    clicks: int
    # reliability, sensitivity, precision: (value, low, high): NaN if unknown
    reliability: Figures
    sensitivity: Figures
    precision: Figures
    weight: float = 1.0  # as how much of an annotator one counts; 0 for who is excluded
    why: str = ""  # the reason, where that is less than 1
    course: Course | None = None  # the same by image, where several are fused

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


class AnnotatorModel(RowsModel[AnnotatorRow]):
    """Annotators with their visibility: hidden, or alone."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(HELP, "clicks", parent, falling=True)
        self.hidden: frozenset[int] = frozenset()
        self.solo: int | None = None
        self._filter: list[str] = []

    def choose(self, text: str) -> None:
        """Keep the rows whose name or reason contains all words."""
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

    def set_shown(self, hidden: frozenset[int], solo: int | None) -> None:
        """Set which annotators are hidden or alone."""
        self.hidden, self.solo = hidden, solo
        if self.rowCount():
            self.dataChanged.emit(self.index(0, 0), self.index(self.rowCount() - 1, len(COLUMNS) - 1))

    def shown(self, annotator: int) -> bool:
        """Return True if an annotator's clicks are drawn."""
        return annotator == self.solo if self.solo is not None else annotator not in self.hidden

    def row_of(self, annotator: int) -> int:
        """Return the row of an annotator, -1 if it is filtered out."""
        return next((row for row in range(self.rowCount()) if self.at(row).index == annotator), -1)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Return the column titles, with an arrow on the sorted one."""
        if role == Qt.ItemDataRole.TextAlignmentRole and self.columns[section] == "clicks":
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        words = super().headerData(section, orientation, role)
        if role == Qt.ItemDataRole.DisplayRole and self.columns[section] == self._column:
            return f"{words} {'▾' if self._falling else '▴'}"
        return words

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column and mark it."""
        super().sort(column, order)
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self.columns) - 1)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the text of a cell, or its row."""
        row, column = self.at(index.row()), COLUMNS[index.column()]
        if role == ROW:
            return row
        if role == Qt.ItemDataRole.DisplayRole:
            return _words(row, column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(f"{row.name}: {_words(row, column)}" if column != "annotator" else row.name)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{column} {_words(row, column) or ('1' if column == 'weight' else 'no')}"
        return None


def _words(row: AnnotatorRow, column: str) -> str:
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


class AnnotatorDelegate(QStyledItemDelegate):
    """Cells of the table of annotators."""

    def sizeHint(self, _option: QStyleOptionViewItem, _index: QModelIndex | QPersistentModelIndex) -> QSize:
        """Give every row the same height."""
        return QSize(pixels(60), pixels(ROW_HEIGHT))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Paint a cell."""
        row: AnnotatorRow = index.data(ROW)
        model = index.model()
        assert isinstance(model, AnnotatorModel)
        palette, column = theme.current(), COLUMNS[index.column()]
        painter.save()
        box = enlarge(painter, option.rect)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box, QColor(palette.raised))
        words = str(index.data())
        visible = model.shown(row.index)
        font = QFont(theme.font())
        font.setStrikeOut(row.excluded and column == "annotator")
        painter.setFont(font)
        painter.setPen(QColor(palette.text if visible and not row.excluded else palette.third))
        inner = box.adjusted(8, 0, -8, 0)
        if column == "annotator":
            paint_annotator(
                painter, QPointF(inner.left() + 6, box.center().y()), row.index, 4.5, shown=visible
            )
            _text(painter, inner.adjusted(20, 0, 0, 0), words)
        elif column == "clicks":
            _text(painter, inner, words, Qt.AlignmentFlag.AlignRight)
        elif column == "by image":
            if row.course is not None:
                paint_course(painter, course_box(box), row.course)
        elif column == "weight":
            if row.part:
                _paint_weight(painter, inner, row)
        else:
            if QFontMetrics(font).horizontalAdvance(words) > inner.width():
                # The bar shows the interval, and the tooltip says it.
                words = figure(*row.figures(column))
            _text(painter, inner.adjusted(0, 0, 0, -5), words)
            _paint_interval(painter, inner, row.figures(column))
        painter.restore()

    def helpEvent(
        self,
        event: QHelpEvent,
        view: QAbstractItemView,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> bool:
        """Show the image below the pointer in a tooltip."""
        row = index.data(ROW) if index.isValid() else None
        if row is None or row.course is None or COLUMNS[index.column()] != "by image":
            return super().helpEvent(event, view, option, index)
        cell = QRectF(option.rect)
        box = course_box(QRectF(usual(cell.topLeft()), usual(cell.bottomRight())))
        image = row.course.place_at((usual(QPointF(event.pos())).x() - box.left()) / box.width())
        QToolTip.showText(event.globalPos(), plain_tip(f"{row.name}, {row.course.words(image)}"), view)
        return True


def course_box(cell: QRect | QRectF) -> QRectF:
    """Return the rectangle of the course within its cell, in unscaled pixels."""
    return QRectF(cell).adjusted(10, 6, -10, -6)


def _paint_weight(painter: QPainter, box: QRectF, row: AnnotatorRow) -> None:
    """Paint the weight as a chip, and the reason as far as there is room."""
    palette = theme.current()
    tone = QColor(palette.rejected if row.excluded else palette.second)
    chip = QRectF(0, 0, QFontMetrics(painter.font()).horizontalAdvance(row.part) + 10, 17)
    chip.moveTo(box.left(), box.center().y() - chip.height() / 2)
    painter.setPen(QPen(tone, 1))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(chip, 4, 4)
    painter.drawText(chip, Qt.AlignmentFlag.AlignCenter, row.part)
    painter.setPen(QColor(palette.second))
    _text(painter, box.adjusted(chip.width() + 6, 0, 0, 0), row.why)


def _text(
    painter: QPainter, box: QRectF, words: str, side: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft
) -> None:
    short = QFontMetrics(painter.font()).elidedText(words, Qt.TextElideMode.ElideMiddle, int(box.width()))
    painter.drawText(box, side | Qt.AlignmentFlag.AlignVCenter, short)


def _paint_interval(painter: QPainter, box: QRectF, figures: tuple[float, float, float]) -> None:
    """Paint a bar from 0 to 1: background, interval, and a tick at the value."""
    value, low, high = figures
    if not math.isfinite(value):
        return
    palette = theme.current()
    bar = QRectF(box.left(), box.bottom() - 5, box.width(), 2)
    painter.fillRect(bar, QColor(palette.line))
    if math.isfinite(low) and math.isfinite(high):
        left = bar.left() + bar.width() * min(max(low, 0.0), 1.0)
        right = bar.left() + bar.width() * min(max(high, 0.0), 1.0)
        painter.fillRect(
            QRectF(left, bar.top(), max(right - left, 1.0), 2), theme.colour(palette.accent, 150)
        )
    x = bar.left() + bar.width() * min(max(value, 0.0), 1.0)
    painter.setPen(QPen(QColor(palette.accent), 2))
    painter.drawLine(QPointF(x, bar.top() - 2), QPointF(x, bar.bottom() + 1))


WIDTHS = {"annotator": 128, "clicks": 76, "by image": 92, "weight": 120}
NARROWEST = 76


class AnnotatorTable(QWidget):
    """Table of annotators with sorting and filter.

    Return shows one annotator alone, Space hides or shows, Delete excludes or restores; the context menu does
    the same.
    """

    soloed = Signal(object)
    hidden_changed = Signal(object)
    exclude_requested = Signal(int)
    weigh_requested = Signal(int)
    include_requested = Signal(int)
    selected = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.set_role(self, "panel")
        self._header = Header("Annotators")
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Filter")
        self.filter.setClearButtonEnabled(True)
        set_lengths(self.filter, minimumWidth=70)
        set_lengths(self.filter, maximumWidth=160)
        self.filter.setAccessibleName("Filter annotators by name or reason")
        self._header.row.insertWidget(1, self.filter)
        self.model = AnnotatorModel(self)
        self.view = row_view(self.model, AnnotatorDelegate(), "Annotators")
        header = self.view.horizontalHeader()
        set_lengths(header, minimumSectionSize=NARROWEST)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        for column, name in enumerate(COLUMNS):
            if name not in WIDTHS:
                header.setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
        self.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.view.customContextMenuRequested.connect(self._on_menu)
        self.setFocusProxy(self.view)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        top = QHBoxLayout()
        top.setContentsMargins(12, 8, 12, 0)
        top.addWidget(self._header)
        layout.addLayout(top)
        layout.addWidget(self.view, 1)
        self._quiet = False
        self._make_actions()
        self.filter.textChanged.connect(self._on_filter)
        self.view.selectionModel().currentRowChanged.connect(self._on_current)
        theme.notifier().changed.connect(self._set_widths)
        self._set_widths()
        self._settle()

    def _set_widths(self) -> None:
        for name, width in WIDTHS.items():
            self.view.setColumnWidth(COLUMNS.index(name), pixels(width))

    def set_rows(self, rows: Sequence[AnnotatorRow]) -> None:
        """Replace the annotators; order, filter and selection stay."""
        self._keeping_selection(lambda: self.model.set_rows(tuple(rows)))

    def select(self, annotator: int | None, compared: int | None = None) -> None:
        """Select an annotator, and one to compare with, without a signal."""
        self._quiet = True
        row = -1 if annotator is None else self.model.row_of(annotator)
        select_row(self.view, row)
        if row >= 0 and compared is not None and (beside := self.model.row_of(compared)) >= 0:
            flags = QItemSelectionModel.SelectionFlag
            self.view.selectionModel().select(self.model.index(beside, 0), flags.Select | flags.Rows)
        self._quiet = False

    def set_shown(self, hidden: set[int], solo: int | None) -> None:
        """Set which annotators are hidden or alone, without a signal."""
        self.model.set_shown(frozenset(hidden), solo)
        self._settle()

    @property
    def current(self) -> int | None:
        """Index of the selected annotator."""
        index = self.view.currentIndex()
        return self.model.at(index.row()).index if index.isValid() else None

    def toggle_solo(self, annotator: int) -> None:
        """Show an annotator alone, or all again."""
        solo = None if self.model.solo == annotator else annotator
        self.set_shown(set(self.model.hidden), solo)
        self.soloed.emit(solo)

    def toggle_hidden(self, annotator: int) -> None:
        """Hide an annotator's clicks, or show them again."""
        hidden = set(self.model.hidden) ^ {annotator}
        self.set_shown(hidden, self.model.solo)
        self.hidden_changed.emit(hidden)

    KEY_HELP = keys_in("In the annotator table")

    def _make_actions(self) -> None:
        self._solo = QAction("Show alone", self)
        self._hide = QAction("Hide", self)
        self._exclude = QAction("Exclude…", self)
        self._weigh = QAction("Down-weight…", self)
        self._fully = QAction("Restore annotator", self)
        self._show_all = QAction("Show all annotators", self)
        self._solo.triggered.connect(self._on_solo)
        self._hide.triggered.connect(self._on_hide)
        self._exclude.triggered.connect(self.exclude_current)
        self._weigh.triggered.connect(self._on_weigh)
        self._fully.triggered.connect(self._on_fully)
        self._show_all.triggered.connect(self._on_show_all)
        RowKeys(self.view, self._solo, self._hide, self._exclude, self._has_current)

    def _has_current(self) -> bool:
        return self.current is not None

    def _on_menu(self, position: QPoint) -> None:
        row = self.view.indexAt(position)
        if row.isValid():
            self.view.selectRow(row.row())
        annotator = self.current
        menu = Menu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        if annotator is not None:
            row_of = self.model.at(self.model.row_of(annotator))
            self._solo.setText("Show all annotators" if self.model.solo == annotator else "Show alone")
            self._hide.setText("Show clicks" if annotator in self.model.hidden else "Hide clicks")
            self._exclude.setText("Restore annotator" if row_of.excluded else "Exclude…")
            menu.addActions([self._solo, self._hide])
            menu.addSeparator()
            menu.addActions([self._exclude, self._weigh])
            if not row_of.excluded and row_of.part:
                menu.addAction(self._fully)
        if self.model.hidden or self.model.solo is not None:
            menu.addAction(self._show_all)
        menu.popup(self.view.viewport().mapToGlobal(position))

    def _on_solo(self) -> None:
        if self.current is not None:
            self.toggle_solo(self.current)

    def _on_hide(self) -> None:
        if self.current is not None:
            self.toggle_hidden(self.current)

    def exclude_current(self) -> None:
        """Request the exclusion or restoration of the selected annotator."""
        annotator = self.current
        if annotator is None:
            return
        if self.model.at(self.model.row_of(annotator)).excluded:
            self.include_requested.emit(annotator)
        else:
            self.exclude_requested.emit(annotator)

    def _on_weigh(self) -> None:
        if self.current is not None:
            self.weigh_requested.emit(self.current)

    def _on_fully(self) -> None:
        if self.current is not None:
            self.include_requested.emit(self.current)

    def _on_show_all(self) -> None:
        self.set_shown(set(), None)
        self.hidden_changed.emit(set())
        self.soloed.emit(None)

    def _on_filter(self, text: str) -> None:
        self._keeping_selection(lambda: self.model.choose(text))

    def _on_current(self, index: QModelIndex) -> None:
        if not self._quiet:
            self.selected.emit(self.model.at(index.row()).index if index.isValid() else None)

    def _keeping_selection(self, change: Callable[[], object]) -> None:
        current = self.current
        self._quiet = True
        change()
        self._quiet = False
        self.select(current)
        self._settle()

    def _settle(self) -> None:
        # Its room belongs to the figures as long as all count fully.
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
        self._header.set_aside(", ".join(words))
