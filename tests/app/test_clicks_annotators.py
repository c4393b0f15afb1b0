"""Annotators of clicks in the window: compared with each other, over images, and left out after a look."""

import pytest
from PySide6.QtCore import QPoint, Qt

from raterscope.algorithms.clicks import FusionPlan
from raterscope.app.clicks.excluding import gather_run, without
from raterscope.app.clicks.running import fuse_inputs, gather, keep
from raterscope.app.review import Decision, SpotSubject, WeightSubject, fold
from raterscope.app.study import Study
from raterscope.widgets.dialogs.exclusion import ExclusionDialog
from tests.app.driving import idle, press

SHARE = FusionPlan.make("oem", "share", {"share": "0.3"})
"""Four of thirteen marked the disputed spot: one less, and they are too few."""


@pytest.fixture
def fused_study(study_file):
    """The study with a run of the vote, in which one annotator decides a spot of each image."""
    with Study.open(study_file) as study:
        images = [one.id for one in study.images()]
        keep(fuse_inputs(gather(images, study), SHARE), study)
    return study_file


@pytest.fixture
def voted(window, fused_study, qtbot):
    window.open_paths([fused_study])
    idle(window, qtbot)
    return window


def asked(window, qtbot, name="volunteer 0") -> ExclusionDialog:
    """The dialog for an annotator, as soon as something is known."""
    workspace = window.workspace
    workspace.table.select(window.document.contents.annotators.index(name))
    qtbot.keyClick(workspace.table.view, Qt.Key.Key_Delete)
    idle(window, qtbot)
    return window.findChild(ExclusionDialog)


def test_what_would_change_is_what_fusing_again_comes_to(fused_study):
    with Study.open(fused_study) as study:
        inputs = gather_run(study.runs()[-1].id, study)
        found = without(inputs, "volunteer 0", fold(study.decisions()))
        assert [(one.name, one.before, one.after) for one in found.changed] == [
            ("one.png", "detected", "rejected"),
            ("two.png", "detected", "rejected"),
        ]
        study.record(Decision(verb="exclude", annotators=("volunteer 0",), reason="to see"))
        again = fuse_inputs(gather(list(inputs.items.values()), study), SHARE)
        for name, outcome in again.outcomes.items():
            before = int(inputs.fusions[name].detection.detected.sum())
            assert int(outcome.fusion.detection.detected.sum()) == before - 1


def test_a_run_rests_on_the_weights_that_held_when_it_was_made(fused_study):
    with Study.open(fused_study) as study:
        images = [one.id for one in study.images()]
        weight = WeightSubject(weight=0.25)
        study.record(Decision(verb="weigh", annotators=("volunteer 0",), subject=weight, reason="hasty"))
        inputs = gather(images, study)
        assert inputs.weights == {"volunteer 0": 0.25}
        keep(fuse_inputs(inputs, SHARE), study)
        study.record(Decision(verb="include", annotators=("volunteer 0",)))
        first, second = study.runs()
        assert (first.weights, second.weights) == ({}, {"volunteer 0": 0.25})
        assert first.digest != second.digest
        for image in images:
            assert study.clicks(image, first).weights is None
            clicks = study.clicks(image, second)
            assert clicks.weights[clicks.annotators.index("volunteer 0")] == 0.25
        assert gather(images, study).weights == {}


def test_what_the_expert_decided_does_not_change(fused_study):
    with Study.open(fused_study) as study:
        run = study.runs()[-1].id
        inputs = gather_run(run, study)
        first, second = without(inputs, "volunteer 0", fold(study.decisions())).changed
        place = SpotSubject(x=first.x, y=first.y, number=first.cluster + 1)
        study.record(Decision(verb="accept", item=first.image, run=run, subject=place))
        assert without(inputs, "volunteer 0", fold(study.decisions())).changed == (second,)


def test_who_is_to_be_left_out_is_asked_for_once_it_is_seen_what_would_change(voted, qtbot):
    dialog = asked(voted, qtbot)
    panel, reviewing = dialog.panel, voted.workspace.reviewing
    assert panel.state == "shown"
    here, spots = reviewing.scene.image.name, len(reviewing.spots)
    summary = panel._summary.toolTip() or panel._summary.text()
    assert summary.startswith(f"would change 1 of {spots} decisions on this image, 2 of ")
    shown = [panel.changes.lines[row] for row in range(len(panel.changes.lines))]
    assert [(one.before, one.after) for one in shown] == [("detected", "rejected")] * 2
    assert shown[0].name.startswith(here)
    assert not panel.exclude.isEnabled()
    qtbot.keyClick(panel.changes, Qt.Key.Key_Down)
    idle(voted, qtbot)
    for row in (1, 0):
        panel.changes.setCurrentIndex(panel.changes.model().index(row, 0))
        idle(voted, qtbot)
        name, _, number = shown[row].name.partition("  spot ")
        assert reviewing.scene.image.name == name
        assert reviewing.spot.number == int(number)
        assert (reviewing.spot.x, reviewing.spot.y) == pytest.approx((190, 30), abs=4)
    qtbot.keyClicks(panel.reason.words, "a test account")
    qtbot.mouseClick(panel.exclude, Qt.MouseButton.LeftButton)
    idle(voted, qtbot)
    assert voted.document.contents.review.excluded == {"volunteer 0": "a test account"}


