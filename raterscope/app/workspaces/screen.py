"""Workspaces of kinds: common behaviour (session, blind mode, runs, navigation), and their base class."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from raterscope.algorithms import settings
from raterscope.app.assessment import Change
from raterscope.app.document import Document
from raterscope.app.jobs import Jobs
from raterscope.app.review import Decision, counts_by_name
from raterscope.app.session import Session
from raterscope.app.workspaces.layout import ActionEntry, WorkspaceLayout, contains
from raterscope.app.workspaces.navigation import Navigation
from raterscope.app.workspaces.runs import RunControl
from raterscope.app.workspaces.sample_queue import SampleQueue
from raterscope.widgets import theme
from raterscope.widgets.panels.activity_panels import BACK, NEXT, PREVIOUS, ChangesPanel
from raterscope.widgets.panels.fuse_panel import FusePanel, RunRequest
from raterscope.widgets.parts import announce

if TYPE_CHECKING:
    from raterscope.app.contents import Contents
    from raterscope.app.kinds.kind import Plan
    from raterscope.app.study import RunEntry
    from raterscope.app.workspaces.runs import Fusing
    from raterscope.widgets.panels.queue_panel import QueueFrame


BLIND_KEY = "H"

ScreenT = TypeVar("ScreenT", bound="WorkspaceScreen")
SessionT = TypeVar("SessionT", bound="Session[Any, Any]")


@dataclass(frozen=True)
class BlindTexts:
    """Texts of the blind mode: its menu item, and the messages when it is switched on and off."""

    action: str
    on: str
    off: str


class BlindMode(QObject):
    """Blind mode of a workspace: names, votes and results are hidden until the expert decides."""

    def __init__(self, document: Document, session: Session[Any, Any], kind: str, texts: BlindTexts) -> None:
        super().__init__(session)
        self._document, self._session, self._kind, self.texts = document, session, kind, texts
        self.changed = session.blind_changed
        document.replaced.connect(self._on_replaced)

    @property
    def on(self) -> bool:
        """Whether names and votes are hidden."""
        return self._session.blind

    @property
    def note(self) -> str:
        """The note while blind mode is on."""
        return f"{self.texts.on} Press {BLIND_KEY} to leave blind mode."

    @property
    def message(self) -> str:
        """The message after switching."""
        return self.texts.on if self.on else self.texts.off

    def set(self, on: bool) -> None:
        """Switch blind mode on or off."""
        if on != self.on:
            self._document.hide_names(on, self._kind)
            self._session.set_blind(on)

    def _on_replaced(self) -> None:
        self._document.hide_names(self.on, self._kind)  # the contents of a study start with names shown


class WorkspaceCore(QObject, Generic[ScreenT, SessionT]):
    """Common behaviour of the workspaces of all kinds.

    The screen overrides the behaviour of its kind: `WorkspaceScreen.show_scene` and the following methods.

    `kind`: kind of annotation.
    """

    def __init__(
        self, screen: ScreenT, document: Document, jobs: Jobs, session: SessionT, kind: str, blind: BlindTexts
    ) -> None:
        super().__init__(screen)
        self.screen, self.document, self.jobs, self.session, self.kind = (
            screen, document, jobs, session, kind,
        )  # fmt: skip
        self.blind_mode = BlindMode(document, session, kind, blind)
        self.runs = RunControl(document, jobs, screen, session, kind)
        self.sample = SampleQueue(document, jobs, screen, screen.queue, kind)
        self.navigation: Navigation
        self.notices = ""

    @property
    def item(self) -> int | None:
        """The item whose scene is shown."""
        return self.session.scene.item.id if self.session.shown else None

    @property
    def run(self) -> int | None:
        """The run that is shown; None without a scene or a fusion."""
        run = self.session.scene.run if self.session.shown else None
        return None if run is None else int(run.id)

    @property
    def bookmarks(self) -> Sequence[Decision]:
        """The bookmarks on the item on screen and its parts."""
        return () if self.item is None else self.document.review.bookmarks(self.kind, self.item)

    @property
    def notes_by_name(self) -> dict[str, dict[str, int]]:
        """The numbers of comments and bookmarks on the named parts of the item on screen."""
        if self.item is None:
            return {}
        return counts_by_name(self.document.review.comments(self.kind, self.item), self.bookmarks)

    def connect_screen(self, navigation: Navigation) -> None:
        """Connect the screen with study, session and runs, and show the study that is open.

        Parts that must be notified of a scene before the screen must be created before this call.
        """
        self.navigation, screen = navigation, self.screen
        self.document.replaced.connect(self._on_replaced)
        self.document.changed.connect(self._on_changed)
        self.document.decided.connect(self._on_decided)
        navigation.arrived.connect(screen.show_scene)
        navigation.refused.connect(screen.refused)
        self.session.scene_changed.connect(screen.on_scene)
        self.session.cleared.connect(self._on_cleared)
        self.session.change_inspected.connect(self._on_change_inspected)
        self.session.blind_changed.connect(self._on_blind)
        screen.fuse_panel.run_requested.connect(self._on_run_requested)
        screen.fuse_panel.runs.compare_requested.connect(self._on_compare_requested)
        self.runs.fusing.partial.connect(self._on_partial)
        if self.document.contents is not None:  # else `replaced` follows
            self._on_replaced()

    def navigation_actions(self, noun: str) -> tuple[ActionEntry, ...]:
        """Return the actions of every workspace, with the noun of its items."""
        return (
            (self.blind_mode.texts.action, BLIND_KEY, self.toggle_blind),
            (f"Next {noun}", "PgDown", partial(self.navigation.step, 1)),
            (f"Previous {noun}", "PgUp", partial(self.navigation.step, -1)),
            ("Start an acceptance plan…", "Ctrl+Shift+A", self.sample.begin),
            ("End the acceptance plan", "", self.sample.end),
        )

    def toggle_blind(self) -> None:
        """Switch the blind mode, and show a message."""
        self.blind_mode.set(not self.blind_mode.on)
        self.screen.message.emit(self.blind_mode.message)

    def show_notices(self, notices: str) -> None:
        """Show the notices of the run on screen, unless already shown."""
        if notices != self.notices:
            self.notices = notices
            self.screen.message.emit(f"{self.runs.not_included} {notices}".strip())

    def _on_blind(self, blind: bool) -> None:
        self.screen.notes.set_note("Blind", self.blind_mode.note if blind else "")

    def _on_replaced(self) -> None:
        self.runs.forget()
        self.screen.forget_study()
        self.screen.queue.filter.clear()
        self.navigation.reset()
        self._on_changed()

    def _on_changed(self) -> None:
        self._show_history()
        self.navigation.refresh()
        self.screen.on_study_changed()
        self.runs.show_outdated()

    def _on_decided(self, decision: Decision) -> None:
        contents = self.document.contents
        if contents is not None:
            announce(self.screen, contents.text_of(decision))
            self._show_history()
            self.screen.on_decided(decision, contents)
            self.runs.show_outdated()

    def _show_history(self) -> None:
        self.runs.show_history()
        self.screen.show_undoable(self.document.undo_text[0])

    def _on_cleared(self) -> None:
        self.screen.show_not_converged("")
        self.screen.on_cleared()

    def _on_change_inspected(self, change: Change | None) -> None:
        if change is None:
            return
        if self.item == change.item:
            self.screen.show_change(change)
        else:
            self.navigation.visit(change.item, partial(self.screen.show_change, change))

    def _on_run_requested(self, request: RunRequest) -> None:
        self.runs.start(request, self.screen.make_plan(request), self.navigation.current)

    def _on_compare_requested(self, runs: object) -> None:
        self.screen.close_fuse_panel()
        self.screen.show_comparison(runs)  # type: ignore[arg-type]

    def _on_partial(self, item: int, draft: object) -> None:
        if item == self.item:
            self.screen.show_draft(draft)


class WorkspacePart(QObject, Generic[ScreenT, SessionT]):
    """Part of a workspace that updates some of its widgets."""

    def __init__(self, core: WorkspaceCore[ScreenT, SessionT]) -> None:
        super().__init__(core.screen)
        self._core, self._document, self._jobs = core, core.document, core.jobs
        self._screen, self._session = core.screen, core.session


class WorkspacePanel(QWidget, Generic[ScreenT, SessionT]):
    """Panel of a workspace that updates itself."""

    refused = Signal(str)
    run_chosen = Signal(object)  # number of the run to show

    def __init__(self, core: WorkspaceCore[ScreenT, SessionT]) -> None:
        super().__init__()
        theme.set_role(self, "panel")
        self._document, self._jobs, self._session = core.document, core.jobs, core.session
        self.refused.connect(core.screen.refused)
        self.run_chosen.connect(core.runs.choose)


def three_numbers(value: object) -> tuple[float, ...] | None:
    """Return the numbers of a list from an untrusted file; None unless there are three finite numbers."""
    if not isinstance(value, list) or len(value) != 3:
        return None
    if not all(isinstance(number, int | float) and math.isfinite(number) for number in value):
        return None
    return tuple(map(float, value))


class WorkspaceScreen(WorkspaceLayout):
    """Workspace of a kind: queue on the left, canvas in the middle, evidence on the right, plots below.

    It is empty until the steps of `build` are done.
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
        """Place the regions, in steps.

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

    def add_actions(self, described: Sequence[ActionEntry], navigable: Sequence[QWidget]) -> None:
        """Add actions to the Review menu, with those of every workspace; see `add_shortcuts`."""
        changes = self.runs.changes
        fusing: tuple[ActionEntry, ...] = (
            ("Fuse again", "F5", self.fuse_again),
            ("Next change of the last fusion", NEXT, partial(changes.step, 1)),
            ("Previous change of the last fusion", PREVIOUS, partial(changes.step, -1)),
            ("Show the previous run, or the latest again", BACK, changes.toggle),
        )
        self.add_shortcuts((*described, *fusing), navigable)
        for (_, _, slot), action in zip(described, self.actions_made, strict=False):
            if slot == self.core.toggle_blind:
                action.setCheckable(True)
                self.core.blind_mode.changed.connect(action.setChecked)
            elif slot == self.core.sample.end:
                self.core.sample.set_end_action(action)

    def _navigable_lists(self) -> Sequence[QWidget]:
        return [view for view in super()._navigable_lists() if not self.fuse_panel.isAncestorOf(view)]

    def show_changes(self) -> None:
        """Bring the list of changes to the front."""
        self.left_tabs.setCurrentWidget(self.changes_panel)

    def show_not_converged(self, text: str) -> None:
        """Show a note that the result on screen did not converge; an empty text removes the note."""
        self.notes.set_note("Not converged", text)

    def fuse_again(self) -> None:
        """Fuse with the settings and scope of the panel."""
        self.fuse_panel.run.click()

    @property
    def has_to_leave(self) -> bool:
        """Whether there is a mode or a panel for Esc to leave."""
        return self.fuse_panel.isVisible()

    # Common to all kinds

    @property
    def runs(self) -> RunControl:
        """The runs of the workspace."""
        return self.core.runs

    @property
    def fusing(self) -> Fusing:
        """The running fusion."""
        return self.core.runs.fusing

    @property
    def blind_mode(self) -> BlindMode:
        """The blind mode."""
        return self.core.blind_mode

    def current_item(self) -> int | None:
        """Return the number of the item on screen in the study."""
        return self.core.navigation.current

    def go_to(self, item: int) -> None:
        """Show an image, a case, a question."""
        self.core.navigation.go_to(item)

    @property
    def run_on_screen(self) -> RunEntry | None:
        """The run whose result is on screen."""
        run: RunEntry | None = self.core.session.run
        return run

    @property
    def notices(self) -> str:
        """The notices of the run on screen."""
        return self.core.notices

    def stop_fusing(self) -> None:
        """Stop the running fusion."""
        self.fusing.cancel()

    def show_outdated(self) -> None:
        """Show whether and why to fuse again."""
        self.runs.show_outdated()

    # Overridden by each kind

    PLAN: type[settings.Plan]
    """Class of the plan of a kind, if fusion has one step."""

    def make_plan(self, request: RunRequest) -> Plan:
        """Return the plan of a run that was requested in the Fuse panel."""
        return self.PLAN(request.algorithm, request.settings)

    def request_of(self, run: RunEntry) -> RunRequest:
        """Return the request that repeats a run; raises `SettingsError` if the Fuse panel cannot make it."""
        plan = self.PLAN.from_dict(run.settings)
        return RunRequest(plan.algorithm, plan.settings)

    def show_comparison(self, runs: Sequence[int]) -> None:
        """Show the comparison of the runs selected in the Fuse panel."""
        raise NotImplementedError

    def show_change(self, change: Change) -> None:
        """Show a difference between two runs on the item on screen."""
        raise NotImplementedError

    def show_scene(self, scene: Any, analysis: Any) -> None:
        """Show a newly read scene, or none, through the session."""
        self.core.session.show(scene, analysis)

    def on_scene(self, scene: Any) -> None:
        """Show those contents of another scene that the parts of the screen do not show."""
        raise NotImplementedError

    def on_cleared(self) -> None:
        """Clear the screen, because there is no scene."""
        raise NotImplementedError

    def on_decided(self, decision: Decision, contents: Contents) -> None:
        """Show a decision that was stored."""
        raise NotImplementedError

    def forget_study(self) -> None:
        """Drop all data of the previous study."""

    def on_study_changed(self) -> None:
        """Show changes by an import or a deletion, other than in the list of items and the scene."""

    def show_undoable(self, text: str) -> None:
        """Show the decision that can be undone, if the screen has a button for it; empty without one."""

    def show_draft(self, draft: Any) -> None:
        """Show a partial result of the item on screen."""

    # The Fuse panel

    def set_default_algorithms(self, algorithm: str, detector: str) -> None:
        """Set the algorithms for a study without runs; empty for the recommended ones."""
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
