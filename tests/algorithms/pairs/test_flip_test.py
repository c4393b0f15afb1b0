"""The sign-flip test: against exact enumeration, plain linear algebra, and crowds with known biases."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from raterscope.algorithms.pairs import Pairs
from raterscope.algorithms.pairs.choice_model import fit_choices, scoring
from raterscope.algorithms.pairs.flip_test import flip_test, sign_flip_probability
from raterscope.algorithms.pairs.selection import false_discovery_rates, simes


def crowd(
    seed: int, votes: int = 60, people: int = 40, bias: tuple[float, ...] = (), items: int = 30,
    graded: bool = False, ties: float = 0.0,
) -> Pairs:  # fmt: skip
    """Draw comparisons with random sides; the first annotators have the biases given."""
    rng = np.random.default_rng(seed)
    score = rng.normal(size=items)
    annotator = np.repeat(np.arange(people), votes)
    left = rng.integers(items, size=len(annotator))
    right = (left + rng.integers(1, items, size=len(annotator))) % items
    shift = np.zeros(people)
    shift[: len(bias)] = bias
    noise = rng.uniform(0.5, 1.5, people)[annotator] * rng.normal(size=len(annotator))
    observed = score[left] - score[right] + shift[annotator] + noise
    choice = observed if graded else np.where(np.abs(observed) < ties, 0.0, np.sign(observed))
    return Pairs(
        annotator, left, right, choice, tuple(map(str, range(people))), tuple(map(str, range(items)))
    )


def exact(remaining: np.ndarray, statistic: float) -> float:
    """Enumerate all patterns of signs."""
    sums = np.abs(np.array(list(product((-1.0, 1.0), repeat=len(remaining)))) @ remaining)
    return float((sums >= abs(statistic) - 1e-9).mean())


def test_probability_is_that_of_all_sign_patterns():
    rng = np.random.default_rng(1)
    rests = [rng.normal(size=k) * rng.uniform(0.2, 2.0, k) for k in (6, 8, 10, 12, 12, 14)]
    owner = np.repeat(np.arange(len(rests)), [len(item) for item in rests])
    total = np.array([item.sum() for item in rests])
    result = sign_flip_probability(np.concatenate(rests), owner, total)
    known = np.array([exact(*item) for item in zip(rests, total, strict=True)])
    assert result == pytest.approx(known, abs=0.04)


def test_small_probabilities_are_right_in_proportion():
    rng = np.random.default_rng(2)
    remaining = np.abs(rng.normal(size=16)) + 0.2
    remaining[:2] *= -1
    result = sign_flip_probability(remaining, np.zeros(16, dtype=int), np.array([remaining.sum()]))[0]
    known = exact(remaining, remaining.sum())
    assert known < 0.01
    assert result == pytest.approx(known, rel=0.25)


def test_no_probability_is_rarer_than_one_sign_pattern():
    remaining, owner = np.array([1.0, 0.4, 2.0, 0.0, -1.0, 1.0]), np.array([0, 0, 0, 0, 1, 1])
    result = sign_flip_probability(remaining, owner, np.array([3.4, 0.0, 0.0]))
    assert result.tolist() == [0.25, 1.0, 1.0]


@pytest.mark.parametrize("dense", [True, False])
def test_own_choices_are_taken_out_by_a_newton_step(monkeypatch, dense):
    from raterscope.algorithms.pairs import choice_model

    monkeypatch.setattr(choice_model, "_DENSE", 2500 if dense else 1)
    pairs = crowd(3, votes=25, people=7, items=9)
    model = fit_choices(pairs)
    mean = np.tanh((model.slope[model.annotator] * model.difference() + model.bias[model.annotator]) / 2)
    design = np.zeros((len(pairs), 9))
    design[np.arange(len(pairs)), model.left] = model.slope[model.annotator]
    design[np.arange(len(pairs)), model.right] = -model.slope[model.annotator]
    known = np.empty(len(pairs))
    for u in range(7):
        mine = model.annotator == u
        others = design[~mine]
        information = others.T @ ((1 - mean[~mine] ** 2)[:, None] / 4 * others) + 0.05 * np.eye(9)
        pull = design[mine].T @ ((model.choice - mean)[mine] / 2)
        score = model.score - np.linalg.solve(information, pull)
        known[mine] = (score[model.left] - score[model.right])[mine]
    assert scoring(model).difference == pytest.approx(known, abs=1e-3)


def test_unbiased_annotators_have_uniform_probabilities():
    result = np.concatenate([flip_test(crowd(seed)).probability for seed in range(12)])
    assert 0.03 < (result < 0.05).mean() < 0.075
    assert 0.44 < (result < 0.5).mean() < 0.56


@pytest.mark.parametrize("kind", [{"graded": True}, {"ties": 0.6}])
def test_ties_and_grades_keep_uniform_probabilities(kind):
    result = np.concatenate([flip_test(crowd(seed, **kind)).probability for seed in range(20, 32)])
    assert 0.025 < (result < 0.05).mean() < 0.08


def test_few_and_many_biased_annotators_are_found_at_the_rate():
    for count in (2, 16):
        wrong, right = [], []
        for seed in range(10):
            sides = np.random.default_rng(seed).choice([-1.0, 1.0], count)
            result = flip_test(crowd(seed, votes=150, bias=tuple(sides)))
            flagged = false_discovery_rates(result.probability) <= 0.1
            wrong.append(flagged[count:].sum() / max(flagged.sum(), 1))
            right.append(flagged[:count].mean())
        assert np.mean(wrong) < 0.16
        assert np.mean(right) > 0.9


def test_a_minimum_effect_spares_small_biases_and_finds_large_ones():
    pairs = crowd(5, votes=3000, people=20, bias=(0.1, 0.1, -0.1, -0.1, 1.0, -1.0))
    anything, relevant = flip_test(pairs), flip_test(pairs, effect=0.2)
    assert (anything.probability[:4] < 0.05).sum() >= 2
    assert (relevant.probability[:4] > 0.2).all()
    assert (relevant.probability[4:6] < 1e-6).all()
    assert (relevant.probability >= anything.probability).all()


def test_the_interval_covers_and_is_cut_off_by_nothing_at_one_side():
    inside = [((first := flip_test(crowd(seed))).low <= 0) & (first.high >= 0) for seed in range(8)]
    assert np.mean(inside) > 0.92
    pairs = crowd(6)
    choice = np.where(pairs.annotator == 0, 1.0, pairs.choice)
    always = flip_test(Pairs(pairs.annotator, pairs.left, pairs.right, choice, pairs.annotators, pairs.items))
    assert always.probability[0] < 1e-9
    assert always.low[0] > 0.5
    assert always.high[0] > 0.99


def test_the_detectable_bias_is_found_in_nine_of_ten_cases():
    result = []
    for seed in range(40):
        first = flip_test(crowd(seed, votes=100, people=20, bias=(0.75,)))
        result.append((first.probability[0] < 0.01, first.detectable(0.01)[0], first.bias[0]))
    flagged, detectable, bias = np.array(result).T
    # the mean bias of these annotators is near what is reported as detectable
    assert abs(detectable.mean() - bias.mean()) < 0.12
    assert 0.7 < flagged.mean() <= 1.0
    few = flip_test(crowd(1, votes=6, people=20))
    assert np.isnan(few.detectable(0.001)).all()


def test_swapped_sides_have_the_same_detectable_bias():
    pairs = crowd(3, votes=60, people=20)
    score = np.bincount(pairs.left, pairs.choice) - np.bincount(pairs.right, pairs.choice)
    # the first annotator sees the better item on the left
    other = (pairs.annotator == 0) & (score[pairs.left] < score[pairs.right])
    left, right = np.where(other, (pairs.right, pairs.left), (pairs.left, pairs.right))
    choice = np.where(other, -pairs.choice, pairs.choice)
    found = flip_test(Pairs(pairs.annotator, left, right, choice, pairs.annotators, pairs.items))
    swapped = flip_test(Pairs(pairs.annotator, right, left, -choice, pairs.annotators, pairs.items))
    assert swapped.bias == pytest.approx(-found.bias, abs=1e-5)
    assert swapped.detectable(0.01) == pytest.approx(found.detectable(0.01), abs=1e-5, nan_ok=True)


def test_a_detectable_bias_of_graded_choices_is_as_many_errors_as_its_interval_says():
    result = flip_test(crowd(2, votes=100, people=20, bias=(0.75,), graded=True), effect=0.1)
    error = (result.high - result.low) / (2 * norm.ppf(0.975))
    least = result.detectable(0.01) - (norm.ppf(0.995) + norm.ppf(0.9)) * error
    scale = np.sqrt(np.mean(crowd(2, votes=100, people=20, bias=(0.75,), graded=True).choice ** 2))
    assert least == pytest.approx(np.full(20, 0.1 * scale), rel=0.05)


def test_q_values_are_the_least_rates_that_select():
    p = np.array([0.001, 0.6, np.nan, 0.02, 0.9, 0.03, 0.7, 0.8])
    q = false_discovery_rates(p)
    assert q[[0, 3, 5]] == pytest.approx([0.007, 0.07, 0.07])
    assert np.isnan(q[2])
    assert q[4] == 0.9
    many = np.concatenate([np.full(30, 1e-6), np.linspace(0.05, 0.95, 10)])
    assert false_discovery_rates(many)[0] == pytest.approx(6 / 20 / 0.9 * 1e-6 * 40 / 30)
    assert simes(p) == pytest.approx(0.007)
    assert simes(np.array([np.nan])) == 1.0
