"""Volumes and images of all formats: search in files and folders, and reading voxels."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.records import Volume, VolumeFile
from raterscope.app.formats.signatures import IMAGES, VOXELS
from raterscope.app.formats.sources import File, Source, Sources, open_source
from raterscope.app.formats.untrusted import check_shape
from raterscope.app.program_files import STUDY_SUFFIX

if TYPE_CHECKING:
    from raterscope.app.formats.volumes.voxel_files import VoxelHead

__all__ = ["find_volumes", "image_file", "load_volume", "voxel_head", "walk_files"]

MAX_FILES = 100_000
DEEPEST = 12
_DICOMDIR = "dicomdir"


def find_volumes(file: File, watch: Watch = silent, sources: Sources | None = None) -> tuple[VolumeFile, ...]:
    """Find the volumes in a file or folder, without reading their voxels.

    Raises `InputError` if there is none, with the reason.

    `file`: a file; for a DICOM series any of its files, or its DICOMDIR. A folder is searched with all its
    subfolders for DICOM series, and if there are none for other volumes. Numbered images of equal size in one
    folder are slices of one volume. `sources`: sources of other files of a DICOM series that may already be
    open. Notices of a volume describe its irregularities.
    """
    source = open_source(file)
    path = source.path
    if path.is_dir():
        return _search_folder(path, watch)
    if not path.exists():
        raise InputError("does not exist", file=path)
    scan = source.dicom()
    if scan is None:
        return (_describe_file(source),)
    from raterscope.app.formats.volumes import dicom

    if path.name.casefold() == _DICOMDIR:
        return dicom.find_series(dicom.read_dicomdir(path), path.parent, watch)
    return dicom.find_own_series(scan, sources or Sources(), watch)


def load_volume(file: VolumeFile, watch: Watch = silent) -> Volume:
    """Read a volume's voxels.

    Raises `InputError` for a file that is damaged, cut short, or has changed since it was found.
    """
    source = Source(file.files[0] if len(file.files) > 1 else file.path)
    head = voxel_head(source)
    if head is not None:
        from raterscope.app.formats.volumes.voxel_files import read_volume

        if head.grid != file.grid:
            raise InputError("has changed since it was found; open it again", file=file.path)
        volume = read_volume(head, file.frames[0] if file.frames else 0, watch)
        return replace(volume, modality=file.modality, window=file.window)
    if source.format == "DICOM" or Source(file.files[0]).format == "DICOM":
        from raterscope.app.formats.volumes.dicom import load_series

        return load_series(file, watch)
    from raterscope.app.formats.volumes.stacks import load_stack

    return load_stack(file, watch)


def voxel_head(file: File) -> VoxelHead | None:
    """Read the header of a NIfTI, NRRD or MetaImage; None for a file of another kind.

    Raises `InputError` for a file of such a format, by its name or first bytes, that cannot be read.
    """
    source = open_source(file)
    return source.voxels() if source.format in VOXELS else None


def image_file(file: File) -> VolumeFile:
    """Describe an image as a volume of one slice, or of the pages of a TIFF.

    An image has no position in a patient, but a TIFF of ImageJ or OME may contain the size of a voxel. Raises
    `InputError` for any other file, a damaged one, and one that claims more than 2^30 voxels, or 179 million
    pixels per plane.
    """
    head = open_source(file).image()
    image, pages = head.file, head.checked_pages()
    path = image.path
    shape, steps = (1, image.height, image.width), (1.0, 1.0, 1.0)
    notices: tuple[str, ...] = ()
    if image.pixel_size is not None:
        steps = (1.0, image.pixel_size * 1e-3, image.pixel_size * 1e-3)
    if pages is not None and pages.slices > 1:
        shape = (pages.slices, image.height, image.width)
        steps, notices = pages.steps or steps, pages.notices
    check_shape(path, shape)
    messages = tuple(f"{plain(path.name, 200)}: {notice}." for notice in notices)
    return VolumeFile(
        path.name,
        path,
        Grid.plain(shape, steps),
        files=(path,),
        notices=messages,
        pixel_size=image.pixel_size,
    )


def _describe_file(source: Source) -> VolumeFile:
    head = voxel_head(source)
    if head is not None:
        from raterscope.app.formats.volumes.voxel_files import describe_volume

        return describe_volume(head)
    if source.format in IMAGES:
        return image_file(source)
    raise InputError(
        "is not an image or volume of a known format; expected DICOM, NIfTI, NRRD, MetaImage, TIFF, PNG, "
        "JPEG, BMP, GIF",
        file=source.path,
    )


def _search_folder(folder: Path, watch: Watch) -> tuple[VolumeFile, ...]:
    sources = [Source(path) for path in walk_files(folder, watch)]
    scans = []
    for done, source in enumerate(sources):
        watch(0.1 + 0.7 * done / len(sources), f"reading {plain(source.path.name)}")
        scan = None if source.path.name.casefold() == _DICOMDIR else source.dicom()
        if scan is not None:
            scans.append(scan)
    if scans:
        from raterscope.app.formats.volumes import dicom

        return dicom.find_series(scans, folder, part(watch, 0.8, 1.0))
    volumes, refused = _describe_others(sources, part(watch, 0.8, 1.0))
    if not volumes:
        raise refused[0] if refused else InputError("contains no image or volume", file=folder)
    if refused:
        more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
        text = f"Skipped: {str(refused[0]).rstrip('.')}{more}."
        volumes[0] = replace(volumes[0], notices=(*volumes[0].notices, text))
    return tuple(volumes)


def walk_files(folder: Path, watch: Watch = silent) -> Iterator[Path]:
    """Yield the files of a folder and its subfolders by name, without following links."""
    count = 0
    for directory, folders, names in os.walk(folder):
        depth = len(Path(directory).relative_to(folder).parts)
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if depth < DEEPEST else []
        for name in sorted(names):
            path = Path(directory) / name
            if name.startswith(".") or path.suffix.casefold().startswith(STUDY_SUFFIX) or not path.is_file():
                continue
            count += 1
            if count > MAX_FILES:
                raise InputError(f"holds more than {MAX_FILES} files; open a smaller folder", file=folder)
            if count % 100 == 0:
                watch(0.1 * count / MAX_FILES, f"searching {plain(folder.name)}")
            yield path


def _describe_others(sources: Sequence[Source], watch: Watch) -> tuple[list[VolumeFile], list[InputError]]:
    """Describe files that are not DICOM; images that are slices of one volume are combined."""
    volumes: list[VolumeFile] = []
    refused: list[InputError] = []
    images: dict[Path, list[Source]] = {}
    for done, source in enumerate(sources):
        path = source.path
        watch(done / len(sources), f"reading {plain(path.name)}")
        try:
            if source.format in VOXELS:
                if not path.name.casefold().endswith((".img", ".img.gz")):  # described by its header file
                    volumes.append(_describe_file(source))
            elif source.format in IMAGES:
                images.setdefault(path.parent, []).append(source)
        except InputError as error:
            refused.append(error)
    for folder, files in images.items():
        try:
            stack = _find_stack(files, folder)
            volumes += [stack] if stack is not None else [_describe_file(source) for source in files]
        except InputError as error:
            refused.append(error)
    return volumes, refused


def _find_stack(sources: Sequence[Source], folder: Path) -> VolumeFile | None:
    """Combine images of equal size whose names differ only by a number to a volume; None for other images.

    Raises `InputError` for an image that cannot be read.
    """
    patterns = {re.sub(r"\d+", "#", source.path.name.casefold()) for source in sources}
    if len(sources) < 2 or len(patterns) > 1 or "#" not in next(iter(patterns)):
        return None
    ordered = sorted(
        sources, key=lambda source: [int(digits) for digits in re.findall(r"\d+", source.path.name)]
    )
    files = [image_file(source) for source in ordered]
    if any(file.grid.shape != files[0].grid.shape for file in files) or files[0].grid.shape[0] > 1:
        return None
    shape = (len(files), *files[0].grid.shape[1:])
    check_shape(folder, shape)
    text = (
        f"{plain(folder.name)}: {len(files)} numbered images of equal size are slices of a volume; open "
        f"them one by one to keep them separate."
    )
    grid = Grid.plain(shape, files[0].grid.spacing)
    return VolumeFile(
        folder.name, folder, grid, files=tuple(source.path for source in ordered), notices=(text,)
    )
