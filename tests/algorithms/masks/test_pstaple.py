"""PSTAPLE beside STAPLE, which it is for certain votes, and its own equations."""

from __future__ import annotations

import numpy as np
import pytest

from raterscope.algorithms.masks.data import OPEN
from raterscope.algorithms.masks.staple import PSTAPLESettings, STAPLESettings, pstaple, staple
from tests.algorithms.masks.staple_cases import ball, named, nodule, noisy


@pytest.mark.parametrize("mrf", [0.0, 0.8])
def test_certain_votes_are_staples(mrf):
    labels, _ = noisy(3, 5)
    peer = staple(
        named(labels.astype(bool)), STAPLESettings(domain="frame", mrf=mrf, margin=9.0, tolerance=1e-10)
    )
    ours = pstaple(
        named(labels.astype(np.float32)),
        PSTAPLESettings(domain="frame", mrf=mrf, margin=9.0, tolerance=1e-7, iterations=2000),
    )
    assert ours.origin == peer.origin or mrf == 0.0
    assert ours.sensitivity == pytest.approx(peer.sensitivity, abs=1e-4)
    assert ours.specificity == pytest.approx(peer.specificity, abs=1e-4)
    assert ours.mask.sum() == pytest.approx(peer.mask.sum(), abs=2)


def test_uncertain_votes_are_the_equations():
    rng = np.random.default_rng(2)
    truth = ball((7, 8, 9), (3, 4, 4), 2.5)
    odds = np.where(truth, 1.5, -2.5) + rng.normal(0, 1.5, size=(4, *truth.shape))
    votes = (1 / (1 + np.exp(-odds))).astype(np.float32)
    settings = PSTAPLESettings(domain="frame", mrf=0.0, margin=20.0, tolerance=1e-9, iterations=5000)
    fusion = pstaple(named(votes), settings)
    assert fusion.shape == truth.shape
    w = fusion.probability[0].astype(float)
    hit, quiet = (one[0][:, None, None, None] for one in (fusion.sensitivity, fusion.specificity))
    assert (votes * w).sum(axis=(1, 2, 3)) / w.sum() == pytest.approx(hit.ravel(), abs=1e-5)
    assert ((1 - votes) * (1 - w)).sum(axis=(1, 2, 3)) / (1 - w).sum() == pytest.approx(
        quiet.ravel(), abs=1e-5
    )
    prior = votes.mean(dtype=float)
    logit = votes * np.log(hit / (1 - quiet)) + (1 - votes) * np.log((1 - hit) / quiet)
    expected = 1 / (1 + np.exp(-logit.sum(axis=0) - np.log(prior / (1 - prior))))
    assert w == pytest.approx(expected, abs=1e-4)


def test_a_real_nodule_is_much_like_staples_but_smoother(real_data):
    """The robust fusion paper, section 4.2: similar results, slightly smoother contours."""
    masks = nodule(real_data)
    ours, peer = pstaple(masks), staple(masks)
    objective = ours.traces[0].objective
    assert np.diff(objective).min() > -1e-6 * abs(objective[-1])
    assert 6000 < ours.mask.sum() < 1.05 * peer.mask.sum()

    def outline(fusion):
        whole = np.pad(fusion.mask[0], 1)
        faces = sum(np.count_nonzero(np.diff(whole.astype(np.int8), axis=axis)) for axis in range(3))
        return faces / np.count_nonzero(whole) ** (2 / 3)

    assert outline(ours) < outline(peer)


def test_raters_who_agree_or_marked_nothing_and_settled_voxels():
    solid = ball((15, 16, 17), (7, 8, 8), 4.5)
    same = pstaple(named(np.stack([solid] * 3)))
    assert same.mask.sum() == pytest.approx(solid.sum(), rel=0.05)
    assert not pstaple(named(np.zeros((3, 4, 5, 6), dtype=bool))).mask.any()
    assert pstaple(named(np.ones((3, 4, 5, 6), dtype=bool))).mask.all()
    known = np.full(solid.shape, OPEN, dtype=np.int8)
    known[7, 8, 8], known[7, 8, 14] = 0, 1
    fusion = pstaple(named(np.stack([solid] * 3), known=known))
    at = np.array(fusion.origin)
    assert not fusion.mask[0][tuple(np.array([7, 8, 8]) - at)]
    assert fusion.mask[0][tuple(np.array([7, 8, 14]) - at)]
