"""Weights of annotators: 1 changes nothing, 0 is an exclusion, and between them evidence counts in part."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.data import Labels, LabelsError
from raterscope.algorithms.labels.fusion import LabelPlan, run
from raterscope.algorithms.simulation.label_crowds import simulate_labels, staging_crowd

CROWD = simulate_labels(staging_crowd(tasks=60, annotators=8), seed=3)
KNOWN = np.where(np.arange(60) < 10, CROWD.truth, -1).astype(np.int16)
LABELS = replace(CROWD.labels, known=KNOWN, time=None)
WEIGHING = [name for name, algorithm in LABELLERS.items() if algorithm.weighs]
SOME = LABELS.annotators[:2]


def posterior(labels: Labels, name: str, **settings: str) -> np.ndarray:
    return run(labels, LabelPlan.make(name, settings)).posterior


def test_most_methods_weigh():
    assert set(LABELLERS) - set(WEIGHING) == {"dynibcc", "gibbs"}


@pytest.mark.parametrize("name", WEIGHING)
def test_weight_1_changes_nothing_and_0_excludes(name):
    full = posterior(LABELS, name)
    assert (posterior(LABELS.with_weights(dict.fromkeys(SOME, 1.0)), name) == full).all()
    without = posterior(LABELS.without(SOME), name)
    assert (posterior(LABELS.with_weights(dict.fromkeys(SOME, 0.0)), name) == without).all()
    assert not np.allclose(full, without, atol=0.02)


@pytest.mark.parametrize("name", WEIGHING)
def test_a_weight_between_them_is_continuous(name):
    full, without = posterior(LABELS, name), posterior(LABELS.without(SOME), name)
    assert posterior(LABELS.reweighed(SOME, 1 - 1e-7), name) == pytest.approx(full, abs=1e-4)
    # The pooled consensus also simulates eight crowds, which are drawn with all annotators who have votes.
    near, mean = (0.1, 0.02) if name == "pooled" else (1e-4, 1e-4)
    untied = without.max(axis=1) > 0.51
    differences = np.abs(posterior(LABELS.reweighed(SOME, 1e-9), name) - without)[untied]
    assert differences.max() <= near
    assert differences.mean() <= mean


@pytest.mark.parametrize("name", ["majority", "weighted-sum", "mean-score", "dawid-skene"])
def test_two_equal_annotators_at_one_half_count_as_one(name):
    first = LABELS.annotator == 0
    twin = replace(
        LABELS,
        task=np.concatenate([LABELS.task, LABELS.task[first]]),
        annotator=np.concatenate([LABELS.annotator, np.full(first.sum(), len(LABELS.annotators))]),
        label=np.concatenate([LABELS.label, LABELS.label[first]]),
        annotators=(*LABELS.annotators, "twin"),
    )
    settings = {"beta": "1"} if name == "weighted-sum" else {}
    both = posterior(twin.with_weights({LABELS.annotators[0]: 0.5, "twin": 0.5}), name, **settings)
    assert both == pytest.approx(posterior(LABELS, name, **settings), abs=1e-4)


def test_the_lower_bound_of_a_weighted_model_never_falls():
    fusion = run(LABELS.with_weights({SOME[0]: 0.3, SOME[1]: 0.7}), LabelPlan.make("ibcc"))
    assert fusion.trace.converged
    assert (np.diff(fusion.trace.objective) > -1e-6).all()


def test_ordered_and_very_many_classes_weigh_too(monkeypatch):
    ordered = replace(LABELS, ordered=True)
    full, part = posterior(ordered, "pooled"), posterior(ordered.reweighed(SOME, 0.2), "pooled")
    assert not np.allclose(full, part, atol=0.02)
    monkeypatch.setattr("raterscope.algorithms.labels.data.MAX_ENTRIES", 1)
    full, without = posterior(LABELS, "pooled"), posterior(LABELS.without(SOME), "pooled")
    assert posterior(LABELS.reweighed(SOME, 1 - 1e-7), "pooled") == pytest.approx(full, abs=1e-4)
    assert posterior(LABELS.reweighed(SOME, 1e-9), "pooled") == pytest.approx(without, abs=0.01)


def test_votes_weighted_by_prediction_keep_the_weights():
    weighed = LABELS.reweighed(SOME, 1e-9)
    part = posterior(weighed, "ibcc", counting="predictive")
    assert part == pytest.approx(posterior(LABELS.without(SOME), "ibcc", counting="predictive"), abs=1e-3)


@pytest.mark.parametrize("name", ["dynibcc", "gibbs"])
def test_a_method_without_weights_counts_all_fully_with_a_notice(name):
    settings = {"samples": "20", "burn_in": "5"} if name == "gibbs" else {}
    plan = LabelPlan.make(name, settings)
    fusion = run(LABELS.reweighed(SOME, 0.5), plan)
    assert (fusion.posterior == run(LABELS, plan).posterior).all()
    (notice,) = [notice for notice in fusion.notices if "down-weight" in notice]
    assert notice.endswith(
        "cannot down-weight annotators: all count fully. Exclude them, or choose another method."
    )


def test_a_weight_outside_0_to_1_is_refused():
    with pytest.raises(LabelsError, match=r"the weight of \S+ is 2.0; expected more than 0, at most 1"):
        LABELS.with_weights({SOME[0]: 2.0})
