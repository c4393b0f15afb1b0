"""Probabilities against what is known."""

import numpy as np
import pytest

from raterscope.app.assessment import FEW, trust_from
from raterscope.app.cli.program import main
from raterscope.app.kinds.clicks.evaluation import trust_in_clicks
from raterscope.app.kinds.labels.evaluation import trust_in_labels
from raterscope.app.report import write_report
from raterscope.app.review import Decision, SpotSubject, TaskSubject
from raterscope.app.study import Study
from tests.app.kinds.labels.made import write_truth, write_votes


def trust(posterior, right):
    return trust_from("spot", [(posterior, right)], [])


@pytest.mark.parametrize("seed", range(20))
def test_right_probabilities_are_not_contradicted(seed):
    rng = np.random.default_rng(seed)
    posterior = rng.beta(0.7, 0.7, 400)
    found = trust(posterior, rng.random(400) < posterior)
    assert not found.contradicted
    assert "does not contradict" in found.in_words()


def test_overconfident_probabilities_are_contradicted():
    rng = np.random.default_rng(1)
    posterior = np.full(300, 0.95)
    found = trust(posterior, rng.random(300) < 0.7)
    assert found.contradicted
    assert "too high on average" in found.in_words()
    few = trust(posterior[: FEW - 1], np.zeros(FEW - 1, dtype=bool))
    assert not few.contradicted
    assert "too few" in few.in_words()


def test_clicks_by_known_places_else_by_later_decisions(tmp_path, study_fused):
    path = tmp_path / "one.rscope"
    path.write_bytes(study_fused.read_bytes())
    with Study.open(path) as study:
        spots = sum(len(study.runs.result(1, image).clustering) for image in (1, 2))
        by_truth = trust_in_clicks(study, [1, 2])
        assert (by_truth.by_truth, by_truth.judged) == (True, spots)
        text = write_report(study, tmp_path / "report.html").read_text().replace("\xa0", " ")
        assert "How far to trust this" in text
        assert f"Of {spots} spots with known truth" in text


def test_what_a_run_was_held_to_says_nothing_of_it(tmp_path, study_fused):
    path = tmp_path / "one.rscope"
    path.write_bytes(study_fused.read_bytes())
    assert main(["run", str(path), "oem", "--hold-truth"]) == 0
    with Study.open(path) as study:
        assert trust_in_clicks(study, [1, 2]).judged == 0
        fusion = study.runs.result(2, 1)
        free = int(np.flatnonzero((fusion.detection.posterior > 0) & (fusion.detection.posterior < 1))[0])
        x, y = (float(value) for value in fusion.clustering.mean[free])
        study.record(Decision(verb="reject", item=1, subject=SpotSubject(x=x, y=y), run=2))
        later = trust_in_clicks(study, [1, 2])
        assert (later.judged, later.by_truth, later.share) == (1, False, 0.0)
        assert later.expected == pytest.approx(fusion.detection.posterior[free])
    assert main(["run", str(path), "oem", "--hold-truth"]) == 0
    with Study.open(path) as study:
        assert trust_in_clicks(study, [1, 2]).expected == later.expected


def test_a_decision_that_the_run_is_held_to_counts_with_the_run_before(tmp_path):
    path = tmp_path / "one.rscope"
    assert main(["import", str(path), str(write_votes(tmp_path / "votes.csv")), "--kind", "labels"]) == 0
    assert main(["run", str(path), "majority"]) == 0
    with Study.open(path) as study:
        fusion = study.runs.result(1, 1).fusion
        for task in (0, 1):
            wrong = fusion.classes[1 - fusion.label()[task]]
            study.record(
                Decision(verb="label", item=1, subject=TaskSubject(task=f"t{task}", label=wrong), run=1)
            )
        before = trust_in_labels(study, 1)
        assert (before.judged, before.share) == (2, 0.0)
    assert main(["run", str(path), "majority"]) == 0
    with Study.open(path) as study:
        after = trust_in_labels(study, 1)
        assert study.runs.result(2, 1).fusion.known[0] >= 0
    assert (after.judged, after.share, after.expected) == (2, 0.0, before.expected)
    assert main(["run", str(path), "ibcc"]) == 0
    with Study.open(path) as study:
        assert trust_in_labels(study, 1).judged == 0  # of another method nothing is known


def test_labels_by_the_truths_that_were_not_held(tmp_path):
    path = tmp_path / "one.rscope"
    files = [str(write_votes(tmp_path / "votes.csv")), str(write_truth(tmp_path / "truth.csv", step=2))]
    assert main(["import", str(path), files[0], "--kind", "labels"]) == 0
    assert main(["import", str(path), files[1], "--kind", "true-labels"]) == 0
    assert main(["run", str(path), "majority"]) == 0
    with Study.open(path) as study:
        found = trust_in_labels(study, 1)
        fusion = study.runs.result(1, 1).fusion
    assert found.judged == 60
    assert found.expected == pytest.approx(fusion.posterior.max(axis=1)[::2].mean())
