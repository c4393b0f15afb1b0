"""The expected number of wrong labels, and its interval between crowds."""

import numpy as np
import pytest

from raterscope.algorithms.labels.fusion import LabelPlan, run
from raterscope.algorithms.labels.vote_budget import (
    NOTHING,
    Checked,
    count_errors,
    expected_errors,
)
from tests.benchmarks.calibration._label_crowds import KINDS, LabelCrowd, draw

KNOT, MISTAKES, SPREAD = 1.5, 0.02, (0.42, 0.46, 0.64)


@pytest.fixture(scope="module")
def stated():
    return np.random.default_rng(2).beta(4, 1, 900)


def logits(probability, shift, slope, clear):
    logit = np.log(probability / (1 - probability))
    return (
        shift + np.exp(slope) * np.minimum(logit, KNOT) + np.exp(slope + clear) * np.maximum(logit - KNOT, 0)
    )


def test_without_known_tasks_the_pooled_consensus_is_taken_at_its_word(stated):
    errors = count_errors("pooled", stated)
    assert errors.stated == pytest.approx((1 - stated).sum())
    assert errors.expected == pytest.approx(errors.stated)
    assert errors.low < errors.expected < errors.high
    assert count_errors("ibcc", stated).expected > 1.2 * errors.expected  # is known to be overconfident


@pytest.mark.parametrize("known", [0, 40])
def test_the_interval_is_that_of_weighted_draws_of_crowds(stated, known):
    rng = np.random.default_rng(7)
    chosen = stated[:known]
    right = rng.random(known) < 1 / (1 + np.exp(-logits(chosen, -0.5, -0.3, 0.0)))
    count, weight = [], []
    for coefficients in rng.normal(0, SPREAD, (20_000, 3)):
        chance = MISTAKES + (1 - 2 * MISTAKES) / (1 + np.exp(-logits(chosen, *coefficients)))
        weight.append(np.where(right, chance, 1 - chance).prod())
        wrong = 1 / (1 + np.exp(logits(stated[known:], *coefficients)))
        count.append(rng.normal(wrong.sum(), np.sqrt((wrong * (1 - wrong)).sum())))
    order = np.argsort(count)
    below = np.cumsum(np.array(weight)[order]) / np.sum(weight)
    ends = np.array(count)[order][np.searchsorted(below, (0.025, 0.975))]
    errors = count_errors("pooled", stated[known:], Checked.of(chosen, right))
    assert (errors.low, errors.high) == pytest.approx(ends, rel=0.06, abs=2)


def test_known_tasks_move_and_narrow_the_interval(stated):
    before = count_errors("pooled", stated)
    chosen = stated[:100]
    as_stated = np.random.default_rng(3).random(100) < chosen
    width = {}
    for right in (np.ones(100), as_stated, np.zeros(100)):
        after = count_errors("pooled", stated, Checked.of(chosen, right))
        width[right.sum()] = after.high - after.low, after.expected
        assert after.known == 100
    best, usual, worst = (width[total] for total in sorted(width, reverse=True))
    assert best[1] < usual[1] < worst[1]
    assert best[1] < before.expected < worst[1]
    assert usual[0] < 0.5 * (before.high - before.low)


def test_doubtful_tasks_do_not_settle_what_clear_ones_are_worth():
    clear = np.full(1000, 0.99)
    doubtful = Checked.of(np.full(200, 0.6), np.arange(200) < 120)
    as_clear = Checked.of(clear[:200], np.arange(200) < 198)
    before, by_doubtful, by_clear = (
        count_errors("pooled", clear, known) for known in (NOTHING, doubtful, as_clear)
    )
    widths = [errors.high - errors.low for errors in (before, by_doubtful, by_clear)]
    assert widths[2] < 0.5 * widths[1] < 0.5 * widths[0]


def test_one_slip_on_a_clear_task_does_not_decide():
    clear = np.full(1000, 0.999)
    slip = Checked.of(np.array([0.999]), [0.0])
    assert count_errors("pooled", clear, slip).expected < 20


def test_nothing_left_is_nothing_wrong():
    errors = count_errors("pooled", np.empty(0), Checked.of(np.array([0.9]), [1.0]))
    assert (errors.tasks, errors.expected, errors.low, errors.high) == (0, 0.0, 0, 0)


def test_intervals_hold_in_simulated_crowds_before_and_after_decisions():
    held = []
    for crowds in KINDS.values():
        if crowds[1].classes > 10:
            continue
        labels, truth = draw(crowds[1], 40)
        fusion = run(labels, LabelPlan())
        wrong, doubt = fusion.label() != truth, 1 - fusion.posterior.max(axis=1)
        most = np.argsort(-doubt)[:15]
        known = np.full(len(truth), -1, dtype=np.int16)
        for decided in ([], most):
            known[decided] = truth[decided]
            errors = expected_errors(fusion, known)
            assert errors.tasks == len(truth) - len(decided)
            held.append(errors.low <= wrong[known < 0].sum() <= errors.high)
    assert np.mean(held) >= 0.85


def test_one_vote_a_task_leaves_the_number_of_wrong_labels_open():
    """The votes fit crowds that are mostly right and crowds that often err."""
    held, stated = [], []
    for good in (0.5, 0.65, 0.8, 0.9):
        for seed in range(3):
            labels, truth = draw(LabelCrowd(3, 1, 400, 20, (good - 0.1, min(good + 0.1, 0.98))), seed)
            fusion = run(labels, LabelPlan())
            errors = expected_errors(fusion, np.full(len(truth), -1, dtype=np.int16))
            held.append(errors.low <= (fusion.label() != truth).sum() <= errors.high)
            stated.append(errors.stated / errors.tasks)
    assert np.ptp(stated) < 0.1
    assert np.mean(held) >= 0.9
