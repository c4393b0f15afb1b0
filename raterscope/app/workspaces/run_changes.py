"""Changes by a fusion: one line of summary, a list to step through, and the way back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from raterscope.app.changes import Changes, changes_of_run
from raterscope.app.document import Document
from raterscope.app.kinds.registry import KINDS
from raterscope.app.session import LatestTask
from raterscope.app.study.runs import run_name
from raterscope.widgets.panels.history_panel import NEXT

if TYPE_CHECKING:
    from raterscope.app.workspaces.runs import RunControl
    from raterscope.app.workspaces.screen import WorkspaceScreen

__all__ = ["RunChanges"]

HIDDEN = "The changes are hidden as long as you review blind."


class RunChanges(QObject):
    """Joins the list of changes of a screen with the runs of the document.

    Parameters
    ----------
    document : Document
    screen : WorkspaceScreen
    runs : RunControl
    """

    def __init__(self, document: Document, screen: WorkspaceScreen, runs: RunControl) -> None:
        super().__init__(runs)
        self._document, self._screen, self._runs = document, screen, runs
        self._task = LatestTask()
        self.changes: Changes | None = None
        """What the last fusion of this session changed."""
        screen.changes_panel.chosen.connect(self._on_chosen)
        screen.changes_panel.back_requested.connect(self.toggle)
        document.replaced.connect(self.forget)
        document.run_chosen.connect(self._show_back)
        runs.session.blind_changed.connect(self._show_again)

    def find(self, run: int, chosen: int | None) -> None:
        """Compare a run that came with what was shown before; `chosen` was chosen when it was asked for."""
        work = partial(changes_of_run, run, chosen)
        job = self._document.read_beside("Comparing with the run before", work, quiet=True)
        self._task.follow(job, self._on_found)

    def forget(self) -> None:
        """Drop what changed: another study."""
        self._task.cancel()
        self._show(None)

    def step(self, step: int) -> None:
        """Go to the next change of the list, round the end."""
        found = self.changes
        if self._runs.session.blind:
            self._screen.message.emit(HIDDEN)
            return
        if found is None or not found.listed:
            self._screen.message.emit("There is no change to go to.")
            return
        panel = self._screen.changes_panel
        here = panel.current
        first = 0 if step > 0 else len(found.listed) - 1
        panel.select(first if here is None else (here + step) % len(found.listed))

    def toggle(self) -> None:
        """Show the run before the last fusion, or that one again."""
        found, contents = self.changes, self._document.contents
        wanted = self._other_run()
        there = set() if contents is None else {run.id for run in contents.runs}
        if found is None or wanted not in there:
            self._screen.message.emit("There is no previous run to show: fuse again (F5) first.")
            return
        self._runs.choose(wanted)
        run = found.before if wanted == found.before.id else found.after
        self._screen.message.emit(f"{run_name(run).capitalize()} is shown.")

    def _other_run(self) -> int:
        found = self.changes
        if found is None:
            return 0
        return found.after.id if self._runs.session.chosen_run == found.before.id else found.before.id

    def _on_found(self, found: Changes | None) -> None:
        self._show(found)
        if found is not None:
            self._screen.message.emit(f"{_how(found)}: {found.in_words()}.{_next_step(found)}")

    def _show(self, found: Changes | None) -> None:
        self.changes = found
        panel = self._screen.changes_panel
        if found is None:
            panel.set_changes("", ())
        else:
            more = found.count + found.newly_disputed - len(found.listed)
            words = f"Run {found.before.id} to run {found.after.id}: {found.in_words()}."
            if self._runs.session.blind:
                words += f" {HIDDEN}"
            elif found.listed:
                words += f" The {len(found.listed):,} largest are listed." if more else ""
                words += f" {NEXT} steps through the list."
            lines = () if self._runs.session.blind else tuple(one.words for one in found.listed)
            panel.set_changes(words, lines)
        self._show_back()

    def _show_again(self) -> None:
        self._show(self.changes)

    def _show_back(self) -> None:
        found = self.changes
        if found is None:
            self._screen.changes_panel.set_back("", "")
            return
        back = self._other_run() == found.before.id
        run = found.before if back else found.after
        self._screen.changes_panel.set_back(
            "previous run" if back else "latest run", f"Show {run_name(run)}, in exports and reports too"
        )

    def _on_chosen(self, number: int) -> None:
        if self.changes is not None and number < len(self.changes.listed):
            self._runs.session.inspect(self.changes.listed[number])


def _how(found: Changes) -> str:
    """Say whether the run before was repeated, or made in another way."""
    if found.before.algorithm != found.after.algorithm:
        return "Fused by another method"
    return "Fused again" if found.before.settings == found.after.settings else "Fused with other settings"


def _next_step(found: Changes) -> str:
    """Name the key for what comes next, as briefly as a status line needs."""
    if found.listed:
        return f" {NEXT}: see them"
    return " Tab: next disputed" if found.disputed_after and KINDS[found.kind].doubt == "disputed" else ""
