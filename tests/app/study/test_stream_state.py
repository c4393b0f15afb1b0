"""A stream's state is stored between its steps and goes on as if it had not been."""

import pytest

from raterscope.algorithms.clicks.stream import StreamPlan, StreamState, advance, begin
from raterscope.algorithms.simulation.mixtures import separated_crowd
from raterscope.app.study.arrays import pack, unpack
from tests.algorithms.clicks.crowds import until
from tests.app.study.test_arrays import same


def stored(state: StreamState) -> StreamState:
    return unpack(StreamState, *pack(state))


@pytest.mark.parametrize(
    "texts", [{}, {"prior": "none"}, {"criterion": "observed"}, {"update": "printed", "as_printed": "yes"}]
)
def test_a_stored_state_goes_on_to_the_same_bits(texts):
    clicks, plan = separated_crowd(12, seed=5).clicks, StreamPlan.make(texts)
    one = two = begin(until(clicks, 7), plan)
    for annotators in range(8, 13):
        one = advance(one, until(clicks, annotators), plan)
        two = stored(advance(stored(two), until(clicks, annotators), plan))
        assert same(one, two)


def test_the_state_of_nothing_can_be_stored():
    clicks = separated_crowd(2, seed=5).clicks
    state = stored(begin(until(clicks, 0)))
    assert same(advance(state, clicks), advance(begin(until(clicks, 0)), clicks))
