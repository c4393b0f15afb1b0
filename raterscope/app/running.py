"""A run of any kind over a study: its input read out of the study, what it came to kept whole in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.outcome import Answer, Inputs, versions
from raterscope.app.review import ReviewState, fold
from raterscope.app.study import RunRecord, Study

Given = TypeVar("Given")


def gather(
    items: Mapping[int, str],
    study: Study,
    read: Callable[[int, ReviewState], Given | None],
    watch: Watch = silent,
    *,
    words: str,
) -> Inputs[Given]:
    """Read what is fused of items of a study, in this order, by the decisions made so far.

    Parameters
    ----------
    items : mapping of an item's number to its name
    study : Study
    read : callable
        Gives what is fused of the item with a number, as far as the expert lets it; None leaves the item out.
    watch : Watch
    words : str
        What is told of progress, before the item's name.
    """
    decisions = study.decisions()
    state = fold(decisions)
    numbers: dict[str, int] = {}
    found: dict[str, Given] = {}
    for done, (number, name) in enumerate(items.items()):
        watch(done / len(items), f"{words} {name}")
        given = read(number, state)
        if given is not None:
            numbers[name], found[name] = number, given
    return Inputs(
        items=numbers,
        given=found,
        decision=decisions[-1].id if decisions else 0,
        imported=study.last_import(),
        excluded=tuple(sorted(state.excluded)),
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
    weights: Mapping[str, float] | None = None,
) -> int:
    """Store a run whole, without the items that failed; gives its number. See `RunRecord`."""
    inputs = answer.inputs
    record = RunRecord(
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
        weights=dict(weights or {}),
    )
    return study.runs.add(record, answer.kept, watch)
