"""Opening what is a study, and what is not."""

import contextlib
import errno
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.review import Decision, SpotSubject
from raterscope.app.study import Study, StudyError
from raterscope.app.study.masks import add_case
from raterscope.app.study.migration import schema_of
from raterscope.app.study.objects import write_object
from raterscope.app.study.outlines import Outline
from raterscope.app.study.records import MarksRecord
from raterscope.app.study.schema import VERSION
from tests.app.study.made import a_fusion, a_run, a_table


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A study with something of everything, closed."""
    path = tmp_path / "smears.rscope"
    with Study.create(path) as study:
        study.add_clicks(a_table(1, ("a.png", "b.png"), clicks=3000))
        study.add_run(a_run(), {1: a_fusion(study.clicks(1))})
        study.record(Decision(verb="accept", item=1, subject=SpotSubject(number=2, x=3.0, y=4.0)))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(StudyError) as caught:
        Study.open(path)
    sentence = str(caught.value)
    assert path.name in sentence
    assert sentence.endswith(".")
    return sentence


@contextlib.contextmanager
def edited(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path)
    with contextlib.closing(connection), connection:
        yield connection


def test_a_closed_study_is_one_plain_file(closed: Path) -> None:
    assert [path.name for path in closed.parent.iterdir()] == [closed.name]


def test_create_refuses_to_replace(closed: Path) -> None:
    before = closed.read_bytes()
    with pytest.raises(StudyError, match=r"smears\.rscope: exists already"):
        Study.create(closed)
    assert closed.read_bytes() == before
    assert len(list(closed.parent.iterdir())) == 1


def test_a_study_is_called_as_one(closed: Path) -> None:
    with pytest.raises(StudyError, match=r"expected NAME\.rscope"):
        Study.create(closed.with_suffix(".db"))
    renamed = closed.rename(closed.with_suffix(".db"))
    assert "rename it to NAME.rscope" in refusal(renamed)


def test_of_a_large_file_the_tables_are_looked_at(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raterscope.app.study.opening._CHECKED_WHOLE", 0)
    Study.open(closed).close()
    with edited(closed) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'decisions'").fetchone()
    data = bytearray(closed.read_bytes())
    data[(page - 1) * 4096 : page * 4096] = Random(0).randbytes(4096)
    closed.write_bytes(data)
    assert "damaged" in refusal(closed)


def test_a_damaged_study_with_the_log_of_a_killed_program_stays_as_it_was(
    closed: Path, tmp_path: Path
) -> None:
    """The database takes such a log into the file when a connection that can write is closed."""
    killed = tmp_path / "killed.rscope"
    log = tmp_path / "killed.rscope-wal"
    with Study.open(closed) as study:
        study.record(Decision(verb="skip", item=1, subject=SpotSubject(x=0.0, y=0.0)))
        shutil.copy(closed, killed)
        shutil.copy(tmp_path / "smears.rscope-wal", log)
    sound = killed.read_bytes()
    damaged = bytearray(sound)
    damaged[4096:8192] = bytes(4096)
    killed.write_bytes(damaged)
    before = log.read_bytes()
    assert "damaged" in refusal(killed)
    assert killed.read_bytes() == damaged
    assert log.read_bytes() == before
    assert not (tmp_path / "killed.rscope-shm").exists()
    killed.write_bytes(sound)
    with Study.open(killed) as study:
        assert [one.verb for one in study.decisions()] == ["accept", "skip"]


def test_damaged_arrays_are_found_when_they_are_read(closed: Path) -> None:
    with edited(closed) as connection:
        (chunk,) = connection.execute("SELECT data FROM chunks WHERE object = 1").fetchone()
    data = bytearray(closed.read_bytes())
    data[data.index(chunk[2000:2100]) + 50] ^= 1
    closed.write_bytes(data)
    with Study.open(closed) as study:
        with pytest.raises(StudyError, match=r"damaged \(objects, row 1: a chunk does not decompress\)"):
            study.clicks(1)
        assert len(study.clicks(2)) == 3000


@pytest.mark.parametrize(
    "row",
    [
        "2, at, who, 'dance', 1, kind, subject, NULL, '', '', 1, 1, 0",
        "2, at, who, 'weigh', NULL, 'weight', '{\"weight\": 7.5}', NULL, '', '[\"W1\"]', 1, 1, NULL",
        "2, at, who, 'weigh', NULL, 'weight', '{\"weight\": 0.5}', NULL, '', '[]', 1, 1, NULL",
    ],
)
def test_a_decision_that_is_none_is_damage(closed: Path, row: str) -> None:
    with edited(closed) as connection:
        connection.execute(f"INSERT INTO decisions SELECT {row} FROM decisions")
    with Study.open(closed) as study, pytest.raises(StudyError, match="decision 2 cannot be read"):
        study.decisions()


def test_create_names_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"there is no folder .*nowhere"):
        Study.create(tmp_path / "nowhere" / "a.rscope")


def test_on_a_read_only_disk_none_is_made_and_its_name_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
def test_on_a_read_only_disk_it_is_the_disk_that_is_told(
    closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda place, mode: mode == os.R_OK)
    assert "you lack the permission" in refusal(closed)
    monkeypatch.setattr(os, "statvfs", lambda place: SimpleNamespace(f_flag=os.ST_RDONLY))
    assert "it is on a read-only disk" in refusal(closed)
    with Study.open(closed, to_read=True) as study:
        assert len(study.decisions()) == 1


def test_a_second_open_in_the_same_process_is_refused_and_does_no_harm(closed: Path) -> None:
    with Study.open(closed) as study:
        assert "open already" in refusal(closed)
        code = f"from raterscope.app.study import Study; Study.open({str(closed)!r})"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "smears.rscope: is open already" in other.stderr
        study.record(Decision(verb="skip", item=1, subject=SpotSubject(x=0.0, y=0.0)))
    with Study.open(closed) as study:
        assert len(study.decisions()) == 2


def test_it_stays_refused_to_others_when_something_in_this_process_looks_into_its_file(closed: Path) -> None:
    """As Qt's file dialog does: the locks that POSIX systems give to a process are gone then."""
    code = f"from raterscope.app.study import Study; Study.open({str(closed)!r}).close()"
    with Study.open(closed):
        closed.read_bytes()
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "smears.rscope: is open already" in other.stderr
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert [path.name for path in closed.parent.iterdir()] == [closed.name]


