"""What is measured on images of clicks: how large a pixel is, what was drawn, what counts rest on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

__all__ = ["CountingSubject", "ScaleSubject", "ShapeSubject"]

COUNTED = ("leukocytes", "red_cells", "leukocytes_per_microlitre", "red_cells_per_microlitre", "thickness")
LARGEST_PIXEL = 1e6
MOST_POINTS = 10_000

_FEWEST = {"length": 2, "area": 3}


@dataclass(frozen=True, kw_only=True)
class ScaleSubject:
    """How large a pixel is: set it, or go back to what the file says.

    Attributes
    ----------
    pixel_size : float or None
        Micrometres; None to go back.
    everywhere : bool
        Of all images, those that come later included; else of the decision's image alone.
    line : (x, y, x, y), optional
        Where a known length was drawn, pixels.
    length : float or None
        That length, micrometres.
    """

    kind: ClassVar[str] = "clicks"
    form: ClassVar[str] = "scale"
    verbs: ClassVar[tuple[str, ...]] = ("scale", "unscale")

    pixel_size: float | None = None
    everywhere: bool = False
    line: tuple[float, float, float, float] | None = None
    length: float | None = None

    def __post_init__(self) -> None:
        if self.pixel_size is not None and not 0 < self.pixel_size < LARGEST_PIXEL:
            raise ValueError(f"a pixel of {self.pixel_size} µm; expected a size above 0.")
        if not all(map(math.isfinite, self.line or ())):
            raise ValueError("a line that ends nowhere; expected finite numbers.")

    def refuse(self, verb: str) -> str | None:
        """Say what is missing for a verb; None where nothing is."""
        return "pixel_size" if verb == "scale" and self.pixel_size is None else None

    def in_words(self, verb: str) -> str:
        """Say what is done: "set the scale to 0.105 µm a pixel, all images"."""
        where = ", all images" if self.everywhere else ""
        if verb == "unscale":
            return f"take the scale from the file{where}"
        return f"set the scale to {self.pixel_size:.4g} µm a pixel{where}"


@dataclass(frozen=True, kw_only=True)
class ShapeSubject:
    """A line or an outline drawn on an image: keep what it measures, change it, or delete it.

    move: the whole lies elsewhere; reshape: some of its points do. Both tell it as it is then.

    Attributes
    ----------
    shape : {"length", "area"}
    points : tuple of (x, y)
        Pixels; an outline returns to the first.
    number : int
        What people call it, from 1 on each image.
    """

    kind: ClassVar[str] = "clicks"
    form: ClassVar[str] = "shape"
    verbs: ClassVar[tuple[str, ...]] = ("measure", "move", "reshape", "delete")

    shape: Literal["length", "area"]
    points: tuple[tuple[float, float], ...]
    number: int

    def __post_init__(self) -> None:
        if not _FEWEST[self.shape] <= len(self.points) <= MOST_POINTS:
            raise ValueError(
                f"{len(self.points):,} points; expected {_FEWEST[self.shape]} to {MOST_POINTS:,}."
            )
        if not all(math.isfinite(value) for point in self.points for value in point):
            raise ValueError("a point of a shape lies nowhere; expected finite numbers.")

    def refuse(self, _verb: str) -> str | None:
        """Say what is missing for a verb; None where nothing is."""
        return None

    def in_words(self, verb: str) -> str:
        """Say what is done: "measure area 3"."""
        return f"{verb} {self.shape} {self.number}"


@dataclass(frozen=True, kw_only=True)
class CountingSubject:
    """What was counted beside the parasites, so that their number can be told for an amount of blood.

    Attributes
    ----------
    everywhere : bool
        On all images together; else on the decision's image alone.
    leukocytes : float or None
        Counted there.
    red_cells : float or None
        Counted there.
    leukocytes_per_microlitre : float or None
        The patient's; None where they were not counted. Of all images.
    red_cells_per_microlitre : float or None
        The patient's; None where they were not counted. Of all images.
    thickness : float or None
        Of the film, micrometres. Of all images.
    """

    kind: ClassVar[str] = "clicks"
    form: ClassVar[str] = "counting"
    verbs: ClassVar[tuple[str, ...]] = ("count",)

    everywhere: bool = True
    leukocytes: float | None = None
    red_cells: float | None = None
    leukocytes_per_microlitre: float | None = None
    red_cells_per_microlitre: float | None = None
    thickness: float | None = None

    def __post_init__(self) -> None:
        for name in COUNTED:
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name} of {value}; expected a number above 0.")

    def refuse(self, _verb: str) -> str | None:
        """Say what is missing for a verb; None where nothing is."""
        return None

    def in_words(self, _verb: str) -> str:
        """Say what was counted: "count 200 leukocytes, all images"."""
        told = (
            (self.leukocytes, "{:,.0f} leukocytes"),
            (self.red_cells, "{:,.0f} red cells"),
            (self.leukocytes_per_microlitre, "{:,.0f} leukocytes/µl"),
            (self.red_cells_per_microlitre, "{:,.0f} red cells/µl"),
            (self.thickness, "a film of {:g} µm"),
        )
        said = ", ".join(words.format(value) for value, words in told if value is not None)
        return f"count {said or 'parasites alone'}{', all images' if self.everywhere else ''}"
