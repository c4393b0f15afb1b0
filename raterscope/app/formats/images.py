"""Photographs: PNG, JPEG and TIFF of 8 and 16 bit, grey and colour."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from raterscope.app.errors import InputError
from raterscope.app.formats.channels import channels_of, mixed
from raterscope.app.formats.photographs import (
    LARGEST,
    MOST_PIXELS,
    as_shown,
    contrast,
    kind_of_file,
    open_photograph,
    orientation,
    pillow_pixels,
    refuse_bomb,
    sentences,
    stretched,
    tiff_page,
    turned,
)
from raterscope.app.formats.records import ImageFile
from raterscope.app.formats.signatures import IMAGES
from raterscope.app.formats.sources import File, Source, open_source
from raterscope.app.formats.tiff_levels import tiff_orientation
from raterscope.app.formats.untrusted import opened

__all__ = ["MOST_PIXELS", "ImageHead", "Pages", "is_image", "load_image", "read_image", "read_image_head"]

_LONGEST_DESCRIPTION = 100_000
_MICROMETRES = {
    "micron": 1.0, "microns": 1.0, "um": 1.0, "µm": 1.0, "μm": 1.0, "\\u00B5m": 1.0, "&#181;m": 1.0,
    "nm": 1e-3, "mm": 1e3, "cm": 1e4, "m": 1e6,
}  # fmt: skip
"""Of a unit, as ImageJ and OME call it."""

_OF_RESOLUTION = {2: 25_400.0, 3: 10_000.0}
"""Micrometres of the unit that a TIFF's resolution is told in: inch, centimetre."""

_FINER_THAN_PRINTERS = 5.0
"""Micrometres: a resolution below it is a microscope's; printers and scanners of paper have coarser ones."""


@dataclass(frozen=True)
class Pages:
    """Pages of a TIFF: slices, and their distances (slice, row, column) in mm where the file has them."""

    slices: int
    steps: tuple[float, float, float] | None = None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImageHead:
    """Header of an image.

    Attributes
    ----------
    file : ImageFile
    rows, columns : int
        As stored, before an orientation is applied.
    channels : int
    is_compressed : bool
    pages : Pages, InputError or None
        Of a TIFF; or why its pages make no volume.
    """

    file: ImageFile
    rows: int
    columns: int
    channels: int
    is_compressed: bool
    pages: Pages | InputError | None = None

    def checked_pages(self) -> Pages | None:
        """Give the pages of a TIFF, None for another format, or raise the problem."""
        if isinstance(self.pages, InputError):
            raise self.pages.with_traceback(None)
        return self.pages


def is_image(file: File) -> bool:
    """Tell by a file's first bytes whether it is an image of a kind that is read here."""
    try:
        return open_source(file).format in IMAGES
    except InputError:
        return False


def read_image(file: File) -> ImageFile:
    """Read the head of an image: its size as shown, an orientation that it asks for applied.

    Raises
    ------
    InputError
        For a file that is no PNG, JPEG or TIFF, is damaged, or claims more than 400 million pixels and is no
        pyramid.
    """
    if isinstance(file, Source):
        return file.image().file
    return read_image_head(Path(file)).file


def read_image_head(path: Path, file: BinaryIO | None = None, *, pages: bool = False) -> ImageHead:
    """Read the head of an image, from `file` if it is open already.

    Parameters
    ----------
    path : Path
    file : BinaryIO, optional
    pages : bool
        Look for slices among the pages of a TIFF, unless it is too large to be one.

    Raises
    ------
    InputError
        As `read_image`.
    """
    from raterscope.app.formats.pyramids.slide_source import SlideSource, is_slide

    pixel_size, found, channels, is_compressed = None, None, 1, True
    with sentences(path), opened(path, file) as stream:
        kind = kind_of_file(path, stream)
        if is_slide(path):
            slide, turn = SlideSource(path), 1
            (columns, rows), pixel_size, channels = slide.pyramid.levels[0], slide.pixel_size, 3
        elif kind == "TIFF":
            with tiff_page(path, LARGEST, pyramids=True, file=stream) as page:
                columns, rows, turn = page.imagewidth, page.imagelength, tiff_orientation(page)
                channels, is_compressed = int(page.samplesperpixel), int(page.compression) != 1
                pixel_size = _micrometres(page)
                if pages and columns * rows <= MOST_PIXELS:
                    found = _pages(path, page.parent)
        else:
            with open_photograph(stream, kind) as image:
                (columns, rows), turn = image.size, orientation(image)
                channels = 1 if image.mode == "P" else len(image.getbands())
            refuse_bomb(path, columns, rows, most=LARGEST)
    width, height = (rows, columns) if turn >= 5 else (columns, rows)
    image_file = ImageFile(name=path.name, path=path, width=width, height=height, pixel_size=pixel_size)
    return ImageHead(image_file, rows, columns, channels, is_compressed, found)


