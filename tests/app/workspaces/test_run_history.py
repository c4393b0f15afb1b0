"""Changes by a fusion, as the window shows them."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt

from tests.app.driving import LONG, idle, press

CTRL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def fused_again(fused, qtbot):
    """Return the window after a spot was rejected and everything fused at a stricter threshold."""
    workspace = fused.workspace
    workspace.reviewing.select(0)
    with qtbot.waitSignal(fused.document.decided, timeout=LONG):
        press(fused, qtbot, Qt.Key.Key_R)
    idle(fused, qtbot)
    detector = workspace.fuse_panel.detector
    detector.choose(detector.algorithm, replace(detector.settings(), detection_threshold=1.0))
    press(fused, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: workspace.runs.changes.changes is not None, timeout=LONG)
    idle(fused, qtbot)
    return fused


def test_changes_are_shown_stepped_through_and_reverted(fused_again, qtbot):
    window, workspace = fused_again, fused_again.workspace
    panel, changes = workspace.changes_panel, workspace.runs.changes.changes
    assert changes.in_words() in panel.summary.text()
    assert panel.view.model().rowCount() == changes.count > 1
    for position, modifiers in ((0, CTRL), (1, CTRL), (0, CTRL | SHIFT)):
        press(window, qtbot, Qt.Key.Key_J, modifiers)
        idle(window, qtbot)
        change, spot = changes.listed[position], workspace.reviewing.spot
        assert workspace.current_item() == change.item
        assert (spot.x, spot.y) == pytest.approx(change.point)
        assert workspace.left_tabs.currentWidget() is panel
        shown = window.status.message
        assert shown == f"Change {position + 1} of {changes.count}: {change.text}."
    press(window, qtbot, Qt.Key.Key_B, CTRL)
    idle(window, qtbot)
    assert window.document.contents.chosen == {"clicks": 1}
    assert workspace.reviewing.session.scene.run.id == 1
    assert panel.back.text() == "latest run"
    assert panel.back.accessibleName().startswith("latest run")
    press(window, qtbot, Qt.Key.Key_B, CTRL)
    idle(window, qtbot)
    assert workspace.reviewing.session.scene.run.id == 2
    workspace.core.toggle_blind()
    assert panel.view.model().rowCount() == 0
    assert "hidden" in panel.summary.text()
    workspace.core.toggle_blind()
    assert panel.view.model().rowCount() == changes.count
    detector = workspace.fuse_panel.detector
    detector.choose(detector.algorithm, replace(detector.settings(), detection_threshold=0.2))
    workspace.core.toggle_blind()
    press(window, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: workspace.runs.changes.changes not in (None, changes), timeout=LONG)
    idle(window, qtbot)
    assert window.status.message.startswith("Fused with other settings")
    assert "Ctrl+J" not in window.status.message
    workspace.core.toggle_blind()
    later = workspace.runs.changes.changes
    assert (changes.before.id, later.before.id) == (1, 2)
    path = window.document.contents.path
    window.files.close_study()
    idle(window, qtbot)
    assert workspace.runs.changes.changes is None
    workspace.left_tabs.setCurrentIndex(0)
    window.files.open_study(path)
    idle(window, qtbot)
    assert workspace.runs.changes.changes is None
    press(window, qtbot, Qt.Key.Key_J, CTRL)
    qtbot.waitUntil(lambda: workspace.runs.changes.changes is not None, timeout=LONG)
    idle(window, qtbot)
    assert workspace.runs.changes.changes.in_words() == later.in_words()
    assert workspace.runs.changes.changes.before.id == 2
    assert workspace.left_tabs.currentWidget() is panel


def test_the_key_to_the_previous_run_offers_none_that_is_on_screen_after_an_undo(fused_again, qtbot):
    window, workspace = fused_again, fused_again.workspace
    back = workspace.changes_panel.back
    press(window, qtbot, Qt.Key.Key_Z, CTRL)
    idle(window, qtbot)
    assert workspace.reviewing.session.scene.run.id == 1
    assert not back.isEnabled()
    reason = "Run 2 used decisions that you have undone. Press Fuse (F5) to fuse again."
    assert reason in back.toolTip()
    press(window, qtbot, Qt.Key.Key_B, CTRL)
    idle(window, qtbot)
    assert window.status.message == reason
    assert window.document.contents.chosen == {}
    press(window, qtbot, Qt.Key.Key_Y, CTRL)
    idle(window, qtbot)
    assert workspace.reviewing.session.scene.run.id == 2
    assert back.isEnabled()
    press(window, qtbot, Qt.Key.Key_B, CTRL)
    idle(window, qtbot)
    assert workspace.reviewing.session.scene.run.id == 1
