"""Whole slides, where OpenSlide is installed (``pip install raterscope[slides]``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from raterscope.app.errors import InputError
from raterscope.app.formats.images import image_errors
from raterscope.app.formats.pyramids.pyramid import Pixels, Pyramid

__all__ = ["SlideSource", "is_slide"]

_SUFFIXES = frozenset((".svs", ".tif", ".tiff", ".ndpi", ".scn", ".mrxs", ".svslide", ".bif"))
_LONGEST = 1 << 20
_GROUND = 255
"""White stands where a slide was not scanned, as its ground under the light is."""


def is_slide(path: Path) -> bool:
    """Tell whether OpenSlide is there and knows a file as a scanner's; a plain TIFF is none."""
    if path.suffix.casefold() not in _SUFFIXES:
        return False
    try:
        import openslide
    except (ImportError, OSError):  # the package without its library raises either
        return False
    try:
        return openslide.OpenSlide.detect_format(str(path)) not in (None, "generic-tiff")
    except Exception:  # what it says of a stranger's file is not asked here
        return False


class SlideSource:
    """A slide that OpenSlide reads; it stays open.

    Parameters
    ----------
    path : Path

    Attributes
    ----------
    pixel_size : float or None
        Micrometres, where the scanner tells.

    Raises
    ------
    InputError
        For a file that OpenSlide does not read, or of more than a million pixels along a side.
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
            self._levels = self._matching()
        self.levels = frozenset(self._levels)
        self.pixel_size = self._pixel_size(openslide.PROPERTY_NAME_MPP_X)

    def read(self, level: int, left: int, top: int, width: int, height: int) -> Pixels:
        """Read a part of a level."""
        with image_errors(self._path):
            number = self._levels[level]
            finer = self._slide.level_downsamples[number]  # where a copy was rounded, not quite 2 ** level
            place = (round(left * finer), round(top * finer))
            part = np.asarray(self._slide.read_region(place, number, (width, height)))
        alpha = part[..., 3:].astype(np.uint16)
        if alpha.min() == 255:
            return np.ascontiguousarray(part[..., :3])
        return ((part[..., :3] * alpha + _GROUND * (255 - alpha)) // 255).astype(np.uint8)

    def _pixel_size(self, name: str) -> float | None:
        try:
            size = float(self._slide.properties[name])
        except (KeyError, ValueError):
            return None
        return size if 0 < size < 1e6 else None

    def _matching(self) -> dict[int, int]:
        """Find the slide's own levels that are a half, a quarter, ... of it."""
        found: dict[int, int] = {}
        for number, size in enumerate(self._slide.level_dimensions):
            for level, ours in enumerate(self.pyramid.levels):
                if all(abs(one - other) <= 1 for one, other in zip(size, ours, strict=True)):
                    found.setdefault(level, number)
        return found
