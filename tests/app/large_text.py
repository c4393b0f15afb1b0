"""Check of a workspace with large text."""

import numpy as np
from PySide6.QtCore import Qt

from raterscope.app.window.preferences import change_text_size
from tests.app.driving import idle, press


def is_whole(widget):
    """Return whether nothing of a widget is cut off."""
    return widget.visibleRegion().boundingRect() == widget.rect()


def check_keys(window, qtbot, panel, names, *, steps=10, size=(1280, 720)):
    """Enlarge the text: the canvas and the keys of a panel stay in sight, and all sides return."""
    workspace = window.workspace
    window.resize(*size)
    idle(window, qtbot)
    divided = (workspace.whole, workspace.upper, workspace.middle)
    before = [splitter.sizes() for splitter in divided]
    try:
        change_text_size(steps)
        press(window, qtbot, Qt.Key.Key_Tab, on=workspace.canvas)
        assert [name for name in names if not is_whole(getattr(panel, name))] == []
        seen = workspace.canvas.visibleRegion().boundingRect()
        assert seen.width() >= 240
        assert seen.height() >= 180
    finally:
        change_text_size(0)
    idle(window, qtbot)
    after = [splitter.sizes() for splitter in divided]
    np.testing.assert_allclose(after, before, atol=1)
