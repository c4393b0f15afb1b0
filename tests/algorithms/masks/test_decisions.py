"""Decisions on disputed regions leave the undecided voxels no worse."""

import pytest

from raterscope.algorithms.masks.data import Masks
from raterscope.algorithms.simulation.mask_crowds import simulate_case
from tests.benchmarks.calibration._mask_decisions import after_decisions

SPACING = (1.5, 0.9, 0.9)


@pytest.mark.parametrize("count", [1, 3, 10])
def test_correct_decisions_do_not_harm_the_undecided(count):
    case = simulate_case(1, (40, 110, 110), SPACING, 6)
    result = after_decisions(Masks(case.masks, tuple("abcdef"), SPACING), case.truth, count)
    assert result.voxels > 50
    for before, after in (result.loss, result.doubt):
        assert after <= (1.03 if count == 1 else 1.0) * before
