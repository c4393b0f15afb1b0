"""The pairs workspace: fuse, move the cut, view the evidence, flag and clear, correct the ranking."""

import time

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QCheckBox, QLabel, QMenu

from raterscope.algorithms.pairs.catalogue import PairPlan, fuse
from raterscope.algorithms.pairs.data import BEHAVIOURS
from raterscope.algorithms.pairs.evidence import match_ratios
from raterscope.algorithms.pairs.wins import count_wins
from raterscope.app.formats.records import PairTable
from raterscope.app.kinds.pairs.runs import apply_decisions, fuse_inputs, gather, keep, read_answer
from raterscope.app.review import BiasSubject, Decision
from raterscope.app.study import Study
from raterscope.app.study.pairs import add_pairs
from raterscope.app.workspaces.pairs import bias_review
from raterscope.app.workspaces.run_history import run_lines
from raterscope.text import percent
from raterscope.widgets.dialogs.review_dialogs import ReasonDialog
from tests.app.driving import LONG, idle, open_study, press
from tests.app.workspaces.pairs.driving import exclude_flagged, key
from tests.app.workspaces.pairs.made import BIASED, ITEMS, PEOPLE, crowd


def promised(workspace):
    return "\n".join(label.toolTip() or label.text() for label in workspace.bars.findChildren(QLabel))


def judge(window, qtbot, name, reason):
    key(window, qtbot, name)
    dialog = window.workspace.findChild(ReasonDialog)
    dialog.edit.setText(reason)
    dialog.accept()
    idle(window, qtbot)


def test_a_study_of_pairs_opens_on_its_annotators_as_not_fused(opened):
    assert len(opened.workspace.queue.view.lines) == PEOPLE
    assert "10 items" in opened.status.text.text()
    assert "not fused yet" in opened.status.text.text()
    # An annotator is shown already: without a choice there is no evidence.
    for empty in (opened.workspace.evidence.over_time, opened.workspace.evidence.pairs):
        assert empty._nothing.text().startswith("Press Fuse (F5)")


def test_a_fusion_flags_the_biased_and_shows_the_evidence_and_how_far_to_trust_it(fused, qtbot):
    workspace = fused.workspace
    assert np.flatnonzero(workspace.flagged).tolist() == list(range(BIASED))
    assert workspace.rate_cut.ranking.after.tolist() == list(range(1, ITEMS + 1))
    assert "12 flagged at a rate of 0.10" in fused.status.text.text()

    assert workspace.trust.text == ""
    workspace.left_tabs.setCurrentWidget(workspace.trust)
    qtbot.waitUntil(lambda: bool(workspace.trust.text), timeout=LONG)
    assert "With the sides of these comparisons drawn again 20 times" in workspace.trust.text
    assert workspace.trust.plot.table().columns == ("method", "p value", "share below", "cases")
    assert not workspace.queue.doubt.isVisible()

    fusion = workspace.session.scene.fusion
    workspace.choose(20)
    idle(fused, qtbot)
    shown = [label.text() for label in workspace.evidence.findChildren(QLabel) if label.text()]
    assert "smallest detectable bias" in shown
    reached = fusion.detectable[20]
    assert (f"{reached:.2f}" if np.isfinite(reached) else "none: too few answers") in shown
    assert any(text.startswith(("p = ", "p < ")) and ", q " in text for text in shown)
    assert BEHAVIOURS[fusion.behaviour[20]] in shown
    pairs = crowd()
    workspace.choose(0)
    idle(fused, qtbot)
    mine = pairs.choice[pairs.annotator == 0]
    assert (int(workspace.session.analysis.left[0]), int(workspace.session.analysis.right[0])) == (
        int((mine > 0).sum()),
        int((mine < 0).sum()),
    )
    assert workspace.session.scene.fusion.bias[0] > 0.5
    text = workspace._evidence.all
    assert (text.left, text.right) == (int((mine > 0).sum()), int((mine < 0).sum()))


