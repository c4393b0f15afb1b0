"""First page of a TIFF: its orientation and its reduced copies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

__all__ = ["tiff_levels", "tiff_orientation"]

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
