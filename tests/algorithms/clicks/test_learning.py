"""Images of one run: each is judged with the crowd's rates on the others."""

from __future__ import annotations

import functools
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from raterscope.algorithms.clicks import Clicks, FusionPlan, Votes, _explanations, fuse, learn_from_each_other
from raterscope.algorithms.clicks._explanations import RARE, Explanation, likely
from raterscope.algorithms.clicks.dem import DEMSettings, dem
from raterscope.algorithms.clicks.image_priors import can_share, judge_each, weigh_together
from raterscope.algorithms.evaluation import calibration
from raterscope.algorithms.progress import Cancelled, part, silent

QUICK = DEMSettings(interval_draws=20)
SEVERAL = [(20, 8), (12, 6), (25, 10), (0, 8), (16, 7), (9, 9)]
"""Structures and artefacts on each image; the fourth holds artefacts alone."""
HEALTHY = 3


def run_of(counts, seed, annotators=30, looked=20):
    """Votes of one crowd on several images, the truth of each cluster, and who looked at each."""
    generator = np.random.default_rng(seed)
    ability, lure = generator.normal(0.3, 0.8, annotators), generator.normal(-1.4, 0.8, annotators)
    run = []
    for structures, artefacts in counts:
        annotator = np.sort(generator.choice(annotators, looked, replace=False))
        odds = np.hstack(
            [
                ability[annotator, None] + generator.normal(0, 0.7, structures),
                lure[annotator, None] + generator.normal(0, 0.5, artefacts),
            ]
        )
        marked = generator.random(odds.shape) < 1 / (1 + np.exp(-odds))
        truth = np.repeat([True, False], [structures, artefacts])
        kept = marked.sum(axis=0) >= 2
        marked = marked[:, kept]
        weight, verdict = marked.sum(axis=0) / max(marked.sum(), 1), np.full(kept.sum(), -1, dtype=np.int8)
        votes = Votes(marked, weight, verdict, np.full(looked, 0.002), 1000.0)
        run.append((votes, truth[kept], [f"w{number}" for number in annotator]))
    return run


def credulous_run(seed, annotators=12, credulous=5):
    """Votes as from `run_of`, of a crowd in which some also mark nearly all artefacts."""
    generator = np.random.default_rng(seed)
    lured = np.where(np.arange(annotators) < credulous, 0.9, 0.15)[:, None]
    run = []
    for _ in range(8):
        truth = np.repeat([True, False], generator.poisson([12, 12]))
        marked = generator.random((annotators, len(truth))) < np.where(truth, 0.8, lured)
        kept = marked.sum(axis=0) >= 2
        marked, verdict = marked[:, kept], np.full(kept.sum(), -1, dtype=np.int8)
        votes = Votes(marked, marked.sum(axis=0) / marked.sum(), verdict, np.full(annotators, 0.002), 1000.0)
        run.append((votes, truth[kept], [f"w{number}" for number in range(annotators)]))
    return run


judge_alone = functools.cache(dem)  # tests judge the same images with different decisions on others


def alone(run, settings=QUICK):
    return [judge_alone(votes, settings) for votes, _, _ in run]


def together(run, settings=QUICK, watch=silent):
    votes, _, names = zip(*run, strict=True)
    first = [detection.posterior for detection in alone(run, settings)]
    evidence = weigh_together(votes, names, first, settings, part(watch, 0.0, 0.85))
    return judge_each(evidence, settings, part(watch, 0.85, 1.0))


@functools.cache
def several(seed):
    """Return a run of several images, and what is detected on them together."""
    run = run_of(SEVERAL, seed)
    return run, together(run)


def share_right(run, detections):
    truth = np.concatenate([truth for _, truth, _ in run])
    return np.mean(np.concatenate([detection.detected for detection in detections]) == truth)


def judged(run, image, verdicts):
    """Hold the truth of clusters of an image."""
    votes, truth, names = run[image]
    fixed = list(run)
    fixed[image] = (replace(votes, verdict=np.asarray(verdicts, dtype=np.int8)), truth, names)
    return fixed


def test_an_image_of_artefacts_alone_is_recognised_by_the_others():
    before, after = [], []
    for seed in range(5):
        run, detections = several(seed)
        before.append(alone(run)[HEALTHY].detected.mean())
        after.append(detections[HEALTHY].detected.mean())
    assert np.mean(before) > 0.8  # nothing in the image itself speaks against it
    assert np.mean(after) < 0.1


