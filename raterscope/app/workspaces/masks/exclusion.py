"""Exclusion of a rater: a preview of the changes on the case shown, then a decision with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from raterscope.app.errors import counted, plain
from raterscope.app.jobs import Job
from raterscope.app.kinds.masks.annotators import ConsensusChange, FusedCase, fuse_without, gather_case
from raterscope.app.review import Decision
from raterscope.app.session import LatestTask
from raterscope.app.workspaces.masks.screen import MasksCore, MasksPart
from raterscope.widgets.dialogs.review_dialogs import ExclusionDialog
from raterscope.widgets.panels.exclusion_panel import Change

REASONS = ("draws something else", "always too large", "always too small", "unfinished")
NOT_FUSED = "Press Fuse (F5) first to preview what would change."
NOT_IN_RUN = "The run shown does not include masks of this rater for this case."
CANCELLED = "The changes are unknown: the preview was cancelled."


@dataclass(frozen=True)
class _Preview:
    """Structures of the case whose consensus would change."""

    structures: tuple[ConsensusChange, ...]

    def summary(self) -> str:
        changed = sum(structure.changed for structure in self.structures)
        total = counted(sum(structure.before for structure in self.structures), "voxel")
        return f"would change {changed or 'none'} of {total} of the consensus on this case"

    def changes(self) -> Sequence[Change]:
        return [
            Change(key, plain(change.structure), counted(change.before, "voxel"), f"{change.after:,}")
            for key, change in enumerate(self.structures)
            if change.changed
        ]


class Exclusion(MasksPart):
    """Shows a preview before a rater is excluded, and restores raters."""

    def __init__(self, core: MasksCore) -> None:
        super().__init__(core)
        self._task = LatestTask()
        self._dialog: ExclusionDialog | None = None
        core.screen.table.exclude_requested.connect(self.exclude)
        core.screen.table.include_requested.connect(self.include)

    def include(self, name: str) -> None:
        """Restore a rater."""
        self._document.record(Decision(verb="include", annotators=(name,)))

    def exclude(self, name: str) -> None:
        """Preview the fusion without a rater, and ask for a reason to exclude them."""
        self._task.cancel()
        self._dialog = dialog = ExclusionDialog(
            name, self._screen.window(), reasons=REASONS, marks="masks", answers="structures"
        )
        dialog.panel.cancelled.connect(self._on_cancelled)
        dialog.accepted.connect(partial(self._on_decided, name, dialog))
        dialog.finished.connect(self._on_closed)
        dialog.open()
        scene = self._session.scene if self._session.shown else None
        if scene is None or scene.run is None or scene.result is None:
            dialog.panel.show_unknown(NOT_FUSED)
            return
        dialog.panel.set_working(0.0, "reading the masks")
        job = self._document.ask("Reading the masks", partial(gather_case, scene.run.id, scene.image.id))
        self._task.follow(job, partial(self._on_gathered, name), failed=self._on_failed)

    def _on_gathered(self, name: str, fused: FusedCase | None) -> None:
        if self._dialog is None:
            return
        if fused is None or not any(name in raters for raters in fused.case.records.values()):
            self._dialog.panel.show_unknown(NOT_IN_RUN)
            return
        job = self._jobs.start("Fusing without a rater", partial(fuse_without, fused, (name,)))
        self._task.follow(job, self._on_fused, progressed=self._on_progress, failed=self._on_failed)

    def _on_progress(self, job: Job) -> None:
        if self._dialog is not None:
            self._dialog.panel.set_working(job.fraction, job.words)

    def _on_fused(self, structures: tuple[ConsensusChange, ...]) -> None:
        if self._dialog is not None:
            self._dialog.panel.show_preview(_Preview(structures))

    def _on_failed(self, sentence: str) -> None:
        if self._dialog is not None:
            self._dialog.panel.show_unknown(f"The changes are unknown: {sentence}")

    def _on_cancelled(self) -> None:
        if self._task.busy and self._dialog is not None:
            self._task.cancel()
            self._dialog.panel.show_unknown(CANCELLED)

    def _on_decided(self, name: str, dialog: ExclusionDialog) -> None:
        self._document.record(Decision(verb="exclude", annotators=(name,), reason=dialog.reason))

    def _on_closed(self) -> None:
        self._task.cancel()
        self._dialog = None
