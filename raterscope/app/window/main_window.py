"""Main window: top bar, workspace of the study, status line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDragLeaveEvent, QDropEvent, QKeyEvent
from PySide6.QtWidgets import QLineEdit, QMainWindow, QWidget

from raterscope.app.document import Document
from raterscope.app.jobs import Job, Jobs, in_turns
from raterscope.app.window import preferences
from raterscope.app.window.bars import CohortBar, CohortCases, NoticeBar, StatusLine, TopBar
from raterscope.app.window.experts import ExpertStudies, ReadingMode
from raterscope.app.window.exporting import FigureExporter, StudyExporter
from raterscope.app.window.files import FileActions, Importer, RecentStudies
from raterscope.app.window.menus import Menus, WindowActions
from raterscope.app.window.pacs import PacsTransfer
from raterscope.app.window.preferences import ReopenBar, SessionRestore
from raterscope.app.window.start_page import Reproduction, StartScreen
from raterscope.app.window.unsaved_results import (
    LeaveGuard,
    MovedBar,
    MovedStudy,
    UnsavedBar,
    UnsavedResults,
    describe_saved,
)
from raterscope.app.workspaces.catalogue import WORKSPACES, WorkspaceKind
from raterscope.app.workspaces.layout import SIDES, TABS, WorkspaceLayout
from raterscope.widgets.hints import DropOverlay, EmptyState, Tour
from raterscope.widgets.layouts import stacked, vertical

if TYPE_CHECKING:
    from raterscope.app.contents import Contents
    from raterscope.app.review import Decision
    from raterscope.app.study import RunEntry

TOUR_POLL_MS, WORK_NOTED_MS = 100, 3000

SMALLEST = QSize(940, 480)
"""Minimum size: with its frame the window fits a screen of 1920 x 1080 pixels at a scale of 200 %."""
FRAME = QSize(12, 42)
"""Maximum size of the frame and title bar; Qt reports the actual size only for a visible window."""


class MainWindow(QMainWindow):
    """Window of one study.

    `remembers`: whether layout and recent studies are restored from the last session and stored for the next.
    """

    def __init__(self, *, remembers: bool = True) -> None:
        super().__init__()
        self._remembers = remembers
        self.setWindowTitle("Raterscope")
        self.setMinimumSize(SMALLEST)
        self.setAcceptDrops(True)
        self.jobs = Jobs(self)
        self.document = Document(self.jobs, self)
        self.workspace: Any = None
        """The workspace on screen, created when it is first shown."""
        self._workspaces: dict[str, WorkspaceLayout] = {}
        self._unfinished: dict[str, tuple[WorkspaceLayout, Iterator[None]]] = {}
        """Workspaces under construction, with the remaining steps."""
        self.document.prepare = self._prepare
        self._statuses: dict[str, str] = {}
        self._kind = ""
        self._chosen = ""
        """The chosen workspace, until it or another one is shown."""
        self._filled: frozenset[str] = frozenset()
        """Kinds of annotation in the study."""
        self._work_noted = QTimer(self, singleShot=True, interval=WORK_NOTED_MS)
        self._work_noted.timeout.connect(self._note_work)
        self._refusal = ""
        """Message of the study's latest refusal."""
        self._incoming_job: Job | None = None
        importer = Importer(self.document, self.jobs, self)
        exporter = StudyExporter(self.document, self._current_item, self)
        self.figure_exporter = FigureExporter(
            self.document, self.jobs, self._current_item, self._run_on_screen, self
        )
        self.moved_bar = MovedBar(self)
        self.moved_study = MovedStudy(self.document, self.moved_bar, self)
        self.unsaved_bar = UnsavedBar(self)
        self.unsaved_results = UnsavedResults(self.document, self.jobs, self.unsaved_bar, self)
        self.leave_guard = LeaveGuard(self.document, self.jobs, self.unsaved_results, self)
        recent = RecentStudies(self.jobs, self)
        self.files = FileActions(self.document, importer, self.leave_guard, recent, self)
        self.reproduction = Reproduction(self.files, self.jobs, self)
        self.menus = Menus(self.document, self.files, recent, exporter, self.reproduction, self)
        self.window_actions = WindowActions(self.document, self.menus, self)

        self.bar = TopBar([(part.kind, part.title) for part in WORKSPACES.values()], self)
        self.notice = NoticeBar(self)
        self.reopen_bar = ReopenBar(self)
        self.cohort_bar = CohortBar(self)
        self.cohort = CohortCases(self.document, self.cohort_bar, self)
        self.status = StatusLine(self)
        self.start = StartScreen(self.files, recent, self.jobs, self)
        self._empty = EmptyState(
            "Nothing here yet",
            "Drop images and annotations here: smears and a table of clicks, a volume and its raters' masks, "
            "or a table of labels or of pairs.",
            (
                ("Import files…", self.files.choose_files),
                ("Import folder or DICOM…", self.files.choose_folder),
            ),
        )
        self.tour = Tour(self)
        self.drop_overlay = DropOverlay(self)
        self._empty_pages: dict[str, EmptyState] = {}
        self._pages = stacked(self.start.page, self._empty)
        centre = QWidget()
        column = vertical(inside=centre)
        for piece in (
            self.bar,
            self.moved_bar,
            self.unsaved_bar,
            self.notice,
            self.reopen_bar,
            self.cohort_bar,
            self._pages,
            self.status,
        ):
            column.addWidget(piece, 1 if piece is self._pages else 0)
        self.setCentralWidget(centre)
        self.reading = ReadingMode(
            self.document, self.jobs, self.leave_guard, self._pages, (self.bar, self.status), self
        )

        self.experts = ExpertStudies(self.document, self.files, self)
        self.experts.message.connect(self._on_transferred)
        self.menus.second_reader_requested.connect(self.experts.ask_copy)
        self.menus.merge_requested.connect(self.experts.ask_merge)
        pacs = PacsTransfer(self.document, self.jobs, self._case_of_masks, self)
        self.menus.fetch_requested.connect(lambda: pacs.ask_fetch(self.files.folder()))
        self.menus.store_requested.connect(pacs.ask_store)
        pacs.fetched.connect(importer.start)
        self.bar.set_menu(self.menus.menu)
        self.menus.menu_requested.connect(self.bar.open_menu)
        for source in (self.bar, self.menus):
            source.workspace_chosen.connect(self._choose_workspace)
        self.menus.cohort_requested.connect(self.cohort.show_list)
        self.menus.reader_study_requested.connect(self._ask_reader_study)
        self.menus.collection_requested.connect(self._ask_collection)
        self.reading.collected.connect(self.files.open_study)
        self.files.reading_requested.connect(self.reading.open)
        self.window_actions.reading_screen = lambda: self.reading.screen
        self.reading.message.connect(self.status.show_message)
        self.reading.refused.connect(self.notice.show_error)
        self.bar.help.clicked.connect(self.window_actions.show_keys)
        self.window_actions.message.connect(self.status.show_message)
        self.menus.settings_saved.connect(self._set_default_algorithms)
        self.menus.message.connect(self.status.show_message)
        self.bar.fuse.clicked.connect(self._fuse)
        self.bar.cancel.clicked.connect(self._cancel)
        self.jobs.updated.connect(self._on_job)
        self.document.replaced.connect(self._on_replaced)
        self.document.replaced.connect(self.start.cancel_sample)
        self.document.changed.connect(self._on_changed)
        self.document.decided.connect(self._clear_messages)
        self.document.decided.connect(self._on_decided)
        self.document.decided.connect(self._follow_decision)
        self.document.names_changed.connect(self._on_decided)
        self.document.refused.connect(self._on_refused)
        self.document.kept.connect(self._on_kept)
        for bringing in (
            importer, exporter, self.figure_exporter, self.unsaved_results, self.reproduction, pacs,
        ):  # fmt: skip
            bringing.message.connect(self._on_transferred)
        for refusing in (
            importer, self.figure_exporter, self.unsaved_results, self.reproduction, self.start, pacs,
        ):  # fmt: skip
            refusing.refused.connect(self.notice.show_error)
        for beginning in (self.reproduction, self.start, pacs):
            beginning.begun.connect(self._on_incoming_job)
        self.menus.sample_requested.connect(self.start.open_sample)
        for opener in (self.menus, self.start.page):
            opener.tour_requested.connect(self._start_tour)
        self.document.file_state_changed.connect(self._show_saved)
        for part in (self.files, self.leave_guard, self.moved_study):
            part.message.connect(self.status.show_message)
        self.files.searched.connect(self.notice.hide)
        self._restore()
        self._on_replaced()
        notes = preferences.folder() / "whereabouts" if remembers else None
        self.session_restore = SessionRestore(self.document, self.reopen_bar, notes, self)

    @property
    def busy(self) -> bool:
        """True while a job runs or a study is being opened."""
        return self.jobs.busy or self.document.opening

    def open_paths(self, paths: Sequence[Path]) -> None:
        """Open files that were dropped or named on the command line: a study, images, tables."""
        self.files.open_paths(paths)

    def _start_tour(self) -> None:
        """Show the tour of the workspace; without one, open the sample of clicks first."""
        if self.workspace is None:
            job = self.start.open_sample("clicks")
            job.finished.connect(self._tour_when_shown)
        else:
            self.tour.start(self.workspace, self.bar)

    def _tour_when_shown(self, _study: Path) -> None:
        if self.workspace is None or self.busy:
            QTimer.singleShot(TOUR_POLL_MS, self, partial(self._tour_when_shown, _study))
        else:
            self._start_tour()

    def _ask_reader_study(self) -> None:
        self.reading.ask_new(self.files.folder())

    def _ask_collection(self) -> None:
        self.reading.ask_collection(self.files.folder())

    def _on_transferred(self, text: str) -> None:
        """Show a message, and hide the previous error."""
        self.notice.hide()
        self.status.show_message(text)

    # What happens to the study

    def _on_replaced(self) -> None:
        contents = self.document.contents
        self._kind, self._filled = "", frozenset()
        self.notice.hide()  # the error was about the previous study
        if contents is None:
            self.start.refresh()
            self._pages.setCurrentWidget(self.start.page)
            self.start.page.setFocus()
            self.window_actions.follow(None, "")
            self.bar.set_study(None)
            self.status.text.setText("No study is open")
            self.status.show_message("")
        else:
            if self._remembers:
                preferences.remember_recent(contents.path)
                self._note_work()
            self.bar.set_study(contents.path)
        self.setWindowTitle(f"{contents.path.name} - Raterscope" if contents else "Raterscope")
        self._on_changed()

    def _on_changed(self) -> None:
        self.menus.fill_recent()
        contents = self.document.contents
        if contents is not None:
            # A study that was empty until now has no kind yet.
            kind = "" if self._pages.currentWidget() in (self.start.page, self._empty) else self._kind
            filled = frozenset(name for name, items in contents.items.items() if items)
            if self._filled and (imported := [name for name in WORKSPACES if name in filled - self._filled]):
                kind = imported[0]
            self._filled = filled
            self.show_workspace(kind or _first_kind(contents))
        self._on_decided()

    def _clear_messages(self) -> None:
        """Clear messages that a decision has made outdated."""
        self.status.show_message("")
        self._clear_refusal()

    def _on_refused(self, sentence: str) -> None:
        """Show an error in place of the message before it, such as that of the export that failed."""
        self._refusal = sentence
        self.notice.show_error(sentence)
        self.status.show_message("")

    def _on_kept(self, stored: bool) -> None:
        if stored:
            self._clear_refusal()

    def _clear_refusal(self) -> None:
        if self.notice.text == self._refusal:
            self.notice.hide()

    def _on_decided(self) -> None:
        self.menus.follow_study()
        self._show_saved()

    def _show_saved(self) -> None:
        """Show whether everything is saved, as the study's thread reports."""
        self.status.saved.setText(describe_saved(self.document.file_state) if self.document.contents else "")

    def _follow_decision(self, decision: Decision) -> None:
        """Show the workspace in which an undo or redo changes something; annotators concern all."""
        contents = self.document.contents
        target = contents.target(decision) if contents else None
        if target is None or target.subject is None or target.annotators:
            return
        if target.subject.kind not in ("", self._kind):
            self.show_workspace(target.subject.kind)

    def show_workspace(self, kind: str) -> None:
        """Show a workspace, or its empty page if the study has no items for it."""
        contents, self._chosen = self.document.contents, ""
        if contents is None:
            return
        workspace, previous = WORKSPACES[kind], self.workspace
        page: QWidget
        if not any(contents.items.values()):
            page, self.workspace = self._empty, None
        elif workspace.holds(contents):
            page = self.workspace = self._workspace_of(workspace)
        else:
            page, self.workspace = self._empty_page_of(workspace), None
        if kind != self._kind or self.workspace is not previous:  # as when an empty study gets files
            self._kind = kind
            self.bar.set_workspace(kind, workspace.fuse)
            self.status.text.setText(self._statuses.get(kind, ""))
            if self.status.message == (previous.notices if previous else ""):  # another message stays
                self.status.show_message(self.workspace.notices if self.workspace else "")
            self.menus.follow_workspace(
                kind, self.workspace.actions_made if self.workspace else (), self.workspace
            )
        self.bar.set_fusing_possible(self.workspace is not None and self.workspace.FUSES)
        self.window_actions.follow(self.workspace, kind)
        self.note_position()
        if page is not self._pages.currentWidget():
            focused = self.focusWidget()
            is_typing = isinstance(focused, QLineEdit) and not self._pages.isAncestorOf(focused)
            self._pages.setCurrentWidget(page)
            if not is_typing:  # as in the command palette
                page.setFocus()
        if self.workspace is not None:
            self.workspace.show_outdated()

    def _choose_workspace(self, kind: str) -> None:
        """Show a workspace; it is made step by step when it is first chosen."""
        contents, workspace = self.document.contents, WORKSPACES[kind]
        self._chosen = kind
        if kind != self._kind:  # the message was about the previous workspace
            self.status.show_message(self.workspace.notices if self.workspace else "")
        if contents is not None and workspace.holds(contents):
            self._make(workspace, partial(self._show_chosen, kind))
        else:
            self.show_workspace(kind)

    def _show_chosen(self, kind: str) -> None:
        if kind == self._chosen:
            self.show_workspace(kind)

    def _prepare(self, contents: Contents, show: Callable[[], object]) -> None:
        """Make the workspace of a study, then show the study."""
        workspace = WORKSPACES[_first_kind(contents)]
        if workspace.holds(contents):
            self._make(workspace, show)
        else:
            show()

    def _make(self, workspace: WorkspaceKind, show: Callable[[], object]) -> None:
        """Load what a workspace needs in a thread, make it step by step, then show it."""
        if workspace.kind in self._workspaces:
            show()
            return
        loading = self.jobs.start("Loading", lambda _watch: workspace.load_libraries(), quiet=True)
        for over in (loading.finished, loading.failed):  # a failure is reported when the module is needed
            over.connect(lambda _: in_turns(self._steps_of(workspace), self, show))

    def _steps_of(self, workspace: WorkspaceKind) -> Iterator[None]:
        yield from workspace.load_in_steps()
        if workspace.kind not in self._workspaces:  # otherwise it was shown meanwhile
            yield from self._begin(workspace)[1]
        self._workspace_of(workspace)  # before the study, so that one turn does not do both

    def _set_default_algorithms(self) -> None:
        if self._remembers:
            for kind, workspace in self._workspaces.items():
                names = (preferences.recall_text(key) for key in preferences.algorithm_keys(kind))
                workspace.set_default_algorithms(*names)

    def _begin(self, kind: WorkspaceKind) -> tuple[WorkspaceLayout, Iterator[None]]:
        if kind.kind not in self._unfinished:
            self._unfinished[kind.kind] = kind.begin(self.document, self.jobs, self._pages)
        return self._unfinished[kind.kind]

    def _workspace_of(self, kind: WorkspaceKind) -> WorkspaceLayout:
        if kind.kind in self._workspaces:
            return self._workspaces[kind.kind]
        workspace, steps = self._begin(kind)
        for _ in steps:
            pass
        del self._unfinished[kind.kind]
        workspace.status_changed.connect(partial(self._on_status, kind.kind))
        workspace.message.connect(self.status.show_message)
        workspace.refused.connect(self.notice.show_error)
        workspace.stale_changed.connect(partial(self._on_stale, kind.kind))
        workspace.fusing_changed.connect(self.bar.set_fusing)
        workspace.escaped.connect(self.window_actions.leave_full_screen)
        self.figure_exporter.listen_to(workspace)
        for name in (*workspace.PARTS, TABS, SIDES) if self._remembers else ():
            state = preferences.recall(f"{kind.kind}/{name}")
            if state is not None:
                workspace.restore_layout(name, state)
        blind_mode = workspace.blind_mode
        if self._remembers and blind_mode is not None:
            hidden = f"{kind.kind}/hidden"
            blind_mode.set(preferences.is_enabled(hidden))
            blind_mode.changed.connect(partial(preferences.remember, hidden))
        self._workspaces[kind.kind] = workspace
        self._set_default_algorithms()
        self._pages.addWidget(workspace)
        return workspace

    def _empty_page_of(self, kind: WorkspaceKind) -> EmptyState:
        if kind.kind not in self._empty_pages:
            page = EmptyState(kind.belongs, kind.first_step, (("Import files…", self.files.choose_files),))
            self._empty_pages[kind.kind] = page
            self._pages.addWidget(page)
        return self._empty_pages[kind.kind]

    def _on_status(self, kind: str, text: str) -> None:
        self._statuses[kind] = text
        if kind == self._kind:
            self.status.text.setText(text)
            self.note_position()
            self._work_noted.start()

    def _note_work(self) -> None:
        """Store for the start page how much of the study is decided."""
        contents = self.document.contents
        if contents is None or not self._remembers:
            return
        from raterscope.widgets.panels.queue_panel import QueueFrame

        share, words = 0.0, tuple[str, ...]()
        if self.workspace is not None and isinstance(self.workspace.queue, QueueFrame):
            share, words = self.workspace.queue.progress
        preferences.remember_work_left(contents.path, share if words else None, ", ".join(words[-2:]))

    def note_position(self) -> None:
        """Store the position in the study, for session restore."""
        self.session_restore.note_position(self._kind, self._current_item())

    def _on_stale(self, kind: str, text: str) -> None:
        if kind == self._kind:
            self.bar.set_stale(text)

    def _fuse(self) -> None:
        if self.workspace is not None:
            self.workspace.toggle_fuse_panel()

    def _on_incoming_job(self, job: Job) -> None:
        """Show in the bar a job that opens another study, with Cancel."""
        self._incoming_job = job
        self.bar.set_fusing(job)

    def _on_job(self, job: Job) -> None:
        """Show an import in the bar while no workspace with a list of jobs is open."""
        if job.background:
            self.status.show_background(job)
            return
        free = self._incoming_job is None and self._pages.currentWidget() in (self.start.page, self._empty)
        if free or job is self._incoming_job:  # not a cancelled one that another has replaced
            self._incoming_job = None if job.over else job
            self.bar.set_fusing(self._incoming_job)

    def _cancel(self) -> None:
        if self._incoming_job is not None:
            self._incoming_job.cancel()
        for workspace in self._workspaces.values():
            workspace.stop_fusing()
        if self.workspace is not None:
            self.workspace.setFocus()  # before Cancel hides: otherwise Qt moves the focus to the next widget

    def _current_item(self) -> int | None:
        """Return the number of the item on screen."""
        return None if self.workspace is None else self.workspace.current_item()

    def _case_of_masks(self) -> int | None:
        """Return the number of the case on screen if it has masks."""
        return self._current_item() if self._kind == "masks" else None

    def _run_on_screen(self) -> RunEntry | None:
        return None if self.workspace is None else self.workspace.run_on_screen

    # The window itself

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Leave full screen with Esc, unless another widget used the key."""
        if event.key() != Qt.Key.Key_Escape or not self.window_actions.leave_full_screen():
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept only files, as copies: after a move, the sender may delete them."""
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()

            into = self.document.contents
            self.drop_overlay.show_text(f"Drop to import into {into.path.name}" if into else "Drop to import")

    def dragLeaveEvent(self, _event: QDragLeaveEvent) -> None:
        """Remove the highlight."""
        self.drop_overlay.hide()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open the files that were dropped."""
        self.drop_overlay.hide()
        paths = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
        if paths:
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
            self.open_paths(paths)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Close after confirmation: stop the jobs, wait until decisions are saved, store the layout."""
        if not self.leave_guard.may_close():
            event.ignore()
            return
        if self._remembers:
            self._note_work()
            states = {
                f"{kind}/{name}": state
                for kind, workspace in self._workspaces.items()
                for name, state in workspace.layout_state().items()
            }
            preferences.remember_all({"window": self.saveGeometry(), **states})
        self.hide()  # the rest may take a while
        self.reading.close()
        self.jobs.close()
        self.document.blockSignals(True)  # otherwise the hidden screens would be cleared first
        self.document.close()
        for timer in self.findChildren(QTimer):
            timer.stop()  # otherwise a timer may read from the closed study
        self.session_restore.end()
        super().closeEvent(event)

    def _restore(self) -> None:
        geometry = preferences.recall("window") if self._remembers else None
        if geometry is None or not self.restoreGeometry(geometry):
            self.resize(QSize(1440, 900).boundedTo(self.screen().availableSize() - FRAME))


def _first_kind(contents: Contents) -> str:
    """Choose the first workspace: that of the latest run, else the first with items in the study."""
    kinds = [run.kind for run in reversed(contents.runs) if run.kind in WORKSPACES]
    kinds += [kind for kind, workspace in WORKSPACES.items() if workspace.holds(contents)]
    return next(iter([*kinds, *WORKSPACES]))
