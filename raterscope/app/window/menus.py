"""The window's menu and the keys that work wherever one is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow, QWidget

from raterscope import __version__
from raterscope.app.document import Document
from raterscope.app.window import memory
from raterscope.app.window.exporting import Exporting, entries_of
from raterscope.app.window.files import Files
from raterscope.app.window.look import apply_look, change_text_size
from raterscope.app.window.recent import Recent
from raterscope.app.window.reproducing import Reproducing
from raterscope.app.workspaces.catalogue import WORKSPACES
from raterscope.widgets.parts import Menu, without_checked

__all__ = ["Menus"]

Keys = QKeySequence | QKeySequence.StandardKey


class Menus(QObject):
    """What there is to choose at any time: of files, of the study, of what is on screen, of the window.

    Signals
    -------
    workspace_chosen(str)
    keys_requested, palette_requested, guide_requested, references_requested, copy_requested,
    full_screen_requested
    message(str)
        What was done.
    """

    workspace_chosen = Signal(str)
    keys_requested = Signal()
    palette_requested = Signal()
    guide_requested = Signal()
    references_requested = Signal()
    copy_requested = Signal()
    full_screen_requested = Signal()
    message = Signal(str)

    def __init__(
        self,
        document: Document,
        files: Files,
        recent: Recent,
        exporting: Exporting,
        reproducing: Reproducing,
        window: QMainWindow,
    ) -> None:
        super().__init__(window)
        self._recent = recent
        self._document = document
        self._files = files
        self._exporting = exporting
        self._window = window
        standard = QKeySequence.StandardKey
        self.menu = menu = Menu(window)
        self._action(menu, "New study…", standard.New, files.new_study)
        self._action(menu, "Open study…", standard.Open, files.choose_study)
        self.recent_menu = menu.branch("Open recent")
        recent.changed.connect(self.fill_recent)
        menu.aboutToShow.connect(recent.look)
        menu.addSeparator()
        self._action(menu, "Import files…", QKeySequence("Ctrl+I"), files.choose_files)
        self._action(menu, "Simulate…", None, reproducing.ask_simulation)
        self.export_menu = menu.branch("Export")
        self.deidentified_menu = Menu("De-identified", self.export_menu)
        report = self._action(menu, "Report…", None, files.write_report)
        missing = self._action(menu, "Find missing images…", None, files.find_images)
        close = self._action(menu, "Close study", QKeySequence("Ctrl+W"), files.close_study)
        menu.addSeparator()
        self.undo_action = self._action(menu, "Undo", standard.Undo, document.undo)
        self.undo_action.setShortcuts([QKeySequence("Ctrl+Z"), QKeySequence("Z")])
        self.redo_action = self._action(menu, "Redo", standard.Redo, document.redo)
        self.redo_action.setShortcuts([QKeySequence("Ctrl+Y"), QKeySequence("Ctrl+Shift+Z")])
        menu.addSeparator()
        self.review_menu = menu.branch("Review")
        view = menu.branch("View")
        for number, kind in enumerate(WORKSPACES, start=1):
            keys = QKeySequence(f"Ctrl+{number}")
            self._action(view, WORKSPACES[kind].title, keys, partial(self.workspace_chosen.emit, kind))
        view.addSeparator()
        self._action(view, "Copy as image", QKeySequence("Ctrl+Shift+C"), self.copy_requested.emit)
        self._action(view, "Full screen", QKeySequence("F11"), self.full_screen_requested.emit)
        look = view.branch("Theme")
        for words, name in (("System", "system"), ("Dark", "dark"), ("Light", "light")):
            self._action(look, words, None, partial(_set_look, name))
        sizes = view.branch("Text size")
        for words, key, steps in (
            ("Larger text", "Ctrl+Shift+=", 1),
            ("Smaller text", "Ctrl+Shift+-", -1),
            ("Normal text size", "Ctrl+Shift+0", 0),
        ):
            self._action(sizes, words, QKeySequence(key), partial(self._change_text_size, steps))
        aid = menu.branch("Help")
        self._action(aid, "Guide to this view", QKeySequence("F1"), self.guide_requested.emit)
        self._action(aid, "References", None, self.references_requested.emit)
        self._action(aid, "Keyboard shortcuts", QKeySequence("?"), self.keys_requested.emit)
        self._action(aid, "Reproduce the papers…", None, reproducing.ask_papers)
        every = self._action(aid, "Command palette", QKeySequence("Ctrl+K"), self.palette_requested.emit)
        every.setShortcuts([QKeySequence("Ctrl+K"), QKeySequence("Ctrl+Shift+P")])
        menu.addSeparator()
        about = menu.addAction(f"Raterscope {__version__}")
        about.setEnabled(False)
        self._action(menu, "Quit", QKeySequence("Ctrl+Q"), window.close)
        self._of_study = (
            close,
            report,
            missing,
            self.export_menu.menuAction(),
            self.review_menu.menuAction(),
        )

    def _action(self, place: QWidget, words: str, keys: Keys | None, slot: Callable[..., object]) -> QAction:
        action = QAction(words, self._window)
        if keys is not None:
            action.setShortcut(keys)
        action.triggered.connect(without_checked(slot))
        place.addAction(action)
        self._window.addAction(action)
        return action

    def _change_text_size(self, steps: int) -> None:
        self.message.emit(f"Text size {change_text_size(steps)} %.")

    def follow_study(self) -> None:
        """Offer what can be done to the study as it is now, and what can be undone by its name."""
        contents = self._document.contents
        undoable = contents.review.undoable if contents else None
        redoable = contents.review.redoable if contents else None
        self.undo_action.setEnabled(undoable is not None)
        self.redo_action.setEnabled(redoable is not None)
        self.undo_action.setText(f"Undo {contents.words(undoable)}" if contents and undoable else "Undo")
        self.redo_action.setText(f"Redo {contents.words(redoable)}" if contents and redoable else "Redo")
        for action in self._of_study:
            action.setEnabled(contents is not None)

    def follow_workspace(self, kind: str, review: Sequence[QAction]) -> None:
        """Offer what can be exported of a kind of study, and the actions of its workspace."""
        self.review_menu.clear()
        self.review_menu.addActions(review)
        self.export_menu.clear()
        self.deidentified_menu.clear()
        for words, export, deidentify in entries_of(kind):
            action = (self.deidentified_menu if deidentify else self.export_menu).addAction(words)
            action.triggered.connect(without_checked(partial(self._exporting.start, export, deidentify)))
        if not self.deidentified_menu.isEmpty():
            self.export_menu.addSeparator()
            self.export_menu.addMenu(self.deidentified_menu)

    def fill_recent(self) -> None:
        """Offer the studies that were opened lately."""
        self.recent_menu.clear()
        for path in self._recent.offered:
            action = self.recent_menu.addAction(str(path))
            action.triggered.connect(without_checked(partial(self._files.open_study, path)))
        self.recent_menu.setEnabled(not self.recent_menu.isEmpty())


def _set_look(name: str) -> None:
    memory.remember("look", name)
    apply_look(name)
