"""Hands of an expert: keys pressed in a window, and the effects that tests read."""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QWidget

from raterscope.app.review import Decision
from raterscope.app.window.command_palette import CommandPalette
from raterscope.app.window.guide import GuideView
from raterscope.app.window.preferences import change_text_size
from raterscope.widgets import theme
from tests.app.driving import idle
from tests.app.window.everything import NAMES

LEFT = Qt.MouseButton.LeftButton
CHANGED = object()
"""In place of a value: each press changes the value."""


@dataclass(frozen=True)
class Effect:
    """How the effect of a key is read."""

    read: Callable[["Hands"], object]
    then: object = CHANGED
    ready: Callable[["Hands"], object] | None = None  # before each press
    on: Callable[["Hands"], QWidget] | None = (
        None  # widget with the focus; by default the middle of the screen
    )
    do: Callable[["Hands"], object] | None = None  # in place of a key
    keys: str = ""  # in place of what the sheet writes, such as "Arrows"


class Hands:
    """Actions of an expert in the window."""

    def __init__(self, window, qtbot, kind):
        self.window, self.qtbot = window, qtbot
        self.kind, self.asked, self.menu = kind, "", False
        self.runs = 0
        self.panel_of = {}

    @property
    def screen(self):
        return self.window.workspace

    @property
    def contents(self):
        return self.window.document.contents

    @property
    def verb(self):
        return self.contents.decisions[-1].verb if self.contents.decisions else ""

    @property
    def dialogs(self):
        return [type(each).__name__ for each in QApplication.topLevelWidgets() if _is_open(each)]

    def idle(self):
        idle(self.window, self.qtbot)

    @property
    def plane(self):
        return self.screen.planes._chosen[self.screen.current_item()]

    def newer_run(self):
        if self.runs:  # F5 was pressed
            self.qtbot.waitUntil(lambda: len(self.contents.runs) > self.runs)
        self.runs = len(self.contents.runs)
        return self.runs

    def check(self, effect, key):
        """Press a key, and compare its effect with what it was before, or shall be."""
        self.window.activateWindow()
        self.qtbot.waitUntil(self.window.isActiveWindow)
        self.asked, self.menu = "", False
        on = (effect.on or middle)(self)
        on.setFocus()
        if effect.ready is not None:
            effect.ready(self)
            self.idle()
            on.setFocus()
        before = effect.read(self)
        QTimer.singleShot(0, self._close_menu)
        if effect.do is None:
            self.press(key)
        else:
            effect.do(self)
        after = effect.read(self)
        if effect.do is None and self.window.isVisible():
            self.release(key)
        if effect.then is CHANGED:
            assert after != before, f"still {before!r}"
        else:
            assert after == effect.then, f"{after!r} instead of {effect.then!r}; {self.window.status.message}"

    def _close_menu(self):
        menu = QApplication.activePopupWidget()
        if menu is not None:
            self.menu = True
            menu.close()

    def press(self, keys, on=None):
        if on is not None:
            self.window.activateWindow()
            self.qtbot.waitUntil(self.window.isActiveWindow)
            on.setFocus()
            assert on.hasFocus() or on.focusProxy() is not None, f"{on} does not take the focus"
        combined = QKeySequence(keys)[0]
        QTest.keyPress(QApplication.focusWidget(), combined.key(), combined.keyboardModifiers())
        self.idle()

    def release(self, keys):
        combined = QKeySequence(keys)[0]
        QTest.keyRelease(QApplication.focusWidget(), combined.key(), combined.keyboardModifiers())

    def show(self, panel):
        dict(self.screen.panels())[panel]()
        self.idle()

    def undo_all(self):
        while self.contents.review.undoable is not None:
            self.window.document.undo()
            self.idle()

    def put_back(self):
        """Close dialogs, modes and panels, undo decisions, and show the first item."""
        for each in QApplication.topLevelWidgets():
            if _is_open(each):
                each.close()
        for palette in self.window.findChildren(CommandPalette):
            palette.leave()
        if theme.text_size() != 1:
            change_text_size(0)
        if self.contents is None or self.screen is None:
            return
        if self.window._kind != self.kind:
            self.window.show_workspace(self.kind)
        self.undo_all()
        if self.screen.blind_mode is not None and self.screen.blind_mode.on:
            self.screen.core.toggle_blind()
        for splitter in self.screen._sides:
            self.screen.unfold(splitter)
        while self.screen._enlarged is not None:
            self.screen.enlarge()
        if self.kind != "annotators":
            go_to(self)
        if self.kind == "clicks":
            self.screen.queue.order.setCurrentIndex(0)
            self.screen.show_grid(False)
            if self.screen.streaming.replay.on:
                self.screen.streaming.leave_replay()
        for _ in range(3):
            if self.screen.has_to_leave:
                self.press("Esc", self.window.focusWidget() or middle(self))


