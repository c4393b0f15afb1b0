"""Majority and share of votes, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from raterscope.algorithms.clicks.voting import MajoritySettings, ShareSettings, majority, share
from tests.algorithms.clicks.crowds import votes_of_text

VOTES = votes_of_text(["1110", "1100", "1000", "0000"])


def test_half_of_the_annotators_is_enough_unless_ties_do_not_count():
    assert majority(VOTES).detected.tolist() == [True, True, False, False]
    assert majority(VOTES, MajoritySettings(ties_count=False)).detected.tolist() == [
        True,
        False,
        False,
        False,
    ]


def test_a_share_of_votes():
    assert share(VOTES, ShareSettings(share=0.25)).detected.tolist() == [True, True, True, False]
    assert share(VOTES, ShareSettings(share=0.3)).detected.tolist() == [True, True, False, False]


def test_a_fifth_of_fifteen_is_three():
    """0.2 * 15 is a little above 3 to the machine."""
    marked = np.zeros((15, 2), dtype=bool)
    marked[:3, 0] = marked[:2, 1] = True
    votes = type(VOTES)(marked, np.full(2, 0.5), np.full(2, -1, dtype=np.int8))
    assert share(votes).detected.tolist() == [True, False]


def test_the_posterior_is_the_share_with_its_interval():
    result = majority(VOTES)
    assert result.posterior.tolist() == [0.75, 0.5, 0.25, 0.0]
    assert result.posterior_low[1] == pytest.approx(beta(2.5, 2.5).ppf(0.025))
    assert result.posterior_high[1] == pytest.approx(beta(2.5, 2.5).ppf(0.975))
    assert result.posterior_low[3] == 0.0


def test_rates_are_agreement_with_the_vote():
    result = majority(VOTES)
    assert result.sensitivity.tolist() == [1.0, 1.0, 0.5, 0.0]
    assert result.specificity.tolist() == [0.5, 1.0, 1.0, 1.0]
    assert result.false_positive.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_known_truths_overrule_the_vote():
    votes = type(VOTES)(VOTES.marked, VOTES.weight, np.array([0, -1, -1, 1], dtype=np.int8))
    result = majority(votes)
    assert result.detected.tolist() == [False, True, False, True]
    assert result.posterior[[0, 3]].tolist() == [0.0, 1.0]
    assert result.posterior_high[0] == 0.0


def test_without_structures_sensitivity_is_not_defined():
    result = majority(votes_of_text(["10", "00", "00"]))
    assert np.isnan(result.sensitivity).all()
    assert not np.isnan(result.specificity).any()


@pytest.mark.parametrize("detect", [majority, share])
@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 2)])
def test_nobody_and_nothing(detect, shape):
    votes = type(VOTES)(np.zeros(shape, bool), np.zeros(shape[1]), np.full(shape[1], -1, dtype=np.int8))
    assert not detect(votes).detected.any()
