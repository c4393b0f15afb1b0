"""Damage to a study's file is found and described, and changes nothing."""

import contextlib
import json
import shutil
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from raterscope.app.review import Decision, SpotSubject
from raterscope.app.study import Study, StudyError
from raterscope.app.study.arrays import write_object
from raterscope.app.study.records import MarksRecord
from raterscope.app.study.runs import Outline
from tests.app.study.files import edited, grid_in, refusal, with_a_case
from tests.app.study.made import a_fusion, a_run, a_table


def test_damage_to_a_table_is_found_in_a_large_file(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raterscope.app.study.opening._CHECKED_WHOLE", 0)
    Study.open(closed).close()
    with edited(closed) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'decisions'").fetchone()
    data = bytearray(closed.read_bytes())
    data[(page - 1) * 4096 : page * 4096] = Random(0).randbytes(4096)
    closed.write_bytes(data)
    assert "damaged" in refusal(closed)


def test_a_damaged_study_and_the_log_of_a_killed_program_are_not_changed(
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
        assert [decision.verb for decision in study.decisions()] == ["accept", "skip"]


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
def test_an_impossible_decision_is_damage(closed: Path, row: str) -> None:
    with edited(closed) as connection:
        connection.execute(f"INSERT INTO decisions SELECT {row} FROM decisions")
    with Study.open(closed) as study, pytest.raises(StudyError, match="decision 2 cannot be read"):
        study.decisions()


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
        study.runs.all()


def test_a_cluster_far_outside_every_image_does_not_fit(tmp_path: Path) -> None:
    """Squares of its distances would be infinite."""
    with Study.create(tmp_path / "far.rscope") as study:
        study.add_clicks(a_table(1, ("a.png",), clicks=300))
        fusion = a_fusion(study.clicks(1))
        fusion.clustering.mean[0, 0] = 1e200
        with pytest.raises(StudyError, match="far outside every image"):
            study.runs.add(a_run(), {1: fusion})


@pytest.mark.parametrize("weights", ['{"W1": 3}', '{"W1": "a half"}', "[0.5]"])
def test_a_run_with_impossible_weights_is_damage(closed: Path, weights: str) -> None:
    with edited(closed) as connection:
        connection.execute(f"UPDATE runs SET log = '{{\"weights\": {weights}}}'")
    with Study.open(closed) as study, pytest.raises(StudyError, match="run 1 cannot be read"):
        study.runs.all()


OFFSETS = (0.0, 2.5, 5.0, 12.5)


def test_positions_of_uneven_slices_are_kept(closed: Path) -> None:
    grid = with_a_case(closed, OFFSETS)
    assert grid_in(closed) == grid


@pytest.mark.parametrize(
    "stored", ["[0.0, 2.5]", "[0.0, 2.5, 2.5, 5.0]", "[0.0, 2.5, 5.0, 1e999]", '[0, "a", 2, 3]', "{}", "x"]
)
def test_impossible_slice_positions_are_damage(closed: Path, stored: str) -> None:
    with_a_case(closed, OFFSETS)
    with edited(closed) as connection:
        connection.execute("UPDATE grids SET slice_offsets = ?", (stored,))
    with pytest.raises(StudyError, match="the geometry of chest cannot be read"):
        grid_in(closed)


def test_a_truncated_study_is_refused(closed: Path) -> None:
    full = closed.read_bytes()
    for share in (0.02, 0.3, 0.6, 0.99):
        closed.write_bytes(full[: int(len(full) * share)])
        sentence = refusal(closed)
        assert "cut short" in sentence or "damaged" in sentence or "no study" in sentence


def test_a_name_that_is_not_utf_8_is_damage(closed: Path) -> None:
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
def test_foreign_schema_entries_are_refused_whatever_their_name(
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
def test_garbage_anywhere_gives_a_message_and_no_crash(closed: Path, seed: int) -> None:
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
            study.images, study.annotators, study.decisions, study.runs.all, lambda: study.clicks(1),
            lambda: study.clicks(2), lambda: study.truth(1), lambda: study.shown.result(1, "clicks"),
            study.shown.answers,
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
            study.runs.result(1, 2)
        with pytest.raises(StudyError, match="damaged"):
            study.shown.result(2, "clicks")


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
def test_an_inconsistent_outline_is_damage(closed: Path, changed: dict) -> None:
    with Study.open(closed) as study:
        (run,) = study.runs.all()
        outline = replace(Outline.of({1: study.runs.result(run.id, 1)}), **changed)
        with study.change() as connection:
            connection.execute("UPDATE outlines SET object = ?", (write_object(connection, outline),))
        with pytest.raises(StudyError, match="is damaged"):
            study.shown.answers()


def test_a_decompression_bomb_in_a_chunk_is_damage(closed: Path) -> None:
    with edited(closed) as connection:
        bomb = zlib.compress(bytes(50_000_000), 9)
        connection.execute("UPDATE chunks SET data = ? WHERE object = 1 AND part = 0", (bomb,))
    with Study.open(closed) as study, pytest.raises(StudyError, match="damaged"):
        study.clicks(1)


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
    ("value", "result"),
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
def test_a_value_in_place_of_an_array_is_damage_and_the_rest_can_be_read(
    closed: Path, value: object, result: str
) -> None:
    rewritten(closed, 1, lambda values: values.update(x=value))
    with Study.open(closed) as study:
        with pytest.raises(StudyError) as caught:
            study.clicks(1)
        assert str(caught.value).startswith("smears.rscope: is damaged (objects, row 1: MarksRecord.x")
        assert result in str(caught.value)
        assert len(study.clicks(2)) == 3000
        assert len(study.decisions()) == 1


def test_an_array_without_an_axis_is_damage(closed: Path) -> None:
    def flatten(values: dict[str, Any]) -> None:
        values["clustering"]["record"]["mean"]["array"][1] = []

    rewritten(closed, 3, flatten)
    with Study.open(closed) as study, pytest.raises(StudyError, match="is damaged: in run 1"):
        study.runs.result(1, 1)


def test_not_a_number_is_damage(closed: Path) -> None:
    with Study.open(closed) as study:
        fusion = study.runs.result(1, 1)
        lost = replace(fusion.detection, posterior=np.full(5, np.nan))
        with pytest.raises(StudyError, match="a posterior is not between 0 and 1"):
            study.runs.add(a_run(), {1: replace(fusion, detection=lost)})
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
def test_impossible_annotators_are_damage(closed: Path, change: str, words: str) -> None:
    with edited(closed) as connection:
        connection.execute(f"UPDATE annotators SET {change} WHERE id = 2")
    with Study.open(closed) as study:
        with pytest.raises(StudyError, match=words):
            study.annotators()
        assert len(study.decisions()) == 1
