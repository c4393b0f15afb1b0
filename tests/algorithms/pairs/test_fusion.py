"""Fusing comparisons with knockoffs: who is flagged in simulated and real crowds, and notices on odd ones."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.pairs import Pairs, PairsError
from raterscope.algorithms.pairs.catalogue import PATHS, PairPlan, fuse
from raterscope.algorithms.pairs.knockoffs import UNTESTED, selection_shares
from raterscope.algorithms.progress import Cancelled
from raterscope.algorithms.settings import SettingsError
from raterscope.algorithms.simulation.pair_crowds import study_crowd
from tests.algorithms.pairs.test_grams import read, scattered

SHARED_HALF = {
    25, 56, 59, 87, 101, 115, 134, 145, 156, 166, 189, 191, 208, 209, 245, 256, 267, 268, 270, 276, 289, 299,
    320, 321, 323, 338,
}  # fmt: skip
"""Annotators of worldcollege selected by at least half of 50 draws of an independent implementation."""

TABLE_8 = SHARED_HALF | {75, 122, 140, 222, 202, 207, 275, 239, 258, 330}
"""Annotators listed in the position bias paper."""


def plan(algorithm: str = "iss", **texts: str) -> PairPlan:
    """Plan knockoffs as published, of noise that all annotators have in common."""
    return PairPlan.make(algorithm, {"rule": "knockoffs", "local": "no", **texts})


def notices_of(pairs: Pairs, **texts: str) -> str:
    return "\n".join(fuse(pairs, plan(**texts)).notices)


def joined(pairs: Pairs, rows: list[tuple[str, str, str, float]]) -> Pairs:
    """Add comparisons, by names."""
    annotators = tuple(dict.fromkeys((*pairs.annotators, *(row[0] for row in rows))))
    items = tuple(dict.fromkeys((*pairs.items, *(name for row in rows for name in row[1:3]))))
    return Pairs(
        np.append(pairs.annotator, [annotators.index(row[0]) for row in rows]),
        np.append(pairs.left, [items.index(row[1]) for row in rows]),
        np.append(pairs.right, [items.index(row[2]) for row in rows]),
        np.append(pairs.choice, [row[3] for row in rows]),
        annotators,
        items,
    )


def test_knockoffs_of_own_noise_keep_the_rate_where_those_of_common_noise_do_not():
    """In 84 runs of all 16 cells of table 1: at most .099 (standard error .005) beside .127 (.005)."""
    wrong = {"yes": [], "no": []}
    for run in range(10):
        crowd = study_crowd(0.4, 0.6, run)
        for local, rates in wrong.items():
            flagged = fuse(crowd.pairs, plan(seed=str(run), draws="10", local=local)).flagged
            rates.append((flagged & ~crowd.biased).sum() / max(flagged.sum(), 1))
            assert (flagged & crowd.biased).sum() >= 49
    assert np.mean(wrong["yes"]) < 0.115 < np.mean(wrong["no"])


@pytest.mark.parametrize(("p1", "p2"), [(0.1, 0.4), (0.4, 0.7)])
def test_the_simulated_study_finds_the_biased(p1, p2):
    """Of table 1: nearly all 50 are found, a tenth or so of the found wrongly (four runs of hundred)."""
    wrong, right = [], []
    for run in range(4):
        crowd = study_crowd(p1, p2, run)
        flagged = fuse(crowd.pairs, plan(seed=str(run), draws="20")).flagged
        wrong.append((flagged & ~crowd.biased).sum() / max(flagged.sum(), 1))
        right.append((flagged & crowd.biased).sum())
    assert np.mean(right) >= 49.0
    assert np.mean(wrong) <= 0.2


def test_a_crowd_without_bias_is_left_alone():
    """Without bias, knockoff+ flags no annotator; the plain knockoff flags some in half the draws."""
    subset = 0
    for run in range(5):
        crowd = study_crowd(0.3, 0.0, run)
        fusion = fuse(crowd.pairs, plan(draws="20", seed=str(run)))
        assert not fusion.flagged.any()
        w = fusion.statistic
        subset += sum(bool((selection_shares(w[k : k + 1], 0.1, plus=False) > 0).any()) for k in range(20))
    assert 20 <= subset <= 80


@pytest.mark.parametrize("algorithm", PATHS)
def test_the_papers_own_crowd(real_data, algorithm):
    """All 26 that are known, which are of the 36 in the paper's table 8."""
    pairs = read(real_data, "worldcollege")
    fusion = fuse(pairs, plan(algorithm, min_comparisons="1"))
    flagged = {int(pairs.annotators[k]) for k in np.flatnonzero(fusion.flagged)}
    assert flagged <= TABLE_8
    share = dict(zip(map(int, pairs.annotators), selection_shares(fusion.statistic, 0.1), strict=True))
    assert all(0.4 <= share[number] <= 0.6 for number in flagged ^ SHARED_HALF)
    assert len(flagged) == pytest.approx(26, abs=2)
    assert fusion.freedom == 8223
    assert fusion.variance == pytest.approx(0.6906549182, abs=1e-9)


