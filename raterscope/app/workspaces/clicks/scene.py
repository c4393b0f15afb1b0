"""Scene of the clicks workspace: one image as read from the study, its pixels, and crops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.clicks.data import Clicks, FloatArray
from raterscope.algorithms.clicks.result import AnnotatorRates, Fusion
from raterscope.algorithms.image_display import ChannelPlane, ChannelRange, Displays, describe_channel, render
from raterscope.algorithms.progress import Watch, part
from raterscope.app.formats.images import open_planes
from raterscope.app.formats.pyramids import PyramidReader, crop_of, is_large, open_pyramid
from raterscope.app.jobs import Jobs
from raterscope.app.kinds.clicks.annotators import rate_excluded
from raterscope.app.session import LatestTask, Session
from raterscope.app.study import ImageEntry, RunEntry, Study, StudyError
from raterscope.app.study.references import digest_of_files, digest_of_image, has_digest
from raterscope.app.workspaces.navigation import FileProblem, find_file_problem, own_memory

Image = NDArray[np.uint8] | PyramidReader
Crop = NDArray[np.uint8]
_Square = tuple[float, float, float]


@dataclass(frozen=True)
class StackPosition:
    """A focal plane and a time of a stack, both counted from 0; or the maximum over all planes."""

    path: Path
    planes: int
    times: int
    plane: int = 0
    time: int = 0
    projected: bool = False

    def in_words(self) -> str:
        """Describe the position: "z 5 of 21, t 1 of 3"."""
        plane = f"z {self.plane + 1} of {self.planes}"
        if self.projected:
            plane = f"maximum of {self.planes} planes"
        time = f"t {self.time + 1} of {self.times}"
        return ", ".join([plane] * (self.planes > 1) + [time] * (self.times > 1))


@dataclass(frozen=True, eq=False)
class LoadedImage:
    """A rendered image, with the data to render it again."""

    image: Image
    # channels with the bit depth of the file; empty for an image that is read by tiles
    planes: tuple[ChannelPlane, ...]
    displays: Displays  # displays that differ from the default
    position: StackPosition | None = None  # plane and time of a stack

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        deep = [plane.values.nbytes for plane in self.planes if plane.values is not self.image]
        return self.image.nbytes + sum(deep)

    def with_displays(self, displays: Displays) -> LoadedImage:
        """Render the image with other displays."""
        if isinstance(self.image, PyramidReader):
            return replace(self, image=self.image.with_displays(displays), displays=displays)
        return replace(self, image=_rendered(self.planes, displays), displays=displays)

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels. An image that is read by tiles may have to be read first."""
        return tuple(channel.name for channel in self.planes or self.describe())

    def describe(self) -> tuple[ChannelRange, ...]:
        """Describe the values of the channels."""
        if isinstance(self.image, PyramidReader):
            return self.image.describe()
        return tuple(map(describe_channel, self.planes))


def _rendered(planes: tuple[ChannelPlane, ...], displays: Displays) -> NDArray[np.uint8]:
    image = render(planes, displays)
    return image if image is planes[0].values else own_memory(image)


class Crops(QObject):
    """Crops of one image, cut from memory or read in the background."""

    arrived = Signal()  # the crop that was requested last is available

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._image: Image | None = None
        self._task = LatestTask()
        self._requested: _Square | None = None
        self._read: tuple[_Square, Crop | None] | None = None

    @property
    def has_image(self) -> bool:
        """Whether an image is loaded."""
        return self._image is not None

    def set_image(self, image: Image | None) -> None:
        """Set another image, or none."""
        self._task.cancel()
        self._image, self._requested, self._read = image, None, None
        if image is not None:
            self.arrived.emit()

    def of(self, x: float, y: float, radius: float) -> Crop | None:
        """Return the square around a position; None without an image, or while it is read."""
        image, square = self._image, (x, y, radius)
        if image is None or isinstance(image, np.ndarray):
            return crop_of(image, x, y, radius)
        if self._read is not None and self._read[0] == square:
            return self._read[1]
        if self._requested != square:
            self._requested = square
            job = self._jobs.start("Reading a part of the image", partial(_crop, image, square), quiet=True)
            self._task.follow(job, partial(self._on_read, square))
        return None

    def _on_read(self, square: _Square, crop: Crop | None) -> None:
        self._read = square, crop
        self.arrived.emit()


