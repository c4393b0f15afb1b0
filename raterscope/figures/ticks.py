"""Round numbers along an axis, as many as it has room for, and their texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from raterscope.figures.description import Axis

__all__ = ["Tick", "compact", "number_text", "rounded", "ticks_of"]

Tick = tuple[float, str]
Measure = Callable[[str], float]

MINUS = "\N{MINUS SIGN}"
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
PLAIN_POWERS = range(-4, 7)
COMPACT_FROM = 10_000
UNITS = ((9, "G"), (6, "M"), (3, "k"))
APART = 2.4
"""Least distance of two numbers one above the other, in heights of letters."""


def rounded(step: float) -> float:
    """Round a step up to 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(times * power for times in (1.0, 2.0, 5.0, 10.0) if times * power >= step * (1 - 1e-9))


def number_text(value: float, step: float) -> str:
    """Write a number with the decimals of a step, thousands apart and with a true minus."""
    digits = max(-math.floor(math.log10(step) + 1e-9), 0)
    text = f"{value:,.{digits}f}"
    return text[1:] if text.startswith("-") and not text.strip("-0.,") else text.replace("-", MINUS)


def compact(ticks: Sequence[Tick]) -> list[Tick]:
    """Write numbers from ten thousand in thousands, millions or billions: −1.15M for −1,150,000.

    Ticks of smaller numbers, of names or of a scale that is not linear stay as they are.
    """
    values = [value for value, _ in ticks]
    most = max(map(abs, values), default=0.0)
    linear = all(words == number_text(value, 1.0) for value, words in ticks)
    if most < COMPACT_FROM or not linear or len(values) < 2:
        return list(ticks)
    power, unit = next((power, unit) for power, unit in UNITS if most >= 10.0**power)
    step = min(after - before for before, after in pairwise(values)) / 10.0**power
    return [(value, f"{number_text(value / 10.0**power, step)}{unit if value else ''}") for value in values]


def ticks_of(
    axis: Axis, low: float, high: float, length: float, letters: float, measure: Measure | None = None
) -> list[Tick]:
    """Choose the ticks of an axis; none where it is hidden.

    Parameters
    ----------
    axis : Axis
    low, high : float
        Ends that are shown, in units of its scale.
    length : float
        Pixels.
    letters : float
        Height of the texts.
    measure : callable, optional
        Gives the width of a text, where they stand side by side; else they stand one above the other.

    Returns
    -------
    list of (float, str)
        Positions in units of the scale, and texts.
    """
    if axis.hidden:
        return []
    if axis.falling:
        rising = replace(axis, falling=False)
        return [(-unit, text) for unit, text in ticks_of(rising, -high, -low, length, letters, measure)]
    if axis.ticks is not None:
        ticks = [(float(axis.forward(value)), text) for value, text in axis.ticks]
        return [tick for tick in ticks if low <= tick[0] <= high]
    if axis.names:
        first, last = max(math.ceil(low - 1e-9), 0), min(math.floor(high + 1e-9), len(axis.names) - 1)
        return [(float(index), axis.names[index]) for index in range(first, last + 1)]
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low or length <= 0:
        return []
    if axis.scale == "linear":
        return _linear(low, high, length, letters, measure, whole=axis.whole)
    if axis.scale == "root":
        return _rooted(axis, low, high, length, letters)
    return _logarithmic(axis, low, high, length, letters, measure)


def _linear(
    low: float, high: float, length: float, letters: float, measure: Measure | None, *, whole: bool
) -> list[Tick]:
    room = APART * letters
    # Widths depend on the step and the step on the widths: twice is enough.
    for _ in range(3 if measure else 1):
        step = rounded((high - low) * min(room / length, 1.0))
        if whole:
            step = max(step, 1.0)
        ticks = _steps(low, high, step)
        if measure is None or not ticks:
            break
        needed = max(measure(words) for _, words in ticks) + 1.6 * letters
        if needed <= step / (high - low) * length:
            break
        room = needed
    if len(ticks) < 2 and not whole:
        ticks = _steps(low, high, rounded(0.4 * (high - low)))
        return [ticks[0], ticks[-1]] if ticks else []
    return ticks


def _steps(low: float, high: float, step: float) -> list[Tick]:
    first, last = math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6)
    return [(index * step, number_text(index * step, step)) for index in range(first, last + 1)]


def _rooted(axis: Axis, low: float, high: float, length: float, letters: float) -> list[Tick]:
    """Choose the ticks of an axis of square roots: 0, and round values as far apart as texts need."""
    scale, step = length / (high - low), 10.0 ** math.floor(math.log10(max(low * low, high * high)) - 2)
    sizes = [part * step * 10**power for power in range(4) for part in (1, 2, 5)]
    ticks = [(0.0, "0")]
    for sign in (1, -1):
        before = 0.0
        for size in sizes:
            unit = float(axis.forward(sign * size))
            if low <= unit <= high and abs(unit - before) * scale >= APART * letters:
                ticks.append((unit, number_text(sign * size, size)))
                before = unit
    return sorted(tick for tick in ticks if low <= tick[0] <= high)


def _logarithmic(
    axis: Axis, low: float, high: float, length: float, letters: float, measure: Measure | None
) -> list[Tick]:
    first, last = math.floor(low - 1e-9), math.ceil(high + 1e-9)
    best: list[Tick] = []
    for parts in ((1, 2, 5), (1, 3), (1,)):
        values = [part * 10.0**power for power in range(first, last + 1) for part in parts]
        if axis.scale == "log1p":
            values = [0.0, *(value for value in values if value >= 1)]
        ticks = [(float(axis.forward(value)), _power_text(value)) for value in values]
        best = [tick for tick in ticks if low - 1e-9 <= tick[0] <= high + 1e-9]
        if _fit(best, length / (high - low), letters, measure):
            return best if len(best) > 1 else _between(axis, low, high, length, letters, measure)
    chosen: list[Tick] = []
    for tick in best:
        if not chosen or _fit([chosen[-1], tick], length / (high - low), letters, measure):
            chosen.append(tick)
    return chosen


def _between(
    axis: Axis, low: float, high: float, length: float, letters: float, measure: Measure | None
) -> list[Tick]:
    """Choose the ticks of an axis that shows less than a power of ten."""
    ends = axis.backward(low), axis.backward(high)
    ticks = _linear(*ends, length, letters, measure, whole=axis.whole)
    return [(float(axis.forward(value)), words) for value, words in ticks]


def _fit(ticks: Sequence[Tick], scale: float, letters: float, measure: Measure | None) -> bool:
    for (unit, text), (next_unit, next_text) in pairwise(ticks):
        needed = APART * letters if measure is None else (measure(text) + measure(next_text)) / 2 + letters
        if (next_unit - unit) * scale < needed:
            return False
    return True


def _power_text(value: float) -> str:
    power = round(math.log10(value)) if value > 0 else 0
    if power in PLAIN_POWERS or value == 0:
        return f"{value:,.0f}" if value >= 1 or value == 0 else f"{value:.6g}"
    first = value / 10.0 ** math.floor(math.log10(value) + 1e-9)
    raised = str(math.floor(math.log10(value) + 1e-9)).translate(RAISED)
    return f"10{raised}" if round(first) == 1 else f"{first:.0f}×10{raised}"
