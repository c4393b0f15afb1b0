"""Comparison of runs of masks: against the truth, or the raters' vote without one."""

import threading
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from raterscope.algorithms.masks.data import Masks, MaskTrace, make_fusion
from raterscope.algorithms.masks.fusion import CaseResult, report_on
from raterscope.algorithms.masks.grid import Grid
from raterscope.app.kinds.masks import run_comparison
from raterscope.app.review import Decision
from raterscope.app.study import RunEntry, Study
from raterscope.app.study.masks import PlacedMask, add_case, add_masks
from tests.app.driving import LONG, idle

SHAPE, SPACING = (12, 24, 24), (2.0, 1.0, 1.0)
GRID = Grid.plain(SHAPE, SPACING, calibrated=True)
READERS = ("ann", "ben", "cat")


def block(width: int, rows: int = 8) -> np.ndarray:
    """A block of 4 slices; one column is 1 mm, a voxel 2 mm³."""
    mask = np.zeros(SHAPE, dtype=bool)
    mask[4:8, 8 : 8 + rows, 6 : 6 + width] = True
    return mask


DRAWN = {"ann": block(8), "ben": block(9), "cat": block(12)}
"""Masks of the readers; most of them mark a block of 9 columns."""


def a_result(consensus: np.ndarray, structures: tuple[str, ...] = ("nodule",)) -> CaseResult:
    fusions, reports = [], []
    for name in structures:
        masks = Masks(np.array(list(DRAWN.values())), READERS, SPACING, (name,))
        share = consensus[None].astype(np.float32)
        fusions.append(make_fusion(masks, "made", (0, 0, 0), consensus[None], share, (MaskTrace(),)))
        reports.append(report_on(fusions[-1], masks))
    return CaseResult(tuple(fusions), tuple(reports))


def a_run(name: str) -> RunEntry:
    return RunEntry(
        kind="masks", algorithm=name, settings={}, versions={}, digest="sha256:0",
        started=datetime.now(UTC), seconds=0.1,
    )  # fmt: skip


def a_study(path: Path, truths: int) -> Path:
    """Three cases, some with truth; a run that is the truth, one that is wider, one of two cases alone."""
    with Study.create(path) as study:
        images = [add_case(study, f"case {number}", GRID).id for number in range(3)]
        masks = [
            PlacedMask(image, name, "nodule", (0, 0, 0), mask)
            for image in images
            for name, mask in DRAWN.items()
        ]
        masks += [PlacedMask(image, None, "nodule", (0, 0, 0), block(8)) for image in images[:truths]]
        add_masks(study, masks, "masks")
        study.runs.add(a_run("exact"), {image: a_result(block(8)) for image in images})
        study.runs.add(a_run("wide"), {image: a_result(block(9)) for image in images})
        study.runs.add(a_run("two"), {image: a_result(block(12)) for image in images[1:]})
    return path


@pytest.fixture
def opened_runs(window, qtbot, tmp_path, request):
    """The window with three cases, of which so many have truth as the test says, else two."""
    window.open_paths([a_study(tmp_path / "runs.rscope", getattr(request, "param", 2))])
    qtbot.waitUntil(lambda: window.workspace is not None and window.workspace.session.shown, timeout=LONG)
    idle(window, qtbot)
    return window


def compare(window, qtbot, *names: str):
    numbers = {run.algorithm: run.id for run in window.document.contents.runs}
    window.workspace.fuse_panel.runs.compare_requested.emit(tuple(numbers[name] for name in names))
    idle(window, qtbot)


def table_rows(window) -> list[dict[str, str]]:
    """Return the rows of the table by run; figures without their intervals."""
    model = window.workspace.run_comparison.table.view.model()
    names = [model.headerData(index, Qt.Orientation.Horizontal) for index in range(model.columnCount())]
    return [
        {name: model.index(row, index).data().split("\n")[0] for index, name in enumerate(names)}
        for row in range(model.rowCount())
    ]


def reference(window) -> str:
    return window.workspace.run_comparison.table.header._subtitle.text()


def go_to(window, qtbot, name: str):
    items = {item.title: item.key for item in window.workspace.queue.shown()}
    window.workspace.queue.item_chosen.emit(items[name])
    idle(window, qtbot)


