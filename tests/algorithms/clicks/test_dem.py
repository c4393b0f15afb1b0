"""DEM against the paper's formulas written out, its figures, and what an expert would expect of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from raterscope.algorithms.clicks import FusionPlan, Votes, fuse
from raterscope.algorithms.clicks._structure_share import SLOPE, STEP, SUM, StructureShare
from raterscope.algorithms.clicks._vote_model import Stack, ascend
from raterscope.algorithms.clicks.decision_course import DecisionSettings, admit_annotators, initial_state
from raterscope.algorithms.clicks.dem import DEMSettings, RecursiveSettings, dem, problem_of, recursive
from raterscope.algorithms.evaluation import calibration, evaluate
from raterscope.algorithms.progress import Cancelled, silent
from raterscope.algorithms.simulation.click_crowds import voting_crowd
from tests.algorithms.clicks.crowds import quantius, votes_of_text

PRINTED = DEMSettings(prior="none", start="paper", interval_draws=20)
QUICK = DEMSettings(interval_draws=20)


def simulated_votes(seed, annotators=25, present=40, artefacts=10, stray=0.02, positions=1000):
    """Votes as clustering leaves them: dim and bright structures, artefacts, clicks that met by chance."""
    generator = np.random.default_rng(seed)
    ability = generator.normal(0.6, 1.0, annotators)
    odds = ability[:, None] + generator.normal(0, 1.2, present)
    real = generator.random((annotators, present)) < 1 / (1 + np.exp(-odds))
    drawn = generator.random((annotators, artefacts)) < generator.beta(1, 4, artefacts)
    met = generator.random((annotators, positions)) < stray
    marked = np.hstack([real, drawn, met])
    truth = np.repeat([True, False], [present, artefacts + positions])
    kept = marked.sum(axis=0) >= 3
    rows = ["".join("01"[int(mark)] for mark in row) for row in marked[:, kept]]
    return votes_of_text(rows, stray=np.full(annotators, stray), positions=float(positions)), truth[kept]


def written_out(marked, start, iterations):
    """Equations 25 and 27 to 29, one number at a time."""
    annotators, clusters = marked.shape
    beta = list(start)
    for _ in range(iterations):
        mu = sum(beta) / clusters
        psi = [sum(b * y for b, y in zip(beta, row, strict=True)) / sum(beta) for row in marked]
        eta = [
            sum((1 - b) * (1 - y) for b, y in zip(beta, row, strict=True)) / sum(1 - b for b in beta)
            for row in marked
        ]
        for m in range(clusters):
            present, zero = mu, 1 - mu
            for r in range(annotators):
                present *= psi[r] if marked[r, m] else 1 - psi[r]
                zero *= 1 - eta[r] if marked[r, m] else eta[r]
            beta[m] = present / (present + zero)
    return np.array(beta), np.array(psi), np.array(eta)


@pytest.mark.parametrize("start", ["share", "majority", "weight"])
def test_as_printed_is_the_paper_written_out(start):
    crowd = voting_crowd(7, 30, seed=11)
    marked = crowd.votes.marked
    begin = {
        "share": marked.mean(axis=0),
        "majority": (marked.sum(axis=0) >= 3.5).astype(float),
        "weight": marked.sum(axis=0) / marked.sum(axis=0).max(),
    }[start]
    settings = DEMSettings(
        prior="none", start=start, detection_iterations=6, detection_tolerance=0.0, interval_draws=20
    )
    result = dem(crowd.votes, settings)
    beta, psi, eta = written_out(marked.astype(int), begin, len(result.objective))
    assert result.posterior == pytest.approx(beta, abs=2e-4)
    second = written_out(marked.astype(int), begin, len(result.objective) + 1)
    assert result.sensitivity == pytest.approx(second[1], abs=2e-4)
    assert result.specificity == pytest.approx(second[2], abs=2e-4)
    assert psi == pytest.approx(second[1], abs=0.2)
    assert eta == pytest.approx(second[2], abs=0.2)


def test_a_compiled_m_step_is_that_of_the_equations():
    crowd = voting_crowd(7, 30, seed=11)
    marked = crowd.votes.marked
    problem = problem_of(crowd.votes, DEMSettings(prior="none"))
    stack = Stack.of([problem])
    result = ascend(stack, marked.mean(axis=0), 1, 0.0, silent).image(0)
    beta = result.looks.present
    assert result.state.kinds == pytest.approx([beta.mean(), 0.0, 1 - beta.mean()])  # eq. 27
    assert result.state.chance == pytest.approx(marked @ (1 - beta) / (1 - beta).sum())  # eq. 29


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("prior", ["none", "beta", "crowd"])
def test_the_objective_never_falls(prior, seed):
    votes, _ = simulated_votes(seed)
    for start in ("share", "majority", "weight"):
        result = dem(votes, DEMSettings(prior=prior, start=start, interval_draws=20))
        assert len(result.objective) > 1
        assert (np.diff(result.objective) >= -1e-7 * np.abs(result.objective[1:])).all()


@pytest.mark.parametrize("prior", ["none", "crowd"])
def test_the_best_start_is_kept(prior):
    votes, _ = simulated_votes(3)
    results = {
        start: dem(votes, DEMSettings(prior=prior, start=start, interval_draws=20, detection_tolerance=1e-9))
        for start in ("share", "majority", "weight", "paper", "best")
    }
    ends = {start: result.objective[-1] for start, result in results.items()}
    assert ends["paper"] == max(ends["share"], ends["majority"])
    assert ends["best"] == max(ends.values())
    alone, best = results[max(("share", "majority", "weight"), key=ends.__getitem__)], results["best"]
    assert np.array_equal(alone.objective, best.objective)  # the same bits as from that start alone
    assert np.array_equal(alone.posterior, best.posterior)


def algorithm_2(marked, start, epsilon=1e-6, most=500):
    """Iterate Algorithm 2 line by line with matrices of votes; give posteriors and the values of Q_d."""
    beta, values = start.astype(float), []
    while True:
        mu = beta.mean()  # eqs. 27 to 29
        psi = (marked @ beta / beta.sum()).clip(1e-6, 1 - 1e-6)[:, None]
        eta = ((1 - marked) @ (1 - beta) / (1 - beta).sum()).clip(1e-6, 1 - 1e-6)[:, None]
        present = np.log(mu) + np.where(marked, np.log(psi), np.log(1 - psi)).sum(axis=0)  # eqs. 21, 22
        zero = np.log(1 - mu) + np.where(marked, np.log(1 - eta), np.log(eta)).sum(axis=0)
        beta = 1 / (1 + np.exp(zero - present))  # eq. 25
        values.append((beta * present + (1 - beta) * zero).sum())  # eq. 24
        if len(values) == most or (len(values) > 1 and values[-1] - values[-2] <= epsilon * abs(values[-1])):
            return beta, np.array(values)


def test_the_papers_detection_is_algorithm_2_with_the_better_start_by_q():
    settings = DEMSettings(prior="none", start="paper", objective="expected", interval_draws=20)
    by_likelihood = DEMSettings(prior="none", start="paper", interval_draws=20)
    differ = 0
    for seed in range(12):
        votes = voting_crowd(7, 15, seed, sensitivity=0.65, specificity=0.65).votes
        marked = votes.marked.astype(int)
        starts = marked.mean(axis=0), marked.sum(axis=0) >= 3.5
        if not 0 < starts[1].sum() < len(starts[1]):
            continue
        beta, values = max((algorithm_2(marked, start) for start in starts), key=lambda end: end[1][-1])
        result = dem(votes, settings)
        np.testing.assert_allclose(result.objective, values, rtol=1e-5)
        np.testing.assert_allclose(result.posterior, beta, atol=1e-3)
        differ += not np.allclose(result.posterior, dem(votes, by_likelihood).posterior, atol=0.01)
    assert differ > 0


def test_the_log_likelihood_is_that_of_the_votes():
    votes = votes_of_text(["1101", "1100", "0101", "1001"])
    result = dem(
        votes,
        DEMSettings(
            prior="none", start="share", detection_iterations=1, detection_tolerance=0.0, interval_draws=20
        ),
    )
    share = votes.marked.mean(axis=0)
    mu = share.mean()
    psi = votes.marked @ share / share.sum()
    eta = (~votes.marked) @ (1 - share) / (1 - share).sum()
    present = mu * np.where(votes.marked, psi[:, None], 1 - psi[:, None]).prod(axis=0)
    zero = (1 - mu) * np.where(votes.marked, 1 - eta[:, None], eta[:, None]).prod(axis=0)
    assert result.objective[0] == pytest.approx(np.log(present + zero).sum(), abs=1e-4)


def test_errors_of_the_thesis_set_up():
    """MAP .021, DEM .036 by an independent implementation; with priors better than majority.

    The set-up is that of the thesis, section 3.1, which prints neither errors nor how wide the rates are.
    """
    errors = np.zeros(4)
    for seed in range(100):
        crowd = voting_crowd(11, 20, seed)
        marked, truth = crowd.votes.marked, crowd.present
        sensitivity, specificity = crowd.sensitivity[:, None], crowd.specificity[:, None]
        odds = np.where(
            marked, np.log(sensitivity / (1 - specificity)), np.log((1 - sensitivity) / specificity)
        ).sum(axis=0)
        errors += [
            np.mean((odds > 0) != truth),
            np.mean((2 * marked.sum(axis=0) >= 11) != truth),
            np.mean(dem(crowd.votes, PRINTED).detected != truth),
            np.mean(dem(crowd.votes, QUICK).detected != truth),
        ]
    known, majority, printed, priors = errors / 100
    assert known == pytest.approx(0.021, abs=0.003)
    assert printed == pytest.approx(0.036, abs=0.003)
    assert majority == pytest.approx(0.0343, abs=0.003)  # the binomial's tail: at most 5 of 11 right at .75
    assert priors < majority - 0.002


def test_with_priors_true_objects_survive_where_nearly_all_clusters_are_true():
    """As published it splits them in two and discards the dimmer half."""
    kept = {"none": [], "crowd": []}
    for seed in range(10):
        votes, truth = simulated_votes(seed, present=60, artefacts=1, stray=0.01)
        for prior, shares in kept.items():
            detected = dem(votes, DEMSettings(prior=prior, interval_draws=20)).detected
            shares.append(detected[truth].mean())
    assert np.mean(kept["none"]) < 0.8
    assert np.mean(kept["crowd"]) > 0.95


@pytest.mark.parametrize("stray", [0.01, 0.03])
def test_chance_and_artefacts_are_distinguished_from_structures_better_than_by_any_count_of_votes(stray):
    posterior, truth, share = [], [], []
    for seed in range(20):
        votes, present = simulated_votes(seed, stray=stray)
        posterior.append(dem(votes, QUICK).posterior)
        share.append(votes.marked.mean(axis=0))
        truth.append(present)
    posterior, truth, share = (np.concatenate(parts) for parts in (posterior, truth, share))
    right = np.mean((posterior >= 0.5) == truth)
    assert right > max(np.mean((share >= least) == truth) for least in np.linspace(0, 1, 26))
    assert calibration(posterior, truth).error < 0.06


def test_posteriors_of_the_paper_are_surer_than_they_are_right():
    errors = []
    for prior in ("none", "crowd"):
        parts = [simulated_votes(seed) for seed in range(10)]
        settings = DEMSettings(prior=prior, interval_draws=20)
        posterior = np.concatenate([dem(votes, settings).posterior for votes, _ in parts])
        errors.append(calibration(posterior, np.concatenate([truth for _, truth in parts])).error)
    assert errors[0] > 2 * errors[1]


def test_relabelling_annotators_and_clusters_changes_nothing():
    votes, _ = simulated_votes(1)
    generator = np.random.default_rng(0)
    rows, columns = (generator.permutation(size) for size in votes.marked.shape)
    other = type(votes)(
        votes.marked[rows][:, columns],
        votes.weight[columns],
        votes.verdict[columns],
        votes.stray[rows],
        votes.places,
    )
    first, second = dem(votes), dem(other)
    assert second.posterior == pytest.approx(first.posterior[columns], abs=1e-8)
    assert second.sensitivity == pytest.approx(first.sensitivity[rows], abs=1e-8)
    assert second.specificity == pytest.approx(first.specificity[rows], abs=1e-8)


def test_the_same_input_gives_the_same_bits():
    votes, _ = simulated_votes(2)
    first, second = dem(votes), dem(votes)
    assert np.array_equal(first.posterior, second.posterior)
    assert np.array_equal(first.posterior_low, second.posterior_low)


@pytest.mark.parametrize("prior", ["none", "beta", "crowd"])
@pytest.mark.parametrize("rows", [["000", "000"], ["111", "111"], ["1", "0"], ["1"], ["010", "000", "111"]])
def test_nothing_to_judge_by_is_no_number_that_is_none(prior, rows):
    result = dem(
        votes_of_text(rows, stray=np.full(len(rows), 0.01), positions=50.0), DEMSettings(prior=prior)
    )
    for values in (
        result.posterior,
        result.posterior_low,
        result.posterior_high,
        result.sensitivity,
        result.specificity,
        result.objective,
    ):
        assert np.isfinite(values).all()
    assert ((result.posterior >= 0) & (result.posterior <= 1)).all()


def test_no_clusters_and_no_annotators():
    for shape in ((3, 0), (0, 0)):
        votes = votes_of_text(["", "", ""][: shape[0]] or [""])
        votes = type(votes)(np.zeros(shape, dtype=bool), np.empty(0), np.empty(0, dtype=np.int8))
        result = dem(votes)
        assert result.posterior.shape == result.posterior_low.shape == (0,)
        assert result.sensitivity.shape == (shape[0],)


def test_who_marked_nothing_is_one_who_saw_nothing():
    votes, _ = simulated_votes(4)
    with_quiet = type(votes)(
        np.vstack([votes.marked, np.zeros_like(votes.marked[:1])]),
        votes.weight,
        votes.verdict,
        np.append(votes.stray, 0.02),
        votes.places,
    )
    result = dem(with_quiet)
    assert result.sensitivity[-1] < result.sensitivity[:-1].min()
    assert result.specificity[-1] >= result.specificity[:-1].max()
    assert result.false_negative[-1] == pytest.approx(result.posterior.sum())


def test_known_truths_are_fixed_and_teach():
    crowd = voting_crowd(11, 20, seed=5)
    votes = crowd.votes
    free = dem(votes)
    verdict = np.full(20, -1, dtype=np.int8)
    verdict[:4] = 1 - (free.posterior[:4] >= 0.5)  # the very opposite
    fixed = dem(type(votes)(votes.marked, votes.weight, verdict))
    assert fixed.posterior[:4].tolist() == verdict[:4].tolist()
    assert fixed.posterior_low[:4].tolist() == fixed.posterior_high[:4].tolist() == verdict[:4].tolist()
    assert fixed.detected[:4].tolist() == (verdict[:4] == 1).tolist()
    assert not np.allclose(fixed.sensitivity, free.sensitivity)


def test_truths_make_the_rest_better():
    errors = np.zeros(2)
    for seed in range(20):
        crowd = voting_crowd(5, 30, seed, sensitivity=0.65, specificity=0.65)
        verdict = np.full(30, -1, dtype=np.int8)
        verdict[:20] = crowd.present[:20]
        fixed = type(crowd.votes)(crowd.votes.marked, crowd.votes.weight, verdict)
        for column, votes in enumerate((crowd.votes, fixed)):
            errors[column] += np.mean(dem(votes, QUICK).detected[20:] != crowd.present[20:])
    assert errors[1] < errors[0]


def test_the_prior_keeps_the_direction_when_the_majority_is_adverse():
    """Five of nine say the opposite; the labels do not flip altogether where the experts' truths are held."""
    generator = np.random.default_rng(8)
    truth = generator.random(40) < 0.5
    right = generator.random((9, 40)) < np.array([0.9] * 4 + [0.2] * 5)[:, None]
    marked = np.where(right, truth, ~truth)
    rows = ["".join("01"[int(mark)] for mark in row) for row in marked]
    verdict = np.full(40, -1)
    verdict[:8] = truth[:8]
    result = dem(votes_of_text(rows, verdict))
    assert np.mean(result.detected[8:] == truth[8:]) > 0.9
    assert result.sensitivity[:4].min() > result.sensitivity[4:].max()
    silent_majority = dem(votes_of_text(["1111", "1111", "1110"]))
    assert silent_majority.posterior[:3].min() > 0.5  # all say yes, so yes it is


