"""Decisions of the expert sharpen what the votes say of the other clusters."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from raterscope.algorithms.clicks import FusionPlan, KnownSpots, Votes, fuse, learn_from_each_other
from raterscope.algorithms.clicks._observers import _viewed_in_order
from raterscope.algorithms.clicks._structure_share import decision_weight
from raterscope.algorithms.clicks.robustness import absence_notice, decision_notice
from raterscope.algorithms.simulation.click_crowds import separated_crowd
from tests.algorithms.clicks.crowds import made
from tests.algorithms.clicks.test_learning import run_of, together

SMEARS = [(22, 2), (27, 1), (18, 3), (0, 4), (30, 2), (25, 1), (20, 2), (24, 3)]
"""Structures and artefacts on each image; the fourth holds artefacts alone."""
DISPUTED = (0.1, 0.9)


def everything(detections):
    return np.concatenate([detection.posterior for detection in detections])


@functools.cache
def smears_of(seed):
    """Return a run, its truth, and its posteriors without decisions."""
    run = run_of(SMEARS, seed)
    return run, *truth_and_posterior(run)


def truth_and_posterior(run):
    return np.concatenate([truths for _, truths, _ in run]), everything(together(run))


def decided(run, verdict):
    """Hold the truth of clusters, numbered through all images."""
    ends = np.cumsum([votes.marked.shape[1] for votes, _, _ in run])[:-1]
    parts = np.split(np.asarray(verdict, dtype=np.int8), ends)
    return [
        (replace(votes, verdict=part) if (part >= 0).any() else votes, truth, names)
        for (votes, truth, names), part in zip(run, parts, strict=True)
    ]


def disputed(posterior):
    return (posterior > DISPUTED[0]) & (posterior < DISPUTED[1])


def log_loss(posterior, truth):
    return -np.mean(np.log(np.clip(np.where(truth, posterior, 1 - posterior), 1e-9, 1)))


def by_doubt(run, posterior, order):
    """Go through images as the queue lists them."""
    image = np.repeat(np.arange(len(run)), [votes.marked.shape[1] for votes, _, _ in run])
    doubt = np.bincount(image, np.minimum(posterior, 1 - posterior) * disputed(posterior))
    rank = np.argsort(np.argsort(-doubt))
    order = order[disputed(posterior[order])]
    return order[np.argsort(rank[image[order]], kind="stable")]


def reviewed(run, truth, before, count, chosen=None, queued=False):
    """Decide the most disputed clusters rightly; give truth, posteriors before and after of the others."""
    order = np.argsort(abs(before - 0.5), kind="stable")
    if queued:
        order = by_doubt(run, before, order)
    if chosen is not None:
        order = order[truth[order] == chosen]
    verdict = np.full(len(truth), -1)
    verdict[order[:count]] = truth[order[:count]]
    after = everything(together(decided(run, verdict)))
    left = verdict < 0
    return truth[left], before[left], after[left]


def crossed(truth, before, after):
    return np.mean(((after >= 0.5) != truth) & ((before >= 0.5) == truth))


@pytest.mark.parametrize("seed", [0, 1])
def test_right_decisions_on_disputed_clusters_sharpen_the_others(seed):
    for count, growth in ((1, 1.03), (3, 1.0), (10, 1.0), (30, 1.0)):
        truth, before, after = reviewed(*smears_of(seed), count)
        assert log_loss(after, truth) <= growth * log_loss(before, truth)
        assert disputed(after).sum() <= 1.1 * disputed(before).sum()
        assert crossed(truth, before, after) <= 0.01


@pytest.mark.parametrize("seed", [0, 1])
def test_rejections_alone_leave_certain_structures_certain(seed):
    truth, before, after = reviewed(*smears_of(seed), 12, chosen=False)
    certain = truth & (before > 0.9)
    assert certain.sum() > 50
    assert (after[certain] > 0.9).mean() > 0.9
    assert log_loss(after, truth) <= 1.1 * log_loss(before, truth)
    assert crossed(truth, before, after) <= 0.015


@pytest.mark.parametrize("count", [12, 30])
def test_rejections_of_clear_artefacts_too_keep_the_order_of_review_known(count):
    """The last ones are beyond the disputed clusters, which the expert passed in order without a record."""
    run = run_of([(25, 6)] * 10, 0)
    truth, before, after = reviewed(run, *truth_and_posterior(run), count, chosen=False)
    assert log_loss(after, truth) <= log_loss(before, truth)
    assert disputed(after).sum() <= disputed(before).sum()


def test_decisions_on_one_of_many_images_have_no_effect_on_clusters_of_the_others():
    """They were chosen in the order of that image; nothing on the others was viewed."""
    generator = np.random.default_rng(3)
    chance = [generator.uniform(0.15, 0.85, 20) for _ in range(24)]
    known = [np.zeros(20, dtype=bool) for _ in chance]
    known[7][np.argsort(abs(chance[7] - 0.5))[[0, 2, 3, 5]]] = True
    truth = [np.zeros(20) for _ in chance]
    viewed = _viewed_in_order(known, truth, chance)
    assert viewed[7].sum() == pytest.approx(6, abs=0.4)
    assert viewed[7][~known[7]].sum() == pytest.approx(2, abs=0.2)
    assert sum(image.sum() for number, image in enumerate(viewed) if number != 7) < 0.5


@pytest.mark.parametrize("seed", range(4))
def test_few_acceptances_among_probable_structures_do_not_mean_that_the_others_were_passed(seed):
    """An expert who goes through probable structures accepts many of them; rejections leave structures."""
    generator = np.random.default_rng(seed)
    chance = generator.uniform(0.55, 0.75, 150)
    order, known = np.argsort(chance), np.zeros(150, dtype=bool)
    known[order[generator.permutation(150)[:10]]] = True
    (viewed,) = _viewed_in_order([known], [np.ones(150)], [chance])
    assert viewed[~known].sum() < 15  # 39 to 93 by the number of decisions alone
    known = np.isin(np.arange(150), order[:20:2])
    (viewed,) = _viewed_in_order([known], [np.zeros(150)], [chance])
    assert viewed[order[1:19:2]].sum() > 8


def run_of_artefacts(seed, annotators=12):
    """Votes on four images of artefacts that draw Beta(1, 3) of the annotators."""
    generator, run = np.random.default_rng(seed), []
    for _ in range(4):
        marked = generator.random((annotators, 30)) < generator.beta(1, 3, 30)
        marked = marked[:, marked.sum(axis=0) >= 2]
        verdict = np.full(marked.shape[1], -1, dtype=np.int8)
        votes = Votes(marked, marked.sum(axis=0) / marked.sum(), verdict, np.full(annotators, 0.002), 1000.0)
        run.append((votes, np.zeros(len(verdict), dtype=bool), [f"w{i}" for i in range(annotators)]))
    return run


def test_a_run_whose_spots_are_all_rejected_loses_its_structures():
    """The level of the run follows decisions that contradict it."""
    run = run_of([(0, 12), (0, 14), (0, 12), (0, 13)], seed=5)
    truth, before, after = reviewed(run, *truth_and_posterior(run), 30)
    assert not truth.any()
    assert after.mean() < before.mean() - 0.1


@pytest.mark.parametrize("annotators", [8, 20])
def test_twelve_rejections_clear_a_run_of_artefacts_alone(annotators):
    false = []
    for seed in range(2):
        run = run_of_artefacts(seed, annotators)
        truth, before, after = reviewed(run, *truth_and_posterior(run), 12)
        assert not truth.any()
        assert (before >= 0.5).mean() > 0.3
        false.append((after >= 0.5).mean())
    assert np.mean(false) <= 0.1


@pytest.mark.parametrize(("annotators", "seed"), [(8, 6), (12, 7), (20, 0)])
def test_a_rejection_of_the_clearest_spot_after_those_in_order_clears_more(annotators, seed):
    """It does not mean that the expert passed all spots between."""
    run = run_of_artefacts(seed, annotators)
    truth, before = truth_and_posterior(run)
    verdict = np.full(len(truth), -1)
    verdict[np.argsort(abs(before - 0.5), kind="stable")[:12]] = 0
    in_order = everything(together(decided(run, verdict)))
    number = np.concatenate([votes.marked.sum(axis=0) for votes, _, _ in run])
    verdict[np.where(verdict < 0, number, -1).argmax()] = 0
    chosen = everything(together(decided(run, verdict)))
    left = verdict < 0
    assert (chosen[left] >= 0.5).mean() <= (in_order[left] >= 0.5).mean()
    assert chosen[left].mean() <= in_order[left].mean()


def test_only_rejections_of_clear_spots_beside_those_in_order_speak_for_artefacts_alone():
    chance, share = [np.linspace(0.7, 0.88, 46)], [np.linspace(-2.0, 2.0, 46)]

    def passed(*beyond):
        known = [np.isin(np.arange(46), [*range(12), *beyond])]
        return [
            _viewed_in_order(known, [np.zeros(46)], chance, share, absent)[0][13 : beyond[-1]].mean()
            for absent in (0.0, 0.05)
        ]

    without, with_artefacts = passed(18, 24)
    assert with_artefacts >= 0.95 * without
    without, with_artefacts = passed(43, 44)
    assert with_artefacts < 0.5 * without


@functools.cache
def small_crowd(seed, annotators=12, looked=6):
    """Votes on images of which structures and artefacts have nearly the same share; truth and posteriors."""
    generator, run = np.random.default_rng([77, seed]), []
    ability, lure = generator.normal(0.1, 0.8, annotators), generator.normal(-0.5, 0.8, annotators)
    for structures, artefacts in [(18, 4), (14, 2), (22, 5), (0, 3), (16, 3), (25, 4)]:
        annotator = np.sort(generator.choice(annotators, looked, replace=False))
        odds = np.hstack(
            [
                ability[annotator, None] + generator.normal(0, 0.7, structures),
                lure[annotator, None] + generator.normal(0, 0.8, artefacts),
            ]
        )
        marked = generator.random(odds.shape) < 1 / (1 + np.exp(-odds))
        truth = np.repeat([True, False], [structures, artefacts])
        kept = marked.sum(axis=0) >= 2
        marked = marked[:, kept]
        verdict = np.full(kept.sum(), -1, dtype=np.int8)
        votes = Votes(marked, marked.sum(axis=0) / marked.sum(), verdict, np.full(looked, 0.002), 1000.0)
        run.append((votes, truth[kept], [f"w{number}" for number in annotator]))
    return run, *truth_and_posterior(run)


@pytest.mark.parametrize(("queued", "most"), [(True, 1.1), (False, 1.3)])
def test_right_rejections_do_not_deny_all_structures_of_a_small_crowd(queued, most):
    """What is unknown of a small crowd is wrong about many spots at once: they are not independent."""
    growth, more = [], []
    for seed in range(4):
        truth, before, after = reviewed(*small_crowd(seed), 8, chosen=False, queued=queued)
        growth.append(log_loss(after, truth) / log_loss(before, truth))
        more.append(disputed(after).sum() / disputed(before).sum())
        assert crossed(truth, before, after) <= 0.02
    assert np.mean(growth) <= most
    assert np.mean(more) <= most


@pytest.mark.parametrize(("rejections", "acceptances"), [(8, 1), (10, 1), (10, 10)])
def test_acceptances_among_right_rejections_do_not_deny_the_structures_passed(rejections, acceptances):
    """The expert rejects disputed artefacts, passes structures, and accepts those with most votes."""
    growth = []
    for seed in range(4):
        run, truth, before = small_crowd(seed)
        order = np.argsort(abs(before - 0.5), kind="stable")
        share = np.concatenate([votes.marked.mean(axis=0) for votes, _, _ in run])
        verdict = np.full(len(truth), -1)
        verdict[order[~truth[order]][:rejections]] = 0
        verdict[np.argsort(-np.where(truth, share, 0), kind="stable")[:acceptances]] = 1
        left = verdict < 0
        after = everything(together(decided(run, verdict)))
        growth.append(log_loss(after[left], truth[left]) / log_loss(before[left], truth[left]))
        assert crossed(truth[left], before[left], after[left]) <= 0.01
    assert np.mean(growth) <= 1.1  # the mean was 4 when an acceptance ended the order


@pytest.mark.parametrize("seed", [0, 1])
def test_rejections_that_contradict_the_crowd_do_bounded_harm(seed):
    run, truth, before = smears_of(seed)
    certain = np.flatnonzero(truth & (before > 0.8))
    verdict = np.full(len(truth), -1)
    verdict[certain[np.argsort(before[certain])][:12]] = 0
    left = verdict < 0
    after = everything(together(decided(run, verdict)))
    assert (after[~left] == 0).all()  # the decisions themselves hold
    assert log_loss(after[left], truth[left]) <= 1.35 * log_loss(before[left], truth[left])
    assert disputed(after[left]).sum() <= 2 * disputed(before[left]).sum()


def test_four_wrong_ones_among_ten_rejections_hardly_move_the_others():
    """The disputed structures and artefacts that the expert rejects look alike."""
    numbers = []
    for seed in range(2):
        run, truth, before = smears_of(seed)
        order = np.argsort(abs(before - 0.5), kind="stable")
        verdict = np.full(len(truth), -1)
        verdict[order[truth[order]][:4]] = verdict[order[~truth[order]][:6]] = 0
        left = verdict < 0
        after = everything(together(decided(run, verdict)))[left]
        before, truth = before[left], truth[left]
        assert log_loss(after, truth) <= 1.3 * log_loss(before, truth) + 0.005
        assert crossed(truth, before, after) <= 0.01
        numbers.append((disputed(before).sum(), disputed(after).sum()))
    before, after = np.sum(numbers, axis=0)
    assert after <= 1.3 * before


def test_decisions_weigh_as_they_surprise_and_with_their_number():
    few, many = (decision_weight(10, surprise) for surprise in (0.0, 6.0))
    assert few < 0.1
    assert many > 0.9
    assert decision_weight(1, 6.0) < 0.1  # one decision does not explain the whole crowd
    assert decision_weight(200) > 0.95  # many do, whatever they show


@pytest.mark.parametrize("right", [True, False])
def test_decisions_against_a_strong_crowd_are_announced(right):
    clicks = separated_crowd(20, seed=1).clicks
    fusion = fuse(clicks)
    assert decision_notice([fusion]) is None
    certain = np.argsort(-fusion.votes)[:3]
    x, y = fusion.clustering.mean[certain].T
    known = KnownSpots(x, y, np.full(3, right))
    result = fuse(replace(clicks, known=known))
    notice = decision_notice([result])
    assert (notice is None) == right
    assert right or "3 of 3 decisions contradict the votes" in notice
    assert (result.detection.posterior[result.verdict == int(right)] == float(right)).all()


def test_twelve_rejections_with_nothing_left_clear_it_too():
    run = run_of_artefacts(3, 12)
    before = everything(together(run))
    verdict = np.full(len(before), -1)
    verdict[np.argsort(abs(before - 0.5), kind="stable")[:12]] = 0
    viewed = with_views(run, verdict, np.zeros(len(before), dtype=bool))
    after = everything(together(viewed))[verdict < 0]
    assert (after >= 0.5).mean() <= 0.1


def with_views(run, verdict, left):
    """Hold the truth of clusters, and record those that were left without a decision."""
    ends = np.cumsum([votes.marked.shape[1] for votes, _, _ in run])[:-1]
    return [
        (replace(votes, viewed=part), truth, names)
        for (votes, truth, names), part in zip(decided(run, verdict), np.split(left, ends), strict=True)
    ]


def test_views_distinguish_an_expert_who_rejects_only_from_a_run_of_artefacts():
    run, truth, before = smears_of(2)
    order = np.random.default_rng(0).permutation(np.argsort(abs(before - 0.5), kind="stable")[:40])
    rejected = order[~truth[order]][:8]
    verdict = np.full(len(truth), -1)
    verdict[rejected] = 0
    nothing_left = np.zeros(len(truth), dtype=bool)
    structures_left = nothing_left.copy()
    structures_left[order[truth[order]]] = True
    free = verdict < 0
    blunt = everything(together(with_views(run, verdict, nothing_left)))[free]
    fair = everything(together(with_views(run, verdict, structures_left)))[free]
    assert log_loss(fair, truth[free]) <= 1.05 * log_loss(before[free], truth[free])
    assert log_loss(fair, truth[free]) < log_loss(blunt, truth[free])


def test_one_viewed_spot_does_not_undo_what_rejections_in_order_taught():
    """Experts see spots that they do not select: the record of views adds to the order of decisions."""
    run, truth, before = smears_of(2)
    order = np.argsort(abs(before - 0.5), kind="stable")
    verdict = np.full(len(truth), -1)
    verdict[order[~truth[order]][:8]] = 0
    viewed = np.zeros(len(truth), dtype=bool)
    viewed[order[truth[order]][0]] = True
    without = everything(together(decided(run, verdict)))
    recorded = everything(together(with_views(run, verdict, viewed)))
    np.testing.assert_allclose(recorded, without, atol=0.02)


def test_undecided_spots_of_an_expert_who_records_both_are_no_evidence():
    run, truth, before = smears_of(2)
    order = np.argsort(abs(before - 0.5), kind="stable")
    verdict = np.full(len(truth), -1)
    verdict[order[:20]] = truth[order[:20]]
    subset, other = (np.zeros(len(truth), dtype=bool) for _ in range(2))
    subset[order[20:26]] = True
    first, another = (everything(together(with_views(run, verdict, left))) for left in (subset, other))
    np.testing.assert_allclose(first, another, atol=0.03)


@pytest.mark.parametrize("seed", [0, 1])
def test_one_decision_in_five_wrong_does_bounded_harm(seed):
    run, truth, before = smears_of(seed)
    chosen = np.argsort(abs(before - 0.5), kind="stable")[:30]
    verdict = np.full(len(truth), -1)
    verdict[chosen] = truth[chosen]
    wrong = np.random.default_rng(seed).choice(chosen, 6, replace=False)
    verdict[wrong] = 1 - verdict[wrong]
    left = verdict < 0
    after = everything(together(decided(run, verdict)))[left]
    assert log_loss(after, truth[left]) <= 1.1 * log_loss(before[left], truth[left])


def test_posteriors_order_clusters_as_the_votes_do():
    """Certain clusters do not share one posterior that no vote can raise."""
    run, _, posterior = smears_of(3)
    share = np.concatenate([votes.share for votes, _, _ in run])
    assert spearmanr(share, posterior).statistic > 0.85
    assert np.mean(posterior > posterior.max() - 0.001) < 0.2


def artefacts_alone(seed):
    """Clicks of eight annotators on artefacts that draw Beta(1, 3) of them."""
    generator = np.random.default_rng(seed)
    images = []
    for _ in range(2):
        positions, chance = generator.uniform(30, 970, (25, 2)), generator.beta(1, 3, 25)
        position, annotator = np.nonzero(generator.random((25, 8)) < chance[:, None])
        points = positions[position] + generator.normal(0, 3, (len(position), 2))
        images.append(made(points, annotator, 8, extent=(0, 0, 1000, 1000)))
    return images


def fused(images, **texts):
    plan = FusionPlan.make("oem", {"interval_draws": "20", **texts})
    return learn_from_each_other(images, [fuse(image, plan) for image in images], plan)


def test_artefacts_alone_are_announced_and_an_expected_share_resolves_them():
    images = artefacts_alone(seed=0)
    fusions = fused(images)
    assert "may be artefacts" in absence_notice(fusions)
    informed = fused(images, expected_share="0.02")
    assert everything([fusion.detection for fusion in informed]).mean() < 0.2
    likely = fused(images, expected_share="0.98")
    assert everything([fusion.detection for fusion in likely]).mean() > 0.8


def shares_called(run):
    return (everything(together(run)[1:]) >= 0.5).mean()


def held(run, image, control):
    """Name an image of a run as a control."""
    votes, truth, names = run[image]
    verdict = votes.verdict if control else np.zeros_like(votes.verdict)
    return [*run[:image], (replace(votes, control=control, verdict=verdict), truth, names), *run[image + 1 :]]


@pytest.mark.parametrize("seed", [5, 6])
def test_a_negative_control_image_shows_how_many_artefacts_look_like_structures(seed):
    alone = run_of_artefacts(seed)
    assert shares_called(held(alone, 0, control=False)) < 0.7 * shares_called(alone)
    mixed = run_of([(0, 3), *SMEARS], seed)
    truth = np.concatenate([truths for _, truths, _ in mixed[1:]])
    before, after = (everything(together(item)[1:]) for item in (mixed, held(mixed, 0, control=False)))
    assert log_loss(after, truth) <= 1.05 * log_loss(before, truth)


def test_a_positive_control_image_speaks_against_artefacts_alone():
    alone = run_of_artefacts(seed=5)
    assert everything(together(held(alone, 0, control=True))).mean() > everything(together(alone)).mean()


def test_the_surer_the_expected_share_is_the_more_it_weighs():
    images = artefacts_alone(seed=0)
    means = [
        everything(
            [fusion.detection for fusion in fused(images, expected_share="0.3", expected_share_error=error)]
        ).mean()
        for error in ("0.4", "0.15", "0.03")
    ]
    assert means[0] > means[1] > means[2]
    assert means[2] == pytest.approx(0.3, abs=0.1)


def test_nothing_is_announced_where_the_crowd_agrees():
    assert absence_notice([fuse(separated_crowd(20, seed=1).clicks)]) is None
    assert absence_notice([]) is None


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rejections_alone_do_not_teach_that_similar_structures_are_artefacts(seed):
    run, truth, before = smears_of(seed)
    order = np.argsort(abs(before - 0.5), kind="stable")[:24]
    verdict, viewed = np.full(len(truth), -1), np.zeros(len(truth), dtype=bool)
    verdict[order[~truth[order]]] = 0
    viewed[order[truth[order]]] = True
    left = verdict < 0
    after = everything(together(with_views(run, verdict, viewed)))[left]
    assert log_loss(after, truth[left]) <= 1.05 * log_loss(before[left], truth[left])
    assert np.mean(((before[left] >= 0.5) == truth[left]) & ((after >= 0.5) != truth[left])) <= 0.01


@pytest.mark.parametrize("count", [3, 10])
def test_spots_decided_in_no_order_do_not_speak_against_those_left(count):
    change = 0.0
    for seed in range(3):
        run, truth, before = smears_of(seed)
        among = np.flatnonzero(disputed(before))
        chosen = np.random.default_rng([seed, count]).permutation(among)[:count]
        verdict = np.full(len(truth), -1)
        verdict[chosen] = truth[chosen]
        left = verdict < 0
        after = everything(together(decided(run, verdict)))[left]
        change += log_loss(after, truth[left]) / log_loss(before[left], truth[left]) - 1
        assert crossed(truth[left], before[left], after) <= 0.01
    assert change / 3 <= 0.03