def _pages(path: Path, file: Any) -> Pages | InputError:
    from raterscope.app.formats.volumes.stacks import read_pages

    try:
        with sentences(path):
            return read_pages(path, file)
    except InputError as error:
        error.__cause__ = error.__context__ = None  # whose frames hold the file
        return error


def load_image(path: Path | str) -> NDArray[np.uint8]:
    """Read the pixels for showing.

    Returns
    -------
    (height, width) or (height, width, 3) uint8
        More than 8 bit are mapped so that the darkest thousandth is black and the brightest is white, the
        same for all three colours. Transparency is dropped. Channels that lie page by page are laid over one
        another in their colours, each with a contrast of its own.

    Raises
    ------
    InputError
        As `read_image`, and for more than 179 million pixels, which are shown by tiles instead
        (`raterscope.app.formats.pyramids`).
    """
    path = Path(path)
    with sentences(path):
        kind = kind_of_file(path)
        if kind == "TIFF":
            with tiff_page(path) as page:
                pixels, turn = _tiff_pixels(path, page), tiff_orientation(page)
                if channels := channels_of(page.parent):
                    pages = (page.parent.pages[one.page] for one in channels)
                    pixels = mixed([_stretched(as_shown(one, one.asarray())) for one in pages], channels)
        else:
            with open_photograph(path, kind) as image:
                refuse_bomb(path, *image.size)
                turn = orientation(image)
                pixels = pillow_pixels(image)
        return np.ascontiguousarray(turned(_stretched(pixels), turn))


def _stretched(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    return pixels if pixels.dtype == np.uint8 else stretched(pixels, *contrast(pixels))


def _tiff_pixels(path: Path, page: Any) -> NDArray[Any]:
    pixels = np.asarray(page.asarray())
    axes = page.axes
    if set(axes) not in ({"Y", "X"}, {"Y", "X", "S"}):
        raise InputError(f"has the axes {axes}; expected one plane, grey or RGB", file=path)
    if "S" in axes:
        pixels = np.moveaxis(pixels, axes.index("S"), -1)
    return as_shown(page, pixels)


def _micrometres(page: Any) -> float | None:
    """Read the size of a pixel as ImageJ or OME writes it, else by a resolution that no printer has."""
    text = str(page.description or "")[:_LONGEST_DESCRIPTION]
    resolution = page.tags.get(282)
    pixels, length = resolution.value if resolution is not None else (0, 0)
    along = length / pixels if pixels else 0.0
    if text.startswith("ImageJ="):
        unit = re.search(r"^unit=(.*)$", text, re.MULTILINE)
        size = along * _MICROMETRES.get(unit.group(1).strip(), 0.0) if unit is not None else 0.0
    elif found := re.search(r'<Pixels\b[^>]*\bPhysicalSizeX="([0-9.eE+-]+)"', text):
        unit = re.search(r'<Pixels\b[^>]*\bPhysicalSizeXUnit="([^"]*)"', text)
        size = float(found.group(1)) * (1.0 if unit is None else _MICROMETRES.get(unit.group(1), 0.0))
    else:
        told = page.tags.get(296)
        size = along * _OF_RESOLUTION.get(2 if told is None else told.value, 0.0)
        size = size if size < _FINER_THAN_PRINTERS else 0.0
    return size if 0.0 < size < 1e6 else None
