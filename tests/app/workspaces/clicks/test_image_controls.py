"""Control images are marked by key and from the menu of the image list, and undone like any decision."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu

from raterscope.app.study import Study
from tests.app.driving import LONG, idle, press

SHIFT = Qt.KeyboardModifier.ShiftModifier


def details(window):
    return {item.title: item.detail for item in window.workspace.queue.shown()}


def verbs(study_file):
    with Study.open(study_file) as study:
        return [one.verb for one in study.decisions()]


def test_a_negative_control_is_marked_used_by_the_next_fusion_and_undone(fused, qtbot, study_file):
    workspace = fused.workspace
    name = workspace.reviewing.session.scene.image.name
    said = []
    workspace.message.connect(said.append)
    press(fused, qtbot, Qt.Key.Key_C, SHIFT)
    assert details(fused)[name].startswith("negative control: ")
    assert said[-1] == f"{name} is a negative control from the next fusion on (F5)."
    assert workspace.history.view.lines[0].words == f"mark as negative control, {name}"
    assert fused.bar.fuse.text() != "Fuse"  # what is shown does not rest on it yet
    press(fused, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(fused.document.contents.runs) == 2, timeout=LONG)
    idle(fused, qtbot)
    assert details(fused)[name] == "negative control: 0 detections"
    press(fused, qtbot, Qt.Key.Key_C)
    assert details(fused)[name].startswith("positive control: ")
    press(fused, qtbot, Qt.Key.Key_C)
    assert "control" not in details(fused)[name]
    for _ in range(3):
        press(fused, qtbot, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert "control" not in details(fused)[name]
    fused.document.close()
    assert verbs(study_file) == ["negative", "positive", "uncontrol", "undo", "undo", "undo"]


def test_an_image_with_an_accepted_spot_is_no_negative_control(fused, qtbot, study_file):
    workspace = fused.workspace
    name = workspace.reviewing.session.scene.image.name
    workspace.reviewing.select(0)
    press(fused, qtbot, Qt.Key.Key_A)
    workspace.navigation.go_to(next(one.id for one in fused.document.contents.images if one.name == name))
    idle(fused, qtbot)
    said = []
    workspace.message.connect(said.append)
    press(fused, qtbot, Qt.Key.Key_C, SHIFT)
    assert said[-1] == f"You accepted a spot on {name}: it holds structures."
    assert "control" not in details(fused)[name]
    fused.document.close()
    assert verbs(study_file) == ["accept"]


@pytest.mark.qt_log_ignore("This plugin does not support")  # of menus, of itself
def test_the_menu_of_the_list_marks_an_image(fused, qtbot):
    workspace, view = fused.workspace, fused.workspace.queue.view
    other = view.lines[1]
    view.customContextMenuRequested.emit(view.visualRect(view.model().index(1, 0)).center())
    (menu,) = (one for one in workspace.findChildren(QMenu) if one.isVisible())
    actions = {action.text(): action for action in menu.actions()}
    assert actions["No control"].isChecked()
    actions["Positive control: holds structures"].trigger()
    menu.close()
    idle(fused, qtbot)
    assert details(fused)[other.title].startswith("positive control: ")