def test_the_same_plan_gives_the_same_bits_and_a_seed_another_draw():
    pairs = scattered(1, annotators=30, count=2_000)
    for local in ("no", "yes"):
        first, two, other = (
            fuse(pairs, plan(draws="3", seed=seed, local=local)).statistic for seed in ("1", "1", "2")
        )
        assert first.tobytes() == two.tobytes()
        assert first.tobytes() != other.tobytes()
    assert fuse(pairs, plan(draws="9", seed="1")).statistic[:3].tobytes() == (
        fuse(pairs, plan(draws="3", seed="1")).statistic.tobytes()
    )


def test_a_tie_is_a_choice_and_a_side_is_not_a_grade():
    """Doubling all grades changes no result; ties pull a bias towards 0."""
    pairs = scattered(2, annotators=30, count=2_000)
    twice = fuse(replace(pairs, choice=2.0 * pairs.choice), plan())
    once = fuse(pairs, plan())
    assert (twice.flagged == once.flagged).all()
    assert twice.bias == pytest.approx(2.0 * once.bias)
    by_side = fuse(pairs, plan(graded="no"))
    assert np.nanmax(np.abs(by_side.corrected)) < np.nanmax(np.abs(once.corrected))
    left = replace(pairs, choice=np.where(pairs.annotator == 0, 1.0, np.sign(pairs.choice)))
    half = np.where((pairs.annotator == 0) & (np.arange(2_000) % 2 == 0), 0.0, left.choice)
    tied = fuse(replace(left, choice=half), plan())
    assert tied.ties[0] > 0
    assert 0.3 < tied.bias[0] / fuse(left, plan()).bias[0] < 0.7


def test_untested_annotators_are_reported_and_still_count():
    pairs = scattered(3, annotators=20, count=1_500)
    few = [("once", "item 0", "item 1", 1.0)] * 4
    alone = [("alone", "one", "other", 1.0)] * 7
    odd = joined(pairs, few + alone)
    odd = replace(odd, annotators=(*odd.annotators, "never"), items=(*odd.items, "unseen"))
    fusion = fuse(odd, plan())
    assert fusion.untested.tolist() == [0] * 20 + [2, 3, 1]
    assert set(UNTESTED) >= set(fusion.untested[20:].tolist())
    assert np.isnan(fusion.statistic[:, 20:]).all()
    assert np.isnan([fusion.bias[20:], fusion.p_value[20:], fusion.entry[20:]]).all()
    assert not fusion.flagged[20:].any()
    notices = "\n".join(fusion.notices)
    assert "Annotator never took no part." in notices
    assert "Annotator once made too few comparisons to be tested (fewer than 5)." in notices
    assert "Annotator alone cannot be tested: no comparisons by others rank" in notices
    assert "Comparisons link the items in 2 groups" in notices
    assert "1 item was never compared and has no score." in notices
    assert np.isnan(fusion.score[-1])
    assert fusion.component[-3:].tolist() == [1, 1, -1]
    assert fusion.score[0] != pytest.approx(fuse(pairs, plan()).score[0], abs=1e-6)


