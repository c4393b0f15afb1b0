"""Tables with one row per record: sorted models, cells, views, and widgets that select and hide rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from PySide6.QtCore import (
    QAbstractItemModel,
    QAbstractTableModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QPointF,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QAction, QColor, QKeyEvent, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemDelegate,
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
)

from raterscope.widgets import theme
from raterscope.widgets.hints import KeyHelp, TitledPage
from raterscope.widgets.layouts import Margins
from raterscope.widgets.parts import Header, Menu, plain_tip
from raterscope.widgets.theme import enlarge, pixels, set_lengths

Row = TypeVar("Row")
Index = QModelIndex | QPersistentModelIndex
ROW = Qt.ItemDataRole.UserRole
ROW_HEIGHT = 28


class TableModel(QAbstractTableModel):
    """Model of a table of a known shape."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        raise NotImplementedError

    def rowCount(self, parent: Index | None = None) -> int:
        """Count the rows."""
        return 0 if parent is not None and parent.isValid() else self.shape[0]

    def columnCount(self, parent: Index | None = None) -> int:
        """Count the columns."""
        return 0 if parent is not None and parent.isValid() else self.shape[1]


class SortedModel(TableModel):
    """Model of records sorted by a column; `falling`: whether the initial order is descending."""

    def __init__(self, column: str, parent: QObject | None = None, *, falling: bool) -> None:
        super().__init__(parent)
        self.order: Any = ()  # numbers of the records by row: a sequence or an array
        self._column, self._falling = column, falling

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of the rows that pass the filter, and of columns."""
        return len(self.order), len(self.names)

    @property
    def sorted_by(self) -> tuple[int, Qt.SortOrder]:
        """The sorted column and its direction."""
        at = list(self.names).index(self._column) if self._column in self.names else 0
        return at, Qt.SortOrder.DescendingOrder if self._falling else Qt.SortOrder.AscendingOrder

    def arrange(self) -> None:
        """Apply filter and order."""
        self.beginResetModel()
        self._arrange()
        self.endResetModel()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; unknown values come last in both orders."""
        if not 0 <= column < len(self.names):
            return
        self.layoutAboutToBeChanged.emit()
        before = self.persistentIndexList()
        records = [self.order[index.row()] for index in before]
        self._column, self._falling = self.names[column], order == Qt.SortOrder.DescendingOrder
        self._arrange()
        rows = {record: row for row, record in enumerate(self.order)}
        after = [self.index(rows[record], old.column()) for record, old in zip(records, before, strict=True)]
        self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self.names) - 1)

    def arrow(self, name: str) -> str:
        """Return the arrow after the title of a column: empty unless the rows are sorted by it."""
        return f" {'▾' if self._falling else '▴'}" if name == self._column else ""

    def _arrange(self) -> None:
        """Set `order`."""
        raise NotImplementedError


class RowsModel(SortedModel, Generic[Row]):
    """Model of records with sorting and filter.

    `columns`: explanations of columns by name. `column`: initial sort column. `falling`: whether the initial
    order is descending.
    """

    def __init__(
        self, columns: Mapping[str, str], column: str, parent: QObject | None = None, *, falling: bool
    ) -> None:
        super().__init__(column, parent, falling=falling)
        self.columns = tuple(columns)
        self.rows: tuple[Row, ...] = ()
        self._help = dict(columns)

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        return self.columns

    def key(self, row: Row) -> Any:
        """Return the identity of a record, by default its name."""
        return row.name  # type: ignore[attr-defined]

    def sort_key(self, row: Row, column: str) -> float | str:
        """Return the sort key of a row; NaN and "" are unknown."""
        raise NotImplementedError

    def passes(self, _row: Row) -> bool:
        """Return True if a row passes the filter."""
        return True

    def set_rows(self, rows: Sequence[Row]) -> None:
        """Replace the rows."""
        self.rows = tuple(rows)
        self.arrange()

    def at(self, row: int) -> Row:
        """Return the record of a row."""
        return self.rows[int(self.order[row])]

    def row_of(self, key: object) -> int:
        """Return the row of a record, -1 if there is none or it is filtered out."""
        return next((row for row in range(self.rowCount()) if self.key(self.at(row)) == key), -1)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Return the titles of the columns."""
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self.columns[section]
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(self._help[self.columns[section]])
        return None

    def _arrange(self) -> None:
        keys = {
            index: self.sort_key(row, self._column) for index, row in enumerate(self.rows) if self.passes(row)
        }
        known = [index for index, key in keys.items() if not _unknown(key)]
        known.sort(key=keys.__getitem__, reverse=self._falling)
        self.order = known + [index for index, key in keys.items() if _unknown(key)]


def _unknown(key: float | str) -> bool:
    return not key if isinstance(key, str) else math.isnan(key)


class TextRowsModel(RowsModel[Row]):
    """Model of records of text: a column shows the field of its name, with the full text as tooltip."""

    def sort_key(self, row: Row, column: str) -> str:
        """Return the text of a cell."""
        text: str = getattr(row, column.casefold())
        return text

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the text of a cell; the full text as tooltip."""
        text = self.sort_key(self.at(index.row()), self.columns[index.column()])
        if role == Qt.ItemDataRole.DisplayRole:
            return text
        return plain_tip(text) if role == Qt.ItemDataRole.ToolTipRole else None


