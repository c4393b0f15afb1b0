"""The prior that makes a consensus smooth: a sum of wide bumps, apart along the axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.masks.data import Box, Float32Array, FloatArray
from raterscope.algorithms.progress import Look, no_look

__all__ = ["SpatialPrior", "bumps", "update_together"]

_CHUNK = 500_000


def bumps(
    size: int, step: float, spacing: float, radius: float, positions: FloatArray | None = None
) -> FloatArray:
    """Give Gaussian bumps along an axis, unnormalised, the first at voxel 0; (size, bumps).

    size : voxels; step, spacing, radius : mm, from voxel to voxel, from bump to bump, and standard deviation;
    positions : (size,) mm, of voxels that are not even.
    """
    place = np.arange(size) * step if positions is None else positions - positions[0]
    length = size * step if positions is None else float(place[-1]) + step
    centre = np.arange(max(1, math.ceil(length / spacing))) * spacing
    return np.asarray(np.exp(-((place[:, None] - centre) ** 2) / (2 * radius**2)))


@dataclass(frozen=True)
class _Axis:
    """Orthonormal (size, bumps) `basis` of the bumps along an axis, and the squared singular values."""

    basis: FloatArray
    power: FloatArray


class SpatialPrior:
    """The spatial prior on T (eqs. 5 to 7) with its posterior q(W) and hyper-parameters.

    The bumps are products of bumps along the axes, so that the matrix of eq. 22 is a Kronecker product: it
    is diagonal in the product of the axes' singular vectors, and the exact update of eqs. 22 and 23 becomes
    three small products of matrices.

    Attributes
    ----------
    mean : (N,) float32
        Of T by the prior, at every voxel.
    variance : float
        Sigma_T.
    """

    def __init__(
        self, shape: Box, steps: tuple[float, float, float], spacing: float, radius: float,
        t: Float32Array | FloatArray, variance: float, floor: float, positions: FloatArray | None = None,
        look: Look = no_look,
    ) -> None:  # fmt: skip
        self.shape, self._floor = shape, floor
        along = (positions, None, None)
        self._axes = [
            _axis(bumps(size, step, spacing, radius, at))
            for size, step, at in zip(shape, steps, along, strict=True)
        ]
        z, y, x = (axis.power for axis in self._axes)
        self._power = z[:, None, None] * y[:, None] * x
        self.variance = max(variance, floor)
        self._alpha = 1.0 / max(float(np.var(t, dtype=np.float64)), 1e-12)
        self._spread = 0.0
        self.mean = np.empty(t.size, dtype=np.float32)
        self._bound = 0.0
        self._set_weights(t, look)

    def _set_weights(self, t: Float32Array | FloatArray, look: Look) -> None:
        seen = self._project(t, look)
        whole = self._power + self._alpha * self.variance
        self._lift(seen * (self._power / whole), look)
        self._square = float((seen**2 * self._power / whole**2).sum())
        self._trace = float((self.variance / whole).sum())
        self._spread = float((self._power * self.variance / whole).sum())
        self._entropy = 0.5 * float(np.log(self.variance / whole).sum()) + 0.5 * whole.size

    def update(self, t: Float32Array | FloatArray, total: float, look: Look = no_look) -> None:
        """Update W, alpha and Sigma_T (eqs. 22 to 25); `total` is the sum of the variances of q(T)."""
        update_together([self], [t], [total], look)

    def _misfit(self, t: Float32Array | FloatArray, look: Look) -> float:
        """Give the sum of squares of a map about the prior's."""
        rest = 0.0
        for begin in range(0, t.size, _CHUNK):
            look()
            part = slice(begin, begin + _CHUNK)
            rest += float(((t[part].astype(np.float64) - self.mean[part]) ** 2).sum())
        return rest

    def _set_scales(self, alpha: float, wanted: float, own: float) -> None:
        """Take alpha and Sigma_T, and find the bound; `own` is what this map alone gives for Sigma_T."""
        self._alpha, self.variance = alpha, max(wanted, self._floor)
        self._bound = (
            -0.5 * self.mean.size * (math.log(2 * math.pi * self.variance) + own / self.variance)
            + 0.5 * self._power.size * math.log(alpha)
            - 0.5 * alpha * (self._square + self._trace)
            + self._entropy
        )

    def bound(self) -> float:
        """Give what the prior and q(W) add to the lower bound after `update` (B.11, B.13, B.16)."""
        return self._bound

    def _project(self, t: Float32Array | FloatArray, look: Look) -> FloatArray:
        """Take a map to its part in the bumps' singular vectors."""
        z, y, x = (axis.basis for axis in self._axes)
        slices, rows, columns = self.shape
        volume = t.reshape(slices, rows, columns)
        flat = np.empty((slices, y.shape[1], x.shape[1]))
        step = max(1, _CHUNK // (rows * columns))
        for begin in range(0, slices, step):
            look()
            part = volume[begin : begin + step].astype(np.float64) @ x
            flat[begin : begin + step] = y.T @ part
        return np.asarray(np.tensordot(z, flat, axes=(0, 0)))

    def _lift(self, weights: FloatArray, look: Look) -> None:
        """Write the map with these parts into `mean`."""
        z, y, x = (axis.basis for axis in self._axes)
        slices, rows, columns = self.shape
        flat = np.tensordot(z, weights, axes=(1, 0))
        out = self.mean.reshape(slices, rows, columns)
        step = max(1, _CHUNK // (rows * columns))
        for begin in range(0, slices, step):
            look()
            out[begin : begin + step] = (y @ flat[begin : begin + step]) @ x.T


def update_together(
    priors: Sequence[SpatialPrior],
    maps: Sequence[Float32Array | FloatArray],
    totals: Sequence[float],
    look: Look = no_look,
) -> None:
    """Update the priors of K maps, which share alpha and Sigma_T (eqs. 22 to 25).

    Parameters
    ----------
    priors : sequence of SpatialPrior
    maps : sequence of (N,) arrays
        Means of q(T).
    totals : sequence of float
        Sum of the variances of each over the voxels.
    look : Look
    """
    own = []
    for prior, t, total in zip(priors, maps, totals, strict=True):
        prior._set_weights(t, look)
        own.append((prior._misfit(t, look) + total + prior._spread) / t.size)
    weights = sum(prior._power.size for prior in priors)
    alpha = weights / sum(prior._square + prior._trace for prior in priors)
    for prior, value in zip(priors, own, strict=True):
        prior._set_scales(alpha, sum(own) / len(own), value)


def _axis(basis: FloatArray) -> _Axis:
    left, values, _ = np.linalg.svd(basis, full_matrices=False)
    power = np.zeros(basis.shape[1])
    power[: len(values)] = values**2
    vectors = np.zeros(basis.shape)
    vectors[:, : left.shape[1]] = left
    return _Axis(vectors, power)
