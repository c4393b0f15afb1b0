"""Trust in a run: against truths, decisions, left-out raters and comparable crowds."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.masks.data import Settled
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import silent
from raterscope.app.assessment import (
    FEW,
    NUMBERS,
    ComparableCrowd,
    comparable_crowds,
    comparable_in_words,
    nearest,
    step_in_words,
    trust_from,
)
from raterscope.app.cli.program import main
from raterscope.app.kinds.clicks.evaluation import trust_in_clicks
from raterscope.app.kinds.labels.evaluation import trust_in_labels
from raterscope.app.kinds.masks import evaluation as trust_of_masks
from raterscope.app.kinds.masks.evaluation import trust_in_masks
from raterscope.app.kinds.masks.runs import fuse_inputs, gather, keep
from raterscope.app.report import write_report
from raterscope.app.review import Decision, RegionSubject, SpotSubject, TaskSubject, fold
from raterscope.app.study import Study
from raterscope.app.study.masks import PlacedMask, add_case, add_masks
from raterscope.app.workspaces.masks.scene import read_summaries, summarize
from tests.algorithms.masks.test_calibration import a_crowd
from tests.app.kinds.labels.made import write_truth, write_votes


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [(0.438, 0.931, "0.44 → 0.93"), (0.9012, 0.8977, "0.901 → 0.898"), (0.90001, 0.89999, "0.9000 → 0.9000")],
)
def test_a_change_is_written_with_digits_that_show_it(old, new, text):
    assert step_in_words(old, new) == text


def trust(posterior, right):
    return trust_from("spot", [(posterior, right)], [])


@pytest.mark.parametrize("seed", range(20))
def test_right_probabilities_are_not_contradicted(seed):
    rng = np.random.default_rng(seed)
    posterior = rng.beta(0.7, 0.7, 400)
    result = trust(posterior, rng.random(400) < posterior)
    assert not result.contradicted
    assert "does not contradict" in result.in_words()


def test_overconfident_probabilities_are_contradicted():
    rng = np.random.default_rng(1)
    posterior = np.full(300, 0.95)
    result = trust(posterior, rng.random(300) < 0.7)
    assert result.contradicted
    assert "too high on average" in result.in_words()
    few = trust(posterior[: FEW - 1], np.zeros(FEW - 1, dtype=bool))
    assert not few.contradicted
    assert "too few" in few.in_words()


def test_a_mean_outside_of_the_interval_is_named():
    right = np.arange(120) < 79
    result = trust(np.full(120, 0.77), right)
    assert not result.contradicted
    assert result.interval[1] < result.expected
    assert "may be 0.11 too high on average" in result.in_words()


def test_clicks_by_known_positions_else_by_later_decisions(tmp_path, study_fused):
    path = tmp_path / "one.rscope"
    path.write_bytes(study_fused.read_bytes())
    with Study.open(path) as study:
        spots = sum(len(study.runs.result(1, image).clustering) for image in (1, 2))
        by_truth = trust_in_clicks(study, [1, 2])
        assert (by_truth.by_truth, by_truth.judged) == (True, spots)
        text = write_report(study, tmp_path / "report.html").read_text().replace("\xa0", " ")
        assert "How far to trust this" in text
        assert f"Of {spots} spots with known truth" in text


def test_truth_that_a_run_used_does_not_assess_it(tmp_path, study_fused):
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
        result = trust_in_labels(study, 1)
        fusion = study.runs.result(1, 1).fusion
    assert result.judged == 60
    assert result.expected == pytest.approx(fusion.posterior.max(axis=1)[::2].mean())


def made(per_item, classes=0, kind="labels"):
    return ComparableCrowd(
        kind, f"{per_item}/{classes}", per_item, classes, False, (("probability", 0.9, 0.8),)
    )


def test_every_kind_has_crowds_and_numbers_that_can_be_stated():
    crowds = comparable_crowds()
    assert {crowd.kind for crowd in crowds} == {"clicks", "masks", "labels", "labels, ibcc", "pairs"}
    for crowd in crowds:
        assert crowd.per_item > 0
        assert {number for number, _, _ in crowd.figures} <= set(NUMBERS)
        assert all(0 <= value <= 1 for _, *values in crowd.figures for value in values)


def test_the_nearest_crowd_is_that_of_the_same_size_and_number_of_classes():
    crowds = [made(5, 2), made(5, 10), made(30, 2), made(5, kind="clicks")]
    assert nearest(crowds, "labels", 6, 8) is crowds[1]
    assert nearest(crowds, "labels", 20, 2) is crowds[2]
    assert nearest(crowds, "clicks", 5) is crowds[3]
    assert nearest(crowds, "labels", 5, 300) is None
    assert nearest(crowds, "masks", 5) is None


@pytest.mark.parametrize(
    ("kind", "per_item", "classes"),
    [("clicks", 25, 0), ("masks", 4, 0), ("labels", 5, 5), ("labels, ibcc", 5, 5), ("pairs", 60, 0)],
)
def test_a_crowd_of_a_usual_size_is_named_with_its_figures(kind, per_item, classes):
    words = comparable_in_words(kind, per_item, ("vote", "task"), classes)
    assert words.startswith("On the nearest crowd measured (")
    assert "%" in words
    assert "{" not in words


def test_no_statement_for_crowds_that_are_far():
    assert (
        comparable_in_words("pairs", 1e9, ("comparison", "annotator"))
        == "No crowd of this size was measured."
    )


CASES = 6


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """Return a study of six images that four raters outlined."""
    path = tmp_path_factory.mktemp("trust") / "crowd.rscope"
    with Study.create(path) as study:
        for seed in range(CASES):
            values = a_crowd(seed, 4, (1, 90, 90))
            image = add_case(study, f"case {seed}", Grid((1, 90, 90))).id
            masks = [
                PlacedMask(image, f"rater {p}", "disc", (0, 0, 0), entry) for p, entry in enumerate(values)
            ]
            add_masks(study, masks, "made.nii")
        images = [entry.id for entry in study.images()]
        keep(fuse_inputs(gather(images, study), MaskPlan.make("majority")), study)
    return path


@pytest.fixture
def study(crowded, tmp_path):
    path = tmp_path / "one.rscope"
    path.write_bytes(crowded.read_bytes())
    with Study.open(path) as study:
        yield study


def trusted(study):
    return trust_in_masks(study, [entry.id for entry in study.images()])


def add_truth(study, radius):
    rows, columns = np.indices((90, 90)) - 44.5
    inside = np.hypot(rows, columns)[None] < radius
    for image in study.images():
        add_masks(study, [PlacedMask(image.id, None, "disc", (0, 0, 0), inside)], "truth.nii")


def test_raters_are_left_out_where_nothing_else_is_known(study, tmp_path):
    trust = trusted(study)
    assert (trust.measure, trust.units, len(trust.held)) == ("raters", CASES, CASES)
    assert not trust.contradicted
    assert abs(trust.expected - trust.share) < 0.1
    assert trust.held.mean(axis=0) == pytest.approx([0.5, 0.8, 0.95], abs=0.12)
    words = trust.in_words()
    assert "each rater left out in turn included" in words
    assert "cannot be confirmed by masks alone" in words
    text = write_report(study, tmp_path / "report.html").read_text().replace("\xa0", " ")
    assert "Of the voxels that raters dispute in 6 cases" in text


def test_a_case_without_disputed_voxels_hides_no_contradiction(study):
    add_truth(study, 15)
    trust = trusted(study)
    agreed = np.concatenate((trust.bins, np.zeros_like(trust.bins[:1])))
    assert replace(trust, bins=agreed).p_value == trust.p_value


def test_true_outlines_imported_later_judge_the_true_outline(study):
    add_truth(study, 25)
    trust = trusted(study)
    assert (trust.measure, trust.by_truth, trust.units) == ("truth", True, CASES)
    assert not trust.contradicted
    assert "with a known true outline" in trust.in_words()


def test_true_outlines_that_lie_elsewhere_contradict_where_they_are_too_few_to_be_learned(study):
    add_truth(study, 15)
    trust = trusted(study)
    assert trust.contradicted
    assert trust.doubt_in_words().startswith("True outlines contradict the probabilities")


def test_decisions_are_compared_by_region_once_there_are_enough(study, monkeypatch):
    image = study.images()[0].id
    settled = Settled((0, 20, 40), np.ones((1, 4, 6), dtype=np.int8))
    subject = RegionSubject(structure="disc", origin=(0, 20, 40), shape=(1, 4, 6), number=1)
    study.record(Decision(verb="accept", item=image, run=1, subject=subject, settled=settled))
    assert trusted(study).measure == "raters"
    monkeypatch.setattr(trust_of_masks, "FEW", 1)
    trust = trusted(study)
    assert (trust.measure, trust.units, trust.judged) == ("decisions", 1, 24)
    assert "that you decided" in trust.in_words()


def test_the_queue_counts_the_regions_where_a_decision_matters(study):
    images = [entry.id for entry in study.images()]
    known = read_summaries(images, study, silent)
    parts = [part for image in images for part in summarize(image, known[image], fold([])).parts]
    assert all(0 <= part.matter <= part.remaining for part in parts)
    assert sum(part.matter for part in parts)
