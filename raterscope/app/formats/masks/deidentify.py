"""De-identification of DICOM: listed attributes are kept, all others are removed.

References
----------
DICOM PS3.15, annex E: Attribute Confidentiality Profiles.
DICOM PS3.16, context group 7050: De-identification Methods.
DICOM PS3.5, annex B.2: UIDs that are derived from a UUID.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import UUID

from raterscope import __version__
from raterscope.app.coding import ROLES

_KEPT_IN_MASKS = frozenset(
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
        "RTROIInterpretedType", "ApprovalStatus", "AnatomicRegionSequence", "LongCodeValue", "URNCodeValue",
        "RTROIIdentificationCodeSequence", "SegmentedPropertyTypeModifierCodeSequence",
    }
)  # fmt: skip
_KEPT_IN_IMAGES = frozenset(
    {
        "SpecificCharacterSet", "SOPClassUID", "SOPInstanceUID", "StudyInstanceUID", "SeriesInstanceUID",
        "FrameOfReferenceUID", "Modality", "SeriesNumber", "InstanceNumber", "AcquisitionNumber", "ImageType",
        "PatientPosition", "NumberOfFrames", "Rows", "Columns", "SamplesPerPixel",
        "PhotometricInterpretation", "PlanarConfiguration", "BitsAllocated", "BitsStored", "HighBit",
        "PixelRepresentation", "PixelAspectRatio", "PixelData", "PixelPaddingValue",
        "PixelPaddingRangeLimit", "RescaleSlope", "RescaleIntercept", "RescaleType", "WindowCenter",
        "WindowWidth", "VOILUTFunction", "PresentationLUTShape", "PixelIntensityRelationship",
        "PixelIntensityRelationshipSign", "LossyImageCompression", "LossyImageCompressionRatio",
        "LossyImageCompressionMethod", "BurnedInAnnotation", "RecognizableVisualFeatures",
        "RedPaletteColorLookupTableDescriptor", "GreenPaletteColorLookupTableDescriptor",
        "BluePaletteColorLookupTableDescriptor", "RedPaletteColorLookupTableData",
        "GreenPaletteColorLookupTableData", "BluePaletteColorLookupTableData",
        "ImagePositionPatient", "ImageOrientationPatient", "SliceLocation", "PixelSpacing",
        "ImagerPixelSpacing", "SliceThickness", "SpacingBetweenSlices", "GantryDetectorTilt", "TableHeight",
        "RotationDirection", "KVP", "XRayTubeCurrent", "ExposureTime", "Exposure",
        "ReconstructionDiameter", "DataCollectionDiameter", "DistanceSourceToDetector",
        "DistanceSourceToPatient", "FocalSpots", "GeneratorPower", "SingleCollimationWidth",
        "TotalCollimationWidth", "SpiralPitchFactor", "MagneticFieldStrength", "ScanningSequence",
        "SequenceVariant", "ScanOptions", "MRAcquisitionType", "AngioFlag", "RepetitionTime", "EchoTime",
        "InversionTime", "NumberOfAverages", "ImagingFrequency", "EchoNumbers", "EchoTrainLength",
        "PercentSampling", "PercentPhaseFieldOfView", "PixelBandwidth", "AcquisitionMatrix",
        "InPlanePhaseEncodingDirection", "FlipAngle", "TemporalPositionIdentifier",
        "NumberOfTemporalPositions", "DiffusionBValue", "DiffusionGradientOrientation", "Units",
        "CountsSource", "SeriesType", "NumberOfSlices", "NumberOfTimeSlices", "CorrectedImage",
        "DecayCorrection", "DecayFactor", "FrameReferenceTime", "ImageIndex", "ActualFrameDuration",
        "SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence", "PixelMeasuresSequence",
        "PlaneOrientationSequence", "PlanePositionSequence", "FrameContentSequence", "FrameAcquisitionNumber",
        "InStackPositionNumber", "TemporalPositionIndex", "DimensionIndexValues", "FrameAnatomySequence",
        "FrameLaterality", "FrameVOILUTSequence", "PixelValueTransformationSequence",
        "CTImageFrameTypeSequence", "MRImageFrameTypeSequence", "PETFrameTypeSequence", "FrameType",
        "PixelPresentation", "VolumetricProperties", "VolumeBasedCalculationTechnique",
        "ComplexImageComponent", "AcquisitionContrast", "DimensionOrganizationSequence",
        "DimensionOrganizationUID", "DimensionOrganizationType", "DimensionIndexSequence",
        "DimensionIndexPointer", "FunctionalGroupPointer",
    }
)  # fmt: skip
_EMPTIED = frozenset(
    {
        "PatientBirthDate", "PatientSex", "StudyDate", "StudyTime", "StudyID",
        "AccessionNumber", "ReferringPhysicianName", "ContentCreatorName", "ContentDescription",
        "PositionReferenceIndicator", "Laterality", "StructureSetDate", "StructureSetTime",
        "ROIInterpreter", "OperatorsName",
    }
)  # fmt: skip
"""Attributes that the standard requires but that may be empty."""

_REPLACED = {
    "Manufacturer": "Raterscope",
    "ManufacturerModelName": "Raterscope",
    "DeviceSerialNumber": "0",
    "SoftwareVersions": __version__,
    "ContentDate": "19000101",
    "ContentTime": "000000",
}
"""Attributes that the standard requires with a value."""

_REPLACED_IN_IMAGES = _REPLACED | dict.fromkeys(
    ("Manufacturer", "ManufacturerModelName", "DeviceSerialNumber", "SoftwareVersions"), "REMOVED"
)

_STANDARD = "1.2.840.10008."
_CONTOUR_DATA = 0x30060050
_NUMBERS = re.compile(rb"[-+.eE0-9\\ ]*\0?")
_CHARACTER_SET = re.compile(r"|ISO_IR \d{1,3}|ISO 2022 IR \d{1,3}|GB18030|GBK")
_WORDS = frozenset(
    {
        *ROLES,
        "", "00", "01", "2D", "3D", "ADD", "ADMIN", "APPROVED", "ATTN", "AUTOMATIC", "AXIAL", "B",
        "BINARY", "BQML", "CC", "CLOSEDPLANAR_XOR", "CLOSED_PLANAR", "CNTS", "COL", "COLOR", "CONSENSUS",
        "CONSTANT_ANGLE", "CPS", "CR", "CT", "CW", "DCAL", "DECY", "DERIVED", "DIFFUSION", "DIS2D",
        "DIS3D", "DISP", "DISTORTED", "DTIM", "DX", "DYNAMIC", "EMISSION", "EP", "ES", "F", "FFDL", "FFDR",
        "FFE", "FFP", "FFS", "FILTERED", "FLAIR", "FRACTIONAL", "GATED", "GML", "GR", "HELIX", "HFDL",
        "HFDR", "HFP", "HFS", "I", "IDENTITY", "IMAGE", "IMAGINARY", "INVERSE", "IP", "IR", "ISO_10918_1",
        "ISO_13818_2", "ISO_14495_1", "ISO_14496_10", "ISO_15444_1", "L", "LABELMAP", "LIN", "LINEAR",
        "LINEAR_EXACT", "LOCALIZER", "LOG", "M", "MAGNITUDE", "MANUAL", "MAX_IP", "MG", "MIN_IP", "MIXED",
        "MONOCHROME", "MONOCHROME1", "MONOCHROME2", "MP", "MPR", "MR", "MTC", "M_FFE", "M_SE", "N", "NM",
        "NO", "NONE", "NORM", "OCCUPANCY", "OP", "OPEN_NONPLANAR", "OPEN_PLANAR", "ORIGINAL", "OSP", "OT",
        "P", "PALETTE COLOR", "PERFUSION", "PHASE", "POINT", "PRIMARY", "PROBABILITY", "PROPCPS",
        "PROTON_DENSITY", "PT", "R", "RADL", "RAN", "REAL", "RECON", "REFORMATTED", "REJECTED",
        "REPROJECTION", "RESAMPLED", "RF", "RGB", "RM", "ROW", "ROWCOL", "RTSTRUCT", "SAMPLED", "SC",
        "SCAT", "SE", "SECONDARY", "SEG", "SEGMENTATION", "SEMIAUTOMATIC", "SIGMOID", "SK", "SP", "SS",
        "START", "STATIC", "SUB", "T1", "T2", "T2_STAR", "TRANSMISSION", "TRSS", "TRUE_COLOR",
        "UNAPPROVED", "UNCORRECTED", "UNDEFINED", "UNKNOWN", "US", "VOLUME", "W", "WHOLE BODY",
        "WHOLE_BODY", "XA", "XC", "Y", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT", "YES",
    }
)  # fmt: skip
"""Allowed values of coded strings; any other value could be a name in capitals."""

_RESCALED = frozenset({"HU", "US", "OD", "PCT", "MGML", "HU_MOD", "Z_EFF", "ED", "EDW"})
"""Allowed units of pixels, in an attribute for free text."""

_METHOD = "Raterscope: only listed attributes kept, UIDs replaced"
_PROFILE = ("113100", "Basic Application Confidentiality Profile")
_CLEAN_DESCRIPTORS = ("113105", "Clean Descriptors Option")
_MASKS = frozenset({"1.2.840.10008.5.1.4.1.1.66.4", "1.2.840.10008.5.1.4.1.1.66.7",
                    "1.2.840.10008.5.1.4.1.1.481.3"})  # fmt: skip
_IDENTIFYING = (
    "PatientName", "PatientID", "OtherPatientIDs", "OtherPatientNames", "PatientBirthName",
    "PatientMotherBirthName", "AccessionNumber", "StudyID", "InstitutionName", "StationName",
    "ReferringPhysicianName", "PerformingPhysicianName", "PhysiciansOfRecord", "OperatorsName",
    "NameOfPhysiciansReadingStudy", "RequestingPhysician", "InstitutionalDepartmentName",
)  # fmt: skip
_SHORTEST, _SHORTEST_NAME = 3, 2  # letters of an identifying word, and of a part of a name
_WRITING_MODALITIES = frozenset({"US", "SC", "XC", "ES", "OT", "XA", "RF", "GM", "OP", "DOC"})
"""Modalities whose devices write text into the image."""
_CAPTURED = frozenset(
    {"SCREEN SAVE", "SCREEN_CAPTURE", "SCREENSHOT", "SCREEN CAPTURE", "CAPTURE", "DOSE_INFO"}
)
_CAPTURE_CLASS = "1.2.840.10008.5.1.4.1.1.7"


@dataclass(frozen=True)
class Deidentifier:
    """Replaces identifiers by pseudonyms that depend on a key and cannot be reversed without it."""

    key: bytes = field(repr=False)  # secret
    names: dict[str, str] = field(default_factory=dict)  # pseudonyms in the file, by annotators' names

    def uid(self, uid: str) -> str:
        """Return the new UID; UIDs defined by the standard do not change."""
        if not uid or uid.startswith(_STANDARD):
            return uid
        return f"2.25.{UUID(bytes=self._digest('uid', uid)[:16], version=4).int}"

    def patient(self, dataset: Any) -> str:
        """Return the pseudonym of a patient, the same in all files with the same patient number."""
        identity = str(
            dataset.get("PatientID") or dataset.get("PatientName") or dataset.get("StudyInstanceUID") or ""
        )
        return f"P{self._digest('patient', identity).hex()[:10].upper()}"

    def text(self, text: str, identifying: Iterable[str] = (), instead: str = "") -> str:
        """Replace annotators' names in a text, or the complete text if it contains identifying words."""
        if self._named is not None:
            text = self._named.sub(lambda match: self._pseudonyms[tuple(_words(match[0]))], text)
        words = _words(text)
        return instead if any(_holds(words, _words(word)) for word in identifying) else text

    @cached_property
    def _pseudonyms(self) -> dict[tuple[str, ...], str]:
        pseudonyms = {tuple(_words(name)): new for name, new in self.names.items()}
        return {words: new for words, new in pseudonyms.items() if len("".join(words)) >= _SHORTEST_NAME}

    @cached_property
    def _named(self) -> re.Pattern[str] | None:
        """Pattern of all annotators' names as separate words with any separators; the longest names first."""
        names = sorted(self._pseudonyms, key=lambda words: -len("".join(words)))
        if not names:
            return None
        alternatives = "|".join(r"[\W_]+".join(map(re.escape, words)) for words in names)
        return re.compile(rf"(?<![^\W_])(?:{alternatives})(?![^\W_])", re.IGNORECASE)

    def _digest(self, purpose: str, value: str) -> bytes:
        return hmac.digest(self.key, f"{purpose}\0{value.strip()}".encode(), hashlib.sha256)


