"""Stains of one image are given to another."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from raterscope.algorithms.image_display import estimate_stain, normalise_stain


def stained(vectors, strength, seed=1):
    """Two stains in random amounts over a clear ground, (80, 90, 3)."""
    rng = np.random.default_rng(seed)
    amounts = rng.gamma(1.2, 0.45, (80, 90, 2)) * np.array(strength)
    amounts[rng.random((80, 90)) < 0.3] = 0.0
    amounts[..., 0][rng.random((80, 90)) < 0.3] = 0.0
    vectors = np.array(vectors) / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.clip(np.rint(256 * np.exp(-(amounts @ vectors)) - 1), 0, 255).astype(np.uint8)


REFERENCE = stained([(0.65, 0.70, 0.29), (0.07, 0.99, 0.11)], (1.0, 0.8))
OTHER = stained([(0.80, 0.55, 0.25), (0.20, 0.90, 0.38)], (0.5, 0.6))


def test_another_staining_of_the_same_tissue_becomes_the_reference():
    stain = estimate_stain(REFERENCE)
    assert stain is not None
    before = np.abs(OTHER.astype(int) - REFERENCE).mean()
    after = np.abs(normalise_stain(OTHER, stain).astype(int) - REFERENCE).mean()
    assert after < 0.35 * before


def test_the_reference_itself_hardly_changes_and_clear_ground_stays_clear():
    stain = estimate_stain(REFERENCE)
    same = normalise_stain(REFERENCE, stain)
    assert np.abs(same.astype(int) - REFERENCE).mean() < 1.5
    clear = (REFERENCE == 255).all(axis=-1)
    assert (same[clear] == 255).all()


def test_images_without_two_stains_stay_as_they_are():
    blank = np.full((50, 50, 3), 250, dtype=np.uint8)
    grey = np.repeat(np.random.default_rng(1).integers(0, 255, (90, 90, 1)), 3, axis=-1).astype(np.uint8)
    for image in (blank, grey):
        assert estimate_stain(image) is None
        assert normalise_stain(image, estimate_stain(REFERENCE)) is image


def test_real_giemsa_smears_come_closer_in_colour(real_data: Path):
    paths = sorted((real_data / "clicks" / "iml_malaria" / "images").glob("*.JPG"))[::6]
    images = [np.asarray(Image.open(path).convert("RGB")) for path in paths]
    stain = estimate_stain(images[0])
    assert stain is not None

    def spread(pictures):
        return np.mean([np.ptp([np.percentile(p[..., c], 10) for p in pictures]) for c in range(3)])

    assert spread([normalise_stain(image, stain) for image in images]) < spread(images)


@pytest.mark.parametrize("seed", [2, 3])
def test_the_estimate_is_that_of_the_stains(seed):
    first, second = np.array([0.65, 0.70, 0.29]), np.array([0.07, 0.99, 0.11])
    stain = np.array(estimate_stain(stained([first, second], (1.0, 0.8), seed)))
    for found, true in ((stain[:3], first), (stain[3:6], second)):
        assert found @ true / np.linalg.norm(true) > 0.98
