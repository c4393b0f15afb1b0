"""Choices as text: a side, the name of an item, a tie or a number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["EXPECTED", "Reading", "ScaleError", "choices_of", "is_side"]

EXPECTED = "left, right, tie, one of the two items, or a number above 0 for left and below 0 for right"

_WORDS = {
    1.0: "left l leftitem leftone leftside first a itema modela optiona responsea imagea texta",
    -1.0: "right r rightitem rightone rightside second b itemb modelb optionb responseb imageb textb",
    0.0: "tie ties tied equal equals same draw drawn both neither bothbad bothgood tiebothbad tiebothgood "
    "nodifference nopreference undecided cannottell",
}
_NOTHING = {"", "na", "n/a", "null", "none", "<na>", "skip", "skipped", "no answer"}
_SIGNS = {">": 1.0, "<": -1.0, "=": 0.0, "==": 0.0}
_NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d{1,3})?", re.ASCII)
_LARGEST = 1e6
_MOST_STEPS = 10
_SURELY = 0.9


class ScaleError(ValueError):
    """Numbers of a scale that does not say which end is left, in the end of a sentence."""


@dataclass(frozen=True, eq=False)
class Reading:
    """Choices read, a row each.

    Attributes
    ----------
    value : (N,) float64
        NaN where there is none, or where it is not known.
    missing : (N,) bool
        Nothing was answered.
    unknown : (N,) bool
        Something was that cannot be read.
    notices : tuple of str
    """

    value: NDArray[np.float64]
    missing: NDArray[np.bool_]
    unknown: NDArray[np.bool_]
    notices: tuple[str, ...]


def choices_of(
    texts: Sequence[str],
    index: NDArray[np.int32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    items: Sequence[str],
    rows: NDArray[np.bool_],
) -> Reading:
    """Read choices, having looked what the whole column holds.

    It names the preferred items if nearly all of its cells, apart from ties, name one of the two that were
    compared: so items that are called 1 and 2, or A and B, are not taken for sides. Else words for sides
    count, and numbers: above 0 for left and below 0 for right, but 1 and 2 alone are left and right, and so
    are 1 and 0.

    Parameters
    ----------
    texts : sequence of str
        Each answer as it was written, once.
    index : (N,) int32
        Which of them each row has.
    left, right : (N,) int32
        Indices into `items`.
    items : sequence of str
    rows : (N,) bool
        Rows to read.

    Raises
    ------
    ScaleError
        For a scale such as 1 to 5.
    """
    number = {name: at for at, name in enumerate(items)}
    named = np.array([number.get(text, -1) for text in texts], dtype=np.int64)
    nothing = np.array([text.casefold() in _NOTHING and text not in number for text in texts], dtype=bool)
    value = np.array([_value(text) for text in texts], dtype=np.float64)
    side = np.array([_side(text) for text in texts], dtype=np.float64)
    tie = (side == 0) & (named < 0)
    missing = rows & nothing[index]
    said = rows & ~missing
    used = np.zeros(len(texts), dtype=bool)
    used[index[said]] = True
    name = named[index]
    of_left, of_right = said & (name >= 0) & (name == left), said & (name >= 0) & (name == right)
    sided = said & ~tie[index]
    by_name = int((of_left | of_right).sum()) >= _SURELY * max(int(sided.sum()), 1)
    numeric = used & ~tie & np.isfinite(value)
    notices: list[str] = []
    found = np.full(len(index), np.nan)
    if by_name and sided.any():
        found[said & tie[index]] = 0.0
        if numeric[used & ~tie].all():
            notices.append("The choices are names of the items compared: each was read as the preferred one.")
    else:
        if numeric.any() and not (used & np.isin(side, (-1.0, 1.0))).any():
            value, said_of_them = _scale(value, numeric)
            notices += said_of_them
        meant = np.where(np.isnan(side), value, side)
        found[said] = meant[index[said]]
        # A name counts where it is no word for a side.
        bare = np.isnan(found)
        of_left, of_right = of_left & bare, of_right & bare
    found[of_left], found[of_right] = 1.0, -1.0
    return Reading(found, missing, said & np.isnan(found), tuple(notices))


def is_side(text: str) -> bool:
    """Tell whether a text is a word for a side or a tie: not a mere letter, which may mean anything."""
    return len(text) > 1 and bool(np.isfinite(_side(text)))


def _side(text: str) -> float:
    """Read a word for a side or a tie: 1, -1 or 0; NaN for any other."""
    key = re.sub(r"[^a-z0-9]", "", text.casefold())
    return next((value for value, words in _WORDS.items() if key in words.split()), _SIGNS.get(text, np.nan))


def _value(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        return np.nan
    value = float(text.replace(",", "."))
    return value if abs(value) <= _LARGEST else np.nan


def _scale(
    value: NDArray[np.float64], used: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Tell what numbers mean by all that are there."""
    steps = np.unique(value[used])
    if steps.tolist() == [1.0, 2.0]:
        return 3 - 2 * value, ("The choices 1 and 2 were read as left and right.",)
    if steps.tolist() == [0.0, 1.0]:
        return 2 * value - 1, ("The choices 1 and 0 were read as left and right.",)
    if steps[0] < 0 or steps[-1] == 0:
        return value, ()
    whole = bool((steps == np.round(steps)).all())
    if whole and len(steps) > 2 and steps[-1] <= _MOST_STEPS:
        raise ScaleError(
            f"has whole numbers from {steps[0]:.0f} to {steps[-1]:.0f} and none below 0; "
            "expected numbers above 0 for left and below 0 for right"
        )
    return value, ("No choice is below 0: all numbers above 0 were read as left.",)
