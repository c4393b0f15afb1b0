"""What the views of one volume show, together."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from raterscope.widgets.volume.layers import Band, HeatMap, Outline, RegionBox
from raterscope.widgets.volume.levels import Levels
from raterscope.widgets.volume.outlines import Shape
from raterscope.widgets.volume.plane import Index

__all__ = ["BAND", "EDIT", "Scene"]

BAND, EDIT = "\0band", "\0edit"
"""Names among the shapes that no outline has."""


@dataclass
class Scene:
    """One volume and what lies over it, shared by its views.

    Attributes
    ----------
    empty : bool
        Whether there is no volume, not even one without pixels.
    values : (Z, Y, X) or (Z, Y, X, 3), or None where there are no pixels
    levels : Levels
    calibrated : bool
        Whether lengths are in millimetres.
    outlines : tuple of Outline
        In the order in which they are painted.
    hidden : set of keys
        Outlines that are not painted.
    bare : bool
        The image alone, while somebody looks beneath what lies over it.
    solo : key, or None
    beside : set of keys
        Outlines that stay in sight beside the solo.
    filled : bool
        Masks as areas, not as lines.
    opacity : float
        Of areas and heat maps, 0 to 1.
    heat, band : optional
    boxes : tuple of RegionBox
    selected : int, optional
        Number of the box that is being looked at.
    edit : (values, origin), optional
        The mask that is being mended.
    index : (slice, row, column)
        Where the cross-hair is.
    tool : {"look", "brush", "eraser"}
    radius : float
        Of the brush, in millimetres.
    notice : str
        What a drag is changing, while it does.
    """

    empty: bool = True
    values: NDArray[np.generic] | None = None
    levels: Levels = field(default_factory=lambda: Levels(0.0, 1.0))
    calibrated: bool = False
    outlines: tuple[Outline, ...] = ()
    hidden: frozenset[str] = frozenset()
    bare: bool = False
    solo: str | None = None
    beside: frozenset[str] = frozenset()
    filled: bool = False
    opacity: float = 0.55
    heat: HeatMap | None = None
    band: Band | None = None
    boxes: tuple[RegionBox, ...] = ()
    selected: int | None = None
    edit: tuple[NDArray[np.bool_], Index] | None = None
    index: Index = (0, 0, 0)
    tool: str = "look"
    radius: float = 3.0
    notice: str = ""

    def in_sight(self) -> list[Outline]:
        """Give the outlines that are painted."""
        if self.solo is not None:
            kept = self.beside | {self.solo}
            return [outline for outline in self.outlines if outline.key in kept]
        return [outline for outline in self.outlines if outline.key not in self.hidden]

    def solo_name(self) -> str:
        """Name whose outline is seen alone; empty where all are."""
        return next((outline.name for outline in self.outlines if outline.key == self.solo), "")

    def shapes(self) -> dict[str, Shape]:
        """Give all that has to be outlined, by its name."""
        shapes = {outline.key: Shape(outline.values, outline.origin) for outline in self.outlines}
        if self.band is not None:
            shapes[BAND] = Shape(self.band.values, self.band.origin, (self.band.low, self.band.high))
        if self.edit is not None:
            shapes[EDIT] = Shape(*self.edit)
        return shapes

    def wanted(self) -> list[str]:
        """Name the shapes that are painted."""
        keys = [outline.key for outline in self.in_sight()]
        if self.band is not None:
            keys.append(BAND)
        if self.edit is not None:
            keys.append(EDIT)
        return keys