def test_runs_are_measured_over_cases_with_truth_shown_and_deleted(opened_runs, qtbot):
    compare(opened_runs, qtbot, "wide", "exact")
    assert opened_runs.workspace.tabs.currentWidget() is opened_runs.workspace.run_comparison
    assert reference(opened_runs) == "against truth, 2 of 3 cases"
    wide, exact = table_rows(opened_runs)
    assert exact == {
        "run": "exact", "Dice": "1.000", "HD95, mm": "0.000", "HD, mm": "0.000", "surface, mm": "0.000",
        "volume, ml": "0.000", "p": "–",
    }  # fmt: skip
    # Of 4 x 8 x 9 voxels, 4 x 8 x 8 are true; the ninth column is 1 mm off and has 64 mm³.
    assert (wide["Dice"], wide["HD95, mm"], wide["HD, mm"]) == ("0.941", "1.000", "1.000")
    assert wide["volume, ml"] == "+0.064"
    assert wide["p"] == "–"

    compare(opened_runs, qtbot, "exact", "two")
    assert reference(opened_runs) == "against truth, 1 of 2 cases"
    assert [row["volume, ml"] for row in table_rows(opened_runs)] == ["0.00", "+0.26"]

    workspace = opened_runs.workspace
    go_to(opened_runs, qtbot, "case 1")
    workspace.tabs.setCurrentWidget(workspace.run_comparison)
    idle(opened_runs, qtbot)
    assert workspace.run_comparison.label.text() == "Against truth: Dice 0.80, HD95 4.0 mm, +0.3 ml"
    go_to(opened_runs, qtbot, "case 2")
    assert workspace.run_comparison.label.text() == ""

    compare(opened_runs, qtbot, "exact", "wide")
    table = opened_runs.workspace.run_comparison.table
    table.view.selectRow(0)
    idle(opened_runs, qtbot)
    assert opened_runs.workspace.session.scene.run.algorithm == "exact"
    opened_runs.workspace.fuse_panel.runs.delete_requested.emit(opened_runs.workspace.session.scene.run.id)
    idle(opened_runs, qtbot)
    assert [row["run"] for row in table_rows(opened_runs)] == ["wide"]


@pytest.mark.parametrize("opened_runs", [0], indirect=True)
def test_without_truth_the_vote_of_those_not_excluded_is_the_reference(opened_runs, qtbot):
    compare(opened_runs, qtbot, "exact", "wide")
    assert reference(opened_runs) == "by majority vote, 3 cases"
    assert "No truth is imported" in opened_runs.workspace.run_comparison.label.text()
    assert [row["Dice"] for row in table_rows(opened_runs)] == ["0.941", "1.000"]

    opened_runs.document.record(Decision(verb="exclude", annotators=("cat",), reason="draws something else"))
    idle(opened_runs, qtbot)
    compare(opened_runs, qtbot, "exact", "wide")
    assert [row["Dice"] for row in table_rows(opened_runs)] == [
        "1.000",
        "0.941",
    ]  # a column by one of two is a tie


def test_a_decision_is_written_while_a_case_is_measured_and_measuring_can_be_stopped(
    opened_runs, qtbot, monkeypatch
):
    at_it, go_on = threading.Event(), threading.Event()

    def slow(_case, watch):
        at_it.set()
        while not go_on.wait(0.06):
            watch(0.5, "measuring")
        return ()

    monkeypatch.setattr(run_comparison, "measure", slow)
    runs = tuple(run.id for run in opened_runs.document.contents.runs[:2])
    opened_runs.workspace.fuse_panel.runs.compare_requested.emit(runs)
    qtbot.waitUntil(at_it.is_set, timeout=LONG)
    words = opened_runs.workspace.run_comparison.label
    qtbot.waitUntil(lambda: words.text() == "measuring case 1 of 2", timeout=LONG)
    with qtbot.waitSignal(opened_runs.document.decided, timeout=LONG):
        opened_runs.document.record(
            Decision(verb="exclude", annotators=("cat",), reason="too large throughout")
        )
    QTest.mouseClick(opened_runs.workspace.run_comparison.stop, Qt.MouseButton.LeftButton)
    go_on.set()
    idle(opened_runs, qtbot)
    assert not opened_runs.workspace.run_comparison.stop.isVisible()
    assert table_rows(opened_runs) == []


def test_runs_without_a_case_in_common_are_refused_in_words(opened_runs, qtbot):
    numbers = [entry.id for entry in opened_runs.document.contents.images]
    job = opened_runs.document.ask(
        "adding a run",
        lambda study, _watch: study.runs.add(a_run("first alone"), {numbers[0]: a_result(block(8))}),
        changes=True,
    )
    with qtbot.waitSignal(job.ended, timeout=LONG):
        pass
    idle(opened_runs, qtbot)
    with qtbot.waitSignal(opened_runs.workspace.refused, timeout=LONG) as refused:
        compare(opened_runs, qtbot, "first alone", "two")
    assert "no case in common" in refused.args[0]
