"""DICOM RT structure sets, whose contours run along the edges of the voxels.

Filled by even-odd, at voxels' centres, they give the masks again, voxel by voxel: holes and separate parts
are contours of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks.coded import add_codes
from raterscope.app.formats.masks.deidentify import Deidentifier, deidentified
from raterscope.app.formats.masks.outlines import outlines
from raterscope.app.formats.masks.structures import Structure, missing_uids, refuse_maps, required_source
from raterscope.app.formats.volumes.dicom_headers import read_dataset
from raterscope.app.formats.volumes.records import VolumeFile
from raterscope.app.formats.whole import drafting

__all__ = ["write_rtstruct"]

_CLASS = "1.2.840.10008.5.1.4.1.1.481.3"
_STUDY_CLASS = "1.2.840.10008.3.1.2.3.1"
_OF_PATIENT = (
    "SpecificCharacterSet", "PatientName", "PatientID", "PatientBirthDate", "PatientSex", "StudyInstanceUID",
    "StudyDate", "StudyTime", "StudyID", "AccessionNumber", "ReferringPhysicianName", "StudyDescription",
    "FrameOfReferenceUID", "PositionReferenceIndicator",
)  # fmt: skip
_LONGEST_NAME = 64
_Slice = tuple[Any, int | None]
"""A file's head, and which of its frames from 1; None for a file of one image."""
_PLACES = 0x30060050
_SERIES_NUMBER = 910


def write_rtstruct(
    path: Path, structures: Sequence[Structure], grid: Grid, *, source: VolumeFile | None = None,
    deidentify: Deidentifier | None = None, description: str = "",
) -> list[Path]:  # fmt: skip
    """Write each mask as a structure. See `export.write_masks`."""
    source = required_source(path, source, grid)
    refuse_maps(path, structures, "DICOM SEG or NIfTI")
    if not source.grid.calibrated:
        raise InputError("cannot be written: its series does not tell where it lies; write NIfTI", file=path)
    file = path if path.suffix.casefold() == ".dcm" else path.with_name(path.name + ".dcm")
    heads = [read_dataset(one, pixels=False) for one in source.files]
    slices = _slices(heads, source)
    dataset = _structure_set(structures, grid, heads, slices, description or "Raterscope")
    if deidentify is not None:
        dataset = deidentified(dataset, deidentify)
    with drafting([file]) as (draft,):
        dataset.save_as(draft, enforce_file_format=True)
    return [file]


def _structure_set(
    structures: Sequence[Structure],
    grid: Grid,
    heads: Sequence[Any],
    slices: Sequence[_Slice],
    description: str,
) -> Any:
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import ImplicitVRLittleEndian, generate_uid

    from raterscope import __version__

    first, now = heads[0], datetime.now()
    dataset = Dataset()
    for keyword in _OF_PATIENT:
        if keyword in first:
            dataset[keyword] = first[keyword]
        elif keyword not in ("SpecificCharacterSet", "StudyDescription"):
            setattr(dataset, keyword, None)
    dataset.FrameOfReferenceUID, dataset.StudyInstanceUID = missing_uids(first)
    dataset.SOPClassUID, dataset.SOPInstanceUID = _CLASS, generate_uid(prefix=None)
    dataset.SeriesInstanceUID, dataset.SeriesNumber = generate_uid(prefix=None), _SERIES_NUMBER
    dataset.Modality, dataset.OperatorsName, dataset.InstanceNumber = "RTSTRUCT", None, 1
    dataset.Manufacturer = dataset.ManufacturerModelName = "Raterscope"
    dataset.SoftwareVersions = __version__
    dataset.SeriesDescription = dataset.StructureSetDescription = description[:_LONGEST_NAME]
    dataset.StructureSetLabel = "Raterscope"
    dataset.StructureSetDate, dataset.StructureSetTime = now.strftime("%Y%m%d"), now.strftime("%H%M%S")
    dataset.ApprovalStatus = "UNAPPROVED"
    dataset.ReferencedFrameOfReferenceSequence = [_reference(dataset, heads)]
    dataset.StructureSetROISequence, dataset.ROIContourSequence = [], []
    dataset.RTROIObservationsSequence = []
    for number, one in enumerate(structures, start=1):
        _add(dataset, number, one, grid, slices)
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.MediaStorageSOPClassUID = _CLASS
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    # Implicit: in the explicit form an element of text ends at 64 kB, which a contour may exceed.
    dataset.file_meta.TransferSyntaxUID = ImplicitVRLittleEndian
    return dataset


