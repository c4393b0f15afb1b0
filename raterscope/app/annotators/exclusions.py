"""Exclusions of an annotator: who decided when and why, and what the next fusions changed."""

from __future__ import annotations

from collections.abc import Collection

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.changes import changes_of_run
from raterscope.app.kinds.registry import KINDS
from raterscope.app.study import RunEntry, Study


def effects_of_exclusion(names: Collection[str], study: Study, watch: Watch = silent) -> tuple[str, ...]:
    """Describe for each kind what the first fusion without an annotator changed, a sentence each.

    Other decisions that were made before that fusion changed it too, and are named as such.
    """
    firsts = [run for kind in KINDS for run in _first_without(names, kind, study)]
    sentences = []
    for done, run in enumerate(firsts):
        step = part(watch, done / len(firsts), (done + 1) / len(firsts))
        changes = changes_of_run(run.id, None, study, step)
        if changes is not None:
            others = run.known - changes.before.known > 1
            also = " (with other decisions since)" if others else ""
            sentences.append(
                f"{KINDS[run.kind].title}, run {run.id} without them{also}: {changes.in_words()}."
            )
    return tuple(sentences)


def _first_without(names: Collection[str], kind: str, study: Study) -> list[RunEntry]:
    """Return the first run of a kind that excludes an annotator since they last counted; none without."""
    first: list[RunEntry] = []
    counted = False
    for run in study.runs.all():
        if run.kind != kind:
            continue
        if set(names).isdisjoint(run.excluded):
            first, counted = [], True
        elif counted and not first:
            first = [run]
    return first
