"""Masks: the input and the result of a fusion, and the construction of a result."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.names import checked_weights, weights_by_name
from raterscope.algorithms.masks.grid import slab_bounds
from raterscope.algorithms.progress import RefusedError

Slices = tuple[slice, slice, slice]


def box_around(boxes: Iterable[tuple[Sequence[int], Sequence[int]]]) -> tuple[Box, Box]:
    """Return origin and shape of the smallest box around one box or more.

    Examples
    --------
    >>> box_around([((0, 1, 2), (1, 4, 4)), ((0, 3, 0), (2, 3, 3))])
    ((0, 1, 0), (2, 5, 6))
    """
    ends = [(origin, np.add(origin, shape)) for origin, shape in boxes]
    z, y, x = np.min([first for first, _ in ends], axis=0).tolist()
    past = np.max([past for _, past in ends], axis=0).tolist()
    return (z, y, x), (past[0] - z, past[1] - y, past[2] - x)


def slices_of(origin: Sequence[int], shape: Sequence[int], base: Sequence[int] = (0, 0, 0)) -> Slices:
    """Return a box as slices of an array whose first voxel is `base`."""
    z, y, x = (slice(at - first, at - first + n) for at, n, first in zip(origin, shape, base, strict=True))
    return z, y, x


def overlap(
    origin: Sequence[int], shape: Sequence[int], other: Sequence[int], other_shape: Sequence[int]
) -> tuple[Slices, Slices]:
    """Return the common part of two boxes, as slices of the first and of the other; empty without any."""
    low = np.maximum(origin, other)
    past = np.minimum(np.add(origin, shape), np.add(other, other_shape))
    common = np.maximum(past - low, 0).tolist()
    return slices_of(low.tolist(), common, origin), slices_of(low.tolist(), common, other)


BoolArray = NDArray[np.bool_]
Float16Array = NDArray[np.float16]
Float32Array = NDArray[np.float32]
FloatArray = NDArray[np.float64]
Box = tuple[int, int, int]

OPEN = -1
"""In `Masks.known`: the voxel is not settled."""


class MasksError(RefusedError):
    """Masks that cannot be fused; the message says why."""


class _Part:
    """Part of an image, with positions and volumes of its slices."""

    spacing: tuple[float, float, float]
    origin: Box
    slice_positions: FloatArray | None

    @property
    def shape(self) -> Box:
        """Slices, rows and columns of the part."""
        raise NotImplementedError

    @property
    def voxel_volume(self) -> float:
        """Volume of a voxel at the nominal slice distance, mm³."""
        return float(np.prod(self.spacing))

    @property
    def positions(self) -> FloatArray | None:
        """Positions of the slices of the part, mm; None where they are even."""
        return cut_positions(self.slice_positions, self.origin[0], self.shape[0])

    def volumes(self, values: NDArray[Any]) -> FloatArray:
        """Return the volumes (mm³) of (..., Z, Y, X) marks or shares on the part; (...)."""
        return volumes_of(values, self.spacing, self.slice_positions, self.origin[0])


@dataclass(frozen=True, eq=False)
class Masks(_Part):
    """Masks of P raters on one image or volume, on a part of its grid.

    Attributes
    ----------
    values : array
        One of

        - (P, Z, Y, X) bool: each rater's mask of one structure;
        - (P, Z, Y, X) uint8: label maps, 0 for the background and s for structure s - 1, K = S + 1 classes;
        - (P, Z, Y, X) float32: each rater's probability of one structure, 0 to 1;
        - (P, S, Z, Y, X) float32: each rater's probabilities of S structures; the remainder is the
        background's.
    annotators : tuple of P names
    spacing : (slice, row, column)
        Millimetres.
    structures : tuple of S names
    origin : (slice, row, column)
        The first voxel of `values` in the whole image.
    frame : (slices, rows, columns)
        The whole image's shape; by default that of `values`.
    known : (Z, Y, X) int8, optional
        Voxels that the expert settled: 0 background, s structure s - 1, `OPEN` elsewhere. Fusion holds them
        fixed.
    slice_positions : (slices of the whole image,) float64, optional
        Millimetres across the slices, if their distances are uneven; see `Grid.uneven_positions`.
    weights : (P,) float64, optional
        Weight of each rater, above 0 and at most 1; None where all count fully. A rater's log likelihood is
        multiplied by the weight.
    """

    values: NDArray[np.bool_] | NDArray[np.uint8] | NDArray[np.float32]
    annotators: tuple[str, ...]
    spacing: tuple[float, float, float] = (1.0, 1.0, 1.0)
    structures: tuple[str, ...] = ("structure",)
    origin: Box = (0, 0, 0)
    frame: Box | None = None
    known: NDArray[np.int8] | None = None
    slice_positions: FloatArray | None = None
    weights: FloatArray | None = None

    def __post_init__(self) -> None:
        values = self.values
        if values.dtype not in (np.bool_, np.uint8, np.float32):
            raise MasksError(
                f"masks of {values.dtype}; expected bool, uint8 labels or float32 probabilities."
            )
        if values.ndim not in (4, 5) or (values.ndim == 5 and values.dtype != np.float32):
            raise MasksError(f"masks of shape {values.shape}; expected raters, slices, rows and columns.")
        if len(self.annotators) != len(values) or not len(values):
            raise MasksError(f"{len(values)} masks by {len(self.annotators)} raters; expected one each.")
        if len(set(self.annotators)) != len(self.annotators):
            raise MasksError("a rater is named twice; expected one mask a rater.")
        if not all(size > 0 for size in values.shape):
            raise MasksError(f"masks of shape {values.shape}; expected at least one voxel.")
        if not all(math.isfinite(step) and step > 0 for step in self.spacing):
            raise MasksError(f"a spacing of {self.spacing} mm; expected three lengths above 0.")
        self._check_structures()
        object.__setattr__(self, "weights", checked_weights(self.weights, self.annotators, MasksError))
        frame = self.shape if self.frame is None else self.frame
        object.__setattr__(self, "frame", frame)
        fits = all(
            at >= 0 and at + n <= size for at, n, size in zip(self.origin, self.shape, frame, strict=True)
        )
        if not fits:
            raise MasksError(f"masks of {self.shape} at {self.origin} do not lie within {frame}.")
        if self.slice_positions is not None and self.slice_positions.shape != frame[:1]:
            raise MasksError(f"{len(self.slice_positions)} slice positions; expected {frame[0]}.")
        if self.known is not None:
            if self.known.shape != self.shape or self.known.dtype != np.int8:
                raise MasksError(f"settled voxels of {self.known.shape}; expected {self.shape}.")
            if self.known.min() < OPEN or self.known.max() > len(self.structures):
                raise MasksError("a settled voxel has no valid class.")

    def _check_structures(self) -> None:
        values, count = self.values, len(self.structures)
        if not count or len(set(self.structures)) != count:
            raise MasksError(f"structures {self.structures}; expected at least one name, each once.")
        if values.dtype == np.uint8 and int(values.max()) > count:
            raise MasksError(f"label {int(values.max())} is of no structure; expected 0 to {count}.")
        if values.dtype == np.bool_ and count != 1:
            raise MasksError(f"masks of one structure are named as {count}.")
        if values.dtype == np.float32:
            if count != (1 if values.ndim == 4 else values.shape[1]):
                raise MasksError(f"probabilities of {values.shape} are named as {count} structures.")
            low, high = float(values.min()), float(values.max())
            if not (low >= 0.0 and high <= 1.0):
                raise MasksError(f"probabilities from {low:g} to {high:g}; expected 0 to 1, and no gaps.")

    @property
    def shape(self) -> Box:
        """Slices, rows and columns of `values`."""
        slices, rows, columns = self.values.shape[-3:]
        return slices, rows, columns

    def without(self, annotators: set[str]) -> Masks:
        """Exclude raters.

        Raises
        ------
        MasksError
            If no rater remains.
        """
        rows = [p for p, name in enumerate(self.annotators) if name not in annotators]
        if not rows:
            raise MasksError("all raters are excluded; expected at least one.")
        return replace(
            self,
            values=self.values[rows],
            annotators=tuple(self.annotators[p] for p in rows),
            weights=None if self.weights is None else self.weights[rows],
        )

    @property
    def total_weight(self) -> float:
        """Sum of the raters' weights."""
        return len(self.annotators) if self.weights is None else float(self.weights.sum())

    def with_weights(self, weights: Mapping[str, float]) -> Masks:
        """Down-weight raters by name; weight 0 excludes them, and all others count fully."""
        if not weights and self.weights is None:
            return self
        out = {name for name, weight in weights.items() if weight == 0}
        others = self.without(out) if out else self
        return replace(others, weights=weights_by_name(weights, others.annotators))