def _crop(image: Image, square: _Square, watch: Watch) -> Crop | None:
    watch(0.0, "reading")
    return crop_of(image, *square)


@dataclass(frozen=True, eq=False)
class Scene:
    """One image, the fusion shown, its clicks (without a fusion, all), the imported ground truth.

    `problem` states why its file cannot be shown; `stream_note` describes the stream or replay that is shown
    instead of a run; `replayed` is True in a replay, which allows no decisions; `later` counts the
    clicks on the image that were imported after the run.
    """

    image: ImageEntry
    path: Path | None
    problem: FileProblem | None
    clicks: Clicks
    run: RunEntry | None
    fusion: Fusion | None
    truth: FloatArray
    stream_note: str = ""
    replayed: bool = False
    later: int = 0
    excluded: tuple[tuple[str, ...], AnnotatorRates] | None = None
    """Annotators that the run excludes, with their rates by the consensus of the others."""

    @property
    def item(self) -> ImageEntry:
        """The image."""
        return self.image


ClicksSession = Session[Scene, None]
"""Session of the clicks workspace; its scene includes changes by stream and scale."""


def read_scene(image: int, run: int | None, study: Study, watch: Watch) -> Scene:
    """Read a scene from the study."""
    watch(0.0, "reading")
    entry = study.image(image)
    run_shown, fusion = study.shown.run_and_result(image, "clicks", run)
    shown = [] if run_shown is None or fusion is None else [(image, run_shown, fusion)]
    return Scene(
        image=entry,
        path=study.locate(entry),
        problem=find_file_problem(entry, study),
        clicks=study.clicks(image, run_shown),
        run=run_shown,
        fusion=fusion,
        truth=study.truth(image).positions,
        later=_imported_since(image, run_shown, study),
        excluded=rate_excluded(shown, study, {}),
    )


def _imported_since(image: int, run: RunEntry | None, study: Study) -> int:
    if run is None or run.imported is None or run.imported >= (study.last_import() or 0):
        return 0
    return len(study.clicks(image)) - len(
        study.clicks(image, replace(run, excluded=(), programs=(), weights={}))
    )


def load_pixels(displays: Callable[[], Displays], entry: ImageEntry, path: Path, watch: Watch) -> LoadedImage:
    """Load an image, or prepare it for reading by tiles, after a check of its content."""
    watch(0.0, "loading")
    checking = part(watch, 0.0, 0.1)
    if entry.grid is None:
        is_same = entry.digest is None or has_digest(path, entry.digest, checking, "loading")
    else:
        is_same = not path.is_file() or digest_of_files((path,), checking) == entry.digest
    if not is_same:
        raise StudyError("is no longer the image that was added: its content differs", file=path)
    if is_large(entry.width, entry.height):
        reader = open_pyramid(path, digest_of_image(path, checking), part(watch, 0.1, 1.0))
        return LoadedImage(reader, (), {}).with_displays(displays())
    with open_planes(path) as stack:
        position = StackPosition(path, stack.planes, stack.times)
        return _loaded(stack.read(), displays(), position if stack.planes * stack.times > 1 else None)


def load_stack(position: StackPosition, displays: Displays, watch: Watch) -> LoadedImage:
    """Load a plane of a stack, or the maximum over its planes."""
    with open_planes(position.path) as reader:
        selected = range(reader.planes) if position.projected else (position.plane,)
        channels: tuple[ChannelPlane, ...] = ()
        for done, plane in enumerate(selected):
            watch(done / len(selected), f"reading plane {plane + 1}")
            read = reader.read(position.time, plane)
            for channel, other in zip(channels, read, strict=bool(channels)):
                np.maximum(channel.values, other.values, out=channel.values)
            channels = channels or tuple(replace(each, values=each.values.copy()) for each in read)
        return _loaded(channels, displays, position)


def _loaded(
    channels: tuple[ChannelPlane, ...], displays: Displays, position: StackPosition | None
) -> LoadedImage:
    planes = tuple(replace(plane, values=own_memory(plane.values)) for plane in channels)
    return LoadedImage(_rendered(planes, displays), planes, displays, position)
