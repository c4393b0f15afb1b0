"""Runs and decisions, as a study keeps them and gives them back."""

import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.progress import Cancelled
from raterscope.app.review import Decision, ImageSubject, SpotOf, SpotsSubject, SpotSubject, WeightSubject
from raterscope.app.study import Study, StudyError, digest_of
from tests.app.study.made import a_fusion, a_run, a_table, reopened
from tests.app.study.test_arrays import same

# Runs


def test_a_run_comes_back_bit_by_bit(study: Study) -> None:
    study.add_clicks(a_table(1, ("a", "b")))
    record = a_run(known=0, excluded=("annotator 3",), weights={"annotator 5": 0.25})
    clicks = {
        image: study.clicks(image).without({"annotator 3"}).with_weights(record.weights) for image in (1, 2)
    }
    results = {image: a_fusion(clicks[image], seed=image) for image in (1, 2)}
    number = study.runs.add(record, results)
    with reopened(study) as second:
        (entry,) = second.runs.all()
        assert (entry.id, entry.items, entry.imported) == (number, (1, 2), 1)
        text = ("kind", "algorithm", "settings", "seed", "versions", "digest", "started", "log", "excluded")
        for name in (*text, "weights"):
            assert getattr(entry, name) == getattr(record, name)
        for image in (1, 2):
            assert same(second.runs.result(number, image), results[image])
            assert same(second.clicks(image, entry), clicks[image])


def test_the_latest_result_of_each_image(study: Study) -> None:
    study.add_clicks(a_table(1, ("a", "b")))
    assert study.shown.result(1, "clicks") is None
    first = study.runs.add(a_run(), {1: a_fusion(study.clicks(1)), 2: a_fusion(study.clicks(2))})
    second = study.runs.add(a_run(), {2: a_fusion(study.clicks(2), seed=8)})
    assert [study.shown.result(image, "clicks")[0].id for image in (1, 2)] == [first, second]
    study.runs.delete(second)
    assert [study.shown.result(image, "clicks")[0].id for image in (1, 2)] == [first, first]
    assert study.runs.result(second, 2) is None
    with pytest.raises(StudyError, match="no run number 2"):
        study.runs.get(second)


def test_the_answers_of_the_latest_runs_are_had_without_their_results(study: Study) -> None:
    study.add_clicks(a_table(1, ("a", "b", "c")))
    clicks = {image: study.clicks(image) for image in (1, 2, 3)}
    study.runs.add(a_run(), {image: a_fusion(clicks[image], image) for image in (1, 2)})
    study.runs.add(a_run(), {2: a_fusion(clicks[2], 9, clusters=0)})
    with reopened(study) as second:
        result = second.shown.answers()
        assert result.keys() == {1, 2}
        assert len(result[2].posterior) == 0
        fusion, answers = second.shown.result(1, "clicks")[1], result[1]
        assert answers.looked == len(clicks[1].annotators)
        assert np.array_equal(answers.posterior, fusion.detection.posterior)
        assert np.array_equal(answers.detected, fusion.detection.detected)
        assert np.allclose(answers.mean, fusion.clustering.mean)
        assert np.allclose(answers.covariance, fusion.clustering.covariance)


def test_a_deleted_run_gives_back_its_room(study: Study) -> None:
    study.add_clicks(a_table(1, ("a",)))
    clicks = study.clicks(1)
    for _ in range(3):
        study.runs.delete(study.runs.add(a_run(), {1: a_fusion(clicks, clusters=2000)}))
    size = study.path.stat().st_size
    study.close()
    with sqlite3.connect(study.path) as connection:
        left = connection.execute("SELECT count(*) FROM objects").fetchone()[0]
    connection.close()
    assert left == 1
    assert size < 5_000_000


def test_clicks_that_came_after_a_run_are_none_of_its(study: Study) -> None:
    study.add_clicks(a_table(1, ("a",)))
    clicks = study.clicks(1)
    number = study.runs.add(a_run(), {1: a_fusion(clicks)})
    study.add_clicks(a_table(2, ("a",), annotators=12))
    assert len(study.clicks(1)) == 120
    assert same(study.clicks(1, study.runs.get(number)), clicks)
    assert study.runs.result(number, 1) is not None


def test_a_run_on_clicks_that_have_changed_is_refused_unless_it_names_its_import(study: Study) -> None:
    study.add_clicks(a_table(1, ("a",)))
    before, result = study.last_import(), a_fusion(study.clicks(1))
    study.add_clicks(a_table(2, ("a",)))
    with pytest.raises(StudyError, match="does not fit its clicks"):
        study.runs.add(a_run(), {1: result})
    assert study.runs.all() == []
    study.runs.add(a_run(imported=before), {1: result})


def test_a_run_that_is_cancelled_leaves_nothing(study: Study) -> None:
    def stop(fraction: float, _words: str, **_: object) -> None:
        if fraction > 0.7:
            raise Cancelled

    study.add_clicks(a_table(1, ("a", "b", "c", "d")))
    with pytest.raises(Cancelled):
        study.runs.add(a_run(), {image: a_fusion(study.clicks(image)) for image in (1, 2, 3, 4)}, stop)
    assert study.runs.all() == []
    assert study.shown.result(1, "clicks") is None


