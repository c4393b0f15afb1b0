"""A comment is written below the evidence by key, stored, undone, exported, and read from a table again."""

import csv

import pytest
from PySide6.QtCore import Qt

from raterscope.app.cli import main
from raterscope.app.decision_tables import record_decisions
from raterscope.app.study import Study
from tests.app.driving import idle, press

CTRL = Qt.KeyboardModifier.ControlModifier


def write_comment(window, qtbot, text, key=Qt.Key.Key_Return):
    press(window, qtbot, Qt.Key.Key_M, CTRL)
    field = window.workspace.comments.field
    assert field.isVisible()
    field.clear()
    qtbot.keyClicks(field, text)
    qtbot.keyClick(field, key)
    idle(window, qtbot)
    return field


def test_spots_and_image_have_comments(fused, qtbot, tmp_path):
    workspace = fused.workspace
    workspace.reviewing.select(0)
    field = write_comment(fused, qtbot, "a platelet, says Kim")
    assert workspace.canvas.hasFocus()
    workspace.reviewing.select(1)
    assert not field.isVisible()
    assert write_comment(fused, qtbot, "never stored", Qt.Key.Key_Escape).text() == ""
    workspace.reviewing.select(None)
    write_comment(fused, qtbot, "out of focus")
    workspace.reviewing.select(0)
    assert field.text() == "a platelet, says Kim"
    queue = workspace.queue
    queue.choice.setCurrentText("with comment")
    assert [line.key for line in queue.shown()] == [workspace.core.item]
    assert queue.view.lines[0].counts["comments"] == 2
    fused.document.undo()
    idle(fused, qtbot)
    workspace.reviewing.select(None)
    assert field.text() == ""
    fused.document.redo()
    idle(fused, qtbot)
    assert field.text() == "out of focus"

    path = fused.document.contents.path
    fused.document.close()
    idle(fused, qtbot)
    table = tmp_path / "decisions.csv"
    assert main(["export", str(path), "--what", "decisions", "-o", str(table)]) == 0
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["verb"], row["reason"]) for row in rows if row["verb"] == "comment"] == [
        ("comment", "a platelet, says Kim"), ("comment", "out of focus"),
    ]  # fmt: skip
    assert main(["report", str(path), "-o", str(tmp_path / "report.html")]) == 0
    assert "a platelet, says Kim" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_an_empty_line_removes_the_comment(fused, qtbot):
    workspace = fused.workspace
    workspace.reviewing.select(0)
    write_comment(fused, qtbot, "artefact")
    field = write_comment(fused, qtbot, "")
    assert not field.isVisible()
    assert [decision.verb for decision in fused.document.contents.decisions] == ["comment", "uncomment"]


def test_comments_are_read_from_a_table_of_decisions(fused, qtbot, tmp_path, study_as_it_came):
    fused.workspace.reviewing.select(0)
    write_comment(fused, qtbot, "=1+1")
    path = fused.document.contents.path
    fused.document.close()
    idle(fused, qtbot)
    table = tmp_path / "decisions.csv"
    assert main(["export", str(path), "--what", "decisions", "-o", str(table)]) == 0
    other = tmp_path / "other.rscope"
    other.write_bytes(study_as_it_came.read_bytes())
    with Study.open(other) as study:
        assert record_decisions(study, table) == (1, 0)
        (decision,) = study.decisions()
    assert decision.reason == "=1+1"
    with table.open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert decision.subject.x == pytest.approx(float(row["x"]))
