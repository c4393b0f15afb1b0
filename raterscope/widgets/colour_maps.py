"""Colour maps for probabilities, doubt, weights and differences.

References
----------
.. [nunez2018] J. R. Nuñez, C. R. Anderton and R. S. Renslow, "Optimizing colormaps with consideration for
   color vision deficiency to enable accurate interpretation of scientific data", PLoS ONE 13 (2018) e0199239,
   doi:10.1371/journal.pone.0199239.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def _table(anchors: str) -> NDArray[np.uint8]:
    anchored = np.array([list(bytes.fromhex(word[1:])) for word in anchors.split()], dtype=float)
    stops = np.linspace(0, 255, len(anchored))
    positions = np.arange(256)
    channels = [np.interp(positions, stops, anchored[:, channel]) for channel in range(3)]
    return np.round(np.stack(channels, axis=1)).astype(np.uint8)


VIRIDIS = _table(
    "#440154 #481769 #472a7a #433d84 #3d4e8a #355e8d #2e6d8e #297b8e #23898e #1f978b #21a585 "
    "#2eb37c #46c06f #65cb5e #89d548 #b0dd2f #d8e219 #fde725 "
)
"""(256, 3) for probabilities and densities: the map by Smith and van der Walt, in the public domain (CC0)."""

INFERNO = _table(
    "#000004 #0a0722 #1e0c45 #380962 #510e6c #69166e #801f6c #982766 #b0315b #c63d4d #d94d3d #e9612b "
    "#f47918 #fa9407 #fcb014 #f8cd37 #f2ea69 #fcffa4"
)
"""(256, 3) for doubt: the map by Smith and van der Walt, in the public domain (CC0)."""

CIVIDIS = _table(
    "#00204d #002b67 #00356e #28406c #3d4a6b #4d556c #5b606e #696b71 #767676 #848179 #928d78 #a19976 "
    "#b1a573 #c1b26d #d1bf66 #e2cd5c #f3db4f #ffea46"
)
"""(256, 3) for weights: the map by [nunez2018]_, equal for all types of colour vision."""

PUOR = _table("#5e3c99 #8073ac #b2abd2 #d8daeb #f7f7f7 #fee0b6 #fdb863 #e08214 #b35806")
"""(256, 3) for differences: purple below zero, white at zero, orange above; by Brewer (Apache 2.0)."""