def test_what_a_killed_program_left_of_its_lock_refuses_nobody(closed: Path) -> None:
    closed.with_name(f"{closed.name}-lock").touch()
    Study.open(closed).close()
    assert [path.name for path in closed.parent.iterdir()] == [closed.name]


def test_a_study_is_found_open_by_another_name(closed: Path) -> None:
    link = closed.with_name("link.rscope")
    link.symlink_to(closed)
    with Study.open(closed), pytest.raises(StudyError, match="open already"):
        Study.open(link)


@pytest.mark.parametrize(
    "change",
    [
        r"""settings = '{"name": "\ud800"}'""",
        r"""excluded = '["\ud800"]'""",
        """excluded = '[1]'""",
        """kind = 'masks', log = '{"images": [false]}'""",
        """kind = 'masks', log = '{"images": [{"image": "a", "structures": [{"structure": 1}]}]}'""",
    ],
)
def test_a_run_with_a_value_of_another_form_is_damage(closed: Path, change: str) -> None:
    with edited(closed) as connection:
        connection.execute(f"UPDATE runs SET {change}")
    with Study.open(closed) as study, pytest.raises(StudyError, match="run 1 cannot be read"):
        study.runs()


def test_a_cluster_far_outside_every_image_does_not_fit(tmp_path: Path) -> None:
    """Squares of its distances would be infinite."""
    with Study.create(tmp_path / "far.rscope") as study:
        study.add_clicks(a_table(1, ("a.png",), clicks=300))
        fusion = a_fusion(study.clicks(1))
        fusion.clustering.mean[0, 0] = 1e200
        with pytest.raises(StudyError, match="far outside every image"):
            study.add_run(a_run(), {1: fusion})


