"""Two runs on one image: left of a divider the run on screen, right of it the other one."""

import pytest
from PySide6.QtCore import QPoint, Qt

from raterscope.app.cli import main
from tests.app.driving import idle, open_study, press


@pytest.fixture
def opened(window, qtbot, study_file, study_fused):
    study_file.write_bytes(study_fused.read_bytes())
    return study_file


def test_the_divider_is_dragged_between_two_runs(window, qtbot, opened):
    assert main(["run", str(opened), "cem"]) == 0
    canvas = open_study(window, qtbot, opened).workspace.canvas
    press(window, qtbot, Qt.Key.Key_V)
    assert canvas.divider == pytest.approx(canvas.width() / 2, abs=1)
    assert canvas._titles[0] != canvas._titles[1]
    centre = canvas.viewport.centre
    qtbot.mousePress(canvas, Qt.MouseButton.LeftButton, pos=QPoint(round(canvas.divider), 90))
    qtbot.mouseMove(canvas, QPoint(40, 90))
    qtbot.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=QPoint(40, 90))
    assert canvas.divider == pytest.approx(40, abs=1)
    assert canvas.viewport.centre == centre
    spots = canvas._spots.spots
    right = next(i for i in range(len(spots)) if canvas.viewport.to_screen(spots.x[i], spots.y[i])[0] > 60)
    assert canvas.spot_at(spots.x[right], spots.y[right]) is None
    press(window, qtbot, Qt.Key.Key_Escape)
    assert canvas.divider is None
    assert canvas.spot_at(spots.x[right], spots.y[right]) is not None
    press(window, qtbot, Qt.Key.Key_V)
    window.workspace.core.toggle_blind()
    idle(window, qtbot)
    assert canvas.divider is None


def test_one_run_is_not_compared(window, qtbot, opened):
    canvas = open_study(window, qtbot, opened).workspace.canvas
    press(window, qtbot, Qt.Key.Key_V)
    assert canvas.divider is None
    assert "one run" in window.status.message
