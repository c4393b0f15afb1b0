"""Dynamic IBCC: against Gaussian posteriors solved densely, the static model, and crowds that drift."""

import csv
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from raterscope.algorithms.labels import LabelFusion, Labels, LabelsError, dynamic
from raterscope.algorithms.labels.dynamic import DynamicSettings, dynibcc
from raterscope.algorithms.labels.ibcc import IBCCSettings, ibcc
from raterscope.algorithms.progress import Cancelled

FORMS = ("scalar", "paper")


def make(task, annotator, label, classes=2, outputs=None, **rest) -> Labels:
    outputs = outputs or classes
    names = [
        tuple(map(str, range(many)))
        for many in (max(task, default=-1) + 1, max(annotator, default=-1) + 1, outputs, classes)
    ]
    return Labels(np.array(task, int), np.array(annotator, int), np.array(label, int), *names, **rest)


def crowd(seed=0, tasks=60, annotators=6, classes=3, accuracy=0.7) -> Labels:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, tasks)
    task = np.repeat(np.arange(tasks), annotators)
    annotator = np.tile(np.arange(annotators), tasks)
    right = rng.random(len(task)) < accuracy
    label = np.where(right, truth[task], rng.integers(0, classes, len(task)))
    return make(task, annotator, label, classes)


def followed(chance, said, prior, form):
    """Run the filter and the smoother of one annotator on tasks of fixed probabilities; (T, J, L)."""
    from raterscope.algorithms.labels import _dynamic_filter, _dynamic_kernels

    follow = _dynamic_filter.follow_jointly if form == "paper" else _dynamic_kernels.follow
    steps = len(said)
    alpha = np.empty((steps, *prior.shape), dtype=np.float32)
    final, logs = np.empty((1, *prior.shape)), np.empty((steps, len(prior)))
    follow(
        prior, np.array([0, steps]), np.array([0]), 0, 1, np.arange(steps, dtype=np.int32),
        np.array(said, dtype=np.int16), np.array(chance, dtype=np.float64), logs, alpha, final,
        np.zeros(1, dtype=bool),
    )  # fmt: skip
    return alpha, final[0], logs


class Walk:
    """A random walk from w ~ (mean, cov) with the noise of each step, seen through Gaussian measurements.

    Every moment comes from the joint precision matrix of all steps, not from a recursion.
    """

    def __init__(self, mean, cov):
        self.size = len(mean)
        self.precision = np.linalg.inv(cov)
        self.linear = self.precision @ mean
        self.step = np.arange(self.size)

    def move(self, noise):
        """Add a step; without noise it is the same state."""
        if noise <= 0:
            return
        old, size = len(self.linear), self.size
        grown = np.zeros((old + size, old + size))
        grown[:old, :old] = self.precision
        now, then = np.arange(old, old + size), self.step
        grown[now, now] += 1 / noise
        grown[then, then] += 1 / noise
        grown[now, then] -= 1 / noise
        grown[then, now] -= 1 / noise
        self.precision, self.linear, self.step = grown, np.append(self.linear, np.zeros(size)), now

    def measure(self, h, before, after):
        """Put in the measurement that takes (mean, variance) of h'w from one to the other."""
        gained = 1 / after[1] - 1 / before[1]
        value = after[0] / after[1] - before[0] / before[1]
        self.precision[np.ix_(self.step, self.step)] += gained * np.outer(h, h)
        self.linear[self.step] += value * np.asarray(h)

    def moments(self, step):
        cov = np.linalg.inv(self.precision)
        return (cov @ self.linear)[step], cov[np.ix_(step, step)]


def counts(mean, variance):
    return (1 + np.exp(mean)) / variance, (1 + np.exp(-mean)) / variance


def moments(own, rest):
    return np.log(own / rest), 1 / own + 1 / rest


def spread(own, rest):
    return own * rest / (own + rest) ** 2


def rates(own, rest):
    """Give the Dirichlet parameters of which means and summed variances are the outputs' own; (..., L)."""
    mean = own / (own + rest)
    variance = spread(own, rest) ** 2 * (1 / own + 1 / rest)
    total = spread(own, rest).sum(axis=-1, keepdims=True) / variance.sum(axis=-1, keepdims=True)
    return total * mean / mean.sum(axis=-1, keepdims=True)


