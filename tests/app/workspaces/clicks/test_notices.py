"""What the votes of a run do not settle stands above the image as long as the run is shown."""

from dataclasses import replace

import numpy as np

from raterscope.algorithms.clicks.robustness import absence_notice, decision_notice, grouping_notice
from raterscope.app.workspaces.clicks.notices import DECIDED, GROUPED, NOTE
from raterscope.app.workspaces.clicks.spots import spots_of, why
from tests.app.driving import idle


def few_votes(fusion):
    """Let two annotators mark each cluster, as they mark artefacts; every cluster is detected."""
    marked = np.zeros_like(fusion.marked)
    marked[:2] = True
    detection = replace(fusion.detection, detected=np.ones(marked.shape[1], dtype=bool))
    return replace(fusion, marked=marked, detection=detection)


def test_perhaps_artefacts_only_is_noted_as_long_as_such_a_run_is_shown(fused, qtbot):
    workspace = fused.workspace
    assert NOTE not in workspace.notes.notes()
    before = workspace.review_queue.results
    doubtful = {image: replace(one, fusion=few_votes(one.fusion)) for image, one in before.items()}
    expected = absence_notice([one.fusion for one in doubtful.values()])
    assert expected is not None
    workspace.review_queue.take(doubtful)
    workspace.review_queue.all_read.emit()
    idle(fused, qtbot)
    assert workspace.notes.notes()[NOTE] == expected
    assert "expected share of structures" in expected
    workspace.review_queue.take(before)
    workspace.review_queue.all_read.emit()
    idle(fused, qtbot)
    assert NOTE not in workspace.notes.notes()


def test_decisions_that_depend_on_the_grouping_are_noted_and_explained(fused, qtbot):
    workspace = fused.workspace
    assert GROUPED not in workspace.notes.notes()
    otherwise = {
        image: replace(one, fusion=replace(one.fusion, halves=~one.fusion.detection.detected[None]))
        for image, one in workspace.review_queue.results.items()
    }
    workspace.review_queue.take(otherwise)
    workspace.review_queue.all_read.emit()
    idle(fused, qtbot)
    assert workspace.notes.notes()[GROUPED] == grouping_notice([one.fusion for one in otherwise.values()])
    fusion = next(iter(otherwise.values())).fusion
    spots = spots_of(fusion, len(fusion.marked), [])
    assert "Half of the images, fused without the others" in why(spots[0], fusion)


def test_decisions_against_the_votes_are_noted(fused, qtbot):
    workspace = fused.workspace
    assert DECIDED not in workspace.notes.notes()
    rejected = {}
    for image, one in workspace.review_queue.results.items():
        fusion = one.fusion
        detection = replace(fusion.detection, undecided=np.full(len(fusion.verdict), 0.95))
        fusion = replace(fusion, verdict=np.zeros_like(fusion.verdict), detection=detection)
        rejected[image] = replace(one, fusion=fusion)
    workspace.review_queue.take(rejected)
    workspace.review_queue.all_read.emit()
    idle(fused, qtbot)
    notice = decision_notice([one.fusion for one in rejected.values()])
    assert notice is not None
    assert workspace.notes.notes()[DECIDED] == notice
