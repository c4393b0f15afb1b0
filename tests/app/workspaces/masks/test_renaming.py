"""A structure is renamed and merged by key in the window, and undo brings the old names back."""

import pytest
from PySide6.QtCore import Qt

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.study import Study
from raterscope.app.study.masks import PlacedMask, add_case, add_masks
from raterscope.widgets.dialogs.expert_dialogs import NameDialog
from raterscope.widgets.panels.region_panel import NOT_FUSED
from tests.app.driving import idle, open_study
from tests.app.workspaces.masks.driving import key
from tests.app.workspaces.masks.made import SHAPE, SPACING, ball


@pytest.fixture
def opened(window, qtbot, tmp_path):
    with Study.create(tmp_path / "names.rscope") as study:
        case = add_case(study, "case", Grid.plain(SHAPE, SPACING, calibrated=True))
        masks = [("ann", "gtv"), ("ben", "gtv"), ("cat", "GTV"), ("ann", "heart")]
        add_masks(study, [PlacedMask(case.id, *mask, (0, 0, 0), ball(7.0)) for mask in masks], "masks")
    return open_study(window, qtbot, tmp_path / "names.rscope")


def rename(window, qtbot, new):
    key(window, qtbot, Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier)
    idle(window, qtbot)
    (dialog,) = window.findChildren(NameDialog)
    dialog.editor.setEditText(new)
    words = dialog.accepting.text()
    dialog.accept()
    idle(window, qtbot)
    qtbot.waitUntil(lambda: not window.findChildren(NameDialog))
    return words


def names(window):
    box = window.workspace.maps.structure
    return [box.itemText(row) for row in range(box.count())]


def test_merging_and_undo_by_key(opened, qtbot):
    workspace = opened.workspace
    workspace.maps.structure.setCurrentText("gtv")
    assert rename(opened, qtbot, "GTV") == "Merge"
    assert names(opened) == ["GTV", "heart"]
    assert workspace.maps.structure.currentText() == "GTV"
    assert {row.name for row in workspace.table.model.rows} == {"ann", "ben", "cat"}
    opened.document.undo()
    idle(opened, qtbot)
    assert names(opened) == ["GTV", "gtv", "heart"]
    assert workspace.maps.structure.currentText() == "gtv"


def test_a_refused_name_is_explained(opened, qtbot):
    with qtbot.waitSignal(opened.workspace.refused) as refused:
        opened.workspace.maps.structure.setCurrentText("gtv")
        rename(opened, qtbot, "heart")
    assert "ann has a mask of gtv and one of heart on case" in refused.args[0]
    assert names(opened) == ["GTV", "gtv", "heart"]


def test_a_merged_structure_is_shown_as_not_fused(opened, qtbot):
    workspace = opened.workspace
    key(opened, qtbot, Qt.Key.Key_F5)
    idle(opened, qtbot)
    workspace.maps.structure.setCurrentText("gtv")
    rename(opened, qtbot, "GTV")
    assert workspace.region_panel._nothing.text() == NOT_FUSED
    assert "not fused yet" in workspace.queue._progress.accessibleName()
