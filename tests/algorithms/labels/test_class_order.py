"""Order of classes by how often they are confused."""

import numpy as np
import pytest

from raterscope.algorithms.labels.class_tree import similar_order


@pytest.mark.parametrize("many", [1, 2, 3, 40, 350])
def test_every_class_and_answer_is_there_once(many):
    rates = np.random.default_rng(many).dirichlet(np.ones(many), many)
    for order in similar_order(rates, np.arange(many)):
        assert sorted(order.tolist()) == list(range(many))


def test_groups_that_are_confused_among_themselves_are_blocks():
    rng = np.random.default_rng(2)
    group = rng.permutation(np.repeat(np.arange(8), 5))
    rates = np.where(group[:, None] == group, 0.06, 0.001) + 0.6 * np.eye(40)
    order, _ = similar_order(rates * rng.uniform(0.8, 1.2, rates.shape), np.arange(40))
    assert int((np.diff(group[order]) != 0).sum()) == 7


def test_answers_follow_their_classes_and_those_without_one_are_last():
    rates = np.array([[0.6, 0.0, 0.3, 0.1], [0.0, 0.9, 0.0, 0.1], [0.5, 0.0, 0.4, 0.1]])
    meaning = np.array([0, 1, 2, -1])
    classes, outputs = similar_order(rates, meaning)
    assert outputs.tolist() == [*classes.tolist(), 3]
    assert abs(classes.tolist().index(0) - classes.tolist().index(2)) == 1
