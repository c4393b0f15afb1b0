"""Whether a table holds comparisons, or labels beside which columns are named left and right."""

from __future__ import annotations

import numpy as np

from raterscope.app.formats.pairs.choices import ScaleError, choices_of, is_side
from raterscope.app.formats.tables import Table, assigned

__all__ = ["either", "tells_table"]

_COMPARED = ("left", "right", "choice")
_LABELLED = ("annotator", "task", "label")
_CHOSEN = {"choice", "winner", "preferred", "preference", "chosen", "selected"}
"""Names of a column that choose, where others may as well label."""

_SURELY = 0.9
_SHARED = 0.5


def tells_table(table: Table) -> bool:
    """Tell whether a table holds comparisons, whoever made them; with places it has clicks.

    The header tells it, unless it is one of labels too: then what the columns hold.
    """
    column = assigned(table, _COMPARED)
    if column is None or {"x", "y"} <= {name.casefold().strip() for name in table.header}:
        return False
    return assigned(table, _LABELLED) is None or _compares(table, column)


def either(table: Table) -> dict[str, str] | None:
    """Give which columns are left, right and choice, where these may be labels as well; None elsewhere."""
    column = assigned(table, _COMPARED)
    return None if column is None or assigned(table, _LABELLED) is None else column


def _compares(table: Table, column: dict[str, str]) -> bool:
    """Tell by the first rows whether what stands as the choice chooses between left and right.

    Names of one of the two and words for sides tell it. Numbers and single letters may be labels: for them
    the same names must stand on both sides, and not as the ends of intervals, or the column be named as a
    choice is.
    """
    left, right, said = ([cell.strip() for cell in table.column(column[field])] for field in _COMPARED)
    names, index = np.unique([*left, *right], return_inverse=True)
    texts, told = np.unique(said, return_inverse=True)
    one, other = (side.astype(np.int32) for side in np.split(index, 2))
    apart = one != other
    if not len(said) or apart.mean() < _SURELY:
        return False
    shared = len(np.intersect1d(one, other)) >= _SHARED * min(len(np.unique(one)), len(np.unique(other)))
    likely = column["choice"].casefold().strip() in _CHOSEN or (shared and not _are_ends(left, right))
    items, words = names.tolist(), texts.tolist()
    try:
        reading = choices_of(words, told.astype(np.int32), one, other, items, apart)
    except ScaleError:
        return likely
    answered = apart & ~reading.missing
    if reading.unknown.sum() > (1 - _SURELY) * answered.sum():
        return False
    if likely:
        return True
    named = np.array([what in pair for what, *pair in zip(said, left, right, strict=True)], dtype=bool)
    tells = named | np.array([is_side(word) for word in words], dtype=bool)[told]
    return bool(answered.any() and tells[answered].mean() >= _SURELY)


def _are_ends(left: list[str], right: list[str]) -> bool:
    """Tell whether the left of two numbers is always the smaller one."""
    try:
        return bool((np.array(left, dtype=np.float64) < np.array(right, dtype=np.float64)).all())
    except ValueError:
        return False
