"""Text twice as large leaves image, evidence and keys in sight."""

from tests.app.large_text import check_keys


def test_image_and_keys_stay_visible(fused, qtbot):
    names = ("flag", "clear", "skip")
    check_keys(fused, qtbot, fused.workspace.evidence, names)
