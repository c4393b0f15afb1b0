"""Records of the volume and mask readers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.coding import NOTHING_CODED, Coding

__all__ = ["MaskTable", "RaterMask", "Volume", "VolumeFile"]


@dataclass(frozen=True)
class VolumeFile:
    """An image or volume on disk, its voxels not yet read.

    Attributes
    ----------
    name : str
        For people, without the patient's: the file's name, or the series' description and number.
    path : Path
        The file, or the folder of a DICOM series.
    grid : Grid
    modality : str
        As DICOM calls it: "CT", "MR"; empty where nothing tells.
    files : tuple of Path
        All files that hold voxels, in the order of the slices; one for a file that holds all.
    frames : tuple of int
        Of a file with several images: those that are the slices, in their order.
    identifier : str
        The series' UID, which contours refer to; empty where there is none.
    instances : tuple of str
        The UID of each slice; empty where there are none.
    window : (centre, width), optional
        How the file wants its values shown.
    notices : tuple of str
        What the person should know of how the file was read, a sentence each: gaps, tilt, a mixed folder.
    """

    name: str
    path: Path
    grid: Grid
    modality: str = ""
    files: tuple[Path, ...] = ()
    frames: tuple[int, ...] = ()
    identifier: str = ""
    instances: tuple[str, ...] = ()
    window: tuple[float, float] | None = None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Volume:
    """The voxels of a volume.

    Attributes
    ----------
    values : (Z, Y, X) uint8, int16, uint16 or float32; or (Z, Y, X, 3) uint8 for colour
        Rescaled as the file says: Hounsfield units for CT.
    grid : Grid
    modality : str
    window : (centre, width), optional
    """

    values: NDArray[np.generic]
    grid: Grid
    modality: str = ""
    window: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class RaterMask:
    """What one annotator marked as one structure on one image.

    Attributes
    ----------
    annotator : str or None
        None where the file does not say who.
    item : str or None
        The image's name or the series' UID, where the file says which.
    structure : str
        Empty where the file does not name it.
    grid : Grid
        The whole image's.
    origin : (slice, row, column)
        The first voxel of `values` in the grid.
    values : (Z, Y, X) bool or float32
        A mask, or probabilities 0 to 1, cropped to what is not 0; of no voxels where nothing was marked.
    coding : Coding
        What the file says that the structure stands for.
    """

    annotator: str | None
    item: str | None
    structure: str
    grid: Grid
    origin: tuple[int, int, int]
    values: NDArray[np.bool_] | NDArray[np.float32]
    coding: Coding = NOTHING_CODED

    def whole(self) -> NDArray[np.bool_] | NDArray[np.float32]:
        """Give the mask on the whole grid."""
        part = tuple(slice(at, at + n) for at, n in zip(self.origin, self.values.shape, strict=True))
        if self.values.dtype == np.bool_:
            mask = np.zeros(self.grid.shape, dtype=np.bool_)
            mask[part] = self.values
            return mask
        probability = np.zeros(self.grid.shape, dtype=np.float32)
        probability[part] = self.values
        return probability


@dataclass(frozen=True, eq=False)
class MaskTable:
    """The masks of one file.

    Attributes
    ----------
    path : Path
    masks : tuple of RaterMask
    notices : tuple of str
        What the person should know of how the file was read, a sentence each.
    """

    path: Path
    masks: tuple[RaterMask, ...]
    notices: tuple[str, ...] = ()
