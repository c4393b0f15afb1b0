"""Wins, intervals of ranks, ties as half votes, and consistency of swapped comparisons."""

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

from raterscope.algorithms.annotators.agreement import pair_consistency
from raterscope.algorithms.pairs import Pairs, wins
from raterscope.algorithms.pairs.catalogue import PairPlan, fuse
from raterscope.algorithms.pairs.ranking import bradley_terry, scores
from raterscope.algorithms.pairs.wins import count_totals, count_wins


def crowd(seed, items=6, people=12, each=40, ties=0.0, biased=0, spread=1.0):
    """Draw comparisons by a logistic model; nearly equal items tie."""
    rng = np.random.default_rng(seed)
    true = np.linspace(-spread, spread, items)
    annotator = np.repeat(np.arange(people), each)
    left = rng.integers(0, items, len(annotator))
    right = (left + rng.integers(1, items, len(left))) % items
    push = np.where(annotator < biased, 3.0, 0.0)
    latent = true[left] - true[right] + push + rng.logistic(size=len(left))
    choice = np.where(np.abs(latent) < ties, 0.0, np.sign(latent))
    names = tuple(f"a{at}" for at in range(people)), tuple(f"i{at}" for at in range(items))
    return Pairs(annotator, left, right, choice, *names), true


def test_wins_losses_and_ties_add_up():
    pairs, _ = crowd(0, ties=0.5)
    wins = count_wins(pairs)
    assert wins.compared().sum() == 2 * len(pairs)
    assert (wins.compared() == wins.compared().T).all()
    won, lost, tied = count_totals(pairs)
    assert won.tolist() == wins.won.sum(axis=1).tolist()
    assert lost.tolist() == wins.won.sum(axis=0).tolist()
    assert tied.tolist() == wins.ties.sum(axis=1).tolist()
    share = wins.share()
    np.testing.assert_allclose((share + share.T)[~np.eye(6, dtype=bool)], 1.0)
    low, high = wins.interval(0, 5)
    assert low < share[0, 5] < high


def test_intervals_hold_the_true_ranks_and_shrink_with_data():
    held, width = [], []
    for seed in range(60):
        pairs, true = crowd(seed, ties=0.6, spread=0.6)
        result = scores(pairs)
        rank = len(true) - np.argsort(np.argsort(true))
        held.append((result.rank_low <= rank) & (rank <= result.rank_high))
        width.append(result.rank_high - result.rank_low)
    assert np.mean(held) >= 0.95
    many, _ = crowd(0, each=4000, spread=0.6)
    assert (scores(many).rank_high - scores(many).rank_low).mean() < 0.5 * np.mean(width)


def test_intervals_of_items_that_nearly_tie_hold_every_rank_and_those_of_others_are_short():
    held, width = [], []
    for seed in range(40):
        for spread in (0.02, 1.0):
            pairs, true = crowd(seed, items=8, people=10, each=60, ties=0.3, spread=spread)
            result = scores(pairs)
            rank = len(true) - np.argsort(np.argsort(true))
            held.append((result.rank_low <= rank) & (rank <= result.rank_high))
        width.append((result.rank_high - result.rank_low).mean())
    assert np.mean(held, axis=0).min() >= 0.93  # of each item, over 80 crowds
    assert np.mean(width) < 2.0  # 2.5 with Bonferroni's two-sided tests


def test_items_of_other_components_and_lonely_items_have_intervals_of_their_own():
    pairs = Pairs(
        [0] * 8, [0, 1, 0, 2, 3, 2, 3, 2], [1, 0, 1, 3, 2, 3, 2, 3], [1.0, -1, 1, 1, -1, 1, 1, 1],
        ("a",), ("p", "q", "r", "s", "never"),
    )  # fmt: skip
    result = scores(pairs)
    assert result.rank_low[4] == result.rank_high[4] == 0
    assert set(result.rank_high[:4].tolist()) <= {1, 2}


def test_half_votes_rank_as_davidsons_likelihood_does():
    pairs, _ = crowd(3, ties=0.8, each=200)

    def unlikelihood(theta):
        strength = np.exp(theta[:-1] - theta[:-1].mean())
        a, b = strength[pairs.left], strength[pairs.right]
        tie = np.exp(theta[-1]) * np.sqrt(a * b)
        chosen = np.where(pairs.choice > 0, a, np.where(pairs.choice < 0, b, tie))
        return -np.log(chosen / (a + b + tie)).sum()

    davidson = minimize(unlikelihood, np.zeros(7), method="BFGS").x[:-1]
    assert np.argsort(davidson).tolist() == np.argsort(bradley_terry(pairs)).tolist()
    assert np.argsort(davidson).tolist() == np.argsort(scores(pairs).score).tolist()


def test_ties_keep_the_rate_of_false_flags():
    shares = []
    for seed in range(12):
        pairs, _ = crowd(seed, people=30, each=120, items=8, ties=0.8, biased=4)
        flagged = fuse(pairs, PairPlan()).flagged
        assert flagged[:4].all()
        shares.append(flagged[4:].sum() / max(flagged.sum(), 1))
    assert np.mean(shares) <= 0.1


def test_only_comparisons_on_the_same_task_are_swapped_ones():
    who, left, right = [0] * 4, [0, 1, 0, 1], [1, 0, 1, 0]
    choice, task = [1.0, -1.0, 1.0, 1.0], [0, 0, 1, 2]
    together = pair_consistency(who, left, right, choice, ("kim",))[1]
    assert together.swapped_repeats == 3
    by_task = pair_consistency(who, left, right, choice, ("kim",), task)[1]
    assert (by_task.swapped_repeats, by_task.swapped.value) == (1, 1.0)


def test_a_table_is_multiplied_as_scipy_does(monkeypatch):
    generator = np.random.default_rng(0)
    table = csr_array(generator.integers(-4, 5, (300, 40)) * (generator.random((300, 40)) < 0.2) * 0.3)
    expected = (table.T @ table).toarray()
    for at_once in (wins._AT_ONCE, 100):
        monkeypatch.setattr(wins, "_AT_ONCE", at_once)
        np.testing.assert_allclose(wins._squares(table), expected, rtol=1e-12, atol=1e-12)
    assert np.abs(expected).max() > 1
