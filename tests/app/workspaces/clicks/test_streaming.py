"""Streams of clicks in the window: a growing file is watched, and an image is replayed."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLabel, QSlider

from raterscope.algorithms.clicks.stopping import count_changes
from raterscope.app import importing
from raterscope.app.kinds.clicks.live_source import LiveSource, WatchRequest
from raterscope.app.kinds.clicks.live_watching import WatchPlan
from raterscope.app.review import Decision
from raterscope.app.study import Study, streams
from raterscope.app.workspaces.clicks.spots import Settling, Summary
from raterscope.widgets.dialogs.import_dialogs import ColumnMappingDialog
from tests.app.conftest import ANNOTATORS, PARASITES
from tests.app.driving import LONG, idle, press, states

HEADER = "annotator,image,x,y\n"
EVERY = 120
"""Milliseconds between two looks at a source: more than `SOON`, which `idle` waits for."""


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Predict from fewer draws: they take most of the time."""
    monkeypatch.setattr("raterscope.algorithms.clicks._predictive.DRAWS", 8)


@pytest.fixture
def images_only(tmp_path) -> Path:
    """A study that waits for a crowd."""
    rng = np.random.default_rng(2)
    for name in ("one.png", "two.png"):
        Image.fromarray(rng.integers(150, 200, (180, 240, 3), dtype=np.uint8)).save(tmp_path / name)
    path = tmp_path / "waiting.rscope"
    with Study.create(path) as study:
        files = [tmp_path / "one.png", tmp_path / "two.png"]
        importing.store(importing.read_files(files, kind="image"), study)
    return path


@pytest.fixture
def waiting(window, qtbot, images_only, monkeypatch):
    monkeypatch.setattr("raterscope.app.workspaces.clicks.click_streams.EVERY", EVERY)
    window.open_paths([images_only])
    qtbot.waitUntil(lambda: window.workspace is not None and window.document.contents is not None)
    idle(window, qtbot)
    return window


def visit(annotator: int, image: str) -> str:
    rng = np.random.default_rng(annotator)
    positions = np.array(PARASITES) + rng.normal(0, 1.5, (len(PARASITES), 2))
    return "".join(f"volunteer {annotator},{image},{x:.2f},{y:.2f}\n" for x, y in positions)


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def stream_of(window):
    return window.workspace.streaming


def wait_for(window, qtbot, annotators: int) -> None:
    """Wait until so many annotators have come to the image on screen."""

    def come():
        scene = window.workspace.reviewing.session.scene
        return scene is not None and scene.stream_note != "" and len(scene.clicks.annotators) == annotators

    qtbot.waitUntil(come, timeout=LONG)


def test_new_clicks_appear_until_the_stop_rule_is_met_and_a_restarted_source_needs_column_names(
    waiting, qtbot, tmp_path
):
    source = tmp_path / "clicks.csv"
    append(source, HEADER + visit(0, "one.png"))
    stream_of(waiting).watch(source)
    wait_for(waiting, qtbot, 1)
    append(source, "".join(visit(annotator, "one.png") for annotator in range(1, 8)) + "volunteer 8,one")
    wait_for(waiting, qtbot, 8)
    append(source, ".png,40,41\n")
    wait_for(waiting, qtbot, 9)
    assert states(waiting).count("detected") == len(PARASITES)
    assert "watching clicks.csv" in waiting.status.text.text()
    qtbot.waitUntil(lambda: "not settled" not in waiting.status.text.text(), timeout=LONG)
    assert "Watching" not in waiting.workspace.notes.notes()  # settling changed nothing
    assert waiting.workspace.stream._firm.isVisible()
    queue = waiting.workspace.queue.view
    qtbot.waitUntil(lambda: "found by 9" in queue.lines[-1].detail, timeout=LONG)
    assert queue.lines[-1].title == "one.png"
    assert queue.lines[-1].done

    source.unlink()
    append(source, visit(9, "one.png"))
    qtbot.waitUntil(lambda: waiting.findChild(ColumnMappingDialog) is not None, timeout=LONG)
    idle(waiting, qtbot)
    offer = [label.text() for label in waiting.workspace.stream.offers.findChildren(QLabel)]
    assert any(words.startswith("The meaning of its columns is unknown.") for words in offer)
    assert states(waiting).count("detected") == len(PARASITES)
    dialog = waiting.findChild(ColumnMappingDialog)
    for choice, field in zip(dialog.columns.choices, ("annotator", "image", "x", "y"), strict=True):
        choice.setCurrentIndex(choice.findData(field))
    dialog.accept()
    wait_for(waiting, qtbot, 10)


