"""DICOM series with an identified patient, and raters' segmentations of it, as files."""

from pathlib import Path

import numpy as np
from pydicom.sr.coding import Code as Concept

from raterscope.app.coding import Code, Coding
from raterscope.app.formats.masks.export import write_masks
from raterscope.app.formats.masks.terminology import Structure
from raterscope.app.formats.records import VolumeFile
from raterscope.app.formats.volumes import find_volumes
from tests.app.formats.dicom_builder import write_series

SHAPE = (6, 24, 30)
SERIES = "1.2.392.4711.20240102"
PATIENT = {
    "PatientName": "Zorgenfri^Ole", "PatientID": "PID-471199", "PatientBirthDate": "19570321",
    "AccessionNumber": "ACC-8812", "InstitutionName": "Lakeside Hospital", "StudyDate": "20240102",
    "SeriesDescription": "SECRETDESC", "SeriesNumber": 401, "OperatorsName": "Nurse^Nancy",
    "ReferringPhysicianName": "Refer^Rita", "StationName": "CT-BASEMENT", "ProtocolName": "Ole chest",
    "DeviceSerialNumber": "SER-99417", "StudyID": "STUDY-77", "ImageComments": "for Mr Zorgenfri",
    "SpecificCharacterSet": "ISO_IR 100", "ImageType": ["ORIGINAL", "PRIMARY", "AXIAL"],
}  # fmt: skip
SECRETS = (
    "Zorgenfri", "ZORGENFRI", "Ole", "PID-471199", "19570321", "ACC-8812", "Lakeside", "20240102",
    "SECRETDESC", "Nancy", "Rita", "BASEMENT", "SER-99417", "STUDY-77", SERIES,
    "1.2.826.0.1.3680043.8.498.7", "1.2.826.0.1.3680043.8.498.8",
    "Dr Able", "Dr Baker", "Able", "Baker",
)  # fmt: skip
HEART = Coding(
    category=Code("91723000", "SCT", "Anatomical Structure"), type=Code("80891009", "SCT", "Heart"),
    colour=(206, 110, 84),
)  # fmt: skip
NEOPLASM = Coding(
    category=Code("49755003", "SCT", "Morphologically Abnormal Structure"),
    type=Code("108369006", "SCT", "Neoplasm"), modifier=Code("7771000", "SCT", "Left"),
    region=Code("39607008", "SCT", "Lung"), colour=(144, 238, 144),
)  # fmt: skip


def a_patient(folder: Path, **more: object) -> VolumeFile:
    """A CT of a patient."""
    write_series(folder, SHAPE, (2.5, 0.8, 0.8), series=SERIES, tags={**PATIENT, **more})
    (volume,) = find_volumes(folder)
    return volume


def box(*bounds: int) -> np.ndarray:
    """A mask that is a box: first and last slice, row and column."""
    mask = np.zeros(SHAPE, dtype=bool)
    mask[bounds[0] : bounds[1], bounds[2] : bounds[3], bounds[4] : bounds[5]] = True
    return mask


def segmented(path: Path, volume: VolumeFile, structures: list[Structure], kind: str = "dicom-seg") -> Path:
    """A file of masks on the series."""
    (written,) = write_masks(path, kind, structures, volume.grid, source=volume)
    return written


def two_raters(folder: Path, volume: VolumeFile, kind: str = "dicom-seg") -> list[Path]:
    """Two raters' hearts and neoplasms, named by their files."""
    paths = []
    for number, name in enumerate(("Dr Able", "Dr Baker")):
        structures = [
            Structure("pump", box(1, 5, 4, 14 + number, 5, 15), coding=HEART),
            Structure("spot", box(2, 4, 16, 20, 18, 24 + number), coding=NEOPLASM),
        ]
        paths.append(segmented(folder / f"{name}.dcm", volume, structures, kind))
    return paths


def concept(code: Code) -> Concept:
    """The same as pydicom has it."""
    return Concept(code.value, code.scheme, code.meaning)
