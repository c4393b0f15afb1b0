"""Charts of observer variability: Bland-Altman plots, and forest plots of readers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from raterscope.algorithms.annotators.measurements import limits_of_agreement
from raterscope.algorithms.annotators.vote_agreement import Coefficient
from raterscope.figures.description import Axis, Chart, Line, Mark, PlotTable, Points, Segments
from raterscope.text import figure

_SHORT = 18


def bland_altman_chart(
    first: ArrayLike, second: ArrayLike, names: tuple[str, str], quantity: str, unit: str
) -> Chart:
    """Describe a Bland-Altman plot: differences over means, bias and limits with 95 % intervals.

    `first`, `second`: (n,), of n >= 3 cases; differences are first minus second. `quantity`: what was
    measured: "Volume".
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    limits = limits_of_agreement(a, b)
    lines = {"bias": limits.bias, "lower limit": limits.lower, "upper limit": limits.upper}
    mean = (a + b) / 2
    room = 0.05 * float(np.ptp(mean)) or 1.0
    ends = np.array([mean.min() - room, mean.max() + room])
    marks: list[Mark] = [
        Segments(
            x=np.array([[-np.inf, np.inf]]),
            y=np.zeros((1, 2)),
            ink="second",
            dashes=(2.0, 3.0),
            stretch=False,
        )
    ]
    for name, line in lines.items():
        marks.append(
            Line(
                title=name, x=ends, y=np.full(2, line.value), low=np.full(2, line.low),
                high=np.full(2, line.high), ink="accent", dashes=() if name == "bias" else (5.0, 3.0),
                pointable=False,
            )
        )  # fmt: skip
    marks.append(Points(title="case", x=mean, y=a - b, ink="text", size=6.0, opacity=0.7))
    of_unit = f", {unit}" if unit else ""
    table = {
        f"mean{of_unit}": mean,
        f"difference{of_unit}": a - b,
        **{name: np.full(len(a), line.value) for name, line in lines.items()},
    }
    return Chart(
        f"{quantity}: {names[0]} \N{MINUS SIGN} {names[1]}",
        Axis(f"mean of both{of_unit}", padding=0.0),
        Axis(f"difference{of_unit}", padding=0.08),
        tuple(marks),
        aside=f"{len(a):,} cases, bias {figure(limits.bias.value)}, limits {figure(limits.lower.value)} to "
        f"{figure(limits.upper.value)}{f' {unit}' if unit else ''}",
        table=PlotTable.of(table),
    )


def forest_chart(
    names: Sequence[str], coefficients: Sequence[Coefficient], quantity: str, reference: float | None = None
) -> Chart:
    """Describe a forest plot: a value with its 95 % interval for each reader, from top to bottom.

    `quantity`: with its unit, along the axis. `reference`: where a line is drawn, such as no bias.
    """
    rows = np.arange(len(names), dtype=np.float64)
    values, low, high = (
        np.array([getattr(coefficient, end) for coefficient in coefficients], dtype=np.float64)
        for end in ("value", "low", "high")
    )
    whole = np.isfinite(low) & np.isfinite(high)
    marks: list[Mark] = []
    if reference is not None:
        marks.append(
            Segments(
                x=np.full((1, 2), reference), y=np.array([[-np.inf, np.inf]]), ink="second", dashes=(4.0, 3.0)
            )
        )
    marks += [
        Segments(
            title="95 % interval", x=np.column_stack([low, high])[whole],
            y=np.column_stack([rows, rows])[whole], ink="accent", width=2.0,
        ),
        Points(title="estimate", x=values, y=rows, ink="accent", symbol="square", size=9.0),
    ]  # fmt: skip
    return Chart(
        quantity,
        Axis(quantity, padding=0.06),
        Axis("", -0.6, len(names) - 0.4, padding=0.0, names=tuple(map(_shortened, names)), falling=True),
        tuple(marks),
        table=PlotTable.of({"reader": list(names), quantity: values, "95 % low": low, "95 % high": high}),
    )


def _shortened(name: str) -> str:
    return name if len(name) <= _SHORT else f"{name[: _SHORT - 1]}\N{HORIZONTAL ELLIPSIS}"