def test_more_is_right():
    runs = [several(seed) for seed in range(4)]
    before = np.mean([share_right(run, alone(run)) for run, _ in runs])
    assert np.mean([share_right(*run) for run in runs]) > before + 0.05


def test_a_few_structures_are_found_among_artefacts_of_most_images():
    """There the images by themselves agree on what is wrong."""
    few = [(number % 4 * 2, 8) for number in range(16)]
    runs = [run_of(few, seed) for seed in range(2)]
    assert np.mean([share_right(run, alone(run)) for run in runs]) < 0.5
    assert np.mean([share_right(run, together(run)) for run in runs]) > 0.8


def test_annotators_who_mark_everything_do_not_make_artefacts_structures():
    runs = [credulous_run(seed) for seed in range(4)]
    assert max(share_right(run, alone(run)) for run in runs) < 0.5
    assert min(share_right(run, together(run)) for run in runs) > 0.9


@pytest.mark.parametrize(
    ("better", "least", "most"), [([1.0] * 8, 0.0, 0.001), ([22.0] + [-2.0] * 7, 0.2, 0.8)]
)
def test_intervals_cover_an_explanation_that_most_images_favour(better, least, most):
    """In total the first explains the votes better by 8 in both cases."""
    fits = [Explanation(0, np.array(better), None, None), Explanation(1, np.zeros(8), None, None)]
    kept, _, weights = likely(fits)
    assert kept[0] is fits[0]
    assert least <= weights[1:].sum() <= most


def test_starts_that_lead_to_the_same_explanation_count_once():
    run = run_of(SEVERAL, seed=2)
    votes, _, names = zip(*run, strict=True)
    majority = [(image.share >= 0.5).astype(float) for image in votes]  # which is one of the other starts
    evidence = weigh_together(votes, names, majority, QUICK, silent)
    number = len(evidence[0].ascent.explanations)
    looks = [
        np.concatenate([image.ascent.explanations[index][2].looks.present for image in evidence])
        for index in range(number)
    ]
    assert all(np.abs(one - other).max() > 1e-3 for one, other in combinations(looks, 2))


def test_starts_from_a_sample_of_the_images_are_as_good(monkeypatch):
    runs = [run_of(SEVERAL * 8, seed) for seed in range(2)]
    every = [share_right(run, together(run)) for run in runs]
    monkeypatch.setattr(_explanations, "SAMPLE", 12)
    assert [share_right(run, together(run)) for run in runs] == pytest.approx(every, abs=0.02)


def test_copies_of_images_count_once():
    run, detections = several(2)
    for once, twice in zip(detections, together(run * 2), strict=False):
        assert twice.posterior == pytest.approx(once.posterior, abs=RARE)


def test_the_posteriors_are_calibrated():
    posterior, truth = [], []
    for seed in range(5):
        run, detections = several(seed)
        posterior += [detection.posterior for detection in detections]
        truth += [truths for _, truths, _ in run]
    assert calibration(np.concatenate(posterior), np.concatenate(truth)).error < 0.06


def test_structures_survive_where_there_are_no_artefacts():
    runs = [run_of([(20, 0), (5, 0), (12, 0), (30, 0)], seed) for seed in range(4)]
    before = np.mean([share_right(run, alone(run)) for run in runs])
    assert np.mean([share_right(run, together(run)) for run in runs]) > max(before - 0.03, 0.9)


def test_little_is_carried_over_where_images_differ():
    """Two crowds without common annotators, one with high and one with low sensitivity."""
    bright = run_of([(25, 0)] * 3, seed=1)
    generator = np.random.default_rng(2)
    dim = []
    for votes, truth, names in run_of([(40, 0)] * 3, seed=3):
        marked = votes.marked & (generator.random(votes.marked.shape) < 0.5)
        dim.append((replace(votes, marked=marked), truth, [f"other {name}" for name in names]))
    kept = np.concatenate([detection.detected for detection in together(bright + dim)[3:]])
    assert kept.mean() > 0.9


def test_verdicts_on_one_image_teach_the_others():
    for seed in range(4, 7):
        run = run_of([(0, 9), (0, 8), (0, 10)], seed)
        free = together(run)
        rejected = together(judged(run, 0, [0] * run[0][0].marked.shape[1]))
        assert rejected[0].detected.sum() == 0
        for image in (1, 2):
            assert rejected[image].posterior.mean() < free[image].posterior.mean() - 0.02


