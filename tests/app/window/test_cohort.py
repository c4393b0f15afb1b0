"""A gathered study in the window: the cases without results, and one queue over all cases."""

import pytest
from PySide6.QtCore import Qt

from raterscope.app.batch.cohort import gather_cohort
from raterscope.app.batch.manifest import read_manifest
from raterscope.app.batch.task import run_case, write_status
from raterscope.app.study import Study
from raterscope.widgets.dialogs.output_dialogs import FailedCasesDialog
from tests.app.batch.test_batch import a_manifest
from tests.app.driving import idle, open_study, press
from tests.app.kinds.masks.made import a_ball, write


@pytest.fixture
def cohort(tmp_path):
    """Three cases whose raters differ more and more, and one without masks."""
    rows = []
    for case, largest in (("little", 6.5), ("more", 8.0), ("most", 10.0)):
        for rater, radius in (("anna", 6.0), ("ben", 6.2), ("carl", largest)):
            write(tmp_path / case / f"{rater}.nii.gz", a_ball(radius=radius))
        rows.append(f"{case},masks,{case}/*.nii.gz,majority,")
    (tmp_path / "empty.nii.gz").touch()
    cases = read_manifest(a_manifest(tmp_path, *rows, "none,masks,empty.nii.gz,majority,"))
    for case in cases:
        run_case(case, tmp_path / "out")
    write_status(tmp_path / "out", cases)
    gather_cohort(tmp_path / "out", tmp_path / "cohort.rscope", lambda *_, **__: None)
    return tmp_path / "cohort.rscope"


def test_failed_cases_are_listed_and_the_queue_is_of_all_cases(window, qtbot, cohort):
    open_study(window, qtbot, cohort)
    assert not window.cohort_bar.isHidden()
    assert "1 of 4 cases has no results" in window.cohort_bar.label.text()
    assert [item.title for item in window.workspace.queue.shown()] == ["most", "more", "little"]
    window.cohort_bar.list_cases.click()
    (dialog,) = window.findChildren(FailedCasesDialog)
    model = dialog.table.model()
    cells = [model.index(0, column).data() for column in range(model.columnCount())]
    assert cells[:3] == ["none", "masks", "bad input"]
    assert "is empty" in cells[3]
    dialog.reject()
    window.cohort_bar.dismiss.click()
    assert window.cohort_bar.isHidden()
    idle(window, qtbot)


def test_other_studies_show_no_such_cases(opened):
    assert opened.cohort_bar.isHidden()
    assert "Cases without results" not in [command.text for command in opened.window_actions.commands()]


@pytest.fixture
def questions(tmp_path):
    """Three cases of labels with 2 to 1, 3 to 2 and 4 to 1 votes on some tasks."""
    votes = {"clear": {"t1": "aab"}, "disputed": {"t1": "aabbb", "t2": "aaaab"}, "agreed": {"t1": "aaaaa"}}
    rows = []
    for case, tasks in votes.items():
        lines = ["task,annotator,label,question"]
        for task in (*tasks, *(f"easy{number}" for number in range(6))):
            answers = tasks.get(task, "aaaaa")
            lines += [f"{task},ann{number},{label},{case}" for number, label in enumerate(answers)]
        (tmp_path / f"{case}.csv").write_text("\n".join(lines) + "\n")
        rows.append(f"{case},labels,{case}.csv,majority,")
    cases = read_manifest(a_manifest(tmp_path, *rows))
    for case in cases:
        assert run_case(case, tmp_path / "out").status == "done"
    write_status(tmp_path / "out", cases)
    gather_cohort(tmp_path / "out", tmp_path / "cohort.rscope", lambda *_, **__: None)
    return tmp_path / "cohort.rscope"


def on_screen(workspace):
    scene = workspace.session.scene
    return scene.question.name, scene.labels.tasks[workspace.tasks.current]


def test_labels_of_all_questions_are_one_queue_with_the_most_disputed_first(window, qtbot, questions):
    open_study(window, qtbot, questions)
    workspace = window.workspace
    listed = [(item.detail, item.title) for item in workspace.study_queue.panel.shown()]
    assert listed == [("disputed", "t1"), ("clear", "t1"), ("disputed", "t2")]
    scores = [item.score for item in workspace.study_queue.panel.shown()]
    assert scores == sorted(scores, reverse=True)
    assert on_screen(workspace) == ("disputed", "t1")
    for following in listed[1:]:
        press(window, qtbot, Qt.Key.Key_1, on=workspace.queue.view)
        assert on_screen(workspace) == following
        assert workspace.study_queue.panel.current[1] == following[1]
    press(window, qtbot, Qt.Key.Key_S, on=workspace.queue.view)
    press(window, qtbot, Qt.Key.Key_1, on=workspace.queue.view)
    assert "Nothing disputed is left" in window.status.message
    assert all(item.done for item in workspace.study_queue.panel.shown())
    workspace.study_queue.panel.item_chosen.emit(workspace.study_queue.panel.shown()[0].key)
    idle(window, qtbot)
    press(window, qtbot, Qt.Key.Key_2, on=workspace.queue.view)
    window.document.close()
    with Study.open(questions) as study:
        recorded = study.decisions()
    assert [decision.verb for decision in recorded] == ["label", "label", "skip", "label", "label"]
    assert recorded[-1].subject.label == "b"
