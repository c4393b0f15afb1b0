"""Sign-flip test of every annotator's residuals for a position bias.

If the sides of items were drawn at random, both signs of a residual of an unbiased annotator are equally
probable, given scores without that annotator's own choices. The sum of the residuals is compared with all
sums under sign changes, by the saddlepoint approximation of Lugannani and Rice. This is valid for any noise,
form of the model and errors of the scores.

Its power is low for annotators with few choices, because a biased annotator's surprising choices count as
noise. For choices of left or right without ties, the probability is therefore a weighted mean: one tenth of
this probability and nine tenths of that of the choice model, whose slopes have a prior estimated from the
crowd. With sides drawn at random the mean of the sum is 0 for any model; a wrong model changes only its
variance. In simulated crowds with another link, tastes, cycles or fading attention, 0.038 to 0.071 of the
probabilities of unbiased annotators were below 0.05 (with equal weights: 0.038 to 0.068).

References
----------
.. [lugannani1980] R. Lugannani and S. Rice, "Saddle point approximation for the distribution of the sum of
   independent random variables", Advances in Applied Probability 12 (1980) 475-490, doi:10.2307/1426607.
.. [fisher1935] R. A. Fisher, "The design of experiments", Oliver and Boyd (1935) (section 21: the sign-flip
   test).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs.choice_model import (
    ChoiceModel,
    Scoring,
    estimate_slope_prior,
    fit_choices,
    improve_annotators,
    improve_slopes,
    scoring,
)
from raterscope.algorithms.pairs.data import FloatArray, Pairs
from raterscope.algorithms.pairs.ranking import starts_of, sum_by_owner, sum_sorted
from raterscope.algorithms.progress import Watch, part, parts_of, run_parts, silent

_STEPS = 40
_FARTHEST = 60.0
_SMALLEST_CHANCE = 1e-12


def choice_probability(mean: FloatArray, start: NDArray[np.int64], statistic: FloatArray) -> FloatArray:
    """Approximate the two-sided probability of a sum of residuals of choices ([lugannani1980]_).

    `mean`: (E,), mean of each choice, sorted by annotator; choices are -1 or 1.
    `start`: (p + 1,), the choices of annotator i are ``start[i]:start[i + 1]``.
    `statistic`: (p,), sums of choices minus their means. The result, (p,), is twice the probability of the
    tail on the side of the statistic, at most 1; it is 1 without choices.

    References
    ----------
    .. [lugannani1980] R. Lugannani and S. Rice, "Saddle point approximation for the distribution of the sum
       of independent random variables", Advances in Applied Probability 12 (1980) 475-490,
       doi:10.2307/1426607.
    """
    from scipy.special import ndtr

    count = np.diff(start)
    towards = np.where(statistic < 0, -1.0, 1.0)
    m = np.repeat(towards, count) * mean
    chance = np.clip(
        (1 + m) / 2, _SMALLEST_CHANCE, 1 - _SMALLEST_CHANCE
    )  # of a choice on the side of the statistic
    aim, farthest = np.abs(statistic), sum_sorted(start, 1 - m)
    variance = sum_sorted(start, 1 - m * m)
    extreme = aim >= farthest * (1 - 1e-9)
    live = (variance > 0) & ~extreme & (aim > 1e-6 * np.sqrt(variance))
    low, high = np.zeros(len(aim)), np.full(len(aim), _FARTHEST)
    t = np.where(live, np.minimum(aim / np.where(variance > 0, variance, 1.0), 1.0), 0.0)
    for _ in range(_STEPS):
        first, second, _ = _tilted_sums(chance, m, t, start)
        low, high = np.where(first < aim, t, low), np.where(first < aim, high, t)
        further = t + (aim - first) / np.where(second > _SMALLEST_CHANCE, second, 1.0)
        further = np.where((further > low) & (further < high), further, (low + high) / 2)
        done = ~live | (np.abs(further - t) <= 1e-7 * np.maximum(t, 1e-3))
        t = np.where(live, further, 0.0)
        if done.all():
            break
    _, second, cumulant = _tilted_sums(chance, m, t, start, cumulants=True)
    w = np.sqrt(np.maximum(2 * (t * aim - cumulant), 0.0))
    u = t * np.sqrt(second)
    close = (w < 1e-3) | (u < 1e-3)
    correction = np.where(close, 0.0, 1 / np.where(close, 1.0, u) - 1 / np.where(close, 1.0, w))
    tail = ndtr(-w) + np.exp(-w * w / 2) / np.sqrt(2 * np.pi) * correction
    all_that_way = np.exp(sum_sorted(start, np.log(chance)))
    tail = np.where(extreme & (count > 0), all_that_way, np.maximum(tail, all_that_way))
    return np.asarray(np.where(live | (extreme & (count > 0)), np.clip(2 * tail, 0.0, 1.0), 1.0))


_ROWS = 1 << 15
"""Number of rows of a block, whose arrays stay in the processor's cache."""


