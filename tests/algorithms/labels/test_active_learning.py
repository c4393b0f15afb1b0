"""The next vote to ask for, compared with trying all of them."""

import numpy as np
import pytest

from raterscope.algorithms.labels import active_learning
from raterscope.algorithms.labels.active_learning import expected_information, next_votes, usual_load
from raterscope.algorithms.labels.data import OPEN, Confusion, LabelFusion, Labels, LabelTrace
from raterscope.algorithms.labels.ibcc import ibcc
from raterscope.algorithms.labels.voting import majority
from raterscope.algorithms.progress import Cancelled
from tests.algorithms.labels.test_voting import crowd, names

DONE = LabelTrace(np.empty(0), np.empty(0), True)


def made(posterior: np.ndarray, alpha: np.ndarray, votes: np.ndarray) -> tuple[Labels, LabelFusion]:
    """Votes (V, 2) of task and annotator, and a fusion with this posterior and these matrices."""
    annotators, classes, outputs = alpha.shape
    labels = Labels(
        *votes.T,
        np.zeros(len(votes), dtype=np.int16),
        names("t", len(posterior)),
        names("a", annotators),
        names("", outputs),
        names("", classes),
        meaning=np.minimum(np.arange(outputs), classes - 1),
    )
    known = np.full(len(posterior), OPEN, dtype=np.int16)
    fusion = LabelFusion(
        "made", labels.outputs, labels.classes, posterior, labels.votes_of_tasks().astype(np.int32), known,
        posterior.mean(axis=0), Confusion(alpha, 1.0 + np.eye(classes, outputs)), DONE,
    )  # fmt: skip
    return labels, fusion


def specialists(tasks: int, annotators: int, classes: int, seed: int) -> tuple[Labels, LabelFusion]:
    """Annotators who each know some classes better than others."""
    rng = np.random.default_rng(seed)
    alpha = 1 + rng.gamma(0.5, 2, (annotators, classes, classes))
    alpha += np.eye(classes) * rng.gamma(0.5, 30, (annotators, classes))[:, :, None]
    votes = np.stack([rng.integers(0, tasks, 4 * tasks), rng.integers(0, annotators, 4 * tasks)], axis=1)
    return made(rng.dirichlet(np.full(classes, 0.3), tasks), alpha, votes)


def plainly(labels: Labels, fusion: LabelFusion, count: int) -> tuple[list[tuple[int, int]], list[float]]:
    """Try all pairs, take the best that is left again and again."""
    gain = expected_information(fusion.posterior, fusion.confusion.mean())
    gain[labels.task, labels.annotator] = -1.0
    most = usual_load(count, labels.votes_of_annotators(), gain.shape[1])
    pairs, values, requests = [], [], np.zeros(gain.shape[1], dtype=int)
    while len(pairs) < count and gain.max() > 1e-6:
        task, annotator = map(int, np.unravel_index(gain.argmax(), gain.shape))
        pairs.append((task, annotator))
        values.append(float(gain[task, annotator]))
        gain[task] = -1.0
        requests[annotator] += 1
        if requests[annotator] == most[annotator]:
            gain[:, annotator] = -1.0
    return pairs, values


def test_information_is_the_entropy_that_the_vote_takes_away() -> None:
    rng = np.random.default_rng(0)
    posterior, rates = rng.dirichlet(np.ones(3), 4), rng.dirichlet(np.ones(5), (2, 3))
    result = expected_information(posterior, rates)
    for i, k in np.ndindex(4, 2):
        joint = posterior[i][:, None] * rates[k]
        after = joint / joint.sum(axis=0)
        remains = sum(
            joint[:, output].sum() * -(after[:, output] @ np.log2(after[:, output])) for output in range(5)
        )
        assert result[i, k] == pytest.approx(-(posterior[i] @ np.log2(posterior[i])) - remains)


def test_a_perfect_annotator_gives_full_information_and_a_guessing_one_none() -> None:
    rates = np.stack([np.eye(2), np.full((2, 2), 0.5), np.eye(2)[::-1]])
    assert expected_information(np.array([[0.5, 0.5], [1.0, 0.0]]), rates) == pytest.approx(
        np.array([[1, 0, 1], [0, 0, 0]])  # one who is always wrong tells as much
    )