def test_the_order_of_images_changes_nothing():
    run, first = several(0)
    order = [4, 2, 0, 5, 3, 1]
    second = together([run[i] for i in order])
    for row, i in enumerate(order):
        for name in ("posterior", "posterior_low", "posterior_high", "sensitivity", "true_positive"):
            assert np.array_equal(getattr(first[i], name), getattr(second[row], name))


@pytest.mark.parametrize("strength", [0.0, 5.0])
def test_twins_of_images_and_strangers_give_no_number_that_is_none(strength):
    settings = replace(QUICK, sensitivity_strength=strength)
    run = run_of([(10, 3), (0, 4)], seed=2)
    strangers = [(votes, truth, [f"{name} of {i}" for name in names])
                 for i, (votes, truth, names) in enumerate(run)]  # fmt: skip
    for detection in together(run + run + strangers, settings):
        for values in (
            detection.posterior,
            detection.posterior_low,
            detection.posterior_high,
            detection.sensitivity,
            detection.objective,
        ):
            assert np.isfinite(values).all()
        assert (detection.posterior_low <= detection.posterior).all()
        assert (detection.posterior <= detection.posterior_high).all()


def test_progress_never_falls_and_cancelling_stops_it():
    run = run_of(SEVERAL, seed=0)
    fractions = []
    together(run, watch=lambda fraction, *_, **__: fractions.append(fraction))
    assert (np.diff(fractions) >= -1e-12).all()
    assert fractions[-1] == pytest.approx(1)

    def stop(*_, **__):
        raise Cancelled

    with pytest.raises(Cancelled):
        together(run, watch=stop)


def test_who_can_learn():
    votes = run_of([(5, 2)], seed=0)[0][0]
    assert can_share(votes, QUICK)
    assert not can_share(votes, replace(QUICK, learn_across_images=False))
    assert not can_share(votes, replace(QUICK, prior="beta"))
    assert not can_share(replace(votes, stray=None), QUICK)
    empty = Votes(np.zeros((3, 0), dtype=bool), np.empty(0), np.empty(0, dtype=np.int8), np.ones(3), 9.0)
    assert not can_share(empty, QUICK)


def clicks_of(seed, annotators=12, extent=400.0):
    """Clicks on five objects by a crowd that also strays."""
    generator = np.random.default_rng(seed)
    positions, annotator = [], []
    for centre in generator.uniform(40, extent - 40, (5, 2)):
        visible = np.flatnonzero(generator.random(annotators) < 0.7)
        positions.append(centre + generator.normal(0, 2, (len(visible), 2)))
        annotator.append(visible)
    positions.append(generator.uniform(0, extent, (15, 2)))
    annotator.append(generator.integers(0, annotators, 15))
    x, y = np.concatenate(positions).T
    names = tuple(f"w{number}" for number in range(annotators))
    return Clicks(x, y, np.concatenate(annotator), names, (0.0, 0.0, extent, extent))


@pytest.mark.parametrize(
    ("algorithm", "detector", "texts"),
    [
        ("oem", "majority", {}),
        ("oem", "share", {}),
        ("oem", "dem", {"prior": "none"}),
        ("oem", "dem", {"prior": "beta"}),
        ("oem", "dem", {"learn_across_images": "no"}),
        ("cem", "dem", {}),
    ],
)
def test_other_plans_do_not_learn(algorithm, detector, texts):
    plan = FusionPlan.make(algorithm, {"detector": detector, **texts})
    clicks = [clicks_of(seed) for seed in range(2)]
    fusions = [fuse(own, plan) for own in clicks]
    learnt = learn_from_each_other(clicks, fusions, plan)
    assert all(item is other for item, other in zip(learnt, fusions, strict=True))


def test_one_image_has_no_annotator_to_learn_from():
    clicks = clicks_of(0)
    fusion = fuse(clicks)
    assert learn_from_each_other([clicks], [fusion], FusionPlan())[0] is fusion
    assert learn_from_each_other([], [], FusionPlan()) == []


def test_clusters_stay_and_annotators_are_judged_again():
    clicks = [clicks_of(seed) for seed in range(3)]
    fusions = [fuse(own) for own in clicks]
    for before, after in zip(fusions, learn_from_each_other(clicks, fusions, FusionPlan()), strict=True):
        assert after.clustering is before.clustering
        assert after.marked is before.marked
        assert not np.array_equal(after.detection.posterior, before.detection.posterior)
        hits, misses = after.detection.true_positive, after.detection.false_negative
        assert np.argmax(after.rates.sensitivity[:, 0]) == np.argmax(hits / (hits + misses))
