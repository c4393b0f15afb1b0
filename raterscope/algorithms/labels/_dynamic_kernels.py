"""Inner loops of the dynamic model: filters and smoothers, and the update of the tasks.

With odds o = alpha / beta and variance P = 1/alpha + 1/beta of its logarithm (eqs. 51, 53), noise q added to
P multiplies alpha and beta by P / (P + q), and a vote adds to one of them. The forward pass therefore needs
no logarithm. The backward pass changes nothing where q is 0. Elsewhere the smoother of eqs. 63-70 for a
single number equals a weighted mean of the filter's state and the later state, which avoids differences of
large numbers.

The paper's dynamic model has, for every output, a filter over all classes together and a smoother. Three of
its lines are misprinted; the corrections follow from linear Bayes estimation (ref. 31). The covariance
becomes P - K h' P (1 - r_post / r_prior) instead of eq. 61, and eqs. 65 and 68 use C = I - (1 - r_post /
r_prior) K h', as C' lambda and C' Lambda C. Filter and smoother then give the exact moments of the Gaussian
posterior of all steps.
"""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.compiling import Array, compiled

SKIPPED = 1e-6
"""Minimum probability of a class for an update by a vote."""

LEAST, MOST = 1e-30, 1e30
"""Limits of pseudo-counts, so that neither they nor their logarithms overflow."""

_BUFFER = 1 << 18
"""Maximum number of values kept between the passes; longer histories are filtered again, block by block."""


@compiled()
def digamma(x: float) -> float:
    """Return the derivative of log Gamma(x), x above 0."""
    product, slope = 1.0, 0.0
    while x < 8.0:  # Gamma(x) = Gamma(x + 1) / x
        slope = slope * x + product
        product *= x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * 691 / 32760)))))
    return float(np.log(x) - 0.5 / x - series - slope / product)


@compiled()
def _observe(chance: Array, output: int, own: Array, rest: Array, noise: Array) -> None:
    """Filter one vote.

    `chance`: (J,) float64, probability of each class for the task. `own`, `rest`: (M, J) float64,
    pseudo-counts of each output, and of all other outputs; overwritten. `noise`: (M,) float64, q of this
    step; overwritten by q of the next step.
    """
    outputs, classes = own.shape
    for m in range(outputs):
        q, rise, hit = noise[m], 0.0, output == m
        for j in range(classes):
            a, b, weight = own[m, j], rest[m, j], chance[j]
            if q > 0.0:
                kept = 1.0 / (1.0 + q * (a / (a + b)) * b)
                a *= kept
                b *= kept
            if weight >= SKIPPED:
                total = a + b
                before = a / total
                after = (a + 1.0 if hit else a) / (total + 1.0)
                rise += weight * (after * (1.0 - after) - before * (1.0 - before))
                if hit:
                    a += weight
                else:
                    b += weight
            own[m, j], rest[m, j] = a, b
        noise[m] = max(rise, 0.0)


@compiled()
def _smooth(
    later: bool,
    own: Array,
    rest: Array,
    noise: Array,
    logit: Array,
    variance: Array,
    alpha: Array,
    fresh: Array,
) -> bool:
    """Smooth one step backwards; return whether anything changed.

    `later`: whether there is a later step.
    `own`, `rest`: (M, J) float64, state of the filter after this step.
    `noise`: (M,) float64, q of the later step.
    `logit`, `variance`: (M, J) float64, smoothed mean and variance of the log odds at the later step;
        overwritten with those of this step. `alpha`: (L, J) float64, the corresponding pseudo-counts (eq.
        77); overwritten where they change.
    `fresh`: (L,) bool, set to False where they change.
    """
    changed = False
    outputs, classes = own.shape
    for m in range(outputs):
        q = noise[m]
        if later and q <= 0.0:
            continue
        changed = True
        fresh[m] = False
        for j in range(classes):
            a, b = own[m, j], rest[m, j]
            spread = (a + b) / a / b
            if later:
                gain = spread / (spread + q)
                free = q / (spread + q)
                logit[m, j] = free * np.log(a / b) + gain * logit[m, j]
                variance[m, j] = spread * free + gain * gain * variance[m, j]
            else:
                logit[m, j], variance[m, j] = np.log(a / b), spread
            odds = np.exp(logit[m, j])
            alpha[m, j] = min(max((1.0 + odds) / variance[m, j], LEAST), MOST)
            if outputs < len(alpha):
                alpha[1, j] = min(max((1.0 + 1.0 / odds) / variance[m, j], LEAST), MOST)
        if outputs < len(alpha):
            fresh[1] = False
    return changed


