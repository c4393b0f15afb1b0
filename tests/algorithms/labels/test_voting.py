"""Votes and scores: shares, ties, weights and scales."""

import csv
from pathlib import Path

import numpy as np
import pytest

from raterscope.algorithms.labels.assessment import assess
from raterscope.algorithms.labels.data import OPEN, Labels, LabelSettings
from raterscope.algorithms.labels.voting import (
    WeightedSettings,
    majority,
    mean_score,
    scores_of,
    weighted_majority,
    weighted_sum,
)
from raterscope.algorithms.progress import Cancelled

METHODS = (majority, weighted_majority, weighted_sum, mean_score)


def names(prefix: str, count: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{index}" for index in range(count))


def crowd(
    votes: list[tuple[int, int, int]], tasks: int, outputs: tuple[str, ...], **options: object
) -> Labels:
    """Labels of (task, annotator, output)."""
    columns = np.array(votes, dtype=np.int32).reshape(-1, 3).T
    annotators = int(columns[1].max(initial=-1)) + 1
    classes = options.pop("classes", outputs)
    return Labels(*columns, names("t", tasks), names("a", annotators), outputs, classes, **options)


def read(root: Path, name: str) -> tuple[Labels, np.ndarray]:
    """Read a real crowd and its truth."""
    with (root / f"labels/{name}.csv").open() as file:
        rows = list(csv.reader(file))[1:]
    with (root / f"labels/{name}_truth.csv").open() as file:
        truth = dict(list(csv.reader(file))[1:])
    tasks, annotators = ({row[at]: None for row in rows} for at in (0, 1))
    classes = tuple(sorted({row[2] for row in rows} | set(truth.values())))
    task = {name: index for index, name in enumerate(tasks)}
    annotator = {name: index for index, name in enumerate(annotators)}
    labels = Labels(
        np.array([task[row[0]] for row in rows]),
        np.array([annotator[row[1]] for row in rows]),
        np.array([classes.index(row[2]) for row in rows]),
        tuple(tasks),
        tuple(annotators),
        classes,
        classes,
    )
    return labels, np.array([classes.index(truth[n]) if n in truth else OPEN for n in tasks], dtype=np.int16)


def test_majority_is_the_share_of_votes() -> None:
    fusion = majority(crowd([(0, 0, 0), (0, 1, 1), (0, 2, 1), (1, 0, 2)], 2, ("a", "b", "c")))
    assert fusion.posterior == pytest.approx(np.array([[1 / 3, 2 / 3, 0], [0, 0, 1]]))


def test_a_tie_is_reported_and_goes_to_the_first_class() -> None:
    fusion = majority(crowd([(0, 0, 1), (0, 1, 0), (1, 0, 1)], 2, ("a", "b")))
    assert fusion.label().tolist() == [0, 1]
    assert "1 task is tied and goes to the class that is listed first." in fusion.notices


def test_an_output_that_stands_for_no_class_is_no_vote() -> None:
    labels = crowd(
        [(0, 0, 2), (0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 0, 0)],
        3,
        ("no", "yes", "can't say"),
        classes=("no", "yes"),
        meaning=np.array([0, 1, OPEN]),
    )
    for method in (majority, weighted_majority):
        fusion = method(labels)
        assert fusion.posterior[0] == pytest.approx([0, 1])
        assert fusion.posterior[1] == pytest.approx(
            [0.5, 0.5]
        )  # the shares among the tasks that have a class


@pytest.mark.parametrize(
    ("name", "first", "shared", "area"),
    [
        ("bluebirds", 0.7593, 0.7593, 0.8743),
        ("dog", 0.8178, 0.8222, 0.9543),
        ("cf_amt", 0.8467, 0.8533, 0.9274),
        ("adult2", 0.7628, 0.7598, 0.8624),
    ],
)
def test_majority_of_real_crowds(
    real_data: Path, name: str, first: float, shared: float, area: float
) -> None:
    """Ties go to the first class, or share the credit."""
    labels, truth = read(real_data, name)
    result = assess(majority(labels).posterior, truth, labels.classes)
    assert result is not None
    assert result.confusion.trace() / result.judged == pytest.approx(first, abs=1e-4)
    assert result.accuracy == pytest.approx(shared, abs=1e-4)
    assert result.area == pytest.approx(area, abs=1e-4)


def test_weight_is_beta_to_the_power_of_mistakes() -> None:
    votes = [(task, annotator, int(annotator == 3)) for task in range(6) for annotator in range(4)]
    fusion = weighted_majority(crowd(votes, 6, ("a", "b")), WeightedSettings(beta=0.5))
    assert fusion.weight == pytest.approx([1, 1, 1, 0.5**6])
    assert fusion.posterior[:, 1] == pytest.approx(0.5**6 / (3 + 0.5**6))
    assert fusion.trace.converged


def test_truths_teach_the_weights() -> None:
    """Three who are wrong wherever the truth is known lose the other tasks to the one who is right."""
    votes = [(task, annotator, int(annotator == 0)) for task in range(8) for annotator in range(4)]
    known = np.array([1] * 6 + [OPEN] * 2)
    labels = crowd(votes, 8, ("a", "b"), known=known)
    assert weighted_majority(labels, WeightedSettings(beta=0.5)).label().tolist() == [1] * 8
    assert majority(labels).label().tolist() == [1] * 6 + [0] * 2


def test_thousands_of_mistakes_do_not_wipe_a_task_out() -> None:
    """A task that only annotators of vanishing weight have seen still goes to the better of them."""
    votes = [(task, annotator, int(annotator > 2)) for task in range(3000) for annotator in range(4)]
    votes += [(3000, 3, 1), (3001, 3, 1), (3001, 0, 0)]
    fusion = weighted_majority(crowd(votes, 3002, ("a", "b")), WeightedSettings(beta=0.5))
    assert fusion.label()[3000:].tolist() == [1, 0]
    assert np.isfinite(fusion.posterior).all()


def test_share_of_mistakes_spares_the_diligent() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 3000)
    votes = []
    for task, true in enumerate(truth):  # 0 answers all and is right most often
        for annotator in (0, *(1 + rng.choice(300, 2, replace=False))):
            right = rng.random() < (0.9 if annotator == 0 else 0.6)
            votes.append((task, int(annotator), int(true if right else 1 - true)))
    labels = crowd(votes, 3000, ("a", "b"))
    by_share = weighted_majority(labels, WeightedSettings(beta=0.95, mistakes="share"))
    by_number = weighted_majority(labels, WeightedSettings(beta=0.95))
    assert (by_share.label() == truth).mean() > 0.85
    assert (by_share.label() == truth).mean() > (by_number.label() == truth).mean() + 0.1


