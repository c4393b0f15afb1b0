"""Copies of an open study: to be read beside it, and saved elsewhere; changes that are whole or none."""

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from PIL import Image

from raterscope.algorithms.progress import Cancelled
from raterscope.app import importing
from raterscope.app.review import Decision
from raterscope.app.study import Study, StudyError
from raterscope.app.study.new_study import save_elsewhere
from tests.app.study.made import a_fusion, a_run, a_table

WRONG = Decision(verb="exclude", annotators=("kim",), reason="careless")


def limit(study: Study, pages: int) -> Callable[[], object]:
    """Let the study's disk be full but for so many pages; gives what makes room again."""
    connection = study._connection
    (now,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {now + pages}")
    return partial(connection.execute, "PRAGMA max_page_count = 4294967294")


@pytest.mark.parametrize("copied_below", [1 << 30, 0])
def test_decisions_are_written_while_copies_are_read(
    study: Study, monkeypatch: pytest.MonkeyPatch, copied_below: int
) -> None:
    monkeypatch.setattr("raterscope.app.study.file.COPIED_BELOW", copied_below)
    study.add_clicks(a_table(1, ("a", "b"), clicks=60_000))
    stop, wrong = threading.Event(), []

    def copy_again_and_again() -> None:
        while not stop.is_set():
            with study.copy() as copy:
                try:
                    (answer,) = copy._connection.execute("PRAGMA integrity_check").fetchone()
                    numbers = [decision.id for decision in copy.decisions()]
                    if answer != "ok" or numbers != list(range(1, len(numbers) + 1)):
                        wrong.append((answer, numbers))
                except (StudyError, sqlite3.Error) as error:
                    wrong.append(error)

    thread = threading.Thread(target=copy_again_and_again)
    thread.start()
    for _ in range(60):
        study.record(WRONG)
    stop.set()
    thread.join()
    assert wrong == []
    assert len(study.decisions()) == 60


def test_a_copy_is_cancelled_and_the_study_goes_on(study: Study) -> None:
    study.add_clicks(a_table(1, ("a",), clicks=60_000))

    def stop(fraction: float, _words: str, **_: object) -> None:
        if fraction > 0.2:
            raise Cancelled

    with pytest.raises(Cancelled):
        study.copy(stop)
    study.record(WRONG)
    with study.copy() as copy:
        assert len(copy.decisions()) == 1


def test_a_closed_study_is_not_copied(tmp_path: Path) -> None:
    study = Study.create(tmp_path / "s.rscope")
    study.close()
    with pytest.raises(StudyError, match="closed meanwhile"):
        study.copy()


def test_saved_elsewhere_a_study_has_its_images_and_what_was_not_taken(study: Study, tmp_path: Path) -> None:
    picture = study.path.parent / "a.png"
    Image.new("RGB", (100, 100)).save(picture)
    importing.store(importing.read_files([picture]), study)
    study.add_clicks(a_table(1, ("a.png",)))
    fusion = a_fusion(study.clicks(1), clusters=400)
    room = limit(study, 1)
    with pytest.raises(StudyError, match="the disk is full"):
        study.runs.add(a_run(), {1: fusion})
    room()
    destination = tmp_path / "other" / "copy.rscope"
    destination.parent.mkdir()
    save_elsewhere(study, destination, [lambda copy, _watch: copy.runs.add(a_run(), {1: fusion})])
    assert study.runs.all() == []
    assert [path.name for path in destination.parent.iterdir()] == [destination.name]
    with Study.open(destination) as copy:
        assert [run.items for run in copy.runs.all()] == [(1,)]
        assert [copy.locate(entry) for entry in copy.images()] == [picture]


def test_what_is_not_saved_elsewhere_leaves_no_file_and_replaces_none(study: Study, tmp_path: Path) -> None:
    def broken(_copy: Study, _watch: object) -> None:
        raise StudyError("is not for this study")

    with pytest.raises(StudyError, match="not for this"):
        save_elsewhere(study, tmp_path / "copy.rscope", [broken])
    assert not (tmp_path / "copy.rscope").exists()
    with pytest.raises(StudyError, match="exists already"):
        save_elsewhere(study, study.path)
    assert study.images() == []


def test_several_files_come_in_all_or_none(study: Study, tmp_path: Path) -> None:
    """The second does not fit on the disk: the first is not there either, and both are once there is room."""
    folder = tmp_path / "files"
    folder.mkdir()
    few = "annotator,task,label\n" + "".join(f"w{i % 9},t{i},{i % 2}\n" for i in range(90))
    count = "annotator,task,label\n" + "".join(f"v{i % 999},long name {i * i},{i % 2}\n" for i in range(9000))
    for name, text in (("few.csv", few), ("many.csv", count)):
        (folder / name).write_text(text)
    readings = importing.read_files([folder / "few.csv", folder / "many.csv"])
    room = limit(study, 8)
    with pytest.raises(StudyError, match="the disk is full; nothing was changed"):
        importing.store(readings, study)
    assert study.questions() == ()
    assert study.annotators() == []
    room()
    importing.store(readings, study)
    assert sum(len(study.vote_set(question.id).task) for question in study.questions()) == 9090
    assert len(study.annotators()) == 9 + 999


def test_votes_are_read_once_though_images_came_after_a_run(study: Study, tmp_path: Path) -> None:
    votes = tmp_path / "votes.csv"
    votes.write_text("annotator,task,label\n" + "".join(f"w{i % 9},t{i},{i % 2}\n" for i in range(90)))
    importing.store(importing.read_files([votes]), study)
    then = study.last_import()
    study.add_clicks(a_table(1, ("a",)))
    (question,) = study.questions()
    assert study.last_import() > then
    assert study.vote_set(question.id) is study.vote_set(question.id, then)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a disk of its own, which is made in memory")
def test_a_disk_that_is_full_when_a_study_is_closed_costs_no_decision(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True
    ).returncode:
        pytest.skip("needs the right to mount a disk")
    try:
        study = Study.create(disk / "s.rscope")
        while _room(disk) > 300_000:
            study.record(replace(WRONG, reason="x" * 3000))
        (disk / "full").write_bytes(bytes(_room(disk)))
        written = len(study.decisions())
        with pytest.raises(StudyError, match=r"s\.rscope-wal; keep both together"):
            study.close()
        with pytest.raises(StudyError, match="cannot be opened: the disk is full"):
            Study.open(disk / "s.rscope", to_read=True)
        (disk / "full").unlink()
        with Study.open(disk / "s.rscope") as study:
            assert len(study.decisions()) == written > 20
        assert [path.name for path in disk.iterdir()] == ["s.rscope"]
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def _room(disk: Path) -> int:
    status = os.statvfs(disk)
    return status.f_bavail * status.f_frsize


@pytest.fixture
def read_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Studies of any size are read in place."""
    monkeypatch.setattr("raterscope.app.study.file.COPIED_BELOW", 0)


@pytest.mark.usefixtures("read_in_place")
def test_a_large_study_is_read_in_place_as_it_was_while_it_changes(study: Study) -> None:
    study.record(WRONG)
    with study.copy() as first, study.copy() as second:
        written = study.path.stat().st_mtime_ns
        for _ in range(50):
            study.record(WRONG)
        study.add_clicks(a_table(1, ("a",), clicks=20_000))
        study.rest()
        with study.copy() as later:
            assert len(later.decisions()) == 51
        assert study.path.stat().st_mtime_ns == written
        assert [len(copy.decisions()) for copy in (first, second)] == [1, 1]
        (answer,) = first._connection.execute("PRAGMA integrity_check").fetchone()
        assert answer == "ok"
        with pytest.raises(StudyError):
            first.record(WRONG)
    code = f"from raterscope.app.study import Study; Study.open({str(study.path)!r})"
    refused = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "InUseError" in refused.stderr
    assert not study.rest().why
    study.close()
    assert list(study.path.parent.glob("*-wal")) == []
    with Study.open(study.path) as opened:
        assert len(opened.decisions()) == 51


@pytest.mark.usefixtures("read_in_place")
def test_a_study_is_closed_once_it_is_no_longer_read(study: Study) -> None:
    copy = study.copy()
    closing = threading.Thread(target=study.close)
    closing.start()
    assert copy.decisions() == []
    closing.join(0.2)
    assert closing.is_alive()
    copy.close()
    closing.join()
    with Study.open(study.path) as opened:
        assert opened.decisions() == []
