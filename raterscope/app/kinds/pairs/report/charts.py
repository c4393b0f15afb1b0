"""Annotators of pairs as pictures for a page of paper: how often each side, and how the biases come in."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs import PairFusion, Pairs
from raterscope.algorithms.pairs.data import FloatArray
from raterscope.app.page.charts import draw_paper
from raterscope.app.page.contents import Picture
from raterscope.figures.description import Axis, Chart, Line, Mark, Points, Segments
from raterscope.figures.paper import PaperChart

__all__ = ["COLOURS", "draw_path", "draw_sides"]

COLOURS = ("#8a96a2", "#e69f00", "#b0124a")
"""Of annotators who are not flagged, of those who are and lean to a side, and of the one-sided."""

_AXES = {"iss": "time of the path", "lbi": "time of the path", "lasso": "lambda, falling"}
_MOST_POWERS = 4.0
"""Of ten, from the first place of a path on: its axis is logarithmic, and LASSO ends at 0."""

_MOST_LINES, _MOST_POINTS = 2000, 1000


def draw_sides(pairs: Pairs, behaviour: NDArray[np.int8]) -> Picture:
    """Draw how often each annotator chose left and right, on logarithmic axes from 0."""
    left, right, _ = pairs.counts()
    heard = np.flatnonzero(left + right > 0)
    most = 1.04 * float(max(int(left.max(initial=1)), int(right.max(initial=1)), 3))
    marks: list[Mark] = [
        Segments(x=np.array([[-np.inf, np.inf]]), y=np.array([[-np.inf, np.inf]]), ink="third", stretch=False)
    ]
    for kind, colour in enumerate(COLOURS):
        rows = heard[behaviour[heard] == kind]
        marks.append(Points(x=left[rows], y=right[rows], ink=colour, size=9.0, opacity=0.75))
    x, y = (Axis(side, 0.0, most, scale="log1p", padding=0.0) for side in ("chose left", "chose right"))
    words = "a dot an annotator; who prefers no side is near the diagonal"
    return draw_paper(PaperChart(Chart("", x, y, tuple(marks))), "Choices of each side", words)


def draw_path(fusion: PairFusion, behaviour: NDArray[np.int8], algorithm: str) -> Picture:
    """Draw the bias of each annotator along the path."""
    rows = np.unique(np.linspace(0, len(fusion.path_at) - 1, min(len(fusion.path_at), _MOST_POINTS)).round())
    rows = rows.astype(np.int64)
    rows = rows[_drawn(fusion.path_at[rows])]
    at, path = fusion.path_at[rows], fusion.path[rows]
    logs = np.log10(at)
    place_of = (logs - logs[0]) / ((logs[-1] - logs[0]) or 1.0)
    ever = np.flatnonzero(np.abs(path).max(axis=0) > 0)
    strongest = ever[np.argsort(-np.abs(path[:, ever]).max(axis=0), kind="stable")[:_MOST_LINES]]
    high = float(np.abs(path).max()) * 1.05 or 1.0
    axes = (
        Axis(_AXES.get(algorithm, "place on the path"), 0.0, 1.0, padding=0.0, ticks=_powers(at, place_of)),
        Axis("bias, left above 0", -high, high, padding=0.0),
    )
    lines = tuple(
        Line(
            x=place_of, y=path[:, k], ink=COLOURS[behaviour[k]], width=1.0, held=algorithm == "iss",
            opacity=0.4 if behaviour[k] == 0 else 1.0,
        )
        for k in strongest[np.argsort(behaviour[strongest], kind="stable")].tolist()
    )  # fmt: skip
    words = "a line an annotator, from when the bias comes in; the earlier, the plainer it is"
    return draw_paper(PaperChart(Chart("", *axes, lines)), "How biases come in", words)


def _drawn(at: FloatArray) -> NDArray[np.bool_]:
    """Tell which places of a path have room on a logarithmic axis."""
    above = at > 0
    logs = np.log10(at, where=above, out=np.full(len(at), np.inf))
    first = logs[np.argmax(above)]
    return np.asarray(above & (np.abs(logs - first) <= _MOST_POWERS))


def _powers(at: FloatArray, place: FloatArray) -> list[tuple[float, str]]:
    """Give the powers of ten on a logarithmic axis; its ends where there are fewer than two."""
    logs = np.log10(at)
    powers = list(range(math.ceil(logs.min()), math.floor(logs.max()) + 1))
    if len(powers) < 2:
        return [(float(place[end]), f"{at[end]:.3g}") for end in (0, -1)]
    rising = np.argsort(logs, kind="stable")
    return [(float(np.interp(one, logs[rising], place[rising])), f"{10.0**one:g}") for one in powers]
