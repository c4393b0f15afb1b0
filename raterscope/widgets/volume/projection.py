"""Maximum intensity projections of a slab of slices, computed in the background."""

from __future__ import annotations

import math
from collections import OrderedDict
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QThreadPool, Signal

from raterscope.widgets.volume.plane import Plane

KEPT = 24
SLABS = (0.0, 10.0, math.inf)
"""Thickness of the slab, mm: one slice, thin, the whole volume."""

Key = tuple[str, int, int]


def slab_words(thickness: float) -> str:
    """Name a slab: "MIP 10 mm"; empty for one slice."""
    if not thickness:
        return ""
    return "MIP" if math.isinf(thickness) else f"MIP {thickness:g} mm"


def slab_of(plane: Plane, index: int, thickness: float) -> tuple[int, int]:
    """Return the first slice of a slab about a slice, and the one after its last."""
    centres = plane.centres(plane.normal)
    if plane.reversed[plane.normal] and plane.normal == 0:
        centres = centres[-1] - centres[::-1]
    inside = np.flatnonzero(np.abs(centres - centres[index]) <= thickness / 2 + 1e-6)
    return int(inside[0]), int(inside[-1]) + 1


class Projector(QObject):
    """Cache of projections; one is computed at a time, the latest request first."""

    ready = Signal()  # a projection that was requested is there
    _computed = Signal(int, object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = QThreadPool(self)
        self._pool.setMaxThreadCount(1)
        self._kept: OrderedDict[Key, NDArray[np.generic]] = OrderedDict()
        self._pending: Key | None = None
        self._order = 0
        self._computed.connect(self._on_computed)

    def forget(self) -> None:
        """Drop all: another volume is shown."""
        self._order += 1
        self._kept.clear()
        self._pending = None
        self._pool.clear()

    def stop(self) -> None:
        """Wait for work under way."""
        self.forget()
        self._pool.waitForDone()

    def get(
        self, plane: Plane, values: NDArray[np.generic], index: int, thickness: float
    ) -> NDArray[np.generic] | None:
        """Return a projection as a cut of the plane; None while it is computed, `ready` follows."""
        first, last = slab_of(plane, index, thickness)
        key = (plane.name, first, last)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        if key != self._pending:
            self._pending = key
            self._pool.clear()
            self._pool.start(partial(self._project, self._order, plane, values, key))
        return None

    def _project(self, order: int, plane: Plane, values: NDArray[np.generic], key: Key) -> None:
        slab = values[(slice(None),) * plane.normal + (slice(key[1], key[2]),)]
        highest = slab.max(axis=plane.normal, keepdims=True)
        if order == self._order:
            self._computed.emit(order, key, np.ascontiguousarray(plane.cut(highest, 0)))

    def _on_computed(self, order: int, key: Key, cut: NDArray[np.generic]) -> None:
        if order != self._order:
            return
        self._pending = None if key == self._pending else self._pending
        self._kept[key] = cut
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        self.ready.emit()
