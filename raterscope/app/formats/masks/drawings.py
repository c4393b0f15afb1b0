"""Marks that are not drawn yet: how large each will be is known before room is made for any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.app.formats.masks.polygons import Box, Patch, box_of, fill
from raterscope.app.formats.masks.runs import Runs

__all__ = ["Drawing", "column_major", "nothing", "outlined", "row_major", "united"]


@dataclass(frozen=True, eq=False)
class Drawing:
    """A mark on a plane.

    Attributes
    ----------
    box : (top, left, rows, columns)
        Where it lies at most.
    draw : callable
        Draws it. It may raise ValueError, whose text follows "it has".
    """

    box: Box
    draw: Callable[[], Patch | None]

    @property
    def pixels(self) -> int:
        """Pixels of the box."""
        return self.box[2] * self.box[3]


def nothing() -> Drawing:
    """Give a mark without a pixel."""
    return Drawing((0, 0, 0, 0), lambda: None)


def outlined(outlines: Sequence[NDArray[np.floating]], shape: tuple[int, int]) -> Drawing:
    """Give the mark that `polygons.fill` draws.

    Raises
    ------
    ValueError
        For points that are no numbers.
    """
    box = box_of(outlines, shape)
    return nothing() if box is None else Drawing(box, lambda: fill(outlines, shape))


def united(drawings: Sequence[Drawing]) -> Drawing:
    """Give marks as one."""
    some = [one for one in drawings if one.pixels]
    if len(some) < 2:
        return some[0] if some else nothing()
    top, left = (min(one.box[k] for one in some) for k in (0, 1))
    bottom, right = (max(one.box[k] + one.box[k + 2] for one in some) for k in (0, 1))

    def draw() -> Patch:
        whole = np.zeros((bottom - top, right - left), dtype=np.bool_)
        for one in some:
            if (patch := one.draw()) is not None:
                row, column, mask = patch
                rows, columns = mask.shape
                whole[row - top : row - top + rows, column - left : column - left + columns] |= mask
        return top, left, whole

    return Drawing((top, left, bottom - top, right - left), draw)


def row_major(runs: Runs, shape: tuple[int, int], origin: tuple[int, int] = (0, 0)) -> Drawing:
    """Give the mark that runs along the rows of `shape` make, which lies at `origin`."""
    (top, left, rows, columns), draw = _of_runs(runs, shape[1])
    row, column = origin
    return Drawing((row + top, column + left, rows, columns), lambda: (row + top, column + left, draw()))


def column_major(runs: Runs, shape: tuple[int, int]) -> Drawing:
    """Give the mark that runs down the columns of `shape` make."""
    (left, top, columns, rows), draw = _of_runs(runs, shape[0])
    return Drawing((top, left, rows, columns), lambda: (top, left, np.ascontiguousarray(draw().T)))


def _of_runs(runs: Runs, length: int) -> tuple[Box, Callable[[], NDArray[np.bool_]]]:
    """Give the box around runs in lines of a length: first line, first pixel in it, lines, pixels a line."""
    starts, ends = runs
    if not len(starts):
        return (0, 0, 0, 0), lambda: np.zeros((0, 0), dtype=np.bool_)
    line, last = starts // length, (ends - 1) // length
    first, lines = int(line[0]), int(last[-1] - line[0]) + 1
    low, width = 0, length
    if (line == last).all():
        low = int((starts % length).min())
        width = int(((ends - 1) % length).max()) + 1 - low
    begin = (line - first) * width + starts % length - low
    stop = begin + (ends - starts)

    def draw() -> NDArray[np.bool_]:
        turns = np.zeros(lines * width + 1, dtype=np.int8)
        turns[begin] += 1
        turns[stop] -= 1
        np.add.accumulate(turns, out=turns)
        return turns[:-1].view(np.bool_).reshape(lines, width)

    return (first, low, lines, width), draw
