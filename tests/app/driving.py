"""How a test drives the window as a person does."""

from PySide6.QtCore import QEvent, QObject, Qt, QTimer

LONG = 60_000
"""Milliseconds that a test waits at most for what must come: a fusion gives way to whatever else runs."""

SOON = 100
"""Milliseconds: what a timer begins later than that is not waited for."""

ROUNDS = 2
"""Of the event loop, 10 ms each, for what one thing at its end begins."""


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
    rounds = 0

    def settled():
        nonlocal rounds
        rounds = 0 if window.jobs.busy or _about_to_begin(window) else rounds + 1
        return rounds > ROUNDS

    qtbot.waitUntil(settled, timeout=LONG)


def _about_to_begin(window) -> bool:
    return any(
        timer.isActive() and timer.isSingleShot() and timer.interval() <= SOON
        for timer in window.findChildren(QTimer)
    )


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