class RowDelegate(QStyledItemDelegate):
    """Delegate for rows of equal height, on the background of the selection."""

    height = ROW_HEIGHT

    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        """Give every row the same height."""
        return QSize(pixels(60), pixels(self.height))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint background and content of a cell."""
        painter.save()
        box = enlarge(painter, option.rect)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font())
        self.paint_ground(painter, box, option.state)
        self.paint_cell(painter, box, index, selected=bool(option.state & QStyle.StateFlag.State_Selected))
        painter.restore()

    def paint_ground(self, painter: QPainter, box: QRectF, state: QStyle.StateFlag) -> None:
        """Paint the background of a cell."""
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box, QColor(theme.current().raised))

    def paint_cell(self, painter: QPainter, box: QRectF, index: Index, *, selected: bool) -> None:
        """Paint the content of a cell into its box, in unscaled pixels."""
        raise NotImplementedError


def paint_interval(
    painter: QPainter,
    bar: QRectF,
    value: float,
    interval: tuple[float, float],
    ink: str,
    tick: tuple[float, float] = (3.0, 3.0),
) -> None:
    """Paint a bar from 0 to 1: background, interval, and a tick at the value.

    `tick`: length of the tick above and below the bar.
    """
    painter.fillRect(bar, QColor(theme.current().line))
    low, high = interval
    if math.isfinite(low) and math.isfinite(high):
        left, right = (bar.left() + bar.width() * min(max(end, 0.0), 1.0) for end in (low, high))
        span = QRectF(left, bar.top(), max(right - left, 1.0), bar.height())
        painter.fillRect(span, theme.colour(ink, 150))
    x = bar.left() + bar.width() * min(max(value, 0.0), 1.0)
    painter.setPen(QPen(QColor(ink), 2))
    painter.drawLine(QPointF(x, bar.top() - tick[0]), QPointF(x, bar.bottom() + tick[1]))


def set_up_view(
    view: QTableView, model: QAbstractItemModel, name: str, delegate: QAbstractItemDelegate | None = None
) -> None:
    """Show a model in a view without a grid and without titles of rows; single rows can be selected."""
    view.setModel(model)
    if delegate is not None:
        delegate.setParent(view)
        view.setItemDelegate(delegate)
    view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    view.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
    view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    view.setShowGrid(False)
    view.setTabKeyNavigation(False)
    view.setWordWrap(False)
    view.setAccessibleName(name)
    view.verticalHeader().hide()
    view.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
    set_lengths(view.verticalHeader(), defaultSectionSize=ROW_HEIGHT)
    view.horizontalHeader().setHighlightSections(False)


def row_view(model: SortedModel, delegate: QStyledItemDelegate, name: str) -> QTableView:
    """Create a view that selects single rows and sorts by its header, initially in the model's order."""
    view = QTableView()
    set_up_view(view, model, name, delegate)
    sort_by_header(view, model)
    return view


def sort_by_header(view: QTableView, model: SortedModel) -> None:
    """Let a view sort by its header, initially in the model's order; a column's title shows the order."""
    view.horizontalHeader().setSortIndicator(*model.sorted_by)
    view.setSortingEnabled(True)
    view.horizontalHeader().setSortIndicatorShown(False)


