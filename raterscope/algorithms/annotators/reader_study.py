"""Reader studies: bias, repeatability and variance of readers, and number of cases for an interval's width.

Readers measured the same cases, perhaps repeatedly.

A measurement of case i by reader j is mean + case(i) + reader(j) + interaction(i, j) + error, all terms
random and normal: a linear mixed model with crossed effects. It is fitted by restricted maximum likelihood
(REML, [patterson1971]_), which with complete tables gives the analysis of variance. Cases or reads may be
missing.

References
----------
.. [bland1999] J. M. Bland and D. G. Altman, "Measuring agreement in method comparison studies", Statistical
   Methods in Medical Research 8 (1999) 135-160, doi:10.1177/096228029900800204.
.. [wilcoxon1945] F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1 (1945)
   80-83, doi:10.2307/3001968.
.. [holm1979] S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
   Statistics 6 (1979) 65-70.
.. [patterson1971] H. D. Patterson and R. Thompson, "Recovery of inter-block information when block sizes are
   unequal", Biometrika 58 (1971) 545-554, doi:10.1093/biomet/58.3.545.
.. [satterthwaite1946] F. E. Satterthwaite, "An approximate distribution of estimates of variance
   components", Biometrics Bulletin 2 (1946) 110-114, doi:10.2307/3002019.
.. [wilson1927] E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal
   of the American Statistical Association 22 (1927) 209-212, doi:10.1080/01621459.1927.10502953.
.. [fleiss1969] J. L. Fleiss, J. Cohen and B. S. Everitt, "Large sample standard errors of kappa and weighted
   kappa", Psychological Bulletin 72 (1969) 323-327, doi:10.1037/h0028106.
.. [bonett2002] D. G. Bonett, "Sample size requirements for estimating intraclass correlations with desired
   precision", Statistics in Medicine 21 (2002) 1331-1335, doi:10.1002/sim.1108.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from raterscope.algorithms.annotators.agreement import kappa_error
from raterscope.algorithms.annotators.agreement_statistics import (
    LEVEL,
    Coefficient,
    LimitsOfAgreement,
    intraclass_correlation,
    limit_error,
    limits_of_agreement,
    repeatability,
)
from raterscope.algorithms.annotators.names import reads_of
from raterscope.algorithms.annotators.statistics import holm, wilcoxon, wilson

TERMS = ("case", "reader", "interaction", "error")

_STEP = 1e-3
_LEAST = 1e-3
_NONE = 1.1 * _LEAST
"""Share of the total standard deviation below which a term counts as zero."""


@dataclass(frozen=True, eq=False)
class ReaderVariance:
    """Standard deviations of the terms of a mixed model, in the unit of the measurements."""

    mean: Coefficient  # of all measurements
    # case, reader: between cases, and between readers' offsets; 0 without an interval where no variance was
    # found
    case: Coefficient
    reader: Coefficient
    # interaction of reader and case; NaN without repeated reads, when it is part of the error
    interaction: Coefficient
    error: Coefficient  # between reads of a case by one reader; without repeated reads, with the interaction
    cases: int
    readers: int
    measurements: int

    @property
    def repeated(self) -> bool:
        """Whether readers read cases more than once."""
        return not math.isnan(self.interaction.value)

    @property
    def reproducibility(self) -> float:
        """Standard deviation between single reads of a case by different readers."""
        terms = (self.reader, self.interaction, self.error)
        return math.sqrt(sum(term.value**2 for term in terms if not math.isnan(term.value)))


@dataclass(frozen=True, eq=False)
class Cells:
    """Measurements by case and reader."""

    mean: FloatArray  # (n, k): of the reads of each cell; NaN without any
    count: FloatArray  # (n, k): reads
    within: float  # sum of squares of reads about their cell's mean


def reader_variance(values: ArrayLike, case: ArrayLike, reader: ArrayLike) -> ReaderVariance:
    """Fit the mixed model.

    `values`: (N,).
    `case`, `reader`: (N,), from 0; the same pair more than once for repeated reads.
    Raises `ValueError` for fewer than two cases or readers, or values that are not finite.

    Intervals of standard deviations use a chi-squared distribution. Its degrees of freedom match the variance
    of the estimate, which follows from the curvature of the likelihood [satterthwaite1946]_. With less than
    one degree of freedom, for example if few readers hardly differ, the interval is NaN.
    """
    from scipy.optimize import minimize

    cells = cells_of(values, case, reader)
    n, k = cells.mean.shape
    repeated = bool((cells.count > 1).any())
    measurements = int(cells.count.sum())
    total = float(np.std(np.asarray(values, dtype=np.float64), ddof=1))
    if total == 0:
        zero, mean = Coefficient(0.0, math.nan, math.nan), float(np.asarray(values, dtype=float)[0])
        missing = Coefficient(math.nan, math.nan, math.nan)
        return ReaderVariance(
            Coefficient(mean, mean, mean), zero, zero, zero if repeated else missing, zero, n, k,
            int(cells.count.sum()),
        )  # fmt: skip
    scaled = Cells((cells.mean - np.nanmean(cells.mean)) / total, cells.count, cells.within / total**2)

    def deviance(sizes: FloatArray) -> float:
        return _deviance(scaled, sizes, repeated)[0]

    starts = ([0.8, 0.3, 0.3, 0.5], [0.3, 0.3, 0.3, 0.8], [0.9, 0.1, 0.1, 0.1])
    bounds = [(0.0, 10.0)] * (2 + repeated) + [(_LEAST, 10.0)]
    fits = [
        minimize(
            deviance, start if repeated else [*start[:2], start[3]], method="L-BFGS-B", bounds=bounds,
            options={"ftol": 1e-13, "gtol": 1e-8},
        )
        for start in starts
    ]  # fmt: skip
    best = min(fits, key=lambda fit: float(fit.fun)).x
    _, center, center_variance = _deviance(scaled, best, repeated)
    squares, spreads = _curved(deviance, best)
    terms = [_with_interval(*figures, total) for figures in zip(squares, spreads, strict=True)]
    of_case, of_reader, *middle, of_error = terms
    interaction = middle[0] if middle else Coefficient(math.nan, math.nan, math.nan)
    freedom = max(1, min(n, k if best[1] > _NONE else n) - 1)
    half = float(scipy.special.stdtrit(freedom, _UPPER)) * math.sqrt(center_variance) * total
    mean = center * total + float(np.nanmean(cells.mean))
    center_interval = Coefficient(mean, mean - half, mean + half)
    return ReaderVariance(center_interval, of_case, of_reader, interaction, of_error, n, k, measurements)


def cells_of(values: ArrayLike, case: ArrayLike, reader: ArrayLike) -> Cells:
    """Gather measurements by case and reader."""
    y = np.asarray(values, dtype=np.float64)
    rows, columns = np.asarray(case, dtype=np.int64), np.asarray(reader, dtype=np.int64)
    if not np.isfinite(y).all():
        raise ValueError("a value is not finite; expected a number for every measurement.")
    n, k = (int(index.max(initial=-1)) + 1 for index in (rows, columns))
    if min(n, k) < 2:
        raise ValueError(f"{n} cases and {k} readers; expected two or more of each.")
    count, total = np.zeros((n, k)), np.zeros((n, k))
    np.add.at(count, (rows, columns), 1.0)
    np.add.at(total, (rows, columns), y)
    mean = np.divide(total, count, out=np.full((n, k), np.nan), where=count > 0)
    return Cells(mean, count, float(((y - mean[rows, columns]) ** 2).sum()))


def _deviance(cells: Cells, sizes: FloatArray, repeated: bool) -> tuple[float, float, float]:
    """Return -2 log restricted likelihood, the mean, and its variance.

    `sizes` are standard deviations of the terms. Cell means and the scatter within cells are independent; the
    covariance of the means is diagonal except for cases and readers, which are eliminated in turn.
    """
    case, reader, error = sizes[0] ** 2, sizes[1] ** 2, sizes[-1] ** 2
    extra = sizes[2] ** 2 if repeated else 0.0
    known = cells.count > 0
    variance = np.where(known, extra + error / np.maximum(cells.count, 1), 1.0)
    weight = np.where(known, 1.0 / variance, 0.0)
    columns = np.stack([np.where(known, cells.mean, 0.0), known.astype(np.float64)])
    spread = 1.0 + case * weight.sum(axis=1)
    shrink = case / spread
    # V1 = D + case Z Z': products with its inverse, for both columns.
    sums = np.einsum("nk,cnk->cn", weight, columns)
    inner = np.einsum("cnk,nk,dnk->cd", columns, weight, columns) - np.einsum(
        "cn,n,dn->cd", sums, shrink, sums
    )
    of_readers = np.einsum("nk,cnk->kc", weight, columns) - np.einsum("nk,n,cn->kc", weight, shrink, sums)
    among = np.diag(weight.sum(axis=0)) - np.einsum("nk,n,nl->kl", weight, shrink, weight)
    system = np.eye(len(among)) + reader * among
    inner -= reader * of_readers.T @ np.linalg.solve(system, of_readers)
    log_determinant = float(
        np.log(variance[known]).sum() + np.log(spread).sum() + np.linalg.slogdet(system)[1]
    )
    center = inner[0, 1] / inner[1, 1]
    rest = inner[0, 0] - inner[0, 1] ** 2 / inner[1, 1]
    spare = float((cells.count - 1)[known].sum())
    within = spare * math.log(error) + cells.within / error if spare else 0.0
    deviance = log_determinant + rest + math.log(inner[1, 1]) + within
    return float(deviance), float(center), float(1.0 / inner[1, 1])


def _curved(deviance: Callable[[FloatArray], float], best: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return variances of the terms, and the variances of these estimates; NaN for a term at zero."""
    squares = best**2
    free = np.flatnonzero(best > _NONE)
    step = np.maximum(squares * _STEP * 10, 1e-7)
    hessian = np.zeros((len(free), len(free)))

    def at(*moves: tuple[int, float]) -> float:
        moved = squares.copy()
        for term, by in moves:
            moved[term] += by
        return deviance(np.sqrt(np.maximum(moved, 0.0)))

    for row, a in enumerate(free.tolist()):
        for column, b in enumerate(free.tolist()):
            up, down = step[a], step[b]
            hessian[row, column] = (
                at((a, up), (b, down)) - at((a, up), (b, -down)) - at((a, -up), (b, down))
                + at((a, -up), (b, -down))
            ) / (4 * up * down)  # fmt: skip
    spread = np.full(len(best), np.nan)
    with suppress(np.linalg.LinAlgError):
        spread[free] = 2 * np.diag(np.linalg.inv((hessian + hessian.T) / 2))
    return squares, spread


