"""A stream's state is stored between its steps and goes on as if it had not been."""

import numpy as np
import pytest

from raterscope.algorithms.clicks.decision_course import DecisionState, recursive_em
from raterscope.algorithms.clicks.decision_course import initial_state as begin_deciding
from raterscope.algorithms.clicks.fusion import FusionPlan, fuse
from raterscope.algorithms.clicks.image_priors import Experience, experience_of
from raterscope.algorithms.clicks.stopping import ExpectedChanges, predict_outlook
from raterscope.algorithms.clicks.stream import StreamPlan, StreamState, advance_stream, begin_stream
from raterscope.algorithms.simulation.click_crowds import separated_crowd
from raterscope.app.study.arrays import pack, unpack
from tests.algorithms.clicks.crowds import until
from tests.app.study.test_arrays import same


def stored(state: StreamState) -> StreamState:
    return unpack(StreamState, *pack(state))


@pytest.mark.parametrize(
    "texts", [{}, {"prior": "none"}, {"criterion": "observed"}, {"update": "printed", "as_published": "yes"}]
)
def test_a_stored_state_goes_on_to_the_same_bits(texts):
    clicks, plan = separated_crowd(12, seed=5).clicks, StreamPlan.make(texts)
    item = two = begin_stream(until(clicks, 7), plan)
    for annotators in range(8, 13):
        item = advance_stream(item, until(clicks, annotators), plan)
        two = stored(advance_stream(stored(two), until(clicks, annotators), plan))
        assert same(item, two)


def test_the_state_of_nothing_can_be_stored():
    clicks = separated_crowd(2, seed=5).clicks
    state = stored(begin_stream(until(clicks, 0)))
    assert same(advance_stream(state, clicks), advance_stream(begin_stream(until(clicks, 0)), clicks))


def test_priors_of_annotators_and_predictions_are_stored_with_it():
    clicks = separated_crowd(8, seed=5).clicks
    fusion = fuse(clicks)
    ahead = predict_outlook(clicks, fusion, FusionPlan())
    assert same(unpack(ExpectedChanges, *pack(ahead)), ahead)
    for experience in (Experience.none(), experience_of([fusion], [clicks.annotators])):
        assert same(unpack(Experience, *pack(experience)), experience)


def test_decisions_go_on_after_their_state_was_stored():
    decisions = np.random.default_rng(3).integers(0, 2, (3, 4, 6)).astype(float)
    state = begin_deciding(4, 6)
    for now in decisions[:2]:
        state = recursive_em(state, now)
    second = unpack(DecisionState, *pack(state))
    assert same(recursive_em(state, decisions[2]), recursive_em(second, decisions[2]))
