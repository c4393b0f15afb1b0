"""Menu of the window with its global shortcuts, and the actions of all workspaces."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu, QWidget

from raterscope import __version__
from raterscope.app.document import Document
from raterscope.app.kinds.registry import KINDS
from raterscope.app.program_files import login_name
from raterscope.app.simulation.setups import SETUPS
from raterscope.app.window import preferences
from raterscope.app.window.exporting import StudyExporter, menu_entries
from raterscope.app.window.files import FileActions, RecentStudies
from raterscope.app.window.preferences import apply_chosen_theme, change_text_size
from raterscope.app.window.start_page import SAMPLES, SIMULATED, Reproduction
from raterscope.app.workspaces.catalogue import WORKSPACES
from raterscope.app.workspaces.layout import WorkspaceLayout
from raterscope.widgets.hints import KeyButton
from raterscope.widgets.parts import Menu, without_checked

if TYPE_CHECKING:
    from raterscope.app.window.command_palette import Command
    from raterscope.app.window.guide import GuideView
    from raterscope.widgets.dialogs.settings_dialog import KeyBinding, SettingsDialog

Keys = QKeySequence | QKeySequence.StandardKey


class Menus(QObject):
    """Menu of files, study, workspace and window."""

    workspace_chosen = Signal(str)
    sample_requested = Signal(str)
    tour_requested = Signal()
    keys_requested = Signal()
    menu_requested = Signal()
    palette_requested = Signal()
    guide_requested = Signal()
    references_requested = Signal()
    cohort_requested = Signal()
    fetch_requested = Signal()
    store_requested = Signal()
    reader_study_requested = Signal()
    collection_requested = Signal()
    second_reader_requested = Signal()
    merge_requested = Signal()
    copy_requested = Signal()
    full_screen_requested = Signal()
    settings_saved = Signal()
    message = Signal(str)  # message about the result

    def __init__(
        self,
        document: Document,
        files: FileActions,
        recent: RecentStudies,
        exporter: StudyExporter,
        reproduction: Reproduction,
        window: QMainWindow,
    ) -> None:
        super().__init__(window)
        self._recent = recent
        self._document = document
        self._files = files
        self._exporter = exporter
        self._window = window
        self.key_bindings = KeyBindings()
        self._made: list[QAction] = []
        standard = QKeySequence.StandardKey
        self.menu = menu = Menu(window)
        self._action(menu, "New study…", standard.New, files.new_study)
        readers = menu.branch("Reader studies")
        self._action(readers, "New reader study…", None, self.reader_study_requested.emit)
        self._action(readers, "Collect readers' files…", None, self.collection_requested.emit)
        self._action(menu, "Open study…", standard.Open, files.choose_study)
        self.recent_menu = menu.branch("Open recent")
        recent.changed.connect(self.fill_recent)
        menu.aboutToShow.connect(recent.check)
        menu.addSeparator()
        self._action(menu, "Import files…", QKeySequence("Ctrl+I"), files.choose_files)
        self._action(menu, "Import folder or DICOM…", QKeySequence("Ctrl+Shift+I"), files.choose_folder)
        self._action(menu, "Fetch from PACS…", None, self.fetch_requested.emit)
        samples = menu.branch("Open sample")
        for offer in SAMPLES:
            self._action(samples, offer.title, None, partial(self.sample_requested.emit, offer.kind))
        samples.addSeparator()
        for name in SIMULATED:
            self._action(samples, SETUPS[name].title, None, partial(self.sample_requested.emit, name))
        self._action(menu, "Simulate…", None, reproduction.ask_simulation)
        self.export_menu = menu.branch("Export")
        self.all_cases_menu = Menu("All cases", self.export_menu)
        self.deidentified_menu = Menu("De-identified", self.export_menu)
        storing = self._action(menu, "Store the consensus in PACS…", None, self.store_requested.emit)
        report = self._action(menu, "Report…", None, files.write_report)
        missing = self._action(menu, "Find missing images…", None, files.find_images)
        grouping = self._action(menu, "Group images…", None, files.group_images)
        second = self._action(menu, "Copy for a second reader…", None, self.second_reader_requested.emit)
        merging = self._action(menu, "Merge with another study…", None, self.merge_requested.emit)
        self._cohort = self._action(menu, "Cases without results…", None, self.cohort_requested.emit)
        close = self._action(menu, "Close study", QKeySequence("Ctrl+W"), files.close_study)
        menu.addSeparator()
        self.undo_action = self._action(menu, "Undo", standard.Undo, document.undo)
        self.undo_action.setShortcuts([QKeySequence("Ctrl+Z"), QKeySequence("Z")])
        self.redo_action = self._action(menu, "Redo", standard.Redo, document.redo)
        self.redo_action.setShortcuts([QKeySequence("Ctrl+Y"), QKeySequence("Ctrl+Shift+Z")])
        document.writing_changed.connect(self._enable_undo)
        menu.addSeparator()
        self.review_menu = menu.branch("Review")
        view = menu.branch("View")
        kinds = [
            self._action(
                view, made.title, QKeySequence(f"Ctrl+{number}"), partial(self.workspace_chosen.emit, kind)
            )
            for number, (kind, made) in enumerate(WORKSPACES.items(), start=1)
        ]
        view.addSeparator()
        self._action(view, "Copy as image", QKeySequence("Ctrl+Shift+C"), self.copy_requested.emit)
        self._action(view, "Full screen", QKeySequence("F11"), self.full_screen_requested.emit)
        themes = view.branch("Theme")
        for words, name in (("System", "system"), ("Dark", "dark"), ("Light", "light")):
            self._action(themes, words, None, partial(_set_theme, name))
        sizes = view.branch("Text size")
        for words, key, steps in (
            ("Larger text", "Ctrl+Shift+=", 1),
            ("Smaller text", "Ctrl+Shift+-", -1),
            ("Normal text size", "Ctrl+Shift+0", 0),
        ):
            self._action(sizes, words, QKeySequence(key), partial(self._change_text_size, steps))
        aid = menu.branch("Help")
        self._action(aid, "Guide to this view", QKeySequence("F1"), self.guide_requested.emit)
        self._action(aid, "One-minute tour", None, self.tour_requested.emit)
        self._action(aid, "References", None, self.references_requested.emit)
        self._action(aid, "Keyboard shortcuts", QKeySequence("?"), self.keys_requested.emit)
        self._action(aid, "Open the menu", QKeySequence("F10"), self.menu_requested.emit)
        self._action(aid, "Reproduce the papers…", None, reproduction.ask_papers)
        palette = self._action(aid, "Command palette", QKeySequence("Ctrl+K"), self.palette_requested.emit)
        palette.setShortcuts([QKeySequence("Ctrl+K"), QKeySequence("Ctrl+Shift+P")])
        menu.addSeparator()
        self._action(menu, "Settings…", QKeySequence("Ctrl+,"), self.ask_settings)
        about = menu.addAction(f"Raterscope {__version__}")
        about.setEnabled(False)
        self._action(menu, "Quit", QKeySequence("Ctrl+Q"), window.close)
        self.key_bindings.follow({"Window": self._made}, None)
        self._of_study: tuple[QAction | QMenu, ...] = (
            *kinds,
            close,
            storing,
            report,
            missing,
            grouping,
            second,
            merging,
            self.export_menu,  # a kept `menuAction()` may lose its object
            self.review_menu,
        )

    def _action(self, menu: QWidget, text: str, keys: Keys | None, slot: Callable[..., object]) -> QAction:
        action = QAction(text, self._window)
        if keys is not None:
            action.setShortcut(keys)
        action.triggered.connect(without_checked(slot))
        menu.addAction(action)
        self._window.addAction(action)
        self._made.append(action)
        return action

    def ask_settings(self) -> None:
        """Open the dialog of the program's settings."""
        from raterscope.app.formats.pyramids.container import PyramidCache
        from raterscope.widgets.dialogs.settings_dialog import SettingsDialog

        algorithms = {
            key: (words.format(kind.title), {name: each.title for name, each in choice.algorithms.items()})
            for kind in KINDS.values()
            for key, words, choice in zip(
                preferences.algorithm_keys(kind.name), ("{}", "{}: detector"), kind.catalogues, strict=False
            )
        }

        cache = str(PyramidCache.of_user().folder.parent)
        dialog = SettingsDialog(
            preferences.program_settings(), login_name(), cache, self.key_bindings.bindings(), algorithms,
            self._window,
        )  # fmt: skip
        dialog.accepted.connect(lambda: self._on_settings(dialog))
        dialog.open()

    def _on_settings(self, dialog: SettingsDialog) -> None:
        preferences.store_program_settings(dialog.settings)
        self.settings_saved.emit()
        self.key_bindings.store(dialog.keys.changes())
        self.message.emit("Settings saved.")

    def _change_text_size(self, steps: int) -> None:
        self.message.emit(f"Text size {change_text_size(steps)} %.")

    def _enable_undo(self) -> None:
        """Enable undo and redo also while a decision is written, so that quick keys are not lost."""
        undo, redo = self._document.undo_text
        self.undo_action.setEnabled(bool(undo or self._document.writing))
        self.redo_action.setEnabled(bool(redo or self._document.writing))

    def follow_study(self) -> None:
        """Enable the actions that the study allows, and describe the next undo and redo."""
        contents = self._document.contents
        undo, redo = self._document.undo_text
        self.undo_action.setText(f"Undo {undo}".rstrip())
        self.redo_action.setText(f"Redo {redo}".rstrip())
        self._enable_undo()
        self._cohort.setVisible(contents is not None and not all(case.is_done for case in contents.cohort))
        for action in self._of_study:
            action.setEnabled(contents is not None)
        several = contents is not None and len(contents.images) > 1
        self.all_cases_menu.menuAction().setVisible(several)
        self.all_cases_menu.setEnabled(several)  # else its actions are found in the command palette

    def follow_workspace(
        self, kind: str, review: Sequence[QAction], workspace: QWidget | None = None
    ) -> None:
        """Fill the Export menu of a kind, and the Review menu of its workspace."""
        own = [action for action in review if not isinstance(action.parent(), QMenu)]
        self.key_bindings.follow({"Window": self._made, WORKSPACES[kind].title: own}, workspace)
        for action in self.review_menu.actions():  # `clear` would invalidate the action of a submenu
            self.review_menu.removeAction(action)
        self.review_menu.addActions(review)
        self.export_menu.clear()
        self.all_cases_menu.clear()
        self.deidentified_menu.clear()
        contents = self._document.contents
        readers = contents is not None and contents.has_readers
        for words, export, deidentify in menu_entries(kind, readers=readers):
            action = (self.deidentified_menu if deidentify else self.export_menu).addAction(words)
            action.triggered.connect(without_checked(partial(self._exporter.start, export, deidentify)))
            if export.by_case:
                title = f"{export.title}, all cases{', de-identified' if deidentify else ''}…"
                action = self.all_cases_menu.addAction(title)
                start = partial(self._exporter.start, export, deidentify, all_cases=True)
                action.triggered.connect(without_checked(start))
        self.export_menu.addSeparator()
        for menu in (self.all_cases_menu, self.deidentified_menu):
            if not menu.isEmpty():
                self.export_menu.addMenu(menu)

    def fill_recent(self) -> None:
        """Fill the menu of recent studies."""
        self.recent_menu.clear()
        for path in self._recent.offered:
            action = self.recent_menu.addAction(str(path))
            action.triggered.connect(without_checked(partial(self._files.open_study, path)))
        self.recent_menu.setEnabled(not self.recent_menu.isEmpty())