class TextTable(QTableView):
    """Table of records of text, sorted by its header, initially by the first column."""

    def __init__(self, columns: Mapping[str, str], name: str, records: Sequence[Any] = ()) -> None:
        super().__init__()
        self.records: TextRowsModel[Any] = TextRowsModel(columns, next(iter(columns)), self, falling=False)
        self.records.set_rows(records)
        set_up_view(self, self.records, name)
        sort_by_header(self, self.records)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setStretchLastSection(True)
        header.setSortIndicatorShown(True)


class RowsTable(TitledPage, Generic[Row]):
    """Table with its title above it, or a sentence if there are no rows; order and selection are kept.

    `title`, `name`: text of the header, and text for screen readers. `nothing`: sentence in an empty table;
    without one, the headings stay.
    """

    selected = Signal(object)  # key of the selected row; None for none

    def __init__(
        self,
        title: str,
        model: RowsModel[Row],
        delegate: RowDelegate,
        *,
        name: str = "",
        nothing: str = "",
        margins: Margins,
    ) -> None:
        view = row_view(model, delegate, name or title)
        super().__init__(Header(title), view, nothing, margins=margins)
        self.model, self.view = model, view
        model.setParent(self)
        self.setFocusProxy(view)
        self._quiet = False
        self.view.selectionModel().currentRowChanged.connect(self._on_current)
        theme.notifier().changed.connect(self._settle)

    def set_rows(self, rows: Sequence[Row]) -> None:
        """Replace the rows."""
        self._keeping_selection(lambda: self.model.set_rows(rows))

    def select(self, key: object) -> None:
        """Select a row by its key and scroll to it, without a signal; None clears the selection."""
        self._quiet = True
        row = self.model.row_of(key)
        if row < 0:
            self.view.clearSelection()
            self.view.setCurrentIndex(QModelIndex())
        else:
            self.view.selectRow(row)
            self.view.scrollTo(self.model.index(row, 0))
        self._quiet = False

    @property
    def current(self) -> Any:
        """Key of the selected row; None without one."""
        index = self.view.currentIndex()
        return self.model.key(self.model.at(index.row())) if index.isValid() else None

    def _keeping_selection(self, change: Callable[[], object]) -> None:
        current, self._quiet = self.current, True
        change()
        self._quiet = False
        self.select(current)
        self._settle()

    def _on_current(self) -> None:
        if not self._quiet:
            self.selected.emit(self.current)

    def _settle(self) -> None:
        """Fit titles and columns to the rows and the space."""
        self.set_filled(bool(self.model.rows) or not self._belongs)


class ShownModel(RowsModel[Row]):
    """Model of records with marks in another view: some may be hidden, or only one shown."""

    hidden: frozenset[Any] = frozenset()
    solo: Any = None

    def set_shown(self, hidden: frozenset[Any], solo: Any) -> None:
        """Set which records are hidden, or the only one shown, by key."""
        self.hidden, self.solo = hidden, solo
        if self.rowCount():
            self.dataChanged.emit(self.index(0, 0), self.index(self.rowCount() - 1, len(self.columns) - 1))

    def shown(self, row: Row) -> bool:
        """Return True if the marks of a record are drawn."""
        key = self.key(row)
        return bool(key == self.solo if self.solo is not None else key not in self.hidden)


