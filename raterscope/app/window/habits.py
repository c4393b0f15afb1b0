"""Habits that hold in every workspace: sheet of keys, palette, guide, copies of pictures, full screen."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMainWindow, QWidget

from raterscope.app.document import Document
from raterscope.app.window.menus import Menus
from raterscope.app.workspaces.screen import WorkspaceScreen

if TYPE_CHECKING:
    from raterscope.app.window.commands import Command
    from raterscope.widgets.guide_view import GuideView

__all__ = ["Habits"]


class Habits(QObject):
    """Opens what helps, made only when it is wanted.

    Signals
    -------
    message(str)
        What was done.
    """

    message = Signal(str)

    def __init__(self, document: Document, menus: Menus, window: QMainWindow) -> None:
        super().__init__(window)
        self._document = document
        self._menus = menus
        self._window = window
        self._guide: GuideView | None = None
        self._workspace: WorkspaceScreen | None = None
        self._kind = ""
        menus.keys_requested.connect(self.show_keys)
        menus.palette_requested.connect(self.show_palette)
        menus.guide_requested.connect(self.show_guide)
        menus.references_requested.connect(self.show_references)
        menus.copy_requested.connect(self.copy_picture)
        menus.full_screen_requested.connect(self.toggle_full_screen)

    def follow(self, workspace: WorkspaceScreen | None, kind: str) -> None:
        """Know which workspace is on screen; None where the study holds nothing for it."""
        self._workspace, self._kind = workspace, kind

    def commands(self) -> list[Command]:
        """List what can be done now, from the menus: first of what is looked at."""
        from raterscope.app.window.commands import of_actions

        every = list(of_actions(self._menus.menu, "Study"))
        return sorted(every, key=lambda one: one.where != "Review")

    # What is shown

    def show_keys(self) -> None:
        """Show what every key does here."""
        from raterscope.app.window.keys import KeySheet, groups_of

        KeySheet(groups_of(self.commands(), self._workspace), self._window).open()

    def show_palette(self) -> None:
        """Let a few letters find what to do or where to go; a second time, let it be."""
        from raterscope.app.window.commands import Command, of_study
        from raterscope.app.window.guide import pages
        from raterscope.app.window.palette import Palette

        there = [one for one in self._window.findChildren(Palette) if one.isVisible()]
        if there:
            there[0].leave()
            return
        commands = self.commands()
        if self._document.contents is not None and self._workspace is not None:
            commands += of_study(self._document.contents, self._workspace, self._kind)
        for page in pages().values():
            open_page = partial(self.show_page, page.topic)
            commands.append(Command(page.title, f"Guide: {page.chapter}", open_page))
        Palette(commands, self._window)

    def show_guide(self) -> None:
        """Open the guide at the page of what has the keys."""
        from raterscope.app.window.guide import mark_topics, topic_of

        if self._workspace is not None:
            mark_topics(self._workspace, self._kind)
        self.show_page(topic_of(self._window.focusWidget()))

    def show_references(self) -> None:
        """Open the guide at the list of references."""
        from raterscope.app.window.guide import REFERENCES

        self.show_page(REFERENCES)

    def show_page(self, topic: str) -> None:
        """Open a page of the guide."""
        from raterscope.app.window.guide import pages
        from raterscope.widgets.guide_view import GuideView

        if self._guide is None:
            self._guide = GuideView(pages(), self._window)
        self._guide.open_page(topic)
        self._guide.show()
        self._guide.activateWindow()

    # What is done

    def copy_picture(self) -> None:
        """Copy the figure that has the keys; without one, the region that has them, as it is seen."""
        from raterscope.widgets.figure_menu import PictureMenu

        place = self._window.focusWidget() or self._window
        here: QWidget | None = place
        while here is not None:
            menu = here.findChild(PictureMenu, options=Qt.FindChildOption.FindDirectChildrenOnly)
            if menu is not None:
                menu.copy.trigger()
                return
            here = here.parentWidget()
        region = self._workspace.region_of(place) if self._workspace is not None else None
        QGuiApplication.clipboard().setPixmap((region or self._window).grab())
        self.message.emit("Copied the image.")

    def toggle_full_screen(self) -> None:
        """Fill the screen, or fill it no longer."""
        self._window.setWindowState(self._window.windowState() ^ Qt.WindowState.WindowFullScreen)

    def leave_full_screen(self) -> bool:
        """Fill the screen no longer; tells whether it was filled."""
        full = self._window.isFullScreen()
        if full:
            self.toggle_full_screen()
        return full
