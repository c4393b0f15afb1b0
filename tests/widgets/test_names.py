"""Long names that are alike, and search by a few letters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raterscope.widgets.names import (
    SearchPage,
    SearchText,
    distinguishing_labels,
    short_class_names,
    short_names,
)

SPOTS = "cells__MAX_C3_ISP_300_1_nspots{}_spot_sig1.75_snr{}_2.5spot_img.png"


def test_what_differs_is_kept() -> None:
    names = [SPOTS.format(spots, noise) for spots in (50, 100) for noise in (5, 20)]
    assert list(distinguishing_labels(names).values()) == [
        "cells…nspots50 snr5",
        "cells…nspots50 snr20",
        "cells…nspots100 snr5",
        "cells…nspots100 snr20",
    ]


def test_numbers_with_a_point_are_one_word() -> None:
    names = [f"density__snr_10_0_density_0.00{n}_spot_img.png" for n in (2, 4)]
    assert list(distinguishing_labels(names).values()) == ["density…0.002", "density…0.004"]


def test_a_name_like_no_other_stays() -> None:
    names = ["beads__beads_300pxroi.png", SPOTS.format(5, 5), "", "___"]
    assert distinguishing_labels(names)["beads__beads_300pxroi.png"] == "beads__beads_300pxroi.png"
    assert distinguishing_labels(names)["___"] == "___"


@given(st.lists(st.text("ab1_. é", min_size=1, max_size=12), unique=True, max_size=12))
def test_names_that_differ_are_distinguished(names: list[str]) -> None:
    labels = distinguishing_labels(names)
    assert set(labels) == set(names)
    assert len(set(labels.values())) == len(names)


def test_a_first_word_that_all_classes_share_is_dropped() -> None:
    assert short_class_names(("class 0193", "class 0026")) == {"class 0193": "0193", "class 0026": "0026"}
    assert short_class_names(("frog", "toad")) == {"frog": "frog", "toad": "toad"}


TEXTS = ["next disputed spot", "accept", "copy as image", "image one.png", "an excess", "compare runs"]


@pytest.mark.parametrize(
    ("typed", "result"),
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
def test_what_fits_best_comes_first(typed, result):
    best = SearchText(typed).best(TEXTS, 10)
    assert [TEXTS[position] for position in best][: len(result) or None] == result


def test_without_letters_everything_keeps_its_order():
    assert SearchText("  ").best(TEXTS, 4) == [0, 1, 2, 3]


def test_the_letters_found_are_reported_by_place():
    assert SearchText("im").matched_indices("Copy as image") == {8, 9}
    assert SearchText("cai").matched_indices("Copy as image") == {0, 5, 8}
    assert SearchText("cop im").matched_indices("Copy as image") == {0, 1, 2, 8, 9}


def test_of_very_many_the_best_come_first_too():
    count = [f"volunteer {number} annotator" for number in range(20_000)]
    texts = ["volume, image", *count, "find a volunteer"]
    assert SearchText("volu").best(texts, 2) == [0, 1]
    assert SearchText("volunteer 77").best(texts, 1) == [78]
    assert SearchText("fav").best(texts, 5) == [20_001]


def test_names_of_annotators_are_shortened_to_what_distinguishes_them():
    assert short_names(("Person 12", "Person 7")) == {"Person 12": "12", "Person 7": "7"}
    assert short_names(("anna", "Person 7")) == {"anna": "anna", "Person 7": "Person 7"}


def test_pages_rank_by_title_then_headings_then_text_then_cited_works():
    texts = (
        "# ROC curves\n\nArea.",
        "# Methods\n\n- **ROC area**: of a method.",
        "# Runs\n\nSee the ROC of each run.",
        "# Trust\n\nSource.\n\n## References\n\n- ROC analysis",
    )
    ranks = [SearchPage(text).rank(["roc"]) for text in texts]
    assert None not in ranks
    assert ranks == sorted(ranks)
    assert SearchPage("# Steps of a process\n\nText.").rank(["roc"]) is None
    assert ranks[1] < SearchPage(texts[0], is_secondary=True).rank(["roc"]) < ranks[2]