def _slices(heads: Sequence[Any], source: VolumeFile) -> list[_Slice]:
    """Give the image that each slice is: a file's only one, or a frame."""
    if source.frames:
        return [(heads[0], frame + 1) for frame in source.frames]
    return [(head, None) for head in heads]


def _image(head: Any, frame: int | None = None) -> Any:
    from pydicom.dataset import Dataset

    image = Dataset()
    image.ReferencedSOPClassUID, image.ReferencedSOPInstanceUID = head.SOPClassUID, head.SOPInstanceUID
    if frame is not None:
        image.ReferencedFrameNumber = frame
    return image


def _reference(dataset: Any, heads: Sequence[Any]) -> Any:
    from pydicom.dataset import Dataset

    series, study, frame = Dataset(), Dataset(), Dataset()
    series.SeriesInstanceUID = heads[0].SeriesInstanceUID
    series.ContourImageSequence = [_image(head) for head in heads]
    study.ReferencedSOPClassUID, study.ReferencedSOPInstanceUID = _STUDY_CLASS, dataset.StudyInstanceUID
    study.RTReferencedSeriesSequence = [series]
    frame.FrameOfReferenceUID = dataset.FrameOfReferenceUID
    frame.RTReferencedStudySequence = [study]
    return frame


def _add(dataset: Any, number: int, structure: Structure, grid: Grid, slices: Sequence[_Slice]) -> None:
    from pydicom.dataset import Dataset

    roi, contours, observation = Dataset(), Dataset(), Dataset()
    roi.ROINumber, roi.ReferencedFrameOfReferenceUID = number, dataset.FrameOfReferenceUID
    roi.ROIName = plain(structure.title, _LONGEST_NAME).replace("\\", "/") or f"structure {number}"
    roi.ROIGenerationAlgorithm = "SEMIAUTOMATIC"
    contours.ROIDisplayColor = list(structure.shade)
    contours.ReferencedROINumber = number
    contours.ContourSequence = []
    for at in np.flatnonzero(structure.values.any(axis=(1, 2))).tolist():
        for outline in outlines(np.asarray(structure.values[at], dtype=np.bool_)):
            contours.ContourSequence.append(_contour(outline, at, grid, slices[at]))
    observation.ObservationNumber = observation.ReferencedROINumber = number
    observation.RTROIInterpretedType, observation.ROIInterpreter = structure.coding.role, None
    add_codes(observation, structure.coding)
    dataset.StructureSetROISequence.append(roi)
    dataset.ROIContourSequence.append(contours)
    dataset.RTROIObservationsSequence.append(observation)


def _contour(outline: NDArray[np.float64], at: int, grid: Grid, image: _Slice) -> Any:
    from pydicom.dataelem import RawDataElement
    from pydicom.dataset import Dataset
    from pydicom.tag import Tag

    index = np.column_stack([np.full(len(outline), float(at)), outline[:, ::-1]])
    contour = Dataset()
    contour.ContourImageSequence = [_image(*image)]
    contour.ContourGeometricType = "CLOSED_PLANAR"
    contour.NumberOfContourPoints = len(outline)
    # As bytes: pydicom would look at each of what may be a million numbers.
    text = "\\".join(f"{value:.4f}" for value in grid.to_patient(index).ravel().tolist())
    places = (text + " " * (len(text) % 2)).encode()
    contour[_PLACES] = RawDataElement(Tag(_PLACES), "DS", len(places), places, 0, True, True)
    return contour