def test_the_first_fusion_selects_the_most_disputed_and_a_later_one_keeps_the_selection(opened, qtbot):
    workspace = opened.workspace
    assert workspace.queue.current == 0  # so that something is seen
    workspace.choose(30)
    for run in (1, 2):
        key(opened, qtbot, Qt.Key.Key_F5)
        qtbot.waitUntil(lambda run=run: len(opened.document.contents.runs) == run, timeout=LONG)
        idle(opened, qtbot)
        assert workspace.queue.current == (workspace.queue.view.lines[0].key if run == 1 else 20)
        workspace.choose(20)


def test_a_rate_without_guarantee_is_reported(opened, qtbot):
    opened.workspace.fuse_panel.algorithm.choose(
        "iss", PairPlan.make("iss", {"rule": "knockoffs", "plus": "no"}).settings
    )
    key(opened, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: opened.workspace.rate_cut.ranking is not None, timeout=LONG)
    assert "the rate is not guaranteed: the plain knockoff keeps the rate only approximately" in promised(
        opened.workspace
    )


def test_another_rate_moves_the_cut_and_has_the_detectable_biases_of_a_run_at_that_rate(fused, qtbot):
    workspace = fused.workspace
    fusion = workspace.session.scene.fusion
    workspace.bars.slider.setValue(25)
    qtbot.waitUntil(lambda: workspace.rate_cut.cut.rate == 0.25, timeout=LONG)
    assert workspace.flagged.tolist() == (fusion.q_value <= 0.25).tolist()
    assert "at most 25 % of them wrongly; files and report are at 0.10" in promised(workspace)
    assert not workspace.bars.modes.isVisible()
    assert workspace.bars.figure.table().columns[2] == "q value"
    order = [line.key for line in workspace.queue.view.lines[:]]
    assert (np.diff(fusion.p_value[order]) >= 0).all()  # the strongest evidence first
    before = fusion.detectable
    workspace.bars.slider.setValue(1)
    expected = fuse(workspace.session.scene.pairs, PairPlan.make("iss", {"rate": "0.01"}))
    assert not np.array_equal(expected.detectable, before, equal_nan=True)
    qtbot.waitUntil(
        lambda: np.allclose(workspace.rate_cut.cut.detectable, expected.detectable, equal_nan=True),
        timeout=LONG,
    )
    assert workspace.rate_cut.cut.decidable.tolist() == expected.decidable.tolist()
    workspace.choose(20)
    idle(fused, qtbot)
    shown = [label.text() for label in workspace.evidence.findChildren(QLabel) if label.text()]
    assert f"{expected.detectable[20]:.2f}" in shown
    workspace.bars.slider.setValue(10)
    qtbot.waitUntil(lambda: workspace.rate_cut.cut.rate == 0.1, timeout=LONG)
    assert np.array_equal(workspace.rate_cut.cut.detectable, before, equal_nan=True)


