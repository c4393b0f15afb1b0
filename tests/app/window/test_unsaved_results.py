"""Tests of results that a study could not take, of a moved study file, and of leaving a study."""

from __future__ import annotations

import shutil
import threading

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QMessageBox

from raterscope.app.document import Unsaved
from raterscope.app.outcome import Inputs, one_by_one
from raterscope.app.review import Decision, SpotSubject
from raterscope.app.study import Study, StudyError
from raterscope.app.window import unsaved_results
from raterscope.app.workspaces.runs import FusionWork
from tests.app.driving import LONG, idle, open_study, press


@pytest.fixture
def decided(window, qtbot, study_file, monkeypatch):
    """The window with a study and one decision in it, which rests often."""
    monkeypatch.setattr("raterscope.app.jobs.REST_SECONDS", 0.02)
    opened = open_study(window, qtbot, study_file)
    decide(opened, qtbot)
    return opened


def decide(window, qtbot):
    decision = Decision(
        verb="add", item=window.document.contents.images[0].id, subject=SpotSubject(x=3.0, y=4.0)
    )
    with qtbot.waitSignal(window.document.decided, timeout=LONG):
        window.document.record(decision)


def kept(window):
    return window.status.saved.text()


def click_button(qtbot, button):
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def test_a_study_is_complete_in_its_own_file_and_followed_when_it_is_renamed(
    decided, qtbot, study_file, tmp_path
):
    log = study_file.with_name(f"{study_file.name}-wal")
    qtbot.waitUntil(lambda: log.stat().st_size == 0, timeout=LONG)
    copy = shutil.copy(study_file, tmp_path / "copy.rscope")
    with Study.open(copy) as study:
        assert [decision.verb for decision in study.decisions()] == ["add"]
    assert kept(decided) == "every decision saved"

    new = study_file.rename(study_file.with_name("renamed.rscope"))
    qtbot.waitUntil(decided.moved_bar.isVisible, timeout=LONG)
    assert kept(decided) == "not saving: the study was moved to renamed.rscope"
    assert f"It is now {new}. All decisions up to now are saved" in decided.moved_bar.label.text()
    with qtbot.waitSignal(decided.document.refused, timeout=LONG):
        decided.document.record(Decision(verb="exclude", annotators=("kim",), reason="late"))
    with qtbot.waitSignals([decided.document.replaced] * 2, timeout=LONG):
        click_button(qtbot, decided.moved_bar.there)
    idle(decided, qtbot)
    assert decided.document.contents.path == new
    assert not decided.moved_bar.isVisible()
    assert kept(decided) == "every decision saved"
    decide(decided, qtbot)
    assert [decision.verb for decision in decided.document.contents.decisions] == ["add", "add"]
    assert not list(study_file.parent.glob(f"{study_file.name}*"))


def test_a_study_that_is_put_back_goes_on_and_a_deleted_one_is_saved_again(
    decided, qtbot, study_file, monkeypatch
):
    new = study_file.rename(study_file.with_name("renamed.rscope"))
    qtbot.waitUntil(decided.moved_bar.isVisible, timeout=LONG)
    new.rename(study_file)
    qtbot.waitUntil(lambda: not decided.moved_bar.isVisible(), timeout=LONG)
    assert kept(decided) == "every decision saved"
    decide(decided, qtbot)
    assert len(decided.document.contents.decisions) == 2

    study_file.unlink()
    qtbot.waitUntil(decided.moved_bar.isVisible, timeout=LONG)
    assert kept(decided) == "not saving: the study file is missing"
    assert not decided.moved_bar.there.isVisible()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *arguments: (arguments[2], ""))
    with qtbot.waitSignals([decided.document.replaced] * 2, timeout=LONG):
        click_button(qtbot, decided.moved_bar.copy)
    idle(decided, qtbot)
    assert decided.document.contents.path == study_file
    assert not decided.moved_bar.isVisible()
    assert [decision.verb for decision in decided.document.contents.decisions] == ["add", "add"]
    assert "is now open" in decided.status.message


