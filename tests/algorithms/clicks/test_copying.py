"""Annotators whose clicks are copies of another's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.clicks.copying import find_copies
from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.fusion import fuse

SCATTER = 4.0


def crowd(seed, copies=0, precise=0, jitter=0.4):
    """Clicks on three images: independent annotators, copies of the first, and precise annotators."""
    generator, images = np.random.default_rng(seed), []
    for _ in range(3):
        structures = np.stack(np.meshgrid(*[np.arange(60, 560, 100.0)] * 2), axis=-1).reshape(-1, 2)
        structures += generator.uniform(-20, 20, structures.shape)
        rows = []
        for annotator in range(8 + precise):
            seen = structures[generator.random(len(structures)) < 0.7]
            scatter = 0.3 if annotator >= 8 else SCATTER
            rows.append((annotator, seen + generator.normal(0, scatter, seen.shape)))
        for copy in range(copies):
            rows.append((8 + precise + copy, rows[0][1] + generator.normal(0, jitter, rows[0][1].shape)))
        points = np.concatenate([points for _, points in rows])
        annotator = np.concatenate([np.full(len(points), index) for index, points in rows])
        names = tuple(f"w{number}" for number in range(8 + precise + copies))
        images.append(Clicks(points[:, 0], points[:, 1], annotator, names, (0.0, 0.0, 600.0, 600.0)))
    return images


def found(images):
    return find_copies(images, [fuse(image) for image in images])


@pytest.mark.parametrize("copies", [1, 3])
def test_copies_are_one_group_with_their_original(copies):
    (group,) = found(crowd(1, copies=copies))
    assert set(group.annotators) == {"w0", *(f"w{8 + number}" for number in range(copies))}
    assert group.distance < 1.0
    assert group.expected == pytest.approx(2 * SCATTER, rel=0.25)  # two errors along two axes


@pytest.mark.parametrize("seed", range(4))
def test_independent_annotators_are_no_copies_even_if_some_are_precise(seed):
    assert found(crowd(seed, precise=3)) == []


def test_few_common_clicks_show_nothing():
    image = crowd(2, copies=1)[0]
    few = image.select(np.flatnonzero(image.points[:, 1] < 150))
    assert found([few]) == []
    assert find_copies([], []) == []


@pytest.mark.parametrize("copies", [1, 4, 12])
def test_exact_copies_are_found_even_if_they_are_the_majority(copies):
    (group,) = found(crowd(1, copies=copies, jitter=0.0))
    assert set(group.annotators) == {"w0", *(f"w{8 + number}" for number in range(copies))}
    assert group.distance == 0


@pytest.mark.parametrize("grid", [4.0, 100.0])
def test_coarse_or_offered_positions_accuse_nobody(grid):
    """Positions in units of the scatter, and of the distance of structures: all annotators share them."""
    images = [
        replace(image, x=np.round(image.x / grid) * grid, y=np.round(image.y / grid) * grid)
        for image in crowd(3)
    ]
    assert found(images) == []
