"""Tasks on which two experts differ head the queue, and are settled by key."""

import shutil

from PySide6.QtCore import Qt

from raterscope.app.review import Decision, TaskSubject
from tests.app.driving import idle, open_study
from tests.app.workspaces.labels.driving import key
from tests.app.workspaces.labels.made import CLASSES
from tests.app.workspaces.merged import header, merge


def label(task: str, name: str) -> Decision:
    return Decision(verb="label", item=1, subject=TaskSubject(task=task, label=name))


def test_contested_tasks_come_first_and_leave_once_settled(
    window, qtbot, labels_study, labels_original_fused
):
    shutil.copy(labels_original_fused, labels_study)
    tasks = ("cell-001", "cell-002", "cell-004")
    path = merge(
        labels_study,
        [label(tasks[0], CLASSES[0]), label(tasks[1], CLASSES[0]), label(tasks[2], CLASSES[1])],
        [label(tasks[0], CLASSES[1]), label(tasks[1], CLASSES[1]), label(tasks[2], CLASSES[1])],
    )
    open_study(window, qtbot, path)
    workspace = window.workspace
    queue, names = workspace.queue, workspace.session.scene.labels.tasks
    assert {names[task] for task in queue.order[:2]} == set(tasks[:2])
    assert "2 contested" in header(window)
    assert queue._shown.item(int(queue.order[0])).detail.startswith("contested, ")
    assert names[workspace.tasks.current] in tasks[:2]
    words = f"Experts differ: anna: {CLASSES[0]}; ben: {CLASSES[1]}."
    assert words in workspace.task_panel._sentence.text()
    first = workspace.tasks.current
    key(window, qtbot, Qt.Key.Key_1)
    assert "1 contested" in header(window)
    assert names[workspace.tasks.current] in tasks[:2]
    assert workspace.tasks.current != first
    key(window, qtbot, Qt.Key.Key_2)
    assert "contested" not in header(window)
    assert words not in workspace.task_panel._sentence.text()
    assert queue._shown.item(first).detail == f"decided: {CLASSES[0]}"
    window.document.undo()
    idle(window, qtbot)
    assert "1 contested" in header(window)


def test_blind_the_verdicts_of_the_experts_are_hidden(window, qtbot, labels_study, labels_original_fused):
    shutil.copy(labels_original_fused, labels_study)
    open_study(
        window, qtbot,
        merge(labels_study, [label("cell-001", CLASSES[0])], [label("cell-001", CLASSES[1])]),
    )  # fmt: skip
    window.workspace.core.toggle_blind()
    idle(window, qtbot)
    assert "anna" not in window.workspace.task_panel._sentence.text()
