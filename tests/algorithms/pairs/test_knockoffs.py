"""Knockoffs beside their full form, their constructions, and the cuts."""

import numpy as np
import pytest

from raterscope.algorithms.pairs.data import CONSTRUCTIONS, HIGHEST_RATE
from raterscope.algorithms.pairs.knockoffs import (
    choose_gaps,
    make_knockoffs,
    own_noise,
    project_at_random,
    selection_shares,
    sort_draws,
    statistic,
)
from raterscope.algorithms.pairs.paths import gram_matrices, iss, lasso, least_squares, scale_grams
from raterscope.algorithms.pairs.ranking import components
from tests.algorithms.pairs.test_grams import full, read, scattered


def alike(columns: int = 20, correlation: float = 0.6) -> np.ndarray:
    """Return a Gram matrix of columns some of which are alike."""
    generator = np.random.default_rng(0)
    design = generator.normal(size=(40, columns))
    design[:, : columns // 2] += correlation * 2.0 * generator.normal(size=(40, 1))
    design /= np.linalg.norm(design, axis=0)
    return design.T @ design


def test_all_follows_from_the_small_matrices():
    """With Q built in full, columns of knockoffs have the inner products and the entries that are used."""
    pairs = scattered(1, groups=3)
    difference, people = full(pairs)
    remaining = np.eye(len(pairs)) - difference @ np.linalg.pinv(difference)
    small = gram_matrices(pairs)
    problem, _ = scale_grams(small)
    result = least_squares(small, problem)
    gap = choose_gaps(problem.gram, "entropy") * 0.9
    columns = remaining @ people / problem.length
    generator = np.random.default_rng(5)
    free = generator.normal(size=(len(pairs), 12))
    design = np.hstack((difference, people))
    q, _ = np.linalg.qr(free - design @ np.linalg.lstsq(design, free)[0])
    knockoffs = make_knockoffs(problem.pull, result.inverse, gap)
    built = columns - columns @ result.inverse * gap + q @ knockoffs.factor.T
    assert built.T @ built == pytest.approx(problem.gram, abs=1e-10)
    assert columns.T @ built == pytest.approx(problem.gram - np.diag(gap), abs=1e-10)
    assert difference.T @ built == pytest.approx(np.zeros((9, 12)), abs=1e-10)
    random = q.T @ pairs.choice
    pulls = knockoffs.pulls(problem.pull, random[None])
    assert pulls[0] == pytest.approx(np.hstack((columns, built)).T @ pairs.choice, abs=1e-10)
    both = np.hstack((columns, built))
    for way in (iss(), lasso()):
        w = statistic(way.entries(problem.gram, gap, pulls))
        entry = way.follow(both.T @ both, both.T @ pairs.choice).entry
        assert w == pytest.approx(statistic(entry[None]), abs=1e-10)


@pytest.mark.parametrize(
    ("count", "items", "groups"), [(70, 9, 1), (70, 9, 3), (2_000, 9, 3), (2_000, 300, 100)]
)
def test_own_noise_is_that_of_the_nearest_orthonormal_matrix(count, items, groups):
    """With P and Z built in full, Q is the orthogonal factor of PZ, also where PZ is nearly singular."""
    pairs = scattered(3, items=items, count=count, groups=groups)
    design = np.hstack(full(pairs))
    small = gram_matrices(pairs)
    problem, _ = scale_grams(small)
    result = least_squares(small, problem)
    drawn = own_noise(pairs, components(pairs), problem, result, [(0, 0), (0, 1)])
    for k, seed in enumerate([(0, 0), (0, 1)]):
        normal = np.random.default_rng(seed).standard_normal(count)
        z = np.where(pairs.annotator[:, None] == problem.tested, normal[:, None], 0.0)
        z /= np.linalg.norm(z, axis=0)
        left, _, right = np.linalg.svd(z - design @ np.linalg.lstsq(design, z)[0], full_matrices=False)
        assert drawn[k] == pytest.approx((left @ right).T @ pairs.choice, abs=1e-9)


def test_chance_is_that_of_a_random_q():
    """Q'y of many drawn Q, built in full, has the length and spread of points on the sphere."""
    pairs = scattered(2, annotators=4, items=5, count=14)
    design = np.hstack(full(pairs))
    space = np.linalg.svd(design)[0][:, np.linalg.matrix_rank(design) :]
    generator = np.random.default_rng(0)
    observed = np.array(
        [
            np.linalg.qr(space @ generator.normal(size=(space.shape[1], 4)))[0].T @ pairs.choice
            for _ in range(4_000)
        ]
    )
    residual = float(((space.T @ pairs.choice) ** 2).sum())
    drawn = project_at_random(4, residual, space.shape[1], [(0, k) for k in range(4_000)])
    for power in (2, 4):
        assert (drawn**power).mean() == pytest.approx((observed**power).mean(), rel=0.08)
        assert ((drawn**2).sum(axis=1) ** power).mean() == pytest.approx(
            ((observed**2).sum(axis=1) ** power).mean(), rel=0.08
        )
    assert ((drawn**2).sum(axis=1) <= residual * (1 + 1e-12)).all()


def test_too_few_degrees_of_freedom_are_padded_with_noise():
    """On average the lengths are those of noise of the estimated size."""
    drawn = project_at_random(30, 40.0, 10, [(1, k) for k in range(500)])
    assert (drawn**2).mean() == pytest.approx(4.0, rel=0.05)


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_gaps_keep_the_joint_matrix_positive(construction):
    gram = alike()
    gap = choose_gaps(gram, construction)
    assert 0.0 < gap.min() <= gap.max() <= 1.0
    assert np.linalg.eigvalsh(2.0 * gram - np.diag(gap))[0] > -1e-10
    make_knockoffs(np.zeros(20), np.linalg.inv(gram), gap)


def test_gaps_are_the_best_of_their_kind():
    """At the maximum entropy the gradient is 0; the programme's sum is the largest, to a known bound."""
    gram = alike()
    result = {construction: choose_gaps(gram, construction) for construction in CONSTRUCTIONS}
    inverse = np.linalg.inv(2.0 * gram - np.diag(result["entropy"]))
    assert 1.0 / result["entropy"] == pytest.approx(np.diagonal(inverse), rel=1e-6)
    assert result["sdp"].sum() >= max(result["entropy"].sum(), result["equal"].sum())
    # for any M >= 0, by duality, no sum is above 2 tr(M R) + sum (1 - M_jj)+; a barrier tells a good M
    inverse = np.linalg.inv(2.0 * gram - np.diag(result["sdp"]))
    bound = min(
        2.0 * weight * (inverse * gram).sum() + np.maximum(1.0 - weight * np.diagonal(inverse), 0.0).sum()
        for weight in np.logspace(-14, -4, 201)
    )
    assert bound - 1e-3 <= result["sdp"].sum() <= bound


def test_far_columns_have_knockoffs_as_far_as_can_be():
    assert (choose_gaps(alike(correlation=0.0) * 0.3 + 0.7 * np.eye(20), "equal") == 1.0).all()


@pytest.mark.parametrize(
    ("name", "entropy", "sdp"),
    [("worldcollege", 340.0, 340.0), ("lf_quality", 29.0, 29.0), ("music_sigir2010", 71.5423577, 75.3196453)],
)
def test_gaps_of_real_crowds(real_data, name, entropy, sdp):
    """Figures of an independent solver, which stopped a little short of the best."""
    small = gram_matrices(read(real_data, name))
    problem, _ = scale_grams(small)
    assert choose_gaps(problem.gram, "entropy").sum() == pytest.approx(entropy, abs=1e-4)
    assert choose_gaps(problem.gram, "sdp").sum() == pytest.approx(sdp, abs=1e-3)
    smallest = np.linalg.eigvalsh(problem.gram)[0]
    expected = len(problem.pull) * min(1.0, 2.0 * smallest)
    assert choose_gaps(problem.gram, "equal").sum() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "plain", "plus", "selected"),
    [
        ("worldcollege", 1.1971705208466867, 1.1977955544452685, (85, 85)),
        ("lf_quality", 1.1589367567516813, 1.185662882051147, (21, 20)),
        ("music_sigir2010", 0.9776851222874051, 1.0046821458561366, (17, 16)),
    ],
)
def test_real_crowds_are_cut_where_is_known(real_data, name, plain, plus, selected):
    """With sines for chance, as an independent implementation took them."""
    pairs = read(real_data, name)
    small = gram_matrices(pairs)
    problem, _ = scale_grams(small)
    result = least_squares(small, problem)
    gap = choose_gaps(problem.gram)
    knockoffs = make_knockoffs(problem.pull, result.inverse, gap, symmetric=True)
    chance = np.sqrt(2.0 * result.variance) * np.sin(np.arange(1.0, len(gap) + 1.0))
    for way in (iss(), lasso()):
        w = statistic(way.entries(problem.gram, gap, knockoffs.pulls(problem.pull, chance[None]), 0.1))
        cut = [float(sort_draws(w).cuts(0.1, kind)[0]) for kind in (False, True)]
        assert cut == pytest.approx([plain, plus], abs=2e-8)
        assert tuple(int((w >= item).sum()) for item in cut) == selected


