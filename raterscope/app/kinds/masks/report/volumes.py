"""The voxels behind a case's masks, and the window in which they are shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import BoolArray
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.volumes.records import Volume
from raterscope.app.study import ImageEntry, Study
from raterscope.widgets.volume.levels import PRESETS, Window, automatic_window, in_words

__all__ = ["Voxels", "read_voxels", "window_of"]

_AIRY, _HARD = -350.0, 250.0
"""Hounsfield units: below the one about a structure it lies in the lung, above the other within, in bone."""


@dataclass(frozen=True, eq=False)
class Voxels:
    """An image's voxels.

    Attributes
    ----------
    volume : Volume or None
    why : str
        Why there are none, in a sentence; else empty.
    notices : tuple of str
        What is odd about the file: slices that are missing, tilted or not evenly spaced.
    """

    volume: Volume | None
    why: str = ""
    notices: tuple[str, ...] = ()


def read_voxels(study: Study, entry: ImageEntry, watch: Watch = silent) -> Voxels:
    """Read an image's voxels, or say why there are none to show."""
    from raterscope.app.formats.volumes import find_volumes, load_volume

    if entry.path is None:
        return Voxels(None, "The study holds the masks alone; outlines are drawn on an empty ground.")
    place = study.locate(entry)
    if place is None:
        return Voxels(None, "The image's file is not at hand; outlines are drawn on an empty ground.")
    try:
        found = find_volumes(place, part(watch, 0.0, 0.2))
        if entry.identifier:
            found = tuple(one for one in found if one.identifier == entry.identifier)
        alike = [one for one in found if one.grid.same_as(entry.lattice)]
        if not alike:
            return Voxels(
                None, "The image's file has another geometry than it had; outlines are drawn without it."
            )
        return Voxels(load_volume(alike[0], part(watch, 0.2, 1.0)), notices=alike[0].notices)
    except (InputError, MemoryError):
        return Voxels(None, "The image's file cannot be read; outlines are drawn on an empty ground.")


def window_of(
    volume: Volume, modality: str, inside: BoolArray, origin: tuple[int, int, int]
) -> tuple[Window, str]:
    """Choose (centre, width) for a structure, and say it: "W 1500 L -600, lung".

    For CT that of lung or bone where the structure lies in it; else that of the file, else for CT that of
    soft tissue, else one that covers the values.

    Parameters
    ----------
    volume : Volume
    modality : str
        As DICOM calls it.
    inside : (Z, Y, X) bool
        The structure in its box, with some room about it.
    origin : (slice, row, column)
        Of that box in the volume.
    """
    if modality == "CT" and volume.values.ndim == 3:
        preset = _preset(volume.values, inside, origin)
        if preset == "soft" and volume.window is not None:
            return volume.window, in_words(*volume.window)
        chosen = next(one for one in PRESETS if one.name == preset)
        window = (chosen.centre, chosen.width)
        return window, f"{in_words(*window)}, {chosen.words}"
    if volume.values.ndim == 4 or volume.values.dtype == np.uint8:
        return (127.5, 255.0), ""
    window = volume.window or automatic_window(volume.values)
    return window, in_words(*window)


def _preset(values: NDArray[np.generic], inside: BoolArray, origin: tuple[int, int, int]) -> str:
    crop = tuple(slice(at, at + n) for at, n in zip(origin, inside.shape, strict=True))
    here = np.asarray(values[crop], dtype=np.float64)
    if inside.any() and np.median(here[inside]) > _HARD:
        return "bone"
    return "lung" if (~inside).any() and np.median(here[~inside]) < _AIRY else "soft"