def test_rejected_look_alikes_lower_the_posteriors_of_the_rest():
    votes, truth = simulated_votes(6, present=60)
    sure = np.flatnonzero(truth & (dem(votes).posterior > 0.9))
    verdict = votes.verdict.copy()
    verdict[sure[:15]] = 0
    fixed = dem(type(votes)(votes.marked, votes.weight, verdict, votes.stray, votes.places))
    assert fixed.posterior[sure[15:]].mean() < dem(votes).posterior[sure[15:]].mean() - 0.1


def test_the_interval_holds_the_posterior_and_narrows_with_what_is_known():
    wide, narrow = [], []
    for seed in range(10):
        small, large = voting_crowd(9, 12, seed), voting_crowd(9, 400, seed)
        for crowd, widths in ((small, wide), (large, narrow)):
            result = dem(crowd.votes)
            assert (result.posterior_low <= result.posterior).all()
            assert (result.posterior_high >= result.posterior).all()
            widths.append(np.mean(result.posterior_high - result.posterior_low))
    assert np.mean(narrow) < 0.5 * np.mean(wide)


def test_the_levels_of_intervals_hardly_depend_on_the_seed():
    """All clusters of a run share the error of the level: a chance extreme would move all intervals."""
    share = StructureShare(np.outer(norm(4.5, 1.4).pdf(SUM), norm(1.5, 0.5).pdf(SLOPE)))
    drawn = [share.draw(np.random.default_rng(seed), 200) for seed in range(20)]
    ends = np.array([np.quantile(level, (0.025, 0.975)) for level, _ in drawn])
    assert np.ptp(ends, axis=0).max() == 0
    assert ends[0] == pytest.approx(norm(4.5, 1.4).ppf([0.025, 0.975]), abs=STEP)
    assert np.mean([slope.mean() for _, slope in drawn]) == pytest.approx(1.5, abs=0.05)


