"""Small DICOM files, made with pydicom."""

from pathlib import Path
from typing import Any

import numpy as np
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.sequence import Sequence
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid

__all__ = ["COLUMNS", "ROWS", "enhanced", "image", "save"]

ROWS, COLUMNS = 5, 7
AXIAL = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)


def image(pixels: np.ndarray, position: tuple[float, ...] | None = (0.0, 0.0, 0.0), **tags: Any) -> Dataset:
    """An uncompressed CT slice; tags by their keyword, None to leave one out."""
    data = Dataset()
    data.SOPClassUID, data.SOPInstanceUID = CTImageStorage, generate_uid()
    data.SeriesInstanceUID, data.Modality = "1.2.3.4", "CT"
    data.PatientName, data.PatientID = "Secret^Person", "PID-4711"
    data.SeriesDescription, data.SeriesNumber = "thorax", 3
    data.Rows, data.Columns = pixels.shape[:2]
    data.SamplesPerPixel = 3 if pixels.ndim == 3 else 1
    data.PhotometricInterpretation = "RGB" if pixels.ndim == 3 else "MONOCHROME2"
    if pixels.ndim == 3:
        data.PlanarConfiguration = 0
    bits = 8 * pixels.dtype.itemsize
    data.BitsAllocated, data.BitsStored, data.HighBit = bits, bits, bits - 1
    data.PixelRepresentation = int(pixels.dtype.kind == "i")
    data.PixelSpacing, data.SliceThickness = [0.5, 0.25], 2.0
    if position is not None:
        data.ImagePositionPatient, data.ImageOrientationPatient = list(position), list(AXIAL)
    data.PixelData = pixels.tobytes()
    for name, value in tags.items():
        if value is None:
            delattr(data, name)
        else:
            setattr(data, name, value)
    return data


def save(data: Dataset, path: Path, syntax: str = ExplicitVRLittleEndian) -> Path:
    """Write with a preamble."""
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = syntax
    meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = data.SOPClassUID, data.SOPInstanceUID
    file = FileDataset(str(path), data, preamble=b"\0" * 128, file_meta=meta)
    path.parent.mkdir(parents=True, exist_ok=True)
    file.save_as(path, enforce_file_format=True)
    return path


def enhanced(pixels: np.ndarray, heights: list[float], intercepts: list[float]) -> Dataset:
    """A file of several frames, each with its place and its scale."""
    data = image(pixels[0], None)
    data.NumberOfFrames, data.PixelData = len(pixels), pixels.tobytes()
    del data.PixelSpacing
    shared = Dataset()
    measures, plane = Dataset(), Dataset()
    measures.PixelSpacing, measures.SliceThickness = [0.5, 0.25], 2.0
    plane.ImageOrientationPatient = list(AXIAL)
    shared.PixelMeasuresSequence, shared.PlaneOrientationSequence = Sequence([measures]), Sequence([plane])
    data.SharedFunctionalGroupsSequence = Sequence([shared])
    frames = []
    for height, intercept in zip(heights, intercepts, strict=True):
        frame, position, scale = Dataset(), Dataset(), Dataset()
        position.ImagePositionPatient = [1.0, 2.0, height]
        scale.RescaleSlope, scale.RescaleIntercept, scale.RescaleType = 1, intercept, "HU"
        frame.PlanePositionSequence = Sequence([position])
        frame.PixelValueTransformationSequence = Sequence([scale])
        frames.append(frame)
    data.PerFrameFunctionalGroupsSequence = Sequence(frames)
    return data
