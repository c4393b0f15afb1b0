"""Contours on series whose slices are missing, uneven, tilted or in any order."""

from pathlib import Path

import highdicom
import numpy as np
import pydicom
import pytest
import SimpleITK

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.errors import InputError
from raterscope.app.formats.masks import read_masks
from raterscope.app.formats.masks.export import write_masks
from raterscope.app.formats.masks.terminology import Structure
from raterscope.app.formats.volumes import find_volumes
from raterscope.app.formats.volumes.resampling import resample
from tests.app.formats.dicom_builder import (
    ORIENTATIONS,
    BuiltSeries,
    disc,
    disc_mask,
    write_contours,
    write_series,
)

UNEVEN = (0.0, 4.2, 5.3, 9.5, 16.9, 21.1, 22.0, 26.0, 33.0, 34.0, 38.0, 45.0)


def drawn(path: Path, series: BuiltSeries, **kwargs: bool) -> Path:
    """Write a disc that grows from slice to slice."""
    discs = [disc(series, at, 3.0 + 0.5 * at, **kwargs) for at in range(len(series.uids))]
    return write_contours(path, series, {"tumour": discs}, rater="anna")


def expected(series: BuiltSeries) -> np.ndarray:
    return np.stack([disc_mask((32, 40), 3.0 + 0.5 * at) for at in range(len(series.uids))])


def test_contours_stay_on_their_slices_where_ten_of_120_are_missing(tmp_path: Path) -> None:
    series = write_series(tmp_path / "ct", (120, 32, 40), missing=range(40, 50))
    spots = [30, 38, 39, 40, 41, 60, 109]
    contours = [disc(series, at, 6.0) for at in spots]
    (volume,) = find_volumes(series.folder)
    path = write_contours(tmp_path / "a.dcm", series, {"tumour": contours}, rater="anna")
    (mask,) = (table := read_masks(path, [volume])).masks
    assert np.flatnonzero(mask.whole().any(axis=(1, 2))).tolist() == spots
    assert table.notices == ()
    np.testing.assert_array_equal(mask.whole()[40], disc_mask((32, 40), 6.0))


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"positions": UNEVEN},
        {"missing": (4, 5, 9)},
        {"reverse": True},
        {"tilt": 18.5, "positions": UNEVEN},
    ],
    ids=["even", "uneven", "missing", "reversed", "tilted"],
)
def test_a_contour_lies_on_the_slice_at_its_position(tmp_path, orientation, options) -> None:
    series = write_series(tmp_path / "ct", orientation=orientation, **options)
    (volume,) = find_volumes(series.folder)
    for refer in (True, False):
        table = read_masks(drawn(tmp_path / "a.dcm", series, refer=refer), [volume])
        np.testing.assert_array_equal(table.masks[0].whole(), expected(series))
        assert table.notices == ()


@pytest.mark.parametrize("refer", [True, False])
def test_contours_on_missing_slices_are_listed_and_not_moved(tmp_path: Path, refer: bool) -> None:
    series = write_series(tmp_path / "ct", missing=(4, 5, 6))
    contours = [disc(series, 3, 5.0), disc(series, 1, 5.0, missing=True, refer=refer), disc(series, 4, 5.0)]
    (volume,) = find_volumes(series.folder)
    path = write_contours(tmp_path / "a.dcm", series, {"tumour": contours}, rater="anna")
    table = read_masks(path, [volume])
    assert np.flatnonzero(table.masks[0].whole().any(axis=(1, 2))).tolist() == [3, 4]
    assert table.notices == (
        "1 contour could not be placed: the image has no slice there "
        "(tumour by anna, contour 2 at 52.50 mm).",
    )


@pytest.mark.parametrize("refer", [True, False])
def test_a_contour_of_a_deleted_slice_does_not_change_its_neighbours(tmp_path: Path, refer: bool) -> None:
    series = write_series(tmp_path / "ct", positions=UNEVEN)
    path = drawn(tmp_path / "a.dcm", series, refer=refer)
    series.files[6].unlink()
    series.files[1].unlink()
    (volume,) = find_volumes(series.folder)
    assert volume.grid.gaps == ()
    table = read_masks(path, [volume])
    np.testing.assert_array_equal(table.masks[0].whole(), np.delete(expected(series), [1, 6], axis=0))
    (notice,) = table.notices
    assert notice.startswith("2 contours could not be placed: the image has no slice there")


