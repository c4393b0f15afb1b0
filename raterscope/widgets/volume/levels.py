"""Window and level of grey values: presets and automatic choice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["PRESETS", "Levels", "Preset", "Window", "automatic_window", "in_words", "looks_like_ct"]

Window = tuple[float, float]

_SAMPLES = 60_000
_SMALLEST_WIDTH = 1e-6

_AIR, _AIR_SHARE = -500.0, 0.02
"""Hounsfield units below which there is air or lung, and the least share of a CT that such voxels have."""


@dataclass(frozen=True)
class Preset:
    """A window that is customary for a kind of tissue in CT.

    Attributes
    ----------
    name, words : str
    centre, width : float
        Hounsfield units.
    """

    name: str
    words: str
    centre: float
    width: float


PRESETS = (
    Preset("lung", "lung", -600.0, 1500.0),
    Preset("soft", "soft tissue", 40.0, 400.0),
    Preset("bone", "bone", 300.0, 1500.0),
    Preset("brain", "brain", 40.0, 80.0),
)


class Levels:
    """Turns slices of one kind of number into bytes by a window.

    Integers of 16 bits go through a table of all 65,536 values: arithmetic on each voxel would take longer.

    Parameters
    ----------
    centre, width : float
        Values up to centre - width / 2 are black, from centre + width / 2 on white.
    """

    def __init__(self, centre: float, width: float) -> None:
        self.centre = float(centre)
        self.width = max(float(width), _SMALLEST_WIDTH)
        self._tables: dict[np.dtype, NDArray[np.uint8]] = {}

    def to_bytes(self, part: NDArray[np.generic]) -> NDArray[np.uint8]:
        """Turn a slice into bytes of the same shape; colours (H, W, 3) pass as they are."""
        if part.ndim == 3:
            return np.ascontiguousarray(part, dtype=np.uint8)
        if part.dtype in (np.int16, np.uint16):
            return np.take(self._table(part.dtype), np.ascontiguousarray(part).view(np.uint16))
        if part.dtype == np.uint8:
            return np.take(self._table(part.dtype), part.view(np.uint8))
        return self._windowed(np.asarray(part, dtype=np.float32))

    def _table(self, kind: np.dtype) -> NDArray[np.uint8]:
        if kind not in self._tables:
            count = 256 if kind == np.uint8 else 65_536
            # Negative values of int16 are found at the place that their bits spell as uint16.
            every = np.arange(count, dtype=np.uint8 if kind == np.uint8 else np.uint16).view(kind)
            self._tables[kind] = self._windowed(every.astype(np.float32))
        return self._tables[kind]

    def _windowed(self, values: NDArray[np.float32]) -> NDArray[np.uint8]:
        share = (values - np.float32(self.centre - self.width / 2)) * np.float32(255.0 / self.width)
        np.nan_to_num(share, copy=False, nan=0.0)
        return np.clip(share + 0.5, 0, 255, out=share).astype(np.uint8)


def automatic_window(values: NDArray[np.generic]) -> Window:
    """Return (centre, width) from the 1st to the 99.5th percentile of the values above the lowest.

    The lowest value is left out because the air about a patient, or the padding about a scan, is often most
    of it. About 60,000 voxels are looked at.
    """
    some = _some(values)
    inside = some[some > some.min()] if len(some) else some
    if not len(inside):
        return (float(some[0]) if len(some) else 0.0), 1.0
    low, high = np.percentile(inside, (1.0, 99.5))
    return float((low + high) / 2), float(max(high - low, abs(high) * 1e-3, _SMALLEST_WIDTH))


def looks_like_ct(values: NDArray[np.generic]) -> bool:
    """Tell whether values may be Hounsfield units, where no modality says so: air is at -1000 of them."""
    some = _some(values)
    return len(some) > 0 and bool(np.count_nonzero(some < _AIR) >= _AIR_SHARE * len(some))


def _some(values: NDArray[np.generic]) -> NDArray[np.float64]:
    every = max(1, round((values.size / _SAMPLES) ** (1 / values.ndim)))
    some = np.asarray(values[(slice(None, None, every),) * values.ndim], dtype=np.float64).ravel()
    return some[np.isfinite(some)]


def in_words(centre: float, width: float) -> str:
    """Write a window: "W 400 L 40", with the digits that its width needs."""
    digits = max(0, min(4, 1 - int(np.floor(np.log10(max(width, 1e-9))))))
    return f"W {width:.{digits}f} L {centre + 0.0:.{digits}f}"
