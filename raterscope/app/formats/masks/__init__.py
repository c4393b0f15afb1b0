"""Readers and writers of masks, one module a format. `read_masks` tells what a file is and reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.masks.naming import NOTHING, Named, bare, by_path
from raterscope.app.formats.records import refuse_special
from raterscope.app.formats.volumes.records import MaskTable, RaterMask, VolumeFile

__all__ = ["holds_masks", "read_masks"]

_SEGMENTATIONS = {"1.2.840.10008.5.1.4.1.1.66.4", "1.2.840.10008.5.1.4.1.1.66.7"}
_STRUCTURES = "1.2.840.10008.5.1.4.1.1.481.3"


def holds_masks(path: Path | str, watch: Watch = silent) -> bool | None:
    """Tell whether a file holds masks; `watch` is called while voxels are read.

    Returns
    -------
    bool or None
        None where it could as well be an image or volume: a person must say.
        False also for what cannot be read, and for a folder.
    """
    path = Path(path)
    try:
        return _holds_masks(path, watch) if path.is_file() else False
    except InputError:
        return False


def _holds_masks(path: Path, watch: Watch) -> bool | None:
    from raterscope.app.formats.masks import label_maps

    name = path.name.casefold()
    if name.endswith((".json", ".xml")):
        return _marks_in(path) is not None
    if name.endswith((".nrrd", ".nhdr")):
        from raterscope.app.formats.masks.seg_nrrd import has_segments

        if has_segments(path):
            return True
    if label_maps.is_voxel_file(path) or label_maps.is_plain_image(path):
        return label_maps.is_label_map(path, watch)
    return _dicom_kind(path) is not None


def _dicom_kind(path: Path) -> str | None:
    """Tell segmentations and structure sets from other DICOM files, and from what is none."""
    from raterscope.app.formats.volumes.dicom_headers import is_dicom, read_dataset
    from raterscope.app.formats.volumes.voxel_files import sentences

    if not is_dicom(path):
        return None
    with sentences(path):
        uid = str(read_dataset(path, pixels=False).get("SOPClassUID", ""))
    if uid in _SEGMENTATIONS:
        return "segmentation"
    return "structures" if uid == _STRUCTURES else None


def _marks_in(path: Path) -> tuple[str, Any] | None:
    """Tell the format of a JSON or XML file; with what is in it."""
    from raterscope.app.formats.masks import coco, label_studio, labelme
    from raterscope.app.formats.strangers import read_json, read_xml

    if path.suffix.casefold() == ".xml":
        root = read_xml(path)
        if root.tag == "LidcReadMessage":
            return "lidc", root
        return ("cvat", root) if root.tag == "annotations" else None
    content = read_json(path)
    tests = {
        "coco": coco.is_coco, "label studio": label_studio.is_label_studio, "labelme": labelme.is_labelme,
        "label studio in short": label_studio.is_short,
    }  # fmt: skip
    return next(((name, content) for name, test in tests.items() if test(content)), None)


def read_masks(
    path: Path | str,
    volumes: Sequence[VolumeFile] = (),
    *,
    naming: str | None = None,
    annotator: str | None = None,
    structure: str | None = None,
    spacing: tuple[float, float, float] | None = None,
    watch: Watch = silent,
) -> MaskTable:
    """Read the masks of a file, having looked what it is.

    Parameters
    ----------
    path : Path
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
    path = Path(path)
    refuse_special(path)
    volumes = tuple(volumes)
    names = _names(path, naming, annotator, structure)
    table = _read(path, volumes, names, naming, spacing, watch)
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
    path: Path, volumes: tuple[VolumeFile, ...], names: Named, naming: str | None,
    spacing: tuple[float, float, float] | None, watch: Watch,
) -> MaskTable:  # fmt: skip
    from raterscope.app.formats.masks import label_maps

    name = path.name.casefold()
    if name.endswith((".json", ".xml")):
        return _read_marks(path, volumes, names, spacing, watch)
    if name.endswith((".nrrd", ".nhdr")):
        from raterscope.app.formats.masks.seg_nrrd import has_segments, read_seg_nrrd

        if has_segments(path):
            return read_seg_nrrd(path, names, watch)
    if label_maps.is_voxel_file(path) or label_maps.is_plain_image(path):
        return label_maps.read_label_map(path, names, spacing, watch)
    kind = _dicom_kind(path) if path.is_file() else None
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


def _read_marks(
    path: Path, volumes: tuple[VolumeFile, ...], names: Named, spacing: tuple[float, float, float] | None,
    watch: Watch,
) -> MaskTable:  # fmt: skip
    from raterscope.app.formats.masks.coco import read_coco
    from raterscope.app.formats.masks.cvat import read_cvat
    from raterscope.app.formats.masks.label_studio import read_label_studio
    from raterscope.app.formats.masks.labelme import read_labelme
    from raterscope.app.formats.masks.lidc import read_lidc

    kind, content = _marks_in(path) or ("", None)
    if kind == "lidc":
        return read_lidc(path, content, volumes, spacing, watch)
    if kind == "coco":
        return read_coco(path, content, names, spacing, watch)
    if kind == "cvat":
        return read_cvat(path, content, names, spacing, watch)
    if kind == "label studio":
        return read_label_studio(path, content, names, spacing, watch)
    if kind == "labelme":
        return read_labelme(path, content, names, spacing)
    if kind == "label studio in short":
        raise InputError("is JSON-MIN of Label Studio; export it as JSON", file=path)
    raise InputError(
        "holds no masks; expected annotations of COCO, Label Studio, labelme, CVAT or LIDC-IDRI", file=path
    )
