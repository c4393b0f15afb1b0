"""Pictures of arrays, and tiles of large images: sources, a store that loads them, and a cache."""

from __future__ import annotations

import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QImage, QPainter

from raterscope.widgets.canvas.viewport import Rect, Viewport


def to_picture(array: NDArray[np.uint8]) -> QImage:
    """Convert a grey (H, W) or RGB (H, W, 3) array of bytes to a QImage."""
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] != 3):
        raise ValueError(f"an image of {array.dtype} and shape {array.shape}; expected bytes, grey or RGB")
    array = np.ascontiguousarray(array)
    height, width = array.shape[:2]
    kind = QImage.Format.Format_Grayscale8 if array.ndim == 2 else QImage.Format.Format_RGB888
    # The conversion copies the array, which may then be freed.
    return QImage(array.data, width, height, array.strides[0], kind).convertToFormat(
        QImage.Format.Format_RGB32
    )


def level_for(enlarged: float) -> int:
    """Return how often to halve a picture, so that drawing shrinks it by less than half."""
    return max(0, math.floor(math.log2(1 / enlarged) + 0.01)) if enlarged < 1 else 0


def draw_part(
    painter: QPainter, picture: QImage, box: Rect, scale: float, rect: QRectF, *, smooth: bool
) -> None:
    """Draw the part in `rect` of a picture that covers `box`, both in the image's units.

    Only the visible part is passed to Qt, whose painting fails beyond 32,767 pixels.
    """
    left, top, right, bottom = box
    across, down = picture.width() / (right - left), picture.height() / (bottom - top)
    # Two more pixels on each side, so that neighbouring tiles interpolate equally.
    first_x = max(0, math.floor((rect.left() - left) * across) - 2)
    first_y = max(0, math.floor((rect.top() - top) * down) - 2)
    last_x = min(picture.width(), math.ceil((rect.right() - left) * across) + 2)
    last_y = min(picture.height(), math.ceil((rect.bottom() - top) * down) + 2)
    if last_x <= first_x or last_y <= first_y:
        return
    source = QRectF(first_x, first_y, last_x - first_x, last_y - first_y)
    target = QRectF(
        (left + first_x / across) * scale,
        (top + first_y / down) * scale,
        source.width() / across * scale,
        source.height() / down * scale,
    )
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, smooth)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.drawImage(target, picture, source)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)


THREADS = min(2, max(1, (os.cpu_count() or 2) - 1))
"""Number of reading threads; one core is left for the window, to keep it responsive."""

KEPT_BYTES = 128 << 20
"""Maximum bytes of tiles in memory; tiles around the visible part always stay."""

TAKEN_AT_ONCE = 4
"""Maximum number of new tiles between two frames."""

Key = tuple[int, int, int]
"""Level, row and column of a tile."""


class TileSource(Protocol):
    """A large image as tiles at full size, half size, quarter size, ..."""

    @property
    def levels(self) -> Sequence[tuple[int, int]]:
        """Width and height of each level, the full size first; the last level is a single tile."""

    @property
    def side(self) -> int:
        """Side of a tile in pixels."""

    def tile(self, level: int, row: int, column: int) -> NDArray[np.uint8]:
        """Read a tile, grey or RGB. Called in other threads; the message of its exception is shown."""


class _TileQueue:
    """State shared by the GUI thread and the reading threads."""

    def __init__(self, source: TileSource) -> None:
        self.source = source
        self.changed = threading.Condition()
        self.wanted: list[Key] = []
        self.busy: set[Key] = set()
        self.read: list[tuple[Key, QImage]] = []
        self.refused: list[str] = []
        self.reported = False
        self.over = False

    def close(self) -> None:
        """Stop the readers."""
        with self.changed:
            self.over = True
            self.wanted = []
            self.changed.notify_all()


