"""Panels of review queues with filters, for up to hundreds of thousands of lines."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QModelIndex, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QSpinBox, QStackedLayout, QVBoxLayout, QWidget

from raterscope.text import counted, natural
from raterscope.widgets import theme
from raterscope.widgets.layouts import horizontal, vertical
from raterscope.widgets.painting import in_lines, paint_bar, paint_text
from raterscope.widgets.panels.lists import LineList, LinesOnDemand, LongList
from raterscope.widgets.panels.queue_items import QueuedItems, QueueFilter, QueueItem, QueueKind, is_named
from raterscope.widgets.parts import (
    ChoiceBox,
    Header,
    Placeholder,
    announce,
    let_wheel_pass,
    plain_label,
    plain_tip,
)
from raterscope.widgets.theme import enlarge, set_lengths, text_size

NARROWEST = 208
MOST, NUMBER_WIDTH = 9999, 54


class QueueFrame(QWidget):
    """Frame of every queue: title, filter, list selector, list, and a message if empty.

    `choice`: other filters of the queue. `view`: the list.
    """

    def __init__(self, title: str, choice: QWidget, view: LineList[QueueItem]) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self.setMinimumWidth(NARROWEST)
        self.header = Header(title, "most disputed")
        self.filter = QLineEdit(placeholderText="Filter", clearButtonEnabled=True)
        self.filter.setAccessibleName(f"Filter {title.lower()} by name")
        self._nothing = Placeholder()
        self._nothing.hide()
        self._progress = _Progress()
        self._progress.hide()
        self.progress: tuple[float, tuple[str, ...]] = (0.0, ())
        """Share and sentences of `set_progress`."""
        self.doubt = plain_label("", "disputed", wrap=True)
        self.doubt.hide()
        self._top = QVBoxLayout()
        self._top.setContentsMargins(12, 12, 12, 4)
        self._top.setSpacing(8)
        for widget in (self.header, self._progress, self.doubt, self.filter, choice, self._nothing):
            self._top.addWidget(widget)
        self._view = view
        self._pages = QStackedLayout(self)
        self._pages.setContentsMargins(0, 0, 0, 0)
        own = QWidget()
        self._pages.addWidget(own)
        vertical(self._top, (view, 1), inside=own)

    def add_above(self, widget: QWidget) -> None:
        """Add a widget above the title."""
        self._top.insertWidget(0, widget)

    def add_below(self, widget: QWidget) -> None:
        """Add a widget above the list."""
        self._top.addWidget(widget)

    def show_instead(self, panel: QWidget | None) -> None:
        """Show another panel instead of title, filter and list; None shows these again."""
        if panel is not None and self._pages.indexOf(panel) < 0:
            self._pages.addWidget(panel)
        focused = QApplication.focusWidget()
        self._pages.setCurrentIndex(0 if panel is None else self._pages.indexOf(panel))
        if focused is not None and self.isAncestorOf(focused) and not focused.isVisible():
            # Qt has moved the focus to the filter, in which the keys of decisions would be text.
            (panel if isinstance(panel, QueueFrame) else self)._view.setFocus()

    def set_progress(self, share: float, *text: str, skipped: int = 0, tip: str = "") -> None:
        """Show the progress, one sentence per line, and the number of skipped items; `tip` explains it.

        Without text, hide it.
        """
        self.progress = share, text
        self._progress.show_progress(share, (*text, f"{skipped:,} skipped") if skipped else text)
        self._progress.setToolTip(plain_tip(tip))

    def set_doubt(self, text: str, tip: str = "") -> None:
        """Show that the data contradict the settings of the run; an empty text hides the message."""
        self.doubt.setText(text)
        self.doubt.setToolTip(plain_tip(tip))
        self.doubt.setVisible(bool(text))

    def announce_current(self) -> None:
        """Let a screen reader speak the new current line; Qt does so only while the list has the focus."""
        index = self._view.currentIndex()
        if index.isValid() and not self._view.hasFocus():
            announce(self._view, index.data(Qt.ItemDataRole.AccessibleTextRole))

    def show_empty(self, text: str) -> None:
        """Show why the list is empty; an empty text hides the message."""
        self._nothing.setText(text)
        self._nothing.setVisible(bool(text))


FILTERS = (QueueFilter("all", "all"), QueueFilter("undecided", "undecided", "Everything is decided."))
NOTED = (
    QueueFilter("bookmarked", "bookmarked", "There are no bookmarks; Ctrl+D sets one."),
    QueueFilter("commented", "with comment", "There are no comments; Ctrl+M adds one."),
)


class QueuePanel(QueueFrame):
    """Queue of items with filters and progress; finished items go to the end."""

    item_chosen = Signal(object)  # key of the item selected by the user

    def __init__(
        self,
        title: str = "Images",
        filters: Sequence[QueueFilter] = FILTERS,
        *,
        orders: Sequence[str] = (),
    ) -> None:
        self.order = ChoiceBox("Order of the list", orders)
        if not orders:
            self.order.hide()
        self._filters = tuple(filters)
        words = {item_filter.key: item_filter.text for item_filter in self._filters}
        self.choice = ChoiceBox(f"List of {title.lower()}", words)
        self.many = QSpinBox(minimum=0, maximum=MOST)
        set_lengths(self.many, width=NUMBER_WIDTH)
        self.many.setAccessibleName("More than")
        let_wheel_pass(self.many)
        self.group = ChoiceBox("Group")
        self._group_label = plain_label("", "small", wrap=True)
        self._group_of: Mapping[Hashable, str] = {}
        choosing = QWidget()
        row = horizontal((self.choice, 1), self.many, spacing=4)
        vertical(row, self.order, self.group, self._group_label, inside=choosing, spacing=8)
        for widget in (self.group, self._group_label):
            widget.hide()
        self._given = self._queued = QueuedItems()
        self._rank: Mapping[Hashable, float] | None = None
        self._current: Hashable = None
        self._kind = QueueKind()
        self.view: LineList[QueueItem] = LineList(self._kind, title)
        super().__init__(title, choosing, self.view)
        self.filter.textChanged.connect(self._refilter)
        self.choice.currentIndexChanged.connect(self._refilter)
        self.many.valueChanged.connect(self._refilter)
        self.group.currentIndexChanged.connect(self._refilter)
        self.view.selectionModel().currentChanged.connect(self._on_current)
        self._quiet = False
        self._refilter()

    def set_items(self, items: Sequence[QueueItem] | QueuedItems) -> None:
        """Replace the items, finished ones last; the current item and the scroll position are kept."""
        self._given = items if isinstance(items, QueuedItems) else QueuedItems(items, self._given.short)
        self._sort()

    def set_order(self, rank: Mapping[Hashable, float] | None, measures: Mapping[Hashable, str]) -> None:
        """Sort by rank and show measures instead of the doubt; None restores the order of the items."""
        self._rank, self._kind.measures = rank, measures
        self._sort()

    def set_covered(self, covered: bool) -> None:
        """Hide the results of the items, or show them."""
        self._kind.covered = covered
        self.view.viewport().update()

    def _sort(self) -> None:
        self._queued = self._given if self._rank is None else self._given.sorted_by(self._rank)
        self._kind.short, self._kind.most = self._queued.short, self._queued.most
        self.view.viewport().update()
        self._refilter()

    def set_groups(self, groups: Mapping[Hashable, str]) -> None:
        """Set the groups of items; without groups, there is no filter by group."""
        if groups == self._group_of:
            return
        self._group_of = dict(groups)
        self.group.offer({None: "all groups"}, sorted(set(groups.values()), key=natural))
        self.group.setVisible(bool(groups))
        self._refilter()

    def _in_group(self, item: QueueItem) -> bool:
        group = self.group.key
        return group is None or self._group_of.get(item.key) == group

    def _show_group(self) -> None:
        """Show the totals of the chosen group, regardless of other filters."""
        chosen = self.group.key is not None
        self._group_label.setVisible(chosen)
        if not chosen:
            return
        own = [item for item in self._queued.listed if self._in_group(item)]
        words = [f"{counted(len(own))} in the group", f"{counted(sum(item.done for item in own))} decided"]
        for name in ("detections", "disputed"):
            if any(name in item.counts for item in own):
                words.append(f"{counted(sum(item.counts.get(name, 0) for item in own))} {name}")
        self._group_label.setText(" | ".join(words))

    def update_item(self, item: QueueItem) -> None:
        """Replace an item by a changed one; only its row changes, and moves if the item is newly finished."""
        queued, lines = self._queued, self.view.lines
        before = queued.of(item.key)
        assert before is not None
        words, chosen = self._filter_words(), self._filters[self.choice.currentIndex()]
        minimum = self.many.value()
        was_listed, listed = (
            chosen.passes(each, minimum) and is_named(each, words) and self._in_group(each)
            for each in (before, item)
        )
        row = queued.row_in(lines, before) if was_listed else -1
        queued.replace(item)
        if self._given is not queued:
            self._given.replace(item)
        self._quiet = True
        if was_listed and listed and before.done == item.done:
            self.view.change_line(row, item)
            self._show_group()
        else:
            scroll = self.view.verticalScrollBar().value()
            if was_listed:
                self.view.remove_line(row)
            if listed:
                self.view.insert_line(queued.row_in(self.view.lines, item), item)
            self._mark_current(scroll=False)
            self.view.verticalScrollBar().setValue(scroll)
            self._show_count(chosen)
        self._quiet = False
        if queued.most != self._kind.most:
            self._kind.most = queued.most
            self.view.viewport().update()

    def row_of(self, key: Hashable) -> int | None:
        """Return the row of an item; None if it is not listed."""
        item, lines = self._queued.of(key), self.view.lines
        row = len(lines) if item is None else self._queued.row_in(lines, item)
        return row if row < len(lines) and lines[row].key == key else None

    def _filter_words(self) -> list[str]:
        return self.filter.text().casefold().split()

    def set_current(self, key: Hashable) -> None:
        """Make an item current, without a signal; None clears the selection."""
        changed, self._current = key != self._current, key
        self._mark_current(scroll=True)
        if changed:
            self.announce_current()

    @property
    def current(self) -> Hashable:
        """Key of the current item."""
        return self._current

    def shown(self) -> Sequence[QueueItem]:
        """Return the items that pass the filter, in their order."""
        return self.view.lines

    def _refilter(self) -> None:
        position = self.view.verticalScrollBar().value()
        words, chosen = self._filter_words(), self._filters[self.choice.currentIndex()]
        self.many.setVisible(chosen.counts)
        minimum = self.many.value()
        passing = self._queued.listed
        if chosen.key != "all":
            passing = [item for item in passing if chosen.passes(item, minimum)]
        if self.group.key is not None:
            passing = [item for item in passing if self._in_group(item)]
        self._quiet = True
        self.view.set_lines([item for item in passing if is_named(item, words)] if words else passing)
        self._quiet = False
        self._mark_current(scroll=False)
        self.view.verticalScrollBar().setValue(position)
        self._show_count(chosen)

    def _show_count(self, chosen: QueueFilter) -> None:
        listed, total = len(self.view.lines), len(self._queued.listed)
        self.header.set_subtitle(
            counted(total) if listed == total else f"{counted(listed)} of {counted(total)}"
        )
        self.show_empty("" if listed else self._why_empty(chosen))
        self._show_group()

    def _why_empty(self, chosen: QueueFilter) -> str:
        if not self._queued.listed:
            return "No items yet."
        if not any(chosen.passes(item, self.many.value()) for item in self._queued.listed):
            return chosen.empty
        minimum, text = self.many.value(), chosen.text
        if not any(chosen.passes(item, minimum) for item in self._queued.listed if self._in_group(item)):
            return f"Nothing in {self.group.currentText()} is listed under “{text}”."
        return f"No name under “{chosen.text}” contains “{self.filter.text().strip()}”. Shorten the filter."

    def _mark_current(self, *, scroll: bool) -> None:
        row = self.row_of(self._current)
        index = self.view.index_of_row(-1 if row is None else row)
        quiet, self._quiet = self._quiet, True
        self.view.setCurrentIndex(index)
        self._quiet = quiet
        if scroll and index.isValid():
            self.view.scrollTo(index)

    def _on_current(self, index: QModelIndex) -> None:
        if self._quiet or not index.isValid():
            return
        key = self.view.lines[index.row()].key
        if key != self._current:
            self._current = key
            self.item_chosen.emit(key)


class _Progress(QWidget):
    """A few sentences over a thin progress bar; a sentence that does not fit takes two lines."""

    LINE, BAR = 15, 3

    def __init__(self) -> None:
        super().__init__()
        self.share = 0.0
        self.words: tuple[str, ...] = ()
        self._lines: list[tuple[str, bool]] = []
        """Lines of text, and whether each belongs to the first sentence."""

    def show_progress(self, share: float, words: Sequence[str]) -> None:
        self.share, self.words = share, tuple(words)
        self.setVisible(bool(words))
        self.setAccessibleName(", ".join(words))
        self._fit()
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        metrics, room = QFontMetrics(theme.font(theme.CAPTION)), self.width() / text_size()
        self._lines = [
            (line, words is self.words[0])
            for words in self.words
            for line in in_lines(words, metrics, room, 2)
        ]
        set_lengths(self, height=len(self._lines) * self.LINE + self.BAR + 4)

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setFont(theme.font(theme.CAPTION))
            palette, box = theme.current(), enlarge(painter, self.rect())
            line = QRectF(0, 0, box.width(), self.LINE)
            for words, first in self._lines:
                paint_text(painter, line, words, palette.text if first else palette.second)
                line.translate(0, self.LINE)
            bar = QRectF(0, box.height() - self.BAR, box.width(), self.BAR)
            paint_bar(painter, bar, self.share, palette.accent)


class QueueView(Protocol):
    """Contents of a queue: total, order and lines."""

    @property
    def names(self) -> Sequence[str]:
        """Names of all items."""

    @property
    def total(self) -> int:
        """Number of items before filtering."""

    @property
    def order(self) -> NDArray[np.integer]:
        """Indices of the visible items, in display order."""

    def item(self, number: int) -> QueueItem:
        """Return the line of an item."""


class LongQueue(QueueFrame):
    """Queue in a given order; its owner applies the filter, which may take longer than a frame.

    `filters`: keys and labels of the queue's filters. `empty`: texts for empty lists, by the keys of the
    filters.
    """

    chosen = Signal(int)  # number of the item selected by the user
    filter_changed = Signal(str, str)  # text that names must contain, and a key of the filters

    def __init__(
        self,
        title: str,
        filters: Mapping[str, str],
        *,
        empty: Mapping[str, str] | None = None,
    ) -> None:
        self._empty = empty or {}
        self.choice = ChoiceBox(f"List of {title.lower()}", filters)
        self.view: LongList[QueueItem] = LongList(QueueKind(), title)
        super().__init__(title, self.choice, self.view)
        self._shown: QueueView | None = None
        self._current = -1
        self._quiet = False
        self.filter.textChanged.connect(self._on_filter)
        self.choice.currentIndexChanged.connect(self._on_filter)
        self.view.selectionModel().currentChanged.connect(self._on_current)
        self.set_view(None)

    def set_view(self, view: QueueView | None) -> None:
        """Show other items, or that there are none; the current item is kept, and visible if it was."""
        was_visible = self.view.is_line_visible(self._row(self._current))
        before, self._shown = self._shown, view
        lines = () if view is None else LinesOnDemand(view.order, view.item)
        self._quiet = True
        if view is not None and before is not None and np.array_equal(view.order, before.order):
            self.view.renew_lines(lines)
        else:
            self.view.set_lines(lines)
        self._quiet = False
        listed = len(self.view.lines)
        total = 0 if view is None else view.total
        self.header.set_subtitle(
            counted(total) if listed == total else f"{counted(listed)} of {counted(total)}"
        )
        self.show_empty("" if listed else self._why_empty() if total else "No items yet.")
        row = self._row(self._current)
        if row >= 0:
            position = self.view.verticalScrollBar().value()
            self._mark(row)
            self.view.verticalScrollBar().setValue(position)
            if was_visible:
                self.view.scroll_to_line(row)

    def select(self, number: int | None) -> None:
        """Make an item current, without a signal; None clears the selection."""
        before, self._current = self._current, -1 if number is None else number
        self._mark(self._row(self._current))
        if self._current != before:
            self.announce_current()

    @property
    def current(self) -> int | None:
        """Index of the current item."""
        return self._current if self._current >= 0 else None

    @property
    def first(self) -> int | None:
        """Index of the first item in the list."""
        content = self._shown
        return None if content is None or not len(content.order) else int(content.order[0])

    def go(self, by: int) -> None:
        """Move down (`by` > 0) or up by some undecided lines, and emit the new current item."""
        row = self._row(self._current)
        # If the current item has left the list, the next one is the first visible.
        self._go_from(row + by if row >= 0 else 0, by)

    def begin(self, by: int) -> None:
        """Move to the first undecided line, or to the last one if `by` is below 0, and emit it."""
        self._go_from(0 if by > 0 else len(self.view.lines) - 1, by)

    def _go_from(self, row: int, by: int) -> None:
        lines = self.view.lines
        while 0 <= row < len(lines):
            if not lines[row].done:
                self.view.step_to(row)
                return
            row += 1 if by > 0 else -1

    @property
    def order(self) -> NDArray[np.integer]:
        """Indices of the listed items, in display order."""
        return np.empty(0, dtype=np.int64) if self._shown is None else self._shown.order

    @property
    def row(self) -> int | None:
        """Row of the current item; None if it is not listed."""
        row = self._row(self._current)
        return None if row < 0 else row

    def why_empty(self, key: str) -> str:
        """Return why the list is empty, by filter key."""
        return self._empty.get(key, "")

    def _why_empty(self) -> str:
        text = self.filter.text().strip()
        if not text:
            return self.why_empty(str(self.choice.key))
        kind = self.choice.currentText()
        return f"No name under “{kind}” contains “{text}”. Shorten it, or select another list above."

    def _row(self, number: int) -> int:
        if self._shown is None or number < 0:
            return -1
        positions = np.flatnonzero(self._shown.order == number)
        return int(positions[0]) if len(positions) else -1

    def _mark(self, row: int) -> None:
        self._quiet = True
        self.view.go_to(row)
        self._quiet = False

    def _on_current(self, index: QModelIndex) -> None:
        if self._quiet or not index.isValid() or self._shown is None:
            return
        number = int(self._shown.order[index.row()])
        if number != self._current:
            self._current = number
            self.chosen.emit(number)

    def _on_filter(self) -> None:
        self.filter_changed.emit(self.filter.text().strip(), str(self.choice.key))
