"""The open study as the window knows it: one after the other, and nothing of the one before is lost."""

import sqlite3
import threading

import pytest

from raterscope.app.document import Document, Unsaved
from raterscope.app.errors import UnwrittenError
from raterscope.app.jobs import Jobs
from raterscope.app.review import Decision
from raterscope.app.study import Study, StudyError
from raterscope.app.study.schema import SCHEMA
from tests.app.driving import LONG


@pytest.fixture
def document(qapp):
    jobs = Jobs()
    document = Document(jobs, jobs)
    document.jobs = jobs
    yield document
    jobs.close()
    document.close()
    jobs.deleteLater()


@pytest.fixture
def opened(document, qtbot, tmp_path):
    """Return what opens a study of a name, and waits for it."""

    def opened(name):
        path = tmp_path / name
        if not path.exists():
            Study.create(path).close()
        with qtbot.waitSignal(document.replaced, timeout=LONG):
            document.open(path)
        return path

    return opened


@pytest.fixture
def held(document):
    """Return what keeps the study's thread at work until it is let go, and does not hear of cancelling."""
    release = threading.Event()

    def held():
        job = document.ask("Importing", lambda _study, _watch: release.wait(300), quiet=False, changes=True)
        document.record(Decision(verb="exclude", annotators=("kim",), reason="careless"))
        return job

    held.let_go = release.set
    yield held
    release.set()


def test_another_study_opens_while_the_one_before_is_still_written(document, opened, held, qtbot):
    first = opened("first.rscope")
    job = held()
    second = opened("second.rscope")
    assert document.contents.path == second
    assert not job.over
    held.let_go()
    qtbot.waitUntil(lambda: not document.jobs.busy, timeout=LONG)
    assert document.contents.path == second
    assert document.contents.decisions == ()
    with Study.open(first) as study:
        assert [decision.verb for decision in study.decisions()] == ["exclude"]


def test_the_study_before_stays_until_the_screen_is_ready_for_the_next(document, opened, qtbot, tmp_path):
    first, second = opened("first.rscope"), tmp_path / "second.rscope"
    ready = []
    document.prepare = lambda contents, show: ready.append((contents.path, show))
    document.open(second, create=True)
    qtbot.waitUntil(lambda: bool(ready), timeout=LONG)
    assert (document.contents.path, document.opening) == (first, True)
    ((path, show),) = ready
    assert path == second
    with qtbot.waitSignal(document.replaced):
        show()
    assert (document.contents.path, document.opening) == (second, False)


def test_a_study_that_is_still_written_is_opened_again_when_that_is_done(document, opened, held, qtbot):
    first = opened("first.rscope")
    held()
    opened("second.rscope")
    refused = []
    document.refused.connect(refused.append)
    with qtbot.waitSignal(document.replaced, timeout=LONG):
        document.open(first)
        qtbot.wait(50)
        held.let_go()
    assert refused == []
    assert [decision.verb for decision in document.contents.decisions] == ["exclude"]


def test_closing_waits_for_what_is_written_into_studies_left_before(document, opened, held):
    first = opened("first.rscope")
    held()
    opened("second.rscope")
    threading.Timer(0.2, held.let_go).start()
    document.close()
    with Study.open(first) as study:
        assert len(study.decisions()) == 1


def test_what_is_read_beside_the_study_holds_up_no_decision(document, opened, qtbot):
    opened("s.rscope")
    started, release, text = threading.Event(), threading.Event(), []

    def read(study, watch):
        started.set()
        assert release.wait(300)
        return study.decisions(), study.path.name

    document.read_beside("Writing the report", read).finished.connect(text.append)
    qtbot.waitUntil(started.is_set, timeout=LONG)
    with qtbot.waitSignal(document.decided, timeout=LONG):
        document.record(Decision(verb="exclude", annotators=("kim",), reason="careless"))
    assert text == []
    release.set()
    qtbot.waitUntil(lambda: bool(text), timeout=LONG)
    assert text == [([], "s.rscope")]  # as it stood when the copy was made
    assert len(document.contents.decisions) == 1


def test_a_copy_read_beside_the_study_cannot_be_changed(document, opened, qtbot):
    opened("s.rscope")
    decision = Decision(verb="exclude", annotators=("kim",), reason="careless")
    refused = []
    document.refused.connect(refused.append)
    document.read_beside("Reading", lambda study, _watch: study.record(decision))
    qtbot.waitUntil(lambda: bool(refused), timeout=LONG)
    assert "s.rscope: cannot be written" in refused[0]


def test_reading_beside_the_study_is_cancelled_and_its_copy_closed(document, opened, qtbot):
    opened("s.rscope")
    started, copies = threading.Event(), []

    def read(study, watch):
        copies.append(study)
        started.set()
        while True:
            watch(0.5, "reading")

    job = document.read_beside("Comparing runs", read)
    qtbot.waitUntil(started.is_set, timeout=LONG)
    job.cancel()
    qtbot.waitUntil(lambda: job.over and not document.jobs.busy, timeout=LONG)
    with pytest.raises(StudyError, match="closed"):
        copies[0].images()


def test_leaving_the_study_waits_for_nothing(document, opened, held, qtbot):
    first = opened("first.rscope")
    held()
    document.leave()
    assert document.contents is None
    held.let_go()
    qtbot.waitUntil(lambda: not document.jobs.busy, timeout=LONG)
    with Study.open(first) as study:
        assert len(study.decisions()) == 1


def test_what_the_study_does_not_take_is_given_back_and_what_it_refuses_is_not(document, opened, qtbot):
    path = opened("s.rscope")
    unsaved, refused, done = [], [], []
    document.unsaved.connect(unsaved.append)
    document.refused.connect(refused.append)

    def keep(problem):
        def store(study, _watch):
            if problem is not None:
                raise problem
            return 7

        document.keep(Unsaved(path, "Keeping the run", "the fusion", store, done.append))
        qtbot.waitUntil(lambda: not document.jobs.busy, timeout=LONG)

    keep(UnwrittenError("cannot be written: the disk is full", file=path))
    assert [item.why for item in unsaved] == ["s.rscope: cannot be written: the disk is full."]
    keep(MemoryError())
    assert [item.what for item in unsaved] == ["the fusion", "the fusion"]
    keep(StudyError("the result does not fit its clicks; fuse again"))
    assert len(unsaved) == 2
    assert refused == ["the result does not fit its clicks; fuse again."]
    keep(None)
    assert done == [7]


def test_a_study_that_turns_out_damaged_is_closed_again(document, opened, qtbot):
    path = opened("s.rscope")
    document.record(Decision(verb="exclude", annotators=("kim",), reason="careless"))
    document.close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER decisions_stay")
        connection.execute("UPDATE decisions SET subject = '{', kind = 'clicks'")
        connection.execute(next(decision for decision in SCHEMA if "decisions_stay" in decision))
    connection.close()
    refused = []
    document.refused.connect(refused.append)
    for _ in range(2):
        document.open(path)
        qtbot.waitUntil(lambda: not document.jobs.busy, timeout=LONG)
    assert refused == ["s.rscope: is damaged: decision 1 cannot be read."] * 2
    assert path.read_bytes()[18:20] == b"\x01\x01"  # not as while it is written
