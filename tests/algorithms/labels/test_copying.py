"""Copying annotators are found; accurate ones and errors on the same hard tasks are not flagged."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.labels import Labels
from raterscope.algorithms.labels.copying import copying_in_words, fair_consensus, find_copies
from raterscope.algorithms.labels.fusion import LabelPlan, run
from raterscope.algorithms.labels.ibcc import ibcc
from raterscope.algorithms.progress import Cancelled, silent
from tests.algorithms.labels.crowds import make


def sayings(seed, tasks=400, people=14, classes=3, accuracy=0.75, hard=0.0) -> np.ndarray:
    """Return the answers of all annotators on every task, (N, K); most share the error on hard tasks."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, tasks)
    right = rng.random((tasks, people)) < accuracy
    answers = np.where(right, truth[:, None], rng.integers(0, classes, (tasks, people)))
    misled = rng.random(tasks) < hard
    tempted = misled[:, None] & (rng.random((tasks, people)) < 0.6)
    return np.where(tempted, ((truth + 1) % classes)[:, None], answers)


def crowd(answers: np.ndarray, voted: np.ndarray | None = None, classes: int = 3) -> Labels:
    task, annotator = np.nonzero(np.ones_like(answers, dtype=bool) if voted is None else voted)
    return make(task, annotator, answers[task, annotator], classes)


def test_three_who_copy_are_one_group_though_they_make_each_other_right():
    answers = sayings(1)
    rng = np.random.default_rng(2)
    for copier in (5, 9):
        copied = rng.random(len(answers)) < 0.93
        answers[copied, copier] = answers[copied, 2]
    labels = crowd(answers, np.random.default_rng(3).random(answers.shape) < 0.4)
    fusion = ibcc(labels)
    right = fusion.confusion.mean().diagonal(axis1=1, axis2=2).mean(axis=1)
    clique = np.isin(np.arange(len(right)), (2, 5, 9))
    assert right[clique].mean() > right[~clique].mean()  # who are as good in truth
    result = find_copies(labels, fusion)
    assert result.groups() == ((2, 5, 9),)
    order = rng.permutation(len(right))
    (moved,) = result.reordered(order).groups()
    assert {*order[list(moved)].tolist()} == {2, 5, 9}
    beyond_chance = (result.same - result.expected) / (result.common - result.expected)  # as Cohen's kappa
    assert ((beyond_chance > 0.6) & (beyond_chance <= 1)).all()


@pytest.mark.parametrize("seed", range(2))
def test_people_who_look_for_themselves_copy_no_annotator(seed):
    labels = crowd(sayings(seed, accuracy=0.9))
    assert find_copies(labels, ibcc(labels)).groups() == ()


@pytest.mark.parametrize("votes", [2, 3])
def test_few_votes_on_each_task_accuse_no_independent_annotator(votes):
    """With two or three votes on a task, the others say little on what a pair should answer."""
    answers = sayings(5, tasks=3000, people=15, accuracy=0.8)
    rng = np.random.default_rng(6)
    chosen = np.argsort(rng.random(answers.shape), axis=1)[:, :votes]
    voted = np.zeros(answers.shape, dtype=bool)
    np.put_along_axis(voted, chosen, values=True, axis=1)
    labels = crowd(answers, voted)
    assert find_copies(labels, run(labels, LabelPlan.make("pooled", {}))).groups() == ()
    answers[:, 7] = answers[:, 3]
    copied = crowd(answers, voted)
    assert find_copies(copied, run(copied, LabelPlan.make("pooled", {}))).groups() == ((3, 7),)


@pytest.mark.parametrize(("people", "each", "guessing"), [(3, 3, 1), (40, 8, 20)])
def test_good_annotators_among_some_who_guess_copy_no_annotator(people, each, guessing):
    """Their agreement is beyond what the votes of the others let expect."""
    answers = sayings(0, tasks=300, people=people, classes=4, accuracy=0.85)
    rng = np.random.default_rng([0, people])
    answers[:, :guessing] = rng.integers(0, 4, (len(answers), guessing))
    chosen = np.argsort(rng.random(answers.shape) / rng.dirichlet(np.ones(people)), axis=1)[:, :each]
    voted = np.zeros(answers.shape, dtype=bool)
    np.put_along_axis(voted, chosen, values=True, axis=1)
    labels = crowd(answers, voted, classes=4)
    assert find_copies(labels, run(labels, LabelPlan.make("pooled"))).groups() == ()


