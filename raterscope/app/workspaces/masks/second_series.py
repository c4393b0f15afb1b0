"""A second series over the case, such as PET over CT: found by its position, resampled to the case's grid."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Watch, part
from raterscope.app.errors import plain
from raterscope.app.formats.volumes.resampling import resample
from raterscope.app.study import ImageEntry
from raterscope.app.workspaces.masks.scene import load_pixels
from raterscope.widgets.volume.scene import HeatMap

SHARED = 0.3
"""Least share of the smaller volume's extent that two series of one patient have in common."""
_BRIGHTEST = 99.8


def find_series(images: Sequence[ImageEntry], case: ImageEntry) -> list[ImageEntry]:
    """Find the other volumes of the study that lie at the position of a case."""
    return [
        image
        for image in images
        if image.id != case.id
        and image.grid is not None
        and case.grid is not None
        and shared_extent(image.grid, case.grid) >= SHARED
    ]


def shared_extent(first: Grid, second: Grid) -> float:
    """Return the share of the smaller volume's box, along the patient's axes, that both have in common."""
    if not (first.calibrated and second.calibrated) or first.flat or second.flat:
        return 0.0
    (low, high), (other_low, other_high) = _box(first), _box(second)
    shared = np.minimum(high, other_high) - np.maximum(low, other_low)
    smaller = min(np.prod(high - low), np.prod(other_high - other_low))
    return float(np.prod(np.maximum(shared, 0.0)) / smaller)


def _box(grid: Grid) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    ends = [(-0.5, size - 0.5) for size in grid.shape]
    corners = grid.to_patient(np.array(list(product(*ends))))
    return corners.min(axis=0), corners.max(axis=0)


def read_series(entry: ImageEntry, path: Path, grid: Grid, watch: Watch) -> HeatMap:
    """Read a series and resample it to a grid, as a map from 0 to its brightest values.

    Values below 0 are shown as 0.
    """
    volume = load_pixels(entry, path, part(watch, 0.0, 0.5)).volume
    values = volume.values if volume.values.ndim == 3 else volume.values.mean(axis=-1)
    watch(0.5, "resampling")
    positive = np.maximum(np.nan_to_num(values.astype(np.float32)), 0.0)
    sample = positive.ravel()[:: max(1, positive.size // 200_000)]
    high = float(np.percentile(sample[sample > 0], _BRIGHTEST)) if (sample > 0).any() else 1.0
    shown = np.rint(np.minimum(positive / high, 1.0) * 255).astype(np.uint8)
    resampled = resample(shown, volume.grid, grid)
    words = " ".join(dict.fromkeys(part for part in (entry.modality, plain(entry.name)) if part))
    return HeatMap(resampled, (0, 0, 0), 0.0, high, "doubt", words, high / 255)
