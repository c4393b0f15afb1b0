"""Review of spots: evidence, blind decisions, flagged images, progress of the queue."""

import threading
from dataclasses import replace

import pytest
from PySide6.QtCore import QCoreApplication, QPoint, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtWidgets import QMenu

from raterscope.app.importing import import_files
from raterscope.app.review import SpotSubject
from raterscope.app.study import Study
from raterscope.app.workspaces.clicks.batch_review import SpotPosition
from raterscope.widgets.dialogs.review_dialogs import ReasonDialog
from tests.app.driving import LONG, idle, open_study, press, states
from tests.reading import visible_words


def disputed(window) -> int:
    return next(i for i, spot in enumerate(window.workspace.reviewing.spots) if spot.state == "disputed")


def flag(window, qtbot, reason):
    press(window, qtbot, Qt.Key.Key_F)
    dialog = window.findChild(ReasonDialog)
    dialog.edit.setText(reason)
    dialog.accept()
    idle(window, qtbot)


def test_a_decision_that_a_run_held_fixed_is_not_shown_as_the_models(fused, qtbot):
    workspace = fused.workspace
    image, index = workspace.session.scene.image.id, disputed(fused)

    def evidence_of_the_decided_spot():
        workspace.queue.item_chosen.emit(image)
        idle(fused, qtbot)
        workspace.reviewing.select(index)
        return visible_words(workspace.evidence)

    workspace.reviewing.select(index)
    with qtbot.waitSignal(fused.document.decided, timeout=LONG):
        press(fused, qtbot, Qt.Key.Key_A)
    idle(fused, qtbot)
    assert "95 % interval" in evidence_of_the_decided_spot()  # of the run before the decision
    press(fused, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(fused.document.contents.runs) == 2, timeout=LONG)
    idle(fused, qtbot)
    words = evidence_of_the_decided_spot()
    assert "your decision is held fixed" in words
    assert "95 % interval" not in words


def test_evidence_of_a_spot_shows_votes_neighbours_and_crops_to_scale(fused, qtbot):
    workspace = fused.workspace
    index = disputed(fused)
    workspace.reviewing.select(index)
    spot = workspace.reviewing.spots[index]
    words = visible_words(workspace.evidence)
    assert f"{spot.votes} of {spot.looked} ({100 * spot.votes / spot.looked:.0f} %): most did not" in words
    assert f"{workspace.evidence._number.text()}: disputed" in words  # as many digits as the large number has
    assert f"{spot.votes} clicked, {spot.looked - spot.votes} did not" in words
    clicked = [line.clicked for line in workspace.evidence.about.voters.lines]
    assert clicked == sorted(clicked, reverse=True)
    # Nearly all of this crowd mark every parasite.
    assert "If this is a structure, about" in words

    spots = workspace.reviewing.spots
    here = next(i for i, spot in enumerate(spots) if abs(spot.x - 40) < 3 and abs(spot.y - 40) < 3)
    workspace.reviewing.select(here)
    workspace.evidence.about.setCurrentIndex(1)
    near = workspace.evidence.about.near.view
    away = [((spot.x - spots[here].x) ** 2 + (spot.y - spots[here].y) ** 2) ** 0.5 for spot in spots]
    nearest = sorted(range(len(spots)), key=away.__getitem__)[1]
    assert near.lines[0].key == nearest
    assert near.lines[0].detail == f"{away[nearest]:.0f} px"
    qtbot.mouseClick(
        near.viewport(), Qt.MouseButton.LeftButton, pos=near.visualRect(near.model().index(0, 0)).center()
    )
    assert workspace.reviewing.current == nearest

    cache = fused.workspace.batch_review.cache
    wide = {}

    def cut(pixel_size):
        (entry,) = [image for image in fused.document.contents.images if image.name == "one.png"]
        cache.set_places({7: SpotPosition(replace(entry, pixel_size=pixel_size), 120.0, 90.0)})
        cache.want(7)
        with qtbot.waitSignal(cache.ready, timeout=LONG) as values:
            pass
        return values.args[1].width()

    for size in (0.25, 0.5):
        cache.set_scale([20.0], 0.25)
        cache.forget()
        wide[size] = cut(size)
    assert wide == {0.25: 40, 0.5: 20}


