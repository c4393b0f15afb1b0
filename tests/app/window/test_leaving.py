"""Leaving a study, and the window: what takes long is not stopped unasked."""

import threading

import pytest
from PySide6.QtWidgets import QMessageBox

from raterscope.app.outcome import Inputs, one_by_one
from raterscope.app.review import Decision
from raterscope.app.study import Study
from raterscope.app.window import leaving
from raterscope.app.workspaces.runs import FusionWork
from tests.app.driving import LONG, idle
from tests.app.window.test_keeping import answer


@pytest.fixture
def at_work(opened, qtbot, monkeypatch):
    """Give what begins work that goes on until it is let go, as if it had been long under way."""
    monkeypatch.setattr(leaving, "HARDLY_BEGUN", 0.0)
    let_go = threading.Event()

    def work(watch):
        while not let_go.is_set():
            watch(0.45, "fusing")

    def begin(title="Fusing 2 images"):
        job = opened.jobs.start(title, work, costly=True)
        qtbot.waitUntil(lambda: job.fraction > 0, timeout=LONG)
        return job

    begin.let_go = let_go.set
    yield begin
    let_go.set()


def test_closing_asks_before_it_stops_what_takes_long(opened, qtbot, at_work):
    job = at_work()
    opened.close()
    assert opened.isVisible()
    opened.close()  # asked once is enough
    assert len(opened.findChildren(QMessageBox)) == 1
    question = answer(opened, qtbot, "Cancel")
    assert question == "Fusing 2 images is 45% done. Closing the window stops it."
    assert job.state == "running"
    opened.close()
    answer(opened, qtbot, "Stop it and close")
    assert not opened.isVisible()
    assert job.state == "cancelled"


def test_what_has_hardly_begun_is_not_asked_about(opened, at_work, monkeypatch):
    monkeypatch.setattr(leaving, "HARDLY_BEGUN", 60.0)
    at_work()
    opened.close()
    assert not opened.isVisible()


def test_when_it_is_done_while_one_is_asked_the_window_closes(opened, qtbot, at_work):
    at_work()
    opened.close()
    assert opened.isVisible()
    at_work.let_go()
    qtbot.waitUntil(lambda: not opened.isVisible(), timeout=LONG)


def test_another_study_opens_when_that_is_agreed_to(opened, qtbot, at_work, tmp_path):
    Study.create(tmp_path / "other.rscope").close()
    job = at_work()
    opened.open_paths([tmp_path / "other.rscope"])
    question = answer(opened, qtbot, "Cancel")
    assert question == "Fusing 2 images is 45% done. Leaving the study stops it."
    assert opened.document.contents.path.name == "small.rscope"
    opened.open_paths([tmp_path / "other.rscope"])
    with qtbot.waitSignal(opened.document.replaced, timeout=LONG):
        answer(opened, qtbot, "Stop it and leave")
    assert opened.document.contents.path.name == "other.rscope"
    assert job.state == "cancelled"
    idle(opened, qtbot)


def test_what_is_dropped_together_with_a_study_comes_into_that_study(opened, qtbot, at_work, tmp_path):
    Study.create(tmp_path / "other.rscope").close()
    votes = tmp_path / "votes.csv"
    votes.write_text("annotator,task,label\nann,t1,yes\nben,t1,no\n")
    at_work()
    opened.open_paths([tmp_path / "other.rscope", votes])
    answer(opened, qtbot, "Stop it and leave")
    qtbot.waitUntil(lambda: "2 votes" in opened.status.news, timeout=LONG)
    idle(opened, qtbot)
    assert opened.document.contents.path.name == "other.rscope"
    assert opened.document.contents.annotators == ("ann", "ben")


def test_a_report_goes_on_when_the_study_is_left_and_is_asked_about_when_the_window_closes(
    opened, qtbot, at_work
):
    let_go = threading.Event()

    def write(_study, watch):
        while not let_go.is_set():
            watch(0.2, "drawing")

    job = opened.document.read_beside("Writing the report", write, lasting=True)
    qtbot.waitUntil(lambda: job.fraction > 0, timeout=LONG)
    opened.files.close_study()
    assert opened.document.contents is None
    assert job.state == "running"
    opened.close()
    question = answer(opened, qtbot, "Cancel")
    assert question == "Writing the report is 20% done. Closing the window stops it."
    let_go.set()
    idle(opened, qtbot)


def test_the_window_closes_when_what_is_being_written_is_written(opened, qtbot, study_file):
    let_go = threading.Event()
    opened.workspace.fusing.start(work_that_is_kept_when(let_go), [1])
    qtbot.waitUntil(lambda: opened.document.keeping, timeout=LONG)
    opened.close()
    assert opened.isVisible()
    assert opened.status.news == "The window closes when everything is saved."
    let_go.set()
    qtbot.waitUntil(lambda: not opened.isVisible(), timeout=LONG)
    with Study.open(study_file) as study:
        assert len(study.decisions()) == 1


def work_that_is_kept_when(let_go):
    """Fuse at once, and be long in writing it."""

    def gather(items, study, watch):
        return Inputs({"one": items[0]}, {"one": items[0]})

    def fuse(inputs, watch):
        return one_by_one(inputs, None, lambda given, plan, watch: given, watch)

    def keep(answer, study, watch):
        assert let_go.wait(300)
        study.record(Decision(verb="exclude", annotators=("kim",), reason="careless"))

    return FusionWork("clicks", "image", gather, fuse, keep)
