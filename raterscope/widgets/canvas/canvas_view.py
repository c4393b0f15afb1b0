"""Canvas rendering: image, click and detection layers (no interaction)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from raterscope.widgets import theme
from raterscope.widgets.canvas import image_painting
from raterscope.widgets.canvas.annotation_layers import (
    LABELS_UP_TO,
    SMALLEST_RADIUS,
    CrowdLayer,
    SpotLayer,
    TruthLayer,
)
from raterscope.widgets.canvas.image_painting import ImageLayer, paint_scale_bar
from raterscope.widgets.canvas.tiles import TileCache, TileSource
from raterscope.widgets.canvas.viewport import (
    FIT_MARGIN,
    LAYERS,
    ClickMarks,
    DetectionMarks,
    Minimap,
    Rect,
    Viewport,
)
from raterscope.widgets.divider import Divider, Sides, paint_divider
from raterscope.widgets.hints import ChipRow
from raterscope.widgets.painting import paint_focus_frame
from raterscope.widgets.parts import announce

Pixels = NDArray[np.uint8] | TileSource

EDGE = 12
SETTLED = 80
"""Milliseconds without a change of scale after which stretched tiles are repainted."""
FRAME_EDGE = 24.0
"""Room for a spot's mark and number inside the frame about it."""

HIDDEN_AT_FIRST = {"truth", "density"}
"""Decisions are made without seeing the answer."""

CHIPS = {
    "clicks": ("clicks", "Every annotator's clicks, in colour and shape; outliers as thin strokes"),
    "ellipses": ("ellipses", "95 % of the clicks on a spot fall inside its ellipse"),
    "detections": ("detections", "Detections, coloured by state, and spot numbers"),
    "truth": ("truth", "Ground truth, as white crosshairs"),
    "density": ("density", "Clicks per square pixel, as a heat map"),
}


