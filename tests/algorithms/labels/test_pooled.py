"""Pooled consensus: calibration of correlated votes, decided tasks, unvoted classes, awkward crowds."""

import functools
from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.labels import crowd_votes
from raterscope.algorithms.labels.assessment import assess
from raterscope.algorithms.labels.data import OPEN, Labels
from raterscope.algorithms.labels.fusion import LabelPlan, exclude_unvoted, run, unvoted_tasks
from raterscope.algorithms.labels.hierarchical import _peak
from raterscope.algorithms.labels.ibcc import ibcc
from raterscope.algorithms.labels.pooled import PooledSettings, pooled
from raterscope.algorithms.labels.voting import majority
from raterscope.algorithms.progress import Cancelled


def make(
    seed: int,
    classes: int = 3,
    tasks: int = 400,
    each: int = 5,
    annotators: int = 30,
    lookalike: float = 0.25,
) -> tuple[Labels, np.ndarray]:
    """Simulate a crowd in which some tasks look like another class to most annotators."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, tasks).astype(np.int16)
    apparent = truth.copy()
    hard = rng.random(tasks) < lookalike
    apparent[hard] = rng.integers(0, classes, int(hard.sum()))
    annotator = np.concatenate([rng.choice(annotators, each, replace=False) for _ in range(tasks)])
    task = np.repeat(np.arange(tasks), each)
    skill = rng.uniform(0.55, 0.95, annotators)
    visible = np.where(rng.random(len(task)) < 0.8, apparent[task], truth[task])
    wrong = rng.random(len(task)) > skill[annotator]
    label = np.where(wrong, (visible + rng.integers(1, max(2, classes), len(task))) % classes, visible)
    names = tuple(f"class {j}" for j in range(classes))
    return Labels(
        task,
        annotator,
        label,
        tuple(map(str, range(tasks))),
        tuple(map(str, range(annotators))),
        names,
        names,
    ), truth


def of_votes(rows, tasks, classes, **options):
    task, annotator, label = np.array(rows, dtype=int).reshape(-1, 3).T
    names = tuple(f"class {j}" for j in range(classes))
    count = max([2, *(annotator + 1)])
    return Labels(
        task,
        annotator,
        label,
        tuple(map(str, range(tasks))),
        tuple(map(str, range(count))),
        names,
        names,
        **options,
    )


def weak(seed: int, classes: int, each: int) -> tuple[Labels, np.ndarray]:
    """Simulate annotators who see each class faintly, and prefer classes of their own."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, 600).astype(np.int16)
    task = np.repeat(np.arange(600), each)
    annotator = rng.choice(40, 600 * each, p=rng.dirichlet(np.ones(40)))
    strength = np.clip(rng.normal(0.33, 0.3, 40), 0.05, None) * (2.2 + 0.35 * np.log(classes))
    seen = np.eye(classes)[truth[task]] * strength[annotator, None]
    seen += rng.normal(0, 0.4, (40, classes))[annotator] + rng.gumbel(size=(len(task), classes))
    return of_votes(np.stack([task, annotator, seen.argmax(axis=1)], axis=1), 600, classes), truth


@pytest.mark.parametrize(("classes", "each"), [(2, 3), (4, 5), (12, 3)])
def test_consensus_of_votes_hardly_better_than_chance_stays_near_the_vote(classes, each):
    labels, truth = weak(0, classes, each)
    ours, vote = (assess(method(labels).posterior, truth, labels.classes) for method in (pooled, majority))
    assert ours.accuracy > vote.accuracy - 0.015
    assert ours.log_loss < np.log(classes)


