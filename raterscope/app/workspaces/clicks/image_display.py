"""Brightness, contrast and colours of the image on screen, chosen in a panel and stored in the study."""

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
)
from raterscope.algorithms.progress import Watch
from raterscope.algorithms.stains import Stain, estimate_stain
from raterscope.app.session import LatestTask
from raterscope.app.workspaces.clicks.focal_planes import FocalPlanes
from raterscope.app.workspaces.clicks.scene import LoadedImage
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.app.workspaces.navigation import PixelLoader
from raterscope.widgets.panels.display_panel import DisplayPanel

STORED_AFTER = 400
"""Milliseconds without a change after which the displays are stored."""


class ImageDisplay(ClicksPart):
    """Renders the image on screen with the displays of its channels, and offers to change them.

    Signals
    -------
    rendered(int, Image)
        Number of the image, and what to show.
    changed
        Displays were changed by the expert.
    """

    rendered = Signal(int, object)
    changed = Signal()

    def __init__(self, core: ClicksCore, loader: PixelLoader, planes: FocalPlanes) -> None:
        super().__init__(core)
        self.panel = DisplayPanel(core.screen.canvas, core.screen)
        self._image: int | None = None
        self._loaded: LoadedImage | None = None
        self._described: LoadedImage | None = None
        self._rendering, self._describing = LatestTask(), LatestTask()
        self._storing = QTimer(self)
        self._storing.setSingleShot(True)
        self._storing.setInterval(STORED_AFTER)
        self._storing.timeout.connect(self._store)
        loader.pixels.connect(self._on_pixels)
        planes.loaded.connect(self._on_pixels)
        self.panel.changed.connect(self._on_changed)
        self.panel.stain_toggled.connect(self._on_stain)
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
        elif self._loaded is None:
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
        if self.panel.rows:
            self.panel.automatic.click()

    def _forget(self) -> None:
        self._rendering.cancel()
        self._describing.cancel()
        self._image = self._loaded = self._described = None
        self.panel.hide()

    def _on_pixels(self, image: int, loaded: LoadedImage) -> None:
        self._image, self._loaded = image, loaded
        self._rendering.cancel()
        if loaded.displays == self._document.displays:
            self.rendered.emit(image, loaded.image)
        else:
            self._render()
        if self.is_open:
            self._describe()

    def _describe(self) -> None:
        loaded = self._loaded
        if loaded is not None and loaded is not self._described:
            self._described = loaded
            job = self._jobs.start("Reading the values of the image", partial(_describe, loaded), quiet=True)
            self._describing.follow(job, self._on_described)

    def _on_described(self, channels: tuple[ChannelRange, ...]) -> None:
        had_focus = self.panel.isAncestorOf(self._screen.focusWidget())
        loaded = self._loaded
        has_stain = loaded is not None and any(_is_photograph(plane) for plane in loaded.planes)
        self.panel.set_channels(channels, self._document.displays, has_stain=has_stain)
        if self.panel.rows and (had_focus or self.panel.isVisible()):
            self.panel.rows[0].bar.setFocus()

    def _on_stain(self, on: bool) -> None:
        loaded = self._loaded
        if not on or loaded is None:
            self._on_estimated(None)
            return
        (plane,) = loaded.planes
        job = self._jobs.start("Estimating the stains", partial(_estimate, plane), quiet=True)
        self._describing.follow(job, self._on_estimated)

    def _on_estimated(self, stain: Stain | None) -> None:
        if self.panel.stain.isChecked():
            words = "All images are shown with the stains of this image."
            self._screen.message.emit(words if stain else "No two stains were found in this image.")
        self.panel.set_stain(stain)
        display = self._document.displays.get(COLOUR, DEFAULT)
        self._on_changed({COLOUR: replace(display, stain=stain)})

    def _on_changed(self, displays: dict[str, ChannelDisplay]) -> None:
        merged = {**self._document.displays, **displays}
        self._document.displays = {name: each for name, each in merged.items() if each != DEFAULT}
        self._storing.start()
        if not self._rendering.busy:
            self._render()

    def _render(self) -> None:
        if self._loaded is None or self._image is None:
            return
        displays = dict(self._document.displays)
        work = partial(_render, self._loaded, displays)
        job = self._jobs.start("Rendering the image", work, quiet=True)
        self._rendering.follow(job, partial(self._on_rendered, self._image))

    def _on_rendered(self, image: int, loaded: LoadedImage) -> None:
        self._described = loaded if self._described is self._loaded else self._described
        self._loaded = loaded
        if loaded.displays != self._document.displays:
            self._render()
        self.rendered.emit(image, loaded.image)

    def _store(self) -> None:
        if self._document.contents is not None:
            self._document.store_displays()
            self.changed.emit()


def _is_photograph(plane: ChannelPlane) -> bool:
    return plane.values.ndim == 3 and plane.values.dtype == np.uint8


def _estimate(plane: ChannelPlane, watch: Watch) -> Stain | None:
    watch(0.0, "estimating")
    return estimate_stain(plane.values)


def _describe(loaded: LoadedImage, watch: Watch) -> tuple[ChannelRange, ...]:
    watch(0.0, "reading")
    return loaded.describe()


def _render(loaded: LoadedImage, displays: dict[str, ChannelDisplay], watch: Watch) -> LoadedImage:
    watch(0.0, "rendering")
    return loaded.with_displays(displays)