class TileStore(QObject):
    """Cache of the tiles requested last, as many as fit into memory."""

    arrived = Signal(list)  # newly available tiles
    refused = Signal(str)  # why a tile cannot be read; reported once
    _called = Signal()

    def __init__(self, source: TileSource, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.levels = tuple(source.levels)
        self.side = source.side
        self._tiles: OrderedDict[Key, QImage] = OrderedDict()
        self._bytes = 0
        self._needed: frozenset[Key] = frozenset()
        self._failed = False
        self._desk = _TileQueue(source)
        # The connection keeps a partial alive; with a method, the queue could be gone before the call.
        self.destroyed.connect(partial(_TileQueue.close, self._desk))
        self._called.connect(self._take, Qt.ConnectionType.QueuedConnection)
        self._started = False

    def get(self, key: Key) -> QImage | None:
        """Return a tile that is in memory."""
        tile = self._tiles.get(key)
        if tile is not None:
            self._tiles.move_to_end(key)
        return tile

    def want(self, keys: Sequence[Key]) -> None:
        """Request these tiles in this order; other requests are dropped."""
        missing = [key for key in keys if key not in self._tiles]
        self._needed = frozenset(keys)
        for key in reversed(keys):
            self.get(key)  # marks it as recently used
        desk = self._desk
        with desk.changed:
            if missing != desk.wanted and not desk.over:
                desk.wanted = missing
                desk.changed.notify_all()
        if missing and not self._started and not self._failed:
            self._started = True
            for number in range(THREADS):
                name = f"tiles {number}"
                threading.Thread(target=_read, args=(desk, self._called), name=name, daemon=True).start()

    def close(self) -> None:
        """Stop reading."""
        self._desk.close()

    def _take(self) -> None:
        desk = self._desk
        with desk.changed:
            some, desk.read = desk.read[:TAKEN_AT_ONCE], desk.read[TAKEN_AT_ONCE:]
            refused, desk.refused = desk.refused, []
            more = desk.reported = bool(desk.read)
        for key, tile in some:
            if key not in self._tiles:
                self._tiles[key] = tile
                self._bytes += tile.sizeInBytes()
        # Tiles that are no longer needed come last.
        waiting = [key for key in self._tiles if key not in self._needed] if self._bytes > KEPT_BYTES else []
        for key in waiting:
            if self._bytes > KEPT_BYTES:
                self._bytes -= self._tiles.pop(key).sizeInBytes()
        if some:
            self.arrived.emit([key for key, _ in some])
        if refused and not self._failed:
            self._failed = True
            self.refused.emit(refused[0])
        if more:
            self._called.emit()


def _read(desk: _TileQueue, called: Any) -> None:
    """Read requested tiles until the store is closed."""
    while True:
        with desk.changed:
            while not desk.over and not any(key not in desk.busy for key in desk.wanted):
                desk.changed.wait()
            if desk.over:
                return
            key = next(key for key in desk.wanted if key not in desk.busy)
            desk.busy.add(key)
        try:
            tile = to_picture(desk.source.tile(*key))
        except Exception as error:  # a file that was removed or is damaged; the error is shown
            with desk.changed:
                desk.refused.append(str(error))
                is_new, desk.reported = (
                    not desk.reported,
                    True,
                )  # stays among the busy: not tried again and again
        else:
            with desk.changed:
                desk.busy.discard(key)
                desk.wanted = [request for request in desk.wanted if request != key]
                desk.read.append((key, tile))
                is_new, desk.reported = not desk.reported, True
        if is_new:
            try:
                called.emit()
            except RuntimeError:  # the window is gone, and the store with it
                return


SIDE = 512
KEPT = 64
"""Number of tiles kept, besides the visible ones, on a screen with one pixel per unit."""

BUDGET = 0.006
"""Maximum seconds for repainting in a frame."""

Paint = Callable[[QPainter, float, QRectF], None]
Backdrop = Callable[[QPainter, QRectF], None]


class TileCache:
    """Tiles of one painting at one scale.

    `paint`: paints the contents of a rectangle, given in the image's units. The painter's origin is that of
    the image, its unit the widget's pixel. `ground`: opaque background; by default transparent.
    """

    def __init__(self, paint: Paint, ground: QColor | None = None) -> None:
        self._paint = paint
        self._ground = ground
        self._tiles: OrderedDict[tuple[int, int], QImage] = OrderedDict()
        self._made_for: tuple[float, float] = (0.0, 0.0)
        self._cost = 0.0
        self.stretched = False  # whether tiles of another scale were shown last

    def clear(self) -> None:
        """Repaint everything next time."""
        self._tiles.clear()

    def repaint(self, rect: QRectF) -> None:
        """Repaint a rectangle of the image at once, and nothing beside it."""
        scale, ratio = self._made_for
        for (column, row), tile in self._tiles.items():
            left, top = column * SIDE, row * SIDE
            part = _scaled(_scaled(rect, scale).translated(-left, -top), ratio)
            # Whole pixels, because a part of one would be painted twice.
            pixels = part.toAlignedRect() & tile.rect()
            if pixels.isEmpty():
                continue
            with QPainter(tile) as painter:
                painter.setClipRect(pixels)
                painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Source)
                painter.fillRect(pixels, self._ground or Qt.GlobalColor.transparent)
                painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceOver)
                self._paint_part(painter, column, row, QRectF(pixels))

    def clear_rect(self, rect: QRectF) -> None:
        """Repaint the tiles of a rectangle of the image next time."""
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
        quick: bool = False,
        coarse: Backdrop | None = None,
    ) -> bool:
        """Copy the visible tiles into the widget and paint missing ones; return whether all are up to date.

        `painter`, `viewport`: those of the widget. `ratio`: screen pixels per pixel of the widget. `quick`:
        stretch tiles of another scale if painting them again would exceed the time of a frame. `coarse`:
        quickly paints the contents of a box of the widget. With it, tiles that exceed the time of a frame are
        left for the next frame. If the result is False, call it again without `quick`.
        """
        self.stretched = False
        if self._made_for != (viewport.scale, ratio):
            if quick and self._tiles and self._cost > BUDGET:
                if coarse is not None:
                    coarse(painter, QRectF(0, 0, viewport.width, viewport.height))
                self._stretch(painter, viewport)
                self.stretched = True
                return False
            self._tiles.clear()
            self._made_for = (viewport.scale, ratio)
        started, before, late = time.perf_counter(), len(self._tiles), False
        first_across = math.floor(-viewport.across / SIDE)
        first_down = math.floor(-viewport.down / SIDE)
        last_across = math.floor((viewport.width - 1 - viewport.across) / SIDE)
        last_down = math.floor((viewport.height - 1 - viewport.down) / SIDE)
        for row in range(first_down, last_down + 1):
            for column in range(first_across, last_across + 1):
                box = QRectF(viewport.across + column * SIDE, viewport.down + row * SIDE, SIDE, SIDE)
                spent = time.perf_counter() - started
                if coarse is not None and spent > BUDGET and (column, row) not in self._tiles:
                    late = True
                    coarse(painter, box)
                else:
                    painter.drawImage(box, self._tile(column, row, ratio))
        if not before:
            self._cost = time.perf_counter() - started
        visible_items = (last_down - first_down + 1) * (last_across - first_across + 1)
        while len(self._tiles) > max(visible_items, KEPT / ratio**2):
            self._tiles.popitem(last=False)
        return not late

    def _stretch(self, painter: QPainter, viewport: Viewport) -> None:
        factor = viewport.scale / self._made_for[0]
        side = SIDE * factor
        for (column, row), tile in self._tiles.items():
            target = QRectF(viewport.across + column * side, viewport.down + row * side, side, side)
            painter.drawImage(target, tile)

    def _tile(self, column: int, row: int, ratio: float) -> QImage:
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
        # Also after an error: a picture freed under an active painter crashes the program.
        with QPainter(tile) as painter:
            self._paint_part(painter, column, row, QRectF(0, 0, SIDE * ratio, SIDE * ratio))
        self._tiles[key] = tile
        return tile

    def _paint_part(self, painter: QPainter, column: int, row: int, pixels: QRectF) -> None:
        """Paint a part of a tile, in pixels of the screen."""
        scale, ratio = self._made_for
        left, top = column * SIDE, row * SIDE
        painter.scale(ratio, ratio)
        painter.translate(-left, -top)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint(painter, scale, _scaled(_scaled(pixels, 1 / ratio).translated(left, top), 1 / scale))


def _scaled(rect: QRectF, factor: float) -> QRectF:
    return QRectF(rect.left() * factor, rect.top() * factor, rect.width() * factor, rect.height() * factor)
