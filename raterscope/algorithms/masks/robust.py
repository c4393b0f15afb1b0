"""Robust fusion of one structure: a consensus distance with local weights of the raters (section 2).

The generalised double Pareto is fitted with q(tau, z), or with q(tau) q(z) as the paper factorises them (eq.
21). At one voxel and rater q(tau) and q(z) depend only on E, the expected squared Mahalanobis distance.
q(tau) is an inverse Gaussian with mean sqrt(m / E) for m = E[z^2], and q(z) has the moments of eqs. A.13 and
A.14 for T = E[1 / tau] = sqrt(E / m) + 1 / m. Their fixed point is tabulated over the logarithm of E. No
scale is therefore stored, and an iteration costs hardly more than with the joint form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks._robust_fit import (
    Columns,
    Fit,
    Likelihood,
    SpatialPrior,
    chunks,
    covariance,
    fit,
    merge_columns,
    resume,
    single_columns,
    start,
)
from raterscope.algorithms.masks.data import (
    Box,
    Float32Array,
    FloatArray,
    MaskFusion,
    Masks,
    MasksError,
    MaskTrace,
)
from raterscope.algorithms.masks.distance import logit_distance, signed_distance
from raterscope.algorithms.progress import Check, Watch, part, repeating, silent
from raterscope.algorithms.settings import Settings, choice, integer, number, switch
from raterscope.text import counted

EDGES = (math.log(1e-12), math.log(1e10))
"""Logarithms of the smallest and largest E of a table."""

_SIZE = 4096
_NEAREST = 0.25
"""Minimum argument of the continued fraction, which needs 21,600 steps at 0.1; below it an integral is used.
"""

_STEPS = 20_000
_NODES = 401


def ratio(order: float, x: FloatArray) -> FloatArray:
    """Return D_(-order-2)(x) / D_(-order-1)(x) of parabolic cylinder functions by Lentz's algorithm.

    By the three-term recurrence D_(p+1) - x D_p + p D_(p-1) = 0 it is the continued fraction 1 / (x + (order
    + 2) / (x + (order + 3) / (x + ...))).

    `order`: above -1. `x`: (n,), above 0; the number of steps grows as 1 / x squared.

    References
    ----------
    .. [lentz1976] W. J. Lentz, "Generating Bessel functions in Mie scattering calculations using continued
       fractions", Applied Optics 15 (1976) 668-671, doi:10.1364/AO.15.000668.
    """
    tiny = 1e-300
    value, c, d = np.full(len(x), tiny), np.full(len(x), tiny), np.zeros(len(x))
    numerator, active = 1.0, np.arange(len(x))
    for step in range(_STEPS):
        values = x[active]
        d[active] = 1 / (values + numerator * d[active])
        c[active] = values + numerator / c[active]
        change = c[active] * d[active]
        value[active] *= change
        active = active[np.abs(change - 1) > 1e-14]
        if not len(active):
            break
        numerator = order + 2 + step
    return value


def moments(power: float, nu: float, precision: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Integrate z^power exp(-nu z - precision z^2 / 2) over z > 0, the density of eq. 21 up to a constant.

    `power`: K + nu. `precision`: (n,), E[1 / tau]. The results, each (n,), are the logarithm of the integral,
    and E[z^2].
    """
    rising = power + 1
    middle = (np.sqrt(nu**2 + 4 * precision * rising) - nu) / (2 * precision)
    width = 1 / np.sqrt(nu * middle + 2 * precision * middle**2)
    node = np.linspace(-12, 12, _NODES)
    log_z = np.log(middle)[:, None] + width[:, None] * node
    z = np.exp(log_z)
    height = rising * log_z - nu * z - precision[:, None] * z**2 / 2
    top = height.max(axis=1, keepdims=True)
    density = np.exp(height - top)
    mass = density.sum(axis=1)
    log_mass = top[:, 0] + np.log(mass * width * (node[1] - node[0]))
    return log_mass, np.asarray((density * z**2).sum(axis=1) / mass)


