"""The labels workspace: fuse, review disputed tasks, decide, judge and exclude annotators."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from raterscope.algorithms.labels import OPEN
from raterscope.app.kinds.labels.runs import read_answer
from raterscope.app.study import Study
from raterscope.app.study.labels import add_votes
from raterscope.app.workspaces.labels import view
from raterscope.widgets.dialogs.answers import AnswersDialog
from tests.app.driving import LONG, idle, open_study
from tests.app.workspaces.labels.driving import fuse, key, preview_exclusion
from tests.app.workspaces.labels.made import CLASSES, LIAR, PEOPLE, TASKS, table, votes
from tests.reading import visible_words


def queue(window) -> list[str]:
    return [line.title for line in window.workspace.queue.view.lines[:]]


def task_on_screen(window) -> str:
    workspace = window.workspace
    return workspace.session.scene.labels.tasks[workspace.tasks.current]


def doubts(workspace):
    """Return the probability that each task's answer is wrong."""
    return 1 - workspace.session.scene.fusion.posterior.max(axis=1)


def test_a_study_of_labels_opens_on_its_tasks_as_not_fused(opened):
    workspace = opened.workspace
    assert len(queue(opened)) == TASKS
    assert "60 tasks" in opened.status.text.text()
    assert "720 votes by 12 annotators" in opened.status.text.text()
    assert "not fused yet" in opened.status.text.text()
    assert workspace.task_panel.votes.lines  # the votes are listed before there is a result
    assert all(line.agrees for line in workspace.task_panel.votes.lines)  # there is no model to disagree with
    for panel in (workspace.wall, workspace.cards):
        assert "Press Fuse (F5)" in visible_words(panel)
    assert not workspace.question.isVisible()  # there is one


def test_a_fused_study_shows_matrices_accuracy_and_a_cell_and_hides_names_on_request(fused, qtbot):
    workspace = fused.workspace
    first = workspace.queue.view.lines[0].key
    assert workspace.tasks.current == first == int(np.argmax(doubts(workspace)))
    truth, _ = votes()
    label = workspace.session.scene.fusion.label()
    assert (label == truth).mean() > 0.9
    assert len(workspace.wall.shown) == PEOPLE
    doubt = doubts(workspace)[[workspace.session.scene.number_of[name] for name in queue(fused)]]
    assert (np.diff(doubt) <= 0).all()
    titles = [row.title for row in workspace.method_table.table.view.model().rows]
    assert titles == ["pooled consensus", "the vote"]
    assert workspace.curves.filled
    assert [line.title for line in workspace.trust.plot.lines] == ["pooled consensus", "the vote"]
    assert "accuracy" in fused.status.text.text()

    _, answers = votes()
    workspace.wall.selection_changed.emit((LIAR,))
    idle(fused, qtbot)
    assert "ann 11" in workspace.matrix.header._name.text()
    workspace.matrix.cell_chosen.emit(1, 0)
    idle(fused, qtbot)
    assert workspace.middle_tabs.currentWidget() is workspace.cell_tasks
    truth = np.where(
        workspace.session.scene.truth >= 0,
        workspace.session.scene.truth,
        workspace.session.scene.fusion.label(),
    )
    expected = int(((truth == 1) & (answers[:, LIAR] == 0)).sum())
    assert f"{expected} tasks" in workspace.cell_tasks._header._subtitle.text()
    assert "ann 11 answered healthy where infected is true" in workspace.cell_tasks._header._name.text()

    workspace.annotator_detail.choose((4,))
    idle(fused, qtbot)
    key(fused, qtbot, Qt.Key.Key_H)
    assert workspace.matrix.header._name.text() == "5"
    assert all(
        "ann" not in vote.name or vote.name.startswith("annotator")
        for vote in workspace.task_panel.votes.lines
    )
    key(fused, qtbot, Qt.Key.Key_H)
    assert "ann 04" in workspace.matrix.header._name.text()


