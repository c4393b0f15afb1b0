"""Value range, gamma, colour and visibility of channels."""

import numpy as np
import pytest
from skimage import exposure

from raterscope.algorithms.image_display import (
    COLOUR,
    GREY,
    ChannelDisplay,
    ChannelPlane,
    describe_channel,
    render,
)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int16, np.float32])
@pytest.mark.parametrize("side", [40, 300])
def test_range_and_gamma_agree_with_scikit_image(kind: type, side: int) -> None:
    values = np.random.default_rng(1).uniform(0, 200, (side, side)).astype(kind)
    shown = render([ChannelPlane(GREY, values)], {GREY: ChannelDisplay(low=20, high=150, gamma=0.5)})
    scaled = exposure.rescale_intensity(values.astype(float), (20, 150), (0, 1))
    expected = 255 * exposure.adjust_gamma(scaled, 0.5)
    assert np.abs(shown.astype(float) - expected).max() <= 0.5 + 1e-9


def test_bytes_stay_as_they_are_by_default_and_negative_values_are_in_order() -> None:
    values = np.arange(256, dtype=np.uint8).reshape(16, 16)
    assert render([ChannelPlane(GREY, values)], {}) is values
    hounsfield = np.arange(-200, 200, dtype=np.int16).reshape(20, 20)
    shown = render([ChannelPlane(GREY, hounsfield)], {}).ravel()
    assert (np.diff(shown.astype(int)) >= 0).all()
    assert shown[[0, -1]].tolist() == [0, 255]


def test_channels_are_switched_and_coloured() -> None:
    one, two = np.full((4, 4), 200, np.uint8), np.full((4, 4), 100, np.uint8)
    planes = [ChannelPlane("DAPI", one, (0, 0, 255)), ChannelPlane("GFP", two, (0, 255, 0))]
    assert render(planes, {})[0, 0].tolist() == [0, 100, 200]
    hidden = {"DAPI": ChannelDisplay(shown=False), "GFP": ChannelDisplay(colour=(255, 0, 255))}
    assert render(planes, hidden)[0, 0].tolist() == [100, 0, 100]
    assert not render(planes, dict.fromkeys(("DAPI", "GFP"), ChannelDisplay(shown=False))).any()
    grey = {GREY: ChannelDisplay(colour=(0, 255, 0))}
    assert render([ChannelPlane(GREY, one)], grey)[0, 0].tolist() == [0, 200, 0]


def test_an_image_in_colour_keeps_its_three_parts_in_proportion() -> None:
    values = np.array([[[100, 50, 0], [200, 100, 50]]], dtype=np.uint8)
    shown = render([ChannelPlane(COLOUR, values)], {COLOUR: ChannelDisplay(low=0, high=200)})
    assert shown[0, 1].tolist() == [255, 127, 64]


def test_the_automatic_range_ignores_a_hot_pixel_and_the_histogram_counts_all() -> None:
    values = np.random.default_rng(2).normal(1000, 10, (200, 200)).astype(np.uint16)
    values[3, 3] = 65_535
    described = describe_channel(ChannelPlane("GFP", values))
    assert described.automatic[1] < 1100
    assert described.highest == 65_535
    assert sum(described.histogram) == values.size


def test_constant_and_missing_values_are_shown() -> None:
    for values in (np.full((5, 5), 7.0), np.full((5, 5), np.nan)):
        plane = ChannelPlane(GREY, values)
        assert render([plane], {}).dtype == np.uint8
        assert describe_channel(plane).highest > describe_channel(plane).lowest


@pytest.mark.parametrize("wrong", [{"gamma": 0.0}, {"low": float("nan")}, {"colour": (0, 0, 300)}])
def test_impossible_displays_are_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match=r"gamma|finite|colour"):
        ChannelDisplay(**wrong)