@dataclass(frozen=True, eq=False)
class Settled:
    """Voxels of one structure that the expert has settled.

    Attributes
    ----------
    origin : (slice, row, column)
        The first voxel of `value` in the whole image.
    value : (Z, Y, X) int8
        1 inside the structure, 0 outside, `OPEN` if not settled.
    """

    origin: Box
    value: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class MaskTrace:
    """Record of an iteration.

    Attributes
    ----------
    objective : (T,) float64
        The lower bound, or the log likelihood, after each iteration; empty for a method without iterations.
    converged : bool
    name : str
        Name of the objective: "lower bound".
    """

    objective: FloatArray = field(default_factory=lambda: np.empty(0))
    converged: bool = True
    name: str = "lower bound"


@dataclass(frozen=True, eq=False)
class Alternative:
    """One consensus of a mixture.

    Attributes
    ----------
    weight : float
        Its share of the raters.
    responsibility : (P,) float64
        The probability that a rater follows this consensus.
    mask : (S, Z, Y, X) bool
    probability : (S, Z, Y, X) float32
    """

    weight: float
    responsibility: FloatArray
    mask: BoolArray
    probability: Float32Array


@dataclass(frozen=True, eq=False)
class MaskFusion(_Part):
    """Consensus of P raters on S structures, on a part of the grid (background outside).

    Attributes
    ----------
    algorithm : str
    structures : tuple of S names
    annotators : tuple of P names
    spacing : (slice, row, column)
        Millimetres.
    origin, frame : (slice, row, column)
        The first voxel of the maps in the whole image, and the whole image's shape.
    mask : (S, Z, Y, X) bool
        The consensus.
    probability : (S, Z, Y, X) float32
        Probability that the voxel belongs to the structure.
    distance : (S, Z, Y, X) float32, optional
        The consensus's signed distance, mm, above 0 inside, if the model has one.
    deviation : (S, Z, Y, X) float32, optional
        Standard deviation of `distance`, mm: the uncertainty map of the paper's section 4.2.
    weight : (S, P, Z, Y, X) uint8, optional
        Each rater's share in the consensus at the voxel; 255 is the sum over all raters.
    bias : (S, P) float64
        mm, above 0 for a rater who marks too much; NaN if the method has none.
    variance : (S, P) float64
        mm²: the covariance of the rater's distances from the consensus, comparable between likelihoods.
    dof : (S, P) float64
        Degrees of freedom (Student's t) or shape (generalised double Pareto); NaN for other likelihoods.
    sensitivity, specificity : (S, P) float64
        Estimates of the method (STAPLE); NaN if it has none.
    traces : tuple of S MaskTrace, or one if the structures were fused together
    alternatives : tuple of Alternative
        The consensuses of a mixture, the heaviest first; empty if there is only one.
    notices : tuple of str
        Messages for the user, a sentence each, for example on ties.
    slice_positions : (slices of the whole image,) float64, optional
        As in `Masks`.
    tau : (S, P, Z, Y, X) float16, optional
        Mean of each rater's scale at the voxel, E[tau] of the paper's Table 2: the model divides the rater's
        `sigma` by it. It has no unit, is low where the rater is far from the consensus, and is common to
        structures that are fused together. None for a method without local scales.
    sigma : (S, P) float64, optional
        The paper's Sigma_p, mm², which is not comparable between likelihoods (`variance` is); NaN for a
        method without it, None in results of older versions.
    """

    algorithm: str
    structures: tuple[str, ...]
    annotators: tuple[str, ...]
    spacing: tuple[float, float, float]
    origin: Box
    frame: Box
    mask: BoolArray
    probability: Float32Array
    distance: Float32Array | None
    deviation: Float32Array | None
    weight: NDArray[np.uint8] | None
    bias: FloatArray
    variance: FloatArray
    dof: FloatArray
    sensitivity: FloatArray
    specificity: FloatArray
    traces: tuple[MaskTrace, ...]
    alternatives: tuple[Alternative, ...] = ()
    notices: tuple[str, ...] = ()
    slice_positions: FloatArray | None = None
    tau: Float16Array | None = None
    sigma: FloatArray | None = None

    @property
    def shape(self) -> Box:
        """Slices, rows and columns of the maps."""
        slices, rows, columns = self.mask.shape[-3:]
        return slices, rows, columns

    def doubt(self) -> Float32Array:
        """Return the uncertainty of each voxel, 1 for probability one half, 0 for certainty; (S, Z, Y, X)."""
        return np.asarray(1.0 - np.abs(2.0 * self.probability - 1.0), dtype=np.float32)


