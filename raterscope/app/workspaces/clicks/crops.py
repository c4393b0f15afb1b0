"""Square crops of one image, cut from memory or read in the background."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.progress import Watch
from raterscope.app.formats.pyramids import PyramidReader
from raterscope.app.jobs import Jobs
from raterscope.app.session import LatestTask

__all__ = ["Crops", "Image", "crop_of"]

Image = NDArray[np.uint8] | PyramidReader
Crop = NDArray[np.uint8]
_Square = tuple[float, float, float]


class Crops(QObject):
    """Gives crops of one image at a time.

    Parameters
    ----------
    jobs : Jobs

    Signals
    -------
    arrived
        The crop that was asked for last can be had now.
    """

    arrived = Signal()

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._image: Image | None = None
        self._task = LatestTask()
        self._wanted: _Square | None = None
        self._read: tuple[_Square, Crop | None] | None = None

    @property
    def has_image(self) -> bool:
        """Whether there is an image to cut from."""
        return self._image is not None

    def set_image(self, image: Image | None) -> None:
        """Take another image, or none."""
        self._task.cancel()
        self._image, self._wanted, self._read = image, None, None
        if image is not None:
            self.arrived.emit()

    def of(self, x: float, y: float, radius: float) -> Crop | None:
        """Give the square around a place; None where there is no image, or it is still being read."""
        image, square = self._image, (x, y, radius)
        if image is None or isinstance(image, np.ndarray):
            return crop_of(image, x, y, radius)
        if self._read is not None and self._read[0] == square:
            return self._read[1]
        if self._wanted != square:
            self._wanted = square
            job = self._jobs.start("Reading a part of the image", partial(_crop, image, square), quiet=True)
            self._task.follow(job, partial(self._on_read, square))
        return None

    def _on_read(self, square: _Square, crop: Crop | None) -> None:
        self._read = square, crop
        self.arrived.emit()


def crop_of(image: Image | None, x: float, y: float, radius: float) -> Crop | None:
    """Cut the square around a place, black beyond the image; None where no pixel of it lies there."""
    if image is None:
        return None
    half = int(np.ceil(radius))
    top, left = round(y) - half, round(x) - half
    if isinstance(image, np.ndarray):
        inside = image[max(top, 0) : max(top + 2 * half, 0), max(left, 0) : max(left + 2 * half, 0)]
    else:
        inside = image.region(0, left, top, 2 * half, 2 * half)
    if not inside.size:
        return None
    crop = np.zeros((2 * half, 2 * half, *inside.shape[2:]), dtype=np.uint8)
    from_top, from_left = max(-top, 0), max(-left, 0)
    crop[from_top : from_top + inside.shape[0], from_left : from_left + inside.shape[1]] = inside
    return crop


def _crop(image: Image, square: _Square, watch: Watch) -> Crop | None:
    watch(0.0, "reading")
    return crop_of(image, *square)