def test_scores_of_two_classes_become_shares_of_the_scale() -> None:
    labels = crowd(
        [(0, 0, 0), (0, 1, 2), (1, 0, 2), (2, 0, 1)],
        3,
        ("-1", "1", "3"),
        classes=("no", "yes"),
        meaning=np.array([0, 1, 1]),
    )
    assert mean_score(labels).posterior[:, 1] == pytest.approx([0.5, 1.0, 0.5])


def test_a_first_class_that_scores_higher_is_turned_round() -> None:
    labels = crowd(
        [(0, 0, 1), (1, 0, 0)], 2, ("0", "10"), classes=("tumour", "none"), meaning=np.array([1, 0])
    )
    assert mean_score(labels).posterior[:, 0] == pytest.approx([1, 0])


def test_ordered_classes_share_such_that_the_score_to_expect_is_the_mean() -> None:
    rng = np.random.default_rng(3)
    votes = [(int(rng.integers(20)), annotator, int(rng.integers(4))) for annotator in range(100)]
    labels = crowd(votes, 20, ("1", "2", "4", "8"))
    scores = np.array([1.0, 2.0, 4.0, 8.0])
    posterior = mean_score(labels).posterior
    for task in np.unique(labels.task):
        assert posterior[task] @ scores == pytest.approx(scores[labels.label[labels.task == task]].mean())
        assert np.count_nonzero(posterior[task]) <= 2


def test_words_are_scored_by_their_order_and_it_is_reported() -> None:
    fusion = mean_score(crowd([(0, 0, 0), (0, 1, 2)], 1, ("G", "P", "R")))
    assert fusion.posterior[0] == pytest.approx([0, 1, 0])
    assert any("order" in notice for notice in fusion.notices)
    assert scores_of(("nan", "1"))[1] is False
    assert scores_of(("-1", "2.5"))[0].tolist() == [-1, 2.5]


def test_weighted_sum_leans_to_those_who_err_less() -> None:
    votes = [(task, annotator, int(annotator == 3) * 2) for task in range(9) for annotator in range(4)]
    labels = crowd(votes, 9, ("0", "1", "2"), classes=("no", "yes"), meaning=np.array([0, 1, 1]))
    plain, weighed = mean_score(labels), weighted_sum(labels, WeightedSettings(beta=0.5))
    assert plain.posterior[0, 1] == pytest.approx(0.25)
    assert weighed.posterior[0, 1] == pytest.approx(0.5**9 / (3 + 0.5**9))


def test_of_repeated_votes_the_one_that_is_requested_counts() -> None:
    labels = crowd([(0, 0, 0), (0, 0, 0), (0, 1, 1), (0, 0, 1)], 1, ("a", "b"))
    result = [
        majority(labels, LabelSettings(repeats=way)).posterior[0, 1] for way in ("all", "first", "last")
    ]
    assert result == pytest.approx([0.5, 0.5, 1.0])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "labels",
    [
        crowd([], 0, ("a", "b")),
        crowd([], 3, ("a", "b")),
        crowd([(0, 0, 0), (1, 1, 0)], 2, ("only",)),
        crowd([(0, 0, 1)] * 5, 1, ("a", "b", "never")),
        crowd([(0, 0, 0), (1, 1, 0)], 3, ("0", "1"), known=np.array([1, OPEN, OPEN])),
        crowd([(0, 0, 1), (1, 5, 1)], 2, ("x", "y"), classes=("a", "b", "c"), meaning=np.array([2, OPEN])),
    ],
    ids=["nothing", "no votes", "one output", "repeated", "known", "more classes than outputs"],
)
def test_odd_crowds_have_probabilities_all_the_same(method: object, labels: Labels) -> None:
    fusion = method(labels)  # type: ignore[operator]
    assert fusion.posterior.shape == (len(labels.tasks), len(labels.classes))
    assert fusion.posterior.sum(axis=1) == pytest.approx(np.ones(len(labels.tasks)))
    assert np.isfinite(fusion.confusion.alpha).all()
    if labels.known is not None:
        assert fusion.posterior[0].tolist() == [0, 1]


@pytest.mark.parametrize("method", METHODS)
def test_it_can_be_cancelled(method: object) -> None:
    def stop(*_: object, **__: object) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        method(crowd([(0, 0, 0)], 1, ("a", "b")), watch=stop)  # type: ignore[operator]