def test_a_structure_outside_the_image_is_listed_and_not_read_as_empty(tmp_path: Path) -> None:
    series = write_series(tmp_path / "ct")
    drawn = {name: [disc(series, 3, 5.0)] for name in ("tumour", "node")}
    path = write_contours(tmp_path / "a.dcm", series, drawn, rater="anna")
    dataset = pydicom.dcmread(path)
    (contour,) = dataset.ROIContourSequence[0].ContourSequence
    points = np.array(contour.ContourData, dtype=float).reshape(-1, 3) + np.array([500.0, 0.0, 0.0])
    contour.ContourData = [f"{value:.4f}" for value in points.ravel()]
    dataset.save_as(path)
    table = read_masks(path, find_volumes(series.folder))
    assert [mask.structure for mask in table.masks] == ["node"]
    assert table.notices[0].startswith("Not read, because no contour marks a pixel: tumour by anna.")
    assert "it is outside the image (tumour by anna, contour 1 at" in table.notices[1]
    del dataset.ROIContourSequence[1]
    dataset.save_as(path)
    with pytest.raises(
        InputError, match=r"no closed contours on thorax 3 \(1 contour could not be placed: it"
    ):
        read_masks(path, find_volumes(series.folder))
    dataset.StructureSetROISequence.append(dataset.StructureSetROISequence[0])
    dataset.save_as(path)
    with pytest.raises(InputError, match="several structures of one number"):
        read_masks(path, find_volumes(series.folder))


def test_contours_at_other_positions_do_not_fit(tmp_path: Path) -> None:
    series = write_series(tmp_path / "ct", positions=UNEVEN)
    even = write_series(tmp_path / "other", series="1.2.3.9")
    with pytest.raises(InputError, match="the available volumes are others"):
        read_masks(drawn(tmp_path / "a.dcm", series), find_volumes(even.folder))


def test_the_tilted_uneven_ct_keeps_contours_on_their_slices(real_data: Path, tmp_path: Path) -> None:
    (volume,) = find_volumes(real_data / "volumes" / "ct_ge")
    heads = [pydicom.dcmread(path, stop_before_pixels=True) for path in volume.files]
    turn = np.array(heads[0].ImageOrientationPatient, dtype=float)
    spacing = tuple(float(value) for value in heads[0].PixelSpacing)
    series = BuiltSeries(
        folder=volume.path,
        files=volume.files,
        uids=volume.instances,
        places=np.array([head.ImagePositionPatient for head in heads], dtype=float),
        row=turn[:3],
        column=turn[3:],
        spacing=(4.0, *spacing),
        series=volume.identifier,
    )
    for refer in (True, False):
        discs = [disc(series, at, 20.3, (250.0, 200.0), refer=refer) for at in (20, 21, 22, 23)]
        path = write_contours(tmp_path / f"{refer}.dcm", series, {"tumour": discs}, rater="anna")
        table = read_masks(path, [volume])
        full = table.masks[0].whole()
        assert np.flatnonzero(full.any(axis=(1, 2))).tolist() == [20, 21, 22, 23]
        np.testing.assert_array_equal(full[21], disc_mask((512, 512), 20.3, (250.0, 200.0)))
        (notice,) = table.notices  # the contours state the patient of `write_contours`
        assert notice.startswith("Has another patient ID and frame of reference than CT series 2")


GEOMETRIES = {
    "even": {},
    "uneven": {"positions": UNEVEN},
    "missing": {"missing": (4, 5, 9)},
    "tilted": {"tilt": 18.5},
    "tilted and uneven": {"tilt": 18.5, "positions": UNEVEN},
}