def test_annotators_who_can_give_one_label_alone_copy_no_annotator():
    labels = crowd(np.zeros((30, 3), dtype=int), classes=1)
    assert find_copies(labels, run(labels, LabelPlan.make("pooled"))).groups() == ()


@pytest.mark.parametrize("algorithm", ["pooled", "majority", "weighted-sum"])
def test_shares_of_votes_accuse_no_independent_annotator_and_find_the_ring(algorithm):
    """Nine good annotators, one always wrong, one who always says the same; then a ring of three."""
    answers = sayings(1, tasks=120, people=11, classes=2, accuracy=0.9)
    answers[:, 9] = 1 - np.round(answers[:, :9].mean(axis=1)).astype(int)
    answers[:, 10] = 0
    plan = LabelPlan.make(algorithm, {"communities": "no"})
    honest = crowd(answers, classes=2)
    assert find_copies(honest, run(honest, plan)).groups() == ()
    answers, rng = sayings(1), np.random.default_rng(2)
    for copier in (5, 9):
        copied = rng.random(len(answers)) < 0.93
        answers[copied, copier] = answers[copied, 2]
    ring = crowd(answers, np.random.default_rng(3).random(answers.shape) < 0.4)
    assert find_copies(ring, run(ring, plan)).groups() == ((2, 5, 9),)


@pytest.mark.parametrize("seed", range(2))
def test_erring_on_the_same_hard_tasks_is_no_copying(seed):
    labels = crowd(sayings(seed, hard=0.25))
    assert find_copies(labels, ibcc(labels)).groups() == ()


def test_many_classes_of_few_votes_each_are_no_copying():
    labels = crowd(sayings(5, tasks=300, classes=30), classes=30)
    assert find_copies(labels, ibcc(labels)).groups() == ()


def test_little_in_common_shows_nothing_and_a_vote_that_is_repeated_counts_once():
    answers = np.zeros((19, 2), dtype=int)
    labels = crowd(np.repeat(answers, 1, axis=0))
    assert len(find_copies(labels, ibcc(labels)).pairs) == 0
    second = make(np.tile(labels.task, 3), np.tile(labels.annotator, 3), np.tile(labels.label, 3), 3)
    assert len(find_copies(second, ibcc(second)).pairs) == 0


def test_it_can_be_given_up():
    labels = crowd(sayings(0))

    def stop(*_args, **_named):
        raise Cancelled

    fusion = ibcc(labels)
    with pytest.raises(Cancelled):
        find_copies(labels, fusion, stop)


def test_a_ring_of_fifteen_is_one_group_though_it_sways_the_answer():
    answers = sayings(0, tasks=300, people=40, classes=5, accuracy=0.7)
    rng = np.random.default_rng(100)
    for copier in range(1, 15):
        copied = rng.random(len(answers)) < 0.99
        answers[copied, copier] = answers[copied, 0]
    labels = crowd(answers, rng.random(answers.shape) < 0.5, classes=5)
    result = find_copies(labels, ibcc(labels))
    assert result.groups() == (tuple(range(15)),)
    (sentence,) = copying_in_words(result, labels)
    assert sentence.startswith("15 annotators may copy from each other: 0, 1, 2")


def test_a_ring_that_outvotes_the_rest_is_named_and_no_annotator_else():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 5, 300)
    wrong = (truth[:, None] + rng.integers(1, 5, (300, 20))) % 5
    answers = np.where(rng.random((300, 20)) < rng.uniform(0.6, 0.9, 20), truth[:, None], wrong)
    answers[:, 1:15] = np.where(rng.random((300, 14)) < 0.99, answers[:, :1], answers[:, 1:15])
    labels = crowd(answers, rng.random(answers.shape) < 0.5, classes=5)
    result = find_copies(labels, ibcc(labels))
    assert result.groups() == (tuple(range(15)),)
    assert result.outvoting
    (sentence,) = copying_in_words(result, labels)
    assert "may also share a mistake instead" in sentence


