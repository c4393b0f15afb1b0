"""Runs of any kind over a study: input, outcome of each item, versions, and storing the result."""

from __future__ import annotations

import math
import platform
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from importlib import metadata
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from raterscope import __version__
from raterscope.algorithms.plugins import PluginError
from raterscope.algorithms.progress import Cancelled, RefusedError, Watch, part, silent, steps_of, wrapping
from raterscope.algorithms.settings import Algorithm, SettingsError
from raterscope.app.errors import missing_package
from raterscope.resources.bibliography import cite, cited_keys, references_text
from raterscope.text import counted

if TYPE_CHECKING:  # processes that fuse load no study
    from raterscope.app.review import ReviewState
    from raterscope.app.study import RunEntry, Study

Given = TypeVar("Given")
Partial = TypeVar("Partial")
Plan = TypeVar("Plan")
Result = TypeVar("Result")


class Described(Protocol):
    """Plan that describes itself."""

    def as_dict(self) -> dict[str, Any]:
        """Return the settings, ready for JSON."""

    def in_words(self) -> str:
        """Name the methods."""


@dataclass(frozen=True, eq=False)
class Outcome(Generic[Result]):
    """Outcome of one item: an image, a question."""

    item: str
    fusion: Result | None  # None if it failed
    problem: str  # why it failed, in a sentence; empty without a failure
    details: str  # traceback of an internal error
    seconds: float


@dataclass(frozen=True, eq=False)
class Inputs(Generic[Given]):
    """Input of a run."""

    items: Mapping[str, int]  # by an item's name
    given: Mapping[str, Given]  # by name: without the annotations of excluded annotators
    decision: int = 0  # number of the last decision taken into account
    imported: int = 0  # the last import
    excluded: tuple[str, ...] = ()  # excluded annotators
    # joined name to main name
    aliases: Mapping[str, str] = field(default_factory=dict)
    programs: tuple[str, ...] = ()  # annotators that are programs
    weights: Mapping[str, float] = field(default_factory=dict)  # the reduced weights of annotators


Gathered = TypeVar("Gathered", bound=Inputs[Any])


@dataclass(frozen=True, eq=False)
class Draft(Generic[Partial]):
    """Partial result of an item during its fusion."""

    item: str
    fusion: Partial


@dataclass(frozen=True, eq=False)
class Answer(Generic[Plan, Gathered, Result]):
    """Result of a run: outcome of every item, start time and duration."""

    plan: Plan
    inputs: Gathered
    outcomes: Mapping[str, Outcome[Result]]
    started: datetime
    seconds: float

    @property
    def fusions(self) -> dict[str, Result]:
        """The results by the items' names, without the items that failed."""
        return successful(self.outcomes)

    @property
    def kept(self) -> dict[int, Result]:
        """The results to be stored, by the items' numbers."""
        return {self.inputs.items[name]: fusion for name, fusion in self.fusions.items()}


def successful(outcomes: Mapping[str, Outcome[Result]]) -> dict[str, Result]:
    """Return the results by the items' names, without the items that failed."""
    return {name: outcome.fusion for name, outcome in outcomes.items() if outcome.fusion is not None}


def one_by_one(
    inputs: Inputs[Given], plan: Plan, fuse: Callable[[Given, Plan, Watch], Result], watch: Watch = silent
) -> Answer[Plan, Inputs[Given], Result]:
    """Fuse items in sequence, each on all processors; a failure does not affect the others.

    Partial results are reported as a `Draft`.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    outcomes: dict[str, Outcome[Result]] = {}
    for (name, entry), step in steps_of(watch, inputs.given.items()):
        item_watch = part(step, 0.0, 1.0, f"{name}: " if len(inputs.given) > 1 else "")
        start_time = time.perf_counter()
        watch_draft = wrapping(item_watch, partial(Draft, name))
        result, problem, details = attempt(partial(fuse, entry, plan, watch_draft))
        outcomes[name] = Outcome(name, result, problem, details, time.perf_counter() - start_time)
    return Answer(plan, inputs, outcomes, started, time.perf_counter() - clock)


def attempt(work: Callable[[], Result]) -> tuple[Result | None, str, str]:
    """Return the result of some work, or the problem in a sentence and the traceback."""
    try:
        return work(), "", ""
    except Cancelled:
        raise
    except RefusedError as error:
        return None, str(error), traceback.format_exc() if isinstance(error, PluginError) else ""
    except MemoryError:
        return None, "there is not enough memory to fuse it.", ""
    except Exception as error:
        if (missing := missing_package(error)) is not None:
            return None, f"{missing}.", ""
        return None, f"internal error ({type(error).__name__}: {error}).", traceback.format_exc()


def record_of(
    plan: Described,
    *,
    seed: int | None,
    digest: str,
    inputs: Sequence[Mapping[str, object]],
    started: datetime,
    seconds: float,
) -> dict[str, Any]:
    """Return the first part of run.json: all that is needed to reproduce the results."""
    return {
        "versions": versions(),
        "settings": plan.as_dict(),
        "methods": cite(plan.in_words()),
        "references": references_text(cited_keys([plan.in_words()])),
        "seed": seed,
        "digest": digest,
        "inputs": list(inputs),
        "started": started.isoformat(timespec="milliseconds"),
        "seconds": round(seconds, 3),
    }


def read_plan(read: Callable[[Mapping[str, Any]], Plan], run: RunEntry) -> Plan | None:
    """Return the plan of a run; None if another version's plan cannot be read."""
    try:
        return read(run.settings)
    except SettingsError:
        return None


