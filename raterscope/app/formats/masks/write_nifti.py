"""NIfTI: masks as a label map, maps as they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Look, no_look
from raterscope.app.formats.masks.deidentify import Deidentifier
from raterscope.app.formats.masks.structures import Structure, file_names
from raterscope.app.formats.volumes.nifti import RAS_TO_LPS
from raterscope.app.formats.volumes.records import VolumeFile
from raterscope.app.formats.whole import drafting

__all__ = ["write_array", "write_nifti"]

_SCANNER = 1
_MOST_IN_ONE = 255
_DESCRIPTION = 79
"""Bytes of the header that a description has room for."""


def write_nifti(
    path: Path,
    structures: Sequence[Structure],
    grid: Grid,
    *,
    source: VolumeFile | None = None,  # noqa: ARG001 - as every writer of masks takes it
    deidentify: Deidentifier | None = None,  # noqa: ARG001 - there is nothing to take out
    description: str = "",
) -> list[Path]:
    """Write one file of all masks, label k the k-th of them, where they do not overlap; else one file each.

    Maps get one file each. No file tells more than values and geometry, so that there is nothing to take out.
    See `export.write_masks`.
    """
    masks = [one for one in structures if one.values.dtype == np.bool_]
    maps = [one for one in structures if one.values.dtype != np.bool_]
    suffix = ".nii" if path.name.casefold().endswith(".nii") else ".nii.gz"
    labels = _labels(masks, grid)
    files: list[Path]
    arrays: list[NDArray[Any]]
    whole = path if path.name.casefold().endswith(suffix) else path.with_name(path.name + suffix)
    if not maps and labels is not None:
        files, arrays = [whole], [labels]
    elif len(structures) == 1:
        files, arrays = [whole], [maps[0].values.astype(np.float32)]
    else:
        files = file_names(path, suffix, [one.name for one in structures])
        arrays = [one.values.astype(np.float32 if one in maps else np.uint8) for one in structures]
    with drafting(files) as drafts:
        for draft, array in zip(drafts, arrays, strict=True):
            write_array(draft, array, grid, description)
    return files


def _labels(masks: Sequence[Structure], grid: Grid) -> NDArray[np.uint8] | None:
    """Make one label map of masks; None where they overlap."""
    if len(masks) > _MOST_IN_ONE:
        return None
    labels = np.zeros(grid.shape, dtype=np.uint8)
    for label, one in enumerate(masks, start=1):
        if labels[one.values].any():
            return None
        labels[one.values] = label
    return labels


def write_array(
    path: Path, values: NDArray[np.generic], grid: Grid, description: str = "", look: Look = no_look
) -> None:
    """Write (Z, Y, X) values on their grid, as they are; `look` is called before each slice."""
    import nibabel
    from nibabel.openers import ImageOpener
    from nibabel.spatialimages import HeaderDataError

    class Opener(ImageOpener):  # type: ignore[misc] # its base is imported when it is needed
        def write(self, data: bytes, /) -> int | None:
            look()
            written: int | None = super().write(data)
            return written

    affine = RAS_TO_LPS @ grid.matrix
    image = nibabel.Nifti1Image(values.T, affine)
    code = _SCANNER if grid.calibrated else 0
    image.header.set_xyzt_units("mm" if grid.calibrated else "unknown")
    image.header["descrip"] = description.encode("ascii", "replace")[:_DESCRIPTION]
    image.set_sform(affine, code=code)
    try:
        image.set_qform(affine, code=code, strip_shears=False)
    except HeaderDataError:  # a tilted stack, which only the sform can tell
        image.set_qform(None, code=0)
    with Opener(str(path), mode="wb") as stream:
        image.file_map["image"].fileobj = stream
        image.to_file_map()
