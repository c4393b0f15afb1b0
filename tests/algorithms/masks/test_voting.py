"""The majority vote of masks, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from raterscope.algorithms.masks.data import OPEN
from raterscope.algorithms.masks.voting import MajoritySettings, majority
from tests.algorithms.masks.staple_cases import named, nodule, whole


def row(*rows):
    """Masks of one line of voxels each, as text of digits."""
    return np.array([[[list(map(int, text))]] for text in rows], dtype=np.uint8)


VOTES = named(row("0111", "0011", "0001", "0000").astype(bool))


def test_ties_follow_the_setting_and_a_notice_counts_them():
    out, tied_in = majority(VOTES), majority(VOTES, MajoritySettings(ties="in"))
    assert whole(out, out.mask).ravel().tolist() == [False, False, False, True]
    assert whole(tied_in, tied_in.mask).ravel().tolist() == [False, False, True, True]
    assert out.notices == ("1 tied voxel assigned to the background.",)
    assert "the structure" in tied_in.notices[0]


def test_the_probability_is_the_share_and_rates_are_agreement_with_the_vote():
    fusion = majority(VOTES)
    assert whole(fusion, fusion.probability).ravel().tolist() == [0.0, 0.25, 0.5, 0.75]
    assert fusion.sensitivity[0].tolist() == [1.0, 1.0, 1.0, 0.0]
    assert fusion.specificity[0].tolist() == [0.0, 0.5, 1.0, 1.0]


def test_labels_take_the_most_frequent_and_ties_the_background_or_the_first():
    masks = named(row("0012", "0012", "0221", "0122"), structures=("a", "b"))
    fusion = majority(masks)
    labels = [tuple(np.flatnonzero(item)) for item in whole(fusion, fusion.mask)[:, 0, 0].T]
    assert labels == [(), (), (0,), (1,)]
    assert fusion.notices[0].startswith("1 tied voxel assigned")
    background = named(row("01", "01", "00", "00"), structures=("a", "b"))
    assert not majority(background).mask.any()
    assert majority(background, MajoritySettings(ties="in")).mask[0].any()


def test_probabilities_are_averaged():
    masks = named(np.array([[[[0.0, 0.9, 0.4]]], [[[0.25, 0.3, 0.4]]]], dtype=np.float32))
    fusion = majority(masks)
    assert fusion.probability.ravel() == pytest.approx([0.125, 0.6, 0.4])
    assert fusion.mask.ravel().tolist() == [False, True, False]


def test_settled_voxels_are_not_put_to_the_vote():
    known = np.full((1, 1, 4), OPEN, dtype=np.int8)
    known[0, 0, [0, 3]] = 1, 0
    fusion = majority(named(VOTES.values, known=known))
    assert whole(fusion, fusion.mask).ravel().tolist() == [True, False, False, False]
    assert whole(fusion, fusion.probability).ravel().tolist() == [1.0, 0.25, 0.5, 0.0]


def test_no_annotator_and_all_annotators_and_one():
    assert not majority(named(np.zeros((3, 2, 3, 4), dtype=bool))).mask.any()
    assert majority(named(np.ones((3, 2, 3, 4), dtype=bool))).mask.sum() == 24
    alone = majority(named(row("0110").astype(bool)))
    assert alone.mask.sum() == 2
    assert any("one rater" in notice for notice in alone.notices)


def test_a_real_nodule_with_ties_out_and_in(real_data):
    masks = nodule(real_data)
    assert majority(masks).mask.sum() == 6555
    assert majority(masks, MajoritySettings(ties="in")).mask.sum() == 9098
