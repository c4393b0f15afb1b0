"""A study that takes no run: nothing is lost, and the window says what can be done."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QMessageBox

from raterscope.app.document import Unsaved
from raterscope.app.review import Decision
from raterscope.app.study import Study, StudyError
from raterscope.app.window import importing
from tests.app.driving import LONG, idle, open_study, press


def fill_disk(window):
    """Let the disk of the open study be full; gives what makes room."""
    connection = window.document._study._connection
    (now,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {now}")

    def make_room():
        connection.execute("PRAGMA max_page_count = 4294967294")

    return make_room


@pytest.fixture
def unsaved(opened, qtbot):
    """Give the window with a fusion that did not fit on the disk, and what makes room there."""
    make_room = fill_disk(opened)
    press(opened, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(opened.unsaved.isVisible, timeout=LONG)
    yield opened, make_room
    opened.keeping.discard()


def answer(window, qtbot, words):
    """Press a button of the box that asks."""
    qtbot.waitUntil(lambda: bool(window.findChildren(QMessageBox)), timeout=LONG)
    box = window.findChildren(QMessageBox)[-1]
    question = box.text()
    qtbot.mouseClick(next(one for one in box.buttons() if one.text() == words), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window.findChildren(QMessageBox), timeout=LONG)
    return question


def test_a_run_that_the_disk_has_no_room_for_is_held_and_written_when_it_has(unsaved, qtbot):
    window, make_room = unsaved
    assert window.unsaved.words.text() == (
        "The finished fusion of 2 images is not saved yet. Keep this window open. "
        "small.rscope: cannot be written: the disk is full; nothing was changed."
    )
    assert window.document.contents.runs == ()
    qtbot.mouseClick(window.unsaved.again, Qt.MouseButton.LeftButton)
    idle(window, qtbot)
    assert window.unsaved.isVisible()  # there is no room yet
    make_room()
    qtbot.mouseClick(window.unsaved.again, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(window.document.contents.runs) == 1, timeout=LONG)
    idle(window, qtbot)
    assert not window.unsaved.isVisible()
    assert window.status.news == "The finished fusion of 2 images is saved in small.rscope."
    assert len(window.workspace.reviewing.spots) > 3


def test_while_a_run_is_held_one_goes_on_deciding(unsaved, qtbot):
    window, make_room = unsaved
    make_room()
    press(window, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(window.document.contents.runs) == 1, timeout=LONG)
    idle(window, qtbot)
    window.workspace.reviewing.select(0)
    press(window, qtbot, Qt.Key.Key_R)
    assert [one.verb for one in window.document.contents.decisions] == ["reject"]
    assert window.unsaved.isVisible()


def test_a_held_run_is_saved_with_a_copy_of_the_study_where_one_goes_on(
    unsaved, qtbot, tmp_path, study_file, monkeypatch
):
    window, _ = unsaved
    place = tmp_path / "other disk" / "copy.rscope"
    place.parent.mkdir()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(place), ""))
    with qtbot.waitSignal(window.document.replaced, timeout=LONG):
        qtbot.mouseClick(window.unsaved.elsewhere, Qt.MouseButton.LeftButton)
    idle(window, qtbot)
    assert window.document.contents.path == place
    assert len(window.document.contents.runs) == 1
    assert not window.unsaved.isVisible()
    assert window.workspace.reviewing.session.scene.path is not None
    with Study.open(study_file) as study:
        assert study.runs.all() == []


def test_saving_it_where_that_is_not_possible_either_loses_nothing(unsaved, qtbot, tmp_path):
    window, _ = unsaved
    window.keeping.save_elsewhere(tmp_path / "nowhere" / "copy.rscope")
    qtbot.waitUntil(window.notice.isVisible, timeout=LONG)
    idle(window, qtbot)
    assert "there is no folder" in window.notice.text
    assert window.unsaved.isVisible()


def test_a_held_run_is_written_into_its_own_study_when_another_is_open(unsaved, qtbot, tmp_path, study_file):
    window, _ = unsaved
    Study.create(tmp_path / "other.rscope").close()
    with qtbot.waitSignal(window.document.replaced, timeout=LONG):
        window.open_paths([tmp_path / "other.rscope"])
    assert window.unsaved.isVisible()
    idle(window, qtbot)
    qtbot.mouseClick(window.unsaved.again, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "saved in small.rscope" in window.status.news, timeout=LONG)
    idle(window, qtbot)
    assert window.document.contents.runs == ()
    open_study(window, qtbot, study_file)
    assert len(window.document.contents.runs) == 1


def test_the_window_does_not_close_over_a_held_run_unasked(unsaved, qtbot):
    window, _ = unsaved
    window.close()
    assert answer(window, qtbot, "Cancel") == "Closing the window discards the finished fusion of 2 images."
    assert window.isVisible()
    assert window.unsaved.isVisible()
    window.close()
    answer(window, qtbot, "Close and discard")
    assert not window.isVisible()


def test_what_is_discarded_is_asked_about(unsaved, qtbot):
    window, _ = unsaved
    qtbot.mouseClick(window.unsaved.discard, Qt.MouseButton.LeftButton)
    answer(window, qtbot, "Cancel")
    assert window.unsaved.isVisible()
    qtbot.mouseClick(window.unsaved.discard, Qt.MouseButton.LeftButton)
    assert answer(window, qtbot, "Discard") == "Discard the finished fusion of 2 images?"
    assert not window.unsaved.isVisible()


def test_what_was_read_and_has_no_room_is_held_too(opened, qtbot, tmp_path):
    more = tmp_path / "more.csv"
    lines = [f"late {i % 40},one.png,{i % 230},{i % 170}" for i in range(20_000)]
    more.write_text("\n".join(["annotator,image,x,y", *lines]) + "\n")
    make_room = fill_disk(opened)
    opened.open_paths([more])
    qtbot.waitUntil(opened.unsaved.isVisible, timeout=LONG)
    idle(opened, qtbot)
    assert opened.unsaved.words.text().startswith("The import of more.csv is not saved yet")
    assert len(opened.document.contents.annotators) == 13
    make_room()
    qtbot.mouseClick(opened.unsaved.again, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(opened.document.contents.annotators) == 53, timeout=LONG)
    idle(opened, qtbot)
    assert not opened.unsaved.isVisible()


def test_a_decision_that_has_no_room_is_said_and_the_next_one_takes_the_word_back(fused, qtbot):
    make_room = fill_disk(fused)
    fused.document.record(Decision(verb="exclude", annotators=("careless",), reason="x" * 20_000))
    qtbot.waitUntil(fused.notice.isVisible, timeout=LONG)
    assert fused.notice.text == "small.rscope: cannot be written: the disk is full; nothing was changed."
    make_room()
    fused.workspace.reviewing.select(0)
    press(fused, qtbot, Qt.Key.Key_R)
    assert [one.verb for one in fused.document.contents.decisions] == ["reject"]
    assert not fused.notice.isVisible()


def test_what_the_study_refuses_for_good_is_said_and_not_held(opened, qtbot):
    def store(_study, _watch):
        raise StudyError("the result for one.png does not fit its clicks; fuse again")

    wanted = Unsaved(opened.document.contents.path, "Keeping the run", "the fusion", store, print)
    opened.document.keep(wanted)
    qtbot.waitUntil(opened.notice.isVisible, timeout=LONG)
    idle(opened, qtbot)
    assert opened.notice.isVisible()
    assert opened.notice.text == "the result for one.png does not fit its clicks; fuse again."
    assert not opened.unsaved.isVisible()


def test_where_no_study_can_be_made_another_place_is_asked_for_and_nothing_read_anew(
    window, qtbot, crowd_files, tmp_path, monkeypatch
):
    gone, place = tmp_path / "gone" / "s.rscope", tmp_path / "there.rscope"
    monkeypatch.setattr(importing, "new_study_path", lambda _file: gone)
    asked = []

    def choose(*_):
        asked.append(window.notice.text)
        return str(place), ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", choose)
    window.open_paths(crowd_files)
    qtbot.waitUntil(lambda: "truth.csv" in window.status.news, timeout=LONG)
    idle(window, qtbot)
    assert asked == [f"s.rscope: cannot be made, for there is no folder {gone.parent}."]
    assert window.document.contents.path == place
    assert not window.notice.isVisible()


def test_who_chooses_no_place_imports_nothing(window, qtbot, crowd_files, monkeypatch):
    monkeypatch.setattr(importing, "new_study_path", lambda _file: None)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("", ""))
    window.open_paths(crowd_files)
    qtbot.waitUntil(lambda: "Nothing was imported" in window.status.news, timeout=LONG)
    idle(window, qtbot)
    assert window.document.contents is None
