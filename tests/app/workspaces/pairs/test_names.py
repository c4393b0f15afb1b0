"""Names and evidence on the pairs screen, hidden in blind mode until the expert has decided."""

import json
import math
from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLabel, QWidget

from tests.app.driving import LONG, idle
from tests.app.workspaces.pairs.driving import key


def all_words(window) -> str:
    """Return every word that can be seen or heard in the window."""
    workspace = window.workspace
    words = [window.windowTitle(), window.status.message, window.status.text.text()]
    words += [action.text() for action in window.findChildren(QAction)]
    words += [f"{command.text} {command.where}" for command in window.window_actions.commands()]
    for widget in [window, *window.findChildren(QWidget)]:
        words += [widget.toolTip(), widget.accessibleName(), widget.accessibleDescription()]
        if isinstance(widget, QLabel):
            words.append(widget.text())
    lists = (workspace.history.view, workspace.queue.view, workspace.comparisons.view,
             workspace.evidence.pairs.view)  # fmt: skip
    for view in lists:
        rows = [view.model().index(row, 0) for row in range(view.model().rowCount())]
        words += [str(row.data(role)) for row in rows for role in (Qt.DisplayRole, Qt.ToolTipRole)]
    for position in (workspace.path, workspace.sides, workspace.bars):
        if position is not workspace.path or position.filled:
            words += [str(row) for row in position.figure.menu._table().rows()]
    figure = workspace.bars.figure
    words += [figure.text_of((0, column)) for column in range(len(plotted(workspace.bars)))]
    return "\n".join(words)


def looked_at(window, qtbot, annotator):
    workspace = window.workspace
    workspace.choose(annotator)
    qtbot.waitUntil(lambda: workspace._evidence is not None, timeout=LONG)
    idle(window, qtbot)
    return workspace


def plotted(panel) -> list[str]:
    """Return the annotators that a figure names."""
    return sorted({row[0] for row in panel.figure.table().rows()})


def test_while_names_are_hidden_no_name_is_anywhere(fused, qtbot):
    workspace = looked_at(fused, qtbot, 3)
    workspace.bias_review.record("flag", "ann 05", "always chooses one side")
    idle(fused, qtbot)
    assert fused.menus.undo_action.text() == "Undo flag annotator ann 05"
    looked_at(fused, qtbot, 3)
    workspace._on_pair(0, 1)
    assert all_words(fused).count("ann 03") >= 5
    assert "flag annotator ann 05" in all_words(fused)
    key(fused, qtbot, Qt.Key.Key_H)
    qtbot.waitUntil(lambda: workspace._evidence is not None, timeout=LONG)
    assert fused.status.message == "Names are hidden."
    assert "ann 0" not in all_words(fused)
    assert "annotator 4" in all_words(fused)
    assert "flag an annotator" in all_words(fused)
    assert fused.menus.undo_action.text() == "Undo flag an annotator"
    key(fused, qtbot, Qt.Key.Key_H)
    assert fused.status.message == "Names are shown."
    assert all_words(fused).count("ann 03") >= 5


def test_notices_that_name_annotators_are_hidden_too(fused, qtbot):
    workspace = looked_at(fused, qtbot, 3)
    scene = workspace.session.scene
    named = replace(scene.fusion, notices=("Annotator ann 07 contradicts the ranking.",))
    workspace.session.amend(replace(scene, fusion=named))
    workspace.on_scene(workspace.session.scene)
    assert "ann 07 contradicts" in fused.status.message
    key(fused, qtbot, Qt.Key.Key_H)
    assert fused.status.message == "Names are hidden."
    workspace.on_scene(workspace.session.scene)
    assert "ann 07" not in fused.status.message + workspace.core.notices
    key(fused, qtbot, Qt.Key.Key_H)
    assert "ann 07 contradicts" in workspace.core.notices


