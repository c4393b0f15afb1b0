"""Changes of undecided items from one run to the next.

A decision of the expert is not a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.assessment import Change, ComparedItem, Differences
from raterscope.app.errors import plain
from raterscope.app.kinds.registry import KINDS
from raterscope.app.review import fold
from raterscope.app.study import RunEntry, Study
from raterscope.text import counted

MOST_LISTED = 500
"""Changes that are listed; all are counted."""


@dataclass(frozen=True)
class Changes:
    """Changes from one run to another."""

    kind: str
    before: RunEntry
    after: RunEntry
    # disputed_before, disputed_after: disputed items; of pairs, flagged annotators
    disputed_before: int
    disputed_after: int
    count: int  # number of changed items: detections, regions, classes, flags
    newly_disputed: int  # number of items with the same result that are disputed now
    listed: tuple[Change, ...]  # the first `MOST_LISTED` by size
    ranks: int = 0  # of pairs: items that changed their place in the corrected ranking
    # how many items were disputed before and are decided by the expert since; of pairs, annotators that the
    # expert flagged or cleared since
    decided: int = 0

    def in_words(self) -> str:
        """Describe the changes in one line: "12 -> 3 disputed (5 decided), 4 detections changed"."""
        arrow = "\N{RIGHTWARDS ARROW}"
        kind = KINDS[self.kind]
        noun = kind.detail
        many = f"{counted(self.count, noun)} changed" if self.count else f"no {noun} changed"
        decided = f" ({self.decided:,} decided)" if self.decided else ""
        words = f"{self.disputed_before:,} {arrow} {self.disputed_after:,} {kind.doubt}{decided}, {many}"
        if self.newly_disputed:
            words += f", {self.newly_disputed:,} newly disputed"
        return words + (f", {counted(self.ranks, 'item')} changed rank" if self.ranks else "")


def previous_run(runs: Sequence[RunEntry], run: RunEntry, chosen: int | None) -> dict[int, RunEntry]:
    """Find the run of each item that was shown before a run; items without one are omitted.

    `runs`: all runs of the study, the oldest first. `chosen`: the run that was chosen to be shown when the
    fusion began.
    """
    earlier = [other for other in runs if other.kind == run.kind and other.id < run.id]
    earlier.sort(key=lambda other: other.id == chosen)
    return {item: other for other in earlier for item in other.items if item in run.items}


def changes_of_run(number: int, chosen: int | None, study: Study, watch: Watch = silent) -> Changes | None:
    """Compare a run with the runs shown before it, item by item; None if there were none.

    `number`: number of the run. `chosen`: see `previous_run`.
    """
    run = study.runs.get(number)
    before = previous_run(study.runs.all(), run, chosen)
    if not before:
        return None
    state = fold([decision for decision in study.decisions() if decision.id <= run.known])
    names = {entry.id: entry.name for entry in KINDS[run.kind].items(study)}
    differences = Differences()
    compare = KINDS[run.kind].functions.compare_runs
    for done, (item, earlier) in enumerate(before.items()):
        watch(done / len(before), "comparing with the run before")
        then, now = study.runs.result(earlier.id, item), study.runs.result(run.id, item)
        if then is not None and now is not None:
            where = f", {plain(names.get(item, ''))}" if len(names) > 1 else ""
            compare(ComparedItem(study, state, item, where, earlier, run, then, now), differences)
    differences.changes.sort(key=lambda change: -change.size)
    return Changes(
        kind=run.kind,
        before=max(before.values(), key=lambda other: other.id if chosen is None else other.id == chosen),
        after=run,
        disputed_before=differences.disputed_before,
        disputed_after=differences.disputed_after,
        count=len(differences.changes) - differences.newly_disputed,
        newly_disputed=differences.newly_disputed,
        listed=tuple(differences.changes[:MOST_LISTED]),
        ranks=differences.ranks,
        decided=differences.decided,
    )
