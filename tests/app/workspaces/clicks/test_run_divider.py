"""Two runs on one image: left of a divider the run on screen, right of it the other one."""

import pytest
from PySide6.QtCore import QPoint, Qt

from raterscope.app.cli import main
from tests.app.driving import idle, open_study, press


@pytest.fixture
def opened(window, qtbot, study_file, study_fused):
    study_file.write_bytes(study_fused.read_bytes())
    return study_file


def divider_of(canvas):
    return canvas.divider.across(canvas.width())


def test_the_divider_is_dragged_between_two_runs(window, qtbot, opened):
    assert main(["run", str(opened), "cem"]) == 0
    canvas = open_study(window, qtbot, opened).workspace.canvas
    press(window, qtbot, Qt.Key.Key_V)
    assert divider_of(canvas) == pytest.approx(canvas.width() / 2, abs=1)
    left, right = canvas.divider.chips
    assert left.text() != right.text()
    centre = canvas.viewport.centre
    qtbot.mousePress(canvas, Qt.MouseButton.LeftButton, pos=QPoint(round(divider_of(canvas)), 90))
    qtbot.mouseMove(canvas, QPoint(40, 90))
    qtbot.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=QPoint(40, 90))
    assert divider_of(canvas) == pytest.approx(40, abs=1)
    assert canvas.viewport.centre == centre
    spots = canvas.layers.spots.spots
    right = next(i for i in range(len(spots)) if canvas.viewport.to_screen(spots.x[i], spots.y[i])[0] > 60)
    assert canvas.spot_at(spots.x[right], spots.y[right]) is None
    press(window, qtbot, Qt.Key.Key_Left, Qt.KeyboardModifier.ControlModifier, on=canvas)
    assert divider_of(canvas) == pytest.approx(40 - canvas.width() / 20, abs=1)
    assert canvas.viewport.centre == centre
    press(window, qtbot, Qt.Key.Key_Escape)
    assert divider_of(canvas) is None
    assert canvas.spot_at(spots.x[right], spots.y[right]) is not None
    press(window, qtbot, Qt.Key.Key_V)
    window.workspace.core.toggle_blind()
    idle(window, qtbot)
    assert divider_of(canvas) is None


def test_any_other_run_is_chosen_on_the_right(window, qtbot, opened):
    for algorithm in ("hdbscan", "cem"):
        assert main(["run", str(opened), algorithm]) == 0
    canvas = open_study(window, qtbot, opened).workspace.canvas
    press(window, qtbot, Qt.Key.Key_V)
    left, right = canvas.divider.chips
    assert left.text().startswith("run 3:")
    assert right.text().startswith("run 2:")
    first, second = right.menu.actions()
    latest = len(canvas.layers.compared.spots)
    next(action for action in (first, second) if action.text().startswith("run 1:")).trigger()
    idle(window, qtbot)
    assert right.text().startswith("run 1:")
    assert len(canvas.layers.compared.spots) != latest


def test_spots_of_both_runs_are_bookmarked_and_dragging_describes_none(window, qtbot, opened):
    assert main(["run", str(opened), "cem"]) == 0
    workspace = open_study(window, qtbot, opened).workspace
    canvas = workspace.canvas
    press(window, qtbot, Qt.Key.Key_V)
    for expected in (1, 0):
        workspace.reviewing.select(0)
        press(window, qtbot, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
        idle(window, qtbot)
        assert len(canvas.layers.compared.spots.bookmarked) == expected
    spots = canvas.layers.spots.spots
    x, y = canvas.viewport.to_screen(float(spots.x[0]), float(spots.y[0]))
    canvas.divider.move((x + 1) / canvas.width())
    on_spot = QPoint(round(x), round(y))
    qtbot.mouseMove(canvas, on_spot)
    assert canvas._hovered == 0
    qtbot.mousePress(canvas, Qt.MouseButton.LeftButton, pos=on_spot)
    qtbot.mouseMove(canvas, QPoint(40, 90))
    assert canvas._hovered is None
    qtbot.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=QPoint(40, 90))


def test_one_run_is_not_compared(window, qtbot, opened):
    canvas = open_study(window, qtbot, opened).workspace.canvas
    press(window, qtbot, Qt.Key.Key_V)
    assert divider_of(canvas) is None
    assert "one run" in window.status.message
