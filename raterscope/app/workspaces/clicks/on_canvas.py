"""What of the image on screen its canvas shows: pixels, clicks and truth, the spots, the one looked at."""

from __future__ import annotations

from PySide6.QtCore import QObject

from raterscope.algorithms.clicks.results import Clustering
from raterscope.app.document import Document
from raterscope.app.session import while_shown
from raterscope.app.workspaces.clicks import view
from raterscope.app.workspaces.clicks.crops import Crops, Image
from raterscope.app.workspaces.clicks.reviewing import Reviewing
from raterscope.app.workspaces.clicks.scene import Scene
from raterscope.app.workspaces.loading import SceneLoader
from raterscope.widgets.canvas.image_canvas import ImageCanvas
from raterscope.widgets.canvas.marks import ClickMarks

__all__ = ["OnCanvas"]


class OnCanvas(QObject):
    """Keeps the canvas in step with the scene, the pixels as they come, and what is decided of the spots."""

    def __init__(
        self, document: Document, canvas: ImageCanvas, reviewing: Reviewing, loader: SceneLoader, crops: Crops
    ) -> None:
        super().__init__(canvas)
        self._document, self._canvas = document, canvas
        self._reviewing, self._crops = reviewing, crops
        loader.pixels.connect(self._on_pixels)
        loader.loading.connect(canvas.set_waiting)
        reviewing.spots_changed.connect(self._on_spots)
        reviewing.selected.connect(self._on_selected)
        self._session = reviewing.session

    def clear(self) -> None:
        """Show no image."""
        self._crops.set_image(None)
        self._canvas.set_image(None, (0, 0, 1, 1))
        self._canvas.set_pixel_size(None)
        self._canvas.set_clicks(ClickMarks.none())
        self.show_draft(None)

    def begin(self, scene: Scene) -> None:
        """Make way for a scene that comes: another image's pixels go, and every draft."""
        before = self._session.before
        if before is None or scene.image.id != before.image.id:
            self._crops.set_image(None)
            self._canvas.set_image(None, scene.image.extent)
        self._canvas.set_pixel_size(scene.image.pixel_size)
        self.show_draft(None)

    @while_shown
    def show(self) -> None:
        """Draw the clicks and the truth of the scene whose spots are reviewed now."""
        truth = self._session.scene.truth
        self._canvas.set_truth(truth[:, 0], truth[:, 1])
        self.show_clicks()

    @while_shown
    def show_clicks(self) -> None:
        """Draw the clicks; blind, only those on spots that are decided."""
        session, spots = self._session, self._reviewing.spots
        marks = view.click_marks(session.scene, self._document.numbers, spots, blind=session.blind)
        self._canvas.set_clicks(marks)

    def show_draft(self, clustering: Clustering | None) -> None:
        """Draw the clusters that a fusion under way has come to, or none."""
        if clustering is None:
            self._canvas.set_partial(None, None)
        else:
            self._canvas.set_partial(clustering.mean, clustering.covariance)

    @while_shown
    def _on_pixels(self, image: int, pixels: Image) -> None:
        scene = self._session.scene
        if scene.image.id == image:
            self._canvas.set_image(pixels, scene.image.extent, pixel_size=scene.image.pixel_size)
            self._crops.set_image(pixels)
            self._on_selected(self._reviewing.current)

    def _on_spots(self) -> None:
        spots, blind = self._reviewing.spots, self._reviewing.blind
        self._canvas.set_detections(view.detection_marks(spots, blind=blind))
        if blind:  # what is decided is uncovered
            self.show_clicks()

    def _on_selected(self, index: int | None) -> None:
        spot = self._reviewing.spot
        self._canvas.select(index)
        if spot is not None:
            self._canvas.look_at(spot.x, spot.y, view.radius_of(spot))
