"""Masks for the next program: the formats by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks.deidentify import Deidentifier
from raterscope.app.formats.masks.structures import Structure
from raterscope.app.formats.volumes.records import VolumeFile
from raterscope.app.formats.volumes.resampling import regular_grid, why_not_regular
from raterscope.app.formats.volumes.resampling import resample as resampled

__all__ = ["INSTEAD", "REGULAR", "WRITERS", "Writer", "write_masks"]


class Writer(Protocol):
    """Writes structures on a grid into one or several files."""

    def __call__(
        self,
        path: Path,
        structures: Sequence[Structure],
        grid: Grid,
        *,
        source: VolumeFile | None = None,
        deidentify: Deidentifier | None = None,
        description: str = "",
    ) -> list[Path]:
        """Write, and give the files."""


def _nifti() -> Writer:
    from raterscope.app.formats.masks.write_nifti import write_nifti

    return write_nifti


def _seg_nrrd() -> Writer:
    from raterscope.app.formats.masks.write_seg_nrrd import write_seg_nrrd

    return write_seg_nrrd


def _dicom_seg() -> Writer:
    from raterscope.app.formats.masks.write_dicom_seg import write_dicom_seg

    return write_dicom_seg


def _rtstruct() -> Writer:
    from raterscope.app.formats.masks.write_rtstruct import write_rtstruct

    return write_rtstruct


WRITERS: dict[str, Callable[[], Writer]] = {
    "nifti": _nifti,
    "seg.nrrd": _seg_nrrd,
    "dicom-seg": _dicom_seg,
    "rtstruct": _rtstruct,
}
"""By the format's name: a call loads the writer."""

REGULAR = ("nifti", "seg.nrrd")
"""Formats that hold slices at even distances and axes at right angles alone."""

INSTEAD = "Resample to a regular grid (--resample, or when the window asks), or write DICOM SEG or RTSTRUCT"


def write_masks(
    path: Path | str,
    kind: str,
    structures: Sequence[Structure],
    grid: Grid,
    *,
    source: VolumeFile | None = None,
    deidentify: Deidentifier | None = None,
    resample: bool = False,
    description: str = "",
) -> list[Path]:
    """Write structures in one of the formats of `WRITERS`.

    Parameters
    ----------
    path : Path
        The file; where a format needs several, their names begin with its stem.
    kind : str
    structures : sequence of Structure
        At least one, all on the grid.
    grid : Grid
    source : VolumeFile, optional
        The DICOM series that was marked, which DICOM SEG and RTSTRUCT refer to.
    deidentify : Deidentifier, optional
        Leave out of a DICOM file whatever could tell the patient.
    resample : bool
        Take structures to a regular grid where the slices are uneven or tilted and the format holds regular
        grids alone.
    description : str
        What the file is of, in ASCII; formats cut it where they have less room.

    Returns
    -------
    list of Path
        The files, which are whole.

    Raises
    ------
    InputError
        When there is nothing to write, the format cannot hold it, or a file cannot be written.
    """
    path = Path(path)
    if kind not in WRITERS:
        raise InputError(f"{plain(kind)} is no format of masks; expected one of {', '.join(WRITERS)}")
    if not structures:
        raise InputError("there is no mask to write", file=path)
    for one in structures:
        if one.values.shape != grid.shape:
            raise InputError(
                f"{plain(one.name)} has {' x '.join(map(str, one.values.shape))} voxels; the grid has"
                f" {' x '.join(map(str, grid.shape))}",
                file=path,
            )
    if kind in REGULAR and (reason := why_not_regular(grid)):
        if not resample:
            raise InputError(f"cannot be written: {reason}. {INSTEAD}", file=path)
        regular = regular_grid(grid)
        structures = [replace(one, values=resampled(one.values, grid, regular)) for one in structures]
        grid = regular
    return WRITERS[kind]()(
        path, structures, grid, source=source, deidentify=deidentify, description=description
    )