def dense_paper(chance, said, prior):
    """Eqs. 41-62 with every moment solved densely; (T, J, L) smoothed pseudo-counts of output and rest."""
    out = np.empty((2, len(said), *prior.shape))
    for m in range(prior.shape[1]):
        own, rest = prior[:, m], prior.sum(axis=1) - prior[:, m]
        mean, variance = moments(own, rest)
        walk, noise, at = Walk(mean, np.diag(variance)), 0.0, []
        for h, vote in zip(chance, said, strict=True):
            walk.move(noise)
            at.append(walk.step)
            mean, cov = walk.moments(walk.step)
            before = h @ mean, h @ cov @ h
            a, b = counts(*before)
            after = a + (vote == m), b + (vote != m)
            noise = max(spread(*after) - spread(a, b), 0.0)
            walk.measure(h, before, moments(*after))
        for t, step in enumerate(at):
            mean, cov = walk.moments(step)
            out[:, t, :, m] = counts(mean, np.diag(cov))
    return out


def dense_scalar(chance, said, prior):
    """Give the scalar form's smoothed pseudo-counts likewise, each class and output a walk of its own."""
    out = np.empty((2, len(said), *prior.shape))
    classes = range(len(prior))
    for m in range(prior.shape[1]):
        own, rest = prior[:, m], prior.sum(axis=1) - prior[:, m]
        walks = [Walk([log], [[var]]) for log, var in zip(*moments(own, rest), strict=True)]
        noise, at = 0.0, []
        for h, vote in zip(chance, said, strict=True):
            rise = 0.0
            for j in classes:
                walks[j].move(noise)
                (mean,), ((variance,),) = walks[j].moments(walks[j].step)
                a, b = counts(mean, variance)
                rise += h[j] * (spread(a + (vote == m), b + (vote != m)) - spread(a, b))
                after = moments(a + h[j] * (vote == m), b + h[j] * (vote != m))
                walks[j].measure([1.0], (mean, variance), after)
            at.append(walks[0].step)
            noise = max(rise, 0.0)
        for t, step in enumerate(at):
            for j in classes:
                (mean,), ((variance,),) = walks[j].moments(step)
                out[:, t, j, m] = counts(mean, variance)
    return out


DENSE = {"paper": dense_paper, "scalar": dense_scalar}


def history(seed, classes, outputs, steps):
    rng = np.random.default_rng(seed)
    return (
        rng.dirichlet(np.full(classes, 0.5), steps),
        rng.integers(0, outputs, steps),
        rng.uniform(0.1, 3, (classes, outputs)),
    )


@pytest.mark.parametrize(("classes", "outputs"), [(2, 3), (3, 3), (3, 2), (1, 2)])
@pytest.mark.parametrize("form", FORMS)
def test_filter_and_smoother_give_the_gaussian_posterior(form, classes, outputs):
    chance, said, prior = history(classes, classes, outputs, 12)
    alpha, final, _ = followed(chance, said, prior, form)
    own, rest = DENSE[form](chance, said, prior)
    expected = rates(own, rest) if form == "scalar" else own
    np.testing.assert_allclose(alpha, expected, rtol=1e-6)  # float32
    np.testing.assert_allclose(final, expected[-1], rtol=1e-11)


