"""Scale, lengths, areas and parasitaemia, by mouse and keys in the window."""

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu

from raterscope.app.study import Study
from raterscope.widgets.dialogs.review_dialogs import ScaleDialog
from tests.app.driving import idle, press

LEFT = Qt.MouseButton.LeftButton
CTRL = Qt.KeyboardModifier.ControlModifier


def at(canvas, position):
    return QPoint(*(round(value) for value in canvas.viewport.to_screen(*position)))


def drag(window, qtbot, positions):
    canvas = window.workspace.canvas
    QTest.mousePress(canvas, LEFT, pos=at(canvas, positions[0]))
    for position in positions[1:]:
        QTest.mouseMove(canvas, at(canvas, position))
    QTest.mouseRelease(canvas, LEFT, pos=at(canvas, positions[-1]))
    idle(window, qtbot)


def set_scale(window, qtbot, micrometres, *, everywhere=True):
    press(window, qtbot, Qt.Key.Key_L)
    drag(window, qtbot, [(20, 100), (100, 100), (220, 100)])
    (dialog,) = window.workspace.findChildren(ScaleDialog)
    dialog.number.setValue(micrometres)
    dialog.all_images.setChecked(everywhere)
    dialog.accepting.click()
    idle(window, qtbot)
    qtbot.waitUntil(lambda: not window.workspace.findChildren(ScaleDialog))


def pixel_size(window):
    return window.workspace.reviewing.session.scene.image.pixel_size


def test_a_drawn_line_of_known_length_sets_the_scale_of_all_images_until_it_is_undone(
    opened, qtbot, study_file
):
    workspace = opened.workspace
    assert pixel_size(opened) is None
    set_scale(opened, qtbot, 20.0)
    assert pixel_size(opened) == pytest.approx(0.1, rel=0.01)
    assert workspace.canvas._pixel_size == pixel_size(opened)
    assert "set for all images" in workspace.measure.scale_label.text()
    assert workspace.measure.unscale.text() == "Remove scale"  # the file states none
    press(opened, qtbot, Qt.Key.Key_PageDown)
    assert pixel_size(opened) == pytest.approx(0.1, rel=0.01)
    assert opened.menus.undo_action.text().startswith("Undo set the scale to 0.1")
    press(opened, qtbot, Qt.Key.Key_Z, CTRL)
    assert pixel_size(opened) is None
    opened.document.close()
    with Study.open(study_file) as study:
        set_to, _ = study.decisions()
        assert set_to.subject.length == 20.0
        assert set_to.who


def test_leaving_a_dialog_or_a_drawing_decides_nothing_and_a_scale_may_be_of_one_image(opened, qtbot):
    press(opened, qtbot, Qt.Key.Key_L)
    drag(opened, qtbot, [(20, 100), (220, 100)])
    (dialog,) = opened.workspace.findChildren(ScaleDialog)
    assert not dialog.accepting.isEnabled()
    dialog.reject()
    idle(opened, qtbot)
    assert opened.document.contents.decisions == ()

    workspace = opened.workspace
    press(opened, qtbot, Qt.Key.Key_O)
    assert workspace.has_to_leave
    press(opened, qtbot, Qt.Key.Key_Escape)
    assert workspace.measurements.drawing.mode == ""
    messages = []
    workspace.refused.connect(messages.append)
    press(opened, qtbot, Qt.Key.Key_O)
    for corner in ((40, 40), (140, 140), (140, 40), (40, 141)):
        QTest.mouseClick(workspace.canvas, LEFT, pos=at(workspace.canvas, corner))
    QTest.mouseClick(workspace.canvas, LEFT, pos=at(workspace.canvas, (40, 40)))
    assert "crosses itself" in messages[0]
    idle(opened, qtbot)
    assert opened.document.contents.decisions == ()

    press(opened, qtbot, Qt.Key.Key_Escape)
    set_scale(opened, qtbot, 40.0, everywhere=False)
    assert pixel_size(opened) == pytest.approx(0.2, rel=0.01)
    press(opened, qtbot, Qt.Key.Key_PageDown)
    assert pixel_size(opened) is None


def test_the_dialog_counts_in_the_unit_chosen(qtbot):
    dialog = ScaleDialog(200.0, 1)
    qtbot.addWidget(dialog)
    dialog.number.setValue(0.02)
    dialog.unit.setCurrentText("mm")
    assert dialog.length == pytest.approx(20.0)
    assert "0.1 µm" in dialog._explanation.text()