def cut_positions(positions: FloatArray | None, first: int, count: int) -> FloatArray | None:
    """Return the positions of some slices; None if all slices are evenly spaced."""
    return None if positions is None else positions[first : first + count]


def thicknesses(
    spacing: tuple[float, float, float], positions: FloatArray | None, first: int, count: int
) -> FloatArray:
    """Return the thickness of some slices' slabs, (count,) mm; see `volumes_of`."""
    if positions is None:
        return np.full(count, spacing[0])
    return np.diff(slab_bounds(positions, spacing[0])[first : first + count])[:, 0]


def marked(values: NDArray[Any]) -> BoolArray:
    """Return True for marked voxels (probabilities above one half, labels above 0), in the same shape."""
    if values.dtype == np.bool_:
        return values
    return np.asarray(values > (0.5 if values.dtype.kind == "f" else 0))


def volumes_of(
    values: NDArray[Any], spacing: tuple[float, float, float], positions: FloatArray | None, first: int = 0
) -> FloatArray:
    """Sum the volumes (mm³) of voxels, with the thickness of each slice's slab.

    `values`: (..., Z, Y, X), marks, or shares of voxels.
    `spacing`: (slice, row, column), mm.
    `positions`: (slices of the whole image,), mm, if the slices are uneven.
    `first`: the first slice of `values` in the whole image.
    """
    return np.asarray(extents_of(values, spacing, positions, first) * math.prod(spacing))


