"""Charts and sentences of values over steps, and charts of shares that add up to one.

Steps: convergence, rates over time, a replayed stream. Shares: stacked bars, a stacked area for many rows,
triangles of three.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.stopping import StoppingSettings, StreamHistory, count_recent_changes
from raterscope.figures.canvas import Canvas, Pen
from raterscope.figures.colours import ANNOTATOR_SYMBOLS, LIGHT, Symbol, Theme, colour_of
from raterscope.figures.description import (
    Axis,
    Chart,
    Column,
    Key,
    Line,
    Mark,
    Note,
    PlotTable,
    Points,
    Rectangles,
    Segments,
)
from raterscope.figures.layout import Box, elided
from raterscope.text import counted, estimate, figure, percent, with_minus

Floats = NDArray[np.floating]

INKS = ("accent", "rejected", "disputed", "second", "text")
DASHES: tuple[tuple[float, ...], ...] = ((), (6, 3), (2, 3), (8, 3, 2, 3), (1, 2))


@dataclass(frozen=True, eq=False)
class Trace:
    """The course of an iteration."""

    objective: Floats  # (T,)
    components: NDArray[np.integer] | None = None  # (T,): number of components after each iteration
    removed: NDArray[np.bool_] | None = None  # (T,): iterations in which the weakest component was removed
    best: int = -1  # iteration whose parameters were kept; -1 for none
    converged: bool | None = None


@dataclass(frozen=True, eq=False)
class CourseLine:
    """One method's line."""

    title: str
    method: int  # determines colour and dashes
    # across, down: (T,): steps and values
    across: Floats
    down: Floats
    # low, high: (T,): bounds of a band around the line
    low: Floats | None = None
    high: Floats | None = None


def convergence_chart(trace: Trace, title: str, label: str) -> Chart:
    """Describe the objective by iteration, and the fate of the components.

    Ticks mark iterations in which components vanished, crosses iterations in which the weakest was removed, a
    ring the iteration kept.

    `title`, `label`: titles of the chart and of its vertical axis.
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
        texts = [f"iteration {row + 1}", f"{label} {with_minus(f'{objective[row]:,.6g}')}"]
        if components is not None:
            texts.append(f"{components[row]} components")
        texts += ["weakest removed"] * bool(forced[row]) + ["kept"] * bool(best[row])
        return ", ".join(texts)

    marks: list[Mark] = [Line(title=label, x=iteration, y=objective, ink="accent", width=1.6, text_of=words)]
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
    ended = {None: "", True: "converged", False: "not converged"}[trace.converged]
    alive = f"{components[trace.best]} components" if components is not None and best.any() else ""
    return Chart(
        title,
        Axis("iteration", 1.0, max(2.0, len(iteration)), integral=True, padding=0.05),
        Axis(label, padding=0.05),
        tuple(marks),
        subtitle=", ".join(filter(None, (alive, ended))) if len(iteration) else "",
        table=PlotTable.of(columns),
    )


def course_chart(lines: Sequence[CourseLine], title: str, across: str, up: str, *, unit: bool) -> Chart:
    """Describe lines over steps, with bands.

    `title`, `across`, `up`: titles of the chart and of its axes. `unit`: whether values lie between 0 and 1.
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


ROUND = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
HIGHEST_FOOT = -3
"""Maximum power of ten at the lower end of an axis of shares."""
REFERENCE_DASHES = (4.0, 3.0)
EVERYWHERE = np.array([[-np.inf, np.inf]])
QUALITIES: tuple[tuple[str, str, Symbol], ...] = (
    ("sensitivity", "accent", "disc"),
    ("precision", "rejected", "square"),
)


def round_up(number: float) -> float:
    """Return the next round number, so that an axis does not change at every step: 23 becomes 25."""
    power = 10 ** math.floor(math.log10(max(number, 1)))
    candidates = (part * power for part in ROUND)
    return float(next(value for value in candidates if value >= number and value == int(value)))


def falling_axis(limit: float | None) -> Axis:
    """Describe an axis of shares by powers of ten, from 100 % down, that includes a limit."""
    bottom = HIGHEST_FOOT
    if limit is not None and limit > 0:
        bottom = min(bottom, math.floor(math.log10(limit)))
    ticks = tuple((10.0**power, f"{10.0 ** (power + 2):g} %") for power in range(bottom, 1))
    return Axis("", 10.0**bottom, 1.0, "log", 0.0, ticks=ticks)