def _with_interval(square: float, spread: float, unit: float) -> Coefficient:
    value = math.sqrt(square) * unit
    if math.sqrt(square) <= _NONE:
        return Coefficient(0.0, math.nan, math.nan)
    freedom = 2 * square**2 / spread if spread > 0 else 0.0
    if freedom < 1:  # the upper end would be beyond any use
        return Coefficient(value, math.nan, math.nan)
    upper, lower = (
        2 * float(scipy.special.gammaincinv(freedom / 2, share)) for share in (_UPPER, 1 - _UPPER)
    )
    return Coefficient(value, value * math.sqrt(freedom / upper), value * math.sqrt(freedom / lower))


FloatArray = NDArray[np.float64]
NO_COEFFICIENT = Coefficient(math.nan, math.nan, math.nan)
_UPPER = (1 + LEVEL) / 2


@dataclass(frozen=True, eq=False)
class ReaderResult:
    """Comparison of one reader with the others, and with their own other reads."""

    name: str
    # mean difference from the mean of the other readers of the same case; NaN below two shared cases
    bias: Coefficient
    # p_value, adjusted: of Wilcoxon's signed-rank test of these differences, and adjusted by Holm for the
    # number of readers
    p_value: float
    adjusted: float
    repeatability: Coefficient  # repeatability coefficient of their reads; NaN without repeated reads
    consistency: Coefficient  # ICC(2,1) of their first two reads; NaN below two cases read twice
    limits: LimitsOfAgreement | None  # of the second read minus the first; None below three cases
    # cases, repeated: cases read, and those read twice or more
    cases: int
    repeated: int


