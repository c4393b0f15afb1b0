"""Operation of the window as a person does it."""

import time

from PySide6.QtCore import QEvent, QObject, Qt

from tests.timers import running
from tests.waiting import LONG

SOON = 100
"""Milliseconds: what a timer begins later than that is not waited for."""

ROUNDS = 3
"""Of the event loop, for what one thing at its end begins."""


class Appeared(QObject):
    """Notes every window that is shown."""

    def __init__(self):
        super().__init__()
        self.windows = []

    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Show and watched.isWidgetType() and watched.isWindow():
            self.windows.append(type(watched).__name__)
        return False


def open_study(window, qtbot, path):
    """Open a study, and wait for its first image, case or question."""
    window.open_paths([path])
    qtbot.waitUntil(
        lambda: window.workspace is not None and window.workspace.current_item() is not None, timeout=LONG
    )
    idle(window, qtbot)
    return window


def idle(window, qtbot):
    """Wait until no work is under way and no timer is about to begin any."""
    ends = time.monotonic() + LONG / 1000
    rounds, pause = 0, 1
    while rounds < ROUNDS:
        assert time.monotonic() < ends, "work is still under way"
        busy = window.busy or _about_to_begin(window)
        rounds, pause = (0, min(2 * pause, 3)) if busy else (rounds + 1, 1)
        qtbot.wait(pause)


def accept_import(dialog):
    """Accept the preview of an import unseen; takes the place of `ImportDialog.open`."""
    dialog.accept()
    dialog.deleteLater()


def command(window, words):
    """Do what a command of the palette does."""
    (item,) = (command for command in window.window_actions.commands() if command.text == words)
    item.do()


def _about_to_begin(window) -> bool:
    return any(
        timer.isSingleShot() and timer.interval() <= SOON and window in _ancestors(timer)
        for timer in running()
    )


def _ancestors(part):
    while (part := part.parent()) is not None:
        yield part


def states(window):
    return [spot.state for spot in window.workspace.reviewing.spots]


def press(window, qtbot, key, modifiers=Qt.KeyboardModifier.NoModifier, *, on=None):
    """Press a key on a widget, by default the canvas, and wait for its effect."""
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    widget = on or window.workspace.canvas
    widget.setFocus()
    qtbot.keyClick(widget, key, modifiers)
    idle(window, qtbot)
