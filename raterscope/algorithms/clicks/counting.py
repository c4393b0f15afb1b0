"""Counts of structures from posteriors, and parasitaemia as microscopists report it.

Each spot is a structure with its posterior probability (OEM-DEM paper, eq. 25), so that the number of
structures has the Poisson binomial distribution. The posteriors themselves have intervals, since the
annotators' rates are uncertain. All posteriors depend on the same annotators; their errors are therefore
assumed to move all logits of an image in the same direction. That is the cautious choice: independent errors
would not widen the distribution at all. The common error is larger than the intervals of the posteriors by
`Detection.level_error`. Structures without a spot are not counted.

The formulas are those of the World Health Organization [who2010]_, [who2016]_. On a thick film, parasites per
microlitre of blood = parasites counted x leukocytes per microlitre / leukocytes counted, with 8,000
leukocytes per microlitre by default. On a thin film the density is infected red cells / red cells counted x
red cells per microlitre, with 5,000,000 by default (as in [dhorda2020]_, table 3). If the film's thickness is
known, parasites / volume examined gives the density without cells.

The uncertainty has two sources. The number of parasites examined has a distribution over whole numbers, since
detections may be wrong. Given a number, the rate has the posterior under Jeffreys' prior: gamma for a count
in a volume, the ratio of two gammas for two counts in one volume, beta for a share. Intervals are those of
the mixture.

References
----------
.. [who2010] World Health Organization, "Basic malaria microscopy, part I: Learner's guide", 2nd edition,
   World Health Organization (2010).
.. [who2016] World Health Organization, "Malaria parasite counting", Malaria microscopy standard operating
   procedure MM-SOP-09 (2016).
.. [dhorda2020] M. Dhorda, E. H. Ba, J. K. Baird, J. Barnwell, D. Bell, J. Y. Carter et al., "Towards
   harmonization of microscopy methods for malaria clinical research studies", Malaria Journal 19 (2020) 324,
   doi:10.1186/s12936-020-03352-z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.clicks._prospects import count_chances
from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.clicks.result import LEVEL_ERROR, shifted

_NODES = np.linspace(-3.2, 3.2, 33)
_WEIGHTS = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()
"""Nodes of the common error of an image's posteriors, in standard deviations of their logits, and their
weights.
"""

AT_ONCE = 256
"""Maximum number of spots for which sequential convolution is faster."""


def expected_count(
    posterior: FloatArray, low: FloatArray, high: FloatArray, level_error: float = LEVEL_ERROR
) -> tuple[float, float, float]:
    """Return the expected number of structures among M spots, and a 95 % interval of their number.

    `posterior`: (M,), probability that each spot is a structure; 0 or 1 where the truth is known. `low`,
    `high`: (M,), ends of the posterior's 95 % interval; NaN where there is none. `level_error`: as for
    `Detection`. The estimate is the sum of the posteriors. The ends are whole numbers; the interval holds the
    number with a probability of at least 95 %.

    Examples
    --------
    >>> import numpy as np
    >>> posterior = np.array([0.95, 0.9, 0.4, 0.05])
    >>> count, low, high = expected_count(posterior, posterior, posterior)
    >>> round(count, 2), low, high
    (2.3, 1.0, 3.0)
    """
    posterior = np.asarray(posterior, dtype=np.float64)
    below = np.cumsum(count_distribution(posterior, low, high, level_error))
    least, most = np.searchsorted(below, (0.025, 0.975))
    return float(posterior.sum()), float(least), float(min(most, len(posterior)))


def count_distribution(
    posterior: FloatArray, low: FloatArray, high: FloatArray, level_error: float = LEVEL_ERROR
) -> FloatArray:
    """Return the distribution, (M + 1,), of the number of structures among M spots.

    The arguments are those of `expected_count`.

    Examples
    --------
    >>> import numpy as np
    >>> posterior = np.array([0.5, 0.5])
    >>> count_distribution(posterior, posterior, posterior).round(2)
    array([0.25, 0.5 , 0.25])
    """
    moved = shifted(np.asarray(posterior, dtype=np.float64), low, high, level_error * _NODES)
    return np.asarray(_number_of(moved) @ _WEIGHTS)


def _number_of(chance: FloatArray) -> FloatArray:
    """Return the distribution of the number; many spots are divided into halves, then convolved."""
    if len(chance) <= AT_ONCE:
        return count_chances(chance)
    from scipy.signal import fftconvolve

    half = len(chance) // 2
    together = fftconvolve(_number_of(chance[:half]), _number_of(chance[half:]), axes=0)
    return np.asarray(np.maximum(together, 0.0))


LEUKOCYTES_PER_MICROLITRE = 8000.0
"""Value that the World Health Organization assumes if a patient's leukocytes were not counted."""