@dataclass(frozen=True, eq=False)
class ReaderComparison:
    """Comparison of all readers."""

    readers: tuple[ReaderResult, ...]
    repeatability: Coefficient  # of all readers' repeated reads together; NaN without any
    variance: ReaderVariance  # mixed model of all reads


def compare_readers(values: Mapping[str, Mapping[int, float]]) -> ReaderComparison | None:
    """Compare readers, whose repeated reads are named by `read_name`.

    `values`: measurements by annotator and case.

    Bias: mean difference with the interval of Student's t over cases. A reader's reads of a case are averaged
    first. Repeatability: [bland1999]_, section 5. Tests: [wilcoxon1945]_, [holm1979]_.
    """
    people = reads_of(values)
    cases = sorted({case for of in values.values() for case in of})
    if len(people) < 2 or len(cases) < 2:
        return None
    index = {case: at for at, case in enumerate(cases)}
    most = max(len(reads) for reads in people.values())
    table = np.full((len(cases), len(people), most), np.nan)
    for column, reads in enumerate(people.values()):
        for depth, name in enumerate(reads.values()):
            for case, value in values[name].items():
                table[index[case], column, depth] = value
    return compare_reads(table, tuple(people))


def compare_reads(values: ArrayLike, names: Sequence[str]) -> ReaderComparison:
    """Compare readers in a table of reads.

    `values`: (n, k, m), n cases by k readers by m reads; NaN for a missing read.
    """
    table = np.asarray(values, dtype=np.float64)
    known = np.isfinite(table)
    counts = known.sum(axis=2)
    with np.errstate(invalid="ignore"):
        mean = np.where(known, table, 0.0).sum(axis=2) / np.where(counts > 0, counts, np.nan)
    differences = [mean[:, at] - _mean_of_others(mean, at) for at in range(len(names))]
    tests = [wilcoxon(difference, np.zeros(len(difference))).p_value for difference in differences]
    adjusted = holm(tests).tolist()
    repeats = [_compare_repeats(table[:, at]) for at in range(len(names))]
    readers = tuple(
        ReaderResult(
            name=name, bias=mean_interval(differences[at]), p_value=tests[at], adjusted=adjusted[at],
            repeatability=repeatability(table[:, at]), consistency=repeats[at][0], limits=repeats[at][1],
            cases=int((counts[:, at] > 0).sum()), repeated=int((counts[:, at] > 1).sum()),
        )
        for at, name in enumerate(names)
    )  # fmt: skip
    case, reader, _ = np.nonzero(known)
    variance = reader_variance(table[known], np.unique(case, return_inverse=True)[1], reader)
    return ReaderComparison(readers, repeatability(table.reshape(-1, table.shape[2])), variance)


