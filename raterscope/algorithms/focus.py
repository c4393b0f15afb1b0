"""Focus of an image: the variance of its Laplacian, highest for the sharpest of several focal planes.

References
----------
J. L. Pech-Pacheco, G. Cristobal, J. Chamorro-Martinez and J. Fernandez-Valdivia, "Diatom autofocusing in
brightfield microscopy: a comparative study", International Conference on Pattern Recognition, 3, 314-317,
2000, doi:10.1109/ICPR.2000.903548.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def measure_focus(pixels: NDArray[Any]) -> float:
    """Return the variance of the Laplacian of an image, (height, width) or (height, width, 3).

    The Laplacian has four neighbours; pixels at the border are left out. Colours are averaged. The value is
    comparable between images of the same field only. It is 0 for an image of fewer than 3 pixels a side.
    """
    grey = pixels.astype(np.float32) if pixels.ndim == 2 else pixels.mean(axis=2, dtype=np.float32)
    if min(grey.shape) < 3:
        return 0.0
    neighbours = grey[:-2, 1:-1] + grey[2:, 1:-1] + grey[1:-1, :-2] + grey[1:-1, 2:]
    return float(np.var(neighbours - 4 * grey[1:-1, 1:-1], dtype=np.float64))
