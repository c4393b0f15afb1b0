"""Texts of the labels screen, with and without a result."""

import numpy as np
import pytest
from PySide6.QtCore import Qt

from raterscope.app.cli import main
from raterscope.app.formats.records import LabelTable
from raterscope.app.review import Decision
from raterscope.app.study import Study
from raterscope.app.study.labels import add_votes
from raterscope.app.workspaces.labels.screen import MethodTable
from tests.app.driving import LONG, idle, open_study
from tests.app.workspaces.labels.driving import fuse, key, preview_exclusion
from tests.app.workspaces.labels.made import LIAR
from tests.reading import visible_words


def test_runs_are_called_the_same_everywhere(fused, qtbot):
    workspace = fused.workspace
    workspace.fuse_panel.algorithm.choose("weighted-majority")
    fuse(fused, qtbot)
    assert "run 2: weighted majority, converged in" in fused.status.text.text()
    assert "fuse weighted majority, 1 question" in [line.text for line in workspace.history.view.lines]
    titles = [row.title for row in workspace.method_table.table.view.model().rows]
    assert titles == ["pooled consensus", "weighted majority", "the vote"]


def test_the_message_of_an_import_is_cleared_by_the_next_action(opened, qtbot):
    opened.status.show_message("votes.csv: 720 votes by 12 annotators on 60 tasks.")
    key(opened, qtbot, Qt.Key.Key_1)
    assert opened.status.message == ""
    opened.status.show_message("votes.csv: 720 votes by 12 annotators on 60 tasks.")
    fuse(opened, qtbot)
    assert opened.status.message == ""


@pytest.fixture
def agreed_path(tmp_path):
    """A question on which everybody agrees: no vote is missing."""
    path = tmp_path / "agreed.rscope"
    task, annotator = (index.ravel().astype(np.int32) for index in np.divmod(np.arange(400), 20))
    names = tuple(f"a{n}" for n in range(20)), tuple(f"t{n}" for n in range(20))
    with Study.create(path) as study:
        text = (task % 2).astype(np.int16)
        add_votes(study, LabelTable(path, "agreed", *names, ("no", "yes"), annotator, task, text, None))
    return path


@pytest.fixture
def agreed(window, qtbot, agreed_path):
    return open_study(window, qtbot, agreed_path)


def test_without_missing_votes_no_fusion_is_requested(agreed, qtbot):
    workspace = agreed.workspace
    workspace.left_tabs.setCurrentWidget(workspace.ask)
    assert "Press Fuse (F5)" in visible_words(workspace.ask)
    workspace.fuse_panel.algorithm.choose("ibcc")
    fuse(agreed, qtbot)
    assert "No further vote" in visible_words(workspace.ask)


def test_an_exclusion_counts_those_excluded_since_the_run_of_labels(window, qtbot, four_study):
    with Study.open(four_study) as study:
        study.record(Decision(verb="exclude", annotators=("eve",)))
    assert main(["run", str(four_study), "oem"]) == 0  # the latest run, of clicks, is without her already
    open_study(window, qtbot, four_study)
    window.show_workspace("labels")
    idle(window, qtbot)
    window.workspace.annotator_detail.choose((0,))
    panel = preview_exclusion(window, qtbot)
    assert panel._summary.text().endswith("with 1 annotator excluded since the run")


def test_an_excluded_annotator_is_restored_by_the_same_key_and_a_preview_of_no_change_is_short(fused, qtbot):
    workspace = fused.workspace
    button = workspace.exclude_key
    fused.document.record(Decision(verb="exclude", annotators=("ann 11",), reason="a test account"))
    workspace.annotator_detail.choose((LIAR,))
    idle(fused, qtbot)
    assert button.text() == "restore"
    assert workspace.excluded.text() == "excluded: a test account"
    workspace.annotator_detail.choose((LIAR, 3))
    assert button.text() == "exclude…"
    assert workspace.excluded.text() == "1 of them excluded: a test account"
    workspace.annotator_detail.choose((LIAR,))
    key(fused, qtbot, Qt.Key.Key_X)
    assert not fused.document.contents.review.excluded
    assert button.text() == "exclude…"

    fused.resize(1440, 900)
    workspace.annotator_detail.choose((LIAR,))
    panel = preview_exclusion(fused, qtbot)
    assert "none of" in panel._summary.text()  # one who always says the same is not believed anyhow
    assert panel._title.height() < 60
    assert panel._form.y() - panel._title.geometry().bottom() < 20


def test_texts_of_a_result_are_short_and_empty_lists_give_the_reason(fused, qtbot):
    status = fused.status.text.text()
    accuracy = status.split("accuracy ")[1].split(" ")[0]
    assert len(accuracy) <= len("0.93")  # of twenty known tasks

    matrix, drift = fused.workspace.matrix, fused.workspace.drift
    assert drift.height() < matrix.height() / 2
    for text in (drift._nothing, drift.fuse):
        assert text.visibleRegion().boundingRect().height() == text.height()

    workspace = fused.workspace
    key(fused, qtbot, Qt.Key.Key_F6, workspace.queue.filter)
    assert workspace.focusWidget() is workspace.wall.tiles

    queue = fused.workspace.queue
    for name, words in (
        ("community", "Select a community"),
        ("decided", "No decisions yet"),
        ("few", "Every task has more than a few votes"),
    ):
        queue.choice.setCurrentIndex(queue.choice.findData(name))
        idle(fused, qtbot)
        assert not queue.view.lines
        assert words in visible_words(queue)
    queue.filter.setText("no task is called so")
    idle(fused, qtbot)
    assert "contains “no task is called so”" in visible_words(queue)


def test_a_fusion_of_a_closed_study_shows_no_message_in_the_next(fused, agreed_path, qtbot):
    fused.workspace.fuse_panel.algorithm.choose("gibbs")
    key(fused, qtbot, Qt.Key.Key_F5)
    fused.workspace.fuse_again()
    qtbot.waitUntil(lambda: fused.workspace.fusing.job is not None, timeout=LONG)
    fused.open_paths([agreed_path])
    qtbot.waitUntil(lambda: fused.document.contents.path == agreed_path, timeout=LONG)
    idle(fused, qtbot)
    assert fused.status.message == ""
    assert fused.workspace.fusing.job is None


def test_notices_are_whole_sentences_that_scroll(qtbot):
    table = MethodTable()
    qtbot.addWidget(table)
    full = (
        "7 of 92 annotators changed during their votes (p < 0.05 each): v-2745 (vote 73), v-4914 (vote 13)."
    )
    table.set_advice([full, "Give the truth of some tasks."] * 8)
    table.resize(300, 200)
    table.show()
    assert table.advice.text() == "\n".join([full, "Give the truth of some tasks."] * 8)
    assert table.advice.verticalScrollBar().maximum() > 0
    table.resize(1000, 600)
    qtbot.waitUntil(lambda: table.advice.verticalScrollBar().maximum() == 0)
