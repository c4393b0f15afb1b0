"""Dynamic IBCC: against the static model, and on crowds that are awkward."""

import numpy as np
import pytest

from raterscope.algorithms import progress
from raterscope.algorithms.labels import LabelFusion, Labels, LabelsError, dynamic
from raterscope.algorithms.labels.dynamic import DynamicSettings, dynibcc
from raterscope.algorithms.labels.ibcc import IBCCSettings, ibcc
from raterscope.algorithms.progress import Cancelled
from tests.algorithms.labels.crowds import crowd, make

FORMS = ("scalar", "paper")


def test_without_drift_it_is_the_static_model():
    # Where all agree, no vote raises any variance: there is no noise, though the classes are doubtful.
    truth = np.arange(12) % 2
    task, annotator = np.repeat(np.arange(12), 4), np.tile(np.arange(4), 12)
    labels = make(task, annotator, truth[task])
    first = dynibcc(labels, DynamicSettings(tolerance=1e-13))
    two = ibcc(labels, IBCCSettings(tolerance=1e-13))
    np.testing.assert_allclose(first.posterior, two.posterior, atol=1e-11)
    np.testing.assert_allclose(first.confusion.alpha, two.confusion.alpha, rtol=1e-10)
    np.testing.assert_allclose(first.shares, two.shares, rtol=1e-11)
    for k in range(4):  # the same at every step
        steps = first.drift.alpha[first.drift.steps(k)]
        np.testing.assert_allclose(steps, np.broadcast_to(two.confusion.alpha[k], steps.shape), rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_known_classes_without_drift_give_counts(form):
    truth = np.arange(9) % 3
    labels = make(range(9), [0] * 9, truth, 3, known=truth)
    fusion = dynibcc(labels, DynamicSettings(form=form))
    np.testing.assert_allclose(fusion.confusion.alpha[0], np.ones((3, 3)) + 4 * np.eye(3), rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_time_decides_the_order(form):
    labels = crowd()
    rng = np.random.default_rng(2)
    mixed = rng.permutation(len(labels))
    times = np.arange(len(labels), dtype=float)
    shuffled = Labels(
        labels.task[mixed], labels.annotator[mixed], labels.label[mixed], labels.tasks, labels.annotators,
        labels.outputs, labels.classes, time=times[mixed],
    )  # fmt: skip
    settings = DynamicSettings(form=form)
    first, two = dynibcc(labels, settings), dynibcc(shuffled, settings)
    np.testing.assert_allclose(first.posterior, two.posterior, atol=1e-6)
    np.testing.assert_array_equal(shuffled.task[two.drift.vote], labels.task[first.drift.vote])
    other = dynibcc(Labels(*(getattr(shuffled, name) for name in (
        "task", "annotator", "label", "tasks", "annotators", "outputs", "classes"))), settings)  # fmt: skip
    assert np.abs(other.drift.alpha - first.drift.alpha).max() > 0.01


def test_repeated_votes_all_count():
    labels = crowd(tasks=20)
    twice = np.concatenate([np.arange(len(labels))] * 2)
    doubled = Labels(
        labels.task[twice], labels.annotator[twice], labels.label[twice], labels.tasks, labels.annotators,
        labels.outputs, labels.classes,
    )  # fmt: skip
    fusion = dynibcc(doubled)
    assert len(fusion.drift.alpha) == 2 * len(labels)
    np.testing.assert_array_equal(fusion.votes, 12)


@pytest.mark.parametrize("form", FORMS)
def test_the_same_bits_whatever_the_number_of_threads(form, monkeypatch):
    labels = crowd(tasks=2000, annotators=10)
    monkeypatch.setattr(dynamic, "_WORK", 5000)
    monkeypatch.setattr(dynamic, "_TASKS", 300)
    result = []
    for threads in (1, 3):
        monkeypatch.setattr(progress, "THREADS", threads)
        result.append(dynibcc(labels, DynamicSettings(form=form, iterations=4)))
    np.testing.assert_array_equal(result[0].posterior, result[1].posterior)
    np.testing.assert_array_equal(result[0].drift.alpha, result[1].drift.alpha)


def test_a_run_that_did_not_converge_has_a_notice():
    fusion = dynibcc(crowd(), DynamicSettings(iterations=2))
    assert not fusion.trace.converged
    assert len(fusion.trace.objective) == 0
    (notice,) = fusion.notices
    assert f"{fusion.trace.change[-1]:.2g}" in notice
    assert "2 iterations" in notice
    assert not dynibcc(crowd()).notices


def test_a_crowd_that_changes_sides_without_truths_is_warned_of():
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 800)
    task, annotator = np.repeat(np.arange(800), 5), np.tile(np.arange(5), 800)
    right = rng.random(len(task)) < np.where((annotator < 3) & (task >= 400), 0.2, 0.9)
    label = np.where(right, truth[task], 1 - truth[task])
    fusion = dynibcc(make(task, annotator, label))
    assert any("Decide some tasks" in notice for notice in fusion.notices)
    known = np.where(np.arange(800) % 4 == 0, truth, -1)
    informed = dynibcc(make(task, annotator, label, known=known))
    assert not informed.notices
    assert (informed.label() == truth).mean() > 0.9 > (fusion.label() == truth).mean()
    steady = np.where(rng.random(len(task)) < 0.8, truth[task], 1 - truth[task])
    assert not dynibcc(make(task, annotator, steady)).notices


def test_cancelling_goes_through():
    def watch(fraction, words, **_):
        if "iteration 3" in words:
            raise Cancelled

    with pytest.raises(Cancelled):
        dynibcc(crowd(), watch=watch)


def test_progress_never_falls():
    calls = []
    dynibcc(crowd(), watch=lambda fraction, words, **_: calls.append(fraction))
    assert calls == sorted(calls)
    assert calls[0] == 0.0
    assert calls[-1] == 1.0


def test_too_many_matrices_are_refused():
    labels = make([0], [0], [0], 20_000)
    with pytest.raises(LabelsError, match="does not fit"):
        dynibcc(labels)


AWKWARD = {
    "no votes": make([], [], [], 3),
    "a single vote": make([0], [0], [1]),
    "no class but one": make([0, 1, 1], [0, 0, 1], [0, 1, 1], 1, 2, meaning=[0, -1]),
    "one output": make([0, 1, 1], [0, 0, 1], [0, 0, 0], 2, 1, meaning=[1]),
    "all equal": make(list(range(8)) * 2, [0] * 8 + [1] * 8, [0] * 16, 3),
    "repeats": make([0] * 30, [0] * 30, [0, 1] * 15),
    "more outputs": make([0, 1, 2, 0, 1], [0, 0, 0, 1, 1], [0, 1, 2, 3, 1], 2, 4, meaning=[0, 1, 1, -1]),
    "fewer outputs": make([0, 1, 2], [0, 0, 1], [0, 1, 1], 4, 2, meaning=[3, 0]),
    "times unknown": make([0, 1, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1], time=[np.nan, 1.0, 5.0, 5.0]),
    "voteless": make([4, 4], [3, 1], [0, 1]),
}  # fmt: skip


def check_finite(labels: Labels, fusion: LabelFusion) -> None:
    for values in (fusion.posterior, fusion.shares, fusion.confusion.alpha, fusion.drift.alpha):
        assert np.isfinite(values).all()
    np.testing.assert_allclose(fusion.posterior.sum(axis=1), 1.0)
    assert (fusion.confusion.alpha > 0).all()
    assert (fusion.drift.alpha > 0).all()
    np.testing.assert_array_equal(np.sort(fusion.drift.vote), np.arange(len(labels)))
    np.testing.assert_array_equal(np.diff(fusion.drift.start), labels.votes_of_annotators())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_crowds(name, form):
    labels = AWKWARD[name]
    fusion = dynibcc(labels, DynamicSettings(form=form))
    check_finite(labels, fusion)
    voteless = labels.votes_of_annotators() == 0
    assert (fusion.confusion.alpha[voteless] == fusion.confusion.prior).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("strength", [1e-6, 1e8])
def test_extreme_priors(strength, form):
    labels = crowd(tasks=30)
    for accuracy in (None, 1e-6, 0.999999):
        settings = DynamicSettings(form=form, prior_strength=strength, prior_accuracy=accuracy, iterations=20)
        check_finite(labels, dynibcc(labels, settings))
    assert labels.prior is None


@pytest.mark.parametrize("step", [1, 700, 10**6])
def test_each_annotator_is_in_one_piece_of_the_work(step):
    """Two threads at the same annotator would write over each other."""
    work = np.cumsum([5000, 1, 1, 3000, 2, 600, 400, 1])
    pieces = dynamic._pieces(work, step)
    assert [at for first, end in pieces for at in range(first, end)] == list(range(len(work)))
