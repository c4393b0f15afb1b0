import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raterscope.text import counted, decimals, duration, estimate, figure, natural, small_figure, time_left


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (0.46, 0.31, 0.62, "0.46 (0.31 to 0.62)"),
        (0.95, 0.9, 0.98, "0.95 (0.90 to 0.98)"),
        (0.9951, 0.9921, 0.9979, "0.995 (0.992 to 0.998)"),
        (0.5, 0.02, 0.97, "0.50 (0.02 to 0.97)"),
        (1234.4, 1100.0, 1400.0, "1,234 (1,100 to 1,400)"),
        (0.5, math.nan, math.nan, "0.50"),
        (math.nan, 0.1, 0.2, "not known"),
        (-0.001, -0.4, 0.4, "0.0 (−0.4 to 0.4)"),
    ],
)
def test_an_estimate_has_no_more_digits_than_its_interval_supports(value, low, high, words):
    assert estimate(value, low, high) == words


@given(st.floats(1e-4, 1e6), st.floats(0, 1e6))
def test_the_last_digit_is_no_finer_than_a_small_share_of_the_interval(width, low):
    positions = decimals(low, low + width)
    assert 0 <= positions <= 3
    if positions > (2 if low + width <= 1 else 0):  # shares have two decimals at least
        assert 10.0**-positions >= (low + width - low) / 70 * 0.999


def test_a_number_below_0_has_a_typographic_minus_as_on_axes():
    assert figure(-0.4567, -0.6, -0.3) == "−0.46"
    assert small_figure(-0.3) == "−0.30"
    assert small_figure(-0.00001) == "0.0000"


def test_value_alone_has_the_digits_of_its_interval():
    assert figure(0.4567, 0.3, 0.6) == "0.46"
    assert figure(math.nan) == "not known"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "40 ms"),
        (2.1, "2 s"),
        (59.7, "1 min"),
        (80, "1 min 20 s"),
        (700, "11 min"),
        (11100, "3 h 5 min"),
    ],
)
def test_durations_are_stated_in_everyday_units(seconds, words):
    assert duration(seconds) == words


def test_counts_have_their_noun():
    assert counted(1, "click") == "1 click"
    assert counted(1048, "click") == "1,048 clicks"
    assert counted(2, "entry", "entries") == "2 entries"


def test_what_is_left_is_reported_to_the_second():
    text = [time_left(seconds) for seconds in (None, 0.2, 0.94, 20.4, 67)]
    assert text == ["", "1 s left", "1 s left", "20 s left", "1 min 7 s left"]


def test_numbers_within_names_are_counted_not_spelt() -> None:
    names = ["class 10", "class 9", "Class 1", "class 010b", "apple", "class", "9", "10", ""]
    expected = ["", "9", "10", "apple", "class", "Class 1", "class 9", "class 10", "class 010b"]
    assert sorted(names, key=natural) == expected


def test_a_name_of_ten_thousand_digits_has_its_place() -> None:
    assert sorted(["a" + "9" * 10_000, "a1"], key=natural) == ["a1", "a" + "9" * 10_000]


def test_names_that_differ_in_case_alone_have_one_order() -> None:
    assert sorted(["class 1", "class 01", "Class 1"], key=natural) == ["class 01", "Class 1", "class 1"]