def test_the_slider_moves_the_cut_at_once_and_without_another_run(opened, qtbot, monkeypatch):
    knockoffs = PairPlan.make("iss", {"rule": "knockoffs"}).settings
    opened.workspace.fuse_panel.algorithm.choose("iss", knockoffs)
    key(opened, qtbot, Qt.Key.Key_F5)
    workspace, started = opened.workspace, []
    qtbot.waitUntil(lambda: workspace.rate_cut.ranking is not None, timeout=LONG)
    idle(opened, qtbot)
    cut, start = workspace.rate_cut, workspace.rate_cut._start_ranking
    with monkeypatch.context() as patch:
        patch.setattr(cut, "_start_ranking", lambda flagged: started.append(flagged) or start(flagged))
        patch.setattr(bias_review, "REPEATED", 10.0)
        cut._changed = time.monotonic() - 20.0
        cut.detected.emit()
        workspace.bars.slider.setValue(1)
        assert len(started) == 1
        workspace.bars.slider.setValue(10)  # soon after the flags changed: once they rest
        assert len(started) == 1
        qtbot.waitUntil(lambda: len(started) == 2, timeout=LONG)
        idle(opened, qtbot)

    workspace.queue.choice.setCurrentIndex(workspace.queue.choice.findData("flagged"))
    assert len(workspace.queue.view.lines) == BIASED
    workspace.bars.slider.setValue(1)
    qtbot.waitUntil(lambda: workspace.rate_cut.cut.rate == 0.01, timeout=LONG)
    idle(opened, qtbot)
    assert not workspace.flagged.any()  # knockoff+ cannot flag fewer than 1 / 0.01
    assert "at this rate fewer than 100 annotators cannot be flagged" in promised(workspace)
    assert "files and report are at 0.10" in promised(workspace)
    table, fusion = workspace.ranking_table, workspace.session.scene.fusion
    assert table.model.rows is None  # the hidden table follows when it is shown
    workspace.middle_tabs.setCurrentWidget(table)
    assert table.model.rows.names == [f"cell {n}" for n in np.argsort(-fusion.score)]
    scores = [f"{score:.2f}".replace("-", "−") for score in -np.sort(-fusion.score)]
    assert [row[1].split()[0] for row in table.model.rows.cells] == scores
    assert len(opened.document.contents.runs) == 1
    qtbot.waitUntil(lambda: not workspace.queue.view.lines, timeout=LONG)
    qtbot.waitUntil(lambda: (workspace.rate_cut.ranking.before == workspace.rate_cut.ranking.after).all())
    workspace.choose(20)
    idle(opened, qtbot)  # the share of agreeing answers follows the ranking
    agreeing, crowd_agreeing = match_ratios(workspace.session.scene.pairs, fusion.score)
    shown = [label.text() for label in workspace.evidence.findChildren(QLabel)]
    expected = f"{percent(agreeing[20])}, crowd {percent(crowd_agreeing)}"
    assert any(text.startswith(expected) for text in shown), (expected, shown)


@pytest.mark.qt_log_ignore("This plugin does not support")  # of menus, of itself
def test_the_context_menu_of_an_annotator_offers_the_decisions(fused, qtbot):
    queue = fused.workspace.queue
    point = queue.view.visualRect(queue.view.model().index(2, 0)).center()
    qtbot.mouseClick(queue.view.viewport(), Qt.RightButton, pos=point)
    queue.view.customContextMenuRequested.emit(point)
    assert queue.current == queue.view.lines[2].key
    (menu,) = (menu for menu in fused.workspace.findChildren(QMenu) if menu.isVisible())
    by_words = {action.text(): action for action in menu.actions()}
    by_words["Copy the name"].trigger()
    assert f"Annotator {QGuiApplication.clipboard().text()}" in by_words
    by_words["Skip"].trigger()
    idle(fused, qtbot)
    skipped = fused.document.contents.decisions[-1]
    assert (skipped.verb, skipped.subject.annotator) == ("skip", QGuiApplication.clipboard().text())
    menu.close()


def test_after_decisions_the_window_shows_what_is_exported(window, qtbot, tmp_path):
    pairs, path = crowd(), tmp_path / "noisy.rscope"
    noise = np.random.default_rng(3).choice([-1.0, 1.0], len(pairs.choice))  # so that ranks depend on biases
    with Study.create(path) as study:
        add_pairs(
            study,
            PairTable(
                path, "Which is worse?", pairs.annotators, pairs.items, pairs.annotator, pairs.left,
                pairs.right, np.where(pairs.annotator < BIASED, pairs.choice, noise), pairs.time,
            ),
        )  # fmt: skip
        inputs = gather([question.id for question in study.pair_questions()], study)
        keep(fuse_inputs(inputs, PairPlan()), study)
        (question,) = study.pair_questions()
        flagged = np.flatnonzero(read_answer(study, question).fusion.flagged).tolist()
        for at in flagged[2:]:
            subject = BiasSubject(annotator=pairs.annotators[at])
            study.record(Decision(verb="clear", item=question.id, subject=subject, reason="seen"))
    fused = open_study(window, qtbot, path)
    workspace = fused.workspace
    assert np.flatnonzero(workspace.flagged).tolist() == flagged[:2]
    for annotator, verb in (*((at, Qt.Key.Key_C) for at in flagged[:2]), (30, Qt.Key.Key_F)):
        workspace.choose(annotator)
        idle(fused, qtbot)
        judge(fused, qtbot, verb, "seen")
    with Study.open(fused.document.contents.path, to_read=True) as study:
        exported = apply_decisions(study, read_answer(study, question))
    stored = workspace.session.scene.fusion
    changed = int(np.argmax(abs(exported.match - stored.match)))
    assert percent(exported.match[changed]) != percent(stored.match[changed])
    workspace.choose(changed)
    idle(fused, qtbot)
    shown = [label.text() for label in workspace.evidence.findChildren(QLabel)]
    assert any(text.startswith(f"{percent(exported.match[changed])}, crowd") for text in shown)
    behaviour = workspace._behaviour(workspace.session.scene, workspace.session.analysis)
    assert behaviour.tolist() == exported.behaviour.tolist()
    assert {BEHAVIOURS[behaviour[at]] for at in flagged} == {"good"}