RED_CELLS_PER_MICROLITRE = 5e6
"""Value assumed if a patient's red cells were not counted."""

_CUBIC_MICROMETRES = 1e9
"""Cubic micrometres in a microlitre."""

_TAIL = 0.025
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True)
class Rate:
    """A rate with its 95 % interval."""

    value: float
    low: float
    high: float


def dispersion(counts: FloatArray) -> float:
    """Return the overdispersion of the counts of fields, relative to a Poisson distribution.

    `counts`: (n,), parasites expected on each field. The result is variance over mean, which is 1 for a
    Poisson distribution; at least 1, and 1 for fewer than two fields.

    Examples
    --------
    >>> import numpy as np
    >>> round(dispersion(np.array([3.0, 9.0, 2.0, 10.0])), 2)
    2.78
    """
    counts = np.asarray(counts, dtype=np.float64)
    if len(counts) < 2 or not counts.mean() > 0:
        return 1.0
    return max(1.0, float(counts.var(ddof=1) / counts.mean()))


def per_field(chance: FloatArray, fields: int, spread: float = 1.0) -> Rate:
    """Return the mean number of parasites on a field.

    Parasites cluster and films have uneven thickness. A count whose variance is `spread` times that of a
    Poisson distribution carries the information of a count `spread` times smaller (quasi-Poisson).

    `chance`: (m + 1,), probability that there are 0 ... m parasites on all fields together. `spread`: see
    `dispersion`. Raises `ValueError` without a field.
    """
    return _per_amount(chance, float(fields), spread, "fields")


def per_volume(chance: FloatArray, microlitres: float, spread: float = 1.0) -> Rate:
    """Return the parasites per microlitre of the volume examined.

    `chance`: (m + 1,), probability that there are 0 ... m parasites in the volume.
    `microlitres`: volume examined; see `volume_of`.
    `spread`: overdispersion of the parasites, see `dispersion`.
    Raises `ValueError` without a volume.

    Examples
    --------
    >>> import numpy as np
    >>> rate = per_volume(np.array([0.0, 0.1, 0.9]), microlitres=0.1)  # two parasites, or only one
    >>> round(rate.value)
    19
    """
    return _per_amount(chance, microlitres, spread, "volume")


def per_leukocyte(chance: FloatArray, leukocytes: float, times: float = 1.0, spread: float = 1.0) -> Rate:
    """Return the parasites per number of leukocytes, for example per 200 or per microlitre of blood.

    The number of leukocytes counted varies by chance, as that of parasites does.

    `chance`: (m + 1,), probability of 0 ... m parasites on the fields on which the leukocytes were counted.
    `leukocytes`: number counted.
    `times`: number of leukocytes to which the parasites are related.
    `spread`: overdispersion of the parasites, see `dispersion`.
    Raises `ValueError` without a leukocyte.

    Examples
    --------
    >>> import numpy as np
    >>> chance = np.zeros(51)
    >>> chance[50] = 1.0  # exactly 50 parasites
    >>> rate = per_leukocyte(chance, leukocytes=200, times=8000)
    >>> round(rate.value), round(rate.low), round(rate.high)
    (2000, 1457, 2708)
    """
    from scipy.special import betainc

    _refuse(leukocytes, "leukocytes")

    def below(ratio: float, number: FloatArray) -> FloatArray:
        # The ratio of the gamma of the parasites, in units of the spread, to that of the leukocytes.
        ratio /= spread
        return np.asarray(betainc(number / spread + 0.5, leukocytes + 0.5, ratio / (1 + ratio)))

    rate = _rate(chance, below, 1 / leukocytes)
    return Rate(rate.value * times, rate.low * times, rate.high * times)


