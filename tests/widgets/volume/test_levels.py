import numpy as np
import pytest

from raterscope.widgets.volume.plane import Levels, automatic_window, in_words, looks_like_ct


@pytest.mark.parametrize("kind", [np.int16, np.uint16, np.uint8, np.float32])
def test_black_to_white_runs_over_the_width_whatever_the_numbers_are(kind):
    values = np.array([[0, 20, 40, 60, 80, 100, 255]], dtype=kind)
    assert Levels(60, 80).to_bytes(values).tolist() == [[0, 0, 64, 128, 191, 255, 255]]


def test_air_is_black_and_metal_is_white_in_a_ct():
    values = np.array([[-32768, -1024, -160, 40, 240, 3071, 32767]], dtype=np.int16)
    assert Levels(40, 400).to_bytes(values).tolist() == [[0, 0, 0, 128, 255, 255, 255]]


def test_slices_that_are_views_are_read_in_their_own_order():
    volume = np.arange(-30, 30, dtype=np.int16).reshape(3, 4, 5)
    view = volume[:, :, 2][::-1, ::-1]
    assert np.array_equal(Levels(0, 60).to_bytes(view), Levels(0, 60).to_bytes(view.copy()))


def test_a_gap_in_the_numbers_is_black_and_colours_pass():
    assert Levels(0.5, 1).to_bytes(np.array([[np.nan, 1.0]], dtype=np.float32)).tolist() == [[0, 255]]
    colours = np.random.default_rng(0).integers(0, 255, (4, 5, 3), dtype=np.uint8)
    assert np.array_equal(Levels(0, 1).to_bytes(colours), colours)


def test_the_automatic_window_spans_the_tissue_not_the_padding_nor_a_bright_vessel():
    rng = np.random.default_rng(2)
    volume = np.zeros((40, 60, 60), dtype=np.int16)
    volume[10:30, 15:45, 15:45] = rng.normal(500, 60, (20, 30, 30))
    volume[20, 30, 30:33] = 30_000
    volume[volume == 0] = -3024
    centre, width = automatic_window(volume)
    assert 300 < centre - width / 2 < 400
    assert 600 < centre + width / 2 < 720


def test_values_with_air_may_be_a_ct_and_those_about_nought_may_not():
    rng = np.random.default_rng(4)
    scan = rng.normal(40, 20, (20, 40, 40))
    assert not looks_like_ct(scan)
    scan[:, :10] = -1000
    assert looks_like_ct(scan)


@pytest.mark.parametrize("volume", [np.full((3, 4, 5), 7.0), np.full((2, 2, 2), np.nan)])
def test_a_volume_of_one_value_has_a_window_too(volume):
    _, width = automatic_window(volume)
    assert width > 0


def test_a_window_is_said_with_the_digits_its_width_has_a_use_for():
    assert in_words(40, 400) == "W 400 L 40"
    assert in_words(0.5, 1.0) == "W 1.0 L 0.5"