def test_a_decision_in_a_stream_is_kept_with_new_clicks_and_a_pause_takes_none_in(waiting, qtbot, tmp_path):
    source = tmp_path / "clicks.csv"
    append(source, HEADER + "".join(visit(annotator, "one.png") for annotator in range(6)))
    stream_of(waiting).watch(source)
    wait_for(waiting, qtbot, 6)
    reviewing = waiting.workspace.reviewing
    x, y = reviewing.spots[0].x, reviewing.spots[0].y
    reviewing.select(0)
    press(waiting, qtbot, Qt.Key.Key_R)
    append(source, visit(6, "one.png"))
    wait_for(waiting, qtbot, 7)
    spot = min(reviewing.spots, key=lambda item: (item.x - x) ** 2 + (item.y - y) ** 2)
    assert spot.state == "turned down"
    qtbot.waitUntil(lambda: reviewing.session.scene.fusion.verdict[spot.cluster] == 0, timeout=LONG)

    live = stream_of(waiting).live
    qtbot.waitUntil(lambda: live.waiting, timeout=LONG)
    waiting.workspace.stream.live.pause_toggled.emit(True)
    append(source, visit(7, "one.png"))
    qtbot.wait(3 * EVERY)
    assert len(reviewing.session.scene.clicks.annotators) == 7
    waiting.workspace.stream.live.pause_toggled.emit(False)
    wait_for(waiting, qtbot, 8)


def test_stopped_it_is_kept_as_a_run_and_goes_on_when_resumed(waiting, qtbot, tmp_path, images_only):
    source, stream = tmp_path / "clicks.csv", waiting.workspace.stream
    append(source, HEADER + "".join(visit(annotator, "one.png") for annotator in range(5)))
    stream_of(waiting).watch(source)
    wait_for(waiting, qtbot, 5)
    stream.live.stop.click()
    qtbot.waitUntil(lambda: len(waiting.document.contents.runs) == 1, timeout=LONG)
    idle(waiting, qtbot)
    assert stream_of(waiting).live.following is None
    assert "online OEM + DEM, converged" in waiting.status.text.text()
    line = next(line for line in waiting.workspace.queue.view.lines if line.title == "one.png")
    assert line.detail == f"{len(PARASITES)} detections"
    offer = stream.offers.findChildren(QLabel)
    assert any(label.text().startswith("Stopped by you. Last arrival 20") for label in offer)
    append(source, visit(5, "one.png"))
    stream.offers.resume.click()
    wait_for(waiting, qtbot, 6)
    waiting.document.close()  # it leaves the watch in peace
    idle(waiting, qtbot)
    assert stream_of(waiting).live.following is None
    with Study.open(images_only) as study:
        assert [entry.source for entry in streams.streams(study)] == [source]
        assert len(study.clicks(1)) == 6 * len(PARASITES)


def test_an_unknown_image_is_reported_and_nothing_is_lost_and_marked_programs_are_ignored(
    waiting, qtbot, tmp_path
):
    waiting.document.record(Decision(verb="program", annotators=("volunteer 0",)))
    qtbot.waitUntil(lambda: bool(waiting.document.contents.review.programs))
    source = tmp_path / "clicks.csv"
    append(source, HEADER + visit(0, "three.png") + visit(1, "three.png"))
    with qtbot.waitSignal(waiting.workspace.refused, timeout=LONG) as refused:
        stream_of(waiting).watch(source)
    assert '"three.png"' in refused.args[0]
    assert stream_of(waiting).live.following is None
    idle(waiting, qtbot)
    (tmp_path / "one.png").rename(tmp_path / "three.png")
    waiting.open_paths([tmp_path / "three.png"])
    idle(waiting, qtbot)
    waiting.workspace.stream.offers.resume.click()
    live = stream_of(waiting).live
    qtbot.waitUntil(lambda: live.following is not None and len(live.following.watched) == 1, timeout=LONG)
    assert "Marked programs take no part" in live.notice


@pytest.mark.parametrize(("disputed", "firm", "done"), [(0, True, True), (1, True, False), (0, False, False)])
def test_an_image_is_done_once_it_meets_the_stop_rule_without_disputed_spots(disputed, firm, done):
    line = Summary(
        fused=True, looked=True, detections=6, disputed=disputed, decided=0, doubt=0.1,
        settling=Settling(annotators=12, expected=0.1, firm=firm),
    )  # fmt: skip
    assert line.done == done
    assert ("disputed" in line.in_words()) == bool(disputed)


def test_the_queue_keeps_stream_results_after_another_fusion(waiting, qtbot, tmp_path):
    source = tmp_path / "clicks.csv"
    append(source, HEADER + "".join(visit(annotator, "one.png") for annotator in range(9)))
    stream_of(waiting).watch(source)
    wait_for(waiting, qtbot, 9)
    press(waiting, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: bool(waiting.document.contents.runs), timeout=LONG)
    idle(waiting, qtbot)
    lines = {line.title: line for line in waiting.workspace.queue.view.lines}
    assert "found by 9 (enough)" in lines["one.png"].detail
    assert lines["two.png"].detail == "no annotator yet"
    assert not lines["two.png"].done


