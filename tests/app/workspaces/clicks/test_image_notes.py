"""Tests of notes above the image, flags and control marks."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu

from raterscope.algorithms.clicks.robustness import absence_notice, decision_notice, grouping_notice
from raterscope.app.study import Study
from raterscope.app.workspaces.clicks.image_notes import DECIDED, GROUPED, ISOLATED, NOTE
from raterscope.app.workspaces.clicks.spots import explain_weights, spots_of
from tests.app.driving import LONG, idle, open_study, press


def few_votes(fusion):
    """Let two annotators mark each cluster, as they mark artefacts; every cluster is detected."""
    marked = np.zeros_like(fusion.marked)
    marked[:2] = True
    detection = replace(fusion.detection, detected=np.ones(marked.shape[1], dtype=bool))
    return replace(fusion, marked=marked, detection=detection)


def test_doubtful_detections_groupings_and_decisions_are_noted_as_long_as_such_a_run_is_shown(fused, qtbot):
    workspace = fused.workspace
    assert NOTE not in workspace.notes.notes()
    before = workspace.review_queue.results
    doubtful = {image: replace(result, fusion=few_votes(result.fusion)) for image, result in before.items()}
    expected = absence_notice([result.fusion for result in doubtful.values()])
    assert expected is not None
    workspace.review_queue.take(doubtful)
    workspace.review_queue.all_read.emit()
    idle(fused, qtbot)
    assert workspace.notes.notes()[NOTE] == expected
    assert "expected share of structures" in expected
    workspace.review_queue.take(before)
    workspace.review_queue.all_read.emit()
    idle(fused, qtbot)
    assert NOTE not in workspace.notes.notes()

    assert GROUPED not in workspace.notes.notes()
    otherwise = {
        image: replace(result, fusion=replace(result.fusion, halves=~result.fusion.detection.detected[None]))
        for image, result in workspace.review_queue.results.items()
    }
    workspace.review_queue.take(otherwise)
    workspace.review_queue.all_read.emit()
    idle(fused, qtbot)
    assert workspace.notes.notes()[GROUPED] == grouping_notice(
        [result.fusion for result in otherwise.values()]
    )
    fusion = next(iter(otherwise.values())).fusion
    spots = spots_of(fusion, len(fusion.marked), [])
    assert "Half of the images, fused without the others" in explain_weights(spots[0], fusion)

    assert DECIDED not in workspace.notes.notes()
    rejected = {}
    for image, clicks in workspace.review_queue.results.items():
        fusion = clicks.fusion
        detection = replace(fusion.detection, undecided=np.full(len(fusion.verdict), 0.95))
        fusion = replace(fusion, verdict=np.zeros_like(fusion.verdict), detection=detection)
        rejected[image] = replace(clicks, fusion=fusion)
    workspace.review_queue.take(rejected)
    workspace.review_queue.all_read.emit()
    idle(fused, qtbot)
    notice = decision_notice([result.fusion for result in rejected.values()])
    assert notice is not None
    assert workspace.notes.notes()[DECIDED] == notice


SHIFT = Qt.KeyboardModifier.ShiftModifier


def details(window):
    return {item.title: item.detail for item in window.workspace.queue.shown()}


def verbs(study_file):
    with Study.open(study_file) as study:
        return [decision.verb for decision in study.decisions()]


def test_a_negative_control_is_marked_used_by_the_next_fusion_and_undone(fused, qtbot, study_file):
    workspace = fused.workspace
    name = workspace.reviewing.session.scene.image.name
    messages = []
    workspace.message.connect(messages.append)
    press(fused, qtbot, Qt.Key.Key_C, SHIFT)
    assert details(fused)[name].startswith("negative control: ")
    assert messages[-1] == f"{name} is a negative control from the next fusion on (F5)."
    assert workspace.history.view.lines[0].text == f"mark as negative control, {name}"
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
    workspace.navigation.go_to(
        next(image.id for image in fused.document.contents.images if image.name == name)
    )
    idle(fused, qtbot)
    messages = []
    workspace.message.connect(messages.append)
    press(fused, qtbot, Qt.Key.Key_C, SHIFT)
    assert messages[-1] == f"You accepted a spot on {name}: it contains structures."
    assert "control" not in details(fused)[name]
    fused.document.close()
    assert verbs(study_file) == ["accept"]


@pytest.mark.qt_log_ignore("This plugin does not support")  # of menus, of itself
def test_the_menu_of_the_list_marks_an_image(fused, qtbot):
    workspace, view = fused.workspace, fused.workspace.queue.view
    other = view.lines[1]
    view.customContextMenuRequested.emit(view.visualRect(view.model().index(1, 0)).center())
    (menu,) = (menu for menu in workspace.findChildren(QMenu) if menu.isVisible())
    actions = {action.text(): action for action in menu.actions()}
    assert actions["No control"].isChecked()
    actions["Positive control: contains structures"].trigger()
    menu.close()
    idle(fused, qtbot)
    assert details(fused)[other.title].startswith("positive control: ")


def test_runs_of_an_algorithm_that_is_not_installed_are_shown(window, qtbot, study_file, study_fused):
    shutil.copy(study_fused, study_file)
    with Study.open(study_file) as study, study.change() as connection:
        connection.execute("UPDATE runs SET settings = replace(settings, '\"oem\"', '\"elsewhere\"')")
    workspace = open_study(window, qtbot, study_file).workspace
    assert workspace.session.scene.run.settings["algorithm"] == "elsewhere"
    assert workspace.session.scene.fusion.detection.detected.any()
    assert ISOLATED not in workspace.notes.notes()
