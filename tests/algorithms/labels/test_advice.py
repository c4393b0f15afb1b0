"""Advice against the model in favour of the vote, only where it is justified."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from raterscope.algorithms.labels.assessment import advice, assess
from raterscope.algorithms.labels.data import LabelFusion, Labels
from raterscope.algorithms.labels.ibcc import dawid_skene, ibcc
from raterscope.algorithms.labels.pooled import pooled
from raterscope.algorithms.labels.rates import rates_of
from raterscope.algorithms.labels.tempering import choose_tempering
from raterscope.algorithms.labels.voting import majority
from tests.algorithms.labels.test_voting import METHODS, crowd, names, read


def simulated(
    tasks: int, annotators: int, each: int, classes: int, right: np.ndarray, seed: int = 0
) -> tuple[Labels, np.ndarray]:
    """`each` random annotators a task; `right` (A, T) is how often an annotator is right on a task."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, tasks)
    annotator = np.argsort(rng.random((tasks, annotators)), axis=1)[:, :each].ravel()
    task = np.repeat(np.arange(tasks), each)
    error = (truth[task] + rng.integers(1, max(2, classes), len(task))) % classes
    label = np.where(rng.random(len(task)) < right[annotator, task], truth[task], error)
    kinds = names("c", classes)
    labels = Labels(task, annotator, label, names("t", tasks), names("a", annotators), kinds, kinds)
    return labels, truth.astype(np.int16)


def pathologists(seed: int) -> tuple[Labels, np.ndarray]:
    """Four who see all of 130 tasks of 18 classes; what is hard for one is hard for all."""
    hard = np.random.default_rng(seed).beta(6, 1.5, 130)
    return simulated(130, 4, 4, 18, np.tile(hard, (4, 1)), seed)


def notices_of(labels: Labels, truth: np.ndarray, fusion: LabelFusion | None = None) -> tuple[str, ...]:
    fusion = fusion or ibcc(labels)
    model, vote = (
        assess(detection.posterior, truth, detection.classes) for detection in (fusion, majority(labels))
    )
    return advice(labels, fusion, model, vote, choose_tempering(labels, fusion))


def test_no_notice_for_a_crowd_that_the_model_suits() -> None:
    right = np.random.default_rng(0).uniform(0.6, 0.95, (20, 1)) * np.ones(600)
    assert notices_of(*simulated(600, 20, 8, 3, right)) == ()


@pytest.mark.parametrize("name", ["rte", "web"])
def test_a_model_that_is_too_sure_is_warned_of(real_data: Path, name: str) -> None:
    """Mean probabilities of 0.99 and 0.91 where 0.93 and 0.80 are right, though votes seem independent."""
    labels, truth = read(real_data, name)
    fusion = ibcc(labels)
    assert any(
        sentences.startswith("The model is overconfident: its mean probability is 9")
        for sentences in notices_of(labels, truth, fusion)
    )
    assert advice(labels, fusion)[0].startswith("IBCC may be overconfident")


@pytest.mark.parametrize("name", ["bluebirds", "sp_amt"])
def test_a_crowd_with_shared_errors_is_reported(real_data: Path, name: str) -> None:
    """Against the truth the model's log loss is 1.5 and 1.1, the vote's 0.5 and 0.2."""
    assert any("Annotators share mistakes" in sentences for sentences in notices_of(*read(real_data, name)))


def test_few_votes_for_each_class_are_reported_of_a_real_crowd(real_data: Path) -> None:
    """The pooled consensus that is advised is nearly as right, and far less often sure and wrong."""
    labels, truth = read(real_data, "adult2")
    fusion = ibcc(labels)
    sentences = " ".join(notices_of(labels, truth, fusion))
    assert "votes for each class" in sentences
    assert "the pooled consensus, which estimates the prior" in sentences
    assert "The model is overconfident" in sentences
    model, advised = (assess(item.posterior, truth, labels.classes) for item in (fusion, pooled(labels)))
    assert model is not None
    assert advised is not None
    assert advised.accuracy > model.accuracy - 0.01
    assert advised.log_loss < model.log_loss / 2


def test_an_underconfident_consensus_needs_truths(real_data: Path) -> None:
    """Of web, 0.70 on average where 0.82 are right."""
    labels, truth = read(real_data, "web")
    fusion = pooled(labels)
    model, vote = (
        assess(detection.posterior, truth, labels.classes) for detection in (fusion, majority(labels))
    )
    assert any(
        sentence.startswith("The model is underconfident: ")
        for sentence in advice(labels, fusion, model, vote)
    )


def test_few_annotators_with_many_classes_are_reported() -> None:
    labels, _ = pathologists(1)
    sentences = advice(labels, ibcc(labels))
    assert "there are 4 annotators" in sentences[1]
    assert "Try the pooled consensus" in sentences[1]
    assert "pooled consensus" not in " ".join(advice(labels, pooled(labels)))


