"""Masks for the next program, each file whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.export import distinct, safe
from raterscope.app.formats.mask_records import VolumeFile

__all__ = [
    "WRITERS",
    "Structure",
    "Writer",
    "drafting",
    "file_names",
    "refuse_maps",
    "required_source",
    "write_masks",
]


@dataclass(frozen=True, eq=False)
class Structure:
    """One mask or map to be written.

    Attributes
    ----------
    name : str
    values : (Z, Y, X) bool or float32
        On the whole grid: a mask; a probability, 0 to 1; for NIfTI any map.
    colour : (red, green, blue)
        0 to 255.
    """

    name: str
    values: NDArray[np.bool_] | NDArray[np.float32]
    colour: tuple[int, int, int] = (230, 159, 0)


class Writer(Protocol):
    """Writes structures on a grid into one or several files."""

    def __call__(
        self,
        path: Path,
        structures: Sequence[Structure],
        grid: Grid,
        *,
        source: VolumeFile | None = None,
        deidentify: bool = False,
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


def write_masks(
    path: Path | str,
    kind: str,
    structures: Sequence[Structure],
    grid: Grid,
    *,
    source: VolumeFile | None = None,
    deidentify: bool = False,
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
    deidentify : bool
        Leave out of a DICOM file whatever could tell the patient; the names of structures are kept.

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
    return WRITERS[kind]()(path, structures, grid, source=source, deidentify=deidentify)


def required_source(path: Path, source: VolumeFile | None, grid: Grid) -> VolumeFile:
    """Give the DICOM series that a DICOM file refers to.

    Raises
    ------
    InputError
        Where there is none, or it is on another grid.
    """
    if source is None or not source.identifier or not source.files:
        raise InputError(
            "cannot be written without the DICOM series that was marked; write NIfTI or .seg.nrrd instead",
            file=path,
        )
    if not source.grid.same_as(grid):
        raise InputError(
            f"is on a grid of {grid.in_words()}; the series has {source.grid.in_words()}", file=path
        )
    return source


def refuse_maps(path: Path, structures: Sequence[Structure], instead: str) -> None:
    """Refuse what is no mask, in a format that holds masks alone."""
    for one in structures:
        if one.values.dtype != np.bool_:
            raise InputError(
                f"{plain(one.name)} is a map, and the format holds masks alone; write {instead}", file=path
            )


def file_names(path: Path, suffix: str, names: Sequence[str]) -> list[Path]:
    """Name the files of several structures: liver_probability.nii.gz beside liver.nii.gz."""
    stem = path.name[: -len(suffix)] if path.name.casefold().endswith(suffix) else path.name
    taken: set[str] = set()
    return [path.with_name(f"{distinct(f'{stem}_{safe(name)}', taken)}{suffix}") for name in names]


@contextmanager
def drafting(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Give a draft's name for each file; all take their names when all are whole.

    Raises
    ------
    InputError
        When they cannot be written.
    """
    drafts = [path.with_name(f".{uuid4().hex[:8]}.{path.name}") for path in paths]
    try:
        yield drafts
        for draft in drafts:
            with draft.open("rb+") as file:
                os.fsync(file.fileno())
        for draft, path in zip(drafts, paths, strict=True):
            draft.replace(path)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=paths[0]) from error
    finally:
        for draft in drafts:
            if draft.exists():
                draft.unlink()
