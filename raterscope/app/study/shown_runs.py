"""The run that is shown of each item: one rule for window, exports, reports and command line.

Of each kind one run may be chosen to be shown; without a choice, and of items that it leaves out, the latest
run of the item is shown. A run that was held to a decision on the item that was undone since is never shown
of it, because its result contains what was undone: in its place comes the latest run of the item that was
held to no such decision, one of the same algorithm where there is one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from raterscope.app.errors import counted, plain
from raterscope.app.review import ReviewState, differ, fold
from raterscope.app.study.kinds import STORED
from raterscope.app.study.records import RunEntry, StudyError
from raterscope.app.study.runs import Answers

if TYPE_CHECKING:
    from raterscope.app.study.study import Study

_STATES = 16
"""Past states of the journal that are kept in memory."""


@dataclass
class ShownState:
    """Cached state of the shown runs of an open study.

    Attributes
    ----------
    only : RunEntry or None
        The run that alone is shown of its kind.
    past : dict of decision to ReviewState
        Past states of the journal: a journal that is only added to has one past.
    """

    only: RunEntry | None = None
    past: dict[int, ReviewState] = field(default_factory=dict)


class ShownRuns:
    """The shown runs of an open study."""

    def __init__(self, study: Study, state: ShownState) -> None:
        self._study, self._state = study, state

    def chosen(self) -> dict[str, int]:
        """Return the run chosen for each kind; kinds without a choice are omitted."""
        with self._study.reading() as connection:
            return dict(connection.execute("SELECT kind, run FROM shown ORDER BY kind"))

    def choose(self, kind: str, run: int | None) -> None:
        """Choose the run to show; None shows the latest of each item."""
        if run is not None and self._study.runs.get(run).kind != kind:
            raise StudyError(f"has no run number {run} of {kind}", file=self._study.path)
        with self._study.change() as connection:
            connection.execute("DELETE FROM shown WHERE kind = ?", (kind,))
            if run is not None:
                connection.execute("INSERT INTO shown(kind, run) VALUES (?, ?)", (kind, run))

    @contextmanager
    def only(self, run: int | None) -> Iterator[None]:
        """Show only the items of one run of its kind, while the context lasts.

        None changes nothing.

        Raises
        ------
        StudyError
            When there is no such run; the message lists those there are.
        """
        before, self._state.only = self._state.only, self._state.only if run is None else self._named(run)
        try:
            yield
        finally:
            self._state.only = before

    def run(self, item: int, kind: str, chosen: int | None = None) -> int | None:
        """Return the run shown of an item; None if none is valid under the journal.

        Parameters
        ----------
        item : int
        kind : str
        chosen : int, optional
            The run that is chosen to be shown; by default as `chosen` says.
        """
        only = self._state.only if self._state.only is not None and self._state.only.kind == kind else None
        if only is not None and item not in only.items:
            return None
        with self._study.reading() as connection:
            rows = connection.execute(
                "SELECT run FROM results JOIN runs ON runs.id = run WHERE item = ? AND kind = ? "
                "ORDER BY run DESC",
                (item, kind),
            )
            numbers = [int(number) for (number,) in rows]
        if only is not None:
            chosen = only.id
        elif chosen is None:
            chosen = self.chosen().get(kind)
        if not numbers:
            return None
        first = chosen if chosen in numbers else numbers[0]
        if not self.undone_since(first, item):
            return first
        algorithm = self._study.runs.get(first).algorithm
        alternatives = sorted((run for run in numbers if run != first), key=lambda one: -one)
        alternatives.sort(key=lambda one: self._study.runs.get(one).algorithm != algorithm)
        return next((run for run in alternatives if not self.undone_since(run, item)), None)

    def result(self, item: int, kind: str = "clicks") -> tuple[RunEntry, Any] | None:
        """Return the run shown of an item and its result; None without one."""
        run, result = self.run_and_result(item, kind, None)
        return None if run is None else (run, result)

    def run_and_result(self, item: int, kind: str, run: int | None) -> tuple[RunEntry | None, Any]:
        """Return the run shown of an item, given the chosen run, and its result; otherwise two Nones."""
        number = self.run(item, kind, run)
        result = None if number is None else self._study.runs.result(number, item)
        return (None, None) if result is None or number is None else (self._study.runs.get(number), result)

    def answers(self) -> dict[int, Answers | None]:
        """Return the answers of the shown run of clicks for each image; None without an outline."""
        with self._study.reading() as connection:
            rows = connection.execute(
                "SELECT item, max(run), max(run = ?) FROM results JOIN runs ON runs.id = run "
                "WHERE kind = 'clicks' GROUP BY item",
                (chosen := self.chosen().get("clicks"),),
            ).fetchall()
        shown_by_item: dict[int, int] = {}
        undone: dict[int, bool] = {}
        for item, latest, has_chosen in rows:
            run = chosen if chosen is not None and has_chosen else latest
            if run not in undone:
                undone[run] = self._undone_after(self._study.runs.get(run))
            standing = self.run(item, "clicks", chosen) if undone[run] else run
            if standing is not None:
                shown_by_item[item] = standing
        return self._study.runs.answers(shown_by_item)

    def undone_since(self, run: int, item: int) -> list[int]:
        """Return the decisions on an item that a run used and that were undone later."""
        entry = self._study.runs.get(run)
        if not self._undone_after(entry):
            return []
        return self._journal().undone_since(self._journal(entry.known), entry.kind, item)

    def outdated(self, run: RunEntry, items: Sequence[int]) -> list[str]:
        """Describe changes of journal and annotations since a run, in sentences.

        Decisions made since are no part of it: they are laid over what the run says.

        Parameters
        ----------
        run : RunEntry
        items : sequence of int
            Those of which it is shown.
        """
        current, previous = self._journal(), self._journal(run.known)
        reasons = []
        newer = [item for item in items if self._annotated_since(run, item)]
        if newer:
            reasons.append(f"{self._count(run.kind, newer)} got annotations after it")
        left_out = set(previous.excluded) ^ set(current.excluded)
        if STORED[run.kind].review.weighs_annotators:
            weighed = {*previous.weights, *current.weights}
            left_out |= {name for name in weighed if previous.weights.get(name) != current.weights.get(name)}
        names = sorted(left_out)
        if names:
            few = ", ".join(plain(name, 40) for name in names[:3])
            more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
            reasons.append(f"other annotators are excluded or down-weighted now ({few}{more})")
        return [f"Run {run.id} is outdated: {' and '.join(reasons)}. Fuse again."] if reasons else []

    def decided_since(self, run: RunEntry, items: Sequence[int]) -> bool:
        """Return whether a fusion now would use other decisions than a run did."""
        current, previous = self._journal(), self._journal(run.known)
        return (
            differ(previous, current, run.kind)
            if not items
            else any(differ(previous, current, run.kind, item) for item in items)
        )

    def replaced(self, kind: str, items: Sequence[int]) -> list[str]:
        """Describe items whose chosen or latest run is not shown because decisions were undone."""
        only = self._state.only if self._state.only is not None and self._state.only.kind == kind else None
        number = self.chosen().get(kind) if only is None else only.id
        chosen: Collection[int] = () if number is None else frozenset(self._study.runs.get(number).items)
        latest = {item: run.id for run in self._study.runs.all() if run.kind == kind for item in run.items}
        replaced: dict[tuple[int, int | None], list[int]] = {}
        for item in items:
            if item not in latest or (only is not None and item not in chosen):
                continue
            expected = number if number is not None and item in chosen else latest[item]
            actual = self.run(item, kind)
            if actual != expected:
                replaced.setdefault((expected, actual), []).append(item)
        sentences = []
        for (expected, actual), some in replaced.items():
            instead = "no run is shown" if actual is None else f"run {actual} is shown"
            sentences.append(
                f"Run {expected} was held to decisions that were undone since: of {self._count(kind, some)} "
                f"{instead} instead. Fuse again."
            )
        return sentences

    def _named(self, run: int) -> RunEntry:
        entry = next((entry for entry in self._study.runs.all() if entry.id == run), None)
        if entry is None:
            raise StudyError(
                f"has no run number {run}; it has {self._study.runs.in_words()}", file=self._study.path
            )
        return entry

    def _undone_after(self, run: RunEntry) -> bool:
        """Return whether a decision known to a run was undone or redone later."""
        with self._study.reading() as connection:
            row = connection.execute(
                "SELECT 1 FROM decisions WHERE id > ? AND verb = 'undo' AND undoes <= ? LIMIT 1",
                (run.known, run.known),
            ).fetchone()
        return row is not None

    def _journal(self, last: int | None = None) -> ReviewState:
        """Return the state of the journal after a decision, by default the last."""
        end = self._study.last_decision()
        last = end if last is None else min(last, end)
        if last not in self._state.past:
            while len(self._state.past) >= _STATES:
                del self._state.past[next(iter(self._state.past))]
            self._state.past[last] = fold(
                [decision for decision in self._study.decisions() if decision.id <= last]
            )
        return self._state.past[last]

    def _annotated_since(self, run: RunEntry, item: int) -> bool:
        with self._study.reading() as connection:
            row = connection.execute(STORED[run.kind].newer, (item, run.imported)).fetchone()
        return row is not None

    def _count(self, kind: str, items: Sequence[int]) -> str:
        if len(items) == 1:
            return plain(self._study.name_of(kind, items[0]))
        return counted(len(items), "question" if STORED[kind].by_question else "image")