def identifying_words(dataset: Any) -> frozenset[str]:
    """List the identifying names and numbers in a file, and the parts of names."""
    from pydicom.valuerep import PersonName

    words: set[str] = set()
    for keyword in _IDENTIFYING:
        for value in _values(dataset.get(keyword)):
            text = str(value).strip()
            if len(text) >= _SHORTEST:
                words.add(text)
            if isinstance(value, PersonName):
                words |= {part for part in re.split(r"[\^=\s,]+", text) if len(part) >= _SHORTEST_NAME}
    return frozenset(words)


def explain_burned_in(dataset: Any) -> str | None:
    """Explain why text may be burned into the pixels of an image; None if there is no sign of it."""
    stated = str(dataset.get("BurnedInAnnotation") or "").strip().upper()
    if stated == "NO":
        return None
    if stated == "YES":
        return "says that text is burned into its pixels"
    modality = str(dataset.get("Modality") or "").strip().upper()
    kinds = {str(value).strip().upper() for value in _values(dataset.get("ImageType"))}
    if kinds & _CAPTURED or str(dataset.get("SOPClassUID", "")).startswith(_CAPTURE_CLASS):
        return "is a captured screen, which often shows names"
    if modality in _WRITING_MODALITIES:
        return f"is of modality {modality}, whose devices often write names into the image"
    return None


