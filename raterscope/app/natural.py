"""Natural sort order of names."""

from __future__ import annotations

import re

__all__ = ["natural"]


def natural(text: str) -> tuple[tuple[tuple[bool, int, str], ...], str, str]:
    """Give a key to sort by: "rater 2" before "Rater 10", whatever the case."""
    folded = text.casefold()
    return tuple(map(_piece, re.findall(r"\d+|\D+", folded))), folded, text


def _piece(piece: str) -> tuple[bool, int, str]:
    if not piece.isdecimal():
        return True, 0, piece
    digits = piece.lstrip("0")
    return False, len(digits), digits
