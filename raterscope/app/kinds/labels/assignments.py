"""Assignments of tasks to annotators: the budget kept with the study, costs of annotators, the table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.labels.active_learning import NextVotes
from raterscope.algorithms.labels.data import OPEN, LabelFusion, Labels
from raterscope.algorithms.labels.vote_budget import (
    BudgetSettings,
    Price,
    assign_votes,
)
from raterscope.algorithms.progress import Watch, silent
from raterscope.algorithms.settings import SettingsError
from raterscope.app.errors import InputError, counted, plain
from raterscope.app.formats.output_files import format_number
from raterscope.app.formats.tables import read_table
from raterscope.app.study import Study

ASSIGNMENTS = ("annotator", "task", "gain", "cost", "label", "probability", "votes")


@dataclass(frozen=True)
class Budget:
    """A budget, and what annotators cost."""

    settings: BudgetSettings = field(default_factory=BudgetSettings)
    prices: Mapping[str, Price] = field(default_factory=dict)

    def as_record(self) -> dict[str, Any]:
        """Return the budget, ready for JSON."""
        prices = {name: asdict(price) for name, price in self.prices.items()}
        return {"settings": self.settings.as_dict(), "prices": prices}


def stored_budget(study: Study) -> Budget:
    """Return the budget kept with a study; the default without a readable one."""
    record = study.settings.vote_budget()
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
    """Return the budget kept with a study, with settings as text and a table of costs instead of its own.

    Raises `SettingsError` or `InputError` where these cannot be read.
    """
    budget = stored_budget(study)
    if texts:
        entered = BudgetSettings.from_text(texts)
        changed = {name: getattr(entered, name) for name in texts}
        budget = replace(budget, settings=replace(budget.settings, **changed))
    return budget if costs is None else replace(budget, prices=read_prices(costs))


def read_prices(path: Path) -> dict[str, Price]:
    """Read a table of annotators: the cost of a vote, and most, the votes that they give at most.

    Raises `InputError` that names the line.
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
        words = counted(len(votes), "vote")
        if len(named):
            words += f" by {counted(len(np.unique(named)), 'annotator')}"
            words += f", {int(np.bincount(named).max()):,} each at most"
            words += f", {len(votes) - len(named):,} by new annotators" if len(named) < len(votes) else ""
        else:
            words += " by new annotators"
        words += f", cost {self.cost:g}" if self.cost != len(votes) else ""
        return f"{words}. Cost measures what more votes gain."


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