def deidentify_dataset(dataset: Any, deidentifier: Deidentifier) -> Any:
    """Copy an image, segmentation or structure set without data that could identify the patient.

    Listed attributes are kept: geometry, voxels, contours, references, codes, scanner settings, and the names
    of structures and algorithms without names of people. Private and unknown attributes, overlays, names,
    dates, institutions, serial numbers, comments and descriptions are removed. UIDs are replaced. Pixels do
    not change: if text may be burned into them, the file does not state that the patient's identity was
    removed.

    `deidentifier`: use the same for several files to preserve their references to each other. The copy has
    its own file meta information, and can be saved by `save_as`.
    """
    from pydicom.dataset import FileMetaDataset
    from pydicom.uid import ImplicitVRLittleEndian

    masks = str(dataset.get("SOPClassUID", "")) in _MASKS
    lists = (_KEPT_IN_MASKS, _REPLACED) if masks else (_KEPT_IN_IMAGES, _REPLACED_IN_IMAGES)
    copier = _Copier(deidentifier, *lists, identifying_words(dataset))
    copy = copier.copy(dataset)
    copy.PatientName = copy.PatientID = deidentifier.patient(dataset)
    copy.PatientIdentityRemoved = "YES" if masks or explain_burned_in(dataset) is None else "NO"
    copy.DeidentificationMethod = _METHOD
    copy.DeidentificationMethodCodeSequence = [
        _method(*method) for method in ((_PROFILE, _CLEAN_DESCRIPTORS) if masks else (_PROFILE,))
    ]
    copy.LongitudinalTemporalInformationModified = "REMOVED"
    meta = getattr(dataset, "file_meta", None) or {}
    copy.file_meta = FileMetaDataset()
    copy.file_meta.MediaStorageSOPClassUID = copy.SOPClassUID
    copy.file_meta.MediaStorageSOPInstanceUID = copy.SOPInstanceUID
    copy.file_meta.TransferSyntaxUID = meta.get("TransferSyntaxUID", ImplicitVRLittleEndian)
    return copy


