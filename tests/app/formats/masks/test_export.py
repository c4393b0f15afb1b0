"""Exported masks, read by other programs: every voxel and its position."""

import zlib
from collections.abc import Callable
from pathlib import Path

import highdicom
import numpy as np
import pydicom
import pytest
import SimpleITK
from skimage.draw import polygon2mask

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Cancelled
from raterscope.app.errors import InputError
from raterscope.app.formats.masks import read_masks
from raterscope.app.formats.masks.export import write_array, write_masks
from raterscope.app.formats.masks.terminology import Structure
from raterscope.app.formats.records import VolumeFile
from raterscope.app.formats.volumes import find_volumes
from tests.app.formats.masks.conftest import OBLIQUE, STRAIGHT

SHAPE = (4, 20, 30)


def oblique(shape: tuple[int, int, int] = SHAPE) -> Grid:
    turn = np.array(OBLIQUE)
    across, down = turn[:3], turn[3:]
    matrix = np.column_stack([across * 0.9, down * 0.7, np.cross(across, down) * 2.5, [-30.0, 12.0, 55.0]])
    return Grid.from_matrix(shape, matrix)


def check_geometry(image: SimpleITK.Image, grid: Grid) -> None:
    for index in ((0, 0, 0), (29, 0, 0), (0, 19, 0), (7, 5, 3)):
        position = image.TransformIndexToPhysicalPoint(index)
        np.testing.assert_allclose(position, grid.to_patient(np.array(index[::-1])), atol=1e-3)


def test_nifti_masks(tmp_path: Path, blobs) -> None:
    mask = blobs(SHAPE)
    grid = oblique()
    (path,) = write_masks(tmp_path / "consensus", "nifti", [Structure("liver", mask)], grid)
    assert path.name == "consensus.nii.gz"
    image = SimpleITK.ReadImage(str(path))
    np.testing.assert_array_equal(SimpleITK.GetArrayFromImage(image), mask)
    check_geometry(image, grid)
    (rater_mask,) = read_masks(path).masks
    assert rater_mask.grid.same_as(grid)
    np.testing.assert_array_equal(rater_mask.whole(), mask)


def test_nifti_of_several(tmp_path: Path, blobs) -> None:
    """A label map where the masks do not overlap, else a file each; a map of millimetres is kept."""
    grid, mask = oblique(), blobs(SHAPE)
    (path,) = write_masks(tmp_path / "a.nii", "nifti", [Structure("a", mask), Structure("b", ~mask)], grid)
    np.testing.assert_array_equal(SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(path))), 2 - mask)
    distance = np.random.default_rng(0).normal(0, 5, SHAPE).astype(np.float32)
    structures = [Structure("a/b", mask), Structure("a?b", mask), Structure("mm", distance)]
    files = write_masks(tmp_path / "b.nii.gz", "nifti", structures, grid)
    assert [file.name for file in files] == ["b_a-b.nii.gz", "b_a-b-2.nii.gz", "b_mm.nii.gz"]
    image = SimpleITK.ReadImage(str(files[2]))
    np.testing.assert_array_equal(SimpleITK.GetArrayFromImage(image), distance)
    check_geometry(image, grid)


def test_nifti_of_an_image_without_a_place(tmp_path: Path) -> None:
    mask = np.zeros((1, 5, 7), dtype=bool)
    mask[0, 1:3, 2:4] = True
    (path,) = write_masks(tmp_path / "a.nii", "nifti", [Structure("a", mask)], Grid.plain((1, 5, 7)))
    (rater_mask,) = read_masks(path).masks
    np.testing.assert_array_equal(rater_mask.whole(), mask)
    assert rater_mask.grid.spacing == (1, 1, 1)


