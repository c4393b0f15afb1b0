"""Restored position in a case of masks."""

import json

from tests.app.driving import idle


def test_region_rater_and_slices_are_restored_on_return(fused_masks, qtbot):
    workspace = fused_masks.workspace
    workspace.reviewing.select(0)
    rater = workspace.annotators_on_screen()[1]
    workspace.choose_annotator(rater)
    position = tuple(size // 3 for size in workspace.volume.planes["axial"].shape)
    workspace.volume.go_to(position)
    workspace.volume.set_layout("axial")
    text = json.loads(json.dumps(workspace.view_state()))
    workspace.reviewing.select(None)
    workspace.volume.set_layout("three")
    workspace.volume.go_to((0, 0, 0))
    workspace.restore_view(text)
    idle(fused_masks, qtbot)
    assert workspace.reviewing.region.number == 1
    assert workspace.raters.current == rater
    assert workspace.volume.crosshair == position
    assert workspace.volume.layout_name == "axial"
    workspace.restore_view({"structure": 3, "region": "x", "rater": None, "crosshair": [1, 2], "layout": []})
    assert workspace.volume.crosshair == position


def test_undo_is_listed_once(fused_masks, qtbot):
    workspace = fused_masks.workspace
    workspace.reviewing.select(0)
    workspace.reviewing.accept()
    idle(fused_masks, qtbot)
    named = [
        command.text for command in fused_masks.window_actions.commands() if command.text.startswith("Undo")
    ]
    assert len(named) == 1
    assert named[0].startswith("Undo accept region 1")
    assert len({command.text for command in fused_masks.window_actions.commands()}) == len(
        fused_masks.window_actions.commands()
    )
