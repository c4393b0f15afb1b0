"""Brightness, contrast and colours of the image on screen, stored in the study; focal planes and times."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from PySide6.QtCore import QTimer, Signal

from raterscope.algorithms.image_display import (
    COLOUR,
    DEFAULT,
    ChannelDisplay,
    ChannelPlane,
    ChannelRange,
    Stain,
    estimate_stain,
    measure_focus,
)
from raterscope.algorithms.progress import Watch
from raterscope.app.formats.images import open_planes
from raterscope.app.session import LatestTask
from raterscope.app.workspaces.clicks.scene import LoadedImage, StackPosition, load_stack
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.app.workspaces.navigation import PixelLoader
from raterscope.widgets.panels.display_panel import DisplayPanel

STORED_AFTER = 400
"""Milliseconds without a change before the displays are stored."""


class ImageDisplay(ClicksPart):
    """Rendering of the image on screen, and changes of its channels' displays."""

    rendered = Signal(int, object)  # number of the image, and its rendering
    changed = Signal()  # displays were changed by the expert

    def __init__(self, core: ClicksCore, loader: PixelLoader, planes: FocalPlanes) -> None:
        super().__init__(core)
        self.panel = DisplayPanel(core.screen.canvas, core.screen)
        self._image: int | None = None
        self.loaded: LoadedImage | None = None
        """The image on screen; None until it is loaded."""
        self._described: LoadedImage | None = None
        self._rendering, self._describing = LatestTask(), LatestTask()
        self._automatic_follows = False
        """Whether the range is to be chosen as soon as the values of the image are read."""
        self._storing = QTimer(self)
        self._storing.setSingleShot(True)
        self._storing.setInterval(STORED_AFTER)
        self._storing.timeout.connect(self._store)
        loader.pixels.connect(self._on_pixels)
        planes.loaded.connect(self._on_pixels)
        self.panel.changed.connect(self._on_changed)
        self.panel.stain.toggled.connect(self._on_stain)
        self.panel.left.connect(self.close)
        core.document.replaced.connect(self._forget)
        core.session.cleared.connect(self._forget)

    @property
    def is_open(self) -> bool:
        """Return whether the panel is open."""
        return self.panel.isVisible()

    def toggle(self) -> None:
        """Open or close the panel."""
        if self.is_open:
            self.close()
        elif self.loaded is None:
            self._screen.message.emit("The image is not loaded, so its contrast cannot be changed.")
        else:
            self._screen.show_grid(False)
            self.panel.show()
            self.panel.raise_()
            self._describe()

    def close(self) -> None:
        """Close the panel; the focus returns to the image."""
        self.panel.hide()
        self._screen.canvas.setFocus()

    def automatic(self) -> None:
        """Choose the range of each channel automatically."""
        if not self.is_open:
            self.toggle()
        self._automatic_follows = self.is_open
        self._follow_automatic()

    def _follow_automatic(self) -> None:
        if self._automatic_follows and not self._describing.busy:
            self._automatic_follows = False
            self.panel.automatic.click()

    def _forget(self) -> None:
        self._rendering.cancel()
        self._describing.cancel()
        self._automatic_follows = False
        self._image = self.loaded = self._described = None
        self.panel.hide()

    def _on_pixels(self, image: int, loaded: LoadedImage) -> None:
        self._image, self.loaded = image, loaded
        self._rendering.cancel()
        if loaded.displays == self._document.displays:
            self.rendered.emit(image, loaded.image)
        else:
            self._render()
        if self.is_open:
            self._describe()

    def _describe(self) -> None:
        loaded = self.loaded
        if loaded is not None and loaded is not self._described:
            self._described = loaded
            job = self._jobs.start("Reading the values of the image", partial(_describe, loaded), quiet=True)
            self._describing.follow(job, self._on_described)

    def _on_described(self, channels: tuple[ChannelRange, ...]) -> None:
        had_focus = self.panel.isAncestorOf(self._screen.focusWidget())
        loaded = self.loaded
        has_stain = loaded is not None and any(
            plane.values.ndim == 3 and plane.values.dtype == np.uint8 for plane in loaded.planes
        )
        self.panel.set_channels(channels, self._document.displays, has_stain=has_stain)
        if self.panel.rows and (had_focus or self.panel.isVisible()):
            self.panel.rows[0].bar.setFocus()
        self._follow_automatic()

    def _on_stain(self, on: bool) -> None:
        loaded = self.loaded
        if not on or loaded is None:
            self._on_estimated(None)
            return
        (plane,) = loaded.planes
        job = self._jobs.start("Estimating the stains", partial(_estimate, plane), quiet=True)
        self._describing.follow(job, self._on_estimated)

    def _on_estimated(self, stain: Stain | None) -> None:
        if self.panel.stain.isChecked():
            text = "All images are shown with the stains of this image."
            self._screen.message.emit(text if stain else "No two stains were found in this image.")
        self.panel.set_stain(stain)
        display = self._document.displays.get(COLOUR, DEFAULT)
        self._on_changed({COLOUR: replace(display, stain=stain)})
        self._follow_automatic()

    def _on_changed(self, displays: dict[str, ChannelDisplay]) -> None:
        merged = {**self._document.displays, **displays}
        self._document.displays = {name: each for name, each in merged.items() if each != DEFAULT}
        self._storing.start()
        if not self._rendering.busy:
            self._render()

    def _render(self) -> None:
        if self.loaded is None or self._image is None:
            return
        displays = dict(self._document.displays)
        work = partial(_render, self.loaded, displays)
        job = self._jobs.start("Rendering the image", work, quiet=True)
        self._rendering.follow(job, partial(self._on_rendered, self._image))

    def _on_rendered(self, image: int, loaded: LoadedImage) -> None:
        self._described = loaded if self._described is self.loaded else self._described
        self.loaded = loaded
        if loaded.displays != self._document.displays:
            self._render()
        self.rendered.emit(image, loaded.image)

    def _store(self) -> None:
        if self._document.contents is not None:
            self._document.store_displays()
            self.changed.emit()


def _estimate(plane: ChannelPlane, watch: Watch) -> Stain | None:
    watch(0.0, "estimating")
    return estimate_stain(plane.values)


def _describe(loaded: LoadedImage, watch: Watch) -> tuple[ChannelRange, ...]:
    watch(0.0, "reading")
    return loaded.describe()


def _render(loaded: LoadedImage, displays: dict[str, ChannelDisplay], watch: Watch) -> LoadedImage:
    watch(0.0, "rendering")
    return loaded.with_displays(displays)


_Box = tuple[slice, slice]


class FocalPlanes(ClicksPart):
    """Choice of the focal plane and time of a stack; they are read in the background."""

    loaded = Signal(int, object)  # number of the image, and the chosen plane of it

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
        """Return the position on screen, or the one being loaded; without a stack, show a message."""
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
