"""Regions on which two experts differ head the queue, and are settled by key."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from PySide6.QtCore import Qt

from raterscope.algorithms.masks.data import Settled
from raterscope.app.decision_tables import record_decisions
from raterscope.app.report import write_report
from raterscope.app.review import Decision, RegionSubject, fold
from raterscope.app.study import Study
from tests.app.driving import open_study
from tests.app.workspaces.masks.driving import key, states
from tests.app.workspaces.masks.test_walk import several
from tests.app.workspaces.merged import header, merge

__all__ = ["several"]


@pytest.fixture
def merged(several, tmp_path):
    """Two experts who differ on the second liver region of the first case, and agree on the first one."""
    table = tmp_path / "decisions.csv"
    path = tmp_path / several.name
    path.write_bytes(several.read_bytes())
    decisions = []
    for who, verb, rater in (("anna", "accept", ""), ("ben", "take", "dan")):
        table.write_text(
            "verb,kind,item,structure,region,rater,who\n"
            f"accept,masks,first,liver,1,,{who}\n{verb},masks,first,liver,2,{rater},{who}\n"
        )
        scratch = tmp_path / f"{who}-scratch.rscope"
        scratch.write_bytes(several.read_bytes())
        with Study.open(scratch) as study:
            record_decisions(study, table)
            decisions.append(
                [
                    decision if decision.voxels is None else _with_voxels(study, decision)
                    for decision in study.decisions()
                ]
            )
    return merge(path, *decisions)


def _with_voxels(study, decision):
    return replace(decision, id=0, at=None, voxels=None, settled=study.settled(decision.voxels))


def test_contested_regions_come_first_and_leave_once_settled(window, qtbot, merged):
    open_study(window, qtbot, merged)
    workspace = window.workspace
    assert workspace.queue.shown()[0].title == "first"
    assert workspace.queue.shown()[0].detail.startswith("1 contested, ")
    assert "1 contested" in header(window)
    assert states(window) == ["accepted", "undecided"]
    key(window, qtbot, Qt.Key.Key_Tab)
    region = workspace.reviewing.region
    assert (region.number, region.contested) == (2, "anna: accept; ben: take dan")
    assert "Experts differ: anna: accept; ben: take dan." in workspace.region_panel._sentence.text()
    key(window, qtbot, Qt.Key.Key_A)
    assert "contested" not in header(window)
    last = window.document.contents.review.regions(1)[-1]
    assert (last.verb, last.subject.number) == ("accept", 2)


@pytest.fixture
def beside(several, tmp_path):
    """Two experts who painted one corner of a slice, which no rater disputed, in and out."""
    path = tmp_path / several.name
    path.write_bytes(several.read_bytes())
    with Study.open(path) as study:
        run = study.shown.run(1, "masks")
        shape = study.image(1).lattice.shape
    decisions = []
    for value in (1, 0):
        voxels = np.full((1, 2, 3), value, dtype=np.int8)
        subject = RegionSubject(structure="liver", origin=(shape[0] - 1, 0, 0), shape=(1, 2, 3))
        settled = Settled((shape[0] - 1, 0, 0), voxels)
        decisions.append(
            [Decision(verb="paint", item=1, run=run, subject=subject, settled=settled, at=datetime.now(UTC))]
        )
    return merge(path, *decisions)


def test_voxels_outside_disputed_regions_are_in_the_queue_too(window, qtbot, beside):
    open_study(window, qtbot, beside)
    workspace = window.workspace
    assert workspace.queue.shown()[0].detail.startswith("1 contested, ")
    regions = workspace.reviewing.regions
    key(window, qtbot, Qt.Key.Key_Tab)
    region = workspace.reviewing.region
    assert region.number == len(regions) == len(workspace.session.scene.report("liver").disputes) + 1
    assert region.dispute.voxels().sum() == 6
    assert region.contested == "anna: paint; ben: paint"
    assert "Experts differ: anna: paint; ben: paint" in workspace.region_panel._sentence.text()
    left = workspace.review_queue.disputed
    key(window, qtbot, Qt.Key.Key_A)
    assert "contested" not in header(window)
    assert workspace.review_queue.disputed == left - 1
    assert workspace.reviewing.region is not None
    assert workspace.reviewing.region.number != region.number
    key(window, qtbot, Qt.Key.Key_Z)
    assert "1 contested" in header(window)


def test_the_report_names_the_contested_region(merged, tmp_path):
    with Study.open(merged) as study:
        page = tmp_path / "report.html"
        write_report(study, page)
        regions = fold(study.decisions()).regions(1)
        assert [region.verb for region in regions][-1] == "reopen"
    words = page.read_text()
    assert "experts differ: anna: accept; ben: take dan" in words
    assert "Agreement between experts" in words
    assert "ben.rscope (ben); merged by" in words