def test_other_runs_are_read_when_they_come_into_sight(fused, qtbot):
    workspace = fused.workspace
    press(fused, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(fused.document.contents.runs) == 2, timeout=LONG)
    idle(fused, qtbot)
    index = disputed(fused)
    workspace.reviewing.select(index)
    lines = workspace.evidence.about.runs.view
    assert lines.lines == ()
    workspace.evidence.about.setCurrentIndex(2)
    qtbot.waitUntil(lambda: len(lines.lines) == 1, timeout=LONG)
    (line,) = lines.lines
    first = fused.document.contents.runs[0].id
    assert line.key == first
    spot = workspace.reviewing.spots[index]
    assert (line.detail, line.figure, line.state) == (
        f"{spot.votes} of {spot.looked}", f"{spot.posterior:.2f}", "disputed",
    )  # fmt: skip
    workspace.evidence.about.runs.chosen.emit(first)
    idle(fused, qtbot)
    assert workspace.reviewing.session.scene.run.id == first


def test_blind_mode_hides_votes_until_a_decision_on_the_spot(fused, qtbot, study_file, monkeypatch):
    workspace = fused.workspace
    clicks = []
    monkeypatch.setattr(workspace.canvas.layers, "set_clicks", clicks.append)
    press(fused, qtbot, Qt.Key.Key_H)
    index = next(i for i, item in enumerate(workspace.reviewing.spots) if item.state == "detected")
    workspace.reviewing.select(index)
    spot = workspace.reviewing.spots[index]
    words = visible_words(workspace.evidence)
    assert "hidden until you decide" in words
    for text in (f"{spot.posterior:.2f}", f"{spot.votes} of {spot.looked}", "volunteer", "detected"):
        assert text not in words
    marks = workspace.canvas.layers.spots.spots
    assert set(marks.state) == {"undecided"}
    assert marks.text_of(index)[1] == "undecided"
    assert len(clicks[-1]) == 0
    assert not any("volunteer" in row.name for row in workspace.table.model.rows)

    press(fused, qtbot, Qt.Key.Key_R)
    assert f"Spot {spot.number}: you rejected it; {spot.votes} of" in visible_words(workspace.evidence)
    workspace.reviewing.select(index)
    words = visible_words(workspace.evidence)
    assert f"{spot.votes} of {spot.looked}" in words
    assert "rejected it" in words
    assert len(clicks[-1]) == spot.votes

    press(fused, qtbot, Qt.Key.Key_H)
    assert any("volunteer" in row.name for row in workspace.table.model.rows)
    workspace.reviewing.select(0 if index else 1)
    press(fused, qtbot, Qt.Key.Key_A)
    fused.document.close()
    with Study.open(study_file) as study:
        subjects = [decision.subject for decision in study.decisions()]
    assert all(isinstance(subject, SpotSubject) for subject in subjects)
    assert [subject.blind for subject in subjects] == [True, False]