def test_intervals_are_those_of_rates_drawn_from_beta_distributions():
    votes, draws, generator = voting_crowd(7, 30, 2).votes, 10_000, np.random.default_rng(1)
    result = dem(votes, DEMSettings(prior="beta", interval_draws=draws))
    structures, rest = result.posterior.sum(), (1 - result.posterior).sum()

    def rates(marked, total, before, omitted):
        return generator.beta(marked + before, np.maximum(total - marked, 0) + omitted, (draws, 7))

    sensitivity = rates(result.true_positive, structures, 3, 2)
    by_chance = rates(result.false_positive, rest, 2, 3)
    odds = np.log(generator.gamma(structures + 1, size=draws) / generator.gamma(rest + 1, size=draws))
    if_marked, if_not = np.log(sensitivity / by_chance), np.log((1 - sensitivity) / (1 - by_chance))
    drawn = 1 / (1 + np.exp(-odds[:, None] - if_marked @ votes.marked - if_not @ ~votes.marked))
    low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
    away_low = result.posterior_low - np.minimum(low, result.posterior)
    away_high = result.posterior_high - np.maximum(high, result.posterior)
    for away in (away_low, away_high):
        assert np.abs(away).max() < 0.03
        assert abs(away.mean()) < 0.004
    assert np.mean(result.posterior_high - result.posterior_low) > 0.05