@pytest.fixture
def at_work(opened, qtbot, monkeypatch):
    """Return what begins work that goes on until it is let go, as if it had been long under way."""
    monkeypatch.setattr(unsaved_results, "HARDLY_BEGUN", 0.0)
    release = threading.Event()

    def work(watch):
        while not release.wait(0.005):
            watch(begin.fraction, "fusing")

    def begin(title="Fusing 2 images"):
        job = opened.jobs.start(title, work, costly=True)
        qtbot.waitUntil(lambda: job.fraction > 0, timeout=LONG)
        return job

    begin.let_go, begin.fraction = release.set, 0.45
    yield begin
    release.set()


def test_closing_asks_before_it_stops_a_long_job(opened, qtbot, at_work):
    job = at_work()
    opened.close()
    assert opened.isVisible()
    opened.close()  # asked once is enough
    (box,) = opened.findChildren(QMessageBox)
    assert box.text() == "Fusing 2 images is 45 % done. Closing the window stops it."
    at_work.fraction = 0.6
    qtbot.waitUntil(lambda: box.text().startswith("Fusing 2 images is 60 % done"))
    answer(opened, qtbot, "Cancel")
    assert job.state == "running"
    opened.close()
    answer(opened, qtbot, "Stop it and close")
    assert not opened.isVisible()
    assert job.state == "cancelled"


def test_a_new_job_is_stopped_without_confirmation(opened, at_work, monkeypatch):
    monkeypatch.setattr(unsaved_results, "HARDLY_BEGUN", 60.0)
    at_work()
    opened.close()
    assert not opened.isVisible()


def test_the_window_closes_if_the_job_ends_during_the_question(opened, qtbot, at_work):
    at_work()
    opened.close()
    assert opened.isVisible()
    at_work.let_go()
    qtbot.waitUntil(lambda: not opened.isVisible(), timeout=LONG)


def test_another_study_opens_when_that_is_agreed_to_and_files_dropped_with_it_are_imported(
    opened, qtbot, at_work, tmp_path
):
    Study.create(tmp_path / "other.rscope").close()
    job = at_work()
    opened.open_paths([tmp_path / "other.rscope"])
    question = answer(opened, qtbot, "Cancel")
    assert question == "Fusing 2 images is 45 % done. Leaving the study stops it."
    assert opened.document.contents.path.name == "small.rscope"
    opened.open_paths([tmp_path / "other.rscope"])
    with qtbot.waitSignal(opened.document.replaced, timeout=LONG):
        answer(opened, qtbot, "Stop it and leave")
    assert opened.document.contents.path.name == "other.rscope"
    qtbot.waitUntil(lambda: job.state == "cancelled", timeout=LONG)
    idle(opened, qtbot)

    Study.create(tmp_path / "third.rscope").close()
    votes = tmp_path / "votes.csv"
    votes.write_text("annotator,task,label\nann,t1,yes\nben,t1,no\n")
    at_work()
    opened.open_paths([tmp_path / "third.rscope", votes])
    answer(opened, qtbot, "Stop it and leave")
    qtbot.waitUntil(lambda: "2 votes" in opened.status.message, timeout=LONG)
    idle(opened, qtbot)
    assert opened.document.contents.path.name == "third.rscope"
    assert opened.document.contents.annotators == ("ann", "ben")


def test_a_report_continues_after_leaving_the_study_and_delays_closing(opened, qtbot, at_work):
    release = threading.Event()

    def write(_study, watch):
        while not release.wait(0.005):
            watch(0.2, "drawing")

    job = opened.document.read_beside("Writing the report", write, lasting=True)
    qtbot.waitUntil(lambda: job.fraction > 0, timeout=LONG)
    opened.files.close_study()
    assert opened.document.contents is None
    assert job.state == "running"
    opened.close()
    question = answer(opened, qtbot, "Cancel")
    assert question == "Writing the report is 20 % done. Closing the window stops it."
    release.set()
    idle(opened, qtbot)


