"""Exclusion of annotators: a preview of the changes, then a decision with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from PySide6.QtCore import Signal

from raterscope.algorithms.labels import OPEN, LabelFusion, Labels
from raterscope.algorithms.labels.cross_validation import ExclusionPreview, preview_exclusion
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.progress import Watch
from raterscope.algorithms.settings import SettingsError
from raterscope.app.errors import counted
from raterscope.app.jobs import Job
from raterscope.app.kinds.labels.runs import fuse_with_programs
from raterscope.app.review import Decision
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.workspaces.labels import view
from raterscope.app.workspaces.labels.scene import Scene
from raterscope.app.workspaces.labels.screen import LabelsCore, LabelsPart
from raterscope.widgets.panels.exclusion_panel import ExclusionPreview as Preview


class Exclusion(LabelsPart):
    """Connects the exclusion panel with the journal."""

    message = Signal(str)

    def __init__(self, core: LabelsCore) -> None:
        super().__init__(core)
        self._panel = core.screen.exclusion
        self._chosen: tuple[str, ...] = ()
        self._who = ""
        self._task = LatestTask()
        self._panel.preview_wanted.connect(self.begin)
        self._panel.decided.connect(self._on_excluded)
        self._panel.cancelled.connect(self._on_cancelled)
        core.session.scene_changed.connect(self._clear)
        core.session.cleared.connect(self._clear)
        core.session.selection_changed.connect(self._on_selection)
        core.session.blind_changed.connect(self._on_blind)

    def _clear(self) -> None:
        self._task.cancel()
        self._chosen = ()
        self._who = ""
        self.refresh()

    @while_shown
    def _on_selection(self, annotators: tuple[int, ...]) -> None:
        self._task.cancel()
        names = self._session.scene.labels.annotators
        self._chosen = tuple(names[annotator] for annotator in annotators)
        self._name()
        self.refresh()

    @while_shown
    def _on_blind(self) -> None:
        """Hide the annotators' names, and clear a preview."""
        self._task.cancel()
        self._name()
        self.refresh()

    def _name(self) -> None:
        scene = self._session.scene
        if len(self._chosen) == 1:
            number = scene.labels.annotators.index(self._chosen[0])
            self._who = view.name_of(scene, number, blind=self._session.blind)
        else:
            self._who = counted(len(self._chosen), "annotator")

    def refresh(self) -> None:
        """Show the selected annotators, and whether they are already excluded."""
        excluded = self._excluded
        excluded_reasons = [excluded[name] for name in self._chosen if name in excluded] if excluded else []
        reasons, count = sorted(set(excluded_reasons)), len(excluded_reasons)
        all_out = bool(count) and count == len(self._chosen)
        words = f"{'' if all_out else f'{count} of them '}excluded: {'; '.join(reasons[:3])}" if count else ""
        self._panel.set_annotators(self._who if self._chosen else "", words, out=all_out)
        self._screen.make_room(False)

    @property
    def _excluded(self) -> Mapping[str, str]:
        contents = self._document.contents
        return contents.review.excluded if contents else {}

    def begin(self) -> None:
        """Fuse without the selected annotators, and show the changes; restore them if they are excluded."""
        if not self._session.shown or not self._chosen:
            self.message.emit("Select an annotator or a community first.")
            return
        scene = self._session.scene
        if self._excluded.keys() >= set(self._chosen):
            self._document.record(Decision(verb="include", annotators=self._chosen))
            return
        if scene.fusion is None or scene.run is None:
            self._panel.show_failure("Press Fuse (F5) first to preview what would change.")
            return
        try:
            plan = LabelPlan.from_dict(scene.run.settings)
        except SettingsError as error:
            self._panel.show_failure(f"The run's settings cannot be read: {error}")
            return
        work = partial(_preview, scene, plan, frozenset(self._chosen))
        job = self._jobs.start("Fusing without them", work)
        self._panel.set_working(0.0, "fusing without them")
        self._screen.make_room(True)
        self._task.follow(
            job, partial(self._on_preview, scene), progressed=self._on_progress,
            failed=self._panel.show_failure,
        )  # fmt: skip

    def _on_progress(self, job: Job) -> None:
        self._panel.set_working(job.fraction, job.words)

    def _on_preview(self, scene: Scene, preview: ExclusionPreview) -> None:
        self._panel.show_preview(
            Preview(preview.task, preview.before, preview.after, scene.labels.tasks, scene.classes)
        )

    def _on_excluded(self, reason: str) -> None:
        excluded = self._excluded
        names = tuple(name for name in self._chosen if name not in excluded)
        if names:
            self._document.record(Decision(verb="exclude", annotators=names, reason=reason))

    def _on_cancelled(self) -> None:
        self._task.cancel()
        self.refresh()


def _preview(scene: Scene, plan: LabelPlan, names: frozenset[str], watch: Watch) -> ExclusionPreview:
    assert scene.fusion is not None
    return preview_exclusion(
        with_known_labels(scene.labels, scene.fusion), scene.fusion, names,
        partial(fuse_with_programs, plan, scene.programs), watch, scene.truth,
    )  # fmt: skip


def with_known_labels(labels: Labels, fusion: LabelFusion) -> Labels:
    """Return labels with the known labels that a fusion holds fixed."""
    return replace(labels, known=fusion.known if (fusion.known != OPEN).any() else None)