def _tilted_sums(
    chance: FloatArray, mean: FloatArray, t: FloatArray, start: NDArray[np.int64], *, cumulants: bool = False
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sum means and variances of choices tilted by t, and on request the cumulants; (p,) each."""
    first, second, cumulant = np.zeros((3, len(t)))
    begin = 0
    while begin < len(t):
        end = max(begin + 1, int(np.searchsorted(start, start[begin] + _ROWS, side="right")) - 1)
        owners, rows = slice(begin, end), slice(start[begin], start[end])
        bounds = start[begin : end + 1] - start[begin]
        likely, m, count = chance[rows], mean[rows], np.diff(bounds)
        total = likely + (1 - likely) * np.repeat(np.exp(-2 * t[owners]), count)
        tilted = likely / total
        first[owners] = sum_sorted(bounds, 2 * tilted - 1 - m)
        second[owners] = sum_sorted(bounds, 4 * tilted * (1 - tilted))
        if cumulants:
            cumulant[owners] = sum_sorted(bounds, np.log(total) + np.repeat(t[owners], count) * (1 - m))
        begin = end
    return first, second, cumulant


_BY_SIGNS = 0.1
"""Weight of the sign-flip test's probability; the rest is the weight of the choice model's."""
_LEVEL = 0.95
_POWER = 0.9
_FIT_STEPS = 4
_SADDLE_STEPS = 40
_BISECTIONS = 26
_REACH = 12.0
"""Maximum bias, on the scale of the linear predictor, that differs from choices of only one side."""
_GROUPS = 256
"""Maximum number of groups of an annotator's choices for intervals."""
_CLIP = 2.5
_NORMAL_MAD = 1.4826
_LEAST = 1e-300
_MIN_SLOPE = 0.05


@dataclass(frozen=True, eq=False)
class FlipTest:
    """Results of the test for p annotators; NaN for annotators without choices."""

    probability: FloatArray  # (p,): two-sided, of a bias no larger than the minimum effect
    of_any: FloatArray  # (p,): two-sided, of no bias at all
    z: FloatArray  # (p,): the sum of the residuals over its standard error; above 0 for a preference of left
    reach: _Reach  # input of `detectable`
    # share of the comparisons with the better item on the left, by the others' answers
    better_left: float = 0.5
    apart: int = 0  # number of comparisons where these have a better item

    @property
    def bias(self) -> FloatArray:
        """Mean choice on a pair of equal items, (p,); -1 to 1 if choices are not graded."""
        return self._interval[0]

    @property
    def low(self) -> FloatArray:
        """Lower end of the 95 % interval of the bias, (p,)."""
        return self._interval[1]

    @property
    def high(self) -> FloatArray:
        """Upper end of the 95 % interval of the bias, (p,)."""
        return self._interval[2]

    @cached_property
    def _interval(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        untested = np.isnan(self.probability)
        bias, low, high = (
            np.where(untested, np.nan, self.reach.units(array)) for array in self.reach.roots()
        )
        return bias, low, high

    def detectable(self, probability: float) -> FloatArray:
        """Return the smallest bias that is found in 9 of 10 cases, (p,), in the unit of `bias`.

        `probability`: annotators with a smaller probability are flagged. The result is NaN if not even
        choices of only one side suffice.
        """
        return self.reach.detectable(probability)


@dataclass(frozen=True, eq=False)
class _Reach:
    """Groups of choices with nearly the same linear predictor, and variance due to errors of the scores."""

    graded: bool
    scale: float
    effect: float
    owner: NDArray[np.int64]
    start: NDArray[np.int64]
    at: FloatArray
    count: FloatArray
    choice: FloatArray
    square: FloatArray
    total: FloatArray
    flips: FloatArray
    wider: FloatArray

    def sums(self, value: FloatArray) -> FloatArray:
        return sum_sorted(self.start, value)

    def score(self, bias: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sum of the residuals under biases, (p,), and its variance."""
        mean = self.at + bias[self.owner]
        if self.graded:
            residual = self.sums(self.choice - self.count * mean)
            square = self.sums(self.square - 2 * mean * self.choice + self.count * mean**2)
            count = np.maximum(self.total, 1.0)
            return residual, np.maximum(square - residual * residual / count, 0.0) * self.wider
        mean = np.tanh(0.5 * mean)
        residual = self.sums(self.choice - self.count * mean)
        square = self.sums(self.square - 2 * mean * self.choice + self.count * mean**2)
        model = self.sums(self.count * (1 - mean**2))
        return residual, np.maximum(square, model) * self.wider

    def units(self, bias: FloatArray) -> FloatArray:
        """Convert a bias of the linear predictor to the mean choice on a pair of equal items."""
        return bias * self.scale if self.graded else np.tanh(0.5 * bias)

    def roots(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Find the bias, and the biases at the ends of the interval, by bisection."""
        from scipy.special import ndtri

        far = float(ndtri(0.5 + _LEVEL / 2))
        ends = []
        for sign in (0.0, far, -far):
            low, high = np.full(len(self.total), -_REACH), np.full(len(self.total), _REACH)
            for _ in range(_BISECTIONS):
                middle = (low + high) / 2
                residual, variance = self.score(middle)
                above = residual > sign * np.sqrt(variance)
                low, high = np.where(above, middle, low), np.where(above, high, middle)
            ends.append(np.where(self.total > 0, (low + high) / 2, np.nan))
        bias, low, high = ends
        return bias, np.minimum(low, bias), np.maximum(high, bias)

    def detectable(self, probability: float) -> FloatArray:
        """See `FlipTest.detectable`."""
        from scipy.special import ndtri

        cut, sure = float(ndtri(1 - probability / 2)), float(ndtri(_POWER))
        count = len(self.total)
        base = np.full(count, self.effect)
        if self.graded:
            _, variance = self.score(base)  # about the mean residual, the same at any bias
            result = base + (cut + sure) * np.sqrt(variance) / np.maximum(self.total, 1.0)
            known = (self.flips >= 1 - np.log2(probability)) & (self.total > 0)
            return np.where(known, self.units(result), np.nan)
        # of a bias to the left and one to the right, the larger
        reached = np.maximum(*(self._reached(side * self.at, base, cut, sure) for side in (1, -1)))
        return np.where(self.flips >= 1 - np.log2(probability), self.units(reached), np.nan)

    def _reached(self, at: FloatArray, base: FloatArray, cut: float, sure: float) -> FloatArray:
        """Return the smallest bias to the left that is found, (p,); NaN if none is."""
        start = np.tanh(0.5 * (at + base[self.owner]))
        low, high = base.copy(), np.full(len(base), _REACH)
        reached = np.zeros(len(base), dtype=bool)
        for iteration in range(_BISECTIONS):
            middle = high if iteration == 0 else (low + high) / 2
            mean = np.tanh(0.5 * (at + middle[self.owner]))
            seen = self.sums(self.count * (mean - start))
            spread = self.sums(self.count * (1 - mean**2))
            # the test flips residuals: choices minus the means given by the scores
            square = self.sums(self.count * (1 - 2 * mean * start + start**2))
            enough = seen >= cut * np.sqrt(np.maximum(square, 0) * self.wider) + sure * np.sqrt(spread)
            if iteration == 0:
                reached = enough
                continue
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.where(reached, high, np.nan)


def flip_test(pairs: Pairs, effect: float = 0.0, watch: Watch = silent) -> FlipTest:
    """Test every annotator for a bias larger than a minimum effect.

    `effect`: minimum effect, a mean choice on a pair of equal items, in the units of the root mean square
    choice. Biases up to it are not found. 0 tests for any bias.
    """
    model = fit_choices(pairs, part(watch, 0.0, 0.5))
    known = scoring(model, part(watch, 0.5, 0.8))
    watch(0.8, "testing residuals")
    slope = np.maximum(model.slope, _MIN_SLOPE)
    for _ in range(_FIT_STEPS):
        watch(0.8, "testing residuals")
        slope = improve_slopes(model, known.difference, slope)
    mean = model.mean(model.spread(known.difference, slope))
    residual = model.choice - mean
    if model.graded:
        residual = _clipped(model, residual)
    watch(0.85, "testing residuals")
    total, square = model.total(residual), model.total(residual * residual)
    added = _added_variance(model, known, slope, model.change(mean))
    wider = 1.0 + added / np.where(square > 0, square, 1.0)
    watch(0.9, "testing residuals")
    statistic = total / np.sqrt(wider)
    count = np.diff(model.start)
    of_any = sign_flip_probability(residual, model.annotator, statistic)
    both = model.slope, model.bias
    for _ in range(_FIT_STEPS):
        watch(0.9, "testing residuals")
        both = improve_annotators(model, known.difference, *both)
        model.slope_prior = estimate_slope_prior(model, known.difference, *both)
    if not model.graded:
        at = model.spread(known.difference, np.maximum(both[0], _MIN_SLOPE))
        of_any = _with_model(model, model.mean(at), wider, of_any)
    z = np.where(square > 0, statistic / np.sqrt(np.where(square > 0, square, 1.0)), 0.0)
    watch(0.95, "testing residuals")
    flips = model.total(residual != 0)
    at = model.spread(known.difference, both[0])
    watch(0.96, "testing residuals")
    reach = _reach(model, at, effect, flips, wider)
    beyond = np.zeros(model.annotators) if effect <= 0 else _beyond(model, at, effect, wider, watch)
    probability = np.maximum(of_any, beyond)
    watch(0.99, "testing residuals")
    none = count == 0
    watch(1.0, "testing residuals")
    probability, of_any, z = (np.where(none, np.nan, array) for array in (probability, of_any, z))
    apart = int(np.count_nonzero(known.difference))
    better_left = float((known.difference > 0).sum() / apart) if apart else 0.5
    return FlipTest(probability, of_any, z, reach, better_left, apart)


def _with_model(model: ChoiceModel, mean: FloatArray, wider: FloatArray, by_signs: FloatArray) -> FloatArray:
    """Combine the probabilities of the sign-flip test and of the choice model; with ties, use only the first.

    The slopes are those fitted with a bias, so that a bias does not count as noise.
    """
    statistic = model.total(model.choice - mean) / np.sqrt(wider)
    by_model = choice_probability(mean, model.start, statistic)
    tied = model.total(model.choice == 0) > 0
    return np.where(tied, by_signs, _BY_SIGNS * by_signs + (1 - _BY_SIGNS) * by_model)


def sign_flip_probability(
    residual: FloatArray, owner: NDArray[np.integer], statistic: FloatArray
) -> FloatArray:
    """Approximate the two-sided probability of a sum under random signs (Lugannani and Rice).

    With K(t) = sum log cosh(t r), its saddlepoint t solves K'(t) = |T|. K' rises and is concave, so that
    Newton's method from 0 never oversteps.

    `residual`: (E,), the residuals r.
    `owner`: (E,), the annotator of each, 0 to p - 1, in ascending order.
    `statistic`: (p,), T, a sum of residuals. The result, (p,), is at least 2^(1 - k) for k residuals that are
    not 0, the probability of one pattern of signs; it is 1 without residuals.
    """
    from scipy.special import ndtr

    count = len(statistic)
    size, start = np.abs(residual), starts_of(owner, count)
    greatest = sum_sorted(start, size)
    flips = sum_sorted(start, size > 0)
    square = sum_sorted(start, residual * residual)
    aim = np.abs(statistic)
    extreme = aim >= greatest * (1 - 1e-9)
    live = (square > 0) & ~extreme & (aim > 1e-6 * np.sqrt(square))
    t = np.where(live, aim / np.where(square > 0, square, 1.0), 0.0)
    moving = live.copy()
    for _ in range(_SADDLE_STEPS):
        if not moving.any():
            break
        if not moving.all():
            batch = moving[owner]
            r, annotators = size[batch], owner[batch]
            begin = np.concatenate([[0], np.cumsum(np.where(moving, np.diff(start), 0))])
        else:
            r, annotators, begin = size, owner, start
        bent = np.tanh(t[annotators] * r)
        bent *= r
        first = sum_sorted(begin, bent)
        second = sum_sorted(begin, r * r - bent * bent)
        step = np.where(moving, (aim - first) / np.where(second > 0, second, 1.0), 0.0)
        t = t + step
        moving &= (np.abs(step) > 1e-7 * t) & (second > 1e-12 * square)
    at = t[owner] * size
    cumulant = sum_sorted(start, at + np.log1p(np.exp(-2 * at)) - np.log(2.0))
    bent = np.tanh(at)
    second = sum_sorted(start, size * size * (1 - bent * bent))
    w = np.sqrt(np.maximum(2 * (t * aim - cumulant), 0.0))
    u = t * np.sqrt(second)
    close = (w < 1e-3) | (u < 1e-3)
    correction = np.where(close, 0.0, 1 / np.where(close, 1.0, u) - 1 / np.where(close, 1.0, w))
    tail = ndtr(-w) + np.exp(-w * w / 2) / np.sqrt(2 * np.pi) * correction
    floor = np.maximum(2.0 ** (1 - flips), _LEAST)
    result = np.where(live, np.clip(2 * tail, floor, 1.0), 1.0)
    return np.asarray(np.where(extreme & (square > 0), np.minimum(floor, 1.0), result))


def _clipped(model: ChoiceModel, residual: FloatArray) -> FloatArray:
    """Clip residuals of graded choices at 2.5 median absolute deviations of their annotator."""
    size = np.abs(residual)
    order = np.lexsort((size, model.annotator))
    count = np.diff(model.start)
    middle = np.minimum(model.start[:-1] + count // 2, max(len(residual) - 1, 0))
    far = _CLIP * _NORMAL_MAD * size[order][middle]
    far = model.each(np.where((count > 0) & (far > 0), far, np.inf))
    return np.clip(residual, -far, far)


def _added_variance(model: ChoiceModel, known: Scoring, slope: FloatArray, change: FloatArray) -> FloatArray:
    """Return the variance that errors of the scores add to the sum of residuals, (p,).

    It is g'Cov(s)g for the derivative g of the sum by the scores, minus the value for random sides.
    """
    result = np.zeros(model.annotators)
    value = model.each(slope) * change
    for first, last in parts_of(model.annotators, 4_000_000 // max(model.items, 1)):
        rows = slice(int(model.start[first]), int(model.start[last]))
        columns = last - first
        column = model.annotator[rows] - first
        left, right = model.left[rows], model.right[rows]
        size = model.items * columns
        gradient = sum_by_owner(left * columns + column, value[rows], size)
        gradient -= sum_by_owner(right * columns + column, value[rows], size)
        through = known.solve(gradient.reshape(-1, columns)).ravel()
        total = sum_sorted(model.start[first : last + 1] - model.start[first], value[rows] * (
            through[left * columns + column] - through[right * columns + column]
        ))  # fmt: skip
        result[first:last] = total
    return np.maximum(result - _random_sides(model, known, value), 0.0)


def _random_sides(model: ChoiceModel, known: Scoring, value: FloatArray) -> FloatArray:
    """Return the mean of g'Cov(s)g over random sides: the sum of the variances of each difference."""
    n = model.items
    low, high = np.minimum(model.left, model.right), np.maximum(model.left, model.right)
    result = np.zeros(len(value))
    block = max(1, 4_000_000 // max(n, 1))
    order = np.argsort(low, kind="stable")
    starts = np.searchsorted(low[order], np.arange(0, n + block, block))
    diagonal = np.zeros(n)
    columns: list[tuple[NDArray[np.int64], FloatArray]] = []
    for at, (first, last) in enumerate(parts_of(n, block)):
        unit = np.zeros((n, last - first))
        unit[np.arange(first, last), np.arange(last - first)] = 1.0
        inverse = known.solve(unit)
        diagonal[first:last] = inverse[np.arange(first, last), np.arange(last - first)]
        batch = order[starts[at] : starts[at + 1]]
        columns.append((batch, inverse[high[batch], low[batch] - first]))
    for column, crossed in columns:
        result[column] = diagonal[low[column]] + diagonal[high[column]] - 2 * crossed
    return model.total(value * value * result)


def _reach(model: ChoiceModel, at: FloatArray, effect: float, flips: FloatArray, wider: FloatArray) -> _Reach:
    """Group choices with nearly equal linear predictors, at most `_GROUPS` for each annotator."""
    span = max(float(np.ptp(at)) if len(at) else 0.0, 1.0) * 2
    order = np.argsort(model.annotator * span + at)
    count = np.diff(model.start)
    size = np.maximum(-(-count // _GROUPS), 1)
    within = (np.arange(len(at)) - model.start[model.annotator]) // size[model.annotator]
    groups = -(-count // size)
    key = np.concatenate([[0], np.cumsum(groups)])[model.annotator] + within
    total = int(groups.sum())
    number = np.bincount(key, minlength=total).astype(np.float64)
    begin = np.concatenate([[0], np.cumsum(number)]).astype(np.int64)
    choice = model.choice[order]
    base = effect if model.graded else 2 * np.arctanh(effect)
    return _Reach(
        graded=model.graded,
        scale=model.scale,
        effect=float(base),
        owner=np.repeat(np.arange(model.annotators), groups),
        start=np.concatenate([[0], np.cumsum(groups)]),
        at=sum_sorted(begin, at[order]) / np.maximum(number, 1.0),
        count=number,
        choice=sum_sorted(begin, choice),
        square=sum_sorted(begin, choice * choice),
        total=count.astype(np.float64),
        flips=flips,
        wider=wider,
    )


def _beyond(model: ChoiceModel, at: FloatArray, effect: float, wider: FloatArray, watch: Watch) -> FloatArray:
    """Return the largest probability under a bias up to the minimum effect, by flipping shifted residuals."""
    limit = effect if model.graded else 2 * float(np.arctanh(effect))

    def test(at_end: int, _: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        mean = model.mean(at + (limit, -limit)[at_end])
        residual = model.choice - mean
        if model.graded:
            residual, variance = _clipped(model, residual), np.zeros(model.annotators)
        else:
            variance = model.total(1 - mean * mean)
        total, square = model.total(residual), model.total(residual * residual)
        variance = np.maximum(square, variance) * wider
        statistic = total * np.sqrt(square / np.where(variance > 0, variance, 1.0))
        # one-sided: residuals above a bias to the left, and below a bias to the right
        both = sign_flip_probability(residual, model.annotator, statistic)
        if not model.graded:
            both = _with_model(model, mean, wider, both)
        both = both / 2
        return total, np.where(total > 0, both, 1 - both), np.where(total > 0, 1 - both, both)

    ends = run_parts(test, parts_of(2, 1), partial(watch, 0.97, "testing residuals"))
    (left, above, beyond_left), (right, short_of_right, below) = ends
    return np.asarray(np.where(left + right > 0, above + short_of_right, below + beyond_left).clip(0.0, 1.0))
