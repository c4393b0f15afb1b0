"""Figures of runs of masks over cases: means, tests, structures and units."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.metrics import Comparison
from raterscope.app.kinds.masks.run_comparison import Measured, in_words, summarize

GRID = Grid.plain((12, 24, 24), (2.0, 1.0, 1.0), calibrated=True)
FINE = Comparison(0.9, 0.8, 2.0, 1.0, 0.5, 0.25, 0.9, 1.0)


def one_case(image: int, *dices: float, structure: str = "nodule", grid: Grid = GRID) -> Measured:
    return Measured(image, structure, grid, tuple(replace(FINE, dice=value) for value in dices))


def test_from_six_cases_on_a_difference_is_tested():
    cases = [one_case(image, 0.9, 0.8 - 0.01 * image) for image in range(6)]
    blank, tested = (row[5][0] for row in summarize(cases).figures)
    assert np.isnan(blank)
    assert tested == pytest.approx(2 / 2**6)  # all six to one side: one of 64 ways, and its mirror
    assert np.isnan(summarize(cases[:5]).figures[1][5][0])


def test_structures_are_averaged_within_a_case_or_looked_at_alone():
    cases = [
        one_case(1, 0.5, structure="zone"), one_case(1, 0.7, structure="gland"),
        one_case(2, 0.9, structure="gland"),
    ]  # fmt: skip
    both, gland = summarize(cases), summarize(cases, "gland")
    assert (both.cases, both.figures[0][0][0]) == (2, pytest.approx(0.75))
    assert (gland.cases, gland.figures[0][0][0]) == (2, pytest.approx(0.8))


def test_where_a_run_found_nothing_no_run_has_a_distance_but_all_have_their_overlap():
    lost = replace(FINE, dice=0.0, hausdorff=np.inf, hausdorff_95=np.inf, mean_surface_distance=np.inf)
    cases = [one_case(1, 0.9, 0.8), Measured(2, "nodule", GRID, (replace(FINE, hausdorff_95=9.0), lost))]
    summary = summarize(cases)
    assert summary.counted == (2, 1, 1, 1, 2)
    assert [row[1][0] for row in summary.figures] == [1.0, 1.0]
    assert summary.figures[1][0][0] == pytest.approx(0.4)


def test_lengths_and_volumes_are_in_the_cases_own_unit_and_never_mixed():
    pixels = Grid.plain((1, 24, 24))
    alone = summarize([one_case(1, 0.9, grid=pixels)])
    assert (alone.length, alone.volume, alone.figures[0][4][0]) == ("px", "px", pytest.approx(250))
    mixed = summarize([one_case(1, 0.9, grid=pixels), one_case(2, 0.7)])
    assert (mixed.length, mixed.figures[0][0][0]) == ("", pytest.approx(0.8))
    assert np.isnan(mixed.figures[0][1][0])
    assert in_words(FINE, pixels) == "Dice 0.90, HD95 1.0 px, +250 px"
