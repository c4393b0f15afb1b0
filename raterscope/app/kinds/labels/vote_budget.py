"""Vote budget of a question: cost of labels, and assignments of tasks to annotators.

The cost is accuracy by votes per task, and the votes that stopping would have saved. The study stores the
budget and the costs of annotators.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.annotators.statistics import wilson
from raterscope.algorithms.labels.active_learning import NextVotes
from raterscope.algorithms.labels.data import OPEN, ClassArray, LabelFusion, Labels
from raterscope.algorithms.labels.fusion import LabelPlan, run_with_programs
from raterscope.algorithms.labels.vote_budget import (
    ENOUGH,
    FEWEST,
    MIN_CURVE,
    BudgetSettings,
    Checked,
    CostSettings,
    Price,
    StopReplay,
    VoteCurve,
    assign_votes,
    count_errors,
    has_enough,
    measure_vote_curve,
    replay_limits,
)
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import SettingsError
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.output_files import format_number
from raterscope.app.formats.table_files import read_table
from raterscope.app.kinds.labels.runs import Question
from raterscope.app.study import Study
from raterscope.text import counted, estimate, percent

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


def enough_in_words(
    fusion: LabelFusion, truth: ClassArray, limit: float = ENOUGH, decided: ClassArray | None = None
) -> str:
    """Describe how many tasks have enough votes, with their error on gold tasks, or their expected error.

    `truth`: (N,), classes of gold tasks that were not held fixed, `OPEN` elsewhere. `decided`: (N,), classes,
    or from J on parents, that the expert decided since.
    """
    enough = has_enough(fusion, limit) & (fusion.votes > 0)
    total = int((fusion.votes > 0).sum())
    if not enough.any():
        return f"No task has enough votes ({FEWEST} and a posterior of {limit:g})."
    text = (
        f"{int(enough.sum()):,} of {counted(total, 'task')} have enough votes ({FEWEST} and a posterior of "
        f"{limit:g})."
    )
    gold = enough & (truth != OPEN)
    if not gold.any():
        enough &= fusion.known == OPEN
        if decided is not None:
            enough &= decided == OPEN
            is_class = (truth == OPEN) & (decided < len(fusion.classes))
            truth = np.where(is_class, decided, truth).astype(np.int16)
        sure = fusion.posterior[enough].max(axis=1, initial=0.0)
        errors = count_errors(fusion.algorithm, sure, Checked.by_truth(fusion, truth))
        counts = (errors.expected, errors.low, errors.high)
        share = estimate(*(count / max(errors.tasks, 1) for count in counts))
        return f"{text} Their expected error is {share}; G marks a decided task as gold, which measures it."
    wrong, judged = int((fusion.label()[gold] != truth[gold]).sum()), int(gold.sum())
    return f"{text} {_error_in_words(wrong, judged, *wilson(wrong, judged))}"


def cost_in_words(cost: Cost) -> str:
    """Describe the saving and the error of stopping at the usual limit, and the gain of more votes."""
    sentences = []
    replay = next((each for each in cost.replays if each.limit == ENOUGH), None)
    if replay is not None and replay.votes:
        saved = percent(1 - replay.used / replay.votes)
        sentences.append(f"Stopping at {ENOUGH:g} would have saved {saved} of the votes.")
        wrong = round(replay.error * replay.judged) if replay.judged else 0
        sentences.append(_error_in_words(wrong, replay.judged, replay.low, replay.high))
    for votes, gain in zip(("One more vote per task", "Twice the votes"), cost.curve.gains, strict=False):
        points = estimate(100 * gain.gain, 100 * gain.low, 100 * gain.high)
        sentences.append(f"{votes} would gain about {points} percentage points of accuracy.")
    if not cost.curve.gains:
        sentences.append(f"With fewer than {MIN_CURVE} votes per task the gain of more is not known.")
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


ASSIGNMENTS = ("annotator", "task", "gain", "cost", "label", "probability", "votes")


@dataclass(frozen=True)
class Budget:
    """A budget, and the costs of annotators."""

    settings: BudgetSettings = field(default_factory=BudgetSettings)
    prices: Mapping[str, Price] = field(default_factory=dict)

    def as_record(self) -> dict[str, Any]:
        """Return the budget, ready for JSON."""
        prices = {name: asdict(price) for name, price in self.prices.items()}
        return {"settings": self.settings.as_dict(), "prices": prices}


def stored_budget(study: Study) -> Budget:
    """Return the budget stored in a study; the default without a readable one."""
    record = study.settings.vote_budget
    try:
        if record is None:
            return Budget()
        prices = {
            str(name): Price(float(price["cost"]), None if price["most"] is None else int(price["most"]))
            for name, price in record["prices"].items()
        }
        return Budget(BudgetSettings.from_dict(record["settings"]), prices)
    except (KeyError, TypeError, ValueError, AttributeError, SettingsError):
        return Budget()


def read_budget(study: Study, texts: Mapping[str, str], costs: Path | None) -> Budget:
    """Return the budget stored in a study, with settings given as text, and another table of costs if given.

    Raises `SettingsError` or `InputError` where these cannot be read.
    """
    budget = stored_budget(study)
    if texts:
        entered = BudgetSettings.from_text(texts)
        changed = {name: getattr(entered, name) for name in texts}
        budget = replace(budget, settings=replace(budget.settings, **changed))
    return budget if costs is None else replace(budget, prices=read_prices(costs))


def read_prices(path: Path) -> dict[str, Price]:
    """Read a table of annotators: cost of a vote, and most, the maximum number of votes.

    Raises `InputError` with the line.
    """
    table = read_table(path)
    columns = {name.strip().casefold(): at for at, name in enumerate(table.header)}
    if not {"annotator"} < columns.keys() & {"annotator", "cost", "most"}:
        raise InputError("has no columns annotator and cost or most", file=path)
    prices: dict[str, Price] = {}
    for row in range(len(table)):
        cells = {name: table.columns[at][row].strip() for name, at in columns.items()}
        line, name = table.lines[row], cells["annotator"]
        if name in prices:
            raise InputError(f"line {line}: {plain(name, 60)} is listed twice", file=path)
        try:
            cost, most = float(cells.get("cost") or 1.0), cells.get("most") or None
            prices[name] = Price(cost, None if most is None else int(most))
        except ValueError:
            raise InputError(f"line {line}: expected numbers as cost and most", file=path) from None
        if not (math.isfinite(cost) and cost > 0) or (prices[name].most or 0) < 0:
            raise InputError(f"line {line}: expected a cost above 0 and most of 0 or more", file=path)
    return prices


@dataclass(frozen=True, eq=False)
class Assignments:
    """Votes to ask for within a budget, and their cost."""

    votes: NextVotes
    cost: float

    def in_words(self) -> str:
        """Describe the load: "100 votes by 23 annotators, 8 each at most."."""
        votes = self.votes
        named = votes.annotator[votes.annotator != OPEN]
        if not len(votes):
            return "No task needs a vote."
        text = counted(len(votes), "vote")
        if len(named):
            text += f" by {counted(len(np.unique(named)), 'annotator')}"
            text += f", {int(np.bincount(named).max()):,} each at most"
            text += f", {len(votes) - len(named):,} by new annotators" if len(named) < len(votes) else ""
        else:
            text += " by new annotators"
        text += f", cost {self.cost:g}" if self.cost != len(votes) else ""
        return f"{text}. Cost measures what more votes gain."


def assign(
    labels: Labels, fusion: LabelFusion, budget: Budget, decided: np.ndarray, watch: Watch = silent
) -> Assignments:
    """Distribute a budget over the tasks of a fusion.

    `decided`: (N,), classes, or from J on parents, that the expert decided, `OPEN` elsewhere. Decided tasks
    get no votes.
    """
    label = np.where(decided < len(fusion.classes), decided, fusion.label())
    known = np.where(decided != OPEN, label, fusion.known).astype(np.int16)
    posterior = fusion.posterior.copy()
    held = np.flatnonzero(known != OPEN)
    posterior[held] = 0.0
    posterior[held, known[held]] = 1.0
    fusion = replace(fusion, known=known, posterior=posterior)
    votes = assign_votes(labels, fusion, budget.settings, budget.prices, watch)
    return Assignments(votes, float(sum(_costs(labels, votes, budget))))


def assignment_rows(
    labels: Labels, fusion: LabelFusion, assigned: Assignments, budget: Budget
) -> Iterator[Sequence[object]]:
    """Return the rows of a table of assignments, by annotator, the most informative task first."""
    votes, label = assigned.votes, fusion.label()
    names = [labels.annotators[at] if at != OPEN else "" for at in votes.annotator.tolist()]
    costs = _costs(labels, votes, budget)
    for row in sorted(range(len(votes)), key=lambda row: (not names[row], names[row], -votes.gain[row])):
        task = int(votes.task[row])
        yield (
            names[row], labels.tasks[task], format_number(float(votes.gain[row])), f"{costs[row]:g}",
            fusion.classes[label[task]], format_number(float(fusion.posterior[task, label[task]])),
            int(fusion.votes[task]),
        )  # fmt: skip


def _costs(labels: Labels, votes: NextVotes, budget: Budget) -> list[float]:
    usual = [budget.prices.get(name, Price()).cost for name in labels.annotators]
    middle = float(np.median(usual)) if usual else 1.0
    return [usual[at] if at != OPEN else middle for at in votes.annotator.tolist()]
