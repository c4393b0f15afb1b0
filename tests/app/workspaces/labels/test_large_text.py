"""Text twice as large leaves image, evidence and keys in sight."""

from tests.app.large_text import check_keys


def test_image_and_keys_stay_visible(fused, qtbot):
    names = ("skip", "clear")
    check_keys(fused, qtbot, fused.workspace.task_panel, names)
    check_keys(fused, qtbot, fused.workspace.task_panel, (*names, "bars"), steps=5, size=(1440, 900))
