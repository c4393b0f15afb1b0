"""Pixels of pictures as arrays."""

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QImage

__all__ = ["pixels_of"]


def pixels_of(picture: QImage) -> NDArray[np.uint32]:
    """The colours, 0xRRGGBB, by row and column."""
    plain = picture.convertToFormat(QImage.Format.Format_RGB32)
    words = np.frombuffer(plain.constBits(), dtype=np.uint32) & 0xFFFFFF
    return words.reshape(plain.height(), plain.width())
