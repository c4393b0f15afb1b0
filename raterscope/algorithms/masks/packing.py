"""Masks as compressed bits, so that those of thousands of images fit into memory."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class PackedMask:
    """Compressed voxels of a mask; made by `pack`."""

    shape: tuple[int, ...]
    content: bytes

    def unpack(self) -> NDArray[np.bool_]:
        """Return the mask.

        Examples
        --------
        >>> pack(np.array([[True, False, True]])).unpack()
        array([[ True, False,  True]])
        """
        bits = np.frombuffer(zlib.decompress(self.content), dtype=np.uint8)
        return np.unpackbits(bits, count=math.prod(self.shape)).view(np.bool_).reshape(self.shape)


def pack(values: NDArray[np.bool_]) -> PackedMask:
    """Compress a mask to a bit per voxel, and less where neighbours are equal."""
    return PackedMask(values.shape, zlib.compress(np.packbits(values).tobytes(), 1))


Voxels = NDArray[np.bool_] | NDArray[np.float32] | PackedMask


def voxels_of(stored: Voxels) -> NDArray[np.bool_] | NDArray[np.float32]:
    """Return the values of a mask that may be packed."""
    return stored.unpack() if isinstance(stored, PackedMask) else stored
