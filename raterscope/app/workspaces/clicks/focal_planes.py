"""Focal planes and times of the image on screen: stepping, maximum projection, sharpest plane."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from PySide6.QtCore import Signal

from raterscope.algorithms.focus import measure_focus
from raterscope.algorithms.progress import Watch
from raterscope.app.formats.images import open_planes
from raterscope.app.session import LatestTask
from raterscope.app.workspaces.clicks.scene import LoadedImage, StackPosition, load_stack
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.app.workspaces.navigation import PixelLoader

_Box = tuple[slice, slice]


class FocalPlanes(ClicksPart):
    """Chooses the focal plane and the time of a stack, which are read in the background.

    Signals
    -------
    loaded(int, LoadedImage)
        Number of the image, and the chosen plane of it.
    """

    loaded = Signal(int, object)

    def __init__(self, core: ClicksCore, loader: PixelLoader) -> None:
        super().__init__(core)
        self._image: int | None = None
        self._chosen: dict[int, StackPosition] = {}
        """Positions in the stacks that were shown before, by image."""
        self._reading, self._searching = LatestTask(), LatestTask()
        loader.pixels.connect(self._on_pixels)
        canvas = core.screen.canvas
        canvas.plane_stepped.connect(self.step)
        canvas.time_stepped.connect(self.step_time)
        core.document.replaced.connect(self._forget)
        core.session.cleared.connect(self._leave)
        core.session.scene_changed.connect(self._on_scene)

    def step(self, count: int) -> None:
        """Show a plane further up or down in the stack."""
        position = self._position("The image has one focal plane.", planes=True)
        if position is not None:
            plane = min(max(position.plane + count, 0), position.planes - 1)
            self._choose(replace(position, plane=plane, projected=False))

    def step_time(self, count: int) -> None:
        """Show a later or earlier time."""
        position = self._position("The image has one time.", planes=False)
        if position is not None:
            self._choose(replace(position, time=min(max(position.time + count, 0), position.times - 1)))

    def toggle_projection(self) -> None:
        """Show the maximum over all planes, or the single plane again."""
        position = self._position("The image has one focal plane.", planes=True)
        if position is not None:
            self._choose(replace(position, projected=not position.projected))

    def find_sharpest(self) -> None:
        """Show the plane with the best focus in the visible part of the image."""
        position = self._position("The image has one focal plane.", planes=True)
        if position is None or self._image is None:
            return
        left, top, right, bottom = (max(int(edge), 0) for edge in self._screen.canvas.viewport.visible)
        box = slice(top, bottom + 1), slice(left, right + 1)
        job = self._jobs.start("Finding the sharpest plane", partial(_sharpest, position, box))
        self._searching.follow(job, partial(self._on_sharpest, self._image))

    def _position(self, otherwise: str, *, planes: bool) -> StackPosition | None:
        """Return the position on screen or on its way; without a stack, show a message."""
        position = None if self._image is None else self._chosen.get(self._image)
        if position is None or (position.planes if planes else position.times) < 2:
            self._screen.message.emit(otherwise)
            return None
        return position

    def _on_sharpest(self, image: int, plane: int) -> None:
        position = self._chosen.get(image)
        if position is not None and image == self._image:
            self._choose(replace(position, plane=plane, projected=False))
            self._screen.message.emit(f"Plane {plane + 1} is the sharpest in the visible part.")

    def _on_scene(self) -> None:
        if self._session.scene.image.id != self._image:
            self._leave()

    def _on_pixels(self, image: int, loaded: LoadedImage) -> None:
        self._image = image
        if loaded.position is None:
            self._screen.canvas.set_plane("")
            return
        chosen = self._chosen.setdefault(image, loaded.position)
        self._screen.canvas.set_plane(loaded.position.in_words())
        if chosen != loaded.position:
            self._read()

    def _choose(self, position: StackPosition) -> None:
        assert self._image is not None
        if position != self._chosen[self._image]:
            self._chosen[self._image] = position
            self._screen.canvas.set_plane(position.in_words())
            if not self._reading.busy:
                self._read()

    def _read(self) -> None:
        if self._image is None:
            return
        position = self._chosen[self._image]
        work = partial(load_stack, position, dict(self._document.displays))
        job = self._jobs.start("Reading a focal plane", work, quiet=not position.projected)
        self._reading.follow(job, partial(self._on_read, self._image), failed=self._screen.refused.emit)

    def _on_read(self, image: int, loaded: LoadedImage) -> None:
        if image != self._image:
            return
        self.loaded.emit(image, loaded)
        if self._chosen[image] != loaded.position:
            self._read()

    def _leave(self) -> None:
        self._reading.cancel()
        self._searching.cancel()
        self._image = None
        self._screen.canvas.set_plane("")

    def _forget(self) -> None:
        self._leave()
        self._chosen.clear()


def _sharpest(position: StackPosition, box: _Box, watch: Watch) -> int:
    with open_planes(position.path) as reader:
        focus = []
        for plane in range(reader.planes):
            watch(plane / reader.planes, f"plane {plane + 1} of {reader.planes}")
            channels = reader.read(position.time, plane)
            focus.append(sum(measure_focus(channel.values[box]) for channel in channels))
    return int(np.argmax(focus))
