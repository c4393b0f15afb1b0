"""Inner loops of the dynamic model: filter and smoother of every class and output, and the tasks' update.

With odds o = alpha / beta and variance P = 1/alpha + 1/beta of its logarithm (eqs. 51, 53), noise q that is
added to P multiplies alpha and beta by P / (P + q), and a vote adds to one of them: forward, no logarithm is
needed. Backward, where q is 0, nothing changes; elsewhere the smoother of eqs. 63-70 for a single number is
the same as a weighted mean of what the filter knew and what comes later, which has no differences of large
numbers in it.
"""

from __future__ import annotations

import numpy as np

from raterscope.algorithms.compiling import Array, compiled

__all__ = ["LEAST", "MOST", "SKIPPED", "add_up", "follow", "settle", "tell"]

SKIPPED = 1e-6
"""A class less probable than this learns nothing from a vote."""

LEAST, MOST = 1e-30, 1e30
"""Between these pseudo-counts stay, so that neither they nor their logarithms overflow."""

_BUFFER = 1 << 18
"""Numbers kept between the passes: longer histories are filtered again, block by block."""


@compiled()
def digamma(x: float) -> float:
    """Give the derivative of log Gamma(x), x above 0."""
    product, slope = 1.0, 0.0
    while x < 8.0:  # Gamma(x) = Gamma(x + 1) / x
        slope = slope * x + product
        product *= x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * 691 / 32760)))))
    return float(np.log(x) - 0.5 / x - series - slope / product)


@compiled()
def _observe(chance: Array, said: int, own: Array, rest: Array, noise: Array) -> None:
    """Filter one vote.

    Parameters
    ----------
    chance : (J,) float64
        Of each class for the task.
    said : int
    own, rest : (M, J) float64
        Pseudo-counts of each output, and of all others; overwritten.
    noise : (M,) float64
        q of this step; overwritten by that of the next.
    """
    outputs, classes = own.shape
    for m in range(outputs):
        q, rise, hit = noise[m], 0.0, said == m
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
    """Go one step back.

    Parameters
    ----------
    later : bool
        Whether there is a later step.
    own, rest : (M, J) float64
        What the filter knew after this step.
    noise : (M,) float64
        q of the later step.
    logit, variance : (M, J) float64
        Smoothed mean and variance of the log odds at the later step; overwritten by those of this one.
    alpha : (L, J) float64
        Pseudo-counts that they mean (eq. 77); overwritten where they change.
    fresh : (L,) bool
        Set to False where they change.

    Returns
    -------
    bool
        Whether anything changed.
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
            here = (a + b) / a / b
            if later:
                gain = here / (here + q)
                free = q / (here + q)
                logit[m, j] = free * np.log(a / b) + gain * logit[m, j]
                variance[m, j] = here * free + gain * gain * variance[m, j]
            else:
                logit[m, j], variance[m, j] = np.log(a / b), here
            odds = np.exp(logit[m, j])
            alpha[m, j] = min(max((1.0 + odds) / variance[m, j], LEAST), MOST)
            if outputs < len(alpha):
                alpha[1, j] = min(max((1.0 + 1.0 / odds) / variance[m, j], LEAST), MOST)
        if outputs < len(alpha):
            fresh[1] = False
    return changed


@compiled()
def _share_out(logit: Array, variance: Array, shown: Array) -> None:
    """Give each row the Dirichlet distribution that says what the outputs' Beta distributions say.

    Its means are theirs, pi = odds / (1 + odds), scaled to add up to one. Its total sets the sum of the
    outputs' variances, pi (1 - pi) / total, to that of the Beta distributions, (pi (1 - pi))^2 times the
    variance of the log odds. Where all of these have the same total, as without noise, it is that one.

    Parameters
    ----------
    logit, variance : (L, J) float64
        As of `_smooth`.
    shown : (L, J) float64
        Filled with the pseudo-counts.
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
def add_up(alpha: Array, whole: Array) -> None:
    """Fill the digamma function of each class's pseudo-counts, (J,), of (L, J) of each output."""
    outputs, classes = alpha.shape
    for j in range(classes):
        total = 0.0
        for m in range(outputs):
            total += alpha[m, j]
        whole[j] = digamma(total)


@compiled()
def tell(said: int, alpha: Array, whole: Array, psi: Array, fresh: Array, logs: Array) -> None:
    """Fill the expected logarithm of the probability of what was said, (J,); `psi` is kept while `fresh`."""
    if not fresh[said]:
        fresh[said] = True
        for j in range(len(whole)):
            psi[said, j] = digamma(alpha[said, j])
    for j in range(len(whole)):
        logs[j] = psi[said, j] - whole[j]


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
    """Filter and smooth annotators, each class by itself.

    A vote counts for every class by its probability. The noise q of an output is the same for all classes: by
    how much a whole vote raises the variance pi (1 - pi) of the output, expected over the classes (eqs. 43-45
    where the class is known). With two outputs one says what the other does. With more, what is filled into
    `steps` and `final` is that of `_share_out`, but `logs` are those of eqs. 77 and 78.

    Parameters
    ----------
    prior : (J, L) float64
    start : (K + 1,) int64
        The steps of each annotator.
    order : (K,) int64
        Annotators, of which `first` to `last` are done.
    first, last : int
    task : (V,) int32
    label : (V,) int16
        Of each step.
    posterior : (N, J) float64
    logs : (V, J) float64
        Filled with the expected logarithm of the probability of the vote (eq. 78).
    steps : (V, J, L) float32
        Filled with the smoothed pseudo-counts, unless empty.
    final : (K, J, L) float64
        Filled with those of the last step.
    halt : (1,) bool
        Ends this at once when it is set.
    """
    classes, outputs = prior.shape
    many = 1 if outputs == 2 else outputs
    block = min(max(_BUFFER // (many * (2 * classes + 1)), 8), 1024)
    kept_own, kept_rest = np.empty((block, many, classes)), np.empty((block, many, classes))
    kept_noise = np.empty((block, many))
    own, rest, noise = np.empty((many, classes)), np.empty((many, classes)), np.empty(many)
    logit, variance = np.empty((many, classes)), np.empty((many, classes))
    alpha, psi = np.empty((outputs, classes)), np.empty((outputs, classes))
    whole, fresh = np.empty(classes), np.empty(outputs, dtype=np.bool_)
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
                    add_up(alpha, whole)
                    if many == outputs and (len(steps) or not later):
                        _share_out(logit, variance, shown)
                tell(label[step], alpha, whole, psi, fresh, logs[step])
                if not later:
                    final[k] = shown.T
                if len(steps):
                    steps[step] = shown.T
            if halt[0]:
                return


@compiled()
def settle(
    start: Array,
    place: Array,
    known: Array,
    shares: Array,
    logs: Array,
    first: int,
    last: int,
    posterior: Array,
) -> float:
    """Update the tasks' probabilities (eq. 87).

    Parameters
    ----------
    start : (N + 1,) int64
    place : (V,) int32
        The votes on task i are the steps `place[start[i]]` to `place[start[i + 1]]`.
    known : (N,) int16
        Tasks with a class are left as they are, as are those without votes.
    shares : (J,) float64
        Expected logarithms of the classes' shares.
    logs : (V, J) float64
        As of `follow`.
    first, last : int
        The tasks to do.
    posterior : (N, J) float64
        Overwritten.

    Returns
    -------
    float
        The greatest change of a probability.
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
                x[j] += logs[place[v], j]
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