def infected_share(chance: FloatArray, red_cells: float, spread: float = 1.0) -> Rate:
    """Return the share of infected red cells on a thin film; a cell counts once.

    `chance`: (m + 1,), probability that 0 ... m of the red cells are infected.
    `red_cells`: number counted, infected ones included.
    `spread`: overdispersion of the parasites, see `dispersion`; the cells carry the information of a `spread`
    times smaller number (quasi-binomial). Raises `ValueError` if there are fewer red cells than expected
    infected ones.
    """
    from scipy.special import betainc

    chance = np.asarray(chance, dtype=np.float64)
    expected = float(chance @ np.arange(len(chance)))
    if not red_cells >= max(expected, 1.0):
        raise ValueError(
            f"{red_cells:g} red cells were counted; expected at least the {expected:.0f} infected"
        )

    def below(share: float, number: FloatArray) -> FloatArray:
        healthy = np.maximum(red_cells - number, 0.0)
        return np.asarray(betainc(number / spread + 0.5, healthy / spread + 0.5, min(share, 1.0)))

    rate = _rate(chance, below, 1 / red_cells)
    return Rate(rate.value, rate.low, min(rate.high, 1.0))


def volume_of(area: float, thickness: float) -> float:
    """Return the microlitres in an area, square micrometres, of a film with a thickness, micrometres.

    Examples
    --------
    >>> volume_of(area=100_000, thickness=2)
    0.0002
    """
    return area * thickness / _CUBIC_MICROMETRES


def _per_amount(chance: FloatArray, amount: float, spread: float, name: str) -> Rate:
    from scipy.special import gammainc

    _refuse(amount, name)

    def below(rate: float, number: FloatArray) -> FloatArray:
        return np.asarray(gammainc(number / spread + 0.5, rate * amount / spread))

    return _rate(chance, below, 1 / amount)


def _refuse(amount: float, name: str) -> None:
    if not 0 < amount < np.inf:
        raise ValueError(f"{name} of {amount}; expected more than 0")


def _rate(chance: FloatArray, below: Callable[[float, FloatArray], FloatArray], unit: float) -> Rate:
    """Return the mean and the interval of a mixture of rates.

    `below`: returns the probability of a smaller rate for each number of parasites.
    `unit`: the rate that corresponds to one parasite.
    """
    chance = np.asarray(chance, dtype=np.float64)
    number = np.flatnonzero(chance > _NEGLIGIBLE).astype(np.float64)
    weight = chance[number.astype(np.int64)]
    weight /= weight.sum()
    value = float(weight @ number) * unit
    # As is usual with this prior, the interval begins at 0 if no parasite was found.
    none = float(weight[number == 0].sum())
    low = 0.0 if none >= _TAIL else _where(below, number, weight, _TAIL, value, unit)
    return Rate(value, low, _where(below, number, weight, 1 - _TAIL, value, unit))


def _where(
    below: Callable[[float, FloatArray], FloatArray],
    number: FloatArray,
    weight: FloatArray,
    share: float,
    value: float,
    unit: float,
) -> float:
    from scipy.optimize import brentq

    def missing(rate: float) -> float:
        return float(weight @ below(rate, number)) - share

    high = max(2 * value, 4 * unit)
    while missing(high) < 0:
        high *= 2
    return float(brentq(missing, 0.0, high, xtol=unit * 1e-6))