@pytest.mark.parametrize("weights", ['{"W1": 3}', '{"W1": "a half"}', "[0.5]"])
def test_a_run_with_weights_that_are_none_is_damage(closed: Path, weights: str) -> None:
    with edited(closed) as connection:
        connection.execute(f"UPDATE runs SET log = '{{\"weights\": {weights}}}'")
    with Study.open(closed) as study, pytest.raises(StudyError, match="run 1 cannot be read"):
        study.runs()


def test_a_newer_version_is_refused(closed: Path) -> None:
    with edited(closed) as connection:
        connection.execute(f"PRAGMA user_version={VERSION + 1}")
    assert "newer Raterscope" in refusal(closed)


@pytest.mark.parametrize("version", range(1, VERSION))
def test_a_study_of_an_older_format_opens_with_all_that_was_decided(closed: Path, version: int) -> None:
    with Study.open(closed) as study:
        moved = SpotSubject(number=2, x=5.0, y=4.0, from_x=3.0, from_y=4.0)
        study.record(Decision(verb="move", item=1, subject=moved, about=1, reason='it\'s "there"'))
        study.record(Decision(verb="exclude", annotators=("W1",), reason="bored"))
        study.record(Decision(verb="undo", undoes=2))
        before = study.decisions()
    as_an_older_format(closed, version)
    with Study.open(closed) as study:
        assert study.decisions() == before
        assert study.record(Decision(verb="undo", undoes=3)).id == 5
        assert study.shown_result(1) is not None
        assert (study.shown_answers() == {1: None}) == (version < 5)  # its runs keep no outline
    with edited(closed) as connection, pytest.raises(sqlite3.IntegrityError, match="never changed"):
        connection.execute("UPDATE decisions SET who = 'another'")


OFFSETS = (0.0, 2.5, 5.0, 12.5)


def with_a_case(path: Path, offsets: tuple[float, ...] | None) -> Grid:
    """Add a volume that only its masks tell of."""
    grid = Grid((4, 6, 7), Grid.plain((4, 6, 7), (2.5, 1, 1)).affine, True, offsets)
    with Study.open(path) as study:
        add_case(study, "chest", grid)
    return grid


def grid_in(path: Path) -> Grid | None:
    with Study.open(path) as study:
        return next(entry.grid for entry in study.images() if entry.name == "chest")


@pytest.mark.parametrize("version", [2, 3, 4, 5, 6])
def test_volumes_of_an_older_format_keep_their_geometry(closed: Path, version: int) -> None:
    grid = with_a_case(closed, None)
    as_an_older_format(closed, version)
    assert grid_in(closed) == grid


def test_positions_of_uneven_slices_are_kept(closed: Path) -> None:
    grid = with_a_case(closed, OFFSETS)
    assert grid_in(closed) == grid


@pytest.mark.parametrize(
    "stored", ["[0.0, 2.5]", "[0.0, 2.5, 2.5, 5.0]", "[0.0, 2.5, 5.0, 1e999]", '[0, "a", 2, 3]', "{}", "x"]
)
def test_slice_positions_that_cannot_be_are_damage(closed: Path, stored: str) -> None:
    with_a_case(closed, OFFSETS)
    with edited(closed) as connection:
        connection.execute("UPDATE grids SET slice_offsets = ?", (stored,))
    with pytest.raises(StudyError, match="the geometry of chest cannot be read"):
        grid_in(closed)