def test_expected_votes_add_up():
    votes, _ = simulated_votes(9)
    result = dem(votes)
    assert result.true_positive + result.false_positive == pytest.approx(votes.marked.sum(axis=1))
    assert result.true_positive + result.false_negative == pytest.approx(
        np.full(len(votes.marked), result.posterior.sum())
    )
    total = result.true_positive + result.false_negative + result.true_negative + result.false_positive
    assert total == pytest.approx(np.full(len(votes.marked), votes.marked.shape[1]))


def test_cancelling_stops_it():
    def watch(*_, **__):
        raise Cancelled

    with pytest.raises(Cancelled):
        dem(simulated_votes(0)[0], watch=watch)


def test_progress_never_falls():
    fractions = []
    dem(simulated_votes(0)[0], watch=lambda fraction, *_, **__: fractions.append(fraction))
    assert (np.diff(fractions) >= 0).all()
    assert fractions[-1] == pytest.approx(1)


AS_PRINTED = RecursiveSettings(recursion="printed")


def test_as_printed_it_is_algorithm_5():
    marked = voting_crowd(14, 12, seed=3).votes.marked
    state = admit_annotators(initial_state(0, 12), marked[:10], DecisionSettings(as_published=True))
    for row in marked[10:]:
        state = admit_annotators(state, row[None], DecisionSettings(as_published=True))
    result = recursive(
        votes_of_text(["".join("01"[int(mark)] for mark in row) for row in marked]), AS_PRINTED
    )
    assert result.posterior == pytest.approx(state.posterior, abs=1e-6)
    assert result.sensitivity == pytest.approx(state.sensitivity, abs=1e-6)
    assert result.specificity == pytest.approx(state.specificity, abs=1e-6)


