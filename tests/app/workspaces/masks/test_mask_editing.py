"""Whole structures are edited by key: holes, outline, margin, other masks, slices; undo takes each back."""

import numpy as np
from PySide6.QtCore import Qt

from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.masks.grid import Grid
from raterscope.app.kinds.masks.runs import fuse_inputs, gather, keep
from raterscope.app.study import Study
from raterscope.app.study.masks import PlacedMask, add_case, add_masks
from raterscope.widgets.dialogs.review_dialogs import CombineDialog, MarginDialog
from raterscope.widgets.volume.scene import Stroke
from tests.app.driving import idle, open_study, press
from tests.app.workspaces.masks.driving import consensus, key
from tests.app.workspaces.masks.made import SHAPE, SPACING, ball, drawn

SHIFT = Qt.KeyboardModifier.ShiftModifier


def erase(window, qtbot):
    """Make a hole of 9 voxels in the middle of slice 8."""
    hole = np.zeros((1, 3, 3), dtype=np.int8)
    window.workspace.volume.painted.emit(Stroke((8, 19, 19), hole, "axial", 8))
    idle(window, qtbot)


def undo(window, qtbot):
    window.document.undo()
    idle(window, qtbot)


def test_holes_and_margins_are_edited_and_undone(fused_masks, qtbot):
    before = consensus(fused_masks)
    erase(fused_masks, qtbot)
    assert consensus(fused_masks).sum() == before.sum() - 9
    key(fused_masks, qtbot, Qt.Key.Key_G)
    np.testing.assert_array_equal(consensus(fused_masks), before)
    undo(fused_masks, qtbot)
    assert consensus(fused_masks).sum() == before.sum() - 9
    undo(fused_masks, qtbot)
    key(fused_masks, qtbot, Qt.Key.Key_G)
    assert fused_masks.status.message == "This changes no voxel."

    key(fused_masks, qtbot, Qt.Key.Key_M, SHIFT)
    (dialog,) = fused_masks.findChildren(MarginDialog)
    dialog.editor.setValue(2.0)
    dialog.accept()
    idle(fused_masks, qtbot)
    after = consensus(fused_masks)
    assert not (before & ~after).any()
    rows = np.flatnonzero(before.any(axis=(0, 2))), np.flatnonzero(after.any(axis=(0, 2)))
    assert (rows[0][0] - rows[1][0], rows[1][-1] - rows[0][-1]) == (2, 2)
    undo(fused_masks, qtbot)
    np.testing.assert_array_equal(consensus(fused_masks), before)

    editing = fused_masks.workspace.editing
    editing._add_margin(2.0)
    idle(fused_masks, qtbot)
    once = consensus(fused_masks)
    editing._add_margin(2.0)
    idle(fused_masks, qtbot)
    twice = consensus(fused_masks)
    assert twice.sum() > once.sum()
    for _ in range(2):
        undo(fused_masks, qtbot)
    for _ in range(2):
        editing._add_margin(2.0)
    idle(fused_masks, qtbot)
    np.testing.assert_array_equal(consensus(fused_masks), twice)
    undo(fused_masks, qtbot)
    np.testing.assert_array_equal(consensus(fused_masks), once)


def test_the_consensus_is_combined_with_a_raters_mask(fused_masks, qtbot):
    before, dan = consensus(fused_masks), drawn()["dan"]
    expected = {"add": before | dan, "subtract": before & ~dan, "intersect": before & dan, "replace": dan}
    for how, mask in expected.items():
        key(fused_masks, qtbot, Qt.Key.Key_U)
        dialog = next(dialog for dialog in fused_masks.findChildren(CombineDialog) if dialog.isVisible())
        dialog.how_box.setCurrentIndex(dialog.how_box.findData(how))
        dialog.other_box.setCurrentIndex(dialog.other_box.findText("dan: nodule"))
        dialog.accept()
        idle(fused_masks, qtbot)
        np.testing.assert_array_equal(consensus(fused_masks), mask)
        undo(fused_masks, qtbot)


