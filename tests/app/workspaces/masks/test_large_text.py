"""Large text and small windows leave image, evidence and keys in sight."""

from PySide6.QtCore import Qt

from raterscope.app.window.preferences import change_text_size
from tests.app.driving import idle
from tests.app.large_text import check_keys
from tests.app.workspaces.masks.driving import key
from tests.app.workspaces.masks.made import READERS


def test_image_and_keys_stay_visible(fused_masks, qtbot):
    names = ("accept", "take", "skip", "interpolate", "brush", "erase", "undo")
    check_keys(fused_masks, qtbot, fused_masks.workspace.region_panel, names)


def test_a_side_that_the_expert_folded_stays_folded_after_large_text(fused_masks, qtbot):
    workspace = fused_masks.workspace
    fused_masks.resize(1280, 720)
    idle(fused_masks, qtbot)
    workspace.fold(workspace.middle)
    try:
        change_text_size(10)
        idle(fused_masks, qtbot)
        assert workspace.whole.sizes()[0] == 0
    finally:
        change_text_size(0)
    idle(fused_masks, qtbot)
    assert workspace.middle.sizes()[1] == 0
    assert workspace.whole.sizes()[0] > 0


def test_all_raters_of_a_region_are_in_sight_in_a_small_window(fused_masks, qtbot):
    table, votes = fused_masks.workspace.table, fused_masks.workspace.region_panel.votes
    fused_masks.resize(1024, 640)
    idle(fused_masks, qtbot)
    assert table.isVisible()
    key(fused_masks, qtbot, Qt.Key.Key_Tab)
    last = votes.visualRect(votes.model().index(len(READERS) - 1, 0))
    assert votes.visibleRegion().contains(last)
    assert not table.isVisible()
    fused_masks.resize(1440, 900)
    idle(fused_masks, qtbot)
    assert table.isVisible()
