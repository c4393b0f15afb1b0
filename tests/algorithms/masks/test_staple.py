"""STAPLE beside SimpleITK's, beside its own equations, and where it used to break."""

from __future__ import annotations

import numpy as np
import pytest

from raterscope.algorithms.masks.data import OPEN
from raterscope.algorithms.masks.staple import PSTAPLESettings, STAPLESettings, pstaple, staple
from raterscope.algorithms.progress import Cancelled
from tests.algorithms.masks.staple_cases import ball, named, nodule, noisy, whole

FRAME = STAPLESettings(domain="frame")


def peer(labels):
    """Sensitivities, specificities and probability by SimpleITK."""
    sitk = pytest.importorskip("SimpleITK")
    first = sitk.STAPLEImageFilter()
    result = first.Execute(
        [sitk.GetImageFromArray(np.ascontiguousarray(label, np.uint8)) for label in labels]
    )
    return first.GetSensitivity(), first.GetSpecificity(), sitk.GetArrayFromImage(result)


@pytest.mark.parametrize("raters", [3, 5, 18])
def test_it_equals_simpleitk_on_noisy_raters(raters):
    labels, _ = noisy(raters, raters)
    fusion = staple(named(labels.astype(bool)), FRAME)
    sensitivity, specificity, probability = peer(labels)
    assert fusion.sensitivity[0] == pytest.approx(sensitivity, abs=3e-7)
    assert fusion.specificity[0] == pytest.approx(specificity, abs=3e-7)
    assert np.abs(whole(fusion, fusion.probability)[0] - probability).max() < 3e-7


def test_it_equals_simpleitk_on_a_real_nodule(real_data):
    masks = nodule(real_data)
    fusion = staple(masks, FRAME)
    _, specificity, probability = peer(masks.values)
    assert fusion.mask.sum() == 9098
    assert fusion.sensitivity[0] == pytest.approx([0.962473, 0.677398, 0.971223, 0.673328], abs=1e-5)
    assert fusion.specificity[0] == pytest.approx(specificity, abs=3e-7)
    box = tuple(slice(at, at + n) for at, n in zip(fusion.origin, fusion.shape, strict=True))
    assert np.abs(fusion.probability[0] - probability[box]).max() < 3e-7


def test_the_log_likelihood_never_falls():
    labels, _ = noisy(1, 6)
    objective = staple(named(labels.astype(bool))).traces[0].objective
    assert len(objective) > 3
    assert np.diff(objective).min() > -1e-9 * abs(objective[-1])


def test_background_beyond_the_masks_counts_by_the_setting():
    """A frame ten times as large is the same as so many more voxels of background."""
    labels, _ = noisy(2, 4)
    masks = labels.astype(bool)
    wide = np.pad(masks, ((0, 0), (20, 20), (5, 5), (5, 5)))
    inside = named(masks, origin=(20, 5, 5), frame=wide.shape[1:])
    assert np.allclose(staple(inside, FRAME).specificity, staple(named(wide), FRAME).specificity)
    assert np.allclose(staple(inside).specificity, staple(named(wide)).specificity)
    assert np.all(staple(inside, FRAME).specificity > staple(inside).specificity)


@pytest.mark.parametrize(("depth", "noun"), [(1, "pixels"), (2, "voxels")])
def test_what_was_counted_is_stated_in_the_words_of_the_image(depth, noun):
    masks = np.ones((2, depth, 6, 5), dtype=bool)
    masks[1, :, 3:] = False
    (notice, *_) = staple(named(masks), FRAME).notices
    assert f"over {30 * depth} {noun} (the whole image)" in notice


def test_three_classes_recover_the_confusion_of_raters():
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, size=(20, 30, 30)).astype(np.uint8)
    labels = np.repeat(truth[None], 5, axis=0)
    rate = [0.95, 0.9, 0.85, 0.8, 0.7]
    for p, right in enumerate(rate):
        wrong = rng.random(truth.shape) > right
        labels[p][wrong] = (truth[wrong] + rng.integers(1, 3, size=int(wrong.sum()))) % 3
    fusion = staple(named(labels, structures=("a", "b")))
    assert fusion.sensitivity == pytest.approx(np.array([rate, rate]), abs=0.02)
    result = whole(fusion, fusion.mask)
    assert np.mean((result[0] == (truth == 1)) & (result[1] == (truth == 2))) > 0.985


