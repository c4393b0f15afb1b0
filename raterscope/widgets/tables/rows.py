"""Tables with one row per record: model, view, and keys on the current row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from PySide6.QtCore import QAbstractTableModel, QEvent, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStyledItemDelegate, QTableView

from raterscope.widgets.hints import KeyHelp
from raterscope.widgets.parts import plain_tip
from raterscope.widgets.theme import set_lengths

Row = TypeVar("Row")
Index = QModelIndex | QPersistentModelIndex
ROW = Qt.ItemDataRole.UserRole
ROW_HEIGHT = 28


class RowsModel(QAbstractTableModel, Generic[Row]):
    """Model of records as sorted and filtered rows.

    `columns`: explanations of columns by name. `column`: initial sort column. `falling`: whether the initial
    order is descending.
    """

    def __init__(self, columns: Mapping[str, str], column: str, parent: QObject, *, falling: bool) -> None:
        super().__init__(parent)
        self.columns = tuple(columns)
        self.rows: tuple[Row, ...] = ()
        self._help = dict(columns)
        self._column, self._falling = column, falling
        self._order: list[int] = []

    @property
    def order(self) -> tuple[int, Qt.SortOrder]:
        """The sorted column and its direction."""
        order = Qt.SortOrder.DescendingOrder if self._falling else Qt.SortOrder.AscendingOrder
        return self.columns.index(self._column), order

    def sort_key(self, row: Row, column: str) -> float | str:
        """Return the sort key of a row; NaN and "" are unknown."""
        raise NotImplementedError

    def passes(self, _row: Row) -> bool:
        """Return True if a row passes the filter."""
        return True

    def set_rows(self, rows: tuple[Row, ...]) -> None:
        """Replace the rows."""
        self.rows = rows
        self.arrange()

    def arrange(self) -> None:
        """Apply filter and order."""
        self.beginResetModel()
        self._arrange()
        self.endResetModel()

    def at(self, row: int) -> Row:
        """Return the record of a row."""
        return self.rows[self._order[row]]

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; unknown values come last in both orders."""
        self.layoutAboutToBeChanged.emit()
        before = self.persistentIndexList()
        persistent = [self._order[index.row()] for index in before]
        self._column, self._falling = self.columns[column], order == Qt.SortOrder.DescendingOrder
        self._arrange()
        rank = {index: row for row, index in enumerate(self._order)}
        after = [
            self.index(rank[position], index.column())
            for position, index in zip(persistent, before, strict=True)
        ]
        self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()

    def rowCount(self, parent: Index | None = None) -> int:
        """Count the rows that pass."""
        return 0 if parent is not None and parent.isValid() else len(self._order)

    def columnCount(self, parent: Index | None = None) -> int:
        """Count the columns."""
        return 0 if parent is not None and parent.isValid() else len(self.columns)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Name the columns."""
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self.columns[section]
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.ToolTipRole:
            return self._help[self.columns[section]]
        return None

    def _arrange(self) -> None:
        keys = {
            index: self.sort_key(row, self._column) for index, row in enumerate(self.rows) if self.passes(row)
        }
        known = [index for index, key in keys.items() if not _unknown(key)]
        known.sort(key=keys.__getitem__, reverse=self._falling)
        self._order = known + [index for index, key in keys.items() if _unknown(key)]


class TextRowsModel(RowsModel[Row]):
    """Model of records of text: a column shows the field of its name, and all of it as a tip."""

    def sort_key(self, row: Row, column: str) -> str:
        """Return the text of a cell."""
        text: str = getattr(row, column.casefold())
        return text

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the text of a cell; all of it as its tip."""
        text = self.sort_key(self.at(index.row()), self.columns[index.column()])
        if role == Qt.ItemDataRole.DisplayRole:
            return text
        return plain_tip(text) if role == Qt.ItemDataRole.ToolTipRole else None


def row_view(model: RowsModel[Row], delegate: QStyledItemDelegate, name: str) -> QTableView:
    """Create a view that selects single rows and sorts by its header, at first as the model does."""
    view = QTableView()
    view.setModel(model)
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
    header = view.horizontalHeader()
    header.setHighlightSections(False)
    header.setSortIndicator(*model.order)
    view.setSortingEnabled(True)
    header.setSortIndicatorShown(False)  # the delegate or the name of the column shows it
    return view


def select_row(view: QTableView, row: int) -> None:
    """Select a row and scroll to it; -1 clears the selection."""
    if row < 0:
        view.clearSelection()
        view.setCurrentIndex(QModelIndex())
    else:
        view.selectRow(row)
        view.scrollTo(view.model().index(row, 0))


def row_named(model: RowsModel[Any], name: str | None) -> int:
    """Return the row of the record with a name, -1 for none."""
    return next((row for row in range(model.rowCount()) if model.at(row).name == name), -1)


def _unknown(key: float | str) -> bool:
    return not key if isinstance(key, str) else math.isnan(key)


def keys_in(where: str) -> KeyHelp:
    """Return the key help of such a table."""
    effects = "show alone, show all", "hide, show", "exclude, restore"
    return KeyHelp(where, tuple(zip(("Return", "Space", "Delete"), effects, strict=True)))


class RowKeys(QObject):
    """Event filter that handles Return, Space and Delete in a table before the window does.

    `alone`, `hide`, `exclude`: actions on the current row. `chosen`: returns whether there is a current row.
    """

    def __init__(
        self,
        view: QAbstractItemView,
        alone: QAction,
        hide: QAction,
        exclude: QAction,
        chosen: Callable[[], bool],
    ) -> None:
        super().__init__(view)
        self._chosen = chosen
        self._actions = {
            Qt.Key.Key_Return: alone,
            Qt.Key.Key_Enter: alone,
            Qt.Key.Key_Space: hide,
            Qt.Key.Key_Delete: exclude,
        }
        alone.setShortcut(Qt.Key.Key_Return)
        hide.setShortcut(Qt.Key.Key_Space)
        exclude.setShortcut(Qt.Key.Key_Delete)
        view.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle the table's keys before the window's shortcuts."""
        if event.type() in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress):
            assert isinstance(event, QKeyEvent)
            action = self._actions.get(Qt.Key(event.key()))
            plain = not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
            if action is not None and plain and self._chosen():
                if event.type() == QEvent.Type.KeyPress:
                    action.trigger()
                event.accept()
                return True
        return super().eventFilter(watched, event)