def test_the_cut_is_the_smallest_that_keeps_the_rate():
    """By trying every t > 0 of every draw."""
    generator = np.random.default_rng(3)
    w = np.round(generator.normal(0.8, 1.0, (30, 40)), 1)
    for rate in (0.05, 0.1, 0.25):
        for plus in (0, 1):
            expected = [
                min(
                    [
                        t
                        for t in np.unique(np.abs(row[row != 0.0]))
                        if (plus + (row <= -t).sum()) / max((row >= t).sum(), 1) <= rate
                    ],
                    default=np.inf,
                )
                for row in w
            ]
            assert sort_draws(w).cuts(rate, bool(plus)).tolist() == expected


def test_ten_of_ten_are_enough_for_a_rate_of_a_tenth_and_nine_are_not():
    w = np.arange(1.0, 11.0)[None]
    assert sort_draws(w).cuts(0.1)[0] == 1.0
    assert sort_draws(w[:, :9]).cuts(0.1)[0] == np.inf
    assert sort_draws(w[:, :9]).cuts(0.1, plus=False)[0] == 1.0


def test_shares_leave_out_who_was_not_tested_and_grow_with_the_rate():
    generator = np.random.default_rng(1)
    w = generator.normal(0.5, 1.0, (50, 60)).astype(np.float32)
    w[:, 7] = np.nan
    before = np.zeros(60)
    for rate in (0.02, 0.05, 0.1, 0.2, HIGHEST_RATE):
        now = selection_shares(w, rate)
        assert np.flatnonzero(np.isnan(now)).tolist() == [7]
        assert (np.nan_to_num(now) >= before).all()
        before = np.nan_to_num(now)
    assert before.max() > 0.0


def test_no_notice_for_rates_that_were_not_followed():
    with pytest.raises(ValueError, match=r"the rate is 0\.5; expected more than 0, at most 0\.25"):
        sort_draws(np.ones((1, 20))).cuts(0.5)


def test_progress_of_the_programme_never_falls():
    fractions: list[float] = []
    choose_gaps(alike(), "sdp", lambda fraction, words, **_: fractions.append(fraction))
    assert len(fractions) > 20
    assert (np.diff(fractions) >= 0.0).all()
    assert fractions[-1] <= 1.0
