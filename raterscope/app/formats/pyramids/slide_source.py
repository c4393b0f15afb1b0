"""Whole slides, read with OpenSlide if it is installed (``pip install raterscope[slides]``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from raterscope.app.errors import InputError
from raterscope.app.formats.images import image_errors
from raterscope.app.formats.pyramids.pyramid import Pixels, Pyramid

_SUFFIXES = frozenset((".svs", ".tif", ".tiff", ".ndpi", ".scn", ".mrxs", ".svslide", ".bif"))
_LONGEST = 1 << 20
_BACKGROUND = 255
"""White, as the slide's background, where a slide was not scanned."""


def is_slide(path: Path) -> bool:
    """Return whether OpenSlide is installed and recognises a file of a scanner; false for a plain TIFF."""
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
