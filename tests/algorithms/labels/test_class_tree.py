"""Hierarchies of classes by a separator: parents, sums, and the lines of an unfolded tree."""

import numpy as np
import pytest

from raterscope.algorithms.labels.class_tree import class_tree, unfolded_lines
from raterscope.algorithms.labels.data import Labels
from raterscope.algorithms.labels.fusion import LabelPlan, run
from raterscope.algorithms.labels.rates import fold_rates, rates_of

CLASSES = ("bird/owl/tawny", "bird/owl/barn", "bird/crow", "fish/cod", "empty")


def lines(unfolded, shares=(0.1, 0.2, 0.15, 0.35, 0.2)):
    tree = class_tree(CLASSES)
    shown = unfolded_lines(tree, [1, 0, 2, 3, 4], np.array(shares), frozenset(unfolded))
    return ["/".join(line.path) for line in shown], [line.index for line in shown]


def test_the_posterior_of_a_parent_is_the_sum_of_its_children():
    tree = class_tree(CLASSES)
    assert tree.parents == ("bird", "fish", "empty")
    posterior = np.random.default_rng(0).dirichlet(np.ones(5), 4)
    sums = tree.sums(posterior)
    assert sums[:, 0] == pytest.approx(posterior[:, :3].sum(axis=1))
    assert sums.sum(axis=1) == pytest.approx(np.ones(4))


@pytest.mark.parametrize(
    "classes", [("a", "b", "c"), ("n/a", "yes", "no"), ("x/a", "y/b", "z/c"), ("x/a", "x/b")]
)
def test_names_without_a_hierarchy_have_none(classes):
    assert class_tree(classes) is None


def test_nodes_unfold_to_their_classes_and_come_by_their_sums():
    assert lines([]) == (["bird", "fish/cod", "empty"], [-1, 3, 4])
    names, numbers = lines([("bird",)])
    assert names == ["bird", "bird/owl", "bird/crow", "fish/cod", "empty"]
    assert numbers == [-1, -1, 2, 3, 4]
    names, _ = lines([("bird",), ("bird", "owl")])
    assert names[:4] == ["bird", "bird/owl", "bird/owl/barn", "bird/owl/tawny"]
    assert lines([], (0.0, 0.0, 0.1, 0.9, 0.0))[0][0] == "fish/cod"


def test_a_class_that_is_a_parent_too_is_listed_among_its_children():
    tree = class_tree(("bird", "bird/owl", "bird/crow", "fish/cod"))
    shown = unfolded_lines(tree, range(4), np.full(4, 0.25), frozenset({("bird",)}))
    assert [line.index for line in shown] == [-1, 0, 1, 2, 3]


def test_the_matrix_of_parents_counts_every_vote_once():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 5, 200)
    task = np.repeat(np.arange(200), 4)
    label = np.where(rng.random(800) < 0.7, truth[task], rng.integers(0, 5, 800))
    names = tuple(map(str, range(200))), tuple("abcdefgh")
    labels = Labels(task, np.arange(800) % 8, label, *names, CLASSES, CLASSES)
    together = rates_of(labels, run(labels, LabelPlan.make("majority"))).together(np.arange(8))
    tree = class_tree(CLASSES)
    folded = fold_rates(together, tree.parent)
    assert folded.counts.shape == (1, 3, 3)
    assert folded.counts.sum() == pytest.approx(800)
    assert folded.mean.sum(axis=2) == pytest.approx(np.ones((1, 3)))
    within = together.counts[0][:3, :3].sum() / together.counts[0][:3].sum()
    assert folded.mean[0, 0, 0] == pytest.approx(within, abs=0.03)
    low, high = folded.interval()
    assert ((low <= folded.mean) & (folded.mean <= high)).all()
