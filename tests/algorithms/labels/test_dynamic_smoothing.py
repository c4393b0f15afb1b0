"""The filter and smoother of dynamic IBCC, against Gaussian posteriors solved densely."""

import numpy as np
import pytest
from scipy import special

FORMS = ("scalar", "paper")


def followed(chance, answers, prior, form):
    """Run the filter and the smoother of one annotator on tasks of fixed probabilities; (T, J, L)."""
    from raterscope.algorithms.labels import _dynamic_kernels

    follow = _dynamic_kernels.follow_jointly if form == "paper" else _dynamic_kernels.follow
    steps = len(answers)
    alpha = np.empty((steps, *prior.shape), dtype=np.float32)
    final, logs = np.empty((1, *prior.shape)), np.empty((steps, len(prior)))
    follow(
        prior, np.array([0, steps]), np.array([0]), 0, 1, np.arange(steps, dtype=np.int32),
        np.array(answers, dtype=np.int16), np.array(chance, dtype=np.float64), logs, alpha, final,
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


def moments(own, other_outputs):
    return np.log(own / other_outputs), 1 / own + 1 / other_outputs


def spread(own, other_outputs):
    return own * other_outputs / (own + other_outputs) ** 2


def rates(own, other_outputs):
    """Return the Dirichlet parameters of which means and summed variances are the outputs' own; (..., L)."""
    mean = own / (own + other_outputs)
    variance = spread(own, other_outputs) ** 2 * (1 / own + 1 / other_outputs)
    total = spread(own, other_outputs).sum(axis=-1, keepdims=True) / variance.sum(axis=-1, keepdims=True)
    return total * mean / mean.sum(axis=-1, keepdims=True)


def dense_paper(chance, answers, prior):
    """Eqs. 41-62 with every moment solved densely; (T, J, L) smoothed pseudo-counts of output and rest."""
    out = np.empty((2, len(answers), *prior.shape))
    for m in range(prior.shape[1]):
        own, other_outputs = prior[:, m], prior.sum(axis=1) - prior[:, m]
        mean, variance = moments(own, other_outputs)
        walk, noise, at = Walk(mean, np.diag(variance)), 0.0, []
        for h, vote in zip(chance, answers, strict=True):
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


def dense_scalar(chance, answers, prior):
    """Return the scalar form's smoothed pseudo-counts likewise, each class and output a walk of its own."""
    out = np.empty((2, len(answers), *prior.shape))
    classes = range(len(prior))
    for m in range(prior.shape[1]):
        own, other_outputs = prior[:, m], prior.sum(axis=1) - prior[:, m]
        walks = [Walk([log], [[var]]) for log, var in zip(*moments(own, other_outputs), strict=True)]
        noise, at = 0.0, []
        for h, vote in zip(chance, answers, strict=True):
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
    chance, answers, prior = history(classes, classes, outputs, 12)
    alpha, final, _ = followed(chance, answers, prior, form)
    own, other_outputs = DENSE[form](chance, answers, prior)
    expected = rates(own, other_outputs) if form == "scalar" else own
    np.testing.assert_allclose(alpha, expected, rtol=1e-6)  # float32
    np.testing.assert_allclose(final, expected[-1], rtol=1e-11)


@pytest.mark.parametrize("form", FORMS)
def test_expected_logarithms_are_those_of_the_smoothed_steps(form):
    from scipy.special import psi

    chance, answers, prior = history(5, 3, 4, 30)
    _, _, logs = followed(chance, answers, prior, form)
    alpha, _ = DENSE[form](chance, answers, prior)
    expected = psi(np.take_along_axis(alpha, answers[:, None, None], 2)[:, :, 0]) - psi(alpha.sum(axis=2))
    np.testing.assert_allclose(logs, expected, rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_a_long_history_is_smoothed_across_all_of_it(form):
    # What is kept between the passes is bounded: long histories are done block by block. The smoother by
    # Bryson and Frazier's recursion in plain NumPy, for hard labels, where both forms are one.
    chance, answers, prior = history(3, 2, 3, 2500)
    chance = np.eye(2)[chance.argmax(axis=1)]
    alpha, _, _ = followed(chance, answers, prior, form)
    smooth = np.empty((2, *alpha.shape))
    for m in range(3):
        own, other_outputs = prior[:, m], prior.sum(axis=1) - prior[:, m]
        mean, variance = moments(own, other_outputs)
        noise, kept = 0.0, []
        for h, vote in zip(chance, answers, strict=True):
            variance = variance + noise
            a, b = counts(mean, variance)
            after = moments(a + h * (vote == m), b + h * (vote != m))
            was = h @ np.column_stack([a, b])
            noise = max(spread(was[0] + (vote == m), was[1] + (vote != m)) - spread(*was), 0.0)
            kept.append((mean, variance, *after))
            mean, variance = after
        lead, curve = np.zeros(2), np.zeros(2)
        for t in range(len(answers) - 1, -1, -1):
            mean, variance, later, less = kept[t]
            smooth[:, t, :, m] = counts(later - less * lead, less - less * curve * less)
            ratio = less / variance
            lead = ratio * lead - (later - mean) / variance
            curve = ratio * curve * ratio + (1 - ratio) / variance
    np.testing.assert_allclose(alpha, rates(*smooth) if form == "scalar" else smooth[0], rtol=1e-5)


def test_digamma_is_that_of_scipy():
    from raterscope.algorithms.labels._dynamic_kernels import digamma

    x = np.geomspace(1e-8, 1e8, 1000)
    assert [digamma(value) for value in x] == pytest.approx(special.digamma(x), rel=1e-11, abs=1e-11)
