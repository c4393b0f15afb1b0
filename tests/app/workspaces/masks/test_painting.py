"""Brush and eraser change the consensus by strokes; slices are interpolated; everything can be undone."""

import numpy as np
from PySide6.QtCore import Qt

from raterscope.algorithms.masks.data import OPEN
from raterscope.app.study import Study
from raterscope.widgets.volume.scene import Stroke
from tests.app.driving import idle
from tests.app.workspaces.masks.driving import consensus, key, states
from tests.app.workspaces.masks.made import SHAPE


def test_a_stroke_leaves_the_slice_and_the_reader_that_are_looked_at(fused_masks, qtbot):
    key(fused_masks, qtbot, Qt.Key.Key_Tab)
    workspace = fused_masks.workspace
    (region,) = workspace.reviewing.regions
    z, y, x = region.dispute.origin
    before = workspace.volume.crosshair
    at = z if before[0] != z else z + 1
    workspace.volume.go_to((at, *before[1:]))
    workspace.raters.choose("ann")
    disc = np.ones((1, 3, 3), dtype=np.int8)
    workspace.volume.painted.emit(Stroke((at, y, x), disc, "axial", at))
    idle(fused_masks, qtbot)
    assert states(fused_masks) == ["mended"]
    assert "edited by you" in workspace.region_panel._figures.accessibleName()
    assert workspace.volume.crosshair == (at, *before[1:])
    assert workspace.raters.current == "ann"


def test_strokes_mend_the_consensus_and_slices_between_painted_ones_are_filled_in(fused_masks, qtbot):
    workspace = fused_masks.workspace
    disc = np.full((1, 9, 9), OPEN, dtype=np.int8)
    disc[0, 1:8, 1:8] = 1
    workspace.volume.painted.emit(Stroke((1, 2, 2), disc, "axial", 1))
    idle(fused_masks, qtbot)
    fused_masks.document.undo()
    idle(fused_masks, qtbot)
    workspace.volume.painted.emit(Stroke((4, 2, 2), disc, "axial", 4))
    idle(fused_masks, qtbot)
    before = consensus(fused_masks)
    key(fused_masks, qtbot, Qt.Key.Key_I)
    np.testing.assert_array_equal(consensus(fused_masks), before)
    assert "Paint on two slices" in fused_masks.status.message

    for at in (1, 4):
        workspace.volume.painted.emit(Stroke((at, 2, 2), disc, "axial", at))
        idle(fused_masks, qtbot)
    assert not consensus(fused_masks)[2:4, 3:10, 3:10].any()
    key(fused_masks, qtbot, Qt.Key.Key_I)
    assert consensus(fused_masks)[2:4, 3:10, 3:10].all()
    assert "interpolate on slices 3-4" in fused_masks.menus.undo_action.text()
    fused_masks.document.undo()
    idle(fused_masks, qtbot)
    assert not consensus(fused_masks)[2:4, 3:10, 3:10].any()

    key(fused_masks, qtbot, Qt.Key.Key_B)
    assert workspace.volume.tool == "brush"
    assert workspace.region_panel.brush.isChecked()
    assert workspace.volume._scene.edit is not None
    disc = np.full((1, 5, 5), OPEN, dtype=np.int8)
    disc[0, 1:4, 1:4] = 1
    workspace.volume.painted.emit(Stroke((2, 3, 3), disc, "axial", 2))
    idle(fused_masks, qtbot)
    assert consensus(fused_masks)[2, 4:7, 4:7].all()
    workspace.volume.painted.emit(Stroke((8, 18, 18), np.zeros((1, 5, 5), dtype=np.int8), "axial", 8))
    idle(fused_masks, qtbot)
    assert not consensus(fused_masks)[8, 18:23, 18:23].any()
    fused_masks.document.undo()
    idle(fused_masks, qtbot)
    assert consensus(fused_masks)[8, 18:23, 18:23].all()
    assert consensus(fused_masks)[2, 4:7, 4:7].all()
    key(fused_masks, qtbot, Qt.Key.Key_Escape)
    assert workspace.volume.tool == "look"
    assert not workspace.region_panel.brush.isChecked()
    assert workspace.volume._scene.edit is None


def test_a_stroke_that_could_not_be_written_is_not_shown_as_another(fused_masks, qtbot, monkeypatch):
    workspace = fused_masks.workspace
    disc = np.ones((1, 5, 5), dtype=np.int8)

    def full(_study, _decision):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Study, "record", full)
        workspace.volume.painted.emit(Stroke((1, 3, 3), disc, "axial", 1))
        idle(fused_masks, qtbot)
    workspace.volume.painted.emit(Stroke((4, 30, 30), disc, "axial", 4))
    idle(fused_masks, qtbot)
    assert not consensus(fused_masks)[1].any()
    assert consensus(fused_masks)[4, 30:35, 30:35].all()


def test_slices_between_change_only_where_the_painted_area_reaches(fused_masks, qtbot):
    """The consensus has another shape on every slice: outside of the painted area it stays as it is."""
    workspace = fused_masks.workspace
    before = consensus(fused_masks)
    bump = np.ones((1, 5, 5), dtype=np.int8)
    gap = np.zeros((1, 3, 3), dtype=np.int8)
    for at in (5, 11):
        workspace.volume.painted.emit(Stroke((at, 26, 18), bump, "axial", at))
        workspace.volume.painted.emit(Stroke((at, 19, 19), gap, "axial", at))
        idle(fused_masks, qtbot)
    key(fused_masks, qtbot, Qt.Key.Key_I)
    after = consensus(fused_masks)
    assert after[6:11, 26:31, 18:23].all()
    assert not after[6:11, 19:22, 19:22].any()
    elsewhere = np.ones(SHAPE, dtype=bool)
    elsewhere[5:12, 26:31, 18:23] = elsewhere[5:12, 19:22, 19:22] = False
    np.testing.assert_array_equal(after[elsewhere], before[elsewhere])
