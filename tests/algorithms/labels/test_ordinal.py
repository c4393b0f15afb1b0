"""Ordered classes: the ordinal model against SciPy and brute force, recovery of biases, detection, grades."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from raterscope.algorithms.labels.data import OPEN, Labels
from raterscope.algorithms.labels.fusion import LabelPlan, run
from raterscope.algorithms.labels.ordinal import (
    OrdinalAnnotators,
    class_positions,
    detect_order,
    grade_summary,
    is_ordinal,
    ordinal_types,
)


def crowd(seed, grades=5, tasks=300, annotators=30, each=5, bias=None, scale=None, noise=None):
    """Simulate grades with biased, noisy annotators and such who avoid the ends of the scale."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, grades, tasks)
    bias = rng.choice([-0.8, 0, 0, 0.8], annotators) if bias is None else bias
    scale = rng.choice([0.5, 1, 1], annotators) if scale is None else scale
    noise = rng.uniform(0.4, 0.9, annotators) if noise is None else noise
    annotator = np.concatenate([rng.choice(annotators, each, replace=False) for _ in range(tasks)])
    task, middle = np.repeat(np.arange(tasks), each), (grades - 1) / 2
    seen = middle + scale[annotator] * (truth[task] - middle) + bias[annotator]
    seen += noise[annotator] * rng.standard_normal(len(task))
    names = tuple(str(grade + 1) for grade in range(grades))
    numbers = (tuple(map(str, range(many))) for many in (tasks, annotators))
    votes = np.clip(np.rint(seen), 0, grades - 1)
    labels = Labels(task, annotator, votes.astype(int), *numbers, names, names, ordered=True)
    return labels, truth


def of_votes(votes, grades=5):
    names = tuple(str(grade) for grade in range(1, grades + 1))
    label = np.array(votes) - 1
    people = tuple(map(str, range(len(votes))))
    return Labels(np.zeros(len(votes), int), np.arange(len(votes)), label, ("t",), people, names, names,
                  ordered=True)  # fmt: skip


def test_rates_are_those_of_a_cumulative_link_model():
    rates = ordinal_types((0.0, 1.0, 2.0, 3.0), 4).rates
    # An annotator with bias 0.75, noise 0.2 and half of the scale, in the middle of the grid.
    bias, noise, stretch = 0.75, 0.2, 0.6
    at = (6 * 8 + 0) * 5 + 1
    for grade in range(4):
        centre = 1.5 + stretch * (grade - 1.5) + bias
        edges = stats.norm.cdf([-np.inf, 0.5, 1.5, 2.5, np.inf], centre, noise)
        assert rates[at, grade] == pytest.approx(0.97 * np.diff(edges) + 0.03 / 4, abs=1e-12)


def test_annotators_parameters_have_the_posterior_of_bayes_theorem():
    types = ordinal_types((0.0, 1.0, 2.0), 3)
    votes = [(0, 1), (1, 1), (1, 2), (2, 2), (0, 0)]  # grade, vote
    owner, output = np.zeros(3, dtype=int), np.arange(3)
    counts = np.zeros((3, 3))
    for grade, vote in votes:
        counts[vote, grade] += 1
    annotators = OrdinalAnnotators.begin(types, 1)
    annotators.estimate(owner, output, counts, np.array([5.0]))
    expected = types.prior.copy()
    for grade, vote in votes:
        expected *= types.rates[:, grade, vote]
    expected /= expected.sum()
    assert annotators.weights[0] == pytest.approx(expected, rel=1e-3, abs=1e-6)
    base = np.empty((3, 3), dtype=np.float32)
    annotators.fill(owner, output, base)
    assert pytest.approx(np.einsum("g,gjl->jl", expected, types.rates), abs=1e-5) == base.T
    assert annotators.rates()[0] == pytest.approx(base, abs=1e-6)


def test_votes_on_both_sides_of_a_grade_speak_for_it():
    posterior = run(of_votes([4, 4, 5, 2, 2, 2]), LabelPlan()).posterior[0]
    assert posterior.argmax() == 2
    assert posterior[0] < posterior[1] < posterior[2] > posterior[3] > posterior[4]


def test_a_grade_beyond_all_votes_needs_evidence():
    assert run(of_votes([2, 2, 1, 1]), LabelPlan()).posterior[0].argmax() < 2


