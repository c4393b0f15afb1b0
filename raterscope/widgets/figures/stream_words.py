"""What is said of a step of a stream of clicks, in the tooltips and beside the image."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.history import StreamHistory
from raterscope.algorithms.clicks.stopping import StoppingSettings, changed_of_late
from raterscope.text.numbers import count, estimate, figure, percent

__all__ = [
    "StreamTruth",
    "chance_in_words",
    "firm_from",
    "outlook_in_words",
    "state_in_words",
    "step_in_words",
]


@dataclass(frozen=True, eq=False)
class StreamTruth:
    """Sensitivity and precision after each of S steps, measured against ground truth; NaN where not known.

    Attributes
    ----------
    sensitivity, precision : (S,) float
    """

    sensitivity: NDArray[np.floating]
    precision: NDArray[np.floating]


def firm_from(history: StreamHistory) -> int | None:
    """Give the row from which an answer stayed firm; None where it is not firm at the end."""
    if not len(history) or not history.firm[-1]:
        return None
    loose = np.flatnonzero(~history.firm)
    return int(loose[-1]) + 1 if len(loose) else 0


def step_in_words(
    history: StreamHistory, row: int, stopping: StoppingSettings, truth: StreamTruth | None = None
) -> str:
    """Say a step with all its figures."""
    said = [
        f"step {row + 1:,}: {count(int(history.annotators[row]), 'annotator')}, "
        f"{count(int(history.clicks[row]), 'click')}, {count(int(history.detections[row]), 'detection')}, "
        f"{count(int(history.changed[row]), 'decision')} changed"
    ]
    for name in ("sensitivity", "precision"):
        values = getattr(history, name)[row]
        true = math.nan if truth is None else float(getattr(truth, name)[row])
        if math.isfinite(values[0]):
            measured = f", in truth {figure(true)}" if math.isfinite(true) else ""
            of = ", of what this crowd would find in the end" if name == "sensitivity" else ""
            said.append(f"expected {name} {estimate(*values.tolist())}{of}{measured}")
    said += [outlook_in_words(history, row, stopping.more, rule) for rule in ("share", "chance")]
    if history.refreshed[row]:
        said.append("all clicks fused again")
    said.append("stop rule met" if history.firm[row] else "stop rule not met")
    return "; ".join(part for part in said if part)


def outlook_in_words(history: StreamHistory, row: int, more: int, rule: str) -> str:
    """Say what so many more annotators would change; nothing where it is not known.

    Parameters
    ----------
    history : StreamHistory
    row : int
    more : int
    rule : {"share", "chance"}
        Whether how many decisions, or the chance that any does.
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
    """Say what an answer is after a step, and what changed of late, as the stop rule counts it."""
    people, found = int(history.annotators[row]), int(history.detections[row])
    if stopping.rule == "share":
        late = changed_of_late(history, stopping.more, row + 1)
        share = f" ({chance_in_words(late / found)})" if 0 < late <= found else ""
        said = f"last {stopping.more:,}: {count(late, 'change')}{share}"
    else:
        changed = history.changed[max(row + 1 - stopping.unchanged, 0) : row + 1]
        over = f"in {len(changed):,} steps" if len(changed) > 1 else "with the last step"
        said = f"{count(int(changed.sum()), 'decision')} changed {over}"
    return f"{count(people, 'annotator')}, {count(found, 'detection')}", said


def chance_in_words(share: float) -> str:
    """Write a chance as a percentage, never as none or certain where it is neither: "12 %", "under 1 %"."""
    if 0 < share < 0.01:
        return "under 1 %"
    if 0.99 < share < 1:
        return "over 99 %"
    return percent(share)