def test_a_digit_decides_the_task_undo_takes_it_back_and_the_next_fusion_holds_it(fused, qtbot):
    workspace = fused.workspace
    first = task_on_screen(fused)
    key(fused, qtbot, Qt.Key.Key_2)
    assert task_on_screen(fused) != first
    decided = fused.document.contents.review.tasks(workspace.session.scene.question.id)
    assert {name: decision.label for name, decision in decided.items()} == {first: "infected"}
    assert f"label {first} as infected" in fused.menus.undo_action.text()
    fused.menus.undo_action.trigger()
    idle(fused, qtbot)
    assert not fused.document.contents.review.tasks(workspace.session.scene.question.id)
    number = workspace.session.scene.number_of[first]
    assert workspace.tasks.decided[number] == OPEN
    assert task_on_screen(fused) == first
    key(fused, qtbot, Qt.Key.Key_1)
    workspace.tasks.select(number)
    key(fused, qtbot, Qt.Key.Key_C)
    assert workspace.tasks.decided[number] == OPEN
    verbs = [decision.verb for decision in fused.document.contents.decisions]
    assert len(verbs) == 4  # nothing is ever removed

    name = task_on_screen(fused)
    against = 1 - int(workspace.session.scene.fusion.label()[workspace.session.scene.number_of[name]])
    key(fused, qtbot, Qt.Key.Key_1 if against == 0 else Qt.Key.Key_2)
    assert "made decisions" in fused.workspace.fuse_panel._changes.text()
    fuse(fused, qtbot)
    posterior = workspace.session.scene.fusion.posterior[workspace.session.scene.number_of[name]]
    assert posterior[against] == 1.0
    assert name not in queue(fused)


def test_all_methods_are_measured_on_the_truths_that_the_run_shown_was_not_given(fused, qtbot):
    workspace = fused.workspace
    before = workspace.session.analysis.model.judged
    workspace.tasks.select(int(np.flatnonzero(workspace.session.scene.truth != OPEN)[0]))
    key(fused, qtbot, Qt.Key.Key_1)
    fuse(fused, qtbot)
    assert workspace.session.analysis.model.judged == before - 1
    assert workspace.method_table.table.header.text()[1] == f"{before - 1} known tasks"
    assert len(workspace.method_table.table.view.model().rows) == 3


def test_exclusion_previews_changes_and_is_one_decision_to_undo(fused, qtbot):
    workspace = fused.workspace
    workspace.annotator_detail.choose((LIAR, 3))
    panel = preview_exclusion(fused, qtbot)
    assert not fused.document.contents.decisions
    panel.task_chosen.emit(3)
    idle(fused, qtbot)
    assert workspace.tasks.current == 3
    panel.reason.edit.setText("always the same answer")
    panel.exclude.click()
    idle(fused, qtbot)
    review = fused.document.contents.review
    assert review.excluded == {"ann 11": "always the same answer", "ann 03": "always the same answer"}
    fuse(fused, qtbot)
    assert workspace.session.analysis.votes_of[[LIAR, 3]].sum() == 0
    assert len(workspace.wall.shown) == PEOPLE  # they stay in sight, crossed out
    workspace.annotator_detail.choose((LIAR,))
    matrix = view.matrix_view(workspace.session.scene, workspace.session.analysis, (LIAR,))
    assert matrix.subtitle.startswith(f"{TASKS} votes excluded | accuracy ")
    assert matrix.mean[:, 0].min() > 0.8  # that of an annotator who says healthy always, no prior
    workspace.matrix.cell_chosen.emit(1, 0)
    idle(fused, qtbot)
    assert "ann 11 answered healthy where infected is true" in workspace.cell_tasks._header._name.text()
    assert not workspace.cell_tasks._header._subtitle.text().startswith("0 ")
    fused.menus.undo_action.trigger()
    idle(fused, qtbot)
    assert not fused.document.contents.review.excluded