class ShownTable(RowsTable[Row]):
    """Table whose rows can be shown alone, hidden and excluded.

    Return shows a row alone, Space hides or shows it, Delete excludes or restores; the context menu does the
    same. `noun`, `marks`: nouns of a row and of its hidden marks: "annotator" and "clicks".
    """

    soloed = Signal(object)  # key of the row that is shown alone; None for all
    hidden_changed = Signal(object)  # keys of the hidden rows
    exclude_requested = Signal(object)  # key
    include_requested = Signal(object)  # key

    model: ShownModel[Row]

    def __init__(
        self,
        title: str,
        model: ShownModel[Row],
        delegate: RowDelegate,
        *,
        noun: str,
        marks: str,
        nothing: str = "",
    ) -> None:
        super().__init__(title, model, delegate, nothing=nothing, margins=(0, 8, 0, 0))
        self.header.row.setContentsMargins(12, 0, 12, 0)
        self._nothing.setContentsMargins(12, 0, 12, 0)
        self._noun, self._marks = noun, marks
        self._solo = self.make_action("Show alone", self.toggle_solo)
        self._hide = self.make_action("Hide", self.toggle_hidden)
        self._exclude = self.make_action("Exclude…", self._on_exclude)
        self._show_all = QAction(f"Show all {noun}s", self)
        self._show_all.triggered.connect(self.show_all)
        self._keys = {
            Qt.Key.Key_Return: self._solo, Qt.Key.Key_Enter: self._solo, Qt.Key.Key_Space: self._hide,
            Qt.Key.Key_Delete: self._exclude,
        }  # fmt: skip
        for key in (Qt.Key.Key_Return, Qt.Key.Key_Space, Qt.Key.Key_Delete):
            self._keys[key].setShortcut(key)
        self.view.installEventFilter(self)
        self.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.view.customContextMenuRequested.connect(self._on_menu)

    def make_action(self, text: str, slot: Callable[[Any], object]) -> QAction:
        """Make an action on the key of the selected row."""
        action = QAction(text, self)
        action.triggered.connect(lambda: None if self.current is None else slot(self.current))
        return action

    def is_excluded(self, row: Row) -> bool:
        """Return True if a record is excluded."""
        return bool(row.excluded)  # type: ignore[attr-defined]

    def more_actions(self, _row: Row) -> Sequence[QAction]:
        """Return further actions for the context menu of a row."""
        return ()

    def toggle_solo(self, key: object) -> None:
        """Show a row alone, or all again."""
        solo = None if self.model.solo == key else key
        self._set_shown(self.model.hidden, solo)
        self.soloed.emit(solo)

    def toggle_hidden(self, key: object) -> None:
        """Hide a row, or show it again."""
        self._set_shown(self.model.hidden ^ {key}, self.model.solo)
        self.hidden_changed.emit(self.model.hidden)

    def show_all(self) -> None:
        """Show all rows again."""
        self._set_shown(frozenset(), None)
        self.hidden_changed.emit(self.model.hidden)
        self.soloed.emit(None)

    def leave_solo(self) -> None:
        """Show all rows that are not hidden, without a signal."""
        self._set_shown(self.model.hidden, None)

    def exclude_current(self) -> None:
        """Request the exclusion or restoration of the selected row."""
        self._exclude.trigger()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle the keys of the selected row before the window's shortcuts."""
        if isinstance(event, QKeyEvent) and event.type() in (
            QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress,
        ):  # fmt: skip
            action = self._keys.get(Qt.Key(event.key()))
            plain = not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
            if action is not None and plain and self.current is not None:
                if event.type() == QEvent.Type.KeyPress:
                    action.trigger()
                event.accept()
                return True
        return super().eventFilter(watched, event)

    def _set_shown(self, hidden: frozenset[Any], solo: object) -> None:
        self.model.set_shown(hidden, solo)
        self._settle()

    def _on_exclude(self, key: object) -> None:
        out = self.is_excluded(self.model.at(self.model.row_of(key)))
        (self.include_requested if out else self.exclude_requested).emit(key)

    def _on_menu(self, position: QPoint) -> None:
        """Open the context menu of the row under the mouse, which is then selected."""
        under = self.view.indexAt(position)
        if under.isValid():
            self.view.selectRow(under.row())
        key = self.current
        menu = Menu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        if key is not None:
            row = self.model.at(self.model.row_of(key))
            self._solo.setText(self._show_all.text() if self.model.solo == key else "Show alone")
            self._hide.setText(f"{'Show' if key in self.model.hidden else 'Hide'} {self._marks}")
            self._exclude.setText(f"Restore {self._noun}" if self.is_excluded(row) else "Exclude…")
            menu.addActions([self._solo, self._hide])
            menu.addSeparator()
            menu.addActions([self._exclude, *self.more_actions(row)])
        if self.model.hidden or self.model.solo is not None:
            menu.addAction(self._show_all)
        menu.popup(self.view.viewport().mapToGlobal(position))


def keys_in(where: str) -> KeyHelp:
    """Return the key help of a `ShownTable`."""
    effects = "show alone, show all", "hide, show", "exclude, restore"
    return KeyHelp(where, tuple(zip(("Return", "Space", "Delete"), effects, strict=True)))
