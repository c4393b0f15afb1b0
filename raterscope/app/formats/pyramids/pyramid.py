"""A large image as tiles of itself and of ever smaller copies of itself.

A nucleus of 6 pixels has 12 % of its contrast left in a mean of 16 x 16 pixels. Where each block of four
leans by a quarter towards the pixel that differs most from their mean, 24 % are left. On smears the empty
ground stays as smooth, and edges do too (from one half on they become jagged). Neither dark nor bright things
are preferred, so that stains and fluorescence are treated alike, and the image keeps its brightness.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "KEPT",
    "SIDE",
    "Pixels",
    "Pyramid",
    "PyramidReader",
    "Source",
    "halve",
]


KEPT = 0.25
"""How far a block leans from its mean towards the pixel that differs most."""


def halve(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Make the next smaller level.

    Parameters
    ----------
    pixels : (height, width) or (height, width, 3) uint8
        Of an odd length, the last row or column counts twice.

    Returns
    -------
    (ceil(height / 2), ceil(width / 2)[, 3]) uint8
    """
    from raterscope.app.formats.pyramids import _kernels as kernels

    if not pixels.size:
        return pixels[::2, ::2]
    if pixels.ndim == 2:
        return np.asarray(kernels.halve(pixels[..., None], KEPT))[..., 0]
    return np.asarray(kernels.halve(pixels, KEPT))


SIDE = 512
"""Pixels along a tile."""

Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Pyramid:
    """The tiles that there are.

    Attributes
    ----------
    width, height : int
        Pixels of the image.
    colour : bool
        RGB, else grey.
    side : int
        Pixels along a tile; those at the right and the bottom may be smaller.
    """

    width: int
    height: int
    colour: bool
    side: int = SIDE

    @cached_property
    def levels(self) -> tuple[tuple[int, int], ...]:
        """Width and height of the image, its half, its quarter, ... down to one that fits into a tile."""
        sizes = [(self.width, self.height)]
        while max(sizes[-1]) > self.side:
            sizes.append((-(-sizes[-1][0] // 2), -(-sizes[-1][1] // 2)))
        return tuple(sizes)

    def grid(self, level: int) -> tuple[int, int]:
        """Give how many rows and columns of tiles a level has."""
        width, height = self.levels[level]
        return -(-height // self.side), -(-width // self.side)


class Source(Protocol):
    """Where pixels come from: a file that has some of the levels."""

    @property
    def pyramid(self) -> Pyramid:
        """What is there."""

    @property
    def levels(self) -> Collection[int]:
        """The levels that the file itself has; 0 is among them."""

    def read(self, level: int, left: int, top: int, width: int, height: int) -> Pixels:
        """Read a part, which lies inside, of a level that the file has. Any thread may ask."""


class PyramidReader:
    """Tiles and parts of a large image; those of levels that its file lacks are made from the next finer.

    Any thread may ask. No file stays open between two questions unless the source says so.

    Parameters
    ----------
    source : Source
    """

    nbytes = 32 << 20
    """What a source may hold in memory."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.pyramid = source.pyramid

    @property
    def levels(self) -> tuple[tuple[int, int], ...]:
        """Width and height of each level, the whole image first."""
        return self.pyramid.levels

    @property
    def side(self) -> int:
        """Pixels along a tile."""
        return self.pyramid.side

    def tile(self, level: int, row: int, column: int) -> Pixels:
        """Read a tile.

        Returns
        -------
        (height, width) or (height, width, 3) uint8
            Of `side` by `side` pixels, less at the right and the bottom.

        Raises
        ------
        InputError
            When the file is gone or damaged.
        IndexError
            Where no tile is.
        """
        rows, columns = self.pyramid.grid(level)
        if not (0 <= row < rows and 0 <= column < columns):
            raise IndexError(f"tile {row}, {column} of {rows} x {columns}")
        return self.region(level, column * self.side, row * self.side, self.side, self.side)

    def region(self, level: int, left: int, top: int, width: int, height: int) -> Pixels:
        """Read a part of a level; what lies beyond the image is left out.

        Raises
        ------
        InputError
            When the file is gone or damaged.
        """
        whole_width, whole_height = self.levels[level]
        right, bottom = min(left + width, whole_width), min(top + height, whole_height)
        left, top = max(left, 0), max(top, 0)
        if right <= left or bottom <= top:
            return np.empty((0, 0, 3) if self.pyramid.colour else (0, 0), dtype=np.uint8)
        if level in self._source.levels:
            return self._source.read(level, left, top, right - left, bottom - top)
        finer = self.region(level - 1, 2 * left, 2 * top, 2 * (right - left), 2 * (bottom - top))
        return halve(finer)

    def overview(self, longest: int) -> Pixels:
        """Read the whole image at the smallest level whose longer side still has `longest` pixels."""
        fitting = [level for level, size in enumerate(self.levels) if max(size) >= longest]
        level = fitting[-1] if fitting else 0
        return self.region(level, 0, 0, *self.levels[level])
