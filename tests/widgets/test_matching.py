"""What a few letters find."""

import pytest

from raterscope.widgets.names import Typed

TEXTS = ["next disputed spot", "accept", "copy as image", "image one.png", "an excess", "compare runs"]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("acc", ["accept"]),
        ("IMAGE", ["image one.png", "copy as image"]),
        ("spot next", ["next disputed spot"]),
        ("nds", ["next disputed spot"]),
        ("co", ["compare runs", "copy as image"]),
        ("ex", ["an excess", "next disputed spot"]),
        ("zz", []),
        (".*", []),
    ],
)
def test_what_fits_best_comes_first(typed, found):
    best = Typed(typed).best(TEXTS, 10)
    assert [TEXTS[place] for place in best][: len(found) or None] == found


def test_without_letters_everything_keeps_its_order():
    assert Typed("  ").best(TEXTS, 4) == [0, 1, 2, 3]


def test_the_letters_found_are_told_by_place():
    assert Typed("im").places("Copy as image") == {8, 9}
    assert Typed("cai").places("Copy as image") == {0, 5, 8}
    assert Typed("cop im").places("Copy as image") == {0, 1, 2, 8, 9}


def test_of_very_many_the_best_come_first_too():
    many = [f"volunteer {number} annotator" for number in range(20_000)]
    texts = ["volume, image", *many, "find a volunteer"]
    assert Typed("volu").best(texts, 2) == [0, 1]
    assert Typed("volunteer 77").best(texts, 1) == [78]
    assert Typed("fav").best(texts, 5) == [20_001]
