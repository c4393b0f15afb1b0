"""The dynamic model as the paper has it: for every output a filter over all classes together, and a smoother.

Three of the paper's lines are misprinted, and what is done instead follows from linear Bayes estimation
(ref. 31): the covariance becomes P - K h' P (1 - r_post / r_prior) in place of eq. 61, and eqs. 65 and 68 run
with C = I - (1 - r_post / r_prior) K h', as C' lambda and C' Lambda C. So put right, filter and smoother give
the very moments of the Gaussian posterior, all steps at once.
"""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.compiling import Array, compiled
from raterscope.algorithms.labels._dynamic_kernels import LEAST, MOST, SKIPPED, add_up, tell

__all__ = ["follow_jointly"]

_BUFFER = 1 << 18
"""Numbers kept between the passes: longer histories are filtered again, block by block."""

_FAR = 40.0
"""Log odds beyond this are taken as this: a small share of a doubtful task can move them without bound."""

_SMALLEST = 1e-12
"""The smoothed variance is at least this share of the filtered one, whatever rounding leaves."""


@compiled()
def _odds(logit: float) -> float:
    return float(np.exp(min(max(logit, -_FAR), _FAR)))


@compiled()
def _observe(
    chance: Array, hit: bool, state: Array, covariance: Array, noise: Array, gain: Array, moved: Array, m: int
) -> None:
    """Filter one vote for one output (eqs. 41-62).

    Parameters
    ----------
    chance : (J,) float64
        Of each class for the task: h.
    hit : bool
        Whether the vote is this output.
    state : (J,) float64
        The mean of w; overwritten.
    covariance : (J, J) float64
        P; overwritten.
    noise : (M,) float64
        q of this step at `m`; overwritten by that of the next.
    gain : (J,) float64
        K; filled.
    moved : (3,) float64
        Filled with r_prior, with the change of eta by it, and with 1 - r_post / r_prior.
    m : int
    """
    classes = len(chance)
    for j in range(classes):
        covariance[j, j] += noise[m]
    eta, spread = 0.0, 0.0
    for j in range(classes):
        gain[j] = 0.0
        for i in range(classes):
            gain[j] += covariance[j, i] * chance[i]
        eta += chance[j] * state[j]
        spread += chance[j] * gain[j]
    spread = max(spread, LEAST)
    odds = _odds(eta)
    own, rest = (1.0 + odds) / spread, (1.0 + 1.0 / odds) / spread
    before = own / (own + rest)
    if hit:
        own += 1.0
    else:
        rest += 1.0
    after = own / (own + rest)
    noise[m] = max(after * (1.0 - after) - before * (1.0 - before), 0.0)
    change = np.log(own / rest) - np.log(odds)
    gained = 1.0 - (1.0 / own + 1.0 / rest) / spread
    for j in range(classes):
        state[j] += gain[j] / spread * change
    for j in range(classes):
        for i in range(classes):
            covariance[j, i] -= gain[j] * gain[i] / spread * gained
    for j in range(classes):
        gain[j] /= spread
    moved[0], moved[1], moved[2] = spread, change / spread, gained


@compiled()
def _adjoint(chance: Array, gain: Array, moved: Array, lead: Array, spread: Array, product: Array) -> None:
    """Take the adjoint state and covariance over one vote (eqs. 65, 68).

    Parameters
    ----------
    chance, gain, moved
        As of `_observe`.
    lead : (J,) float64
        lambda; overwritten.
    spread : (J, J) float64
        Lambda; overwritten.
    product : (J,) float64
        Room for Lambda K.
    """
    classes = len(chance)
    gained = moved[2]
    along, inner = 0.0, 0.0
    for j in range(classes):
        along += gain[j] * lead[j]
        product[j] = 0.0
        for i in range(classes):
            product[j] += spread[j, i] * gain[i]
        inner += gain[j] * product[j]
    square = gained * gained * inner + gained / moved[0]
    for j in range(classes):
        lead[j] -= chance[j] * (gained * along + moved[1])
        for i in range(classes):
            spread[j, i] += square * chance[j] * chance[i] - gained * (
                chance[j] * product[i] + product[j] * chance[i]
            )


