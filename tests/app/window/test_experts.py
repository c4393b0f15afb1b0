"""Copies for a second reader and merging with another study, in the window."""

from dataclasses import replace
from pathlib import Path

from PySide6.QtWidgets import QFileDialog

from raterscope.app.study import Study
from raterscope.widgets.dialogs.expert_dialogs import MergePreviewDialog, SecondReaderDialog
from tests.app.driving import LONG, idle, open_study
from tests.app.review.decisions import on
from tests.app.study.made import a_table


def choose(monkeypatch, path):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))


def trigger(window, words):
    (command,) = [command for command in window.window_actions.commands() if command.text == words]
    command.do()


def dialog_of(window, qtbot, kind):
    qtbot.waitUntil(lambda: bool(window.findChildren(kind)), timeout=LONG)
    return window.findChildren(kind)[-1]


def decide(path, who, *decisions):
    with Study.open(path) as study:
        for decision in decisions:
            study.record(replace(decision, who=who))


def test_a_blind_copy_is_made_and_merged_into_a_study_that_is_opened(
    study_file, window, qtbot, tmp_path, monkeypatch
):
    decide(study_file, "anna", on("accept", 40, 40), on("reject", 120, 50))
    open_study(window, qtbot, study_file)
    copy = tmp_path / "ben.rscope"
    choose(monkeypatch, copy)
    trigger(window, "Copy for a second reader…")
    dialog = dialog_of(window, qtbot, SecondReaderDialog)
    assert dialog.blind
    dialog.accept()
    qtbot.waitUntil(copy.exists, timeout=LONG)
    idle(window, qtbot)
    assert "a blind copy without 2 decisions" in window.status.message
    decide(copy, "ben", on("accept", 40, 40))
    trigger(window, "Merge with another study…")
    preview = dialog_of(window, qtbot, MergePreviewDialog)
    assert "Still to be decided are 1 in ben.rscope" in preview.warning.text()
    assert preview.table.model().rowCount() == 0
    preview.reject()
    idle(window, qtbot)
    decide(copy, "ben", on("accept", 120, 50))
    trigger(window, "Merge with another study…")
    preview = dialog_of(window, qtbot, MergePreviewDialog)
    assert preview.warning.isHidden()
    lines = preview.summary.text()
    assert "2 decisions by anna" in lines
    assert "ben.rscope: 2 decisions by ben" in lines
    assert "Clicks: 2 decided by both, 50 % alike" in lines
    cells = [preview.table.model().index(0, column).data() for column in range(5)]
    assert (cells[0], cells[3], cells[4]) == ("clicks", "anna: reject", "ben: accept")
    merged = tmp_path / "merged.rscope"
    choose(monkeypatch, merged)
    preview.accept()
    qtbot.waitUntil(
        lambda: window.document.contents is not None and window.document.contents.path == merged,
        timeout=LONG,
    )
    idle(window, qtbot)
    assert {decision.who for decision in window.document.contents.decisions} >= {"anna", "ben"}
    assert Path(study_file).exists()


def test_another_study_is_refused_in_a_sentence(study_file, window, qtbot, tmp_path, monkeypatch):
    other = tmp_path / "other.rscope"
    with Study.create(other) as study:
        study.add_clicks(a_table(1, ("elsewhere.png",), clicks=20))
    open_study(window, qtbot, study_file)
    choose(monkeypatch, other)
    trigger(window, "Merge with another study…")
    idle(window, qtbot)
    assert not window.findChildren(MergePreviewDialog)
    assert f"other.rscope: is not a copy of {study_file.name}, which lacks its image" in window.notice.text