@dataclass(frozen=True, eq=False)
class StreamTruth:
    """Sensitivity and precision after each of S steps, measured against ground truth; NaN if unknown."""

    # sensitivity, precision: (S,)
    sensitivity: NDArray[np.floating]
    precision: NDArray[np.floating]


def firm_from(history: StreamHistory) -> int | None:
    """Return the row from which an answer always met the stop rule; None if it does not at the end."""
    if not len(history) or not history.firm[-1]:
        return None
    loose = np.flatnonzero(~history.firm)
    return int(loose[-1]) + 1 if len(loose) else 0


def step_in_words(
    history: StreamHistory, row: int, stopping: StoppingSettings, truth: StreamTruth | None = None
) -> str:
    """Describe a step with all its numbers."""
    texts = [
        f"step {row + 1:,}: {counted(int(history.annotators[row]), 'annotator')}, "
        f"{counted(int(history.clicks[row]), 'click')}, "
        f"{counted(int(history.detections[row]), 'detection')}, "
        f"{counted(int(history.changed[row]), 'decision')} changed"
    ]
    for name in ("sensitivity", "precision"):
        values = getattr(history, name)[row]
        true = math.nan if truth is None else float(getattr(truth, name)[row])
        if math.isfinite(values[0]):
            measured = f", in truth {figure(true)}" if math.isfinite(true) else ""
            of = ", of what this crowd would find in the end" if name == "sensitivity" else ""
            texts.append(f"expected {name} {estimate(*values.tolist())}{of}{measured}")
    texts.append(outlook_in_words(history, row, stopping.more, "share"))
    low, high = history.interval[row].tolist()
    if math.isfinite(high):
        texts.append(f"95 % interval {low:,.0f} to {high:,.0f} changes")
    texts.append(outlook_in_words(history, row, stopping.more, "chance"))
    if history.refreshed[row]:
        texts.append("all clicks fused again")
    texts.append("stop rule met" if history.firm[row] else "stop rule not met")
    return "; ".join(part for part in texts if part)


def outlook_in_words(history: StreamHistory, row: int, more: int, rule: str) -> str:
    """Describe the changes expected from more annotators; empty if unknown.

    `rule`: "share" describes the number of changed decisions, "chance" the probability of any change.
    """
    with_more = f"with {more:,} more"
    if rule == "chance":
        chance = float(history.chance[row])
        return f"{chance_in_words(chance)} chance of a change {with_more}" if math.isfinite(chance) else ""
    expected = float(history.expected[row])
    if not math.isfinite(expected):
        return ""
    number = "under 0.1" if 0 < expected < 0.1 else f"{expected:.1f}" if expected < 10 else f"{expected:,.0f}"
    share = f" ({chance_in_words(float(history.share[row]))})" if history.detections[row] else ""
    return f"{more:,} more: {number} changes expected{share}"


def state_in_words(history: StreamHistory, row: int, stopping: StoppingSettings) -> tuple[str, str]:
    """Describe an answer after a step, and its recent changes as counted by the stop rule."""
    annotators, detections = int(history.annotators[row]), int(history.detections[row])
    if stopping.rule == "share":
        late = count_recent_changes(history, stopping.more, row + 1)
        share = f" ({chance_in_words(late / detections)})" if 0 < late <= detections else ""
        text = f"last {stopping.more:,}: {counted(late, 'change')}{share}"
    else:
        changed = history.changed[max(row + 1 - stopping.unchanged, 0) : row + 1]
        over = f"in {len(changed):,} steps" if len(changed) > 1 else "with the last step"
        text = f"{counted(int(changed.sum()), 'decision')} changed {over}"
    return f"{counted(annotators, 'annotator')}, {counted(detections, 'detection')}", text


def chance_in_words(share: float) -> str:
    """Format a probability as a percentage, 0 or 100 % only if it is exact: "12 %", "under 1 %"."""
    if 0 < share < 0.01:
        return "under 1 %"
    if 0.99 < share < 1:
        return "over 99 %"
    return percent(share)


def stream_table(history: StreamHistory, truth: StreamTruth | None) -> PlotTable:
    """Return the numbers of all plots, one row per step."""
    columns: dict[str, Column] = {
        "annotators": history.annotators,
        "clicks": history.clicks,
        "detections": history.detections,
        "decisions changed": history.changed,
        "fused again": history.refreshed,
    }
    for name in ("sensitivity", "precision"):
        estimates = getattr(history, name).T
        ends = zip(("expected", "low", "high"), estimates, strict=True)
        columns.update({f"{name} {end}": values for end, values in ends})
        if truth is not None:
            columns[f"{name} in truth"] = getattr(truth, name)
    columns["decisions to change"] = history.expected
    columns["decisions to change low"], columns["decisions to change high"] = history.interval.T
    columns["decisions to change as a share"] = history.share
    columns["chance of a change"] = history.chance
    columns["stop rule met"] = history.firm
    return PlotTable.of(columns)


