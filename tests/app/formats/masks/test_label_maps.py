"""Masks, label maps and probability maps, and the segments of 3D Slicer."""

from pathlib import Path

import nibabel
import nrrd
import numpy as np
import pytest
import tifffile
from PIL import Image

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.errors import InputError
from raterscope.app.formats.masks import holds_masks, read_masks
from raterscope.app.formats.records import VolumeFile

AFFINE = np.array([[-0.8, 0, 0, 10], [0, -0.7, 0, 20], [0, 0, 2.5, -30], [0, 0, 0, 1.0]])


def nifti(path: Path, values: np.ndarray) -> Path:
    nibabel.save(nibabel.Nifti1Image(values.T, AFFINE), path)
    return path


@pytest.fixture
def labels() -> np.ndarray:
    values = np.zeros((3, 6, 8), dtype=np.int16)
    values[1, 2:4, 3:6] = 1
    values[2, 5, 7] = 4
    return values


def test_each_label_is_a_structure(tmp_path: Path, labels: np.ndarray) -> None:
    path = nifti(tmp_path / "case1_anna.nii.gz", labels)
    table = read_masks(path, naming="{item}_{annotator}")
    assert [(rater_mask.item, rater_mask.annotator, rater_mask.structure) for rater_mask in table.masks] == [
        ("case1", "anna", "label 1"), ("case1", "anna", "label 4"),
    ]  # fmt: skip
    for mask, label in zip(table.masks, (1, 4), strict=True):
        np.testing.assert_array_equal(mask.whole(), labels == label)
    first = table.masks[0]
    assert (first.origin, first.values.shape) == ((1, 2, 3), (1, 2, 3))
    np.testing.assert_allclose(first.grid.spacing, (2.5, 0.7, 0.8))
    np.testing.assert_allclose(first.grid.to_patient(np.zeros(3)), (-10, -20, -30))
    assert holds_masks(path) is True


@pytest.mark.parametrize("value", [1, 255, 32767])
def test_one_value_is_a_mask(tmp_path: Path, value: int) -> None:
    values = np.zeros((2, 5, 6), dtype=np.int16)
    values[1, 1:3] = value
    (mask,) = read_masks(nifti(tmp_path / "a.nii", values), structure="liver").masks
    assert mask.structure == "liver"
    assert mask.annotator is None
    np.testing.assert_array_equal(mask.whole(), values > 0)


def test_notices_of_the_header_are_those_of_the_mask(tmp_path: Path, labels: np.ndarray) -> None:
    image = nibabel.Nifti1Image(labels.T, None)
    image.set_sform(None, code=0)
    image.set_qform(None, code=0)
    nibabel.save(image, tmp_path / "a.nii")
    (notice,) = read_masks(tmp_path / "a.nii", annotator="anna").notices
    assert "patient's orientation" in notice


def test_who_marked_nothing_has_an_empty_mask(tmp_path: Path) -> None:
    path = nifti(tmp_path / "a.nii", np.zeros((2, 5, 6), dtype=np.uint8))
    (mask,) = read_masks(path, annotator="anna").masks
    assert mask.annotator == "anna"
    assert mask.values.size == 0
    assert not mask.whole().any()
    assert holds_masks(path) is True


def test_probabilities(tmp_path: Path) -> None:
    values = np.zeros((3, 8, 8), dtype=np.float32)
    values[1, 2:5, 2:5] = np.linspace(0.1, 1, 9).reshape(3, 3)
    path = nifti(tmp_path / "a.nii.gz", values)
    (mask,) = read_masks(path).masks
    assert mask.values.dtype == np.float32
    np.testing.assert_array_equal(mask.whole(), values)
    assert holds_masks(path) is True
    path = nifti(tmp_path / "b.nii.gz", values.astype(np.float64) * 3)
    with pytest.raises(InputError, match="from 0 to 3; expected a mask"):
        read_masks(path)
    assert holds_masks(path) is False


