"""The one window: the bar above, the workspace, the line below; studies opened, files dropped, undo."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QSize, Qt, QTimer
from PySide6.QtGui import QAction, QCloseEvent, QDragEnterEvent, QDropEvent, QKeySequence
from PySide6.QtWidgets import (
    QApplication,
    QFileDialog,
    QMainWindow,
    QMenu,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from raterscope import __version__
from raterscope.algorithms.progress import Watch
from raterscope.app import memory
from raterscope.app.document import Contents, Document
from raterscope.app.errors import InputError
from raterscope.app.jobs import Job, Jobs
from raterscope.app.keys import KeySheet
from raterscope.app.review import Decision
from raterscope.app.study import Study
from raterscope.app.window_export import Exporting, entries_of
from raterscope.app.window_import import STUDIES, Importing
from raterscope.app.window_parts import NoticeBar, StatusLine, TopBar, without_checked
from raterscope.app.workspaces.catalogue import WORKSPACES, WorkspaceKind
from raterscope.app.workspaces.screen import WorkspaceScreen
from raterscope.widgets import theme
from raterscope.widgets.empty_state import EmptyState

__all__ = ["MainWindow", "main"]

Keys = QKeySequence | QKeySequence.StandardKey
SWITCH_SECONDS = 0.0005
REPORTS = "Web page (*.html);;PDF (*.pdf)"
INPUTS = (
    "Images, volumes, masks and tables (*.png *.jpg *.jpeg *.tif *.tiff *.bmp *.nii *.nii.gz *.nrrd *.nhdr "
    "*.mha *.mhd *.dcm *.json *.xml *.csv *.tsv *.txt);;All files (*)"
)


class MainWindow(QMainWindow):
    """The window of one study.

    Parameters
    ----------
    remembers : bool
        Whether places, sizes and recent studies are taken over from the last time and kept for the next.
    """

    def __init__(self, *, remembers: bool = True) -> None:
        super().__init__()
        self._remembers = remembers
        self.setWindowTitle("Raterscope")
        self.setMinimumSize(QSize(960, 600))
        self.setAcceptDrops(True)
        self.jobs = Jobs(self)
        self.document = Document(self.jobs, self)
        self.workspace: Any = None
        """The workspace on screen, made when it is first wanted."""
        self._workspaces: dict[str, WorkspaceScreen] = {}
        self._statuses: dict[str, str] = {}
        self._kind = ""
        self._importing = Importing(self.document, self.jobs, self)
        self._exporting = Exporting(self.document, self._current_item, self)

        self.bar = TopBar([(one.kind, one.title) for one in WORKSPACES.values()], self)
        self.notice = NoticeBar(self)
        self.status = StatusLine(self)
        self._empty = EmptyState(
            "Open what annotators marked",
            "Drop files here: smears and a table of clicks, or a volume and its raters' masks. "
            "What you decide is kept in one study file.",
            (("Import files…", self.choose_files), ("Open a study…", self.choose_study)),
        )
        self._nothing: dict[str, EmptyState] = {}
        self._pages = QStackedWidget()
        self._pages.addWidget(self._empty)
        centre = QWidget()
        column = QVBoxLayout(centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for piece in (self.bar, self.notice, self._pages, self.status):
            column.addWidget(piece, 1 if piece is self._pages else 0)
        self.setCentralWidget(centre)

        self._make_actions()
        self.document.replaced.connect(self._on_replaced)
        self.document.changed.connect(self._on_changed)
        self.document.decided.connect(self._forget_news)
        self.document.decided.connect(self._on_decided)
        self.document.decided.connect(self._follow)
        self.document.names_changed.connect(self._on_decided)
        self.document.refused.connect(self.notice.show_error)
        self._importing.said.connect(self._on_brought)
        self._importing.refused.connect(self.notice.show_error)
        self._exporting.said.connect(self._on_brought)
        self._restore()
        self._on_replaced()

    # Files

    def _on_brought(self, words: str) -> None:
        """Say what came in or left; what was refused before is no longer news."""
        self.notice.hide()
        self.status.set_news(words)

    def open_paths(self, paths: Sequence[Path]) -> None:
        """Open what was dropped or named on the command line: a study, images, tables."""
        studies = [path for path in paths if path.suffix.lower() == ".rscope"]
        others = [path for path in paths if path.suffix.lower() != ".rscope"]
        if studies:
            self.open_study(studies[0])
        if len(studies) > 1:
            self.status.set_news(f"One study at a time: {studies[0].name} is opened.")
        if others:
            self.import_files(others)

    def open_study(self, path: Path) -> None:
        """Open a study in place of the present one."""
        contents = self.document.contents
        if contents is not None and contents.path == path.resolve():
            self.status.set_news(f"{path.name} is open already.")
            return
        self.status.set_news("")  # it is of the study before
        self.document.open(path)

    def choose_study(self) -> None:
        """Ask which study to open."""
        name, _ = QFileDialog.getOpenFileName(self, "Open a study", self._folder(), STUDIES)
        if name:
            self.open_study(Path(name))

    def new_study(self) -> None:
        """Ask where a new, empty study is to be."""
        name, _ = QFileDialog.getSaveFileName(self, "New study", self._folder(), STUDIES)
        if name:
            path = Path(name)
            self.document.open(path if path.suffix else path.with_suffix(".rscope"), create=True)

    def choose_files(self) -> None:
        """Ask which files to import."""
        names, _ = QFileDialog.getOpenFileNames(self, "Import", self._folder(), INPUTS)
        if names:
            self.import_files([Path(name) for name in names])

    def import_files(self, paths: Sequence[Path]) -> None:
        """Bring files into the study; without one, a new study is made beside the first of them."""
        self._importing.start(paths)

    def write_report(self) -> None:
        """Ask for a file and write the report of the study to it."""
        contents = self.document.contents
        if contents is None:
            return
        proposed = contents.path.with_name(f"{contents.path.stem}-report.html")
        name, _ = QFileDialog.getSaveFileName(self, "Report", str(proposed), REPORTS)
        if name:
            job = self.document.ask("Writing the report", partial(_report, Path(name)), quiet=False)
            job.finished.connect(self.status.set_news)

    def find_images(self) -> None:
        """Ask for a folder and look in it for the images that are not where they were."""
        name = QFileDialog.getExistingDirectory(self, "Where are the images?", self._folder())
        if name:
            job = self.document.ask(
                "Looking for images", partial(_find_images, Path(name)), quiet=False, changes=True
            )
            job.finished.connect(self.status.set_news)

    def _folder(self) -> str:
        contents = self.document.contents
        if contents is not None:
            return str(contents.path.parent)
        recent = memory.recent_studies()
        return str(recent[0].parent) if recent else ""

    # What happens to the study

    def _on_replaced(self) -> None:
        contents = self.document.contents
        if contents is None:
            self._pages.setCurrentWidget(self._empty)
            self.bar.set_study(None)
            self.status.set_text("No study is open")
            self.status.set_news("")
        else:
            if self._remembers:
                memory.remember_recent(contents.path)
            self.bar.set_study(contents.path)
            self._kind = ""
        self.setWindowTitle(f"{contents.path.name} - Raterscope" if contents else "Raterscope")
        self._on_changed()

    def _on_changed(self) -> None:
        self._fill_recent()
        contents = self.document.contents
        if contents is not None:
            # A study that was empty until now is of no kind yet.
            kind = "" if self._pages.currentWidget() is self._empty else self._kind
            self.show_workspace(kind or _first_kind(contents))
        self._on_decided()

    def _forget_news(self) -> None:
        """News are of what was done last: a decision is later."""
        self.status.set_news("")

    def _on_decided(self) -> None:
        contents = self.document.contents
        undoable = contents.review.undoable if contents else None
        redoable = contents.review.redoable if contents else None
        self.undo_action.setEnabled(undoable is not None)
        self.redo_action.setEnabled(redoable is not None)
        self.undo_action.setText(f"Undo {contents.words(undoable)}" if contents and undoable else "Undo")
        self.redo_action.setText(f"Redo {contents.words(redoable)}" if contents and redoable else "Redo")
        has_study = contents is not None
        self.status.set_kept("every decision saved" if has_study else "")
        for action in self._study_actions:
            action.setEnabled(has_study)

    def _follow(self, decision: Decision) -> None:
        """Go where an undo or redo changes something, should that be in another workspace."""
        contents = self.document.contents
        target = contents.target(decision) if contents else None
        kind = target.subject.kind if target is not None and target.subject is not None else self._kind
        if kind != self._kind:
            self.show_workspace(kind)

    def show_workspace(self, kind: str) -> None:
        """Go to a workspace; one that the study has nothing for says what belongs there."""
        contents = self.document.contents
        if contents is None:
            return
        workspace = WORKSPACES[kind]
        page: QWidget
        if not any(contents.items.values()):
            page, self.workspace = self._empty, None
        elif workspace.holds(contents):
            page = self.workspace = self._made(workspace)
        else:
            page, self.workspace = self._nothing_of(workspace), None
        if kind != self._kind:
            self._kind = kind
            self.bar.set_workspace(kind, workspace.fuse)
            self.status.set_text(self._statuses.get(kind, ""))
            self._fill_menus()
        self.bar.set_fusing_possible(self.workspace is not None)
        if page is not self._pages.currentWidget():
            self._pages.setCurrentWidget(page)
            page.setFocus()
        if self.workspace is not None:
            self.workspace.tell_stale()

    def _made(self, kind: WorkspaceKind) -> WorkspaceScreen:
        if kind.kind in self._workspaces:
            return self._workspaces[kind.kind]
        workspace = kind.make(self.document, self.jobs, self)
        workspace.status_changed.connect(partial(self._on_status, kind.kind))
        workspace.said.connect(self.status.set_news)
        workspace.refused.connect(self.notice.show_error)
        workspace.stale_changed.connect(partial(self._on_stale, kind.kind))
        workspace.fusing_changed.connect(self._on_fusing)
        for name in workspace.PARTS if self._remembers else ():
            state = memory.recall(f"{kind.kind}/{name}")
            if state is not None:
                workspace.restore_layout(name, state)
        self._workspaces[kind.kind] = workspace
        self._pages.addWidget(workspace)
        return workspace

    def _nothing_of(self, kind: WorkspaceKind) -> EmptyState:
        if kind.kind not in self._nothing:
            page = EmptyState(kind.belongs, kind.first_step, (("Import files…", self.choose_files),))
            self._nothing[kind.kind] = page
            self._pages.addWidget(page)
        return self._nothing[kind.kind]

    def _on_status(self, kind: str, words: str) -> None:
        self._statuses[kind] = words
        if kind == self._kind:
            self.status.set_text(words)

    def _on_stale(self, kind: str, words: str) -> None:
        if kind == self._kind:
            self.bar.set_stale(words)

    def _on_fusing(self, job: Job | None) -> None:
        self.bar.set_fusing(job)

    def _fuse(self) -> None:
        if self.workspace is not None:
            self.workspace.toggle_fuse_panel()

    def _cancel_fusing(self) -> None:
        for workspace in self._workspaces.values():
            workspace.cancel_fusing()

    def _fill_menus(self) -> None:
        self.review_menu.clear()
        if self.workspace is not None:
            self.review_menu.addActions(self.workspace.actions_made)
        self.export_menu.clear()
        for words, export, deidentify in entries_of(self._kind):
            action = self.export_menu.addAction(words)
            action.triggered.connect(without_checked(partial(self._exporting.start, export, deidentify)))

    def _current_item(self) -> int | None:
        """Give the number of the image on screen, where the workspace tells."""
        tell = getattr(self.workspace, "current_item", None)
        return None if tell is None else tell()

    # Actions and menus

    def _make_actions(self) -> None:
        standard = QKeySequence.StandardKey
        menu = QMenu(self)
        self._action(menu, "New study…", standard.New, self.new_study)
        self._action(menu, "Open a study…", standard.Open, self.choose_study)
        self.recent_menu = menu.addMenu("Open recent")
        menu.addSeparator()
        self._action(menu, "Import files…", QKeySequence("Ctrl+I"), self.choose_files)
        self.export_menu = menu.addMenu("Export")
        report = self._action(menu, "Report…", None, self.write_report)
        missing = self._action(menu, "Find missing images…", None, self.find_images)
        close = self._action(menu, "Close the study", standard.Close, self.document.close)
        menu.addSeparator()
        self.undo_action = self._action(menu, "Undo", standard.Undo, self.document.undo)
        self.redo_action = self._action(menu, "Redo", standard.Redo, self.document.redo)
        self.redo_action.setShortcuts([QKeySequence("Ctrl+Shift+Z"), QKeySequence("Ctrl+Y")])
        menu.addSeparator()
        self.review_menu = menu.addMenu("Review")
        self._make_look_menu(menu)
        menu.addSeparator()
        about = menu.addAction(f"Raterscope {__version__}")
        about.setEnabled(False)
        self._action(menu, "Quit", standard.Quit, self.close)
        self._study_actions = (
            close,
            report,
            missing,
            self.export_menu.menuAction(),
            self.review_menu.menuAction(),
        )
        self.bar.set_menu(menu)
        self._action(self, "Full screen", QKeySequence("F11"), self._toggle_full_screen)
        self._action(self, "The keys", QKeySequence("F1"), self.show_keys)
        self.bar.help_requested.connect(self.show_keys)
        self.bar.workspace_chosen.connect(self.show_workspace)
        self.bar.fuse_requested.connect(self._fuse)
        self.bar.cancel_requested.connect(self._cancel_fusing)
        for number, kind in enumerate(WORKSPACES, start=1):
            keys = QKeySequence(f"Ctrl+{number}")
            self._action(self, WORKSPACES[kind].title, keys, partial(self.show_workspace, kind))

    def _make_look_menu(self, menu: QMenu) -> None:
        look = menu.addMenu("Look")
        for words, name in (("As the system", "system"), ("Dark", "dark"), ("Light", "light")):
            self._action(look, words, None, partial(self._set_look, name))

    def _action(self, place: QWidget, words: str, keys: Keys | None, slot: Callable[..., object]) -> QAction:
        action = QAction(words, self)
        if keys is not None:
            action.setShortcut(keys)
        action.triggered.connect(without_checked(slot))
        place.addAction(action)
        self.addAction(action)
        return action

    def _fill_recent(self) -> None:
        self.recent_menu.clear()
        for path in memory.recent_studies():
            action = self.recent_menu.addAction(str(path))
            action.triggered.connect(partial(self.open_study, path))
        self.recent_menu.setEnabled(not self.recent_menu.isEmpty())

    def _set_look(self, name: str) -> None:
        memory.remember("look", name)
        apply_look(name)

    def show_keys(self) -> None:
        """Show what every key does."""
        sheet = KeySheet(self._kind or next(iter(WORKSPACES)), self)
        sheet.open()

    def _toggle_full_screen(self) -> None:
        self.setWindowState(self.windowState() ^ Qt.WindowState.WindowFullScreen)

    # The window itself

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take files only."""
        if event.mimeData().hasUrls():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open what was dropped."""
        paths = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
        if paths:
            event.acceptProposedAction()
            self.open_paths(paths)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Stop the jobs, let what was decided reach the disk, remember the window."""
        if self._remembers:
            self._remember()
        self.jobs.close()
        self.document.close()
        super().closeEvent(event)

    def _remember(self) -> None:
        memory.remember("window", self.saveGeometry())
        for kind, workspace in self._workspaces.items():
            for name, state in workspace.layout_state().items():
                memory.remember(f"{kind}/{name}", state)

    def _restore(self) -> None:
        geometry = memory.recall("window") if self._remembers else None
        if geometry is None or not self.restoreGeometry(geometry):
            self.resize(QSize(1440, 900).boundedTo(self.screen().availableSize()))