class CanvasView(QWidget):
    """An image, its clicks and spots, in layers that chips switch."""

    layer_toggled = Signal(str, bool)
    image_refused = Signal(str)  # why a part of an image by tiles cannot be shown

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(240, 180)
        self.setAccessibleName("Image")
        self._viewport = Viewport(max(1, self.width()), max(1, self.height()))
        self._fitted = True
        self._image = ImageLayer(self)
        self._image.arrived.connect(self._on_arrived)
        self._image.refused.connect(self.image_refused)
        self._crowd = CrowdLayer(self)
        self._crowd.prepared.connect(self._clicks_changed)
        self._spots, self._truth = SpotLayer(), TruthLayer()
        self._visible = {name: name not in HIDDEN_AT_FIRST for name in LAYERS}
        self._base = TileCache(partial(self._paint_side, 0), QColor(theme.DARK.canvas))
        self._overlay = TileCache(self._paint_overlay)
        self.divider = Divider(self)
        self.divider.moved.connect(self.update)
        self._compared: SpotLayer | None = None
        self._compared_overlay = TileCache(self._paint_compared)
        self._images: tuple[ImageLayer, ImageLayer] | None = None
        """Images left and right of the divider, instead of the image."""
        self._compared_base = TileCache(partial(self._paint_side, 1), QColor(theme.DARK.canvas))
        self._pixel_size: float | None = None
        self._partial: tuple[NDArray[np.floating], NDArray[np.floating]] | None = None
        self._selected: int | None = None
        self._hovered: int | None = None
        self._annotator: int | None = None
        self.cross_hair: tuple[tuple[float, float], str] | None = None
        self.over_marks: list[Callable[[QPainter, Viewport], None]] = []
        """Painters above the marks, called in every frame, in the widget's pixels."""
        self._bare, self._empty = False, True
        self._waiting = self._plane = ""
        self._labels = True
        self._hurry = True
        self._settling = QTimer(self, singleShot=True, interval=SETTLED)
        self._settling.timeout.connect(self._on_settled)
        self._continuing = QTimer(self, singleShot=True)
        self._continuing.timeout.connect(self.update)
        self._chips = ChipRow(CHIPS, self)
        self._chips.toggled.connect(self._on_chip)
        for name, on in self._visible.items():
            self._chips.set_on(name, on)
        self._minimap = Minimap(self)
        self._minimap.place_chosen.connect(self.centre_on)
        self._minimap.hide()

    # What is shown -----------------------------------------------------------------------------

    def clear_image(self) -> None:
        """Show nothing, until the next image."""
        self.set_image(None, (0, 0, 1, 1))
        self._empty = True

    def set_image(self, image: Pixels | None, extent: Rect, *, pixel_size: float | None = None) -> None:
        """Show an image under the clicks and spots, which stay; on another extent, show it whole.

        `image`: (H, W) or (H, W, 3), or a source of its tiles. None if the pixels are missing; then a frame
        shows the extent. `extent`: (left, top, right, bottom) of the image, in the units of the clicks.
        `pixel_size`: micrometres per unit.
        """
        left, top, right, bottom = (float(edge) for edge in extent)
        if right <= left or bottom <= top:
            raise ValueError(f"the image's extent is {extent}; expected a width and height above 0")
        elsewhere, self._empty = (left, top, right, bottom) != self.extent, False
        self._image.set_image(image, (left, top, right, bottom))
        self._waiting = ""
        self._pixel_size = pixel_size
        self._show_overview()
        if elsewhere:
            self._crowd.show(extent=self.extent)
        self._clear_base()
        if elsewhere:
            self._overlay.clear()
            self.fit()
        self._image.show_viewport(self._viewport, self.devicePixelRatioF())
        self._look_changed()

    def set_plane(self, words: str) -> None:
        """Show which focal plane and time of a stack is on screen; empty for an image of one plane."""
        if words != self._plane:
            self._plane = words
            self.select(self._selected)

    def set_waiting(self, words: str) -> None:
        """Show why the image is not loaded yet."""
        self._waiting = words
        self.update()

    @property
    def extent(self) -> Rect:
        """Left, top, right, bottom of the image."""
        return self._image.extent

    def set_pixel_size(self, micrometres: float | None) -> None:
        """Set the number of micrometres per unit of the image."""
        self._pixel_size = micrometres
        self.update()

    def set_clicks(self, clicks: ClickMarks) -> None:
        """Show the annotators' clicks."""
        self._crowd.show(clicks=clicks)
        self._clicks_changed()

    def set_annotators_shown(self, hidden: set[int], solo: int | None) -> None:
        """Hide some annotators' clicks, or those of all but one."""
        self._crowd.show(visible=(frozenset(hidden), solo))
        self._clicks_changed()

    def choose_annotator(self, annotator: int | None) -> None:
        """Ring the clicks of one annotator."""
        self._annotator = annotator
        self.update()

    def set_detections(self, spots: DetectionMarks) -> None:
        """Show spots. Where only states or bookmarks change, only these spots are repainted."""
        before = self._spots.spots
        self._spots.set_spots(spots)
        self._partial = None
        unchanged = (
            len(before) == len(spots)
            and np.array_equal(before.x, spots.x)
            and np.array_equal(before.y, spots.y)
            and np.array_equal(before.covariance, spots.covariance)
            and np.array_equal(before.number, spots.number)
        )
        if unchanged:
            reach = self._spots.reach(self._viewport.scale) + 60 / self._viewport.scale
            marked = before.bookmarked ^ spots.bookmarked
            for index in range(len(spots)):
                if before.state[index] == spots.state[index] and int(spots.number[index]) not in marked:
                    continue
                x, y = float(spots.x[index]), float(spots.y[index])
                self._overlay.clear_rect(QRectF(x - reach, y - reach, 2 * reach, 2 * reach))
        else:
            self._selected = self._hovered = None
            self._overlay.clear()
        self._look_changed()

    def set_compared(self, spots: DetectionMarks | None, sides: Sides | None) -> None:
        """Show other spots right of the divider; None shows the same spots everywhere again."""
        self.divider.set_sides(sides)
        self._compared = None if spots is None else SpotLayer()
        if self._compared is not None and spots is not None:
            self._compared.coverage = self._spots.coverage
            self._compared.set_spots(spots)
        self._compared_overlay.clear()
        self.update()

    def set_compared_images(self, images: tuple[Pixels, Pixels] | None, sides: Sides | None) -> None:
        """Show two images, left and right of the divider; None shows the image of `set_image` again."""
        self.divider.set_sides(sides)
        for layer in self._images or ():
            layer.set_image(None, self.extent)
            layer.deleteLater()
        self._images = None
        if images is not None:
            self._images = self._new_layer(images[0]), self._new_layer(images[1])
        self._clear_base()
        self.update()

    def _new_layer(self, image: Pixels) -> ImageLayer:
        layer = ImageLayer(self)
        layer.arrived.connect(self._on_arrived)
        layer.refused.connect(self.image_refused)
        layer.set_image(image, self.extent)
        layer.show_viewport(self._viewport, self.devicePixelRatioF())
        return layer

    def set_coverage(self, coverage: float) -> None:
        """Choose the share of a spot's clicks that its ellipse holds."""
        self._spots.coverage = coverage
        self._spots.set_spots(self._spots.spots)
        self._overlay.clear()
        if self._compared is not None:
            self._compared.coverage = coverage
            self._compared.set_spots(self._compared.spots)
            self._compared_overlay.clear()
        self.update()

    def set_truth(self, x: NDArray[np.floating], y: NDArray[np.floating]) -> None:
        """Show ground truth."""
        self._truth.set_points(x, y)
        self._overlay.clear()
        self.update()

    def set_partial(self, mean: NDArray[np.floating] | None, covariance: NDArray[np.floating] | None) -> None:
        """Show what a running job has so far, in place of the spots; None shows the spots again."""
        self._partial = None if mean is None or covariance is None else (mean, covariance)
        self.update()

    def set_layer_visible(self, name: str, visible: bool) -> None:
        """Show or hide clicks, ellipses, detections, truth or density."""
        if self._visible[name] == visible:
            return
        self._visible[name] = visible
        self._chips.set_on(name, visible)
        if name in {"clicks", "density"}:
            self._clear_base()
        else:
            self._overlay.clear()
        self._compared_overlay.clear()
        self._look_changed()

    def select(self, index: int | None) -> None:
        """Frame one spot."""
        self._selected = index
        words = self._spots.spots.words(index) if index is not None else ("no spot selected", "")
        description = ", ".join(part for part in (*words, self._plane) if part)
        if description != self.accessibleDescription():
            self.setAccessibleDescription(description)
            announce(self, description)
        self.update()

    def _hide_overlays(self, bare: bool) -> None:
        """Show the image without a mark on it, or with them."""
        if bare != self._bare:
            self._bare = bare
            self._clear_base()
            self.update()

    # Visible part ------------------------------------------------------------------------------

    @property
    def viewport(self) -> Viewport:
        """Visible part of the image."""
        return self._viewport

    @property
    def fitted(self) -> bool:
        """True while the view is fitted to the whole image."""
        return self._fitted

    def fit(self) -> None:
        """Show the whole."""
        self._fitted = True
        top = 0 if self._chips.isHidden() else self._chips.geometry().bottom()
        self._set_viewport(self._viewport.framing(self.extent, FIT_MARGIN, top=top))

    def look_at(self, x: float, y: float, radius: float) -> None:
        """Pan to a spot and its surroundings.

        The scale stays when the spot is easily judged at it, and nothing moves when it also lies well inside.
        """
        view = self._viewport.looking_at(
            x, y, radius, self.extent, frame=FRAME_EDGE, top=self._chips.geometry().bottom()
        )
        if view != self._viewport:
            self._fitted = False
            self._set_viewport(view)

    def look_from(self, x: float, y: float, scale: float) -> None:
        """Centre a position at a scale: widget pixels for one unit of the image."""
        self._fitted = False
        self._set_viewport(self._viewport.centred(x, y, scale).held_to(self.extent))

    def centre_on(self, x: float, y: float) -> None:
        """Centre a position."""
        self._fitted = False
        self._set_viewport(self._viewport.centred(x, y))

    def zoom(self, factor: float, about: QPointF | None = None) -> None:
        """Zoom about a position of the widget, or about its centre."""
        view = self._viewport
        position = about if about is not None else QPointF(view.width / 2, view.height / 2)
        self._fitted = False
        self._set_viewport(view.zoomed(factor, position.x(), position.y()).held_to(self.extent))

    def pan(self, across: float, down: float) -> None:
        """Pan by some pixels."""
        self._drag_to(self._viewport.panned(across, down))

    def _drag_to(self, viewport: Viewport) -> None:
        self._fitted = False
        self._set_viewport(viewport.held_to(self.extent))

    def _set_viewport(self, viewport: Viewport) -> None:
        self._viewport = viewport
        self._minimap.follow(viewport)
        for layer in (self._image, *(self._images or ())):
            layer.show_viewport(viewport, self.devicePixelRatioF())
        self._look_changed()

    # Painting ----------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:
        """Return the largest size."""
        return QSize(900, 640)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Copy the tiles, then paint what follows the mouse and the keys."""
        with QPainter(self) as painter:
            if self._empty:  # until the first image: no frame and scale bar of nothing
                painter.fillRect(self.rect(), QColor(theme.DARK.canvas))
            else:
                self._paint(painter)
            if self._hovered is not None and self._partial is None and not self._bare:
                position, long = self._on_screen(self._hovered)
                title, line = self._spots.spots.words(self._hovered)
                state = self._spots.spots.state[self._hovered]
                image_painting.paint_words(painter, self._viewport, position, long + 10, title, line, state)
            if self.hasFocus() and not self._bare:
                paint_focus_frame(painter, QRectF(0, 0, self._viewport.width, self._viewport.height))

    def _paint(self, painter: QPainter) -> None:
        ratio = self.devicePixelRatioF()
        view = self._viewport
        painter_below = self._paint_quickly if self._image.by_tiles or self._crowd.many else None
        hurry = self._hurry and painter_below is not None
        if not self._base.show(painter, view, ratio, hurry=hurry, coarse=painter_below):
            (self._settling if self._base.stretched else self._continuing).start()
        divider = self.divider.across(view.width)
        if divider is not None and self._images is not None:
            painter.setClipRect(QRectF(divider, 0, view.width - divider, view.height))
            if not self._compared_base.show(painter, view, ratio, hurry=hurry):
                self._settling.start()
            painter.setClipping(False)
        if self._bare:
            paint_scale_bar(painter, QPointF(EDGE, view.height - EDGE), view.scale, self._pixel_size)
            return
        spots = self._partial is None and len(self._spots.spots) > 0
        overlay = spots and (self._visible["ellipses"] or self._visible["detections"])
        truth = self._visible["truth"] and len(self._truth.x) > 0
        if divider is not None and self._compared is not None:
            self._show_compared(painter, ratio, divider)
            painter.setClipRect(QRectF(0, 0, divider, view.height))
        if (overlay or truth) and not self._overlay.show(painter, view, ratio, hurry=self._hurry):
            self._settling.start()
        painter.setClipping(False)
        if divider is not None:
            paint_divider(painter, divider, view.height)
        self._hurry = True
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._annotator is not None and self._visible["clicks"]:
            image_painting.paint_chosen(painter, view, *self._crowd.of(self._annotator, view))
        if self._partial is not None:
            image_painting.paint_partial(painter, view, *self._partial, self._spots.coverage)
        elif self._selected is not None:
            position, long = self._on_screen(self._selected)
            image_painting.paint_frame(painter, position, FRAME_EDGE + long)
        for paint in self.over_marks:
            paint(painter, view)
        if self.cross_hair is not None:
            image_painting.paint_cross_hair(painter, view, *self.cross_hair)
        paint_scale_bar(painter, QPointF(EDGE, view.height - EDGE), view.scale, self._pixel_size)
        if self._crowd.as_density or self._visible["density"]:
            instead = self._crowd.as_density and not self._visible["density"]
            image_painting.paint_density_bar(painter, view, self._crowd.highest, instead)
        if self._plane:
            image_painting.paint_plane(painter, view, self._plane)
        if self._waiting:
            image_painting.paint_waiting(painter, view, self._waiting)

    def _paint_side(self, right: int, painter: QPainter, scale: float, rect: QRectF) -> None:
        """Paint image and clicks as they are left or right of the divider."""
        layer = self._image if self._images is None else self._images[right]
        layer.paint(painter, scale, rect)
        if self._bare:
            return
        clicks, density = self._visible["clicks"], self._visible["density"]
        self._crowd.paint(painter, scale, rect, clicks=clicks, density=density)

    def _paint_quickly(self, painter: QPainter, box: QRectF) -> None:
        """Paint the image alone in a box of the widget, its pixels not smoothed."""
        view = self._viewport
        rect = QRectF(
            *view.to_image(box.left(), box.top()), box.width() / view.scale, box.height() / view.scale
        )
        painter.save()
        painter.setClipRect(box)
        painter.fillRect(box, QColor(theme.DARK.canvas))
        painter.translate(view.across, view.down)
        layer = self._image if self._images is None else self._images[0]
        layer.paint(painter, view.scale, rect, quickly=True)
        painter.restore()

    def _show_compared(self, painter: QPainter, ratio: float, divider: float) -> None:
        view = self._viewport
        painter.setClipRect(QRectF(divider, 0, view.width - divider, view.height))
        if not self._compared_overlay.show(painter, view, ratio, hurry=self._hurry):
            self._settling.start()

    def _paint_overlay(self, painter: QPainter, scale: float, rect: QRectF) -> None:
        self._paint_spots(self._spots, painter, scale, rect)

    def _paint_compared(self, painter: QPainter, scale: float, rect: QRectF) -> None:
        if self._compared is not None:
            self._paint_spots(self._compared, painter, scale, rect)

    def _paint_spots(self, spots: SpotLayer, painter: QPainter, scale: float, rect: QRectF) -> None:
        if self._visible["truth"]:
            self._truth.paint(painter, scale, rect)
        if self._visible["ellipses"]:
            spots.paint_ellipses(painter, scale, rect)
        if self._visible["detections"]:
            alone = not self._visible["ellipses"]
            spots.paint_marks(painter, scale, rect, labels=self._labels, all_marks=alone)

    def _on_screen(self, index: int) -> tuple[QPointF, float]:
        """Return a spot's position and radius in the widget."""
        spots, view = self._spots.spots, self._viewport
        position = QPointF(*view.to_screen(float(spots.x[index]), float(spots.y[index])))
        return position, max(self._spots.radius(index) * view.scale, SMALLEST_RADIUS)

    # What changes ------------------------------------------------------------------------------

    def _clear_base(self) -> None:
        self._base.clear()
        self._compared_base.clear()

    def _clicks_changed(self) -> None:
        self._clear_base()
        self._look_changed()

    def _look_changed(self) -> None:
        """Settle what depends on the scale: density for clicks, labels for spots."""
        view = self._viewport
        if self._crowd.show_viewport(view, self._visible["density"]):
            self._clear_base()
        labels = len(self._spots.spots) * view.share_of(self.extent) <= LABELS_UP_TO
        if labels != self._labels:
            self._labels = labels
            self._overlay.clear()
        self.update()

    def _show_overview(self) -> None:
        width, height = self._minimap.room(self.extent)
        self._minimap.set_picture(self._image.thumbnail(width, height), self.extent)

    def _on_arrived(self, parts: list[QRectF]) -> None:
        if not self._minimap.has_picture:
            self._show_overview()
            self._minimap.follow(self._viewport)
        for cache in (self._base, self._compared_base):
            for part in parts if not cache.stretched else ():  # otherwise all of it is painted again soon
                cache.clear_rect(part)
        self.update()

    def _on_settled(self) -> None:
        self._hurry = False
        self.update()

    def _on_chip(self, name: str, on: bool) -> None:
        self.set_layer_visible(name, on)
        self.layer_toggled.emit(name, on)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place the chips, and keep the same part visible."""
        self._chips.fit(self.width() - 2 * EDGE)
        self._chips.move(EDGE, EDGE)
        self.divider.place(self.rect(), self._chips.geometry().bottom())
        size, was_inside = event.size(), self._cut_off() is None
        self._viewport = self._viewport.resized(max(1, size.width()), max(1, size.height()))
        if self._fitted:
            self.fit()
        else:
            self._set_viewport(self._viewport)
            position = self._cut_off()
            if was_inside and position is not None:
                self.centre_on(*self._viewport.to_image(position.x(), position.y()))

    def _cut_off(self) -> QPointF | None:
        """Return the selected spot's position in the widget if its frame is not inside; else None."""
        if self._selected is None or self._selected >= len(self._spots.spots):
            return None
        position, long = self._on_screen(self._selected)
        half, view = FRAME_EDGE + long, self._viewport
        inside = QRectF(0, 0, view.width, view.height).adjusted(half, half, -half, -half)
        return None if inside.contains(position) else position

    def spot_at(self, x: float, y: float) -> int | None:
        """Return the spot at a position of the image, None where none is visible."""
        divider = self.divider.across(self._viewport.width)
        if self._compared is not None and divider is not None and self._viewport.to_screen(x, y)[0] > divider:
            return None
        visible = self._visible["ellipses"] or self._visible["detections"]
        return self._spots.at(x, y, self._viewport.scale) if visible and self._partial is None else None
