"""Two runs, raters or maps of a structure, left and right of a divider on the slices."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.cli import main
from raterscope.app.study import Study
from raterscope.app.study.masks import PlacedMask, add_case, add_masks
from raterscope.app.workspaces.masks.screen import MAPS
from raterscope.widgets.figure_menu import paint_to_image
from tests.app.driving import idle, open_study, press
from tests.app.workspaces.masks.driving import go_to, key
from tests.app.workspaces.masks.made import SHAPE, SPACING, ball

SHIFT, CONTROL = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def two_runs(window, qtbot, masks_study, masks_original_fused):
    """A window with two runs; the latest, on screen, is a vote."""
    shutil.copy(masks_original_fused, masks_study)
    assert main(["run", str(masks_study), "majority"]) == 0
    opened = open_study(window, qtbot, masks_study)
    go_to(opened, qtbot, "first")
    return opened


def compare(window, qtbot):
    key(window, qtbot, "V", SHIFT)


def titles(window):
    return [chip.text() for chip in window.workspace.volume.divider.chips]


def choose(window, qtbot, side, words):
    chip = window.workspace.volume.divider.chips[side]
    next(action for action in chip.menu.actions() if action.text() == words).trigger()
    idle(window, qtbot)


def outlined(window):
    """The number of voxels in the outlines of each side."""
    return [
        sum(int((outline.values > 0.5).sum()) for outline in layers.outlines)
        for layers in window.workspace.volume._scene.sides
    ]


def test_the_run_on_screen_is_compared_with_the_latest_other_across_a_divider(two_runs, qtbot):
    volume, workspace = two_runs.workspace.volume, two_runs.workspace
    before = workspace.session.scene.fusion("nodule")
    compare(two_runs, qtbot)
    assert titles(two_runs)[0].startswith("run 2: majority")
    assert titles(two_runs)[1].startswith("run 1:")
    assert outlined(two_runs)[0] == before.mask.sum()
    assert outlined(two_runs)[0] != outlined(two_runs)[1]
    compare(two_runs, qtbot)
    assert volume.divider.sides is None
    assert volume._scene.sides is None

    compare(two_runs, qtbot)
    crosshair, large = volume.crosshair, volume.view("axial")
    viewport = large.viewport
    at = QPoint(round(volume.divider.across(large.width())), large.height() // 3)
    qtbot.mousePress(large, Qt.MouseButton.LeftButton, pos=at)
    qtbot.mouseMove(large, QPoint(60, at.y()))
    qtbot.mouseRelease(large, Qt.MouseButton.LeftButton, pos=QPoint(60, at.y()))
    assert volume.divider.across(large.width()) == pytest.approx(60, abs=1)
    assert volume._scene.divider == volume.divider.share
    assert (volume.crosshair, large.viewport) == (crosshair, viewport)
    press(two_runs, qtbot, Qt.Key.Key_Right, CONTROL, on=large)
    assert volume.divider.share == pytest.approx(60 / large.width() + 0.05, abs=0.01)
    assert volume.crosshair == crosshair

    view, scene = large, volume._scene
    picture = paint_to_image(view, 1.0)
    scene.sides = tuple(replace(layers, title="") for layers in scene.sides)
    changed = np.argwhere(pixels_of(paint_to_image(view, 1.0)) != pixels_of(picture))
    across = scene.divider * view.width()
    assert changed[:, 1].min() < across < changed[:, 1].max()


def test_each_side_shows_decisions_raters_and_maps(two_runs, qtbot):
    compare(two_runs, qtbot)
    before = outlined(two_runs)
    workspace = two_runs.workspace
    workspace.reviewing.go_to(0)
    workspace.reviewing.take("dan")
    idle(two_runs, qtbot)
    assert all(now > then for now, then in zip(outlined(two_runs), before, strict=True))
    two_runs.document.undo()
    idle(two_runs, qtbot)
    assert outlined(two_runs) == before

    choose(two_runs, qtbot, 0, "ann")
    choose(two_runs, qtbot, 1, "dan")
    masks = workspace.session.scene.masks["nodule"]
    assert outlined(two_runs) == [int((masks[name].values > 0.5).sum()) for name in ("ann", "dan")]
    left, right = workspace.volume._scene.sides
    assert left.outlines[0].colour != right.outlines[0].colour
    choose(two_runs, qtbot, 1, f"map: {MAPS['disagreement']}")
    left, right = workspace.volume._scene.sides
    assert left.heat is None
    assert right.heat.label == "disagreement of the raters"
    assert right.outlines == ()

    go_to(two_runs, qtbot, "second")
    compare(two_runs, qtbot)
    assert titles(two_runs)[0].startswith("run 2: majority")
    key(two_runs, qtbot, "W")
    assert two_runs.status.message == "There is no window to set: no grey values are loaded."


def test_escape_blind_mode_and_another_case_end_it(two_runs, qtbot):
    volume = two_runs.workspace.volume
    compare(two_runs, qtbot)
    key(two_runs, qtbot, Qt.Key.Key_Escape)
    assert volume.divider.sides is None
    compare(two_runs, qtbot)
    key(two_runs, qtbot, "H")
    assert volume.divider.sides is None
    compare(two_runs, qtbot)
    assert volume.divider.sides is None
    assert "blind" in two_runs.status.message
    key(two_runs, qtbot, "H")
    compare(two_runs, qtbot)
    go_to(two_runs, qtbot, "second")
    assert volume.divider.sides is None


def test_without_a_run_two_raters_are_compared(opened_masks, qtbot):
    go_to(opened_masks, qtbot, "first")
    compare(opened_masks, qtbot)
    assert titles(opened_masks) == ["ann", "ben"]
    choose(opened_masks, qtbot, 1, f"map: {MAPS['probability']}")
    assert "Press Fuse (F5)" in opened_masks.status.message


def test_empty_masks_are_not_compared(window, qtbot, masks_study):
    with Study.open(masks_study) as study:
        third = add_case(study, "third", Grid.plain(SHAPE, SPACING, calibrated=True))
        empty = np.zeros(SHAPE, dtype=bool)
        masks = {"ann": ball(8.0), "ben": empty, "cat": empty}
        add_masks(
            study,
            [PlacedMask(third.id, name, "nodule", (0, 0, 0), mask) for name, mask in masks.items()],
            "m",
        )
    opened = open_study(window, qtbot, masks_study)
    go_to(opened, qtbot, "third")
    compare(opened, qtbot)
    assert opened.workspace.volume.divider.sides is None
    assert "needs two masks" in opened.status.message


def pixels_of(image):
    return np.array([[image.pixel(x, y) for x in range(image.width())] for y in range(image.height())])