def test_the_dynamic_model_shows_how_an_annotator_changed(fused, qtbot):
    workspace = fused.workspace
    workspace.drift.fuse.click()
    fuse(fused, qtbot)
    workspace.annotator_detail.choose((2,))
    idle(fused, qtbot)
    assert workspace.session.scene.run.algorithm == "dynibcc"
    assert f"{TASKS} votes" in workspace.drift._header._subtitle.text()
    sorts = [workspace.wall.measure.itemText(at) for at in range(workspace.wall.measure.count())]
    assert any("change over time" in words for words in sorts)


def test_a_class_that_is_called_by_a_digit_is_decided_for_by_it(window, qtbot, tmp_path):
    _, answers = votes()
    digits = replace(table(tmp_path, answers), outputs=("0", "1"))
    with Study.create(tmp_path / "digits.rscope") as study:
        add_votes(study, digits)
    window.open_paths([tmp_path / "digits.rscope"])
    qtbot.waitUntil(lambda: window.workspace is not None and window.workspace.session.shown)
    idle(window, qtbot)
    for digit, index in (("1", Qt.Key.Key_1), ("0", Qt.Key.Key_0)):
        key(window, qtbot, Qt.Key.Key_Tab)
        key(window, qtbot, index)
        assert window.document.contents.decisions[-1].subject.label == digit


def test_correlated_votes_can_be_down_weighted(window, qtbot, tmp_path):
    """Two people, each under six names."""
    _, answers = votes()
    with Study.create(tmp_path / "copies.rscope") as study:
        add_votes(study, table(tmp_path, np.tile(answers[:, :2], 6)))
    window.open_paths([tmp_path / "copies.rscope"])
    qtbot.waitUntil(lambda: window.workspace is not None and window.workspace.session.shown)
    idle(window, qtbot)
    workspace = window.workspace
    workspace.fuse_panel.algorithm.choose("ibcc")
    fuse(window, qtbot)
    sure = doubts(workspace).min()
    assert workspace.method_table.in_part.isVisible()
    workspace.method_table.in_part.click()
    fuse(window, qtbot)
    assert workspace.session.scene.fusion.power < 0.6
    assert doubts(workspace).min() > sure
    assert not workspace.method_table.in_part.isVisible()


def test_later_truths_measure_a_result_everywhere(fused, qtbot, tmp_path):
    workspace, truth = fused.workspace, votes()[0]
    before = workspace.session.analysis.model.judged
    late = tmp_path / "late.csv"
    rows = "\n".join(f"cell-{n:03},{CLASSES[truth[n]]}" for n in range(1, TASKS, 3))
    late.write_text(f"task,truth\n{rows}\n", encoding="utf-8")
    fused.open_paths([late])
    qtbot.waitUntil(lambda: workspace.session.analysis.model.judged > before, timeout=LONG)
    idle(fused, qtbot)
    assert workspace.session.analysis.model.judged == 2 * before
    assert workspace.method_table.table.header.text()[1] == f"{2 * before} known tasks"
    workspace.tasks.select(workspace.session.scene.number_of["cell-001"])
    assert f"Ground truth: {CLASSES[truth[1]]}" in workspace.task_panel._sentence.text()
    path = fused.document.contents.path
    fused.document.close()
    idle(fused, qtbot)
    with Study.open(path) as study:
        answered = read_answer(study, study.questions()[0])
    assert (answered.question.truth != OPEN).sum() == 2 * before


def test_the_keys_are_the_screens_before_anything_is_fused_and_after(opened, qtbot):
    workspace = opened.workspace
    opened.activateWindow()
    workspace.setFocus()
    assert workspace.canvas.isAncestorOf(workspace.focusWidget())
    qtbot.keyClick(workspace.focusWidget(), Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: bool(opened.document.contents.runs), timeout=LONG)
    idle(opened, qtbot)
    assert workspace.focusWidget() is workspace.wall.tiles
    assert opened.focusWidget() is workspace.wall.tiles


@pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)
def test_digits_beyond_the_classes_and_letters_elsewhere_decide_nothing(fused, qtbot):
    fused.activateWindow()
    qtbot.waitUntil(fused.isActiveWindow)
    fused.workspace.queue.view.setFocus()
    menu = fused.menus.menu
    menu.popup(fused.mapToGlobal(fused.rect().topLeft()))
    qtbot.waitUntil(menu.isVisible)
    QTest.keyClick(menu.windowHandle(), Qt.Key.Key_1)  # as the window system brings it
    menu.close()
    idle(fused, qtbot)
    assert not (fused.workspace.tasks.decided != OPEN).any()

    key(fused, qtbot, Qt.Key.Key_X)
    assert "Select an annotator" in fused.status.message
    fused.menus.workspace_chosen.emit("pairs")
    assert "Select an annotator" not in fused.status.message
    fused.menus.workspace_chosen.emit("labels")
    idle(fused, qtbot)
    key(fused, qtbot, Qt.Key.Key_3)
    key(fused, qtbot, Qt.Key.Key_1, fused.workspace.queue.filter)
    assert not fused.document.contents.decisions
    qtbot.waitUntil(lambda: all("1" in name for name in queue(fused)), timeout=LONG)


def test_a_run_shows_the_weight_of_a_vote(fused, qtbot):
    workspace = fused.workspace
    workspace.method_table.in_part.click()
    fuse(fused, qtbot)
    figure = f"{workspace.session.scene.fusion.power:.2g}"
    rows = workspace.method_table.table._model.rows
    assert [f"vote weight {figure}" in row.text for row in rows] == [False, True, False]


def test_classes_in_another_order_and_a_prior_are_kept_with_the_question(fused, qtbot):
    workspace = fused.workspace
    workspace.describe.click()
    dialog = workspace.findChild(AnswersDialog)
    dialog.classes.setCurrentRow(1)
    dialog._move_class(-1)
    dialog.accept()
    idle(fused, qtbot)
    (question,) = fused.document.contents.of("labels")
    assert question.scheme.classes == ("infected", "healthy")
    assert question.scheme.meaning == (1, 0)
    fuse(fused, qtbot)
    truth, _ = votes()
    assert (workspace.session.scene.fusion.label() == 1 - truth).mean() > 0.9


def test_a_task_that_is_passed_over_comes_last_when_the_queue_is_sorted_again(fused, qtbot):
    workspace = fused.workspace
    first = task_on_screen(fused)
    key(fused, qtbot, Qt.Key.Key_S)
    assert task_on_screen(fused) != first
    workspace.queue.filter_changed.emit("", "all")
    idle(fused, qtbot)
    assert queue(fused)[-1] == first


def test_pictures_of_tasks_are_shown_if_files_exist_and_again_after_moved_files_are_found(
    fused, qtbot, tmp_path
):
    workspace = fused.workspace
    shown = workspace.session.scene.number_of["cell-004"]
    workspace.tasks.select(shown)
    qtbot.waitUntil(lambda: workspace.pictures.get(shown) is not None, timeout=LONG)
    assert workspace.pictures.get(shown).width() == 40
    assert workspace.pictures.get(workspace.session.scene.number_of["cell-005"]) is None
    moved, without = (workspace.session.scene.number_of[f"cell-{number:03}"] for number in (6, 7))
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (tmp_path / "cell-006.png").rename(folder / "cell-006.png")
    assert workspace.pictures.get(moved) is None
    qtbot.waitUntil(lambda: workspace.pictures.lacks(moved), timeout=LONG)
    assert workspace.pictures.lacks(without)
    job = fused.document.ask(
        "Looking for images", lambda study, _: len(study.relocate_all(folder)), changes=True
    )
    with qtbot.waitSignal(job.finished, timeout=LONG) as signal:
        pass
    assert signal.args == [1]
    idle(fused, qtbot)
    qtbot.waitUntil(lambda: workspace.pictures.get(moved) is not None, timeout=LONG)


