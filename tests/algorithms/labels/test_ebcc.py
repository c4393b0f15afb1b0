"""EBCC: the lower bound, held tasks, subtypes, and limits."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import digamma
from scipy.stats import binom

from raterscope.algorithms.labels.data import OPEN, LabelsError
from raterscope.algorithms.labels.ebcc import EBCCSettings, ebcc, tempered_subtypes
from raterscope.algorithms.labels.ibcc import ibcc
from raterscope.algorithms.labels.voting import majority
from raterscope.algorithms.progress import Cancelled, silent
from tests.algorithms.labels.test_pooled import make, of_votes


def test_the_lower_bound_never_falls_and_the_best_start_is_taken():
    labels, truth = make(0, tasks=150)
    first = ebcc(labels, EBCCSettings(starts=1))
    assert (np.diff(first.trace.objective) >= -1e-7 * abs(first.trace.objective[-1])).all()
    more = ebcc(labels, EBCCSettings(starts=6))
    assert more.trace.objective[-1] >= first.trace.objective[-1]
    assert (more.label() == truth).mean() > 0.8
    assert (ebcc(labels, EBCCSettings(starts=6)).posterior == more.posterior).all()


def random_start(labels, subtypes):
    share = np.zeros((len(labels.tasks), len(labels.classes)))
    np.add.at(share, (labels.task, labels.label), 1.0)
    share += 1e-6
    share /= share.sum(axis=1, keepdims=True)
    return share[:, :, None] * np.random.default_rng(0).dirichlet(np.ones(subtypes), share.shape)


def reference(labels, joint, turns, correlation=0.0):
    """Iterate the updates of the paper on dense arrays; the last one with tempered likelihood."""
    count, classes, subtypes = joint.shape
    annotators = len(labels.annotators)
    vote = np.zeros((count, annotators, classes))  # [task, annotator, answer]
    vote[labels.task, labels.annotator, labels.label] = 1.0
    effect = 1.0 + (vote.sum(axis=(1, 2)) - 1.0)[:, None, None] * correlation
    prior = 1.0 + 3.0 * np.eye(classes)  # [class, answer]
    for turn in range(turns):
        rates = prior[None, :, None, :] + np.einsum("tjm,tka->kjma", joint, vote)
        log_rates = digamma(rates) - digamma(rates.sum(axis=3, keepdims=True))
        of_class = vote.sum(axis=(0, 1)) + joint.sum(axis=(0, 2))
        of_subtype = 0.1 / subtypes + joint.sum(axis=0)
        logs = (digamma(of_class) - digamma(of_class.sum()))[:, None]
        logs = logs + digamma(of_subtype) - digamma(of_subtype.sum(axis=1, keepdims=True))
        likelihood = np.einsum("tka,kjma->tjm", vote, log_rates)
        joint = np.exp(logs + likelihood / (effect if turn == turns - 1 else 1.0))
        joint /= joint.sum(axis=(1, 2), keepdims=True)
    return joint.sum(axis=2)


@pytest.mark.parametrize(("subtypes", "turns"), [(1, 1), (3, 8)])
def test_the_posterior_equals_that_of_a_dense_implementation(subtypes, turns):
    labels, _ = make(3, tasks=60)
    labels = replace(labels, tasks=tuple(f"{task:02}" for task in range(60)))  # starts are drawn by name
    settings = EBCCSettings(subtypes=subtypes, starts=1, iterations=turns, tolerance=0.0)
    posterior = ebcc(labels, settings).posterior
    expected = reference(labels, random_start(labels, subtypes), turns)
    assert posterior == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("correlation", [0.0, 0.3])
def test_tempered_subtypes_begin_with_a_binomial_distribution(correlation):
    labels, _ = make(3, tasks=60)
    share = random_start(labels, 1)[:, :, 0]
    binomial = np.stack([binom.pmf(missed, 2, 1.0 - share) for missed in range(3)], axis=2)
    expected = reference(labels, share[:, :, None] * binomial, 4, correlation)
    number = labels.votes_of_tasks().astype(float)
    posterior = tempered_subtypes(labels, share, correlation, number, 3, 0.0, silent)
    assert posterior == pytest.approx(expected, abs=1e-9)


def test_with_one_subtype_it_agrees_with_ibcc():
    labels, _ = make(1, tasks=300, each=8, lookalike=0.0)
    assert (ebcc(labels, EBCCSettings(subtypes=1, starts=1)).label() == ibcc(labels).label()).mean() > 0.97


def test_errors_that_annotators_share_on_a_subtype_are_recognised():
    rng = np.random.default_rng(0)
    rows = []
    for t in range(300):  # half of class 1 looks like class 0 to annotators 0 to 2, not to 3 to 6
        looks = t % 2 if (t % 4 != 3) else 0
        for k in range(7):
            observed = looks if k < 3 else t % 2
            rows.append((t, k, observed if rng.random() < 0.9 else 1 - observed))
    truth = np.arange(300) % 2
    labels = of_votes(rows, 300, 2)
    ours, vote = ((method(labels).label() == truth).mean() for method in (ebcc, majority))
    assert ours > vote + 0.03


def test_known_tasks_are_held():
    labels, truth = make(2, tasks=100)
    known = np.where(np.arange(100) < 30, truth, OPEN).astype(np.int16)
    fusion = ebcc(replace(labels, known=known), EBCCSettings(starts=2))
    assert (fusion.label()[:30] == truth[:30]).all()
    assert fusion.posterior[:30].max(axis=1) == pytest.approx(1.0)


def test_what_does_not_fit_into_memory_is_refused_and_empty_crowds_have_an_answer():
    labels, _ = make(0, tasks=20)
    count = replace(labels, annotators=tuple(map(str, range(500_000))))
    with pytest.raises(LabelsError, match="Use fewer subtypes"):
        ebcc(count, EBCCSettings(subtypes=100))
    assert ebcc(of_votes([], 0, 2)).posterior.shape == (0, 2)
    assert ebcc(of_votes([(0, 0, 1)], 2, 2)).label()[0] == 1


def test_it_is_cancelled():
    labels, _ = make(0, tasks=50)
    calls = []

    def watch(fraction, words, **_):
        assert not calls or fraction >= calls[-1]
        calls.append(fraction)
        if len(calls) > 30:
            raise Cancelled

    with pytest.raises(Cancelled):
        ebcc(labels, watch=watch)