def _second(power: float, nu: float, x: FloatArray) -> FloatArray:
    """Return E[z^2] times the precision, for x = nu / sqrt(precision) (A.14)."""
    near = x < _NEAREST
    second = np.empty(len(x))
    upper = ratio(power + 1, x[~near])
    second[~near] = (power + 1) * (power + 2) * upper / (x[~near] + (power + 2) * upper)
    precision = (nu / x[near]) ** 2
    second[near] = moments(power, nu, precision)[1] * precision
    return second


@lru_cache(maxsize=16)
def table(size: int, nu: float) -> FloatArray:
    """Tabulate the log density's bound by E, for `size` log-ratios and shape nu.

    The result, (2, n), is the bound without the logarithm of Sigma, and its derivative by the logarithm of E
    times a step, at even logarithms of E between `EDGES`. The derivative by E is -E[tau] / 2.
    """
    power = size + nu
    low, high = 1e-9, 2 * (power + 2)
    for _ in range(200):  # where E is 0: precision times E[z^2] is 1
        middle = (low + high) / 2
        low, high = (middle, high) if _second(power, nu, np.array([middle]))[0] > 1 else (low, middle)
    most = low
    x = most * np.concatenate([1 - np.geomspace(1e-9, 0.5, 1500), np.geomspace(0.5, 1e-7, 1500)[1:]])
    excess = np.maximum(_second(power, nu, x) - 1, 1e-15)
    second = (excess + 1) * (x / nu) ** 2
    log_e = 2 * np.log(excess) - np.log(second)
    from scipy.interpolate import PchipInterpolator

    order = np.argsort(log_e)
    rising = np.concatenate([[True], np.diff(log_e[order]) > 1e-9])
    smooth = PchipInterpolator(log_e[order][rising], np.log(second[order])[rising])
    grid = np.linspace(*EDGES, _SIZE)
    m = np.exp(smooth(np.maximum(grid, log_e.min())))
    e = np.exp(grid)
    log_mass = moments(power, nu, np.sqrt(e / m) + 1 / m)[0]
    bound = (
        0.5
        - size / 2 * math.log(2 * math.pi)
        - np.sqrt(m * e) / 2
        - (size + 1) / 2 * math.log(2)
        - math.lgamma((size + 1) / 2)
        + nu * math.log(nu)
        - math.lgamma(nu)
        - np.log(m / (2 * math.pi)) / 2
        + log_mass
    )
    return np.stack([bound, -np.sqrt(m * e) / 2 * (grid[1] - grid[0])])


