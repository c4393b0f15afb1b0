"""Decisions on annotators of all kinds: exclude, down-weight and restore, with a preview; join, separate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, QSize, Signal
from PySide6.QtWidgets import QWidget

from raterscope.algorithms.progress import Watch
from raterscope.app.annotator_evidence import Consequences
from raterscope.app.annotators.table import preview_change
from raterscope.app.document import Document
from raterscope.app.jobs import Job
from raterscope.app.kinds.registry import KINDS
from raterscope.app.review import Decision, WeightSubject, all_names, groups
from raterscope.app.session import LatestTask
from raterscope.app.study import Study
from raterscope.app.study.masks import refuse_join
from raterscope.text import counted
from raterscope.widgets.dialogs.review_dialogs import HALF, WEIGHTS, ExclusionDialog, ReasonDialog
from raterscope.widgets.panels.exclusion_panel import Change, ExclusionPanel
from raterscope.widgets.theme import pixels

REASONS = ("careless", "misunderstood the task", "copies another annotator", "a test account")
FLAG_REASONS = ("look at their marks", "ask them about the task", "compare again later")
FLAG_HINT = "A flag is a note: table, card and export show it, and no fusion uses it."
NOT_FUSED = "No results of these annotators yet: fuse first (F5 in another tab) to preview the changes."
NO_EFFECT = "Fusions of {} do not use this mark: programs count there as other annotators do."
FULL = 1.0
"""Choice that restores down-weighted annotators."""
WIDTH, HEIGHT = 680, 620


@dataclass(frozen=True)
class Preview:
    """Consequences of a decision for all kinds, in one list."""

    consequences: tuple[Consequences, ...]

    def summary(self) -> str:
        """Describe how many answers would change, and which would be lost."""
        parts = [
            f"{format(each.changed, ',') if each.changed else 'none'} of {counted(each.total, each.noun)}"
            for each in self.consequences
            if each.total or not each.notes
        ]
        notes = [note for each in self.consequences for note in each.notes]
        changed = f"would change {', '.join(parts)}"
        return " ".join([f"{changed}.", *notes]) if notes else changed

    def changes(self) -> Sequence[Change]:
        """List the changed answers, with their kind if there are several."""
        several = len(self.consequences) > 1
        rows = [
            (f"{KINDS[each.kind].title}: {change.name}" if several else change.name, change)
            for each in self.consequences
            for change in each.changes
        ]
        return [Change(key, name, change.before, change.after) for key, (name, change) in enumerate(rows)]


class PreviewedExclusion:
    """Dialog that excludes or down-weights annotators, with a preview computed in the background.

    `preview`: shows the changes of the dialog's choice, or begins to compute them. `forget`: drops computed
    previews, when the dialog was closed. `kind`: kind of annotation of the preview; None for all.
    """

    def __init__(
        self,
        document: Document,
        preview: Callable[[ExclusionPanel], object],
        forget: Callable[[], object],
        kind: str | None = None,
    ) -> None:
        self._document, self._preview, self._forget, self._kind = document, preview, forget, kind
        self.dialog: ExclusionDialog | None = None
        self._task = LatestTask()

    @property
    def busy(self) -> bool:
        """Whether a preview is computed."""
        return self._task.busy

    def open(self, dialog: ExclusionDialog, names: Sequence[str]) -> None:
        """Open a dialog, and record its decision on these annotators."""
        self.cancel()
        self.dialog, panel = dialog, dialog.panel
        contents = self._document.contents
        runs = (
            () if contents is None else contents.runs if self._kind is None else contents.runs_of(self._kind)
        )
        if contents is not None and runs:
            latest = {run.kind: run.excluded for run in runs}.values()
            since = [name for name in contents.review.excluded if any(name not in out for out in latest)]
            panel.also = f", with {counted(len(since), 'annotator')} excluded since the run" if since else ""
        panel.choice_changed.connect(self.show)
        panel.cancelled.connect(self._on_cancelled)
        dialog.accepted.connect(partial(self._on_accepted, dialog, tuple(names)))
        dialog.finished.connect(self._on_closed)
        dialog.open()
        self.show()

    def show(self) -> None:
        """Show the changes of the choice, or begin to compute them."""
        if self.dialog is not None:
            self._preview(self.dialog.panel)

    def cancel(self) -> None:
        """Stop computing a preview."""
        self._task.cancel()

    def follow(self, text: str, job: Job, deliver: Callable[[ExclusionPanel, Any], object]) -> None:
        """Show the progress of a job, and deliver its answer with the panel, or show why it failed."""
        if self.dialog is not None:
            panel = self.dialog.panel
            panel.set_working(0.0, text)
            self._task.follow(
                job,
                partial(deliver, panel),
                progressed=lambda job: panel.set_working(job.fraction, job.text),
                failed=lambda sentence: panel.show_unknown(f"The changes are unknown: {sentence}"),
            )

    def _on_accepted(self, dialog: ExclusionDialog, names: tuple[str, ...]) -> None:
        """Record the exclusion or the weight, including a restored full weight."""
        weight = dialog.panel.weight
        verb = "exclude" if weight is None else "include" if weight == FULL else "weigh"
        subject = WeightSubject(weight=weight) if weight is not None and weight < FULL else None
        self._document.record(Decision(verb=verb, subject=subject, annotators=names, reason=dialog.reason))

    def _on_cancelled(self) -> None:
        if self.busy and self.dialog is not None:
            self.cancel()
            self.dialog.panel.show_unknown("The changes are unknown: the preview was cancelled.")

    def _on_closed(self) -> None:
        self.cancel()
        self.dialog = None
        self._forget()


class AnnotatorDecisions(QObject):
    """Decisions on the selected annotators.

    `selected`: returns the main names of the selected annotators, the current one first. `shown`: returns the
    displayed form of a name. `reasons`: reasons offered for an exclusion.
    """

    message = Signal(str)
    refused = Signal(str)

    def __init__(
        self,
        document: Document,
        selected: Callable[[], tuple[str, ...]],
        shown: Callable[[str], str],
        parent: QWidget,
        reasons: Sequence[str] = REASONS,
    ) -> None:
        super().__init__(parent)
        self._document, self._selected, self._shown = document, selected, shown
        self._reasons = reasons
        self._window = parent
        self._task = LatestTask()
        self._excluding = PreviewedExclusion(document, self._show, self._forget)
        self.flag_dialog: ReasonDialog | None = None
        self._names: tuple[str, ...] = ()
        self._effects: dict[float | None, tuple[Consequences, ...]] = {}
        """Previews while the dialog is open, by weight."""

    def exclude(self) -> None:
        """Preview and exclude the selected annotators; restore them if all are excluded."""
        names = self._needed()
        if names:
            self.exclude_names(names)

    def exclude_names(self, names: tuple[str, ...]) -> None:
        """Preview and exclude annotators; restore them if all are excluded."""
        excluded = self._document.review.excluded
        if all(name in excluded for name in names):
            self._document.record(Decision(verb="include", annotators=self._all(names)))
            return
        self._ask(tuple(name for name in names if name not in excluded), None)

    def weigh(self) -> None:
        """Preview and set a weight for the selected annotators."""
        names = self._needed()
        if names and set(names) <= self._document.review.programs:
            self.message.emit("Programs are weighted by how well they predict the others. X excludes them.")
        elif names:
            self._ask(names, HALF)

    def flag(self) -> None:
        """Ask for a reason and flag the selected annotators; remove the flag if all have it."""
        names = self._needed()
        if not names:
            return
        if all(name in self._document.review.flagged for name in names):
            self._document.record(Decision(verb="unmark", annotators=self._all(names)))
            return
        annotators = self._shown(names[0]) if len(names) == 1 else counted(len(names), "annotator")
        self.flag_dialog = dialog = ReasonDialog(
            annotators, FLAG_REASONS, self._window.window(), act="Flag", hint=FLAG_HINT
        )
        dialog.accepted.connect(partial(self._on_flagged, names, dialog))
        dialog.finished.connect(self._on_flag_closed)
        dialog.open()

    def mark_programs(self, kinds: AbstractSet[str]) -> None:
        """Mark the selected annotators as programs, or as persons if all are programs.

        `kinds`: kinds of their fused annotations; without any, the kinds in the study.
        """
        names, contents = self._needed(), self._document.contents
        if names and contents is not None:
            all_programs = all(name in contents.review.programs for name in names)
            verb = "person" if all_programs else "program"
            job = self._document.record(Decision(verb=verb, annotators=self._all(names)))
            kinds = kinds or {kind for kind, items in contents.items.items() if items}
            if verb == "program" and kinds and not any(KINDS[kind].uses_programs for kind in kinds):
                message = NO_EFFECT.format(" and ".join(sorted(kinds)))
                job.finished.connect(lambda _: self.message.emit(message))

    def _on_flagged(self, names: tuple[str, ...], dialog: ReasonDialog) -> None:
        self._document.record(Decision(verb="mark", annotators=self._all(names), reason=dialog.reason))

    def _on_flag_closed(self) -> None:
        self.flag_dialog = None

    def join(self) -> None:
        """Join the selected names, unless two of them have masks of the same structure."""
        names = self._needed()
        if len(names) < 2:
            self.message.emit("Select two names or more of one annotator, then press J.")
            return
        job = self._document.ask("Comparing names", partial(_refusal, self._all(names)))
        self._task.follow(job, partial(self._on_checked, names))

    def separate(self) -> None:
        """Separate the joined names of the selected annotators into annotators again."""
        joined = groups(self._document.review.aliases)
        aliases = tuple(alias for name in self._needed() for alias in joined.get(name, (name,))[1:])
        if aliases:
            self._document.record(Decision(verb="separate", annotators=aliases))
        else:
            self.message.emit("The selected annotators have no joined names.")

    def _needed(self) -> tuple[str, ...]:
        names = self._selected()
        if not names:
            self.message.emit("Select an annotator in the table first.")
        return names

    def _all(self, names: Sequence[str]) -> tuple[str, ...]:
        return all_names(names, self._document.review.aliases)

    def _on_checked(self, names: tuple[str, ...], refusal: str) -> None:
        if refusal:
            self.refused.emit(refusal)
        else:
            self._document.record(Decision(verb="join", annotators=names))

    @property
    def dialog(self) -> ExclusionDialog | None:
        """The open dialog."""
        return self._excluding.dialog

    def _ask(self, names: tuple[str, ...], weight: float | None) -> None:
        self._names, self._effects = names, {}
        subject = self._shown(names[0]) if len(names) == 1 else counted(len(names), "annotator")
        dialog = ExclusionDialog(
            subject, self._window.window(), reasons=self._reasons, marks="marks", answers="results",
            weights=WEIGHTS if self._document.review.weighed.keys().isdisjoint(names) else (FULL, *WEIGHTS),
            weight=weight,
        )  # fmt: skip
        dialog.resize(QSize(pixels(WIDTH), pixels(HEIGHT)).boundedTo(self._window.window().size()))
        self._excluding.open(dialog, self._all(names))

    def _show(self, panel: ExclusionPanel) -> None:
        """Show the consequences of the choice, or begin to compute them."""
        weight = panel.weight
        self._excluding.cancel()
        if weight in self._effects:
            self._on_effects(weight, panel, self._effects[weight])
            return
        job = self._document.read_beside(
            "Fusing without annotators" if weight is None else "Fusing with a weight",
            partial(preview_change, self._names, weight),
        )
        self._excluding.follow("reading the runs", job, partial(self._on_effects, weight))

    def _on_effects(
        self, weight: float | None, panel: ExclusionPanel, consequences: tuple[Consequences, ...]
    ) -> None:
        self._effects[weight] = consequences
        if consequences:
            panel.show_preview(Preview(consequences))
        else:
            panel.show_unknown(NOT_FUSED)

    def _forget(self) -> None:
        self._effects = {}


def _refusal(names: Sequence[str], study: Study, watch: Watch) -> str:
    watch(0.0, "comparing")
    return refuse_join(study, names)
