"""Evidence of the votes of down-weighted annotators in the task panel."""

from types import SimpleNamespace

import numpy as np
import pytest

from raterscope.algorithms.labels.fusion import LabelPlan, run
from raterscope.algorithms.simulation.label_crowds import simulate_labels, staging_crowd
from raterscope.app.workspaces.labels.view import weights_of


@pytest.mark.parametrize(("algorithm", "share"), [("dawid-skene", 0.25), ("gibbs", 1.0)])
def test_the_evidence_of_a_vote_has_the_weight_of_its_annotator(algorithm, share):
    labels = simulate_labels(staging_crowd(tasks=30, annotators=5), seed=1).labels
    settings = {"samples": "20", "burn_in": "5"} if algorithm == "gibbs" else {}
    fusion = run(labels, LabelPlan.make(algorithm, settings))
    votes, analysis = np.arange(len(labels)), SimpleNamespace(step_of=None)
    full = weights_of(SimpleNamespace(fusion=fusion, labels=labels), analysis, votes, 0)
    weighed = labels.with_weights({labels.annotators[0]: 0.25})
    part = weights_of(SimpleNamespace(fusion=fusion, labels=weighed), analysis, votes, 0)
    assert part == pytest.approx(np.where(labels.annotator == 0, share, 1.0) * full)