def test_lengths_and_areas_are_listed_copied_deleted_and_kept(opened, qtbot, study_file):
    workspace = opened.workspace
    workspace.middle_tabs.setCurrentWidget(workspace.measure)
    set_scale(opened, qtbot, 20.0)
    press(opened, qtbot, Qt.Key.Key_D)
    drag(opened, qtbot, [(20, 150), (80, 150), (120, 150)])
    press(opened, qtbot, Qt.Key.Key_O)
    angle = np.linspace(0, 2 * np.pi, 60)
    drag(opened, qtbot, list(zip(120 + 50 * np.cos(angle), 90 + 50 * np.sin(angle), strict=True)))
    line, outline = workspace.measure.list.lines
    assert (line.title, outline.title) == ("length 1", "area 2")
    assert float(line.value.split()[0]) == pytest.approx(10.0, rel=0.02)
    assert float(outline.value.split()[0]) == pytest.approx(np.pi * 25, rel=0.03)
    assert outline.value.endswith("µm²")
    workspace.measure.copy.trigger()
    head, first, second = QGuiApplication.clipboard().text().strip().split("\n")
    assert head.split("\t")[:3] == ["image", "number", "shape"]
    assert first.split("\t")[2] == "line"
    assert float(second.split("\t")[-1]) == pytest.approx(np.pi * 25, rel=0.03)
    workspace.measure.list.setCurrentIndex(workspace.measure.list.index_of((1, 1)))
    workspace.measure.delete.trigger()
    idle(opened, qtbot)
    assert [line.title for line in workspace.measure.list.lines] == ["area 2"]
    press(opened, qtbot, Qt.Key.Key_PageDown)
    assert workspace.measure.list.lines == ()
    press(opened, qtbot, Qt.Key.Key_Z, CTRL)
    assert [line.title for line in workspace.measure.list.lines] == ["length 1", "area 2"]
    opened.document.close()
    idle(opened, qtbot)
    opened.open_paths([study_file])
    qtbot.waitUntil(lambda: opened.document.contents is not None)
    idle(opened, qtbot)
    assert len(opened.document.contents.measures.shapes[1]) == 2


def test_a_shape_is_changed_on_the_image_and_each_change_is_a_decision_that_undo_takes_back(
    opened, qtbot, study_file
):
    workspace, shapes = opened.workspace, opened.workspace.measurements.shapes
    panel = workspace.measure
    press(opened, qtbot, Qt.Key.Key_D)
    drag(opened, qtbot, [(40, 150), (80, 150), (120, 150)])
    assert not workspace.has_to_leave
    QTest.mouseClick(workspace.canvas, LEFT, pos=at(workspace.canvas, (60, 150)))
    assert panel.current.title == "length 1"
    assert workspace.has_to_leave
    drag(opened, qtbot, [(120, 150), (150, 150), (200, 150)])
    assert float(panel.list.lines[0].value.split()[0]) == pytest.approx(160, abs=1)
    assert opened.menus.undo_action.text() == "Undo reshape length 1"
    drag(opened, qtbot, [(60, 150), (60, 140), (60, 120)])
    assert opened.menus.undo_action.text() == "Undo move length 1"
    press(opened, qtbot, Qt.Key.Key_Up)
    moved = opened.document.contents.measures.shapes[1][0]
    np.testing.assert_allclose(moved.points, [(40, 119), (200, 119)], atol=1)
    assert moved.length == pytest.approx(160, abs=1)
    for _ in range(2):
        press(opened, qtbot, Qt.Key.Key_Z, CTRL)
    assert opened.menus.undo_action.text() == "Undo reshape length 1"
    assert opened.document.contents.measures.shapes[1][0].points[0, 1] == pytest.approx(150, abs=1)
    press(opened, qtbot, Qt.Key.Key_Delete)
    assert panel.list.lines == ()
    press(opened, qtbot, Qt.Key.Key_Z, CTRL)
    assert [line.title for line in panel.list.lines] == ["length 1"]
    assert shapes.selected is None
    opened.document.close()
    with Study.open(study_file) as study:
        verbs = [decision.verb for decision in study.decisions() if decision.subject is not None]
    assert verbs == ["measure", "reshape", "move", "move", "delete"]


def test_another_image_or_escape_lets_go_of_the_shape_chosen(opened, qtbot):
    workspace, shapes = opened.workspace, opened.workspace.measurements.shapes
    for _ in range(2):
        press(opened, qtbot, Qt.Key.Key_D)
        drag(opened, qtbot, [(40, 150), (80, 150), (120, 150)])
        press(opened, qtbot, Qt.Key.Key_PageDown)
    press(opened, qtbot, Qt.Key.Key_PageUp)
    press(opened, qtbot, Qt.Key.Key_PageUp)
    workspace.measure.list.setCurrentIndex(workspace.measure.list.index_of((1, 1)))
    assert shapes.selected == (1, 1)
    press(opened, qtbot, Qt.Key.Key_PageDown)
    assert [line.title for line in workspace.measure.list.lines] == ["length 1"]
    assert shapes.selected is None
    QTest.mouseClick(workspace.canvas, LEFT, pos=at(workspace.canvas, (60, 150)))
    assert shapes.selected == (2, 1)
    press(opened, qtbot, Qt.Key.Key_Escape)
    assert (shapes.selected, workspace.measure.current) == (None, None)