@pytest.mark.parametrize("orientation", ["axial", "oblique"])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_written_contours_lie_in_the_planes_of_their_slices(tmp_path, name, orientation) -> None:
    series = write_series(tmp_path / "ct", orientation=orientation, **GEOMETRIES[name])
    (volume,) = find_volumes(series.folder)
    mask = expected(series)
    tumour = [Structure("tumour", mask)]
    (path,) = write_masks(tmp_path / "a", "rtstruct", tumour, volume.grid, source=volume)
    normal = np.cross(series.row, series.column)
    contours = pydicom.dcmread(path).ROIContourSequence[0].ContourSequence
    assert len(contours) == len(series.uids)
    for contour in contours:
        at = series.uids.index(contour.ContourImageSequence[0].ReferencedSOPInstanceUID)
        positions = np.array(contour.ContourData, dtype=float).reshape(-1, 3)
        assert np.abs((positions - series.places[at]) @ normal).max() < 1e-3
    np.testing.assert_array_equal(read_masks(path, [volume]).masks[0].whole(), mask)


@pytest.mark.parametrize("name", GEOMETRIES)
def test_written_segments_lie_at_the_positions_of_their_slices(tmp_path: Path, name: str) -> None:
    series = write_series(tmp_path / "ct", **GEOMETRIES[name])
    (volume,) = find_volumes(series.folder)
    mask = expected(series)
    (path,) = write_masks(
        tmp_path / "a", "dicom-seg", [Structure("tumour", mask)], volume.grid, source=volume
    )
    result = highdicom.seg.segread(path)
    for frame, pixels in zip(result.PerFrameFunctionalGroupsSequence, result.pixel_array, strict=True):
        position = np.array(frame.PlanePositionSequence[0].ImagePositionPatient, dtype=float)
        at = int(np.abs(series.places - position).max(axis=1).argmin())
        assert np.abs(series.places[at] - position).max() < 1e-3
        np.testing.assert_array_equal(pixels, mask[at])


@pytest.mark.parametrize("options", [{}, {"positions": UNEVEN}], ids=["even", "uneven"])
def test_segments_keep_their_slices_where_others_are_deleted(tmp_path: Path, options: dict) -> None:
    series = write_series(tmp_path / "ct", **options)
    (whole,) = find_volumes(series.folder)
    tumour = [Structure("tumour", expected(series))]
    (path,) = write_masks(tmp_path / "a", "dicom-seg", tumour, whole.grid, source=whole)
    for at in (6, 1):
        series.files[at].unlink()
    (volume,) = find_volumes(series.folder)
    table = read_masks(path, [volume])
    np.testing.assert_array_equal(table.masks[0].whole(), np.delete(expected(series), [1, 6], axis=0))
    (notice,) = table.notices
    assert notice.startswith("2 frames could not be placed: the image has no slice there (at ")


@pytest.mark.parametrize("kind", ["nifti", "seg.nrrd"])
@pytest.mark.parametrize("name", [name for name in GEOMETRIES if name != "even"])
def test_formats_of_regular_grids_refuse_or_resample(tmp_path: Path, name: str, kind: str) -> None:
    series = write_series(tmp_path / "ct", **GEOMETRIES[name])
    (volume,) = find_volumes(series.folder)
    mask = expected(series)
    tumour = [Structure("tumour", mask)]
    with pytest.raises(InputError, match=r"cannot be written: .*\. Resample to a regular grid \(--resample"):
        write_masks(tmp_path / "a", kind, tumour, volume.grid)
    (path,) = write_masks(tmp_path / "a", kind, tumour, volume.grid, resample=True)
    image = SimpleITK.ReadImage(path)
    values = SimpleITK.GetArrayFromImage(image)
    grid = volume.grid
    first, along = np.array(image.GetOrigin()), np.array(image.GetDirection()).reshape(3, 3)
    voxels = np.stack(np.indices(values.shape)[::-1], axis=-1)
    positions = first + (voxels * image.GetSpacing()) @ along.T
    np.testing.assert_allclose(positions[2, 7, 5], image.TransformIndexToPhysicalPoint((5, 7, 2)))
    heights, (rows, columns) = grid.heights(positions), np.moveaxis(grid.to_index(positions)[..., 1:], -1, 0)
    low, high = grid.bounds.T
    clear = (heights[..., None] > low + 1e-3) & (heights[..., None] < high - 1e-3)
    at = clear.argmax(axis=-1)
    # Neither in a gap, nor at the edge of two slices, nor between the pixels of a tilted one.
    on_pixel = np.abs([rows - np.rint(rows), columns - np.rint(columns)]).max(axis=0) <= 1e-3
    compared = clear.any(axis=-1) & on_pixel
    inside = compared & (rows > -0.5) & (rows < 31.5) & (columns > -0.5) & (columns < 39.5)
    wanted = np.zeros(values.shape, dtype=bool)
    wanted[inside] = mask[at[inside], np.rint(rows[inside]).astype(int), np.rint(columns[inside]).astype(int)]
    assert compared.sum() > 1000
    np.testing.assert_array_equal(values[compared], wanted[compared])
    ours = mask.sum(axis=(1, 2)) @ np.ptp(volume.grid.bounds, axis=1)
    assert values.sum() * image.GetSpacing()[2] == pytest.approx(ours, rel=0.06)


