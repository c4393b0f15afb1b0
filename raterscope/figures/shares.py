"""Charts of shares that add up to one: stacked bars, and one area of many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from raterscope.figures.colours import ANNOTATOR_SYMBOLS
from raterscope.figures.description import Axis, Chart, Key, Note, Rectangles
from raterscope.text.numbers import percent

__all__ = ["LEAST_ROWS", "share_area", "share_bars"]

Floats = NDArray[np.floating]

LEAST_ROWS = 6
"""Bars that fill the height at the least: fewer are as thick."""
HALF = 0.32
DIMMED = 0.3
LEAST_SHARE = 0.03
"""Of an area whose number is written in it."""


def share_bars(
    shares: Floats,
    names: Sequence[str],
    communities: Sequence[str],
    selected: int | None = None,
    inks: Sequence[str] = (),
) -> Chart:
    """Describe a bar for each row, divided by its shares.

    Parameters
    ----------
    shares : (R, C) float
        Rows add up to 1, or are 0 where an annotator belongs to no community.
    names : sequence of R str
    communities : sequence of C str
    selected : int, optional
        The community beside which the others are dimmed.
    inks : sequence of C str, optional
        By default those of communities.
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
