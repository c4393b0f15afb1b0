"""Several methods on the same masks: agreement with raters and truth, bounds, and the test over cases."""

import numpy as np
import pytest

from raterscope.algorithms.masks import Masks
from raterscope.algorithms.masks.data import MasksError
from raterscope.algorithms.masks.fusion import MaskPlan, fuse
from raterscope.algorithms.masks.method_comparison import compare_methods, quartiles, signed_ranks
from raterscope.algorithms.masks.metrics import compare
from tests.algorithms.masks.staple_cases import ball, named, nodule

NAMES = ("laplace", "gaussian", "staple", "majority")


@pytest.fixture(scope="module")
def crowd() -> tuple[Masks, np.ndarray]:
    shape = (10, 24, 24)
    masks = [ball(shape, (5, 12, 11 + n), 5.0 + 0.7 * n, (1.5, 1.0, 1.0)) for n in range(3)]
    return named(np.array(masks), spacing=(1.5, 1.0, 1.0)), ball(shape, (5, 12, 12), 5.5, (1.5, 1.0, 1.0))


def plans(*names: str) -> list[MaskPlan]:
    return [MaskPlan.make(name) for name in names or NAMES]


def test_every_figure_is_that_of_the_two_masks(crowd):
    masks, truth = crowd
    result = compare_methods(masks, plans(), truth)
    assert [fit.method for fit in result.fits] == list(NAMES)
    for measure in ("dice", "hausdorff", "hausdorff_95", "mean_surface_distance"):
        raters, methods = result.against_truth(measure)
        between, with_raters = result.among_raters(measure)
        for p, mask in enumerate(masks.values):
            assert raters[p] == pytest.approx(getattr(compare(mask, truth, masks.spacing), measure))
        for m, fit in enumerate(result.fits):
            volume = np.zeros(masks.shape, dtype=bool)
            at = tuple(slice(a, a + n) for a, n in zip(fit.origin, fit.mask.shape, strict=True))
            volume[at] = fit.mask
            assert methods[m] == pytest.approx(getattr(compare(volume, truth, masks.spacing), measure))
            first = getattr(compare(volume, masks.values[1], masks.spacing), measure)
            assert with_raters[m, 1] == pytest.approx(first)
        two = getattr(compare(masks.values[0], masks.values[2], masks.spacing), measure)
        assert between[0, 1] == between[2, 0] == pytest.approx(two)


def test_bounds_are_those_of_the_models_that_can_be_compared(crowd):
    masks, _ = crowd
    result = compare_methods(masks, plans())
    bounds = {fit.method: fit.bound for fit in result.fits}
    assert bounds["laplace"] == fuse(masks, MaskPlan()).traces[0].objective[-1]
    assert np.isfinite(bounds["gaussian"])
    assert np.isnan([bounds["staple"], bounds["majority"]]).all()
    assert np.isnan(result.against_truth("dice")[1]).all()
    assert all(fit.seconds > 0 for fit in result.fits)


def test_students_t_has_the_highest_bound_on_a_nodule_as_in_figure_11(real_data):
    result = compare_methods(nodule(real_data), plans("laplace", "student", "gaussian"))
    bounds = {fit.method: fit.bound for fit in result.fits}
    assert bounds["student"] > bounds["laplace"] > bounds["gaussian"]


def test_several_structures_and_no_method_are_refused(crowd):
    masks, _ = crowd
    two = Masks(masks.values.astype(np.uint8), masks.annotators, structures=("a", "b"))
    with pytest.raises(MasksError, match="one at a time"):
        compare_methods(two, plans())
    with pytest.raises(MasksError, match="no method"):
        compare_methods(masks, [])


def test_signed_ranks_need_six_cases_in_which_both_are_known():
    rng = np.random.default_rng(1)
    baseline = rng.random(8)
    assert signed_ranks(baseline + 0.1, baseline) == pytest.approx(2 / 2**8)
    assert np.isnan(signed_ranks(baseline[:5] + 0.1, baseline[:5]))
    holes = baseline.copy()
    holes[:3] = np.inf
    assert np.isnan(signed_ranks(baseline, holes))


def test_whiskers_end_within_one_and_a_half_boxes():
    assert quartiles(np.array([0.0, 10.0, 11.0, 12.0, 13.0])) == (10.0, 10.0, 11.0, 12.0, 13.0)
    assert quartiles(np.array([3.0])) == (3.0,) * 5


def test_two_empty_masks_are_not_taken_for_perfect(crowd):
    masks, _ = crowd
    values = np.stack([masks.values[0], np.zeros(masks.shape, dtype=bool)])
    result = compare_methods(named(values, spacing=masks.spacing), plans("majority"))
    assert not result.fits[0].mask.any()
    for measure in ("dice", "hausdorff", "mean_surface_distance"):
        assert np.isnan(result.among_raters(measure)[1][0, 1])
    assert result.among_raters("hausdorff")[1][0, 0] == np.inf
