"""Which run is shown of an item: one notion for the window, exports, reports and the command line.

Of each kind one run may be chosen to be shown; without a choice, and of items that it leaves out, the latest
run of the item is shown. A run that was held to a decision on the item that was undone since is never shown
of it, because its result contains what was undone: in its place comes the latest run of the item that was
held to no such decision, one of the same algorithm where there is one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from raterscope.app.errors import counted, plain
from raterscope.app.review import Decision, ReviewState, differ, fold
from raterscope.app.study.locking import Lock
from raterscope.app.study.outlines import Answers
from raterscope.app.study.records import RunEntry, StudyError
from raterscope.app.study.viewed import StudyViewed

__all__ = ["StudyShown", "run_name"]

_STATES = 16
"""Past states of the journal that are kept in memory."""

_ANNOTATIONS = {
    "clicks": "SELECT 1 FROM marks WHERE image = ? AND import > ? AND kind != 'truth' LIMIT 1",
    "masks": "SELECT 1 FROM masks WHERE image = ? AND import > ? AND annotator >= 0 LIMIT 1",
    "labels": "SELECT 1 FROM votes WHERE question = ? AND import > ? AND truth = 0 LIMIT 1",
    "pairs": "SELECT 1 FROM votes WHERE question = ? AND import > ? AND truth = 0 LIMIT 1",
}
"""Whether annotations of an item came after an import."""


class StudyShown(StudyViewed):
    """The runs that are shown."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: Lock | None) -> None:
        super().__init__(path, connection, lock)
        self._states: dict[int, ReviewState] = {}  # a journal that is only added to has one past
        self._only: RunEntry | None = None

    def decisions(self) -> list[Decision]:
        """List all decisions, oldest first."""
        raise NotImplementedError

    def runs_chosen(self) -> dict[str, int]:
        """Give the run that is chosen to be shown of each kind; kinds without a choice are left out."""
        with self.sound():
            return dict(self._connection.execute("SELECT kind, run FROM shown ORDER BY kind"))

    def choose_run(self, kind: str, run: int | None) -> None:
        """Show a run from now on; None shows the latest of each item."""
        if run is not None and self.run(run).kind != kind:
            raise StudyError(f"has no run number {run} of {kind}", file=self.path)
        with self.change():
            self._connection.execute("DELETE FROM shown WHERE kind = ?", (kind,))
            if run is not None:
                self._connection.execute("INSERT INTO shown(kind, run) VALUES (?, ?)", (kind, run))

    @contextmanager
    def showing(self, run: int | None) -> Iterator[None]:
        """Read the study with a run shown of its kind, and nothing of that kind but its items.

        None changes nothing.

        Raises
        ------
        StudyError
            When there is no such run; the message lists those there are.
        """
        before, self._only = self._only, self._only if run is None else self._named(run)
        try:
            yield
        finally:
            self._only = before

    def run_shown(self, item: int, kind: str, chosen: int | None = None) -> int | None:
        """Give the run that is shown of an item; None where there is none that the journal lets stand.

        Parameters
        ----------
        item : int
        kind : str
        chosen : int, optional
            The run that is chosen to be shown; by default as `runs_chosen` says.
        """
        only = self._only if self._only is not None and self._only.kind == kind else None
        if only is not None and item not in only.items:
            return None
        with self.sound():
            rows = self._connection.execute(
                "SELECT run FROM results JOIN runs ON runs.id = run WHERE item = ? AND kind = ? "
                "ORDER BY run DESC",
                (item, kind),
            )
            numbers = [int(number) for (number,) in rows]
        if only is not None:
            chosen = only.id
        elif chosen is None:
            chosen = self.runs_chosen().get(kind)
        if not numbers:
            return None
        first = chosen if chosen in numbers else numbers[0]
        if not self.undone_since(first, item):
            return first
        algorithm = self.run(first).algorithm
        others = sorted((one for one in numbers if one != first), key=lambda one: -one)
        others.sort(key=lambda one: self.run(one).algorithm != algorithm)
        return next((one for one in others if not self.undone_since(one, item)), None)

    def shown_result(self, item: int, kind: str = "clicks") -> tuple[RunEntry, Any] | None:
        """Give the run that is shown of an item, and what it says; None without one."""
        run, result = self.result_shown(item, kind, None)
        return None if run is None else (run, result)

    def result_shown(self, item: int, kind: str, run: int | None) -> tuple[RunEntry | None, Any]:
        """Give the run that is shown of an item where a run is chosen, and what it says; else two Nones."""
        number = self.run_shown(item, kind, run)
        result = None if number is None else self.result(number, item)
        return (None, None) if result is None or number is None else (self.run(number), result)

    def shown_answers(self) -> dict[int, Answers | None]:
        """Give what the shown run of clicks says of each image; None where it keeps no outline."""
        with self.sound():
            rows = self._connection.execute(
                "SELECT item, max(run), max(run = ?) FROM results JOIN runs ON runs.id = run "
                "WHERE kind = 'clicks' GROUP BY item",
                (chosen := self.runs_chosen().get("clicks"),),
            ).fetchall()
        shown: dict[int, int] = {}
        undone: dict[int, bool] = {}
        for item, latest, has_chosen in rows:
            run = chosen if chosen is not None and has_chosen else latest
            if run not in undone:
                undone[run] = self._undone_after(self.run(run))
            found = self.run_shown(item, "clicks", chosen) if undone[run] else run
            if found is not None:
                shown[item] = found
        return self.answers_of(shown)

    def undone_since(self, run: int, item: int) -> list[int]:
        """Name the decisions on an item that a run was held to and that were undone after it."""
        entry = self.run(run)
        if not self._undone_after(entry):
            return []
        return self._state().undone_since(self._state(entry.known), entry.kind, item)

    def outdated(self, run: RunEntry, items: Sequence[int]) -> list[str]:
        """Say in what a run no longer rests on the journal and the annotations as they are now.

        Decisions made since are no part of it: they are laid over what the run says.

        Parameters
        ----------
        run : RunEntry
        items : sequence of int
            Those of which it is shown.
        """
        now, then = self._state(), self._state(run.known)
        reasons = []
        newer = [item for item in items if self._annotated_since(run, item)]
        if newer:
            reasons.append(f"{self._count(run.kind, newer)} got annotations after it")
        left_out = set(then.excluded) ^ set(now.excluded)
        if run.kind == "clicks":
            both = {*then.weights, *now.weights}
            left_out |= {name for name in both if then.weights.get(name) != now.weights.get(name)}
        names = sorted(left_out)
        if names:
            few = ", ".join(plain(name, 40) for name in names[:3])
            more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
            reasons.append(f"other annotators are excluded or down-weighted now ({few}{more})")
        return [f"Run {run.id} is outdated: {' and '.join(reasons)}. Fuse again."] if reasons else []

    def decided_since(self, run: RunEntry, items: Sequence[int]) -> bool:
        """Tell whether a fusion now would be held to other decisions than a run was."""
        now, then = self._state(), self._state(run.known)
        return (
            differ(then, now, run.kind)
            if not items
            else any(differ(then, now, run.kind, item) for item in items)
        )

    def replaced(self, kind: str, items: Sequence[int]) -> list[str]:
        """Say of which items another run than the chosen or latest is shown, as decisions were undone.

        Parameters
        ----------
        kind : str
        items : sequence of int
        """
        only = self._only if self._only is not None and self._only.kind == kind else None
        number = self.runs_chosen().get(kind) if only is None else only.id
        chosen: Collection[int] = () if number is None else frozenset(self.run(number).items)
        latest = {item: run.id for run in self.runs() if run.kind == kind for item in run.items}
        found: dict[tuple[int, int | None], list[int]] = {}
        for item in items:
            if item not in latest or (only is not None and item not in chosen):
                continue
            wanted = number if number is not None and item in chosen else latest[item]
            shown = self.run_shown(item, kind)
            if shown != wanted:
                found.setdefault((wanted, shown), []).append(item)
        sentences = []
        for (wanted, shown), some in found.items():
            instead = "no run is shown" if shown is None else f"run {shown} is shown"
            sentences.append(
                f"Run {wanted} was held to decisions that were undone since: of {self._count(kind, some)} "
                f"{instead} instead. Fuse again."
            )
        return sentences

    def runs_in_words(self, kinds: Sequence[str] = ()) -> str:
        """List the runs, or those of some kinds, by number."""
        runs = [run for run in self.runs() if not kinds or run.kind in kinds]
        return "; ".join(f"{run_name(run)} of {run.kind}" for run in runs) or "no run"

    def _named(self, run: int) -> RunEntry:
        found = next((one for one in self.runs() if one.id == run), None)
        if found is None:
            raise StudyError(f"has no run number {run}; it has {self.runs_in_words()}", file=self.path)
        return found

    def last_decision(self) -> int:
        """Give the number of the last decision; 0 before the first."""
        with self.sound():
            return int(self._connection.execute("SELECT ifnull(max(id), 0) FROM decisions").fetchone()[0])

    def _undone_after(self, run: RunEntry) -> bool:
        """Tell whether anything that a run knew of was undone or redone after it."""
        with self.sound():
            found = self._connection.execute(
                "SELECT 1 FROM decisions WHERE id > ? AND verb = 'undo' AND undoes <= ? LIMIT 1",
                (run.known, run.known),
            ).fetchone()
        return found is not None

    def _state(self, last: int | None = None) -> ReviewState:
        """Give what the journal amounted to with some decision, by default the last."""
        end = self.last_decision()
        last = end if last is None else min(last, end)
        if last not in self._states:
            while len(self._states) >= _STATES:
                del self._states[next(iter(self._states))]
            self._states[last] = fold([one for one in self.decisions() if one.id <= last])
        return self._states[last]

    def _annotated_since(self, run: RunEntry, item: int) -> bool:
        with self.sound():
            found = self._connection.execute(_ANNOTATIONS[run.kind], (item, run.imported)).fetchone()
        return found is not None

    def _count(self, kind: str, items: Sequence[int]) -> str:
        if len(items) == 1:
            return plain(self.name_of(kind, items[0]))
        return counted(len(items), "image" if kind in ("clicks", "masks") else "question")


def run_name(run: RunEntry, *, dated: bool = True) -> str:
    """Name a run: "run 3 (laplace, 2026-01-02 14:02)"; without the date, the algorithm alone.

    The time is local.
    """
    when = f", {run.started.astimezone():%Y-%m-%d %H:%M}" if dated else ""
    return f"run {run.id} ({plain(run.algorithm, 40)}{when})"
