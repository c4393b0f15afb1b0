"""Lines of history, jobs and runs, changes by the last fusion, and calibration of the run shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QObject, QTimer

from raterscope.algorithms.progress import Watch
from raterscope.app.annotators.table import Changes, changes_of_run
from raterscope.app.assessment import FEW, Trust, bin_intervals
from raterscope.app.contents import Contents
from raterscope.app.document import Document
from raterscope.app.jobs import Job
from raterscope.app.kinds.registry import KINDS
from raterscope.app.review import CommentSubject, Decision, SampleSubject, is_measure
from raterscope.app.session import LatestTask
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.runs import run_name, run_title
from raterscope.figures.evaluation import CalibrationLine
from raterscope.text import counted, with_minus
from raterscope.widgets.panels.activity_panels import NEXT, HistoryEntry, JobLine
from raterscope.widgets.panels.evaluation_panels import TrustPanel
from raterscope.widgets.panels.fuse_panel import RunLine
from raterscope.widgets.panels.lists import LinesOnDemand
from raterscope.widgets.panels.queue_panel import QueueFrame

if TYPE_CHECKING:
    from raterscope.app.workspaces.runs import RunControl
    from raterscope.app.workspaces.screen import WorkspaceScreen

HISTORY = 1000
TONES = {
    "accept": "accepted",
    "add": "accepted",
    "move": "accepted",
    "label": "accepted",
    "take": "accepted",
    "paint": "accepted",
    "clear": "accepted",
    "flag": "rejected",
    "reject": "rejected",
    "exclude": "rejected",
    "mark": "rejected",
}


def history(contents: Contents, cache: dict[int, HistoryEntry] | None = None) -> Sequence[HistoryEntry]:
    """List the latest decisions and the runs by time, the latest first; each line is made on access.

    `cache`: lines of decisions from earlier calls, which is extended.
    """
    cache = {} if cache is None else cache
    latest = contents.decisions[-HISTORY:]
    dated: list[tuple[datetime, Decision | RunEntry]] = [
        (decision.at, decision) for decision in latest if decision.at is not None
    ]
    dated += [(run.started, run) for run in contents.runs]
    dated.sort(key=itemgetter(0), reverse=True)

    def make(number: int) -> HistoryEntry:
        time, source = dated[number]
        if isinstance(source, RunEntry):
            return HistoryEntry(time, f"fuse {run_title(source)}, {_count(source)}")
        if source.id not in cache:
            tone = "plain" if is_measure(source) else TONES.get(source.verb, "plain")
            cache[source.id] = HistoryEntry(time, _text(contents, source), tone)
        return replace(cache[source.id], status=contents.review.status(source.id))

    return LinesOnDemand(np.arange(len(dated)), make)


def _text(contents: Contents, decision: Decision) -> str:
    about = contents.target(decision) or decision
    kind = about.subject.kind if about.subject is not None else ""
    several = len(contents.of(kind)) > 1 and len(about.items) == 1
    item = contents.item(kind, about.items[0]) if several else None
    where = item.name if item is not None else ""
    reason = "" if decision.annotators else decision.reason  # the description of annotators contains it
    text = contents.text_of(decision) + (f", {where}" if where else "")
    return f"{text}: {reason}" if reason else text


def job_line(job: Job) -> JobLine:
    """Describe the state of a job, with the objective of an iteration."""
    rising = f", objective {with_minus(f'{job.objective:,.1f}')}" if job.objective is not None else ""
    return JobLine(
        key=job.key, title=job.title, text=job.text + rising, fraction=job.fraction,
        seconds_left=job.seconds_left, state=job.state, error=job.error, details=job.details,
    )  # fmt: skip


def run_lines(contents: Contents, kind: str, shown: int | None) -> tuple[RunLine, ...]:
    """List the runs of a kind, the latest first."""
    latest = next(
        (
            decision.id
            for decision in reversed(contents.decisions)
            if _is_held_fixed(contents, decision, kind)
        ),
        0,
    )
    lines = []
    for run in reversed(contents.runs_of(kind)):
        started = run.started.astimezone().strftime("%d %b %H:%M")
        lines.append(
            RunLine(
                key=run.id,
                title=run_title(run),
                text=f"run {run.id}, {started}, {_count(run)}, {run.seconds:.1f} s",
                shown=run.id == shown,
                stale=latest > run.known or run.weights != contents.review.weights,
            )
        )
    return tuple(lines)


def _is_held_fixed(contents: Contents, decision: Decision, kind: str) -> bool:
    """Return whether fusions of a kind hold a decision, or the decision that it undoes, fixed."""
    target = contents.target(decision)
    if target is None or target.annotators:
        return target is None or target.verb not in ("mark", "unmark")
    subject = target.subject
    about = "" if subject is None or isinstance(subject, (CommentSubject, SampleSubject)) else subject.kind
    # Flags of pairs change the ranking immediately; no fusion depends on them.
    return about == kind and KINDS[kind].holds_decisions and target.verb != "skip" and not is_measure(target)


def outdated_text(contents: Contents, kind: str) -> str:
    """Return why to fuse again; empty if there is no reason."""
    if kind not in contents.stale:
        return ""
    runs = contents.runs_of(kind)
    shown = next((run for run in runs if run.id == contents.chosen.get(kind)), runs[-1])
    if shown.weights != contents.review.weights:
        return "Other weights of annotators count than in the run shown. Fuse again (F5) to apply them."
    if not KINDS[kind].holds_decisions:
        return "Different annotators are excluded than in the run shown. Fuse again (F5) to apply this."
    return "You made decisions after the run shown. Fuse again (F5) to apply them to the other results."


def _count(run: RunEntry) -> str:
    return counted(len(run.items), KINDS[run.kind].nouns.item)


HIDDEN = "The changes are hidden as long as you review blind."


class RunChanges(QObject):
    """Changes by the last fusion, as a list and step by step, and the switch to the previous run."""

    def __init__(self, document: Document, screen: WorkspaceScreen, runs: RunControl) -> None:
        super().__init__(runs)
        self._document, self._screen, self._runs = document, screen, runs
        self._task = LatestTask()
        self.changes: Changes | None = None
        """Changes by the last fusion; those of an earlier session are computed on request."""
        screen.left_tabs.currentChanged.connect(self._on_tab)
        screen.changes_panel.chosen.connect(self._on_chosen)
        screen.changes_panel.back.clicked.connect(self.toggle)
        document.replaced.connect(self.forget)
        document.run_chosen.connect(self.show_back)
        runs.session.blind_changed.connect(self._show_again)

    def find(self, run: int, chosen: int | None) -> None:
        """Compare a new run with the one shown before; `chosen`: the chosen run at its start."""
        work = partial(changes_of_run, run, chosen)
        job = self._document.read_beside("Comparing with the run before", work, quiet=True)
        self._task.follow(job, self._on_found)

    def forget(self) -> None:
        """Drop the changes, because another study is open."""
        self._task.cancel()
        self._show(None)
        self._on_tab()

    def _on_tab(self) -> None:
        if self._screen.left_tabs.currentWidget() is self._screen.changes_panel:
            self._recall()

    def _recall(self, follow: Callable[[], object] | None = None) -> bool:
        """Find the changes by an earlier session's last fusion, then call `follow`; False without any."""
        runs = self._document.runs_of(self._runs.kind)
        if self.changes is not None or len(runs) < 2:
            return False
        self._screen.changes_panel.set_changes("Comparing the last two runs…", ())
        work = partial(changes_of_run, runs[-1].id, None)
        job = self._document.read_beside("Comparing with the run before", work, quiet=True)
        self._task.follow(job, partial(self._on_recalled, follow))
        return True

    def _on_recalled(self, follow: Callable[[], object] | None, changes: Changes | None) -> None:
        self._show(changes)
        if changes is not None and follow is not None:
            follow()

    def step(self, step: int) -> None:
        """Go to the next change of the list, cyclically."""
        changes = self.changes
        if self._runs.session.blind:
            self._screen.message.emit(HIDDEN)
            return
        if self._recall(partial(self.step, step)):
            return
        if changes is None or not changes.listed:
            self._screen.message.emit("The last fusion changed nothing.")
            return
        panel = self._screen.changes_panel
        current = panel.current
        first = 0 if step > 0 else len(changes.listed) - 1
        panel.select(first if current is None else (current + step) % len(changes.listed))

    def toggle(self) -> None:
        """Show the run before the last fusion, or the last one again."""
        if self._recall(self.toggle):
            return
        changes, contents = self.changes, self._document.contents
        run_id = self._other_run()
        existing = set() if contents is None else {run.id for run in contents.runs}
        if changes is None or run_id not in existing:
            self._screen.message.emit("There is no previous run to show. Press Fuse (F5) first.")
            return
        if self._undone:
            self._screen.message.emit(self._undone)
            return
        self._runs.choose(run_id)
        run = changes.before if run_id == changes.before.id else changes.after
        self._screen.message.emit(f"R{run_name(run)[1:]} is shown.")

    @property
    def _undone(self) -> str:
        """Return why the later run is not on screen, if it used a decision that was undone."""
        changes = self.changes
        if changes is None or self._runs.replaced != changes.after.id:
            return ""
        return f"Run {changes.after.id} used decisions that you have undone. Press Fuse (F5) to fuse again."

    def _other_run(self) -> int:
        changes = self.changes
        if changes is None:
            return 0
        return changes.after.id if self._runs.session.chosen_run == changes.before.id else changes.before.id

    def _on_found(self, changes: Changes | None) -> None:
        self._show(changes)
        if changes is not None:
            self._screen.message.emit(f"{_how(changes)}: {changes.in_words()}.{self._next_step(changes)}")

    def _show(self, changes: Changes | None) -> None:
        self.changes = changes
        panel = self._screen.changes_panel
        if changes is None:
            panel.set_changes("", ())
        else:
            hidden = changes.count + changes.newly_disputed - sum(change.count for change in changes.listed)
            text = f"Run {changes.before.id} to run {changes.after.id}: {changes.in_words()}."
            if self._runs.session.blind:
                text += f" {HIDDEN}"
            elif changes.listed and hidden:
                text += f" The {len(changes.listed):,} largest are listed."
            lines = () if self._runs.session.blind else tuple(change.text for change in changes.listed)
            panel.set_changes(text, lines)
        self.show_back()

    def _next_step(self, changes: Changes) -> str:
        """Describe the key for the next step."""
        if changes.listed and not self._runs.session.blind:
            return f" {NEXT}: see them"
        disputed = changes.disputed_after and KINDS[changes.kind].doubt == "disputed"
        return " Tab: next disputed" if disputed else ""

    def _show_again(self) -> None:
        self._show(self.changes)

    def show_back(self) -> None:
        """Describe the run that the key shows, or why it shows none."""
        changes = self.changes
        if changes is None or self._undone:
            self._screen.changes_panel.set_back("", self._undone)
            return
        back = self._other_run() == changes.before.id
        run = changes.before if back else changes.after
        self._screen.changes_panel.set_back(
            "previous run" if back else "latest run", f"Show {run_name(run)}, in exports and reports too"
        )

    def _on_chosen(self, number: int) -> None:
        if self.changes is None or number >= len(self.changes.listed):
            return
        change, count = self.changes.listed[number], len(self.changes.listed)
        self._runs.session.inspect(change)
        self._screen.show_changes()
        self._screen.message.emit(f"Change {number + 1:,} of {count:,}: {change.text}.")


