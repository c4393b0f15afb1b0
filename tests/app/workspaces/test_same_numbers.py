"""The window, the files and the report say the same numbers of the same run."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest

from raterscope.app.cli.program import main
from raterscope.app.report import write_report
from raterscope.app.review import View
from raterscope.app.study import Study
from tests.app.driving import LONG, idle
from tests.app.workspaces.labels.conftest import fused as fused_labels
from tests.app.workspaces.labels.conftest import labels_study, opened

__all__ = ["fused_labels", "labels_study", "opened"]

RADIUS = 0.3
"""So small that detections are missed."""


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def report_of(path, folder):
    with Study.open(path) as study:
        text = write_report(study, folder / "report.html").read_text(encoding="utf-8")
    return text.replace("\xa0", " ").replace("&#160;", " ").replace("&nbsp;", " ")


@pytest.mark.usefixtures("compiled")
def test_clicks_against_truth_within_the_studys_radius(fused, qtbot, crowd_files, tmp_path):
    workspace = fused.workspace
    workspace.comparing.radius.setValue(RADIUS)
    workspace.comparing.compare([1])
    idle(fused, qtbot)
    (row,) = workspace.comparing.table.view.model().rows
    detections, sensitivity, precision = (figure[0] for figure in row.figures[:3])
    words, path = workspace.trust.words, fused.document.contents.path
    left = re.search(r"(\d+ of \d+) disputed spots matter", workspace.queue._progress.accessibleName())[1]
    fused.files.close_study()
    idle(fused, qtbot)
    *images, clicks, truth = map(str, crowd_files)
    command = ["fuse", "clicks", clicks, "--images", *images, "--truth", truth, "--radius", str(RADIUS)]
    assert main([*command, "-o", str(tmp_path / "files")]) == 0
    *_, mean = rows_of(tmp_path / "files" / "evaluation.csv")
    assert (mean["image"], float(mean["detections"])) == ("mean", detections)
    assert [float(mean["sensitivity"]), float(mean["precision"])] == pytest.approx([sensitivity, precision])
    text = report_of(path, tmp_path)
    assert sensitivity < 1
    assert words.startswith("Of 12 spots with known truth")
    assert words in text
    assert f"within {RADIUS:g} px" in text
    assert f"A decision matters on {left} disputed spots:" in text


def test_labels_against_truth(fused_labels, qtbot, tmp_path):
    workspace = fused_labels.workspace
    qtbot.waitUntil(lambda: bool(workspace.trust.words), timeout=LONG)
    words, path = workspace.trust.words, fused_labels.document.contents.path
    left = workspace.queue._progress.accessibleName().rpartition(", ")[2]
    assert left.endswith("tasks matter")
    shown = workspace.comparing.table.view.model().rows[0].figures
    fused_labels.files.close_study()
    idle(fused_labels, qtbot)
    assert main(["fuse", "labels", str(path), "--run", "1", "-o", str(tmp_path / "files")]) == 0
    (row,) = (one for one in rows_of(tmp_path / "files" / "evaluation.csv") if one["method"] == "pooled")
    names = ("accuracy", "auc", "log_loss", "calibration_error")
    assert [float(row[name]) for name in names] == pytest.approx([value for value, _, _ in shown])
    text = report_of(path, tmp_path)
    assert words in text
    assert f"error {float(row['calibration_error']):.2f}" in words
    assert f">{float(row['log_loss']):.3f}<" in text
    assert f"A decision matters on {left.replace('tasks matter', 'disputed tasks')}:" in text


def test_spots_viewed_and_left_undecided(study_fused, tmp_path):
    path = Path(shutil.copy(study_fused, tmp_path / "one.rscope"))
    with Study.open(path) as study:
        mean = study.result(1, 1).clustering.mean
        study.record_views([View(image=1, x=x, y=y, seconds=2.0) for x, y in mean[:2].tolist()])
    assert main(["run", str(path), "oem"]) == 0
    target = tmp_path / "detections.csv"
    assert main(["export", str(path), "--what", "detections", "-o", str(target)]) == 0
    (run,) = json.loads((tmp_path / "detections.run.json").read_text())["runs"]
    assert run["viewed_undecided"] == 2
    text = report_of(path, tmp_path)
    assert "2 spots were known to have been viewed and left without a decision" in text
    assert "2 spots on 1 image were in sight" in text
