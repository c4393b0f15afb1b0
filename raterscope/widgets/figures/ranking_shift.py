"""Figure of a ranking before and after its correction."""

from __future__ import annotations

import heapq
import math

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QToolButton, QToolTip

from raterscope.figures.description import PlotTable
from raterscope.text import counted
from raterscope.widgets import theme
from raterscope.widgets.figure_menu import FigureMenu
from raterscope.widgets.figures.figure_panel import FigurePanel, ModeSwitch
from raterscope.widgets.figures.ranking_painter import (
    AFTER,
    BEFORE,
    GUTTER,
    LARGEST,
    RankingView,
    Rows,
    paint_rows,
)
from raterscope.widgets.hints import KeyHelp
from raterscope.widgets.painting import ThumbnailCache
from raterscope.widgets.parts import plain_tip
from raterscope.widgets.theme import enlarge, set_lengths, text_size, usual

LONGEST_MEASURED = 50
TEXT_FACTOR = 1.08
"""Factor for texts, which are wider on some screens than the font's metrics."""

WIDEST = 8000
"""Maximum width of a saved picture, in pixels at normal text size: some hundreds of cards."""


class RankingRows(QAbstractScrollArea):
    """Two rows of cards and the lines between them; only visible ones are painted.

    A click on a card or a line selects an item, a click on a crossing of lines the pair; Ctrl+click adds a
    second item.
    """

    item_chosen = Signal(int)
    # the selected item and the added one, or the two items whose lines cross
    pair_chosen = Signal(int, int)

    def __init__(self) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        self.setAccessibleName("Ranking, before and after")
        set_lengths(self, minimumWidth=160, minimumHeight=90)
        self.viewport().setMouseTracking(True)
        self.view: RankingView | None = None
        """The items shown."""
        self._chosen: tuple[int, ...] = ()
        self._pointed: tuple[int, ...] = ()
        self._row = BEFORE
        self._intervals = False
        self._name_width = 0.0
        self.pictures = ThumbnailCache(round(LARGEST), self._visible_items, self)
        self.pictures.changed.connect(self.viewport().update)
        self.horizontalScrollBar().valueChanged.connect(self._on_scrolled)
        theme.notifier().changed.connect(self._settle)

    def show_ranking(self, view: RankingView | None) -> None:
        """Show items, or none; the selection is kept if possible."""
        self.view = view
        number = 0 if view is None else len(view.names)
        self._chosen = tuple(item for item in self._chosen if item < number)
        self._pointed = ()
        self._measure()
        self.pictures.ask_again()
        self._settle()

    def select(self, *items: int) -> None:
        """Select an item or a pair, without a signal; without arguments, clear the selection."""
        self._chosen = items
        if items:
            self._show(items[-1])
        self.viewport().update()

    def chosen_names(self) -> list[str]:
        """Return the names of the selected items."""
        return [] if self.view is None else [self.view.names[item] for item in self._chosen]

    def set_intervals(self, intervals: bool) -> None:
        """Show strips of scores beside the rows, or none."""
        self._intervals = intervals
        self._settle()

    def go_to_next_swap(self) -> None:
        """Select the next item to the right that changes places, cyclically."""
        view = self.view
        if view is None or not view.swapped.any():
            return
        order = view.in_order()
        order = order[view.swapped[order]]
        start = float(view.place_before[self._chosen[-1]]) if self._chosen else -1.0
        later = order[view.place_before[order] > start]
        self._choose(int(later[0] if len(later) else order[0]))

    def rows(self) -> Rows | None:
        """Return the layout of the cards."""
        return self._rows_in(self.room(), self.horizontalScrollBar().value())

    def _rows_in(self, size: QSize, scrolled: int) -> Rows | None:
        view = self.view
        if view is None:
            return None
        return Rows(view, size.width(), size.height(), scrolled, self._intervals, self._name_width)

    def full_size(self) -> QSize:
        """Return the size of the rows, up to a width of `WIDEST`, and not less than the visible size."""
        room, rows = self.room(), self.rows()
        across = 0 if rows is None else min(math.ceil(rows.total_width), WIDEST)
        return QSize(max(across, room.width()), room.height())

    def room(self) -> QSize:
        """Return the visible size, in pixels of the usual text size."""
        return _usual_size(self.viewport().size())

    def parts_at(self, position: QPointF) -> tuple[int, ...]:
        """Return the item at a position; two where their lines cross, none on the background."""
        rows = self.rows()
        return () if rows is None else rows.parts_at(position)

    def _measure(self) -> None:
        """Measure the longest name, among those with the most letters."""
        metrics = QFontMetricsF(theme.font(theme.CAPTION))
        names = [] if self.view is None else heapq.nlargest(LONGEST_MEASURED, self.view.names, key=len)
        self._name_width = TEXT_FACTOR * max(map(metrics.horizontalAdvance, names), default=0.0)

    def _settle(self) -> None:
        bar, rows = self.horizontalScrollBar(), self.rows()
        bar.setPageStep(self.room().width())
        bar.setSingleStep(24 if rows is None else round(rows.pitch))
        bar.setRange(0, 0 if rows is None else self._travel(rows))
        self.pictures.rest()
        self.viewport().update()

    def _travel(self, rows: Rows) -> int:
        """Return the length of the scroll bar.

        With the scroll bar the cards are smaller and may all fit. It stays visible, because otherwise it
        would flicker.
        """
        room = _usual_size(self.maximumViewportSize())
        without_bar = self._rows_in(room, 0)
        if without_bar is None or math.ceil(without_bar.total_width) <= room.width():
            return 0
        return max(1, math.ceil(rows.total_width) - self.room().width())

    def _show(self, item: int) -> None:
        """Scroll to an item's card in the row of the arrow keys, and to its other card if both fit."""
        view, bar = self.view, self.horizontalScrollBar()
        if view is None or item >= len(view.names) or not view.rank_before[item]:
            return
        for row in (1 - self._row, self._row):
            rows = self.rows()
            assert rows is not None
            box = rows.card(item, row)
            if box.left() < GUTTER:
                bar.setValue(bar.value() + math.floor(box.left() - GUTTER - rows.side / 4))
            elif box.right() > rows.width:
                bar.setValue(bar.value() + math.ceil(box.right() - rows.width + rows.side / 4))

    def _visible_items(self) -> list[int]:
        rows = self.rows()
        if rows is None or not rows.view.pictures or not self.isVisible():
            return []
        return np.flatnonzero(rows.visible(BEFORE) | rows.visible(AFTER)).tolist()

    def _on_scrolled(self) -> None:
        self.pictures.rest()
        self.viewport().update()

    def _choose(self, *items: int) -> None:
        self._chosen = items
        self._show(items[-1])
        self._update_text()
        self.viewport().update()
        if len(items) == 2:
            self.pair_chosen.emit(*items)
        else:
            self.item_chosen.emit(items[0])

    def _update_text(self) -> None:
        self.setAccessibleDescription(self.text_of(self._chosen))

    def text_of(self, items: tuple[int, ...]) -> str:
        """Describe an item, or a pair."""
        view = self.view
        return "" if view is None else " | ".join(map(view.text_of, items))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select an item; with Ctrl or Shift, or at a crossing of lines, a pair."""
        if event.button() != Qt.MouseButton.LeftButton:
            return
        parts = self.parts_at(usual(event.position()))
        more = event.modifiers() & (Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
        if len(parts) == 1 and more and self._chosen and self._chosen[0] != parts[0]:
            self._choose(self._chosen[0], parts[0])
        elif parts:
            self._choose(*parts)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Mark what is under the pointer."""
        self._point(self.parts_at(usual(event.position())))

    def _point(self, parts: tuple[int, ...]) -> None:
        if parts != self._pointed:
            self._pointed = parts
            self.viewport().update()

    KEY_HELP = KeyHelp(
        "In the ranking",
        (
            ("Left, Right", "previous, next item"),
            ("Shift+Left, Right", "items between two"),
            ("Up, Down", "row before, after"),
            ("N", "next items that swap"),
        ),
    )

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move along a row, change the row, select; N goes to the next swap."""
        view, key = self.view, Qt.Key(event.key())
        if view is None or not view.length:
            super().keyPressEvent(event)
            return
        order = view.in_order(after=self._row == AFTER)
        matches = np.flatnonzero(order == self._chosen[-1]) if self._chosen else np.empty(0, np.int64)
        index = int(matches[0]) if len(matches) else -1
        goals = {
            Qt.Key.Key_Left: max(index - 1, 0), Qt.Key.Key_Right: min(index + 1, len(order) - 1),
            Qt.Key.Key_Home: 0, Qt.Key.Key_End: len(order) - 1,
        }  # fmt: skip
        if key == Qt.Key.Key_N:
            self.go_to_next_swap()
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self._row = BEFORE if key == Qt.Key.Key_Up else AFTER
            if self._chosen:
                self._show(self._chosen[-1])
            self.viewport().update()
        elif key in goals:
            goal = int(order[goals[key]])
            together = event.modifiers() & Qt.KeyboardModifier.ShiftModifier and self._chosen
            if together and self._chosen[0] != goal:
                self._choose(self._chosen[0], goal)
            else:
                self._choose(goal)
        else:
            super().keyPressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll along the rows with either direction of the wheel."""
        delta = event.angleDelta().y() or event.angleDelta().x()
        bar = self.horizontalScrollBar()
        bar.setValue(bar.value() - delta)
        event.accept()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out the rows in another size."""
        super().resizeEvent(event)
        self._settle()

    def viewportEvent(self, event: QEvent) -> bool:
        """Describe the part under the pointer in a tooltip."""
        if event.type() == QEvent.Type.ToolTip:
            assert isinstance(event, QHelpEvent)
            text = self.text_of(self.parts_at(usual(QPointF(event.pos()))))
            QToolTip.showText(event.globalPos(), plain_tip(text), self)
            return True
        if event.type() == QEvent.Type.Leave:
            self._point(())
        return super().viewportEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the visible part."""
        with QPainter(self.viewport()) as painter:
            enlarge(painter, self.viewport().rect())
            self.paint(painter)

    def paint(self, painter: QPainter) -> None:
        """Paint the rows, and the keyboard focus."""
        self._paint(painter, self.room(), self.rows(), self._pointed, self._row if self.hasFocus() else None)

    def paint_whole(self, painter: QPainter) -> None:
        """Paint an area of size `whole`, without the marks of pointer and keyboard focus."""
        size, rows = self.full_size(), self.rows()
        beyond = 0 if rows is None else max(math.ceil(rows.total_width) - size.width(), 0)
        scrolled = min(self.horizontalScrollBar().value(), beyond)
        self._paint(painter, size, self._rows_in(size, scrolled), (), None)

    def _paint(
        self, painter: QPainter, size: QSize, rows: Rows | None, pointed: tuple[int, ...], at_keys: int | None
    ) -> None:
        painter.fillRect(QRect(QPoint(), size), QColor(theme.current().surface))
        if rows is not None:
            paint_rows(painter, rows, self._chosen, pointed, self.pictures.kept, at_keys)