def test_excluding_the_flagged_is_one_decision_and_the_next_fusion_lists_them(fused, qtbot):
    workspace = fused.workspace
    before = workspace.rate_cut.ranking.after
    summary, changes = exclude_flagged(fused, qtbot)
    assert set(fused.document.contents.review.excluded) == {f"ann {n:02}" for n in range(BIASED)}
    assert len(fused.document.contents.decisions) == 1
    assert fused.document.contents.decisions[0].reason == "biased to a side"
    fused.menus.undo_action.trigger()
    idle(fused, qtbot)
    assert not fused.document.contents.review.excluded
    fused.menus.redo_action.trigger()
    idle(fused, qtbot)
    key(fused, qtbot, Qt.Key.Key_X)
    assert "already excluded" in fused.status.message
    assert "Different annotators are excluded" in workspace.fuse_panel._changes.text()
    assert [line.stale for line in run_lines(fused.document.contents, "pairs", None)] == [True]
    workspace.fuse_panel.algorithm.choose("lasso")
    key(fused, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(fused.document.contents.runs) == 2, timeout=LONG)
    idle(fused, qtbot)
    assert workspace.session.scene.run.algorithm == "lasso"
    assert len(workspace.session.scene.pairs) == len(crowd()) * (PEOPLE - BIASED) // PEOPLE
    after = workspace.rate_cut.ranking.after
    moved = {workspace.session.scene.pairs.items[at] for at in np.flatnonzero(before != after)}
    assert {change.name for change in changes} == moved
    assert summary == f"Would change {len(moved) or 'none'} of {ITEMS} ranks"
    assert f"{PEOPLE - BIASED}" in [label.text() for label in workspace.queue.findChildren(QLabel)]
    assert any("took no part" in notice for notice in workspace.session.scene.fusion.notices)
    assert workspace.fuse_panel._changes.text() == ""
    assert [line.title for line in run_lines(fused.document.contents, "pairs", None)] == [
        "LASSO", "inverse scale space",
    ]  # fmt: skip
    assert workspace.history.view.lines[0].text == "fuse LASSO, 1 question"


def test_an_excluded_annotator_is_no_longer_flagged(fused, qtbot):
    workspace = fused.workspace
    fused.resize(948, 498)  # the preview fits a screen of 960 x 540
    key(fused, qtbot, Qt.Key.Key_X)
    exclusions = workspace.bias_review.exclusions
    qtbot.waitUntil(lambda: exclusions.dialog.panel.state == "shown", timeout=LONG)
    assert exclusions.dialog.height() <= 498
    exclusions.dialog.panel.cancelled.emit()
    idle(fused, qtbot)
    workspace.choose(3)
    idle(fused, qtbot)
    judge(fused, qtbot, Qt.Key.Key_F, "always chooses one side")
    workspace.choose(3)
    exclude_flagged(fused, qtbot)
    key(fused, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(fused.document.contents.runs) == 2, timeout=LONG)
    idle(fused, qtbot)
    assert not workspace.flagged.any()
    assert workspace.queue.current == workspace.queue.view.lines[0].key  # who was looked at took no part
    assert "0 flagged at a rate of 0.10" in fused.status.text.text()

    workspace.queue.filter_changed.emit("", "all")
    idle(fused, qtbot)
    excluded = [line for line in workspace.queue.view.lines[:] if line.detail.startswith("excluded: ")]
    assert [line.title for line in excluded] == [f"ann {n:02}" for n in range(BIASED)]
    workspace.choose(3)
    idle(fused, qtbot)
    assert "do not count in this run" in workspace.evidence._sentence.text()
    assert not excluded[3].detail.startswith("excluded: 0 left")
    press(fused, qtbot, Qt.Key.Key_X, Qt.KeyboardModifier.ShiftModifier, on=workspace.queue.view)
    idle(fused, qtbot)
    assert "ann 03" not in fused.document.contents.review.excluded


