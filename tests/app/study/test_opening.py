"""Opening and creating: what is a study, and who may write."""

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

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
    assert "is no study" in refusal(text)
    assert "another program" in refusal(other)
    assert "is not there" in refusal(tmp_path / "missing.rscope")
    assert not (tmp_path / "missing.rscope").exists()


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
    assert str(caught.value).startswith("new.rscope: cannot be made")


@pytest.mark.skipif(not hasattr(os, "statvfs"), reason="needs a POSIX system")
def test_the_refusal_names_a_read_only_disk(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda place, mode: mode == os.R_OK)
    assert "you lack the permission" in refusal(closed)
    monkeypatch.setattr(os, "statvfs", lambda place: SimpleNamespace(f_flag=os.ST_RDONLY))
    assert "it is on a read-only disk" in refusal(closed)
    with Study.open(closed, to_read=True) as study:
        assert len(study.decisions()) == 1


DROP_RIGHTS = """
import os, sys
from raterscope.app.study import Study, StudyError
with Study.open(sys.argv[2]) as study:  # loads every module: another user may be denied the checkout
    study.clicks(1), study.decisions(), study.record(study.decisions()[0])
try:
    Study.open(sys.argv[2] + "-missing.rscope")
except StudyError:
    pass
if os.geteuid() == 0:
    os.setuid(65534)
"""


OPEN = (
    DROP_RIGHTS
    + """
try:
    Study.open(sys.argv[1])
except StudyError as error:
    print(error)
"""
)


READ = (
    DROP_RIGHTS
    + """
with Study.open(sys.argv[1], to_read=True) as study:
    print(len(study.clicks(1)), len(study.decisions()))
    try:
        study.record(study.decisions()[0])
    except StudyError as error:
        print(error)
"""
)


def denied(code: str, path: Path, own: Path) -> str:
    """Run code on a study in a process that is not root; `own` is a study for it to write to before."""
    result = subprocess.run([sys.executable, "-c", code, str(path), str(own)], capture_output=True, text=True)
    return result.stdout + result.stderr


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX permissions")
def test_a_study_without_write_permission_is_refused(closed: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy = folder / "copy.rscope"
        shutil.copy(closed, copy)
        copy.chmod(0o666)
        folder.chmod(0o555)
        assert "copy.rscope: lies in a folder that cannot be written" in denied(OPEN, copy, closed)
        folder.chmod(0o777)
        copy.chmod(0o444)
        assert "copy.rscope: cannot be written" in denied(OPEN, copy, closed)
        copy.chmod(0o000)
        assert "copy.rscope: cannot be read" in denied(OPEN, copy, closed)
        copy.chmod(0o666)
        assert denied(OPEN, copy, closed) == ""


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX permissions")
@pytest.mark.parametrize("version", [1, 4, VERSION])
def test_a_study_without_write_permission_can_be_read(closed: Path, version: int) -> None:
    with Study.open(closed) as study:
        many = len(study.clicks(1))
    if version < VERSION:
        as_an_older_format(closed, version)
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "copy.rscope"
        shutil.copy(closed, copy)
        copy.chmod(0o444)
        copy.parent.chmod(0o555)
        before = copy.read_bytes()
        lines = denied(READ, copy, closed).splitlines()
        assert lines[0] == f"{many} 1", lines
        assert "copy.rscope: cannot be written" in lines[1]
        assert copy.read_bytes() == before
        assert [path.name for path in copy.parent.iterdir()] == [copy.name]
        copy.parent.chmod(0o755)
