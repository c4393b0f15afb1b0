"""Charts of shares that add up to one: stacked bars, one area of many, and triangles of three shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.figures.canvas import Canvas, Pen
from raterscope.figures.colours import ANNOTATOR_SYMBOLS, LIGHT, Symbol, Theme, colour_of
from raterscope.figures.description import Axis, Chart, Key, Note, Rectangles
from raterscope.figures.layout import Box, elided
from raterscope.text import percent

Floats = NDArray[np.floating]

LEAST_ROWS = 6
"""Rows for which a chart has room at least, so that few bars are not thicker."""
HALF = 0.32
DIMMED = 0.3
LEAST_SHARE = 0.03
"""Smallest share of the rows at which an area has its number in it."""


def share_bars(
    shares: Floats,
    names: Sequence[str],
    communities: Sequence[str],
    selected: int | None = None,
    inks: Sequence[str] = (),
) -> Chart:
    """Describe a bar for each row, divided by its shares.

    `shares`: (R, C), rows add up to 1, or are 0 where an annotator belongs to no community. `names`,
    `communities`: R and C names. `selected`: the community that is not dimmed. `inks`: (C,), by default those
    of communities.
    """
    rows, ends = np.arange(len(names)), _ends(shares)
    marks = [
        Rectangles(
            title=name, left=ends[:, number], right=ends[:, number + 1], bottom=rows + HALF, top=rows - HALF,
            inks=(inks[number] if inks else f"community {number}",), opacity=_opacity(number, selected),
            gap=1.0,
            labels=[f"{number + 1}: {percent(share)}\n{number + 1}" for share in shares[:, number].tolist()],
        )
        for number, name in enumerate(communities)
    ]  # fmt: skip
    empty = np.flatnonzero(~np.asarray(shares).any(axis=1)).tolist()
    notes = tuple(Note(-np.inf, row, "in no community", shift=(6.0, 0.0)) for row in empty)
    padded = (*names, *[""] * (LEAST_ROWS - len(names)))
    return Chart(
        "", Axis("", 0.0, 1.0, padding=0.0, hidden=True), Axis("", names=padded, falling=True),
        tuple(marks), () if inks else _keys(communities), notes, legend_at="above",
    )  # fmt: skip


def share_area(
    shares: Floats, names: Sequence[str], communities: Sequence[str], selected: int | None = None
) -> Chart:
    """Describe the same as one area, with a narrow column for each row; see `share_bars`."""
    columns, ends, main = np.arange(len(names)), _ends(shares), np.asarray(shares).argmax(axis=1)
    marks, notes = [], []
    for number, name in enumerate(communities):
        marks.append(
            Rectangles(
                title=name, left=columns, right=columns + 1, bottom=ends[:, number + 1],
                top=ends[:, number], inks=(f"community {number}",), opacity=_opacity(number, selected),
            )
        )  # fmt: skip
        own = np.flatnonzero(main == number)
        if len(own) >= LEAST_SHARE * len(names):
            middle = int(own[len(own) // 2])
            y = float(ends[middle, number : number + 2].mean())
            notes.append(Note(middle + 0.5, y, str(number + 1), "window", "middle"))
    return Chart(
        "", Axis("", 0.0, float(len(names)), padding=0.0, hidden=True),
        Axis("", 0.0, 1.0, padding=0.0, falling=True, hidden=True),
        tuple(marks), _keys(communities), tuple(notes), legend_at="above",
    )  # fmt: skip


def _ends(shares: Floats) -> Floats:
    return np.hstack([np.zeros((len(shares), 1)), np.cumsum(shares, axis=1)])


def _opacity(number: int, selected: int | None) -> float:
    return 1.0 if selected is None or number == selected else DIMMED


def _keys(communities: Sequence[str]) -> tuple[Key, ...]:
    return tuple(
        Key(
            f"{number + 1} {name}", f"community {number}", line=False, short=str(number + 1),
            symbol=ANNOTATOR_SYMBOLS[number % len(ANNOTATOR_SYMBOLS)],
        )
        for number, name in enumerate(communities)
    )  # fmt: skip


HEIGHT = math.sqrt(3) / 2
"""Height of a triangle with sides of 1."""
SIDE, TOP, BOTTOM = 380.0, 34.0, 36.0
"""Side of a triangle on paper, and margins above and below it, in pixels."""
LETTERS, SMALL = 17.0, 13.0
NAME = 180.0
NEXT = ((0, 1, 2), (1, 2, 0), (2, 0, 1))


@dataclass(frozen=True, eq=False)
class TernaryPoint:
    """A symbol in a triangle."""

    shares: NDArray[np.float64]  # (3,): adding up to 1
    ink: str
    radius: float = 5.0  # pixels
    words: str = ""  # beside it
    symbol: Symbol = "disc"
    opacity: float = 0.85


@dataclass(frozen=True, eq=False)
class TernaryPath:
    """A path in a triangle."""

    shares: NDArray[np.float64]  # (S, 3)
    ink: str
    width: float = 1.6


@dataclass(frozen=True, eq=False)
class TernaryChart:
    """A triangle: near a corner its share is large."""

    corners: tuple[str, str, str]  # tuple of three names: lower left, top, lower right
    points: Sequence[TernaryPoint] = ()
    paths: Sequence[TernaryPath] = ()  # drawn below the points
    # width, height: on paper, pixels
    width: int = round(SIDE + NAME)
    height: int = round(SIDE * HEIGHT + TOP + BOTTOM)

    def draw(self, canvas: Canvas) -> None:
        """Draw it on paper, at the upper left."""
        left = (self.width - SIDE) / 2
        box = Box(left, TOP, left + SIDE, TOP + SIDE * HEIGHT)
        self.draw_in(canvas, box, LIGHT, LETTERS, SMALL)

    def draw_in(self, canvas: Canvas, box: Box, palette: Theme, letters: float, small: float) -> None:
        """Draw it as large as a box allows; the corners' names are beyond it."""
        corners = corners_in(box)
        draw_triangle(canvas, corners, self.corners, palette, letters)
        for path in self.paths:
            if len(path.shares) > 1:
                canvas.line(pixels_of(corners, path.shares), Pen(colour_of(path.ink, palette), path.width))
        for point in sorted(self.points, key=lambda point: -point.radius):
            edge = Pen(palette.surface, 1.0, (), point.opacity)
            centre, size = pixels_of(corners, point.shares)[None], np.array([2 * point.radius])
            canvas.symbols(centre, point.symbol, size, edge, colour_of(point.ink, palette))
        for point in self.points:
            x, y = pixels_of(corners, point.shares).tolist()
            canvas.text((x + point.radius + 4, y), point.words, palette.second, small, "start")


