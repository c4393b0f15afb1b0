"""Where one looks on a canvas: a part of its extent, nearer or from afar."""

from __future__ import annotations

from PySide6.QtCore import QPointF
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from raterscope.widgets.canvas.viewport import FIT_MARGIN, Rect, Viewport

__all__ = ["Looking"]


class Looking(QWidget):
    """A widget through which one looks at something larger or smaller than itself.

    Who paints in it says what there is by `extent`, and is told by `_looked_elsewhere` when another part of
    it is in sight.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._viewport = Viewport(max(1, self.width()), max(1, self.height()))
        self._fitted = True

    @property
    def extent(self) -> Rect:
        """Left, top, right, bottom of what there is to be seen."""
        raise NotImplementedError

    def _looked_elsewhere(self) -> None:
        """Take up that another part is in sight, or the same at another scale."""
        raise NotImplementedError

    @property
    def viewport(self) -> Viewport:
        """What is in sight."""
        return self._viewport

    @property
    def fitted(self) -> bool:
        """Whether the whole is in sight, and is to stay so."""
        return self._fitted

    def fit(self) -> None:
        """Show the whole."""
        self._fitted = True
        self._set_viewport(self._viewport.framing(self.extent, FIT_MARGIN))

    def look_at(self, x: float, y: float, radius: float) -> None:
        """Bring a spot into sight with what surrounds it.

        The scale stays when the spot is easily judged at it, and nothing moves when it also lies well inside.
        """
        view = self._viewport.looking_at(x, y, radius, self.extent)
        if view != self._viewport:
            self._fitted = False
            self._set_viewport(view)

    def look_from(self, x: float, y: float, scale: float) -> None:
        """Bring a place into the middle, with so many pixels of the widget for a unit of the image."""
        self._fitted = False
        self._set_viewport(self._viewport.centred(x, y, scale).held_to(self.extent))

    def centre_on(self, x: float, y: float) -> None:
        """Bring a place into the middle."""
        self._fitted = False
        self._set_viewport(self._viewport.centred(x, y))

    def zoom(self, factor: float, about: QPointF | None = None) -> None:
        """Enlarge about a place of the widget, or about its middle."""
        view = self._viewport
        place = about if about is not None else QPointF(view.width / 2, view.height / 2)
        self._fitted = False
        self._set_viewport(view.zoomed(factor, place.x(), place.y()).held_to(self.extent))

    def pan(self, across: float, down: float) -> None:
        """Move what is seen by some pixels."""
        self._drag_to(self._viewport.panned(across, down))

    def _drag_to(self, viewport: Viewport) -> None:
        self._fitted = False
        self._set_viewport(viewport.held_to(self.extent))

    def _set_viewport(self, viewport: Viewport) -> None:
        self._viewport = viewport
        self._looked_elsewhere()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the whole in sight, or the middle in the middle."""
        size = event.size()
        self._viewport = self._viewport.resized(max(1, size.width()), max(1, size.height()))
        if self._fitted:
            self.fit()
        else:
            self._set_viewport(self._viewport)
