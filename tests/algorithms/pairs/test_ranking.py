"""Scores and ranks against dense least squares, known curls, a likelihood's maximum, and real comparisons."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats

from raterscope.algorithms.pairs import Pairs
from raterscope.algorithms.pairs.ranking import (
    bradley_terry,
    components,
    inconsistency,
    link,
    ranks,
    scores,
    scores_of,
)
from raterscope.algorithms.pairs.ranking_agreement import consistency
from raterscope.algorithms.progress import Cancelled
from raterscope.algorithms.simulation.pair_crowds import PairCrowd, simulate_pairs, study_crowd

NAN = float("nan")

ONE_SIDE = (56, 75, 101, 115, 145, 166, 209, 222, 245, 256, 267, 268, 275, 289, 299, 321, 323, 338)
BOTH_SIDES = (25, 59, 87, 122, 134, 140, 156, 189, 191, 202, 207, 208, 239, 258, 270, 276, 320, 330)
"""Annotators in table 8 of the position bias paper: who clicked one side alone, and who both."""

TABLE_8 = [str(number) for number in ONE_SIDE + BOTH_SIDES]


def compared(rows, annotators=3, items=4):
    """Make comparisons of (annotator, left, right, choice)."""
    table = np.array(rows, dtype=float).reshape(-1, 4)
    return Pairs(
        *(table[:, at].astype(np.int32) for at in range(3)), table[:, 3],
        tuple(f"a{at}" for at in range(annotators)), tuple(f"i{at}" for at in range(items)),
    )  # fmt: skip


def real(folder: Path, name: str) -> Pairs:
    with (folder / "pairs" / f"{name}.csv").open(encoding="latin-1", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["choice"]]
    people = dict.fromkeys(row["annotator"] for row in rows)
    things = dict.fromkeys(name for row in rows for name in (row["left"], row["right"]))
    person, thing = ({name: at for at, name in enumerate(names)} for names in (people, things))
    side = {"left": 1.0, "right": -1.0, "tie": 0.0}
    return Pairs(
        np.array([person[row["annotator"]] for row in rows]),
        np.array([thing[row["left"]] for row in rows]),
        np.array([thing[row["right"]] for row in rows]),
        np.array([side[row["choice"]] for row in rows]),
        tuple(person),
        tuple(thing),
    )


def dense_preferences(pairs, residual, freedom):
    """Estimate the variances of noise and preferences from whole matrices, and that of the scores."""
    design = np.zeros((len(pairs), len(pairs.items)))
    rows = np.arange(len(pairs))
    design[rows, pairs.left], design[rows, pairs.right] = 1, -1
    to_score = np.linalg.pinv(design)
    away = np.eye(len(pairs)) - design @ to_score
    alike = np.where(pairs.annotator[:, None] == pairs.annotator, design @ design.T, 0.0)
    crossed = np.trace(away @ alike)
    expected = np.array([[freedom, crossed], [crossed, np.trace(away @ alike @ away @ alike)]])
    noise, taste = np.linalg.solve(expected, [residual @ residual, residual @ alike @ residual])
    if taste < 0:
        noise, taste = residual @ residual / freedom, 0.0
    return noise, taste, np.diagonal(to_score @ alike @ to_score.T)


def dense(pairs, biased):
    """Solve the model by the whole design matrix: scores, biases, their covariance, residual and freedom."""
    rows = np.arange(len(pairs))
    design = np.zeros((len(pairs), len(pairs.items) + len(pairs.annotators)))
    design[rows, pairs.left] = 1
    design[rows, pairs.right] = -1
    design[rows, len(pairs.items) + pairs.annotator] = np.asarray(biased, dtype=float)[pairs.annotator]
    inverse = np.linalg.pinv(design.T @ design)
    result = inverse @ design.T @ pairs.choice
    remaining = pairs.choice - design @ result
    freedom = len(pairs) - np.linalg.matrix_rank(design)
    count = len(pairs.items)
    return result[:count], result[count:], inverse, remaining, freedom


@pytest.mark.parametrize("plan", [PairCrowd(12, 9, 5, 40), PairCrowd(15, 8, 10, 60, groups=3, bridges=0)])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_scores_biases_and_intervals_are_those_of_the_whole_design(plan, share):
    pairs = simulate_pairs(plan, 3).pairs
    biased = np.random.default_rng(1).random(plan.annotators) < share
    linked = link(pairs)
    scores_of(linked, ~biased)  # for others before: what all rest on stays as it is
    result = scores_of(linked, biased)
    score, bias, inverse, residuals, freedom = dense(pairs, biased)
    component = components(pairs)
    for group in range(component.max() + 1):
        score[component == group] -= score[component == group].mean()
    assert result.freedom == freedom
    assert result.variance == pytest.approx(residuals @ residuals / freedom, rel=1e-10)
    np.testing.assert_allclose(result.score, score, atol=1e-9)
    np.testing.assert_allclose(result.bias, np.where(biased, bias, NAN), atol=1e-9)
    centre = np.eye(plan.items)
    for group in range(component.max() + 1):
        inside = component == group
        centre -= np.outer(inside, inside) / inside.sum()
    many = plan.items
    spread = np.diagonal(centre @ inverse[:many, :many] @ centre)
    noise, taste, by_taste = dense_preferences(pairs, residuals, freedom)
    half = stats.t.ppf(0.975, freedom) * np.sqrt(noise * spread + taste * by_taste)
    np.testing.assert_allclose(result.high - result.score, half, rtol=1e-7)
    np.testing.assert_allclose(result.score - result.low, half, rtol=1e-7)


def test_intervals_cover_the_true_scores_at_the_stated_rate():
    rng = np.random.default_rng(8)
    truth = np.array([1.0, 0.4, 0.0, -0.3, -1.1])
    shift = np.array([0.0, 0.7, 0.0])
    covered = []
    for _ in range(200):
        annotator, left = rng.integers(3, size=90), rng.integers(5, size=90)
        right = (left + rng.integers(1, 5, 90)) % 5
        choice = truth[left] - truth[right] + shift[annotator] + rng.normal(0.0, 0.8, 90)
        pairs = Pairs(annotator, left, right, choice, ("a", "b", "c"), tuple("vwxyz"))
        result = scores(pairs, shift > 0)
        covered += [(result.low <= truth) & (truth <= result.high)]
    assert np.abs(np.mean(covered, axis=0) - 0.95).max() < 0.05


def test_intervals_hold_for_other_annotators_whose_tastes_differ():
    rng = np.random.default_rng(5)
    truth = np.linspace(-1.0, 1.0, 12)
    covered, ranked = [], []
    for _ in range(60):
        annotator, left = np.repeat(np.arange(8), 100), rng.integers(12, size=800)
        right = (left + rng.integers(1, 12, 800)) % 12
        own = truth + rng.normal(0.0, 0.5, (8, 12))
        choice = own[annotator, left] - own[annotator, right] + rng.normal(0.0, 0.8, 800)
        pairs = Pairs(annotator, left, right, choice, tuple("abcdefgh"), tuple("mnopqrstuvwx"))
        result = scores(pairs)
        covered += [(result.low <= truth) & (truth <= result.high)]
        rank = 12 - np.arange(12)
        ranked += [(result.rank_low <= rank) & (rank <= result.rank_high)]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.03)  # 0.72 as if all choices were independent
    assert np.mean(ranked) > 0.95


def test_tastes_of_one_annotator_alone_are_not_known():
    rng = np.random.default_rng(2)
    left = rng.integers(6, size=80)
    right = (left + rng.integers(1, 6, 80)) % 6
    pairs = Pairs(np.zeros(80, int), left, right, rng.normal(size=80), ("a",), tuple("uvwxyz"))
    result = scores(pairs)
    half = stats.t.ppf(0.975, result.freedom) * np.sqrt(result.variance * np.diagonal(link(pairs).inverse[0]))
    np.testing.assert_allclose(result.high - result.score, half, rtol=1e-9)


def test_scores_are_corrected_where_the_biased_saw_items_on_one_side():
    crowd = simulate_pairs(PairCrowd(20, 60, 40, 200, shares=(0.5, 0.5, 0, 0, 0), lopsided=1.0), 4)
    plain, corrected = scores(crowd.pairs), scores(crowd.pairs, crowd.biased)
    assert np.corrcoef(plain.score, crowd.score)[0, 1] < np.corrcoef(corrected.score, crowd.score)[0, 1]
    assert (np.sign(corrected.bias[crowd.biased]) == crowd.side[crowd.biased]).mean() > 0.95


def test_components_are_numbered_by_size_and_lonely_items_have_none():
    pairs = compared([(0, 8, 1, 1), (1, 2, 3, 1), (2, 3, 5, -1), (0, 6, 4, 1)], items=9)
    np.testing.assert_array_equal(components(pairs), [-1, 1, 0, 0, 2, 0, 2, -1, 1])
    result = scores(pairs)
    np.testing.assert_array_equal(np.isnan(result.score), components(pairs) < 0)


def test_ranks_are_within_components_and_equal_scores_share_one():
    score = np.array([0.3, 2.0, 0.3 + 1e-13, -1.0, 5.0, NAN, 4.0])
    component = np.array([0, 0, 0, 0, 1, -1, 1], dtype=np.int32)
    np.testing.assert_array_equal(ranks(score, component), [2, 1, 2, 4, 1, 0, 2])


def test_too_few_comparisons_give_scores_without_intervals():
    result = scores(compared([(0, 0, 1, 1), (1, 1, 2, 1)]), np.array([False, True, False]))
    np.testing.assert_allclose(result.score[:2] - result.score[1:3], [1.0, 1.0])
    assert np.isnan(result.low).all()
    assert np.isnan(result.bias).all()
    empty = scores(compared([]))
    assert np.isnan(empty.score).all()
    assert (empty.freedom, inconsistency(compared([]), components(compared([])))) == (0, 0.0)


def test_a_bias_that_no_comparison_shows_from_a_score_is_left_open():
    rows = [(0, 0, 1, 1), (0, 1, 0, -1), (1, 0, 1, 1), (1, 1, 0, 1), (2, 3, 2, 1), (2, 3, 2, 0)]
    pairs, biased = compared(rows), np.array([False, True, True])
    result = scores(pairs, biased)
    *_, residual, freedom = dense(pairs, biased)
    assert result.freedom == freedom
    assert result.variance == pytest.approx(residual @ residual / freedom)
    assert np.isfinite(result.bias[1])
    assert np.isnan(result.bias[2])
    np.testing.assert_array_equal(np.isnan(result.low), [False, False, True, True])


def test_perfect_choices_are_explained_wholly():
    rng = np.random.default_rng(0)
    left = rng.integers(6, size=80)
    right = (left + rng.integers(1, 6, 80)) % 6
    truth = np.array([3.0, 1.5, 1.0, 0.0, -2.0, -4.0])
    pairs = Pairs(left % 3, left, right, truth[left] - truth[right], ("a", "b", "c"), tuple("uvwxyz"))
    result = scores(pairs)
    assert inconsistency(pairs, components(pairs)) == pytest.approx(0.0, abs=1e-20)
    np.testing.assert_array_equal(ranks(result.score, components(pairs)), [1, 2, 3, 4, 5, 6])


def split(pairs):
    component = components(pairs)
    return consistency(pairs, component, scores(pairs).score)


def test_a_circle_of_three_is_all_curl():
    result = split(compared([(0, 0, 1, 1), (1, 1, 2, 1), (2, 2, 0, 1)], items=3))
    assert (result.ranking, result.disagreement) == (0.0, 0.0)
    assert (result.cyclic, result.curl) == pytest.approx((1.0, 1.0))
    assert result.harmonic == pytest.approx(0.0, abs=1e-12)


def test_a_circle_of_four_is_all_harmonic():
    result = split(compared([(0, 0, 1, 1), (1, 1, 2, 1), (2, 2, 3, 1), (0, 3, 0, 1)]))
    assert (result.cyclic, result.harmonic) == pytest.approx((1.0, 1.0))
    assert result.curl == 0.0


def test_annotators_who_contradict_each_other_are_no_circle():
    result = split(compared([(0, 0, 1, 1), (1, 0, 1, -1), (2, 2, 3, 1)]))
    assert result.disagreement == pytest.approx(2 / 3)
    assert result.cyclic == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(result.component, [1.0, 0.0], atol=1e-12)


def test_the_shares_add_up_and_curl_is_the_projection_on_triangles():
    pairs = simulate_pairs(PairCrowd(14, 6, 5, 12), 2).pairs
    result = split(pairs)
    assert result.ranking + result.disagreement + result.cyclic == pytest.approx(1.0)
    assert result.disagreement + result.cyclic == pytest.approx(inconsistency(pairs, components(pairs)))
    score = scores(pairs).score
    low, high = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
    edge, inverse, count = np.unique(low * 14 + high, return_inverse=True, return_counts=True)
    signed = np.where(pairs.left < pairs.right, pairs.choice, -pairs.choice)
    remaining = np.bincount(inverse, signed) / count - score[edge // 14] + score[edge % 14]
    number = {code: at for at, code in enumerate(edge.tolist())}
    around = []
    for a in range(14):
        for b in range(a + 1, 14):
            for c in range(b + 1, 14):
                sides = (a * 14 + b, b * 14 + c, a * 14 + c)
                if all(side in number for side in sides):
                    column = np.zeros(len(edge))
                    column[[number[side] for side in sides]] = (1, 1, -1)
                    around.append(column / np.sqrt(count))
    flow = np.sqrt(count) * remaining
    table = np.array(around).T
    part = table @ np.linalg.lstsq(table, flow, rcond=None)[0]
    full = pairs.choice @ pairs.choice
    assert 0.01 < result.curl < result.cyclic
    assert result.curl == pytest.approx(part @ part / full, rel=1e-5)


@pytest.mark.parametrize("plan", [PairCrowd(7, 10, 20, 60, ties=0.2), PairCrowd(4, 3, 3, 4)])
def test_bradley_terry_is_at_the_maximum_of_its_own_likelihood(plan):
    pairs = simulate_pairs(plan, 5).pairs
    many = plan.items
    win = (np.sign(pairs.choice) + 1) / 2

    def loss(score):
        gap = score[pairs.left] - score[pairs.right]
        likelihood = win * np.logaddexp(0, -gap) + (1 - win) * np.logaddexp(0, gap)
        return likelihood.sum() + score @ score / 200

    best = optimize.minimize(loss, np.zeros(many), method="BFGS", options={"gtol": 1e-7}).x
    np.testing.assert_allclose(bradley_terry(pairs), best - best.mean(), atol=2e-5)


def test_bradley_terry_stays_finite_where_one_item_always_wins():
    result = bradley_terry(compared([(0, 0, 1, 1)] * 20 + [(0, 1, 0, -1)], items=3))
    assert np.isfinite(result[:2]).all()
    assert result[0] > result[1]
    assert np.isnan(result[2])


def test_all_methods_find_the_order_of_the_simulated_study():
    crowd = study_crowd(0.1, 0.4)
    everything = components(crowd.pairs)
    true = ranks(crowd.score, everything)
    np.testing.assert_array_equal(ranks(scores(crowd.pairs).score, everything), true)
    np.testing.assert_array_equal(ranks(bradley_terry(crowd.pairs), everything), true)


def test_ranking_is_cancelled_while_it_runs():
    def cancel(fraction, words, **_):
        if fraction > 0.25:
            raise Cancelled

    pairs = simulate_pairs(PairCrowd(), 1).pairs
    with pytest.raises(Cancelled):
        scores(pairs, watch=cancel)
    with pytest.raises(Cancelled):
        bradley_terry(pairs, cancel)


@pytest.mark.parametrize(
    ("name", "groups", "freedom", "variance"),
    [("worldcollege", 1, 8223, 0.6906549182), ("lf_quality", 14, 26215, 0.7103822957),
     ("music_sigir2010", 11, 2619, 0.3525731598)],
)  # fmt: skip
def test_real_comparisons_have_the_freedom_and_noise_of_an_independent_solution(
    real_data, name, groups, freedom, variance
):
    pairs = real(real_data, name)
    result = scores(pairs, np.ones(len(pairs.annotators), dtype=bool))
    assert components(pairs).max() + 1 == groups
    assert result.freedom == freedom
    assert result.variance == pytest.approx(variance, abs=1e-9)


def test_colleges_are_scored_as_by_an_independent_solution(real_data):
    pairs = real(real_data, "worldcollege")
    flagged = np.array([name in TABLE_8 for name in pairs.annotators])
    before, after = scores(pairs), scores(pairs, flagged)
    position = [pairs.items.index(name) for name in "12345"]
    np.testing.assert_allclose(
        before.score[position], [0.831614, 0.842826, 0.668258, 0.694289, 0.848974], atol=1e-6
    )
    np.testing.assert_allclose(
        after.score[position], [0.860986, 0.847029, 0.690824, 0.692310, 0.814712], atol=1e-6
    )
    annotator = [pairs.annotators.index(name) for name in ("56", "75", "101")]
    np.testing.assert_allclose(after.bias[annotator], [1.032251, -1.154504, 1.050143], atol=1e-6)
