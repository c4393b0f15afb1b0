"""Exclusion or down-weighting of an annotator: a preview of the changes, then a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import Signal

from raterscope.algorithms.clicks.data import PROGRAM
from raterscope.app.kinds.clicks.annotators import ChangedSpot, Recount, RunInputs, gather_run, recount
from raterscope.app.review import Decision
from raterscope.app.workspaces.annotator_decisions import PreviewedExclusion, exclusion_decision
from raterscope.app.workspaces.clicks.annotators import pseudonym
from raterscope.app.workspaces.clicks.scene import Scene
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.app.workspaces.clicks.spot_review import SpotReview
from raterscope.app.workspaces.clicks.spots import spots_of
from raterscope.text import counted, part_of_one
from raterscope.widgets.dialogs.review_dialogs import HALF, WEIGHTS, ExclusionDialog
from raterscope.widgets.panels.exclusion_panel import Change, ExclusionPanel

AROUND = 12.0
"""Half width in pixels of the view on a position without a spot."""


@dataclass(frozen=True, eq=False)
class _Preview:
    """Decisions that would change, the image on screen first; only their number while answers are hidden."""

    recount: Recount
    image: int
    changed: tuple[ChangedSpot, ...]
    blind: bool

    def summary(self) -> str:
        decisions, image = self.recount.decisions, sum(change.image == self.image for change in self.changed)
        all_of = counted(sum(decisions.values()), "decision")
        if not self.changed:
            words = f"would change none of {all_of} on {counted(len(decisions), 'image')}"
        elif len(decisions) == 1:
            words = f"would change {image:,} of {all_of}"
        else:
            on_image = counted(decisions.get(self.image, 0), "decision")
            words = (
                f"would change {image:,} of {on_image} on this image, "
                f"{len(self.changed):,} of {sum(decisions.values()):,} on all {len(decisions):,}"
            )
        lost = len(self.recount.failed)
        return f"{words}; {counted(lost, 'image')} could not be fused for the preview" if lost else words

    def changes(self) -> Sequence[Change]:
        return [
            Change(key, f"{change.name}  {_position_words(change)}", change.before, change.after)
            for key, change in enumerate(() if self.blind else self.changed)
        ]


class Exclusion(ClicksPart):
    """Exclusion, down-weighting and restoring of annotators, with a preview before."""

    opened = Signal(int, object)  # image and spot of the selected change
    message = Signal(str)

    def __init__(self, core: ClicksCore, reviewing: SpotReview) -> None:
        super().__init__(core)
        self._reviewing = reviewing
        self._excluding = PreviewedExclusion(self._show, self._forget)
        self._name = ""
        self._asked_of: Scene | None = None
        """The scene on screen when the dialog was opened: another one may be shown since."""
        self._inputs: RunInputs | None = None
        self._recounts: dict[float | None, Recount] = {}
        """Results while the dialog is open, by weight."""
        self._changed: tuple[ChangedSpot, ...] = ()
        core.screen.table.exclude_requested.connect(self.exclude)
        core.screen.table.weigh_requested.connect(self.weigh)
        core.screen.table.include_requested.connect(self.include)

    def exclude_chosen(self) -> None:
        """Open the dialog for the annotator selected in the table, or restore an excluded one.

        Without a selection, go to the table.
        """
        screen, table = self._screen, self._screen.table
        if table.current is not None:
            table.exclude_current()
            return
        screen.unfold(screen.middle)
        screen.middle_tabs.setCurrentWidget(table)
        table.view.setFocus()
        table.view.selectRow(0)
        self.message.emit("Select an annotator with the arrow keys, then press X.")

    def exclude(self, number: int) -> None:
        """Ask whether to exclude an annotator from the next fusion."""
        self._ask(number, None)

    def weigh(self, number: int) -> None:
        """Ask whether to down-weight an annotator in the next fusion."""
        contents = self._document.contents
        if contents is not None:
            self._ask(number, contents.review.weights.get(contents.annotators[number], HALF))

    def toggle_program(self) -> None:
        """Exclude the scores of a program from the next fusion, or include them again."""
        contents, session = self._document.contents, self._reviewing.session
        if contents is None or not session.shown:
            return
        if PROGRAM in contents.review.excluded:
            self._document.record(Decision(verb="include", annotators=(PROGRAM,)))
            self.message.emit("The scores of the program are included from the next fusion on (F5).")
        elif session.scene.clicks.scores is None:
            self.message.emit("No scores of a program were imported for this image.")
        else:
            self._document.record(Decision(verb="exclude", annotators=(PROGRAM,)))
            self.message.emit("The scores of the program are excluded from the next fusion on (F5).")

    def include(self, number: int) -> None:
        """Restore an annotator with full weight."""
        contents = self._document.contents
        if contents is not None:
            self._document.record(Decision(verb="include", annotators=(contents.annotators[number],)))

    def _ask(self, number: int, weight: float | None) -> None:
        contents = self._document.contents
        if contents is None:
            return
        self._forget()
        self._name = contents.annotators[number]
        session = self._reviewing.session
        self._asked_of = session.scene if session.shown else None
        name = pseudonym(number) if contents.hidden else self._name
        dialog = ExclusionDialog(
            name, self._screen.window(), marks="clicks", answers="decisions", weights=WEIGHTS, weight=weight
        )
        dialog.panel.task_chosen.connect(self._on_change)
        self._excluding.open(dialog, partial(self._on_decided, self._name))

    def _show(self, panel: ExclusionPanel) -> None:
        """Show the changes by the choice, or start to compute them."""
        scene, weight = self._asked_of, panel.weight
        why_not = _why_not(scene, self._name, weight)
        if scene is None or scene.run is None or why_not:
            self._excluding.cancel()
            panel.show_unknown(why_not)
        elif weight in self._recounts:
            self._excluding.cancel()
            self._on_found(weight, panel, self._recounts[weight])
        elif self._inputs is not None:
            self._recount(panel, self._inputs)
        elif not self._excluding.busy:
            job = self._document.ask("Reading the run", partial(gather_run, scene.run.id))
            self._excluding.follow("reading the run", job, self._recount)

    def _recount(self, panel: ExclusionPanel, inputs: RunInputs) -> None:
        self._inputs, contents, weight = inputs, self._document.contents, panel.weight
        if contents is None:
            return
        title = "Fusing without an annotator" if weight is None else "Fusing with a down-weighted annotator"
        job = self._jobs.start(title, partial(recount, inputs, (self._name,), weight, contents.review))
        self._excluding.follow("fusing", job, partial(self._on_found, weight))

    def _on_found(self, weight: float | None, panel: ExclusionPanel, result: Recount) -> None:
        self._recounts[weight] = result
        if self._asked_of is not None:
            image = self._asked_of.image.id
            self._changed = tuple(sorted(result.changed, key=lambda change: change.image != image))
            panel.show_preview(_Preview(result, image, self._changed, blind=self._reviewing.blind))

    def _on_change(self, key: int) -> None:
        change, session = self._changed[key], self._reviewing.session
        if change.cluster is not None and self._inputs is not None:
            self.opened.emit(change.image, spots_of(self._inputs.fusions[change.name], 0, ())[change.cluster])
        elif session.shown and session.scene.image.id == change.image:
            self._screen.canvas.look_at(change.x, change.y, AROUND)
        else:
            self._screen.go_to(change.image)

    def _on_decided(self, name: str, weight: float | None, reason: str) -> None:
        self._document.record(exclusion_decision((name,), weight, reason))

    def _forget(self) -> None:
        self._asked_of, self._inputs, self._changed, self._recounts = None, None, (), {}


def _why_not(scene: Scene | None, name: str, weight: float | None) -> str:
    """Return why the changes cannot be previewed; empty if they can."""
    if scene is None or scene.run is None or scene.fusion is None:
        return "Press Fuse (F5) first to preview what would change."
    if "stream" in scene.run.settings or scene.stream_note:
        return "This result comes from live watching. Press Fuse (F5) first to preview what would change."
    if name in scene.run.excluded:
        already = "" if weight is None else ": no preview of what would change"
        return f"The run shown excludes these clicks already{already}."
    if weight is not None and weight == scene.run.weights.get(name):
        return f"The run shown counts these clicks at {part_of_one(weight)} already."
    return ""


def _position_words(change: ChangedSpot) -> str:
    return f"at {change.x:.0f}, {change.y:.0f}" if change.cluster is None else f"spot {change.cluster + 1}"