def test_an_interrupted_source_is_offered_by_the_next_window(window, qtbot, tmp_path, images_only):
    source = tmp_path / "clicks.csv"
    append(source, HEADER + visit(0, "one.png"))
    with Study.open(images_only) as study:
        following = LiveSource(study, WatchRequest(source, WatchPlan(), {}))
        following.store(study, following.look())
    window.open_paths([images_only])
    qtbot.waitUntil(lambda: window.workspace is not None, timeout=LONG)
    idle(window, qtbot)
    offer = [label.text() for label in window.workspace.stream.offers.findChildren(QLabel)]
    assert "clicks.csv" in offer
    assert any(words.startswith("The study was closed while it was watched.") for words in offer)


def test_a_replay_plays_to_its_end_decides_nothing_and_goes_back_to_the_run_or_another_image(fused, qtbot):
    workspace = fused.workspace
    before = [(spot.x, spot.y, spot.state) for spot in workspace.reviewing.spots]
    workspace.stream.offers.replay.click()
    replay = stream_of(fused).replay
    workspace.stream.replay.speed_chosen.emit(60.0)
    qtbot.waitUntil(lambda: replay.position == replay.total > 0 and not replay.playing, timeout=LONG)
    assert len(replay.steps) == ANNOTATORS + 1
    replay.go_to(0)
    assert workspace.reviewing.spots == ()
    slider = workspace.stream.findChild(QSlider)
    qtbot.mouseClick(slider, Qt.MouseButton.LeftButton, pos=QPoint(2, slider.height() // 2))
    slider.setValue(3)
    assert replay.position == 3
    assert len(workspace.reviewing.session.scene.clicks.annotators) == 3
    replay.go_to(ANNOTATORS + 1)
    assert states(fused).count("detected") >= len(PARASITES)
    assert f"replay, {ANNOTATORS + 1} of {ANNOTATORS + 1} annotators" in fused.status.text.text()
    workspace.reviewing.select(0)
    with qtbot.waitSignal(workspace.message) as signal:
        press(fused, qtbot, Qt.Key.Key_A)
    assert "replay" in signal.args[0]
    assert fused.document.contents.decisions == ()
    press(fused, qtbot, Qt.Key.Key_Escape)
    assert not replay.on
    assert fused.status.message == ""
    assert [(spot.x, spot.y, spot.state) for spot in workspace.reviewing.spots] == before
    workspace.stream.offers.replay.click()
    assert replay.on
    press(fused, qtbot, Qt.Key.Key_PageDown)
    assert not replay.on
    assert workspace.reviewing.session.scene.stream_note == ""


def test_decisions_hold_in_a_replay_which_ends_where_the_run_is(fused, qtbot):
    workspace = fused.workspace
    detected = [n for n, spot in enumerate(workspace.reviewing.spots) if spot.state == "detected"]
    workspace.reviewing.select(detected[0])
    rejected = workspace.reviewing.spots[detected[0]]
    press(fused, qtbot, Qt.Key.Key_R)
    idle(fused, qtbot)
    replay, before = stream_of(fused).replay, workspace.reviewing.session.scene.fusion
    for button in (workspace.stream.offers.replay, workspace.stream.replay.shuffle):
        button.click()
        qtbot.waitUntil(lambda: len(replay.steps) == replay.total > 0, timeout=LONG)
        fusion = replay.steps[-1].fusion
        apart = np.hypot(*(fusion.clustering.mean - (rejected.x, rejected.y)).T)
        assert fusion.verdict[apart.argmin()] == 0
        assert not fusion.detection.detected[apart.argmin()]
        assert count_changes(before, fusion) == 1
        replay.play(False)
        replay.go_to(replay.total)
        assert workspace.notes.notes()["Replay"].startswith("1 decision differs from run ")
        replay.go_to(replay.total - 1)
        assert "Replay" not in workspace.notes.notes()
    workspace.stream.leave.click()
    idle(fused, qtbot)
    assert not replay.on


def test_annotators_to_ask_have_not_seen_the_image_and_are_blinded(waiting, qtbot, tmp_path):
    table = tmp_path / "clicks.csv"
    observed = "".join(visit(annotator, "one.png") for annotator in range(8)) + "".join(
        visit(annotator, "two.png") for annotator in range(5)
    )
    append(table, HEADER + observed)
    waiting.open_paths([table])
    idle(waiting, qtbot)
    workspace = waiting.workspace
    press(waiting, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: bool(waiting.document.contents.runs), timeout=LONG)
    idle(waiting, qtbot)
    image = next(image.id for image in waiting.document.contents.images if image.name == "two.png")
    workspace.navigation.go_to(image)
    idle(waiting, qtbot)
    workspace.right_tabs.setCurrentWidget(workspace.ask)
    qtbot.waitUntil(lambda: len(workspace.ask.list.lines) == 3, timeout=LONG)
    assert {line.name for line in workspace.ask.list.lines} == {
        f"volunteer {annotator}" for annotator in (5, 6, 7)
    }
    press(waiting, qtbot, Qt.Key.Key_H)
    assert not any("volunteer" in line.name for line in workspace.ask.list.lines)
