"""What is shown of long names that are alike."""

from hypothesis import given
from hypothesis import strategies as st

from raterscope.widgets.names import distinguishing_labels

SPOTS = "cells__MAX_C3_ISP_300_1_nspots{}_spot_sig1.75_snr{}_2.5spot_img.png"


def test_what_differs_is_kept() -> None:
    names = [SPOTS.format(spots, noise) for spots in (50, 100) for noise in (5, 20)]
    assert list(distinguishing_labels(names).values()) == [
        "cells…nspots50…snr5",
        "cells…nspots50…snr20",
        "cells…nspots100…snr5",
        "cells…nspots100…snr20",
    ]


def test_numbers_with_a_point_are_one_word() -> None:
    names = [f"density__snr_10_0_density_0.00{n}_spot_img.png" for n in (2, 4)]
    assert list(distinguishing_labels(names).values()) == ["density…0.002", "density…0.004"]


def test_a_name_like_no_other_stays() -> None:
    names = ["beads__beads_300pxroi.png", SPOTS.format(5, 5), "", "___"]
    assert distinguishing_labels(names)["beads__beads_300pxroi.png"] == "beads__beads_300pxroi.png"
    assert distinguishing_labels(names)["___"] == "___"


@given(st.lists(st.text("ab1_. é", min_size=1, max_size=12), unique=True, max_size=12))
def test_names_that_differ_are_told_apart(names: list[str]) -> None:
    told = distinguishing_labels(names)
    assert set(told) == set(names)
    assert len(set(told.values())) == len(names)
