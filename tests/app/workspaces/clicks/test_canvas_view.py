"""Spots that were viewed and left undecided are recorded; decided or briefly shown ones are not."""

import numpy as np
import pytest
from PySide6.QtCore import Qt

from raterscope.app.study import Study
from tests.app.driving import LONG, idle, press


@pytest.fixture
def clock(fused, monkeypatch):
    """A clock of the record that the test moves: `clock.now`."""

    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(fused.workspace.viewing, "clock", clock)
    return clock


def look(fused, qtbot, clock, index, seconds):
    fused.workspace.reviewing.select(index)
    clock.now += seconds
    idle(fused, qtbot)


def recorded(fused, path):
    fused.document.close()
    with Study.open(path) as study:
        return [view for some in study.views.by_image().values() for view in some]


def test_a_spot_selected_long_enough_and_left_is_recorded(fused, qtbot, study_file, clock):
    workspace = fused.workspace
    image, run = workspace.current_item(), workspace.reviewing.session.scene.run.id
    spots = workspace.reviewing.spots
    look(fused, qtbot, clock, 0, 2.0)
    look(fused, qtbot, clock, 1, 0.1)  # passed
    look(fused, qtbot, clock, 2, 3.0)
    press(fused, qtbot, Qt.Key.Key_R)  # decided
    idle(fused, qtbot)
    clock.now += 1.0
    look(fused, qtbot, clock, 3, 1.0)
    press(fused, qtbot, Qt.Key.Key_S)  # skipped
    idle(fused, qtbot)
    workspace.reviewing.select(None)
    idle(fused, qtbot)
    views = recorded(fused, study_file)
    assert [(view.number, view.seconds) for view in views if view.number in (1, 2, 3, 4)] == [(1, 2.0)]
    first = views[0]
    assert (first.image, first.run, first.how) == (image, run, "selected")
    assert (first.x, first.y) == (spots[0].x, spots[0].y)


def test_nothing_is_viewed_while_the_image_is_hidden(fused, qtbot, study_file, clock):
    workspace = fused.workspace
    look(fused, qtbot, clock, 0, 0.25)
    workspace.canvas.hide()
    clock.now += 10.0
    workspace.canvas.show()
    clock.now += 0.5
    workspace.reviewing.select(1)
    workspace.canvas.hide()
    clock.now += 10.0
    workspace.reviewing.select(None)
    idle(fused, qtbot)
    assert [(view.number, view.seconds) for view in recorded(fused, study_file)] == [(1, 0.75)]


def test_visible_spots_of_the_grid_are_recorded_while_others_are_rejected(fused, qtbot, study_file, clock):
    workspace = fused.workspace
    press(fused, qtbot, Qt.Key.Key_G)
    grid = workspace.grid
    grid.kind_choice.setCurrentIndex(grid.kind_choice.findData("detected"))
    idle(fused, qtbot)
    numbers = [int(number) for number in grid.numbers]
    qtbot.waitUntil(lambda: set(grid.visible_items) == set(numbers), timeout=LONG)
    spots = {number: workspace.batch_review.listed(number).spot for number in numbers}
    clock.now += 3.0
    grid.view.setCurrentIndex(grid.view.model().at(1))
    press(fused, qtbot, Qt.Key.Key_R)
    idle(fused, qtbot)
    clock.now += 3.0
    grid.view.setCurrentIndex(grid.view.model().at(1))
    press(fused, qtbot, Qt.Key.Key_R)
    idle(fused, qtbot)
    views = recorded(fused, study_file)
    left = [spots[number].number for number in numbers if number != numbers[1]]
    assert [view.number for view in views] == left  # each once
    assert {view.how for view in views} == {"listed"}


def test_a_fusion_uses_viewed_spots(fused, qtbot, study_file, clock):
    workspace = fused.workspace
    spot = workspace.reviewing.spots[0]
    look(fused, qtbot, clock, 0, 2.0)
    workspace.reviewing.select(1)
    idle(fused, qtbot)
    press(fused, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(fused.document.contents.runs) == 2, timeout=LONG)
    idle(fused, qtbot)
    assert fused.document.contents.runs[-1].log["viewed"] >= 1
    fused.document.close()
    with Study.open(study_file) as study:
        (views,) = study.views.by_image().values()
        assert np.allclose((views[0].x, views[0].y), (spot.x, spot.y))
