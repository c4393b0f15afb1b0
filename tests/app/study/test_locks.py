"""A study that is open is open to one process alone."""

import subprocess
import sys
from pathlib import Path

import pytest

from raterscope.app.review import Decision, SpotSubject
from raterscope.app.study import Study, StudyError
from tests.app.study.files import refusal


def test_a_second_open_in_the_same_process_is_refused_and_does_no_harm(closed: Path) -> None:
    with Study.open(closed) as study:
        assert "open already" in refusal(closed)
        code = f"from raterscope.app.study import Study; Study.open({str(closed)!r})"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "smears.rscope: is open already" in other.stderr
        study.record(Decision(verb="skip", item=1, subject=SpotSubject(x=0.0, y=0.0)))
    with Study.open(closed) as study:
        assert len(study.decisions()) == 2


def test_reading_the_open_file_in_this_process_does_not_release_the_lock(closed: Path) -> None:
    """As Qt's file dialog does: the locks that POSIX systems give to a process are gone then."""
    code = f"from raterscope.app.study import Study; Study.open({str(closed)!r}).close()"
    with Study.open(closed):
        closed.read_bytes()
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "smears.rscope: is open already" in other.stderr
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert [path.name for path in closed.parent.iterdir()] == [closed.name]


def test_a_lock_file_of_a_killed_program_does_not_prevent_opening(closed: Path) -> None:
    closed.with_name(f"{closed.name}-lock").touch()
    Study.open(closed).close()
    assert [path.name for path in closed.parent.iterdir()] == [closed.name]


def test_a_study_is_found_open_by_another_name(closed: Path) -> None:
    link = closed.with_name("link.rscope")
    link.symlink_to(closed)
    with Study.open(closed), pytest.raises(StudyError, match="open already"):
        Study.open(link)
