"""Dawid and Skene's model beside a plain implementation and crowd-kit's figures."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.labels.data import OPEN, Labels
from raterscope.algorithms.labels.ibcc import DawidSkeneSettings, dawid_skene
from raterscope.algorithms.progress import Cancelled
from tests.algorithms.labels.test_ibcc import scattered
from tests.algorithms.labels.test_voting import crowd, names, read

CROWD_KIT = {
    "bluebirds": (2, 0.8889),
    "rte": (9, 0.9275),
    "dog": (14, 0.8426),
    "cf_amt": (2, 0.8400),
    "sp_amt": (5, 0.9440),
    "product": (80, 0.9397),
    "adult2": (2, 0.7658),
}
"""After how many iterations crowd-kit 1.4 stops, and its accuracy."""


def plain(labels: Labels, iterations: int) -> tuple[np.ndarray, list[float]]:
    """Return the posterior and the log likelihoods, vote by vote."""
    posterior = np.zeros((len(labels.tasks), len(labels.classes)))
    np.add.at(posterior, (labels.task, labels.label), 1.0)
    posterior /= posterior.sum(axis=1, keepdims=True)
    likelihoods = []
    for _ in range(iterations):
        rates = np.full((len(labels.annotators), len(labels.classes), len(labels.outputs)), 1e-10)
        np.add.at(rates.transpose(0, 2, 1), (labels.annotator, labels.label), posterior[labels.task])
        rates /= rates.sum(axis=2, keepdims=True)
        joint = np.tile(np.log(posterior.mean(axis=0)), (len(posterior), 1))
        np.add.at(joint, labels.task, np.log(rates[labels.annotator, :, labels.label]))
        evidence = np.logaddexp.reduce(joint, axis=1)
        likelihoods.append(float(evidence.sum()))
        posterior = np.exp(joint - evidence[:, None])
    return posterior, likelihoods


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_it_equals_a_plain_implementation_step_by_step(classes):
    labels, _ = scattered(classes, outputs=classes, classes=classes, votes=400)
    expected, likelihoods = plain(labels, 9)
    fusion = dawid_skene(labels, DawidSkeneSettings(iterations=9, tolerance=0.0))
    assert fusion.posterior == pytest.approx(expected, abs=1e-7)
    assert fusion.trace.objective == pytest.approx(likelihoods, abs=1e-5)
    assert fusion.trace.name == "log-likelihood"


@pytest.mark.parametrize("smoothing", [1e-10, 0.5])
@pytest.mark.parametrize("seed", range(4))
def test_the_likelihood_never_falls(seed, smoothing):
    labels, _ = scattered(seed, classes=2 + seed % 2, meaning=np.array([0, 1, 1 + seed % 2]))
    objective = dawid_skene(labels, DawidSkeneSettings(smoothing=smoothing)).trace.objective
    assert len(objective) > 3
    assert (np.diff(objective) >= -1e-12 * np.abs(objective[1:])).all()


@pytest.mark.parametrize("name", CROWD_KIT)
def test_real_crowds_come_out_as_from_crowd_kit(real_data, name):
    labels, truth = read(real_data, name)
    iterations, accuracy = CROWD_KIT[name]
    fusion = dawid_skene(labels, DawidSkeneSettings(iterations=iterations, tolerance=0.0))
    scored = truth != OPEN
    assert (fusion.label() == truth)[scored].mean() == pytest.approx(accuracy, abs=0.002)
    objective = dawid_skene(labels).trace.objective
    assert (np.diff(objective) >= -1e-12 * np.abs(objective[1:])).all()


def test_rates_are_shares_of_the_votes():
    """With every task known, the rates are what was counted."""
    labels, truth = scattered(0, votes=2_000)
    fusion = dawid_skene(replace(labels, known=truth))
    counts = np.zeros((7, 3, 3))
    np.add.at(counts, (labels.annotator, truth[labels.task], labels.label), 1)
    assert fusion.confusion.mean() == pytest.approx(counts / counts.sum(axis=2, keepdims=True))
    assert fusion.shares == pytest.approx(np.bincount(truth, minlength=3) / 40)


def test_an_unseen_class_a_silent_annotator_and_a_task_without_votes():
    labels = crowd([(t, k, t % 2) for t in range(6) for k in range(3)], 7, ("a", "b", "c"))
    fusion = dawid_skene(replace(labels, annotators=names("a", 4)))
    assert fusion.posterior[:6] == pytest.approx(np.eye(3)[np.arange(6) % 2], abs=1e-9)
    assert fusion.posterior[6] == pytest.approx([0.5, 0.5, 0.0], abs=1e-9)
    assert fusion.confusion.mean()[3] == pytest.approx(1 / 3)
    assert np.isfinite(fusion.trace.objective).all()
    notices = " ".join(fusion.notices)
    assert "1 task has no votes" in notices
    assert "1 annotator has no votes" in notices
    assert "1 class: c" in notices


def test_outputs_that_stand_for_nothing_do_not_break_it():
    labels = crowd([(0, 0, 2), (1, 0, 0), (1, 1, 1)], 2, ("a", "b", "?"), classes=("a", "b"),
                   meaning=np.array([0, 1, OPEN]))  # fmt: skip
    fusion = dawid_skene(labels)
    assert fusion.posterior.sum(axis=1) == pytest.approx(1)


def test_nothing_to_fuse():
    assert dawid_skene(crowd([], 0, ("a", "b"))).posterior.shape == (0, 2)
    assert dawid_skene(crowd([], 2, ("a", "b"))).posterior == pytest.approx(0.5)


def test_it_reports_when_it_did_not_converge_and_can_be_cancelled():
    labels, _ = scattered(0)
    fusion = dawid_skene(labels, DawidSkeneSettings(iterations=1))
    assert any("converge in 1 iteration:" in notice for notice in fusion.notices)

    def watch(fraction, words, **_):
        if "iteration 2" in words:
            raise Cancelled

    with pytest.raises(Cancelled):
        dawid_skene(labels, watch=watch)
