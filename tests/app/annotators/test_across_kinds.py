"""Reliability across kinds from the table of annotators."""

import numpy as np
import pytest

from raterscope.app.annotator_evidence import Evidence, Measure
from raterscope.app.annotators.table import AnnotatorTable, read_annotators, relate_kinds
from raterscope.app.study import Study

PEOPLE = 120


def table(correlation: float, kinds=(("clicks", "reliability"), ("labels", "accuracy"))) -> AnnotatorTable:
    rng = np.random.default_rng(2)
    names = tuple(f"u{number}" for number in range(PEOPLE))
    truth = rng.multivariate_normal([1.0, 1.0], [[1.0, correlation], [correlation, 1.0]], PEOPLE)
    estimate = truth + 0.5 * rng.normal(size=truth.shape)
    count = np.full(PEOPLE, 20)
    evidence = []
    for at, (kind, measure) in enumerate(kinds):
        odds = estimate[:, at, None] + np.array([0.0, -0.98, 0.98])
        values = 1 / (1 + np.exp(-odds[:, None, :]))
        values[: 30 * at] = np.nan
        measures = (Measure(measure, measure, "", is_reliability=True),)
        evidence.append(
            Evidence(kind, "marks", names, count, count, measures, values, accepted=count, rejected=count)
        )
    return AnnotatorTable(names, {}, {}, {}, tuple(evidence), np.arange(PEOPLE))


def test_kinds_are_related_by_their_intervals():
    people = table(0.8)
    result = relate_kinds(people)
    assert result is not None
    assert result.kinds == ("clicks", "labels")
    assert result.common[0, 1] == PEOPLE - 30
    assert result.correlation[0, 1] == pytest.approx(0.8, abs=0.25)
    assert np.isfinite(result.value).all()
    assert len(result.score) == len(people)
    assert "each informs the other" in result.sentence()


def test_without_a_correlation_a_missing_kind_is_predicted_by_the_crowd():
    result = relate_kinds(table(0.0))
    assert result is not None
    assert result.value[:30, 1] == pytest.approx(result.mean[1])


def test_one_kind_relates_nothing():
    assert relate_kinds(table(0.8, kinds=(("clicks", "reliability"),))) is None


def test_a_table_of_several_kinds_has_the_reliability_over_all_of_them(four_study):
    with Study.open(four_study) as study:
        people = read_annotators(study)
    score = people.columns["reliability"]
    assert score.shape == (len(people),)
    assert people.names[int(np.nanargmin(score))] == "eve"  # who marks at random
    low, high = people.columns["reliability_low"], people.columns["reliability_high"]
    known = np.isfinite(score)
    assert known.any()
    assert (low[known] <= score[known]).all()
    assert (score[known] <= high[known]).all()