def corners_in(box: Box) -> NDArray[np.float64]:
    """Return the largest triangle in a box: lower left, top and lower right, (3, 2) pixels."""
    side = max(min(box.width, box.height / HEIGHT), 1.0)
    left = box.left + (box.width - side) / 2
    low = box.top + (box.height + side * HEIGHT) / 2
    return np.array([(left, low), (left + side / 2, low - side * HEIGHT), (left + side, low)])


def pixels_of(corners: NDArray[np.float64], shares: NDArray[np.floating]) -> NDArray[np.float64]:
    """Convert shares, (..., 3), to pixels in a triangle, (..., 2)."""
    values = np.asarray(shares, dtype=np.float64)
    return np.asarray((values / values.sum(axis=-1, keepdims=True)) @ corners)


def draw_triangle(
    canvas: Canvas, corners: NDArray[np.float64], names: Sequence[str], palette: Theme, letters: float
) -> None:
    """Draw the frame, a grid of quarters, and the names of the corners."""
    grid = Pen(palette.line, 1.0, (), 0.6)
    for share in (0.25, 0.5, 0.75):
        for first, second, third in NEXT:
            ends = corners[[first, third]] + (corners[second] - corners[[first, third]]) * share
            canvas.line(ends, grid)
    canvas.line(corners[[0, 1, 2, 0]], Pen(palette.third, 1.2))
    room = max(min(NAME, float(corners[2, 0] - corners[0, 0]) - letters / 2), 12.0)
    for (x, y), name, above in zip(corners.tolist(), names, (False, True, False), strict=True):
        short = elided(name, room, lambda text: canvas.width_of(text, letters))
        x = max(x, canvas.width_of(short, letters) / 2)
        canvas.text((x, y + (-1.0 if above else 1.05) * letters), short, palette.second, letters)
