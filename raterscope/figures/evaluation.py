"""Charts of results against ground truth: ROC, calibration, crowd size, and methods as box plots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterscope.algorithms.annotators.agreement_statistics import Coefficient, limits_of_agreement
from raterscope.algorithms.masks.method_comparison import quartiles
from raterscope.figures.colours import ANNOTATOR_COLOURS
from raterscope.figures.description import (
    Axis,
    Chart,
    Key,
    Line,
    Mark,
    PlotTable,
    Points,
    Rectangles,
    Segments,
)
from raterscope.text import counted, figure

if TYPE_CHECKING:
    from raterscope.algorithms.clicks.crowd_size import CrowdSizeCurve

Floats = NDArray[np.floating]

DASHES: tuple[tuple[float, ...], ...] = ((), (5, 3), (1.5, 2), (6, 2, 1.5, 2))
CURVE_NAMES = {"roc": "ROC", "precision-recall": "Precision-recall"}
CURVE_AXES = {"roc": ("false positive rate", "sensitivity"), "precision-recall": ("sensitivity", "precision")}
INKS = ("accent", "rejected", "disputed", "second")
MORE_INKS = ("community 2", "community 4", "community 6")
"""Colours of the fifth and later curves; they differ from the first four."""
DIAGONAL = Segments(
    x=np.array([[0.0, 1.0]]), y=np.array([[0.0, 1.0]]), ink="third", dashes=(4, 4), stretch=False
)
HALF_BOX = 0.28
LEAST = 1e-4
"""Minimum value on a logarithmic axis."""
MAX_CHARACTERS = 24


@dataclass(frozen=True, eq=False)
class Curve:
    """One run's curves."""

    title: str
    # false_positive_rate, true_positive_rate: (K,): the ROC
    false_positive_rate: Floats
    true_positive_rate: Floats
    # recall, precision: (L,): empty if only the ROC is known
    recall: Floats
    precision: Floats
    area: float = float("nan")  # area under the ROC; NaN if unknown
    # (K,): descending posterior threshold of each point, and of each point of `recall`. Empty if no threshold
    # can be chosen.
    threshold: Floats = field(default_factory=lambda: np.empty(0))
    # subject of the curve, if there are several: "frog, 12 tasks". Curves of one subject are drawn together.
    of: str = ""


@dataclass(frozen=True, eq=False)
class CalibrationLine:
    """One method's posteriors in bins."""

    title: str
    # posterior, share: (B,): mean posterior and share of right answers of each bin; NaN for an empty bin
    posterior: Floats
    share: Floats
    count: NDArray[np.integer]  # (B,)
    error: float  # expected calibration error
    # low, high: (B,): bounds of the interval of `share`
    low: Floats | None = None
    high: Floats | None = None


@dataclass(frozen=True, eq=False)
class BoxView:
    """One box."""

    name: str
    values: NDArray[np.float64]  # (V,): finite, at least one
    faint: bool = False  # whether it is a rater, not a method
    starred: bool = False  # whether it differs significantly from the baseline


def curve_points(curve: Curve, kind: str) -> tuple[Floats, Floats]:
    """Return the points of a curve: "roc" or "precision-recall"."""
    if kind == "roc":
        return curve.false_positive_rate, curve.true_positive_rate
    return curve.recall, curve.precision


