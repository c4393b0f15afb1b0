"""Cost of labels on a question: accuracy against votes per task, and what stopping would have saved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from raterscope.algorithms.labels.data import LabelFusion, Labels
from raterscope.algorithms.labels.fusion import LabelPlan, run
from raterscope.algorithms.labels.vote_budget import (
    ENOUGH,
    FEWEST,
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
    fuse = partial(_fuse, plan or LabelPlan())
    curve = measure_vote_curve(question.labels, question.truth, fuse, settings, part(watch, 0.0, 0.4))
    return Cost(curve, replay_limits(question.labels, question.truth, fuse, part(watch, 0.4, 1.0)))


def _fuse(plan: LabelPlan, labels: Labels, watch: Watch) -> LabelFusion:
    return run(labels, plan, watch)


def enough_in_words(fusion: LabelFusion, limit: float = ENOUGH) -> str:
    """Describe how many tasks have enough votes, with the error that their posteriors state."""
    enough = has_enough(fusion, limit) & (fusion.votes > 0)
    total = int((fusion.votes > 0).sum())
    if not enough.any():
        return f"No task has enough votes ({FEWEST} and a posterior of {limit:g})."
    stated = 1 - float(fusion.posterior[enough].max(axis=1).mean())
    return (
        f"{int(enough.sum()):,} of {counted(total, 'task')} have enough votes ({FEWEST} and a posterior of "
        f"{limit:g}); their posteriors state an error of {percent(stated)}."
    )


def cost_in_words(cost: Cost, limit: float = ENOUGH) -> str:
    """Describe what stopping at a limit would have saved, and its error, measured or stated."""
    replay = next((each for each in cost.replays if each.limit == limit), None)
    if replay is None or not replay.votes:
        return ""
    saved = percent(1 - replay.used / replay.votes)
    words = f"Stopping at {limit:g} would have saved {saved} of the votes"
    if replay.judged:
        error = estimate(replay.error, replay.low, replay.high)
        return f"{words}. Error of the stopped tasks on {counted(replay.judged, 'gold task')}: {error}."
    return f"{words}. Without gold tasks its error is known by the model only, which may state too little."


def cost_rows(cost: Cost) -> Iterator[Sequence[object]]:
    """Return the rows of a table of both measurements."""
    curve = cost.curve
    for at, most in enumerate(curve.most.tolist()):
        values = (*curve.accuracy[at].tolist(), curve.judged, *curve.expected[at].tolist())
        yield ("curve", most, format_number(float(curve.votes[at])), "", *map(_number, values))
    for replay in cost.replays:
        accuracy = (1 - replay.error, 1 - replay.high, 1 - replay.low)
        values = (*accuracy, replay.judged, 1 - replay.stated, np.nan, np.nan)
        per_task = format_number(replay.used / max(replay.tasks, 1))
        yield ("stopped", f"{replay.limit:g}", per_task, replay.stopped, *map(_number, values))


def _number(value: float) -> object:
    return value if isinstance(value, int) else format_number(value)
