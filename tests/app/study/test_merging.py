"""Merging of what several experts decided on copies of one study."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raterscope.algorithms.masks.data import OPEN, Settled
from raterscope.algorithms.masks.grid import Grid
from raterscope.app.review import (
    Decision,
    ReviewState,
    ShapeSubject,
    SpotOf,
    SpotsSubject,
    TaskSubject,
    View,
    WeightSubject,
    fold,
    known_voxels,
    read_measures,
    undo,
)
from raterscope.app.study import Study, StudyError
from raterscope.app.study.expert_agreement import Overlap, agreement_on_voxels
from raterscope.app.study.masks import add_case, settled_of
from raterscope.app.study.merging import MergedStudy, add_decisions, merge_studies
from tests.app.commands import run
from tests.app.review.decisions import a_region, on
from tests.app.study.made import a_table

PLACES = [(10.0 * n, 20.0) for n in range(1, 7)]


@pytest.fixture
def copies(tmp_path: Path) -> list[Path]:
    """Two copies of a study with one decision."""
    first = tmp_path / "anna.rscope"
    with Study.create(first) as study:
        study.add_clicks(a_table(1, ("a.png", "b.png"), clicks=300))
        add_case(study, "chest", Grid.plain((3, 4, 4), calibrated=True))
        study.record(on("accept", 500.0, who="both"))
    return [first, Path(shutil.copy(first, tmp_path / "ben.rscope"))]


def decide(path: Path, *decisions: Decision) -> None:
    with Study.open(path) as study:
        for decision in decisions:
            study.record(replace(decision, who=decision.who or path.stem))


def merged(copies: list[Path], name: str = "all.rscope") -> tuple[ReviewState, MergedStudy]:
    target = copies[0].with_name(name)
    (outcome,) = merge_studies(copies, target)
    with Study.open(target) as study:
        return fold(study.decisions()), outcome


def verdicts(state: ReviewState, image: int = 1) -> dict[tuple[float, float], str]:
    return {(spot.x, spot.y): spot.verdict for spot in state.spots(image) if spot.verdict != "skipped"}


def test_decisions_of_both_hold_and_differing_ones_are_open_again(copies):
    decide(copies[0], on("accept", 10), on("reject", 20), on("move", 33, from_x=30.0, from_y=0.0))
    decide(copies[1], on("accept", 10), on("accept", 20), on("reject", 40))
    state, outcome = merged(copies)
    assert verdicts(state) == {
        (500, 0): "accepted",
        (10, 0): "accepted",
        (33, 0): "accepted",
        (40, 0): "rejected",
    }
    (conflict,) = outcome.conflicts
    assert (conflict.item, conflict.x, conflict.reason) == ("a.png", 20.0, "anna: reject; ben: accept")
    assert outcome.both["clicks"] == [("accept", "accept"), ("reject", "accept")]


def test_of_spots_decided_at_once_only_the_differing_one_is_open(copies):
    spots = tuple(SpotOf(image=1, x=x, y=y) for x, y in PLACES)
    decide(copies[0], Decision(verb="reject", item=1, subject=SpotsSubject(spots=spots)))
    decide(copies[1], on("accept", *PLACES[2]), on("reject", *PLACES[3]))
    state, _ = merged(copies)
    left = {place: "rejected" for place in PLACES if place != PLACES[2]}
    assert verdicts(state) == {(500, 0): "accepted", **left}


def test_a_spot_that_both_added_counts_once(copies):
    decide(copies[0], on("add", 100, 50))
    decide(copies[1], on("add", 103, 50), on("add", 150, 50))
    state, _ = merged(copies)
    assert set(verdicts(state)) == {(500, 0), (100, 50), (150, 50)}


def test_what_one_took_back_is_taken_back(copies):
    decide(copies[0], on("reject", 20))
    decide(copies[1], Decision(verb="undo", undoes=1), on("reject", 60), Decision(verb="undo", undoes=3))
    assert verdicts(merged(copies)[0]) == {(20, 0): "rejected"}


def test_both_took_back_the_same(copies):
    for path in copies:
        decide(path, Decision(verb="undo", undoes=1))
    assert verdicts(merged(copies)[0]) == {}


def test_annotators(copies):
    decide(copies[0], Decision(verb="exclude", annotators=("w1", "w2"), reason="robot"))
    decide(
        copies[1],
        Decision(verb="weigh", annotators=("w2",), subject=WeightSubject(weight=0.5)),
        Decision(verb="exclude", annotators=("w3",), reason="robot"),
    )
    state, outcome = merged(copies)
    assert state.excluded == {"w1": "robot", "w3": "robot"}
    assert not state.weighed
    assert [conflict.subject for conflict in outcome.conflicts] == ["annotator w2"]


def test_tasks(copies):
    def label(task: str, name: str) -> Decision:
        return Decision(verb="label", item=1, subject=TaskSubject(task=task, label=name))

    decide(copies[0], label("t1", "cat"), label("t2", "dog"), label("t3", "cat"))
    decide(copies[1], label("t2", "dog"), label("t3", "cat"), label("t3", "dog"))
    state, outcome = merged(copies)
    assert {task: decided.label for task, decided in state.tasks(1).items()} == {"t1": "cat", "t2": "dog"}
    assert outcome.both["labels"] == [("dog", "dog"), ("cat", "dog")]


def test_voxels_on_which_both_agree_stay_settled(copies):
    rng = np.random.default_rng(3)
    drawn = [rng.choice(np.array([OPEN, 0, 1], dtype=np.int8), (3, 4, 4)) for _ in copies]
    for path, value in zip(copies, drawn, strict=True):
        decide(path, Decision(verb="paint", item=3, subject=a_region(), settled=Settled((0, 0, 0), value)))
    state, outcome = merged(copies)
    with Study.open(copies[0].with_name("all.rscope")) as study:
        regions = state.regions(3)
        known = known_voxels(regions, settled_of(study, regions), "nodule", (0, 0, 0), (3, 4, 4))
    first, second = drawn
    expected = np.where(
        first == second, first, np.where(first == OPEN, second, np.where(second == OPEN, first, OPEN))
    )
    np.testing.assert_array_equal(known, expected)
    differing = int(((first != OPEN) & (second != OPEN) & (first != second)).sum())
    assert outcome.conflicts[0].subject == f"nodule, {differing} voxels"


def test_measured_shapes_get_numbers_of_their_own(copies):
    def line(end: float) -> Decision:
        subject = ShapeSubject(shape="length", points=((0.0, 0.0), (end, 0.0)), number=1)
        return Decision(verb="measure", item=1, subject=subject)

    decide(copies[0], line(5))
    moved = replace(line(8), verb="reshape")
    decide(copies[1], line(7), moved)
    state, _ = merged(copies)
    with Study.open(copies[0].with_name("all.rscope")) as study:
        shapes = read_measures(study.decisions(), state).shapes[1]
    assert [(shape.subject.number, shape.length) for shape in shapes] == [(1, 5.0), (2, 8.0)]


def test_views_and_times_are_kept(copies):
    time = datetime(2026, 3, 1, 12, tzinfo=UTC)
    decide(copies[1], on("accept", 70, at=time))
    with Study.open(copies[1]) as study:
        study.views.record([View(image=1, x=5.0, y=6.0, seconds=2.0, at=time, who="ben")])
    merged(copies)
    with Study.open(copies[0].with_name("all.rscope")) as study:
        assert study.decisions()[-1].at == time
        ((view,),) = study.views.by_image().values()
        assert (view.at, view.who) == (time, "ben")


def test_merging_again_adds_nothing(copies):
    decide(copies[0], on("reject", 20), on("add", 100, 50))
    decide(copies[1], on("accept", 20), on("add", 101, 50), Decision(verb="undo", undoes=1))
    first, _ = merged(copies)
    again, outcome = merged([copies[0].with_name("all.rscope"), copies[1]], "again.rscope")
    assert (outcome.added, outcome.conflicts) == (0, ())
    assert verdicts(again) == verdicts(first)


VERBS = st.sampled_from(["accept", "reject", "skip", "undo"])
MADE = st.lists(st.tuples(VERBS, st.integers(0, len(PLACES) - 1)), max_size=8)


@given(MADE, MADE)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_order_of_the_studies_does_not_matter(tmp_path_factory, first, second):
    folder = tmp_path_factory.mktemp("copies")
    states = []
    paths = [folder / "anna.rscope", folder / "ben.rscope"]
    with Study.create(paths[0]) as study:
        study.add_clicks(a_table(1, ("a.png",), clicks=50))
        study.record(on("accept", *PLACES[0], who="both"))
    shutil.copy(paths[0], paths[1])
    for number, (path, choices) in enumerate(zip(paths, (first, second), strict=True)):
        with Study.open(path) as study:
            for at, (verb, place) in enumerate(choices):
                decision = on(verb, *PLACES[place]) if verb != "undo" else undo(fold(study.decisions()))
                if decision is not None:
                    time = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=10 * at + number)
                    study.record(replace(decision, at=time, who=path.stem))
            states.append(verdicts(fold(study.decisions())))
    results = []
    for name, order in (("ab", paths), ("ba", paths[::-1])):
        merge_studies(order, folder / f"{name}.rscope")
        with Study.open(folder / f"{name}.rscope") as study:
            results.append(verdicts(fold(study.decisions())))
    assert results[0] == results[1]
    for place in states[0].keys() & states[1].keys():
        if states[0][place] == states[1][place]:
            assert results[0][place] == states[0][place]


def test_another_study_is_refused(copies, tmp_path):
    with Study.create(tmp_path / "other.rscope") as study:
        study.add_clicks(a_table(1, ("c.png",), clicks=50))
    with pytest.raises(StudyError, match=r"is not a copy of anna\.rscope, which lacks its image c\.png"):
        merge_studies([copies[0], tmp_path / "other.rscope"], tmp_path / "all.rscope")
    assert not (tmp_path / "all.rscope").exists()


def test_a_failure_leaves_no_merged_study(copies, tmp_path, monkeypatch):
    decide(copies[1], on("accept", 10))
    monkeypatch.setattr(Study, "record", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(StudyError, match="disk full"):
        merge_studies(copies, tmp_path / "all.rscope")
    assert not (tmp_path / "all.rscope").exists()


def test_the_command(copies, capsys):
    decide(copies[0], on("accept", 10, who="lee"), on("reject", 20, who="lee"))
    decide(copies[1], on("accept", 10, who="lee"), on("accept", 20, who="lee"))
    folder = copies[0].parent
    assert run("merge", *copies, "-o", folder / "c.rscope", "--conflicts", folder / "c.csv") == 0
    output = capsys.readouterr().out
    assert "ben.rscope: 2 decisions added, 1 conflict" in output
    assert "2 decided by both, 50 % alike" in output
    assert "lee (anna.rscope): reject; lee (ben.rscope): accept" in output
    assert (folder / "c.csv").read_text().count("\n") == 2
    assert run("merge", copies[0], "-o", folder / "d.rscope") == 1


def test_decisions_go_into_an_open_study(copies):
    decide(copies[1], on("accept", 10))
    with Study.open(copies[0]) as study, Study.open(copies[1], to_read=True) as other:
        assert add_decisions(study, other).added == 1
        assert len(study.decisions()) == 2


@pytest.mark.parametrize("cases", [3, 10, 40])
def test_the_interval_of_dice_holds_the_true_value_as_often_as_it_claims(cases):
    rng = np.random.default_rng(cases)

    def overlaps(number):
        size = np.exp(rng.normal(7, 1.0, number))
        first, second = (size * np.exp(rng.normal(0, 0.1, number)) for _ in range(2))
        dice = rng.beta(17, 3, number)
        both = np.minimum(dice * (first + second) / 2, np.minimum(first, second))
        return np.stack([3 * size, both, first + second, 2.5 * size], axis=1)

    everything = overlaps(200_000)
    true = 2 * everything[:, 1].sum() / everything[:, 2].sum()
    intervals = [agreement_on_voxels([Overlap(*row) for row in overlaps(cases)]).dice for _ in range(600)]
    held = np.mean([interval.low <= true <= interval.high for interval in intervals])
    assert 0.92 <= held <= 0.985


def test_one_structure_and_perfect_agreement_give_dice_without_interval():
    one = agreement_on_voxels([Overlap(100, 40, 100, 80)]).dice
    assert (one.value, np.isnan(one.low)) == (0.8, True)
    perfect = agreement_on_voxels([Overlap(100, 50, 100, 100), Overlap(10, 5, 10, 10)]).dice
    assert (perfect.value, np.isnan(perfect.low)) == (1.0, True)
    assert np.isnan(agreement_on_voxels([Overlap(100, 0, 0, 100)]).dice.value)