def _usual_size(size: QSize) -> QSize:
    return QSize(round(size.width() / text_size()), round(size.height() / text_size()))


TITLE, BRIEF = "Ranking, before and after", "Ranking"
NOTHING = "Press Fuse (F5) to see the ranking without and with the biases corrected."
MODES = {
    "cards": ("ranks", "Items by their rank"),
    "intervals": ("intervals", "Items by their rank, with their scores and 95 % intervals"),
}


class RankingShift(FigurePanel):
    """Rows of the ranking with a header: the selected item, the number of swaps, and the legend."""

    item_chosen = Signal(int)
    # the selected item and the added one, or the two items whose lines cross
    pair_chosen = Signal(int, int)

    def __init__(self) -> None:
        self.figure = RankingRows()
        super().__init__(TITLE, self.figure, NOTHING, brief=BRIEF)
        self.next = QToolButton()
        self.next.setText("next swap")
        self.next.setToolTip("Go to the next item that swaps (N)")
        self.next.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        set_lengths(self.next, height=24)
        theme.set_role(self.next, "link")
        self.modes = ModeSwitch(MODES)
        self.header.row.addWidget(self.next)
        self.header.row.addWidget(self.modes)
        self.menu = FigureMenu(self, self.figure, self.table)
        self.modes.chosen.connect(self._on_mode)
        self.next.clicked.connect(self.figure.go_to_next_swap)
        self.figure.item_chosen.connect(self._show_selected)
        self.figure.pair_chosen.connect(self._show_selected)
        self.figure.item_chosen.connect(self.item_chosen)
        self.figure.pair_chosen.connect(self.pair_chosen)
        self.pictures = self.figure.pictures
        self.show_ranking(None)

    def show_ranking(self, view: RankingView | None) -> None:
        """Show items, or that there is no ranking yet. Pictures and selection are kept."""
        self.figure.show_ranking(view)
        self.set_filled(view is not None)
        swaps = 0 if view is None else int(view.swapped.sum())
        self.modes.setVisible(view is not None)
        self.next.setVisible(swaps > 0)
        subtitle = (
            f"{counted(swaps, 'item')} {'swaps' if swaps == 1 else 'swap'}" if swaps else "no item swaps"
        )
        left_out = 0 if view is None else int((view.rank_before == 0).sum())
        subtitle += f", {left_out:,} never compared" if left_out else ""
        self.header.set_subtitle("" if view is None else subtitle)
        self._show_selected()

    def select(self, *items: int) -> None:
        """Select an item or a pair, without a signal; without arguments, clear the selection."""
        self.figure.select(*items)
        self._show_selected()

    def heading(self) -> tuple[str, str]:
        """Return the title and the word beside it."""
        return self.header.text()

    def picture_size(self) -> QSize:
        """Return the size of all rows, up to a width of `WIDEST`."""
        return self.figure.full_size()

    def paint_picture(self, painter: QPainter) -> None:
        """Paint all rows; for very long lists, from the visible part on."""
        size = self.picture_size()
        painter.setClipRect(0, 0, size.width(), size.height())
        self.figure.paint_whole(painter)

    def table(self) -> PlotTable:
        """Return a row for each ranked item, the best before the correction first."""
        view = self.figure.view
        assert view is not None
        order = view.in_order()
        ends = {
            f"{name} {end}": getattr(view, f"{name}_interval")[row, order]
            for name in ("before", "after")
            for row, end in enumerate(("low", "high"))
        }
        return PlotTable.of(
            {
                "item": [view.names[item] for item in order.tolist()],
                "rank before": view.rank_before[order],
                "rank after": view.rank_after[order],
                "score before": view.before[order],
                "score after": view.after[order],
                **{f"score {name}": values for name, values in ends.items()},
            }
        )

    def _show_selected(self) -> None:
        self.header.set_title(TITLE, " and ".join(self.figure.chosen_names()), brief=BRIEF)

    def _on_mode(self, mode: str) -> None:
        self.figure.set_intervals(mode == "intervals")