@pytest.mark.parametrize("seed", range(3))
def test_all_pairs_tried_would_give_the_same(seed: int) -> None:
    labels, fusion = specialists(300, 40, 3, seed)
    result = next_votes(labels, fusion, 50)
    pairs, values = plainly(labels, fusion, 50)
    assert list(zip(result.task.tolist(), result.annotator.tolist(), strict=True)) == pairs
    assert result.gain == pytest.approx(values)


def test_sifting_loses_next_to_nothing() -> None:
    labels, fusion = specialists(8_000, 120, 4, 5)
    result = next_votes(labels, fusion, 100)
    _, values = plainly(labels, fusion, 100)
    assert result.gain.sum() > 0.99 * sum(values)


@pytest.mark.parametrize("ordered", [1, 3, 10_000])
def test_the_votes_do_not_depend_on_how_many_tasks_are_sorted(monkeypatch, ordered: int) -> None:
    labels, fusion = specialists(3000, 25, 3, 1)
    fusion.posterior[500:900] = fusion.posterior[0]  # equally uncertain
    expected = next_votes(labels, fusion, 30)
    monkeypatch.setattr(active_learning, "_ORDERED", ordered)
    found = next_votes(labels, fusion, 30)
    np.testing.assert_array_equal(found.task, expected.task)
    np.testing.assert_array_equal(found.annotator, expected.annotator)


def test_no_annotator_gets_a_task_twice_or_all_tasks() -> None:
    labels, fusion = specialists(500, 60, 3, 9)
    result = next_votes(labels, fusion, 100)
    voted = set(zip(labels.task.tolist(), labels.annotator.tolist(), strict=True))
    assert not voted & set(zip(result.task.tolist(), result.annotator.tolist(), strict=True))
    assert len(np.unique(result.task)) == len(result) == 100
    share = labels.votes_of_annotators() / len(labels)
    assert (np.bincount(result.annotator, minlength=60) <= np.ceil(100 * np.maximum(share, 2 / 60))).all()
    assert (np.diff(result.gain) <= 1e-12).all()


def test_no_annotator_without_votes_is_named() -> None:
    labels, fusion = specialists(50, 5, 2, 1)
    assert 3 not in next_votes(labels.without({"a3"}), fusion, 20).annotator


def test_where_all_have_voted_a_new_annotator_is_proposed() -> None:
    votes = [(task, annotator, (task + annotator) % 2) for task in range(3) for annotator in range(2)]
    labels = crowd(votes, 3, ("a", "b"))
    result = next_votes(labels, majority(labels), 3)
    assert result.annotator.tolist() == [OPEN] * 3
    assert result.gain == pytest.approx(result.gain_of_new)


def test_what_is_known_needs_no_vote() -> None:
    votes = [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0), (2, 0, 1)]
    labels = crowd(votes, 4, ("a", "b"), known=np.array([0, OPEN, 1, OPEN]))
    result = next_votes(labels, ibcc(labels))
    assert sorted(result.task.tolist()) == [1, 3]  # a task without votes needs one, too


@pytest.mark.parametrize(
    "labels",
    [
        crowd([], 0, ("a", "b")),
        crowd([(0, 0, 0)], 1, ("only",)),
        crowd([(0, 0, 1)], 1, ("a", "b"), known=np.array([1])),
    ],
    ids=["nothing", "one output", "all known"],
)
def test_without_disputed_tasks_no_vote_is_proposed(labels: Labels) -> None:
    assert len(next_votes(labels, majority(labels))) == 0


def test_before_the_first_vote_a_new_annotator_is_proposed() -> None:
    labels = crowd([], 3, ("a", "b"))
    result = next_votes(labels, ibcc(labels))
    assert sorted(result.task.tolist()) == [0, 1, 2]
    assert result.annotator.tolist() == [OPEN] * 3


def test_it_can_be_cancelled() -> None:
    def stop(*_: object, **__: object) -> None:
        raise Cancelled

    labels, fusion = specialists(50, 5, 2, 1)
    with pytest.raises(Cancelled):
        next_votes(labels, fusion, watch=stop)
