"""Text twice as large leaves image, evidence and keys in sight."""

from tests.app.large_text import check_keys


def test_image_and_keys_stay_visible(fused_masks, qtbot):
    names = ("accept", "take", "skip", "interpolate", "brush", "erase", "undo")
    check_keys(fused_masks, qtbot, fused_masks.workspace.region_panel, names)