@pytest.mark.parametrize("each", [1, 2])
def test_few_votes_a_task_are_reported(each: int) -> None:
    labels, _ = simulated(600, 20, each, 2, np.full((20, 600), 0.8))
    sentences = advice(labels, ibcc(labels))
    assert any(f"no more than {each} vote" in sentence for sentence in sentences)
    assert any("their intervals are 0 to 1" in sentence for sentence in sentences) == (each == 1)
    enough, _ = simulated(600, 20, 5, 2, np.full((20, 600), 0.8))
    assert len(advice(enough, ibcc(enough))) == 1


def test_annotators_who_change_are_reported_and_steady_ones_are_not() -> None:
    right = np.full((20, 1500), 0.85)
    right[5:, 750:] = 0.4  # tasks come in order: three in four tire
    labels, _ = simulated(1500, 20, 6, 3, right)
    assert any(sentence.startswith("Annotators change") for sentence in advice(labels, ibcc(labels)))
    steady, _ = simulated(
        1500, 20, 6, 3, np.random.default_rng(1).uniform(0.5, 0.95, (20, 1)) * np.ones(1500)
    )
    assert not any(sentence.startswith("Annotators change") for sentence in advice(steady, ibcc(steady)))


def test_classes_that_changed_places_are_reported() -> None:
    """A prior assumes that all annotators are wrong; a known truth resolves it."""
    right = np.full((9, 300), 0.8)
    labels, truth = simulated(300, 9, 9, 2, right)
    liars = np.array([[2.0, 8.0], [8.0, 2.0]])
    turned = Labels(
        labels.task, labels.annotator, labels.label, labels.tasks, labels.annotators, labels.outputs,
        labels.classes, prior=liars,
    )  # fmt: skip
    fusion = ibcc(turned)
    assert (fusion.label() == truth).mean() < 0.1
    assert any("may have swapped" in sentence for sentence in advice(turned, fusion))
    assert not any("may have swapped" in sentence for sentence in advice(labels, ibcc(labels)))


def test_a_vote_that_is_better_beyond_chance_is_reported() -> None:
    labels, truth = simulated(400, 9, 9, 2, np.full((9, 400), 0.8))
    fusion = ibcc(labels)
    vote = assess(majority(labels).posterior, truth, labels.classes)
    wrong = fusion.posterior.copy()
    wrong[::5] = wrong[::5, ::-1]
    sentences = advice(labels, fusion, assess(wrong, truth, labels.classes), vote)
    assert any(sentence.startswith("The majority vote is right more often") for sentence in sentences)
    assert any("The model is overconfident" in sentence for sentence in sentences)
    assert advice(labels, fusion, assess(fusion.posterior, truth, labels.classes), vote) == ()


@pytest.mark.parametrize("method", METHODS)
def test_votes_are_not_warned_against(method: object) -> None:
    labels, _ = pathologists(0)
    assert advice(labels, method(labels)) == ()  # type: ignore[operator]


@pytest.mark.parametrize("method", [ibcc, dawid_skene])
@pytest.mark.parametrize(
    "labels",
    [
        crowd([], 0, ("a", "b")),
        crowd([], 3, ("a", "b")),
        crowd([(0, 0, 0), (1, 1, 0)], 2, ("only",)),
        crowd([(0, 0, 1)], 1, ("a", "b"), known=np.array([1])),
        crowd([(0, 0, 1), (1, 5, 1)], 2, ("x", "y"), classes=("a", "b", "c"), meaning=np.array([2, -1])),
    ],
    ids=["nothing", "no votes", "one output", "all known", "more classes than outputs"],
)
def test_odd_crowds_are_advised_without_a_warning(method: object, labels: Labels) -> None:
    assert all("nan" not in sentence for sentence in advice(labels, method(labels)))  # type: ignore[operator]


def test_decisions_are_proposed_where_accuracies_are_uncertain() -> None:
    """The width with these decisions is as announced; where tasks are clear, nothing is proposed."""
    right = np.random.default_rng(1).uniform(0.55, 0.9, (20, 1)) * np.ones(800)
    labels, truth = simulated(800, 20, 3, 3, right)
    fusion = pooled(labels)
    (sentence,) = advice(labels, fusion, rates=rates_of(labels, fusion))
    before, expected = (float(words[:4]) for words in sentence.split("\N{PLUS-MINUS SIGN}")[1:])
    known = np.full(800, -1, dtype=np.int16)
    chosen = np.random.default_rng(2).choice(800, 50, replace=False)
    known[chosen] = truth[chosen]
    judged = replace(labels, known=known)
    low, high = rates_of(judged, pooled(judged)).together(np.arange(20)).accuracy_interval()
    assert (high - low)[0] / 2 == pytest.approx(expected, rel=0.35)
    assert expected < 0.75 * before
    clear, _ = simulated(800, 20, 9, 3, np.full((20, 800), 0.85))
    assert advice(clear, pooled(clear), rates=rates_of(clear, pooled(clear))) == ()
