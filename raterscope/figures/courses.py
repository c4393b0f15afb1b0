"""Charts of what changes step by step: convergence of a fusion, and rates over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.figures.description import Axis, Chart, Key, Line, Mark, Points
from raterscope.figures.symbols import Symbol
from raterscope.figures.table import Column, PlotTable

__all__ = ["CourseLine", "Trace", "convergence_chart", "course_chart"]

Floats = NDArray[np.floating]

INKS = ("accent", "rejected", "disputed", "second", "text")
DASHES: tuple[tuple[float, ...], ...] = ((), (6, 3), (2, 3), (8, 3, 2, 3), (1, 2))


@dataclass(frozen=True, eq=False)
class Trace:
    """The course of an iteration.

    Attributes
    ----------
    objective : (T,) float
    components : (T,) int, optional
        Alive after each iteration.
    removed : (T,) bool, optional
        Where the weakest was removed by force.
    best : int
        Iteration whose parameters were kept; -1 for none.
    converged : bool, optional
    """

    objective: Floats
    components: NDArray[np.integer] | None = None
    removed: NDArray[np.bool_] | None = None
    best: int = -1
    converged: bool | None = None


@dataclass(frozen=True, eq=False)
class CourseLine:
    """One method's line.

    Attributes
    ----------
    title : str
    method : int
        Gives colour and dashes.
    across, down : (T,) float
        Steps and values.
    low, high : (T,) float, optional
        Of a band about it.
    """

    title: str
    method: int
    across: Floats
    down: Floats
    low: Floats | None = None
    high: Floats | None = None


def convergence_chart(trace: Trace, title: str, label: str) -> Chart:
    """Describe the objective by iteration, with what became of the components.

    Ticks stand where components died out, crosses where the weakest was removed, a ring at the one kept.

    Parameters
    ----------
    trace : Trace
    title, label : str
        Of the chart and of its vertical axis.
    """
    objective = np.asarray(trace.objective, dtype=float)
    iteration = np.arange(1, len(objective) + 1)
    components = trace.components
    if components is None or len(components) != len(iteration):
        components = None
    removed = trace.removed
    forced = (
        np.zeros(len(iteration), bool)
        if removed is None or len(removed) != len(iteration)
        else np.asarray(removed, bool)
    )
    fewer = np.zeros(len(iteration), dtype=bool)
    if components is not None:
        fewer[1:] = np.diff(components) < 0
    fewer &= ~forced
    best = iteration == trace.best + 1

    def words(row: int) -> str:
        texts = [f"iteration {row + 1}", f"{label} {objective[row]:,.6g}".replace("-", "\N{MINUS SIGN}")]
        if components is not None:
            texts.append(f"{components[row]} components")
        texts += ["weakest removed"] * bool(forced[row]) + ["kept"] * bool(best[row])
        return ", ".join(texts)

    marks: list[Mark] = [Line(title=label, x=iteration, y=objective, ink="accent", width=1.6, words=words)]
    shapes: tuple[tuple[NDArray[np.bool_], Symbol, float, float, str], ...] = (
        (fewer, "tick", 9.0, 1.4, "rejected"),
        (forced, "cross", 8.0, 1.6, "rejected"),
        (best, "disc", 11.0, 1.6, "text"),
    )
    marks += [
        Points(
            x=iteration[rows], y=objective[rows], symbol=symbol, size=size, width=width, ink=ink,
            filled=False, pointable=False,
        )
        for rows, symbol, size, width, ink in shapes
    ]  # fmt: skip
    columns: dict[str, Column] = {"iteration": iteration, label: objective}
    if components is not None:
        columns["components"] = components
    if removed is not None:
        columns["weakest removed"] = forced
    if best.any():
        columns["kept"] = best
    ended = {None: "", True: "converged", False: "iterations ran out"}[trace.converged]
    alive = f"{components[trace.best]} components" if components is not None and best.any() else ""
    return Chart(
        title,
        Axis("iteration", 1.0, max(2.0, len(iteration)), whole=True, padding=0.02),
        Axis(label, padding=0.05),
        tuple(marks),
        aside=", ".join(filter(None, (alive, ended))) if len(iteration) else "",
        table=PlotTable.of(columns),
    )


def course_chart(lines: Sequence[CourseLine], title: str, across: str, up: str, *, unit: bool) -> Chart:
    """Describe lines over steps, with bands.

    Parameters
    ----------
    lines : sequence of CourseLine
    title, across, up : str
        Of the chart and of its axes.
    unit : bool
        Whether values lie between 0 and 1.
    """
    marks: list[Mark] = []
    keys = []
    for line in lines:
        ink, dashes = INKS[line.method % len(INKS)], DASHES[line.method % len(DASHES)]
        marks.append(
            Line(
                title=line.title,
                x=line.across,
                y=line.down,
                low=line.low,
                high=line.high,
                ink=ink,
                dashes=dashes,
            )
        )
        keys.append(Key(line.title, ink, dashes))
    columns: dict[str, Column] = {
        "method": [line.title for line in lines for _ in line.across],
        across: np.concatenate([line.across for line in lines]) if lines else np.empty(0),
        up: np.concatenate([line.down for line in lines]) if lines else np.empty(0),
    }
    for name in ("low", "high"):
        unknown = [np.full(len(line.across), np.nan) for line in lines]
        pairs = zip([getattr(line, name) for line in lines], unknown, strict=True)
        parts = [none if end is None else end for end, none in pairs]
        columns[name] = np.concatenate(parts) if parts else np.empty(0)
    y = Axis(up, 0.0, 1.0, padding=0.03) if unit else Axis(up, padding=0.05)
    return Chart(title, Axis(across, padding=0.02), y, tuple(marks), tuple(keys), table=PlotTable.of(columns))
