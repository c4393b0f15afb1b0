"""Two processes and one study: the second learns the owner, reads a snapshot, and nothing is lost."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from raterscope.app.formats.output_files import draft_for, remove_stray_drafts
from raterscope.app.review import Decision
from raterscope.app.study import Study, StudyError
from tests.app.commands import run
from tests.app.study.made import a_table

ROOT = Path(__file__).parents[3]

DECIDING = """
import sys, time
from raterscope.app.review import Decision
from raterscope.app.study import Study
with Study.open(sys.argv[1]) as study:
    while True:
        done = study.record(Decision(verb="exclude", annotators=("kim",), reason="careless" * 200))
        if done.id % 50 == 0:
            study.checkpoint()
            time.sleep(0.02)
        print(done.id, flush=True)
"""
IMPORTING = """
import sys
from raterscope.app import cli, importing
read_files = importing.read_files
def read(*arguments, **named):
    readings = read_files(*arguments, **named)
    print("read", flush=True)
    sys.stdin.readline()
    return readings
importing.read_files = read
sys.exit(cli.main(["import", *sys.argv[1:]]))
"""


@contextmanager
def process(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-c", code, *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT) as started:
        try:
            yield started
        finally:
            started.kill()


def line(started: subprocess.Popen[str]) -> str:
    assert started.stdout is not None
    return started.stdout.readline().strip()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy a study again as often as it takes: a busy machine lets the other process change it meanwhile."""
    monkeypatch.setattr("raterscope.app.study.locking._ATTEMPTS", 10_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Study.create(tmp_path / "shared.rscope") as study:
        study.add_clicks(a_table(1, ("a.png",), clicks=3000))
    return study.path


def test_a_study_that_another_process_changes_is_read_as_it_stands(path: Path) -> None:
    """Every snapshot has all that was reported as done before; after a kill nothing is missing either."""
    with process(DECIDING, path) as other:
        count = 0
        for _ in range(20):
            count = int(line(other))
            with Study.open(path, to_read=True) as study:
                numbers = [file_path.id for file_path in study.decisions()]
                assert numbers == list(range(1, len(numbers) + 1))
                assert len(numbers) >= count
                assert len(study.clicks(1)) == 3000
        out = path.with_name("decisions.csv")
        assert run("export", path, "--what", "decisions", "-o", out) == 0
        assert len(out.read_text().splitlines()) > count
        with pytest.raises(StudyError) as refused:
            Study.open(path)
        assert f"shared.rscope: is open already, in process {other.pid} on " in str(refused.value)
        count = int(line(other))
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    with Study.open(path) as study:
        assert len(study.decisions()) >= count
    assert {file_path.name for file_path in path.parent.iterdir()} == {path.name, out.name}


def test_a_snapshot_takes_no_change_and_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = path.parent / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with process(DECIDING, path) as other:
        line(other)
        with Study.open(path, to_read=True) as study:
            assert list(folder.iterdir())
            with pytest.raises(StudyError, match="cannot be written"):
                study.record(Decision(verb="exclude", annotators=("kim",), reason="late"))
        assert list(folder.iterdir()) == []


LEAVING = """
import os, signal, sys
from pathlib import Path
from raterscope.app.review import Decision, View
from raterscope.app.study import Study
study, new = Study.open(sys.argv[1]), Path(sys.argv[2])
wrong = Decision(verb="exclude", annotators=("kim",), reason="careless")
study.record(wrong)
study.rest()
study.record(wrong)
study.record(wrong)
study.views.record([View(image=1, x=1.0, y=1.0, seconds=2.0)])
study.path.rename(new)
if sys.argv[3] == "rested":
    assert study.rest().path == new
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_study_that_was_renamed_before_a_crash_has_every_decision_once_it_rested(path: Path) -> None:
    new = path.with_name("renamed.rscope")
    with process(LEAVING, path, new, "rested") as other:
        other.wait()
    for left in path.parent.glob(f"{path.name}*"):
        left.unlink()
    with Study.open(new) as study:
        assert len(study.decisions()) == 3


def test_decisions_left_under_a_former_name_are_reported_and_recovered(path: Path) -> None:
    new = path.with_name("renamed.rscope")
    with process(LEAVING, path, new, "at once") as other:
        other.wait()
    other_study = path.with_name("unrelated.rscope")
    for seed in (None, 2):  # the log is not this one's, be it empty or not
        with Study.open(other_study) if other_study.exists() else Study.create(other_study) as study:
            if seed:
                study.add_clicks(a_table(seed, ("b.png",)))
    log = path.with_name(f"{path.name}-wal")
    before = new.read_bytes(), log.read_bytes()
    for to_read in (False, True):
        with pytest.raises(StudyError) as refused:
            Study.open(new, to_read=to_read)
        words = str(refused.value)
        assert words.startswith("renamed.rscope: was renamed while it was open, and its last changes ")
        assert "(2 decisions and 1 view) are in shared.rscope-wal beside it" in words
        assert "Rename that file to renamed.rscope-wal" in words
    assert (new.read_bytes(), log.read_bytes()) == before
    log.rename(new.with_name(f"{new.name}-wal"))
    with Study.open(new) as study:
        assert len(study.decisions()) == 3


def test_an_import_never_removes_a_study_that_another_process_made_meanwhile(tmp_path: Path) -> None:
    study, few, many = (tmp_path / name for name in ("new.rscope", "few.csv", "many.csv"))
    few.write_text("annotator,task,label\n" + "".join(f"w{i % 9},t{i},{i % 2}\n" for i in range(90)))
    many.write_text(few.read_text())
    with process(IMPORTING, study, many) as slow:
        assert line(slow) == "read"
        assert run("import", study, few) == 0
        created = study.read_bytes()
        _, err = slow.communicate("go on\n")
        assert slow.returncode == 1
        assert "new.rscope: exists already" in err
    assert study.read_bytes() == created


def test_an_import_that_fails_removes_what_it_made_but_not_what_took_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal
) -> None:
    votes, path = tmp_path / "votes.csv", tmp_path / "new.rscope"
    votes.write_text("annotator,task,label\nw,t,1\nv,t,0\n")

    def broken(*_: object, **__: object) -> None:
        raise StudyError("is not for this study")

    monkeypatch.setattr("raterscope.app.importing.store", broken)
    assert refusal("import", path, votes) == "is not for this study."
    assert [file_path.name for file_path in tmp_path.iterdir()] == ["votes.csv"]

    def replaced(*_: object, **__: object) -> None:
        path.unlink()
        path.write_text("of somebody else")
        raise StudyError("is not for this study")

    monkeypatch.setattr("raterscope.app.importing.store", replaced)
    refusal("import", path, votes)
    assert path.read_text() == "of somebody else"


def test_a_watch_that_reads_nothing_leaves_the_study_of_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal
) -> None:
    source, path = tmp_path / "clicks.csv", tmp_path / "new.rscope"
    source.write_text("what,is,this\n1,2,3\n")
    refusal("watch", path, source, "--once")
    assert not path.exists()
    create = Study.create

    def late(where: Path) -> Study:
        create(where).close()
        return create(where)

    monkeypatch.setattr(Study, "create", late)
    assert "exists already" in refusal("watch", path, source, "--once")
    assert path.exists()


@pytest.mark.skipif(os.name == "nt", reason="processes are not asked for there")
def test_drafts_of_dead_processes_go_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    mine = draft_for(tmp_path / "masks.nii.gz")
    stray = mine.with_name(mine.name.replace(f"-{os.getpid()}-", f"-{dead.pid}-"))
    fresh = stray.with_name(f"{stray.name}.gz")
    foreign = tmp_path / f".draft-00000000-{dead.pid}-00000000.masks.nii.gz"
    other = tmp_path / ".1234abcd.masks.nii.gz"
    for draft in (mine, stray, fresh, foreign, other):
        draft.touch()
        if draft is not fresh:
            os.utime(draft, (0, 0))
    remove_stray_drafts(tmp_path)
    assert set(tmp_path.iterdir()) == {mine, fresh, foreign, other}


def test_a_killed_export_leaves_a_draft_that_the_next_one_removes(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from pathlib import Path
from raterscope.app.formats.output_files import open_output
with open_output(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    out = tmp_path / "table.csv"
    subprocess.run([sys.executable, "-c", code, out], cwd=ROOT, check=False)
    (left,) = tmp_path.iterdir()
    os.utime(left, (0, 0))
    write = code.replace("    os.kill(os.getpid(), signal.SIGKILL)\n", "")
    subprocess.run([sys.executable, "-c", write, out], cwd=ROOT, check=True)
    assert list(tmp_path.iterdir()) == [out]


NO_LOCKS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
int flock(int file, int operation) { errno = ENOLCK; return -1; }
static int without_locks(const char *name, int file, int command, void *argument) {
    int (*next)(int, int, void *) = dlsym(RTLD_NEXT, name);
    if (command >= 5 && command <= 7) { errno = ENOLCK; return -1; }
    return next(file, command, argument);
}
int fcntl(int file, int command, void *argument) {
    return without_locks("fcntl", file, command, argument);
}
int fcntl64(int file, int command, void *argument) {
    return without_locks("fcntl64", file, command, argument);
}
"""


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs a C compiler on Linux")
def test_where_there_are_no_locks_it_is_reported_and_a_study_can_be_read(path: Path) -> None:
    """As on a network folder: the system answers every wish for a lock with ENOLCK."""
    library = path.with_name("no_locks.so")
    words = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library, "-ldl"]
    subprocess.run(words, input=NO_LOCKS, text=True, check=True)
    code = """
import sys
from raterscope.app.study import Study, StudyError
try:
    Study.open(sys.argv[1])
except StudyError as error:
    print(error)
with Study.open(sys.argv[1], to_read=True) as study:
    print(len(study.clicks(1)))
"""
    output = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, cwd=ROOT,
        env={**os.environ, "LD_PRELOAD": str(library)},
    )  # fmt: skip
    first, second, *_ = [*output.stdout.splitlines(), output.stderr, output.stderr]
    assert first.startswith(
        "shared.rscope: cannot be opened to change it: the file system of its folder has no locks"
    )
    assert second == "3000"
    assert {file_path.name for file_path in path.parent.iterdir()} == {path.name, library.name}
