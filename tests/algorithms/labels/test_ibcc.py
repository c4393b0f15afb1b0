"""VB-IBCC beside the paper's equations, the exact evidence and an independent implementation's figures."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import gammaln, psi

from raterscope.algorithms.labels import alternation
from raterscope.algorithms.labels.data import OPEN, Labels, LabelsError, prior_of
from raterscope.algorithms.labels.ibcc import IBCCSettings, ibcc
from raterscope.algorithms.progress import Cancelled
from tests.algorithms.labels.test_gibbs import TINY, exact
from tests.algorithms.labels.test_voting import crowd, names, read

SETTLED = IBCCSettings(tolerance=1e-12)

REAL = {
    "bluebirds": (-2051.3303, 0.8889),
    "rte": (-4138.5397, 0.9287),
    "duchenne": (-14416.1639, 0.7799),
    "dog": (-6341.0827, 0.8377),
    "cf_amt": (-5818.7472, 0.8633),
    "sp_amt": (-3186.0995, 0.944),
    "product": (-8193.6964, 0.9372),
    "adult2": (-45673.3896, 0.7387),
}
"""Lower bounds and accuracies of an independent implementation, with alpha_0 = 1 + I and nu_0 = 1."""


def log_beta(rows):
    return gammaln(rows).sum(axis=-1) - gammaln(rows.sum(axis=-1))


def expected_log(rows):
    return psi(rows) - psi(rows.sum(axis=-1, keepdims=True))


def bound(labels, posterior, alpha, nu, prior, nu_0):
    """Eqs. 24 to 31 term by term, for any distributions of the tasks, the rates and the shares."""
    log_pi, log_kappa = expected_log(alpha), expected_log(nu)
    votes = (posterior[labels.task] * log_pi[labels.annotator, :, labels.label]).sum()
    shares = (posterior.sum(axis=0) * log_kappa).sum()
    rates = (-log_beta(prior) + ((prior - 1) * log_pi).sum(axis=-1)).sum()
    kappa = -log_beta(nu_0) + ((nu_0 - 1) * log_kappa).sum()
    entropy = -(posterior * np.log(np.where(posterior > 0, posterior, 1.0))).sum()
    of_rates = (-log_beta(alpha) + ((alpha - 1) * log_pi).sum(axis=-1)).sum()
    of_kappa = -log_beta(nu) + ((nu - 1) * log_kappa).sum()
    return votes + shares + rates + kappa + entropy - of_rates - of_kappa


def test_expected_logarithms_and_the_bound_are_exact_for_small_and_large_counts():
    from raterscope.algorithms.labels._ibcc_kernels import expect, log_gammas

    generator = np.random.default_rng(5)
    prior = 10.0 ** generator.uniform(-6, 2, size=(7, 11))
    counts = 10.0 ** generator.uniform(-8, 5, size=(300, 11, 7))
    logs = np.empty((3300, 7))
    present, flat = np.ones(3300, dtype=bool), counts.reshape(3300, 7).copy()
    value = expect(prior, log_gammas(prior), flat, present, 0, 300, logs)
    alpha = counts.transpose(0, 2, 1) + prior
    found = logs.reshape(300, 11, 7).transpose(0, 2, 1)
    np.testing.assert_allclose(found, expected_log(alpha), rtol=4e-15, atol=1e-14)
    np.testing.assert_allclose(value, (log_beta(alpha) - log_beta(prior)).sum(), rtol=1e-13)


def scattered(seed, outputs=3, classes=3, tasks=40, annotators=7, votes=250, **options):
    """Draw a crowd whose annotators are right more often than not; outputs beyond the classes are noise."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, tasks)
    task, annotator = rng.integers(0, tasks, votes), rng.integers(0, annotators, votes)
    right = rng.random(votes) < 0.65
    label = np.where(right, truth[task] % outputs, rng.integers(0, outputs, votes))
    columns = names("t", tasks), names("a", annotators), names("o", outputs), names("c", classes)
    return Labels(task, annotator, label, *columns, **options), truth


