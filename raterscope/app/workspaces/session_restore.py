"""Numbers of a stored session, read from a note whose content is untrusted."""

from __future__ import annotations

import math

__all__ = ["numbers_in"]


def numbers_in(told: object, many: int) -> tuple[float, ...] | None:
    """Give the numbers of a list that was read from a note; None where it is not of so many finite ones."""
    if not isinstance(told, list) or len(told) != many:
        return None
    if not all(isinstance(one, int | float) and math.isfinite(one) for one in told):
        return None
    return tuple(map(float, told))
