"""Undo of the last import: the study is as it was before, or the undo is refused."""

import json
import sqlite3
from contextlib import closing

import pytest

from raterscope.app import importing
from raterscope.app.cli import main
from raterscope.app.errors import StudyError
from raterscope.app.kinds.masks.attribution import MaskOptions
from raterscope.app.review import Decision, SpotSubject, TaskSubject
from raterscope.app.study import Study
from raterscope.app.study.import_undo import undo_import
from tests.app.study.made import a_fusion, a_run

VOTES = "worker,item,answer\n" + "".join(f"w{n % 3},t{n // 3},{'ab'[n % 2]}\n" for n in range(12))
MORE = "worker,item,answer\n" + "".join(f"z{n % 3},t{n // 3},{'abc'[n % 3]}\n" for n in range(12))
CLICKS = "annotator,image,x,y\n" + "".join(f"w{n % 4},{n // 4}.png,{n},{n + 1}\n" for n in range(12))
PAIRS = "judge,left,right,choice\n" + "".join(f"w{n % 3},i{n % 2},i{2 + n % 2},left\n" for n in range(12))
FILES = {"votes": VOTES, "more": MORE, "clicks": CLICKS, "pairs": PAIRS, "truth": "image,x,y\n1.png,3,4\n"}


@pytest.fixture
def take_in(study, tmp_path):
    def take_in(*names, **options):
        paths = [tmp_path / f"{name}.csv" for name in names]
        for path in paths:
            if not path.exists():
                path.write_text(FILES[path.stem])
        readings = importing.read_files(paths, reading=MaskOptions("ann"))
        return importing.store(readings, study, extent=(100, 100), **options)

    return take_in


def contents(study):
    """Return all rows but those of imports and settings, and the number of objects."""
    with study.reading() as connection:
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        rows = {
            name: connection.execute(f"SELECT * FROM {name}").fetchall()
            for name in set(tables) - {"imports", "settings", "objects", "chunks"}
        }
        return rows, connection.execute("SELECT count(*) FROM objects").fetchone()


@pytest.mark.parametrize("before", [(), ("votes",), ("clicks", "votes", "pairs")])
@pytest.mark.parametrize(
    "files", [("more",), ("votes",), ("clicks", "more"), ("pairs",), ("clicks", "truth")]
)
def test_an_undone_import_leaves_the_study_as_it_was(study, take_in, before, files):
    if before:
        take_in(*before)
    was = contents(study)
    take_in(*files)
    assert contents(study) != was
    assert undo_import(study).startswith(f"The import of {files[0]}.csv")
    assert contents(study) == was
    with pytest.raises(StudyError, match="no import that can be undone"):
        undo_import(study)


def test_a_new_import_never_gets_the_number_of_an_undone_one(study, take_in):
    take_in("votes")
    number = study.last_import()
    undo_import(study)
    take_in("votes")
    assert study.last_import() > number


def test_masks_and_the_mark_of_a_program_are_removed(study, tmp_path, take_in):
    import nibabel
    import numpy as np

    values = np.zeros((8, 8, 4), dtype=np.uint8)
    values[2:5, 2:5, 1:3] = 1
    path = tmp_path / "case_unet.nii.gz"
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), path)
    take_in("votes")
    was, decided = contents(study), study.review_state().programs
    readings = importing.read_files([path], reading=MaskOptions("unet", None, "liver"))
    importing.store(importing.replace(readings, programs=frozenset({"unet"})), study)
    assert study.review_state().programs == {"unet"}
    undo_import(study)
    now = contents(study)
    assert study.review_state().programs == decided
    assert {name for name in was[0] if was[0][name] != now[0][name]} == {"decisions"}


def test_decisions_and_runs_after_it_refuse_the_undo(study, take_in):
    take_in("votes")
    take_in("clicks")
    decision = study.record(Decision(verb="accept", item=1, subject=SpotSubject(number=2, x=3.0, y=4.0)))
    with pytest.raises(
        StudyError, match=r"import of clicks.csv cannot be undone, because 1 decision followed"
    ):
        undo_import(study)
    study.record(Decision(verb="undo", undoes=decision.id))
    run = study.runs.add(a_run(), {1: a_fusion(study.clicks(1))})
    with pytest.raises(StudyError, match=r"because run 1 followed; delete it"):
        undo_import(study)
    study.runs.delete(run)
    undo_import(study)
    # The history still names the image of the undone decision.
    assert [image.name for image in study.images()] == ["0.png"]


def test_an_import_before_watched_clicks_is_not_undone(study, take_in, tmp_path):
    take_in("clicks")
    with study.change() as connection:
        connection.execute("INSERT INTO imports(kind, file, at, notices) VALUES ('clicks', 'w', '', '[]')")
    with pytest.raises(StudyError, match="only the last one can"):
        undo_import(study)


def test_a_table_that_is_imported_again_is_named(study, take_in):
    take_in("clicks", "votes")
    assert not any("counts again" in sentence for sentence in take_in("pairs", "truth"))
    assert any(sentence.startswith("clicks.csv counts again") for sentence in take_in("clicks"))
    undo_import(study)
    assert any("counts again" in sentence for sentence in take_in("clicks"))


def test_a_table_that_an_earlier_version_recorded_is_known_with_the_date_of_its_import(study, take_in):
    take_in("clicks")
    with study.change() as connection:
        connection.execute("UPDATE imports SET at = '2024-02-03T04:05:06+00:00'")
        ((value,),) = connection.execute("SELECT value FROM settings WHERE name = 'imported_files'")
        files = {
            identity: {**file, "name": "c.csv", "at": ""} for identity, file in json.loads(value).items()
        }
        connection.execute(
            "UPDATE settings SET value = ? WHERE name = 'imported_files'", (json.dumps(files),)
        )
    assert "clicks.csv counts again: it was imported on 2024-02-03." in take_in("clicks")


def test_a_second_reader_does_not_undo_the_import(study, take_in, tmp_path):
    from raterscope.app.study.new_study import copy_for_reader

    take_in("votes")
    study.record(Decision(verb="label", item=1, subject=TaskSubject(task="t1", label="a")))
    path = tmp_path / "copy.rscope"
    copy_for_reader(study, path, blind=True)
    with Study.open(path) as copy, pytest.raises(StudyError, match="no import that can be undone"):
        undo_import(copy)


def test_the_command_undoes_the_last_import(import_files, tmp_path, capsys):
    for name in ("votes", "more"):
        (tmp_path / f"{name}.csv").write_text(FILES[name])
        import_files(tmp_path / f"{name}.csv")
    assert import_files("--undo") == "The import of more.csv was undone.\n"
    with closing(sqlite3.connect(tmp_path / "s.rscope")) as connection:
        assert connection.execute("SELECT count(*) FROM votes").fetchone() == (1,)
    assert "only the last one can" in import_files("--undo")
    assert "give it without files" in import_files("--undo", tmp_path / "votes.csv")
    assert main(["import", str(tmp_path / "none.rscope"), "--undo"]) == 1
