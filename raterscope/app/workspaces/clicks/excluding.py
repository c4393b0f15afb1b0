"""Leaving an annotator out: what would change is fused and shown first, then it is decided with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject, Signal

from raterscope.app.clicks.excluding import ChangedSpot, RunInputs, Without, gather_run, without
from raterscope.app.document import Document
from raterscope.app.errors import counted
from raterscope.app.jobs import Job, Jobs
from raterscope.app.review import Decision
from raterscope.app.workspaces.clicks.annotators import alias
from raterscope.app.workspaces.clicks.reviewing import Reviewing
from raterscope.app.workspaces.clicks.scene import Scene
from raterscope.app.workspaces.clicks.screen import ClicksScreen
from raterscope.app.workspaces.clicks.spots import spots_of
from raterscope.widgets.dialogs.exclusion import ExclusionDialog
from raterscope.widgets.panels.exclusion_panel import Change

__all__ = ["Excluding"]

AROUND = 12.0
"""Pixels about a place where no spot is yet."""


@dataclass(frozen=True, eq=False)
class _Preview:
    """What would change, the image on screen first; only how much where answers are hidden."""

    found: Without
    here: int
    changed: tuple[ChangedSpot, ...]
    blind: bool

    def summary(self) -> str:
        of, here = self.found.decisions, sum(one.image == self.here for one in self.changed)
        all_of = counted(sum(of.values()), "decision")
        if not self.changed:
            words = f"would change none of {all_of} on {counted(len(of), 'image')}"
        elif len(of) == 1:
            words = f"would change {here:,} of {all_of}"
        else:
            on_image = counted(of.get(self.here, 0), "decision")
            words = (
                f"would change {here:,} of {on_image} on this image, "
                f"{len(self.changed):,} of {sum(of.values()):,} on all {len(of):,}"
            )
        lost = len(self.found.failed)
        return f"{words}; {counted(lost, 'image')} could not be fused without" if lost else words

    def changes(self) -> Sequence[Change]:
        return [
            Change(key, f"{one.name}  {_place(one)}", one.before, one.after)
            for key, one in enumerate(() if self.blind else self.changed)
        ]


class Excluding(QObject):
    """Asks before an annotator is left out, and takes annotators back in.

    Signals
    -------
    opened(int, Spot)
        Image and spot of a change that was gone to.
    """

    opened = Signal(int, object)

    def __init__(self, document: Document, jobs: Jobs, screen: ClicksScreen, reviewing: Reviewing) -> None:
        super().__init__(screen)
        self._document, self._jobs = document, jobs
        self._screen, self._reviewing = screen, reviewing
        self._dialog: ExclusionDialog | None = None
        self._job: Job | None = None
        self._inputs: RunInputs | None = None
        self._changed: tuple[ChangedSpot, ...] = ()
        screen.table.exclude_requested.connect(self.exclude)
        screen.table.include_requested.connect(self.include)

    def exclude(self, number: int) -> None:
        """Show what would change, ask for a reason, then leave the annotator out of the next fusion."""
        contents, scene = self._document.contents, self._reviewing.scene
        if contents is None:
            return
        self._stop()
        name = contents.annotators[number]
        dialog = ExclusionDialog(alias(number) if contents.hidden else name, self._screen.window())
        self._dialog, self._inputs, self._changed = dialog, None, ()
        dialog.panel.task_chosen.connect(self._on_change)
        dialog.panel.cancelled.connect(self._on_cancelled)
        dialog.accepted.connect(partial(self._on_reason, name, dialog))
        dialog.finished.connect(self._on_closed)
        dialog.open()
        why_not = _why_not(scene, name)
        if scene is None or scene.run is None or why_not:
            dialog.panel.show_unknown(why_not)
            return
        dialog.panel.set_working(0.0, "reading the run")
        job = self._document.ask("Reading the run", partial(gather_run, scene.run.id))
        self._follow(job)
        job.finished.connect(partial(self._on_gathered, job, name, scene.image.id))

    def include(self, number: int) -> None:
        """Take an annotator back in."""
        contents = self._document.contents
        if contents is not None:
            self._document.record(Decision(verb="include", annotators=(contents.annotators[number],)))

    def _follow(self, job: Job) -> None:
        self._job = job
        job.progressed.connect(partial(self._on_progress, job))
        job.failed.connect(partial(self._on_failed, job))

    def _on_progress(self, job: Job) -> None:
        if job is self._job and self._dialog is not None and job.state == "running":
            self._dialog.panel.set_working(job.fraction, job.words)

    def _on_failed(self, job: Job, sentence: str) -> None:
        if job is self._job and self._dialog is not None:
            self._job = None
            self._dialog.panel.show_unknown(f"What would change is not known: {sentence}")

    def _on_gathered(self, job: Job, name: str, here: int, inputs: RunInputs) -> None:
        contents = self._document.contents
        if job is self._job and contents is not None:
            self._inputs = inputs
            fusing = self._jobs.start(
                "Fusing without an annotator", partial(without, inputs, name, contents.review)
            )
            self._follow(fusing)
            fusing.finished.connect(partial(self._on_found, fusing, here))

    def _on_found(self, job: Job, here: int, found: Without) -> None:
        if job is self._job and self._dialog is not None:
            self._job = None
            self._changed = tuple(sorted(found.changed, key=lambda one: one.image != here))
            preview = _Preview(found, here, self._changed, blind=self._reviewing.blind)
            self._dialog.panel.show_preview(preview)

    def _on_change(self, key: int) -> None:
        one, scene = self._changed[key], self._reviewing.scene
        if one.cluster is not None and self._inputs is not None:
            self.opened.emit(one.image, spots_of(self._inputs.fusions[one.name], 0, ())[one.cluster])
        elif scene is not None and scene.image.id == one.image:
            self._screen.canvas.look_at(one.x, one.y, AROUND)
        else:
            self._screen.go_to(one.image)

    def _on_cancelled(self) -> None:
        if self._job is not None and self._dialog is not None:
            self._stop()
            self._dialog.panel.show_unknown("What would change is not known: working it out was cancelled.")

    def _on_reason(self, name: str, dialog: ExclusionDialog) -> None:
        self._document.record(Decision(verb="exclude", annotators=(name,), reason=dialog.reason))

    def _on_closed(self) -> None:
        self._stop()
        self._dialog, self._inputs, self._changed = None, None, ()

    def _stop(self) -> None:
        if self._job is not None:
            self._job.cancel()
            self._job = None


def _why_not(scene: Scene | None, name: str) -> str:
    """Say why it cannot be told what would change; empty where it can."""
    if scene is None or scene.run is None or scene.fusion is None:
        return "Nothing is fused yet: what would change cannot be told."
    if "stream" in scene.run.settings or scene.told:
        return "These clicks were fused as they came: what would change can be told once they are fused anew."
    if name in scene.run.excluded:
        return "The run shown leaves these clicks out already."
    return ""


def _place(one: ChangedSpot) -> str:
    return f"at {one.x:.0f}, {one.y:.0f}" if one.cluster is None else f"spot {one.cluster + 1}"
