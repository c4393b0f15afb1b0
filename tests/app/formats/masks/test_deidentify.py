"""De-identified DICOM."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pydicom
import pytest
from pydicom.datadict import DicomDictionary, dictionary_VR
from pydicom.dataelem import DataElement
from pydicom.tag import Tag

from raterscope.app.formats.masks import read_masks
from raterscope.app.formats.masks.deidentify import Deidentifier, deidentify_dataset
from raterscope.app.formats.masks.export import write_masks
from raterscope.app.formats.masks.terminology import Structure
from raterscope.app.formats.records import VolumeFile

SHAPE = (3, 12, 14)
BY = Deidentifier(b"k" * 32, {"Mary Miller": "rater-1"})
NAME, DATE, TIME, AGE, PLACE = "Zorgenfri", "19570321", "031415.92", "066Y", "2.16.999.4711.20240102"
# What the file is there to tell, by names that its writer chose.
CONTENT = {
    "SegmentLabel", "SegmentAlgorithmName", "AlgorithmName", "AlgorithmVersion", "CodeValue", "CodeMeaning",
    "CodingSchemeDesignator", "ROIName", "StructureSetLabel",
}  # fmt: skip
PLANTED = {
    **dict.fromkeys(("LO", "SH", "LT", "ST", "UT", "UC", "AE"), NAME),
    **dict.fromkeys(("OB", "OW", "UN"), NAME.encode() + b" "),
    **{"PN": f"{NAME}^Ole", "CS": NAME.upper(), "UR": f"http://{NAME}", "UI": PLACE},
    **{"DA": DATE, "TM": TIME, "DT": DATE + TIME, "AS": AGE},
}
SECRETS = (NAME.encode(), DATE.encode(), TIME.encode(), AGE.encode(), PLACE.encode())


def plant(dataset: pydicom.Dataset, *, deep: bool = True) -> int:
    """Put identifying values into every attribute of the dictionary that the file does not use."""
    planted = 0
    for tag, (vr, _, _, retired, keyword) in DicomDictionary.items():
        if tag >> 16 in (0, 2, 0x7FE0) or keyword in dataset or not keyword or vr not in PLANTED:
            continue
        if keyword not in CONTENT and not (retired and vr == "UI"):
            dataset[tag] = DataElement(tag, vr, PLANTED[vr])
            planted += 1
    private = dataset.private_block(0x0029, "ACME", create=True)
    private.add_new(1, "LO", NAME)
    private.add_new(2, "UN", NAME.encode() + b" ")
    dataset[0x60003000] = DataElement(Tag(0x6000, 0x3000), "OW", NAME.encode() + b" ")
    dataset[0x60000022] = DataElement(Tag(0x6000, 0x0022), "LO", NAME)
    dataset[0x00110033] = DataElement(Tag(0x0011, 0x0033), "LO", NAME)
    dataset[0x00090500] = DataElement(Tag(0x0009, 0x0500), "SH", NAME)
    if deep:
        inner = pydicom.Dataset()
        plant(inner, deep=False)
        for keyword in ("OtherPatientIDsSequence", "RequestAttributesSequence", "OriginalAttributesSequence"):
            setattr(dataset, keyword, [inner])
        for element in list(dataset):
            if element.VR == "SQ" and element.keyword not in ("OtherPatientIDsSequence",) and element.value:
                plant(element.value[0], deep=False)
    return planted


@pytest.fixture(params=["dicom-seg", "rtstruct"])
def planted(request, tmp_path: Path, series: Callable[..., VolumeFile]):
    volume = series(SHAPE)
    mask = np.zeros(SHAPE, dtype=bool)
    mask[:, 2:5, 3:9] = True
    structures = [Structure("liver", mask)]
    (path,) = write_masks(tmp_path / "a", request.param, structures, volume.grid, source=volume)
    dataset = pydicom.dcmread(path)
    for keyword in (
        "PatientName",
        "PatientID",
        "StudyDate",
        "StudyID",
        "OperatorsName",
        "ContentCreatorName",
    ):
        if keyword in dataset:
            setattr(dataset, keyword, PLANTED[dictionary_VR(keyword)])
    dataset.Manufacturer, dataset.SeriesDescription = NAME, NAME
    assert plant(dataset) > 1000
    dataset.file_meta.SourceApplicationEntityTitle = NAME
    dataset.preamble = (NAME.encode() * 20)[:128]
    return dataset


def test_nothing_that_shows_the_patient_is_left(planted, tmp_path: Path) -> None:
    dataset = planted
    path = tmp_path / "b.dcm"
    deidentify_dataset(dataset, BY).save_as(path, enforce_file_format=True)
    content = path.read_bytes().upper()
    assert [secret for secret in SECRETS if secret.upper() in content] == []
    read = pydicom.dcmread(path)
    assert read.PatientIdentityRemoved == "YES"
    assert read.DeidentificationMethod
    assert read.PatientName == read.PatientID == BY.patient(dataset)
    assert read.StudyDate == ""
    assert read.SOPInstanceUID == read.file_meta.MediaStorageSOPInstanceUID != dataset.SOPInstanceUID
    assert NAME.encode() in dataset.preamble  # the dataset that was given is as it was


@pytest.mark.parametrize("kind", ["dicom-seg", "rtstruct"])
def test_the_mask_is_left(tmp_path: Path, series: Callable[..., VolumeFile], blobs, kind: str) -> None:
    volume, mask = series((4, 20, 30)), blobs((4, 20, 30))
    structures = [Structure("liver", mask)]
    (path,) = write_masks(tmp_path / "a", kind, structures, volume.grid, source=volume, deidentify=BY)
    (rater_mask,) = read_masks(path, [volume]).masks
    assert rater_mask.structure == "liver"
    np.testing.assert_array_equal(rater_mask.whole(), mask)
    content = path.read_bytes()
    secrets = (b"Doe", b"Jane", b"PID-4711", b"20240102", b"General", volume.identifier.encode())
    assert [secret for secret in secrets if secret in content] == []


def test_references_stay_references(tmp_path: Path, series: Callable[..., VolumeFile]) -> None:
    """Two files of one series, made others' together, still are of one series; standard UIDs stay."""
    volume = series(SHAPE)
    mask = np.ones(SHAPE, dtype=bool)
    share = np.full(SHAPE, 0.5, dtype=np.float32)
    structures = [Structure("m", mask), Structure("p", share)]
    files = write_masks(tmp_path / "a", "dicom-seg", structures, volume.grid, source=volume, deidentify=BY)
    first, other = (pydicom.dcmread(file) for file in files)
    assert first.StudyInstanceUID == other.StudyInstanceUID
    assert first.SOPInstanceUID != other.SOPInstanceUID
    series_of = [read.ReferencedSeriesSequence[0].SeriesInstanceUID for read in (first, other)]
    assert series_of[0] == series_of[1] != volume.identifier
    source = first.PerFrameFunctionalGroupsSequence[0].DerivationImageSequence[0].SourceImageSequence[0]
    listed = {
        item.ReferencedSOPInstanceUID for item in first.ReferencedSeriesSequence[0].ReferencedInstanceSequence
    }
    assert source.ReferencedSOPInstanceUID in listed
    assert source.ReferencedSOPClassUID == "1.2.840.10008.5.1.4.1.1.2"
