"""Tasks restricted to a set of classes: the parent that the expert decided."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.labels import data
from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.class_tree import class_tree
from raterscope.algorithms.labels.data import OPEN, Labels, LabelsError
from raterscope.algorithms.labels.fusion import LabelPlan, fuse, run

CLASSES = ("bird/owl", "bird/hawk", "fish/cod", "fish/eel", "fish/ray", "newt/red")
CHEAP = {"gibbs": {"burn_in": "20", "samples": "60"}, "ebcc": {"starts": "1"}}


def crowd(seed, tasks=150, annotators=15, votes=5):
    """Votes of annotators who confuse classes of one parent more often than others, and the true classes."""
    generator = np.random.default_rng(seed)
    truth = generator.integers(len(CLASSES), size=tasks)
    parent = class_tree(CLASSES).parent
    rates = np.empty((annotators, len(CLASSES), len(CLASSES)))
    for k in range(annotators):
        kin = 1.0 + 4.0 * (parent[:, None] == parent)
        rates[k] = kin + np.diag(generator.uniform(2.0, 14.0, len(CLASSES)))
    rates /= rates.sum(axis=2, keepdims=True)
    task = np.repeat(np.arange(tasks), votes)
    annotator = np.concatenate([generator.permutation(annotators)[:votes] for _ in range(tasks)])
    label = [
        generator.choice(len(CLASSES), p=rates[k, truth[i]]) for i, k in zip(task, annotator, strict=True)
    ]
    names = tuple(f"task {i}" for i in range(tasks)), tuple(f"annotator {k}" for k in range(annotators))
    return Labels(task, annotator, np.array(label), *names, CLASSES, CLASSES), truth


def plan(algorithm, **settings):
    return LabelPlan.make(algorithm, CHEAP.get(algorithm, {}) | {"communities": "no"} | settings)


def bits(fusion):
    return fusion.posterior.tobytes(), fusion.confusion.alpha.tobytes(), fusion.known.tobytes()


def parents_of(truth, tasks):
    tree = class_tree(CLASSES)
    return {int(task): np.flatnonzero(tree.parent == tree.parent[truth[task]]).tolist() for task in tasks}


@pytest.mark.parametrize("algorithm", LABELLERS)
def test_sets_of_all_classes_change_no_bit_and_sets_of_one_equal_known_tasks(algorithm):
    labels, truth = crowd(1)
    every = labels.restricted({task: range(6) for task in range(0, 150, 5)})
    assert bits(run(every, plan(algorithm))) == bits(run(labels, plan(algorithm)))
    known = np.where(np.arange(150) % 5 == 0, truth, OPEN).astype(np.int16)
    single = labels.restricted({task: [int(truth[task])] for task in range(0, 150, 5)})
    assert bits(run(single, plan(algorithm))) == bits(run(replace(labels, known=known), plan(algorithm)))


@pytest.mark.parametrize("counting", ["full", "predictive"])
@pytest.mark.parametrize("algorithm", LABELLERS)
def test_nothing_is_probable_outside_a_set_and_every_row_adds_up_to_one(algorithm, counting):
    labels, truth = crowd(2)
    sets = parents_of(truth, range(0, 150, 4)) | {1: [2, 3], 2: [0, 5]}  # two of them against the votes
    fusion = run(labels.restricted(sets), plan(algorithm, counting=counting))
    for task, inside in sets.items():
        assert fusion.posterior[task, np.setdiff1d(range(6), inside)].max() == 0
    assert np.allclose(fusion.posterior.sum(axis=1), 1)
    assert np.isfinite(fusion.posterior).all()
    assert (fusion.known >= OPEN).all()


@pytest.mark.parametrize("algorithm", ["pooled", "ibcc", "dynibcc", "gibbs", "ebcc", "dawid-skene"])
def test_decided_parents_inform_the_annotators_rates(algorithm):
    labels, truth = crowd(3, votes=3)
    fusion = run(labels, plan(algorithm))
    wrong = np.flatnonzero(class_tree(CLASSES).parent[fusion.label()] != class_tree(CLASSES).parent[truth])
    assert len(wrong) > 3
    restricted = run(labels.restricted(parents_of(truth, wrong)), plan(algorithm))
    assert not np.array_equal(fusion.confusion.mean(), restricted.confusion.mean())
    rates, voters = restricted.confusion.mean(), labels.votes_of_annotators() > 0
    tree = class_tree(CLASSES)
    outside = tree.parent[:, None] != tree.parent
    before = (fusion.confusion.mean() * outside)[voters].sum(axis=2).mean(axis=0)
    after = (rates * outside)[voters].sum(axis=2).mean(axis=0)
    assert after.mean() > before.mean()  # votes outside the parent are mistakes now


@pytest.mark.parametrize("algorithm", ["pooled", "dawid-skene"])
def test_decided_parents_do_not_raise_the_log_loss_of_other_tasks(algorithm):
    decided, others = np.arange(0, 600, 3), np.flatnonzero(np.arange(600) % 3)
    labels, truth = crowd(30, tasks=600, annotators=10)
    before, after = (
        -np.log(np.maximum(run(given, plan(algorithm)).posterior[others, truth[others]], 1e-6)).mean()
        for given in (labels, labels.restricted(parents_of(truth, decided)))
    )
    assert after < before


def test_a_task_without_votes_has_the_shares_inside_its_set():
    labels, truth = crowd(4)
    silent = labels.subset(labels.task != 0).restricted(parents_of(truth, [0]))
    row = fuse(silent, plan("pooled")).fusion.posterior[0]
    inside = row > 0
    shares = fuse(silent, plan("pooled")).fusion.shares
    assert np.allclose(row[inside], shares[inside] / shares[inside].sum())


def test_one_confusion_matrix_of_many_classes_keeps_to_the_sets(monkeypatch):
    monkeypatch.setattr(data, "MAX_ENTRIES", 10)
    labels, truth = crowd(7)
    sets = parents_of(truth, range(0, 150, 4))
    fusion = run(labels.restricted(sets), plan("pooled"))
    assert "one confusion matrix for all" in " ".join(fusion.notices)
    assert all(fusion.posterior[task, inside].sum() == pytest.approx(1) for task, inside in sets.items())


def test_truths_held_in_folds_keep_decided_parents():
    labels, truth = crowd(5)
    sets = parents_of(truth, range(0, 40, 2))
    held = np.where(np.arange(150) >= 100, truth, OPEN).astype(np.int16)
    for truths in ("hold", "folds"):
        fusion = fuse(labels.restricted(sets), plan("ibcc", truths=truths), held).fusion
        assert all(fusion.posterior[task, inside].sum() == pytest.approx(1) for task, inside in sets.items())
        assert (fusion.known >= OPEN).all()


def test_sets_of_classes_that_do_not_exist_are_refused():
    labels, _ = crowd(6, tasks=5)
    for classes in ([], [6], [-1, 2]):
        with pytest.raises(LabelsError, match="restricted to classes"):
            labels.restricted({0: classes})
