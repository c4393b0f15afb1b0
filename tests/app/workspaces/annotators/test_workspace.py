"""The workspace of annotators: table, filter, card, and decisions for all kinds."""

import time

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics, QImage
from PySide6.QtWidgets import QFileDialog, QWidget

from raterscope.algorithms.progress import Cancelled
from raterscope.app.annotator_evidence import Consequences
from raterscope.app.cli.program import main
from raterscope.app.errors import InputError
from raterscope.app.review import Decision, WeightSubject
from raterscope.app.study import Study
from raterscope.app.workspaces import annotator_decisions
from raterscope.app.workspaces.annotator_decisions import Preview
from raterscope.app.workspaces.annotators.view import card
from raterscope.widgets import theme
from tests.app.driving import idle, open_study, press


def listed(window) -> list[str]:
    model = window.workspace.table.model
    return [model.grid.keys[row] for row in model.order.tolist()]


def read_again(window, qtbot, before) -> None:
    qtbot.waitUntil(lambda: window.workspace.prepared is not before)
    idle(window, qtbot)


def test_the_table_is_filtered_sorted_and_described_and_the_card_has_all_kinds(annotators, qtbot):
    workspace = annotators.workspace
    assert sorted(listed(annotators)) == ["Anna K.", "anna", "ben", "cleo", "dan", "eve"]
    assert not annotators.bar.fuse.isVisible()
    workspace.table.select(("anna",))
    idle(annotators, qtbot)
    view = card(workspace.prepared, ("anna",))
    assert [line.title for line in view.lines if line.heading] == ["Clicks", "Masks", "Labels", "Pairs"]
    assert [line.texts for line in workspace.card.lines.lines] == [line.texts for line in view.lines]
    qtbot.waitUntil(lambda: workspace.course.filled)
    titles = [workspace.course.choice.itemText(at) for at in range(workspace.course.choice.count())]
    assert titles[0] == "clicks: sensitivity"
    assert "labels: right votes" in titles

    workspace.table.select(("ben", "cleo"))
    idle(annotators, qtbot)
    view = card(workspace.prepared, workspace.table.selected)
    assert view.names == ("ben", "cleo")
    assert all(len(line.texts) == 2 for line in view.lines)
    qtbot.waitUntil(lambda: len(workspace.course.describe().legend) == 2)

    table = annotators.workspace.table
    table.filter.setText("ann")
    assert sorted(listed(annotators)) == ["Anna K.", "anna"]
    table.filter.setText("accuracy < .6 and votes >= 50")
    assert listed(annotators) == ["eve"]
    table.filter.setText("accuracy <")
    assert listed(annotators) == ["eve"]
    assert "Expected a value" in table._problem.text()
    table.filter.setText("")
    assert len(listed(annotators)) == 6

    model = workspace.table.model
    role = Qt.ItemDataRole.AccessibleTextRole
    row = model.row_of("cleo")
    texts = [str(model.data(model.index(row, at), role)) for at in range(model.columnCount())]
    assert "annotator cleo" in texts[0]
    assert any(text.startswith("masks bias +") for text in texts)
    assert any(text == "labels change unknown" for text in texts)

    workspace.table.setFocus()
    visited: list[QWidget | None] = []
    for _ in range(4):
        press(annotators, qtbot, Qt.Key.Key_F6, on=annotators.focusWidget())
        visited.append(workspace.region_of(annotators.focusWidget()))
    assert len({id(region) for region in visited}) >= 3

    names = [column.name for column in table.model.grid.columns]
    for order in (Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder):
        table.view.sortByColumn(names.index("masks_bias_mm"), order)
        values = table.model.grid.columns[names.index("masks_bias_mm")].values[table.model.order]
        known = values[np.isfinite(values)]
        assert np.isfinite(values[: len(known)]).all()
        rising = known if order == Qt.SortOrder.AscendingOrder else known[::-1]
        assert (np.diff(rising) >= 0).all()

    for leave in (Qt.Key.Key_Escape, Qt.Key.Key_Return, Qt.Key.Key_Down):
        table.select(())
        table.filter.clear()
        qtbot.keyClicks(table.filter, "cleo")
        press(annotators, qtbot, leave, on=table.filter)
        assert table.view.hasFocus()
        press(annotators, qtbot, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier, on=table.view)
        assert table.selected == ("cleo",)
        assert table.filter.text() == "cleo"
    table.filter.clear()


