"""Spots that were viewed and left without a decision: kept as the journal is, and handed to a fusion."""

import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.clicks import FusionPlan
from raterscope.app.kinds.clicks.annotators import gather_run
from raterscope.app.kinds.clicks.runs import fuse_inputs, gather, keep
from raterscope.app.review import Decision, SpotSubject, View
from raterscope.app.study import Study, StudyError, digest_of
from tests.app.study.made import a_table, reopened

PLAN = FusionPlan.make("kmeans", {"detector": "majority"})


def view(x: float, y: float, seconds: float = 2.0, image: int = 1, **fields: object) -> View:
    return View(image=image, x=x, y=y, seconds=seconds, **fields)  # type: ignore[arg-type]


def viewed(study: Study, image: int = 1) -> list[tuple[float, float]]:
    """Return the viewed positions that the fusion of an image uses."""
    name = study.image(image).name
    positions = gather([image], study).given[name].viewed
    return [] if positions is None else [(float(x), float(y)) for x, y in positions]


def test_views_come_back_with_number_time_and_name(study: Study) -> None:
    study.add_clicks(a_table(1, ("a", "b")))
    expected = [
        view(1.5, 2.5, 0.75, number=4, run=1, how="selected", who="dr <b>x</b>"),
        view(9.0, 2.5, 3.0, number=5, how="listed"),
    ]
    done = study.views.record(expected[:1]) + study.views.record(expected[1:])
    with reopened(study) as second:
        stored = second.views.by_image()[1]
        assert second.views.last() == 2
        assert second.views.by_image(last=1) == {1: stored[:1]}
    assert [item.id for item in stored] == [1, 2]
    assert [replace(item, at=None) for item in stored] == [replace(item, at=None) for item in done]
    for item, wanted in zip(stored, expected, strict=True):
        assert item.at is not None
        assert item.who == (wanted.who or done[1].who)
        assert replace(item, id=0, at=None, who=wanted.who) == wanted


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE viewed SET x = 3",
        "DELETE FROM viewed",
        "INSERT OR REPLACE INTO viewed SELECT * FROM viewed",
        "INSERT INTO viewed(id, at, who, image, x, y, how, seconds) VALUES (9, '', '', 1, 0, 0, '', 0)",
    ],
)
def test_the_record_of_views_only_grows_with_any_writer(study: Study, statement: str) -> None:
    study.add_clicks(a_table(1, ("a", "b")))
    study.views.record([view(1.0, 1.0)])
    study.close()
    connection = sqlite3.connect(study.path)
    with pytest.raises(sqlite3.IntegrityError, match="views are"):
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    ("column", "value"), [("at", "soon"), ("how", "smelt"), ("seconds", -1), ("x", 9e999)]
)
def test_a_view_that_cannot_be_is_damage(study: Study, column: str, value: object) -> None:
    study.add_clicks(a_table(1, ("a", "b")))
    study.views.record([view(1.0, 1.0)])
    study.close()
    connection = sqlite3.connect(study.path)
    connection.execute("DROP TRIGGER viewed_stay")
    connection.execute(f"UPDATE viewed SET {column} = ?", (value,))
    connection.commit()
    connection.execute(
        "CREATE TRIGGER viewed_stay BEFORE UPDATE ON viewed\n"
        "        BEGIN SELECT RAISE(ABORT, 'views are never changed'); END"
    )
    connection.close()
    with Study.open(study.path) as second, pytest.raises(StudyError, match="viewed, row 1"):
        second.views.by_image()


def test_a_fusion_gets_spots_viewed_long_enough_and_undecided(study: Study) -> None:
    study.add_clicks(a_table(1, ("a", "b")))
    assert viewed(study) == []
    study.views.record([view(10, 10), view(30, 30), view(50, 50, seconds=0.1), view(70, 70, image=2)])
    assert viewed(study) == [(10, 10), (30, 30)]
    assert viewed(study, 2) == [(70, 70)]
    study.views.record([view(11, 10.5)])  # the same spot, in another run
    assert viewed(study) == [(30, 30), (11, 10.5)]
    study.record(Decision(verb="skip", item=1, subject=SpotSubject(x=30.5, y=30)))
    done = study.record(Decision(verb="reject", item=1, subject=SpotSubject(x=11, y=10.5)))
    assert viewed(study) == []
    study.record(Decision(verb="undo", undoes=done.id))
    assert viewed(study) == [(11, 10.5)]


def test_a_run_records_its_settings_and_can_be_repeated(study: Study) -> None:
    study.add_clicks(a_table(1, ("a", "b")))
    without = gather([1], study)
    assert keep(fuse_inputs(without, PLAN, jobs=1), study) == 1
    study.views.record([view(10, 10)])
    inputs = gather([1], study)
    assert digest_of(inputs.given) != digest_of(without.given)
    run = keep(fuse_inputs(inputs, PLAN, jobs=1), study)
    study.views.record([view(30, 30)])
    log = study.runs.get(run).log
    assert (log["viewed"], log["last_view"]) == (1, 1)
    second, first = gather_run(run, study), gather_run(1, study)
    (clicks,) = second.clicks.values()
    assert np.array_equal(clicks.viewed, [(10, 10)])
    assert digest_of(second.clicks) == study.runs.get(run).digest
    assert digest_of(first.clicks) == study.runs.get(1).digest
