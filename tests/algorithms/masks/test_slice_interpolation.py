"""Outlines between drawn slices."""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.masks.slice_interpolation import interpolate
from tests.algorithms.masks.staple_cases import ball

SPACING = (2.0, 1.0, 1.0)


def disc(row, column, radius, shape=(60, 80)):
    return ball((1, *shape), (0, row, column), radius)[0]


def test_discs_of_a_cone_grow_evenly():
    drawn = {3: disc(30, 40, 5), 7: disc(30, 40, 13)}
    found = interpolate(drawn, SPACING)
    assert sorted(found) == [4, 5, 6]
    for at, radius in ((4, 7), (5, 9), (6, 11)):
        wrong = np.count_nonzero(found[at] ^ disc(30, 40, radius))
        assert wrong < 0.06 * np.pi * radius**2


def test_a_tube_that_runs_aslant_stays_a_tube():
    drawn = {0: disc(15, 10, 6), 10: disc(40, 60, 6)}
    found = interpolate(drawn, SPACING)
    for at in range(1, 10):
        rows, columns = np.nonzero(found[at])
        assert abs(rows.mean() - (15 + 2.5 * at)) < 1
        assert abs(columns.mean() - (10 + 5 * at)) < 1
        assert np.count_nonzero(found[at]) == np.count_nonzero(disc(15, 10, 6))


def test_only_gaps_between_drawn_masks_are_filled():
    empty = np.zeros((60, 80), dtype=bool)
    drawn = {0: empty, 2: disc(30, 30, 5), 3: disc(30, 30, 6), 5: disc(30, 30, 6), 9: empty}
    found = interpolate(drawn, SPACING)
    assert sorted(found) == [4]
    assert np.array_equal(found[4], drawn[3])
    assert interpolate({}, SPACING) == {}
    assert interpolate({4: disc(5, 5, 3)}, SPACING) == {}


def test_a_mask_at_the_images_edge():
    drawn = {0: disc(0, 0, 9), 4: disc(0, 0, 15)}
    found = interpolate(drawn, SPACING)
    assert np.count_nonzero(drawn[0]) < np.count_nonzero(found[2]) < np.count_nonzero(drawn[4])
    assert found[2][0, 0]