def test_tiny_crowd_of_known_figures():
    fusion = ibcc(TINY, SETTLED)
    assert fusion.trace.objective[-1] == pytest.approx(-6.291400290874977, abs=1e-12)
    assert fusion.posterior[:, 0] == pytest.approx([0.9157808679, 0.5733868081, 0.1894745356], abs=1e-6)
    assert fusion.confusion.alpha[0].ravel() == pytest.approx(
        [2.9157808679, 1.7628613437, 1.0842191321, 3.2371386563], abs=1e-6
    )
    assert fusion.shares * 5 == pytest.approx([2.6786422116, 2.3213577884], abs=1e-6)
    assert fusion.trace.converged
    assert fusion.trace.name == "lower bound"


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_below_the_exact_evidence(seed):
    labels, _ = scattered(seed, tasks=6, annotators=3, votes=20)
    _, evidence = exact(labels)
    assert ibcc(labels).trace.objective[-1] < evidence


CROWDS = {
    "three classes": {},
    "two classes": {"outputs": 2, "classes": 2},
    "scores for two classes": {"classes": 2, "meaning": np.array([0, 1, 1])},
    "two outputs for four classes": {"outputs": 2, "classes": 4, "meaning": np.array([0, 3])},
    "known tasks": {"known": np.array([0, 1, 2, OPEN] * 10)},
    "one output": {"outputs": 1, "classes": 2, "meaning": np.array([0])},
    "one class": {"classes": 1, "meaning": np.array([0, 0, OPEN])},
}
PRIORS = {
    "default": {},
    "next to none": {"prior_strength": 1e-6},
    "next to none, diagonal": {"prior_strength": 1e-6, "prior_accuracy": 0.9},
    "overwhelming": {"prior_strength": 1e8, "prior_accuracy": 0.7},
}

ROUNDING = {"default": 1e-12, "next to none": 1e-9, "next to none, diagonal": 1e-9, "overwhelming": 1e-6}
"""Of the sum of terms above, relative: at the extremes it cancels numbers of 1e7 and of 1e9."""


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("name", CROWDS)
def test_no_half_step_lowers_the_bound(name, prior):
    labels, _ = scattered(3, **CROWDS[name])
    settings = IBCCSettings(**PRIORS[prior])
    alpha_0, nu_0 = prior_of(labels, settings), np.ones(len(labels.classes))
    runs = [ibcc(labels, replace(settings, iterations=turns, tolerance=0.0)) for turns in range(1, 13)]
    states = [(run.posterior, run.confusion.alpha, nu_0 + run.posterior.sum(axis=0)) for run in runs]
    full = [bound(labels, *state, alpha_0, nu_0) for state in states]
    half = [
        bound(labels, posterior, *before[1:], alpha_0, nu_0) for before, (posterior, _, _) in pairwise(states)
    ]
    rounding = ROUNDING[prior]
    for (before, after), middle in zip(pairwise(full), half, strict=True):
        assert middle >= before - rounding * abs(before)
        assert after >= middle - rounding * abs(middle)
    objective = runs[-1].trace.objective
    assert objective == pytest.approx(full, rel=rounding)
    assert (np.diff(objective) >= -1e-12 * np.abs(objective[1:])).all()


@pytest.mark.parametrize("name", REAL)
def test_real_crowds(real_data, name):
    labels, truth = read(real_data, name)
    fusion = ibcc(labels)
    expected, accuracy = REAL[name]
    objective = fusion.trace.objective
    assert objective[-1] == pytest.approx(expected, abs=0.01)
    assert (np.diff(objective) >= -1e-12 * np.abs(objective[1:])).all()
    scored = truth != OPEN
    assert (fusion.label() == truth)[scored].mean() == pytest.approx(accuracy, abs=0.002)
    assert fusion.posterior.sum(axis=1) == pytest.approx(1)
    assert fusion.trace.converged


@pytest.mark.parametrize("name", ["dog", "web", "sparse"])
def test_the_acceleration_finds_the_same_maximum_in_fewer_iterations(monkeypatch, real_data, name):
    if name == "sparse":
        labels, _ = scattered(0, classes=4, outputs=4, tasks=2_000, annotators=300, votes=9_000)
    else:
        labels, _ = read(real_data, name)
    fast = ibcc(labels)
    monkeypatch.setattr(alternation, "_PLAIN", 10**6)
    plain = ibcc(labels, IBCCSettings(tolerance=1e-7, iterations=100_000))
    assert plain.trace.converged
    assert fast.posterior == pytest.approx(plain.posterior, abs=1e-3)
    assert fast.trace.objective[-1] == pytest.approx(plain.trace.objective[-1], abs=1e-3)
    assert len(fast.trace.change) < len(ibcc(labels).trace.change)