def mean_interval(values: ArrayLike) -> Coefficient:
    """Return the mean of values with the interval of Student's t; NaN do not count."""
    figures = np.asarray(values, dtype=np.float64)
    figures = figures[np.isfinite(figures)]
    if len(figures) < 2:
        return Coefficient(float(figures[0]) if len(figures) else math.nan, math.nan, math.nan)
    mean = float(figures.mean())
    quantile = float(scipy.special.stdtrit(len(figures) - 1, _UPPER))
    half = quantile * float(figures.std(ddof=1)) / math.sqrt(len(figures))
    return Coefficient(mean, mean - half, mean + half)


def mean_over_pairs(values: Mapping[tuple[str, str], float]) -> Coefficient:
    """Return the mean of values of pairs of readers, with an interval by the jackknife over readers.

    Pairs that share a reader are not independent, so readers are left out in turn with all their pairs. NaN
    do not count; without three readers there is no interval.
    """
    known = {pair: value for pair, value in values.items() if math.isfinite(value)}
    if not known:
        return NO_COEFFICIENT
    mean = float(np.mean(list(known.values())))
    readers = sorted({name for pair in known for name in pair})
    without = [[value for pair, value in known.items() if reader not in pair] for reader in readers]
    if not all(without):
        return Coefficient(mean, math.nan, math.nan)
    means = np.array([np.mean(rest) for rest in without])
    k = len(readers)
    error = math.sqrt((k - 1) / k * float(((means - means.mean()) ** 2).sum()))
    half = float(scipy.special.stdtrit(k - 1, _UPPER)) * error
    return Coefficient(mean, mean - half, mean + half)


def _mean_of_others(mean: FloatArray, at: int) -> FloatArray:
    others = np.delete(mean, at, axis=1)
    known = np.isfinite(others)
    counts = known.sum(axis=1)
    return np.asarray(np.where(known, others, 0.0).sum(axis=1) / np.where(counts > 0, counts, np.nan))


