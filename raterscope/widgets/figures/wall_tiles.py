"""The grid of tiles of the confusion wall: layout, selection, keyboard and zoom."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QToolTip

from raterscope.widgets import theme
from raterscope.widgets.figures.cells import NAMES_FROM, Grid, TilePainter, Tiles
from raterscope.widgets.hints import KeyHelp
from raterscope.widgets.painting import paint_focus_frame
from raterscope.widgets.parts import keeps_key, plain_tip
from raterscope.widgets.theme import enlarge, set_lengths, text_size, usual

MARGIN = 8
SMALLEST, USUAL, LARGEST = 20, 66, 220
ZOOM = 1.2
MAX_AUTOMATIC_SIDE = 160


class WallTiles(QAbstractScrollArea):
    """Widget of tiles, one per annotator, in a given order, by their rows in the `Tiles`.

    `words`: describes the tile of a row.
    """

    selection_changed = Signal(object)  # rows, in display order
    activated = Signal(int)  # row of a double click or Return
    find_requested = Signal()  # the user wants to find an annotator by name

    def __init__(self, words: Callable[[int], str]) -> None:
        super().__init__()
        self.text_of = words
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        self.setAccessibleName("Annotators")
        set_lengths(self, minimumWidth=120, minimumHeight=80)
        empty = Tiles(np.empty((0, 1, 1)), np.empty(0), np.empty(0, bool), np.empty(0, np.int16))
        self._painter = TilePainter(empty, ())
        self._order: NDArray[np.int64] = np.empty(0, np.int64)
        self._selected: set[int] = set()
        self._lit: frozenset[int] | None = None
        self._current = -1
        self._anchor = 0
        self._side: int | None = None
        self.verticalScrollBar().setSingleStep(24)
        theme.notifier().changed.connect(self._settle)

    def set_tiles(self, tiles: Tiles, captions: Sequence[str]) -> None:
        """Show annotators without a selection; `set_order` sets their order."""
        self._painter = TilePainter(tiles, captions)
        self._selected, self._lit, self._current = set(), None, -1
        self._order = np.empty(0, np.int64)

    def set_order(self, order: NDArray[np.integer]) -> None:
        """Show these rows, in this order; the current row is kept if possible."""
        before = self.current
        self._order = np.asarray(order, dtype=np.int64)
        indices = np.flatnonzero(self._order == (-1 if before is None else before))
        self._current = int(indices[0]) if len(indices) else -1
        self._anchor = max(self._current, 0)
        self._settle()
        if self._current >= 0:
            self._show(self._current)

    @property
    def order(self) -> tuple[int, ...]:
        """Visible rows, in order."""
        return tuple(self._order.tolist())

    @property
    def current(self) -> int | None:
        """Row with the keyboard focus."""
        return int(self._order[self._current]) if 0 <= self._current < len(self._order) else None

    @property
    def selected(self) -> tuple[int, ...]:
        """Selected rows: visible ones in order, then the others."""
        visible = [row for row in self._order.tolist() if row in self._selected]
        return (*visible, *sorted(self._selected.difference(visible)))

    def select(self, positions: Iterable[int]) -> None:
        """Select rows without a signal, and show the first."""
        self._selected = set(positions)
        indices = np.flatnonzero(np.isin(self._order, list(self._selected)))
        self._current = int(indices[0]) if len(indices) else -1
        self._anchor = max(self._current, 0)
        if self._current >= 0:
            self._show(self._current)
        self._update_text()
        self.viewport().update()

    def light(self, indices: Iterable[int] | None) -> None:
        """Dim all rows except these; None dims none."""
        self._lit = None if indices is None else frozenset(indices)
        self.viewport().update()

    @property
    def side(self) -> int:
        """Longer side of the largest matrix, in pixels."""
        return self._side if self._side is not None else self._fitting()

    def zoom(self, steps: int) -> None:
        """Enlarge the tiles, or shrink them with negative steps; 0 restores the default size."""
        room = QRectF(QRect(QPoint(), self.room()))
        visible = self._current >= 0 and self._box(self._current).intersects(room)
        index = self._current if visible else self._first_seen()
        self._side = None if not steps else round(min(max(self.side * ZOOM**steps, SMALLEST), LARGEST))
        self._settle()
        self._show(index)

    def row_at(self, point: QPoint) -> int | None:
        """Return the row at a position of the room."""
        index = self._index_at(point)
        return None if index is None else int(self._order[index])

    def box_of(self, row: int) -> QRectF:
        """Return the rectangle of a row's tile; empty if it is not visible."""
        indices = np.flatnonzero(self._order == row)
        return self._box(int(indices[0])) if len(indices) else QRectF()

    # -- layout of the tiles

    def room(self) -> QSize:
        """Return the visible size, in pixels of the usual text size."""
        visible, size = self.viewport().size(), text_size()
        return QSize(round(visible.width() / size), round(visible.height() / size))

    def _grid(self, side: int | None = None) -> Grid:
        _, rows, cells = self._painter.tiles.mean.shape
        room = self.room().width() - 2 * MARGIN
        return Grid.of(self.side if side is None else side, rows, cells, room)

    def _height(self, grid: Grid) -> int:
        return -(-len(self._order) // grid.columns) * grid.down + 2 * MARGIN

    def _fitting(self) -> int:
        """Return the default size; for few annotators, the largest size without scrolling.

        In a low wall, return the largest size at which a row has room for its names.
        """
        _, rows, cells = self._painter.tiles.mean.shape
        usual, room = min(max(USUAL, 4 * rows, 4 * cells), LARGEST), self.room().height()
        whole = (
            side for side in range(MAX_AUTOMATIC_SIDE, usual, -6) if self._height(self._grid(side)) <= room
        )
        low = (side for side in range(usual, NAMES_FROM - 1, -2) if MARGIN + self._grid(side).down <= room)
        return next(whole, next(low, usual))

    def _settle(self) -> None:
        """Fit the scroll bar to the tiles."""
        bar = self.verticalScrollBar()
        bar.setPageStep(self.room().height())
        bar.setRange(0, max(0, self._height(self._grid()) - self.room().height()))
        self.viewport().update()

    def _box(self, index: int, grid: Grid | None = None) -> QRectF:
        grid = self._grid() if grid is None else grid
        line, column = divmod(index, grid.columns)
        top = MARGIN + line * grid.down - self.verticalScrollBar().value()
        return QRectF(MARGIN + column * grid.across, top, grid.across, grid.down)

    def _index_at(self, point: QPoint) -> int | None:
        grid = self._grid()
        column = (point.x() - MARGIN) // grid.across
        line = (point.y() - MARGIN + self.verticalScrollBar().value()) // grid.down
        index = line * grid.columns + column
        return index if 0 <= column < grid.columns and 0 <= index < len(self._order) else None

    def _first_seen(self) -> int:
        grid = self._grid()
        return max(0, self.verticalScrollBar().value() - MARGIN) // grid.down * grid.columns

    def _show(self, index: int) -> None:
        box, bar = self._box(index), self.verticalScrollBar()
        if box.top() < 0:
            bar.setValue(bar.value() + round(box.top()) - MARGIN)
        elif box.bottom() > self.room().height():
            bar.setValue(bar.value() + round(box.bottom()) - self.room().height())

    # -- selection

    def _move(self, index: int, modifiers: Qt.KeyboardModifier) -> None:
        self._current = min(max(index, 0), len(self._order) - 1)
        self._show(self._current)
        if modifiers & Qt.KeyboardModifier.ShiftModifier:
            first, last = sorted((self._anchor, self._current))
            self._choose(self._order[first : last + 1].tolist())
        else:
            self._anchor = self._current
            if modifiers & Qt.KeyboardModifier.ControlModifier:
                self._update_text()
                self.viewport().update()
            else:
                self._choose([int(self._order[self._current])])

    def _choose(self, indices: Iterable[int]) -> None:
        self._selected = set(indices)
        self._update_text()
        self.viewport().update()
        self.selection_changed.emit(self.selected)

    def _toggle(self) -> None:
        row = self.current
        if row is not None:
            self._choose(self._selected ^ {row})

    def _update_text(self) -> None:
        row = self.current
        marked = ", selected" if row in self._selected else ""
        self.setAccessibleDescription("" if row is None else self.text_of(row) + marked)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select a tile, toggle it with Ctrl, or extend to it with Shift; on the background, clear."""
        if event.button() != Qt.MouseButton.LeftButton:
            return
        index = self._index_at(usual(event.position()).toPoint())
        if index is None:
            self._choose(())
        elif event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._current = self._anchor = index
            self._toggle()
        else:
            self._move(index, event.modifiers())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Emit the double-clicked annotator."""
        row = self.row_at(usual(event.position()).toPoint())
        if row is not None and event.button() == Qt.MouseButton.LeftButton:
            self.activated.emit(row)

    KEY_HELP = KeyHelp(
        "On the wall of annotators",
        (
            ("Arrows", "walk; with Shift select"),
            ("Ctrl+A", "all annotators"),
            ("+", "larger matrices"),
            ("-", "smaller matrices"),
            ("Ctrl+0", "matrices at normal size"),
            ("Return", "go to the annotator"),
            ("Space", "select, or no longer"),
            ("/", "find a name"),
            ("Esc", "clear selection"),
        ),
    )

    def event(self, event: QEvent) -> bool:
        """Keep / from the workspace, where it finds a class, and Esc while there is a selection to clear."""
        if event.type() == QEvent.Type.ShortcutOverride and self._selected:
            keeps_key(event, Qt.Key.Key_Escape)
        return keeps_key(event, Qt.Key.Key_Slash) or super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move, select, zoom, find."""
        key, modifiers = Qt.Key(event.key()), event.modifiers()
        control = bool(modifiers & Qt.KeyboardModifier.ControlModifier)
        goal = self._goal(key)
        if key == Qt.Key.Key_A and control:
            self._choose(self._order.tolist())
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom(1)
        elif key == Qt.Key.Key_Minus:
            self.zoom(-1)
        elif key == Qt.Key.Key_0 and control:
            self.zoom(0)
        elif key == Qt.Key.Key_Space:
            self._toggle()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.current is not None:
            self.activated.emit(self.current)
        elif key == Qt.Key.Key_Escape and self._selected:
            self._choose(())
        elif goal is not None and len(self._order):
            self._move(goal, modifiers)
        elif key == Qt.Key.Key_Slash:
            self.find_requested.emit()
        else:
            super().keyPressEvent(event)

    def _goal(self, key: Qt.Key) -> int | None:
        """Return the index of the next tile for a key."""
        grid = self._grid()
        columns = grid.columns
        page = columns * max(1, self.room().height() // grid.down)
        if key in (Qt.Key.Key_Home, Qt.Key.Key_End):
            return 0 if key == Qt.Key.Key_Home else len(self._order) - 1
        steps = {
            Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_Up: -columns, Qt.Key.Key_Down: columns,
            Qt.Key.Key_PageUp: -page, Qt.Key.Key_PageDown: page,
        }  # fmt: skip
        if key not in steps:
            return None
        if self._current < 0:
            return self._first_seen()
        goal = self._current + steps[key]
        one_line = key in (Qt.Key.Key_Up, Qt.Key.Key_Down) and not 0 <= goal < len(self._order)
        return self._current if one_line else goal

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll, or zoom with Ctrl."""
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            delta = event.angleDelta().y()
            if delta:
                self.zoom(1 if delta > 0 else -1)
            event.accept()
        else:
            super().wheelEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out the tiles in another size."""
        super().resizeEvent(event)
        self._settle()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show the keyboard focus."""
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Hide the keyboard focus."""
        super().focusOutEvent(event)
        self.viewport().update()

    def viewportEvent(self, event: QEvent) -> bool:
        """Describe the annotator under the pointer in a tooltip."""
        if event.type() == QEvent.Type.ToolTip:
            assert isinstance(event, QHelpEvent)
            row = self.row_at(usual(QPointF(event.pos())).toPoint())
            QToolTip.showText(
                event.globalPos(), plain_tip(self.text_of(row)) if row is not None else "", self
            )
            return True
        return super().viewportEvent(event)

    # -- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the tiles in view."""
        with QPainter(self.viewport()) as painter:
            visible = enlarge(painter, event.rect())
            painter.save()
            self.paint(painter, math.floor(visible.top()), math.ceil(visible.bottom()))
            painter.restore()
            if self.hasFocus() and self.current is None:  # otherwise a tile shows the focus
                paint_focus_frame(painter, QRectF(QRect(QPoint(), self.room())), theme.current())

    def paint(self, painter: QPainter, top: int, bottom: int) -> None:
        """Paint the tiles between two heights."""
        painter.fillRect(0, top, self.room().width() + 1, bottom - top + 1, QColor(theme.current().window))
        grid = self._grid()
        begin = MARGIN - self.verticalScrollBar().value()
        first = max(0, (top - begin) // grid.down) * grid.columns
        indices = self._order[first : ((bottom - begin) // grid.down + 1) * grid.columns]
        for step, row in enumerate(indices.tolist()):
            at_keys = first + step == self._current and self.hasFocus()
            if at_keys or row in self._selected:
                self._paint_frame(painter, self._box(first + step, grid), at_keys)
        painter.translate(MARGIN, 0)
        self._painter.paint(painter, grid, indices, first, begin, self._selected, self._lit)

    def _paint_frame(self, painter: QPainter, box: QRectF, at_keys: bool) -> None:
        palette = theme.current()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        pen = QPen(QColor(palette.accent), 2)
        if at_keys and len(self._selected) != 1:
            pen = QPen(QColor(palette.text), 1.5, Qt.PenStyle.DashLine)
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), 4, 4)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