@pytest.mark.parametrize(("classes", "each"), [(2, 10), (2, 3), (4, 5)])
def test_consensus_departs_from_votes_of_which_most_are_the_same_to_everything(classes, each):
    """12 of 20 annotators always give the first class, the others are right in four of five tasks."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, classes, 400)
    task = np.repeat(np.arange(400), each)
    annotator = np.concatenate([rng.choice(20, each, replace=False) for _ in range(400)])
    right = (annotator >= 12) & (rng.random(len(task)) < 0.8)
    label = np.where(right, truth[task], np.where(annotator < 12, 0, rng.integers(0, classes, len(task))))
    labels = of_votes(np.stack([task, annotator, label], axis=1), 400, classes)
    ours, vote = (assess(method(labels).posterior, truth, labels.classes) for method in (pooled, majority))
    assert ours.accuracy > vote.accuracy + 0.15


@pytest.mark.parametrize("classes", [2, 5])
def test_probabilities_are_right_as_often_as_they_claim_where_votes_are_correlated(classes):
    ours, theirs, votes = [], [], []
    for seed in range(3):
        labels, truth = make(seed, classes)
        for method, result in ((pooled, ours), (ibcc, theirs), (majority, votes)):
            result.append(assess(method(labels).posterior, truth, labels.classes))
    error, worse = (np.mean([assessment.calibration.error for assessment in each]) for each in (ours, theirs))
    assert error < 0.09
    assert error < worse - 0.02
    assert np.mean([item.log_loss for item in ours]) < np.mean([item.log_loss for item in theirs])
    assert (
        np.mean([assessment.accuracy for assessment in ours])
        > np.mean([vote.accuracy for vote in votes]) - 0.005
    )


@functools.cache
def undecided(seed):
    """Simulate a crowd and fuse it without decisions."""
    labels, truth = make(seed)
    return labels, truth, pooled(labels)


@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("count", [1, 30])
def test_decisions_on_the_most_disputed_tasks_do_not_harm_the_others(count, wrong):
    before, after, crossed = [], [], []
    for seed in range(2):
        labels, truth, first = undecided(seed)
        decided = np.argsort(-first.entropy(), kind="stable")[:count]
        known = np.full(len(truth), OPEN, dtype=np.int16)
        known[decided] = truth[decided]
        if wrong:  # one decision in five
            known[decided[::5]] = (truth[decided[::5]] + 1) % len(labels.classes)
        second = pooled(replace(labels, known=known))
        assert (second.label()[decided] == known[decided]).all()
        others = np.flatnonzero(known == OPEN)
        judged = np.where(known == OPEN, truth, OPEN).astype(np.int16)
        for fusion, result in ((first, before), (second, after)):
            result.append(assess(fusion.posterior, judged, labels.classes).log_loss)
        was, now = (fusion.posterior[others, truth[others]] for fusion in (first, second))
        crossed.append(((was > 0.5) & (now <= 0.5)).mean())
    assert np.mean(after) <= np.mean(before) * 1.01
    assert np.mean(crossed) <= 0.01


def test_a_class_that_no_annotator_chose_is_not_the_consensus_without_cases():
    labels, _ = make(5, classes=6, tasks=300, annotators=60)
    for name in ("ibcc", "dawid-skene", "gibbs", "pooled"):
        fusion = run(labels, LabelPlan.make(name, {"communities": "no"}))
        kept = unvoted_tasks(labels, fusion)
        notices = " ".join(fusion.notices)
        assert ("a class without votes on that task" in notices) == bool(len(kept))
        assert (fusion.posterior[kept].max(axis=1) >= 0.8).all()
        assert fusion.posterior.sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize(("cases", "stays"), [(4, True), (2, False)])
def test_a_class_that_no_annotator_chose_is_the_consensus_where_cases_show_what_votes_mean(cases, stays):
    rows = [(i, k, 0) for i in range(cases) for k in range(4)]  # known to be class 1, as nobody says
    rows += [(cases, k, 0) for k in range(4)]
    known = np.append(np.ones(cases), OPEN).astype(np.int16)
    labels = of_votes(rows, cases + 1, 2, known=known)
    fusion = ibcc(labels)
    posterior = fusion.posterior.copy()
    posterior[cases] = (0.1, 0.9)
    judged = exclude_unvoted(labels, replace(fusion, posterior=posterior))
    assert (judged.label()[cases] == 1) == stays
    assert ("a class without votes on that task" in judged.notices[-1]) == stays
    weak = posterior.copy()
    weak[cases] = (0.3, 0.7)
    barred = exclude_unvoted(labels, replace(fusion, posterior=weak))
    assert barred.label()[cases] == 0
    assert barred.posterior[cases] == pytest.approx(0.5, abs=1e-5)
    assert "not supported" in barred.notices[-1]


def test_awkward_crowds_have_an_answer():
    empty = pooled(of_votes([], 0, 2))
    assert empty.posterior.shape == (0, 2)
    silent = pooled(of_votes([], 3, 2, known=np.array([1, OPEN, 1])))
    assert silent.posterior[0].tolist() == [0.0, 1.0]
    alone = pooled(of_votes([(0, 0, 0), (1, 0, 1), (1, 0, 1)], 2, 3))
    assert alone.label().tolist() == [0, 1]
    single = pooled(of_votes([(0, 0, 0), (0, 1, 0)], 1, 1))
    assert single.posterior.tolist() == [[1.0]]
    task, annotator = np.repeat(np.arange(20), 4), np.tile(np.arange(4), 20)
    label = np.where(task % 2 == 0, annotator % 2, 2)  # two outputs stand for the first class, one for none
    label[::16] = 3
    mapped = Labels(
        task, annotator, label, tuple(map(str, range(20))), tuple("abcd"), tuple("wxyz"),
        ("yes", "no", "never"),
        meaning=np.array([0, 0, 1, OPEN]),
    )  # fmt: skip
    fusion = pooled(mapped)
    assert (fusion.label() == np.arange(20) % 2).all()
    assert np.isfinite(fusion.confusion.alpha).all()
    assert fusion.confusion.alpha.shape == (4, 3, 4)
    prior = np.array([[1.0, 9.0], [9.0, 1.0]])  # votes mean the other class
    rows = [(t, k, t % 2) for t in range(20) for k in range(4)]
    turned = pooled(of_votes(rows, 20, 2, prior=prior))
    assert np.isfinite(turned.posterior).all()


def test_the_same_votes_give_the_same_bits_and_the_order_of_tasks_hardly_matters():
    labels, _ = make(3)
    first, second = pooled(labels), pooled(labels)
    assert (first.posterior == second.posterior).all()
    turn = np.random.default_rng(0).permutation(len(labels.tasks))
    moved = pooled(replace(labels, task=turn[labels.task]))
    assert moved.posterior[turn] == pytest.approx(first.posterior, abs=1e-3)


def test_many_votes_a_task_do_not_underflow():
    rng = np.random.default_rng(0)
    rows = [(t, k, (t + (rng.random() < 0.3)) % 2) for t in range(20) for k in range(300)]
    fusion = pooled(of_votes(rows, 20, 2))
    assert np.isfinite(fusion.posterior).all()
    assert (fusion.label() == np.arange(20) % 2).all()


def test_a_fit_that_does_not_converge_has_a_notice():
    labels, _ = make(1)
    assert "Did not converge in 2 iterations" in pooled(labels, PooledSettings(iterations=2)).notices[0]
    assert not pooled(labels).notices


def test_it_is_cancelled_and_shows_partial_results():
    labels, _ = make(1)
    calls = []

    def watch(fraction, words, *, objective=None, partial=None):
        assert not calls or fraction >= calls[-1][0]
        calls.append((fraction, partial))
        if len(calls) > 20 and partial is not None:
            raise Cancelled

    with pytest.raises(Cancelled):
        pooled(labels, watch=watch)
    assert calls[-1][1]().posterior.sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize(("classes", "known"), [(3, 0), (8, 40)])
def test_a_large_crowd_has_the_same_answer_from_fits_to_a_part_of_it(monkeypatch, classes, known):
    labels, truth = make(2, classes, tasks=800)
    decided = np.where(np.arange(len(truth)) < known, truth, OPEN).astype(np.int16)
    labels = replace(labels, known=decided)
    whole = pooled(labels)
    monkeypatch.setattr(crowd_votes, "LARGE", 4_000)
    monkeypatch.setattr(crowd_votes, "_SAMPLE", 2_500)
    large = pooled(labels)
    assert (large.posterior != whole.posterior).any()  # a part was used
    assert np.abs(large.posterior - whole.posterior).sum(axis=1).mean() < 0.03
    assert (large.label() == whole.label()).mean() > 0.995
    assert large.posterior.sum(axis=1) == pytest.approx(1.0)
    first, second = (pooled(labels, PooledSettings(correlation=0.0)) for _ in range(2))  # no simulated crowds
    assert (first.posterior == second.posterior).all()


@pytest.mark.parametrize(
    ("classes", "weighted"), [*((classes, False) for classes in range(2, 8)), (3, True), (7, True)]
)
def test_counting_the_votes_of_a_large_crowd_by_pair_changes_nothing_but_rounding(
    monkeypatch, classes, weighted
):
    """Each number of classes to six, and weights, have kernels of their own."""
    labels, truth = make(2, classes, tasks=400)
    known = np.where(np.arange(400) < 20, truth, OPEN).astype(np.int16)
    labels = replace(labels, known=known, weights=np.linspace(0.3, 1.0, 30) if weighted else None)
    monkeypatch.setattr(crowd_votes, "LARGE", 4_000)
    monkeypatch.setattr(crowd_votes, "_SAMPLE", 2_000)
    settings = PooledSettings(correlation=0.0)  # without simulated crowds
    answers = []
    for tasks_of_pair in (0, 10**6):
        monkeypatch.setattr(crowd_votes, "_TASKS_OF_PAIR", tasks_of_pair)
        answers.append(pooled(labels, settings).posterior)
    assert answers[1] == pytest.approx(answers[0], abs=1e-4)


@pytest.mark.parametrize("peak", [(0, 3), (2, 9), (6, 21), (6, 22)])
@pytest.mark.parametrize("begin", [(0, 0), (3, 8), (6, 22)])
def test_a_distant_peak_of_a_grid_is_found_in_few_steps(begin, peak):
    scored = []

    def score(point):
        scored.append(point)
        return -sum((at - top) ** 2 for at, top in zip(point, peak, strict=True))

    assert _peak(score, begin, (7, 23)) == peak
    assert len(scored) == len(set(scored)) < 40
