"""Comments and bookmarks are set by key, stored, undone, listed, exported, and read from a table again."""

import csv

import pytest
from PySide6.QtCore import Qt

from raterscope.app.cli import main
from raterscope.app.decision_tables import record_decisions
from raterscope.app.review import fold
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


def bookmark(window, qtbot):
    press(window, qtbot, Qt.Key.Key_D, CTRL)
    idle(window, qtbot)


def step(window, qtbot, key=Qt.Key.Key_PageDown):
    press(window, qtbot, key, Qt.KeyboardModifier.AltModifier)
    idle(window, qtbot)


def test_bookmarked_spots_are_marked_visited_and_exported(fused, qtbot, tmp_path, study_as_it_came):
    workspace = fused.workspace
    numbers = [spot.number for spot in workspace.reviewing.spots]
    for index in (2, 0):
        workspace.reviewing.select(index)
        plain = workspace.canvas.grab().toImage()
        bookmark(fused, qtbot)
        assert workspace.canvas.grab().toImage() != plain
        assert workspace.comments.mark.isVisible()
    workspace.reviewing.select(1)
    assert not workspace.comments.mark.isVisible()
    assert workspace.canvas.layers.spots.spots.bookmarked == {numbers[0], numbers[2]}
    assert not fused.document.contents.stale
    visited = []
    for key in (Qt.Key.Key_PageDown, Qt.Key.Key_PageDown, Qt.Key.Key_PageUp, Qt.Key.Key_PageUp):
        step(fused, qtbot, key)
        visited.append(workspace.reviewing.current)
    assert visited == [2, 0, 2, 0]
    queue = workspace.queue
    queue.choice.setCurrentText("bookmarked")
    assert [line.counts["bookmarks"] for line in queue.view.lines] == [2]
    bookmark(fused, qtbot)
    assert not workspace.comments.mark.isVisible()
    fused.document.undo()
    idle(fused, qtbot)
    assert workspace.canvas.layers.spots.spots.bookmarked == {numbers[0], numbers[2]}

    path = fused.document.contents.path
    fused.document.close()
    idle(fused, qtbot)
    table, report = tmp_path / "decisions.csv", tmp_path / "report.html"
    assert main(["export", str(path), "--what", "decisions", "-o", str(table)]) == 0
    assert main(["report", str(path), "-o", str(report)]) == 0
    assert f"bookmark spot {numbers[2]}" in report.read_text(encoding="utf-8")
    other = tmp_path / "other.rscope"
    other.write_bytes(study_as_it_came.read_bytes())
    with Study.open(other) as study:
        record_decisions(study, table)
        image = study.images()[0].id
        bookmarks = fold(study.decisions()).bookmarks("clicks", image)
    assert [decision.subject.number for decision in bookmarks] == [numbers[2], numbers[0]]


def test_a_bookmark_and_a_comment_on_a_spot_are_independent(fused, qtbot):
    workspace = fused.workspace
    workspace.reviewing.select(0)
    bookmark(fused, qtbot)
    write_comment(fused, qtbot, "artefact")
    assert workspace.comments.mark.isVisible()
    assert not write_comment(fused, qtbot, "").isVisible()
    assert workspace.comments.mark.isVisible()
    verbs = [decision.verb for decision in fused.document.contents.decisions]
    review = fused.document.contents.review
    assert verbs == ["bookmark", "comment", "uncomment"]
    assert [review.status(number) for number in (1, 2, 3)] == ["in effect", "superseded", "in effect"]
