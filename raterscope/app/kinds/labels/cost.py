"""Cost of labels on a question: accuracy against votes per task, and what stopping would have saved."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from raterscope.algorithms.annotators.proportions import wilson
from raterscope.algorithms.labels.data import OPEN, ClassArray, LabelFusion
from raterscope.algorithms.labels.fusion import LabelPlan, run_with_programs
from raterscope.algorithms.labels.vote_budget import (
    ENOUGH,
    FEWEST,
    LEAST_CURVE,
    CostSettings,
    StopReplay,
    VoteCurve,
    has_enough,
    measure_vote_curve,
    replay_limits,
)
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import counted
from raterscope.app.formats.output_files import format_number
from raterscope.app.kinds.labels.runs import Question
from raterscope.text import estimate, percent

COST = (
    "what", "limit", "votes_per_task", "tasks", "accuracy", "accuracy_low", "accuracy_high", "gold_tasks",
    "expected_accuracy", "expected_low", "expected_high",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Cost:
    """Both measurements of a question."""

    curve: VoteCurve
    replays: tuple[StopReplay, ...]


def measure_cost(
    question: Question, plan: LabelPlan | None, settings: CostSettings | None = None, watch: Watch = silent
) -> Cost:
    """Measure a question with the plan of its run, by default the pooled consensus."""
    fuse = partial(run_with_programs, plan or LabelPlan(), question.programs)
    curve = measure_vote_curve(question.labels, question.truth, fuse, settings, part(watch, 0.0, 0.4))
    return Cost(curve, replay_limits(question.labels, question.truth, fuse, part(watch, 0.4, 1.0)))


def enough_in_words(fusion: LabelFusion, truth: ClassArray, limit: float = ENOUGH) -> str:
    """Describe how many tasks have enough votes, with their error on gold tasks.

    `truth`: (N,), classes of gold tasks that were not held fixed, `OPEN` elsewhere.
    """
    enough = has_enough(fusion, limit) & (fusion.votes > 0)
    total = int((fusion.votes > 0).sum())
    if not enough.any():
        return f"No task has enough votes ({FEWEST} and a posterior of {limit:g})."
    words = f"{int(enough.sum()):,} of {counted(total, 'task')} have enough votes ({FEWEST} and a posterior"
    gold = enough & (truth != OPEN)
    wrong, judged = int((fusion.label()[gold] != truth[gold]).sum()), int(gold.sum())
    return f"{words} of {limit:g}). {_error_in_words(wrong, judged, *wilson(wrong, judged))}"


def cost_in_words(cost: Cost, limit: float = ENOUGH) -> str:
    """Describe what stopping at a limit would have saved, its error, and the gain of more votes."""
    sentences = []
    replay = next((each for each in cost.replays if each.limit == limit), None)
    if replay is not None and replay.votes:
        saved = percent(1 - replay.used / replay.votes)
        sentences.append(f"Stopping at {limit:g} would have saved {saved} of the votes.")
        wrong = round(replay.error * replay.judged) if replay.judged else 0
        sentences.append(_error_in_words(wrong, replay.judged, replay.low, replay.high))
    for votes, gain in zip(("One more vote per task", "Twice the votes"), cost.curve.gains, strict=False):
        points = estimate(100 * gain.gain, 100 * gain.low, 100 * gain.high)
        sentences.append(f"{votes} would gain about {points} percentage points of accuracy.")
    if not cost.curve.gains:
        sentences.append(f"With fewer than {LEAST_CURVE} votes per task the gain of more is not known.")
    return " ".join(sentences)


def _error_in_words(wrong: int, judged: int, low: float, high: float) -> str:
    if not judged:
        return (
            "Without gold tasks among them their error is not known: votes do not reveal mistakes that "
            "annotators share. G marks a decided task as gold."
        )
    return f"Their error on {counted(judged, 'gold task')}: {estimate(wrong / judged, low, high)}."


def cost_rows(cost: Cost) -> Iterator[Sequence[object]]:
    """Return the rows of a table of both measurements, and of the gain of more votes."""
    curve = cost.curve
    for at, most in enumerate(curve.most.tolist()):
        values = (*_on_gold(curve.judged, curve.accuracy[at].tolist()), *curve.expected[at].tolist())
        yield ("curve", most, format_number(float(curve.votes[at])), "", *map(_number, values))
    for replay in cost.replays:
        accuracy = (1 - replay.error, 1 - replay.high, 1 - replay.low)
        values = (*_on_gold(replay.judged, accuracy), np.nan, np.nan, np.nan)
        per_task = format_number(replay.used / max(replay.tasks, 1))
        yield ("stopped", f"{replay.limit:g}", per_task, replay.stopped, *map(_number, values))
    for gain in curve.gains:
        values = (np.nan, np.nan, np.nan, curve.judged, gain.gain, gain.low, gain.high)
        yield ("gain", f"+{gain.more:g}", format_number(float(curve.votes[-1]) + gain.more), "",
               *map(_number, values))  # fmt: skip


def _on_gold(judged: int, accuracy: Sequence[float]) -> tuple[float | str, ...]:
    """Return the accuracy on gold tasks with its interval, and the number of these tasks."""
    return (*accuracy, judged) if judged else ("not known", math.nan, math.nan, 0)


def _number(value: float | str) -> object:
    return format_number(value) if isinstance(value, float) else value