@pytest.mark.parametrize("ring", [3, 5])
def test_a_small_ring_with_half_of_the_votes_on_each_task_is_named(ring):
    """Five votes of 30 annotators on each task, and those of a ring that votes on all tasks."""
    rng = np.random.default_rng(0)
    answers = sayings(4, tasks=500, people=30 + ring, classes=4)
    answers[:, 30:] = np.where(rng.random(500) < 0.6, answers[:, 30], rng.integers(0, 4, 500))[:, None]
    voted = rng.random((500, 30 + ring)).argsort(axis=1) < 0
    np.put_along_axis(voted, rng.random((500, 30)).argsort(axis=1)[:, :5], True, axis=1)
    voted[:, 30:] = True
    labels = crowd(answers, voted, classes=4)
    assert find_copies(labels, run(labels, LabelPlan())).groups() == (tuple(range(30, 30 + ring)),)


@pytest.mark.parametrize("people", [4, 12])
def test_very_good_annotators_of_an_easy_question_are_no_ring(people):
    rng = np.random.default_rng(6)
    answers = sayings(7, tasks=600, people=people, classes=4, accuracy=0.995)
    answers[:, -2:] = np.where(rng.random((600, 2)) < 0.6, answers[:, -2:], rng.integers(0, 4, (600, 2)))
    labels = crowd(answers, classes=4)
    assert find_copies(labels, ibcc(labels)).groups() == ()


def test_good_annotators_beside_guessing_ones_are_no_ring():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 5, 300)
    good = np.where(np.arange(20) < 15, 0.97, 0.2)
    answers = np.where(rng.random((300, 20)) < good, truth[:, None], rng.integers(0, 5, (300, 20)))
    labels = crowd(answers, classes=5)
    assert find_copies(labels, ibcc(labels)).groups() == ()


@pytest.mark.parametrize("share", [0.15, 0.5])
def test_two_with_the_same_misunderstanding_are_not_accused(share):
    answers = sayings(7, tasks=400, people=30, classes=5, accuracy=0.85)
    truth = (answers[:, 2:, None] == np.arange(5)).sum(axis=1).argmax(axis=1)
    rng = np.random.default_rng(8)
    for item in (0, 1):
        swapped = rng.random(len(answers)) < 0.95
        answers[:, item] = np.where(
            swapped & (truth == 2), 3, np.where(swapped & (truth == 3), 2, answers[:, item])
        )
    labels = crowd(answers, rng.random(answers.shape) < share, classes=5)
    assert find_copies(labels, ibcc(labels)).groups() == ()


@pytest.mark.parametrize("ring", [(), (3, 8, 11)])
def test_half_of_a_crowd_that_reads_all_classes_as_others_does_not_copy(ring):
    rng = np.random.default_rng(20)
    truth = rng.integers(0, 4, 400)
    read = np.where(np.arange(30) < 15, truth[:, None], np.array([3, 2, 1, 0])[truth][:, None])
    answers = np.where(rng.random(read.shape) < 0.8, read, rng.integers(0, 4, read.shape))
    for copier in ring[1:]:
        answers[:, copier] = np.where(rng.random(400) < 0.97, answers[:, ring[0]], answers[:, copier])
    labels = crowd(answers, rng.random(answers.shape) < 0.4, classes=4)
    fusion = run(labels, LabelPlan.make("pooled", {}))
    assert find_copies(labels, fusion).groups() == ((ring,) if ring else ())


def test_rates_are_smoothed_by_five_votes_with_the_accuracy_of_the_crowd():
    """On known tasks, where the others say nothing about the classes; a ring of two counts as one."""
    answers, truth = sayings(3, tasks=60, people=6), np.arange(60, dtype=np.int16) % 3
    labels = replace(crowd(answers), known=truth)
    ring = np.array([-1, -1, -1, -1, 0, 0])
    rates = fair_consensus(labels, ibcc(labels), np.arange(len(labels)), ring, silent).rates
    counts = np.array(
        [[(answers[truth == true] == output).sum(axis=0) for output in range(3)] for true in range(3)]
    )
    whole = counts @ np.array([1.0, 1.0, 1.0, 1.0, 0.5, 0.5]) + np.eye(3) + 0.1
    smoothed = counts + 5.0 * (whole / whole.sum(axis=1, keepdims=True))[:, :, None]
    expected = smoothed / smoothed.sum(axis=1, keepdims=True)
    assert np.exp(rates) == pytest.approx(expected.transpose(2, 0, 1))
