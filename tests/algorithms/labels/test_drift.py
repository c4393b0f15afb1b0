"""Values of a drift: planted changes are found, chance is not, rows are aligned."""

import numpy as np
import pytest
from scipy.special import betaln, logsumexp
from scipy.stats import beta

from raterscope.algorithms.labels import Labels
from raterscope.algorithms.labels.drift import (
    accuracy_trend,
    align_rows,
    change_points,
    confusion_at,
    row_movement,
    row_over_time,
)
from raterscope.algorithms.labels.dynamic import dynibcc
from raterscope.algorithms.labels.ibcc import ibcc


def known_crowd(rates, steps, seed=0, first=()):
    """Annotators whose rates (a list of (K, J, L) by stretch of `steps` votes each) are seen on known tasks.

    Every annotator votes on tasks of its own. The annotators in `first` have no votes.
    """
    rng = np.random.default_rng(seed)
    size, classes, outputs = rates[0].shape
    truth = rng.integers(0, classes, (size, steps * len(rates)))
    label = np.empty_like(truth)
    for number, stretch in enumerate(rates):
        for k in range(size):
            for step in range(number * steps, (number + 1) * steps):
                label[k, step] = rng.choice(outputs, p=stretch[k, truth[k, step]])
    annotator = np.repeat(np.arange(size), truth.shape[1])
    voting = ~np.isin(annotator, first)
    names = [tuple(map(str, range(count))) for count in (truth.size, size, outputs, classes)]
    return Labels(
        np.arange(truth.size)[voting], annotator[voting], label.ravel()[voting], *names,
        meaning=np.where(np.arange(outputs) < classes, np.arange(outputs), -1), known=truth.ravel(),
    )  # fmt: skip


def steady(many, classes=2, outputs=3, accuracy=0.7):
    rates = np.full((many, classes, outputs), (1 - accuracy) / (outputs - 1))
    rates[:, np.arange(classes), np.arange(classes)] = accuracy
    return rates


def test_a_planted_change_is_found_in_its_row_alone():
    before, after = steady(6), steady(6)
    after[:3, 1] = [0.8, 0.1, 0.1]
    labels = known_crowd([before, after], 150)
    fusion = dynibcc(labels)
    for k in range(6):
        changes = change_points(fusion.drift, labels, fusion, k)
        if k >= 3:
            assert changes == ()
            continue
        (first,) = changes
        assert first.true == 1
        assert abs(first.step - 150) < 15
        assert first.size == pytest.approx(0.65, abs=0.15)
        assert first.after == pytest.approx(after[k, 1], abs=0.12)
        assert first.in_words(("a", "b", "c")).startswith(("says a more often, 0.", "says b less often, 0."))


def test_an_episode_has_a_beginning_and_an_end():
    odd = steady(1)
    odd[:, 0] = [0.1, 0.1, 0.8]
    labels = known_crowd([steady(1), odd, steady(1)], 150)
    fusion = dynibcc(labels)
    changes = change_points(fusion.drift, labels, fusion, 0)
    assert [change.true for change in changes] == [0, 0]
    assert [change.step for change in changes] == pytest.approx([150, 300], abs=20)


def test_chance_is_no_change():
    # A Bayes factor of 100 comes about by chance at most once in a hundred rows: here, of 400.
    rng = np.random.default_rng(8)
    rates = rng.dirichlet(np.ones(3), (200, 2))
    labels = known_crowd([rates], 120)
    fusion = dynibcc(labels)
    assert sum(len(change_points(fusion.drift, labels, fusion, k)) for k in range(200)) <= 6


def test_the_evidence_is_the_bayes_factor():
    answers = np.array([0] * 14 + [1, 0] + [1] * 12)
    names = (tuple(map(str, range(len(answers)))), ("k",), ("0", "1"), ("c",))
    labels = Labels(np.arange(len(answers)), np.zeros(len(answers), int), answers, *names, meaning=[0, -1])
    fusion = dynibcc(labels)
    (first,) = change_points(fusion.drift, labels, fusion, 0)

    def marginal(part):
        return betaln(0.5 + (part == 0).sum(), 0.5 + (part == 1).sum()) - betaln(0.5, 0.5)

    positions = range(5, len(answers) - 4)
    factors = [marginal(answers[:n]) + marginal(answers[n:]) - marginal(answers) for n in positions]
    assert first.evidence == pytest.approx(logsumexp(factors) - np.log(len(factors)), rel=1e-9)
    assert first.step == positions[int(np.argmax(factors))]


