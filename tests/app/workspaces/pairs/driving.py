"""Steps of a user on the pairs screen."""

from tests.app.driving import press


def key(window, qtbot, name):
    press(window, qtbot, name, on=window.workspace.queue.view)