def test_an_image_is_flagged_with_a_reason_found_by_it_and_unflagged_by_undo(fused, qtbot):
    workspace = fused.workspace
    name = workspace.reviewing.session.scene.image.name
    flag(fused, qtbot, "out of focus")
    queue = workspace.queue
    queue.choice.setCurrentIndex(queue.choice.findData("flagged"))
    assert [item.title for item in queue.shown()] == [name]
    assert workspace.history.view.lines[0].text == f"flag the image, {name}: out of focus"
    assert fused.menus.undo_action.text() == "Undo flag the image"
    assert fused.bar.fuse.text() == "Fuse"  # a flag changes no fusion
    press(fused, qtbot, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert queue.shown() == []
    assert "No image is flagged" in visible_words(queue)
    flag(fused, qtbot, "torn")
    press(fused, qtbot, Qt.Key.Key_F)
    assert queue.shown() == []


def test_the_queue_counts_settled_images_and_decided_spots_also_after_a_fusion(fused, qtbot):
    queue = fused.workspace.queue
    text = queue._progress.accessibleName
    assert text() == "Image 1 of 2: 0 of 1 decided, 0 of 2 disputed spots matter, 0 of 2 images settled"
    press(fused, qtbot, Qt.Key.Key_Tab)
    press(fused, qtbot, Qt.Key.Key_R)
    assert text() == "Image 2 of 2: 0 of 1 decided, 0 of 1 disputed spot matters, 1 of 2 images settled"
    press(fused, qtbot, Qt.Key.Key_R)
    assert text() == "Image 2 of 2: 1 of 1 decided, no disputed spot left, 2 of 2 images settled"
    queue.choice.setCurrentIndex(queue.choice.findData("undecided"))
    assert "Every image is settled" in visible_words(queue)

    runs = len(fused.document.contents.runs)
    press(fused, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(fused.document.contents.runs) > runs)
    idle(fused, qtbot)
    assert "1 of 1 decided" in text()


def open_grid(window, qtbot, *, everywhere):
    press(window, qtbot, Qt.Key.Key_G)
    grid = window.workspace.grid
    grid.where_choice.setCurrentIndex(int(everywhere))
    idle(window, qtbot)
    return grid


def cards(grid):
    return [grid._cards.card(index) for index in range(len(grid.numbers))]


def key(window, qtbot, name, modifiers=Qt.KeyboardModifier.NoModifier):
    """Press a key where the keys are."""
    qtbot.keyClick(window.focusWidget(), name, modifiers)
    idle(window, qtbot)


CTRL = Qt.KeyboardModifier.ControlModifier


def test_all_disputed_spots_of_all_images_are_settled_at_once_and_taken_back_by_one_undo(
    fused, qtbot, study_file
):
    grid = open_grid(fused, qtbot, everywhere=True)
    assert fused.workspace.grid_shown
    positions = [card.third for card in cards(grid)]
    assert sorted(positions) == ["one.png", "two.png"]
    qtbot.waitUntil(lambda: len(grid.pictures.kept) == 2 and all(grid.pictures.kept.values()), timeout=LONG)
    key(fused, qtbot, Qt.Key.Key_A, CTRL)
    key(fused, qtbot, Qt.Key.Key_R)
    assert len(grid.numbers) == 0
    assert fused.menus.undo_action.text() == "Undo reject 2 spots in 2 images"
    text = fused.workspace.queue._progress.accessibleName()
    assert text.endswith("no disputed spot left, 2 of 2 images settled")
    assert "turned down" in states(fused)
    key(fused, qtbot, Qt.Key.Key_Z, CTRL)
    assert len(grid.numbers) == 2
    assert "turned down" not in states(fused)
    assert fused.workspace.grid_shown
    fused.document.close()
    with Study.open(study_file) as study:
        assert [decision.verb for decision in study.decisions()] == ["reject", "undo"]
        assert len(study.decisions()[0].subject.spots) == 2


def test_blind_the_grid_shows_nothing_either(fused, qtbot):
    press(fused, qtbot, Qt.Key.Key_H)
    grid = open_grid(fused, qtbot, everywhere=True)
    assert {(card.second, card.figure) for card in cards(grid)} == {("", "")}
    assert not any("marked" in tip or "disputed" in tip for tip in map(grid._cards.text_of, range(2)))
    grid.view.setFocus()
    key(fused, qtbot, Qt.Key.Key_A, CTRL)
    key(fused, qtbot, Qt.Key.Key_A)
    assert fused.menus.undo_action.text() == "Undo accept 2 spots in 2 images, blind"


offscreen = pytest.mark.qt_log_ignore("This plugin does not support")  # of menus, of itself


def menu_at(window, qtbot, x, y):
    """Press the right button at a place of the image, and return the menu."""
    canvas = window.workspace.canvas
    point = QPoint(*(round(at) for at in canvas.viewport.to_screen(x, y)))
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, point, canvas.mapToGlobal(point))
    QCoreApplication.sendEvent(canvas, event)
    (menu,) = [menu for menu in window.workspace.findChildren(QMenu) if menu.isVisible()]
    return menu


