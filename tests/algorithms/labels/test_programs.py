"""Class probabilities of programs beside a crowd: better where they are good, else without effect."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.labels.data import LabelsError
from raterscope.algorithms.labels.fusion import LabelPlan, run
from raterscope.algorithms.labels.programs import Program, combine
from raterscope.algorithms.simulation.label_crowds import simulate_labels, staging_crowd


@pytest.fixture(scope="module")
def crowd():
    return simulate_labels(staging_crowd(tasks=300, annotators=25), seed=4)


@pytest.fixture(scope="module")
def fusion(crowd):
    labels = crowd.labels
    few = np.zeros(len(labels), dtype=bool)
    few[np.random.default_rng(1).permutation(len(labels))[: 3 * len(labels.tasks)]] = True
    return run(labels.subset(few), LabelPlan())


def probabilities(crowd, clearness, seed=1, sharpness=1.0):
    """A program's probabilities; the true class stands out by some standard deviations of the others."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(len(crowd.truth), len(crowd.labels.classes)))
    logits[np.arange(len(crowd.truth)), crowd.truth] += clearness
    shares = np.exp(sharpness * logits)
    return shares / shares.sum(axis=1, keepdims=True)


def quality(posterior, truth):
    """Accuracy and log loss."""
    chance = np.maximum(posterior[np.arange(len(truth)), truth], 0.01)
    return float((posterior.argmax(axis=1) == truth).mean()), float(-np.log(chance).mean())


@pytest.mark.parametrize(("clearness", "sharpness"), [(1.5, 1.0), (1.5, 4.0), (3.0, 1.0)])
def test_a_good_program_improves_accuracy_and_log_loss_also_if_it_is_overconfident(
    crowd, fusion, clearness, sharpness
):
    program = Program("net", probabilities(crowd, clearness, sharpness=sharpness))
    combined, weights = combine(fusion, [program])
    alone, together = quality(fusion.posterior, crowd.truth), quality(combined.posterior, crowd.truth)
    assert together[0] > alone[0]
    assert together[1] < 0.85 * alone[1]
    assert weights.used
    assert "net" in combined.notices[-1]
    np.testing.assert_allclose(combined.posterior.sum(axis=1), 1)


def test_overconfidence_lowers_the_weight(crowd, fusion):
    _, plain = combine(fusion, [Program("net", probabilities(crowd, 1.5))])
    _, sharp = combine(fusion, [Program("net", probabilities(crowd, 1.5, sharpness=3.0))])
    assert sharp.weight[0] < 0.6 * plain.weight[0]


@pytest.mark.parametrize("seed", range(4))
def test_a_program_without_information_changes_nothing(crowd, fusion, seed):
    combined, weights = combine(fusion, [Program("net", probabilities(crowd, 0.0, seed))])
    assert not weights.used
    np.testing.assert_array_equal(combined.posterior, fusion.posterior)
    assert "does not include the program net" in combined.notices[-1]


def test_a_program_that_is_wrong_on_purpose_is_not_followed(crowd, fusion):
    wrong = 1 - probabilities(crowd, 3.0)
    combined, _ = combine(fusion, [Program("net", wrong / wrong.sum(axis=1, keepdims=True))])
    assert quality(combined.posterior, crowd.truth)[0] >= quality(fusion.posterior, crowd.truth)[0] - 0.01


def test_a_copy_of_a_program_is_not_counted_twice(crowd, fusion):
    program = Program("net", probabilities(crowd, 1.5))
    alone, weight = combine(fusion, [program])
    twice, weights = combine(fusion, [program, Program("copy", program.probability)])
    assert np.abs(twice.posterior - alone.posterior).max() < 0.05
    assert weights.weight.sum() == pytest.approx(weight.weight[0], rel=0.1)


def test_a_good_program_counts_more_than_a_poor_one(crowd, fusion):
    good, poor = Program("good", probabilities(crowd, 2.5)), Program("poor", probabilities(crowd, 0.3, 2))
    _, weights = combine(fusion, [poor, good])
    assert weights.weight[1] > 2 * weights.weight[0]


def test_tasks_that_a_program_did_not_judge_and_known_ones_keep_their_posterior(crowd):
    labels = crowd.labels
    known = np.full(len(labels.tasks), -1, dtype=np.int16)
    known[:20] = crowd.truth[:20]
    fused = run(replace(labels, known=known), LabelPlan())
    given = probabilities(crowd, 2.0)
    given[100:150] = np.nan
    combined, _ = combine(fused, [Program("net", given)])
    np.testing.assert_array_equal(combined.posterior[:20], fused.posterior[:20])
    np.testing.assert_array_equal(combined.posterior[100:150], fused.posterior[100:150])
    assert not np.array_equal(combined.posterior[20:100], fused.posterior[20:100])


def test_single_votes_alone_do_not_show_which_of_the_two_is_wrong_and_decisions_do(crowd):
    labels = crowd.labels
    _, first = np.unique(labels.task, return_index=True)
    single = np.zeros(len(labels), dtype=bool)
    single[first] = True
    labels, program = labels.subset(single), Program("net", probabilities(crowd, 2.0))
    fused = run(labels, LabelPlan())
    combined, weights = combine(fused, [program])
    assert not weights.used
    assert "Decide some tasks" in combined.notices[-1]
    known = np.full(len(labels.tasks), -1, dtype=np.int16)
    known[:60] = crowd.truth[:60]
    decided = run(replace(labels, known=known), LabelPlan())
    better, weights = combine(decided, [program])
    assert weights.used
    rest = slice(60, None)
    before, after = (quality(each.posterior[rest], crowd.truth[rest]) for each in (decided, better))
    assert after[0] > before[0]
    assert after[1] < before[1]


def test_probabilities_of_other_tasks_are_refused(fusion):
    with pytest.raises(LabelsError, match="expected 300 tasks"):
        combine(fusion, [Program("net", np.full((3, 2), 0.5))])
