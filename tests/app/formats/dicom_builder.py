"""Synthetic CT series and structure sets whose geometry is known, made with pydicom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.uid import (
    CTImageStorage,
    EnhancedCTImageStorage,
    EnhancedMRImageStorage,
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
    RTStructureSetStorage,
    generate_uid,
)
from skimage.measure import grid_points_in_poly

__all__ = [
    "ORIENTATIONS",
    "BuiltSeries",
    "disc",
    "disc_mask",
    "write_contours",
    "write_enhanced",
    "write_series",
]

_STUDY, _FRAME = "1.2.826.0.1.3680043.8.498.7", "1.2.826.0.1.3680043.8.498.8"

ORIENTATIONS: Mapping[str, tuple[float, ...]] = {
    "axial": (1, 0, 0, 0, 1, 0),
    "sagittal": (0, 1, 0, 0, 0, -1),
    "coronal": (1, 0, 0, 0, 0, -1),
    "oblique": (0.8, 0.6, 0, -0.48, 0.64, 0.6),
}
"""Directions of a row's and of a column's pixels (ImageOrientationPatient)."""


@dataclass(frozen=True)
class BuiltSeries:
    """A series on disk, its slices in the order of their positions along the normal.

    Attributes
    ----------
    folder : Path
    files : tuple of Path
    uids : tuple of str
        SOP instance UIDs of the slices that were written, `missing_uids` of those that were not.
    places : (slices, 3) array
        ImagePositionPatient of the slices that were written, `missing_places` of those that were not.
    spacing : (slice, row, column)
    """

    folder: Path
    files: tuple[Path, ...]
    uids: tuple[str, ...]
    places: np.ndarray
    row: np.ndarray
    column: np.ndarray
    spacing: tuple[float, float, float]
    series: str
    missing_uids: tuple[str, ...] = ()
    missing_places: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))

    def at(self, name: int, rows: np.ndarray, columns: np.ndarray, *, missing: bool = False) -> np.ndarray:
        """Return the (N, 3) places in mm of pixels on a slice."""
        first = (self.missing_places if missing else self.places)[name]
        _, down, across = self.spacing
        return first + np.outer(columns * across, self.row) + np.outer(rows * down, self.column)


def write_series(
    folder: Path,
    shape: tuple[int, int, int] = (12, 32, 40),
    spacing: tuple[float, float, float] = (2.5, 0.8, 0.8),
    *,
    orientation: str = "axial",
    positions: Sequence[float] | None = None,
    missing: Sequence[int] = (),
    reverse: bool = False,
    tilt: float = 0.0,
    origin: tuple[float, float, float] = (-20.0, -30.0, 40.0),
    series: str = "1.2.826.0.1.3680043.8.498.1",
    tags: Mapping[str, object] | None = None,
) -> BuiltSeries:
    """Write a CT of random values, one file a slice.

    Parameters
    ----------
    folder : Path
    shape : (slices, rows, columns)
        Before slices are taken out.
    spacing : (slice, row, column)
        mm.
    orientation : str
        Of `ORIENTATIONS`.
    positions : sequence of float, optional
        mm along the normal, one a slice, in place of even ones.
    missing : sequence of int
        Slices that are not written.
    reverse : bool
        Number files and instances from the last slice to the first.
    tilt : float
        Degrees by which the way from slice to slice leans along the columns against the normal.
    origin : (x, y, z)
        ImagePositionPatient of the first slice.
    series : str
        SeriesInstanceUID.
    tags : mapping, optional
        Further attributes of every file, by keyword.
    """
    turn = np.array(ORIENTATIONS[orientation], dtype=float)
    row, column = turn[:3], turn[3:]
    normal = np.cross(row, column)
    heights = np.arange(shape[0]) * spacing[0] if positions is None else np.array(positions, dtype=float)
    way = normal + np.tan(np.radians(tilt)) * column
    points = np.array(origin) + np.outer(heights - heights[0], way)
    values = np.random.default_rng(1).integers(-1000, 1000, shape).astype(np.int16)
    folder.mkdir(parents=True, exist_ok=True)
    written: list[tuple[Path, str, np.ndarray]] = []
    left: list[tuple[str, np.ndarray]] = []
    for at, position in enumerate(points):
        number = shape[0] - at if reverse else at + 1
        uid = f"{series}.{at + 1}"
        if at in missing:
            left.append((uid, position))
            continue
        data = Dataset()
        data.SOPClassUID, data.SOPInstanceUID = CTImageStorage, uid
        data.StudyInstanceUID, data.SeriesInstanceUID, data.FrameOfReferenceUID = _STUDY, series, _FRAME
        data.PatientName, data.PatientID = "Test^Person", "4711"
        data.PatientBirthDate, data.PatientSex = "", ""
        data.StudyDate, data.StudyTime, data.StudyID = "20200101", "120000", "1"
        data.AccessionNumber, data.ReferringPhysicianName = "", ""
        data.Modality, data.SeriesDescription, data.SeriesNumber = "CT", "thorax", 3
        data.Rows, data.Columns = shape[1:]
        data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
        data.BitsAllocated = data.BitsStored = 16
        data.HighBit, data.PixelRepresentation = 15, 1
        data.RescaleSlope, data.RescaleIntercept = 1, 0
        data.PixelSpacing, data.SliceThickness = [spacing[1], spacing[2]], spacing[0]
        data.InstanceNumber = number
        data.ImagePositionPatient = [round(value, 6) for value in position.tolist()]
        data.ImageOrientationPatient = turn.tolist()
        data.PixelData = values[at].tobytes()
        for name, value in (tags or {}).items():
            setattr(data, name, value)
        path = folder / f"slice{number:03d}.dcm"
        _save(data, path, ExplicitVRLittleEndian)
        written.append((path, uid, np.round(position, 6)))
    return BuiltSeries(
        folder=folder,
        files=tuple(path for path, _, _ in written),
        uids=tuple(uid for _, uid, _ in written),
        places=np.array([corner for _, _, corner in written]),
        row=row,
        column=column,
        spacing=spacing,
        series=series,
        missing_uids=tuple(uid for uid, _ in left),
        missing_places=np.array([corner for _, corner in left]).reshape(-1, 3),
    )


def write_enhanced(
    path: Path,
    shape: tuple[int, int, int] = (12, 32, 40),
    spacing: tuple[float, float, float] = (2.5, 0.8, 0.8),
    *,
    modality: str = "CT",
    orientation: str = "axial",
    origin: tuple[float, float, float] = (-20.0, -30.0, 40.0),
    series: str = "1.2.826.0.1.3680043.8.498.2",
) -> BuiltSeries:
    """Write an enhanced multi-frame CT or MR of random values, its slices from the last to the first."""
    turn = np.array(ORIENTATIONS[orientation], dtype=float)
    row, column = turn[:3], turn[3:]
    positions = np.array(origin) + np.outer(np.arange(shape[0]) * spacing[0], np.cross(row, column))
    positions = np.round(positions, 6)
    values = np.random.default_rng(2).integers(0, 1000, shape).astype(np.uint16)
    data = Dataset()
    data.SOPClassUID = EnhancedCTImageStorage if modality == "CT" else EnhancedMRImageStorage
    data.SOPInstanceUID = f"{series}.1"
    data.StudyInstanceUID, data.SeriesInstanceUID, data.FrameOfReferenceUID = _STUDY, series, _FRAME
    data.PatientName, data.PatientID, data.Modality = "Test^Person", "4711", modality
    data.SeriesNumber, data.InstanceNumber, data.ImageType = 4, 1, ["ORIGINAL", "PRIMARY", "VOLUME", "NONE"]
    data.NumberOfFrames, data.Rows, data.Columns = shape
    data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
    data.BitsAllocated = data.BitsStored = 16
    data.HighBit, data.PixelRepresentation = 15, 0
    measures, plane, shared, rescale = Dataset(), Dataset(), Dataset(), Dataset()
    measures.PixelSpacing, measures.SliceThickness = [spacing[1], spacing[2]], spacing[0]
    plane.ImageOrientationPatient = turn.tolist()
    rescale.RescaleSlope, rescale.RescaleIntercept, rescale.RescaleType = 1, 0, "US"
    shared.PixelMeasuresSequence, shared.PlaneOrientationSequence = [measures], [plane]
    shared.PixelValueTransformationSequence = [rescale]
    data.SharedFunctionalGroupsSequence = [shared]
    data.PerFrameFunctionalGroupsSequence = []
    for corner in positions[::-1]:
        frame, position, content = Dataset(), Dataset(), Dataset()
        position.ImagePositionPatient = corner.tolist()
        content.StackID, content.InStackPositionNumber = "1", len(data.PerFrameFunctionalGroupsSequence) + 1
        frame.PlanePositionSequence, frame.FrameContentSequence = [position], [content]
        data.PerFrameFunctionalGroupsSequence.append(frame)
    data.PixelData = values[::-1].tobytes()
    _save(data, path, ExplicitVRLittleEndian)
    uid = data.SOPInstanceUID
    return BuiltSeries(path.parent, (path,), (uid,) * shape[0], positions, row, column, spacing, series)


def write_contours(
    path: Path,
    series: BuiltSeries,
    contours: Mapping[str, Sequence[tuple[np.ndarray, str | None]]],
    *,
    rater: str = "",
) -> Path:
    """Write a structure set.

    Parameters
    ----------
    path : Path
    series : BuiltSeries
        That it refers to.
    contours : mapping of structure to (places, uid)
        Each closed contour's (N, 3) places in mm, and the image it refers to, None for no reference.
    rater : str
        The operator.
    """
    data = Dataset()
    data.SOPClassUID, data.SOPInstanceUID = RTStructureSetStorage, generate_uid(prefix=None)
    data.StudyInstanceUID, data.SeriesInstanceUID = _STUDY, generate_uid(prefix=None)
    data.PatientName, data.PatientID, data.Modality = "Test^Person", "4711", "RTSTRUCT"
    data.OperatorsName = rater
    reference, study, frame = Dataset(), Dataset(), Dataset()
    reference.SeriesInstanceUID = series.series
    reference.ContourImageSequence = [_image(uid) for uid in (*series.uids, *series.missing_uids)]
    study.ReferencedSOPInstanceUID = _STUDY
    study.RTReferencedSeriesSequence = [reference]
    frame.FrameOfReferenceUID, frame.RTReferencedStudySequence = _FRAME, [study]
    data.ReferencedFrameOfReferenceSequence = [frame]
    data.StructureSetROISequence, data.ROIContourSequence = [], []
    data.RTROIObservationsSequence = []
    for number, (name, outlines) in enumerate(contours.items(), 1):
        roi, drawn, observation = Dataset(), Dataset(), Dataset()
        roi.ROINumber, roi.ROIName, roi.ReferencedFrameOfReferenceUID = number, name, _FRAME
        drawn.ReferencedROINumber = number
        drawn.ContourSequence = []
        for positions, uid in outlines:
            contour = Dataset()
            if uid is not None:
                contour.ContourImageSequence = [_image(uid)]
            contour.ContourGeometricType = "CLOSED_PLANAR"
            contour.NumberOfContourPoints = len(positions)
            contour.ContourData = [f"{value:.6f}".rstrip("0") for value in np.asarray(positions).ravel()]
            drawn.ContourSequence.append(contour)
        observation.ObservationNumber = observation.ReferencedROINumber = number
        observation.RTROIInterpretedType, observation.ROIInterpreter = "", ""
        data.StructureSetROISequence.append(roi)
        data.ROIContourSequence.append(drawn)
        data.RTROIObservationsSequence.append(observation)
    return _save(data, path, ImplicitVRLittleEndian)


def _image(uid: str) -> Dataset:
    image = Dataset()
    image.ReferencedSOPClassUID, image.ReferencedSOPInstanceUID = CTImageStorage, uid
    return image


def _save(data: Dataset, path: Path, syntax: str) -> Path:
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = syntax
    meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = data.SOPClassUID, data.SOPInstanceUID
    path.parent.mkdir(parents=True, exist_ok=True)
    FileDataset(str(path), data, preamble=b"\0" * 128, file_meta=meta).save_as(path, enforce_file_format=True)
    return path


def disc(
    series: BuiltSeries, index: int, radius: float, centre: tuple[float, float] = (15.5, 19.5), *,
    missing: bool = False, refer: bool = True,
) -> tuple[np.ndarray, str | None]:  # fmt: skip
    """Draw a circle of so many pixels about a (row, column) on a slice, or on a missing one."""
    turn = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    rows, columns = centre[0] + radius * np.sin(turn), centre[1] + radius * np.cos(turn)
    uid = (series.missing_uids if missing else series.uids)[index]
    return series.at(index, rows, columns, missing=missing), uid if refer else None


def disc_mask(
    shape: tuple[int, int], radius: float, centre: tuple[float, float] = (15.5, 19.5)
) -> np.ndarray:
    """Return the pixels whose centres lie within the circle of `disc`."""
    turn = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    outline = np.column_stack([centre[0] + radius * np.sin(turn), centre[1] + radius * np.cos(turn)])
    return grid_points_in_poly(shape, outline)
