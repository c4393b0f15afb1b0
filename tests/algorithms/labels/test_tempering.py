"""Weight of a vote: 1 where annotators err independently, less where they err together."""

from pathlib import Path

import numpy as np
import pytest

from raterscope.algorithms.labels.assessment import advice, assess
from raterscope.algorithms.labels.data import OPEN, Labels
from raterscope.algorithms.labels.fusion import LabelPlan, run
from raterscope.algorithms.labels.ibcc import ibcc
from raterscope.algorithms.labels.tempering import choose_tempering, tempered
from tests.algorithms.labels.test_advice import simulated
from tests.algorithms.labels.test_voting import read

PREDICTIVE = {"counting": "predictive"}


def independent(seed: int = 0) -> tuple[Labels, np.ndarray]:
    return simulated(600, 30, 10, 3, np.full((30, 600), 0.6), seed)


def repeated(times: int) -> tuple[Labels, np.ndarray]:
    """Repeat every annotator this many times under other names with the same answers."""
    labels, truth = simulated(600, 12, 6, 2, np.full((12, 600), 0.7))
    people = len(labels.annotators)
    return Labels(
        np.tile(labels.task, times),
        np.concatenate([labels.annotator + people * copy for copy in range(times)]),
        np.tile(labels.label, times),
        labels.tasks,
        tuple(f"{name}-{copy}" for copy in range(times) for name in labels.annotators),
        labels.outputs,
        labels.classes,
    ), truth


@pytest.mark.parametrize("seed", range(3))
def test_independent_votes_count_in_full_or_nearly(seed: int) -> None:
    labels, truth = independent(seed)
    fusion = ibcc(labels)
    result = choose_tempering(labels, fusion)
    assert result.power >= 0.7
    before, after = (
        assess(detection.posterior, truth, labels.classes)
        for detection in (fusion, tempered(labels, fusion, result.power))
    )
    assert after.log_loss <= before.log_loss + 0.01


def test_correlated_votes_count_for_less() -> None:
    labels, truth = repeated(4)
    fusion = ibcc(labels)
    result = choose_tempering(labels, fusion)
    assert result.power < 0.4
    before, after = (
        assess(detection.posterior, truth, labels.classes)
        for detection in (fusion, tempered(labels, fusion, result.power))
    )
    assert after.log_loss < before.log_loss / 2


def test_counting_in_full_is_the_model_itself() -> None:
    labels, _ = independent()
    fusion = ibcc(labels)
    assert np.abs(tempered(labels, fusion, 1.0).posterior - fusion.posterior).max() < 1e-2
    assert (tempered(labels, fusion, 1.0).label() == fusion.label()).mean() > 0.99


def test_the_less_votes_count_the_more_is_disputed() -> None:
    labels, _ = independent()
    fusion = ibcc(labels)
    doubt = [tempered(labels, fusion, power).entropy().mean() for power in (1.0, 0.5, 0.2, 0.05)]
    assert doubt == sorted(doubt)


def test_known_tasks_and_tasks_without_votes_stay_as_they_are() -> None:
    labels, truth = independent()
    known = np.where(np.arange(600) < 50, truth, OPEN).astype(np.int16)
    is_voted = labels.task < 590
    subset = Labels(
        labels.task[is_voted], labels.annotator[is_voted], labels.label[is_voted], labels.tasks,
        labels.annotators, labels.outputs, labels.classes, known=known,
    )  # fmt: skip
    fusion = ibcc(subset)
    after = tempered(subset, fusion, 0.3)
    assert (after.posterior[:50].argmax(axis=1) == truth[:50]).all()
    assert (after.posterior[:50].max(axis=1) == 1).all()
    assert np.array_equal(after.posterior[590:], fusion.posterior[590:])
    assert np.allclose(after.posterior.sum(axis=1), 1)


def test_the_order_of_annotators_and_votes_changes_nothing() -> None:
    labels, _ = repeated(3)
    order = np.random.default_rng(1).permutation(len(labels))
    mixed = labels.subset(np.ones(len(labels), bool))
    mixed = Labels(
        labels.task[order], labels.annotator[order], labels.label[order], labels.tasks,
        labels.annotators, labels.outputs, labels.classes,
    )  # fmt: skip
    first, second = (choose_tempering(item, ibcc(item)) for item in (labels, mixed))
    assert first.power == second.power
    assert first.gain == pytest.approx(second.gain, rel=1e-6)


def test_tasks_with_one_vote_have_nothing_to_predict() -> None:
    labels, _ = simulated(50, 5, 1, 2, np.full((5, 50), 0.8))
    assert choose_tempering(labels, ibcc(labels)).power == 1.0


@pytest.mark.parametrize("algorithm", ["ibcc", "gibbs", "dynibcc"])
def test_every_model_of_annotators_can_let_votes_count_in_part(algorithm: str) -> None:
    labels, truth = repeated(3)
    full, part = (run(labels, LabelPlan.make(algorithm, texts)) for texts in ({}, PREDICTIVE))
    assert full.power == 1.0
    assert part.power < 0.5
    before, after = (assess(detection.posterior, truth, labels.classes) for detection in (full, part))
    assert after.log_loss < before.log_loss
    assert np.array_equal(part.confusion.alpha, full.confusion.alpha)


def test_methods_without_a_model_of_annotators_report_full_weights() -> None:
    labels, _ = repeated(3)
    full, part = (run(labels, LabelPlan.make("majority", texts)) for texts in ({}, PREDICTIVE))
    assert np.array_equal(full.posterior, part.posterior)
    assert any("counts in full" in notice for notice in part.notices)


def test_shared_errors_are_reported_with_a_remedy() -> None:
    sentences = []
    for labels, _ in (repeated(4), independent()):
        fusion = ibcc(labels)
        sentences.append(" ".join(advice(labels, fusion, tempering=choose_tempering(labels, fusion))))
    assert "predict each other" in sentences[0]
    assert "predict each other" not in sentences[1]


@pytest.mark.parametrize(
    ("name", "reached"),
    [("bluebirds", 0.4), ("cf_amt", 0.6), ("sp_amt", 0.2), ("dog", 0.85), ("product", 0.25)],
)
def test_on_real_crowds_the_probabilities_become_honest_and_the_order_stays(
    real_data: Path, name: str, reached: float
) -> None:
    labels, truth = read(real_data, name)
    full, part = (run(labels, LabelPlan.make("ibcc", texts)) for texts in ({}, PREDICTIVE))
    before, after = (assess(detection.posterior, truth, labels.classes) for detection in (full, part))
    assert after.log_loss < reached
    assert after.log_loss <= before.log_loss
    assert after.calibration.error <= before.calibration.error
    assert after.area == pytest.approx(before.area, abs=0.005)
    assert after.accuracy == pytest.approx(before.accuracy, abs=0.01)


def test_a_plan_of_an_earlier_version_is_understood() -> None:
    stored = LabelPlan.make("ibcc", PREDICTIVE).as_dict()
    stored["about"]["counting"] = "foretold"
    assert LabelPlan.from_dict(stored).about.counting == "predictive"