def test_an_unknown_number_of_processors_changes_no_bit(monkeypatch):
    labels, _ = scattered(0, tasks=3_000, annotators=20, votes=30_000)
    monkeypatch.setattr(alternation, "_WORK", 5_000)
    runs = []
    for threads in (1, 3):
        monkeypatch.setattr(alternation, "_THREADS", threads)
        runs.append(ibcc(labels))
    assert np.array_equal(runs[0].posterior, runs[1].posterior)
    assert np.array_equal(runs[0].confusion.alpha, runs[1].confusion.alpha)
    assert np.array_equal(runs[0].trace.objective, runs[1].trace.objective)


@pytest.mark.parametrize("classes", range(2, 7))
def test_a_pass_compiled_for_few_classes_changes_nothing_but_rounding(monkeypatch, classes):
    labels, _ = scattered(0, classes, classes, tasks=300, annotators=20, votes=3_000)
    common = ibcc(labels, SETTLED)
    monkeypatch.setattr(alternation, "_LARGE", 0)
    assert ibcc(labels, SETTLED).posterior == pytest.approx(common.posterior, abs=1e-9)


def test_dividing_the_work_changes_nothing_but_rounding(monkeypatch):
    labels, _ = scattered(0, tasks=3_000, annotators=20, votes=30_000)
    divided = ibcc(labels, SETTLED)
    monkeypatch.setattr(alternation, "_PARTS", 1)
    full = ibcc(labels, SETTLED)
    assert divided.posterior == pytest.approx(full.posterior, abs=1e-9)


def test_the_order_of_votes_and_the_names_of_classes_do_not_matter():
    labels, _ = scattered(1)
    fusion = ibcc(labels, SETTLED)
    order = np.random.default_rng(0).permutation(len(labels))
    shuffled = replace(
        labels, task=labels.task[order], annotator=labels.annotator[order], label=2 - labels.label[order]
    )
    second = ibcc(shuffled, SETTLED)
    assert second.posterior[:, ::-1] == pytest.approx(fusion.posterior, abs=1e-9)
    assert second.confusion.alpha[:, ::-1, ::-1] == pytest.approx(fusion.confusion.alpha, abs=1e-8)


def test_known_tasks_are_held_and_teach_the_rest():
    """Two of three annotators always say the opposite, and win where nothing is known."""
    votes = [(t, k, (t % 2) ^ (k > 0)) for t in range(40) for k in range(3)]
    labels = crowd(votes, 40, ("no", "yes"))
    truth = np.arange(40) % 2
    assert (ibcc(labels).label() != truth).all()
    known = np.where(np.arange(40) < 8, truth, OPEN)
    informed = ibcc(replace(labels, known=known))
    assert (informed.label() == truth).all()
    assert informed.posterior[:8] == pytest.approx(np.eye(2)[truth[:8]], abs=0)
    assert (informed.known == known).all()


def test_tasks_and_annotators_without_votes_keep_the_prior():
    labels, _ = scattered(2)
    fusion = ibcc(labels, SETTLED)
    wider = replace(labels, tasks=names("t", 45), annotators=names("a", 9))
    more = ibcc(wider, SETTLED)
    assert more.posterior[:40] == pytest.approx(fusion.posterior, abs=1e-12)
    assert more.posterior[40:] == pytest.approx(np.tile(fusion.shares, (5, 1)))
    assert more.confusion.alpha[7:] == pytest.approx(np.tile(more.confusion.prior, (2, 1, 1)))
    assert any("5 tasks have no votes" in notice for notice in more.notices)
    assert any("2 annotators have no votes" in notice for notice in more.notices)


