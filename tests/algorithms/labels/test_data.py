"""Votes as they are given: what is refused, who is left out, repeats and times, what a prior means."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.labels.data import (
    OPEN,
    Confusion,
    Labels,
    LabelsError,
    LabelTrace,
    PriorSettings,
    default_prior,
    prior_of,
)
from raterscope.algorithms.labels.result import count_confusion, make_fusion
from tests.algorithms.labels.test_voting import crowd, names

NAN = float("nan")

REPEATED = crowd([(0, 0, 0), (0, 1, 1), (0, 0, 1), (1, 0, 0), (0, 0, 0), (0, 1, 0)], 2, ("a", "b"))


def rows(labels):
    return list(zip(labels.task.tolist(), labels.annotator.tolist(), labels.label.tolist(), strict=True))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"task": np.array([0, 5, 0])}, "task 5; expected 0 to 1"),
        ({"annotator": np.array([0, 0, 2])}, "annotator 2; expected 0 to 1"),
        ({"label": np.array([0, 0, 2])}, "label 2; expected 0 to 1"),
        ({"task": np.array([0, -1, 0])}, "task"),
        ({"task": np.array([0, 1])}, "different lengths"),
        ({"task": np.array([0.0, 0.5, 1.0])}, "expected indices"),
        ({"label": np.array([True, False, True])}, "expected indices"),
        ({"outputs": ("a", "a")}, "each once"),
        ({"classes": ()}, "at least one name"),
        ({"classes": ("a", "b", "c")}, "expected the class of each output"),
        ({"meaning": np.array([0, 2])}, "an output represents an unknown class"),
        ({"meaning": np.array([0])}, "an output represents an unknown class"),
        ({"known": np.array([0])}, "expected one a task"),
        ({"known": np.array([0, 2])}, "the known class of a task does not exist"),
        ({"time": np.array([0.0, 1.0])}, "expected one a vote"),
        ({"time": np.array([0.0, np.inf, 1.0])}, "infinite"),
        ({"prior": np.ones((2, 3))}, "expected \\(2, 2\\) numbers above 0"),
        ({"prior": np.array([[1.0, 0.0], [1.0, 1.0]])}, "above 0"),
        ({"prior": np.array([[1.0, NAN], [1.0, 1.0]])}, "above 0"),
    ],
)
def test_what_cannot_be_fused_is_refused_in_a_sentence(change, words):
    fields = {
        "task": np.array([0, 1, 1]),
        "annotator": np.array([0, 0, 1]),
        "label": np.array([0, 1, 1]),
        "tasks": ("s", "t"),
        "annotators": ("k", "m"),
        "outputs": ("a", "b"),
        "classes": ("a", "b"),
    }
    Labels(**fields)
    with pytest.raises(LabelsError, match=words):
        Labels(**{**fields, **change})


def test_outputs_stand_for_classes_in_their_order():
    assert REPEATED.meaning.tolist() == [0, 1]


def test_unknown_times_and_classes_are_none():
    labels = replace(REPEATED, time=np.full(6, NAN), known=np.full(2, OPEN))
    assert labels.time is None
    assert labels.known is None


def test_excluded_annotators_keep_their_number():
    remaining = replace(REPEATED, time=np.arange(6.0)).without({"a0"})
    assert rows(remaining) == [(0, 1, 1), (0, 1, 0)]
    assert remaining.annotators == REPEATED.annotators
    assert remaining.time.tolist() == [1, 5]
    assert remaining.votes_of_annotators().tolist() == [0, 2]
    assert remaining.votes_of_tasks().tolist() == [2, 0]
    assert len(REPEATED.without({"a0", "a1"})) == 0
    assert rows(REPEATED.without({"somebody else"})) == rows(REPEATED)


def test_repeats_are_settled_by_the_order_of_the_votes():
    assert rows(REPEATED.settled("all")) == rows(REPEATED)
    assert rows(REPEATED.settled("first")) == [(0, 0, 0), (0, 1, 1), (1, 0, 0)]
    assert rows(REPEATED.settled("last")) == [(1, 0, 0), (0, 0, 0), (0, 1, 0)]


def test_repeats_are_settled_by_time_where_it_is_known():
    timed = replace(REPEATED, time=np.array([9.0, 1.0, 2.0, 3.0, 5.0, NAN]))
    first, last = timed.settled("first"), timed.settled("last")
    assert rows(first) == [(0, 1, 1), (0, 0, 1), (1, 0, 0)]  # a0's at 2; a1 has an unknown time: as they came
    assert rows(last) == [(0, 0, 0), (1, 0, 0), (0, 1, 0)]
    assert last.time[0] == 9.0


def test_of_repeats_at_the_same_time_the_order_decides():
    timed = replace(REPEATED, time=np.zeros(6))
    assert rows(timed.settled("first")) == rows(REPEATED.settled("first"))
    assert rows(timed.settled("last")) == rows(REPEATED.settled("last"))


def test_votes_in_time():
    """By annotator, then time; ties, and annotators with an unknown time, as the votes came."""
    labels = crowd(
        [(0, 1, 0), (1, 0, 0), (2, 1, 1), (3, 0, 1), (4, 1, 0), (5, 2, 0), (6, 2, 0)], 7, ("a", "b")
    )
    assert labels.in_time().tolist() == [1, 3, 0, 2, 4, 5, 6]
    timed = replace(labels, time=np.array([7.0, 5.0, 3.0, 5.0, 3.0, 9.0, NAN]))
    assert timed.in_time().tolist() == [1, 3, 2, 4, 0, 5, 6]


def prior(labels, **settings):
    return prior_of(labels, PriorSettings(**settings))


def test_the_prior_that_settings_mean():
    three = crowd([(0, 0, 0)], 1, ("a", "b", "c"))
    assert prior(three).tolist() == [[2, 1, 1], [1, 2, 1], [1, 1, 2]]
    assert prior(three, prior_strength=10.0, prior_accuracy=0.7) == pytest.approx(
        np.array([[7, 1.5, 1.5], [1.5, 7, 1.5], [1.5, 1.5, 7]])
    )
    assert prior(three, prior_strength=8.0)[0] == pytest.approx([4, 2, 2])
    assert prior(three, prior_accuracy=0.9)[0] == pytest.approx([3.6, 0.2, 0.2])
    own = np.array([[5.0, 1, 1], [1, 5, 1], [1, 1, 5]])
    assert (prior(replace(three, prior=own), prior_strength=100.0) == own).all()


def test_the_prior_of_scores():
    """Two scores stand for "yes": they share its accuracy."""
    scores = crowd([(0, 0, 0)], 1, ("-1", "1", "3"), classes=("no", "yes"), meaning=np.array([0, 1, 1]))
    assert default_prior(scores).tolist() == [[2, 1, 1], [1, 2, 2]]
    assert prior(scores, prior_strength=10.0, prior_accuracy=0.8) == pytest.approx(
        np.array([[8, 1, 1], [2, 4, 4]])
    )


@pytest.mark.parametrize("meaning", [[0, 0], [OPEN, OPEN], [1, OPEN]])
def test_a_class_that_no_output_or_every_output_stands_for_has_equal_pseudo_counts(meaning):
    labels = crowd([(0, 0, 0)], 1, ("a", "b"), classes=("a", "b"), meaning=np.array(meaning))
    result = prior(labels, prior_strength=6.0, prior_accuracy=0.9)
    for row, many in zip(result, [meaning.count(0), meaning.count(1)], strict=True):
        assert row == pytest.approx([5.4, 0.6] if many == 1 else [3, 3])
    assert (result > 0).all()


def test_counts_against_a_posterior():
    labels = crowd([(0, 0, 0), (0, 1, 1), (1, 0, 1)], 2, ("a", "b"))
    confusion = count_confusion(labels, np.array([[0.75, 0.25], [0.0, 1.0]]), default_prior(labels))
    assert confusion.counts() == pytest.approx(np.array([[[0.75, 0], [0.25, 1]], [[0, 0.75], [0, 0.25]]]))
    assert confusion.mean().sum(axis=2) == pytest.approx(1)


def test_a_result_knows_what_is_known_and_what_is_not():
    labels = replace(crowd([(0, 0, 0), (1, 0, 1)], 4, ("a", "b")), known=np.array([OPEN, 0, 1, OPEN]))
    confusion = Confusion(np.ones((1, 2, 2)), np.ones((2, 2)))
    trace = LabelTrace(np.empty(0), np.empty(0), True)
    fusion = make_fusion(labels, "votes", np.full((4, 2), 0.5), confusion, trace, ["Of the method."])
    assert fusion.posterior == pytest.approx(np.array([[0.5, 0.5], [1, 0], [0, 1], [0.5, 0.5]]))
    assert fusion.shares == pytest.approx([0.5, 0.5])
    assert fusion.votes.tolist() == [1, 1, 0, 0]
    assert fusion.notices[0] == "Of the method."
    assert "2 tasks have no votes, 1 of them with a known class" in fusion.notices[1]


def test_doubt_and_the_label():
    labels = crowd([(t, 0, 0) for t in range(3)], 3, ("a", "b"))
    confusion = Confusion(np.ones((1, 2, 2)), np.ones((2, 2)))
    trace = LabelTrace(np.empty(0), np.empty(0), True)
    fusion = make_fusion(labels, "votes", np.array([[0.5, 0.5], [0.0, 1.0], [0.9, 0.1]]), confusion, trace)
    assert fusion.entropy() == pytest.approx([1, 0, 0.468996], abs=1e-6)
    assert fusion.label().tolist() == [0, 1, 0]


def test_one_class_leaves_no_doubt():
    labels = crowd([(0, 0, 0)], 1, names("a", 1))
    confusion = Confusion(np.ones((1, 1, 1)), np.ones((1, 1)))
    fusion = make_fusion(
        labels, "votes", np.ones((1, 1)), confusion, LabelTrace(np.empty(0), np.empty(0), True)
    )
    assert fusion.entropy().tolist() == [0]
