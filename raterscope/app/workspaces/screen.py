"""Base class of the workspaces of kinds: the Fuse panel over the layout, what a kind overrides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QWidget

from raterscope.app.workspaces.layout import TABS, ActionEntry, WorkspaceLayout, contains, split_widgets
from raterscope.widgets.panels.activity_panels import BACK, NEXT, PREVIOUS, ChangesPanel
from raterscope.widgets.panels.fuse_panel import FusePanel

if TYPE_CHECKING:
    from raterscope.app.assessment import Change
    from raterscope.app.contents import Contents
    from raterscope.app.kinds.kind import Plan
    from raterscope.app.review import Decision
    from raterscope.app.study import RunEntry
    from raterscope.app.workspaces.core import BlindMode, WorkspaceCore
    from raterscope.app.workspaces.runs import Fusing, RunControl
    from raterscope.widgets.panels.fuse_panel import RunRequest
    from raterscope.widgets.panels.queue_panel import QueueFrame

__all__ = ["TABS", "ActionEntry", "WorkspaceScreen", "split_widgets"]


class WorkspaceScreen(WorkspaceLayout):
    """Workspace of a kind: queue on the left, canvas in the middle, evidence on the right, plots below.

    It is empty until its steps from `build` are done.
    """

    FUSES = True

    core: WorkspaceCore[Any, Any]
    queue: QueueFrame

    def lay_out(
        self,
        queue: QWidget,
        canvas: QWidget,
        evidence: QWidget,
        below: Sequence[QWidget],
        fuse_panel: FusePanel,
        widths: Sequence[int],
    ) -> Iterator[None]:
        """Put the regions in their places, in steps.

        `below`, `widths`: see `WorkspaceLayout.place_regions`.
        """
        self.fuse_panel = fuse_panel
        yield from self.place_regions(queue, canvas, evidence, below, widths)
        fuse_panel.setParent(self)
        fuse_panel.hide()
        fuse_panel.size_changed.connect(self.place_panel)
        self.changes_panel = ChangesPanel()
        self.left_tabs.addTab(self.changes_panel, "Changes")
        self.left_tabs.tabBar().setAccessibleName("History, jobs and changes")
        yield

    def add_actions(self, described: Sequence[ActionEntry], walked: Sequence[QWidget]) -> None:
        """Add actions to the Review menu, with those of every workspace; see `add_shortcuts`."""
        changes = self.runs.changes
        fusing: tuple[ActionEntry, ...] = (
            ("Fuse again", "F5", self.fuse_again),
            ("Next change of the last fusion", NEXT, partial(changes.step, 1)),
            ("Previous change of the last fusion", PREVIOUS, partial(changes.step, -1)),
            ("Show the previous run, or the latest again", BACK, changes.toggle),
        )
        self.add_shortcuts((*described, *fusing), walked)
        for (_, _, slot), action in zip(described, self.actions_made, strict=False):
            if slot == self.core.toggle_blind:
                action.setCheckable(True)
                self.core.blind_mode.changed.connect(action.setChecked)
            elif slot == self.core.sample.end:
                self.core.sample.set_end_action(action)

    def _walked_lists(self) -> Sequence[QWidget]:
        return [view for view in super()._walked_lists() if not self.fuse_panel.isAncestorOf(view)]

    def show_changes(self) -> None:
        """Bring the list of changes to the front."""
        self.left_tabs.setCurrentWidget(self.changes_panel)

    def show_not_converged(self, words: str) -> None:
        """Note that the result on screen did not converge; without words, remove the note."""
        self.notes.set_note("Not converged", words)

    def fuse_again(self) -> None:
        """Fuse with the settings and scope of the panel."""
        self.fuse_panel.run.click()

    @property
    def has_to_leave(self) -> bool:
        """Whether Esc has a mode or a panel to leave."""
        return self.fuse_panel.isVisible()

    # Common to all kinds

    @property
    def runs(self) -> RunControl:
        """The runs of the workspace."""
        return self.core.runs

    @property
    def fusing(self) -> Fusing:
        """The fusion under way."""
        return self.core.runs.fusing

    @property
    def blind_mode(self) -> BlindMode:
        """The blind mode."""
        return self.core.blind_mode

    def current_item(self) -> int | None:
        """Return the study's number of the item on screen."""
        return self.core.navigation.current

    def go_to(self, item: int) -> None:
        """Show an image, a case, a question."""
        self.core.navigation.go_to(item)

    @property
    def run_on_screen(self) -> RunEntry | None:
        """The run whose result is on screen."""
        run: RunEntry | None = self.core.session.run
        return run

    def stop_fusing(self) -> None:
        """Stop the fusion under way."""
        self.fusing.cancel()

    def show_outdated(self) -> None:
        """Show whether and why to fuse again."""
        self.runs.show_outdated()

    # Overridden by each kind

    def make_plan(self, request: RunRequest) -> Plan:
        """Return the plan of a run that was requested in the Fuse panel."""
        raise NotImplementedError

    def request_of(self, run: RunEntry) -> RunRequest:
        """Return the request that repeats a run; `SettingsError` where the Fuse panel cannot make it."""
        raise NotImplementedError

    def show_comparison(self, runs: Sequence[int]) -> None:
        """Show the comparison of runs that were ticked in the Fuse panel."""
        raise NotImplementedError

    def show_change(self, change: Change) -> None:
        """Show a difference between two runs; its item is on screen."""
        raise NotImplementedError

    def show_scene(self, scene: Any, analysis: Any) -> None:
        """Show a scene that was read, or none, by the session."""
        raise NotImplementedError

    def on_scene(self, scene: Any) -> None:
        """Show what the parts of the screen do not show of another scene."""
        raise NotImplementedError

    def on_cleared(self) -> None:
        """Show that there is no scene."""
        raise NotImplementedError

    def on_decided(self, decision: Decision, contents: Contents) -> None:
        """Show a decision that was stored."""
        raise NotImplementedError

    def forget_study(self) -> None:
        """Drop what belongs to the study that was open."""

    def on_study_changed(self) -> None:
        """Show the changes by an import or a deletion, besides the list of items and the scene."""

    def show_undoable(self, words: str) -> None:
        """Show the decision that can be undone, if the screen has a button for it; empty without one."""

    def show_draft(self, draft: Any) -> None:
        """Show a partial result of the item on screen."""

    # The Fuse panel

    def set_default_algorithms(self, algorithm: str, detector: str) -> None:
        """Choose what a study without runs is fused with; empty for what is recommended."""
        self.fuse_panel.set_defaults(algorithm, detector)

    def toggle_fuse_panel(self) -> None:
        """Open or close the Fuse panel below its button."""
        if self.fuse_panel.isVisible():
            self.close_fuse_panel()
        else:
            self.fuse_panel.show()
            self._place_fuse_panel()
            self.fuse_panel.raise_()
            self.fuse_panel.setFocus()

    def close_fuse_panel(self) -> None:
        """Close the Fuse panel; the focus returns to the canvas."""
        held_keys = contains(self.fuse_panel, self.fuse_panel.window().focusWidget())
        if held_keys:
            self.canvas.setFocus()  # before it hides: otherwise Qt moves the focus to the next widget
        self.fuse_panel.hide()

    def place_panel(self) -> None:
        """Keep the Fuse panel at its edge while it is open."""
        if self.fuse_panel.isVisible():
            self._place_fuse_panel()

    def _place_fuse_panel(self) -> None:
        width = min(self.fuse_panel.sizeHint().width(), self.width() - 16)
        height = min(self.fuse_panel.sizeHint().height(), self.height() - 16)
        self.fuse_panel.setGeometry(self.width() - width - 8, 8, width, height)
