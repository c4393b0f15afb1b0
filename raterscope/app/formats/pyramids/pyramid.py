"""Pyramids: large images as tiles at decreasing resolutions, and the sources of the tiles.

In a mean of 16 x 16 pixels a nucleus of 6 pixels retains 12 % of its contrast. If each block of four is
shifted by a quarter from its mean towards the pixel that differs most, 24 % are retained. On smears the
background and edges remain smooth; with a weight of one half, edges become jagged. Dark and bright objects
(stains and fluorescence) are treated equally, and the brightness of the image does not change.

OpenSlide is used if it is installed (``pip install raterscope[slides]``).
"""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.image_display import (
    COLOUR,
    DEFAULT,
    GREY,
    ChannelDisplay,
    ChannelPlane,
    ChannelRange,
    Colour,
    Displays,
    combine,
    default_range,
    describe_channel,
    render,
    to_bytes,
)
from raterscope.app.errors import InputError
from raterscope.app.formats.image_structure import Channel, find_channels, find_levels
from raterscope.app.formats.images import JPEG_COMPRESSIONS, convert_samples, image_errors

KEPT = 0.25
"""Weight of the pixel that differs most from the mean of its block."""


def halve(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Compute the next smaller level.

    `pixels`: (height, width) or (height, width, 3). If a length is odd, the last row or column counts twice.
    The result has shape (ceil(height / 2), ceil(width / 2)[, 3]).
    """
    from raterscope.app.formats import _kernels as kernels

    if not pixels.size:
        return pixels[::2, ::2]
    if pixels.ndim == 2:
        return np.asarray(kernels.halve(pixels[..., None], KEPT))[..., 0]
    return np.asarray(kernels.halve(pixels, KEPT))


SIDE = 512
"""Side of a tile, pixels."""

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

        Stains are not normalised, because an estimate from a tile would differ from that of the image.
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
        """Side of a tile, pixels."""
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
        """Read a part of a level, cropped to the image.

        Raises `InputError` if the file is missing or damaged.
        """
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


_KEPT_BYTES = 32 << 20


def channel_pages(file: Any) -> tuple[Channel, ...]:
    """Return the channels of an open OME-TIFF if each has its own smaller copies, otherwise none."""
    channels = find_channels(file)
    pages = [file.pages[channel.page] for channel in channels]
    return channels if all(page.subifds and find_levels(page) for page in pages) else ()


class ChannelSource:
    """Channels of one plane, each a tiled page with smaller copies, added up.

    Raises `InputError` for a file that is damaged.
    """

    def __init__(self, path: Path, channels: Sequence[Channel]) -> None:
        self._channels = channels
        self._displays: Displays = {}
        self._sources = [TiffSource(path, channel.page) for channel in channels]
        self.pyramid = replace(self._sources[0].pyramid, colour=True)
        self.levels = frozenset.intersection(*(source.levels for source in self._sources))

    def read(self, level: int, left: int, top: int, width: int, height: int) -> Pixels:
        """Read a part of a level."""
        return combine(
            [(channel.name, channel.colour) for channel in self._channels],
            [source.read(level, left, top, width, height) for source in self._sources],
            self._displays,
        )

    def with_displays(self, displays: Displays) -> ChannelSource:
        """Return the same image with other displays."""
        other = copy.copy(self)
        other._displays = displays
        other._sources = [
            source.with_display(replace(displays.get(channel.name, DEFAULT), colour=None))
            for source, channel in zip(self._sources, self._channels, strict=True)
        ]
        return other

    def describe(self) -> tuple[ChannelRange, ...]:
        """Describe the values of the channels."""
        return tuple(
            source.describe_as(channel.name, channel.colour)
            for source, channel in zip(self._sources, self._channels, strict=True)
        )


@dataclass(frozen=True, eq=False)
class _Level:
    """A page of tiles, with the size of its level."""

    page: Any
    width: int
    height: int

    @property
    def across(self) -> int:
        return int(-(-self.page.imagewidth // self.page.tilewidth))

    @property
    def down(self) -> int:
        return int(-(-self.page.imagelength // self.page.tilelength))


class TiffSource:
    """A tiled TIFF with smaller copies of itself.

    More than 8 bit are scaled by the darkest and brightest thousandth of the smallest copy. Raises
    `InputError` for a file that is damaged, or has no smaller copies.

    `number`: number of the page.
    """

    def __init__(self, path: Path, number: int = 0) -> None:
        import tifffile

        self._path = path
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, int], NDArray[Any]] = OrderedDict()
        with image_errors(path), tifffile.TiffFile(path) as file:
            pages = find_levels(file.pages[number])
            if not pages:
                raise InputError("is not a pyramid of tiles", file=path)
            for page in pages.values():
                page.decode, page.dataoffsets, page.jpegtables  # noqa: B018 - cached while the file is open
            first = pages[0]
            colour = first.samplesperpixel >= 3 or (first.photometric == 3 and first.colormap is not None)
            self.pyramid = Pyramid(first.imagewidth, first.imagelength, colour)
        sizes = self.pyramid.levels
        self._levels = {n: _Level(page, *sizes[n]) for n, page in pages.items() if n < len(sizes)}
        self.levels = frozenset(self._levels)
        self._display, self._range = DEFAULT, (0.0, 255.0)
        if first.dtype != np.uint8:
            self._range = default_range(self._smallest())

    def read(self, level: int, left: int, top: int, width: int, height: int) -> Pixels:
        """Read a part of a level."""
        samples = self._samples(level, left, top, width, height)
        pixels = to_bytes(samples, self._display, shown=self._range)
        return np.ascontiguousarray(combine([("", None)], [pixels], {"": self._display}))

    def with_displays(self, displays: Displays) -> TiffSource:
        """Return the same image with another display."""
        return self.with_display(displays.get(self._name, DEFAULT))

    def with_display(self, display: ChannelDisplay) -> TiffSource:
        """Return the same image with another display."""
        other = copy.copy(self)
        other._display = display
        return other

    def describe(self) -> tuple[ChannelRange, ...]:
        """Describe the values."""
        return (self.describe_as(self._name, None),)

    def describe_as(self, name: str, colour: Colour | None) -> ChannelRange:
        """Describe the values as those of a channel."""
        return describe_channel(ChannelPlane(name, self._smallest(), colour), shown=self._range)

    @property
    def _name(self) -> str:
        return COLOUR if self.pyramid.colour else GREY

    def _smallest(self) -> NDArray[Any]:
        level = max(self.levels)
        return self._samples(level, 0, 0, *self.pyramid.levels[level])

    def _samples(self, level: int, left: int, top: int, width: int, height: int) -> NDArray[Any]:
        """Read a part as grey or RGB with the file's depth."""
        stored = self._levels[level]
        tile_height, tile_width = stored.page.tilelength, stored.page.tilewidth
        # A copy may be a pixel smaller than half: then its last row and column count twice.
        right = min(left + width, stored.page.imagewidth)
        bottom = min(top + height, stored.page.imagelength)
        part: NDArray[Any] | None = None
        for row in range(min(top // tile_height, stored.down - 1), -(-bottom // tile_height)):
            for column in range(min(left // tile_width, stored.across - 1), -(-right // tile_width)):
                tile = convert_samples(stored.page, self._tile(level, row, column))
                if part is None:
                    part = np.zeros((height, width, *tile.shape[2:]), tile.dtype)
                x, y = column * tile_width, row * tile_height
                x0, y0 = max(x, left), max(y, top)
                x1, y1 = min(x + tile.shape[1], right), min(y + tile.shape[0], bottom)
                if x1 > x0 and y1 > y0:
                    part[y0 - top : y1 - top, x0 - left : x1 - left] = tile[y0 - y : y1 - y, x0 - x : x1 - x]
        if part is None:
            raise InputError("cannot be read: the image is damaged or cut short", file=self._path)
        inside_y, inside_x = max(bottom - top, 1), max(right - left, 1)
        part[inside_y:] = part[inside_y - 1]
        part[:, inside_x:] = part[:, inside_x - 1 : inside_x]
        return part

    def _tile(self, level: int, row: int, column: int) -> NDArray[Any]:
        """Decode a tile to (height, width, samples), or return it from the latest tiles."""
        stored = self._levels[level]
        index = row * stored.across + column
        with self._lock:
            if (level, index) in self._kept:
                self._kept.move_to_end((level, index))
                return self._kept[level, index]
        with image_errors(self._path):
            planes = stored.page.samplesperpixel if stored.page.planarconfig == 2 else 1
            size = stored.across * stored.down
            decoded = [self._decode(stored.page, index + n * size) for n in range(planes)]
            tile: NDArray[Any] = np.concatenate(decoded, axis=-1) if planes > 1 else decoded[0]
        if tile.shape[-1] == 1:
            tile = tile[..., 0]
        with self._lock:
            self._kept[level, index] = tile
            while len(self._kept) > 1 and sum(tile.nbytes for tile in self._kept.values()) > _KEPT_BYTES:
                self._kept.popitem(last=False)
        return tile

    def _decode(self, page: Any, index: int) -> NDArray[Any]:
        offset, size = page.dataoffsets[index], page.databytecounts[index]
        # Larger data could decompress to gigabytes.
        most = 2 * page.tilewidth * page.tilelength * page.samplesperpixel * page.dtype.itemsize + (1 << 16)
        if size > most:
            raise InputError("cannot be read: the image is damaged or cut short", file=self._path)
        data = None
        if size:
            with self._path.open("rb") as file:
                file.seek(offset)
                data = file.read(size)
        tables = {"jpegtables": page.jpegtables, "jpegheader": page.jpegheader}
        decoded, _, shape = page.decode(
            data, index, **(tables if page.compression in JPEG_COMPRESSIONS else {})
        )
        tile: NDArray[Any] = (
            np.full(shape, page.nodata, page.dtype) if decoded is None else np.asarray(decoded)
        )
        return np.asarray(tile[0])


_SUFFIXES = frozenset((".svs", ".tif", ".tiff", ".ndpi", ".scn", ".mrxs", ".svslide", ".bif"))
_LONGEST = 1 << 20
_BACKGROUND = 255
"""Colour where a slide was not scanned: white, as its background."""


def is_slide(path: Path) -> bool:
    """Return whether OpenSlide is installed and recognises a file of a scanner; False for a plain TIFF."""
    if path.suffix.casefold() not in _SUFFIXES:
        return False
    try:
        import openslide
    except (ImportError, OSError):  # the package without its library raises either
        return False
    try:
        return openslide.OpenSlide.detect_format(str(path)) not in (None, "generic-tiff")
    except Exception:  # any error means that the file is not a slide
        return False


class SlideSource:
    """A slide read by OpenSlide; the file stays open.

    Raises `InputError` for a file that OpenSlide cannot read, or with more than a million pixels along a
    side.
    """

    def __init__(self, path: Path) -> None:
        import openslide

        self._path = path
        with image_errors(path):
            self._slide: Any = openslide.OpenSlide(str(path))
            width, height = self._slide.dimensions
            if not 0 < max(width, height) <= _LONGEST:
                raise InputError(f"claims {width} x {height} pixels; expected a slide", file=path)
            self.pyramid = Pyramid(width, height, colour=True)
            self._levels = self._find_levels()
        self.levels = frozenset(self._levels)
        # micrometres, if the file contains it
        self.pixel_size = self._pixel_size(openslide.PROPERTY_NAME_MPP_X)

    def read(self, level: int, left: int, top: int, width: int, height: int) -> Pixels:
        """Read a part of a level."""
        with image_errors(self._path):
            number = self._levels[level]
            factor = self._slide.level_downsamples[number]  # not exactly 2 ** level if a copy was rounded
            corner = (round(left * factor), round(top * factor))
            part = np.asarray(self._slide.read_region(corner, number, (width, height)))
        alpha = part[..., 3:].astype(np.uint16)
        if alpha.min() == 255:
            return np.ascontiguousarray(part[..., :3])
        return ((part[..., :3] * alpha + _BACKGROUND * (255 - alpha)) // 255).astype(np.uint8)

    def _pixel_size(self, name: str) -> float | None:
        try:
            size = float(self._slide.properties[name])
        except (KeyError, ValueError):
            return None
        return size if 0 < size < 1e6 else None

    def _find_levels(self) -> dict[int, int]:
        """Find the levels of the slide that are a half, a quarter, ... of it."""
        levels: dict[int, int] = {}
        for number, size in enumerate(self._slide.level_dimensions):
            for level, expected in enumerate(self.pyramid.levels):
                if all(abs(length - other) <= 1 for length, other in zip(size, expected, strict=True)):
                    levels.setdefault(level, number)
        return levels
