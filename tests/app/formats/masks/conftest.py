"""A small series, as a scanner would write it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid

from raterscope.app.formats.records import VolumeFile
from raterscope.app.formats.volumes import find_volumes

OBLIQUE = (0.9541666, -0.2080757, 0.2151061, 0.2785886, 0.880128, -0.3843997)
STRAIGHT = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)


@pytest.fixture
def series(tmp_path: Path) -> Callable[..., VolumeFile]:
    """Make a CT series of small slices and read its head."""

    def make(
        shape: tuple[int, int, int] = (4, 20, 30),
        turn: tuple[float, ...] = STRAIGHT,
        heights: Sequence[float] | None = None,
        **more: object,
    ) -> VolumeFile:
        folder = tmp_path / f"series {len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        normal = np.cross(turn[:3], turn[3:])
        common = {name: generate_uid() for name in ("Study", "Series", "Frame")}
        for at in range(shape[0]):
            dataset = Dataset()
            dataset.SOPClassUID, dataset.SOPInstanceUID = CTImageStorage, generate_uid()
            dataset.StudyInstanceUID, dataset.SeriesInstanceUID = common["Study"], common["Series"]
            dataset.FrameOfReferenceUID, dataset.Modality = common["Frame"], "CT"
            dataset.PatientName, dataset.PatientID = "Doe^Jane", "PID-4711"
            dataset.StudyDate, dataset.InstitutionName = "20240102", "General Hospital"
            dataset.InstanceNumber, dataset.SeriesNumber = at + 1, 3
            dataset.ImagePositionPatient = [
                f"{value:.6f}"
                for value in np.array([-30.0, 12.0, 55.0]) + normal * (heights[at] if heights else 2.5 * at)
            ]
            dataset.ImageOrientationPatient = list(turn)
            dataset.PixelSpacing, dataset.SliceThickness = [0.7, 0.9], 2.5
            dataset.Rows, dataset.Columns = shape[1:]
            dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
            dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit, dataset.PixelRepresentation = (
                16,
                16,
                15,
                1,
            )
            dataset.RescaleSlope, dataset.RescaleIntercept = 1, 0
            dataset.PixelData = np.full(shape[1:], at, dtype=np.int16).tobytes()
            for keyword, value in more.items():
                setattr(dataset, keyword, value)
            dataset.file_meta = FileMetaDataset()
            dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
            dataset.save_as(folder / f"{at}.dcm", enforce_file_format=True)
        (volume,) = find_volumes(folder)
        return volume

    return make


@pytest.fixture
def blobs() -> Callable[..., np.ndarray]:
    """Make a mask of separate parts with holes, some of them touching at a corner alone."""

    def make(shape: tuple[int, int, int], seed: int = 0, share: float = 0.4) -> np.ndarray:
        random = np.random.default_rng(seed)
        mask = random.random(shape) < share
        mask[:, 2:12, 3:15] = True
        mask[:, 5:8, 6:9] = False
        return mask

    return make
