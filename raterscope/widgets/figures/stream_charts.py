"""What the plots of a stream of clicks hold: lines, scales and keys, and the same as a table."""

from __future__ import annotations

from dataclasses import dataclass

from raterscope.algorithms.clicks.history import StreamHistory
from raterscope.algorithms.clicks.stopping import StoppingSettings
from raterscope.figures.table import Column, PlotTable
from raterscope.widgets import theme
from raterscope.widgets.figures.stream_painter import BARS, DASHES, LINE, TICKS, KeyEntry, StreamLine
from raterscope.widgets.figures.stream_scale import ValueScale, count_scale, falling_scale, share_scale
from raterscope.widgets.figures.stream_words import StreamTruth

__all__ = ["StreamChart", "limit_of", "stream_charts", "stream_table"]


@dataclass(frozen=True, eq=False)
class StreamChart:
    """One of the plots: its lines, its scale and the samples of its key."""

    lines: tuple[StreamLine, ...]
    scale: ValueScale
    key: tuple[KeyEntry, ...]


def stream_charts(
    history: StreamHistory, stopping: StoppingSettings, outlook: str, truth: StreamTruth | None
) -> tuple[StreamChart, StreamChart, StreamChart]:
    """Give what was found, how good it is, and what would still change, in the theme's colours.

    Parameters
    ----------
    history : StreamHistory
    stopping : StoppingSettings
        When an answer is firm.
    outlook : {"share", "chance"}
        Of what the last plot is.
    truth : StreamTruth or None
    """
    return _found(history), _quality(history, truth), _outlook(history, stopping, outlook)


def limit_of(stopping: StoppingSettings, outlook: str) -> float | None:
    """Give the limit of an outlook, where the rule is about it."""
    return stopping.limit if stopping.rule == outlook else None


def stream_table(history: StreamHistory, truth: StreamTruth | None) -> PlotTable:
    """Give the numbers of all plots, a row a step."""
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
    columns["decisions to change as a share"] = history.share
    columns["chance of a change"] = history.chance
    columns["firm"] = history.firm
    return PlotTable.of(columns)


def _found(history: StreamHistory) -> StreamChart:
    look = theme.current()
    scale = count_scale(int(max(history.detections.max(), history.changed.max())))
    key = [KeyEntry(LINE, look.accent, "detections", "found")]
    if history.changed.any():
        key.append(KeyEntry(BARS, look.disputed, "decisions changed", "changed"))
    if history.refreshed.any():
        key.append(KeyEntry(TICKS, look.second, "fused again", "again"))
    return StreamChart((StreamLine(look.accent, "o", history.detections),), scale, tuple(key))


def _quality(history: StreamHistory, truth: StreamTruth | None) -> StreamChart:
    look = theme.current()
    both = (
        (look.accent, "o", history.sensitivity, None if truth is None else truth.sensitivity),
        (look.rejected, "s", history.precision, None if truth is None else truth.precision),
    )
    lines = tuple(
        StreamLine(colour, symbol, values[:, 0], (values[:, 1], values[:, 2]), true)
        for colour, symbol, values, true in both
    )
    key = [
        KeyEntry("o", look.accent, "expected sensitivity", "sensitivity"),
        KeyEntry("s", look.rejected, "expected precision", "precision"),
    ]
    if truth is not None:
        key.append(KeyEntry(DASHES, look.second, "in truth", "truth"))
    return StreamChart(lines, share_scale(), tuple(key))


def _outlook(history: StreamHistory, stopping: StoppingSettings, outlook: str) -> StreamChart:
    look, chance, limit = theme.current(), outlook == "chance", limit_of(stopping, outlook)
    values = history.chance if chance else history.share
    words, short = ("chance of a change", "chance") if chance else ("decisions to change", "changes")
    more = f"{stopping.more:,} more"
    key = [KeyEntry(LINE, look.accent, f"{words} with {more}", f"{short}, {more}")]
    if limit is not None:
        shown = f"{100 * limit:g} %"
        key.append(KeyEntry(DASHES, look.rejected, f"limit {shown}", shown))
    return StreamChart((StreamLine(look.accent, "o", values),), falling_scale(limit), tuple(key))