def apply_look(name: str) -> None:
    """Draw everything dark, light, or as the system is."""
    application = QApplication.instance()
    if not isinstance(application, QApplication):
        raise RuntimeError("there is no application to draw")
    chosen = {"dark": theme.DARK, "light": theme.LIGHT}.get(name) or theme.system_theme(application)
    theme.apply_theme(application, chosen)


def _first_kind(contents: Contents) -> str:
    """Choose the workspace to begin with: that of the last run, else the first that the study is for."""
    kinds = [run.kind for run in reversed(contents.runs) if run.kind in WORKSPACES]
    kinds += [kind for kind, workspace in WORKSPACES.items() if workspace.holds(contents)]
    return next(iter([*kinds, *WORKSPACES]))


def _report(path: Path, study: Study, watch: Watch) -> str:
    from raterscope.app.report import write_report

    return f"{write_report(study, path, watch)} is written."


def _find_images(folder: Path, study: Study, _watch: Watch) -> str:
    found = study.relocate_all(folder)
    return f"{len(found)} image{'' if len(found) == 1 else 's'} found in {folder}."


class _FollowSystem(QObject):
    """Change with the system's colour scheme while the look is the system's."""

    def __init__(self, application: QApplication) -> None:
        super().__init__(application)
        application.styleHints().colorSchemeChanged.connect(self._on_changed)

    def _on_changed(self) -> None:
        if memory.look() == "system":
            apply_look("system")