def _how(changes: Changes) -> str:
    """Describe how the run differs in method and settings from the previous run."""
    if changes.before.algorithm != changes.after.algorithm:
        return "Fused by another method"
    return "Fused again" if changes.before.settings == changes.after.settings else "Fused with other settings"


_WAIT = 400
"""Milliseconds after a decision before it is counted, because another may follow."""


class Calibration(QObject):
    """Calibration of a run, shown in the trust panel and computed in the background.

    `queue`: its header shows contradictions to the run. `kind`: kind of annotation. `costly`: whether the
    comparison takes long. It then runs only if the panel is visible or something may contradict the run; see
    `show`.
    """

    def __init__(
        self, document: Document, panel: TrustPanel, queue: QueueFrame, kind: str, *, costly: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(panel)
        self._document, self._panel, self._queue = document, panel, queue
        self._kind, self._costly = kind, costly
        self._run: RunEntry | None = None
        self._items: tuple[int, ...] = ()
        self._title = ""
        self._beside: tuple[CalibrationLine, ...] = ()
        self._trust: Trust | None = None
        self._doubtful = self._due = self._stale = False
        self._decided = 0
        self._task = LatestTask()
        self._wait = QTimer(self, singleShot=True, interval=_WAIT)
        self._wait.timeout.connect(self.compare)
        panel.seen.connect(self.compare)
        document.changed.connect(self._on_changed)
        document.radius_changed.connect(self._on_radius_changed)

    def show(
        self, run: RunEntry | None, items: Sequence[int], title: str = "", *, doubtful: bool = False
    ) -> None:
        """Show the calibration of another run.

        `items`: the images or the question compared. `title`: title of the run's line in the plot.
        `doubtful`: whether something is already known to contradict the run.
        """
        previous = _key(self._run), self._items
        self._run, self._items, self._title = run, tuple(items) if run is not None else (), title
        self._doubtful = doubtful
        if (_key(run), self._items) == previous:
            return
        self._task.cancel()
        self._due = self._stale = run is not None
        self._show_trust(None)
        self.compare()

    def show_beside(self, lines: Sequence[CalibrationLine]) -> None:
        """Draw the calibration of other methods in the same plot."""
        self._beside = tuple(lines)
        self._draw()

    def set_decided(self, decided: int) -> None:
        """Set the number of items that the expert has decided."""
        if decided == self._decided:
            return
        self._decided = decided
        if self._run is not None and (self._trust is None or not self._trust.by_truth):
            self._due = True
            self._wait.start()

    def compare(self) -> None:
        """Compare, if the panel is visible or something may contradict the run."""
        if not self._due or not self._items:
            return
        may = self._doubtful or self._decided >= FEW or (not self._costly and self._stale)
        if not (may or self._panel.isVisible()):
            return
        self._due = self._stale = False
        work = partial(_trust, self._kind, self._items)
        job = self._document.read_beside("Calibrating", work, quiet=True)
        self._task.follow(job, self._show_trust)

    def _on_changed(self) -> None:
        """Compare again after a change of runs or truths; another run may be shown next."""
        self._due = self._stale = self._run is not None
        self._wait.start()

    def _on_radius_changed(self) -> None:
        self._due = self._stale = self._run is not None
        self.compare()

    def _show_trust(self, trust: Trust | None) -> None:
        self._trust = trust
        self._draw()
        self._queue.set_doubt(
            "" if trust is None else trust.doubt_in_words(), "" if trust is None else trust.in_words()
        )

    def _draw(self) -> None:
        trust, lines = self._trust, list(self._beside)
        if trust is not None and trust.judged:
            calibration = trust.calibration
            low, high = bin_intervals(calibration) if trust.independent else (None, None)
            lines.insert(
                0,
                CalibrationLine(
                    self._title,
                    calibration.posterior,
                    calibration.share,
                    calibration.count,
                    calibration.error,
                    low,
                    high,
                ),
            )
        self._panel.show_trust(lines, "" if trust is None else trust.in_words())


def _key(run: RunEntry | None) -> object:
    return None if run is None else (run.id, run.started)


def _trust(kind: str, items: Sequence[int], study: Study, watch: Watch) -> Trust | None:
    return KINDS[kind].functions.trust(study, items, watch) if items else None