def stream_charts(
    history: StreamHistory,
    stopping: StoppingSettings,
    outlook: str,
    truth: StreamTruth | None,
    x: NDArray[np.float64],
    axis: Axis,
) -> tuple[Chart, Chart, Chart]:
    """Describe the detections, their accuracy, and the expected changes.

    `stopping`: stop rule. `outlook`: "share" or "chance", quantity of the last chart. `x`: (S,), position of
    each step. `axis`: axis of the positions.
    """
    return (
        _detections_chart(history, x, axis), _quality(history, truth, x, axis),
        _outlook(history, stopping, outlook, x, axis),
    )  # fmt: skip


def _detections_chart(history: StreamHistory, x: NDArray[np.float64], axis: Axis) -> Chart:
    top = round_up(max(int(max(history.detections.max(), history.changed.max())), 2))
    keys = [Key("detections", "accent", short="found")]
    changed, refreshed = history.changed > 0, history.refreshed
    marks: list[Mark] = [Line(x=x, y=history.detections, width=1.6)]
    if changed.any():
        keys.append(Key("decisions changed", "disputed", symbol="square", line=False, short="changed"))
        half = max(0.0015 * (axis.high or 1.0), 0.3 * float(x[-1]) / len(x))
        at_change = x[changed]
        marks.append(
            Rectangles(
                left=at_change - half, right=at_change + half, bottom=np.zeros(len(at_change)),
                top=history.changed[changed], inks=("disputed",), pointable=False,
            )
        )  # fmt: skip
    if refreshed.any():
        keys.append(Key("fused again", "second", symbol="tick", line=False, short="again"))
        y = np.full(int(refreshed.sum()), -np.inf)
        ticks = Points(x=x[refreshed], y=y, symbol="tick", size=6.0, width=1.0, ink="second", pointable=False)
        marks.append(ticks)
    y_axis = Axis("", 0.0, top, padding=0.0, integral=True)
    return Chart("", axis, y_axis, tuple(marks), tuple(keys), legend_at="above")


def _quality(history: StreamHistory, truth: StreamTruth | None, x: NDArray[np.float64], axis: Axis) -> Chart:
    marks: list[Mark] = []
    for name, ink, symbol in QUALITIES:
        middle, low, high = getattr(history, name).T
        marks.append(Line(x=x, y=middle, low=low, high=high, ink=ink, symbol=symbol, width=1.6))
        if truth is not None:
            y = getattr(truth, name)
            marks.append(Line(x=x, y=y, ink=ink, width=1.2, dashes=REFERENCE_DASHES, pointable=False))
    keys = [Key(f"expected {name}", ink, symbol=symbol, short=name) for name, ink, symbol in QUALITIES]
    if truth is not None:
        keys.append(Key("in truth", "second", REFERENCE_DASHES, short="truth"))
    return Chart("", axis, Axis("", 0.0, 1.0, padding=0.0), tuple(marks), tuple(keys), legend_at="above")


def _outlook(
    history: StreamHistory, stopping: StoppingSettings, outlook: str, x: NDArray[np.float64], axis: Axis
) -> Chart:
    limit = stopping.limit if stopping.rule == outlook else None
    y_axis = falling_axis(limit)
    lowest = y_axis.low or 0.0
    values = np.clip(history.chance if outlook == "chance" else history.share, lowest, 1.0)
    marks: list[Mark] = [Line(x=x, y=values, width=1.6)]
    words, short = (
        ("chance of a change", "chance") if outlook == "chance" else ("decisions to change", "changes")
    )
    more = f"{stopping.more:,} more"
    keys = [Key(f"{words} with {more}", "accent", short=f"{short}, {more}")]
    notes: tuple[Note, ...] = ()
    if limit is not None:
        text = f"{100 * limit:g} %"
        keys.append(Key(f"limit {text}", "rejected", REFERENCE_DASHES, short=text))
        y = np.full((1, 2), max(limit, lowest))
        marks.append(Segments(x=EVERYWHERE, y=y, ink="rejected", width=1.2, dashes=REFERENCE_DASHES))
    edges = np.flatnonzero(np.diff(history.firm, prepend=False, append=False)).reshape(-1, 2)
    if len(edges):
        ends = np.column_stack([x[edges[:, 0]], x[np.minimum(edges[:, 1], len(x) - 1)]])
        ends[:, 1] = np.maximum(ends[:, 1], ends[:, 0] + 0.006 * (axis.high or 1.0))
        marks.append(Segments(x=ends, y=np.full(ends.shape, np.inf), ink="accent", width=3.0))
    row = firm_from(history)
    if row is not None:
        position = float(x[row])
        marks.append(Segments(x=np.full((1, 2), position), y=EVERYWHERE, ink="accent"))
        late = position > 0.6 * (axis.high or 1.0)
        # The line falls: there is space at the lower left, and at the upper right.
        text = f"enough from {position:,.0f}"
        notes = (
            Note(position, -np.inf, text, "accent", "end", (-5.0, -9.0))
            if late
            else Note(position, np.inf, text, "accent", "start", (5.0, 11.0)),
        )
    return Chart("", axis, y_axis, tuple(marks), tuple(keys), notes, legend_at="above")


