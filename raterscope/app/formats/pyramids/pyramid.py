"""Pyramids: a large image as tiles of itself and of smaller and smaller copies.

In a mean of 16 x 16 pixels a nucleus of 6 pixels retains 12 % of its contrast. If each block of four is
shifted by a quarter from its mean towards the pixel that differs most, 24 % are retained. On smears the
background and edges stay as smooth (from one half on edges become jagged). Dark and bright objects are
treated alike, for stains and for fluorescence, and the brightness of the image is unchanged.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.image_display import (
    COLOUR,
    GREY,
    ChannelPlane,
    ChannelRange,
    Displays,
    describe_channel,
    render,
)

KEPT = 0.25
"""Weight of the pixel that differs most from the mean of its block."""


def halve(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Compute the next smaller level.

    `pixels`: (height, width) or (height, width, 3). If a length is odd, the last row or column counts twice.
    The result has shape (ceil(height / 2), ceil(width / 2)[, 3]).
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
    """Layout of a pyramid: levels and tiles."""

    # width, height: pixels of the image
    width: int
    height: int
    colour: bool  # RGB, else grey
    side: int = SIDE  # pixels along a tile; tiles at the right and the bottom may be smaller

    @cached_property
    def levels(self) -> tuple[tuple[int, int], ...]:
        """Width and height of the image, its half, its quarter, ... down to one that fits into a tile."""
        sizes = [(self.width, self.height)]
        while max(sizes[-1]) > self.side:
            sizes.append((-(-sizes[-1][0] // 2), -(-sizes[-1][1] // 2)))
        return tuple(sizes)

    def grid(self, level: int) -> tuple[int, int]:
        """Return the number of rows and columns of tiles of a level."""
        width, height = self.levels[level]
        return -(-height // self.side), -(-width // self.side)


class Source(Protocol):
    """Source of pixels: a file with some of the levels."""

    @property
    def pyramid(self) -> Pyramid:
        """Layout of the pyramid."""

    @property
    def levels(self) -> Collection[int]:
        """Levels of the file itself, including 0."""

    def read(self, level: int, left: int, top: int, width: int, height: int) -> Pixels:
        """Read a part within a level of the file. May be called from any thread."""


@runtime_checkable
class DisplayedSource(Source, Protocol):
    """Source with the depth of the file, or with several channels."""

    def with_displays(self, displays: Displays) -> Source:
        """Return the same image with other displays of its channels."""

    def describe(self) -> tuple[ChannelRange, ...]:
        """Describe the values of the channels."""


_OVERVIEW = 1024


class PyramidReader:
    """Reader of tiles and parts of a large image; missing levels are computed from the next finer level.

    May be called from any thread. No file stays open between calls, unless the source keeps it open.
    """

    nbytes = 32 << 20
    """Bytes that a source may hold in memory."""

    def __init__(self, source: Source, displays: Displays = MappingProxyType({})) -> None:
        self._source, self._displays = source, displays
        self.pyramid = source.pyramid

    def with_displays(self, displays: Displays) -> PyramidReader:
        """Return a reader of the same image with other displays of its channels.

        Stains are not normalised: an estimate from a tile is not that of the image.
        """
        displays = {name: replace(display, stain=None) for name, display in displays.items()}
        if isinstance(self._source, DisplayedSource):
            return PyramidReader(self._source.with_displays(displays))
        return PyramidReader(self._source, displays)

    def describe(self) -> tuple[ChannelRange, ...]:
        """Describe the values of the channels. Raises `InputError` if the file is missing or damaged."""
        if isinstance(self._source, DisplayedSource):
            return self._source.describe()
        pixels = PyramidReader(self._source).overview(_OVERVIEW)
        return (describe_channel(ChannelPlane(self._name, pixels)),)

    @property
    def _name(self) -> str:
        return COLOUR if self.pyramid.colour else GREY

    @property
    def levels(self) -> tuple[tuple[int, int], ...]:
        """Width and height of each level, the image itself first."""
        return self.pyramid.levels

    @property
    def side(self) -> int:
        """Pixels along a tile."""
        return self.pyramid.side

    def tile(self, level: int, row: int, column: int) -> Pixels:
        """Read a tile.

        Raises `InputError` if the file is missing or damaged. Raises `IndexError` if there is no such tile.

        The tile, (height, width) or (height, width, 3), has `side` by `side` pixels, fewer at the right and
        the bottom.
        """
        rows, columns = self.pyramid.grid(level)
        if not (0 <= row < rows and 0 <= column < columns):
            raise IndexError(f"tile {row}, {column} of {rows} x {columns}")
        return self.region(level, column * self.side, row * self.side, self.side, self.side)

    def region(self, level: int, left: int, top: int, width: int, height: int) -> Pixels:
        """Read a part of a level, cut to the image. Raises `InputError` if the file is missing or damaged."""
        level_width, level_height = self.levels[level]
        right, bottom = min(left + width, level_width), min(top + height, level_height)
        left, top = max(left, 0), max(top, 0)
        if right <= left or bottom <= top:
            return np.empty((0, 0, 3) if self.pyramid.colour else (0, 0), dtype=np.uint8)
        if level in self._source.levels:
            pixels = self._source.read(level, left, top, right - left, bottom - top)
            return render([ChannelPlane(self._name, pixels)], self._displays) if self._displays else pixels
        finer = self.region(level - 1, 2 * left, 2 * top, 2 * (right - left), 2 * (bottom - top))
        return halve(finer)

    def overview(self, longest: int) -> Pixels:
        """Read the image at the smallest level whose longer side has at least `longest` pixels."""
        fitting = [level for level, size in enumerate(self.levels) if max(size) >= longest]
        level = fitting[-1] if fitting else 0
        return self.region(level, 0, 0, *self.levels[level])