@pytest.mark.parametrize("grades", [3, 5, 8])
def test_biased_annotators_are_corrected_better_than_by_vote_and_by_unordered_classes(grades):
    labels, truth = crowd(grades, grades)
    fused, plain = (run(replace(labels, ordered=order), LabelPlan()).posterior for order in (True, False))
    votes = np.array([np.median(labels.label[labels.task == task]) for task in range(len(truth))])
    error = np.abs(grade_summary(fused)[0] - truth).mean()
    assert error < np.abs(votes - truth).mean() - 0.05
    assert error < np.abs(grade_summary(plain)[0] - truth).mean() - 0.02
    rows = np.arange(len(truth))
    assert np.log(fused[rows, truth]).mean() > np.log(plain[rows, truth]).mean() + 0.05


def test_known_grades_are_held_fixed():
    labels, truth = crowd(1)
    known = np.where(np.arange(len(truth)) < 40, truth, OPEN)
    posterior = run(replace(labels, known=known), LabelPlan()).posterior
    assert (posterior[:40].argmax(axis=1) == truth[:40]).all()


def test_the_order_is_not_used_for_answers_that_do_not_follow_it():
    labels, _ = crowd(1, 3, tasks=40)
    shuffled = replace(labels, meaning=np.array([0, 2, 1]))
    assert not is_ordinal(shuffled)
    plain = run(replace(shuffled, ordered=False), LabelPlan())
    fused = run(shuffled, LabelPlan())
    assert (fused.posterior == plain.posterior).all()
    assert any("order of the classes is not used" in words for words in fused.notices)


def test_classes_without_votes_lie_between_their_neighbours():
    assert class_positions(np.array([0, 2, 4]), 5) == (0.0, 0.5, 1.0, 1.5, 2.0)
    assert class_positions(np.array([0, 0, 1, 2]), 3) == (0.5, 2.0, 3.0)


@pytest.mark.parametrize(("grades", "expected"), [(3, False), (4, True), (5, True), (10, True)])
def test_grades_are_detected(grades, expected):
    labels, _ = crowd(2, grades, tasks=80)
    found = detect_order(labels.task, labels.label, labels.outputs, labels.classes, labels.meaning)
    assert found is expected


def test_codes_are_not_taken_for_grades():
    rng = np.random.default_rng(0)
    detected = []
    for _ in range(40):
        rates = 0.6 * np.eye(5) + 0.4 * rng.dirichlet(np.ones(5), 5)
        task = np.repeat(np.arange(100), 4)
        truth = rng.integers(0, 5, 100)[task]
        label = np.array([rng.choice(5, p=rates[grade]) for grade in truth])
        names = tuple("12345")
        detected.append(detect_order(task, label, names, names, np.arange(5)))
        assert not detect_order(task, label, tuple("abcde"), tuple("abcde"), np.arange(5))
    assert np.mean(detected) <= 0.15


def test_codes_taken_for_grades_are_fused_without_their_order():
    rng = np.random.default_rng(4)
    rates = 0.6 * np.eye(5) + 0.4 * rng.dirichlet(np.ones(5), 5)
    task = np.repeat(np.arange(300), 4)
    label = (rng.random(1200)[:, None] > rates[rng.integers(0, 5, 300)[task]].cumsum(axis=1)).sum(axis=1)
    names = [tuple(map(str, range(many))) for many in (300, 20, 5)]
    annotator = np.concatenate([rng.choice(20, 4, replace=False) for _ in range(300)])
    codes = Labels(task, annotator, label, *names, names[2], ordered=True)
    fused, plain = (run(replace(codes, ordered=order), LabelPlan()) for order in (True, False))
    assert (fused.posterior == plain.posterior).all()
    assert any("order of the classes is not used" in words for words in fused.notices)


def test_median_and_interval_of_a_grade():
    posterior = np.array([[0, 0, 1.0, 0, 0], [0.5, 0.5, 0, 0, 0], [0.02, 0.02, 0.9, 0.03, 0.03], [0.2] * 5])
    median, low, high = grade_summary(posterior)
    assert median.tolist() == [2, 0, 2, 2]
    assert low.tolist() == [2, 0, 1, 0]
    assert high.tolist() == [2, 1, 4, 4]


def test_the_interval_holds_the_grade_as_often_as_it_claims():
    held = []
    for seed in range(3):
        labels, truth = crowd(seed)
        _, low, high = grade_summary(run(labels, LabelPlan()).posterior)
        held.append(((low <= truth) & (truth <= high)).mean())
    assert np.mean(held) >= 0.93
