"""Places of the views of a volume in their widget."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRect

LARGE_SHARE = 0.64
"""Share of the width that the large one of three views has."""

RULE = 1

STRIP, SURFACE = "strip", "surface"


def arrange(
    width: int, height: int, large: str, others: Sequence[str], *, strip: int, surface: bool
) -> dict[str, QRect]:
    """Return the rectangles of the large view, the others, the strip and the 3-D view, if they are shown.

    Parameters
    ----------
    others : sequence of str
        Two planes, or none where the large view is alone.
    strip : int
        Width of the strip beside the large view.
    surface : bool
        Whether the 3-D view is shown: in the fourth quarter, or beside the view that is alone.
    """
    share = 0.5 if surface else LARGE_SHARE if others else 1.0
    room = round((width - strip) * share)
    left, upper = room + strip + RULE, (height - RULE) // 2
    lower = height - upper - RULE
    right = width - left
    quarters = surface and bool(others)
    high = upper if quarters else height
    places = {large: QRect(0, 0, room, high), STRIP: QRect(room, 0, strip, high)}
    if quarters:
        places[SURFACE] = QRect(left, 0, right, upper)
        places[others[0]] = QRect(0, upper + RULE, room + strip, lower)
        places[others[1]] = QRect(left, upper + RULE, right, lower)
    elif surface:
        places[SURFACE] = QRect(left, 0, right, height)
    elif others:
        places[others[0]] = QRect(left, 0, right, upper)
        places[others[1]] = QRect(left, upper + RULE, right, lower)
    return places
