"""Steps of a user on the pairs screen."""

from tests.app.driving import press


def key(window, qtbot, which):
    press(window, qtbot, which, on=window.workspace.queue.view)
