"""A program among the raters of masks: marked by key, fused, shown as a program, excluded with a preview."""

import pytest
from PySide6.QtCore import Qt

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.study import Study
from raterscope.app.study.masks import PlacedMask, add_case, add_masks
from raterscope.widgets.dialogs.review_dialogs import ExclusionDialog
from tests.app.driving import idle, open_study, press
from tests.app.kinds.masks.test_programs import CASES, RATERS, SHAPE, drawn
from tests.app.workspaces.masks.driving import key


@pytest.fixture
def opened(window, qtbot, tmp_path):
    path = tmp_path / "programs.rscope"
    with Study.create(path) as study:
        for seed in range(4, 4 + CASES):
            case = add_case(study, f"case {seed - 4}", Grid.plain(SHAPE, (1.0, 1.0, 1.0), calibrated=True))
            masks, chance = drawn(seed)
            placed = [PlacedMask(case.id, name, "organ", (0, 0, 0), mask) for name, mask in masks.items()]
            placed.append(PlacedMask(case.id, "unet", "organ", (0, 0, 0), chance))
            add_masks(study, placed, "made")
    return open_study(window, qtbot, path)


def consensus(window):
    return window.workspace.reviewing.consensus.values


def rows(window):
    return {row.name: row for row in window.workspace.table.model.rows}


def fuse(window, qtbot):
    window.show_workspace("masks")
    idle(window, qtbot)
    key(window, qtbot, Qt.Key.Key_F5)
    idle(window, qtbot)


def mark(window, qtbot):
    """Press M on the program in the workspace of annotators."""
    window.show_workspace("annotators")
    idle(window, qtbot)
    qtbot.waitUntil(lambda: window.workspace.prepared is not None)
    idle(window, qtbot)
    window.workspace.table.select(("unet",))
    press(window, qtbot, Qt.Key.Key_M, on=window.workspace.table.view)


def test_m_makes_a_rater_a_program_and_a_rater_again(opened, qtbot):
    fuse(opened, qtbot)
    assert rows(opened)["unet"].note == ""
    mark(opened, qtbot)
    assert opened.document.contents.review.programs == {"unet"}
    assert "do not use" not in opened.status.message
    fuse(opened, qtbot)
    scene = opened.workspace.session.scene
    assert scene.fusion("organ").annotators == RATERS
    row = rows(opened)["unet"]
    assert row.note == "program"
    assert row.counts_as.startswith("counts as")
    assert row.dice > 0.8
    key(opened, qtbot, Qt.Key.Key_Tab)
    votes = opened.workspace.region_panel._evidence.votes
    assert [vote.title for vote in votes][-1] == "unet (program)"
    assert "of 3 raters inside" in opened.workspace.region_panel._tally.text()
    mark(opened, qtbot)
    assert not opened.document.contents.review.programs
    fuse(opened, qtbot)
    assert rows(opened)["unet"].note == ""


def test_a_program_is_compared_side_by_side_and_excluded_after_a_preview(opened, qtbot):
    mark(opened, qtbot)
    fuse(opened, qtbot)
    key(opened, qtbot, "V", Qt.KeyboardModifier.ShiftModifier)
    volume = opened.workspace.volume
    chip = volume.divider.chips[1]
    next(action for action in chip.menu.actions() if action.text() == "unet (program)").trigger()
    idle(opened, qtbot)
    (outline,) = volume._scene.sides[1].outlines
    assert outline.dashed
    assert outline.values is opened.workspace.session.scene.programs["organ"]["unet"].values

    key(opened, qtbot, "V", Qt.KeyboardModifier.ShiftModifier)
    before = int(consensus(opened).sum())
    opened.workspace.table.exclude_requested.emit("unet")
    idle(opened, qtbot)
    panel = opened.findChild(ExclusionDialog).panel
    assert panel.state == "shown"
    previewed = panel._summary.text()
    panel.reason.edit.setText("another scanner")
    panel.exclude.click()
    idle(opened, qtbot)
    assert rows(opened)["unet"].excluded
    fuse(opened, qtbot)
    assert previewed.startswith("Would change ")
    assert f"of {before:,} voxels" in previewed
    assert opened.workspace.session.scene.report("organ").programs is None
    assert rows(opened)["unet"].excluded
