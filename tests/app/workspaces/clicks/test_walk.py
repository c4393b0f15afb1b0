"""One queue through the spots of all images: Tab and A reach everything and overwrite nothing."""

from collections import Counter

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import Qt

from raterscope.algorithms.clicks import FusionPlan
from raterscope.algorithms.clicks.voting import MajoritySettings
from raterscope.app import importing
from raterscope.app.kinds.clicks.runs import fuse_inputs, gather, keep
from raterscope.app.study import Study
from tests.app.driving import idle, open_study, press, states
from tests.app.workspaces.walking import decisions, left, nothing_left, walk

IMAGES = ("one.png", "two.png", "three.png")
REAL = ((40, 40), (120, 50), (60, 130), (150, 150), (200, 90))
DOUBTFUL = {"one.png": ((190, 30),), "two.png": ((190, 30), (20, 90)), "three.png": ((100, 100),)}


@pytest.fixture(scope="session")
def three_images(tmp_path_factory):
    """Three small images with spots that a third of the crowd marked, fused."""
    folder = tmp_path_factory.mktemp("three")
    rng = np.random.default_rng(5)
    lines, files = ["annotator,image,x,y"], []
    for name in IMAGES:
        files.append(folder / name)
        Image.fromarray(rng.integers(150, 200, (180, 240, 3), dtype=np.uint8)).save(files[-1])
        for annotator in range(12):
            for x, y in [*REAL, *(DOUBTFUL[name] if annotator < 4 else ())]:
                dx, dy = rng.normal(0, 1.5, 2)
                lines.append(f"volunteer {annotator},{name},{x + dx:.2f},{y + dy:.2f}")
    table = folder / "clicks.csv"
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    path = folder / "three.rscope"
    with Study.create(path) as study:
        importing.store(importing.read_files([*files, table]), study)
        keep(
            fuse_inputs(
                gather([entry.id for entry in study.images()], study),
                FusionPlan(detector="majority", detection=MajoritySettings()),
            ),
            study,
        )
    return path


@pytest.fixture
def walked(window, qtbot, three_images, tmp_path):
    path = tmp_path / three_images.name
    path.write_bytes(three_images.read_bytes())
    open_study(window, qtbot, path)
    return window, path


def check_counts(window):
    shown = window.workspace.queue.shown()
    assert sum(item.counts["disputed"] for item in shown) == left(window)
    here = states(window).count("disputed")
    name = window.workspace.reviewing.session.scene.image.name
    assert next(item.counts["disputed"] for item in shown if item.title == name) == here
    total = len(DOUBTFUL[name])
    assert f"of 3: {total - here} of {total} decided" in window.workspace.queue._progress.accessibleName()
    assert f"{here} of" in window.status.text.text()
    if nothing_left(window):
        assert left(window) == 0


def test_accept_and_reject_alone_reach_every_spot_of_every_image_once(walked, qtbot):
    window, path = walked
    assert left(window) == 4
    keys = [Qt.Key.Key_Tab, Qt.Key.Key_A, Qt.Key.Key_R]
    visited = walk(window, qtbot, keys, window.workspace.canvas, lambda: check_counts(window))
    assert visited[-1] == 0
    for index in (Qt.Key.Key_A, Qt.Key.Key_R, Qt.Key.Key_S, Qt.Key.Key_A):
        press(window, qtbot, index)
        assert "decided already" in window.status.message
    recorded = decisions(window, path)
    assert len(recorded) == 4
    assert max(Counter((decision.item, decision.subject.number) for decision in recorded).values()) == 1


def test_skipped_spots_of_all_images_come_last_and_a_second_skip_is_not_written(walked, qtbot):
    window, path = walked
    press(window, qtbot, Qt.Key.Key_Tab)
    for _ in range(4):
        press(window, qtbot, Qt.Key.Key_S)
    assert "4 skipped" in window.workspace.queue._progress.accessibleName()
    for _ in range(5):
        press(window, qtbot, Qt.Key.Key_S)
    walk(window, qtbot, [Qt.Key.Key_A], window.workspace.canvas, lambda: check_counts(window))
    assert [decision.verb for decision in decisions(window, path)] == ["skip"] * 4 + ["accept"] * 4


def test_a_decided_spot_is_changed_only_when_it_is_clicked(walked, qtbot):
    window, path = walked
    walk(window, qtbot, [Qt.Key.Key_A], window.workspace.canvas)
    review = window.workspace.reviewing
    index = review.current
    press(window, qtbot, Qt.Key.Key_R)
    assert review.spots[index].state == "accepted"
    window.workspace.canvas.spot_clicked.emit(index)
    press(window, qtbot, Qt.Key.Key_R)
    assert review.spots[index].state == "turned down"
    press(window, qtbot, Qt.Key.Key_A)
    assert review.spots[index].state == "turned down"
    assert len(decisions(window, path)) == 5


def test_the_spot_that_is_added_is_the_one_that_is_moved_and_the_walk_goes_on_after_it(walked, qtbot):
    window, _ = walked
    press(window, qtbot, Qt.Key.Key_Tab)
    canvas, review = window.workspace.canvas, window.workspace.reviewing
    before = review.spot
    press(window, qtbot, Qt.Key.Key_N)
    canvas.place_chosen.emit(90.0, 165.0)
    idle(window, qtbot)
    assert (review.spot.state, review.spot.x, review.spot.y) == ("added", 90.0, 165.0)
    press(window, qtbot, Qt.Key.Key_M)
    canvas.spot_moved.emit(review.current, 95.0, 160.0)
    idle(window, qtbot)
    assert (review.spot.state, review.spot.x, review.spot.y) == ("added", 95.0, 160.0)
    same = next(spot for spot in review.spots if spot.number == before.number)
    assert (same.x, same.y, same.state) == (before.x, before.y, "disputed")
    walk(window, qtbot, [Qt.Key.Key_Tab, Qt.Key.Key_A], canvas)