def test_a_corner_that_would_make_an_outline_cross_itself_stays(opened, qtbot):
    workspace, messages = opened.workspace, []
    workspace.refused.connect(messages.append)
    press(opened, qtbot, Qt.Key.Key_O)
    for corner in ((40, 40), (140, 40), (140, 140), (40, 140), (40, 40)):
        QTest.mouseClick(workspace.canvas, LEFT, pos=at(workspace.canvas, corner))
    idle(opened, qtbot)
    before = opened.document.contents.measures.shapes[1][0]
    QTest.mouseClick(workspace.canvas, LEFT, pos=at(workspace.canvas, (40, 90)))
    drag(opened, qtbot, [(40, 40), (100, 100), (180, 100)])
    assert "cross itself" in messages[0]
    assert opened.document.contents.measures.shapes[1][0] is before
    drag(opened, qtbot, [(40, 40), (60, 60), (90, 90)])
    assert opened.document.contents.measures.shapes[1][0].area < 0.6 * before.area


@pytest.mark.qt_log_ignore("This plugin does not support")  # of menus, of itself
def test_the_context_menu_of_a_shape(opened, qtbot):
    workspace = opened.workspace
    press(opened, qtbot, Qt.Key.Key_D)
    drag(opened, qtbot, [(40, 150), (80, 150), (120, 150)])
    position = at(workspace.canvas, (60, 150))
    event = QContextMenuEvent(
        QContextMenuEvent.Reason.Mouse, position, workspace.canvas.mapToGlobal(position)
    )
    QApplication.sendEvent(workspace.canvas, event)
    menu = next(menu for menu in workspace.findChildren(QMenu) if menu.isVisible())
    actions = {action.text(): action for action in menu.actions()}
    assert next(iter(actions)).startswith("Length 1, ")
    actions["Delete"].trigger()
    menu.close()
    idle(opened, qtbot)
    assert workspace.measure.list.lines == ()


def figures(window):
    return {line.title: line for line in window.workspace.parasitaemia.list.lines}


def test_parasitaemia_follows_inputs_and_decisions(fused, qtbot):
    workspace = fused.workspace
    panel = workspace.parasitaemia
    workspace.middle_tabs.setCurrentWidget(panel)
    idle(fused, qtbot)
    assert figures(fused)["Per 200 leukocytes"].value == ""
    panel.fields["leukocytes"].setValue(200)
    idle(fused, qtbot)
    before = figures(fused)["Per microlitre, by leukocytes"]
    assert before.formula.endswith("× 8,000 /µl / 200 leukocytes")
    expected = float(before.formula.split(" ")[0])
    assert float(before.value.split()[0].replace(",", "")) == pytest.approx(expected * 40, rel=0.02)
    for index in range(len(workspace.reviewing.spots)):
        workspace.reviewing.select(index)
        press(fused, qtbot, Qt.Key.Key_R)
    after = figures(fused)["Per microlitre, by leukocytes"]
    assert float(after.formula.split(" ")[0]) < expected / 1.5
    panel.fields["leukocytes_per_microlitre"].setValue(4_000)
    idle(fused, qtbot)
    assert "× 4,000 /µl" in figures(fused)["Per microlitre, by leukocytes"].formula
    assert fused.menus.undo_action.text().startswith("Undo count 200 leukocytes, 4,000 leukocytes/µl")
    press(fused, qtbot, Qt.Key.Key_Z, CTRL)
    assert panel.fields["leukocytes_per_microlitre"].value() == 0
    assert panel.fields["leukocytes"].value() == 200
    assert not fused.document.contents.stale - {"clicks"}


def test_one_image_has_counts_of_its_own_and_a_volume_needs_scale_and_thickness(fused, qtbot):
    panel = fused.workspace.parasitaemia
    fused.workspace.middle_tabs.setCurrentWidget(panel)
    panel.fields["thickness"].setValue(5.0)
    idle(fused, qtbot)
    assert "scale" in figures(fused)["Per microlitre, by volume"].formula
    set_scale(fused, qtbot, 20.0)
    assert figures(fused)["Per microlitre, by volume"].value.endswith("/µl")
    panel.scope.set_mode("one")
    idle(fused, qtbot)
    assert "Per field" not in figures(fused)
    assert panel.fields["thickness"].isHidden()
    panel.fields["leukocytes"].setValue(20)
    idle(fused, qtbot)
    assert "/ 20 leukocytes" in figures(fused)["Per microlitre, by leukocytes"].formula
    assert figures(fused)["Per microlitre, by volume"].value
    press(fused, qtbot, Qt.Key.Key_PageDown)
    assert figures(fused)["Per microlitre, by leukocytes"].value == ""
    assert panel.fields["leukocytes"].value() == 0