def _compare_repeats(reads: FloatArray) -> tuple[Coefficient, LimitsOfAgreement | None]:
    """Compare a reader's first two reads of each case."""
    both = [row[np.isfinite(row)][:2] for row in reads if np.isfinite(row).sum() > 1]
    if len(both) < 2:
        return NO_COEFFICIENT, None
    pairs = np.array(both)
    limits = limits_of_agreement(pairs[:, 1], pairs[:, 0]) if len(pairs) > 2 else None
    return intraclass_correlation(pairs).absolute, limits


_MAX_CASES = 10_000_000
"""Maximum number of cases of a search."""


def cases_for_proportion(share: float, width: float) -> int:
    """Return the number of cases at which a proportion's Wilson interval, [wilson1927]_, is narrow enough.

    `share`: expected, 0 to 1. `width`: width of the whole 95 % interval.
    """
    _check_range("share", share, 1.0)
    _check_range("width", width, 1.0, open_ends=True)

    def at(cases: float) -> float:
        low, high = wilson(share * cases, int(cases), LEVEL)
        return high - low

    return _search(at, width)


def cases_for_kappa(kappa: float, width: float, rates: Sequence[float] = (0.5, 0.5)) -> int:
    """Return the number of cases at which the interval of Cohen's kappa of two raters is narrow enough.

    `kappa`: expected, 0 to 1. `width`: width of the whole 95 % interval. `rates`: expected shares of the
    classes, the same for both raters; they add up to 1.

    Large-sample standard error of [fleiss1969]_ at the expected table.
    """
    _check_range("kappa", kappa, 1.0)
    _check_range("width", width, 2.0, open_ends=True)
    shares = np.asarray(rates, dtype=np.float64)
    if len(shares) < 2 or (shares <= 0).any() or abs(float(shares.sum()) - 1) > 1e-6:
        raise ValueError(f"rates {list(rates)}; expected two or more above 0 that add up to 1.")
    table = kappa * np.diag(shares) + (1 - kappa) * np.outer(shares, shares)
    error = kappa_error(table)
    reach = _reach()
    return _search(lambda cases: 2 * reach * error / math.sqrt(cases), width)


def cases_for_icc(correlation: float, width: float, raters: int = 2) -> int:
    """Return the number of cases at which an intraclass correlation's interval is narrow enough.

    `correlation`: expected, 0 to 1, of a single rater. `width`: width of the whole 95 % interval. `raters`:
    number of raters, who measure every case.

    [bonett2002]_, with the correction by 5 times the correlation for two raters and 0.7 or more.
    """
    _check_range("correlation", correlation, 1.0)
    _check_range("width", width, 1.0, open_ends=True)
    if raters < 2:
        raise ValueError(f"{raters} raters; expected two or more.")
    spread = (1 - correlation) ** 2 * (1 + (raters - 1) * correlation) ** 2
    cases = 8 * _reach() ** 2 * spread / (raters * (raters - 1) * width**2) + 1
    if raters == 2 and correlation >= 0.7:
        cases += 5 * correlation
    return max(2, math.ceil(cases))


def cases_for_limits(width: float) -> int:
    """Return the number of cases for a narrow enough interval of a limit of agreement, [bland1999]_.

    `width`: width of the whole 95 % interval of one limit, in standard deviations of the differences.
    """
    if not 0 < width < math.inf:
        raise ValueError(f"width {width}; expected a number above 0.")
    return _search(lambda cases: 2 * limit_error(int(cases)), width, least=2)


def _check_range(name: str, value: float, high: float, *, open_ends: bool = False) -> None:
    inside = 0 < value < high if open_ends else 0 <= value <= high
    if not inside:
        between = f"between 0 and {high:g}" if open_ends else f"from 0 to {high:g}"
        raise ValueError(f"{name} {value:g}; expected {between}.")


def _reach() -> float:
    return float(scipy.special.ndtri((1 + LEVEL) / 2))


def _search(width_at: Callable[[float], float], width: float, least: int = 1) -> int:
    """Return the smallest number of cases for which the width is small enough."""
    high = least
    while width_at(high) > width:
        high *= 2
        if high > _MAX_CASES:
            raise ValueError(
                f"width {width:g} takes more than {_MAX_CASES:,} cases; expected a larger width."
            )
    low = max(least, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if width_at(middle) <= width else (middle + 1, high)
    return high
