"""Descriptions of decisions, and refused ones."""

import pytest

from raterscope.app.review import (
    Decision,
    RegionSubject,
    SpotOf,
    SpotsSubject,
    SpotSubject,
    TaskSubject,
    WeightSubject,
    fold,
    in_words,
)
from tests.app.review.decisions import a_region, journal, on, settle, weigh


def test_words_for_the_history() -> None:
    decisions = journal(
        on("reject", 20, number=12),
        Decision(verb="undo", undoes=1),
        Decision(verb="undo", undoes=2),
        Decision(verb="undo", undoes=3),
        on("add", 20.4, 7.6),
        Decision(verb="exclude", annotators=("W1",), reason="bored"),
        Decision(verb="include", annotators=("W1",)),
        on("move", 3, number=4, from_x=1, from_y=2),
        weigh("kim", 0.5, "hasty"),
        Decision(verb="undo", undoes=9),
        weigh("kim", 0.1, ""),
    )
    state = fold(decisions)
    assert [state.in_words(decision) for decision in decisions] == [
        "reject spot 12",
        "undo reject spot 12",
        "redo reject spot 12",
        "undo reject spot 12",
        "add a spot at 20, 8",
        "exclude annotator W1 (bored)",
        "restore annotator W1",
        "move spot 4",
        "weigh annotator kim at ½ (hasty)",
        "undo weigh annotator kim at ½ (hasty)",
        "weigh annotator kim at 0.1",
    ]
    assert state.in_words(decisions[9], hidden=True) == "undo weigh an annotator at ½ (hasty)"
    assert in_words(decisions[1]) == "undo decision 1"


def test_a_blind_decision_is_marked_as_blind() -> None:
    blind = Decision(verb="reject", item=1, subject=SpotSubject(x=1, y=2, number=12, blind=True))
    assert in_words(blind) == "reject spot 12, blind"


def test_regions_are_described() -> None:
    texts = [
        in_words(item)
        for item in (settle("accept", 1, number=2), settle("paint", 2), settle("take", 3, number=1))
    ]
    assert texts == ["accept region 2", "paint slices 1-3", "take reader 2 in region 1"]


# What is no decision


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"verb": "dance"}, "not a verb"),
        ({"verb": "accept", "item": 1}, "needs a subject"),
        ({"verb": "accept", "subject": SpotSubject(x=1.0, y=1.0)}, "needs item"),
        ({"verb": "take", "item": 1, "subject": SpotSubject(x=1.0, y=1.0)}, "not a verb for clicks"),
        ({"verb": "move", "item": 1, "subject": SpotSubject(x=1.0, y=1.0)}, "needs from_x"),
        ({"verb": "exclude"}, "needs annotators"),
        ({"verb": "undo"}, "needs undoes"),
        ({"verb": "weigh", "annotators": ("W1",)}, "needs a subject"),
        ({"verb": "weigh", "subject": WeightSubject(weight=0.5)}, "needs annotators"),
        ({"verb": "take", "item": 1, "subject": a_region()}, "needs rater"),
        ({"verb": "label", "item": 1, "subject": TaskSubject(task="0417")}, "needs label"),
    ],
)
def test_a_decision_without_what_it_needs_is_refused(values: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Decision(**values)  # type: ignore[arg-type]


def test_a_class_that_is_named_is_a_decision_and_so_is_to_pass_over() -> None:
    named, passed = TaskSubject(task="0417", label="supernova"), TaskSubject(task="0417")
    assert Decision(verb="label", item=1, subject=named).subject == named
    assert Decision(verb="skip", item=1, subject=passed).subject == passed


@pytest.mark.parametrize(
    ("origin", "shape"),
    [((0, 0), (1, 1)), ((0, 0, 0), (1, 1)), ((0, -1, 0), (1, 1, 1)), ((0, 0, 0), (1, 0, 1))],
)
def test_a_region_is_a_box_of_voxels(origin: tuple[int, ...], shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected a box of voxels"):
        RegionSubject(structure="lesion", origin=origin, shape=shape)  # type: ignore[arg-type]


@pytest.mark.parametrize("position", [{"x": float("nan"), "y": 1.0}, {"x": 1.0, "y": float("inf")}])
def test_a_position_is_made_of_finite_numbers(position: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected a finite number"):
        SpotSubject(**position)


@pytest.mark.parametrize("weight", [0.0, 1.0, -0.5, float("nan"), float("inf")])
def test_a_weight_is_a_part_of_one(weight: float) -> None:
    with pytest.raises(ValueError, match="expected a number above 0 and below 1"):
        WeightSubject(weight=weight)


def test_several_spots_need_some_and_finite_places() -> None:
    with pytest.raises(ValueError, match="needs spots"):
        Decision(verb="reject", item=1, subject=SpotsSubject(spots=()))
    with pytest.raises(ValueError, match="finite"):
        SpotOf(image=1, x=float("nan"), y=0)
