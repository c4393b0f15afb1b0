"""Steps of a user on the labels screen."""

from PySide6.QtCore import Qt

from tests.app.driving import LONG, idle, press


def fuse(window, qtbot):
    before = len(window.document.contents.runs)
    key(window, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(window.document.contents.runs) > before, timeout=LONG)
    idle(window, qtbot)


def key(window, qtbot, name, position=None):
    press(window, qtbot, name, on=position or window.workspace.queue.view)
