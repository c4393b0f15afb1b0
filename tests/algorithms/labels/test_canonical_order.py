"""Results of the methods do not depend on the order of the input or on the names of annotators."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.labels import canonical_order
from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.crowd_votes import sort_by_task
from raterscope.algorithms.labels.data import Labels
from raterscope.algorithms.labels.fusion import LabelPlan, fuse
from raterscope.algorithms.simulation.label_crowds import simulate_labels, staging_crowd

TIMELESS = [name for name in LABELLERS if name != "dynibcc"]  # which takes the order of votes for time


def shuffled(labels, generator):
    """Return the same votes in another order, and the place of each task and annotator."""
    rows = generator.permutation(len(labels))
    task, annotator = (generator.permutation(len(names)) for names in (labels.tasks, labels.annotators))
    names = [
        tuple(names[at] for at in np.argsort(place))
        for names, place in ((labels.tasks, task), (labels.annotators, annotator))
    ]
    other = replace(
        labels, task=task[labels.task][rows], annotator=annotator[labels.annotator][rows],
        label=labels.label[rows], tasks=names[0], annotators=names[1], time=None,
        known=labels.known[np.argsort(task)], weights=labels.weights[np.argsort(annotator)],
    )  # fmt: skip
    return other, task, annotator


@pytest.mark.parametrize("name", TIMELESS)
@pytest.mark.parametrize("ordered", [False, True])
def test_the_order_of_the_input_does_not_matter(name, ordered):
    crowd = simulate_labels(staging_crowd(tasks=80, annotators=12), seed=2)
    known = np.where(np.arange(80) % 9 == 0, crowd.truth, -1).astype(np.int16)
    labels = replace(crowd.labels, known=known, time=None, ordered=ordered)
    labels = labels.restricted({1: [0, 1], 5: [1, 2]}).with_weights({labels.annotators[3]: 0.5})
    expected = fuse(labels, LabelPlan(name, LABELLERS[name].settings()))
    other, task, annotator = shuffled(labels, np.random.default_rng(0))
    result = fuse(other, LabelPlan(name, LABELLERS[name].settings()))
    fusion = result.fusion
    assert fusion.posterior[task] == pytest.approx(expected.fusion.posterior, abs=1e-9)
    assert fusion.known[task].tolist() == expected.fusion.known.tolist()
    assert fusion.votes[task].tolist() == expected.fusion.votes.tolist()
    assert fusion.confusion.alpha[annotator] == pytest.approx(expected.fusion.confusion.alpha, abs=1e-7)
    assert fusion.notices == expected.fusion.notices
    assert result.communities is not None
    assert expected.communities is not None
    assert result.communities.count == expected.communities.count


@pytest.mark.parametrize("name", TIMELESS)
def test_the_names_of_annotators_do_not_matter(name):
    crowd = simulate_labels(staging_crowd(tasks=80, annotators=60), seed=2)
    generator = np.random.default_rng(1)
    labels = crowd.labels.subset(generator.random(len(crowd.labels)) < 0.07)  # many with one or two votes
    plan = LabelPlan(name, LABELLERS[name].settings())
    expected = fuse(labels, plan).fusion
    names = tuple(f"P{number:02}" for number in generator.permutation(60).tolist())
    fusion = fuse(replace(labels, annotators=names), plan).fusion
    assert fusion.posterior == pytest.approx(expected.posterior, abs=1e-9)
    assert fusion.confusion.alpha == pytest.approx(expected.confusion.alpha, abs=1e-7)


@pytest.mark.parametrize("name", LABELLERS)
def test_annotators_and_tasks_without_votes_do_not_matter(name):
    crowd = simulate_labels(staging_crowd(tasks=80, annotators=12), seed=2)
    plan = LabelPlan(name, LABELLERS[name].settings())
    expected = fuse(crowd.labels, plan)
    annotators, tasks = ("A", *crowd.labels.annotators), ("A", *crowd.labels.tasks)
    more = replace(
        crowd.labels, annotators=annotators, tasks=tasks,
        annotator=crowd.labels.annotator + 1, task=crowd.labels.task + 1,
    )  # fmt: skip
    result = fuse(more, plan)
    assert result.fusion.posterior[1:] == pytest.approx(expected.fusion.posterior, abs=1e-3)
    assert result.fusion.confusion.alpha[1:] == pytest.approx(expected.fusion.confusion.alpha, abs=0.01)
    assert result.communities is not None
    assert expected.communities is not None
    assert result.communities.community.tolist() == expected.communities.community.tolist()


def drawn_votes(tasks, annotators, votes):
    """Draw votes in no order; half of them are on the first task, and some are repeated."""
    generator = np.random.default_rng(3)
    task, annotator, label = (generator.integers(0, many, votes) for many in (tasks, annotators, 4))
    task[::2] = 0
    names = tuple(map(str, range(tasks))), tuple(map(str, range(annotators)))
    return Labels(task, annotator, label, *names, tuple("abcd"), tuple("abcd"))


def test_many_votes_are_sorted_as_few(monkeypatch):
    labels, generator = drawn_votes(60, 9, 400), np.random.default_rng(4)
    task, annotator = generator.permutation(60), generator.permutation(9)
    columns = task[labels.task], annotator[labels.annotator], labels.label
    order = np.lexsort(columns[::-1])
    for _ in range(2):
        ordered = canonical_order._sorted_votes(labels, task, annotator)
        assert [values.tolist() for values in ordered] == [values[order].tolist() for values in columns]
        monkeypatch.setattr(canonical_order, "_COMPILED_FROM", 0)


def test_annotators_are_ordered_by_the_same_keys_with_many_votes(monkeypatch):
    labels = drawn_votes(60, 9, 400)
    few = canonical_order._keys_of_annotators(labels)
    monkeypatch.setattr(canonical_order, "_COMPILED_FROM", 0)
    many = canonical_order._keys_of_annotators(labels)
    assert [key.tolist() for key in many] == [key.tolist() for key in few]


def test_votes_in_the_order_of_the_tasks_are_sorted_as_others():
    labels = drawn_votes(60, 9, 400)
    order = np.argsort(labels.task, kind="stable")
    columns = labels.task[order], labels.annotator[order], labels.label[order]
    expected = sort_by_task(labels)
    votes = sort_by_task(replace(labels, **dict(zip(("task", "annotator", "label"), columns, strict=True))))
    assert votes.start.tolist() == expected.start.tolist()
    assert votes.pair.tolist() == expected.pair.tolist()
    assert votes.pair.dtype == expected.pair.dtype