def test_comparisons_are_listed_and_shown_and_the_queue_is_narrowed(fused, qtbot):
    workspace = fused.workspace
    workspace.middle_tabs.setCurrentWidget(workspace.ranking_table)
    model = workspace.ranking_table.model
    texts = [[model.index(row, column).data() for column in range(7 + ITEMS)] for row in range(ITEMS)]
    assert [row[1] for row in texts] == [f"cell {n}" for n in range(ITEMS)]
    wins = count_wins(crowd())
    assert [int(row[3]) for row in texts] == wins.won.sum(axis=1).tolist()
    assert texts[0][7 + 9] == f"{100 * wins.share()[0, 9]:.0f} %"
    workspace.ranking_table.view.clicked.emit(model.index(0, 7 + 9))
    assert workspace.comparisons._view.name == "cell 0 and cell 9"

    before = workspace.middle_tabs.currentIndex()
    key(fused, qtbot, Qt.Key.Key_D)
    idle(fused, qtbot)
    assert workspace.middle_tabs.currentWidget() is workspace.content
    text = workspace.content.texts.toPlainText()
    assert "A: cell" in text
    assert ", preferred" in text
    key(fused, qtbot, Qt.Key.Key_H)
    idle(fused, qtbot)
    assert workspace.contents._content.name.startswith("annotator ")
    key(fused, qtbot, Qt.Key.Key_H)
    idle(fused, qtbot)
    assert workspace.contents._content.name.startswith("ann ")
    workspace.content.back.click()
    assert workspace.middle_tabs.currentIndex() == before

    workspace.queue.filter_changed.emit("", "flagged")
    assert len(workspace.queue.view.lines) == BIASED
    workspace.queue.filter_changed.emit("ann 3", "all")
    assert {line.title for line in workspace.queue.view.lines[:]} == {f"ann 3{n}" for n in range(10)}
    workspace.queue.filter_changed.emit("ann 03", "all")
    workspace.choose(3)
    key(fused, qtbot, Qt.Key.Key_Tab)
    idle(fused, qtbot)
    assert "Clear the filter to see all 4" in fused.status.message
    workspace.ranking.pair_chosen.emit(0, 1)
    assert workspace.left_tabs.currentWidget() is workspace.comparisons


def test_cleared_annotators_leave_the_list_until_undo_and_flagged_ones_change_the_ranking(fused, qtbot):
    workspace = fused.workspace
    assert workspace.queue.choice.currentData() == "undecided"
    below = [workspace.queue.view.lines[row].key for row in (2, 3)]
    workspace.choose(below[0])
    idle(fused, qtbot)
    assert workspace.flagged[below[0]]
    judge(fused, qtbot, Qt.Key.Key_C, "the sides of the items explain it")
    assert not workspace.flagged[below[0]]
    decision = fused.document.contents.review.judged(workspace.session.scene.question.id)[
        f"ann {below[0]:02}"
    ]
    assert (decision.verb, decision.reason) == ("clear", "the sides of the items explain it")
    assert "fuse" not in workspace.fuse_panel._changes.text()  # nothing has to be fitted again
    assert [line.stale for line in run_lines(fused.document.contents, "pairs", None)] == [False]
    assert workspace.queue.current == below[1]
    assert len(workspace.queue.view.lines) == PEOPLE - 1
    assert below[0] not in [line.key for line in workspace.queue.view.lines[:]]
    fused.menus.undo_action.trigger()
    idle(fused, qtbot)
    assert workspace.flagged[below[0]]
    assert workspace.queue.current == below[0]
    assert len(workspace.queue.view.lines) == PEOPLE

    workspace.choose(30)
    idle(fused, qtbot)
    before = workspace.rate_cut.ranking
    judge(fused, qtbot, Qt.Key.Key_F, "answers without looking")
    assert workspace.flagged[30]
    assert int(workspace.flagged.sum()) == BIASED + 1
    after = workspace.rate_cut.ranking
    assert not np.array_equal(after.corrected.score, before.corrected.score)
    assert after.corrected.score == pytest.approx(before.corrected.score, abs=0.1)  # one of many


