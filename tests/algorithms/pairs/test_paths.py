"""Paths keep the conditions that define them, and meet where the mathematics says so."""

import numpy as np
import pytest

from raterscope.algorithms.pairs.knockoffs import choose_gaps, sort_draws, statistic
from raterscope.algorithms.pairs.paths import Path, gram_matrices, iss, lasso, lbi, scale_grams
from raterscope.algorithms.progress import Cancelled
from tests.algorithms.pairs.test_grams import read, scattered

FIRST = {
    "worldcollege": {
        "268": 12.124968, "209": 11.012945, "267": 6.820274, "156": 6.466364, "166": 6.223129,
        "87": 6.06433, "321": 5.894815, "245": 5.697802,
    },
    "lf_quality": {
        "obs_2": 10.684693, "obs_20": 8.630127, "obs_16": 5.43138, "obs_7": 4.760408, "obs_13": 3.888051,
        "obs_6": 3.513856, "obs_24": 3.215084, "obs_18": 3.001158,
    },
    "music_sigir2010": {
        "4": 5.254829, "8": 3.298063, "1": 2.823339, "41": 2.34595, "15": 1.927842, "60": 1.907365,
        "34": 1.750781, "57": 1.492146,
    },
}  # fmt: skip
"""Annotators that enter first without knockoffs, and at which time, by an independent implementation."""


def problem(seed: int, columns: int = 14, rows: int = 20, correlation: float = 1.0):
    """Draw a regression whose columns are so alike that some come in and go again."""
    generator = np.random.default_rng(seed)
    design = generator.normal(size=(rows, columns)) + correlation * generator.normal(size=(rows, 1))
    design /= np.linalg.norm(design, axis=0)
    truth = np.where(np.arange(columns) < 5, generator.normal(size=columns) * 4.0, 0.0)
    return design.T @ design, design.T @ (design @ truth + generator.normal(size=rows) * 0.5)


