"""Volumes and images of any format: what a file or a folder holds, and its voxels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.records import STUDY_SUFFIX, Volume, VolumeFile
from raterscope.app.formats.sources import IMAGES, VOXELS, File, Format, Source, Sources, open_source

if TYPE_CHECKING:
    from raterscope.app.formats.volumes.voxel_files import VoxelHead

__all__ = ["find_volumes", "load_volume", "read_voxel_head", "voxel_head", "walked"]

MOST_FILES = 100_000
DEEPEST = 12
_DICOMDIR = "dicomdir"


def find_volumes(file: File, watch: Watch = silent, sources: Sources | None = None) -> tuple[VolumeFile, ...]:
    """Find the volumes in a file or folder, without reading their voxels.

    Parameters
    ----------
    file : Path or Source
        A file; of a DICOM series any one, or its DICOMDIR. A folder is searched with all folders in it: for
        DICOM series, and where there are none for other volumes; numbered images of one size in one folder
        are the slices of one.
    watch : Watch
    sources : Sources, optional
        Where the other files of a DICOM series may be open already.

    Returns
    -------
    tuple of VolumeFile
        At least one. What is odd about a volume is in its notices.

    Raises
    ------
    InputError
        When there is none, in a sentence that says why.
    """
    source = open_source(file)
    path = source.path
    if path.is_dir():
        return _in_folder(path, watch)
    if not path.exists():
        raise InputError("is not there", file=path)
    scan = source.dicom()
    if scan is None:
        return (_single(source),)
    from raterscope.app.formats.volumes import dicom

    if path.name.casefold() == _DICOMDIR:
        return dicom.series_in(dicom.listed(path), path.parent, watch)
    return dicom.series_of(scan, sources or Sources(), watch)


def load_volume(file: VolumeFile, watch: Watch = silent) -> Volume:
    """Read a volume's voxels.

    Raises
    ------
    InputError
        For a file that is damaged, cut short, or has changed since it was found.
    """
    source = Source(file.files[0] if len(file.files) > 1 else file.path)
    head = voxel_head(source)
    if head is not None:
        from raterscope.app.formats.volumes.voxel_files import read_volume

        if head.grid != file.grid:
            raise InputError("has changed since it was looked at; open it again", file=file.path)
        volume = read_volume(head, file.frames[0] if file.frames else 0, watch)
        return replace(volume, modality=file.modality, window=file.window)
    if source.format == "DICOM" or Source(file.files[0]).format == "DICOM":
        from raterscope.app.formats.volumes.dicom import load_series

        return load_series(file, watch)
    from raterscope.app.formats.volumes.stacks import load_stack

    return load_stack(file, watch)


def voxel_head(file: File) -> VoxelHead | None:
    """Read the header of a NIfTI, NRRD or MetaImage; None for a file of another kind.

    Raises
    ------
    InputError
        For a file that is of such a kind by its name or first bytes, and cannot be read.
    """
    source = open_source(file)
    return source.voxels() if source.format in VOXELS else None


def read_voxel_head(path: Path, format_name: Format, file: BinaryIO | None = None) -> VoxelHead:
    """Read the header of a file of one of the formats of voxels; NIfTI where it is not known which.

    Raises
    ------
    InputError
    """
    from raterscope.app.formats.volumes import metaimage, nifti, nrrd_files

    readers = {"NRRD": nrrd_files.read_head, "MetaImage": metaimage.read_head}
    return readers.get(format_name, nifti.read_head)(path, file)


def _single(source: Source) -> VolumeFile:
    head = voxel_head(source)
    if head is not None:
        from raterscope.app.formats.volumes.voxel_files import as_file

        return as_file(head)
    from raterscope.app.formats.volumes.stacks import image_file

    if source.format in IMAGES:
        return image_file(source)
    raise InputError(
        "is no image or volume that Raterscope reads; expected DICOM, NIfTI, NRRD, MetaImage, TIFF, PNG, "
        "JPEG",
        file=source.path,
    )


def _in_folder(folder: Path, watch: Watch) -> tuple[VolumeFile, ...]:
    sources = [Source(path) for path in walked(folder, watch)]
    scans = []
    for done, source in enumerate(sources):
        watch(0.1 + 0.7 * done / len(sources), f"looking at {plain(source.path.name)}")
        scan = None if source.path.name.casefold() == _DICOMDIR else source.dicom()
        if scan is not None:
            scans.append(scan)
    if scans:
        from raterscope.app.formats.volumes import dicom

        return dicom.series_in(scans, folder, part(watch, 0.8, 1.0))
    found, refused = _others(sources, part(watch, 0.8, 1.0))
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


def _others(sources: Sequence[Source], watch: Watch) -> tuple[list[VolumeFile], list[InputError]]:
    """Describe files that are no DICOM; images that are slices of one volume together."""
    from raterscope.app.formats.volumes.stacks import stack_of

    found: list[VolumeFile] = []
    refused: list[InputError] = []
    images: dict[Path, list[Source]] = {}
    for done, source in enumerate(sources):
        path = source.path
        watch(done / len(sources), f"looking at {plain(path.name)}")
        try:
            if source.format in VOXELS:
                if not path.name.casefold().endswith((".img", ".img.gz")):  # its header is looked at
                    found.append(_single(source))
            elif source.format in IMAGES:
                images.setdefault(path.parent, []).append(source)
        except InputError as error:
            refused.append(error)
    for folder, files in images.items():
        try:
            stack = stack_of(files, folder)
            found += [stack] if stack is not None else [_single(source) for source in files]
        except InputError as error:
            refused.append(error)
    return found, refused
