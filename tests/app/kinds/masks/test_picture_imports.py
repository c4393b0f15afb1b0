"""Plain pictures into a study: which are images, and which are masks."""

import numpy as np
import pytest
import tifffile
from PIL import Image

from tests.app.kinds.masks.made import (
    SHAPE,
    a_ball,
    a_disc,
    a_photograph,
    marks,
    painted,
)


def test_photographs_stay_images_and_masks_beside_them_become_masks(import_files, tmp_path):
    photograph = a_photograph(tmp_path / "cell.png")
    masks = [painted(tmp_path / f"cell_{name}.png", a_disc(radius=r)) for name, r in (("a", 12), ("b", 15))]
    gold = painted(tmp_path / "cell_gold.png", a_disc(radius=13))
    output = import_files(photograph, *masks, gold)
    assert "1 image." in output
    found_marks = marks(tmp_path)
    assert set(found_marks) == {("cell.png", name, "structure") for name in ("a", "b", None)}
    assert found_marks["cell.png", "b", "structure"] == (a_disc() > 0).sum()


def a_few_greys(path, levels=6, shape=(24, 25)):
    """A small picture in which neighbours are mostly equal, as in a map of labels."""
    rows = np.repeat(np.arange(levels) + 1, -(-shape[0] // levels))[: shape[0]]
    return painted(path, np.repeat(30 * rows[:, None], shape[1], axis=1))


def small_masks(folder, raters=("anna", "ben"), cases=("c01", "c02")):
    for number, rater in enumerate(raters):
        for case in cases:
            (folder / rater).mkdir(parents=True, exist_ok=True)
            painted(folder / rater / f"{case}.png", 255 * (a_disc((24, 25), 24 + number) > 0))


@pytest.mark.parametrize("pictures", ["images", "Raw", "imagesTr"])
def test_small_pictures_with_few_greys_are_recognised_by_their_folder(import_files, tmp_path, pictures):
    (tmp_path / "set" / pictures).mkdir(parents=True)
    a_few_greys(tmp_path / "set" / pictures / "c01.png")
    a_photograph(tmp_path / "set" / pictures / "c02.png", (24, 25))
    small_masks(tmp_path / "set" / "masks")
    output = import_files(tmp_path / "set")
    assert "2 images." in output
    assert "few greys" not in output
    assert {(image, rater) for image, rater, _ in marks(tmp_path)} == {
        (f"{case}.png", rater) for case in ("c01", "c02") for rater in ("anna", "ben")
    }


def test_a_dark_picture_is_no_mask_if_its_folder_holds_images(import_files, tmp_path):
    (tmp_path / "set" / "images").mkdir(parents=True)
    for case in ("c01", "c02"):
        painted(tmp_path / "set" / "images" / f"{case}.png", 90 * (a_disc((24, 25), 22) > 0))
    small_masks(tmp_path / "set" / "masks")
    output = import_files(tmp_path / "set")
    assert "2 images." in output
    assert "because of the name of the folder; they could be masks: c01.png, c02.png" in output


def test_a_small_picture_that_may_be_a_mask_is_named(import_files, tmp_path):
    files = [a_few_greys(tmp_path / f"c01{name}.png", levels) for name, levels in (("", 6), ("_anna", 4))]
    output = import_files(*files)
    assert "though few greys may also be masks: c01.png, c01_anna.png" in output


def test_masks_in_jpeg_are_masks_if_they_are_black_and_white(import_files, tmp_path):
    folders = [tmp_path / "set" / name for name in ("images", "masks_anna", "masks_ben", "masks_carl")]
    for folder in folders:
        folder.mkdir(parents=True)
    with Image.open(a_photograph(tmp_path / "photograph.png")) as photograph:
        photograph.save(folders[0] / "c01.jpg", quality=95)
        photograph.save(folders[3] / "c02.jpg", quality=50)
    mask = a_disc() > 0
    for folder in folders[1:3]:
        Image.fromarray(mask).convert("RGB").save(folder / "c01.jpg", quality=75)
    output = import_files(tmp_path / "set")
    assert "2 images." in output
    assert "blurred by JPEG" in output
    assert "Imported as images, though named as masks: c02.jpg" in output
    found_marks = marks(tmp_path)
    assert {rater for _, rater, _ in found_marks} == {"anna", "ben"}
    assert all(abs(voxels - mask.sum()) <= 2 for voxels in found_marks.values())


def test_a_mask_finds_the_image_that_was_turned_by_its_orientation(import_files, tmp_path):
    exif = Image.Exif()
    exif[274] = 6
    with Image.open(a_photograph(tmp_path / "photograph.png", (25, 24))) as photograph:
        photograph.save(tmp_path / "cell.jpg", exif=exif, quality=95)
    (tmp_path / "photograph.png").unlink()
    mask = a_disc((24, 25), 24) > 0
    Image.fromarray(mask[..., None] * np.uint8([255, 0, 0])).save(tmp_path / "cell_anna.png")
    assert "1 image." in import_files(tmp_path / "cell.jpg", tmp_path / "cell_anna.png")
    assert list(marks(tmp_path).values()) == [mask.sum()]


def test_masks_among_many_small_pictures_without_compression(import_files, tmp_path):
    random = np.random.default_rng(1)
    for case in range(30):
        tifffile.imwrite(tmp_path / f"c{case:02}.tif", random.integers(0, 255, (24, 25), dtype=np.uint8))
        for rater in ("anna", "ben", "carl"):
            tifffile.imwrite(tmp_path / f"c{case:02}_{rater}.tif", a_disc((24, 25), 24).astype(np.uint8))
    output = import_files(tmp_path)
    assert "30 images." in output
    assert "90 masks in 90 files on 30 images by 3 annotators" in output


def test_plain_pictures_with_a_table_of_clicks_stay_images(import_files, tmp_path):
    picture = painted(tmp_path / "smear.png", a_disc())
    (tmp_path / "clicks.csv").write_text("annotator,image,x,y\nanna,smear.png,5,6\n")
    import_files(picture, tmp_path / "clicks.csv")
    assert marks(tmp_path) == {}


def test_photographs_are_not_decoded_to_find_masks_among_them(import_files, tmp_path, monkeypatch):
    files = [a_photograph(tmp_path / f"smear-{n}.png", seed=n) for n in range(5)]

    def refuse(source, watch):
        raise AssertionError(f"{source.path.name} was decoded")

    monkeypatch.setattr("raterscope.app.formats.masks.label_maps.read_values", refuse)
    assert "5 images." in import_files(*files)


def test_a_tiff_of_many_pages_is_a_volume_or_its_mask(import_files, tmp_path):
    pages = np.random.default_rng(1).integers(0, 4000, SHAPE, dtype=np.uint16)
    tifffile.imwrite(tmp_path / "vol.tif", pages)
    tifffile.imwrite(tmp_path / "vol_anna.tif", 255 * a_ball())
    tifffile.imwrite(tmp_path / "vol_ben.tif", 255 * a_ball(), compression="zlib")
    assert "1 volume." in import_files(*sorted(tmp_path.glob("*.tif")))
    assert marks(tmp_path) == {
        ("vol.tif", name, "structure"): int(a_ball().sum()) for name in ("anna", "ben")
    }


def test_png_masks_of_two_sizes_on_one_image_are_refused(import_files, tmp_path):
    painted(tmp_path / "cell_anna.png", a_disc())
    painted(tmp_path / "cell_ben.png", a_disc((64, 80)))
    output = import_files(tmp_path / "cell_anna.png", tmp_path / "cell_ben.png")
    words = " ".join(output.split())
    assert "cell_ben.png: does not lie on cell_anna.png" in words
    assert (
        "80 x 64 px and 80 x 60 px; masks without positions in mm must have the size of their image" in words
    )
