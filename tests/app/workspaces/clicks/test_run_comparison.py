"""Runs measured against ground truth in the background: decisions do not wait for it."""

import threading

import pytest
from PySide6.QtCore import Qt

from raterscope.app.kinds.clicks import evaluation
from raterscope.app.study import Study
from raterscope.app.workspaces.clicks import run_comparison
from tests.app.driving import LONG, idle, press


@pytest.fixture
def compared(fused, qtbot, monkeypatch):
    """Return the window with two runs that are being compared, and what lets that go on."""
    press(fused, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(fused.document.contents.runs) == 2, timeout=LONG)
    idle(fused, qtbot)
    started, release, evaluate = threading.Event(), threading.Event(), evaluation.evaluate

    def slowly(*arguments):
        started.set()
        assert release.wait(300)
        return evaluate(*arguments)

    monkeypatch.setattr(evaluation, "evaluate", slowly)
    fused.workspace.run_comparison.compare([1, 2])
    qtbot.waitUntil(started.is_set, timeout=LONG)
    yield fused, release.set
    release.set()


def rows(window):
    return window.workspace.run_comparison.table.view.model().rows


def test_a_decision_does_not_wait_until_runs_are_compared(compared, qtbot):
    window, release = compared
    window.workspace.reviewing.select(0)
    with qtbot.waitSignal(window.document.decided, timeout=LONG):
        qtbot.keyClick(window.workspace.canvas, Qt.Key.Key_R)
    assert len(rows(window)) == 0
    release()
    idle(window, qtbot)
    assert [row.key for row in rows(window)] == [1, 2]


def test_comparing_ends_when_the_study_is_left(compared, qtbot):
    window, release = compared
    (job,) = (job for job in window.jobs._jobs.values() if job.title == "Comparing runs")
    window.files.close_study()
    assert job.state == "cancelling"
    release()
    idle(window, qtbot)
    assert job.state == "cancelled"
    assert len(rows(window)) == 0


def test_runs_without_ground_truth_are_shown_side_by_side(fused, qtbot, monkeypatch):
    for number in (2, 3):
        press(fused, qtbot, Qt.Key.Key_F5)
        qtbot.waitUntil(lambda number=number: len(fused.document.contents.runs) == number, timeout=LONG)
        idle(fused, qtbot)
    monkeypatch.setattr(run_comparison, "measure_runs", lambda *_: (0, 0, ()))
    fused.workspace.show_comparison([1, 3])
    idle(fused, qtbot)
    assert fused.workspace.run_divider._other[0].id == 1
    assert "no ground truth" in fused.status.message


def test_the_run_on_screen_is_measured_until_runs_are_ticked(fused, qtbot):
    def compared():
        return [row.key for row in rows(fused)]

    idle(fused, qtbot)
    assert compared() == []  # nobody looks
    fused.workspace.right_tabs.setCurrentWidget(fused.workspace.run_comparison)
    qtbot.waitUntil(lambda: compared() == [1], timeout=LONG)
    fused.workspace.canvas.setFocus()
    press(fused, qtbot, Qt.Key.Key_H)
    assert compared() == []
    press(fused, qtbot, Qt.Key.Key_H)
    qtbot.waitUntil(lambda: compared() == [1], timeout=LONG)
    press(fused, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: compared() == [2], timeout=LONG)
    fused.workspace.show_comparison([1, 2])
    qtbot.waitUntil(lambda: compared() == [1, 2], timeout=LONG)
    fused.resize(1280, 720)
    idle(fused, qtbot)
    view = fused.workspace.run_comparison.table.view
    assert view.rowViewportPosition(1) + view.rowHeight(1) <= view.viewport().height()
    press(fused, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(fused.document.contents.runs) == 3, timeout=LONG)
    idle(fused, qtbot)
    assert compared() == [1, 2]


def test_the_radius_is_the_studys(fused, qtbot):
    workspace = fused.workspace
    workspace.run_comparison.compare([1])
    idle(fused, qtbot)
    assert workspace.run_comparison.radius.value() == 10
    assert workspace.run_comparison.table.header.text()[1].endswith("within 10 px")
    workspace.run_comparison.radius.setValue(0.1)
    idle(fused, qtbot)
    assert workspace.run_comparison.table.header.text()[1].endswith("within 0.1 px")
    (row,) = rows(fused)
    assert row.figures[0][0] < 0.5  # sensitivity
    path = fused.document.contents.path
    fused.files.close_study()
    idle(fused, qtbot)
    with Study.open(path) as study:
        assert study.settings.matching_radius() == 0.1


def test_the_queue_warns_that_the_truth_contradicts_posteriors(fused, qtbot, monkeypatch):
    workspace = fused.workspace
    idle(fused, qtbot)
    assert "That is too few to judge." in workspace.trust.text
    assert not workspace.queue.doubt.isVisible()
    for module in ("assessment", "kinds.clicks.evaluation"):
        monkeypatch.setattr(f"raterscope.app.{module}.FEW", 5)
    workspace.run_comparison.radius.setValue(0.1)  # so that no detection is right
    idle(fused, qtbot)
    assert "Known truths contradict the probabilities" in workspace.queue.doubt.text()
    assert "too high on average" in workspace.queue.doubt.text()
    monkeypatch.undo()
    workspace.run_comparison.radius.setValue(10)
    idle(fused, qtbot)
    assert not workspace.queue.doubt.isVisible()