def test_the_window_closes_when_everything_is_saved(opened, qtbot, study_file):
    release = threading.Event()
    opened.workspace.fusing.start(work_that_is_kept_when(release), [1])
    qtbot.waitUntil(lambda: opened.document.keeping, timeout=LONG)
    opened.close()
    assert opened.isVisible()
    assert opened.status.message == "The window closes when everything is saved."
    release.set()
    qtbot.waitUntil(lambda: not opened.isVisible(), timeout=LONG)
    with Study.open(study_file) as study:
        assert len(study.decisions()) == 1


def work_that_is_kept_when(release):
    """Fuse at once, and be long in writing it."""

    def gather(items, study, watch):
        return Inputs({"one": items[0]}, {"one": items[0]})

    def fuse(inputs, watch):
        return one_by_one(inputs, None, lambda values, plan, watch: values, watch)

    def keep(answer, study, watch):
        assert release.wait(300)
        study.record(Decision(verb="exclude", annotators=("kim",), reason="careless"))

    return FusionWork("clicks", gather, fuse, keep)


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
    """Return the window with a fusion that did not fit on the disk, and what makes room there."""
    make_room = fill_disk(opened)
    press(opened, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(opened.unsaved_bar.isVisible, timeout=LONG)
    yield opened, make_room
    opened.unsaved_results.discard()


def answer(window, qtbot, words):
    """Press a button of the box that asks."""
    qtbot.waitUntil(lambda: bool(window.findChildren(QMessageBox)), timeout=LONG)
    box = window.findChildren(QMessageBox)[-1]
    question = box.text()
    qtbot.mouseClick(
        next(button for button in box.buttons() if button.text() == words), Qt.MouseButton.LeftButton
    )
    qtbot.waitUntil(lambda: not window.findChildren(QMessageBox), timeout=LONG)
    return question


def test_a_run_that_the_disk_has_no_room_for_is_held_and_written_when_it_has(unsaved, qtbot):
    window, make_room = unsaved
    assert window.unsaved_bar.label.text() == (
        "The finished fusion of 2 images is not saved yet. Keep this window open. "
        "small.rscope: cannot be written: the disk is full; nothing was changed. "
        "Free space on it, then try again."
    )
    assert window.document.contents.runs == ()
    qtbot.mouseClick(window.unsaved_bar.again, Qt.MouseButton.LeftButton)
    idle(window, qtbot)
    assert window.unsaved_bar.isVisible()  # there is no room yet
    make_room()
    qtbot.mouseClick(window.unsaved_bar.again, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(window.document.contents.runs) == 1, timeout=LONG)
    idle(window, qtbot)
    assert not window.unsaved_bar.isVisible()
    assert window.status.message == "The finished fusion of 2 images is saved in small.rscope."
    assert len(window.workspace.reviewing.spots) > 3


def test_while_a_run_is_held_one_goes_on_deciding_and_it_is_discarded_with_the_window(unsaved, qtbot):
    window, make_room = unsaved
    make_room()
    press(window, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(window.document.contents.runs) == 1, timeout=LONG)
    idle(window, qtbot)
    window.workspace.reviewing.select(0)
    press(window, qtbot, Qt.Key.Key_R)
    assert [decision.verb for decision in window.document.contents.decisions] == ["reject"]
    assert window.unsaved_bar.isVisible()
    window.close()
    answer(window, qtbot, "Close and discard")
    assert not window.isVisible()


def test_a_held_run_is_saved_with_a_copy_of_the_study_where_one_goes_on(
    unsaved, qtbot, tmp_path, study_file, monkeypatch
):
    window, _ = unsaved
    path = tmp_path / "other disk" / "copy.rscope"
    path.parent.mkdir()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    with qtbot.waitSignal(window.document.replaced, timeout=LONG):
        qtbot.mouseClick(window.unsaved_bar.elsewhere, Qt.MouseButton.LeftButton)
    idle(window, qtbot)
    assert window.document.contents.path == path
    assert len(window.document.contents.runs) == 1
    assert not window.unsaved_bar.isVisible()
    assert window.workspace.reviewing.session.scene.path is not None
    with Study.open(study_file) as study:
        assert study.runs.all() == []


def test_saving_where_that_is_not_possible_loses_nothing_and_discarding_and_closing_need_confirmation(
    unsaved, qtbot, tmp_path
):
    window, _ = unsaved
    window.unsaved_results.save_elsewhere(tmp_path / "nowhere" / "copy.rscope")
    qtbot.waitUntil(window.notice.isVisible, timeout=LONG)
    idle(window, qtbot)
    assert "there is no folder" in window.notice.text
    assert window.unsaved_bar.isVisible()
    qtbot.mouseClick(window.unsaved_bar.discard, Qt.MouseButton.LeftButton)
    answer(window, qtbot, "Cancel")
    assert window.unsaved_bar.isVisible()
    window.close()
    assert answer(window, qtbot, "Cancel") == "Closing the window discards the finished fusion of 2 images."
    assert window.isVisible()
    assert window.unsaved_bar.isVisible()
    qtbot.mouseClick(window.unsaved_bar.discard, Qt.MouseButton.LeftButton)
    assert answer(window, qtbot, "Discard") == "Discard the finished fusion of 2 images?"
    assert not window.unsaved_bar.isVisible()


def test_a_held_run_is_written_into_its_own_study_when_another_is_open(unsaved, qtbot, tmp_path, study_file):
    window, _ = unsaved
    Study.create(tmp_path / "other.rscope").close()
    with qtbot.waitSignal(window.document.replaced, timeout=LONG):
        window.open_paths([tmp_path / "other.rscope"])
    assert window.unsaved_bar.isVisible()
    idle(window, qtbot)
    qtbot.mouseClick(window.unsaved_bar.again, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "saved in small.rscope" in window.status.message, timeout=LONG)
    idle(window, qtbot)
    assert window.document.contents.runs == ()
    open_study(window, qtbot, study_file)
    assert len(window.document.contents.runs) == 1


def test_an_import_that_cannot_be_saved_is_kept(opened, qtbot, tmp_path):
    more = tmp_path / "more.csv"
    lines = [f"late {i % 40},one.png,{i % 230},{i % 170}" for i in range(20_000)]
    more.write_text("\n".join(["annotator,image,x,y", *lines]) + "\n")
    make_room = fill_disk(opened)
    opened.open_paths([more])
    qtbot.waitUntil(opened.unsaved_bar.isVisible, timeout=LONG)
    idle(opened, qtbot)
    assert opened.unsaved_bar.label.text().startswith("The import of more.csv is not saved yet")
    assert len(opened.document.contents.annotators) == 13
    make_room()
    qtbot.mouseClick(opened.unsaved_bar.again, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(opened.document.contents.annotators) == 53, timeout=LONG)
    idle(opened, qtbot)
    assert not opened.unsaved_bar.isVisible()


def test_an_unsaved_decision_shows_an_error_until_the_next_one_is_saved_and_a_refused_result_too(
    fused, qtbot
):
    make_room = fill_disk(fused)
    fused.document.record(Decision(verb="exclude", annotators=("careless",), reason="x" * 20_000))
    qtbot.waitUntil(fused.notice.isVisible, timeout=LONG)
    assert fused.notice.text == (
        "small.rscope: cannot be written: the disk is full; nothing was changed. "
        "Free space on it, then try again."
    )
    make_room()
    fused.workspace.reviewing.select(0)
    press(fused, qtbot, Qt.Key.Key_R)
    assert [decision.verb for decision in fused.document.contents.decisions] == ["reject"]
    assert not fused.notice.isVisible()

    def store(_study, _watch):
        raise StudyError("the result for one.png does not fit its clicks; fuse again")

    wanted = Unsaved(fused.document.contents.path, "Keeping the run", "the fusion", store, print)
    fused.document.keep(wanted)
    qtbot.waitUntil(fused.notice.isVisible, timeout=LONG)
    idle(fused, qtbot)
    assert fused.notice.isVisible()
    assert fused.notice.text == "the result for one.png does not fit its clicks; fuse again."
    assert not fused.unsaved_bar.isVisible()
