"""A tree of raters by the similarity of their masks over many cases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QWidget

from raterscope.figures.description import Axis
from raterscope.figures.table import PlotTable
from raterscope.figures.ticks import Tick, ticks_of
from raterscope.widgets import theme
from raterscope.widgets.figures.figure_panel import Figure, FigurePanel
from raterscope.widgets.painting import paint_rater, paint_words

__all__ = ["Dendrogram"]

NEAR = 5.0
LEAF_ROOM = 34
TOP = 8.0


class Dendrogram(FigurePanel):
    """A click on a branch chooses the raters under it, on a leaf the one rater.

    Signals
    -------
    branch_chosen : tuple of str
        Names of the raters.
    """

    branch_chosen = Signal(object)

    def __init__(self, title: str = "Raters over cases", parent: QWidget | None = None) -> None:
        self.figure = _Tree(title)
        super().__init__(title, self.figure, "Needs three raters who share cases.", parent)
        self.figure.chosen.connect(self.branch_chosen)
        self.set_filled(False)

    def set_tree(
        self,
        linkage: NDArray[np.floating],
        names: Sequence[str],
        numbers: Sequence[int],
        label: str = "complete linkage",
        unit: str = "",
    ) -> None:
        """Show a tree.

        Parameters
        ----------
        linkage : (P - 1, 4) float
            As scipy's: each row joins two of the raters 0 to P - 1 or of the rows before it, numbered
            from P, at a height; the heights rise. No rows for no tree.
        names, numbers : sequence, P
            The raters, and the numbers that give their colours.
        label : str
            How the tree was made.
        unit : str
            Of the heights.
        """
        linkage = np.asarray(linkage, dtype=float)
        if len(names) < 3 or len(linkage) == 0:
            self.header.set_aside("")
            self.set_filled(False)
            return
        if linkage.shape != (len(names) - 1, 4) or len(numbers) != len(names):
            raise ValueError(f"a linkage of shape {linkage.shape} for {len(names)} names")
        self.header.set_aside(label)
        self.figure.show_tree(linkage, tuple(names), tuple(numbers), unit)
        self.set_filled(True)

    def set_title(self, title: str) -> None:
        """Set the title: "Raters over 40 cases"."""
        self.header.set_title(title)
        self.figure.setAccessibleName(title)

    def select(self, names: Sequence[str]) -> None:
        """Set off raters, without a signal."""
        self.figure.select(frozenset(names))


class _Tree(Figure[int]):
    """A part is a rater's place, or P and more for a branch."""

    chosen = Signal(object)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._names: tuple[str, ...] = ()
        self._numbers: tuple[int, ...] = ()
        self._unit = ""
        self._selected: frozenset[str] = frozenset()
        self._members: list[tuple[int, ...]] = []
        self._halves: list[tuple[int, int]] = []
        self._height = np.empty(0)
        self._across = np.empty(0)

    def show_tree(
        self, linkage: NDArray[np.floating], names: tuple[str, ...], numbers: tuple[int, ...], unit: str
    ) -> None:
        leaves = len(names)
        self._names, self._numbers, self._unit = names, numbers, unit
        self._halves = [(int(first), int(second)) for first, second in linkage[:, :2]]
        self._members = [(leaf,) for leaf in range(leaves)]
        for first, second in self._halves:
            self._members.append(self._members[first] + self._members[second])
        self._height = np.concatenate([np.zeros(leaves), linkage[:, 2]])
        across = np.zeros(2 * leaves - 1)
        across[list(self._members[-1])] = np.arange(leaves)
        for part, (first, second) in enumerate(self._halves, leaves):
            across[part] = (across[first] + across[second]) / 2
        self._across = across
        self.pointed = None
        self.update()

    def select(self, names: frozenset[str]) -> None:
        self._selected = names
        self.update()

    def words(self, part: int) -> str:
        members = self._member_names(part)
        if part < len(self._names):
            return members
        return f"{members}: joined at {self._height[part]:.3g}{' ' if self._unit else ''}{self._unit}"

    def part_at(self, position: QPointF) -> int | None:
        leaves = len(self._names)
        if position.y() > self._floor():
            step = self._step()
            leaf = round((position.x() - self._left()) / step - 0.5)
            return self._members[-1][leaf] if 0 <= leaf < leaves else None
        nearest, least = None, NEAR
        for part in range(len(self._members)):
            for start, end in self._strokes(part):
                across = max(start.x() - position.x(), 0.0, position.x() - end.x())
                down = max(start.y() - position.y(), 0.0, position.y() - end.y())
                distance = float(np.hypot(across, down))
                if distance < least:
                    nearest, least = part, distance
        return nearest

    def step(self, part: int | None, across: int, down: int) -> int:
        leaves = len(self._names)
        if part is None:
            return len(self._members) - 1
        if down > 0 and part >= leaves:
            return self._halves[part - leaves][0]
        above = next((row + leaves for row, pair in enumerate(self._halves) if part in pair), part)
        if down < 0 or above == part:
            return above if down < 0 else part
        halves = sorted(self._halves[above - leaves], key=self._across.__getitem__)
        return halves[0 if across < 0 else 1] if across else part

    def choose(self, part: int) -> None:
        self.chosen.emit(tuple(self._names[leaf] for leaf in self._members[part]))

    def table(self) -> PlotTable:
        leaves = len(self._names)
        halves = [[self._member_names(half) for half in pair] for pair in self._halves]
        height = f"joined at ({self._unit})" if self._unit else "joined at"
        first, second = zip(*halves, strict=True)
        return PlotTable.of({"one": first, "other": second, height: self._height[leaves:]})

    def _member_names(self, part: int) -> str:
        return ", ".join(self._names[leaf] for leaf in self._members[part])

    def _ticks(self) -> list[Tick]:
        """Return the ticks of the heights; the last one that is labelled names the unit."""
        high = float(self._height.max(initial=0.0)) or 1.0
        ticks = ticks_of(Axis(""), 0.0, high, self._floor() - TOP, theme.CAPTION)
        unit = f" {self._unit}" if self._unit else ""
        return [*ticks[:-1], *((value, f"{text}{unit}") for value, text in ticks[-1:])]

    def _left(self) -> float:
        advance = QFontMetrics(theme.font(theme.CAPTION)).horizontalAdvance
        return 14.0 + max((advance(text) for _, text in self._ticks()), default=0)

    def _step(self) -> float:
        return (self.room.width() - self._left()) / max(len(self._names), 1)

    def _floor(self) -> float:
        return self.room.height() - LEAF_ROOM

    def _position(self, part: int) -> QPointF:
        top = self._height.max(initial=0.0) or 1.0
        x = self._left() + (self._across[part] + 0.5) * self._step()
        return QPointF(x, self._floor() - (self._floor() - TOP) * self._height[part] / top)

    def _strokes(self, part: int) -> list[tuple[QPointF, QPointF]]:
        """Return a branch's lines, each from its upper left end: across, and down to its two halves."""
        leaves = len(self._names)
        if part < leaves:
            return []
        joint = self._position(part)
        ends = sorted((self._position(half) for half in self._halves[part - leaves]), key=QPointF.x)
        corners = [QPointF(end.x(), joint.y()) for end in ends]
        return [(corners[0], corners[1]), *zip(corners, ends, strict=True)]

    def draw(self, painter: QPainter) -> None:
        look = theme.current()
        leaves = len(self._names)
        painter.setFont(theme.font(theme.CAPTION))
        high = float(self._height.max(initial=0.0)) or 1.0
        left, floor = self._left() - 4, self._floor()
        painter.setPen(QColor(look.line))
        painter.drawLine(QPointF(left, TOP), QPointF(left, floor))
        for value, text in self._ticks():
            y = floor - (floor - TOP) * value / high
            painter.setPen(QColor(look.line))
            painter.drawLine(QPointF(left - 4, y), QPointF(left, y))
            room = QRectF(0, y - 8, left - 6, 16)
            paint_words(painter, room, text, look.third, side=Qt.AlignmentFlag.AlignRight)
        lit = set(self._under(self.pointed)) if self.pointed is not None else set()
        for part in range(leaves, len(self._members)):
            hit = part in lit or self._selected.issuperset(self._names[leaf] for leaf in self._members[part])
            painter.setPen(QPen(QColor(look.accent if hit else look.second), 2.4 if hit else 1.6))
            for start, end in self._strokes(part):
                painter.drawLine(start, end)
        for leaf in range(leaves):
            self._draw_leaf(painter, leaf, leaf in lit)

    def _under(self, part: int) -> list[int]:
        """Return a part and all parts under it."""
        leaves, parts = len(self._names), [part]
        for above in parts:
            if above >= leaves:
                parts.extend(self._halves[above - leaves])
        return parts

    def _draw_leaf(self, painter: QPainter, leaf: int, lit: bool) -> None:
        chosen = lit or self._names[leaf] in self._selected
        position, step = self._position(leaf), self._step()
        paint_rater(painter, QRectF(position.x() - 9, position.y() + 3, 18, 8), self._numbers[leaf])
        font = theme.font(theme.CAPTION, bold=chosen)
        painter.setFont(font)
        metrics, name = QFontMetrics(font), self._names[leaf]
        if metrics.horizontalAdvance(name) > step - 4:
            # The number says what a few letters of a name would not.
            name = str(self._numbers[leaf] + 1)
        painter.setPen(QColor(theme.current().text if chosen else theme.current().second))
        box = QRectF(position.x() - step / 2, position.y() + 12, step, LEAF_ROOM - 14)
        painter.drawText(box, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, name)