def test_one_pass_decides_as_dem_does():
    """With one iteration an annotator, where DEM makes as many as it takes."""
    right = np.zeros(3)
    for seed in range(10):
        votes, truth = simulated_votes(seed)
        detected = [
            recursive(votes).detected,
            dem(votes, DEMSettings(interval_draws=20)).detected,
            recursive(votes, AS_PRINTED).detected,
        ]
        right += [np.mean(item == truth) for item in detected]
    ours, batch, printed = right / 10
    assert ours == pytest.approx(batch, abs=0.01)
    assert ours > printed + 0.05


def test_the_order_of_the_annotators_hardly_matters():
    votes, _ = simulated_votes(5)
    first = recursive(votes).detected
    generator = np.random.default_rng(0)
    for _ in range(5):
        order = generator.permutation(len(votes.marked))
        other = replace(votes, marked=votes.marked[order], stray=votes.stray[order])
        assert np.mean(recursive(other).detected != first) <= 0.03


def test_known_truths_are_held_from_when_they_are_known():
    votes, _ = simulated_votes(3)
    verdict = votes.verdict.copy()
    verdict[:4] = 1 - recursive(votes).detected[:4]
    fixed = recursive(replace(votes, verdict=verdict))
    assert fixed.posterior[:4].tolist() == verdict[:4].tolist()
    assert fixed.posterior_low[:4].tolist() == fixed.posterior_high[:4].tolist() == verdict[:4].tolist()