def test_the_history_names_each_edit(fused_masks, qtbot):
    workspace = fused_masks.workspace
    workspace.volume.go_to((8, 20, 20))
    erase(fused_masks, qtbot)
    workspace.volume.painted.emit(Stroke((8, 19, 19), np.ones((1, 1, 1), dtype=np.int8), "axial", 8))
    workspace.editing.fill_holes()
    workspace.editing.smooth()
    workspace.editing.copy_slice(1)
    idle(fused_masks, qtbot)
    workspace.editing._add_margin(1.5)
    key(fused_masks, qtbot, Qt.Key.Key_U)
    (dialog,) = fused_masks.findChildren(CombineDialog)
    dialog.how_box.setCurrentIndex(dialog.how_box.findData("subtract"))
    dialog.other_box.setCurrentIndex(dialog.other_box.findText("dan: nodule"))
    dialog.accept()
    idle(fused_masks, qtbot)
    contents = fused_masks.document.contents
    words = [contents.review.in_words(decision) for decision in contents.decisions]
    assert words[:3] == ["erase on slice 9", "paint slice 9", "fill holes on slice 9"]
    edits = [text.partition(" on slice")[0] for text in words[3:]]
    assert edits == ["smooth", "copy slice 9", "add a margin of 1.5 mm", "remove dan: nodule"]


def test_an_edit_that_ends_on_another_structure_changes_nothing(window, qtbot, tmp_path):
    with Study.create(tmp_path / "two.rscope") as study:
        case = add_case(study, "case", Grid.plain(SHAPE, SPACING, calibrated=True))
        masks = [(rater, structure) for rater in ("ann", "ben") for structure in ("gtv", "heart")]
        add_masks(study, [PlacedMask(case.id, *mask, (0, 0, 0), ball(7.0)) for mask in masks], "masks")
        keep(fuse_inputs(gather([case.id], study), MaskPlan()), study)
    open_study(window, qtbot, tmp_path / "two.rscope")
    structure = window.workspace.maps.structure
    structure.setCurrentText("gtv")
    erase(window, qtbot)
    window.workspace.editing.fill_holes()
    structure.setCurrentText("heart")
    idle(window, qtbot)
    (stroke,) = window.document.contents.decisions
    assert stroke.subject.structure == "gtv"


def test_slices_are_copied_and_painted_with_a_ball_of_a_brush(fused_masks, qtbot):
    workspace = fused_masks.workspace
    last = int(np.flatnonzero(consensus(fused_masks).any(axis=(1, 2)))[-1])
    workspace.volume.go_to((last, 20, 20))
    key(fused_masks, qtbot, Qt.Key.Key_N)
    mask = consensus(fused_masks)
    assert workspace.volume.crosshair[0] == last + 1
    np.testing.assert_array_equal(mask[last + 1], mask[last])
    workspace.volume.go_to((0, 20, 20))
    key(fused_masks, qtbot, Qt.Key.Key_N)
    assert fused_masks.status.message == "There is nothing to copy on slice 1."

    volume = workspace.volume
    key(fused_masks, qtbot, Qt.Key.Key_B)
    assert not volume._brush_chips.isHidden()
    key(fused_masks, qtbot, Qt.Key.Key_B, SHIFT)
    volume.set_brush_radius(4.5)
    volume.go_to((4, 6, 6))
    press(fused_masks, qtbot, Qt.Key.Key_Return, on=volume.view("axial"))
    slices = consensus(fused_masks)[:, 2:11, 2:11].sum(axis=(1, 2))
    assert slices[4] > slices[3] == slices[5] > slices[2] == slices[6] > 0 == slices[1]
    undo(fused_masks, qtbot)
    key(fused_masks, qtbot, Qt.Key.Key_W, SHIFT)
    volume.windows.set(-80.0, 20.0)
    press(fused_masks, qtbot, Qt.Key.Key_Return, on=volume.view("axial"))
    values = volume._scene.values[consensus(fused_masks) & (np.indices(volume._scene.values.shape)[1] < 11)]
    assert 0 < len(values) < slices.sum()
    assert ((values > -90) & (values < -70)).all()
