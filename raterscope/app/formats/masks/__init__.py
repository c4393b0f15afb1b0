"""Readers and writers of masks, one module a format. `read_masks` detects the format and reads the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.masks.naming import NOTHING, Named, bare, by_path
from raterscope.app.formats.records import MaskTable, RaterMask, VolumeFile, refuse_special
from raterscope.app.formats.sources import SUFFIXES, File, Source, open_source

__all__ = ["holds_masks", "read_masks"]

_SEGMENTATIONS = {"1.2.840.10008.5.1.4.1.1.66.4", "1.2.840.10008.5.1.4.1.1.66.7"}
_STRUCTURES = "1.2.840.10008.5.1.4.1.1.481.3"


def holds_masks(file: File, watch: Watch = silent) -> bool | None:
    """Find out whether a file holds masks.

    Parameters
    ----------
    file : Path or Source
    watch : Watch
        Called while voxels are read.

    Returns
    -------
    bool or None
        None where it could as well be an image or volume: a person must say.
        False also for what cannot be read, and for a folder.
    """
    source = open_source(file)
    try:
        return _holds_masks(source, watch) if source.path.is_file() else False
    except InputError:
        return False


def _holds_masks(source: Source, watch: Watch) -> bool | None:
    kind = _kind(source)
    if kind == "annotations":
        return source.contents("masks") is not None
    if kind == "label map":
        from raterscope.app.formats.masks.label_maps import holds_label_map

        return holds_label_map(source, watch)
    return kind is not None


_Kind = Literal["annotations", "segments", "label map", "segmentation", "structures"]


def _kind(source: Source) -> _Kind | None:
    """Find how a file holds masks, if it does."""
    from raterscope.app.formats.masks.label_maps import is_plain_image, is_voxel_file

    name = source.path.name.casefold()
    if name.endswith(SUFFIXES):
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
    spacing: tuple[float, float, float] | None = None,
    watch: Watch = silent,
) -> MaskTable:
    """Read the masks of a file, whose format is detected from its content.

    Parameters
    ----------
    file : Path or Source
    volumes : sequence of VolumeFile
        The images at hand. Contours need the series that they were drawn on; a mask without a place takes
        that of the image of its name and shape, or of the only one.
    naming : str, optional
        What a file's name tells, as in "{item}_{annotator}_{structure}"; see `naming.by_pattern`.
    annotator, structure : str, optional
        By hand; the annotator goes before what the file says, the structure names what has no name.
    spacing : (slice, row, column), optional
        Millimetres, for a file that does not tell.
    watch : Watch

    Raises
    ------
    InputError
        When the file cannot be read, in a sentence that says where and why.
    """
    source = open_source(file)
    path = source.path
    refuse_special(path)
    volumes = tuple(volumes)
    names = _names(path, naming, annotator, structure)
    table = _read(source, volumes, names, naming, spacing, watch)
    masks = table.masks
    if annotator is not None:
        masks = tuple(replace(mask, annotator=annotator) for mask in masks)
    if structure is not None:
        masks = tuple(replace(mask, structure=mask.structure or structure) for mask in masks)
    return replace(table, masks=tuple(_placed(mask, volumes) for mask in masks))


def _names(path: Path, naming: str | None, annotator: str | None, structure: str | None) -> Named:
    names = (by_path(path, naming) if naming is not None else None) or NOTHING
    return Named(names.item, annotator or names.annotator, structure or names.structure)


def _placed(mask: RaterMask, volumes: tuple[VolumeFile, ...]) -> RaterMask:
    """Give a mask without a place that of its image: the one of its name, or the only one."""
    if mask.grid.calibrated:
        return mask
    alike = [volume for volume in volumes if volume.grid.shape == mask.grid.shape]
    named = [volume for volume in alike if mask.item and bare(Path(volume.name)) == bare(Path(mask.item))]
    found = named if named or len(volumes) > 1 else alike
    return replace(mask, grid=found[0].grid) if len(found) == 1 else mask


def _read(
    source: Source, volumes: tuple[VolumeFile, ...], names: Named, naming: str | None,
    spacing: tuple[float, float, float] | None, watch: Watch,
) -> MaskTable:  # fmt: skip
    path, kind = source.path, _kind(source)
    if kind == "annotations":
        return _read_annotations(source, volumes, names, spacing, watch)
    if kind == "segments":
        from raterscope.app.formats.masks.seg_nrrd import read_seg_nrrd

        return read_seg_nrrd(source.voxels(), names, watch)
    if kind == "label map":
        from raterscope.app.formats.masks.label_maps import read_label_map

        return read_label_map(source, names, spacing, watch)
    if kind == "segmentation":
        from raterscope.app.formats.masks.dicom_seg import read_dicom_seg

        return read_dicom_seg(path, volumes, names, watch)
    if kind == "structures":
        from raterscope.app.formats.masks.rtstruct import read_rtstruct

        return read_rtstruct(path, volumes, names, naming, watch)
    raise InputError(
        "holds no masks that Raterscope reads; expected a NIfTI, NRRD or MetaImage label map, PNG or TIFF,"
        " DICOM SEG or RTSTRUCT, LIDC or CVAT XML, or COCO, Label Studio or labelme JSON",
        file=path,
    )


def _read_annotations(
    source: Source, volumes: tuple[VolumeFile, ...], names: Named,
    spacing: tuple[float, float, float] | None, watch: Watch,
) -> MaskTable:  # fmt: skip
    from raterscope.app.formats.masks.collector import take_masks
    from raterscope.app.formats.masks.lidc import LidcDocument, read_lidc

    document = source.document()
    if isinstance(document, LidcDocument):
        return read_lidc(source.path, document, volumes, spacing, watch)
    return take_masks(source, names, spacing, watch)
