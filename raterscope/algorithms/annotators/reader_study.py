"""Readers of a study who measured the same cases, perhaps repeatedly: bias and repeatability of each.

References
----------
.. [bland1999] J. M. Bland and D. G. Altman, "Measuring agreement in method comparison studies", Statistical
   Methods in Medical Research 8 (1999) 135-160, doi:10.1177/096228029900800204.
.. [wilcoxon1945] F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1 (1945)
   80-83, doi:10.2307/3001968.
.. [holm1979] S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
   Statistics 6 (1979) 65-70.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from raterscope.algorithms.annotators.measurements import (
    LEVEL,
    LimitsOfAgreement,
    intraclass_correlation,
    limits_of_agreement,
    repeatability,
)
from raterscope.algorithms.annotators.paired_tests import holm, wilcoxon
from raterscope.algorithms.annotators.reader_variance import ReaderVariance, reader_variance
from raterscope.algorithms.annotators.repeated_answers import reads_of
from raterscope.algorithms.annotators.vote_agreement import Coefficient

FloatArray = NDArray[np.float64]
NO_COEFFICIENT = Coefficient(math.nan, math.nan, math.nan)
_UPPER = (1 + LEVEL) / 2


@dataclass(frozen=True, eq=False)
class ReaderResult:
    """One reader against the others, and against their own other reads."""

    name: str
    # mean difference from the mean of the other readers of a case; NaN below two shared cases
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

    `values`: mapping of annotator to mapping of case to measurement.

    Notes
    -----
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

    `values`: (n, k, m), of n cases by k readers by m reads; NaN for a read that is missing.
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
    """Return the mean of figures with the interval of Student's t; NaN are left out."""
    figures = np.asarray(values, dtype=np.float64)
    figures = figures[np.isfinite(figures)]
    if len(figures) < 2:
        return Coefficient(float(figures[0]) if len(figures) else math.nan, math.nan, math.nan)
    mean = float(figures.mean())
    quantile = float(scipy.special.stdtrit(len(figures) - 1, _UPPER))
    half = quantile * float(figures.std(ddof=1)) / math.sqrt(len(figures))
    return Coefficient(mean, mean - half, mean + half)


def mean_over_pairs(values: Mapping[tuple[str, str], float]) -> Coefficient:
    """Return the mean of figures of pairs of readers, with an interval by the jackknife over readers.

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
