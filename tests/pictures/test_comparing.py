"""Comparison of a screen with its reference picture."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from tests.pictures import comparing
from tests.pictures.comparing import check, read, store_reference


@pytest.fixture
def screen(tmp_path, monkeypatch):
    """A picture with some text, stored as its own reference."""
    monkeypatch.setattr(comparing, "REFERENCES", tmp_path / "reference")
    image = Image.new("RGB", (200, 100), "#202428")
    ImageDraw.Draw(image).text((20, 40), "Press Fuse (F5)", fill="white")
    store_reference(image, "screen")
    return image


def test_a_screen_equals_its_stored_reference(screen, tmp_path):
    check(screen, "screen", tmp_path)
    assert not (tmp_path / "screen-actual.png").exists()


def test_another_anti_aliasing_is_no_difference(screen, tmp_path):
    values = np.asarray(screen, np.int16)
    check(Image.fromarray(np.clip(values + 10, 0, 255).astype(np.uint8)), "screen", tmp_path)


def test_a_changed_word_is_shown_beside_the_actual_screen(screen, tmp_path):
    ImageDraw.Draw(screen).text((120, 40), "now", fill="white")
    with pytest.raises(AssertionError, match=r"x 1\d\d to 1\d\d, y .*make pictures"):
        check(screen, "screen", tmp_path)
    assert read(tmp_path / "screen-actual.png").size == screen.size
    red = np.asarray(read(tmp_path / "screen-difference.png")) == (255, 0, 0)
    rows, columns = np.nonzero(red.all(axis=2))
    assert columns.min() >= 118
    assert 30 < rows.min() < rows.max() < 60


def test_another_size_and_a_missing_reference_are_differences(screen, tmp_path):
    with pytest.raises(AssertionError, match="differs"):
        check(screen.resize((100, 100)), "screen", tmp_path)
    with pytest.raises(AssertionError, match="no reference picture for other"):
        check(screen, "other", tmp_path)


def test_a_reference_that_still_fits_is_left_as_it_is(screen, tmp_path):
    file = tmp_path / "reference" / "screen.png"
    before = file.read_bytes()
    store_reference(Image.fromarray(np.asarray(screen) // 2 * 2), "screen")
    assert file.read_bytes() == before
    store_reference(Image.new("RGB", screen.size, "red"), "screen")
    assert file.read_bytes() != before