def remove_dates(report: Any) -> None:
    """Remove the times at which a report on de-identified data was made; required times are replaced."""
    for keyword in ("InstanceCreationDate", "InstanceCreationTime"):
        report.pop(keyword, None)
    for device in report.get("ContributingEquipmentSequence") or ():
        device.pop("ContributionDateTime", None)
    report.ContentDate, report.ContentTime = _REPLACED["ContentDate"], _REPLACED["ContentTime"]
    report.LongitudinalTemporalInformationModified = "REMOVED"


def _method(value: str, meaning: str) -> Any:
    from pydicom.dataset import Dataset

    item = Dataset()
    item.CodeValue, item.CodingSchemeDesignator, item.CodeMeaning = value, "DCM", meaning
    return item


@dataclass(frozen=True)
class _Copier:
    """Copier of one file, with its lists of attributes and its identifying words."""

    deidentifier: Deidentifier
    kept: frozenset[str]
    replaced: dict[str, str]
    identifying: frozenset[str]

    def copy(self, dataset: Any, sequence: str = "") -> Any:
        """Copy a dataset, or an item of a sequence; codes are copied only in sequences of codes."""
        from pydicom.datadict import keyword_for_tag
        from pydicom.dataset import Dataset

        copy = Dataset()
        kept = self.kept if sequence in _CODED or sequence.endswith("CodeSequence") else self.kept - _OF_CODES
        for tag in list(dataset.keys()):
            if tag.is_private or tag.group >> 8 in (0x50, 0x60):
                continue
            keyword = keyword_for_tag(tag)
            if keyword in _EMPTIED:
                setattr(copy, keyword, None)
            elif keyword in self.replaced:
                setattr(copy, keyword, self.replaced[keyword])
            elif keyword in kept:
                raw = dataset.get_item(tag)
                if tag == _CONTOUR_DATA and isinstance(raw.value, bytes):  # millions of numbers
                    if _NUMBERS.fullmatch(raw.value):
                        copy[tag] = raw
                else:
                    self._keep(copy, dataset[tag])
        return copy

    def _keep(self, copy: Any, element: Any) -> None:
        from pydicom.datadict import dictionary_VR

        allowed, keyword = dictionary_VR(element.tag), element.keyword
        if element.VR not in (allowed, *allowed.split(" or ")):
            return
        values = _values(element.value)
        if element.VR == "SQ":
            setattr(copy, keyword, [self.copy(item, keyword) for item in element.value])
        elif element.VR == "UI":
            uids = [self.deidentifier.uid(str(uid)) for uid in values]
            setattr(copy, keyword, uids if element.VM > 1 else uids[0] if uids else None)
        elif keyword in ("ImageType", "FrameType", "CorrectedImage", "SequenceVariant", "ScanOptions"):
            setattr(copy, keyword, [value for value in map(str, values) if _is_word(value)])
        elif element.VR == "CS":
            if all(_is_word(str(value)) for value in values):
                setattr(copy, keyword, element.value)
        elif keyword == "RescaleType":
            if str(element.value) in _RESCALED:
                setattr(copy, keyword, element.value)
        elif keyword in _NAMED:
            setattr(
                copy, keyword, self.deidentifier.text(str(element.value or ""), self.identifying, "structure")
            )
        else:
            copy[element.tag] = element


_OF_CODES = frozenset({"CodeValue", "LongCodeValue", "URNCodeValue", "CodingSchemeDesignator", "CodeMeaning"})
_CODED = frozenset({"AnatomicRegionSequence"})
"""Sequences of codes without "Code" in their names."""

_NAMED = frozenset({"SegmentLabel", "ROIName"})
"""Attributes with names chosen by people."""


def _is_word(value: str) -> bool:
    return value in _WORDS or _CHARACTER_SET.fullmatch(value) is not None


def _values(value: Any) -> list[Any]:
    """Return the values of an attribute, which may have none, one or several."""
    from pydicom.multival import MultiValue

    if value is None:
        return []
    return list(value) if isinstance(value, (MultiValue, list, tuple)) else [value]


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\W_]+", text.casefold()) if word]


def _holds(words: list[str], part: list[str]) -> bool:
    """Return whether words contain others as consecutive words."""
    return bool(part) and any(words[at : at + len(part)] == part for at in range(len(words)))
