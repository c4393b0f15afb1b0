"""De-identified copies of the images that masks were drawn on."""

from __future__ import annotations

from pathlib import Path

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.export import make_folder
from raterscope.app.formats.masks.deidentify import Deidentifier, burned_in, deidentified
from raterscope.app.formats.masks.write_nifti import write_array
from raterscope.app.formats.volumes import load_volume
from raterscope.app.formats.volumes.dicom_headers import is_dicom, read_dataset
from raterscope.app.formats.volumes.records import VolumeFile
from raterscope.app.formats.volumes.resampling import regular_grid, why_not_regular
from raterscope.app.formats.volumes.resampling import resample as resampled
from raterscope.app.formats.volumes.voxel_files import sentences
from raterscope.app.formats.whole import drafting

__all__ = ["write_dicom_images", "write_nifti_image"]


def write_dicom_images(
    folder: Path, source: VolumeFile, by: Deidentifier, watch: Watch = silent
) -> tuple[list[Path], list[str]]:
    """Write every file of a DICOM series without what could tell the patient, numbered in slice order.

    Pixels are as they were, packed as they were.

    Returns
    -------
    files : list of Path
    warnings : list of str
        Why the pixels may tell the patient all the same, a sentence each.

    Raises
    ------
    InputError
        When a file cannot be read or written.
    """
    make_folder(folder)
    written: list[Path] = []
    doubtful: dict[str, int] = {}
    digits = max(4, len(str(len(source.files))))
    for number, path in enumerate(source.files, start=1):
        watch((number - 1) / len(source.files), f"writing image {number:,} of {len(source.files):,}")
        with sentences(path):
            dataset = read_dataset(path, pixels=True)
            why = burned_in(dataset)
            copy = deidentified(dataset, by)
        if why is not None:
            doubtful[why] = doubtful.get(why, 0) + 1
        file = folder / f"{number:0{digits}d}.dcm"
        with drafting([file]) as (draft,):
            copy.save_as(draft, enforce_file_format=True)
        written.append(file)
    many = len(source.files)
    return written, [
        f"{plain(folder.name)}: {count:,} of {many:,} images: the file {why}. Look at the pixels before you "
        "pass them on."
        for why, count in doubtful.items()
    ]


def write_nifti_image(
    path: Path, source: VolumeFile, watch: Watch = silent, *, resample: bool = False
) -> tuple[list[Path], list[str]]:
    """Write a volume's values as NIfTI, which tells nothing but values and geometry.

    Parameters
    ----------
    path : Path
    source : VolumeFile
    watch : Watch
    resample : bool
        Take uneven or tilted slices to a regular grid.

    Returns
    -------
    files : list of Path
    warnings : list of str
        See `write_dicom_images`.

    Raises
    ------
    InputError
        When the volume is in colour, NIfTI does not hold its grid, or a file cannot be read or written.
    """
    volume = load_volume(source, part(watch, 0.0, 0.8))
    if volume.values.ndim != 3:
        raise InputError("is in colour; export its masks alone, or as DICOM", file=path)
    values, grid = volume.values, volume.grid
    if reason := why_not_regular(grid):
        if not resample:
            raise InputError(f"cannot be written: {reason}. Resample to a regular grid", file=path)
        grid = regular_grid(grid)
        values = resampled(values, volume.grid, grid)
    first = source.files[0]
    why = burned_in(read_dataset(first, pixels=False)) if is_dicom(first) else None
    with drafting([path]) as (draft,):
        write_array(draft, values, grid)
    warning = f"{plain(path.name)}: the file {why}. Look at the pixels before you pass them on."
    return [path], [] if why is None else [warning]
