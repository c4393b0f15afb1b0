"""The focus of an image is the variance of its Laplacian; saturated pixels have the highest value."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, laplace

from raterscope.algorithms.image_display import measure_focus, measure_saturation


def test_it_is_the_variance_of_the_laplacian_of_scipy():
    pixels = np.random.default_rng(1).integers(0, 4000, (40, 50)).astype(np.uint16)
    expected = laplace(pixels.astype(float))[1:-1, 1:-1].var()
    assert measure_focus(pixels) == pytest.approx(expected, rel=1e-5)


def test_blur_lowers_it():
    pixels = np.random.default_rng(2).random((60, 60, 3)) * 255
    blurred = [gaussian_filter(pixels, (sigma, sigma, 0)) for sigma in (0.5, 1, 2)]
    focus = [measure_focus(image) for image in (pixels, *blurred)]
    assert focus == sorted(focus, reverse=True)


def test_an_image_of_two_rows_has_none():
    assert measure_focus(np.ones((2, 9), np.uint8)) == 0


@pytest.mark.parametrize(
    ("highest", "dtype", "share"),
    [(255, "u1", 0.25), (4095, "u2", 0.25), (65535, "u2", 0.25), (4094, "u2", 0.0), (200, "u1", 0.0),
     (1.0, "f4", None)],
)  # fmt: skip
def test_pixels_at_the_highest_value_of_the_camera_are_saturated(highest, dtype, share):
    pixels = np.zeros((8, 8), dtype)
    pixels[:4, :4] = highest
    assert measure_saturation(pixels) == share


def test_a_pixel_is_saturated_if_one_of_its_colours_is():
    pixels = np.full((2, 4, 3), 90, np.uint8)
    pixels[0, 0, 1] = pixels[1, 3] = 255
    assert measure_saturation(pixels) == 0.25