def test_segments(tmp_path: Path, blobs) -> None:
    grid = oblique()
    masks = [blobs(SHAPE, seed=1), ~blobs(SHAPE, seed=1), blobs(SHAPE, seed=2)]
    names = ["liver", "Rückenmark := a\nb", "\u200b"]
    structures = [Structure(*pair, colour=(255, 0, 51)) for pair in zip(names, masks, strict=True)]
    (path,) = write_masks(tmp_path / "a", "seg.nrrd", structures, grid)
    assert path.name == "a.seg.nrrd"
    table = read_masks(path)
    assert table.masks[0].structure == "liver"
    assert table.masks[1].structure.startswith("Ruckenmark")
    for rater_mask, mask in zip(table.masks, masks, strict=True):
        np.testing.assert_array_equal(rater_mask.whole(), mask)
        assert rater_mask.grid.same_as(grid)
    image = SimpleITK.ReadImage(str(path))
    assert image.GetNumberOfComponentsPerPixel() == 2
    check_geometry(image, grid)
    layers = SimpleITK.GetArrayFromImage(image)
    for number, mask in enumerate(masks):
        layer, label = (int(image.GetMetaData(f"Segment{number}_{key}")) for key in ("Layer", "LabelValue"))
        np.testing.assert_array_equal(layers[..., layer] == label, mask)
    assert image.GetMetaData("Segment0_Color") == "1.000000 0.000000 0.200000"


def test_segments_in_one_layer(tmp_path: Path, blobs) -> None:
    mask = blobs(SHAPE)
    (path,) = write_masks(tmp_path / "a.seg.nrrd", "seg.nrrd", [Structure("a", mask)], oblique())
    np.testing.assert_array_equal(SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(path))), mask)
    with pytest.raises(InputError, match="is a map"):
        write_masks(path, "seg.nrrd", [Structure("a", mask.astype(np.float32))], oblique())


@pytest.mark.parametrize("turn", [STRAIGHT, OBLIQUE])
def test_dicom_segmentation(tmp_path: Path, blobs, series: Callable[..., VolumeFile], turn) -> None:
    """Segments overlap, and the second has no frame on two of the slices."""
    volume = series(SHAPE, turn)
    masks = [blobs(SHAPE, seed=1), blobs(SHAPE, seed=2)]
    masks[1][[0, 2]] = False
    structures = [Structure(f"s{at}", mask) for at, mask in enumerate(masks)]
    (path,) = write_masks(tmp_path / "a", "dicom-seg", structures, volume.grid, source=volume)
    for volumes in ([volume], []):
        table = read_masks(path, volumes)
        assert [mask.structure for mask in table.masks] == ["s0", "s1"]
        for rater_mask, mask in zip(table.masks, masks, strict=True):
            np.testing.assert_array_equal(rater_mask.whole(), mask)
            assert rater_mask.grid.same_as(volume.grid)
            assert rater_mask.item == volume.identifier
    read = highdicom.seg.segread(path)
    pixels = read.get_pixels_by_source_instance(list(volume.instances), assert_missing_frames_are_empty=True)
    for at, mask in enumerate(masks):
        np.testing.assert_array_equal(pixels[..., at], mask)
    assert read.get_segment_description(1).segment_label == "s0"


@pytest.mark.parametrize("marked", [[0, 1, 2, 3], [0, 3]])
def test_segments_of_a_series_with_uneven_slices(
    tmp_path: Path, blobs, series: Callable[..., VolumeFile], marked
) -> None:
    """Each frame says which slice it was drawn on, though none lies where the even grid has it."""
    volume = series(SHAPE, heights=[0.0, 2.5, 7.1, 9.0])
    mask = blobs(SHAPE)
    mask[[at for at in range(4) if at not in marked]] = False
    (path,) = write_masks(tmp_path / "a", "dicom-seg", [Structure("a", mask)], volume.grid, source=volume)
    (rater_mask,) = read_masks(path, [volume]).masks
    assert rater_mask.grid.same_as(volume.grid)
    np.testing.assert_array_equal(rater_mask.whole(), mask)


def test_a_segment_alone_on_a_few_slices(tmp_path: Path, series: Callable[..., VolumeFile]) -> None:
    """The file holds no frame of the other slices; the series tells where the two are."""
    volume = series((6, 8, 9))
    mask = np.zeros((6, 8, 9), dtype=bool)
    mask[[1, 4], 2:4, 3:6] = True
    (path,) = write_masks(tmp_path / "a", "dicom-seg", [Structure("a", mask)], volume.grid, source=volume)
    np.testing.assert_array_equal(read_masks(path, [volume]).masks[0].whole(), mask)
    (alone,) = read_masks(path).masks
    assert alone.grid.shape == (4, 8, 9)
    np.testing.assert_array_equal(alone.whole(), mask[1:5])
    np.testing.assert_allclose(
        alone.grid.to_patient(np.zeros(3)), volume.grid.to_patient(np.array([1.0, 0, 0]))
    )