COLUMNS_BEFORE = {
    1: "id, at, who, verb, item, subject ->> 'number', subject ->> 'x', subject ->> 'y', "
    "subject ->> 'from_x', subject ->> 'from_y', reason, annotators ->> 0, run, about, undoes",
    2: "id, at, who, verb, item, kind, subject, voxels, reason, annotators ->> 0, run, about, undoes",
}
TABLES_SINCE = {
    1: ("grids", "masks", "questions", "votes", "pictures", "watched", "streams", "outlines",
        "structures", "keys", "shown", "settings", "viewed"),
    2: ("questions", "votes", "pictures", "watched", "streams", "outlines", "structures", "keys", "shown",
        "settings", "viewed"),
    3: ("watched", "streams", "outlines", "structures", "keys", "shown", "settings", "viewed"),
    4: ("outlines", "structures", "keys", "shown", "settings", "viewed"),
    5: ("structures", "keys", "shown", "settings", "viewed"),
    6: ("structures", "keys", "shown", "settings", "viewed"),
    7: ("shown", "settings", "viewed"),
    8: ("settings", "viewed"),
    9: ("viewed",),
    10: (),
}  # fmt: skip


def as_an_older_format(path: Path, version: int) -> None:
    """Write a study as an older format had it.

    The first had a spot's columns, the second one annotator a decision, the third watched nothing, the fourth
    kept no outlines, the fifth no slice positions, the sixth no codes of structures and no key of exports,
    the seventh no run shown, the eighth no settings, the ninth no views of spots, the tenth no
    control images.
    """
    with edited(path) as connection:
        for table in TABLES_SINCE[version]:
            connection.execute(f"DROP TABLE {table}")
        if version in COLUMNS_BEFORE:
            with_tables_before(connection, version)
        if 1 < version < 6:
            columns = "image, slices, affine, calibrated, modality, identifier"
            grids = connection.execute(f"SELECT {columns} FROM grids").fetchall()
            connection.execute("DROP TABLE grids")
            connection.execute(next(one for one in schema_of(version) if "TABLE grids" in one))
            connection.executemany("INSERT INTO grids VALUES (?, ?, ?, ?, ?, ?)", grids)
        connection.execute(f"PRAGMA user_version={version}")


def with_tables_before(connection: sqlite3.Connection, version: int) -> None:
    for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    decisions = connection.execute(f"SELECT {COLUMNS_BEFORE[version]} FROM decisions").fetchall()
    results = connection.execute("SELECT item, run, object FROM results").fetchall()
    for table in ("decisions", "results"):
        connection.execute(f"DROP TABLE {table}")
    for statement in schema_of(version):
        if "decisions" in statement or "results" in statement:
            connection.execute(statement)
    connection.executemany(
        f"INSERT INTO decisions VALUES ({', '.join('?' * (15 if version == 1 else 13))})", decisions
    )
    connection.executemany("INSERT INTO results VALUES (?, ?, ?)", results)


def test_what_is_no_study_is_refused(tmp_path: Path) -> None:
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


def test_a_study_that_lost_its_end_is_refused(closed: Path) -> None:
    whole = closed.read_bytes()
    for share in (0.02, 0.3, 0.6, 0.99):
        closed.write_bytes(whole[: int(len(whole) * share)])
        sentence = refusal(closed)
        assert "cut short" in sentence or "damaged" in sentence or "no study" in sentence


def test_a_name_that_is_no_text_is_damage(closed: Path) -> None:
    with edited(closed) as connection:
        connection.execute("UPDATE images SET name = CAST(x'80ff41' AS TEXT) WHERE id = 1")
    with Study.open(closed) as study, pytest.raises(StudyError) as caught:
        study.images()
    assert str(caught.value) == "smears.rscope: cannot be read: the file is damaged; open a backup of it."


def test_a_study_without_its_triggers_is_refused(closed: Path) -> None:
    with edited(closed) as connection:
        connection.execute("DROP TRIGGER decisions_remain")
    assert "altered" in refusal(closed)


def test_a_study_with_a_foreign_trigger_is_refused(closed: Path) -> None:
    with edited(closed) as connection:
        connection.execute("CREATE TRIGGER t AFTER INSERT ON decisions BEGIN DELETE FROM chunks; END")
    assert "altered" in refusal(closed)