def test_a_gap_of_missing_slices_stays_empty(tmp_path: Path) -> None:
    series = write_series(tmp_path / "ct", missing=(4, 5, 6))
    (volume,) = find_volumes(series.folder)
    mask = np.ones(volume.grid.shape, dtype=bool)
    (path,) = write_masks(tmp_path / "a", "nifti", [Structure("a", mask)], volume.grid, resample=True)
    values = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(path))
    assert values.any(axis=(1, 2)).tolist() == [True] * 4 + [False] * 3 + [True] * 5


def test_a_mask_on_a_regular_grid_is_taken_to_uneven_slices(tmp_path: Path) -> None:
    series = write_series(tmp_path / "ct", positions=UNEVEN)
    (volume,) = find_volumes(series.folder)
    fine = Grid.from_matrix(
        (91, 32, 40), volume.grid.matrix @ np.diag([1, 1, 0.5 / volume.grid.spacing[0], 1])
    )
    heights = np.arange(91) * 0.5
    mask = np.broadcast_to(((heights > 8) & (heights < 23))[:, None, None], fine.shape)
    result = resample(mask, fine, volume.grid)
    assert result.any(axis=(1, 2)).tolist() == [8 < height < 23 for height in UNEVEN]


@pytest.mark.parametrize("name", GEOMETRIES)
def test_segments_come_back_by_position_without_their_references(tmp_path: Path, name: str) -> None:
    series = write_series(tmp_path / "ct", **GEOMETRIES[name])
    (volume,) = find_volumes(series.folder)
    mask = expected(series)
    mask[[2, 7]] = False
    tumour = [Structure("tumour", mask)]
    (path,) = write_masks(tmp_path / "a", "dicom-seg", tumour, volume.grid, source=volume)
    dataset = pydicom.dcmread(path)
    for frame in dataset.PerFrameFunctionalGroupsSequence:
        del frame.DerivationImageSequence
    dataset.save_as(path)
    (rater_mask,) = read_masks(path, [volume]).masks
    np.testing.assert_array_equal(rater_mask.whole(), mask)


def test_a_series_of_one_slice_or_of_two_orientations_is_no_trouble(tmp_path: Path) -> None:
    single = write_series(tmp_path / "one", (1, 32, 40))
    (volume,) = find_volumes(single.folder)
    assert volume.notices == ()
    table = read_masks(drawn(tmp_path / "one.dcm", single), [volume])
    np.testing.assert_array_equal(table.masks[0].whole(), expected(single))
    assert write_masks(tmp_path / "one", "nifti", [Structure("a", expected(single))], volume.grid)
    both = write_series(tmp_path / "two", positions=UNEVEN)
    other = write_series(tmp_path / "side", (5, 32, 40), orientation="sagittal")
    for at, file in enumerate(other.files):
        data = pydicom.dcmread(file)
        data.SOPInstanceUID = data.file_meta.MediaStorageSOPInstanceUID = f"1.2.3.{at + 1}"
        data.save_as(both.folder / f"side{at}.dcm")
    volumes = find_volumes(both.folder)
    assert [file.grid.shape[0] for file in volumes] == [12, 5]
    assert all("different shapes, orientations or spacings" in file.notices[0] for file in volumes)
    table = read_masks(drawn(tmp_path / "two.dcm", both), volumes)
    np.testing.assert_array_equal(table.masks[0].whole(), expected(both))