def extents_of(
    values: NDArray[Any], spacing: tuple[float, float, float], positions: FloatArray | None, first: int = 0
) -> FloatArray:
    """Sum voxels, each weighted by the thickness of its slice relative to an even slice; see `volumes_of`."""
    if values.dtype == np.bool_:
        areas = np.count_nonzero(values, axis=(-2, -1)).astype(np.float64)
    else:
        areas = values.sum(axis=(-2, -1), dtype=np.float64)
    if positions is None:
        return np.asarray(areas.sum(axis=-1))
    return np.asarray(areas @ (thicknesses(spacing, positions, first, areas.shape[-1]) / spacing[0]))


def make_fusion(
    masks: Masks,
    algorithm: str,
    origin: Box,
    mask: BoolArray,
    probability: Float32Array,
    traces: tuple[MaskTrace, ...] = (),
    notices: Iterable[str] = (),
    *,
    distance: Float32Array | None = None,
    deviation: Float32Array | None = None,
    weight: NDArray[np.uint8] | None = None,
    bias: FloatArray | None = None,
    variance: FloatArray | None = None,
    sensitivity: FloatArray | None = None,
    specificity: FloatArray | None = None,
    tau: Float16Array | None = None,
    sigma: FloatArray | None = None,
) -> MaskFusion:
    """Make the result of a method; missing values are NaN.

    `masks`: the masks that were fused.
    `origin`: (slice, row, column), the first voxel of the maps within the values of `masks`.
    `mask`, `probability`: (S, Z, Y, X).
    `traces`: traces of the iterations; empty for a method without iterations. `notices`: further notices;
    notices on a single rater and on empty structures are added.
    `distance`, `deviation`, `weight`, `bias`, `variance`, `sensitivity`, `specificity`, `tau`, `sigma`: as in
        `MaskFusion`.
    """
    unknown = np.full((len(masks.structures), len(masks.annotators)), np.nan)
    sentences = list(notices)
    if len(masks.annotators) == 1:
        sentences.append("There is only one rater: the consensus is that rater's mask.")
    empty = [name for name, mask_of in zip(masks.structures, mask, strict=True) if not mask_of.any()]
    if empty:
        sentences.append(f"The consensus has no voxels of {', '.join(empty)}.")
    z, y, x = (at + start for at, start in zip(origin, masks.origin, strict=True))
    return MaskFusion(
        algorithm=algorithm,
        structures=masks.structures,
        annotators=masks.annotators,
        spacing=masks.spacing,
        origin=(z, y, x),
        frame=masks.frame or masks.shape,
        mask=np.ascontiguousarray(mask),
        probability=np.ascontiguousarray(probability, dtype=np.float32),
        distance=distance,
        deviation=deviation,
        weight=weight,
        bias=unknown if bias is None else bias,
        variance=unknown if variance is None else variance,
        dof=unknown,
        sensitivity=unknown if sensitivity is None else sensitivity,
        specificity=unknown if specificity is None else specificity,
        traces=traces or (MaskTrace(),),
        notices=tuple(sentences),
        slice_positions=masks.slice_positions,
        tau=tau,
        sigma=unknown if sigma is None else sigma,
    )