def test_dicom_probabilities(tmp_path: Path, series: Callable[..., VolumeFile]) -> None:
    volume = series(SHAPE)
    share = np.random.default_rng(0).random(SHAPE).astype(np.float32)
    structures = [Structure("p", share), Structure("m", share > 0.5)]
    files = write_masks(tmp_path / "a.dcm", "dicom-seg", structures, volume.grid, source=volume)
    assert [file.name for file in files] == ["a.dcm", "a_probability.dcm"]
    np.testing.assert_array_equal(read_masks(files[0], [volume]).masks[0].whole(), share > 0.5)
    (mask,) = read_masks(files[1], [volume]).masks
    np.testing.assert_allclose(mask.whole(), share, atol=1 / 510 + 1e-6)
    read = highdicom.seg.segread(files[1])
    pixels = read.get_pixels_by_source_instance(list(volume.instances))[..., 0]
    np.testing.assert_allclose(pixels, share, atol=1 / 510 + 1e-6)
    with pytest.raises(InputError, match="expected probabilities"):
        write_masks(files[0], "dicom-seg", [Structure("p", share * 2)], volume.grid, source=volume)


def test_an_empty_consensus_can_be_written(tmp_path: Path, series: Callable[..., VolumeFile]) -> None:
    volume = series(SHAPE)
    empty = [Structure("a", np.zeros(SHAPE, dtype=bool))]
    for kind in ("nifti", "seg.nrrd", "dicom-seg"):
        (path,) = write_masks(tmp_path / kind, kind, empty, volume.grid, source=volume)
        (mask,) = read_masks(path, [volume]).masks
        assert not mask.whole().any()
    write_masks(tmp_path / "rt", "rtstruct", empty, volume.grid, source=volume)


@pytest.mark.parametrize("turn", [STRAIGHT, OBLIQUE])
def test_contours(tmp_path: Path, blobs, series: Callable[..., VolumeFile], turn) -> None:
    """Read here, and filled by another program contour by contour, they are the same voxels."""
    volume = series(SHAPE, turn)
    masks = [blobs(SHAPE, seed=1), blobs(SHAPE, seed=2, share=0.1)]
    structures = [Structure(f"s{at}", mask) for at, mask in enumerate(masks)]
    (path,) = write_masks(tmp_path / "a", "rtstruct", structures, volume.grid, source=volume)
    table = read_masks(path, [volume])
    dataset = pydicom.dcmread(path)
    for at, (rater_mask, mask) in enumerate(zip(table.masks, masks, strict=True)):
        assert rater_mask.structure == f"s{at}"
        np.testing.assert_array_equal(rater_mask.whole(), mask)
        filled = np.zeros(SHAPE, dtype=bool)
        for contour in dataset.ROIContourSequence[at].ContourSequence:
            positions = np.array(contour.ContourData, dtype=float).reshape(-1, 3)
            slices, rows, columns = volume.grid.to_index(positions).T
            assert np.ptp(slices) < 1e-3
            index = round(slices[0])
            referenced = contour.ContourImageSequence[0].ReferencedSOPInstanceUID
            assert referenced == volume.instances[index]
            filled[index] ^= polygon2mask(SHAPE[1:], np.column_stack([rows, columns]))
        np.testing.assert_array_equal(filled, mask)


def test_a_dicom_file_needs_its_series(tmp_path: Path, blobs, series: Callable[..., VolumeFile]) -> None:
    mask = [Structure("a", blobs(SHAPE))]
    volume = series(SHAPE)
    for kind in ("dicom-seg", "rtstruct"):
        with pytest.raises(InputError, match="without the DICOM series"):
            write_masks(tmp_path / "a", kind, mask, oblique())
        with pytest.raises(InputError, match="is on a grid of"):
            write_masks(tmp_path / "a", kind, mask, oblique(), source=volume)
    share = [Structure("a", np.zeros(SHAPE, dtype=np.float32))]
    with pytest.raises(InputError, match="is a map"):
        write_masks(tmp_path / "a", "rtstruct", share, volume.grid, source=volume)
    assert not list(tmp_path.glob("*a*"))


