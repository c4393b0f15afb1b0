"""De-identified DICOM: what may stay is listed, and whatever is not listed goes."""

from __future__ import annotations

import re
from typing import Any

from raterscope import __version__

__all__ = ["deidentified"]

_KEPT = frozenset(
    {
        "SpecificCharacterSet", "SOPClassUID", "SOPInstanceUID", "StudyInstanceUID", "SeriesInstanceUID",
        "FrameOfReferenceUID", "Modality", "SeriesNumber", "InstanceNumber", "ImageType",
        "PatientIdentityRemoved", "Rows", "Columns", "NumberOfFrames",
        "SamplesPerPixel", "PhotometricInterpretation", "BitsAllocated", "BitsStored", "HighBit",
        "PixelRepresentation", "LossyImageCompression", "BurnedInAnnotation", "PixelData",
        "PixelPaddingValue", "RescaleSlope", "RescaleIntercept", "SegmentationType",
        "SegmentationFractionalType", "MaximumFractionalValue", "SegmentsOverlap", "SegmentSequence",
        "SegmentNumber", "SegmentLabel", "SegmentAlgorithmType", "SegmentAlgorithmName",
        "SegmentedPropertyCategoryCodeSequence", "SegmentedPropertyTypeCodeSequence",
        "SegmentationAlgorithmIdentificationSequence", "AlgorithmName", "AlgorithmVersion",
        "AlgorithmFamilyCodeSequence", "RecommendedDisplayCIELabValue", "CodeValue",
        "CodingSchemeDesignator", "CodeMeaning", "ContentLabel", "SharedFunctionalGroupsSequence",
        "PerFrameFunctionalGroupsSequence", "PixelMeasuresSequence", "PixelSpacing", "SliceThickness",
        "SpacingBetweenSlices", "PlaneOrientationSequence", "ImageOrientationPatient",
        "PlanePositionSequence", "ImagePositionPatient", "SegmentIdentificationSequence",
        "ReferencedSegmentNumber", "FrameContentSequence", "DimensionIndexValues",
        "DimensionOrganizationSequence", "DimensionOrganizationUID", "DimensionOrganizationType",
        "DimensionIndexSequence", "DimensionIndexPointer", "FunctionalGroupPointer",
        "DerivationImageSequence", "DerivationCodeSequence", "SourceImageSequence",
        "PurposeOfReferenceCodeSequence", "SpatialLocationsPreserved", "ReferencedSOPClassUID",
        "ReferencedSOPInstanceUID", "ReferencedFrameNumber", "ReferencedSeriesSequence",
        "ReferencedInstanceSequence", "StudiesContainingOtherReferencedInstancesSequence",
        "StructureSetLabel", "ReferencedFrameOfReferenceSequence", "RTReferencedStudySequence",
        "RTReferencedSeriesSequence", "ContourImageSequence", "StructureSetROISequence", "ROINumber",
        "ReferencedFrameOfReferenceUID", "ROIName", "ROIGenerationAlgorithm", "ROIContourSequence",
        "ROIDisplayColor", "ReferencedROINumber", "ContourSequence", "ContourGeometricType",
        "NumberOfContourPoints", "ContourData", "RTROIObservationsSequence", "ObservationNumber",
        "RTROIInterpretedType", "ApprovalStatus",
    }
)  # fmt: skip
_EMPTIED = frozenset(
    {
        "PatientName", "PatientID", "PatientBirthDate", "PatientSex", "StudyDate", "StudyTime", "StudyID",
        "AccessionNumber", "ReferringPhysicianName", "ContentCreatorName", "ContentDescription",
        "PositionReferenceIndicator", "Laterality", "StructureSetDate", "StructureSetTime",
        "ROIInterpreter", "OperatorsName",
    }
)  # fmt: skip
"""What the standard wants there, be it empty."""

_REPLACED = {
    "Manufacturer": "Raterscope",
    "ManufacturerModelName": "Raterscope",
    "DeviceSerialNumber": "0",
    "SoftwareVersions": __version__,
    "ContentDate": "19000101",
    "ContentTime": "000000",
}
"""What the standard wants there with a value."""

