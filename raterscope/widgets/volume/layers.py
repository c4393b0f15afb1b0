"""What lies over a volume, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from raterscope.widgets.volume.plane import Index

__all__ = ["Band", "HeatMap", "Outline", "RegionBox", "Stroke"]


@dataclass(frozen=True, eq=False)
class Outline:
    """The edge of one mask.

    Attributes
    ----------
    key : str
        What names it to the program; "rater 3".
    name : str
        What names it to people.
    colour : str
        Hexadecimal.
    values : (z, y, x) bool or float32
        The mask, or what crosses 0.5 at its edge; a part of the volume.
    origin : (slice, row, column)
        The first voxel of `values` in the volume.
    width : float
        Of the line, in the widget's pixels.
    dashed : bool
    """

    key: str
    name: str
    colour: str
    values: NDArray[np.bool_] | NDArray[np.float32]
    origin: Index = (0, 0, 0)
    width: float = 1.4
    dashed: bool = False


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Numbers of a part of the volume, as colours.

    Attributes
    ----------
    values : (z, y, x) float32 or uint8
    origin : (slice, row, column)
    low, high : float
        What the two ends of the colours stand for, in the unit of `label`.
    colours : {"doubt", "weight", "probability", "difference"}
    label : str
        What it is, with its unit: "doubt", "weight of rater 4", "deviation, mm".
    scale : float
        `values` times this are in the unit of `label`: 1 / 255 for shares kept as bytes.
    """

    values: NDArray[np.float32] | NDArray[np.uint8]
    origin: Index
    low: float
    high: float
    colours: Literal["doubt", "weight", "probability", "difference"]
    label: str
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class Band:
    """Where a probability lies between two levels.

    Attributes
    ----------
    values : (z, y, x) float32
    origin : (slice, row, column)
    low, high : float
    """

    values: NDArray[np.float32]
    origin: Index
    low: float
    high: float


@dataclass(frozen=True)
class RegionBox:
    """A disputed region.

    Attributes
    ----------
    number : int
    origin, shape : (slice, row, column)
    title, line : str
        "region 1 of 3"; "rater 4 alone, 0.8 ml".
    settled : bool
        Nothing is left to decide: it stands back.
    """

    number: int
    origin: Index
    shape: Index
    title: str
    line: str = ""
    settled: bool = False


@dataclass(frozen=True, eq=False)
class Stroke:
    """What one stroke of brush or eraser covered.

    Attributes
    ----------
    origin : (slice, row, column)
        The first voxel of `values` in the volume.
    values : (z, y, x) int8
        1 put in, 0 taken out, -1 untouched.
    plane : str
        "axial", "coronal" or "sagittal".
    slice : int
        Index along the plane's normal.
    """

    origin: Index
    values: NDArray[np.int8]
    plane: str
    slice: int