def test_a_file_is_whole_or_as_it_was(tmp_path: Path, blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = write_masks(tmp_path / "a.nii", "nifti", [Structure("a", blobs(SHAPE))], oblique())
    before = path.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("raterscope.app.formats.masks.export.split_blocks", full)
    with pytest.raises(InputError, match=r"a\.nii: cannot be written: the disk is full; free space"):
        write_masks(path, "nifti", [Structure("a", ~blobs(SHAPE))], oblique())
    assert path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.nii"]


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 30, 40), (7, 12, 15), (3, 900, 800)])
@pytest.mark.parametrize("origin", [(0, 0, 0), (0, 3, 5), (4, 9, 11)])
def test_packed_values_are_one_gzip_member_and_the_same_bytes_each_time(
    tmp_path: Path, shape: tuple[int, int, int], origin: tuple[int, int, int]
) -> None:
    full = np.zeros([at + size + 2 for at, size in zip(origin, shape, strict=True)], dtype=np.int16)
    values = np.random.default_rng(0).integers(-5, 5, shape).astype(np.int16)
    full[tuple(slice(at, at + size) for at, size in zip(origin, shape, strict=True))] = values
    path = tmp_path / "values.nii.gz"
    write_array(path, values, Grid.plain(full.shape), origin=origin)
    content = path.read_bytes()
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
    unpacked = inflate.decompress(content)
    assert inflate.eof
    assert not inflate.unused_data
    assert unpacked[-full.nbytes :] == full.tobytes()
    write_array(path, values, Grid.plain(full.shape), origin=origin)
    assert path.read_bytes() == content


def test_writing_packed_values_can_be_cancelled(tmp_path: Path) -> None:
    def look() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        write_array(tmp_path / "values.nii.gz", np.ones(SHAPE), Grid.plain(SHAPE), check=look)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    mask = Structure("a", np.zeros(SHAPE, dtype=bool))
    with pytest.raises(InputError, match="no mask to write"):
        write_masks(tmp_path / "a", "nifti", [], oblique())
    with pytest.raises(InputError, match="has 4 x 20 x 30 voxels; the grid has 4 x 20 x 31"):
        write_masks(tmp_path / "a", "nifti", [mask], Grid.plain((4, 20, 31)))
    with pytest.raises(InputError, match="is not a format of masks"):
        write_masks(tmp_path / "a", "stl", [mask], oblique())
    with pytest.raises(InputError, match="cannot be written"):
        write_masks(tmp_path / "missing" / "a", "nifti", [mask], oblique())


def test_a_series_in_one_file_has_its_frames_in_any_order(
    tmp_path: Path, blobs, series: Callable[..., VolumeFile]
) -> None:
    heads = [pydicom.dcmread(file) for file in series(SHAPE).files]
    for head in heads:
        for keyword in ("PatientBirthDate", "PatientSex", "StudyTime", "StudyID", "AccessionNumber"):
            setattr(head, keyword, None)
        head.ReferringPhysicianName, head.ImageType = None, ["ORIGINAL", "PRIMARY", "AXIAL"]
        head.AcquisitionNumber, head.Manufacturer, head.SpecificCharacterSet = 1, "ACME", "ISO_IR 100"
        head.ContentDate, head.ContentTime = "20240102", "030405"
    shuffled = [heads[at] for at in (2, 0, 3, 1)]
    for at, head in enumerate(shuffled):
        head.InstanceNumber = at + 1
    enhanced = highdicom.legacy.LegacyConvertedEnhancedCTImage(
        shuffled, series_instance_uid=highdicom.UID(), series_number=7, sop_instance_uid=highdicom.UID(),
        instance_number=1,
    )  # fmt: skip
    enhanced.save_as(tmp_path / "enhanced.dcm")
    (volume,) = find_volumes(tmp_path / "enhanced.dcm")
    mask = blobs(SHAPE)
    for kind in ("dicom-seg", "rtstruct"):
        (path,) = write_masks(tmp_path / kind, kind, [Structure("a", mask)], volume.grid, source=volume)
        (rater_mask,) = read_masks(path, [volume]).masks
        np.testing.assert_array_equal(rater_mask.whole(), mask)