EMPTIES = "INSERT ON decisions BEGIN DELETE FROM chunks; END"
FOREIGN = [
    ("trigger", "sqlite_evil", "decisions", f"CREATE TRIGGER sqlite_evil AFTER {EMPTIES}"),
    ("trigger", "decisions_stay", "decisions", f"CREATE TRIGGER decisions_stay AFTER {EMPTIES}"),
    ("view", "sqlite_view", "sqlite_view", "CREATE VIEW sqlite_view AS SELECT 1"),
    ("table", "sqlite_stat9", "sqlite_stat9", "CREATE VIRTUAL TABLE sqlite_stat9 USING fts5(a)"),
    ("index", "sqlite_index", "images", "CREATE INDEX sqlite_index ON images(abs(width))"),
]  # fmt: skip


@pytest.mark.parametrize("row", FOREIGN, ids=lambda row: row[1])
def test_what_does_not_belong_to_a_study_is_refused_whatever_its_name(
    closed: Path, row: tuple[str, str, str, str]
) -> None:
    """SQLite itself makes nothing called sqlite_something, but runs what an edited schema says."""
    with edited(closed) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, 0, ?)", row)
    before = closed.read_bytes()
    assert "altered" in refusal(closed) or "damaged" in refusal(closed)
    with pytest.raises(StudyError):
        Study.open(closed, to_read=True)
    assert closed.read_bytes() == before