@compiled()
def _share_out(logit: Array, variance: Array, shown: Array) -> None:
    """Convert the outputs' Beta distributions to one Dirichlet distribution for each row.

    Its means are pi = odds / (1 + odds), scaled to add up to one. Its total sets the sum of the outputs'
    variances, pi (1 - pi) / total, to that of the Beta distributions, (pi (1 - pi))^2 times the variance of
    the log odds. If all of these have the same total, as without noise, the total is kept.

    `logit`, `variance`: (L, J) float64, as in `_smooth`. `shown`: (L, J) float64, filled with the
    pseudo-counts.
    """
    outputs, classes = logit.shape
    for j in range(classes):
        norm, one_vote, known = 0.0, 0.0, 0.0
        for m in range(outputs):
            odds = np.exp(logit[m, j])
            chance = odds / (1.0 + odds)
            spread = chance / (1.0 + odds)
            shown[m, j] = chance
            norm += chance
            one_vote += spread
            known += spread * spread * variance[m, j]
        total = one_vote / known
        for m in range(outputs):
            shown[m, j] = min(max(total * (shown[m, j] / norm), LEAST), MOST)


@compiled()
def add_up(alpha: Array, sums: Array) -> None:
    """Fill the digamma function of each class's pseudo-counts, (J,), of (L, J) of each output."""
    outputs, classes = alpha.shape
    for j in range(classes):
        total = 0.0
        for m in range(outputs):
            total += alpha[m, j]
        sums[j] = digamma(total)


@compiled()
def fill_expected_logs(
    output: int, alpha: Array, total: Array, psi: Array, fresh: Array, logs: Array
) -> None:
    """Fill the expected log probability of an output, (J,); `psi` is reused while `fresh`."""
    if not fresh[output]:
        fresh[output] = True
        for j in range(len(total)):
            psi[output, j] = digamma(alpha[output, j])
    for j in range(len(total)):
        logs[j] = psi[output, j] - total[j]