def _is_open(widget):
    return widget.isVisible() and isinstance(widget, (QDialog, GuideView))


# What the effects are read from


def first_disputed(h, at=0):
    disputed = [i for i, spot in enumerate(h.screen.reviewing.spots) if spot.state == "disputed"]
    h.screen.reviewing.select(disputed[at])


def disputed_spot(h):
    """Number of the disputed spot of the image on screen, or None."""
    disputed = [spot.number for spot in h.screen.reviewing.spots if spot.state == "disputed"]
    spot = h.screen.reviewing.spot
    return disputed.index(spot.number) if spot is not None and spot.number in disputed else None


def decided_class(h):
    decision = h.contents.decisions[-1] if h.contents.decisions else None
    return (decision.verb, getattr(decision.subject, "label", "")) if decision else None


def region(h, at=0):
    h.screen.reviewing.select(at)


def task(h, at=0):
    h.screen.tasks.select(at)


def annotator(h, at=0):
    h.screen.choose_annotator(h.screen.annotators_on_screen()[at])


def middle(h):
    return MIDDLE[h.kind](h)


def item(h):
    items = [entry.id for entry in h.contents.of(h.kind)]
    return items.index(h.screen.current_item())


def go_to(h, at=0):
    if item(h) != at:
        h.screen.go_to(h.contents.of(h.kind)[at].id)
        h.idle()


def folded(h, name):
    splitter = getattr(h.screen, name)
    return splitter.sizes()[h.screen._sides[splitter][0]] == 0


def focus_region(h):
    return h.screen.region_of(h.window.focusWidget())


def clipboard(h):
    size = QGuiApplication.clipboard().image().width()
    QGuiApplication.clipboard().clear()
    return size > 0


def with_bookmark(h):
    go_to(h, 1)
    h.screen.comments.toggle_bookmark()
    h.idle()
    go_to(h, 0)


def with_fuse_panel(h):
    if not h.screen.fuse_panel.isVisible():
        h.screen.toggle_fuse_panel()


def a_decision(h):
    """Decide something, as if by hand."""
    if h.kind == "annotators":
        h.window.document.record(Decision(verb="mark", annotators=NAMES[:1]))
    else:
        h.screen.comments.toggle_bookmark()
    h.idle()
    assert h.verb in ("bookmark", "mark")


def two(h):
    """Select annotators without masks, which may be joined."""
    h.screen.table.select(NAMES[-2:])


def joined(h):
    two(h)
    h.screen.decisions.join()
    h.idle()


def undone(h):
    a_decision(h)
    h.window.document.undo()
    h.idle()


def visible(h, kind, panel=""):
    """The first visible widget of a class, in a panel that is brought to the front."""
    if panel:
        h.show(panel)
    return next(each for each in h.screen.findChildren(kind) if each.isVisible())


MIDDLE = {
    "clicks": lambda h: h.screen.canvas,
    "masks": lambda h: h.screen.volume.view("axial"),
    "labels": lambda h: h.screen.queue.view,
    "pairs": lambda h: h.screen.queue.view,
    "annotators": lambda h: h.screen.table.view,
    "": lambda h: h.window,
}
