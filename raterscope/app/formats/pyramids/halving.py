"""An image at half its size, in which small things keep more of their contrast than a mean would leave them.

A nucleus of 6 pixels has 12 % of its contrast left in a mean of 16 x 16 pixels. Where each block of four
leans by a quarter towards the one that differs most from their mean, 24 % are left. On smears the empty
ground stays as smooth, and edges do too (from one half on they become jagged). Neither dark things nor bright
ones are preferred, so that stains and fluorescence are treated alike, and the whole keeps its brightness.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["KEPT", "halve"]

KEPT = 0.25
"""How far a block leans from its mean towards the pixel that differs most."""


def halve(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Make the next smaller level.

    Parameters
    ----------
    pixels : (height, width) or (height, width, 3) uint8
        Of an odd length, the last row or column counts twice.

    Returns
    -------
    (ceil(height / 2), ceil(width / 2)[, 3]) uint8
    """
    from raterscope.app.formats.pyramids import _halving_kernels as kernels

    if not pixels.size:
        return pixels[::2, ::2]
    if pixels.ndim == 2:
        return np.asarray(kernels.halve(pixels[..., None], KEPT))[..., 0]
    return np.asarray(kernels.halve(pixels, KEPT))