def test_a_cancelled_preview_leaves_the_choice_and_exclusions_and_weights_are_undone_for_all_kinds(
    annotators, qtbot, monkeypatch
):
    workspace, document, stopped = annotators.workspace, annotators.document, []

    def endless(names, weight, study, watch):
        try:
            while True:
                watch(0.4, "fitting")
                time.sleep(0.01)
        except Cancelled:
            stopped.append(names)
            raise

    with monkeypatch.context() as patch:
        patch.setattr(annotator_decisions, "preview_change", endless)
        workspace.table.select(("eve", "dan"))
        workspace.decisions.exclude()
        panel = workspace.decisions.dialog.panel
        qtbot.waitUntil(lambda: panel._label.text() == "fitting" and panel._bar.value() == 400)
        assert panel._cancel.isVisible()
        qtbot.mouseClick(panel._cancel, Qt.MouseButton.LeftButton)
        assert panel.state == "unknown"
        assert "cancelled" in panel._error.text()
        qtbot.waitUntil(lambda: stopped == [("eve", "dan")])
    idle(annotators, qtbot)
    assert panel.state == "unknown"
    assert not panel._summary.text()
    assert not panel.exclude.isEnabled()
    panel.reason.edit.setText("careless")
    assert panel.exclude.isEnabled()
    workspace.decisions.dialog.reject()
    assert not document.contents.decisions

    workspace.table.select(("eve", "dan"))
    press(annotators, qtbot, Qt.Key.Key_X, on=workspace.table.view)
    dialog = workspace.decisions.dialog
    qtbot.waitUntil(lambda: dialog.panel.state == "shown")
    summary = dialog.panel._summary.text()
    assert all(noun in summary for noun in ("detection", "label", "rank"))
    assert "voxel" not in summary
    dialog.panel.reason.edit.setText("careless")
    before = workspace.prepared
    dialog.panel.exclude.click()
    read_again(annotators, qtbot, before)
    assert document.contents.review.excluded == {"eve": "careless", "dan": "careless"}
    grid = workspace.table.model.grid
    assert {name for name, out in zip(grid.keys, grid.excluded, strict=True) if out} == {"eve", "dan"}
    assert sorted(listed(annotators)) == ["Anna K.", "anna", "ben", "cleo", "dan", "eve"]
    assert document.contents.stale >= {"clicks", "labels", "pairs"}
    before = workspace.prepared
    document.undo()
    read_again(annotators, qtbot, before)
    assert not document.contents.review.excluded
    assert not workspace.table.model.grid.excluded.any()

    workspace.table.select(("ben",))
    press(annotators, qtbot, Qt.Key.Key_W, on=workspace.table.view)
    dialog = workspace.decisions.dialog
    qtbot.waitUntil(lambda: dialog.panel.state == "shown")
    assert dialog.panel.weight == 0.5
    summary = dialog.panel._summary.text()
    assert all(noun in summary for noun in ("detection", "voxel", "label", "rank"))
    dialog.panel.reason.edit.setText("hasty")
    before = workspace.prepared
    dialog.panel.exclude.click()
    read_again(annotators, qtbot, before)
    assert document.contents.review.weights == {"ben": 0.5}
    assert document.contents.stale >= {"clicks", "masks", "labels", "pairs"}
    table = workspace.table
    (at,) = [at for at, column in enumerate(table.model.grid.columns) if column.name == "state"]
    assert "counts as ½: hasty" in table.model.grid.columns[at].values
    assert not table.view.isColumnHidden(at)
    annotators.resize(1280, 720)
    idle(annotators, qtbot)
    end = table.view.columnViewportPosition(at) + table.view.columnWidth(at)
    assert end <= table.view.viewport().width()
    words = QFontMetrics(theme.font()).horizontalAdvance("counts as ½: hasty")
    assert table.view.columnWidth(at) > words
    document.undo()
    qtbot.waitUntil(lambda: not document.contents.review.weights)
    idle(annotators, qtbot)


