"""What is said of comparable crowds where nothing is known of the user's own."""

import pytest

from raterscope.app.assessment import (
    NUMBERS,
    ComparableCrowd,
    comparable_crowds,
    comparable_in_words,
    nearest,
)


def made(per_item, classes=0, kind="labels"):
    return ComparableCrowd(
        kind, f"{per_item}/{classes}", per_item, classes, False, (("probability", 0.9, 0.8),)
    )


def test_every_kind_has_crowds_and_numbers_that_can_be_said():
    crowds = comparable_crowds()
    assert {one.kind for one in crowds} == {"clicks", "masks", "labels", "labels, ibcc", "pairs"}
    for one in crowds:
        assert one.per_item > 0
        assert {number for number, _, _ in one.figures} <= set(NUMBERS)
        assert all(0 <= value <= 1 for _, *values in one.figures for value in values)


def test_the_nearest_crowd_is_that_of_the_same_size_and_number_of_classes():
    crowds = [made(5, 2), made(5, 10), made(30, 2), made(5, kind="clicks")]
    assert nearest(crowds, "labels", 6, 8) is crowds[1]
    assert nearest(crowds, "labels", 20, 2) is crowds[2]
    assert nearest(crowds, "clicks", 5) is crowds[3]
    assert nearest(crowds, "labels", 5, 300) is None
    assert nearest(crowds, "masks", 5) is None


@pytest.mark.parametrize(
    ("kind", "per_item", "classes"),
    [("clicks", 25, 0), ("masks", 4, 0), ("labels", 5, 5), ("labels, ibcc", 5, 5), ("pairs", 60, 0)],
)
def test_a_crowd_of_a_usual_size_is_named_with_its_figures(kind, per_item, classes):
    words = comparable_in_words(kind, per_item, ("vote", "task"), classes)
    assert words.startswith("On the nearest crowd measured (")
    assert "%" in words
    assert "{" not in words


def test_nothing_is_said_of_crowds_that_are_far():
    assert (
        comparable_in_words("pairs", 1e9, ("comparison", "annotator"))
        == "No crowd of this size was measured."
    )