def _set_theme(name: str) -> None:
    preferences.remember("look", name)
    apply_chosen_theme(name)


class WindowActions(QObject):
    """Actions of every workspace: shortcut sheet, command palette, guide, copy as image, full screen."""

    message = Signal(str)  # message about the result

    def __init__(self, document: Document, menus: Menus, window: QMainWindow) -> None:
        super().__init__(window)
        self._document = document
        self._menus = menus
        self._window = window
        self._guide: GuideView | None = None
        self._workspace: WorkspaceLayout | None = None
        self._kind = ""
        self.reading_screen: Callable[[], QWidget | None] = lambda: None
        """Function that returns the screen of the reading mode, if shown."""
        menus.keys_requested.connect(self.show_keys)
        menus.palette_requested.connect(self.show_palette)
        menus.guide_requested.connect(self.show_guide)
        menus.references_requested.connect(self.show_references)
        menus.copy_requested.connect(self.copy_picture)
        menus.full_screen_requested.connect(self.toggle_full_screen)

    def follow(self, workspace: WorkspaceLayout | None, kind: str) -> None:
        """Set the workspace on screen; None if the study has no items for it."""
        self._workspace, self._kind = workspace, kind

    def commands(self) -> list[Command]:
        """List the commands of the menus, those of the Review menu first."""
        from raterscope.app.window.command_palette import menu_commands

        results = list(menu_commands(self._menus.menu, "Study"))
        return sorted(results, key=lambda command: command.where != "Review")

    # Help

    def show_keys(self) -> None:
        """Show the sheet of keyboard shortcuts."""
        from raterscope.app.window.command_palette import ShortcutSheet, shortcut_groups

        shown = self._workspace or self.reading_screen()
        ShortcutSheet(shortcut_groups(self.commands(), shown), self._window).open()

    def show_palette(self) -> None:
        """Open the command palette, or close it if it is open."""
        from raterscope.app.window.command_palette import Command, CommandPalette, study_commands
        from raterscope.app.window.guide import pages

        palettes = [palette for palette in self._window.findChildren(CommandPalette) if palette.isVisible()]
        if palettes:
            palettes[0].leave()
            return
        commands = self.commands()
        if self._document.contents is not None and self._workspace is not None:
            commands += study_commands(self._document.contents, self._workspace, self._kind)
        for page in pages().values():
            open_page = partial(self.show_page, page.topic)
            commands.append(Command(page.title, f"Guide: {page.chapter}", open_page, page=page.search))
        CommandPalette(commands, self._window)

    def show_guide(self) -> None:
        """Open the guide at the page of the focused widget."""
        from raterscope.app.window.guide import mark_topics, topic_of

        if self._workspace is not None:
            mark_topics(self._workspace, self._kind)
        self.show_page(topic_of(self._window.focusWidget()))

    def show_references(self) -> None:
        """Open the guide at the list of references."""
        from raterscope.resources.bibliography import REFERENCES

        self.show_page(REFERENCES)

    def show_page(self, topic: str) -> None:
        """Open a page of the guide."""
        from raterscope.app.window.guide import GuideView, pages

        if self._guide is None:
            self._guide = GuideView(pages(), self._window)
        self._guide.open_page(topic)
        self._guide.show()
        self._guide.activateWindow()

    # Image and screen

    def copy_picture(self) -> None:
        """Copy the focused figure as an image; without one, the focused region or the window."""
        from raterscope.widgets.figure_menu import FigureMenu

        focused = self._window.focusWidget() or self._window
        widget: QWidget | None = focused
        while widget is not None:
            menu = widget.findChild(FigureMenu, options=Qt.FindChildOption.FindDirectChildrenOnly)
            if menu is not None:
                menu.copy.trigger()
                return
            widget = widget.parentWidget()
        region = self._workspace.region_of(focused) if self._workspace is not None else None
        QGuiApplication.clipboard().setPixmap((region or self._window).grab())
        self.message.emit("Copied the image.")

    def toggle_full_screen(self) -> None:
        """Enter or leave full screen."""
        self._window.setWindowState(self._window.windowState() ^ Qt.WindowState.WindowFullScreen)

    def leave_full_screen(self) -> bool:
        """Leave full screen; return whether the window was in full screen."""
        full = self._window.isFullScreen()
        if full:
            self.toggle_full_screen()
        return full


