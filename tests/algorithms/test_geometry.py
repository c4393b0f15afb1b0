"""Lengths and areas of what is drawn."""

import numpy as np
import pytest

from raterscope.algorithms.geometry import area_of, crosses_itself, length_of, simplify


def test_a_triangle_of_three_four_five_has_its_length_and_area():
    triangle = np.array([(10.0, 20.0), (14.0, 20.0), (14.0, 23.0)])
    assert length_of(triangle) == pytest.approx(7)
    assert length_of(triangle, closed=True) == pytest.approx(12)
    assert area_of(triangle) == pytest.approx(6)
    assert area_of(triangle[::-1]) == pytest.approx(6)


def test_moving_turning_and_enlarging_an_outline_changes_what_it_should():
    rng = np.random.default_rng(3)
    angle = np.sort(rng.uniform(0, 2 * np.pi, 40))
    outline = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.uniform(0.5, 1.5, (40, 1))
    turn = np.array([[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]])
    other = 3 * outline @ turn.T + (19_000, 18_000)
    assert area_of(other) == pytest.approx(9 * area_of(outline))
    assert length_of(other, closed=True) == pytest.approx(3 * length_of(outline, closed=True))
    assert not crosses_itself(other)


def test_the_area_is_that_of_the_pixels_within():
    angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    outline = np.column_stack([60 + 40 * np.cos(angle), 50 + 25 * np.sin(angle)])
    down, across = np.mgrid[0:100, 0:120] + 0.5
    inside = ((across - 60) / 40) ** 2 + ((down - 50) / 25) ** 2 < 1
    assert area_of(outline) == pytest.approx(inside.sum(), rel=0.005)


def test_an_outline_that_crosses_itself_is_known():
    assert crosses_itself(np.array([(0.0, 0.0), (2.0, 2.0), (2.0, 0.0), (0.0, 2.0)]))
    assert not crosses_itself(np.array([(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0)]))
    assert not crosses_itself(np.array([(0.0, 0.0), (4.0, 0.0), (2.0, 1.0), (4.0, 3.0), (0.0, 3.0)]))


def test_a_simplified_line_stays_within_the_tolerance_with_fewer_points():
    along = np.linspace(0, 4 * np.pi, 2_000)
    drawn = np.column_stack([30 * along, 50 * np.sin(along)])
    kept = simplify(drawn, 0.5)
    assert len(kept) < 120
    np.testing.assert_array_equal(kept[[0, -1]], drawn[[0, -1]])
    nearest = np.interp(drawn[:, 0], kept[:, 0], kept[:, 1])
    assert np.abs(nearest - drawn[:, 1]).max() < 2.5  # downwards; athwart it is 0.5
    assert length_of(kept) == pytest.approx(length_of(drawn), rel=0.005)
