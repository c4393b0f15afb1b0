"""How a test drives the window as a person does."""

import time

from PySide6.QtCore import QEvent, QObject, Qt

LONG = 20_000
"""Milliseconds that a test waits at most for what must come."""


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
    quiet_since = time.monotonic()

    def settled():
        nonlocal quiet_since
        if window.jobs.busy:
            quiet_since = time.monotonic()
        return time.monotonic() - quiet_since > 0.1

    qtbot.waitUntil(settled, timeout=LONG)


def states(window):
    return [spot.state for spot in window.workspace.reviewing.spots]


def press(window, qtbot, key, modifiers=Qt.KeyboardModifier.NoModifier, *, on=None):
    """Press a key where the keys are to go, on the canvas unless told otherwise; wait for what it does."""
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    place = on or window.workspace.canvas
    place.setFocus()
    qtbot.keyClick(place, key, modifiers)
    idle(window, qtbot)