MIN_ROWS = 6
"""Minimum number of rows that a chart has space for, so that few bars are not too thick."""
HALF = 0.32
DIMMED = 0.3
MIN_SHARE = 0.03
"""Minimum share of the rows for an area to contain its number."""


def share_bars(
    shares: Floats,
    names: Sequence[str],
    communities: Sequence[str],
    selected: int | None = None,
    inks: Sequence[str] = (),
) -> Chart:
    """Describe one bar per row, divided by its shares.

    `shares`: (R, C), rows add up to 1, or are 0 where an annotator belongs to no community. `names`,
    `communities`: R and C names. `selected`: the community that is not dimmed. `inks`: (C,), by default those
    of communities.
    """
    rows, ends = np.arange(len(names)), _ends(shares)
    marks = [
        Rectangles(
            title=name, left=ends[:, number], right=ends[:, number + 1], bottom=rows + HALF, top=rows - HALF,
            inks=(inks[number] if inks else f"community {number}",), opacity=_opacity(number, selected),
            gap=1.0,
            labels=[f"{number + 1}: {percent(share)}\n{number + 1}" for share in shares[:, number].tolist()],
        )
        for number, name in enumerate(communities)
    ]  # fmt: skip
    empty = np.flatnonzero(~np.asarray(shares).any(axis=1)).tolist()
    notes = tuple(Note(-np.inf, row, "in no community", shift=(6.0, 0.0)) for row in empty)
    padded = (*names, *[""] * (MIN_ROWS - len(names)))
    return Chart(
        "", Axis("", 0.0, 1.0, padding=0.0, hidden=True), Axis("", names=padded, falling=True),
        tuple(marks), () if inks else _keys(communities), notes, legend_at="above",
    )  # fmt: skip