def test_a_second_image_at_the_place_of_a_slice_is_skipped_with_a_notice(tmp_path: Path) -> None:
    series = write_series(tmp_path / "ct", missing=(4, 5))
    data = pydicom.dcmread(series.files[3])
    data.SOPInstanceUID = data.file_meta.MediaStorageSOPInstanceUID = "1.2.3.4"
    data.InstanceNumber = 99
    data.save_as(series.folder / "again.dcm")
    (volume,) = find_volumes(series.folder)
    assert volume.grid.shape[0] == 10
    assert volume.grid.gaps == ((3, 2),)
    assert "1 slice has the position of another" in " ".join(volume.notices)
    table = read_masks(drawn(tmp_path / "a.dcm", series), [volume])
    np.testing.assert_array_equal(table.masks[0].whole(), expected(series))


def test_the_tilted_uneven_ct_is_exported_as_nifti_at_its_own_places(real_data: Path, tmp_path: Path) -> None:
    """Voxels of the resampled file lie where the CT's slabs have them, read back with SimpleITK."""
    (volume,) = find_volumes(real_data / "volumes" / "ct_ge")
    mask = np.zeros(volume.grid.shape, dtype=bool)
    mask[12:16, 200:300, 150:260] = True
    single = [Structure("a", mask)]
    with pytest.raises(InputError, match="Slice distance varies from"):
        write_masks(tmp_path / "a", "nifti", single, volume.grid)
    (path,) = write_masks(tmp_path / "a", "nifti", single, volume.grid, resample=True)
    image = SimpleITK.ReadImage(path)
    values = SimpleITK.GetArrayFromImage(image)
    direction = np.array(image.GetDirection()).reshape(3, 3)
    np.testing.assert_allclose(direction.T @ direction, np.eye(3), atol=1e-6)
    inside = np.argwhere(values)
    edge = 0.5 + 1e-3 / 0.48
    for slice_, row, column in inside[:: len(inside) // 500].tolist():
        position = np.array(image.TransformIndexToPhysicalPoint((column, row, slice_)))
        at = volume.grid.slice_at(float(volume.grid.heights(position)))
        assert at in (12, 13, 14, 15)
        rows, columns = volume.grid.to_index(position)[1:]
        assert 200 - edge <= rows <= 299 + edge
        assert 150 - edge <= columns <= 259 + edge
    spacing = image.GetSpacing()
    ours = mask.sum(axis=(1, 2)) @ np.ptp(volume.grid.bounds, axis=1) * 0.4882812**2
    assert values.sum() * np.prod(spacing) == pytest.approx(ours, rel=0.05)


def test_a_segmentation_states_the_thickness_of_each_slice(real_data: Path, tmp_path: Path) -> None:
    """4 mm slices below 7 mm ones."""
    (volume,) = find_volumes(real_data / "volumes" / "ct_ge")
    mask = np.zeros(volume.grid.shape, dtype=bool)
    mask[10:18, 240:260, 240:260] = True
    (path,) = write_masks(tmp_path / "a", "dicom-seg", [Structure("a", mask)], volume.grid, source=volume)
    thickness = {
        head.SOPInstanceUID: head.SliceThickness
        for head in (pydicom.dcmread(file, stop_before_pixels=True) for file in volume.files)
    }
    segmentation = highdicom.seg.segread(path)
    shared = segmentation.SharedFunctionalGroupsSequence[0]
    assert "PixelMeasuresSequence" not in shared  # the standard has it in one of both
    for frame in segmentation.PerFrameFunctionalGroupsSequence:
        source = frame.DerivationImageSequence[0].SourceImageSequence[0].ReferencedSOPInstanceUID
        assert frame.PixelMeasuresSequence[0].SliceThickness == thickness[source]
    np.testing.assert_array_equal(read_masks(path, [volume]).masks[0].whole(), mask)
