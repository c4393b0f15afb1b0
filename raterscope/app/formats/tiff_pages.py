"""Fluorescence: the channels of one plane that a TIFF keeps page by page, shown as one image in colours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Channel", "channels_of", "mixed", "tiff_levels", "tiff_orientation"]


_MOST_PAGES = 40
_LARGEST_TILE = 4096 * 4096
_LONGEST = 1 << 20
_FURTHEST = 3
"""Halvings between two copies: further apart, one tile on screen would take too many tiles of the file."""
_SMALLEST_COPY = 4096
"""Pixels along the smallest copy, from which what is smaller is made."""


def tiff_levels(page: Any) -> dict[int, Any]:
    """Find the pages that are a half, a quarter, ... of a tiled page, so that it can be shown by its tiles.

    Parameters
    ----------
    page : tifffile.TiffPage
        The first of an open file.

    Returns
    -------
    dict
        Pages by how often they are halved; 0 is `page` itself. Empty where it has to be read as a whole: it
        is not tiled, asks to be turned, or lacks copies.
    """
    if not _is_piecewise(page) or tiff_orientation(page) != 1:
        return {}
    if max(page.imagewidth, page.imagelength) > _LONGEST:
        return {}
    levels = {0: page}
    for other in _candidates(page):
        level = _halvings(page, other)
        if level is not None and level not in levels:
            levels[level] = other
    order = sorted(levels)
    if any(second - first > _FURTHEST for first, second in pairwise(order)):
        return {}
    smallest = levels[order[-1]]
    if max(smallest.imagewidth, smallest.imagelength) > _SMALLEST_COPY:
        return {}
    return levels


def tiff_orientation(page: Any) -> int:
    """Give the orientation, 1 to 8, that a page asks for."""
    tag = page.tags.get(274)
    return tag.value if tag is not None and tag.value in range(1, 9) else 1


def _candidates(page: Any) -> Iterator[Any]:
    """Give the pages in which copies may be: those below the page, as OME has them, or those after it."""
    for pages, first in ((page.pages if page.subifds else None, 0), (page.parent.pages, 1)):
        if pages is not None:
            with suppress(IndexError):  # how many there are is only known once all were looked up
                for number in range(first, _MOST_PAGES):
                    yield pages.get(number, cache=False, aspage=True)


def _halvings(page: Any, other: Any) -> int | None:
    alike = (
        _is_piecewise(other)
        and other.samplesperpixel == page.samplesperpixel
        and other.dtype == page.dtype
        and other.photometric == page.photometric
        and tiff_orientation(other) == 1
    )
    if not alike or other.imagewidth >= page.imagewidth:
        return None
    level: int = round(page.imagewidth / other.imagewidth).bit_length() - 1
    for length, small in ((page.imagewidth, other.imagewidth), (page.imagelength, other.imagelength)):
        # Whether the writer rounded down or up, at each step or once, the copy is that of this level.
        if level < 1 or not length // 2**level - 1 <= small <= -(-length // 2**level) + 1:
            return None
    return level


def _is_piecewise(page: Any) -> bool:
    if page.dtype is None or page.imagedepth != 1 or not min(page.imagewidth, page.imagelength):
        return False
    return bool(page.is_tiled) and 0 < page.tilewidth * page.tilelength <= _LARGEST_TILE


_LONGEST_DESCRIPTION = 1_000_000
_MOST = 7

_RED, _GREEN, _BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)
_CYAN, _MAGENTA, _YELLOW = (0, 255, 255), (255, 0, 255), (255, 255, 0)
_GREY = (255, 255, 255)
_TWO = (_GREEN, _MAGENTA)
"""Of two, those that people who do not tell red from green tell apart."""
_SEVERAL = (_RED, _GREEN, _BLUE, _GREY, _CYAN, _MAGENTA, _YELLOW)
"""In the order in which ImageJ gives them out."""


@dataclass(frozen=True)
class Channel:
    """A channel.

    Attributes
    ----------
    page : int
        Its place among the file's pages.
    colour : (red, green, blue)
        In which it is shown, 0 to 255.
    """

    page: int
    colour: tuple[int, int, int]


def channels_of(file: Any) -> tuple[Channel, ...]:
    """Find the channels of a file of one plane, as OME or ImageJ tells of them.

    Parameters
    ----------
    file : tifffile.TiffFile
        Open.

    Returns
    -------
    tuple of Channel
        Two or more; none where the first page is all there is, or several slices or times are there too.
    """
    first = file.pages[0]
    if first.samplesperpixel != 1 or first.photometric not in (0, 1):
        return ()
    text = str(first.description or "")[:_LONGEST_DESCRIPTION]
    found = _of_imagej(text) if text.startswith("ImageJ=") else _of_ome(text)
    if not 2 <= len(found) <= _MOST:
        return ()
    try:
        pages = [file.pages.get(one.page, cache=False, aspage=True) for one in found]
    except IndexError:
        return ()
    return found if all(_alike(page, first) for page in pages) else ()


def mixed(planes: Sequence[NDArray[np.uint8]], channels: Sequence[Channel]) -> NDArray[np.uint8]:
    """Lay channels over one another, each in its colour: their light adds up.

    Parameters
    ----------
    planes : sequence of (height, width) uint8
    channels : sequence of Channel

    Returns
    -------
    (height, width, 3) uint8
    """
    height, width = planes[0].shape
    shown = np.empty((height, width, 3), dtype=np.uint8)
    for number in range(3):
        light = np.zeros((height, width), dtype=np.uint16)
        for plane, channel in zip(planes, channels, strict=True):
            if channel.colour[number]:
                light += plane if channel.colour[number] == 255 else _dimmed(plane, channel.colour[number])
        shown[..., number] = np.minimum(light, 255)
    return shown


def _dimmed(plane: NDArray[np.uint8], share: int) -> NDArray[np.uint16]:
    return (plane.astype(np.uint16) * np.uint16(share) // 255).astype(np.uint16)


def _alike(page: Any, first: Any) -> bool:
    told = ("shape", "dtype", "photometric", "chunks", "compression")
    return all(getattr(page, name) == getattr(first, name) for name in told)


def _of_imagej(text: str) -> tuple[Channel, ...]:
    facts = dict(line.partition("=")[::2] for line in text.splitlines())
    counts = [_count(facts.get(name, "1")) for name in ("channels", "slices", "frames")]
    return _numbered(counts[0]) if counts[1:] == [1, 1] else ()


def _of_ome(text: str) -> tuple[Channel, ...]:
    pixels = re.search(r"<Pixels\b[^>]*>", text)
    if pixels is None:
        return ()
    sizes = _attributes(pixels[0])
    counts = [_count(sizes.get(f"Size{axis}", "1")) for axis in "CZT"]
    if counts[1:] != [1, 1] or counts[0] > _MOST:
        return ()
    inside = text[pixels.end() :].partition("</Pixels>")[0]
    colours = [_colour(_attributes(one)) for one in re.findall(r"<Channel\b[^>]*>", inside)]
    places = {}
    for told in map(_attributes, re.findall(r"<TiffData\b[^>]*>", inside)):
        if "IFD" in told and _count(told.get("PlaneCount", "1")) == 1:
            places[_count(told.get("FirstC", "0"))] = _count(told["IFD"])
    preset = _numbered(counts[0])
    own = [colour for colour in colours if colour is not None]
    if len(own) != len(preset) or len(set(own)) < len(own):
        own = [one.colour for one in preset]
    return tuple(
        Channel(places.get(one.page, one.page), colour) for one, colour in zip(preset, own, strict=True)
    )


def _numbered(count: int) -> tuple[Channel, ...]:
    if not 2 <= count <= _MOST:
        return ()
    colours = _TWO if count == 2 else _SEVERAL
    return tuple(Channel(number, colours[number]) for number in range(count))


def _attributes(element: str) -> Mapping[str, str]:
    return dict(re.findall(r'\b(\w+)="([^"]*)"', element))


def _colour(told: Mapping[str, str]) -> tuple[int, int, int] | None:
    """Give the colour that OME writes as a signed number of red, green, blue and alpha; none for black."""
    try:
        number = int(told["Color"]) & 0xFFFFFFFF
    except (KeyError, ValueError):
        return None
    colour = number >> 24, number >> 16 & 255, number >> 8 & 255
    return colour if any(colour) else None


def _count(text: str) -> int:
    return int(text) if text.strip().isdecimal() and len(text) < 10 else -1
