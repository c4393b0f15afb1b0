"""Photographs: PNG, JPEG and TIFF of 8 and 16 bit, grey and colour."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.app.errors import InputError
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
from raterscope.app.formats.tiff_levels import tiff_orientation

__all__ = ["MOST_PIXELS", "is_image", "load_image", "read_image"]

_LONGEST_DESCRIPTION = 100_000
_MICROMETRE = ("micron", "microns", "um", "µm", "μm", "\\u00B5m", "&#181;m")


def is_image(path: Path) -> bool:
    """Tell by a file's first bytes whether it is an image of a kind that is read here."""
    try:
        return bool(kind_of_file(path))
    except (OSError, InputError):
        return False


def read_image(path: Path | str) -> ImageFile:
    """Read the head of an image: its size as shown, an orientation that it asks for applied.

    Raises
    ------
    InputError
        For a file that is no PNG, JPEG or TIFF, is damaged, or claims more than 400 million pixels and is no
        pyramid.
    """
    from raterscope.app.formats.pyramids.slide_source import SlideSource, is_slide

    path = Path(path)
    pixel_size = None
    with sentences(path):
        kind = kind_of_file(path)
        if is_slide(path):
            slide, turn = SlideSource(path), 1
            (width, height), pixel_size = slide.pyramid.levels[0], slide.pixel_size
        elif kind == "TIFF":
            with tiff_page(path, LARGEST, pyramids=True) as page:
                width, height, turn = page.imagewidth, page.imagelength, tiff_orientation(page)
                pixel_size = _micrometres(page)
        else:
            with open_photograph(path, kind) as image:
                (width, height), turn = image.size, orientation(path, image)
            refuse_bomb(path, width, height, most=LARGEST)
    if turn >= 5:
        width, height = height, width
    return ImageFile(name=path.name, path=path, width=width, height=height, pixel_size=pixel_size)


def load_image(path: Path | str) -> NDArray[np.uint8]:
    """Read the pixels for showing.

    Returns
    -------
    (height, width) or (height, width, 3) uint8
        More than 8 bit are mapped so that the darkest thousandth is black and the brightest is white, the
        same for all three colours. Transparency is dropped.

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
        else:
            with open_photograph(path, kind) as image:
                refuse_bomb(path, *image.size)
                turn = orientation(path, image)
                pixels = pillow_pixels(image)
        if pixels.dtype != np.uint8:
            pixels = stretched(pixels, *contrast(pixels))
        return np.ascontiguousarray(turned(pixels, turn))


def _tiff_pixels(path: Path, page: Any) -> NDArray[Any]:
    pixels = np.asarray(page.asarray())
    axes = page.axes
    if set(axes) not in ({"Y", "X"}, {"Y", "X", "S"}):
        raise InputError(f"has the axes {axes}; expected one plane, grey or RGB", file=path)
    if "S" in axes:
        pixels = np.moveaxis(pixels, axes.index("S"), -1)
    return as_shown(page, pixels)


def _micrometres(page: Any) -> float | None:
    """Read the size of a pixel as ImageJ or OME writes it; resolutions for printers tell nothing of it."""
    text = str(page.description or "")[:_LONGEST_DESCRIPTION]
    if text.startswith("ImageJ="):
        unit = re.search(r"^unit=(.*)$", text, re.MULTILINE)
        tag = page.tags.get(282)
        if unit is None or tag is None or unit.group(1).strip() not in _MICROMETRE:
            return None
        pixels, length = tag.value
        size = length / pixels if pixels else 0.0
    else:
        found = re.search(r'<Pixels\b[^>]*\bPhysicalSizeX="([0-9.eE+-]+)"', text)
        unit = re.search(r'<Pixels\b[^>]*\bPhysicalSizeXUnit="([^"]*)"', text)
        if found is None or (unit is not None and unit.group(1) not in _MICROMETRE):
            return None
        size = float(found.group(1))
    return size if 0.0 < size < 1e6 else None
