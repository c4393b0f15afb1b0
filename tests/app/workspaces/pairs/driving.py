"""How a test drives the pairs screen as a person does."""

from tests.app.driving import press


def key(window, qtbot, which):
    press(window, qtbot, which, on=window.workspace.queue.view)