def test_x_restores_the_excluded_and_w_gives_full_weight_again(annotators, qtbot):
    workspace, document = annotators.workspace, annotators.document
    before = workspace.prepared
    document.record(Decision(verb="exclude", annotators=("eve",), reason="test account"))
    read_again(annotators, qtbot, before)
    workspace.table.select(("eve",))
    idle(annotators, qtbot)
    assert "excluded" in card(workspace.prepared, ("eve",)).subtitle
    qtbot.waitUntil(lambda: "Not fused without them yet" in workspace.card._sentence.text())
    before = workspace.prepared
    press(annotators, qtbot, Qt.Key.Key_X, on=workspace.table.view)
    read_again(annotators, qtbot, before)
    assert not document.contents.review.excluded

    before = workspace.prepared
    half = Decision(verb="weigh", annotators=("ben",), subject=WeightSubject(weight=0.5), reason="hasty")
    document.record(half)
    read_again(annotators, qtbot, before)
    workspace.table.select(("ben",))
    press(annotators, qtbot, Qt.Key.Key_W, on=workspace.table.view)
    panel = workspace.decisions.dialog.panel
    panel.set_weight(1.0)
    panel.choice_changed.emit()
    qtbot.waitUntil(lambda: panel.state == "shown")
    assert "none of" in panel._summary.text()  # the runs do not know the weight yet
    panel.reason.edit.setText("trained")
    before = workspace.prepared
    panel.exclude.click()
    read_again(annotators, qtbot, before)
    assert document.contents.review.weights == {}


def test_names_are_joined_separated_flagged_and_hidden_but_not_two_masks_of_one_structure(annotators, qtbot):
    workspace, document = annotators.workspace, annotators.document
    workspace.table.select(("anna", "ben"))
    press(annotators, qtbot, Qt.Key.Key_J, on=workspace.table.view)
    qtbot.waitUntil(lambda: "one annotator cannot have two masks" in annotators.notice.text)
    assert not document.contents.review.aliases

    workspace.table.select(("Anna K.", "anna"))
    before = workspace.prepared
    press(annotators, qtbot, Qt.Key.Key_J, on=workspace.table.view)
    read_again(annotators, qtbot, before)
    assert "anna" not in listed(annotators)
    assert workspace.table.selected == ("Anna K.",)
    assert any("anna" in sentence for sentence in card(workspace.prepared, ("Anna K.",)).sentences)
    before = workspace.prepared
    press(annotators, qtbot, Qt.Key.Key_U, on=workspace.table.view)
    read_again(annotators, qtbot, before)
    assert "anna" in listed(annotators)
    document.undo()
    qtbot.waitUntil(lambda: document.contents.review.aliases == {"anna": "Anna K."})
    idle(annotators, qtbot)

    workspace.table.select(("eve",))
    idle(annotators, qtbot)
    press(annotators, qtbot, Qt.Key.Key_F, on=workspace.table)
    dialog = workspace.decisions.flag_dialog
    dialog.edit.setText("ask her")
    before = workspace.prepared
    dialog.accepting.click()
    read_again(annotators, qtbot, before)
    assert annotators.document.contents.review.flagged == {"eve": "ask her"}
    assert any("Flagged by" in words and "ask her" in words for words in workspace._card().sentences)
    (line,) = (item for item in workspace.queue.shown() if item.key == "eve")
    assert line.flag == "ask her"
    assert not line.done
    before = workspace.prepared
    press(annotators, qtbot, Qt.Key.Key_F, on=workspace.table)
    read_again(annotators, qtbot, before)
    assert annotators.document.contents.review.flagged == {}
    before = workspace.prepared
    annotators.document.undo()
    read_again(annotators, qtbot, before)
    assert annotators.document.contents.review.flagged == {"eve": "ask her"}

    before = annotators.workspace.prepared
    annotators.document.hide_names(True, "labels")
    read_again(annotators, qtbot, before)
    model = annotators.workspace.table.model
    texts = [str(model.index(row, 0).data()) for row in range(model.rowCount())]
    assert all(text.startswith("no. ") for text in texts)
    annotators.workspace.table.filter.setText("anna")
    assert listed(annotators) == []


