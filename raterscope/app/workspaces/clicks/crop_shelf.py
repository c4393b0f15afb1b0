"""Crops of spots of many images, all at one scale: cut off the GUI thread, an image at a time."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.errors import InputError
from raterscope.app.jobs import Jobs
from raterscope.app.session import LatestTask
from raterscope.app.study import ImageEntry, Study
from raterscope.app.workspaces.clicks.crops import Crop, crop_of
from raterscope.app.workspaces.clicks.scene import load_pixels
from raterscope.widgets.canvas.pictures import to_picture

__all__ = ["CropShelf", "Place"]

KEPT_BYTES = 64 * 1024**2
LEAST_KEPT = 200
"""Crops that are kept however large they are."""
FAR = 1.25
"""By how much the scale that fits best may change before all is cut anew."""
AT_LEAST = 12.0


@dataclass(frozen=True, eq=False)
class Place:
    """Where a spot lies."""

    image: ImageEntry
    x: float
    y: float


class CropShelf(QObject):
    """Cuts crops of what is wanted; where an image is at hand, of all the places on it.

    Signals
    -------
    ready(int, QImage or None)
        A crop; None where the image is gone or cannot be read.
    """

    ready = Signal(int, object)

    def __init__(self, document: Document, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._jobs = jobs
        self._places: Mapping[int, Place] = {}
        self._kept: OrderedDict[int, Crop | None] = OrderedDict()
        self._wanted: list[int] = []
        self._task = LatestTask()
        self._size: float | None = None
        self.half = AT_LEAST
        """Half a crop's width in pixels; in pixels of `_size` micrometres where images have their own."""

    def forget(self) -> None:
        """Drop everything: another study."""
        self._task.cancel()
        self._places = {}
        self._kept.clear()
        self._wanted.clear()

    def set_scale(self, radii: Sequence[float], size: float | None) -> bool:
        """Choose the width that fits most spots; tells whether all is to be cut anew.

        Parameters
        ----------
        radii : sequence of float
            Half widths in which each spot is judged well.
        size : float or None
            Micrometres a pixel that count for all; None to take pixels as they are.
        """
        half = max(AT_LEAST, math.ceil(float(np.median(radii)))) if len(radii) else self.half
        if size == self._size and max(half, self.half) / min(half, self.half) <= FAR and self._kept:
            return False
        self.half, self._size = half, size
        places = self._places
        self.forget()
        self._places = places
        return True

    def set_places(self, places: Mapping[int, Place]) -> None:
        """Say what the numbers stand for."""
        self._places = places

    def get(self, number: int) -> Crop | None:
        """Give a crop that is there already."""
        return self._kept.get(number)

    def want(self, number: int) -> None:
        """Ask for a crop: `ready` brings it."""
        if number in self._kept:
            self._kept.move_to_end(number)
            self._give(number)
        elif number in self._places:
            self._wanted.append(number)
            self._cut_on()

    def _cut_on(self) -> None:
        while self._wanted and (self._wanted[-1] not in self._places or self._wanted[-1] in self._kept):
            self._wanted.pop()
        if self._task.busy or not self._wanted:
            return
        # What was wanted last is on screen now.
        image = self._places[self._wanted[-1]].image
        here = {number: one for number, one in self._places.items() if one.image.id == image.id}
        job = self._document.ask("Looking for an image", partial(_locate, image))
        self._task.follow(
            job, partial(self._on_located, image, here), stopped=partial(self._on_cut, dict.fromkeys(here))
        )

    def _on_located(self, image: ImageEntry, here: Mapping[int, Place], path: Path | None) -> None:
        if path is None:
            self._on_cut(dict.fromkeys(here))
            return
        half = self.half * (self._size / image.pixel_size if self._size and image.pixel_size else 1.0)
        wanted = [number for number in self._wanted if number in here]
        work = partial(
            _cut, image, path, {number: (one.x, one.y) for number, one in here.items()}, wanted, half
        )
        job = self._jobs.start("Cutting out spots", work, quiet=True)
        self._task.follow(job, self._on_cut, stopped=partial(self._on_cut, dict.fromkeys(here)))

    def _on_cut(self, crops: Mapping[int, Crop | None]) -> None:
        asked = set(self._wanted)
        for number, crop in crops.items():
            self._kept[number] = crop
            self._kept.move_to_end(number)
            if number in asked:
                self._give(number)
        while len(self._kept) > max(LEAST_KEPT, KEPT_BYTES / (12 * self.half**2)):
            self._kept.popitem(last=False)
        self._wanted = [number for number in self._wanted if number not in crops]
        self._cut_on()

    def _give(self, number: int) -> None:
        crop = self._kept[number]
        self.ready.emit(number, None if crop is None else to_picture(crop))


def _locate(image: ImageEntry, study: Study, watch: Watch) -> Path | None:
    watch(0.0, "looking")
    return study.locate(image)


def _cut(
    entry: ImageEntry,
    path: Path,
    places: Mapping[int, tuple[float, float]],
    wanted: Sequence[int],
    half: float,
    watch: Watch,
) -> dict[int, Crop | None]:
    """Cut squares out of an image: all of them where it is in memory, of a larger one those wanted."""
    try:
        image = load_pixels(entry, path, watch)
    except InputError:
        return dict.fromkeys(places)
    numbers = list(places) if isinstance(image, np.ndarray) else wanted
    return {number: crop_of(image, *places[number], half) for number in numbers}