def main(paths: Sequence[Path] = ()) -> int:
    """Show the window and work until it is closed; gives the exit status.

    Raises
    ------
    InputError
        When there is no display that Qt can open.
    """
    chosen = os.environ.get("QT_QPA_PLATFORM")
    if chosen is None and sys.platform == "linux":
        # Qt ends the program where it finds no display; with something to fall back on, it can be said.
        first = "wayland;xcb" if os.environ.get("WAYLAND_DISPLAY") else "xcb"
        os.environ["QT_QPA_PLATFORM"] = f"{first};offscreen"
    application = QApplication(sys.argv[:1])
    if chosen is None and application.platformName() == "offscreen":
        raise InputError(
            "Qt cannot open the display; is it there, and are the libraries that `scripts/environment` lists?"
        )
    application.setApplicationName("Raterscope")
    application.setApplicationVersion(__version__)
    apply_look(memory.look())
    _FollowSystem(application)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    window = MainWindow()
    window.show()
    # What a study needs is loaded now that the window is on screen, and not when the study is opened.
    for workspace in WORKSPACES.values():
        QTimer.singleShot(0, window, workspace.load)
    # All of that stays for good: looking through it for garbage again and again would hold the window up.
    QTimer.singleShot(0, window, gc.freeze)
    # Beside a thread at work, Qt's own calls would each wait ten times as long to come back to Python.
    sys.setswitchinterval(SWITCH_SECONDS)
    if paths:
        QTimer.singleShot(0, window, partial(window.open_paths, [path.resolve() for path in paths]))
    return application.exec()
