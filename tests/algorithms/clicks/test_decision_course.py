"""Courses of decisions: the recursion itself, figures of another implementation, intervals that cover."""

import numpy as np
import pytest

from raterscope.algorithms.clicks.data import ClicksError
from raterscope.algorithms.clicks.decision_course import (
    Decisions,
    DecisionSettings,
    admit_annotators,
    batch_em,
    follow_decisions,
    incremental_newton,
    initial_state,
    measure_course,
    recursive_em,
)
from raterscope.algorithms.progress import Cancelled
from raterscope.algorithms.simulation.click_crowds import decide_again, voting_crowd


def again(crowd, times, seed):
    answers = decide_again(crowd, times, seed)
    _, annotator, cluster = np.nonzero(np.ones_like(answers))
    return answers, Decisions(annotator, cluster, answers.ravel(), *answers.shape[1:])


def once(crowd):
    marked = crowd.votes.marked
    annotator, cluster = np.nonzero(np.ones_like(marked))
    return Decisions(annotator, cluster, marked.ravel(), *marked.shape)


def test_repeated_decisions_are_followed_step_by_step():
    answers, decisions = again(voting_crowd(7, 15, 3, 0.9, 0.5), 12, 3)
    course = follow_decisions(decisions)
    recursive = newton = initial_state(7, 15)
    assert course.repeated
    assert course.estimated == ("recursive", "newton", "batch")
    for step, item in enumerate(answers):
        recursive, newton = recursive_em(recursive, item), incremental_newton(newton, item)
        for row, state in enumerate((recursive, newton, batch_em(recursive))):
            np.testing.assert_allclose(course.sensitivity[row, step], state.sensitivity)
            np.testing.assert_allclose(course.specificity[row, step], state.specificity)
            assert course.prevalence[row, step] == pytest.approx(state.prevalence)
            np.testing.assert_allclose(course.posterior[row, step], state.posterior)


def test_annotators_who_decide_once_join_in_their_order():
    crowd = voting_crowd(30, 15, 4, 0.9, 0.7)
    order = np.random.default_rng(0).permutation(30)
    decisions = once(crowd)
    moved = Decisions(order[decisions.annotator], decisions.cluster, decisions.yes, 30, 15)
    course = follow_decisions(moved)
    assert not course.repeated
    assert course.order.tolist() == order.tolist()
    assert course.at.tolist() == list(range(10, 31))
    state = admit_annotators(initial_state(0, 15), crowd.votes.marked[:10])
    np.testing.assert_allclose(course.sensitivity[0, 0, order[:10]], state.sensitivity)
    assert np.isnan(course.sensitivity[0, 0, order[10:]]).all()
    for item in crowd.votes.marked[10:]:
        state = admit_annotators(state, item[None])
    np.testing.assert_allclose(course.specificity[0, -1, order], state.specificity)


def test_errors_of_the_first_scenario_over_time():
    """At t = 30 batch = recursive at -29.6 dB, Newton at -29.0 by an independent implementation."""
    settings, errors = DecisionSettings(as_published=True), []
    for seed in range(40):
        crowd = voting_crowd(15, 10, seed, 0.8, 0.6)
        _, decisions = again(crowd, 30, seed)
        rates = crowd.sensitivity, crowd.specificity, crowd.prevalence
        result = measure_course(follow_decisions(decisions, settings), crowd.present.astype(int), rates)
        if result is not None:
            errors.append(result.error[0])
    recursive, newton, batch = 10 * np.log10(np.mean(errors, axis=0))[:, [0, 29]]
    assert (batch[1], recursive[1]) == pytest.approx((-29.6, -29.6), abs=1.2)
    assert newton[1] == pytest.approx(-29.0, abs=1.2)
    assert recursive[0] > recursive[1] + 8


def test_the_intervals_cover_the_true_rates_at_the_stated_rate():
    inside = []
    for seed in range(30):
        crowd = voting_crowd(15, 20, seed, 0.8, 0.7)
        course = follow_decisions(again(crowd, 6, seed)[1])
        for at, true in enumerate((crowd.sensitivity, crowd.specificity)):
            inside.append((course.low[at, -1] <= true) & (true <= course.high[at, -1]))
    assert 0.9 <= np.mean(inside) <= 0.99


def test_decisions_are_measured_where_the_truth_is_known():
    crowd = voting_crowd(15, 20, 2, 0.7, 0.7)
    course = follow_decisions(again(crowd, 5, 2)[1])
    truth = np.where(np.arange(20) % 3 == 0, -1, crowd.present)
    result = measure_course(course, truth)
    known = truth >= 0
    assert result.truth.tolist() == crowd.present[known].tolist()
    answers = course.posterior[0, -1] >= 0.5
    assert result.wrong[0, -1] == pytest.approx(np.mean(answers[known] != crowd.present[known]))
    assert result.methods == ("recursive", "newton", "batch", "majority", "map")
    assert result.wrong[-1].mean() <= result.wrong[-2].mean()
    assert measure_course(course, np.full(20, -1)) is None


def test_what_cannot_be_followed_is_refused_with_the_reason():
    none = np.empty(0, dtype=int)
    with pytest.raises(ClicksError, match="there are no decisions"):
        follow_decisions(Decisions(none, none, none.astype(bool), 3, 4))
    with pytest.raises(ClicksError, match="too many to follow"):
        follow_decisions(Decisions(np.zeros(1, int), np.zeros(1, int), np.ones(1, bool), 3000, 3000))


def test_it_ends_where_it_is_cancelled():
    calls = []

    def watch(fraction, *_):
        calls.append(fraction)
        if len(calls) == 5:
            raise Cancelled

    with pytest.raises(Cancelled):
        follow_decisions(once(voting_crowd(12, 40, 1, 0.6, 0.6)), watch=watch)
    assert len(calls) == 5
