"""Masks in images as programs save them: JPEG, EXIF orientation, transparency."""

from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from raterscope.app.errors import InputError
from raterscope.app.formats.masks import read_masks

ROWS, COLUMNS = np.mgrid[:120, :160]
DISC = (ROWS - 50) ** 2 + (COLUMNS - 70) ** 2 < 30**2


def read(path: Path) -> np.ndarray:
    (mask,) = read_masks(path).masks
    assert mask.values.dtype == bool
    return mask.whole()[0]


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("quality", [50, 75, 95])
def test_a_jpeg_in_black_and_white_is_the_mask(tmp_path: Path, quality: int, mode: str) -> None:
    path = tmp_path / "a_mask.jpg"
    Image.fromarray(DISC).convert(mode).save(path, quality=quality)
    assert np.count_nonzero(read(path) != DISC) <= 2
    (notice,) = read_masks(path).notices
    assert "JPEG" in notice
    # the same, after a program has decoded it
    Image.open(path).save(tmp_path / "a_mask.png")
    assert np.count_nonzero(read(tmp_path / "a_mask.png") != DISC) <= 2


def test_an_empty_jpeg_is_an_empty_mask(tmp_path: Path) -> None:
    Image.new("L", (160, 120)).save(tmp_path / "a_mask.jpg")
    assert not read(tmp_path / "a_mask.jpg").any()


def test_a_jpeg_with_labels_or_colours_is_refused(tmp_path: Path) -> None:
    labels = DISC.astype(np.uint8) + (DISC & (ROWS > 50))
    colours = np.array([[0, 0, 0], [255, 0, 0], [0, 0, 255]], dtype=np.uint8)[labels]
    for array in (labels, labels * 127, colours):
        Image.fromarray(array).save(tmp_path / "a_mask.jpg")
        with pytest.raises(InputError, match="save it as PNG"):
            read_masks(tmp_path / "a_mask.jpg")


def test_smooth_probabilities_stay_probabilities(tmp_path: Path) -> None:
    distance = 30 - np.hypot(ROWS - 50, COLUMNS - 70)
    smooth = np.rint(255 / (1 + np.exp(-distance / 4))).astype(np.uint8)
    Image.fromarray(smooth).save(tmp_path / "a_mask.png")
    (mask,) = read_masks(tmp_path / "a_mask.png").masks
    np.testing.assert_allclose(mask.whole()[0], smooth / 255, atol=1e-6)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif"])
def test_a_mask_is_turned_as_its_orientation_says(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a_mask{suffix}"
    stored = np.rot90(DISC).astype(np.uint8) * 255
    if suffix == ".tif":
        tifffile.imwrite(path, stored, extratags=[(274, "H", 1, 6, True)])
    else:
        exif = Image.Exif()
        exif[274] = 6
        Image.fromarray(stored).save(path, exif=exif, quality=95)
    assert np.count_nonzero(read(path) != DISC) <= 2


@pytest.mark.parametrize("colour", [0, 255])
@pytest.mark.parametrize("channels", [2, 4])
def test_a_mask_in_the_transparency_alone_is_read(tmp_path: Path, channels: int, colour: int) -> None:
    pixels = np.full((*DISC.shape, channels), colour, dtype=np.uint8)
    pixels[..., -1] = 255 * DISC
    Image.fromarray(pixels).save(tmp_path / "a_mask.png")
    photometric = "rgb" if channels == 4 else "minisblack"
    tifffile.imwrite(tmp_path / "a_mask.tif", pixels, photometric=photometric, planarconfig="contig")
    for path in (tmp_path / "a_mask.png", tmp_path / "a_mask.tif"):
        np.testing.assert_array_equal(read(path), DISC)
        (notice,) = read_masks(path).notices
        assert "opaque" in notice