def test_images_are_no_masks(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    scan = nifti(tmp_path / "ct.nii", random.normal(0, 300, (4, 20, 20)).astype(np.int16))
    assert holds_masks(scan) is False
    with pytest.raises(InputError, match=r"ct\.nii: has negative values; expected a mask"):
        read_masks(scan)
    count = nifti(tmp_path / "many.nii", np.arange(2000, dtype=np.int16).reshape(2, 25, 40))
    with pytest.raises(InputError, match="more than 1000 different values"):
        read_masks(count)
    doubtful = nifti(tmp_path / "doubtful.nii", random.integers(0, 60, (4, 20, 20)).astype(np.uint8))
    assert holds_masks(doubtful) is None
    assert holds_masks(tmp_path) is False
    assert holds_masks(tmp_path / "nothing.nii") is False


def test_several_volumes_in_one_file(tmp_path: Path, labels: np.ndarray) -> None:
    both = np.stack([labels == 1, labels == 4]).astype(np.uint8)
    table = read_masks(nifti(tmp_path / "a.nii", both))
    assert [mask.structure for mask in table.masks] == ["layer 1", "layer 2"]
    np.testing.assert_array_equal(table.masks[1].whole(), labels == 4)
    assert "2 volumes" in table.notices[0]


def test_a_large_png_in_colours_is_read_some_rows_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from PIL import Image

    from raterscope.app.formats.masks import mask_images

    colours = np.full((700, 90, 3), 255, dtype=np.uint8)
    colours[100:160, 10:40] = 255, 0, 0
    colours[500:690, 30:80] = 0, 128, 255
    path = tmp_path / "colour.png"
    Image.fromarray(colours).save(path)
    Image.fromarray(colours).save(tmp_path / "colour.bmp")
    monkeypatch.setattr(mask_images, "MAX_PIXELS", colours.size // 3)
    result = {mask.structure: mask.whole()[0] for mask in read_masks(path).masks}
    assert set(result) == {"colour #ff0000", "colour #0080ff"}
    assert np.array_equal(result["colour #ff0000"], (colours == (255, 0, 0)).all(axis=-1))
    assert np.array_equal(result["colour #0080ff"], (colours == (0, 128, 255)).all(axis=-1))
    with pytest.raises(InputError, match="claims more than"):
        read_masks(tmp_path / "colour.bmp")  # decoded whole


def test_png_masks(tmp_path: Path) -> None:
    mask = np.zeros((6, 9), dtype=np.uint8)
    mask[2:4, 3:7] = 255
    path = tmp_path / "anna.png"
    Image.fromarray(mask).save(path)
    (rater_mask,) = read_masks(path, naming="{annotator}").masks
    assert (rater_mask.annotator, rater_mask.grid.shape, rater_mask.grid.calibrated) == (
        "anna",
        (1, 6, 9),
        False,
    )
    np.testing.assert_array_equal(rater_mask.whole()[0], mask > 0)
    assert holds_masks(path) is True
    image = VolumeFile("a", path, Grid.plain((1, 6, 9), (1, 0.1, 0.1), calibrated=True))
    assert read_masks(path, [image]).masks[0].grid is image.grid
    other = VolumeFile("anna.tif", path, Grid.plain((1, 6, 9), (1, 0.3, 0.3), calibrated=True))
    assert read_masks(path, [image, other], naming="{item}").masks[0].grid is other.grid
    assert not read_masks(path, [image, other]).masks[0].grid.calibrated


def test_a_palette_counts_by_its_numbers_and_colours_by_themselves(tmp_path: Path) -> None:
    numbers = np.zeros((4, 5), dtype=np.uint8)
    numbers[1, 1], numbers[2, 3:] = 1, 2
    indexed = Image.fromarray(numbers).convert("P")
    indexed.putpalette([0, 0, 0, 255, 0, 0, 0, 0, 255])
    indexed.save(tmp_path / "palette.png")
    table = read_masks(tmp_path / "palette.png")
    assert [mask.structure for mask in table.masks] == ["label 1", "label 2"]
    colours = np.array([[0, 0, 0], [255, 0, 0], [0, 0, 255]], dtype=np.uint8)[numbers]
    Image.fromarray(colours).save(tmp_path / "colour.png")
    result = {mask.structure: mask.whole()[0] for mask in read_masks(tmp_path / "colour.png").masks}
    np.testing.assert_array_equal(result["colour #ff0000"], numbers == 1)
    np.testing.assert_array_equal(result["colour #0000ff"], numbers == 2)
    photograph = np.random.default_rng(0).integers(0, 255, (40, 40, 3)).astype(np.uint8)
    Image.fromarray(photograph).save(tmp_path / "photograph.png")
    assert holds_masks(tmp_path / "photograph.png") is False
    with pytest.raises(InputError, match="colours; expected a mask with one colour per structure"):
        read_masks(tmp_path / "photograph.png")


def smooth_ball() -> np.ndarray:
    """Probabilities of a ball, none of them 0 or 1."""
    slices, rows, columns = np.mgrid[:9, :40, :40]
    distance = np.sqrt(4.0 * (slices - 4) ** 2 + (rows - 20) ** 2 + (columns - 20) ** 2)
    return 1 / (1 + np.exp((distance - 8) / 2))


@pytest.mark.parametrize(("most", "kind"), [(255, np.uint8), (100, np.int16)])
def test_integers_of_a_volume_that_differ_are_probabilities(tmp_path: Path, most: int, kind: type) -> None:
    values = np.rint(most * smooth_ball()).astype(kind)
    values[0, 0, 0] = most
    table = read_masks(nifti(tmp_path / "a_seg.nii.gz", values))
    (mask,) = table.masks
    np.testing.assert_allclose(mask.whole(), values / most, atol=1e-6)
    assert any(f"probabilities, {most} as 1" in notice for notice in table.notices)


def test_the_labels_of_an_atlas_stay_structures(tmp_path: Path) -> None:
    labels = np.kron(np.arange(60).reshape(1, 6, 10) * 4, np.ones((3, 5, 5))).astype(np.uint8)
    labels[0, 0, 0] = 255
    assert len(read_masks(nifti(tmp_path / "a_seg.nii.gz", labels)).masks) == 60


def test_voxels_without_a_value_are_background(tmp_path: Path) -> None:
    values = smooth_ball().astype(np.float32)
    for name, marked in (("seg", np.float32(1)), ("prob", values)):
        path = nifti(tmp_path / f"a_{name}.nii.gz", np.where(values > 0.5, marked, np.float32(np.nan)))
        assert holds_masks(path) is None  # its name decides
        table = read_masks(path)
        (mask,) = table.masks
        np.testing.assert_allclose(mask.whole(), np.where(values > 0.5, marked, 0), atol=1e-6)
        assert any("(NaN)" in notice for notice in table.notices)


def test_rounding_errors_leave_probabilities(tmp_path: Path) -> None:
    values = np.clip(1.1 * smooth_ball() - 0.05, -5e-6, 1 + 5e-6).astype(np.float32)
    path = nifti(tmp_path / "a_prob.nii.gz", values)
    assert holds_masks(path) is None
    (mask,) = read_masks(path).masks
    np.testing.assert_allclose(mask.whole(), np.clip(values, 0, 1))


def test_greys_are_probabilities(tmp_path: Path) -> None:
    shades = np.arange(256, dtype=np.uint8).reshape(16, 16)
    Image.fromarray(shades).save(tmp_path / "a.png")
    table = read_masks(tmp_path / "a.png")
    np.testing.assert_allclose(table.masks[0].whole()[0], shades / 255, atol=1e-6)
    assert "probabilities" in table.notices[0]


def test_a_mask_with_smooth_edges_is_one_structure(tmp_path: Path) -> None:
    rows, columns = np.mgrid[:60, :80]
    ellipse = ((rows - 30) / 20) ** 2 + ((columns - 40) / 30) ** 2 < 1
    exact = Image.fromarray(np.where(ellipse, 255, 0).astype(np.uint8))
    smooth = exact.resize((320, 240)).resize((80, 60), Image.Resampling.BILINEAR)
    assert len(np.unique(smooth)) > 20
    smooth.save(tmp_path / "a_mask.png")
    table = read_masks(tmp_path / "a_mask.png")
    (mask,) = table.masks
    np.testing.assert_array_equal(mask.whole()[0], ellipse)
    assert "edges are smoothed" in table.notices[0]
    grades = np.where(ellipse, 40 + 35 * (columns // 14), 0).astype(np.uint8)  # 40 to 215
    Image.fromarray(np.where(columns > 70, 255, grades).astype(np.uint8)).save(tmp_path / "b_mask.png")
    assert len(read_masks(tmp_path / "b_mask.png").masks) == 6


def test_labels_with_rounding_errors_are_labels(tmp_path: Path, labels: np.ndarray) -> None:
    path = nifti(tmp_path / "a_seg.nii.gz", (labels * 1.0000002).astype(np.float32))
    assert holds_masks(path) is not False
    assert [mask.structure for mask in read_masks(path).masks] == ["label 1", "label 4"]


def test_pages_of_a_tiff_are_slices(tmp_path: Path, labels: np.ndarray) -> None:
    tifffile.imwrite(tmp_path / "a.tif", labels.astype(np.uint8), photometric="minisblack")
    table = read_masks(tmp_path / "a.tif")
    assert table.masks[0].grid.shape == labels.shape
    np.testing.assert_array_equal(table.masks[0].whole(), labels == 1)
    (tmp_path / "cut.tif").write_bytes((tmp_path / "a.tif").read_bytes()[:200])
    with pytest.raises(InputError, match=r"cut\.tif"):
        read_masks(tmp_path / "cut.tif")


def segments(**fields: str) -> dict[str, object]:
    return {
        "space": "right-anterior-superior",
        "space directions": np.diag([1.0, 2.0, 3.0]),
        "space origin": np.array([1.0, 2.0, 3.0]),
        **fields,
    }


def test_segments_that_share_a_layer(tmp_path: Path, labels: np.ndarray) -> None:
    path = tmp_path / "a.seg.nrrd"
    header = segments(
        Segment0_Name="liver", Segment0_LabelValue="4", Segment0_Layer="0",
        Segment1_Name="cyst", Segment1_LabelValue="1", Segment1_Layer="0",
    )  # fmt: skip
    nrrd.write(str(path), labels.T.astype(np.uint8), header)
    liver, cyst = read_masks(path, annotator="anna").masks
    assert (liver.annotator, liver.structure, cyst.structure) == ("anna", "liver", "cyst")
    np.testing.assert_array_equal(liver.whole(), labels == 4)
    np.testing.assert_array_equal(cyst.whole(), labels == 1)
    assert liver.grid.to_patient(np.zeros(3)).tolist() == [-1, -2, 3]
    assert holds_masks(path) is True


def test_labels_without_a_segment_are_named(tmp_path: Path, labels: np.ndarray) -> None:
    header = segments(Segment0_Name="heart", Segment0_LabelValue="1", Segment0_Layer="0")
    nrrd.write(str(tmp_path / "a.seg.nrrd"), labels.T, header)
    table = read_masks(tmp_path / "a.seg.nrrd")
    np.testing.assert_array_equal(table.masks[0].whole(), labels == 1)
    others = ", ".join(map(str, np.unique(labels[labels > 1])))
    assert f"{others}, which the file marks but does not describe" in table.notices[-1]


def test_an_image_of_one_colour_holds_no_mask(tmp_path: Path) -> None:
    pixels = np.full((6, 8, 4), (255, 0, 0, 0), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    with pytest.raises(InputError, match="has one colour and no background"):
        read_masks(tmp_path / "a.png")


def test_segments_in_layers_may_overlap(tmp_path: Path, labels: np.ndarray) -> None:
    path = tmp_path / "a.seg.nrrd"
    layers = np.stack([labels == 1, labels > 0]).astype(np.uint8)
    header = segments(
        Segment0_Name="liver", Segment0_LabelValue="1", Segment0_Layer="1",
        Segment1_Name="cyst", Segment1_LabelValue="1", Segment1_Layer="0",
    )  # fmt: skip
    header["space directions"] = np.vstack([np.full(3, np.nan), np.diag([1.0, 2.0, 3.0])])
    nrrd.write(str(path), layers.transpose(0, 3, 2, 1), header)
    liver, cyst = read_masks(path).masks
    np.testing.assert_array_equal(liver.whole(), labels > 0)
    np.testing.assert_array_equal(cyst.whole(), labels == 1)
    header["Segment0_Layer"] = "7"
    nrrd.write(str(path), layers.transpose(0, 3, 2, 1), header)
    with pytest.raises(InputError, match="field Segment0_Layer: has 2 layers"):
        read_masks(path)


def test_a_segmentation_of_3d_slicer(real_data: Path) -> None:
    path = real_data / "formats/nrrd/Segmentation.seg.nrrd"
    values, _ = nrrd.read(str(path))
    table = read_masks(path)
    assert [rater_mask.structure for rater_mask in table.masks][::4] == ["ribs", "right lung"]
    for label, mask in enumerate(table.masks, start=1):
        np.testing.assert_array_equal(mask.whole(), label == values.T)
