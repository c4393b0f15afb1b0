"""Order of the unusual annotators."""

import numpy as np

from raterscope.algorithms.annotators.statistics import wilson
from raterscope.app.annotator_evidence import Evidence, Measure
from raterscope.app.annotators.table import AnnotatorTable, find_unusual


def test_many_votes_precede_few_at_the_same_accuracy() -> None:
    names = ("few", "many", *(f"usual {number}" for number in range(8)))
    values = np.array([[[0.4, 0.05, 0.85]], [[0.4, 0.35, 0.45]], *[[[0.94, 0.9, 0.98]]] * 8])
    marks = np.array([3, 400, *[100] * 8])
    accuracy = Measure("accuracy", "accuracy", "Share of correct votes", ideal=1.0, is_share=True)
    evidence = Evidence(
        "labels",
        "votes",
        names,
        marks,
        np.ones_like(marks),
        (accuracy,),
        values,
        accepted=marks,
        rejected=marks,
    )
    unusual = find_unusual(AnnotatorTable(names, {}, {}, {}, (evidence,), np.arange(10)))
    few, many, *usual = unusual.score
    assert 0 < few < many
    assert few / (1 - few) < (0.94 - 0.4) / 0.2  # the uncertainty of its own: a standard deviation of 0.2
    assert not any(usual)


def test_annotators_who_may_copy_are_unusual() -> None:
    names = tuple(f"rater {number}" for number in range(6))
    marks = np.full(6, 50)
    accuracy = Measure("accuracy", "accuracy", "Share of correct votes", ideal=1.0, is_share=True)
    values = np.repeat([[[0.9, 0.8, 1.0]]], 6, axis=0)
    groups = {"copy_group": ["1", "", "1", "", "", ""]}
    evidence = Evidence(
        "labels", "votes", names, marks, np.ones_like(marks), (accuracy,), values, groups, marks, marks
    )
    unusual = find_unusual(AnnotatorTable(names, {}, {}, {}, (evidence,), np.arange(6)))
    assert np.flatnonzero(unusual.score).tolist() == [0, 2]
    assert unusual.words[2] == "may copy from others (group 1)"


def test_chance_alone_names_few_annotators_of_a_large_crowd() -> None:
    """All annotators are equally good, except for a hundred or none of them."""
    false, found = [], []
    for seed in range(10):
        right = np.where(np.arange(3000) < 100, 0.3, 0.9)
        answers = np.random.default_rng(seed).binomial(40, right)
        assert (find_unusual(_shares(answers[100:], 40)).score > 0).sum() <= 2
        named = find_unusual(_shares(answers, 40)).score > 0
        found.append(named[:100].mean())
        false.append(named[100:].sum() / named.sum())
    assert np.mean(found) > 0.95
    assert np.mean(false) < 0.15  # 0.1 with exact intervals


def test_usual_annotators_differ() -> None:
    """Accuracies vary a little; the worst of many usual annotators is not unusual."""
    named, found = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        answers = rng.binomial(50, np.clip(rng.normal(0.85, 0.05, 300), 0.5, 0.99))
        named.append((find_unusual(_shares(answers, 50)).score > 0).any())
        answers[:5] = rng.binomial(50, 0.25, 5)
        found.append((find_unusual(_shares(answers, 50)).score > 0)[:5].mean())
    assert np.mean(named) < 0.25  # 0.1 in expectation; 0.6 if only the intervals count
    assert np.mean(found) > 0.95


def _shares(right: np.ndarray, answers: int) -> AnnotatorTable:
    values = np.array([[(hits / answers, *wilson(float(hits), answers))] for hits in right.tolist()])
    names, marks = tuple(map(str, range(len(right)))), np.full(len(right), answers)
    accuracy = Measure("accuracy", "accuracy", "Share of correct votes", ideal=1.0, is_share=True)
    evidence = Evidence("labels", "votes", names, marks, marks, (accuracy,), values, {}, marks, marks)
    return AnnotatorTable(names, {}, {}, {}, (evidence,), np.arange(len(right)))
