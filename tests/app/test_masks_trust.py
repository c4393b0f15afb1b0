"""How far to trust masks: left-out raters, true outlines and decisions against what a run claims."""

import numpy as np
import pytest

from raterscope.algorithms.masks.data import Settled
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import silent
from raterscope.app.kinds.masks import evaluation as trust_of_masks
from raterscope.app.kinds.masks.evaluation import trust_in_masks
from raterscope.app.kinds.masks.runs import fuse_inputs, gather, keep
from raterscope.app.report import write_report
from raterscope.app.review import Decision, RegionSubject, fold
from raterscope.app.study import Study
from raterscope.app.study.masks import PlacedMask, add_case, add_masks
from raterscope.app.workspaces.masks.regions import read_summaries, summarize
from tests.algorithms.masks.test_calibration import a_crowd

CASES = 6


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """Give a study of six images that four raters outlined."""
    path = tmp_path_factory.mktemp("trust") / "crowd.rscope"
    with Study.create(path) as study:
        for seed in range(CASES):
            values = a_crowd(seed, 4, (1, 90, 90))
            image = add_case(study, f"case {seed}", Grid((1, 90, 90))).id
            masks = [PlacedMask(image, f"rater {p}", "disc", (0, 0, 0), one) for p, one in enumerate(values)]
            add_masks(study, masks, "made.nii")
        images = [one.id for one in study.images()]
        keep(fuse_inputs(gather(images, study), MaskPlan.make("majority")), study)
    return path


@pytest.fixture
def study(crowded, tmp_path):
    path = tmp_path / "one.rscope"
    path.write_bytes(crowded.read_bytes())
    with Study.open(path) as study:
        yield study


def trusted(study):
    return trust_in_masks(study, [one.id for one in study.images()])


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


def test_true_outlines_imported_later_judge_the_true_outline(study):
    add_truth(study, 25)
    trust = trusted(study)
    assert (trust.measure, trust.by_truth, trust.units) == ("truth", True, CASES)
    assert not trust.contradicted
    assert "with a known true outline" in trust.in_words()


def test_true_outlines_that_lie_elsewhere_contradict_where_they_are_too_few_to_be_learnt(study):
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


def test_the_queue_says_on_how_many_regions_a_decision_matters(study):
    images = [one.id for one in study.images()]
    known = read_summaries(images, study, silent)
    parts = [part for image in images for part in summarize(image, known[image], fold([])).parts]
    assert all(0 <= part.matter <= part.remaining for part in parts)
    assert sum(part.matter for part in parts)
