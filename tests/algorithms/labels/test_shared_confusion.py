"""Very many classes: one accuracy for each annotator and one matrix for all, in little memory."""

import numpy as np
import pytest

from raterscope.algorithms.labels import data
from raterscope.algorithms.labels.active_learning import next_votes
from raterscope.algorithms.labels.copying import find_copies
from raterscope.algorithms.labels.data import OPEN, Labels, distinct, has_own_matrices
from raterscope.algorithms.labels.fusion import LabelPlan, fuse, run
from raterscope.algorithms.labels.rates import rates_of
from raterscope.algorithms.labels.result import LabelResult
from raterscope.algorithms.labels.voting import majority
from raterscope.app.study.arrays import pack, unpack


def crowd(seed, classes, annotators=40, tasks=600, each=4):
    """Simulate annotators who confuse classes within groups of five."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, tasks)
    task = np.repeat(np.arange(tasks), each)
    annotator = np.concatenate([rng.choice(annotators, each, replace=False) for _ in range(tasks)])
    skill = rng.uniform(0.4, 0.95, annotators)
    near = np.minimum(truth[task] // 5 * 5 + rng.integers(0, 5, len(task)), classes - 1)
    label = np.where(rng.random(len(task)) < skill[annotator], truth[task], near)
    names = tuple(f"class {number}" for number in range(classes))
    numbers = (tuple(map(str, range(many))) for many in (tasks, annotators))
    return Labels(task, annotator, label, *numbers, names, names), truth, skill


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setattr(data, "MAX_ENTRIES", 1000)


def test_one_matrix_for_all_is_as_right_as_one_for_each(monkeypatch):
    labels, truth, _ = crowd(1, 30)
    own = run(labels, LabelPlan())
    monkeypatch.setattr(data, "MAX_ENTRIES", 1000)
    shared = run(labels, LabelPlan())
    vote = majority(labels)

    def right(fusion):
        return (fusion.posterior.argmax(axis=1) == truth).mean()

    assert right(shared) > right(vote) + 0.005
    assert right(shared) > right(own) - 0.01
    assert any("one confusion matrix for all" in words for words in shared.notices)
    assert len(distinct(shared.confusion.alpha)) == 1
    assert len(distinct(own.confusion.alpha)) == 40


@pytest.mark.usefixtures("small_limit")
def test_accuracies_of_annotators_differ_though_their_matrix_is_the_same():
    labels, truth, _ = crowd(2, 30)
    result = fuse(labels)
    rates = rates_of(labels, result.fusion)
    assert rates.shared
    assert result.communities is None
    mean, low, high = rates.accuracies()
    actual = np.array([(labels.label == truth[labels.task])[labels.annotator == k].mean() for k in range(40)])
    assert np.corrcoef(mean, actual)[0, 1] > 0.9
    assert ((low <= actual) & (actual <= high)).mean() > 0.9
    ends = rates.interval()
    assert len(distinct(rates.mean)) == len(distinct(ends[0])) == len(distinct(ends[1])) == 1
    together, alone = rates.together(np.arange(40)), rates.chosen(np.array([3]))
    assert together.mean == pytest.approx(alone.mean)
    assert together.counts.sum() == pytest.approx(len(labels))
    assert not find_copies(labels, result.fusion).groups()


@pytest.mark.usefixtures("small_limit")
def test_known_classes_are_held_fixed_and_calibrate():
    labels, truth, _ = crowd(3, 12)
    known = np.where(np.arange(len(truth)) < 100, truth, OPEN)
    fusion = run(Labels(labels.task, labels.annotator, labels.label, labels.tasks, labels.annotators,
                        labels.outputs, labels.classes, known=known), LabelPlan())  # fmt: skip
    assert (fusion.posterior[:100].argmax(axis=1) == truth[:100]).all()
    assert fusion.posterior.sum(axis=1) == pytest.approx(np.ones(len(truth)))


@pytest.mark.usefixtures("small_limit")
def test_next_votes_are_of_uncertain_tasks():
    labels, _, _ = crowd(4, 12)
    fusion = run(labels, LabelPlan())
    votes = next_votes(labels, fusion, 20)
    assert len(votes) == 20
    doubt = fusion.entropy()
    assert doubt[votes.task].mean() > np.quantile(doubt, 0.9)


def test_a_thousand_classes_by_two_hundred_annotators_fit_into_memory_and_a_study():
    labels, truth, _ = crowd(5, 1000, annotators=200, tasks=1500)
    assert not has_own_matrices(labels)
    result = LabelResult(run(labels, LabelPlan()), "measure")
    assert (result.fusion.posterior.argmax(axis=1) == truth).mean() > 0.9
    size, chunks = pack(result)
    assert size < 40_000_000
    read = unpack(LabelResult, size, chunks)
    alpha = read.fusion.confusion.alpha
    assert alpha.shape == (200, 1000, 1000)
    assert len(distinct(alpha)) == 1
    assert (alpha[199, 7] == result.fusion.confusion.alpha[0, 7]).all()
    reordered = read.reordered(np.arange(200)[::-1])
    assert len(distinct(reordered.fusion.confusion.alpha)) == 1