@pytest.mark.parametrize("form", FORMS)
def test_expected_logarithms_are_those_of_the_smoothed_steps(form):
    from scipy.special import psi

    chance, said, prior = history(5, 3, 4, 30)
    _, _, logs = followed(chance, said, prior, form)
    alpha, _ = DENSE[form](chance, said, prior)
    expected = psi(np.take_along_axis(alpha, said[:, None, None], 2)[:, :, 0]) - psi(alpha.sum(axis=2))
    np.testing.assert_allclose(logs, expected, rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_a_long_history_is_smoothed_across_all_of_it(form):
    # What is kept between the passes is bounded: long histories are done block by block. The smoother by
    # Bryson and Frazier's recursion in plain NumPy, for hard labels, where both forms are one.
    chance, said, prior = history(3, 2, 3, 2500)
    chance = np.eye(2)[chance.argmax(axis=1)]
    alpha, _, _ = followed(chance, said, prior, form)
    smooth = np.empty((2, *alpha.shape))
    for m in range(3):
        own, rest = prior[:, m], prior.sum(axis=1) - prior[:, m]
        mean, variance = moments(own, rest)
        noise, kept = 0.0, []
        for h, vote in zip(chance, said, strict=True):
            variance = variance + noise
            a, b = counts(mean, variance)
            after = moments(a + h * (vote == m), b + h * (vote != m))
            was = h @ np.column_stack([a, b])
            noise = max(spread(was[0] + (vote == m), was[1] + (vote != m)) - spread(*was), 0.0)
            kept.append((mean, variance, *after))
            mean, variance = after
        lead, curve = np.zeros(2), np.zeros(2)
        for t in range(len(said) - 1, -1, -1):
            mean, variance, later, less = kept[t]
            smooth[:, t, :, m] = counts(later - less * lead, less - less * curve * less)
            ratio = less / variance
            lead = ratio * lead - (later - mean) / variance
            curve = ratio * curve * ratio + (1 - ratio) / variance
    np.testing.assert_allclose(alpha, rates(*smooth) if form == "scalar" else smooth[0], rtol=1e-5)


def test_without_drift_it_is_the_static_model():
    # Where all agree, no vote raises any variance: there is no noise, though the classes are doubtful.
    truth = np.arange(12) % 2
    task, annotator = np.repeat(np.arange(12), 4), np.tile(np.arange(4), 12)
    labels = make(task, annotator, truth[task])
    one = dynibcc(labels, DynamicSettings(tolerance=1e-13))
    two = ibcc(labels, IBCCSettings(tolerance=1e-13))
    np.testing.assert_allclose(one.posterior, two.posterior, atol=1e-11)
    np.testing.assert_allclose(one.confusion.alpha, two.confusion.alpha, rtol=1e-10)
    np.testing.assert_allclose(one.shares, two.shares, rtol=1e-11)
    for k in range(4):  # the same at every step
        steps = one.drift.alpha[one.drift.steps(k)]
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
    one, two = dynibcc(labels, settings), dynibcc(shuffled, settings)
    np.testing.assert_allclose(one.posterior, two.posterior, atol=1e-6)
    np.testing.assert_array_equal(shuffled.task[two.drift.vote], labels.task[one.drift.vote])
    other = dynibcc(Labels(*(getattr(shuffled, name) for name in (
        "task", "annotator", "label", "tasks", "annotators", "outputs", "classes"))), settings)  # fmt: skip
    assert np.abs(other.drift.alpha - one.drift.alpha).max() > 0.01


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
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(dynamic, "_THREADS", threads)
        found.append(dynibcc(labels, DynamicSettings(form=form, iterations=4)))
    np.testing.assert_array_equal(found[0].posterior, found[1].posterior)
    np.testing.assert_array_equal(found[0].drift.alpha, found[1].drift.alpha)


def test_what_does_not_converge_says_so():
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
    assert any("decide some tasks" in notice for notice in fusion.notices)
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
    seen = []
    dynibcc(crowd(), watch=lambda fraction, words, **_: seen.append(fraction))
    assert seen == sorted(seen)
    assert seen[0] == 0.0
    assert seen[-1] == 1.0


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


def real(folder: Path, name: str) -> tuple[Labels, np.ndarray]:
    with (folder / "labels" / f"{name}.csv").open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    with (folder / "labels" / f"{name}_truth.csv").open(newline="") as file:
        true = dict(list(csv.reader(file))[1:])
    names = [tuple(dict.fromkeys(row[at] for row in rows)) for at in range(3)]
    names[2] = tuple(sorted(names[2]))
    index = [{value: at for at, value in enumerate(values)} for values in names]
    votes = [np.array([index[at][row[at]] for row in rows]) for at in range(3)]
    truth = np.array([index[2][true[task]] if task in true else -1 for task in names[0]])
    return Labels(*votes, *names, names[2]), truth


def accuracy_and_auc(fusion: LabelFusion, truth: np.ndarray) -> tuple[float, float]:
    asked = truth >= 0
    posterior, truth = fusion.posterior[asked], truth[asked]
    classes = [1] if posterior.shape[1] == 2 else range(posterior.shape[1])
    auc = np.mean([roc_auc_score(truth == j, posterior[:, j]) for j in classes])
    return float((posterior.argmax(axis=1) == truth).mean()), float(auc)


@pytest.mark.parametrize(
    ("name", "accuracy", "auc"),
    [
        ("bluebirds", 0.8704, 0.9375),
        ("rte", 0.9287, 0.9788),
        ("duchenne", 0.7736, 0.7931),
        ("dog", 0.8401, 0.9609),
        ("cf_amt", 0.8633, 0.9516),
        ("sp_amt", 0.9440, 0.9823),
    ],
)
def test_real_crowds(real_data, name, accuracy, auc):
    # The figures are of an independent implementation of the paper's form, put right.
    labels, truth = real(real_data, name)
    found = accuracy_and_auc(dynibcc(labels, DynamicSettings(form="paper")), truth)
    assert found[0] == pytest.approx(accuracy, abs=0.002)
    assert found[1] == pytest.approx(auc, abs=0.001)
    default = accuracy_and_auc(dynibcc(labels), truth)
    assert default[0] >= accuracy - 0.007
    assert default[1] >= auc - 0.006


@pytest.mark.parametrize(
    ("name", "known", "paper", "static"),
    [
        ("jump_J3", False, (0.8900, 0.1339), (0.7495, 0.272)),
        ("drift_J3", False, (0.8505, 0.0756), (0.8115, 0.161)),
        ("jump_J2", True, (0.9296, 0.1378), (0.6793, 0.377)),
    ],
)
def test_crowds_that_drift(real_data, name, known, paper, static):
    with np.load(real_data / "labels" / "synth" / f"{name}_seed7.npz", allow_pickle=False) as file:
        held = file["known20"] if known else None
        labels = make(
            file["task"].tolist(), file["worker"].tolist(), file["label"].tolist(), int(name[-1]), known=held
        )
        truth, rates = file["truth"].astype(int), file["pi_true"]
        asked = truth if held is None else np.where(held >= 0, -1, truth)

    def figures(fusion: LabelFusion) -> tuple[float, float]:
        drift = fusion.drift
        mean, true = drift.alpha / drift.alpha.sum(axis=2, keepdims=True), rates[drift.vote]
        wrong = [
            ((mean[steps] - true[steps]) ** 2).ravel()
            for steps in map(drift.steps, range(len(labels.annotators)))
            if np.ptp(true[steps], axis=0).max() > 0.01
        ]
        return accuracy_and_auc(fusion, asked)[0], float(np.sqrt(np.concatenate(wrong).mean()))

    assert figures(dynibcc(labels, DynamicSettings(form="paper"))) == pytest.approx(paper, abs=0.002)
    accuracy, error = figures(dynibcc(labels))
    assert accuracy >= paper[0] - 0.002
    assert error <= paper[1] + 0.005
    assert accuracy > static[0] + 0.03
    assert error < 0.6 * static[1]
    assert accuracy_and_auc(ibcc(labels), asked)[0] == pytest.approx(static[0], abs=0.005)


@pytest.mark.parametrize(("name", "most"), [("static_J3", 0.035), ("drift_J3", 0.045), ("jump_J3", 0.045)])
def test_rates_of_steady_annotators_with_known_truths(real_data, name, most):
    # Shares of the filters' pseudo-counts are off by .043, .055 and .055.
    with np.load(real_data / "labels" / "synth" / f"{name}_seed7.npz", allow_pickle=False) as file:
        votes = [file[key].tolist() for key in ("task", "worker", "label")]
        labels = make(*votes, 3, known=file["truth"])
        rates = file["pi_true"]
    drift = dynibcc(labels).drift
    mean, true = drift.alpha / drift.alpha.sum(axis=2, keepdims=True), rates[drift.vote]
    wrong = [
        ((mean[steps] - true[steps]) ** 2).ravel()
        for steps in map(drift.steps, range(len(labels.annotators)))
        if np.ptp(true[steps], axis=0).max() < 0.01
    ]
    assert np.sqrt(np.concatenate(wrong).mean()) < most