def chosen(menu, words):
    next(action for action in menu.actions() if action.text() == words).trigger()
    menu.close()


@offscreen
def test_the_menu_of_a_spot_decides_and_that_of_an_empty_position_adds_one(fused, qtbot):
    workspace = fused.workspace
    index = disputed(fused)
    spot = workspace.reviewing.spots[index]
    menu = menu_at(fused, qtbot, spot.x, spot.y)
    assert workspace.reviewing.current == index
    text = f"x {spot.x:.1f}, y {spot.y:.1f} px"
    assert menu.actions()[0].text() == f"Spot {spot.number}, {text}"
    chosen(menu, "Copy the position")
    assert QGuiApplication.clipboard().text() == text
    workspace.upper.setSizes([1, 0])
    chosen(menu_at(fused, qtbot, spot.x, spot.y), "Show neighbours")
    assert workspace.evidence.about.near.isVisible()
    chosen(menu_at(fused, qtbot, spot.x, spot.y), "Reject")
    idle(fused, qtbot)
    assert (
        fused.document.contents.text_of(fused.document.contents.decisions[-1]) == f"reject spot {spot.number}"
    )

    chosen(menu_at(fused, qtbot, 90, 160), "Add a spot here")
    idle(fused, qtbot)
    (added,) = [spot for spot in fused.workspace.reviewing.spots if spot.state == "added"]
    assert abs(added.x - 90) < 1
    assert abs(added.y - 160) < 1
    menu = menu_at(fused, qtbot, 90, -2)
    assert "Add a spot here" not in [action.text() for action in menu.actions()]
    menu.close()


@offscreen
def test_spots_of_the_grid_are_copied_explained_and_decided(fused, qtbot):
    grid = open_grid(fused, qtbot, everywhere=True)
    grid.view.selectAll()
    grid.view.customContextMenuRequested.emit(grid.view.visualRect(grid.view.model().at(0)).center())
    (menu,) = [menu for menu in fused.workspace.findChildren(QMenu) if menu.isVisible()]
    assert menu.actions()[0].text() == "2 spots"
    chosen(menu, "Copy the positions")
    lines = QGuiApplication.clipboard().text().splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("image\tspot")

    workspace = fused.workspace
    here = workspace.reviewing.session.scene.image.name
    other = next(index for index, card in enumerate(cards(grid)) if card.third != here)
    grid.view.setCurrentIndex(grid.view.model().at(other))
    idle(fused, qtbot)
    words = visible_words(workspace.evidence)
    assert cards(grid)[other].third in words
    assert "disputed" in words
    key(fused, qtbot, Qt.Key.Key_Return)
    assert not workspace.grid_shown
    assert workspace.reviewing.session.scene.image.name == cards(grid)[other].third
    assert workspace.reviewing.spot.state == "disputed"

    grid = open_grid(fused, qtbot, everywhere=False)
    grid.kind_choice.setCurrentIndex(grid.kind_choice.findData("detected"))
    before = len(grid.numbers)
    assert before == states(fused).count("detected")
    grid.view.setFocus()
    grid.view.setCurrentIndex(grid.view.model().at(2))
    key(fused, qtbot, Qt.Key.Key_R)
    assert len(grid.numbers) == before - 1
    assert fused.menus.undo_action.text().startswith("Undo reject spot ")
    assert len(grid.selected) == 1  # the next one, so that one can go on
    grid.kind_choice.setCurrentIndex(grid.kind_choice.findData("decided"))
    assert [card.second for card in cards(grid)] == ["rejected by you"]
    key(fused, qtbot, Qt.Key.Key_Escape)
    assert not fused.workspace.grid_shown