_KEY = "key_bindings"
_PORTABLE = QKeySequence.SequenceFormat.PortableText


class KeyBindings:
    """Keys of the actions of the window and of the workspace on screen."""

    def __init__(self) -> None:
        self._actions: dict[str, tuple[QAction, str]] = {}
        self._workspace: QWidget | None = None

    def follow(self, where: Mapping[str, Sequence[QAction]], workspace: QWidget | None) -> None:
        """Apply the chosen keys to actions, by "Window" or the title of the workspace."""
        self._actions = {}
        self._workspace = workspace
        for title, actions in where.items():
            for action in actions:
                if action.property("command") is None:
                    action.setProperty("command", action.text())
                    action.setProperty("default_keys", ", ".join(_keys(action)))
                self._actions.setdefault(f"{title}/{action.property('command')}", (action, title))
        self.apply()

    def bindings(self) -> list[KeyBinding]:
        """List the commands whose keys can be changed."""
        from raterscope.widgets.dialogs.settings_dialog import FIXED, KeyBinding

        chosen = read_keys()
        return [
            KeyBinding(command, action.text(), title, _chosen(chosen, command, default), default)
            for command, (action, title) in self._actions.items()
            for default in [_defaults(action)]
            if FIXED.isdisjoint(default)
        ]

    def store(self, changes: Mapping[str, str]) -> None:
        """Store the changed keys of the listed commands, and apply them; other workspaces keep theirs."""
        stored = {command: keys for command, keys in read_keys().items() if command not in self._actions}
        preferences.remember(_KEY, json.dumps({**stored, **changes}))
        self.apply()

    def apply(self) -> None:
        """Set the keys of all actions, also those shown on buttons; keys of the workspace have priority.

        A key of the window is free if the workspace on screen does not use it.
        """
        chosen = read_keys()
        now: dict[str, str] = {}
        used_keys: set[str] = set()
        for command, (action, title) in reversed(self._actions.items()):
            default = _defaults(action)
            keys = _chosen(chosen, command, default)
            if title == "Window":
                keys = tuple(key for key in keys if key not in used_keys)
            used_keys.update(keys)
            if tuple(_keys(action)) != keys:
                action.setShortcuts([QKeySequence(key) for key in keys])
            now |= {key: keys[0] if keys else "" for key in default if key not in keys}
        buttons = [] if self._workspace is None else self._workspace.findChildren(KeyButton)
        for button in buttons:
            button.set_key(now.get(button.usual_key, button.usual_key))


def read_keys() -> dict[str, str]:
    """Read the keys that were changed, by command; empty if they cannot be read."""
    try:
        stored = json.loads(preferences.recall_text(_KEY) or "{}")
        return {str(command): str(keys) for command, keys in stored.items()}
    except (ValueError, AttributeError):
        return {}


def _chosen(changes: Mapping[str, str], command: str, default: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys that the user chose for a command, or the usual ones."""
    return tuple(filter(None, changes[command].split(", "))) if command in changes else default


def _keys(action: QAction) -> list[str]:
    return [keys.toString(_PORTABLE) for keys in action.shortcuts() if not keys.isEmpty()]


def _defaults(action: QAction) -> tuple[str, ...]:
    return tuple(filter(None, str(action.property("default_keys")).split(", ")))
