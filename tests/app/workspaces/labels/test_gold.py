"""Gold tasks: marked in the window, undone, measured in the table of annotators, written and read again."""

import csv

from PySide6.QtCore import Qt

from raterscope.algorithms.labels import OPEN
from raterscope.app.annotators.table import read_annotators, read_courses
from raterscope.app.cli.program import main
from raterscope.app.study import Study
from tests.app.driving import idle
from tests.app.workspaces.labels.driving import fuse, key

TASK = "cell-001"


def truth_of_task(window):
    scene = window.workspace.session.scene
    return int(scene.truth[scene.number_of[TASK]])


def mark(window, qtbot):
    """Decide the second class for a task without ground truth, and mark it."""
    tasks = window.workspace.tasks
    number = window.workspace.session.scene.number_of[TASK]
    tasks.select(number)
    key(window, qtbot, Qt.Key.Key_2)
    tasks.select(number)
    key(window, qtbot, Qt.Key.Key_G)
    idle(window, qtbot)
    return number


def test_a_decided_task_is_marked_as_ground_truth_until_that_is_undone(fused, qtbot):
    fused.workspace.tasks.select(fused.workspace.session.scene.number_of[TASK])
    key(fused, qtbot, Qt.Key.Key_G)
    assert "Decide the class of cell-001 first" in fused.status.message
    assert not fused.document.contents.decisions

    fused.workspace.tasks.select(fused.workspace.session.scene.number_of["cell-003"])
    key(fused, qtbot, Qt.Key.Key_G)
    assert "cell-003 is a gold task: its ground truth was imported" in fused.status.message

    workspace = fused.workspace
    judged = workspace.session.analysis.model.judged
    number = mark(fused, qtbot)
    assert truth_of_task(fused) == 1
    assert workspace.session.analysis.model.judged == judged + 1
    assert workspace.tasks.current == number
    assert "gold task, infected" in fused.menus.undo_action.text()
    key(fused, qtbot, Qt.Key.Key_1)  # another class than that of the gold task
    idle(fused, qtbot)
    workspace.tasks.select(number)
    key(fused, qtbot, Qt.Key.Key_1)
    idle(fused, qtbot)
    assert "against ground truth" in workspace.task_panel._objection.text()
    fuse(fused, qtbot)
    assert not workspace.task_panel.undo.isVisible()  # the next run has another posterior
    workspace.tasks.select(number)
    key(fused, qtbot, Qt.Key.Key_G)
    idle(fused, qtbot)
    assert truth_of_task(fused) == OPEN
    fused.menus.undo_action.trigger()
    idle(fused, qtbot)
    assert truth_of_task(fused) == 1


def test_gold_tasks_are_a_column_a_course_and_rows_of_the_decisions(fused, qtbot, tmp_path):
    path = fused.document.contents.path
    with Study.open(path, to_read=True) as study:
        before = read_annotators(study).columns
    mark(fused, qtbot)
    fused.document.close()
    idle(fused, qtbot)
    with Study.open(path) as study:
        table, votes = read_annotators(study), study.vote_set(1)
        voted = votes.annotator_ids[votes.annotator[votes.task == votes.task_index[TASK]]]
        more = table.columns["labels_gold_answered"] - before["labels_gold_answered"]
        assert set(table.numbers[more > 0]) == set(voted.tolist())
        name = table.names[0]
        gold, low, high = (table.columns[f"labels_gold{end}"] for end in ("", "_low", "_high"))
        assert ((low <= gold) & (gold <= high)).all()
        (course,) = (course for course in read_courses((name,), study) if course.measure.name == "gold")
        assert course.across == "block of gold votes"
    written = tmp_path / "decisions.csv"
    assert main(["export", str(path), "--what", "decisions", "-o", str(written)]) == 0
    rows = list(csv.DictReader(written.read_text(encoding="utf-8").splitlines()))
    assert [(row["verb"], row["task"], row["label"]) for row in rows][-1] == ("gold", TASK, "infected")
    selected = tmp_path / "selected.csv"
    rule = "gold < .6 and gold_answered >= 1"
    assert main(["annotators", str(path), "--where", rule, "-o", str(selected)]) == 0
    for row in csv.DictReader(selected.read_text(encoding="utf-8").splitlines()):
        assert float(row["labels_gold"]) < 0.6