def test_moved_sorts_annotators_and_trend_distinguishes_learning_from_tiring():
    good, poor = steady(2, accuracy=0.9), steady(2, accuracy=0.5)
    before = np.concatenate([poor, good, steady(2)])
    after = np.concatenate([good, poor, steady(2)])
    labels = known_crowd([before, after], 200, first=[5])
    fusion = dynibcc(labels)
    far = row_movement(fusion.drift, labels, fusion)
    assert far[:4].min() > 0.1 > 0.05 > far[4:].max()
    assert far[5] == 0
    grown = accuracy_trend(fusion.drift, labels, fusion)
    assert grown == pytest.approx([0.4, 0.4, -0.4, -0.4, 0, 0], abs=0.12)
    assert grown[5] == 0


def test_rows_over_time_have_beta_intervals():
    labels = known_crowd([steady(2, accuracy=0.9), steady(2, accuracy=0.2)], 60)
    fusion = dynibcc(labels)
    way = row_over_time(fusion.drift, labels, fusion, 1)
    alpha = fusion.drift.alpha[fusion.drift.steps(1)].astype(float)
    remaining = alpha.sum(axis=2, keepdims=True) - alpha
    assert way.mean.shape == (120, 2, 3)
    np.testing.assert_allclose(way.mean, alpha / (alpha + remaining), rtol=1e-6)
    ends = beta.ppf([[[[0.025]]], [[[0.975]]]], alpha, remaining)
    np.testing.assert_allclose(way.low, np.where(alpha < 1, 0, ends[0]), rtol=1e-5)
    np.testing.assert_allclose(way.high, np.where(remaining < 1, 1, ends[1]), rtol=1e-5)
    right = way.mean[:, 0, 0]
    assert right[0] > 0.65 > 0.5 > right[-1]


def test_intervals_over_time_hold_rates_of_zero():
    labels = known_crowd([np.array([[[0.8, 0.2, 0.0], [0.0, 0.1, 0.9]]])], 300)
    fusion = dynibcc(labels)
    way = row_over_time(fusion.drift, labels, fusion, 0)
    assert (way.low[100:, [0, 1], [2, 0]] == 0).all()
    assert (way.low[100:, [0, 1], [0, 2]] > 0.3).all()


@pytest.mark.parametrize("row", [(0.82, 0.06, 0.12), (0.5, 0.3, 0.2), (0.9, 0.025, 0.025, 0.025, 0.025)])
def test_rates_of_a_steady_annotator_have_no_bias(row):
    # Shares of the filters' pseudo-counts were .64, .92 and .60 for the first output.
    labels = known_crowd([np.array([[row]])], 3000)
    fusion = dynibcc(labels)
    way = row_over_time(fusion.drift, labels, fusion, 0)
    answers = np.bincount(labels.label) / 3000
    np.testing.assert_allclose(way.mean[:, 0].mean(axis=0), answers, atol=0.01)
    np.testing.assert_allclose(fusion.confusion.mean()[0, 0], row, atol=0.1)


def covered(rates, steps, seed):
    """Return the share of true rates within their 95 % intervals, by outputs, and the mean width."""
    labels = known_crowd(rates, steps, seed)
    fusion = dynibcc(labels)
    within, width = [], []
    for k in range(len(rates[0])):
        way = row_over_time(fusion.drift, labels, fusion, k)
        true = np.repeat(np.array(rates)[:, k], steps, axis=0)
        within.append(((way.low <= true) & (true <= way.high)).mean(axis=(0, 1)))
        width.append((way.high - way.low).mean())
    return np.mean(within, axis=0), np.mean(width)


@pytest.mark.parametrize(("seed", "outputs", "even"), [(2, 5, 1.0), (3, 3, 0.3)])
def test_intervals_hold_the_rates_of_steady_annotators(seed, outputs, even):
    rates = np.random.default_rng(seed).dirichlet(np.full(outputs, even), (60, 2))
    within, width = covered([rates], 400, seed)
    assert within.min() > 0.9
    assert width < 0.25


def test_intervals_hold_the_rates_of_those_who_drift():
    rng = np.random.default_rng(5)
    before, after = rng.dirichlet(np.ones(3), (2, 60, 2))
    within, width = covered([before + (after - before) * share for share in np.linspace(0, 1, 80)], 10, 5)
    assert within.min() > 0.85
    assert width < 0.3