def test_the_grid_marks_missing_images_and_still_decides(fused, qtbot, crowd_files):
    gone = next(path for path in crowd_files if path.name == "two.png")
    gone.unlink()
    grid = open_grid(fused, qtbot, everywhere=True)
    qtbot.waitUntil(lambda: len(grid.pictures.kept) == 2, timeout=LONG)
    pictures = {
        card.third: grid.pictures.kept[number] is not None
        for card, number in zip(cards(grid), grid.numbers.tolist(), strict=True)
    }
    assert pictures == {"one.png": True, "two.png": False}
    grid.view.setFocus()
    key(fused, qtbot, Qt.Key.Key_A, CTRL)
    key(fused, qtbot, Qt.Key.Key_A)
    assert fused.menus.undo_action.text() == "Undo accept 2 spots in 2 images"


def test_counts_on_screen_follow_a_fusion(window, study_file, qtbot):
    opened = open_study(window, qtbot, study_file)
    workspace = opened.workspace
    workspace.middle_tabs.setCurrentWidget(workspace.counts)
    press(opened, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(opened.document.contents.runs) == 1)
    idle(opened, qtbot)
    assert "among the spots of 2 images" in visible_words(workspace.counts)


def test_a_missing_image_is_named_where_it_should_be_until_it_is_found(fused, qtbot, crowd_files, tmp_path):
    workspace = fused.workspace
    images = {entry.name: entry.id for entry in fused.document.contents.images}
    here = workspace.reviewing.session.scene.image.name
    (other,) = images.keys() - {here}
    path = next(path for path in crowd_files if path.name == other)
    hidden = path.rename(tmp_path / "elsewhere.png")
    workspace.loader.forget()
    workspace.go_to(images[other])
    idle(fused, qtbot)
    assert "Image file missing" in workspace.canvas._waiting
    hidden.rename(path)
    workspace.go_to(images[here])
    idle(fused, qtbot)
    workspace.go_to(images[other])
    idle(fused, qtbot)
    assert not workspace.canvas._waiting


def test_an_image_that_cannot_be_read_is_named_where_it_should_be(window, qtbot, crowd_files, tmp_path):
    damaged = crowd_files[0]
    damaged.write_bytes(damaged.read_bytes()[:1000])
    path = tmp_path / "damaged.rscope"
    with Study.create(path) as study:
        import_files(study, crowd_files)
    opened = open_study(window, qtbot, path)
    images = {entry.name: entry.id for entry in opened.document.contents.images}
    workspace = opened.workspace
    for name in sorted(images, reverse=True):
        workspace.go_to(images[name])
        idle(opened, qtbot)
        assert ("cannot be read" in workspace.canvas._waiting) == (name == damaged.name)
    crowd_files[1].write_bytes(b"another")
    workspace.loader.forget()
    workspace.go_to(images[crowd_files[1].name])
    idle(opened, qtbot)
    assert "has changed" in workspace.canvas._waiting


def test_keys_pressed_while_a_decision_is_written_undo_and_redo_it(fused, qtbot):
    press(fused, qtbot, Qt.Key.Key_Tab)
    release = threading.Event()
    fused.document.ask("Waiting", lambda _study, _watch: release.wait())
    for keys in ("A", "Z", "Ctrl+Y", "Z"):
        qtbot.keySequence(fused.workspace.canvas, keys)
    assert fused.document.writing == 4
    release.set()
    idle(fused, qtbot)
    assert [decision.verb for decision in fused.document.contents.decisions] == ["accept", *["undo"] * 3]
    assert fused.document.writing == 0
    assert not fused.menus.undo_action.isEnabled()
    assert fused.menus.redo_action.isEnabled()
