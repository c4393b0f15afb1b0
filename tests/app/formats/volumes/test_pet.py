"""Uptake of PET images: by weight, dose and decay, as the profile of QIBA calculates it."""

import numpy as np
import pytest
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, PositronEmissionTomographyImageStorage, generate_uid

from raterscope.app.formats.volumes import find_volumes, load_volume

HALF_LIFE = 6586.2


def write_series(folder, **changes):
    """Write three slices with 5,000 Bq/ml; 370 MBq were injected 1 h before into a patient of 74 kg."""
    folder.mkdir()
    series, frame = generate_uid(), generate_uid()
    for number in range(3):
        head = Dataset()
        head.file_meta = FileMetaDataset()
        head.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
        head.SOPClassUID = head.file_meta.MediaStorageSOPClassUID = PositronEmissionTomographyImageStorage
        head.SOPInstanceUID = head.file_meta.MediaStorageSOPInstanceUID = generate_uid()
        head.SeriesInstanceUID, head.FrameOfReferenceUID = series, frame
        head.Modality, head.Units, head.DecayCorrection, head.PatientWeight = "PT", "BQML", "START", 74
        head.SeriesDate = head.AcquisitionDate = "20240102"
        head.SeriesTime, head.AcquisitionTime = "101500", f"10{15 + number}00.5"
        dose = Dataset()
        dose.RadiopharmaceuticalStartTime, dose.RadionuclideTotalDose = "091500.00", 370e6
        dose.RadionuclideHalfLife = HALF_LIFE
        head.RadiopharmaceuticalInformationSequence = [dose]
        head.ImageOrientationPatient, head.ImagePositionPatient = [1, 0, 0, 0, 1, 0], [0, 0, 3.0 * number]
        head.PixelSpacing, head.SliceThickness, head.Rows, head.Columns = [4, 4], 3, 2, 2
        head.SamplesPerPixel, head.PhotometricInterpretation, head.PixelRepresentation = 1, "MONOCHROME2", 0
        head.BitsAllocated, head.BitsStored, head.HighBit = 16, 16, 15
        head.RescaleSlope, head.RescaleIntercept = 0.5, 0
        head.WindowCenter, head.WindowWidth = 5000, 10000
        head.PixelData = np.full((2, 2), 10_000, dtype=np.uint16).tobytes()
        for name, value in changes.items():
            setattr(dose if name in dose else head, name, value)
        head.save_as(folder / f"{number}.dcm", enforce_file_format=True)
    return folder


def read(folder):
    (file,) = find_volumes(folder)
    return load_volume(file)


def test_values_are_standardised_uptake(tmp_path):
    volume = read(write_series(tmp_path / "pet"))
    expected = 5000 / (370e6 * 2 ** (-3600 / HALF_LIFE) / 74_000)
    np.testing.assert_allclose(volume.values, expected, rtol=1e-6)
    assert volume.unit == "SUV"
    assert volume.window == pytest.approx((expected, 2 * expected))


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        (
            {"RadiopharmaceuticalStartTime": "231500", "SeriesTime": "001500", "AcquisitionTime": "001600"},
            3600,
        ),
        ({"DecayCorrection": "ADMIN"}, 0),
    ],
)
def test_decay_is_counted_over_midnight_and_not_twice(tmp_path, changes, seconds):
    volume = read(write_series(tmp_path / "pet", **changes))
    np.testing.assert_allclose(
        volume.values, 5000 / (370e6 * 2 ** (-seconds / HALF_LIFE) / 74_000), rtol=1e-6
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"PatientWeight": None}, {"PatientWeight": 0}, {"RadionuclideTotalDose": 0},
        {"DecayCorrection": "NONE"}, {"SeriesTime": "120000"}, {"SeriesTime": ""},
        {"RadiopharmaceuticalStartTime": ""},
    ],
)  # fmt: skip
def test_without_dose_weight_or_time_values_stay_activities(tmp_path, changes):
    volume = read(write_series(tmp_path / "pet", **changes))
    np.testing.assert_allclose(volume.values, 5000)
    assert volume.unit == "Bq/ml"


def test_other_units_stay_as_they_are(tmp_path):
    volume = read(write_series(tmp_path / "pet", Units="CNTS"))
    np.testing.assert_allclose(volume.values, 5000)
    assert volume.unit == ""