def test_a_full_disk_is_a_sentence_and_leaves_nothing_by_halves(study: Study) -> None:
    study.add_clicks(a_table(1, ("a",)))
    clicks = study.clicks(1)
    (pages,) = study._connection.execute("PRAGMA page_count").fetchone()
    study._connection.execute(f"PRAGMA max_page_count = {pages + 3}")
    with pytest.raises(StudyError, match="cannot be written: the disk is full; nothing was changed"):
        study.runs.add(a_run(), {1: a_fusion(clicks, clusters=2000)})
    with pytest.raises(StudyError, match="the disk is full"):
        study.add_clicks(a_table(2, ("a", "b"), clicks=5000))
    assert study.runs.all() == []
    assert [entry.name for entry in study.images()] == ["a"]
    study.record(Decision(verb="accept", item=1, subject=SpotSubject(x=1.0, y=1.0)))
    with reopened(study) as second:
        assert same(second.clicks(1), clicks)


# Decisions


def test_decisions_come_back_with_number_time_and_name(study: Study) -> None:
    expected = [
        Decision(
            verb="accept", item=1, subject=SpotSubject(number=4, x=1.5, y=2.5), run=1, who="dr <b>x</b>"
        ),
        Decision(
            verb="move", item=1, subject=SpotSubject(number=4, x=2.0, y=2.5, from_x=1.5, from_y=2.5), about=1
        ),
        Decision(verb="exclude", annotators=("=bob",), reason="clicks anywhere"),
        Decision(verb="undo", undoes=2),
        Decision(
            verb="reject",
            item=1,
            subject=SpotsSubject(
                spots=(SpotOf(image=1, x=1.5, y=2.5, number=4, run=1, about=1), SpotOf(image=2, x=0, y=9)),
                blind=True,
            ),
        ),
        Decision(verb="flag", item=1, subject=ImageSubject(name="a.png"), reason="blurred"),
        Decision(verb="weigh", annotators=("=bob", "kim"), subject=WeightSubject(weight=0.5), reason="hasty"),
    ]
    done = [study.record(item) for item in expected]
    with reopened(study) as second:
        stored = second.decisions()
    assert [item.id for item in stored] == [1, 2, 3, 4, 5, 6, 7]
    assert [replace(item, at=None) for item in stored] == [replace(item, at=None) for item in done]
    for item, wanted in zip(stored, expected, strict=True):
        assert item.at is not None
        assert item.who == (wanted.who or done[1].who)
        assert replace(item, id=0, at=None, who=wanted.who) == wanted


def test_an_undo_of_nothing_is_refused(study: Study) -> None:
    with pytest.raises(StudyError, match="no decision number 1"):
        study.record(Decision(verb="undo", undoes=1))


def test_what_is_undone_is_not_undone_twice(study: Study) -> None:
    """Two quick presses of Undo, before the first is on disk, ask for the same."""
    study.record(Decision(verb="accept", item=1, subject=SpotSubject(x=1.0, y=1.0)))
    study.record(Decision(verb="undo", undoes=1))
    with pytest.raises(StudyError, match="decision number 1 undone already"):
        study.record(Decision(verb="undo", undoes=1))
    study.record(Decision(verb="undo", undoes=2))
    study.record(Decision(verb="undo", undoes=1))
    assert len(study.decisions()) == 4


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE decisions SET verb = 'reject'",
        "DELETE FROM decisions",
        "INSERT OR REPLACE INTO decisions SELECT * FROM decisions",
        "REPLACE INTO decisions(id, at, who, verb, reason) VALUES (1, '', '', 'skip', '')",
        "INSERT INTO decisions(id, at, who, verb, reason) VALUES (9, '', '', 'skip', '')",
    ],
)
def test_the_journal_only_grows_with_any_writer(study: Study, statement: str) -> None:
    study.record(Decision(verb="accept", item=1, subject=SpotSubject(x=1.0, y=1.0)))
    study.close()
    connection = sqlite3.connect(study.path)
    with pytest.raises(sqlite3.IntegrityError, match="decisions are"):
        connection.execute(statement)
    connection.close()


def test_the_digest_names_the_input(study: Study) -> None:
    study.add_clicks(a_table(1, ("a", "b")))
    first, second = study.clicks(1), study.clicks(2)
    assert digest_of({"a": first, "b": second}) == digest_of({"b": second, "a": first})
    assert digest_of({"a": first}) != digest_of({"a": second})
    assert digest_of({"a": first}) != digest_of({"a": first.without({"annotator 1"})})
    assert digest_of({"a": first}) != digest_of({"a": first.with_weights({"annotator 1": 0.5})})
    assert digest_of({"a": first}) == digest_of({"a": first.with_weights({"nobody": 0.5})})
