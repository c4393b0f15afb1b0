"""Steps of a user on the labels screen."""

from PySide6.QtCore import Qt

from raterscope.widgets.dialogs.review_dialogs import ExclusionDialog
from raterscope.widgets.panels.exclusion_panel import ExclusionPanel
from tests.app.driving import LONG, idle, press


def fuse(window, qtbot):
    before = len(window.document.contents.runs)
    key(window, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(window.document.contents.runs) > before, timeout=LONG)
    idle(window, qtbot)


def key(window, qtbot, name, position=None):
    press(window, qtbot, name, on=position or window.workspace.queue.view)


def preview_exclusion(window, qtbot) -> ExclusionPanel:
    """Press X, and return the panel of the dialog as soon as it shows what would change."""
    key(window, qtbot, Qt.Key.Key_X)
    panel = window.findChild(ExclusionDialog).panel
    qtbot.waitUntil(lambda: panel.state == "shown", timeout=LONG)
    idle(window, qtbot)
    return panel
