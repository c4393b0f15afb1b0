"""Agreement of votes, against published tables and properties."""

import numpy as np
import pytest

from raterscope.algorithms.annotators.agreement import fleiss_kappa, krippendorff_alpha
from raterscope.algorithms.annotators.agreement_statistics import vote_agreement
from tests.algorithms.annotators.reader_studies import coverage_of_votes

# Krippendorff, "Computing Krippendorff's alpha-reliability" (2011), table of section E: four observers,
# twelve units, values 1 to 5, 0 for a missing value. Gwet (2014) uses the same ratings.
PUBLISHED = np.array([
    [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
    [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
])  # fmt: skip


def votes_of(ratings):
    annotator, task = np.nonzero(ratings)
    return task, ratings[annotator, task] - 1


@pytest.mark.parametrize(("scale", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_krippendorffs_table(scale, alpha):
    assert vote_agreement(*votes_of(PUBLISHED), 5, scale=scale).krippendorff.value == pytest.approx(
        alpha, abs=5e-4
    )


def test_gwets_table():
    result = vote_agreement(*votes_of(PUBLISHED), 5)
    assert result.percent.value == pytest.approx(0.81818, abs=5e-6)
    assert result.gwet.value == pytest.approx(0.77544, abs=5e-6)
    assert result.fleiss.value == pytest.approx(0.76117, abs=5e-6)
    assert (result.tasks, result.votes) == (11, 40)


def test_other_implementations_agree():
    rng = np.random.default_rng(5)
    ratings = rng.integers(0, 3, (4, 200))
    ratings[1:3] = np.where(rng.random((2, 200)) < 0.7, ratings[0], ratings[1:3])
    annotator, task = np.indices(ratings.shape).reshape(2, -1)
    result = vote_agreement(task, ratings[annotator, task], 3)
    assert result.fleiss.value == pytest.approx(fleiss_kappa(ratings.T), abs=1e-12)
    assert result.krippendorff.value == pytest.approx(krippendorff_alpha(ratings.T), abs=1e-12)


@pytest.mark.parametrize(("scale", "power"), [("linear", 1), ("interval", 2)])
def test_weighted_kappa_is_that_of_all_pairs_of_votes(scale, power):
    ratings = np.random.default_rng(6).integers(0, 5, (3, 40))
    annotator, task = np.indices(ratings.shape).reshape(2, -1)
    result = vote_agreement(task, ratings[annotator, task], 5, scale=scale)

    def alike(first, second):
        return 1 - (np.abs(first - second) / 4) ** power

    pairs = [(0, 1), (0, 2), (1, 2)]
    observed = np.mean([alike(ratings[first], ratings[second]).mean() for first, second in pairs])
    given = ratings.ravel()
    expected = alike(given[:, None], given[None]).mean()
    assert result.percent.value == pytest.approx(observed, abs=1e-12)
    assert result.fleiss.value == pytest.approx((observed - expected) / (1 - expected), abs=1e-12)
    distance = np.abs(given[:, None] - given[None]).astype(float) ** power
    within = np.mean([np.abs(ratings[a] - ratings[b]).astype(float) ** power for a, b in pairs])
    alpha = 1 - within / (distance.sum() / (len(given) * (len(given) - 1)))
    assert result.krippendorff.value == pytest.approx(alpha, abs=1e-12)


def test_intervals_cover_the_agreement_of_the_population():
    rng = np.random.default_rng(7)

    def crowd(tasks):
        truth = rng.integers(0, 3, tasks)
        answer = np.where(rng.random((5, tasks)) < 0.75, truth, rng.integers(0, 3, (5, tasks)))
        return np.tile(np.arange(tasks), 5), answer.ravel()

    truth = vote_agreement(*crowd(50_000), 3)
    covered = []
    for seed in range(30):
        result = vote_agreement(*crowd(100), 3, seed=seed)
        covered.append([
            getattr(result, name).low <= getattr(truth, name).value <= getattr(result, name).high
            for name in ("percent", "fleiss", "gwet", "krippendorff")
        ])  # fmt: skip
    share = np.mean(covered, axis=0)
    assert (share >= 0.88).all(), share


def test_guessing_and_full_agreement():
    rng = np.random.default_rng(2)
    task = np.repeat(np.arange(1500), 4)
    guessed = vote_agreement(task, rng.integers(0, 4, len(task)), 4)
    for name in ("fleiss", "gwet", "krippendorff"):
        assert abs(getattr(guessed, name).value) < 0.02
    alike = vote_agreement(task, task % 4, 4)
    for name in ("percent", "fleiss", "gwet", "krippendorff"):
        assert getattr(alike, name).value == pytest.approx(1)
    near = vote_agreement(task, np.clip(task % 4 + rng.integers(0, 2, len(task)), 0, 3), 4, scale="interval")
    assert near.gwet.value > vote_agreement(task, task % 4, 4).gwet.value - 0.2


def test_what_is_not_defined_is_nan():
    alone = vote_agreement([0, 1, 2], [0, 1, 0], 2)
    assert (alone.tasks, alone.votes) == (0, 0)
    assert np.isnan(alone.fleiss.value)
    one_answer = vote_agreement([0, 0, 1, 1], [0, 0, 0, 0], 2)
    assert one_answer.percent.value == 1
    assert np.isnan(one_answer.krippendorff.value)


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="expected one of nominal"):
        vote_agreement([0], [0], 2, scale="cardinal")
    with pytest.raises(ValueError, match="3 values of 2 answers"):
        vote_agreement([0], [0], 2, scale="interval", values=[1, 2, 3])


def test_intervals_of_few_tasks_hold_the_true_value():
    """The coarse form of `tests.benchmarks.reader_study_coverage`."""
    for name, share in coverage_of_votes(16).items():
        assert share >= 0.8, name
