"""Structures to be written, and what the writers of masks share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.coding import NOTHING_CODED, Coding, Colour
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.export import distinct, safe
from raterscope.app.formats.volumes.records import VolumeFile

__all__ = ["Structure", "file_names", "missing_uids", "refuse_maps", "required_source"]


@dataclass(frozen=True, eq=False)
class Structure:
    """One mask or map to be written.

    Attributes
    ----------
    name : str
    values : (Z, Y, X) bool or float32
        On the whole grid: a mask; a probability, 0 to 1; for NIfTI any map.
    colour : (red, green, blue)
        0 to 255; used where the coding has none.
    coding : Coding
        What it stands for.
    """

    name: str
    values: NDArray[np.bool_] | NDArray[np.float32]
    colour: Colour = (230, 159, 0)
    coding: Coding = NOTHING_CODED

    @property
    def title(self) -> str:
        """The name in files."""
        return self.coding.label or self.name

    @property
    def shade(self) -> Colour:
        """The colour in files."""
        return self.coding.colour or self.colour


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


def missing_uids(head: Any) -> tuple[str, str]:
    """Give the frame of reference and the study of a series; or new ones, always the same."""
    series = str(head.get("SeriesInstanceUID") or head.get("SOPInstanceUID") or "")
    made = [f"2.25.{uuid5(NAMESPACE_OID, f'{series} {what}').int}" for what in ("frame", "study")]
    return (
        str(head.get("FrameOfReferenceUID") or made[0]),
        str(head.get("StudyInstanceUID") or made[1]),
    )


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