@compiled()
def _smoothed(state: Array, covariance: Array, lead: Array, spread: Array, j: int) -> tuple[float, float]:
    """Give the odds of an output given class j, and the variance of their logarithm (eqs. 63, 64)."""
    classes = len(state)
    logit, variance = state[j], covariance[j, j]
    for i in range(classes):
        logit -= covariance[j, i] * lead[i]
        for n in range(classes):
            variance -= covariance[j, i] * spread[i, n] * covariance[n, j]
    return _odds(logit), max(variance, _SMALLEST * covariance[j, j], LEAST)


@compiled()
def follow_jointly(
    prior: Array,
    start: Array,
    order: Array,
    first: int,
    last: int,
    task: Array,
    label: Array,
    posterior: Array,
    logs: Array,
    steps: Array,
    final: Array,
    halt: Array,
) -> None:
    """Do what `_dynamic_kernels.follow` does, all classes together.

    A vote on a doubtful task is taken as a whole vote on the mean of the classes' log odds (section 7.4).
    """
    classes, outputs = prior.shape
    many = 1 if outputs == 2 else outputs
    block = min(max(_BUFFER // (many * (classes * (classes + 2) + 4)), 8), 1024)
    kept_state, kept_gain = np.empty((block, many, classes)), np.empty((block, many, classes))
    kept_covariance = np.empty((block, many, classes, classes))
    kept_noise, kept_moved = np.empty((block, many)), np.empty((block, many, 3))
    kept_chance = np.empty((block, classes))
    state, covariance = np.empty((many, classes)), np.empty((many, classes, classes))
    noise = np.empty(many)
    lead, spread = np.empty((many, classes)), np.empty((many, classes, classes))
    room = np.empty(classes)
    alpha, psi = np.empty((outputs, classes)), np.empty((outputs, classes))
    whole, fresh = np.empty(classes), np.empty(outputs, dtype=np.bool_)
    for at in range(first, last):
        k = order[at]
        begin, length = start[k], start[k + 1] - start[k]
        blocks = (length + block - 1) // block
        mark_state, mark_noise = np.empty((blocks, many, classes)), np.empty((blocks, many))
        mark_covariance = np.empty((blocks, many, classes, classes))
        covariance[:], noise[:], lead[:], spread[:] = 0.0, 0.0, 0.0, 0.0
        for m in range(many):
            for j in range(classes):
                rest = 0.0
                for other in range(outputs):
                    if other != m:
                        rest += prior[j, other]
                state[m, j] = np.log(prior[j, m] / rest)
                covariance[m, j, j] = 1.0 / prior[j, m] + 1.0 / rest
        for number in range(blocks + blocks - 1):  # forward, then back from the last block but one
            back = number >= blocks
            part = 2 * blocks - 2 - number if back else number
            if back:
                state[:], covariance[:], noise[:] = mark_state[part], mark_covariance[part], mark_noise[part]
            else:
                mark_state[part], mark_covariance[part], mark_noise[part] = state, covariance, noise
            low = part * block
            high = min(low + block, length)
            for t in range(low, high):
                step, now = begin + t, t - low
                chance = kept_chance[now]
                for j in range(classes):
                    weight = posterior[task[step], j]
                    chance[j] = weight if weight >= SKIPPED else 0.0
                for m in range(many):
                    _observe(
                        chance, label[step] == m, state[m], covariance[m], noise, kept_gain[now, m],
                        kept_moved[now, m], m,
                    )  # fmt: skip
                kept_state[now], kept_covariance[now], kept_noise[now] = state, covariance, noise
            if number < blocks - 1:
                if halt[0]:
                    return
                continue
            for t in range(high - 1, low - 1, -1):
                step, now = begin + t, t - low
                later = t < length - 1
                changed = False
                for m in range(many):
                    if not later or kept_noise[now, m] > 0.0:  # else all is as at the later step
                        changed = True
                        fresh[m] = False
                        for j in range(classes):
                            odds, variance = _smoothed(
                                kept_state[now, m], kept_covariance[now, m], lead[m], spread[m], j
                            )
                            alpha[m, j] = min(max((1.0 + odds) / variance, LEAST), MOST)
                            if many < outputs:
                                alpha[1, j] = min(max((1.0 + 1.0 / odds) / variance, LEAST), MOST)
                                fresh[1] = False
                    _adjoint(
                        kept_chance[now], kept_gain[now, m], kept_moved[now, m], lead[m], spread[m], room
                    )
                if changed:
                    add_up(alpha, whole)
                tell(label[step], alpha, whole, psi, fresh, logs[step])
                if not later:
                    final[k] = alpha.T
                if len(steps):
                    steps[step] = alpha.T
            if halt[0]:
                return
