"""Opening and creating: what is a study, and who may write."""

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from raterscope.app.review import CommentSubject, Decision
from raterscope.app.study import Study, StudyError
from raterscope.app.study.schema import VERSION
from tests.app.study.files import as_an_older_format, edited, refusal


def test_a_closed_study_is_one_plain_file(closed: Path) -> None:
    assert [path.name for path in closed.parent.iterdir()] == [closed.name]


def test_create_refuses_to_replace(closed: Path) -> None:
    before = closed.read_bytes()
    with pytest.raises(StudyError, match=r"smears\.rscope: exists already"):
        Study.create(closed)
    assert closed.read_bytes() == before
    assert len(list(closed.parent.iterdir())) == 1


def test_the_suffix_of_a_study_is_required(closed: Path) -> None:
    with pytest.raises(StudyError, match=r"expected NAME\.rscope"):
        Study.create(closed.with_suffix(".db"))
    renamed = closed.rename(closed.with_suffix(".db"))
    assert "rename it to NAME.rscope" in refusal(renamed)


def test_create_names_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"there is no folder .*nowhere"):
        Study.create(tmp_path / "nowhere" / "a.rscope")


def test_other_files_are_refused(tmp_path: Path) -> None:
    folder, empty, text, other = (
        tmp_path / f"{name}.rscope" for name in ("folder", "empty", "text", "other")
    )
    folder.mkdir()
    empty.touch()
    text.write_text("annotator,image,x,y\n" * 100)
    with edited(other) as connection:
        connection.execute("CREATE TABLE bookmarks (url)")
    assert "is a folder" in refusal(folder)
    assert "is empty" in refusal(empty)
    assert "is not a study" in refusal(text)
    assert "another program" in refusal(other)
    assert "does not exist" in refusal(tmp_path / "missing.rscope")
    assert not (tmp_path / "missing.rscope").exists()


def test_a_log_of_another_study_beside_the_file_is_named(closed: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.rscope"
    Study.create(other).close()
    with Study.open(closed) as study:
        for text in ("thick", "thin"):
            subject = CommentSubject(of="clicks")
            study.record(Decision(verb="comment", item=1, subject=subject, reason=text))
        shutil.copy(f"{closed}-wal", f"{other}-wal")
    before = other.read_bytes()
    assert "other.rscope-wal beside it belongs to another study" in refusal(other)
    assert other.read_bytes() == before


def test_a_newer_version_is_refused(closed: Path) -> None:
    with edited(closed) as connection:
        connection.execute(f"PRAGMA user_version={VERSION + 1}")
    assert "newer Raterscope" in refusal(closed)


def test_no_study_is_created_on_a_read_only_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a disk refuses even to take away what is not there."""

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    def unopened(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(Path, "unlink", refused)
    monkeypatch.setattr(sqlite3, "connect", unopened)
    with pytest.raises(StudyError) as caught:
        Study.create(tmp_path / "new.rscope")
    assert str(caught.value).startswith("new.rscope: cannot be created")


@pytest.mark.skipif(not hasattr(os, "statvfs"), reason="needs a POSIX system")
def test_the_refusal_names_a_read_only_disk(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda position, mode: mode == os.R_OK)
    assert "you lack the permission" in refusal(closed)
    monkeypatch.setattr(os, "statvfs", lambda position: SimpleNamespace(f_flag=os.ST_RDONLY))
    assert "it is on a read-only disk" in refusal(closed)
    with Study.open(closed, to_read=True) as study:
        assert len(study.decisions()) == 1


AS_ANOTHER_USER = """
import os, sys
from raterscope.app.review import CommentSubject, Decision
from raterscope.app.study import Study, StudyError
own, *others = sys.argv[1:]
with Study.open(own) as study:  # loads every module: another user may be denied the checkout
    study.clicks(1), study.decisions(), study.record(study.decisions()[0])
try:
    Study.open(own + "-missing.rscope")
except StudyError:
    pass
if os.geteuid() == 0:
    os.setuid(65534)
"""

OPEN = """
for path in others:
    try:
        Study.open(path).close()
        print("opened")
    except StudyError as error:
        print(error)
"""

READ = """
for path in others:
    with Study.open(path, to_read=True) as study:
        print(len(study.clicks(1)), len(study.decisions()))
        try:
            study.record(study.decisions()[0])
        except StudyError as error:
            print(error)
"""


def as_another_user(code: str, own: Path, others: list[Path]) -> list[str]:
    """Run code on studies in a process that is not root; `own` is a study for it to write to before."""
    command = [sys.executable, "-c", AS_ANOTHER_USER + code, str(own), *map(str, others)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can reach."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)
        for path in Path(name).iterdir():
            path.chmod(0o755)


def copied(study: Path, folder: Path, rights: int, folder_rights: int) -> Path:
    """Copy a study into a new folder, both with these rights."""
    folder.mkdir()
    copy = Path(shutil.copy(study, folder / "copy.rscope"))
    copy.chmod(rights)
    folder.chmod(folder_rights)
    return copy


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX permissions")
def test_a_study_without_write_permission_is_refused(closed: Path, folder: Path) -> None:
    rights = {
        "folder": (0o666, 0o555),
        "file": (0o444, 0o777),
        "hidden": (0o000, 0o777),
        "own": (0o666, 0o777),
    }
    others = [copied(closed, folder / name, *path) for name, path in rights.items()]
    in_folder, read_only, hidden, free = as_another_user(OPEN, closed, others)
    assert "copy.rscope: is in a folder that cannot be written" in in_folder
    assert "copy.rscope: cannot be written" in read_only
    assert "copy.rscope: cannot be read" in hidden
    assert free == "opened"


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX permissions")
def test_a_study_without_write_permission_can_be_read(closed: Path, folder: Path) -> None:
    with Study.open(closed) as study:
        count = len(study.clicks(1))
    copies, own = [], Path(shutil.copy(closed, folder / "own.rscope"))
    for version in (VERSION, 4, 1):
        if version < VERSION:
            older = closed.with_name(f"older{version}.rscope")
            shutil.copy(closed, older)
            as_an_older_format(older, version)
        else:
            older = closed
        copies.append(copied(older, folder / str(version), 0o444, 0o555))
    before = [copy.read_bytes() for copy in copies]
    lines = as_another_user(READ, own, copies)
    for result, refused in zip(lines[::2], lines[1::2], strict=True):
        assert result == f"{count} 1"
        assert "copy.rscope: cannot be written" in refused
    assert len(lines) == 2 * len(copies)
    assert [copy.read_bytes() for copy in copies] == before
    assert all(list(copy.parent.iterdir()) == [copy] for copy in copies)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX permissions")
@pytest.mark.parametrize("with_log", [True, False])
def test_what_a_killed_program_left_without_write_permission_can_be_read(
    closed: Path, folder: Path, with_log: bool
) -> None:
    own = Path(shutil.copy(closed, folder / "own.rscope"))
    left = folder / "left"
    left.mkdir()
    with Study.open(closed) as study:
        count = len(study.clicks(1))
        study.record(study.decisions()[0])
        for file in (closed, closed.with_name(f"{closed.name}-wal")) if with_log else (closed,):
            Path(shutil.copy(file, left / file.name)).chmod(0o444)
    left.chmod(0o555)
    result, refused = as_another_user(READ, own, [left / closed.name])
    assert result == f"{count} {2 if with_log else 1}"
    assert "cannot be written" in refused