@pytest.mark.parametrize("settings", [AS_PRINTED, RecursiveSettings(), RecursiveSettings(first_annotators=1)])
@pytest.mark.parametrize("rows", [["000", "000"], ["111", "111"], ["1", "0"], ["1"], ["010", "000", "111"]])
def test_the_recursive_form_has_no_number_without_anything_to_judge_by(settings, rows):
    result = recursive(votes_of_text(rows, stray=np.full(len(rows), 0.01), positions=50.0), settings)
    for values in (result.posterior, result.posterior_low, result.posterior_high, result.sensitivity):
        assert np.isfinite(values).all()
        assert ((values >= 0) & (values <= 1)).all()


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 2)])
def test_no_annotators_and_no_items(shape):
    votes = Votes(np.zeros(shape, bool), np.zeros(shape[1]), np.full(shape[1], -1, dtype=np.int8))
    result = recursive(votes)
    assert result.posterior.shape == (shape[1],)
    assert result.sensitivity.shape == (shape[0],)
    assert np.isfinite(result.posterior).all()


def test_one_value_of_the_objective_for_each_turn():
    votes, _ = simulated_votes(0, annotators=25)
    assert len(recursive(votes, RecursiveSettings(first_annotators=5)).objective) == 21
    assert len(recursive(votes, RecursiveSettings(first_annotators=100)).objective) == 1


def test_cancelling_stops_the_recursive_form():
    def watch(*_, **__):
        raise Cancelled

    with pytest.raises(Cancelled):
        recursive(simulated_votes(0)[0], watch=watch)


def test_progress_of_the_recursive_form_never_falls():
    fractions = []
    recursive(simulated_votes(0)[0], watch=lambda fraction, *_, **__: fractions.append(fraction))
    assert (np.diff(fractions) >= 0).all()
    assert fractions[-1] == pytest.approx(1)


def test_real_spots_are_found_in_one_pass(real_data):
    plan = FusionPlan.make("oem", {"detector": "recursive"})
    scores = []
    for image in quantius(real_data):
        fusion = fuse(image.clicks, plan)
        scores.append(evaluate(fusion.clustering.mean[fusion.detection.detected], image.truth, 4.0).f_two)
    assert np.mean(scores) >= 0.83
