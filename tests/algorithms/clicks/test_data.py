"""Clicks are checked once, when made."""

import numpy as np
import pytest

from raterscope.algorithms.clicks.data import Clicks, ClicksError, median, quantiles, within


def clicks(x=(1.0, 2.0, 3.0), y=(1.0, 2.0, 3.0), annotator=(0, 1, 1), names=("a", "b", "c"), **more):
    return Clicks(np.array(x), np.array(y), np.array(annotator), names, (0, 0, 10, 10), **more)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"x": (1.0, np.nan, 3.0)}, "x of click 2 is nan; expected a finite number."),
        ({"x": (1.0, 2.0)}, "2 x, 3 y and 3 annotators differ in number."),
        ({"annotator": (0, 1, 3)}, "an annotator's index is outside 0 to 2."),
        ({"names": ("a", "b", "b")}, "two annotators have the same name."),
        ({"time": np.zeros(2)}, "2 times for 3 clicks."),
        ({"weights": np.ones(2)}, "2 weights for 3 annotators."),
        ({"weights": (1, 0, 1)}, "the weight of b is 0.0; expected more than 0, at most 1."),
        ({"weights": (1, 1, 1.5)}, "the weight of c is 1.5; expected more than 0, at most 1."),
        ({"weights": (np.nan, 1, 1)}, "the weight of a is nan; expected more than 0, at most 1."),
    ],
)
def test_broken_clicks_are_refused_in_a_sentence(change, sentence):
    with pytest.raises(ClicksError) as caught:
        clicks(**change)
    assert str(caught.value) == sentence


def test_an_image_of_no_area_is_refused():
    with pytest.raises(ClicksError, match="expected an area above 0"):
        Clicks(np.zeros(0), np.zeros(0), np.zeros(0, int), (), (0, 0, 10, 0))


def test_who_marked_nothing_is_still_one_who_looked():
    assert clicks().counts().tolist() == [1, 2, 0]


def test_clicks_outside_the_image_are_kept_and_known():
    assert clicks(x=(-1.0, 2.0, 3.0)).outside.tolist() == [True, False, False]


def test_leaving_out_an_annotator_renumbers_the_others():
    left = clicks().without({"a"})
    assert left.annotators == ("b", "c")
    assert left.annotator.tolist() == [0, 0]
    assert left.x.tolist() == [2.0, 3.0]


def test_weights_stay_with_their_annotators():
    weighed = clicks(weights=(0.5, 1, 0.25))
    assert weighed.without({"b"}).weights.tolist() == [0.5, 0.25]
    assert weighed.merged()[0].weights.tolist() == [0.5, 1, 0.25]


def test_annotators_are_weighed_by_name():
    weighed = clicks(weights=(1, 0.5, 1)).with_weights({"c": 0.25, "who never looked": 0.5})
    assert weighed.weights.tolist() == [1, 1, 0.25]


def test_no_weights_are_left_where_all_count_fully():
    assert clicks(weights=(1, 1, 1)).weights is None
    assert clicks(weights=(0.5, 1, 1)).without({"a"}).weights is None


def test_one_annotators_clicks_at_one_place_merge_and_can_be_traced_back():
    doubled = clicks(x=(5.0, 1.0, 1.0, 5.0), y=(5.0, 1.0, 1.0, 5.0), annotator=(0, 1, 1, 1))
    merged, mark = doubled.merged()
    assert merged.x.tolist() == [5.0, 1.0, 5.0]
    assert merged.annotator.tolist() == [0, 1, 1]
    assert mark.tolist() == [0, 1, 1, 2]


def test_merging_no_clicks_gives_no_clicks():
    empty = Clicks(np.zeros(0), np.zeros(0), np.zeros(0, int), ("a",), (0, 0, 10, 10))
    merged, mark = empty.merged()
    assert len(merged) == 0
    assert len(mark) == 0


def test_arrays_cannot_be_changed_behind_the_programs_back():
    with pytest.raises(ValueError, match="read-only"):
        clicks().x[0] = 9.0


@pytest.mark.parametrize(("rows", "columns"), [(1, 3), (2, 3), (20, 1), (200, 9), (201, 0)])
def test_quantiles_median_and_limits_have_the_bits_of_numpy(rows, columns):
    values = np.random.default_rng(rows).normal(size=(rows, columns))
    shares = (0.025, 0.5, 0.975)
    assert np.array_equal(quantiles(values, shares), np.quantile(values, shares, axis=0))
    assert np.array_equal(within(values, -0.5, 0.5), np.clip(values, -0.5, 0.5))
    assert all(median(column) == np.median(column) for column in values.T)