def test_blind_mode_hides_votes_and_results_until_a_decision(fused, qtbot):
    workspace = looked_at(fused, qtbot, 3)
    text = workspace.evidence.pairs
    assert any("others chose" in line.text_of(text.view.lines[0]) for line in [text._kind])
    key(fused, qtbot, Qt.Key.Key_H)
    looked_at(fused, qtbot, 3)
    assert all(not line.others and not line.against for line in text.view.lines[:])
    assert not text.modes.isVisible()
    panel = workspace.evidence
    assert panel._number.text() == "–"
    assert "once you have decided" in panel._sentence.text()
    assert workspace.queue.current == 3
    assert not workspace.path.filled
    assert "once you have decided" in workspace.path._nothing.text()
    assert not workspace.bars.filled
    assert "flagged at a rate" not in fused.status.text.text()
    line = next(line for line in workspace.queue.view.lines[:] if line.key == 3)
    assert line.score is None
    assert line.detail[0].isdigit()
    workspace.bias_review.record("flag", "ann 03", "always chooses one side")
    idle(fused, qtbot)
    looked_at(fused, qtbot, 3)
    assert plotted(workspace.bars) == plotted(workspace.path) == ["annotator 4"]
    assert "1 flagged" in all_words(fused)
    assert any(line.others for line in text.view.lines[:])
    assert math.isfinite(float(panel._number.text()))
    assert "once you have decided" not in panel._sentence.text()
    assert panel.header.text()[0] == "Annotator annotator 4"


def test_blind_mode_hides_order_and_ranking(fused, qtbot):
    workspace = fused.workspace
    assert workspace.queue.order.tolist() != sorted(workspace.queue.order.tolist())
    assert workspace.ranking.filled
    key(fused, qtbot, Qt.Key.Key_H)
    assert workspace.queue.order.tolist() == sorted(workspace.queue.order.tolist())
    assert not workspace.ranking.filled
    assert "every annotator is decided" in workspace.ranking._nothing.text()
    workspace.queue.choice.setCurrentIndex(workspace.queue.choice.findText("flagged"))
    idle(fused, qtbot)
    assert not len(workspace.queue.order)
    key(fused, qtbot, Qt.Key.Key_H)
    assert workspace.ranking.filled
    assert len(workspace.queue.order)


def test_the_reason_dialog_hides_the_name_and_the_study_stores_it(fused, qtbot):
    looked_at(fused, qtbot, 3)
    key(fused, qtbot, Qt.Key.Key_H)
    looked_at(fused, qtbot, 3)
    key(fused, qtbot, Qt.Key.Key_F)
    from raterscope.widgets.dialogs.review_dialogs import ReasonDialog

    (dialog,) = fused.findChildren(ReasonDialog)
    words = [dialog.windowTitle(), *(label.text() for label in dialog.findChildren(QLabel))]
    assert not any("ann 03" in word for word in words)
    assert any("annotator 4" in word for word in words)
    dialog.edit.setText("always chooses one side")
    dialog.accept()
    idle(fused, qtbot)
    assert fused.document.contents.decisions[-1].subject.annotator == "ann 03"


def test_annotator_cut_and_hidden_names_are_kept(fused, qtbot):
    workspace = looked_at(fused, qtbot, 3)
    workspace.bars.slider.setValue(20)
    workspace.left_tabs.setCurrentWidget(workspace.methods)
    text = json.loads(json.dumps(workspace.view_state()))
    looked_at(fused, qtbot, 5)
    workspace.left_tabs.setCurrentWidget(workspace.history)
    workspace.bars.slider.setValue(10)
    workspace.restore_view(text)
    assert workspace.queue.current == 3
    assert workspace.rate_cut.cut.rate == 0.2
    assert workspace.left_tabs.currentWidget() is workspace.methods

    key(fused, qtbot, Qt.Key.Key_H)
    fused.document.hide_names(True, "labels")
    fused.document.hide_names(False, "labels")
    assert fused.document.contents.hidden
    key(fused, qtbot, Qt.Key.Key_H)
    assert not fused.document.contents.hidden
