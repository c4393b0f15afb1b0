"""Names on the labels screen: hidden everywhere in blind mode, otherwise as in the file."""

import json
from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLabel, QWidget

from raterscope.app.workspaces.labels.view import matrix_view, wall_view
from tests.app.driving import LONG, idle
from tests.app.workspaces.labels.driving import key, preview_exclusion
from tests.app.workspaces.labels.made import LIAR


def all_words(window) -> str:
    """Return every word that can be seen or heard in the window."""
    workspace = window.workspace
    words = [window.windowTitle(), window.status.message, window.status.text.text()]
    words += [action.text() for action in window.findChildren(QAction)]
    for widget in [window, *window.findChildren(QWidget)]:
        words += [widget.toolTip(), widget.accessibleName(), widget.accessibleDescription()]
        if isinstance(widget, QLabel):
            words.append(widget.text())
    history = workspace.history.view
    words += [f"{line.text}" for line in history.lines]
    words += [line.name for line in workspace.task_panel.votes.lines]
    wall = workspace.wall
    words += [wall.tiles.text_of(position) for position in wall.tiles.order]
    words += [line.why for line in workspace.ask.list.lines[:]]
    return "\n".join(words)


def leave_out(window, qtbot, *annotators):
    workspace = window.workspace
    workspace.annotator_detail.choose(annotators)
    panel = preview_exclusion(window, qtbot)
    panel.reason.edit.setText("always the same answer")
    panel.exclude.click()
    idle(window, qtbot)


def test_while_names_are_hidden_no_name_is_anywhere(fused, qtbot):
    workspace = fused.workspace
    leave_out(fused, qtbot, LIAR)
    workspace.left_tabs.setCurrentWidget(workspace.ask)
    workspace.middle_tabs.setCurrentIndex(2)
    workspace.annotator_detail.choose((LIAR,))
    idle(fused, qtbot)
    workspace.matrix.cell_chosen.emit(1, 0)
    idle(fused, qtbot)
    assert all_words(fused).count("ann 11") >= 5
    key(fused, qtbot, Qt.Key.Key_H)
    assert "ann 11" not in all_words(fused)
    wall = workspace.wall
    wall.filter.setText("ann 11")
    assert wall.shown == ()
    wall.filter.setText(f"annotator {LIAR + 1}")
    assert wall.shown == wall.selected == (LIAR,)
    key(fused, qtbot, Qt.Key.Key_H)
    assert wall.shown == ()
    wall.filter.setText("")
    assert "ann 11 answered healthy" in all_words(fused)
    assert "exclude annotator ann 11" in all_words(fused)


def test_names_stay_hidden_when_votes_are_read_again(fused, qtbot):
    key(fused, qtbot, Qt.Key.Key_H)
    leave_out(fused, qtbot, LIAR)
    key(fused, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(fused.document.contents.runs) > 1, timeout=LONG)
    idle(fused, qtbot)
    assert "ann 11" not in all_words(fused)
    assert "exclude an annotator" in all_words(fused)


def test_names_are_as_in_the_file_restored_on_return_and_numbered_alike_when_hidden(fused, qtbot):
    workspace = fused.workspace
    workspace.annotator_detail.choose((LIAR,))
    workspace.tasks.select(workspace.session.scene.number_of["cell-004"])
    workspace.matrix.cell_chosen.emit(1, 0)
    idle(fused, qtbot)
    shown = {label.text() for label in workspace.findChildren(QLabel)}
    assert {"cell-004", "ann 11", "ann 11 answered healthy where infected is true"} <= shown

    workspace.tasks.select(4)
    workspace.tasks.decide(0)
    idle(fused, qtbot)
    task, label = workspace.session.scene.labels.tasks[4], workspace.session.scene.labels.classes[0]
    assert fused.menus.undo_action.text() == f"Undo label {task} as {label}"
    workspace.tasks.select(4)
    workspace.annotator_detail.choose((LIAR, 2))
    text = json.loads(json.dumps(workspace.view_state()))
    workspace.tasks.select(1)
    workspace.annotator_detail.choose(())
    workspace.restore_view(text)
    assert workspace.tasks.current == 4
    assert set(workspace.session.selection) == {LIAR, 2}
    workspace.restore_view({"task": 10**6, "annotators": ["nobody", 3], "tabs": None})
    assert workspace.tasks.current == 4

    scene = replace(
        workspace.session.scene, annotator_ids=workspace.session.scene.annotator_ids[::-1].copy()
    )  # as of a second question
    workspace.wall.set_wall(wall_view(scene, workspace.session.analysis, {}, blind=True))
    beside = matrix_view(scene, workspace.session.analysis, (LIAR,), blind=True)
    assert workspace.wall.tiles.text_of(LIAR).startswith(f"{beside.title.lower()} {beside.name},")
