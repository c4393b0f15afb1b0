"""Numbers, units and names as text: only meaningful digits, natural sort order."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

MAX_DECIMALS = 3
STEPS = 70
UNKNOWN = "not known"
MINUS = "\N{MINUS SIGN}"
FRACTIONS = {0.75: "¾", 0.5: "½", 0.25: "¼"}


def decimals(low: float, high: float) -> int:
    """Return the decimals that an interval supports: its width is at most 70 steps of the last digit.

    Shares have at least two, so that 0.95 from a few votes is not written as 1.0.

    Parameters
    ----------
    low, high : float
        Bounds of the interval; an unknown interval supports two decimals.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return 2
    width = abs(high - low)
    if width == 0:  # three significant digits
        size = max(abs(high), 1e-9)
        return MAX_DECIMALS if size <= 1 else max(0, MAX_DECIMALS - 1 - math.floor(math.log10(size)))
    least = 2 if min(low, high) >= 0 and max(low, high) <= 1 else 0
    return min(MAX_DECIMALS, max(least, math.floor(-math.log10(width / STEPS) + 1e-9)))


def figure(value: float, low: float = math.nan, high: float = math.nan) -> str:
    """Format a value with the digits that its interval supports."""
    if not math.isfinite(value):
        return UNKNOWN
    return _plain(value, decimals(low, high))


def estimate(value: float, low: float, high: float) -> str:
    """Format a value with its interval: "0.46 (0.31 to 0.62)".

    Parameters
    ----------
    value, low, high : float
        Without an interval, only the value is written; an unknown value is described in words.
    """
    if not math.isfinite(value):
        return UNKNOWN
    digits = decimals(low, high)
    if not (math.isfinite(low) and math.isfinite(high)):
        return _plain(value, digits)
    return f"{_plain(value, digits)} ({_plain(low, digits)} to {_plain(high, digits)})"


MIN_P = 0.001
"""Minimum p value that is written as a number."""


def p_text(value: float) -> str:
    """Format a p value: "0.03", "< 0.001"."""
    return f"< {MIN_P}" if value < MIN_P else f"{value:.2g}"


def small_figure(value: float, sign: str = "") -> str:
    """Format a number that may be far below 1 with two significant digits, at most four decimals.

    Parameters
    ----------
    value : float
        Not NaN.
    sign : {"", "+"}
        With "+" a value above 0 has its sign.
    """
    size = abs(value)
    digits = 1 if size >= 9.95 else 2 if size >= 0.0995 else 3 if size >= 0.00995 else 4
    text = f"{value:{sign}.{digits}f}"
    return with_minus(text) if text.strip("+-0.") else text.lstrip("+-")


def counted(number: int, singular: str = "", many: str = "") -> str:
    """Format a whole number, optionally with its noun: "1,048 clicks"."""
    text = singular if number == 1 else (many or (singular + "s" if singular else ""))
    return f"{number:,}" + (f" {text}" if text else "")


def listed(parts: Sequence[str], most: int) -> str:
    """Join the first parts of a list, and count the others: "a, b and 3 more"."""
    more = f" and {len(parts) - most:,} more" if len(parts) > most else ""
    return ", ".join(parts[:most]) + more


def part_of_one(weight: float) -> str:
    """Format a weight: "½", "0.1"."""
    return FRACTIONS.get(weight, f"{weight:.3g}")


def percent(share: float, digits: int = 0) -> str:
    """Format a share as a percentage: "43 %", or "43.1 %" with one decimal."""
    return f"{_plain(100 * share, digits)} %" if math.isfinite(share) else UNKNOWN


def duration(seconds: float) -> str:
    """Format a duration: "2 s", "1 min 20 s", "3 h 5 min"."""
    if seconds < 0.95:
        return f"{round(seconds * 1000)} ms"
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    minutes, remainder = divmod(rounded, 60)
    if minutes < 60:
        return f"{minutes} min" + (f" {remainder} s" if remainder and minutes < 10 else "")
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h" + (f" {minutes} min" if minutes else "")


def time_left(seconds: float | None) -> str:
    """Format the remaining time: "20 s left"; empty if unknown."""
    return "" if seconds is None else f"{duration(max(seconds, 1.0))} left"


def with_minus(number: str) -> str:
    """Write a formatted number with a typographic minus; 0 has no sign."""
    return number.replace("-", MINUS) if number.strip("-0.,") else number.removeprefix("-")


_HELD = re.compile(r"(?<=\d) (?=(?:%|[mµ]m[²³]?|ml|px²?|s|nats)(?!\w))|(?<=[<>]) (?=\d)")
_INTERVAL = re.compile(r"\(([^() ]+) to ([^() ]+)\)")


def unbroken(text: str) -> str:
    """Keep numbers with their units, and the bounds of an interval, on one line."""
    text = _INTERVAL.sub("(\\1\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}\\2)", text)
    return _HELD.sub("\N{NO-BREAK SPACE}", text)


def _plain(value: float, digits: int) -> str:
    return with_minus(f"{value:,.{digits}f}")


def natural(text: str) -> tuple[tuple[tuple[bool, int, str], ...], str, str]:
    """Return a sort key: "rater 2" before "Rater 10", ignoring case."""
    folded = text.casefold()
    return tuple(map(_piece, re.findall(r"\d+|\D+", folded))), folded, text


def _piece(piece: str) -> tuple[bool, int, str]:
    if not piece.isdecimal():
        return True, 0, piece
    digits = piece.lstrip("0")
    return False, len(digits), digits