_STANDARD = "1.2.840.10008."
_PLACES = 0x30060050
_NUMBERS = re.compile(rb"[-+.eE0-9\\ ]*\0?")
_CHARACTERS = re.compile(r"|ISO_IR \d{1,3}|ISO 2022 IR \d{1,3}|GB18030|GBK")
_WORDS = frozenset(
    {
        "", "00", "01", "3D", "APPROVED", "AUTOMATIC", "AVOIDANCE", "BINARY", "CLOSEDPLANAR_XOR",
        "CLOSED_PLANAR", "CONSENSUS", "CTV", "DERIVED", "EXTERNAL", "FRACTIONAL", "GTV", "LABELMAP", "MANUAL",
        "MONOCHROME2", "NO", "OCCUPANCY", "OPEN_NONPLANAR", "OPEN_PLANAR", "ORGAN", "PALETTE COLOR", "POINT",
        "PRIMARY", "PROBABILITY", "PTV", "REJECTED", "RTSTRUCT", "SEG", "SEGMENTATION", "SEMIAUTOMATIC",
        "UNAPPROVED", "UNDEFINED", "YES",
    }
)  # fmt: skip
"""What may stand where the standard has words of its own: others would fit a name in capitals."""

_METHOD = "Raterscope: only listed attributes kept, UIDs replaced"


def deidentified(dataset: Any, uids: dict[str, str] | None = None) -> Any:
    """Copy a segmentation or structure set without what could tell the patient.

    Attributes stay if they are on a list: geometry, voxels, contours, references, codes, and the names of
    structures and algorithms, which whoever writes them answers for. Private and unknown attributes,
    overlays, names, dates, institutions, serial numbers, comments and descriptions go. UIDs become others.

    Parameters
    ----------
    dataset : pydicom.Dataset
    uids : dict, optional
        Old UID to new one, filled on the way. With the same for several files, what refers to each other
        still does.

    Returns
    -------
    pydicom.Dataset
        With a file's meta information of its own, to be saved by `save_as`.
    """
    from pydicom.dataset import FileMetaDataset

    uids = {} if uids is None else uids
    copy = _copied(dataset, uids)
    copy.PatientIdentityRemoved = "YES"
    copy.DeidentificationMethod = _METHOD
    copy.LongitudinalTemporalInformationModified = "REMOVED"
    copy.file_meta = FileMetaDataset()
    copy.file_meta.MediaStorageSOPClassUID = copy.SOPClassUID
    copy.file_meta.MediaStorageSOPInstanceUID = copy.SOPInstanceUID
    copy.file_meta.TransferSyntaxUID = dataset.file_meta.TransferSyntaxUID
    return copy


def _copied(dataset: Any, uids: dict[str, str]) -> Any:
    from pydicom.dataset import Dataset

    copy = Dataset()
    for tag in list(dataset.keys()):
        if tag.is_private or tag.group >> 8 in (0x50, 0x60):
            continue
        raw = dataset.get_item(tag)
        if tag == _PLACES and isinstance(raw.value, bytes):  # numbers by the million, taken as they are
            if _NUMBERS.fullmatch(raw.value):
                copy[tag] = raw
            continue
        element = dataset[tag]
        keyword = element.keyword
        if keyword in _EMPTIED:
            setattr(copy, keyword, None)
        elif keyword in _REPLACED:
            setattr(copy, keyword, _REPLACED[keyword])
        elif keyword in _KEPT:
            _keep(copy, element, uids)
    return copy


def _keep(copy: Any, element: Any, uids: dict[str, str]) -> None:
    from pydicom.datadict import dictionary_VR

    allowed = dictionary_VR(element.tag)
    if element.VR not in (allowed, *allowed.split(" or ")):
        return
    if element.VR == "SQ":
        setattr(copy, element.keyword, [_copied(item, uids) for item in element.value])
    elif element.VR == "UI":
        values = [_renamed(str(uid), uids) for uid in _several(element.value)]
        setattr(copy, element.keyword, values if element.VM > 1 else values[0] if values else None)
    elif element.VR != "CS" or all(_is_word(str(value)) for value in _several(element.value)):
        setattr(copy, element.keyword, element.value)


def _is_word(value: str) -> bool:
    return value in _WORDS or _CHARACTERS.fullmatch(value) is not None


def _several(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if not isinstance(value, (str, bytes)) and hasattr(value, "__iter__") else [value]


def _renamed(uid: str, uids: dict[str, str]) -> str:
    """Give the new UID; those that the standard itself defines stay."""
    from pydicom.uid import generate_uid

    if uid.startswith(_STANDARD):
        return uid
    return uids.setdefault(uid, str(generate_uid(prefix=None)))
