"""Notes above a workspace: blind mode, and results that did not converge."""

import numpy as np
import pytest
from PySide6.QtCore import Qt

from raterscope.algorithms.clicks import FusionPlan
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.app.importing import read_files, store
from raterscope.app.kinds.clicks import runs as clicks
from raterscope.app.kinds.labels import runs as labels
from raterscope.app.report import write_report
from raterscope.app.study import Study
from raterscope.widgets.panels.fuse_panel import RunRequest
from tests.app.driving import LONG, idle, open_study, press
from tests.app.workspaces.masks.conftest import compiled, masks_original, masks_study, opened_masks
from tests.app.workspaces.masks.driving import go_to

__all__ = ["compiled", "masks_original", "masks_study", "opened_masks"]


@pytest.mark.parametrize("bare_workspace", ["clicks", "masks", "labels", "pairs"], indirect=True)
def test_blind_mode_is_seen_in_every_workspace_as_long_as_it_is_on(bare_workspace, qtbot):
    _, workspace = bare_workspace
    widget = workspace.parentWidget()
    widget.show()
    qtbot.waitExposed(widget)
    assert not workspace.notes.isVisible()
    workspace.core.toggle_blind()
    assert workspace.notes.isVisible()
    assert "hidden" in workspace.notes.notes()["Blind"]
    assert "Press H" in workspace.notes.notes()["Blind"]
    workspace.core.toggle_blind()
    assert not workspace.notes.isVisible()


def test_non_convergence_is_noted_with_advice_while_the_result_is_shown(opened_masks, qtbot):
    workspace = opened_masks.workspace
    for iterations, text in (("1", True), ("500", False)):
        plan = MaskPlan.make("laplace", {"max_iterations": iterations})
        before = len(opened_masks.document.contents.runs)
        workspace.fuse_panel.run_requested.emit(RunRequest(plan.algorithm, plan.settings, all_items=True))
        qtbot.waitUntil(lambda: len(opened_masks.document.contents.runs) > before, timeout=LONG)  # noqa: B023
        idle(opened_masks, qtbot)
        go_to(opened_masks, qtbot, "first")
        words = workspace.notes.notes().get("Not converged", "")
        assert bool(words) == text
        assert workspace.notes.isVisible() == text
        if text:
            assert "“Iterations”" in words
            press(opened_masks, qtbot, Qt.Key.Key_Tab)  # news come and go: the note stays
            assert workspace.notes.notes()["Not converged"] == words


def cut_off_labels(path):
    rows = ["annotator,task,label"]
    rows += [
        f"ann {annotator},cell-{task},{'no' if (task + annotator) % 3 == 0 else 'yes'}"
        for task in range(8)
        for annotator in range(5)
    ]
    table = path.with_suffix(".csv")
    table.write_text("\n".join(rows) + "\n")
    with Study.create(path) as study:
        store(read_files([table]), study)
        requested = labels.gather([question.id for question in study.questions()], study)
        plan = LabelPlan.make("ibcc", {"iterations": "1", "tolerance": "1e-12"})
        labels.keep(labels.fuse_inputs(requested, plan), study)


def cut_off_clicks(path):
    rng = np.random.default_rng(5)
    rows = ["annotator,image,width,height,x,y"]
    for annotator in range(8):
        for x, y in ((40, 40), (120, 50), (60, 130)):
            dx, dy = rng.normal(0, 1.5, 2)
            rows.append(f"volunteer {annotator},one.png,240,180,{x + dx:.2f},{y + dy:.2f}")
    table = path.with_suffix(".csv")
    table.write_text("\n".join(rows) + "\n")
    with Study.create(path) as study:
        store(read_files([table]), study)
        plan = FusionPlan.make(texts={"detection_iterations": "1", "detection_tolerance": "1e-15"})
        inputs = clicks.gather([entry.id for entry in study.images()], study)
        clicks.keep(clicks.fuse_inputs(inputs, plan), study)


def copied_clicks(path):
    rng = np.random.default_rng(5)
    structures = rng.uniform(20, 380, (25, 2))
    rows = ["annotator,image,width,height,x,y"]
    for annotator in range(6):
        clicked = structures + rng.normal(0, 3, structures.shape)
        names = ["first", "second"] if annotator == 0 else [f"volunteer {annotator}"]
        rows += [f"{name},one.png,400,400,{x:.2f},{y:.2f}" for name in names for x, y in clicked]
    path.with_suffix(".csv").write_text("\n".join(rows) + "\n")
    with Study.create(path) as study:
        store(read_files([path.with_suffix(".csv")]), study)
        inputs = clicks.gather([entry.id for entry in study.images()], study)
        clicks.keep(clicks.fuse_inputs(inputs, FusionPlan()), study)


def test_annotators_who_copy_clicks_are_named_in_window_and_report_but_not_in_blind_mode(
    window, qtbot, tmp_path
):
    path = tmp_path / "copied.rscope"
    copied_clicks(path)
    open_study(window, qtbot, path)
    named = "first, second (the same positions)"
    assert named in window.workspace.notes.notes()["Copied clicks"]
    window.workspace.core.toggle_blind()
    assert "Copied clicks" not in window.workspace.notes.notes()
    window.workspace.core.toggle_blind()
    assert named in window.workspace.notes.notes()["Copied clicks"]
    window.document.close()
    idle(window, qtbot)
    with Study.open(path) as study:
        page = write_report(study, tmp_path / "report.html").read_text(encoding="utf-8")
        assert named in page.replace("\N{NO-BREAK SPACE}", " ")
        log = study.runs.get(1).log
    assert clicks.copies_in_words([{"annotators": 3}, *log["copies"]]) == ""  # a damaged study


@pytest.mark.parametrize(
    ("make", "limit"), [(cut_off_labels, "“Iterations”"), (cut_off_clicks, "“Detection iterations”")]
)
def test_labels_and_clicks_that_did_not_converge_are_marked_in_window_and_report(
    window, qtbot, tmp_path, make, limit
):
    path = tmp_path / "short.rscope"
    make(path)
    open_study(window, qtbot, path)
    words = window.workspace.notes.notes()["Not converged"]
    assert limit in words
    window.document.close()
    idle(window, qtbot)
    with Study.open(path) as study:
        page = write_report(study, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "did not converge in 1 iteration" in page
    assert limit in page
