"""Masks of every geometry through every format: other libraries and we find them where they were.

NIfTI and .seg.nrrd are read by SimpleITK, DICOM SEG by highdicom, RTSTRUCT by a reader of its own here, which
takes a contour to the image that it refers to and fills it at the centres of voxels.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import highdicom
import numpy as np
import pydicom
import pytest
import SimpleITK as sitk  # noqa: N813
from skimage.measure import grid_points_in_poly

from raterscope.app.errors import InputError
from raterscope.app.formats.masks import read_masks
from raterscope.app.formats.masks.export import write_masks
from raterscope.app.formats.masks.terminology import Structure
from raterscope.app.formats.records import VolumeFile
from raterscope.app.formats.volumes import find_volumes
from tests.app.formats.dicom_builder import write_enhanced, write_series

SHAPE = (7, 16, 20)
FORMATS = ("nifti", "seg.nrrd", "dicom-seg", "rtstruct")
UNEVEN, MISSING = (0.0, 2.0, 4.0, 10.0, 12.0, 18.0, 20.0), (2, 3)
GEOMETRIES = {
    "axial": {},
    "sagittal": {"orientation": "sagittal"},
    "coronal": {"orientation": "coronal"},
    "oblique": {"orientation": "oblique"},
    "anisotropic": {"spacing": (7.5, 0.4, 1.3)},
    "uneven": {"positions": UNEVEN},
    "missing slices": {"missing": MISSING},
    "reversed order": {"reverse": True},
    "single slice": {"shape": (1, *SHAPE[1:])},
    "enhanced CT": {"modality": "CT"},
    "enhanced MR": {"modality": "MR", "orientation": "oblique"},
}
UNEQUAL = ("uneven", "missing slices")
NEAR = 1e-3
"""mm."""


@dataclass(frozen=True)
class Case:
    """A series on disk, and where its slices truly lie."""

    volume: VolumeFile
    places: np.ndarray
    """(slices, 3): first voxel of each slice."""
    row: np.ndarray
    column: np.ndarray
    spacing: tuple[float, float]

    def world(self, name: int, row: float, column: float) -> np.ndarray:
        """Where a voxel's centre is, by the files' own numbers."""
        return self.places[name] + self.column * row * self.spacing[0] + self.row * column * self.spacing[1]


@pytest.fixture(scope="module")
def cases(tmp_path_factory) -> dict[str, Case]:
    result = {}
    for name, how in GEOMETRIES.items():
        folder = tmp_path_factory.mktemp("series")
        if "modality" in how:
            built = write_enhanced(folder / "image.dcm", SHAPE, **how)
        else:
            built = write_series(folder, **{"shape": SHAPE, **how})
        (volume,) = find_volumes(folder)
        assert volume.grid.shape[0] == len(built.places)
        result[name] = Case(volume, built.places, built.row, built.column, built.spacing[1:])
    return result


def masks_of(kind: str, shape: tuple[int, int, int]) -> dict[str, np.ndarray]:
    """Masks with holes, separate parts, and corners that touch; some at the edges of the image."""
    z, y, x = np.indices(shape)
    large = (y >= 2) & (y < 13) & (x >= 3) & (x < 16)
    large &= ~((y == 7) & (x >= 6) & (x < 9))
    large |= (y == 13) & (x == 16)
    inner = (y >= 4) & (y < 7) & (x >= 5) & (x < 12)
    edge = ((x + y + z) % 3 == 0) & ((x >= 17) | (y == 0))
    if shape[0] > 1:
        large &= z > 0
        inner &= (z > 1) & (z != 3)
        edge |= (z == shape[0] - 1) & (x > 16)
    return {
        "one": {"one": large},
        "nested": {"outer": large, "inner": inner & large},
        "overlapping": {"first": large, "second": (x + y > 14) & (z < 4)},
        "several": {"a": large & ~inner, "b": inner & large, "c": edge & ~large},
    }[kind]


def written(case: Case, masks: dict[str, np.ndarray], path: Path, kind: str, **more: object) -> list[Path]:
    structures = [Structure(name, mask) for name, mask in masks.items()]
    return write_masks(path, kind, structures, case.volume.grid, source=case.volume, **more)


def itk_masks(paths: list[Path], names: list[str]) -> Iterator[tuple[str, np.ndarray, sitk.Image]]:
    """Read NIfTI: a map of labels in order, or a file for each structure called after it."""
    if len(paths) == 1:
        image = sitk.ReadImage(str(paths[0]))
        for label, name in enumerate(names, 1):
            yield name, sitk.GetArrayFromImage(image) == label, image
        return
    for name, path in zip(names, paths, strict=True):
        assert path.name.endswith(f"_{name}.nii.gz")
        image = sitk.ReadImage(str(path))
        yield name, sitk.GetArrayFromImage(image) == 1, image


def slicer_masks(path: Path, count: int) -> Iterator[tuple[str, np.ndarray, sitk.Image]]:
    """Read a .seg.nrrd, whose layers are the components of a voxel."""
    image = sitk.ReadImage(str(path))
    values = sitk.GetArrayFromImage(image)
    layers = values[..., None] if values.ndim == 3 else values
    for number in range(count):
        expected = {
            key: image.GetMetaData(f"Segment{number}_{key}") for key in ("Name", "Layer", "LabelValue")
        }
        yield expected["Name"], layers[..., int(expected["Layer"])] == int(expected["LabelValue"]), image


def check_places(image: sitk.Image, case: Case) -> None:
    """Every corner of an image lies where the series has it."""
    slices, rows, columns = case.volume.grid.shape
    for index in (0, slices - 1):
        for row, column in ((0, 0), (rows - 1, 0), (0, columns - 1)):
            position = image.TransformIndexToPhysicalPoint((column, row, index))
            np.testing.assert_allclose(position, case.world(index, row, column), atol=NEAR)


def seg_masks(path: Path, case: Case) -> Iterator[tuple[str, np.ndarray]]:
    """Read a segmentation by the images that its frames refer to."""
    seg = highdicom.seg.segread(path)
    volume = case.volume
    how = {"combine_segments": False, "assert_missing_frames_are_empty": True}
    if volume.frames:
        numbers = [frame + 1 for frame in volume.frames]
        pixels = seg.get_pixels_by_source_frame(volume.instances[0], numbers, **how)
    else:
        pixels = seg.get_pixels_by_source_instance(list(volume.instances), **how)
    for number in seg.segment_numbers:
        yield seg.get_segment_description(number).SegmentLabel, pixels[..., number - 1] > 0


def check_frames(path: Path, case: Case) -> None:
    """Every frame of a segmentation says that it lies where the image is that it refers to."""
    data = pydicom.dcmread(path)
    turn = data.SharedFunctionalGroupsSequence[0].PlaneOrientationSequence[0].ImageOrientationPatient
    np.testing.assert_allclose(turn, [*case.row, *case.column], atol=1e-5)
    for frame in data.PerFrameFunctionalGroupsSequence:
        position = np.array(frame.PlanePositionSequence[0].ImagePositionPatient, dtype=float)
        source = frame.DerivationImageSequence[0].SourceImageSequence[0]
        index = slice_of(source, case.volume)
        np.testing.assert_allclose(position, case.places[index], atol=NEAR)


def slice_of(reference: pydicom.Dataset, volume: VolumeFile) -> int:
    if volume.frames:
        return volume.frames.index(int(reference.ReferencedFrameNumber) - 1)
    return volume.instances.index(str(reference.ReferencedSOPInstanceUID))


def contour_masks(path: Path, case: Case) -> Iterator[tuple[str, np.ndarray]]:
    """Read a structure set: contours of one slice are combined by even-odd."""
    data = pydicom.dcmread(path)
    names = {roi.ROINumber: roi.ROIName for roi in data.StructureSetROISequence}
    shape = case.volume.grid.shape
    normal = np.cross(case.row, case.column)
    for roi in data.ROIContourSequence:
        mask = np.zeros(shape, dtype=bool)
        for contour in roi.ContourSequence:
            (image,) = contour.ContourImageSequence
            index = slice_of(image, case.volume)
            away = np.array(contour.ContourData, dtype=float).reshape(-1, 3) - case.places[index]
            assert np.abs(away @ normal).max() <= NEAR
            points = np.column_stack(
                [away @ case.column / case.spacing[0], away @ case.row / case.spacing[1]]
            )
            mask[index] ^= grid_points_in_poly(shape[1:], points)
        yield names[roi.ReferencedROINumber], mask


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("geometry", "content"),
    [
        *((geometry, "several") for geometry in GEOMETRIES),
        *product(("axial", "oblique", "uneven"), ("one", "nested", "overlapping")),
    ],
)
def test_every_voxel_comes_back_where_it_was(cases, tmp_path, geometry, kind, content):
    case = cases[geometry]
    grid = case.volume.grid
    masks = masks_of(content, grid.shape)
    if geometry in UNEQUAL and kind in ("nifti", "seg.nrrd"):
        with pytest.raises(InputError, match="cannot be written"):
            written(case, masks, tmp_path / "m", kind)
        check_resampled(case, masks, written(case, masks, tmp_path / "m", kind, resample=True))
        return
    paths = written(case, masks, tmp_path / "m", kind)
    result: dict[str, np.ndarray] = {}
    if kind == "dicom-seg":
        check_frames(paths[0], case)
        result = dict(seg_masks(paths[0], case))
    elif kind == "rtstruct":
        result = dict(contour_masks(paths[0], case))
    else:
        read = itk_masks(paths, list(masks)) if kind == "nifti" else slicer_masks(paths[0], len(masks))
        for name, mask, image in read:
            check_places(image, case)
            result[name] = mask
    assert list(result) == list(masks)
    for name, mask in masks.items():
        np.testing.assert_array_equal(result[name], mask, err_msg=name)
    ours = [mask for path in paths for mask in read_masks(path, [case.volume]).masks]
    assert len(ours) == len(masks)
    for rater_mask, (name, mask) in zip(ours, masks.items(), strict=True):
        assert rater_mask.structure == name or kind == "nifti"
        assert rater_mask.grid.same_as(grid)
        np.testing.assert_array_equal(rater_mask.whole(), mask, err_msg=name)


def check_resampled(case: Case, masks: dict[str, np.ndarray], paths: list[Path]) -> None:
    """On a regular grid every slice that there is lies in its true place, as it was drawn."""
    read = (
        slicer_masks(paths[0], len(masks))
        if paths[0].name.endswith(".nrrd")
        else itk_masks(paths, list(masks))
    )
    for name, mask, image in read:
        for objects, position in enumerate(case.places):
            index = image.TransformPhysicalPointToContinuousIndex(position.tolist())
            np.testing.assert_allclose(index, np.rint(index), atol=1e-3)
            np.testing.assert_array_equal(
                mask[round(index[2])], masks[name][objects], err_msg=f"{name} {objects}"
            )
