"""Box plots of methods as one SVG: overlap, distances, lower bound, time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

from raterscope.algorithms.masks.method_comparison import quartiles
from raterscope.app.formats.whole import drafting
from raterscope.app.kinds.masks.methods import (
    BASELINE,
    FIGURES,
    REFERENCES,
    ComparedMethods,
    MethodBox,
    boxes,
)
from raterscope.figures.colours import LIGHT

__all__ = ["draw", "write_plots"]

_WIDE, _HIGH = 460, 310
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 12, 34, 108
_BOX = 0.56
_TICKS = 5
_LEAST_SECONDS = 1e-4


def write_plots(path: Path, found: ComparedMethods) -> Path:
    """Write all box plots into one file, whole or not at all."""
    with drafting([path]) as (draft,):
        draft.write_text(draw(found), encoding="utf-8")
    return path


def draw(found: ComparedMethods) -> str:
    """Draw all box plots as SVG; a star marks methods that differ from the baseline (p < 0.05)."""
    reference = "truth" if found.truth else "raters"
    panels = []
    for figure, words in FIGURES.items():
        shown = boxes(found, figure, reference)
        if not shown:
            continue
        title = words if figure in ("bound", "seconds") else f"{words}, {REFERENCES[reference]}"
        unit = {"dice": "", "bound": "nats", "seconds": "s"}.get(figure, found.unit)
        panels.append("".join(_panel(shown, f"{title}, {unit}" if unit else title, figure == "seconds")))
    across = min(2, len(panels))
    down = math.ceil(len(panels) / max(across, 1))
    placed = "".join(
        f'<g transform="translate({place % 2 * _WIDE},{place // 2 * _HIGH})">{panel}</g>'
        for place, panel in enumerate(panels)
    )
    wide, high = across * _WIDE, down * _HIGH
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" '
        f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="{LIGHT.surface}"/>'
        f"{placed}</svg>\n"
    )


def _panel(shown: Sequence[MethodBox], title: str, logarithmic: bool) -> Iterator[str]:
    look = LIGHT
    values = [np.maximum(box.values, _LEAST_SECONDS) if logarithmic else box.values for box in shown]
    every = np.concatenate(values)
    every = np.log10(every) if logarithmic else every
    low, high = float(every.min()), float(every.max())
    room = 0.06 * (high - low) or 0.5
    low, high = low - room, high + room

    def at(value: float) -> float:
        value = math.log10(value) if logarithmic else value
        return _HIGH - _BOTTOM - (value - low) / (high - low) * (_HIGH - _BOTTOM - _TOP)

    yield f'<text x="{_LEFT}" y="20" font-weight="bold" fill="{look.text}">{escape(title)}</text>'
    for tick in _ticks(low, high, logarithmic):
        y = at(tick)
        yield f'<line x1="{_LEFT}" x2="{_WIDE - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{look.line}"/>'
        label = f'text-anchor="end" fill="{look.second}"'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" {label}>{_written(tick)}</text>'
    step = (_WIDE - _LEFT - _RIGHT) / len(shown)
    for place, (box, numbers) in enumerate(zip(shown, values, strict=True)):
        x, half = _LEFT + (place + 0.5) * step, min(_BOX * step, 40) / 2
        colour = look.second if box.rater else look.accent
        yield from _box(numbers, x, half, colour, at)
        star = " *" if box.p_value < 0.05 else ""
        y = _HIGH - _BOTTOM + 14
        turned = f'transform="rotate(-40 {x:.1f} {y})" text-anchor="end"'
        yield f'<text x="{x:.1f}" y="{y}" {turned} fill="{look.text}">{escape(box.name + star)}</text>'
    if any(box.p_value < 0.05 for box in shown):
        words = f"* differs from {BASELINE}: Wilcoxon signed-rank test, p &lt; 0.05"
        yield f'<text x="{_LEFT}" y="{_HIGH - 6}" fill="{look.second}">{words}</text>'


def _box(
    numbers: np.ndarray, x: float, half: float, colour: str, at: Callable[[float], float]
) -> Iterator[str]:
    least, lower, middle, upper, most = map(at, quartiles(numbers))
    pen = f'stroke="{colour}" stroke-width="1.4"'
    if len(numbers) > 2:
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{least:.1f}" y2="{most:.1f}" {pen}/>'
        yield (
            f'<rect x="{x - half:.1f}" y="{upper:.1f}" width="{2 * half:.1f}" '
            f'height="{max(lower - upper, 0.5):.1f}" fill="{LIGHT.surface}" {pen}/>'
        )
        yield f'<line x1="{x - half:.1f}" x2="{x + half:.1f}" y1="{middle:.1f}" y2="{middle:.1f}" {pen}/>'
    for value in numbers.tolist():
        yield f'<circle cx="{x:.1f}" cy="{at(value):.1f}" r="2" fill="{colour}" fill-opacity="0.5"/>'


def _written(tick: float) -> str:
    text = f"{tick:,.0f}" if abs(tick) >= 1000 else f"{tick:.6g}"
    return text.replace("-", "\N{MINUS SIGN}")


def _ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    if logarithmic:
        return [10.0**power for power in range(math.ceil(low), math.floor(high) + 1)]
    step = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(step))
    step = next(times * power for times in (1, 2, 5, 10) if times * power >= step)
    first = math.ceil(low / step)
    return [round(n * step, 12) for n in range(first, math.floor(high / step) + 1)]