def test_an_old_run_is_shown_as_it_was_and_a_closed_study_not_at_all(fused, qtbot):
    workspace = fused.workspace
    workspace.fuse_panel.algorithm.choose("majority")
    fuse(fused, qtbot)
    assert workspace.session.scene.run.algorithm == "majority"
    fused.activateWindow()
    qtbot.waitUntil(fused.isActiveWindow)
    workspace.toggle_fuse_panel()
    idle(fused, qtbot)
    workspace.close_fuse_panel()
    idle(fused, qtbot)
    assert workspace.session.scene.run.algorithm == "majority"
    assert workspace.core.session.chosen_run is None

    workspace.runs.choose(fused.document.contents.runs[0].id)
    idle(fused, qtbot)
    assert workspace.session.scene.run.algorithm == "pooled"
    fused.document.close()
    idle(fused, qtbot)
    assert not workspace.session.shown
    assert workspace.tasks.current is None


def test_blind_a_task_gives_nothing_away_until_it_is_decided(fused, qtbot):
    workspace = fused.workspace
    key(fused, qtbot, Qt.Key.Key_H)
    task = workspace.tasks.current
    assert not workspace.task_panel.votes.isVisible()
    assert "posterior" not in workspace.queue.view.lines[0].detail
    assert all(line.score is None for line in workspace.queue.view.lines)
    key(fused, qtbot, Qt.Key.Key_1)
    workspace.tasks.select(task)
    idle(fused, qtbot)
    assert len(workspace.task_panel.votes.lines) == 12
    key(fused, qtbot, Qt.Key.Key_H)
    assert workspace.task_panel.votes.isVisible()


def test_without_truths_results_of_comparable_crowds_are_shown(window, qtbot, tmp_path):
    path = tmp_path / "unknown.rscope"
    with Study.create(path) as study:
        add_votes(study, table(tmp_path, votes()[1]))
    opened = open_study(window, qtbot, path)
    fuse(opened, qtbot)
    trust = opened.workspace.trust
    qtbot.waitUntil(lambda: bool(trust.text), timeout=LONG)
    assert "no task has a known truth" in trust.text
    assert "On the nearest crowd measured (" in trust.text
    assert "mistakes that many annotators share" in trust.text
    assert not opened.workspace.queue.doubt.isVisible()


def test_status_line_and_empty_views_name_what_is_read_while_the_screen_is_empty(fused, qtbot):
    path, statuses, empty = fused.document.contents.path, [], set()

    def visible_texts():
        return {label.text() for label in fused.workspace.findChildren(QLabel) if label.isVisible()}

    fused.workspace.status_changed.connect(statuses.append)
    fused.workspace.status_changed.connect(lambda _: empty.update(visible_texts()))
    fused.files.close_study()
    idle(fused, qtbot)
    fused.files.open_study(path)
    idle(fused, qtbot)
    shown = [words for words in statuses if words]
    assert shown[:2] == ["Reading votes…", "Analysing votes…"]
    assert fused.status.text.text() == shown[-1]
    assert "run 1" in shown[-1]
    assert any(text.startswith("Reading votes…") for text in empty)
    assert not any("…" in text and "votes" in text for text in visible_texts())
    del statuses[:]
    fused.workspace.navigation.read_again()  # the screen is not empty meanwhile
    idle(fused, qtbot)
    assert not any("…" in words for words in statuses)


def test_a_decided_task_leaves_the_list_of_undecided_ones_until_undo(fused, qtbot):
    workspace = fused.workspace
    before = workspace.queue.order.tolist()
    task = workspace.tasks.current
    key(fused, qtbot, Qt.Key.Key_1)
    idle(fused, qtbot)
    assert workspace.queue.order.tolist() == [other for other in before if other != task]
    assert workspace.tasks.current in workspace.queue.order
    key(fused, qtbot, Qt.Key.Key_Z)
    idle(fused, qtbot)
    assert workspace.queue.order.tolist() == before
    assert workspace.tasks.current == task