def test_items_always_on_one_side_give_the_reason_for_no_tests():
    pairs = scattered(4, items=8)
    fixed = replace(pairs, left=pairs.left % 4, right=4 + pairs.right % 4)
    fusion = fuse(fixed, plan())
    assert (fusion.untested == 4).all()
    assert not fusion.flagged.any()
    assert "the bias cannot be separated from the scores of the items" in "\n".join(fusion.notices)


def test_perfect_data_flag_no_annotator_and_name_the_one_sided():
    pairs = scattered(5, annotators=20, count=1_500)
    score = np.arange(9.0)
    choice = score[pairs.left] - score[pairs.right]
    fusion = fuse(replace(pairs, choice=np.where(pairs.annotator < 12, choice + 20.0, choice)), plan())
    assert not fusion.flagged.any()
    assert (fusion.statistic == 0.0).all()
    assert fusion.bias[:12] == pytest.approx(np.full(12, 20.0))
    notices = "\n".join(fusion.notices)
    assert "without noise: no bias can be tested, and none is flagged." in notices
    assert "12 annotators (annotator 0, annotator 1" in notices
    assert "and 7 more) chose one side alone." in notices


@pytest.mark.parametrize("seed", [7, 8])
def test_annotators_whose_answers_are_exchanged_are_named_and_those_who_guess_are_not(seed):
    pairs = scattered(seed, annotators=20, count=1_600, items=12)
    generator = np.random.default_rng(seed)
    score = generator.normal(0, 1.5, 12)
    noise = generator.logistic(size=len(pairs))
    choice = np.sign(score[pairs.left] - score[pairs.right] + noise)
    guesses = generator.choice([-1.0, 1.0], len(pairs))
    choice = np.where(pairs.annotator < 2, -choice, np.where(pairs.annotator < 6, guesses, choice))
    notices = notices_of(replace(pairs, choice=choice))
    assert "2 annotators (annotator 0, annotator 1) contradict the ranking: " in notices
    kept = pairs.annotator >= 2
    others = Pairs(
        pairs.annotator[kept],
        pairs.left[kept],
        pairs.right[kept],
        choice[kept],
        pairs.annotators,
        pairs.items,
    )
    assert "contradict" not in notices_of(others)


@pytest.mark.parametrize("seed", range(4))
def test_copies_of_answers_are_named_and_independent_answers_to_one_list_are_not(seed):
    generator = np.random.default_rng(seed)
    one_list = generator.permuted(np.tile(np.arange(10), (80, 1)), axis=1)[:, :2]
    score = generator.normal(0, 0.8, 10)
    left, right = (np.tile(side, 12) for side in one_list.T)
    annotator = np.repeat(np.arange(12), 80)
    choice = np.sign(score[left] - score[right] + generator.logistic(0, 0.7, len(left)))
    names = tuple(f"annotator {number}" for number in range(12))
    items = tuple(f"item {number}" for number in range(10))
    pairs = Pairs(annotator, left, right, choice, names, items)
    assert "same answers" not in notices_of(pairs)
    choice[annotator == 11] = choice[annotator == 3]
    # Two who never err may be independent.
    choice[annotator == 7] = np.sign(score[left] - score[right])[annotator == 7]
    choice[annotator == 8] = choice[annotator == 7]
    notices = notices_of(replace(pairs, choice=choice))
    assert "same answers to the same comparisons: 2 annotators (annotator 3, annotator 11). They" in notices


def test_one_who_always_picks_left_and_no_annotator_else():
    pairs = scattered(6, annotators=1, count=60)
    fusion = fuse(replace(pairs, choice=np.ones(60)), plan())
    assert not fusion.flagged.any()
    assert "Annotator annotator 0 chose one side alone." in fusion.notices


def test_everyone_biased_the_same_way_is_warned_of():
    pairs = scattered(7, annotators=30, count=3_000, biased=30)
    assert "30 of 30 annotators lean to the left, and " in notices_of(pairs)
    assert "the assumption that few are biased does not hold" in notices_of(pairs)
    assert "lean to" not in notices_of(scattered(7, annotators=30, count=3_000, biased=4))


