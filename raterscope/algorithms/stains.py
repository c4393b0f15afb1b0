"""Normalisation of two stains, such as haematoxylin and eosin, or the blue and red of Giemsa.

References
----------
M. Macenko, M. Niethammer, J. S. Marron, D. Borland, J. T. Woosley, X. Guan, C. Schmitt and N. E. Thomas, "A
method for normalizing histology slides for quantitative analysis", IEEE International Symposium on Biomedical
Imaging, 1107-1110, 2009, doi:10.1109/ISBI.2009.5193250.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Stain = tuple[float, float, float, float, float, float, float, float]
"""Optical densities of two stains in red, green and blue, three and three, and the strength of each."""

_STAINED = 0.15
"""Least optical density, in all three colours, of a pixel with stain."""
_ENDS = (1.0, 99.0)
_FEWEST = 200
_SAMPLE = 200_000
_BAND = 256
_SMALLEST_ANGLE = 0.02
"""Radians between the colours of two stains; below it there is only one."""


def estimate_stain(pixels: NDArray[np.uint8]) -> Stain | None:
    """Estimate the two stains of an image, (height, width, 3); None if it has not two.

    The stain with more density in red, which is the bluer one, comes first.
    """
    step = max(1, math.isqrt(pixels.shape[0] * pixels.shape[1] // _SAMPLE))
    density = _densities()[pixels[::step, ::step].reshape(-1, 3)]
    density = density[(density > _STAINED).all(axis=1)].astype(np.float64)
    if len(density) < _FEWEST:
        return None
    axes = np.linalg.eigh(np.cov(density.T))[1][:, [2, 1]]
    axes *= np.where(axes.sum(axis=0) < 0, -1.0, 1.0)
    flat = density @ axes
    angles = np.arctan2(flat[:, 1], flat[:, 0])
    ends = np.percentile(angles, _ENDS)
    if ends[1] - ends[0] < _SMALLEST_ANGLE:
        return None
    vectors = np.array([axes @ (np.cos(angle), np.sin(angle)) for angle in ends])
    vectors = np.maximum(vectors, 0.0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors[np.argsort(-vectors[:, 0])]
    strength = np.percentile(density @ np.linalg.pinv(vectors), _ENDS[1], axis=0)
    if not (np.isfinite(vectors).all() and (strength > 0).all()):
        return None
    first, second = (tuple(vector) for vector in vectors.tolist())
    return (*first, *second, float(strength[0]), float(strength[1]))


def normalise_stain(pixels: NDArray[np.uint8], reference: Stain) -> NDArray[np.uint8]:
    """Normalise the stains of an image to a reference; an image without two stains is unchanged."""
    own = estimate_stain(pixels)
    if own is None:
        return pixels
    (vectors, strength), (aim, aimed) = _parts(own), _parts(reference)
    mixing = (np.linalg.pinv(vectors) * (aimed / strength) @ aim).astype(np.float32)
    table, shown = _densities(), np.empty_like(pixels)
    for row in range(0, len(pixels), _BAND):
        density = table[pixels[row : row + _BAND]] @ mixing
        shown[row : row + _BAND] = np.clip(np.rint(256.0 * np.exp(-density) - 1.0), 0, 255)
    return shown


def _densities() -> NDArray[np.float32]:
    """Return the optical density of each byte."""
    return -np.log((np.arange(256, dtype=np.float32) + 1) / 256)


def _parts(stain: Stain) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    numbers = np.array(stain)
    return numbers[:6].reshape(2, 3), numbers[6:]
