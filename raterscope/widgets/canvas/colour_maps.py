"""Colour maps as tables of 256 colours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["VIRIDIS"]


def _table(anchors: str) -> NDArray[np.uint8]:
    colours = np.array([list(bytes.fromhex(word[1:])) for word in anchors.split()], dtype=float)
    places = np.linspace(0, 255, len(colours))
    wanted = np.arange(256)
    channels = [np.interp(wanted, places, colours[:, channel]) for channel in range(3)]
    return np.round(np.stack(channels, axis=1)).astype(np.uint8)


VIRIDIS = _table(
    "#440154 #481769 #472a7a #433d84 #3d4e8a #355e8d #2e6d8e #297b8e #23898e #1f978b #21a585 "
    "#2eb37c #46c06f #65cb5e #89d548 #b0dd2f #d8e219 #fde725 "
)
"""(256, 3) for probabilities and densities: the map by Smith and van der Walt, in the public domain (CC0)."""
