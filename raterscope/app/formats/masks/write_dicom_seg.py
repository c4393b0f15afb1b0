"""DICOM segmentation: masks as bits, probabilities in 255 steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.coding import TISSUE, Code
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks.coded import code_item
from raterscope.app.formats.masks.deidentify import Deidentifier, deidentified
from raterscope.app.formats.masks.structures import Structure, missing_uids, required_source
from raterscope.app.formats.volumes.dicom_headers import read_dataset
from raterscope.app.formats.volumes.records import VolumeFile
from raterscope.app.formats.whole import drafting

__all__ = ["write_dicom_seg"]

_STEPS = 255
_LONGEST_LABEL = 64
_SERIES_NUMBER = 900
_WANTED = (
    "PatientID", "PatientName", "PatientBirthDate", "PatientSex", "AccessionNumber", "StudyID", "StudyDate",
    "StudyTime", "ReferringPhysicianName",
)  # fmt: skip


def write_dicom_seg(
    path: Path, structures: Sequence[Structure], grid: Grid, *, source: VolumeFile | None = None,
    deidentify: Deidentifier | None = None, description: str = "",
) -> list[Path]:  # fmt: skip
    """Write masks as a binary segmentation, or probabilities as a fractional one, to 1/510 exact.

    Where there are both, each kind has its file. Segments may overlap; slices without a segment have no
    frame. See `export.write_masks`.
    """
    source = required_source(path, source, grid)
    masks = [one for one in structures if one.values.dtype == np.bool_]
    maps = [one for one in structures if one.values.dtype != np.bool_]
    for one in maps:
        low, high = float(one.values.min()), float(one.values.max())
        if not (low >= 0.0 and high <= 1.0):
            raise InputError(
                f"{plain(one.name)} has values from {low:g} to {high:g}; expected probabilities, or NIfTI",
                file=path,
            )
    file = path if path.suffix.casefold() == ".dcm" else path.with_name(path.name + ".dcm")
    files, kinds = [file], [masks or maps]
    if masks and maps:
        files, kinds = [file, file.with_name(f"{file.stem}_probability.dcm")], [masks, maps]
    heads = _completed([read_dataset(one, pixels=False) for one in source.files], grid)
    with drafting(files) as drafts:
        for number, (draft, some) in enumerate(zip(drafts, kinds, strict=True)):
            try:
                dataset = _segmentation(heads, some, number, grid, description or "Raterscope")
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                raise InputError(
                    f"cannot be written: the series lacks what a segmentation refers to ({plain(error)})",
                    file=path,
                ) from error
            if deidentify is not None:
                dataset = deidentified(dataset, deidentify)
            dataset.save_as(draft, enforce_file_format=True)
    return files


def _completed(heads: list[Any], grid: Grid) -> list[Any]:
    """Put into the heads of the slices what the standard wants there and scanners leave out."""
    frame, study = missing_uids(heads[0])
    for head in heads:
        for keyword in _WANTED:
            if keyword not in head:
                setattr(head, keyword, None)
        if not head.get("SliceThickness"):
            head.SliceThickness = f"{grid.spacing[0]:.6g}"
        if not head.get("SpecificCharacterSet"):
            head.pop("SpecificCharacterSet", None)
        head.FrameOfReferenceUID, head.StudyInstanceUID = frame, study
    return heads


def _positions(grid: Grid) -> list[Any]:
    import highdicom

    return [
        highdicom.PlanePositionSequence(
            highdicom.CoordinateSystemNames.PATIENT, grid.to_patient(np.array([at, 0.0, 0.0])).tolist()
        )
        for at in range(grid.shape[0])
    ]


def _described(number: int, structure: Structure, method: Any) -> Any:
    """Describe a segment; of a structure of which nothing is known, that it is tissue."""
    import highdicom
    from pydicom.sr.coding import Code as Concept

    def concept(code: Code) -> Any:
        return Concept(code.value, code.scheme, code.meaning)

    coding = structure.coding
    described = highdicom.seg.SegmentDescription(
        segment_number=number,
        segment_label=plain(structure.title, _LONGEST_LABEL).replace("\\", "/") or f"structure {number}",
        segmented_property_category=concept(coding.category or TISSUE),
        segmented_property_type=concept(coding.type or TISSUE),
        algorithm_type=highdicom.seg.SegmentAlgorithmTypeValues.SEMIAUTOMATIC,
        algorithm_identification=method,
        anatomic_regions=None if coding.region is None else [concept(coding.region)],
        display_color=highdicom.color.CIELabColor.from_rgb(*structure.shade),
    )
    if coding.modifier is not None:
        kind = described.SegmentedPropertyTypeCodeSequence[0]
        kind.SegmentedPropertyTypeModifierCodeSequence = [code_item(coding.modifier)]
    return described


def _segmentation(
    heads: Sequence[Any], structures: Sequence[Structure], number: int, grid: Grid, description: str
) -> Any:
    import warnings

    import highdicom
    from pydicom.sr.codedict import codes
    from pydicom.uid import ExplicitVRLittleEndian, generate_uid

    from raterscope import __version__

    method = highdicom.AlgorithmIdentificationSequence(
        name=description[:_LONGEST_LABEL], family=codes.cid7162.ClusterAnalysis, version=__version__
    )
    segments = [_described(at, one, method) for at, one in enumerate(structures, start=1)]
    binary = structures[0].values.dtype == np.bool_
    kinds = highdicom.seg.SegmentationTypeValues
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is odd in the series, which was said when it was read
        return highdicom.seg.Segmentation(
            source_images=list(heads),
            pixel_array=np.stack([one.values for one in structures], axis=-1),
            segmentation_type=kinds.BINARY if binary else kinds.FRACTIONAL,
            segment_descriptions=segments,
            series_instance_uid=generate_uid(prefix=None),
            series_number=_SERIES_NUMBER + number,
            sop_instance_uid=generate_uid(prefix=None),
            instance_number=1,
            manufacturer="Raterscope",
            manufacturer_model_name="Raterscope",
            software_versions=__version__,
            device_serial_number="0",
            max_fractional_value=_STEPS,
            transfer_syntax_uid=ExplicitVRLittleEndian,
            content_label="CONSENSUS",
            series_description=description[:_LONGEST_LABEL],
            content_description=description[:_LONGEST_LABEL],
            # A file with all slices may have them in any order, which its grid has not.
            plane_positions=None if len(heads) == grid.shape[0] else _positions(grid),
            omit_empty_frames=any(bool(one.values.any()) for one in structures),
        )
