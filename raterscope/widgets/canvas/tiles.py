"""Painted once, shown often: what does not change between two frames is kept in tiles.

Panning then copies a dozen pictures instead of stroking thousands of paths, which is what keeps a frame
below 16 ms (software painting strokes 340 dashed ellipses in 9 ms, and copies a full window in 0.2 ms).
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter

from raterscope.widgets.canvas.viewport import Viewport

__all__ = ["TileCache"]

SIDE = 512
KEPT = 64
"""Tiles, on a screen of one pixel a unit; on a finer one they are larger. Those in sight stay anyway."""

BUDGET = 0.006
"""Seconds of a frame that painting anew may take."""

Paint = Callable[[QPainter, float, QRectF], None]
Beneath = Callable[[QPainter, QRectF], None]


class TileCache:
    """Tiles of one painting at one scale.

    Parameters
    ----------
    paint : callable
        ``paint(painter, scale, rect)`` paints what lies in `rect` (in the image's units). The painter's
        origin is the image's, its unit the widget's pixel.
    ground : QColor, optional
        Opaque ground; see-through without.

    Attributes
    ----------
    stretched : bool
        Whether tiles of another scale were shown last.
    """

    def __init__(self, paint: Paint, ground: QColor | None = None) -> None:
        self._paint = paint
        self._ground = ground
        self._tiles: OrderedDict[tuple[int, int], QImage] = OrderedDict()
        self._made_for: tuple[float, float] = (0.0, 0.0)
        self._cost = 0.0
        self.stretched = False

    def clear(self) -> None:
        """Paint everything anew next time."""
        self._tiles.clear()

    def clear_rect(self, rect: QRectF) -> None:
        """Paint anew what lies in a rectangle of the image."""
        side = SIDE / self._made_for[0] if self._made_for[0] else 0.0
        for key in list(self._tiles):
            if QRectF(key[0] * side, key[1] * side, side, side).intersects(rect):
                del self._tiles[key]

    def show(
        self,
        painter: QPainter,
        viewport: Viewport,
        ratio: float,
        *,
        hurry: bool = False,
        beneath: Beneath | None = None,
    ) -> bool:
        """Copy the visible tiles into the widget; paint those that are missing.

        Parameters
        ----------
        painter, viewport, ratio
            The widget's; how many pixels of the screen one of its pixels has.
        hurry : bool
            Stretch tiles of another scale when painting them anew would take longer than a frame has.
        beneath : callable, optional
            ``beneath(painter, box)`` paints quickly what lies in a box of the widget. With it, tiles that a
            frame has no time for are left for the next one.

        Returns
        -------
        bool
            False where something else stood for tiles: show them again, out of a hurry.
        """
        self.stretched = False
        if self._made_for != (viewport.scale, ratio):
            if hurry and self._tiles and self._cost > BUDGET:
                if beneath is not None:
                    beneath(painter, QRectF(0, 0, viewport.width, viewport.height))
                self._stretch(painter, viewport)
                self.stretched = True
                return False
            self._tiles.clear()
            self._made_for = (viewport.scale, ratio)
        started, kept, late = time.perf_counter(), len(self._tiles), False
        first_across = math.floor(-viewport.across / SIDE)
        first_down = math.floor(-viewport.down / SIDE)
        last_across = math.floor((viewport.width - 1 - viewport.across) / SIDE)
        last_down = math.floor((viewport.height - 1 - viewport.down) / SIDE)
        for row in range(first_down, last_down + 1):
            for column in range(first_across, last_across + 1):
                box = QRectF(viewport.across + column * SIDE, viewport.down + row * SIDE, SIDE, SIDE)
                spent = time.perf_counter() - started
                if beneath is not None and spent > BUDGET and (column, row) not in self._tiles:
                    late = True
                    beneath(painter, box)
                else:
                    painter.drawImage(box, self._tile(column, row, viewport.scale, ratio))
        if not kept:
            self._cost = time.perf_counter() - started
        in_sight = (last_down - first_down + 1) * (last_across - first_across + 1)
        while len(self._tiles) > max(in_sight, KEPT / ratio**2):
            self._tiles.popitem(last=False)
        return not late

    def _stretch(self, painter: QPainter, viewport: Viewport) -> None:
        factor = viewport.scale / self._made_for[0]
        side = SIDE * factor
        for (column, row), tile in self._tiles.items():
            place = QRectF(viewport.across + column * side, viewport.down + row * side, side, side)
            painter.drawImage(place, tile)

    def _tile(self, column: int, row: int, scale: float, ratio: float) -> QImage:
        key = (column, row)
        tile = self._tiles.get(key)
        if tile is not None:
            self._tiles.move_to_end(key)
            return tile
        side = math.ceil(SIDE * ratio)
        opaque = self._ground is not None
        kind = QImage.Format.Format_RGB32 if opaque else QImage.Format.Format_ARGB32_Premultiplied
        tile = QImage(side, side, kind)
        tile.fill(self._ground if self._ground is not None else Qt.GlobalColor.transparent)
        box = QRectF(column * SIDE / scale, row * SIDE / scale, SIDE / scale, SIDE / scale)
        # Left by an error too: a picture that is gone under a living painter ends the program.
        with QPainter(tile) as painter:
            painter.scale(ratio, ratio)
            painter.translate(-column * SIDE, -row * SIDE)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._paint(painter, scale, box)
        self._tiles[key] = tile
        return tile
