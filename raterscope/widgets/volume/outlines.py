"""Outlines on slices, found in a thread of their own and kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QPointF, QThreadPool, Signal
from PySide6.QtGui import QPainterPath, QPolygonF

from raterscope.widgets.volume.contours import contours
from raterscope.widgets.volume.plane import Index, Plane

__all__ = ["Outliner", "Shape", "path_on"]

KEPT = 4_000
"""Paths; those looked at longest ago go first."""

AHEAD = (0, 1, -1, 2, -2)
"""Slices about the one in sight for which lines are found, in this order."""

Place = tuple[str, int, str]


@dataclass(frozen=True, eq=False)
class Shape:
    """Values to outline: part of the volume, and the levels of its contours."""

    values: NDArray[np.generic]
    origin: Index
    levels: tuple[float, ...] = (0.5,)


def path_on(shape: Shape, plane: Plane, index: int) -> QPainterPath:
    """Outline a shape on one slice, in the plane's units. It fills what lies between two levels."""
    path = QPainterPath()
    cut = plane.cut_crop(shape.values, shape.origin, index)
    if cut is None:
        return path
    part, (row, column) = plane.with_gaps(*cut)
    for level in shape.levels:
        for line in contours(part, level):
            x = plane.to_place(plane.across, line[:, 0] + (column + 0.5))
            y = plane.to_place(plane.down, line[:, 1] + (row + 0.5))
            points = [QPointF(*point) for point in zip(x.tolist(), y.tolist(), strict=True)]
            path.addPolygon(QPolygonF(points))
            path.closeSubpath()
    return path


class Outliner(QObject):
    """Keeps the outlines of shapes by plane and slice, and finds those that are missing.

    One slice of each plane is wanted at a time: when another is asked for, what was begun for the last one is
    left, and what it still answers is dropped where its shape has changed.

    Signals
    -------
    ready : str
        Outlines of the slice wanted on this plane are there.
    """

    ready = Signal(str)
    _computed = Signal(str, int, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = QThreadPool(self)
        self._pool.setMaxThreadCount(1)
        self._shapes: dict[str, Shape] = {}
        self._paths: OrderedDict[Place, tuple[Shape, QPainterPath]] = OrderedDict()
        self._pending: dict[str, tuple[int, frozenset[str]]] = {}
        self._orders: dict[str, int] = {}
        self._computed.connect(self._on_computed)

    def set_shapes(self, shapes: Mapping[str, Shape]) -> None:
        """Set the shapes to outline. The lines of a changed shape stay until new ones are computed."""
        gone = self._shapes.keys() - shapes.keys()
        if gone:
            for index in [index for index in self._paths if index[2] in gone]:
                del self._paths[index]
        self._shapes = dict(shapes)
        self._pending.clear()

    def forget(self) -> None:
        """Drop every line: the planes have changed."""
        self._paths.clear()
        self.stop()

    def paths(self, plane: Plane, index: int, keys: Iterable[str]) -> dict[str, QPainterPath]:
        """Return the computed lines of a slice; the others are started, `ready` follows."""
        cached, missing = {}, []
        for key in keys:
            shape = self._shapes.get(key)
            if shape is None:
                continue
            kept = self._paths.get((plane.name, index, key))
            if kept is not None:
                self._paths.move_to_end((plane.name, index, key))
                cached[key] = kept[1]
            if kept is None or kept[0] is not shape:
                missing.append(key)
        if missing:
            self._seek(plane, index, frozenset(keys))
        return cached

    def stop(self) -> None:
        """Cancel running work and wait for it: a few milliseconds."""
        for name in self._orders:
            self._orders[name] += 1
        self._pending.clear()
        self._pool.clear()
        self._pool.waitForDone()

    def _seek(self, plane: Plane, index: int, keys: frozenset[str]) -> None:
        if self._pending.get(plane.name) == (index, keys):
            return
        self._pending[plane.name] = (index, keys)
        self._orders[plane.name] = order = self._orders.get(plane.name, 0) + 1
        shapes = {key: self._shapes[key] for key in keys if key in self._shapes}
        work: list[tuple[int, dict[str, Shape]]] = []
        for step in AHEAD:
            at = index + step
            if 0 <= at < plane.slices:
                missing = {key: shape for key, shape in shapes.items() if not self._has(plane, at, key)}
                if missing:
                    work.append((at, missing))
        self._pool.start(partial(self._find, plane, work, order))

    def _has(self, plane: Plane, index: int, key: str) -> bool:
        cached = self._paths.get((plane.name, index, key))
        return cached is not None and cached[0] is self._shapes[key]

    def _find(self, plane: Plane, work: list[tuple[int, dict[str, Shape]]], order: int) -> None:
        """Find lines, slice by slice; in the pool's thread."""
        for index, shapes in work:
            paths = []
            for key, shape in shapes.items():
                if self._orders[plane.name] != order:
                    return
                paths.append((key, shape, path_on(shape, plane, index)))
            self._computed.emit(plane.name, index, paths)

    def _on_computed(self, name: str, index: int, paths: list[tuple[str, Shape, QPainterPath]]) -> None:
        valid = [(key, shape, path) for key, shape, path in paths if self._shapes.get(key) is shape]
        for key, shape, path in valid:
            self._paths[name, index, key] = (shape, path)
        while len(self._paths) > KEPT:
            self._paths.popitem(last=False)
        pending = self._pending.get(name)
        if valid and pending is not None and pending[0] == index:
            self.ready.emit(name)