@pytest.mark.parametrize("seed", range(30))
def test_garbage_anywhere_is_a_sentence_and_no_crash(closed: Path, seed: int) -> None:
    """Whatever bytes are wrong, each method answers or says StudyError; a file refused stays as it is."""
    random = Random(seed)
    data = bytearray(closed.read_bytes())
    if seed % 2:
        page = random.randrange(len(data) // 4096)
        data[page * 4096 : (page + 1) * 4096] = random.randbytes(4096)
    else:
        for _ in range(20):
            data[random.randrange(100, len(data))] ^= 1 << random.randrange(8)
    closed.write_bytes(data)
    try:
        study = Study.open(closed)
    except StudyError:
        assert closed.read_bytes() == data
        assert [path.name for path in closed.parent.iterdir()] == [closed.name]
        return
    with study:
        for ask in (
            study.images, study.annotators, study.decisions, study.runs, lambda: study.clicks(1),
            lambda: study.clicks(2), lambda: study.truth(1), lambda: study.shown_result(1),
            study.shown_answers,
            lambda: study.record(Decision(verb="skip", item=1, subject=SpotSubject(x=0.0, y=0.0))),
        ):  # fmt: skip
            with contextlib.suppress(StudyError):
                ask()


def test_a_result_that_claims_other_clicks_is_damage(closed: Path) -> None:
    """A stranger's file may be sound as a database and absurd as a study."""
    with edited(closed) as connection:
        connection.execute("UPDATE results SET item = 2")
        connection.execute("UPDATE runs SET import = 0")
    with Study.open(closed) as study:
        with pytest.raises(StudyError, match="damaged: in run 1"):
            study.result(1, 2)
        with pytest.raises(StudyError, match="damaged"):
            study.shown_result(2)


@pytest.mark.parametrize(
    "changed",
    [
        {"ends": np.array([3, 4])},
        {"ends": np.array([9])},
        {"ends": np.array([5.0])},
        {"posterior": np.zeros((5, 1))},
        {"detected": np.zeros(5)},
        {"covariance": np.zeros((5, 2), dtype=np.float32)},
    ],
)
def test_an_outline_that_does_not_hold_together_is_damage(closed: Path, changed: dict) -> None:
    with Study.open(closed) as study:
        (run,) = study.runs()
        outline = replace(Outline.of({1: study.result(run.id, 1)}), **changed)
        with study.change() as connection:
            connection.execute("UPDATE outlines SET object = ?", (write_object(connection, outline),))
        with pytest.raises(StudyError, match="is damaged"):
            study.shown_answers()


def test_a_bomb_in_a_chunk_is_damage(closed: Path) -> None:
    with edited(closed) as connection:
        bomb = zlib.compress(bytes(50_000_000), 9)
        connection.execute("UPDATE chunks SET data = ? WHERE object = 1 AND part = 0", (bomb,))
    with Study.open(closed) as study, pytest.raises(StudyError, match="damaged"):
        study.clicks(1)


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


def denied(code: str, path: Path, own: Path) -> str:
    """Run code on a study in a process that is not root; `own` is a study for it to write to before."""
    result = subprocess.run([sys.executable, "-c", code, str(path), str(own)], capture_output=True, text=True)
    return result.stdout + result.stderr


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX permissions")
def test_what_may_not_be_written_is_refused(closed: Path) -> None:
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
def test_what_may_not_be_written_can_be_read(closed: Path, version: int) -> None:
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


def rewritten(path: Path, number: int, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what one stored record says of itself."""
    with edited(path) as connection:
        rows = connection.execute("SELECT data FROM chunks WHERE object = ? ORDER BY part", (number,))
        raw = b"".join(zlib.decompress(data) for (data,) in rows)
        end = 8 + int.from_bytes(raw[:8], "little")
        values = json.loads(raw[8:end])
        change(values)
        header = json.dumps(values).encode()
        new = len(header).to_bytes(8, "little") + header + raw[end:]
        connection.execute("DELETE FROM chunks WHERE object = ?", (number,))
        connection.execute("INSERT INTO chunks VALUES (?, 0, ?)", (number, zlib.compress(new)))
        connection.execute("UPDATE objects SET size = ? WHERE id = ?", (len(new), number))


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (5, "found a number"),
        ({}, "of an unknown form"),
        ({"a": 1, "b": 2}, "of an unknown form"),
        ("x", "found text"),
        (None, "found nothing"),
        ([1.5, 2.5], "found a list"),
        ({"array": ["|b1", [3], 0]}, "found an array of bool"),
    ],
    ids=str,
)
def test_what_stands_in_place_of_an_array_is_damage_and_the_rest_is_read(
    closed: Path, value: object, found: str
) -> None:
    rewritten(closed, 1, lambda values: values.update(x=value))
    with Study.open(closed) as study:
        with pytest.raises(StudyError) as caught:
            study.clicks(1)
        assert str(caught.value).startswith("smears.rscope: is damaged (objects, row 1: MarksRecord.x")
        assert found in str(caught.value)
        assert len(study.clicks(2)) == 3000
        assert len(study.decisions()) == 1


def test_an_array_without_an_axis_is_damage(closed: Path) -> None:
    def flatten(values: dict[str, Any]) -> None:
        values["clustering"]["record"]["mean"]["array"][1] = []

    rewritten(closed, 3, flatten)
    with Study.open(closed) as study, pytest.raises(StudyError, match="is damaged: in run 1"):
        study.result(1, 1)


def test_numbers_that_are_none_are_damage(closed: Path) -> None:
    with Study.open(closed) as study:
        fusion = study.result(1, 1)
        lost = replace(fusion.detection, posterior=np.full(5, np.nan))
        with pytest.raises(StudyError, match="a posterior is not between 0 and 1"):
            study.add_run(a_run(), {1: replace(fusion, detection=lost)})
        truth = MarksRecord(np.array([np.nan]), np.array([1.0]), np.zeros(1, int), np.zeros(0, int), None)
        with study.change() as connection:
            number = write_object(connection, truth)
            connection.execute("INSERT INTO imports VALUES (9, 'truth', 'f', '', '[]')")
            connection.execute("INSERT INTO marks VALUES (1, 9, 'truth', ?)", (number,))
        with pytest.raises(StudyError, match=r"damaged: marks on image 1: expected coordinates of at most"):
            study.truth(1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("name = ''", "annotators, row 3: expected a name, found an empty one"),
        ("id = 70", "expected number 2, found 3"),
    ],
)
def test_annotators_that_are_none_are_damage_in_a_sentence(closed: Path, change: str, words: str) -> None:
    with edited(closed) as connection:
        connection.execute(f"UPDATE annotators SET {change} WHERE id = 2")
    with Study.open(closed) as study:
        with pytest.raises(StudyError, match=words):
            study.annotators()
        assert len(study.decisions()) == 1
