"""Comparisons as they are given: what is refused, what is counted, who is left out."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.pairs import Pairs, PairsError

NAN = float("nan")


def some() -> Pairs:
    return Pairs(
        annotator=np.array([0, 0, 1, 2, 2]),
        left=np.array([0, 1, 2, 0, 2]),
        right=np.array([1, 2, 0, 2, 1]),
        choice=np.array([1.0, -1.0, 0.0, 2.5, -0.5]),
        annotators=("ann", "bob", "cid", "nobody"),
        items=("x", "y", "z"),
        time=np.array([5.0, 4.0, NAN, 2.0, 1.0]),
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"annotator": np.array([0, 0, 4, 2, 2])}, "annotator 4; expected 0 to 3"),
        ({"annotator": np.array([0, 0, -1, 2, 2])}, "annotator"),
        ({"left": np.array([0, 1, 2, 0, 3])}, "left 3; expected 0 to 2"),
        ({"right": np.array([1, 2, 0])}, "expected one for each comparison"),
        ({"choice": np.array([1.0, NAN, 0.0, 2.5, -0.5])}, "no number"),
        ({"choice": np.array([1.0, np.inf, 0.0, 2.5, -0.5])}, "no number"),
        ({"right": np.array([1, 2, 0, 2, 2])}, "compared with itself"),
        ({"time": np.array([1.0, 2.0])}, "times"),
        ({"time": np.array([1.0, 2.0, np.inf, 3.0, 4.0])}, "times"),
    ],
)
def test_what_is_no_comparison_is_refused(change, words):
    with pytest.raises(PairsError, match=words):
        replace(some(), **change)


def test_answers_are_counted_by_side():
    left, right, ties = some().counts()
    np.testing.assert_array_equal(left, [1, 0, 1, 0])
    np.testing.assert_array_equal(right, [1, 0, 1, 0])
    np.testing.assert_array_equal(ties, [0, 1, 0, 0])


def test_who_is_left_out_keeps_the_number_and_has_no_comparisons():
    pairs = some().without({"ann", "stranger"})
    assert pairs.annotators == some().annotators
    np.testing.assert_array_equal(pairs.annotator, [1, 2, 2])
    np.testing.assert_array_equal(pairs.choice, [0.0, 2.5, -0.5])
    np.testing.assert_array_equal(pairs.time, [NAN, 2.0, 1.0])
    unchanged = some()
    assert unchanged.without(()) is unchanged


def test_unknown_times_are_none():
    assert replace(some(), time=np.full(5, NAN)).time is None
