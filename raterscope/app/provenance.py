"""What an export or a report was made from: the runs shown, and how they stand to the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from raterscope import __version__
from raterscope.app.review import fold
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.kinds import STORED, image_kinds, question_kinds
from raterscope.app.study.runs import run_name

_NAMED = 3
"""Runs that are named; of more, the number is said."""


@dataclass(frozen=True)
class Provenance:
    """The runs that something is made from.

    Attributes
    ----------
    runs : tuple of RunEntry
        By number.
    items : mapping of run to the numbers of its items
    outdated : tuple of str
        In what the runs do not rest on the journal and the annotations as they are now, a sentence each.
    decisions : int
        The number of the last decision.
    """

    runs: tuple[RunEntry, ...] = ()
    items: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    outdated: tuple[str, ...] = ()
    decisions: int = 0

    def in_words(self) -> str:
        """Name the runs: "run 3 (laplace, 2026-01-02 14:02)"."""
        if len(self.runs) > _NAMED:
            return f"{len(self.runs):,} runs ({self.runs[0].id} to {self.runs[-1].id})"
        return " and ".join(run_name(run) for run in self.runs)


def provenance_of(study: Study, kinds: Sequence[str], items: Sequence[int] = ()) -> Provenance:
    """Find the runs that are shown of the items of some kinds.

    Parameters
    ----------
    study : Study
    kinds : sequence of str
    items : sequence of int
        Numbers of images or questions; empty for all.
    """
    runs: dict[int, list[int]] = {}
    outdated = []
    there = study.items()
    for kind in kinds:
        asked = [one.id for one in there[kind] if not items or one.id in items]
        for item in asked:
            run = study.shown.run(item, kind)
            if run is not None:
                runs.setdefault(run, []).append(item)
        outdated += study.shown.replaced(kind, asked)
    for run in sorted(runs):
        outdated += study.shown.outdated(study.runs.get(run), runs[run])
    return Provenance(
        runs=tuple(study.runs.get(run) for run in sorted(runs)),
        items={run: tuple(of) for run, of in runs.items()},
        outdated=tuple(outdated),
        decisions=study.last_decision(),
    )


def provenance_of_report(study: Study, item: int | None = None, question: int | None = None) -> Provenance:
    """Find the runs that a report is made from; see `provenance_of`.

    Parameters
    ----------
    study : Study
    item, question : int, optional
        The number of the only image or question that it is about; without either, it is about all.
    """
    if item is not None:
        return provenance_of(study, image_kinds(), (item,))
    if question is not None:
        return provenance_of(study, question_kinds(), (question,))
    return provenance_of(study, (*image_kinds(), *question_kinds()))


def description_of(run: RunEntry | None, *, deidentify: bool = False) -> str:
    """Say in a few letters of ASCII which run a file was made from; de-identified, without its time."""
    name = "" if run is None else f" {run_name(run, dated=not deidentify)}"
    return f"Raterscope{name}".encode("ascii", "replace").decode()


def record_of_export(
    study: Study, made: Provenance, *, what: str, form: str, files: Sequence[str], deidentify: bool
) -> dict[str, Any]:
    """Give the contents of an export's run.json; de-identified, without names and times."""
    return {
        "what": what,
        "format": form,
        "files": list(files),
        "raterscope": __version__,
        "runs": [_record(study, run, made.items[run.id], deidentify) for run in made.runs],
        "last_decision": made.decisions,
        "outdated": [] if deidentify else list(made.outdated),
        "is_outdated": bool(made.outdated),
    }


def _record(study: Study, run: RunEntry, items: Sequence[int], deidentify: bool) -> dict[str, Any]:
    record: dict[str, Any] = {
        "run": run.id,
        "kind": run.kind,
        "algorithm": run.algorithm,
        "settings": run.settings,
        "seed": run.seed,
        "versions": run.versions,
        "digest": run.digest,
        "last_decision_held": run.known,
        "decisions_since": study.shown.decided_since(run, items),
    }
    if "viewed" in run.log:
        record["viewed_undecided"] = run.log["viewed"]
    if "scores" in run.log:
        record["scores"] = run.log["scores"]
    if deidentify:
        return record
    return record | {
        "started": run.started.isoformat(timespec="milliseconds"),
        "excluded": list(run.excluded),
        "weights": run.weights,
        "items": [study.name_of(run.kind, item) for item in items],
        **_controls(study, run, items),
    }


def _controls(study: Study, run: RunEntry, items: Sequence[int]) -> dict[str, dict[str, bool]]:
    """Name a run's control images and say whether they are known to hold structures; nothing without any."""
    if not STORED[run.kind].has_controls:
        return {}
    then = fold([one for one in study.decisions() if one.id <= run.known])
    marks = {study.name_of(run.kind, item): then.control(item) for item in items}
    named = {name: mark.holds for name, mark in marks.items() if mark is not None}
    return {"controls": named} if named else {}