def share_area(
    shares: Floats, names: Sequence[str], communities: Sequence[str], selected: int | None = None
) -> Chart:
    """Describe the shares as one area with a narrow column for each row; see `share_bars`."""
    columns, ends, main = np.arange(len(names)), _ends(shares), np.asarray(shares).argmax(axis=1)
    marks, notes = [], []
    for number, name in enumerate(communities):
        marks.append(
            Rectangles(
                title=name, left=columns, right=columns + 1, bottom=ends[:, number + 1],
                top=ends[:, number], inks=(f"community {number}",), opacity=_opacity(number, selected),
            )
        )  # fmt: skip
        own = np.flatnonzero(main == number)
        if len(own) >= MIN_SHARE * len(names):
            middle = int(own[len(own) // 2])
            y = float(ends[middle, number : number + 2].mean())
            notes.append(Note(middle + 0.5, y, str(number + 1), "window", "middle"))
    return Chart(
        "", Axis("", 0.0, float(len(names)), padding=0.0, hidden=True),
        Axis("", 0.0, 1.0, padding=0.0, falling=True, hidden=True),
        tuple(marks), _keys(communities), tuple(notes), legend_at="above",
    )  # fmt: skip


def _ends(shares: Floats) -> Floats:
    return np.hstack([np.zeros((len(shares), 1)), np.cumsum(shares, axis=1)])


def _opacity(number: int, selected: int | None) -> float:
    return 1.0 if selected is None or number == selected else DIMMED


def _keys(communities: Sequence[str]) -> tuple[Key, ...]:
    return tuple(
        Key(
            f"{number + 1} {name}", f"community {number}", line=False, short=str(number + 1),
            symbol=ANNOTATOR_SYMBOLS[number % len(ANNOTATOR_SYMBOLS)],
        )
        for number, name in enumerate(communities)
    )  # fmt: skip


HEIGHT = math.sqrt(3) / 2
"""Height of an equilateral triangle with sides of 1."""
SIDE, TOP, BOTTOM = 380.0, 34.0, 36.0
"""Side of a triangle on paper, and margins above and below it, in pixels."""
LETTERS, SMALL = 17.0, 13.0
NAME = 180.0
NEXT = ((0, 1, 2), (1, 2, 0), (2, 0, 1))


@dataclass(frozen=True, eq=False)
class TernaryPoint:
    """A symbol in a triangle."""

    shares: NDArray[np.float64]  # (3,): adding up to 1
    ink: str
    radius: float = 5.0  # pixels
    text: str = ""  # beside it
    symbol: Symbol = "disc"
    opacity: float = 0.85


@dataclass(frozen=True, eq=False)
class TernaryPath:
    """A path in a triangle."""

    shares: NDArray[np.float64]  # (S, 3)
    ink: str
    width: float = 1.6


@dataclass(frozen=True, eq=False)
class TernaryChart:
    """A ternary chart: near a corner, the share of that corner is large."""

    corners: tuple[str, str, str]  # tuple of three names: lower left, top, lower right
    points: Sequence[TernaryPoint] = ()
    paths: Sequence[TernaryPath] = ()  # drawn below the points
    # width, height: on paper, pixels
    width: int = round(SIDE + NAME)
    height: int = round(SIDE * HEIGHT + TOP + BOTTOM)

    def draw(self, canvas: Canvas) -> None:
        """Draw the chart at its size on paper, at the upper left."""
        left = (self.width - SIDE) / 2
        box = Box(left, TOP, left + SIDE, TOP + SIDE * HEIGHT)
        self.draw_in(canvas, box, LIGHT, LETTERS, SMALL)

    def draw_in(self, canvas: Canvas, box: Box, palette: Theme, letters: float, small: float) -> None:
        """Draw the chart as large as a box allows; the corners' names are outside of the box."""
        corners = corners_in(box)
        draw_triangle(canvas, corners, self.corners, palette, letters)
        for path in self.paths:
            if len(path.shares) > 1:
                canvas.line(pixels_of(corners, path.shares), Pen(colour_of(path.ink, palette), path.width))
        for point in sorted(self.points, key=lambda point: -point.radius):
            edge = Pen(palette.surface, 1.0, (), point.opacity)
            centre, size = pixels_of(corners, point.shares)[None], np.array([2 * point.radius])
            canvas.symbols(centre, point.symbol, size, edge, colour_of(point.ink, palette))
        for point in self.points:
            x, y = pixels_of(corners, point.shares).tolist()
            canvas.text((x + point.radius + 4, y), point.text, palette.second, small, "start")


def corners_in(box: Box) -> NDArray[np.float64]:
    """Return the largest triangle in a box: lower left, top and lower right, (3, 2) pixels."""
    side = max(min(box.width, box.height / HEIGHT), 1.0)
    left = box.left + (box.width - side) / 2
    low = box.top + (box.height + side * HEIGHT) / 2
    return np.array([(left, low), (left + side / 2, low - side * HEIGHT), (left + side, low)])


def pixels_of(corners: NDArray[np.float64], shares: NDArray[np.floating]) -> NDArray[np.float64]:
    """Convert shares, (..., 3), to pixels in a triangle, (..., 2)."""
    values = np.asarray(shares, dtype=np.float64)
    return np.asarray((values / values.sum(axis=-1, keepdims=True)) @ corners)


def draw_triangle(
    canvas: Canvas, corners: NDArray[np.float64], names: Sequence[str], palette: Theme, letters: float
) -> None:
    """Draw the frame, a grid of quarters, and the names of the corners."""
    grid = Pen(palette.line, 1.0, (), 0.6)
    for share in (0.25, 0.5, 0.75):
        for first, second, third in NEXT:
            ends = corners[[first, third]] + (corners[second] - corners[[first, third]]) * share
            canvas.line(ends, grid)
    canvas.line(corners[[0, 1, 2, 0]], Pen(palette.third, 1.2))
    room = max(min(NAME, float(corners[2, 0] - corners[0, 0]) - letters / 2), 12.0)
    for (x, y), name, above in zip(corners.tolist(), names, (False, True, False), strict=True):
        short = elided(name, room, lambda text: canvas.width_of(text, letters))
        x = max(x, canvas.width_of(short, letters) / 2)
        canvas.text((x, y + (-1.0 if above else 1.05) * letters), short, palette.second, letters)