def finite_or_none(value: float) -> float | None:
    """Convert a number for JSON: None for NaN and infinity."""
    return float(value) if math.isfinite(value) else None


def curve_record(values: Iterable[float]) -> list[float | None]:
    """Return values by iteration, ready for JSON."""
    return list(map(finite_or_none, values))


@cache  # it reads files
def _version(name: str) -> str | None:
    """Return the version of a package; None if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def versions(names: Iterable[str] = ("numpy", "scipy", "numba", "scikit-learn")) -> dict[str, str]:
    """Name the versions that a result depends on, of those packages that are installed."""
    installed = {name: version for name in names if (version := _version(name)) is not None}
    return {"raterscope": __version__, "python": platform.python_version(), **installed}


def gather(
    items: Mapping[int, str],
    study: Study,
    read: Callable[[int, ReviewState], Given | None],
    watch: Watch = silent,
    *,
    text: str,
) -> Inputs[Given]:
    """Read the input of a fusion for items of a study, in order, with the decisions made so far.

    `items`: names by number. `read`: returns the input of an item, given its number and the expert's
    decisions; None omits the item. `text`: progress text before the item's name.
    """
    state = study.review_state()
    numbers: dict[str, int] = {}
    inputs: dict[str, Given] = {}
    for done, (number, name) in enumerate(items.items()):
        watch(done / len(items), f"{text} {name}")
        entry = read(number, state)
        if entry is not None:
            numbers[name], inputs[name] = number, entry
    return Inputs(
        items=numbers,
        given=inputs,
        decision=study.last_decision(),
        imported=study.last_import(),
        excluded=tuple(sorted(state.excluded)),
        aliases=state.aliases,
        programs=tuple(sorted(state.programs)),
        weights=state.weights,
    )


def keep(
    answer: Answer[Any, Any, Any],
    study: Study,
    watch: Watch = silent,
    *,
    kind: str,
    algorithm: str,
    digest: str,
    log: dict[str, Any],
    seed: int | None = None,
) -> int:
    """Store a run completely, without the items that failed, and return its number. See `RunEntry`."""
    from raterscope.app.study import RunEntry

    inputs = answer.inputs
    record = RunEntry(
        kind=kind,
        algorithm=algorithm,
        settings=answer.plan.as_dict(),
        seed=seed,
        versions=versions(),
        digest=digest,
        started=answer.started,
        seconds=answer.seconds,
        log=log,
        known=inputs.decision,
        imported=inputs.imported,
        excluded=inputs.excluded,
        weights=dict(inputs.weights),
        aliases=dict(inputs.aliases),
        programs=inputs.programs,
    )
    return study.runs.add(record, answer.kept, watch)


def keep_questions(
    answer: Answer[Any, Any, Any],
    study: Study,
    watch: Watch = silent,
    *,
    kind: str,
    digest: str,
    record: Callable[[Outcome[Any], Any], dict[str, Any]],
) -> int:
    """Store a run over questions, with a record of each in its log; return its number."""
    questions, plan = answer.inputs.given, answer.plan
    return keep(
        answer,
        study,
        watch,
        kind=kind,
        algorithm=plan.algorithm,
        seed=plan.settings.as_dict().get("seed"),
        digest=digest,
        log={"questions": [record(ended, questions[name]) for name, ended in answer.outcomes.items()]},
    )


_LIMITS = ("iterations", "max_iterations", "detection_iterations", "samples")
"""Settings that limit the number of iterations."""

_TOLERANCES = ("tolerance", "detection_tolerance")


def explain_limit(algorithm: Algorithm | None, values: object, counts: Iterable[int]) -> str:
    """Report that an algorithm did not converge, and the setting to change.

    `values`: settings as stored with the run. `counts`: iterations of each search that did not converge;
    empty if all did.
    """
    values = values if isinstance(values, Mapping) else {}
    most = max(counts, default=0)
    if algorithm is None or not most or any(values.get(name) == 0 for name in _TOLERANCES):
        return ""  # without a tolerance, this number of iterations was requested
    text = f"{algorithm.title} did not converge in {counted(most, 'iteration')}: the result may still change."
    limit = next((spec for spec in algorithm.settings.specs() if spec.name in _LIMITS), None)
    now = None if limit is None else values.get(limit.name)
    if limit is None or (isinstance(now, int) and most < now):  # it ended for another reason
        return text
    where = f"“{limit.label}”" + (" under “more settings”" if limit.advanced else "")
    return f"{text} Raise {where}{f' (now {now:,})' if isinstance(now, int) else ''} and fuse again."
