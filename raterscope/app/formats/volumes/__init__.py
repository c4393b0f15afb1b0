"""Volumes and images of any format: what a file or a folder holds, and its voxels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.records import STUDY_SUFFIX, refuse_special
from raterscope.app.formats.volumes.records import Volume, VolumeFile

if TYPE_CHECKING:
    from raterscope.app.formats.volumes.voxel_files import VoxelHead

__all__ = ["find_volumes", "load_volume", "voxel_head", "walked"]

MOST_FILES = 100_000
DEEPEST = 12
_VOXELS = {
    "nifti": (".nii", ".nii.gz", ".hdr", ".hdr.gz", ".img", ".img.gz"),
    "nrrd": (".nrrd", ".nhdr"),
    "metaimage": (".mha", ".mhd"),
}
_STARTS = {"nrrd": b"NRRD000", "metaimage": b"ObjectType"}
_DICOMDIR = "dicomdir"


def find_volumes(path: Path | str, watch: Watch = silent) -> tuple[VolumeFile, ...]:
    """Tell which volumes a file or folder holds, without reading their voxels.

    Parameters
    ----------
    path : Path
        A file; of a DICOM series any one, or its DICOMDIR. A folder is searched with all folders in it: for
        DICOM series, and where there are none for other volumes; numbered images of one size in one folder
        are the slices of one.
    watch : Watch

    Returns
    -------
    tuple of VolumeFile
        At least one. What is odd about a volume is in its notices.

    Raises
    ------
    InputError
        When there is none, in a sentence that says why.
    """
    path = Path(path)
    if path.is_dir():
        return _in_folder(path, watch)
    refuse_special(path)
    if not path.exists():
        raise InputError("is not there", file=path)
    from raterscope.app.formats.volumes import dicom, dicom_headers

    if dicom_headers.is_dicom(path):
        if path.name.casefold() == _DICOMDIR:
            return dicom.series_in(dicom.listed(path), path.parent, watch)
        return dicom.series_of(path, watch)
    return (_single(path),)


def load_volume(file: VolumeFile, watch: Watch = silent) -> Volume:
    """Read a volume's voxels.

    Raises
    ------
    InputError
        For a file that is damaged, cut short, or has changed since it was found.
    """
    first = file.files[0]
    head = voxel_head(first if len(file.files) > 1 else file.path)
    if head is not None:
        from raterscope.app.formats.volumes.voxel_files import read_volume

        if head.grid != file.grid:
            raise InputError("has changed since it was looked at; open it again", file=file.path)
        volume = read_volume(head, file.frames[0] if file.frames else 0, watch)
        return replace(volume, modality=file.modality, window=file.window)
    from raterscope.app.formats.volumes import dicom_headers

    if dicom_headers.is_dicom(first):
        from raterscope.app.formats.volumes.dicom_pixels import load_series

        return load_series(file, watch)
    from raterscope.app.formats.volumes.stacks import load_stack

    return load_stack(file, watch)


def voxel_head(path: Path) -> VoxelHead | None:
    """Read the header of a NIfTI, NRRD or MetaImage; None for a file of another kind.

    Raises
    ------
    InputError
        For a file that is of such a kind by its name or first bytes, and cannot be read.
    """
    from raterscope.app.formats.volumes import metaimage, nifti, nrrd_files

    name = _format(path)
    readers = {"nifti": nifti.read_head, "nrrd": nrrd_files.read_head, "metaimage": metaimage.read_head}
    return None if name is None else readers[name](path)


def _format(path: Path) -> str | None:
    refuse_special(path)
    name = path.name.casefold()
    for kind, endings in _VOXELS.items():
        if name.endswith(endings):
            return kind
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except OSError:
        return None
    return next((kind for kind, word in _STARTS.items() if start.startswith(word)), None)


def _single(path: Path) -> VolumeFile:
    head = voxel_head(path)
    if head is not None:
        from raterscope.app.formats.volumes.voxel_files import as_file

        return as_file(head)
    from raterscope.app.formats.images import is_image
    from raterscope.app.formats.volumes.stacks import image_file

    if is_image(path):
        return image_file(path)
    raise InputError(
        "is no image or volume that Raterscope reads; expected DICOM, NIfTI, NRRD, MetaImage, TIFF, PNG, "
        "JPEG",
        file=path,
    )


def _in_folder(folder: Path, watch: Watch) -> tuple[VolumeFile, ...]:
    from raterscope.app.formats.volumes import dicom, dicom_headers

    files = tuple(walked(folder, watch))
    scans = []
    for done, path in enumerate(files):
        watch(0.1 + 0.7 * done / len(files), f"looking at {plain(path.name)}")
        scan = None if path.name.casefold() == _DICOMDIR else dicom_headers.read_dicom(path)
        if scan is not None:
            scans.append(scan)
    if scans:
        return dicom.series_in(scans, folder, part(watch, 0.8, 1.0))
    found, refused = _others(files, part(watch, 0.8, 1.0))
    if not found:
        raise refused[0] if refused else InputError("holds no image or volume", file=folder)
    if refused:
        more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
        words = f"Left out is {str(refused[0]).rstrip('.')}{more}."
        found[0] = replace(found[0], notices=(*found[0].notices, words))
    return tuple(found)


def walked(folder: Path, watch: Watch) -> Iterator[Path]:
    """Go through the files of a folder and of those in it by name, links not followed."""
    count = 0
    for place, folders, names in os.walk(folder):
        depth = len(Path(place).relative_to(folder).parts)
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if depth < DEEPEST else []
        for name in sorted(names):
            path = Path(place) / name
            if name.startswith(".") or path.suffix.casefold() == STUDY_SUFFIX or not path.is_file():
                continue
            count += 1
            if count > MOST_FILES:
                raise InputError(f"holds more than {MOST_FILES} files; open a smaller folder", file=folder)
            if count % 100 == 0:
                watch(0.1 * count / MOST_FILES, f"looking through {plain(folder.name)}")
            yield path


def _others(files: Sequence[Path], watch: Watch) -> tuple[list[VolumeFile], list[InputError]]:
    """Describe files that are no DICOM; images that are slices of one volume together."""
    from raterscope.app.formats.images import is_image
    from raterscope.app.formats.volumes.stacks import stack_of

    found: list[VolumeFile] = []
    refused: list[InputError] = []
    images: dict[Path, list[Path]] = {}
    for done, path in enumerate(files):
        watch(done / len(files), f"looking at {plain(path.name)}")
        try:
            if _format(path) is not None:
                if not path.name.casefold().endswith((".img", ".img.gz")):  # its header is looked at
                    found.append(_single(path))
            elif is_image(path):
                images.setdefault(path.parent, []).append(path)
        except InputError as error:
            refused.append(error)
    for folder, paths in images.items():
        try:
            stack = stack_of(paths, folder)
            found += [stack] if stack is not None else [_single(path) for path in paths]
        except InputError as error:
            refused.append(error)
    return found, refused