def test_copies_are_reported_since_they_inflate_w():
    pairs = scattered(8, annotators=30, count=2_000)
    pairs = replace(pairs, choice=np.sign(pairs.choice))
    second = np.tile(np.arange(2_000), 4)
    copied = Pairs(
        pairs.annotator[second], pairs.left[second], pairs.right[second], pairs.choice[second],
        pairs.annotators, pairs.items,
    )  # fmt: skip
    assert "repeat a pair, side and answer of the same annotator" in notices_of(copied)
    assert np.nanmax(fuse(copied, plan()).entry) == pytest.approx(2.0 * np.nanmax(fuse(pairs, plan()).entry))
    apart = replace(copied, time=np.arange(8_000.0))
    assert "repeat a pair" not in notices_of(apart)


def test_knockoff_plus_reports_that_it_cannot_flag_a_few():
    pairs = scattered(9, annotators=8, count=800)
    assert (
        "knockoff+ cannot flag fewer than 10 annotators, and only 8 were tested: none can be flagged"
        in notices_of(pairs)
    )
    subset = scattered(9, annotators=40, count=4_000, biased=4)
    assert "fewer than 10 annotators; the t test with Benjamini-Hochberg at that rate finds" in notices_of(
        subset
    )
    assert "knockoff+" not in notices_of(subset, plus="no")


def test_too_few_comparisons():
    with pytest.raises(PairsError, match="there are no comparisons; expected at least one"):
        fuse(Pairs(*np.zeros((3, 0), dtype=int), np.zeros(0), ("a",), ("b", "c")))
    tree = Pairs(np.zeros(3), [0, 1, 2], [1, 2, 3], [1.0, -1.0, 1.0], ("one",), ("a", "b", "c", "d"))
    with pytest.raises(PairsError, match="3 comparisons are too few to estimate the noise: scores"):
        fuse(tree)
    padded = scattered(10, annotators=20, count=40)
    fusion = fuse(padded, plan(min_comparisons="1"))
    assert 0 < fusion.freedom < 20
    assert np.isfinite(fusion.statistic[:, fusion.untested == 0]).all()
    assert "noise of the estimated size is added" in "\n".join(fusion.notices)


def test_what_is_shown_of_the_path_is_in_the_units_of_the_choices():
    pairs = scattered(11, annotators=30, count=2_000)
    for algorithm in PATHS:
        fusion = fuse(pairs, plan(algorithm))
        assert fusion.path.shape == (len(fusion.path_at), 30)
        assert fusion.path[-1] == pytest.approx(fusion.bias, abs=0.01)
        first = fusion.path[np.flatnonzero(fusion.path.any(axis=1))[0]]
        assert np.argmax(fusion.entry) == np.argmax(np.abs(first))
        rising = np.diff(fusion.path_at) > 0.0
        assert (rising if algorithm != "lasso" else ~rising).all()


@pytest.mark.parametrize("algorithm", PATHS)
def test_it_can_be_cancelled_at_any_step(algorithm):
    pairs = scattered(12, annotators=12, count=800)
    calls: list[float] = []
    fuse(pairs, plan(algorithm, draws="3"), lambda fraction, words, **_: calls.append(fraction))
    assert (np.diff(calls) >= -1e-12).all()
    assert calls[-1] == 1.0
    for limit in np.linspace(0.0, 1.0, 4):

        def watch(fraction: float, *_: object, limit=limit, **__: object) -> None:
            if fraction >= limit:
                raise Cancelled

        with pytest.raises(Cancelled):
            fuse(pairs, plan(algorithm, draws="3"), watch)


def test_a_plan_is_stored_read_and_described():
    parsed = plan("lbi", rate="0.2", kappa="50", plus="no")
    assert PairPlan.from_dict(parsed.as_dict()) == parsed
    assert "false discovery rate 0.2" in parsed.in_words()
    assert "linearised Bregman iteration" in parsed.in_words()
    for wrong in ({"rate": "0.6"}, {"draws": "0"}, {"kappa": "50"}):
        with pytest.raises(SettingsError):
            plan("iss", **wrong)
    with pytest.raises(SettingsError, match="no is no path for pairs; expected one of iss, lasso, lbi"):
        plan("no")
    with pytest.raises(SettingsError, match="not those of lbi"):
        PairPlan("lbi", plan().settings)
    with pytest.raises(SettingsError, match="must name its algorithm"):
        PairPlan.from_dict({"algorithm": "iss"})
