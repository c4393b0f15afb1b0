"""Where the blocks and bands of communities over time lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainterPath

__all__ = ["BLOCK", "Block", "Layout", "Part", "lay_out"]

Part = tuple[int, int, int]
"""A moment, a community of it (their number for those in none), and a community of the next or `BLOCK`."""

BLOCK = -1
"""In a part: the community itself, not those who go from it to another."""

NARROWEST, WIDEST = 76.0, 132.0
GAP, LEAST = 6.0, 1.5
REACH = 3.0


@dataclass(frozen=True)
class Block:
    """A community at a moment.

    Attributes
    ----------
    moment, community : int
    number : int
        The lasting number, -1 for those in none.
    box : QRectF
    """

    moment: int
    community: int
    number: int
    box: QRectF


@dataclass(frozen=True, eq=False)
class Layout:
    """Blocks and bands in pixels.

    Attributes
    ----------
    columns : tuple of (left, width)
        A column a moment.
    blocks : mapping of part to Block
        By moment, downwards.
    bands : mapping of part to the tops at its two ends, and its thickness there
        Those that anybody goes, but for who is in none both times.
    """

    columns: tuple[tuple[float, float], ...]
    blocks: dict[Part, Block]
    bands: dict[Part, tuple[float, float, float]]

    def path(self, part: Part) -> QPainterPath:
        """Give the outline of a block or a band."""
        outline = QPainterPath()
        if part[2] == BLOCK:
            outline.addRoundedRect(self.blocks[part].box, 4, 4)
            return outline
        (first, width), (last, _) = self.columns[part[0]], self.columns[part[0] + 1]
        here, there, thick = self.bands[part]
        left, middle = first + width, (first + width + last) / 2
        outline.moveTo(left, here)
        outline.cubicTo(middle, here, middle, there, last, there)
        outline.lineTo(last, there + thick)
        outline.cubicTo(middle, there + thick, middle, here + thick, left, here + thick)
        outline.closeSubpath()
        return outline

    def part_at(self, place: QPointF) -> Part | None:
        """Give what lies at a place; a block before a band, of bands the thinnest."""
        for moment, (left, width) in enumerate(self.columns):
            if left <= place.x() <= left + width:
                return self._block_at(moment, place)
            if place.x() < left:
                return self._band_at(moment - 1, place)
        return None

    def _block_at(self, moment: int, place: QPointF) -> Part | None:
        for part, block in self.blocks.items():
            if part[0] == moment and block.box.top() - REACH <= place.y() <= block.box.bottom() + REACH:
                return part
        return None

    def _band_at(self, moment: int, place: QPointF) -> Part | None:
        those = [
            part
            for part, (here, there, thick) in self.bands.items()
            if part[0] == moment and min(here, there) <= place.y() <= max(here, there) + thick
        ]
        hit = [part for part in those if self.path(part).contains(place)]
        return min(hit, key=lambda part: self.bands[part][2], default=None)

    def step(self, part: Part | None, across: int, down: int) -> Part | None:
        """Walk sideways from a block to its broadest band and on to where that leads, or down a column."""
        if part is None or not (part in self.blocks or part in self.bands):
            return next(iter(self.blocks), None)
        moment, community, goal = part
        if down:
            kind = self.blocks if goal == BLOCK else self.bands
            column = [other for other in kind if other[0] == moment]
            return column[min(max(column.index(part) + down, 0), len(column) - 1)]
        if goal != BLOCK:
            return (moment + 1, goal, BLOCK) if across > 0 else (moment, community, BLOCK)
        if across > 0:
            ways = [band for band in self.bands if band[:2] == (moment, community)]
        else:
            ways = [band for band in self.bands if (band[0] + 1, band[2]) == (moment, community)]
        return max(ways, key=lambda band: self.bands[band][2], default=part)


def lay_out(
    numbers: Sequence[NDArray[np.integer]], flows: Sequence[NDArray[np.integer]], room: QRectF
) -> Layout:
    """Lay communities out, those of one lasting number in one order everywhere, those in none lowest.

    Parameters
    ----------
    numbers : sequence of T arrays, (C_t,) int
    flows : sequence of T - 1 arrays, (C_t + 1, C_t+1 + 1) int
    room : QRectF
    """
    sizes = [*(flow.sum(axis=1) for flow in flows), flows[-1].sum(axis=0)]
    orders = [[*np.argsort(each, kind="stable").tolist(), len(each)] for each in numbers]
    many = len(numbers)
    width = min(1.15 * room.width() / (2 * many - 1), WIDEST)
    width = max(width, min(NARROWEST, room.width() / (1.4 * many)))
    apart = (room.width() - width) / (many - 1)
    columns = tuple((room.left() + moment * apart, width) for moment in range(many))
    blocks_at_most = max(len(order) for order in orders)
    gap = min(GAP, 0.25 * room.height() / blocks_at_most)
    people = max(int(each.sum()) for each in sizes)
    scale = max(room.height() - gap * (blocks_at_most - 1), 1.0) / max(people, 1)
    blocks: dict[Part, Block] = {}
    for moment, order in enumerate(orders):
        top = room.top()
        for community in order:
            size = int(sizes[moment][community])
            if not size:
                continue
            high = max(size * scale, LEAST)
            none = community == len(numbers[moment])
            number = -1 if none else int(numbers[moment][community])
            box = QRectF(columns[moment][0], top, width, high)
            blocks[moment, community, BLOCK] = Block(moment, community, number, box)
            top += high + gap
    bands: dict[Part, tuple[float, float, float]] = {}
    for moment, flow in enumerate(flows):
        entered = dict.fromkeys(orders[moment + 1], 0.0)
        for community in orders[moment]:
            left = 0.0
            for goal in orders[moment + 1]:
                thick = float(flow[community, goal]) * scale
                if not thick:
                    continue
                here = blocks[moment, community, BLOCK].box.top() + left
                there = blocks[moment + 1, goal, BLOCK].box.top() + entered[goal]
                left += thick
                entered[goal] += thick
                if (community, goal) != (len(numbers[moment]), len(numbers[moment + 1])):
                    bands[moment, community, goal] = here, there, thick
    return Layout(columns, blocks, bands)