def test_the_prior_decides_which_class_a_score_stands_for():
    """Scores of -1, 1 and 3 for two classes, without saying what they stand for."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    rates = np.array([[0.6, 0.3, 0.1], [0.1, 0.35, 0.55]])
    votes = [(t, k, rng.choice(3, p=rates[truth[t]])) for t in range(200) for k in range(9)]
    empty = np.full(3, OPEN)
    labels = crowd(votes, 200, ("-1", "1", "3"), classes=("no", "yes"), meaning=empty)
    prior = np.array([[0.5, 0.3, 0.05], [0.18, 0.36, 0.41]])
    fusion = ibcc(replace(labels, prior=prior))
    assert (fusion.label() == truth).mean() > 0.95
    assert fusion.confusion.mean().mean(axis=0) == pytest.approx(rates, abs=0.04)
    assert (fusion.confusion.prior == prior).all()
    assert ibcc(labels).posterior == pytest.approx(0.5)  # nothing tells the classes apart


def test_repeated_votes_count_by_the_setting():
    votes = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 1), (1, 1, 1)]
    labels = crowd(votes, 2, ("a", "b"))
    for repeats, kept in (("all", votes), ("first", votes[:1] + votes[2:]), ("last", votes[1:])):
        fusion = ibcc(labels, IBCCSettings(repeats=repeats))
        assert fusion.posterior == pytest.approx(ibcc(crowd(kept, 2, ("a", "b"))).posterior, abs=1e-12)
        assert fusion.votes.sum() == len(kept)


def test_nothing_to_fuse():
    empty = ibcc(crowd([], 0, ("a", "b"), known=None))
    assert empty.posterior.shape == (0, 2)
    silent = ibcc(replace(crowd([], 3, ("a", "b")), known=np.array([1, OPEN, 1])))
    assert silent.posterior == pytest.approx(np.array([[0, 1], [0.25, 0.75], [0, 1]]))
    assert any("no votes" in notice for notice in silent.notices)


def test_all_votes_equal_and_one_annotator():
    equal = ibcc(crowd([(t, k, 1) for t in range(4) for k in range(3)], 4, ("a", "b", "c")))
    assert (equal.label() == 1).all()
    assert any("No vote represents 2 classes: a, c" in notice for notice in equal.notices)
    alone = ibcc(crowd([(0, 0, 0), (1, 0, 1), (1, 0, 1)], 2, ("a", "b")))
    assert (alone.label() == [0, 1]).all()
    assert any("one annotator" in notice for notice in alone.notices)


def test_it_reports_when_it_did_not_converge():
    labels, _ = scattered(4)
    fusion = ibcc(labels, IBCCSettings(iterations=2))
    assert not fusion.trace.converged
    assert any("2 iterations" in n and f"{fusion.trace.change[-1]:.2g}" in n for n in fusion.notices)
    assert len(fusion.trace.objective) == len(fusion.trace.change) == 2


@pytest.mark.parametrize("prior", ["default", "overwhelming"])
def test_hundreds_of_labels_of_which_all_annotators_used_few(prior):
    labels, truth = scattered(5, outputs=120, classes=120, tasks=40, annotators=9, votes=400)
    settings = IBCCSettings(**PRIORS[prior], iterations=6, tolerance=0.0)
    fusion, prior_0 = ibcc(labels, settings), prior_of(labels, settings)
    nu = 1.0 + fusion.posterior.sum(axis=0)
    full = bound(labels, fusion.posterior, fusion.confusion.alpha, nu, prior_0, np.ones(120))
    assert fusion.trace.objective[-1] == pytest.approx(full, rel=ROUNDING[prior])
    used = np.zeros((9, 120), dtype=bool)
    used[labels.annotator, labels.label] = True
    assert (fusion.confusion.counts().transpose(0, 2, 1)[~used] == 0).all()
    assert fusion.votes.min() > 0
    assert (fusion.label() == truth).mean() > 0.8


def test_it_can_be_cancelled():
    def watch(fraction, words, **_):
        if "iteration 3" in words:
            raise Cancelled

    labels, _ = scattered(6)
    with pytest.raises(Cancelled):
        ibcc(labels, watch=watch)


def test_progress_never_falls():
    fractions = []
    labels, _ = scattered(7)
    ibcc(labels, watch=lambda fraction, *_, **__: fractions.append(fraction))
    assert (np.diff(fractions) >= 0).all()
    assert fractions[-1] == 1


def test_confusion_matrices_beyond_memory_are_refused():
    many = names("c", 1_500)
    labels = Labels(np.array([0]), np.array([0]), np.array([0]), ("t",), names("a", 200), many, many)
    with pytest.raises(LabelsError, match="200 confusion matrices of 1,500 by 1,500"):
        ibcc(labels)
