"""Annotators of clicks in the window: compared, over images, and excluded after a preview."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QMenu

from raterscope.algorithms.clicks import FusionPlan
from raterscope.app import importing
from raterscope.app.assessment import ComparedItem, Differences
from raterscope.app.kinds.clicks.annotators import gather_run, recount
from raterscope.app.kinds.clicks.evaluation import compare_runs
from raterscope.app.kinds.clicks.runs import fuse_inputs, gather, keep
from raterscope.app.review import Decision, SpotSubject, Weighed, WeightSubject, fold
from raterscope.app.study import Study, digest_of
from raterscope.app.workspaces.clicks.annotators import annotator_rows
from raterscope.widgets.dialogs.review_dialogs import ExclusionDialog
from raterscope.widgets.panels.evidence_panel import VoterList
from tests.app.driving import idle, press

opens_a_menu = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
SHARE = FusionPlan.make("oem", {"detector": "share", "share": "0.3"})
"""Four of thirteen marked the disputed spot: one less, and they are too few."""


@pytest.fixture
def fused_study(study_file):
    """The study with a run of the vote, in which one annotator decides a spot of each image."""
    with Study.open(study_file) as study:
        images = [image.id for image in study.images()]
        keep(fuse_inputs(gather(images, study), SHARE), study)
    return study_file


@pytest.fixture
def voted(window, fused_study, qtbot):
    window.open_paths([fused_study])
    idle(window, qtbot)
    return window


def open_exclusion(window, qtbot, name="volunteer 0") -> ExclusionDialog:
    """The dialog for an annotator, as soon as something is known."""
    choose(window, name)
    qtbot.keyClick(window.workspace.table.view, Qt.Key.Key_Delete)
    idle(window, qtbot)
    return window.findChild(ExclusionDialog)


def choose(window, name) -> None:
    window.workspace.table.select(window.document.contents.annotators.index(name))


def menu_entry(window, name, words):
    """An entry of the menu that the right button opens on an annotator."""
    choose(window, name)
    table = window.workspace.table
    point = table.view.visualRect(table.view.currentIndex()).center()
    table.view.customContextMenuRequested.emit(point)
    menu = table.findChildren(QMenu)[-1]
    result = next((action for action in menu.actions() if action.text() == words), None)
    menu.close()
    return result


def open_weighting(window, qtbot, name="volunteer 0") -> ExclusionDialog:
    menu_entry(window, name, "Down-weight…").trigger()
    idle(window, qtbot)
    return window.findChild(ExclusionDialog)


def row_of(window, name):
    return next(row for row in window.workspace.table.model.rows if row.name == name)


def test_the_exclusion_preview_equals_a_new_fusion(fused_study):
    with Study.open(fused_study) as study:
        inputs = gather_run(study.runs.all()[-1].id, study)
        stored = recount(inputs, ("volunteer 0",), None, fold(study.decisions()))
        assert [(change.name, change.before, change.after) for change in stored.changed] == [
            ("one.png", "detected", "rejected"),
            ("two.png", "detected", "rejected"),
        ]
        study.record(Decision(verb="exclude", annotators=("volunteer 0",), reason="to see"))
        second = fuse_inputs(gather(list(inputs.items.values()), study), SHARE)
        for name, outcome in second.outcomes.items():
            before = int(inputs.fusions[name].detection.detected.sum())
            assert int(outcome.fusion.detection.detected.sum()) == before - 1


def test_the_exclusion_preview_holds_decisions_made_since_the_run(fused_study):
    with Study.open(fused_study) as study:
        run = study.runs.all()[-1].id
        first, _ = recount(gather_run(run, study), ("volunteer 0",), None, fold(study.decisions())).changed
        subject = SpotSubject(x=first.x, y=first.y)
        study.record(Decision(verb="accept", item=first.image, run=run, subject=subject))
        inputs, state = gather_run(run, study), fold(study.decisions())
        images = list(inputs.items.values())
        assert list(inputs.decided) == [first.name]
        assert digest_of({**inputs.clicks, **inputs.decided}) == digest_of(gather(images, study).given)
        stored = recount(inputs, ("volunteer 0",), None, state)
        study.record(Decision(verb="exclude", annotators=("volunteer 0",), reason="to see"))
        second, changes = keep(fuse_inputs(gather(images, study), SHARE), study), Differences()
        for name, image in inputs.items.items():
            then, now = inputs.fusions[name], study.runs.result(second, image)
            pair = study.runs.get(run), study.runs.get(second)
            compare_runs(ComparedItem(study, state, image, name, *pair, then, now), changes)
        assert len(stored.changed) == len(changes.changes) - changes.newly_disputed == 1


def test_a_run_rests_on_the_weights_that_held_when_it_was_made(fused_study):
    with Study.open(fused_study) as study:
        images = [image.id for image in study.images()]
        weight = WeightSubject(weight=0.25)
        study.record(Decision(verb="weigh", annotators=("volunteer 0",), subject=weight, reason="hasty"))
        inputs = gather(images, study)
        assert inputs.weights == {"volunteer 0": 0.25}
        keep(fuse_inputs(inputs, SHARE), study)
        study.record(Decision(verb="include", annotators=("volunteer 0",)))
        first, second = study.runs.all()
        assert (first.weights, second.weights) == ({}, {"volunteer 0": 0.25})
        assert first.digest != second.digest
        for image in images:
            assert study.clicks(image, first).weights is None
            clicks = study.clicks(image, second)
            assert clicks.weights[clicks.annotators.index("volunteer 0")] == 0.25
        assert gather(images, study).weights == {}


def test_decided_spots_do_not_change_in_the_preview(fused_study):
    with Study.open(fused_study) as study:
        run = study.runs.all()[-1].id
        inputs = gather_run(run, study)
        first, second = recount(inputs, ("volunteer 0",), None, fold(study.decisions())).changed
        subject = SpotSubject(x=first.x, y=first.y, number=first.cluster + 1)
        study.record(Decision(verb="accept", item=first.image, run=run, subject=subject))
        assert recount(inputs, ("volunteer 0",), None, fold(study.decisions())).changed == (second,)


def check_exclusion(voted, qtbot):
    """Exclude an annotator after its preview."""
    dialog = open_exclusion(voted, qtbot)
    panel, reviewing = dialog.panel, voted.workspace.reviewing
    assert panel.state == "shown"
    here, spots = reviewing.session.scene.image.name, len(reviewing.spots)
    summary = panel._summary.text()
    assert summary.startswith(f"Would change 1 of {spots} spots on this image, 2 of ")
    shown = [panel.changes.lines[row] for row in range(len(panel.changes.lines))]
    assert [(change.before, change.after) for change in shown] == [("detected", "rejected")] * 2
    assert shown[0].name.startswith(here)
    assert not panel.exclude.isEnabled()
    qtbot.keyClick(panel.changes, Qt.Key.Key_Down)
    idle(voted, qtbot)
    for row in (1, 0):
        panel.changes.setCurrentIndex(panel.changes.model().index(row, 0))
        idle(voted, qtbot)
        name, _, number = shown[row].name.partition("  spot ")
        assert reviewing.session.scene.image.name == name
        assert reviewing.spot.number == int(number)
        assert (reviewing.spot.x, reviewing.spot.y) == pytest.approx((190, 30), abs=4)
    qtbot.keyClicks(panel.reason.edit, "a test account")
    qtbot.mouseClick(panel.exclude, Qt.MouseButton.LeftButton)
    idle(voted, qtbot)
    assert voted.document.contents.review.excluded == {"volunteer 0": "a test account"}

    def row():
        (row,) = (row for row in voted.workspace.table.model.rows if row.name == "volunteer 0")
        return row

    marked, runs = row().clicks, len(voted.document.contents.runs)
    press(voted, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(voted.document.contents.runs) > runs)
    idle(voted, qtbot)
    assert (row().excluded, row().clicks) == (True, marked)
    assert marked > 0
    for value, low, high in (row().reliability, row().sensitivity, row().precision):
        assert 0 <= low <= value <= high <= 1


def test_keys_open_the_dialog_cancelling_decides_nothing_and_exclusion_is_decided_after_the_preview(
    voted, qtbot
):
    panel = open_exclusion(voted, qtbot).panel
    qtbot.mouseClick(panel.cancel, Qt.MouseButton.LeftButton)
    idle(voted, qtbot)
    voted.workspace.table.exclude_requested.emit(0)
    panel = voted.findChild(ExclusionDialog).panel
    assert panel.state == "working"
    qtbot.mouseClick(panel._cancel, Qt.MouseButton.LeftButton)
    idle(voted, qtbot)
    assert panel.state == "unknown"
    assert "cancelled" in panel._error.text()
    assert panel.reason.isVisible()
    qtbot.keyClick(panel, Qt.Key.Key_Escape)
    idle(voted, qtbot)
    assert voted.document.contents.decisions == ()

    table = voted.workspace.table
    table.select(None)
    voted.workspace.middle_tabs.setCurrentIndex(1)
    with qtbot.waitSignal(voted.workspace.message) as signal:
        press(voted, qtbot, Qt.Key.Key_X)
    assert signal.args == ["Select an annotator with the arrow keys, then press X."]
    assert voted.workspace.middle_tabs.currentWidget() is table
    first = table.current
    assert voted.focusWidget() is table.view
    qtbot.keyClick(table.view, Qt.Key.Key_Down)
    assert table.current not in (None, first)
    qtbot.keyClick(table.view, Qt.Key.Key_X)
    idle(voted, qtbot)
    voted.findChild(ExclusionDialog).reject()
    choose(voted, "volunteer 3")
    press(voted, qtbot, Qt.Key.Key_X)
    idle(voted, qtbot)
    assert "Without volunteer 3." in voted.findChild(ExclusionDialog).panel._title.text()
    voted.findChild(ExclusionDialog).reject()
    idle(voted, qtbot)
    check_exclusion(voted, qtbot)


def test_the_down_weighting_preview_equals_a_new_fusion(fused_study):
    with Study.open(fused_study) as study:
        inputs = gather_run(study.runs.all()[-1].id, study)
        stored = recount(inputs, ("volunteer 0",), 0.1, fold(study.decisions()))
        weight = WeightSubject(weight=0.1)
        study.record(Decision(verb="weigh", annotators=("volunteer 0",), subject=weight, reason="hasty"))
        second = fuse_inputs(gather(list(inputs.items.values()), study), SHARE)
        assert [(change.name, change.before, change.after) for change in stored.changed] == [
            ("one.png", "detected", "rejected"),
            ("two.png", "detected", "rejected"),
        ]
        for name, outcome in second.outcomes.items():
            before = int(inputs.fusions[name].detection.detected.sum())
            assert int(outcome.fusion.detection.detected.sum()) == before - 1
        inputs = gather_run(keep(second, study), study)
        same = recount(inputs, ("volunteer 0",), 0.1, fold(study.decisions()))
        more = recount(inputs, ("volunteer 0",), 1.0, fold(study.decisions()))
        assert (len(same.changed), len(more.changed)) == (0, 2)


@opens_a_menu
def test_down_weighting_is_decided_after_the_preview_and_can_be_changed_and_undone(voted, qtbot):
    panel = open_weighting(voted, qtbot).panel
    assert (panel.state, panel.weight) == ("shown", 0.5)
    for mode in ("0.25", "0.75", "out"):  # each takes the place of the one that is computed
        panel.choice.set_mode(mode)
    idle(voted, qtbot)
    left_out = panel._summary.text()
    assert "Would change 1 of" in left_out
    assert len(panel.changes.lines) == 2
    panel.choice.set_mode("0.5")
    panel.choice.set_mode("out")  # which is known already
    assert panel.state == "shown"
    assert panel._summary.text() == left_out
    panel.choice.set_mode("0.1")
    assert panel.state == "working"
    idle(voted, qtbot)
    panel.choice.set_mode("0.25")
    idle(voted, qtbot)
    assert panel.state == "shown"
    qtbot.keyClicks(panel.reason.edit, "hasty")
    qtbot.keyClick(panel.reason.edit, Qt.Key.Key_Return)
    idle(voted, qtbot)
    review = voted.document.contents.review
    assert review.weighed == {"volunteer 0": Weighed(0.25, "hasty")}
    assert voted.document.contents.stale == {"clicks"}
    assert (row_of(voted, "volunteer 0").part, row_of(voted, "volunteer 0").why) == ("× ¼", "hasty")
    assert voted.document.contents.text_of(review.undoable) == "weigh annotator volunteer 0 at ¼ (hasty)"
    voted.document.undo()
    idle(voted, qtbot)
    assert row_of(voted, "volunteer 0").part == ""

    def decide(dialog, choice):
        dialog.panel.choice.set_mode(choice)
        idle(voted, qtbot)
        dialog.panel.reason.edit.setText("r")
        dialog.panel.exclude.click()
        idle(voted, qtbot)

    assert menu_entry(voted, "volunteer 0", "Restore annotator") is None
    decide(open_weighting(voted, qtbot), "0.25")
    dialog = open_weighting(voted, qtbot)
    assert dialog.panel.weight == 0.25
    decide(dialog, "0.1")
    assert voted.document.contents.review.weights == {"volunteer 0": 0.1}
    decide(open_exclusion(voted, qtbot), "out")
    assert voted.document.contents.review.excluded == {"volunteer 0": "r"}
    assert voted.document.contents.review.weights == {}
    decide(open_weighting(voted, qtbot), "0.5")
    assert voted.document.contents.review.excluded == {}
    menu_entry(voted, "volunteer 0", "Restore annotator").trigger()
    idle(voted, qtbot)
    assert voted.document.contents.review.weights == {}


@opens_a_menu
def test_the_run_on_screen_may_have_the_same_weight(voted, qtbot):
    dialog = open_weighting(voted, qtbot)
    dialog.panel.reason.edit.setText("hasty")
    dialog.panel.exclude.click()
    idle(voted, qtbot)
    press(voted, qtbot, Qt.Key.Key_F5)
    idle(voted, qtbot)
    assert voted.document.contents.runs[-1].weights == {"volunteer 0": 0.5}
    assert "clicks" not in voted.document.contents.stale
    voted.workspace.reviewing.select(0)
    texts = {line.name: line.label for line in voted.workspace.evidence.findChild(VoterList).lines}
    assert texts["volunteer 0"] == "volunteer 0  × ½"
    assert texts["volunteer 1"] == "volunteer 1"
    panel = open_weighting(voted, qtbot).panel
    assert "counts these clicks at ½ already" in panel._error.text()
    panel.choice.set_mode("out")
    idle(voted, qtbot)
    assert panel.state == "shown"


def test_before_anything_is_fused_an_annotator_can_be_left_out_all_the_same(opened, qtbot):
    panel = open_exclusion(opened, qtbot, "careless").panel
    assert panel.state == "unknown"
    assert "Press Fuse (F5) first" in panel._error.text()
    qtbot.keyClicks(panel.reason.edit, "clicks corners")
    qtbot.keyClick(panel.reason.edit, Qt.Key.Key_Return)
    idle(opened, qtbot)
    assert opened.document.contents.review.excluded == {"careless": "clicks corners"}


def check_blind_preview(voted, qtbot):
    """Preview an exclusion while names are hidden."""
    panel = open_exclusion(voted, qtbot).panel
    assert "Would change" in panel._summary.text()
    assert not panel.changes.isVisible()
    assert "volunteer" not in panel._title.text()


def test_table_and_agreement_follow_the_images_that_are_fused_blind_mode_and_another_study(
    voted, tmp_path, qtbot
):
    table = voted.workspace.table
    rows = {row.name: row for row in table.model.rows}
    course = rows["careless"].course
    assert list(course.images) == ["one.png", "two.png"]
    assert course.clicks.tolist() == [3, 2]
    result = voted.workspace.review_queue.results
    here = [
        known.fusion.rates.reliability[known.annotators.index("careless"), 0] for known in result.values()
    ]
    assert sorted(course.reliability) == pytest.approx(sorted(here))

    workspace = voted.workspace
    matrix = workspace.agreement.matrix
    workspace.middle_tabs.setCurrentWidget(matrix)
    idle(voted, qtbot)
    figure = matrix.figure
    assert matrix.filled
    assert figure.names[0] == "careless"
    row, column = 0, figure.names.index("volunteer 7")
    assert figure.text_of((row, column)).startswith("careless and volunteer 7: Dice 0.00, of ")
    others = figure.names.index("volunteer 1"), figure.names.index("volunteer 2")
    scene = workspace.reviewing.session.scene
    first, second = (
        set(scene.fusion.marked[scene.clicks.annotators.index(name)].nonzero()[0])
        for name in ("volunteer 1", "volunteer 2")
    )
    dice = 2 * len(first & second) / (len(first) + len(second))
    assert f"Dice {dice:.2f}" in figure.text_of(others)
    position = next(
        QPoint(x, y)
        for x in range(figure.width())
        for y in range(figure.height())
        if figure.part_at(QPoint(x, y)) == others
    )
    qtbot.mouseClick(figure, Qt.MouseButton.LeftButton, pos=position)
    table = workspace.table
    chosen = {table.model.at(index.row()).name for index in table.view.selectionModel().selectedRows()}
    assert chosen == {"volunteer 1", "volunteer 2"}

    agreeing, figure = workspace.agreement, workspace.agreement.matrix.figure
    workspace.middle_tabs.setCurrentWidget(agreeing.matrix)
    idle(voted, qtbot)
    assert "on 1 image that both viewed" in figure.text_of((1, 2))
    agreeing.scopes.set_mode("study")
    idle(voted, qtbot)
    assert "on 2 images that both viewed" in figure.text_of((1, 2))
    agreeing.measures.set_mode("kappa")
    assert "kappa" in figure.text_of((1, 2))
    assert "careless" in figure.names
    press(voted, qtbot, Qt.Key.Key_H)
    assert not any("volunteer" in name for name in figure.names)
    assert all(row.course is not None for row in table.model.rows)
    check_blind_preview(voted, qtbot)
    voted.findChild(ExclusionDialog).reject()
    press(voted, qtbot, Qt.Key.Key_H)

    table = tmp_path / "others.csv"
    table.write_text("annotator,image,x,y\n" + "".join(f"other {n},three.png,{n},9\n" for n in range(4)))
    with Study.create(tmp_path / "others.rscope") as study:
        importing.store(importing.read_files([table]), study, extent=(50, 50))
    voted.open_paths([tmp_path / "others.rscope"])
    idle(voted, qtbot)
    assert {row.name for row in voted.workspace.table.model.rows} == {f"other {n}" for n in range(4)}


def test_excluded_annotators_without_clicks_on_the_image_are_not_listed(voted):
    scene = voted.workspace.session.scene
    names = (*scene.clicks.annotators, "rater of masks")
    numbers = {name: number for number, name in enumerate(names)}
    counted = {"rater of masks": Weighed(0.0, "unfinished")}
    rows = annotator_rows(scene.clicks, scene.fusion, numbers, counted, None)
    assert {row.name for row in rows} == set(scene.clicks.annotators)
