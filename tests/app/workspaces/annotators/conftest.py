"""The window with a study that holds all four kinds."""

import pytest

from tests.app.driving import idle, open_study


@pytest.fixture
def annotators(window, qtbot, four_study):
    """The window at the workspace of annotators."""
    open_study(window, qtbot, four_study)
    window.show_workspace("annotators")
    idle(window, qtbot)
    qtbot.waitUntil(lambda: window.workspace.prepared is not None)
    idle(window, qtbot)
    return window
