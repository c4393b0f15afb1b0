"""Text twice as large leaves image, evidence and keys in sight."""

from raterscope.app.window.preferences import change_text_size
from tests.app.driving import idle
from tests.app.large_text import check_keys


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
