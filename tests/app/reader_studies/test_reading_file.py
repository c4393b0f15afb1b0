"""Reading files: marks that are kept at once, undo, washout, and the lock of a finished session."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from datetime import timedelta

import pytest

from raterscope.app.reader_studies import reading_file
from raterscope.app.reader_studies.reading_file import ReadingFile, fold
from raterscope.app.study import StudyError
from tests.app.reader_studies.making import make, read


@pytest.fixture
def path(tmp_path):
    return make("clicks", tmp_path, reads=2, washout_days=28) / "readers" / "R01.rsread"


def click(file, x, position=0):
    return file.record(position, "click", {"x": float(x), "y": 1.0})


def xs(file, position=0):
    return [x for x, _, _ in file.marks(position).clicks]


def test_undo_and_redo_follow_the_order_of_the_marks(path):
    with ReadingFile.open(path) as file:
        for x in (1, 2, 3):
            click(file, x)
        assert file.undo(0)
        assert file.undo(0)
        assert xs(file) == [1]
        assert file.redo(0)
        assert xs(file) == [1, 2]
        assert file.redo(0)
        assert xs(file) == [1, 2, 3]
        assert not file.redo(0)
        file.undo(0)
        click(file, 9)
        assert xs(file) == [1, 2, 9]
        assert not file.redo(0)
        file.record(0, "unclick", {"x": 2.0, "y": 1.0})
        assert xs(file) == [1, 9]
        for _ in range(4):
            file.undo(0)
        assert xs(file) == []
        assert not file.undo(0)


def test_a_case_without_marks_is_done_once_it_is_marked_so(path):
    with ReadingFile.open(path) as file:
        click(file, 1)
        assert file.sessions()[0].done == frozenset()
        file.record(1, "done", {})
        assert file.sessions()[0].done == {1}
        file.undo(1)
        assert file.sessions()[0].done == frozenset()


def test_a_killed_program_loses_no_mark(path):
    program = (
        "import sys; from pathlib import Path\n"
        "from raterscope.app.reader_studies.reading_file import ReadingFile\n"
        "file = ReadingFile.open(Path(sys.argv[1]))\n"
        "for x in range(25):\n"
        "    file.record(0, 'click', {'x': float(x), 'y': 0.0})\n"
        "file.add_time(0, 3.5)\n"
        "print('done', flush=True)\n"
        "import time; time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "done\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    sent = shutil.copy(path, path.parent.parent / "sent.rsread")  # without anything that lies beside it
    with ReadingFile.open(sent) as file:
        assert xs(file) == list(range(25))
        assert file.times() == {0: 3.5}


def test_the_second_session_opens_after_the_washout(path, monkeypatch):
    with ReadingFile.open(path) as file:
        with pytest.raises(StudyError, match="finish session 1 first"):
            click(file, 1, position=4)
        click(file, 1)
        file.finish(1)
        first, second = file.sessions()
        assert second.opens - first.finished == timedelta(days=28)
        with pytest.raises(StudyError, match=r"session 2 opens on .*, after a washout of 28 days"):
            click(file, 1, position=4)

        class Later(reading_file.datetime):
            @classmethod
            def now(cls, zone=None):
                return super().now(zone) + timedelta(days=28, seconds=1)

        monkeypatch.setattr(reading_file, "datetime", Later)
        click(file, 1, position=4)
        assert xs(file, 4) == [1]


def test_a_finished_session_is_locked_also_for_other_programs(path):
    read(path)
    with ReadingFile.open(path) as file:
        with pytest.raises(StudyError, match="session 1 is finished and cannot be changed"):
            click(file, 1)
        file.add_time(0, 100.0)
        assert file.times()[0] == 5.0
    with sqlite3.connect(path) as connection, pytest.raises(sqlite3.IntegrityError, match="finished"):
        connection.execute("INSERT INTO operations(at, place, verb, detail) VALUES ('', 0, 'click', x'80')")
    connection.close()


def test_two_windows_do_not_write_one_file(path):
    with ReadingFile.open(path), pytest.raises(StudyError, match="is open in another window"):
        ReadingFile.open(path)


def test_other_files_are_refused(path, tmp_path):
    (tmp_path / "text.rsread").write_text("no database")
    with pytest.raises(StudyError, match="is not a reading file"):
        ReadingFile.open(tmp_path / "text.rsread")
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE more (id INTEGER)")
    connection.close()
    with pytest.raises(StudyError, match="other tables than a reading file"):
        ReadingFile.open(path)


def test_marks_of_nothing_are_empty():
    marks = fold([])
    assert (marks.clicks, marks.answers, marks.undoable, marks.redoable) == ((), {}, None, None)


@pytest.mark.parametrize(
    ("verb", "detail"),
    [
        ("click", {"x": 1.0}),
        ("click", {"x": float("nan"), "y": 1.0}),
        ("answer", {"question": 1, "answer": "a"}),
        ("burn", {}),
        ("stroke", {"structure": "a", "origin": 5, "shape": [1], "values": b""}),
    ],
)
def test_a_mark_that_cannot_be_one_is_refused(path, verb, detail):
    with ReadingFile.open(path) as file:
        file.record(0, verb, detail)
        with pytest.raises(StudyError, match="is damaged: a mark cannot be read"):
            file.marks(0)
