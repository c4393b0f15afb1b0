"""Readers and writers of masks, one module per format. `read_masks` detects the format and reads the file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.masks.naming import NO_NAMES, NameParts, parse_path, strip_suffixes
from raterscope.app.formats.records import MaskTable, RaterMask, VolumeFile
from raterscope.app.formats.sources import File, Source, may_hold_annotations, open_source

__all__ = ["holds_masks", "read_masks"]

_SEGMENTATIONS = {"1.2.840.10008.5.1.4.1.1.66.4", "1.2.840.10008.5.1.4.1.1.66.7"}
_STRUCTURES = "1.2.840.10008.5.1.4.1.1.481.3"


def holds_masks(file: File, watch: Watch = silent, *, check: bool = False) -> bool | None:
    """Detect whether a file contains masks; None if it could also be an image or volume.

    If the result is None, the user must decide. It is False for a folder, and for a file that cannot be read.
    `watch`: called while voxels are read. `check`: raise the `InputError` of a file that cannot be read.
    """
    source = open_source(file)
    try:
        return _holds_masks(source, watch) if source.path.is_file() else False
    except InputError:
        if check:
            raise
        return False


def _holds_masks(source: Source, watch: Watch) -> bool | None:
    kind = _kind(source)
    if kind == "annotations":
        return source.contents("masks") is not None
    if kind == "label map":
        return _holds_label_map(source, watch)
    return kind is not None


def _holds_label_map(source: Source, watch: Watch) -> bool | None:
    """Return whether a file holds masks, by its values; None if it could also be an image."""
    from raterscope.app.formats.masks.label_maps import LARGEST_CHECKED, is_plain_image

    if not is_plain_image(source.path):
        head = source.voxels()
        if head.colours:
            return False
        if math.prod(head.lengths) > LARGEST_CHECKED:
            return None
    holds = source.label_map(watch).looks_marked()
    if holds is False:
        source.release()
    return holds


_Kind = Literal["annotations", "segments", "label map", "segmentation", "structures"]


def _kind(source: Source) -> _Kind | None:
    """Find the kind of masks in a file; None if it holds none."""
    from raterscope.app.formats.masks.label_maps import is_plain_image, is_voxel_file

    name = source.path.name.casefold()
    if may_hold_annotations(source.path):
        return "annotations"
    if name.endswith((".nrrd", ".nhdr")):
        from raterscope.app.formats.masks.seg_nrrd import has_segments

        if has_segments(source.voxels()):
            return "segments"
    if is_voxel_file(source.path) or is_plain_image(source.path):
        return "label map"
    file = source.dicom()
    if file is not None and file.sop_class in _SEGMENTATIONS:
        return "segmentation"
    return "structures" if file is not None and file.sop_class == _STRUCTURES else None


def read_masks(
    file: File,
    volumes: Sequence[VolumeFile] = (),
    *,
    naming: str | None = None,
    annotator: str | None = None,
    structure: str | None = None,
    watch: Watch = silent,
) -> MaskTable:
    """Read the masks of a file, whose format is detected from its content.

    Raises `InputError` if the file cannot be read; the message contains file, line and field.

    `volumes`: the available images. Contours need the series on which they were drawn. A mask without a
    position gets that of the image with the same name and shape, or of the only image.
    `naming`: pattern of file names, as in "{item}_{annotator}_{structure}"; see `naming.parse_name`.
    `annotator`, `structure`: given by the user; the annotator overrides the file's, the structure names masks
    without a name.
    """
    source = open_source(file)
    path = source.path
    volumes = tuple(volumes)
    names = _names(path, naming, annotator, structure)
    table = _read(source, volumes, names, naming, watch)
    masks = table.masks
    if annotator is not None:
        masks = tuple(replace(mask, annotator=annotator) for mask in masks)
    if structure is not None:
        masks = tuple(replace(mask, structure=mask.structure or structure) for mask in masks)
    return replace(table, masks=tuple(_set_position(mask, volumes) for mask in masks))


def _names(path: Path, naming: str | None, annotator: str | None, structure: str | None) -> NameParts:
    names = (parse_path(path, naming) if naming is not None else None) or NO_NAMES
    return NameParts(names.item, annotator or names.annotator, structure or names.structure)


def _set_position(mask: RaterMask, volumes: tuple[VolumeFile, ...]) -> RaterMask:
    """Give a mask without a position that of its image: the image with the same name, or the only image."""
    if mask.grid.calibrated:
        return mask
    same_shape = [volume for volume in volumes if volume.grid.shape == mask.grid.shape]
    named = [
        volume
        for volume in same_shape
        if mask.item and strip_suffixes(Path(volume.name)) == strip_suffixes(Path(mask.item))
    ]
    matching = named if named or len(volumes) > 1 else same_shape
    return replace(mask, grid=matching[0].grid) if len(matching) == 1 else mask


def _read(
    source: Source, volumes: tuple[VolumeFile, ...], names: NameParts, naming: str | None, watch: Watch
) -> MaskTable:
    path, kind = source.path, _kind(source)
    if kind == "annotations":
        return _read_annotations(source, volumes, names, watch)
    if kind == "segments":
        from raterscope.app.formats.masks.seg_nrrd import read_seg_nrrd

        return read_seg_nrrd(source.voxels(), names, watch)
    if kind == "label map":
        from raterscope.app.formats.masks.label_maps import read_label_map

        label_map = source.label_map(part(watch, 0.0, 0.7))
        return read_label_map(path, label_map, names, part(watch, 0.7, 1.0))
    if kind == "segmentation":
        from raterscope.app.formats.masks.dicom_seg import read_dicom_seg

        return read_dicom_seg(path, volumes, names, watch)
    if kind == "structures":
        from raterscope.app.formats.masks.rtstruct import read_rtstruct

        return read_rtstruct(path, volumes, names, naming, watch)
    raise InputError(
        "contains no readable masks; expected a NIfTI, NRRD or MetaImage label map, PNG or TIFF,"
        " DICOM SEG or RTSTRUCT, LIDC or CVAT XML, or COCO, Label Studio or labelme JSON",
        file=path,
    )


def _read_annotations(
    source: Source, volumes: tuple[VolumeFile, ...], names: NameParts, watch: Watch
) -> MaskTable:
    from raterscope.app.formats.masks.collector import collect_masks
    from raterscope.app.formats.masks.lidc import LidcDocument, read_lidc

    document = source.document()
    if isinstance(document, LidcDocument):
        return read_lidc(source.path, document, volumes, watch)
    return collect_masks(source.path, document, names, watch)
