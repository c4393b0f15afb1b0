"""The confusion matrices of all annotators, sorted by a measure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QToolButton, QWidget

from raterscope.figures.description import PlotTable, check_lengths
from raterscope.text import counted
from raterscope.widgets.figure_menu import FigureMenu
from raterscope.widgets.figures.cells import BAR_HEIGHT, Tiles, community_word, paint_colour_bar, rate_table
from raterscope.widgets.figures.wall_tiles import WallTiles
from raterscope.widgets.layouts import stacked, vertical
from raterscope.widgets.parts import ChoiceBox, FilterField, Header, Placeholder, leave_keys_to, plain_tip
from raterscope.widgets.theme import enlarge, set_lengths, text_size

NOTHING = "Press Fuse (F5) to see every annotator's confusion matrix."
NARROW = (740, 620, 540, 330)
"""Widths of the wall, in pixels, below which parts of the header are hidden, one after the other."""
NO_MATCH = "No annotator matches."
MAX_RATES = 12


class Measure(NamedTuple):
    """A measure for sorting the wall."""

    label: str  # "accuracy"
    values: NDArray[np.floating]  # (M,): NaN if unknown, sorted last in both orders
    format: str = ".2f"  # format of a value: ".2f"


@dataclass(frozen=True, eq=False)
class WallView:
    """The confusion matrices of M annotators."""

    numbers: NDArray[np.integer]  # (M,): numbers that the signals emit
    names: tuple[str, ...]  # (M,): their numbers while names are hidden
    mean: NDArray[np.floating]  # (M, J, L): rate of each output for each true class; NaN if unknown
    votes: NDArray[np.integer]  # (M,)
    # one Measure or more, or equal triples; the wall is initially sorted by the first
    measures: tuple[Measure | tuple[str, NDArray[np.floating], str], ...]
    excluded: NDArray[np.bool_]  # (M,)
    community: NDArray[np.integer]  # (M,): -1 for none
    # classes, outputs: tuple of J and L names
    classes: tuple[str, ...]
    outputs: tuple[str, ...]

    def __post_init__(self) -> None:
        number = len(self.numbers)
        if self.mean.shape != (number, len(self.classes), len(self.outputs)):
            raise ValueError(f"matrices of shape {self.mean.shape} for {number} annotators")
        if not self.measures:
            raise ValueError("nothing to sort by")
        columns = (self.names, self.votes, self.excluded, self.community)
        check_lengths(number, "annotators", *columns, *(values for _, values, _ in self.measures))


class ConfusionWall(QWidget):
    """Wall of matrices. Click, Ctrl, Shift select; arrows move; / finds; Ctrl and the wheel, + and - zoom."""

    selection_changed = Signal(object)  # numbers of the annotators, in the order shown
    activated = Signal(int)  # number of the annotator of a double click or Return

    def __init__(self) -> None:
        super().__init__()
        self._falling = True
        self._view: WallView | None = None
        self._lit: frozenset[int] = frozenset()
        self._row_of: dict[int, int] = {}
        self.header = Header("Annotators")
        self.scale = _Scale()
        self.filter = _Filter()
        self.filter.setPlaceholderText("find by name")
        self.filter.setClearButtonEnabled(True)
        self.filter.setAccessibleName("Find annotators by name")
        set_lengths(self.filter, maximumWidth=120)
        self.measure = ChoiceBox("Sort by")
        self.direction = QToolButton()
        self.direction.setAccessibleName("Order")
        self.header.row.setContentsMargins(0, 0, 8, 0)
        for widget in (self.scale, self.filter, self.measure, self.direction):
            self.header.row.addWidget(widget)
        set_lengths(self.header, minimumWidth=NARROW[-1])
        self.tiles = WallTiles(self._text)
        self.menu = FigureMenu(self, self.tiles, self.table)
        self._nothing = Placeholder(NOTHING)
        self._nothing.setContentsMargins(8, 8, 8, 8)
        self._pages = stacked(self._nothing, self.tiles)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Annotators")
        vertical(self.header, (self._pages, 1), inside=self, margins=(12, 8, 4, 0), spacing=4)
        self.filter.textChanged.connect(self._arrange)
        self.filter.left.connect(self._on_filter_left)
        self.measure.currentIndexChanged.connect(self._arrange)
        self.direction.clicked.connect(self._on_direction)
        self.tiles.selection_changed.connect(self._on_selected)
        self.tiles.activated.connect(self._on_activated)
        self.tiles.find_requested.connect(self._on_find)
        self._settle()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Hide the parts of the header that do not fit."""
        super().resizeEvent(event)
        self._settle()

    def set_wall(self, view: WallView | None) -> None:
        """Show annotators; selection, order and filter are kept. None shows no annotator."""
        selected = self.selected
        self._view = view
        if view is None:
            self._row_of = {}
            self._settle()
            return
        self._row_of = {number: row for row, number in enumerate(view.numbers.tolist())}
        labels = [label for label, _, _ in view.measures]
        self.measure.offer({label: f"by {label}" for label in labels})
        most = np.log1p(max(float(np.max(view.votes, initial=0)), 1.0))
        size = np.log1p(np.maximum(view.votes, 0)) / most
        self.tiles.set_tiles(Tiles(view.mean, size, view.excluded, view.community), view.names)
        self._dim()
        self._arrange()
        self.select(selected)

    def select(self, numbers: Iterable[int]) -> None:
        """Select annotators without a signal; those not on the wall are ignored."""
        self.tiles.select([self._row_of[number] for number in numbers if number in self._row_of])

    @property
    def selected(self) -> tuple[int, ...]:
        """Numbers of the selected annotators."""
        return self._numbers(self.tiles.selected) if self._row_of else ()

    @property
    def shown(self) -> tuple[int, ...]:
        """Numbers of the visible annotators, in order."""
        return self._numbers(self.tiles.order) if self._row_of else ()

    def highlight(self, numbers: Iterable[int] | None) -> None:
        """Dim all annotators except these; None or an empty selection dims none."""
        self._lit = frozenset(numbers or ())
        self._dim()
        self._settle()

    def heading(self) -> tuple[str, str]:
        """Return the title, and the text beside it."""
        return self.header.text()

    def picture_size(self) -> QSize:
        """Return the size of the visible part of the wall."""
        return self.tiles.room()

    def paint_picture(self, painter: QPainter) -> None:
        """Paint the visible part."""
        size = self.picture_size()
        painter.setClipRect(0, 0, size.width(), size.height())
        self.tiles.paint(painter, 0, size.height() - 1)

    def table(self) -> PlotTable:
        """Return every cell of the visible annotators, in order, with their measures."""
        view = self._view
        assert view is not None
        order = list(self.tiles.order)
        axes = {"annotator": [view.names[row] for row in order], "true": view.classes,
                "given": view.outputs}  # fmt: skip
        columns = {"rate": view.mean[order], "votes": view.votes[order, None, None]}
        columns |= {
            label: np.asarray(values)[order, None, None]
            for label, values, _ in view.measures
            if label not in ("votes", "community")
        }
        if (view.community >= 0).any():
            columns["community"] = view.community[order, None, None] + 1
        return PlotTable.of_cells(axes, {**columns, "excluded": view.excluded[order, None, None]})

    def _dim(self) -> None:
        self.tiles.light([self._row_of[number] for number in self._lit if number in self._row_of] or None)

    def _numbers(self, indices: Iterable[int]) -> tuple[int, ...]:
        view = self._view
        return () if view is None else tuple(view.numbers[list(indices)].tolist())

    def _text(self, row_index: int) -> str:
        view = self._view
        assert view is not None
        parts = [view.names[row_index]]
        parts += [
            f"{label} {format(float(values[row_index]), spec)}"
            for label, values, spec in view.measures
            if label not in ("votes", "community") and np.isfinite(values[row_index])
        ]
        parts.append(counted(int(view.votes[row_index]), "vote"))
        if view.community[row_index] >= 0:
            parts.append(community_word(int(view.community[row_index])))
        if view.excluded[row_index]:
            parts.append("excluded")
        text = ", ".join(parts)
        rates = view.mean[row_index]
        if rates.size > MAX_RATES or np.isnan(rates).any():
            return text
        rows = [
            f"{name}: "
            + ", ".join(f"{output} {rate:.2f}" for output, rate in zip(view.outputs, row, strict=True))
            for name, row in zip(view.classes, rates, strict=True)
        ]
        return f"{text}; true " + "; true ".join(rows)

    def _arrange(self) -> None:
        """Filter and sort the annotators."""
        view = self._view
        if view is None:
            return
        values = np.asarray(view.measures[max(self.measure.currentIndex(), 0)][1], dtype=float)
        order = np.argsort(-values if self._falling else values, kind="stable")
        needle = self.filter.text().strip().casefold()
        if needle:
            passes = np.array([needle in name.casefold() for name in view.names], dtype=bool)
            order = order[passes[order]]
        self.tiles.set_order(order)
        self._settle()

    def _settle(self) -> None:
        view = self._view
        number = 0 if view is None else len(view.numbers)
        visible = len(self.tiles.order) if number else 0
        self.header.set_subtitle(counted(number, "annotator") if number else "")
        self._nothing.setText(NO_MATCH if number else NOTHING)
        leave_keys_to(self, self.tiles if visible else None)
        self._pages.setCurrentIndex(int(visible > 0))
        for widget in (self.filter, self.measure, self.direction):
            widget.setVisible(number > 0)
        width = self.width() / text_size()
        self.scale.setVisible(number > 0 and width >= NARROW[0])
        words, sign = ("highest first", "↓") if self._falling else ("lowest first", "↑")
        self.direction.setText(words if width >= NARROW[2] else sign)
        self.direction.setAccessibleDescription(words)
        self.direction.setToolTip(words)
        notes = [f"{len(self._lit.intersection(self._row_of)):,} of {number:,}"] if self._lit else []
        notes += [f"{visible:,} found"] if visible < number else []
        notes += ["size = votes"] if number and width >= NARROW[1] else []
        self.header.set_subtitle(" | ".join(notes))
        self.tiles.setAccessibleName(f"Confusion matrices of {counted(visible, 'annotator')}")

    def _on_direction(self) -> None:
        self._falling = not self._falling
        self._arrange()

    def _on_selected(self, indices: tuple[int, ...]) -> None:
        self.selection_changed.emit(self._numbers(indices))

    def _on_activated(self, row: int) -> None:
        self.activated.emit(self._numbers((row,))[0])

    def _on_find(self) -> None:
        self.filter.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.filter.selectAll()

    def _on_filter_left(self) -> None:
        if self.tiles.order:
            self.tiles.setFocus(Qt.FocusReason.ShortcutFocusReason)


class _Filter(FilterField):
    """Filter field: Escape clears it; Return, Down or a second Escape move the focus to the wall."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key == Qt.Key.Key_Escape and self.text():
            self.clear()
        elif key in (Qt.Key.Key_Escape, Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Down):
            self.left.emit()
        else:
            super().keyPressEvent(event)


class _Scale(QWidget):
    """The colour bar."""

    def __init__(self) -> None:
        super().__init__()
        set_lengths(self, width=90, height=BAR_HEIGHT)
        self.setToolTip(plain_tip("Row: true class. Column: answer. Colour: rate."))

    def paintEvent(self, _event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            box = enlarge(painter, self.rect()).adjusted(0, 2, 0, 0)
            paint_colour_bar(painter, box, rate_table(), 0.0, 1.0, "rate")