def joined(gram: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """Return the Gram matrix of columns and knockoffs in full."""
    return np.block([[gram, gram - np.diag(gap)], [gram - np.diag(gap), gram]])


def check_iss(path: Path, gram: np.ndarray, pull: np.ndarray) -> None:
    """Sum p up from place to place, and hold it against the coefficients there (eq. 4).

    Over the time, p is a correlation with what is left; that is what is right to 1e-12 of the largest.
    """
    dual, before, value = np.zeros(len(pull)), 0.0, np.zeros(len(pull))
    for at, after in zip(path.at, path.value, strict=True):
        assert at >= before
        dual += (at - before) * (pull - gram @ value)
        far = 1e-12 * max(1.0, at * np.abs(pull).max())
        assert np.abs(dual).max() <= 1.0 + far
        free = after != 0.0
        assert dual[free] == pytest.approx(np.sign(after[free]), abs=far)
        before, value = at, after
        # no coefficient does better on the side where p is
        slope = pull - gram @ value
        fixed = np.abs(dual) >= 1.0 - far
        assert np.abs(slope[free]).max() <= 1e-12 * np.abs(pull).max() * len(pull)
        assert (slope * np.sign(dual))[fixed & ~free].max(initial=0.0) <= 1e-10


def check_lasso(path: Path, gram: np.ndarray, pull: np.ndarray) -> None:
    """Hold the conditions of eq. 5 at every place, and half way to the next."""
    halves = [(path.at[:-1] + path.at[1:]) / 2, (path.value[:-1] + path.value[1:]) / 2]
    for at, value in zip(
        np.concatenate((path.at, halves[0])), np.concatenate((path.value, halves[1])), strict=True
    ):
        left = pull - gram @ value
        assert np.abs(left).max() <= at + 1e-12 * np.abs(pull).max()
        free = np.abs(value) > 1e-12
        assert left[free] == pytest.approx(at * np.sign(value[free]), abs=1e-12 * np.abs(pull).max())


@pytest.mark.parametrize("seed", range(4))
def test_the_conditions_hold_all_along(seed):
    gram, pull = problem(seed)
    exact = np.linalg.solve(gram, pull)
    for way, check in ((iss(), check_iss), (lasso(), check_lasso)):
        path = way.follow(gram, pull)
        check(path, gram, pull)
        assert path.value[-1] == pytest.approx(exact, abs=1e-10)


def test_columns_leave_again_in_what_is_tried():
    """Else the tests above would not try what is hard."""
    gone = 0
    for seed in range(12):
        gram, pull = problem(seed)
        value = iss().follow(gram, pull).value
        gone += int(((value[:-1] != 0.0) & (value[1:] == 0.0)).sum())
    assert gone > 20


@pytest.mark.parametrize("name", FIRST)
def test_real_crowds_come_in_as_is_known(real_data, name):
    pairs = read(real_data, name)
    small = gram_matrices(pairs)
    regression, _ = scale_grams(small)
    for way, check in ((iss(), check_iss), (lasso(), check_lasso)):
        path = way.follow(regression.gram, regression.pull)
        check(path, regression.gram, regression.pull)
        order = np.argsort(-path.entry)[:8]
        assert [pairs.annotators[k] for k in order] == list(FIRST[name])
        assert path.entry[order] == pytest.approx(list(FIRST[name].values()), abs=1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_columns_with_knockoffs_are_followed_as_the_full_matrix_is(seed):
    gram, pull = problem(seed, columns=8)
    gap = choose_gaps(gram, "entropy")
    random = np.concatenate((pull, pull - gap + np.random.default_rng(seed).normal(size=8)))
    for way in (iss(), lasso()):
        result = way.entries(gram, gap, random[None])[0]
        assert result == pytest.approx(way.follow(joined(gram, gap), random).entry, abs=1e-11)


def crowd(seed: int):
    """Make a regression of annotators, and pulls with knockoffs of three draws."""
    small = gram_matrices(scattered(seed, annotators=60, count=3_000, biased=12))
    regression, _ = scale_grams(small)
    gap = choose_gaps(regression.gram)
    random = np.random.default_rng(seed).normal(size=(3, 60)) * np.sqrt(2.0)
    base = regression.pull - gap * np.linalg.solve(regression.gram, regression.pull)
    return regression, gap, np.hstack((np.tile(regression.pull, (3, 1)), base + random))


@pytest.mark.parametrize("seed", range(2))
def test_stopping_early_never_changes_who_is_selected(seed):
    regression, gap, pulls = crowd(seed)
    for way in (iss(), lasso(), lbi()):
        full, *earlier = (
            statistic(way.entries(regression.gram, gap, pulls, limit)) for limit in (np.inf, 0.1, 0.25)
        )
        for stop, early in zip((0.1, 0.25), earlier, strict=True):
            assert (early == 0.0).sum() > (full == 0.0).sum()
            for rate in np.linspace(0.01, stop, 15):
                for plus in (False, True):
                    selected = [w >= sort_draws(w).cuts(rate, plus)[:, None] for w in (full, early)]
                    assert (selected[0] == selected[1]).all()


def test_entries_of_iss_and_lasso_coincide_until_a_column_leaves():
    """The mean of the ISS coefficients over time is the LASSO solution as long as none has left."""
    regression, gap, pulls = crowd(1)
    exact, shrunk = (way.entries(regression.gram, gap, pulls, 0.3) for way in (iss(), lasso()))
    assert exact == pytest.approx(shrunk, abs=1e-12)


def test_lbi_comes_nearer_to_iss_as_kappa_grows():
    regression, gap, pulls = crowd(2)
    exact = iss().entries(regression.gram, gap, pulls, 0.3)
    is_known = exact > 0.0
    far = [
        np.abs(
            lbi(kappa, 40_000).entries(regression.gram, gap, pulls, 0.3) / np.where(is_known, exact, 1.0) - 1
        )[is_known].max()
        for kappa in (10.0, 100.0, 1000.0)
    ]
    assert far[0] > far[1] > far[2]
    assert far[2] < 0.01


def test_lbi_ends_at_least_squares():
    gram, pull = problem(3, rows=60, correlation=0.0)
    path = lbi(kappa=20.0).follow(gram, pull)
    assert path.value[-1] == pytest.approx(np.linalg.solve(gram, pull), abs=0.02)
    assert (np.diff(path.at) > 0.0).all()


@pytest.mark.parametrize("way", [iss(), lasso(), lbi()])
def test_tied_columns_come_in_together(way):
    gram = np.eye(6) * 0.9 + 0.1
    path = way.follow(gram, np.array([3.0, 3.0, 3.0, -1.0, -1.0, 0.0]))
    assert path.entry[0] == pytest.approx(path.entry[1], rel=1e-12)
    assert path.entry[0] == pytest.approx(path.entry[2], rel=1e-12)
    assert path.entry[0] == pytest.approx(3.0, rel=0.02)
    assert path.entry[3] == pytest.approx(path.entry[4], rel=1e-12)


@pytest.mark.parametrize("way", [iss(), lasso()])
def test_a_column_that_is_there_twice_does_no_harm(way):
    gram, pull = problem(1, columns=5)
    both = np.array([0, 1, 2, 3, 4, 0])
    path = way.follow(gram[np.ix_(both, both)], pull[both])
    single = way.follow(gram, pull)
    assert np.isfinite(path.value).all()
    assert path.value[-1][:5] + np.where(np.arange(5) == 0, path.value[-1][5], 0.0) == pytest.approx(
        single.value[-1], abs=1e-9
    )


@pytest.mark.parametrize("way", [iss(), lasso(), lbi()])
def test_a_path_can_be_cancelled(way):
    def watch(*_: object, **__: object) -> None:
        raise Cancelled

    gram, pull = problem(0)
    with pytest.raises(Cancelled):
        way.follow(gram, pull, watch)
    with pytest.raises(Cancelled):
        way.entries(gram, choose_gaps(gram), np.tile(pull, (2, 2)), watch=watch)
