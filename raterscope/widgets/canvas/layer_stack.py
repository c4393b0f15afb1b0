"""Layers of image, clicks, spots and ground truth, in tiles, left and right of a divider."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QRectF, QTimer, Signal
from PySide6.QtGui import QColor, QPainter

from raterscope.widgets import theme
from raterscope.widgets.canvas.annotation_layers import LABELS_UP_TO, CrowdLayer, SpotLayer, TruthLayer
from raterscope.widgets.canvas.image_painting import ImageLayer
from raterscope.widgets.canvas.tiles import TileCache, TileSource
from raterscope.widgets.canvas.viewport import LAYERS, ClickMarks, DetectionMarks, Rect, Viewport

Pixels = NDArray[np.uint8] | TileSource

SETTLED = 80
"""Milliseconds without a change of scale after which stretched tiles are repainted."""

HIDDEN_AT_FIRST = {"truth", "density"}
"""Layers that are hidden at first: decisions are made without seeing the answer."""

REPAINTED_ALONE = 20
"""Maximum number of changed spots to repaint each alone; if there are more, everything is repainted."""


class LayerStack(QObject):
    """Layers of a canvas, each visible or not."""

    changed = Signal()  # must be painted again
    part_changed = Signal(QRectF)  # this part of the image must be painted again
    arrived = Signal()  # parts of the image have finer tiles
    refused = Signal(str)  # why a part of an image by tiles cannot be shown

    def __init__(self, viewport: Viewport, parent: QObject) -> None:
        super().__init__(parent)
        self._viewport, self._ratio = viewport, 1.0
        self.image = self._new_layer()
        self.crowd = CrowdLayer(self)
        self.crowd.prepared.connect(self._clicks_changed)
        self.spots, self._truth = SpotLayer(), TruthLayer()
        self.visible = {name: name not in HIDDEN_AT_FIRST for name in LAYERS}
        self.bare = False
        """Whether the image is shown without marks."""
        self._base = TileCache(partial(self._paint_side, 0), QColor(theme.DARK.canvas))
        self._overlay = TileCache(self._paint_overlay)
        self.compared: SpotLayer | None = None
        """Spots right of the divider, instead of the spots."""
        self._compared_overlay = TileCache(self._paint_compared)
        self._images: tuple[ImageLayer, ImageLayer] | None = None
        """Images left and right of the divider, instead of the image."""
        self._compared_base = TileCache(partial(self._paint_side, 1), QColor(theme.DARK.canvas))
        self._labels = True
        self._quick = True
        self._settling = QTimer(self, singleShot=True, interval=SETTLED)
        self._settling.timeout.connect(self._on_settled)
        self._continuing = QTimer(self, singleShot=True)
        self._continuing.timeout.connect(self.changed)

    def _new_layer(self) -> ImageLayer:
        layer = ImageLayer(self)
        layer.arrived.connect(self._on_arrived)
        layer.refused.connect(self.refused)
        return layer

    # What is shown -----------------------------------------------------------------------------

    def set_image(self, image: Pixels | None, extent: Rect) -> None:
        """Show an image under the unchanged clicks and spots; see `ImageCanvas.set_image`."""
        elsewhere = extent != self.extent
        self.image.set_image(image, extent)
        if elsewhere:
            self.crowd.show(extent=extent)
            self._overlay.clear()
        self._clear_base()

    @property
    def extent(self) -> Rect:
        """Left, top, right, bottom of the image."""
        return self.image.extent

    def set_clicks(self, clicks: ClickMarks) -> None:
        """Show the annotators' clicks."""
        self.crowd.show(clicks=clicks)
        self._clicks_changed()

    def set_annotators_shown(self, hidden: set[int], solo: int | None) -> None:
        """Hide some annotators' clicks, or those of all except one."""
        self.crowd.show(visible=(frozenset(hidden), solo))
        self._clicks_changed()

    def set_detections(self, spots: DetectionMarks) -> bool:
        """Show spots; return whether they are different spots.

        If only states or bookmarks change, only these spots are repainted.
        """
        before = self.spots.spots
        self.spots.set_spots(spots)
        same = (
            len(before) == len(spots)
            and np.array_equal(before.x, spots.x)
            and np.array_equal(before.y, spots.y)
            and np.array_equal(before.covariance, spots.covariance)
            and np.array_equal(before.number, spots.number)
        )
        if same:
            reach = self.spots.reach(self._viewport.scale) + 60 / self._viewport.scale
            marked = before.bookmarked ^ spots.bookmarked
            changed = [
                QRectF(x - reach, y - reach, 2 * reach, 2 * reach)
                for x, y, state, earlier, number in zip(
                    spots.x.tolist(), spots.y.tolist(), spots.state, before.state, spots.number, strict=True
                )
                if state != earlier or int(number) in marked
            ]
        if same and len(changed) <= REPAINTED_ALONE:
            for part in changed:
                self._overlay.repaint(part)
                self.part_changed.emit(part)
        else:
            self._overlay.clear()
            self._settle_scale()
        return not same

    def set_compared(self, spots: DetectionMarks | None) -> None:
        """Show other spots right of the divider; None shows the same spots everywhere again."""
        self.compared = None if spots is None else SpotLayer()
        if self.compared is not None and spots is not None:
            self.compared.coverage = self.spots.coverage
            self.compared.set_spots(spots)
        self._compared_overlay.clear()
        self.changed.emit()

    def set_compared_images(self, images: tuple[Pixels, Pixels] | None) -> None:
        """Show two images, left and right of the divider; None shows the image of `set_image` again."""
        for layer in self._images or ():
            layer.set_image(None, self.extent)
            layer.deleteLater()
        self._images = None if images is None else (self._new_layer(), self._new_layer())
        for layer, image in zip(self._images or (), images or (), strict=True):
            layer.set_image(image, self.extent)
            layer.show_viewport(self._viewport, self._ratio)
        self._clear_base()
        self.changed.emit()

    def set_coverage(self, coverage: float) -> None:
        """Set the share of a spot's clicks within its ellipse."""
        for spots, overlay in ((self.spots, self._overlay), (self.compared, self._compared_overlay)):
            if spots is not None:
                spots.coverage = coverage
                spots.set_spots(spots.spots)
            overlay.clear()
        self.changed.emit()

    def set_truth(self, x: NDArray[np.floating], y: NDArray[np.floating]) -> None:
        """Show ground truth."""
        self._truth.set_points(x, y)
        self._overlay.clear()
        self.changed.emit()

    def set_visible(self, name: str, visible: bool) -> None:
        """Show or hide clicks, ellipses, detections, truth or density."""
        self.visible[name] = visible
        if name in {"clicks", "density"}:
            self._clear_base()
        else:
            self._overlay.clear()
        self._compared_overlay.clear()
        self._settle_scale()

    def set_bare(self, bare: bool) -> None:
        """Show the image without or with its marks."""
        if bare != self.bare:
            self.bare = bare
            self._clear_base()
            self.changed.emit()

    def show_viewport(self, viewport: Viewport, ratio: float) -> None:
        """Show a part of the image; `ratio` as in `paint`."""
        self._viewport, self._ratio = viewport, ratio
        for layer in (self.image, *(self._images or ())):
            layer.show_viewport(viewport, ratio)
        self._settle_scale()

    @property
    def any_spots(self) -> bool:
        """True if ellipses or detections are visible."""
        return self.visible["ellipses"] or self.visible["detections"]

    # Painting ----------------------------------------------------------------------------------

    def paint(self, painter: QPainter, ratio: float, divider: float | None, *, spots: bool) -> None:
        """Copy the tiles.

        `ratio`: pixels of the screen for each of the widget. `divider`: its position in the widget. `spots`:
        False to hide them while a job shows partial results.
        """
        view = self._viewport
        painter_below = self._paint_quickly if self.image.by_tiles or self.crowd.many else None
        quick = self._quick and painter_below is not None
        if not self._base.show(painter, view, ratio, quick=quick, coarse=painter_below):
            (self._settling if self._base.stretched else self._continuing).start()
        right = QRectF() if divider is None else QRectF(divider, 0, view.width - divider, view.height)
        if divider is not None and self._images is not None:
            painter.setClipRect(right)
            if not self._compared_base.show(painter, view, ratio, quick=quick):
                self._settling.start()
            painter.setClipping(False)
        if self.bare:
            return
        overlay = spots and len(self.spots.spots) > 0 and self.any_spots
        truth = self.visible["truth"] and len(self._truth.x) > 0
        if divider is not None and self.compared is not None:
            painter.setClipRect(right)
            if not self._compared_overlay.show(painter, view, ratio, quick=self._quick):
                self._settling.start()
            painter.setClipRect(QRectF(0, 0, divider, view.height))
        if (overlay or truth) and not self._overlay.show(painter, view, ratio, quick=self._quick):
            self._settling.start()
        painter.setClipping(False)
        self._quick = True

    def _paint_side(self, right: int, painter: QPainter, scale: float, rect: QRectF) -> None:
        """Paint image and clicks of the left or right side of the divider."""
        layer = self.image if self._images is None else self._images[right]
        layer.paint(painter, scale, rect)
        if self.bare:
            return
        clicks, density = self.visible["clicks"], self.visible["density"]
        self.crowd.paint(painter, scale, rect, clicks=clicks, density=density)

    def _paint_quickly(self, painter: QPainter, box: QRectF) -> None:
        """Paint only the image in a box of the widget, without smoothing."""
        view = self._viewport
        rect = QRectF(
            *view.to_image(box.left(), box.top()), box.width() / view.scale, box.height() / view.scale
        )
        painter.save()
        painter.setClipRect(box)
        painter.fillRect(box, QColor(theme.DARK.canvas))
        painter.translate(view.across, view.down)
        layer = self.image if self._images is None else self._images[0]
        layer.paint(painter, view.scale, rect, quickly=True)
        painter.restore()

    def _paint_overlay(self, painter: QPainter, scale: float, rect: QRectF) -> None:
        self._paint_spots(self.spots, painter, scale, rect)

    def _paint_compared(self, painter: QPainter, scale: float, rect: QRectF) -> None:
        if self.compared is not None:
            self._paint_spots(self.compared, painter, scale, rect)

    def _paint_spots(self, spots: SpotLayer, painter: QPainter, scale: float, rect: QRectF) -> None:
        if self.visible["truth"]:
            self._truth.paint(painter, scale, rect)
        if self.visible["ellipses"]:
            spots.paint_ellipses(painter, scale, rect)
        if self.visible["detections"]:
            alone = not self.visible["ellipses"]
            spots.paint_marks(painter, scale, rect, labels=self._labels, all_marks=alone)

    # What changes ------------------------------------------------------------------------------

    def _clear_base(self) -> None:
        self._base.clear()
        self._compared_base.clear()

    def _clicks_changed(self) -> None:
        self._clear_base()
        self._settle_scale()

    def _settle_scale(self) -> None:
        """Update everything that depends on the scale: density for clicks, labels for spots."""
        view = self._viewport
        if self.crowd.show_viewport(view, self.visible["density"]):
            self._clear_base()
        labels = len(self.spots.spots) * view.share_of(self.extent) <= LABELS_UP_TO
        if labels != self._labels:
            self._labels = labels
            self._overlay.clear()
        self.changed.emit()

    def _on_arrived(self, parts: list[QRectF]) -> None:
        for cache in (self._base, self._compared_base):
            for part in parts if not cache.stretched else ():  # otherwise all of it is painted again soon
                cache.clear_rect(part)
        self.arrived.emit()

    def _on_settled(self) -> None:
        self._quick = False
        self.changed.emit()