def curve_chart(curves: Sequence[Curve], kind: str, of: str = "") -> Chart:
    """Describe curves of runs; they differ by colour and dashes.

    `kind`: "roc" or "precision-recall". `of`: subject of the curves, for the title.
    """
    inks = INKS if len(curves) <= len(INKS) else (*INKS, *MORE_INKS)
    across, up = CURVE_AXES[kind]
    marks: list[Mark] = [DIAGONAL] if kind == "roc" else []
    keys = []
    for number, curve in enumerate(curves):
        x, y = curve_points(curve, kind)
        # The second curve of each colour has other dashes than the first.
        dashes = DASHES[(number % len(inks) + number // len(inks)) % len(DASHES)]
        title, ink = curve.title, inks[number % len(inks)]
        if kind == "roc" and len(curves) > 1 and np.isfinite(curve.area):
            title += f" {curve.area:.3f}"
        keys.append(Key(title, ink, dashes))
        marks.append(Line(title=curve.title, x=x, y=y, ink=ink, dashes=dashes))
    points = [curve_points(curve, kind) for curve in curves]
    titles = [curve.title for curve, (x, _) in zip(curves, points, strict=True) for _ in x]
    columns: dict[str, Any] = {
        "curve": titles,
        across: _together([x for x, _ in points]),
        up: _together([y for _, y in points]),
    }
    name = CURVE_NAMES[kind]
    return Chart(
        f"{name}, {of}" if of else name,
        Axis(across, 0.0, 1.0, padding=0.02),
        Axis(up, 0.0, 1.0, padding=0.03),
        tuple(marks),
        tuple(keys),
        subtitle=_areas(curves) if kind == "roc" else "",
        table=PlotTable.of(columns),
    )


def calibration_chart(
    lines: Sequence[CalibrationLine], axes: tuple[str, str] = ("posterior", "share right")
) -> Chart:
    """Describe the calibration of posteriors: a dot for each bin, larger for more cases.

    `lines`: the most important line first.
    """
    marks: list[Mark] = [DIAGONAL]
    keys = []
    filled = [np.flatnonzero(line.count > 0) for line in lines]
    for number, (line, bins) in enumerate(zip(lines, filled, strict=True)):
        ink, dashes = ("accent", "second")[number % 2], DASHES[number % len(DASHES)]
        keys.append(Key(line.title, ink, dashes, symbol="disc"))
        low, high = (None if end is None else end[bins] for end in (line.low, line.high))
        size = 4 + 8 * np.sqrt(line.count[bins] / max(int(line.count.max(initial=0)), 1))
        marks.append(
            Line(
                title=line.title,
                x=line.posterior[bins],
                y=line.share[bins],
                ink=ink,
                dashes=dashes,
                dot=size,
                low=low,
                high=high,
                interval="bars",
                text_of=_bin_words(line, bins, axes),
            )
        )
    columns: dict[str, Any] = {
        "method": [line.title for line, bins in zip(lines, filled, strict=True) for _ in bins],
        axes[0]: _together([line.posterior[bins] for line, bins in zip(lines, filled, strict=True)]),
        axes[1]: _together([line.share[bins] for line, bins in zip(lines, filled, strict=True)]),
        "cases": _together([line.count[bins] for line, bins in zip(lines, filled, strict=True)]),
    }
    if any(line.low is not None for line in lines):
        for name in ("low", "high"):
            ends = [getattr(line, name) for line in lines]
            columns[f"95 % {name}"] = _together(
                [
                    np.full(len(bins), np.nan) if end is None else end[bins]
                    for end, bins in zip(ends, filled, strict=True)
                ]
            )
    return Chart(
        "Calibration",
        Axis(axes[0], 0.0, 1.0, padding=0.02),
        Axis(axes[1], 0.0, 1.0, padding=0.03),
        tuple(marks),
        tuple(keys),
        subtitle=f"error {lines[0].error:.2f}" if lines else "",
        table=PlotTable.of(columns),
    )


def crowd_size_chart(curves: Sequence[tuple[str, CrowdSizeCurve]], measure: str, title: str) -> Chart:
    """Describe means over random crowds, plus and minus one standard error.

    `curves`: curves with their names. `measure`: "sensitivity" or "precision".
    """
    marks: list[Mark] = []
    keys = []
    for number, (name, curve) in enumerate(curves):
        ink, dashes = ANNOTATOR_COLOURS[number % len(ANNOTATOR_COLOURS)], DASHES[number % 3]
        y, error = getattr(curve, measure), np.nan_to_num(getattr(curve, f"{measure}_error"))
        marks.append(
            Line(
                title=name,
                x=curve.annotators,
                y=y,
                low=y - error,
                high=y + error,
                interval="bars",
                ink=ink,
                dashes=dashes,
                dot=5.0,
            )
        )
        keys.append(Key(name, ink, dashes, symbol="disc"))
    drawn_curves = [curve for _, curve in curves]
    columns: dict[str, Any] = {
        "method": [curve.method for curve in drawn_curves for _ in curve.annotators],
        "annotators": _together([curve.annotators for curve in drawn_curves]),
        measure: _together([getattr(curve, measure) for curve in drawn_curves]),
        "standard error": _together([getattr(curve, f"{measure}_error") for curve in drawn_curves]),
    }
    draws = max((int(curve.draws.max(initial=0)) for curve in drawn_curves), default=0)
    return Chart(
        title,
        Axis("annotators", 0.0),
        Axis(measure, 0.0, 1.0),
        tuple(marks),
        tuple(keys),
        subtitle=counted(draws, "crowd") if drawn_curves else "",
        table=PlotTable.of(columns),
    )


def box_chart(
    boxes: Sequence[BoxView],
    title: str,
    unit: str,
    subtitle: str = "",
    *,
    across: str = "",
    logarithmic: bool = False,
) -> Chart:
    """Describe boxes from quartile to quartile with the median, whiskers, and all values as dots.

    `title`: quantity: "Dice against the truth". `unit`: empty for none. `subtitle`: number of cases: "8
    cases". `across`: title of the horizontal axis; empty if its names are self-explanatory. `logarithmic`:
    whether the axis is logarithmic.
    """
    marks: list[Mark] = []
    for position, box in enumerate(boxes):
        ink, values = "second" if box.faint else "accent", box.values
        if logarithmic:
            values = np.maximum(values, LEAST)
        if len(values) > 2:
            marks += _box(values, position, ink, logarithmic=logarithmic)
        marks.append(
            Points(
                title=box.name,
                x=np.full(len(values), float(position)),
                y=values,
                ink=ink,
                size=5.0,
                opacity=0.5,
            )
        )
    names = [box.name for box in boxes for _ in box.values]
    return Chart(
        title if boxes else "Methods",
        Axis(across, names=tuple(map(_short, boxes))),
        Axis(unit or title.partition(" ")[0], scale="log" if logarithmic else "linear", padding=0.06),
        tuple(marks),
        subtitle=subtitle if boxes else "",
        table=PlotTable.of({"method": names, title: _together([box.values for box in boxes])}),
    )


def reliability_chart(
    clicks: NDArray[np.integer], reliability: Floats, names: Sequence[str], excluded: NDArray[np.bool_]
) -> Chart:
    """Describe a dot for each annotator, and a cross for each excluded one.

    `clicks`, `reliability`, `names`, `excluded`: (R,), of each annotator.
    """

    def words_of(rows: NDArray[np.int64]) -> Callable[[int], str]:
        def words(index: int) -> str:
            row = rows[index]
            out = ", excluded" if excluded[row] else ""
            return (
                f"{names[row]}: {counted(int(clicks[row]), 'click')}, reliability {reliability[row]:.2f}{out}"
            )

        return words

    within, out = np.flatnonzero(~excluded), np.flatnonzero(excluded)
    marks = (
        Points(
            title="annotators",
            x=clicks[within],
            y=reliability[within],
            opacity=0.75,
            text_of=words_of(within),
        ),
        Points(x=clicks[out], y=reliability[out], ink="rejected", symbol="cross", text_of=words_of(out)),
    )
    table = PlotTable.of(
        {"annotator": list(names), "clicks": clicks, "reliability": reliability, "excluded": excluded}
    )
    return Chart(
        "Reliability / clicks",
        Axis("clicks", 0.0),
        Axis("reliability", 0.0, 1.0, padding=0.05),
        marks,
        subtitle=counted(len(clicks), "annotator") if len(clicks) else "",
        table=table,
    )


def _box(values: NDArray[np.float64], position: int, ink: str, *, logarithmic: bool) -> list[Mark]:
    five = np.array(quartiles(np.log10(values) if logarithmic else values))
    least, low, middle, high, most = (10.0**five if logarithmic else five).tolist()
    left, right = position - HALF_BOX, position + HALF_BOX
    edges = [[left, right], [position, position], [position, position]]
    return [
        Rectangles(
            left=np.array([left]),
            right=np.array([right]),
            bottom=np.array([low]),
            top=np.array([high]),
            inks=(ink,),
            filled=False,
            pointable=False,
        ),
        Segments(
            x=np.array(edges, dtype=float),
            y=np.array([[middle, middle], [least, low], [high, most]]),
            ink=ink,
            width=1.4,
        ),
    ]


def _short(box: BoxView) -> str:
    """Shorten a long name, and mark it with a star if it differs."""
    name = box.name if len(box.name) <= MAX_CHARACTERS else box.name[: MAX_CHARACTERS - 1] + "…"
    return name + ("*" if box.starred else "")


def _bin_words(line: CalibrationLine, bins: NDArray[np.int64], axes: tuple[str, str]) -> Callable[[int], str]:
    def words(index: int) -> str:
        row = bins[index]
        values = f"{axes[0]} {line.posterior[row]:.2f}, {axes[1]} {line.share[row]:.2f}"
        if line.low is not None and line.high is not None:
            values += f" ({line.low[row]:.2f} to {line.high[row]:.2f})"
        return f"{line.title}: {values}, {counted(int(line.count[row]), 'case')}"

    return words


def _areas(curves: Sequence[Curve]) -> str:
    """Return the area under the ROC, or the range of several: "area 0.951 to 0.984"."""
    known = [curve.area for curve in curves if np.isfinite(curve.area)]
    if not known:
        return ""
    ends = list(dict.fromkeys(f"{end:.3f}" for end in (min(known), max(known))))
    return f"area {' to '.join(ends)}"


def _together(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0)


_SHORT = 18


def bland_altman_chart(
    first: ArrayLike, second: ArrayLike, names: tuple[str, str], quantity: str, unit: str
) -> Chart:
    """Describe a Bland-Altman plot: differences over means, bias and limits with 95 % intervals.

    `first`, `second`: (n,), n >= 3 cases; differences are first minus second. `quantity`: measured quantity:
    "Volume".
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
        subtitle=f"{len(a):,} cases, bias {figure(limits.bias.value)}, limits {figure(limits.lower.value)} "
        f"to {figure(limits.upper.value)}{f' {unit}' if unit else ''}",
        table=PlotTable.of(table),
    )


def forest_chart(
    names: Sequence[str], coefficients: Sequence[Coefficient], quantity: str, reference: float | None = None
) -> Chart:
    """Describe a forest plot: a value with its 95 % interval for each reader, from top to bottom.

    `quantity`: title of the axis, with the unit. `reference`: value marked by a line, such as no bias.
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
