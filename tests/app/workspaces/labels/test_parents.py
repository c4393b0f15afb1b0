"""Decisions for a parent in the hierarchy of classes: key, list, undo, exports and their import."""

import csv

import numpy as np
import pytest
from PySide6.QtCore import Qt

from raterscope.algorithms.labels.fusion import run
from raterscope.algorithms.progress import silent
from raterscope.app.cli.program import main
from raterscope.app.kinds.labels.runs import plan_of, read_answer
from raterscope.app.review import Decision, TaskSubject, fold
from raterscope.app.study import Study
from raterscope.app.workspaces.labels.scene import read_scene
from tests.app.driving import idle, open_study
from tests.app.workspaces.labels.driving import key

CLASSES = ("animal/bird/owl", "animal/bird/hawk", "animal/cat", "plant/rose")


@pytest.fixture
def study(tmp_path):
    rows = [
        f"ann {annotator},t{task},{CLASSES[annotator % 2] if task == 0 else CLASSES[task % 4]}"
        for task in range(8)
        for annotator in range(5)
    ]
    (tmp_path / "votes.csv").write_text("\n".join(("annotator,task,label", *rows)))
    path = tmp_path / "s.rscope"
    assert main(["import", str(path), str(tmp_path / "votes.csv")]) == 0
    assert main(["run", str(path), "majority"]) == 0
    return path


def test_p_decides_for_the_parent_and_again_for_the_one_above(study, window, qtbot, tmp_path):
    opened = open_study(window, qtbot, study)
    workspace = opened.workspace
    tasks, number = workspace.tasks, workspace.session.scene.number_of["t0"]
    for expected in ("animal/bird", "animal"):
        tasks.select(number)
        key(opened, qtbot, Qt.Key.Key_P)
        idle(opened, qtbot)
        tasks.select(number)
        assert f"You decided {expected}." in workspace.task_panel._sentence.text()
    key(opened, qtbot, Qt.Key.Key_G)
    assert "Decide the class of t0 first" in opened.status.message
    opened.menus.undo_action.trigger()
    idle(opened, qtbot)
    assert tasks.decided[number] == len(CLASSES)
    opened.document.close()
    idle(opened, qtbot)
    assert main(["export", str(study), "--what", "labels", "-o", str(tmp_path / "labels.csv")]) == 0
    lines = (tmp_path / "labels.csv").read_text(encoding="utf-8").splitlines()
    rows = {row["task"]: row for row in csv.DictReader(lines)}
    assert rows["t0"]["label"] == "animal/bird"
    assert main(["run", str(study), "majority"]) == 0
    assert main(["report", str(study), "-o", str(tmp_path / "report.html")]) == 0
    assert "animal/bird" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_next_fusion_keeps_to_the_parent_until_the_decision_is_undone(study, tmp_path):
    def posterior():
        assert main(["run", str(study), "pooled"]) == 0
        table = tmp_path / "labels.csv"
        assert main(["export", str(study), "--what", "labels", "-o", str(table)]) == 0
        with table.open(encoding="utf-8") as lines:
            row = next(row for row in csv.DictReader(lines) if row["task"] == "t2")
        with Study.open(study, to_read=True) as opened:
            _, result = opened.shown.result(item, "labels")
        return row["label"], result.fusion.posterior[2]

    with Study.open(study, to_read=True) as opened:
        item = opened.questions()[0].id
    before = posterior()
    assert before[0] == "animal/cat"
    with Study.open(study) as opened:
        subject = TaskSubject(task="t2", label="animal/bird")
        decision = opened.record(Decision(verb="label", item=item, subject=subject))
    label, row = posterior()
    birds = [name.startswith("animal/bird") for name in CLASSES]
    assert label == "animal/bird"
    assert row[birds].sum() == pytest.approx(1)
    assert row[np.logical_not(birds)].max() == 0
    with Study.open(study) as opened:
        opened.record(Decision(verb="undo", undoes=decision.id))
    after = posterior()
    assert after[0] == before[0]
    assert after[1].tobytes() == before[1].tobytes()


def test_a_table_of_decisions_may_name_a_parent(study, tmp_path):
    copy, table = tmp_path / "copy.rscope", tmp_path / "decisions.csv"
    copy.write_bytes(study.read_bytes())
    with Study.open(study) as opened:
        item = opened.questions()[0].id
        opened.record(Decision(verb="label", item=item, subject=TaskSubject(task="t0", label="animal/bird")))
    assert main(["export", str(study), "--what", "decisions", "-o", str(table)]) == 0
    assert main(["decide", str(copy), str(table)]) == 0
    with Study.open(copy, to_read=True) as opened:
        assert fold(opened.decisions()).tasks(item)["t0"].label == "animal/bird"


def test_what_is_measured_of_a_stored_run_keeps_to_the_parents_decided_before_it(study):
    with Study.open(study) as opened:
        item = opened.questions()[0].id
        opened.record(Decision(verb="label", item=item, subject=TaskSubject(task="t2", label="animal/bird")))
    assert main(["run", str(study), "pooled"]) == 0
    with Study.open(study) as opened:
        opened.record(Decision(verb="label", item=item, subject=TaskSubject(task="t3", label="animal")))
        answered = read_answer(opened, opened.question(item))
        scene = read_scene(item, None, opened, silent)
    for labels in (answered.question.labels, scene.fixed):
        fusion = run(labels, plan_of(answered.run))
        np.testing.assert_array_equal(fusion.posterior, answered.result.fusion.posterior)
        assert fusion.label()[2] != CLASSES.index("animal/cat")
        assert fusion.label()[3] == CLASSES.index("plant/rose")
