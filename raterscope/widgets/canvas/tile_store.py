"""Tiles of a large image: those in memory, and those being read off the GUI thread."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QImage

from raterscope.widgets.canvas.pictures import to_picture

__all__ = ["Key", "TileSource", "TileStore"]

THREADS = min(2, max(1, (os.cpu_count() or 2) - 1))
"""One core is left to the window, whose frames would wait otherwise."""

KEPT_BYTES = 128 << 20
"""Of tiles in memory; those about what is in sight stay in any case."""

TAKEN_AT_ONCE = 4
"""Tiles that are shown anew between two frames."""

Key = tuple[int, int, int]
"""Level, row, column."""


class TileSource(Protocol):
    """A large image as tiles of itself, its half, its quarter, ..."""

    @property
    def levels(self) -> Sequence[tuple[int, int]]:
        """Width and height of each, the whole image first; the last one is a single tile."""

    @property
    def side(self) -> int:
        """Pixels along a tile."""

    def tile(self, level: int, row: int, column: int) -> NDArray[np.uint8]:
        """Read a tile, grey or RGB. Called in other threads; what it raises is told in its own words."""


class _Desk:
    """What the GUI thread and the readers share."""

    def __init__(self, source: TileSource) -> None:
        self.source = source
        self.changed = threading.Condition()
        self.wanted: list[Key] = []
        self.busy: set[Key] = set()
        self.read: list[tuple[Key, QImage]] = []
        self.refused: list[str] = []
        self.told = False
        self.over = False

    def close(self) -> None:
        """Let the readers end."""
        with self.changed:
            self.over = True
            self.wanted = []
            self.changed.notify_all()


class TileStore(QObject):
    """The tiles that were wanted last, as many as fit into memory.

    Parameters
    ----------
    source : TileSource

    Signals
    -------
    arrived(list of Key)
        Tiles that can be had from now on.
    refused(str)
        Why a tile cannot be read; told once.
    """

    arrived = Signal(list)
    refused = Signal(str)
    _called = Signal()

    def __init__(self, source: TileSource, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.levels = tuple(source.levels)
        self.side = source.side
        self._tiles: OrderedDict[Key, QImage] = OrderedDict()
        self._bytes = 0
        self._needed: frozenset[Key] = frozenset()
        self._failed = False
        self._desk = _Desk(source)
        # A partial is held by the connection; of a method, the desk could be emptied before it is called.
        self.destroyed.connect(partial(_Desk.close, self._desk))
        self._called.connect(self._take, Qt.ConnectionType.QueuedConnection)
        self._started = False

    def get(self, key: Key) -> QImage | None:
        """Give a tile that is in memory."""
        tile = self._tiles.get(key)
        if tile is not None:
            self._tiles.move_to_end(key)
        return tile

    def want(self, keys: Sequence[Key]) -> None:
        """Have these tiles read, the first ones first, and no others."""
        missing = [key for key in keys if key not in self._tiles]
        self._needed = frozenset(keys)
        for key in reversed(keys):
            self.get(key)  # now among the last to go
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
        """Read nothing more."""
        self._desk.close()

    def _take(self) -> None:
        desk = self._desk
        with desk.changed:
            some, desk.read = desk.read[:TAKEN_AT_ONCE], desk.read[TAKEN_AT_ONCE:]
            refused, desk.refused = desk.refused, []
            more = desk.told = bool(desk.read)
        for key, tile in some:
            if key not in self._tiles:
                self._tiles[key] = tile
                self._bytes += tile.sizeInBytes()
        # What came when it was no longer wanted stands behind what is needed.
        others = [key for key in self._tiles if key not in self._needed] if self._bytes > KEPT_BYTES else []
        for key in others:
            if self._bytes > KEPT_BYTES:
                self._bytes -= self._tiles.pop(key).sizeInBytes()
        if some:
            self.arrived.emit([key for key, _ in some])
        if refused and not self._failed:
            self._failed = True
            self.refused.emit(refused[0])
        if more:
            self._called.emit()


def _read(desk: _Desk, called: Any) -> None:
    """Read what is wanted until nothing will be any more."""
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
        except Exception as error:  # a file that went away or is damaged; told where people look
            with desk.changed:
                desk.refused.append(str(error))
                tell, desk.told = not desk.told, True  # stays among the busy: not tried again and again
        else:
            with desk.changed:
                desk.busy.discard(key)
                desk.wanted = [other for other in desk.wanted if other != key]
                desk.read.append((key, tile))
                tell, desk.told = not desk.told, True
        if tell:
            try:
                called.emit()
            except RuntimeError:  # the window is gone, and the store with it
                return
