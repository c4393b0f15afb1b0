"""Put a fusion's result together, with what a method does not have left open."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import (
    BoolArray,
    Box,
    Float16Array,
    Float32Array,
    FloatArray,
    MaskFusion,
    Masks,
    MaskTrace,
)

__all__ = ["fused"]


def fused(
    masks: Masks,
    algorithm: str,
    origin: Box,
    mask: BoolArray,
    probability: Float32Array,
    traces: tuple[MaskTrace, ...],
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
    """Make the result of a method; figures that it does not have are NaN.

    Parameters
    ----------
    masks : Masks
        What was fused.
    algorithm : str
    origin : (slice, row, column)
        The first voxel of the maps within the values of `masks`.
    mask, probability : (S, Z, Y, X)
    traces : tuple of MaskTrace
    notices : iterable of str
        What else is said: of a single rater, and of a structure that nobody has in the end.
    distance, deviation, weight, bias, variance, sensitivity, specificity, tau, sigma
        As of `MaskFusion`.
    """
    unknown = np.full((len(masks.structures), len(masks.annotators)), np.nan)
    said = list(notices)
    if len(masks.annotators) == 1:
        said.append("There is only one rater: the consensus is that rater's mask.")
    empty = [name for name, one in zip(masks.structures, mask, strict=True) if not one.any()]
    if empty:
        said.append(f"The consensus has no voxel of {', '.join(empty)}.")
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
        traces=traces,
        notices=tuple(said),
        slice_positions=masks.slice_positions,
        tau=tau,
        sigma=unknown if sigma is None else sigma,
    )
