"""The clicks workspace: fuse, review disputed spots, decide, judge annotators."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPlainTextEdit

from raterscope.algorithms.clicks import FusionPlan
from raterscope.algorithms.clicks.result import Trace
from raterscope.app import importing
from raterscope.app.kinds.clicks import image_fusion
from raterscope.app.kinds.clicks.runs import fuse_inputs, gather, keep
from raterscope.app.study import Study
from raterscope.widgets.dialogs.review_dialogs import ExclusionDialog
from tests.app.driving import LONG, idle, press, states
from tests.reading import visible_words


def test_a_fused_study_is_explored_by_key_and_measured_and_nothing_is_decided(fused, qtbot):
    scene = fused.workspace.reviewing.session.scene
    assert scene.fusion is not None
    assert states(fused).count("detected") >= 5
    assert "OEM + DEM" in fused.status.text.text()
    assert len(fused.document.contents.runs) == 1

    clustering = replace(scene.fusion.clustering, trace=Trace.none())  # as of hierarchical clustering
    fused.workspace.plots.show_trace(clustering)
    assert "no iterations" in visible_words(fused.workspace.objective)

    fused.workspace.reviewing.select(0)
    usual = fused.workspace.canvas.layers.spots.radius(0)
    action = next(
        action
        for action in fused.menus.review_menu.actions()[-1].menu().actions()
        if action.text().startswith("50 %")
    )
    action.trigger()
    idle(fused, qtbot)
    # Half of a plane Gaussian lies within sqrt(2 ln 2) standard deviations, 95 % within sqrt(2 ln 20).
    assert fused.workspace.canvas.layers.spots.radius(0) / usual == pytest.approx(1.17741 / 2.44775, rel=1e-4)

    fused.workspace.reviewing.select(0)
    for key in (Qt.Key.Key_N, Qt.Key.Key_M):
        press(fused, qtbot, key)
        assert fused.workspace.canvas.mode != "look"
        press(fused, qtbot, Qt.Key.Key_Escape)
        assert fused.workspace.canvas.mode == "look"
    assert fused.document.contents.decisions == ()

    queue = fused.workspace.queue
    queue.filter.setFocus()
    qtbot.keyClicks(queue.filter, "ars")
    idle(fused, qtbot)
    assert queue.filter.text() == "ars"
    assert fused.document.contents.decisions == ()
    queue.filter.clear()
    qtbot.keyClick(queue.filter, Qt.Key.Key_Tab)
    assert fused.focusWidget() is queue.choice
    qtbot.keyClick(queue.choice, Qt.Key.Key_Tab)
    assert fused.focusWidget() is queue.order
    qtbot.keyClick(queue.order, Qt.Key.Key_Tab)
    assert fused.focusWidget() is queue.view
    fused.workspace.left_tabs.setFocus()
    calls = []
    for _ in range(6):
        qtbot.keyClick(fused.focusWidget(), Qt.Key.Key_F6)
        calls.append(fused.focusWidget())
    assert fused.workspace.table.view in calls
    assert fused.workspace.canvas in calls
    assert queue.filter in calls

    run = fused.document.contents.runs[0].id
    fused.workspace.fuse_panel.runs.compare_requested.emit((run,))
    model = fused.workspace.run_comparison.table.view.model()
    qtbot.waitUntil(lambda: model.rowCount() == 1, timeout=LONG)
    idle(fused, qtbot)
    text = {
        model.headerData(index, Qt.Orientation.Horizontal): model.index(0, index).data()
        for index in range(model.columnCount())
    }
    assert text["sensitivity"] == "1.00"
    assert int(text["detections"]) >= 10  # five parasites on each of two images


def test_accept_reject_undo_and_redo_by_key_are_on_disk_at_once(fused, qtbot, study_file):
    reviewing = fused.workspace.reviewing
    reviewing.select(0)
    press(fused, qtbot, Qt.Key.Key_R)
    assert reviewing.spots[0].state == "turned down"
    reviewing.select(1)
    press(fused, qtbot, Qt.Key.Key_A)
    assert reviewing.spots[1].state == "accepted"
    press(fused, qtbot, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert reviewing.spots[1].state == "detected"
    assert reviewing.spots[0].state == "turned down"
    press(fused, qtbot, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    assert reviewing.spots[1].state == "accepted"
    fused.document.close()
    with Study.open(study_file) as study:
        assert [decision.verb for decision in study.decisions()] == ["reject", "accept", "undo", "undo"]


def test_undo_and_redo_lead_back_to_the_spot_that_they_are_about(fused, qtbot):
    workspace, reviewing = fused.workspace, fused.workspace.reviewing
    reviewing.select(0)
    decided = (reviewing.spot.x, reviewing.spot.y)
    press(fused, qtbot, Qt.Key.Key_R)
    (rejected,) = (line.text for line in workspace.history.view.lines if line.text.startswith("reject"))
    assert rejected.endswith(f", {reviewing.session.scene.image.name}")
    for key, verb in ((Qt.Key.Key_Z, "undo"), (Qt.Key.Key_Y, "redo")):
        reviewing.select(1)
        press(fused, qtbot, key, Qt.KeyboardModifier.ControlModifier)
        assert (reviewing.spot.x, reviewing.spot.y) == decided
        assert workspace.history.view.lines[0].text == f"{verb} {rejected}"
    here = workspace.current_item()
    workspace.go_to(next(image.id for image in fused.document.contents.images if image.id != here))
    idle(fused, qtbot)
    press(fused, qtbot, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert workspace.current_item() == here
    assert (reviewing.spot.x, reviewing.spot.y) == decided


def test_a_cancelled_fusion_leaves_the_study_as_it_was_and_the_evidence_panel_names_the_next_step(
    opened, qtbot
):
    opened.workspace.canvas.setFocus()
    qtbot.keyClick(opened.workspace.canvas, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: opened.workspace.fusing.job is not None, timeout=LONG)
    opened.bar.cancel.click()
    qtbot.waitUntil(lambda: opened.workspace.fusing.job is None)
    idle(opened, qtbot)
    assert opened.document.contents.runs == ()
    assert "cancelled" in opened.status.message
    evidence = opened.workspace.evidence
    assert "Fuse (F5)" in evidence._nothing.text()
    press(opened, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(opened.document.contents.runs) == 1, timeout=LONG)
    idle(opened, qtbot)
    assert "Tab" in evidence._nothing.text()


def test_deciding_asks_for_a_new_fusion_which_holds_the_decision_and_returns_the_keys_to_the_canvas(
    fused, qtbot
):
    reviewing = fused.workspace.reviewing
    assert fused.bar.fuse.text() == "Fuse"
    index = next(i for i, spot in enumerate(reviewing.spots) if spot.state == "detected")
    x, y = reviewing.spots[index].x, reviewing.spots[index].y
    reviewing.select(index)
    press(fused, qtbot, Qt.Key.Key_R)
    assert fused.bar.fuse.text() == "Fuse again"
    press(fused, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(fused.document.contents.runs) == 2, timeout=LONG)
    idle(fused, qtbot)
    assert fused.bar.fuse.text() == "Fuse"
    spot = min(reviewing.spots, key=lambda item: (item.x - x) ** 2 + (item.y - y) ** 2)
    assert spot.state == "turned down"
    assert spot.posterior == 0.0
    assert not fused.workspace.reviewing.session.scene.fusion.detection.detected[spot.cluster]

    workspace = fused.workspace
    workspace.toggle_fuse_panel()
    assert workspace.fuse_panel.isAncestorOf(fused.focusWidget())
    qtbot.keyClick(fused.focusWidget(), Qt.Key.Key_Escape)
    assert not workspace.fuse_panel.isVisible()
    assert fused.focusWidget() is workspace.canvas
    workspace.toggle_fuse_panel()
    workspace.fuse_panel.run.setFocus()
    qtbot.keyClick(workspace.fuse_panel.run, Qt.Key.Key_Space)
    assert fused.focusWidget() is workspace.canvas
    qtbot.waitUntil(lambda: len(fused.document.contents.runs) == 3, timeout=LONG)
    idle(fused, qtbot)


def test_spots_are_added_and_moved_and_stay_selected(fused, qtbot):
    workspace = fused.workspace
    before = len(workspace.reviewing.spots)
    press(fused, qtbot, Qt.Key.Key_N)
    workspace.canvas.place_chosen.emit(100.0, 160.0)
    idle(fused, qtbot)
    assert states(fused).count("added") == 1
    assert "did not" not in visible_words(workspace.evidence)
    added = next(i for i, spot in enumerate(workspace.reviewing.spots) if spot.state == "added")
    workspace.canvas.spot_moved.emit(added, 104.0, 158.0)
    idle(fused, qtbot)
    assert len(workspace.reviewing.spots) == before + 1
    moved = next(spot for spot in workspace.reviewing.spots if spot.state == "added")
    assert (moved.x, moved.y) == (104.0, 158.0)
    made = [(decision.verb, decision.run) for decision in fused.document.contents.decisions]
    assert made == [("add", 1), ("move", 1)]

    reviewing = fused.workspace.reviewing
    index = next(i for i, spot in enumerate(reviewing.spots) if spot.state == "detected")
    spot = reviewing.spots[index]
    reviewing.select(index)
    reviewing.move(index, spot.x + 35, spot.y + 35)
    idle(fused, qtbot)
    assert reviewing.spot is not None
    assert (reviewing.spot.x, reviewing.spot.y) == (spot.x + 35, spot.y + 35)


def test_tab_walks_the_disputed_spots_and_an_excluded_annotator_is_left_out_of_the_next_fusion(fused, qtbot):
    workspace = fused.workspace
    visited = []
    for _ in range(12):
        press(fused, qtbot, Qt.Key.Key_Tab)
        spot = workspace.reviewing.spot
        if spot is None or spot.state != "disputed":
            break
        visited.append((workspace.reviewing.session.scene.image.name, spot.number))
        press(fused, qtbot, Qt.Key.Key_R)
    assert workspace.review_queue.disputed == 0
    assert len({image for image, _ in visited}) == 2
    assert len(visited) == len({*visited})

    number = fused.document.contents.annotators.index("careless")
    workspace.table.exclude_requested.emit(number)
    dialog = fused.findChild(ExclusionDialog)
    idle(fused, qtbot)
    assert dialog.panel.state == "shown"
    dialog.panel.reason.edit.setText("clicks corners")
    qtbot.mouseClick(dialog.panel.exclude, Qt.MouseButton.LeftButton)
    idle(fused, qtbot)
    assert fused.document.contents.review.excluded == {"careless": "clicks corners"}
    press(fused, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(fused.document.contents.runs) == 2, timeout=LONG)
    idle(fused, qtbot)
    assert "careless" not in workspace.reviewing.session.scene.clicks.annotators
    excluded = [row for row in workspace.table.model.rows if row.excluded]
    assert [(row.name, row.why) for row in excluded] == [("careless", "clicks corners")]
    press(fused, qtbot, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert fused.document.contents.review.excluded == {}


def test_a_fusion_that_fails_inside_is_one_sentence_with_details_on_demand(opened, qtbot, monkeypatch):
    def broken(*_, **__):
        raise KeyError("inner trouble")

    monkeypatch.setattr(image_fusion, "fuse", broken)
    press(opened, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(opened.notice.isVisible, timeout=LONG)
    assert "could not be fused" in opened.notice.text
    assert "\n" not in opened.notice.text
    lines = opened.workspace.job_list.findChildren(QPlainTextEdit)
    assert any("inner trouble" in line.toPlainText() for line in lines)
    assert opened.document.contents.runs == ()


def test_a_fused_study_opens_on_the_image_that_is_most_disputed(window, qtbot, tmp_path, crowd_files):
    first, second, table, _ = crowd_files
    header, *rows = table.read_text().splitlines()
    doubtful = ("one.png,18", "one.png,19")
    clear = [row for row in rows if not any(begin in row for begin in doubtful)]
    table.write_text("\n".join([header, *clear]) + "\n")
    path = tmp_path / "fused.rscope"
    with Study.create(path) as study:
        importing.store(importing.read_files([first, second, table]), study)
        keep(fuse_inputs(gather([entry.id for entry in study.images()], study), FusionPlan()), study)
    window.open_paths([path])
    qtbot.waitUntil(
        lambda: window.workspace is not None and window.workspace.reviewing.session.shown, timeout=LONG
    )
    idle(window, qtbot)
    doubts = {item.title: item.score for item in window.workspace.queue.shown()}
    assert doubts["two.png"] > doubts["one.png"]
    assert window.workspace.reviewing.session.scene.image.name == "two.png"