def test_a_label_map_of_one_structure_is_a_mask():
    labels, _ = noisy(7, 4)
    assert np.array_equal(staple(named(labels)).probability, staple(named(labels.astype(bool))).probability)


def test_smoothing_fills_a_hole_that_two_of_three_left_and_its_bound_never_falls():
    solid = ball((15, 15, 15), (7, 7, 7), 5)
    holed = solid.copy()
    holed[7, 7, 7] = False
    masks = named(np.stack([solid, holed, holed]))
    assert not whole(plain := staple(masks), plain.mask)[0, 7, 7, 7]
    smooth = staple(masks, STAPLESettings(mrf=2.0))
    assert whole(smooth, smooth.mask)[0, 7, 7, 7]
    objective = smooth.traces[0].objective
    assert np.diff(objective).min() > -1e-6 * abs(objective[-1])


def test_smoothing_of_a_line_is_that_of_the_mean_field_equations():
    """Iterated by the textbook: q_i = sigmoid(evidence_i + strength (2 q - 1) of both neighbours)."""
    votes = np.array([[0, 1, 0, 1, 1, 0], [0, 1, 1, 1, 0, 0], [0, 0, 0, 1, 1, 0]], dtype=bool)
    fusion = staple(named(votes[:, None, None]), STAPLESettings(mrf=0.7, domain="frame", tolerance=1e-13))
    hit, quiet = fusion.sensitivity[0][:, None], fusion.specificity[0][:, None]
    q = whole(fusion, fusion.probability)[0, 0, 0].astype(float)
    with np.errstate(divide="ignore"):
        odds = np.where(votes, np.log(hit / (1 - quiet)), np.log((1 - hit) / quiet)).sum(axis=0)
    odds += np.log(votes.mean() / (1 - votes.mean()))
    left, right = np.append(0.5, q[:-1]), np.append(q[1:], 0.5)
    assert q == pytest.approx(1 / (1 + np.exp(-odds - 0.7 * (2 * left + 2 * right - 2))), abs=1e-5)


def test_settled_voxels_are_held_and_teach():
    labels, truth = noisy(9, 3)
    masks = labels.astype(bool)
    known = np.full(truth.shape, OPEN, dtype=np.int8)
    known[4:8] = truth[4:8]
    known[0, 0, 0] = 1
    for settings in (FRAME, STAPLESettings(mrf=0.5)):
        fusion = staple(named(masks, known=known), settings)
        fixed = whole(fusion, fusion.mask)[0][known != OPEN]
        assert np.array_equal(fixed, known[known != OPEN] == 1)
    everything = staple(named(masks, known=truth.astype(np.int8)), FRAME)
    assert everything.sensitivity[0] == pytest.approx(masks[:, truth == 1].mean(axis=1))


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_raters_who_agree_and_raters_who_marked_nothing(smoothing):
    solid = ball((11, 12, 13), (5, 6, 6), 4)
    settings = STAPLESettings(mrf=smoothing)
    same = staple(named(np.stack([solid] * 4)), settings)
    assert np.array_equal(whole(same, same.mask)[0], solid)
    assert not staple(named(np.zeros((3, 4, 5, 6), dtype=bool)), settings).mask.any()
    assert staple(named(np.ones((3, 4, 5, 6), dtype=bool)), settings).mask.all()
    one_empty = staple(named(np.stack([solid, solid, solid, solid & False])), settings)
    assert np.array_equal(whole(one_empty, one_empty.mask)[0], solid)
    assert one_empty.sensitivity[0, 3] == pytest.approx(0.0, abs=1e-9)


def test_it_is_cancelled_by_its_watch():
    labels, _ = noisy(4, 4)

    def stop(fraction, words, *, objective=None, partial=None):
        raise Cancelled

    with pytest.raises(Cancelled):
        staple(named(labels.astype(bool)), STAPLESettings(mrf=1.0), stop)


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
    hit, quiet = (item[0][:, None, None, None] for item in (fusion.sensitivity, fusion.specificity))
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
