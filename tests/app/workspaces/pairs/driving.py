"""Steps of a user on the pairs screen."""

from PySide6.QtCore import Qt

from tests.app.driving import LONG, idle, press


def key(window, qtbot, name):
    press(window, qtbot, name, on=window.workspace.queue.view)


def exclude_flagged(window, qtbot, reason="biased to a side"):
    """Press X, wait for the preview, and exclude with a reason; return the panel as it was."""
    key(window, qtbot, Qt.Key.Key_X)
    exclusions = window.workspace.bias_review.exclusions
    qtbot.waitUntil(lambda: exclusions.dialog.panel.state == "shown", timeout=LONG)
    panel = exclusions.dialog.panel
    summary, changes = panel._summary.text(), list(panel._changes)
    assert not window.document.contents.review.excluded
    panel.reason.edit.setText(reason)
    panel.exclude.click()
    idle(window, qtbot)
    return summary, changes
