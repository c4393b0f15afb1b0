"""Plans of acceptance sampling and sample sizes, against published examples and their own promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from raterscope.algorithms.annotators.acceptance import (
    SingleSampling,
    decide,
    sequential_sampling,
    single_sampling,
)
from raterscope.algorithms.annotators.agreement import kappa_error
from raterscope.algorithms.annotators.reader_study import (
    cases_for_icc,
    cases_for_kappa,
    cases_for_limits,
    cases_for_proportion,
)


@pytest.mark.parametrize(("share", "accepted"), [(0.01, 0.998), (0.05, 0.739), (0.10, 0.223), (0.12, 0.115)])
def test_the_operating_characteristic_of_the_nist_handbook(share, accepted):
    """NIST/SEMATECH e-Handbook of statistical methods, section 6.2.3.2: 52 items, 3 errors accepted."""
    assert SingleSampling(52, 3, 0.01, 0.1).accepted(share) == pytest.approx(accepted, abs=0.001)


def test_the_sequential_plan_of_the_nist_handbook():
    """Section 6.2.6: for AQL .01 and LQ .10, after 24 items accept with 0 errors and reject with 3."""
    plan = sequential_sampling(0.01, 0.10)
    assert plan.limits(24) == (0, 3)
    assert plan.limits(23)[0] == -1
    assert plan.limits(1) == (-1, 2)


def test_thirty_two_items_with_at_most_two_errors():
    plan = single_sampling(0.025, 0.16)
    assert (plan.size, plan.accept) == (32, 2)
    assert [decide(plan, 32, errors) for errors in (2, 3)] == ["accept", "reject"]
    assert decide(plan, 31, 1) == "accept"  # the last item cannot change it
    assert decide(plan, 31, 2) == "continue"


@settings(max_examples=40, deadline=None)
@given(
    acceptable=st.floats(0.002, 0.08), times=st.floats(2.5, 8),
    lot=st.one_of(st.none(), st.integers(200, 2000)),
)  # fmt: skip
def test_plans_keep_both_risks_and_are_the_smallest(acceptable, times, lot):
    unacceptable = min(0.5, acceptable * times)
    try:
        plan = single_sampling(acceptable, unacceptable, lot=lot)
    except ValueError:
        assert lot is not None
        return
    assert plan.accepted(acceptable) >= 0.95 - 1e-12
    assert plan.accepted(unacceptable) <= 0.10 + 1e-12
    if lot is None:
        assert stats.binom.cdf(plan.accept, plan.size - 1, unacceptable) > 0.10
    else:
        errors = round(unacceptable * lot)
        assert plan.accepted(unacceptable) == pytest.approx(
            stats.hypergeom.cdf(plan.accept, lot, errors, plan.size)
        )


@pytest.mark.parametrize(("acceptable", "unacceptable"), [(0.01, 0.06), (0.02, 0.15), (0.05, 0.2)])
def test_a_sequential_plan_keeps_its_risks_with_fewer_items(acceptable, unacceptable):
    plan, single = sequential_sampling(acceptable, unacceptable), single_sampling(acceptable, unacceptable)
    assert 1 - plan.accepted(acceptable) <= 0.05
    assert plan.accepted(unacceptable) <= 0.10
    assert max(map(plan.expected_items, (acceptable, unacceptable))) < 0.75 * single.size
    rng = np.random.default_rng(0)
    accepted = []
    for _ in range(1500):
        errors, verdict, checked = 0, "continue", 0
        while verdict == "continue":
            errors, checked = errors + (rng.random() < unacceptable), checked + 1
            verdict = decide(plan, checked, errors)
        accepted.append(verdict == "accept")
    assert np.mean(accepted) == pytest.approx(plan.accepted(unacceptable), abs=0.025)
    assert decide(plan, plan.most, 0) == "accept"


@pytest.mark.parametrize("shares", [(0.1, 0.1), (0.2, 0.1), (-0.1, 0.1), (0.1, 1.0)])
def test_shares_out_of_order_are_refused(shares):
    with pytest.raises(ValueError, match="below"):
        single_sampling(*shares)


def test_more_errors_than_items_are_refused():
    with pytest.raises(ValueError, match="4 errors among 3"):
        decide(SingleSampling(5, 1, 0.1, 0.5), 3, 4)


def test_a_correlation_above_one_is_refused():
    with pytest.raises(ValueError, match=r"correlation 1.8; expected from 0 to 1\."):
        cases_for_icc(1.8, 0.2)


def test_cases_for_an_intraclass_correlation():
    """Bonett (2002): 51 cases by two raters for .8 and a width of .2, 55 with his correction."""
    assert cases_for_icc(0.8, 0.2) == 55
    assert cases_for_icc(0.8, 0.2, raters=4) < cases_for_icc(0.8, 0.2, raters=3) < 51


def test_the_error_of_kappa():
    """statsmodels 0.15, `cohens_kappa`, of the same tables."""
    assert kappa_error([[31, 12], [4, 58]]) / np.sqrt(105) == pytest.approx(0.07344761, abs=1e-8)
    assert kappa_error([[44, 5, 1], [7, 20, 3], [9, 5, 6]]) / 10 == pytest.approx(0.07212746, abs=1e-8)


def test_cases_for_a_width_give_that_width():
    cases = cases_for_kappa(0.7, 0.3, (0.3, 0.7))
    table = 0.7 * np.diag([0.3, 0.7]) + 0.3 * np.outer([0.3, 0.7], [0.3, 0.7])
    widths = [2 * 1.959964 * kappa_error(table) / np.sqrt(n) for n in (cases - 1, cases)]
    assert widths[1] <= 0.3 < widths[0]
    interval = stats.binomtest(46, 92).proportion_ci(method="wilson")
    assert cases_for_proportion(0.5, interval.high - interval.low + 1e-9) == 92
    # Bland (2004): 100 cases give the limits within .34 standard deviations.
    assert cases_for_limits(2 * 0.345) == pytest.approx(100, abs=3)


@pytest.mark.parametrize(
    "call",
    [lambda: cases_for_icc(1.2, 0.1), lambda: cases_for_icc(0.5, 0.1, 1), lambda: cases_for_kappa(0.5, 0),
     lambda: cases_for_kappa(0.5, 0.1, (0.5, 0.6)), lambda: cases_for_proportion(0.5, 1e-6),
     lambda: cases_for_limits(-1)],
)  # fmt: skip
def test_impossible_settings_are_refused(call):
    with pytest.raises(ValueError, match="expected"):
        call()