@compiled()
def follow(
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
    """Filter and smooth annotators, each class separately.

    A vote counts for every class by the probability of the class. The noise q of an output is the same for
    all classes: the expected increase of the variance pi (1 - pi) of the output by a vote (eqs. 43-45 for a
    known class). With two outputs one determines the other. With more, `steps` and `final` are filled from
    `_share_out`, but `logs` are those of eqs. 77 and 78.

    `prior`: (J, L) float64.
    `start`: (K + 1,) int64, the steps of each annotator.
    `order`: (K,) int64, annotators; `first` to `last` are processed.
    `task`: (V,) int32.
    `label`: (V,) int16, output of each step.
    `posterior`: (N, J) float64.
    `logs`: (V, J) float64, filled with the expected logarithm of the probability of the vote (eq. 78).
    `steps`: (V, J, L) float32, filled with the smoothed pseudo-counts, unless empty.
    `final`: (K, J, L) float64, filled with those of the last step.
    `halt`: (1,) bool, stops the kernel when it is set.
    """
    classes, outputs = prior.shape
    many = 1 if outputs == 2 else outputs
    block = min(max(_BUFFER // (many * (2 * classes + 1)), 8), 1024)
    kept_own, kept_rest = np.empty((block, many, classes)), np.empty((block, many, classes))
    kept_noise = np.empty((block, many))
    own, rest, noise = np.empty((many, classes)), np.empty((many, classes)), np.empty(many)
    logit, variance = np.empty((many, classes)), np.empty((many, classes))
    alpha, psi = np.empty((outputs, classes)), np.empty((outputs, classes))
    total, fresh = np.empty(classes), np.empty(outputs, dtype=np.bool_)
    shown = alpha if many < outputs else np.empty((outputs, classes))
    for at in range(first, last):
        k = order[at]
        begin, length = start[k], start[k + 1] - start[k]
        blocks = (length + block - 1) // block
        mark_own, mark_rest = np.empty((blocks, many, classes)), np.empty((blocks, many, classes))
        mark_noise = np.empty((blocks, many))
        for m in range(many):
            noise[m] = 0.0
            for j in range(classes):
                own[m, j] = prior[j, m]
                rest[m, j] = 0.0
                for other in range(outputs):
                    if other != m:
                        rest[m, j] += prior[j, other]
        for number in range(blocks + blocks - 1):  # forward, then back from the last block but one
            back = number >= blocks
            part = 2 * blocks - 2 - number if back else number
            if back:
                own[:], rest[:], noise[:] = mark_own[part], mark_rest[part], mark_noise[part]
            else:
                mark_own[part], mark_rest[part], mark_noise[part] = own, rest, noise
            low = part * block
            high = min(low + block, length)
            for t in range(low, high):
                step = begin + t
                _observe(posterior[task[step]], label[step], own, rest, noise)
                kept_own[t - low], kept_rest[t - low], kept_noise[t - low] = own, rest, noise
            if number < blocks - 1:
                if halt[0]:
                    return
                continue
            for t in range(high - 1, low - 1, -1):
                step = begin + t
                now = t - low
                later = t < length - 1
                if _smooth(
                    later, kept_own[now], kept_rest[now], kept_noise[now], logit, variance, alpha, fresh
                ):
                    add_up(alpha, total)
                    if many == outputs and (len(steps) or not later):
                        _share_out(logit, variance, shown)
                fill_expected_logs(label[step], alpha, total, psi, fresh, logs[step])
                if not later:
                    final[k] = shown.T
                if len(steps):
                    steps[step] = shown.T
            if halt[0]:
                return


@compiled()
def settle(
    start: Array,
    slot: Array,
    known: Array,
    shares: Array,
    logs: Array,
    first: int,
    last: int,
    posterior: Array,
) -> float:
    """Update the tasks' probabilities (eq. 87); return the largest change.

    `start`: (N + 1,) int64.
    `slot`: (V,) int32, the votes on task i are the steps `slot[start[i]]` to `slot[start[i + 1]]`.
    `known`: (N,) int16, tasks with a known class, and tasks without votes, stay unchanged.
    `shares`: (J,) float64, expected logarithms of the classes' shares.
    `logs`: (V, J) float64, as in `follow`.
    `first`, `last`: range of tasks.
    `posterior`: (N, J) float64, overwritten.
    """
    classes = len(shares)
    x = np.empty(classes)
    change = 0.0
    for i in range(first, last):
        low, high = start[i], start[i + 1]
        if known[i] >= 0 or low == high:
            continue
        x[:] = shares
        for v in range(low, high):
            for j in range(classes):
                x[j] += logs[slot[v], j]
        highest = x.max()
        norm = 0.0
        for j in range(classes):
            x[j] = np.exp(x[j] - highest)
            norm += x[j]
        for j in range(classes):
            chance = x[j] / norm
            change = max(change, abs(chance - posterior[i, j]))
            posterior[i, j] = chance
    return change


_FAR = 40.0
"""Limit of log odds, which a small share of an uncertain task could otherwise move without bound."""

_SMALLEST = 1e-12
"""Minimum ratio of the smoothed to the filtered variance, against rounding errors."""


@compiled()
def _odds(logit: float) -> float:
    return float(np.exp(min(max(logit, -_FAR), _FAR)))


@compiled()
def _observe_jointly(
    chance: Array, hit: bool, state: Array, covariance: Array, noise: Array, gain: Array, moved: Array, m: int
) -> None:
    """Filter one vote for one output (eqs. 41-62).

    `chance`: (J,) float64, h: probability of each class for the task.
    `hit`: whether the vote is this output.
    `state`: (J,) float64, the mean of w; overwritten.
    `covariance`: (J, J) float64, P; overwritten.
    `noise`: (M,) float64, q of this step at `m`; overwritten by q of the next step. `gain`: (J,) float64, K;
    filled.
    `moved`: (3,) float64, filled with r_prior, the change of eta by it, and 1 - r_post / r_prior.
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
    """Update the adjoint state and covariance by one vote (eqs. 65, 68).

    `chance`, `gain`, `moved`: as in `_observe_jointly`.
    `lead`: (J,) float64, lambda; overwritten.
    `spread`: (J, J) float64, Lambda; overwritten.
    `product`: (J,) float64, workspace for Lambda K.
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
    """Return the odds of an output given class j, and the variance of their logarithm (eqs. 63, 64)."""
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
    """Filter and smooth annotators as `follow` does, with all classes together.

    A vote on an uncertain task counts as one vote on the mean of the classes' log odds (section 7.4).
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
    total, fresh = np.empty(classes), np.empty(outputs, dtype=np.bool_)
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
                    _observe_jointly(
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
                    add_up(alpha, total)
                fill_expected_logs(label[step], alpha, total, psi, fresh, logs[step])
                if not later:
                    final[k] = alpha.T
                if len(steps):
                    steps[step] = alpha.T
            if halt[0]:
                return