def test_nothing_is_decided_by_keeping_nor_while_it_is_worked_out(voted, qtbot):
    panel = asked(voted, qtbot).panel
    qtbot.mouseClick(panel.keep, Qt.MouseButton.LeftButton)
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


def test_before_anything_is_fused_an_annotator_can_be_left_out_all_the_same(opened, qtbot):
    panel = asked(opened, qtbot, "careless").panel
    assert panel.state == "unknown"
    assert "Nothing is fused yet" in panel._error.text()
    qtbot.keyClicks(panel.reason.words, "clicks corners")
    qtbot.keyClick(panel.reason.words, Qt.Key.Key_Return)
    idle(opened, qtbot)
    assert opened.document.contents.review.excluded == {"careless": "clicks corners"}


def test_where_answers_are_hidden_only_how_much_would_change_is_told(voted, qtbot):
    press(voted, qtbot, Qt.Key.Key_B)
    panel = asked(voted, qtbot).panel
    assert "would change" in (panel._summary.toolTip() or panel._summary.text())
    assert not panel.changes.isVisible()
    assert "volunteer" not in panel._title.text()


def test_a_cell_of_the_matrix_of_agreement_chooses_its_two_annotators(voted, qtbot):
    workspace = voted.workspace
    matrix = workspace.agreeing.matrix
    workspace.middle_tabs.setCurrentWidget(matrix)
    idle(voted, qtbot)
    figure = matrix.figure
    assert matrix.filled
    assert figure.names[0] == "careless"
    row, column = 0, figure.names.index("volunteer 7")
    assert figure.words((row, column)).startswith("careless and volunteer 7: Dice 0.00, of ")
    others = figure.names.index("volunteer 1"), figure.names.index("volunteer 2")
    scene = workspace.reviewing.scene
    first, second = (
        set(scene.fusion.marked[scene.clicks.annotators.index(name)].nonzero()[0])
        for name in ("volunteer 1", "volunteer 2")
    )
    dice = 2 * len(first & second) / (len(first) + len(second))
    assert f"Dice {dice:.2f}" in figure.words(others)
    place = next(
        QPoint(x, y)
        for x in range(figure.width())
        for y in range(figure.height())
        if figure.part_at(QPoint(x, y)) == others
    )
    qtbot.mouseClick(figure, Qt.MouseButton.LeftButton, pos=place)
    table = workspace.table
    chosen = {table.model.at(one.row()).name for one in table.view.selectionModel().selectedRows()}
    assert chosen == {"volunteer 1", "volunteer 2"}


def test_agreement_is_of_the_image_or_of_the_study_as_dice_or_as_kappa(voted, qtbot):
    workspace = voted.workspace
    agreeing, figure = workspace.agreeing, workspace.agreeing.matrix.figure
    workspace.middle_tabs.setCurrentWidget(agreeing.matrix)
    idle(voted, qtbot)
    assert "on 1 image that both saw" in figure.words((1, 2))
    agreeing.scopes.set_mode("study")
    idle(voted, qtbot)
    assert "on 2 images that both saw" in figure.words((1, 2))
    agreeing.measures.set_mode("kappa")
    assert "kappa" in figure.words((1, 2))
    assert "careless" in figure.names
    press(voted, qtbot, Qt.Key.Key_B)
    assert not any("volunteer" in name for name in figure.names)


def test_the_table_follows_annotators_over_the_images_that_are_fused(voted, qtbot):
    table = voted.workspace.table
    rows = {row.name: row for row in table.model.rows}
    course = rows["careless"].course
    assert list(course.images) == ["one.png", "two.png"]
    assert course.clicks.tolist() == [3, 2]
    found = voted.workspace.queueing.results
    here = [known.fusion.rates.reliability[known.annotators.index("careless"), 0] for known in found.values()]
    assert sorted(course.reliability) == pytest.approx(sorted(here))
    press(voted, qtbot, Qt.Key.Key_B)
    assert all(row.course is not None for row in table.model.rows)