def test_two_selected_annotators_have_a_bland_altman_plot_their_alpha_and_a_feedback_page(
    annotators, qtbot, tmp_path, monkeypatch
):
    workspace, table = annotators.workspace, annotators.workspace.table
    plots = workspace.agreement
    workspace.plots.setCurrentWidget(plots.bland_altman)
    workspace.table.select(("ben",))
    idle(annotators, qtbot)
    assert not plots.bland_altman.filled
    workspace.table.select(("ben", "cleo"))
    idle(annotators, qtbot)
    qtbot.waitUntil(lambda: plots.bland_altman.filled)
    chart = plots.bland_altman.describe()
    assert chart.title == "count of clicks: ben \N{MINUS SIGN} cleo"
    assert chart.subtitle.startswith("3 cases, bias ")
    workspace.plots.setCurrentWidget(plots.alpha)
    qtbot.waitUntil(lambda: plots.alpha.filled)
    of_two = plots.alpha.describe()
    assert "2 selected annotators" in of_two.title
    assert "spots, structure 2 cases, labels 60 tasks, pairs " in of_two.title
    workspace.table.select(("ben",))
    idle(annotators, qtbot)
    qtbot.waitUntil(lambda: "all annotators" in plots.alpha.describe().title)
    assert plots.alpha.describe().table != of_two.table

    page = tmp_path / "ben.html"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(page), ""))
    table.select(())
    press(annotators, qtbot, Qt.Key.Key_P, on=annotators.workspace.table.view)
    assert "Select an annotator" in annotators.status.message
    annotators.workspace.table.select(("ben",))
    idle(annotators, qtbot)
    press(annotators, qtbot, Qt.Key.Key_P, on=annotators.workspace.table.view)
    qtbot.waitUntil(page.exists)
    idle(annotators, qtbot)
    assert "Feedback page saved" in annotators.status.message
    assert "Feedback for ben" in page.read_text(encoding="utf-8")


def test_an_unfused_study_names_the_next_step(window, qtbot, study_file):
    open_study(window, qtbot, study_file)
    window.show_workspace("annotators")
    idle(window, qtbot)
    qtbot.waitUntil(lambda: window.workspace.prepared is not None)
    assert "Fuse clicks, masks, labels or pairs" in window.workspace.table._nothing.text()
    assert len(listed(window)) == 13
    columns = {column.name: column for column in window.workspace.table.model.grid.columns}
    assert np.isnan(columns["marks"].values).all()
    assert {item.detail for item in window.workspace.queue.shown()} == {"not fused yet"}


def test_a_study_without_annotators_explains_the_empty_table(window, qtbot, tmp_path):
    QImage(20, 20, QImage.Format.Format_RGB32).save(str(tmp_path / "one.png"))
    assert main(["import", str(tmp_path / "s.rscope"), str(tmp_path / "one.png")]) == 0
    open_study(window, qtbot, tmp_path / "s.rscope")
    window.show_workspace("annotators")
    assert window.workspace is None
    assert window._pages.currentWidget().accessibleName() == "No annotators in this study yet"


def test_a_study_whose_annotators_cannot_be_read_shows_the_error(window, qtbot, four_study, monkeypatch):
    def fail(*_):
        raise InputError("is damaged")

    monkeypatch.setattr("raterscope.app.workspaces.annotators.workspace.read_annotators", fail)
    open_study(window, qtbot, four_study)
    window.show_workspace("annotators")
    idle(window, qtbot)
    assert "The annotators cannot be read: " in window.workspace.table._nothing.text()
    press(window, qtbot, Qt.Key.Key_Tab, on=window.workspace.table.view)
    assert window.status.message == "The queue lists no annotators."


def test_a_preview_distinguishes_the_changes_from_what_would_be_lost():
    notes = ("6 tasks of labels would lose all votes.",)
    preview = Preview((Consequences("labels", "label", 1200, 6000, (), notes),))
    assert preview.summary() == "would change 1,200 of 6,000 labels. 6 tasks of labels would lose all votes."


def test_runs_of_versions_that_weighted_clicks_only_are_outdated(window, qtbot, four_study):
    with Study.open(four_study) as study:
        half = Decision(verb="weigh", annotators=("ben",), subject=WeightSubject(weight=0.5), reason="hasty")
        study.record(half)
        with study.change() as connection:
            connection.execute("UPDATE runs SET known = 1")
        for run in study.runs.all():
            (sentence,) = study.shown.outdated(run, run.items)
            assert "down-weighted now (ben)" in sentence
    open_study(window, qtbot, four_study)
    for kind in ("labels", "masks", "pairs"):
        window.show_workspace(kind)
        idle(window, qtbot)
        assert window.bar.fuse.text() == "Fuse again"
        assert "Other weights of annotators" in window.workspace.fuse_panel._changes.text()


def test_tab_while_the_annotators_are_read_does_not_say_that_there_are_none(window, qtbot, four_study):
    open_study(window, qtbot, four_study)
    window.show_workspace("annotators")
    qtbot.waitUntil(lambda: window.workspace is not None)
    if window.workspace.prepared is None:
        window.workspace.step(1)
        assert window.status.message != "The queue lists no annotators."
    idle(window, qtbot)
    window.workspace.step(1)
    assert len(window.workspace.table.selected) == 1