def test_intervals_include_the_doubt_about_the_classes():
    rng = np.random.default_rng(6)
    truth, task = rng.integers(0, 2, 600), np.repeat(np.arange(600), 3)
    annotator = rng.random((600, 30)).argsort(axis=1)[:, :3].ravel()
    fell = (annotator < 15) & (task >= 300)
    right = rng.random(len(task)) < np.where(fell, 0.65, 0.85)
    names = [tuple(map(str, range(count))) for count in (600, 30, 2)]
    labels = Labels(task, annotator, np.where(right, truth[task], 1 - truth[task]), *names, names[2])
    fusion = dynibcc(labels)
    within = []
    for k in range(30):
        way = row_over_time(fusion.drift, labels, fusion, k)
        true = np.where(fell, 0.65, 0.85)[fusion.drift.vote[fusion.drift.steps(k)], None]
        diagonal = [0, 1], [0, 1]
        within.append(((way.low[:, *diagonal] <= true) & (true <= way.high[:, *diagonal])).mean())
    assert np.mean(within) > 0.93  # 0.88 without


def test_steps_of_several_classes_are_aligned_by_their_votes():
    labels = known_crowd([steady(2)], 50)
    fusion = dynibcc(labels)
    counted = align_rows(fusion.drift, labels, fusion, 1)
    truth = labels.known[labels.task[labels.annotator == 1]]
    np.testing.assert_array_equal(counted, np.cumsum(truth[:, None] == [0, 1], axis=0))


def test_confusion_at_a_moment():
    labels = known_crowd([steady(3), steady(3, accuracy=0.2)], 80, first=[1])
    fusion = dynibcc(labels)
    drift = fusion.drift
    last = confusion_at(fusion, share=1.0)
    np.testing.assert_allclose(last.alpha, fusion.confusion.alpha, rtol=1e-6)
    own = drift.alpha[drift.steps(2)]
    for vote in (0, 30):
        moment = confusion_at(fusion, share=vote / (len(own) - 1))
        np.testing.assert_array_equal(moment.alpha[2], own[vote])
    np.testing.assert_array_equal(last.alpha[1], last.prior)
    with pytest.raises(ValueError, match="no drift"):
        confusion_at(ibcc(labels), share=0.5)


@pytest.mark.parametrize("votes", [0, 1, 2, 12])
def test_few_votes_show_no_drift(votes):
    names = (("a", "b"), ("k", "silent"), ("0", "1", "2"), ("x", "y"))
    labels = Labels([0] * votes, [0] * votes, [2] * votes, *names, meaning=[0, 1, -1])
    fusion = dynibcc(labels)
    for k in (0, 1):
        assert change_points(fusion.drift, labels, fusion, k) == ()
        assert row_over_time(fusion.drift, labels, fusion, k).low.shape == (0 if k else votes, 2, 3)
        assert align_rows(fusion.drift, labels, fusion, k).shape == (0 if k else votes, 2)
    assert (row_movement(fusion.drift, labels, fusion) == 0).all()
    assert np.abs(accuracy_trend(fusion.drift, labels, fusion)).max() < 1e-12
    assert np.isfinite(confusion_at(fusion, share=0.5).alpha).all()


@pytest.mark.parametrize(
    ("name", "least"), [("jump_J3", 1.0), ("drift_J3", 0.85), ("jump_J2", 1.0), ("static_J3", None)]
)
def test_crowds_that_drift(real_data, name, least):
    with np.load(real_data / "labels" / "synth" / f"{name}_seed7.npz", allow_pickle=False) as file:
        classes = int(name[-1])
        names = [
            tuple(map(str, range(count)))
            for count in (len(file["truth"]), int(file["worker"].max()) + 1, classes, classes)
        ]
        known = file["known20"].astype(np.int16) if classes == 2 else None
        labels = Labels(file["task"], file["worker"], file["label"], *names, known=known)
        rates = file["pi_true"]
    fusion = dynibcc(labels)
    true = rates[fusion.drift.vote]
    planted, away = [], []
    for k in range(len(labels.annotators)):
        own = true[fusion.drift.steps(k)]
        changes = change_points(fusion.drift, labels, fusion, k)
        if np.ptp(own, axis=0).max() < 0.01:
            assert changes == ()
            continue
        planted += [any(change.true == j for change in changes) for j in range(classes)]
        jump = int(np.abs(np.diff(own, axis=0)).sum(axis=(1, 2)).argmax()) + 1
        away += [abs(change.step - jump) for change in changes]
    if least is None:
        assert not planted
        return
    assert np.mean(planted) >= least
    if name.startswith("jump"):
        assert np.median(away) < 10
