"""Evidence on one annotator, counted again comparison by comparison."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from raterscope.algorithms.pairs import evidence as shown
from raterscope.algorithms.pairs.evidence import evidence, over_time
from raterscope.algorithms.pairs.ranking import scores
from raterscope.algorithms.progress import Cancelled
from raterscope.algorithms.simulation.pair_crowds import WAYS, PairCrowd, simulate_pairs
from tests.algorithms.pairs.test_ranking import compared, real

PLAN = PairCrowd(15, 40, 20, 200, ties=0.1)


@pytest.fixture(scope="module")
def crowd():
    return simulate_pairs(PLAN, 7)


@pytest.fixture(scope="module")
def index(crowd):
    return shown.index_pairs(crowd.pairs, scores(crowd.pairs, crowd.biased).score)


def of_way(crowd, way):
    annotator = np.flatnonzero(crowd.way == WAYS.index(way))
    return int(annotator[np.bincount(crowd.pairs.annotator)[annotator].argmax()])


@pytest.mark.parametrize("annotator", [0, 17, 39])
def test_pairs_that_speak_are_reported_with_what_all_others_stated(crowd, index, annotator):
    pairs, score = crowd.pairs, index.score
    result = evidence(index, annotator)
    informed = {}
    for e in np.flatnonzero(pairs.annotator == annotator).tolist():
        left, right, choice = pairs.left[e], pairs.right[e], pairs.choice[e]
        gap = -choice * (score[left] - score[right])
        if choice == 0 or (gap < 0 and choice == result.side):
            continue
        same = otherwise = tied = 0
        for other in range(len(pairs)):
            between = {pairs.left[other], pairs.right[other]}
            if pairs.annotator[other] != annotator and between == {left, right}:
                answer = pairs.choice[other] * (1 if pairs.left[other] == left else -1)
                same, otherwise = same + (answer == choice), otherwise + (answer == -choice)
                tied += answer == 0
        kind = (
            "against_ranking" if gap < 0 else "evidence_for" if choice == result.side else "evidence_against"
        )
        informed.setdefault(kind, {})[e] = (same, otherwise, tied, pytest.approx(gap))
    for kind in ("evidence_for", "evidence_against", "against_ranking"):
        part = getattr(result, kind)
        rows = zip(part.same, part.otherwise, part.tied, part.gap, strict=True)
        assert dict(zip(part.comparison.tolist(), rows, strict=True)) == informed.get(kind, {})
        assert (np.diff(np.abs(part.gap)) <= 0).all()


def test_counts_and_shares_are_those_of_the_answers(crowd, index):
    pairs, score = crowd.pairs, index.score
    gap = score[pairs.left] - score[pairs.right]
    for annotator in range(PLAN.annotators):
        result = evidence(index, annotator)
        own = pairs.annotator == annotator
        for side, rows in (
            (result.all, own),
            (result.doubtful, own & (np.abs(gap) < index.near)),
            (result.clear, own & (np.abs(gap) >= index.far)),
        ):
            choice = pairs.choice[rows]
            assert (side.left, side.right) == tuple(int((choice == v).sum()) for v in (1, -1))
            if side.left + side.right:
                assert side.expected == pytest.approx((gap[rows][choice != 0] > 0).mean())
                assert side.share == (choice[choice != 0] > 0).mean()
    near = np.abs(gap) < index.near
    far = np.abs(gap) >= index.far
    assert near.mean() == pytest.approx(1 / 3, abs=0.02)
    assert far.mean() == pytest.approx(1 / 3, abs=0.02)


def test_a_bias_when_unsure_shows_in_close_pairs_alone():
    crowd = simulate_pairs(PairCrowd(30, 60, 150, 400), 2)
    index = shown.index_pairs(crowd.pairs, scores(crowd.pairs, crowd.biased).score)
    for way, both in (("one side in doubt", False), ("always one side", True)):
        result = evidence(index, of_way(crowd, way))
        close, far = (result.side * (part.share - part.expected) for part in (result.doubtful, result.clear))
        assert close > 0.3
        assert far > 0.3 if both else far < 0.15
    careful = evidence(index, of_way(crowd, "careful"))
    assert abs(careful.doubtful.share - careful.doubtful.expected) < 0.15


def test_tiring_annotators_show_a_change_and_steady_ones_none():
    crowd = simulate_pairs(PairCrowd(30, 200, 150, 400, shares=(0.5, 0, 0.3, 0, 0.2)), 3)
    index = shown.index_pairs(crowd.pairs, scores(crowd.pairs, crowd.biased).score)
    result = [over_time(index, at) for at in range(200)]
    change = np.array([abs(row.bias[-4:].mean() - row.bias[:4].mean()) for row in result])
    tires = crowd.way == WAYS.index("tires")
    assert np.median(change[tires]) > 3 * np.median(change[~tires])
    for at in np.flatnonzero(tires).tolist():
        side = crowd.side[at]
        assert side * result[at].bias[-4:].mean() > side * result[at].bias[:4].mean()


def test_windows_have_the_means_and_intervals_of_their_comparisons(crowd, index):
    pairs = crowd.pairs
    annotator = of_way(crowd, "careful")
    result = over_time(index, annotator, 5)
    own = np.flatnonzero(pairs.annotator == annotator)
    own = own[np.argsort(pairs.time[own])]
    remaining = pairs.choice[own] - index.score[pairs.left[own]] + index.score[pairs.right[own]]
    windows = [remaining[at * len(own) // 5 : (at + 1) * len(own) // 5] for at in range(5)]
    np.testing.assert_allclose(result.bias, [window.mean() for window in windows])
    pooled = np.sqrt(sum(((w - w.mean()) ** 2).sum() for w in windows) / (len(own) - 5))
    half = stats.t.ppf(0.975, len(own) - 5) * pooled / np.sqrt([len(window) for window in windows])
    np.testing.assert_allclose((result.low, result.high), (result.bias - half, result.bias + half))
    assert result.timed
    assert (np.diff(result.at) > 0).all()


def test_without_times_the_order_is_that_of_the_file(crowd, index):
    untimed = shown.index_pairs(replace(crowd.pairs, time=None), index.score)
    first, other = over_time(index, 5), over_time(untimed, 5)
    assert not other.timed
    np.testing.assert_allclose(first.bias, other.bias)
    assert other.at[0] < other.at[-1] <= len(untimed.of(5))


def test_comparisons_out_of_order_are_put_in_the_order_of_time(crowd, index):
    pairs = crowd.pairs
    mixed = np.random.default_rng(0).permutation(len(pairs))
    fields = ("annotator", "left", "right", "choice", "time")
    moved = replace(pairs, **{name: getattr(pairs, name)[mixed] for name in fields})
    shuffled = shown.index_pairs(moved, index.score)
    for annotator in (0, 11):
        np.testing.assert_array_equal(mixed[shuffled.of(annotator)], index.of(annotator))
        np.testing.assert_allclose(over_time(shuffled, annotator).bias, over_time(index, annotator).bias)


def test_the_comparisons_behind_any_pair_are_found(crowd, index):
    pairs = crowd.pairs
    for item in range(15):
        for other in range(15):
            between = {item, other} if item != other else {-1}
            wanted = [e for e in range(len(pairs)) if {pairs.left[e], pairs.right[e]} == between]
            assert index.between(item, other).tolist() == wanted


def test_an_annotator_without_choices_has_no_evidence():
    pairs = compared([(0, 0, 1, 1)])
    index = shown.index_pairs(pairs, scores(pairs).score)
    result = evidence(index, 2)
    assert (result.side, result.all.left, len(result.evidence_for), len(result.time.bias)) == (0, 0, 0, 0)
    assert np.isnan(evidence(index, 0).time.low).all()


def test_sorting_is_cancelled_while_it_runs(crowd):
    def cancel(fraction, words, **_):
        if fraction > 0.35:
            raise Cancelled

    with pytest.raises(Cancelled):
        shown.index_pairs(crowd.pairs, crowd.score, cancel)


def test_the_colleges_always_left_is_all_left_when_in_doubt_and_when_not(real_data):
    pairs = real(real_data, "worldcollege")
    result = evidence(shown.index_pairs(pairs, scores(pairs).score), pairs.annotators.index("268"))
    assert (result.all.left, result.all.right, result.side) == (148, 0, 1)
    assert result.doubtful.share == result.clear.share == 1.0
    assert len(result.evidence_against) == len(result.against_ranking) == 0


def test_scores_that_are_equal_up_to_rounding_count_half():
    pairs = compared([(0, 0, 1, 1), (0, 0, 2, 1)], annotators=1, items=3)
    score = np.array([0.1 + 0.2, 0.3, -0.6])  # the first is above the second by rounding alone
    assert shown.match_ratio(pairs, score).tolist() == [0.75]