def test_f6_cycles_through_the_regions_a_small_window_scrolls_and_a_closed_study_leaves_nothing(fused, qtbot):
    workspace = fused.workspace
    fused.activateWindow()
    qtbot.waitUntil(fused.isActiveWindow)
    workspace.queue.filter.setFocus()
    focused = []
    for _ in range(5):
        workspace.go_to_region(1)
        focused.append(fused.focusWidget())
    assert focused[0] is workspace.bars.figure
    assert any(workspace.ranking.isAncestorOf(widget) for widget in focused)
    assert any(workspace.queue.isAncestorOf(widget) for widget in focused)

    fused.resize(1000, 600)
    key(fused, qtbot, Qt.Key.Key_Tab)
    idle(fused, qtbot)
    labels = [label for label in fused.workspace.evidence.findChildren(QLabel) if label.isVisible()]
    assert "smallest detectable bias" in {label.text() for label in labels}
    assert all(label.height() >= label.fontMetrics().height() for label in labels if label.text())
    flag = fused.workspace.evidence.flag
    assert flag.visibleRegion().boundingRect() == flag.rect()

    fused.document.close()
    idle(fused, qtbot)
    assert not workspace.session.shown
    assert workspace.queue.current is None


def test_runs_are_compared_by_flags_and_an_earlier_one_is_shown_again(fused, qtbot):
    workspace = fused.workspace
    exclude_flagged(fused, qtbot)
    key(fused, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(fused.document.contents.runs) == 2, timeout=LONG)
    idle(fused, qtbot)
    workspace.toggle_fuse_panel()
    for box in workspace.fuse_panel.runs.findChildren(QCheckBox):
        box.setChecked(True)
    workspace.fuse_panel.runs.compare.click()
    assert workspace.left_tabs.currentWidget() is workspace.methods
    model = workspace.methods.view.model()
    qtbot.waitUntil(lambda: model.rowCount() == 3, timeout=LONG)

    def rows():
        return [[model.index(row, column).data() for column in range(5)] for row in range(3)]

    now, before, test = rows()
    assert now[0].endswith("shown")
    assert now[1:] == ["0", "0", "0", "0"]
    assert before[1:] == [str(BIASED), str(BIASED), "0", "0"]
    assert "q = 0.10" in before[0]
    assert test[0].startswith("t test")
    workspace.methods.view.selectRow(1)
    qtbot.waitUntil(lambda: workspace.session.scene.run.id == 1, timeout=LONG)
    idle(fused, qtbot)
    qtbot.waitUntil(lambda: rows()[1][0].endswith("shown"), timeout=LONG)
    assert rows()[0][1:4] == ["0", "0", str(BIASED)]  # flagged by the run shown, not by the other know


def test_marking_annotators_of_pairs_as_programs_notes_that_fusions_ignore_it(fused, qtbot):
    fused.show_workspace("annotators")
    idle(fused, qtbot)
    qtbot.waitUntil(lambda: fused.workspace.prepared is not None)
    idle(fused, qtbot)
    table = fused.workspace.table
    table.select(("ann 01",))
    press(fused, qtbot, Qt.Key.Key_M, on=table.view)
    assert fused.document.contents.review.programs == {"ann 01"}
    assert "Fusions of pairs do not use this mark" in fused.status.message
    press(fused, qtbot, Qt.Key.Key_M, on=table.view)
    assert not fused.document.contents.review.programs
    assert "do not use" not in fused.status.message
