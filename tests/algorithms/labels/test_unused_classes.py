"""A class that nobody uses changes neither probabilities nor what is stated of annotators."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from raterscope.algorithms.annotators.communities import describe_communities, describe_community
from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.fusion import LabelPlan, fuse
from raterscope.algorithms.labels.rates import rates_of
from raterscope.algorithms.labels.result import matrices_in_use
from raterscope.algorithms.simulation.label_crowds import simulate_labels, staging_crowd

TASKS = 150


def crowd():
    """Return votes for five classes, with known classes and restricted tasks."""
    simulated = simulate_labels(staging_crowd(tasks=TASKS, annotators=12), seed=3)
    known = np.where(np.arange(TASKS) % 9 == 0, simulated.truth, -1).astype(np.int16)
    return replace(simulated.labels, known=known, time=None).restricted({1: [0, 1], 5: [1, 2]})


@cache
def fused(name, ordered):
    """Return the labels, and their fusion by a method."""
    labels = replace(crowd(), ordered=ordered)
    return labels, fuse(labels, LabelPlan(name, LABELLERS[name].settings()))


def with_class(labels, at):
    """Return the labels with another class, which nobody gives, as the class `at`."""
    place = np.delete(np.arange(len(labels.classes) + 1), at)
    return replace(
        labels,
        label=place[labels.label],
        outputs=(*labels.outputs[:at], "never", *labels.outputs[at:]),
        classes=(*labels.classes[:at], "never", *labels.classes[at:]),
        meaning=np.arange(len(place) + 1),
        known=np.where(labels.known >= 0, place[np.maximum(labels.known, 0)], labels.known),
        sets=np.insert(labels.sets, at, False, axis=1),
    )


def rule(name):
    """Leave out rounded accuracies and the most frequent mistake, in which nearly equal ones may differ."""
    return "by accuracy" if name.startswith("right ") else name


@pytest.mark.parametrize("name", ["pooled", "ibcc", "gibbs", "ebcc", "dawid-skene", "majority"])
@pytest.mark.parametrize(("at", "ordered"), [(0, False), (2, False), (5, False), (0, True), (5, True)])
def test_probabilities_and_annotators_stay_the_same(name, at, ordered):
    labels, before = fused(name, ordered)
    more = with_class(labels, at)
    after = fuse(more, LabelPlan(name, LABELLERS[name].settings()))
    posterior = after.fusion.posterior
    assert np.delete(posterior, at, axis=1) == pytest.approx(before.fusion.posterior, abs=1 / len(labels))
    assert posterior.sum(axis=1) == pytest.approx(1.0)
    assert (posterior[:, at] < 1 / len(labels)).all()
    assert after.fusion.label().tolist() == np.delete(np.arange(6), at)[before.fusion.label()].tolist()
    assert [n for n in after.fusion.notices if n not in before.fusion.notices] == [
        "No vote represents 1 class: never."
    ]
    used = after.fusion.confusion.mean()[:, np.arange(6) != at]
    if name not in ("dawid-skene", "majority"):  # which have no prior
        assert np.delete(used, at, axis=2) == pytest.approx(before.fusion.confusion.mean(), abs=0.01)
    rates, wider = rates_of(labels, before.fusion), rates_of(more, after.fusion)
    for expected, values in zip(rates.accuracies(), wider.accuracies(), strict=True):
        assert values == pytest.approx(expected, abs=0.01)
    for annotator in range(len(labels.annotators)):
        behaviours = {
            rule(describe_community(*matrices_in_use(each, of.mean[annotator])))
            for each, of in ((labels, rates), (more, wider))
        }
        assert len(behaviours) == 1
    assert before.communities is not None
    assert after.communities is not None
    groups = [each.communities.community.tolist() for each in (before, after)]
    assert len({*zip(*groups, strict=True)}) == len({*groups[0]}) == len({*groups[1]})
    names = [
        sorted(map(rule, describe_communities(*matrices_in_use(each, of.communities.prototype))))
        for each, of in ((labels, before), (more, after))
    ]
    assert names[0] == names[1]


def test_a_class_that_is_only_known_is_used():
    more = with_class(crowd(), 5)
    assert more.used_classes().tolist() == [True] * 5 + [False]
    known = np.where(np.arange(TASKS) == 9, 5, more.known)
    assert replace(more, known=known).used_classes().all()


def test_a_grade_between_others_is_used():
    assert replace(with_class(crowd(), 2), ordered=True).used_classes().all()


def test_two_classes_of_which_one_has_votes_are_both_used():
    labels = crowd()
    only = replace(labels, label=np.zeros_like(labels.label), known=None, sets=None)
    assert only.used_classes().all()