def lookup(e: FloatArray, tabulated: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Interpolate a table by cubics.

    `e`: (...), expected squared Mahalanobis distances. `tabulated`: (2, n), as from `table`. The results,
    with the shape of `e`, are the log density's bound without the logarithm of Sigma, and E[tau].
    """
    last = tabulated.shape[1] - 1
    step = (EDGES[1] - EDGES[0]) / last
    square = np.maximum(e, math.exp(EDGES[0]))
    point = np.minimum((np.log(square) - EDGES[0]) / step, last - 1e-6)
    i = point.astype(np.int64)
    f, g = point - i, 1 - (point - i)
    (low, left), (high, right) = tabulated[:, i], tabulated[:, i + 1]
    bound = g**2 * ((1 + 2 * f) * low + f * left) + f**2 * ((1 + 2 * g) * high - g * right)
    change = 6 * f * g * (high - low) + g * (1 - 3 * f) * left + f * (1 - 3 * g) * right
    return np.asarray(bound), np.asarray(-2 * change / step / square)


ROUGHLY = 1e-5
"""Relative gain at which an initial fit ends."""

SLACK = 10
"""Factor of the tolerance with the spatial prior: hyper-parameters drift slowly while the contour is
stable."""

TIE = 1e-5
"""Maximum distance of a mean of q(T) from 0, in mm, that counts as a tie due to rounding errors."""

GROSS = 0.5
"""Minimum distance of an outlier from the median of the biases, relative to the clip."""

OUTLIER = 7.5
"""Minimum distance of an outlier from the median of the biases, in median distances (5 standard deviations).
"""

MAX_TAU = float(np.finfo(np.float16).max)
"""Maximum of a stored scale."""

SCALES = {"joint": "joint", "factorised": "factorised, as in the paper"}

STARTS = {"mean": "mean of the raters", "median": "median of the raters"}


@dataclass(frozen=True)
class RobustSettings(Settings):
    """Settings that the four likelihoods share."""

    clip: float = number(
        2.763, "Clip", "Maximum distance that counts. The default is the logit of 1 - 10⁻⁶ at a slope of "
        "5/mm; the paper states no limit.", unit="mm", minimum=0.01, maximum=1000.0,
    )  # fmt: skip
    slope: float = number(
        5.0, "Slope", "Slope of the sigmoid between distances and probabilities. It affects only "
        "probability maps; contours of masks do not depend on it.", unit="/mm", minimum=1e-3,
        maximum=1000.0, advanced=True,
    )  # fmt: skip
    floor: bool = switch(
        True, "Variance floor", "No rater's variance falls below that of a boundary drawn on voxels, and "
        "biases are recentred. Without the floor, as published, the estimate can collapse onto one rater.",
    )  # fmt: skip
    spatial_prior: bool = switch(False, "Spatial prior", "Draw the consensus towards a smooth map.")
    spatial_spacing: float | None = number(
        None, "Spacing of the bumps", "Distance between bumps along each axis. Empty: half the radius; the "
        "paper uses 4 (section 4.2) and states no unit.", unit="mm", minimum=0.1, maximum=1000.0,
        advanced=True, left_open="half the radius",
    )  # fmt: skip
    spatial_radius: float | None = number(
        None, "Radius of the bumps", "Standard deviation of a bump. Empty: from the size of the marked "
        "structure; the paper uses 12 (section 4.2) without a unit; 12 mm would round off small structures.",
        unit="mm", minimum=0.1, maximum=1000.0, advanced=True, left_open="from the structure's size",
    )  # fmt: skip
    tolerance: float = number(
        1e-7, "Tolerance", "Relative gain of the lower bound at which to stop; ten times this with the "
        "spatial prior.", minimum=0.0, maximum=0.1,
        advanced=True,
    )  # fmt: skip
    max_iterations: int = integer(500, "Iterations", "Most iterations.", minimum=1, advanced=True)
    start: str = choice(
        "mean", "Start", "Initial consensus. Student's t and the double Pareto may converge to another "
        "result from the median.", STARTS, advanced=True,
    )  # fmt: skip

    def departures(self) -> tuple[str, ...]:
        """List the differences from the model of the robust fusion paper, as clauses for a report."""
        departures = [
            "K - 1 log-ratios replace K values, for which Sigma_p would not have full rank",
            "distances are clipped",
        ]
        if self.floor:
            departures.append("variances have a floor and biases are recentred, outliers left out")
        if self.spatial_prior and (self.spatial_spacing is None or self.spatial_radius is None):
            departures.append("the size of the bumps of the spatial prior follows from the marked structure")
        if not self.spatial_prior:
            departures.append("the consensus has a flat prior instead of the spatial prior")
        return tuple(departures)


@dataclass(eq=False)
class Measured:
    """Distances measured before a fusion, which releases them before it makes its maps."""

    # (P, Z, Y, X) or None: signed distances, mm, at least up to the clip; None after their release
    away: Float32Array | None
    finish: Callable[[], object]  # called after that


@dataclass(frozen=True)
class GaussianSettings(RobustSettings):
    """Settings of `gaussian`."""


@dataclass(frozen=True)
class LaplaceSettings(RobustSettings):
    """Settings of `laplace`."""


@dataclass(frozen=True)
class StudentSettings(RobustSettings):
    """Settings of `student`."""

    dof: float | None = number(
        None, "Degrees of freedom", "Fewer degrees give heavier tails. Empty: estimated for each rater.",
        minimum=0.05, maximum=1e4,
    )  # fmt: skip

    def departures(self) -> tuple[str, ...]:
        """Add the estimation of the degrees of freedom, see `RobustSettings.departures`."""
        own = "degrees of freedom maximise the bound with the scales integrated out instead of eq. 28"
        return (*super().departures(), *((own,) if self.dof is None else ()))


@dataclass(frozen=True)
class GDPSettings(RobustSettings):
    """Settings of `gdp`."""

    shape: float | None = number(
        2.0, "Shape", "Smaller values give heavier tails. Empty: estimated for each rater with the joint "
        "form; 2, as in the paper, with the factorised form.", minimum=0.05, maximum=1e4, optional=True,
    )  # fmt: skip
    scales: str = choice(
        "joint", "Scales", "Posterior of the two scale variables at each voxel: joint, in closed form and "
        "with the tighter bound, or factorised as in the paper (eq. 21, with Lentz's algorithm).", SCALES,
        advanced=True,
    )  # fmt: skip

    def departures(self) -> tuple[str, ...]:
        """Add the treatment of the scales, see `RobustSettings.departures`."""
        if self.scales == "factorised":
            own = ["q(tau) and q(z) reach their fixed point within each iteration instead of one update each"]
        else:
            own = ["q(tau, z) is joint instead of q(tau) q(z) (eq. 21)"]
            if self.shape is None:
                own.append("shapes are estimated instead of set")
        return (*super().departures(), *own)


def gaussian(
    masks: Masks, settings: GaussianSettings | None = None, watch: Watch = silent,
    measured: Measured | None = None,
) -> MaskFusion:  # fmt: skip
    """Fuse masks of one structure with a Gaussian likelihood (section 2.1): not robust.

    Parameters and result as in `laplace`.
    """
    return _fuse("gaussian", Likelihood(0), masks, settings or GaussianSettings(), watch, measured)


def laplace(
    masks: Masks, settings: LaplaceSettings | None = None, watch: Watch = silent,
    measured: Measured | None = None,
) -> MaskFusion:  # fmt: skip
    """Fuse masks of one structure with a Laplace likelihood (section 2.2).

    For two classes the logits are (x, -x), so that Sigma_p of the paper does not have full rank and the bound
    has no limit. The model therefore uses the scalar x, the signed distance times the slope, with d = 1 for
    K. With integrated scales the likelihood's contribution to the bound depends only on E (Table 2), so that
    an iteration is one pass over the voxels.

    If the distances of raters are equal, as clipped distances are, a variance could shrink without limit
    while the bound grows. By default no variance falls below that of a boundary quantised to voxels, h²/12
    (for Laplace, whose covariance is eight times Sigma, an eighth).

    A settled voxel restricts T to one side of 0: q(T) is the truncated Gaussian, the optimum under that
    restriction. The distance there is still unknown, and has no effect on a rater on the correct side.

    `masks`: masks of one structure, on the domain of the fusion; see `distance.domain`.
    `measured`: distances of masks without probabilities, if already measured. The mask is where the mean of
    q(T) is above 0 by more than rounding errors; tied voxels are background.
        `deviation` is the standard deviation of q(T). `probability` is that of T above 0, with the squared
        standard error of the raters' mean at the voxel added to the variance of q(T). The variance of q(T)
        alone assumes independent errors of all voxels and is overconfident (on a simulated prostate the log
        loss against the truth falls from 0.228 to 0.084 in the disputed rim). Raises `MasksError` for masks
        of several structures.
    """
    return _fuse("laplace", Likelihood(1), masks, settings or LaplaceSettings(), watch, measured)


def student(
    masks: Masks, settings: StudentSettings | None = None, watch: Watch = silent,
    measured: Measured | None = None,
) -> MaskFusion:  # fmt: skip
    """Fuse masks of one structure with Student's t likelihood (section 2.2) and estimated degrees of freedom.

    Parameters and result as in `laplace`.
    """
    settings = settings or StudentSettings()
    likelihood = Likelihood(2, 4.0 if settings.dof is None else settings.dof, settings.dof is None)
    return _fuse("student", likelihood, masks, settings, watch, measured)


def gdp(
    masks: Masks, settings: GDPSettings | None = None, watch: Watch = silent,
    measured: Measured | None = None,
) -> MaskFusion:  # fmt: skip
    """Fuse masks of one structure with a generalised double Pareto likelihood (section 2.2).

    With joint q(tau, z) instead of q(tau) q(z), E[tau] = (nu + 1) / (sqrt(E) (nu + sqrt(E))) in closed form:
    a tighter bound without parabolic cylinder functions. With factorised scales q(z) is eq. 21 of the paper
    and its moments are eqs. A.13 and A.14, whose ratios of parabolic cylinder functions come from Lentz's
    algorithm. The two scales are iterated to their fixed point within each iteration, while the paper updates
    each once; both converge to the same points. The shape is then fixed (section 2.3.5 sets it to 2).

    Parameters and result as in `laplace`.
    """
    settings = settings or GDPSettings()
    return _fuse("gdp", gdp_likelihood(settings, 1), masks, settings, watch, measured)


def gdp_likelihood(settings: GDPSettings, size: int) -> Likelihood:
    """Describe the double Pareto of `size` log-ratios."""
    shape = 2.0 if settings.shape is None else settings.shape
    if settings.scales == "factorised":
        return Likelihood(4, shape, False, table(size, shape))
    return Likelihood(3, shape, settings.shape is None)


def _layers(
    masks: Masks, settings: RobustSettings, watch: Watch, measured: Measured | None
) -> Iterator[Float32Array]:
    """Yield the raters' signed distances, mm, one by one, in the same array.

    Distances of probabilities are their logit over the slope. Raises `MasksError` for several structures.
    """
    if len(masks.structures) != 1 or masks.values.ndim != 4:
        raise MasksError(f"masks of {len(masks.structures)} structures; expected one at a time.")
    out = np.empty(masks.shape, dtype=np.float32)
    most = np.float32(settings.clip)
    for p, layer in enumerate(masks.values):
        check = partial(watch, p / len(masks.values), "measuring distances")
        check()
        if layer.dtype == np.float32:
            yield logit_distance(layer, settings.clip, settings.slope, check)
        elif measured is not None and measured.away is not None:
            for part_of, values in zip(out, measured.away[p], strict=True):
                check()
                np.clip(values, -most, most, out=part_of)
            yield out
        else:
            mask = layer.astype(bool, copy=False)
            yield signed_distance(mask, masks.spacing, settings.clip, check, masks.positions, out)


def side_length(spacing: tuple[float, float, float], shape: Box) -> float:
    """Return h, the root mean square side of a voxel, which determines the quantisation of boundaries."""
    sides = spacing[1:] if shape[0] == 1 else spacing
    return math.sqrt(sum(side**2 for side in sides) / len(sides))


def _fuse(
    name: str, likelihood: Likelihood, masks: Masks, settings: RobustSettings, watch: Watch,
    measured: Measured | None,
) -> MaskFusion:  # fmt: skip
    slope = settings.slope
    watch, check = repeating(watch)

    def layers() -> Iterator[Float32Array]:
        for layer in _layers(masks, settings, part(watch, 0.0, 0.3), measured):
            values = layer.reshape(-1)
            values *= np.float32(slope)
            yield values

    state = np.zeros(masks.values[0].size, dtype=np.int8)
    if masks.known is not None:
        known = masks.known.ravel()
        state[known > 0], state[known == 0] = 1, -1
    floor = 0.0
    if settings.floor:
        floor = (slope * side_length(masks.spacing, masks.shape)) ** 2 / (96 if likelihood.kind == 1 else 12)
    median, tolerance = settings.start == "median", settings.tolerance
    every = None
    if settings.spatial_prior:
        every = single_columns(np.stack([layer.copy() for layer in layers()]), state)
    if every is None or settings.floor:
        columns = merge_columns(layers() if every is None else every.data, state, check)
        fitted = start(columns, likelihood, floor, settings.floor, median, check, masks.weights)
    else:
        fitted = start(every, likelihood, floor, settings.floor, median, check, masks.weights)
    if every is not None:
        if settings.floor:
            # Without the spatial prior, few columns represent all voxels: this start saves most of the later
            # work.
            fit(fitted, settings.max_iterations, ROUGHLY, part(watch, 0.3, 0.4), lambda: None)
            fitted = resume(fitted, every, check)
        spacing, radius = bump_sizes(masks, settings)
        variance = float(fitted.rater[2].mean())
        fitted.prior = SpatialPrior(
            masks.shape, masks.spacing, spacing, radius, fitted.t, variance, floor, masks.positions, check
        )
        tolerance *= SLACK

    recentred = settings.floor and fitted.prior is None
    least = GROSS * settings.clip * slope if recentred else math.inf

    def result() -> MaskFusion:
        return _result(name, masks, fitted, slope, least, check)

    fit(fitted, settings.max_iterations, tolerance, part(watch, 0.4, 1.0), result)
    _leave_out_outliers(fitted, least)
    # Where raters cancel out, as two raters with clipped distances do, only rounding errors chose the side.
    fitted.t[np.abs(fitted.t) <= slope * TIE] = 0.0
    if measured is not None:
        measured.away = None
        measured.finish()
    return result()


def _outliers(bias: FloatArray, least: float) -> NDArray[np.bool_]:
    """Return which biases are outliers, (P,); `least` is their minimum distance from the median."""
    away = np.abs(bias - np.median(bias))
    return np.asarray(away > max(least, OUTLIER * float(np.median(away))))


def _leave_out_outliers(fitted: Fit, least: float) -> None:
    """Shift the consensus and all biases so that the mean of the biases without outliers is 0.

    The shift changes no residual. An inverted mask, or one of the whole volume, otherwise moves the contour
    by its share of a bias of several millimetres.
    """
    bias, state = fitted.rater[0], fitted.columns.state
    outliers = _outliers(bias, least)
    if outliers.any():
        shift = bias[~outliers].mean()
        bias -= shift
        fitted.t += shift
        fitted.t[state > 0] = np.maximum(fitted.t[state > 0], 0)
        fitted.t[state < 0] = np.minimum(fitted.t[state < 0], 0)


def bump_sizes(masks: Masks, settings: RobustSettings) -> tuple[float, float]:
    """Choose the bumps' spacing and radius (mm) by the radius of a ball with the volume of the mean mask."""
    radius = settings.spatial_radius
    if radius is None:
        share = 0.5 if masks.values.dtype == np.float32 else 0
        mean = float(masks.volumes(masks.values > share).sum()) / len(masks.values)
        volume = max(masks.voxel_volume, mean)
        if masks.shape[0] == 1:
            size = math.sqrt(volume / masks.spacing[0] / math.pi)
        else:
            size = (volume * 3 / (4 * math.pi)) ** (1 / 3)
        radius = max(2 * side_length(masks.spacing, masks.shape), size / 6)
    return settings.spatial_spacing or radius / 2, radius


def _result(name: str, masks: Masks, fitted: Fit, slope: float, least: float, check: Check) -> MaskFusion:
    from scipy.special import ndtr

    from raterscope.algorithms.masks import _robust_kernels as kernels

    columns, shape = fitted.columns, masks.shape
    count = columns.data.shape[1]
    deviation, distance, chance = (np.empty(count, dtype=np.float32) for _ in range(3))
    weight = np.empty(columns.data.shape, dtype=np.uint8)
    local = fitted.likelihood.kind != kernels.GAUSSIAN
    tau = np.empty(columns.data.shape if local else (0, 0), dtype=np.float16)
    most = 0.0
    for begin, end in chunks(columns):
        check()
        block = slice(begin, end)
        mean, variance = fitted.t[block], fitted.s[block]
        deviation[block], distance[block] = np.sqrt(variance) / slope, mean / slope
        chance[block] = ndtr(mean / np.sqrt(variance + _scatter(fitted, block)))
        most = max(most, 2 * float(np.abs(columns.data[:, block]).max()))
        scales = np.empty((len(tau), end - begin), dtype=np.float32)
        kernels.shares(
            fitted.likelihood.kind, columns.data, fitted.rater, fitted.t, fitted.s, begin, end, weight,
            scales, fitted.likelihood.table, fitted.weights,
        )  # fmt: skip
        if local:
            tau[:, block] = np.minimum(scales, MAX_TAU)
    chance[columns.state > 0], chance[columns.state < 0] = 1, 0
    none = np.full((1, len(masks.annotators)), np.nan)
    bias, _, sigma, dof = fitted.rater.copy()
    notices: tuple[str, ...] = ()
    if len(masks.annotators) == 2 and fitted.prior is None:
        notices = ("With two raters only the sum of the variances is certain, not which rater errs.",)
    outliers = bias[_outliers(bias, least)] / slope
    if len(outliers):
        far = ", ".join(f"{value:+.2g}" for value in np.sort(outliers))
        notices += (
            f"{counted(len(outliers), 'rater')} with outlines far from the others' (by {far} mm or more) "
            "changed the consensus little. Check for inverted masks and other structures.",
        )
    if tied := int(columns.weight[(fitted.t == 0) & (columns.state == 0)].sum()):
        notices += (f"{counted(tied, 'tied voxel')} assigned to the background.",)
    return MaskFusion(
        algorithm=name,
        structures=masks.structures,
        annotators=masks.annotators,
        spacing=masks.spacing,
        origin=masks.origin,
        frame=masks.frame or shape,
        mask=_to_map(columns, fitted.t > 0, shape, check),
        probability=_to_map(columns, chance, shape, check),
        distance=_to_map(columns, distance, shape, check),
        deviation=_to_map(columns, deviation, shape, check),
        weight=columns.spread(weight, check).reshape(1, len(weight), *shape),
        bias=bias[None] / slope,
        variance=covariance(fitted.likelihood.kind, sigma, dof, most)[None] / slope**2,
        dof=dof[None],
        sensitivity=none,
        specificity=none.copy(),
        traces=(MaskTrace(np.array(fitted.objective), fitted.converged),),
        notices=notices,
        slice_positions=masks.slice_positions,
        tau=columns.spread(tau, check).reshape(1, len(tau), *shape) if local else None,
        sigma=sigma[None] / slope**2,
    )


def _scatter(fitted: Fit, block: slice) -> NDArray[Any]:
    """Return the squared standard error of the mean of the raters' distances without biases, by column."""
    data, weights = fitted.columns.data[:, block], fitted.weights
    count = len(data) if weights is None else float(weights.sum())
    mean = fitted.t[block].astype(np.float32)
    total = np.zeros(data.shape[1], dtype=np.float32)
    for p in range(len(data)):
        square = (data[p] - np.float32(fitted.rater[0, p]) - mean) ** 2
        total += square if weights is None else np.float32(weights[p]) * square
    return np.asarray(total / (count * max(1, count - 1)))


def _to_map(columns: Columns, values: NDArray[Any], shape: Box, check: Check) -> NDArray[Any]:
    return columns.spread(values, check).reshape(1, *shape)
