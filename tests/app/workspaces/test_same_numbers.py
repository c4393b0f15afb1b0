"""Window, files and report show the same numbers of the same run."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from raterscope.algorithms.progress import silent
from raterscope.app.cli.program import main
from raterscope.app.report import write_report
from raterscope.app.review import View
from raterscope.app.study import Study
from raterscope.app.workspaces.clicks.scene import read_scene
from raterscope.app.workspaces.clicks.view import click_marks, status
from raterscope.widgets.panels.stream_panel import FIRM, LOOSE
from tests.app.driving import LONG, idle, open_study
from tests.app.workspaces.clicks.test_streaming import HEADER, images_only, visit, wait_for, waiting
from tests.app.workspaces.labels.conftest import fused as fused_labels
from tests.app.workspaces.labels.conftest import labels_original, labels_original_fused, labels_study, opened
from tests.app.workspaces.pairs.conftest import pairs_original, pairs_study
from tests.app.workspaces.pairs.driving import key

__all__ = [
    "fused_labels", "images_only", "labels_original", "labels_original_fused", "labels_study", "opened",
    "pairs_original", "pairs_study", "waiting",
]  # fmt: skip

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
    workspace.run_comparison.radius.setValue(RADIUS)
    workspace.run_comparison.compare([1])
    idle(fused, qtbot)
    (row,) = workspace.run_comparison.table.view.model().rows
    sensitivity, precision, *_, detections = (figure[0] for figure in row.figures)
    words, path = workspace.trust.text, fused.document.contents.path
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


def test_outliers_by_the_threshold_of_the_run(window, qtbot, study_fused, tmp_path):
    path, table = Path(shutil.copy(study_fused, tmp_path / "one.rscope")), tmp_path / "clicks.csv"
    for threshold in ("0.5", "1"):
        assert main(["run", str(path), "oem", "--set", f"outlier_threshold={threshold}"]) == 0
        assert main(["export", str(path), "--what", "clicks", "-o", str(table)]) == 0
        opened = open_study(window, qtbot, path)
        scene = opened.workspace.reviewing.session.scene
        drawn = click_marks(scene, opened.document.numbers)
        of_image = [row for row in rows_of(table) if row["image"] == scene.image.name]
        assert drawn.outlier.tolist() == [not row["cluster"] for row in of_image]
        opened.files.close_study()
        idle(opened, qtbot)
    assert drawn.outlier.all()


def test_labels_against_truth(fused_labels, qtbot, tmp_path):
    workspace = fused_labels.workspace
    qtbot.waitUntil(lambda: bool(workspace.trust.text), timeout=LONG)
    words, path = workspace.trust.text, fused_labels.document.contents.path
    left = workspace.queue._progress.accessibleName().rpartition(", ")[2]
    assert left.endswith("tasks matter")
    shown = workspace.method_table.table.view.model().rows[0].figures
    fused_labels.files.close_study()
    idle(fused_labels, qtbot)
    assert main(["fuse", "labels", str(path), "--run", "1", "-o", str(tmp_path / "files")]) == 0
    (row,) = (row for row in rows_of(tmp_path / "files" / "evaluation.csv") if row["method"] == "pooled")
    names = ("accuracy", "auc", "log_loss", "calibration_error")
    assert [float(row[name]) for name in names] == pytest.approx([value for value, _, _ in shown])
    text = report_of(path, tmp_path)
    assert words in text
    assert f"error {float(row['calibration_error']):.2f}" in words
    assert f">{float(row['log_loss']):.3f}<" in text
    assert f"A decision matters on {left.removesuffix(' matter')}:" in text


def test_spots_viewed_and_left_undecided(study_fused, tmp_path):
    path = Path(shutil.copy(study_fused, tmp_path / "one.rscope"))
    with Study.open(path) as study:
        mean = study.runs.result(1, 1).clustering.mean
        study.views.record([View(image=1, x=x, y=y, seconds=2.0) for x, y in mean[:2].tolist()])
    assert main(["run", str(path), "oem"]) == 0
    target = tmp_path / "detections.csv"
    assert main(["export", str(path), "--what", "detections", "-o", str(target)]) == 0
    (run,) = json.loads((tmp_path / "detections.run.json").read_text())["runs"]
    assert run["viewed_undecided"] == 2
    text = report_of(path, tmp_path)
    assert "2 spots were known to have been viewed and left without a decision" in text
    assert "2 spots on 1 image were in sight" in text


def test_pairs_with_sides_drawn_again(window, qtbot, pairs_study, tmp_path):
    opened = open_study(window, qtbot, pairs_study)
    key(opened, qtbot, Qt.Key.Key_F5)
    workspace = opened.workspace
    workspace.left_tabs.setCurrentWidget(workspace.trust)
    qtbot.waitUntil(lambda: bool(workspace.trust.text), timeout=LONG)
    words, path = workspace.trust.text, opened.document.contents.path
    left = re.search(r"(\d+ of \d+) decisions? matters?", workspace.queue._progress.accessibleName())
    opened.files.close_study()
    idle(opened, qtbot)
    table = tmp_path / "pairs.csv"
    assert main(["export", str(path), "--what", "pairs", "-o", str(table)]) == 0
    assert main(["fuse", "pairs", str(table), "-o", str(tmp_path / "files")]) == 0
    trust = json.loads((tmp_path / "files" / "run.json").read_text())["trust"]
    redrawn = trust["redrawn_sides"]
    assert f"drawn again {redrawn['draws']} times" in words
    assert f"{100 * redrawn['share']:.1f} % of the p values were below 0.05" in words
    assert f"flagged in {redrawn['draws_with_flags']} of" in words
    assert not trust["contradicted"]
    text = report_of(path, tmp_path)
    assert words in text
    assert f"A decision matters on {left[1]} undecided annotators:" in text


def test_the_stop_rule_of_a_watched_source(waiting, qtbot, images_only, tmp_path, capsys):
    waiting.files.close_study()
    idle(waiting, qtbot)
    source = tmp_path / "clicks.csv"
    source.write_text(HEADER + "".join(visit(annotator, "one.png") for annotator in range(9)))
    assert main(["watch", str(images_only), str(source), "--once"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    text = [line for line in lines if line["event"] in ("image", "settled")][-1]
    open_study(waiting, qtbot, images_only)
    stream = waiting.workspace.stream
    stream.offers.resume.click()
    wait_for(waiting, qtbot, 9)
    assert stream._firm.text() == (FIRM if text["stop_rule_met"] else LOOSE)
    (now,) = waiting.workspace.streaming.live.following.watched.values()
    assert text["expected_changes"] == pytest.approx(now.outlook.expected, abs=1e-6)
    assert text["detections"] == int(now.fusion.detection.detected.sum())
    more = stream.stopping.more
    number = text["expected_changes"]
    shown = "under 0.1" if 0 < number < 0.1 else f"{number:.1f}"
    assert stream._outlook.text().startswith(f"{more} more: {shown} changes")
    line = next(line for line in waiting.workspace.queue.view.lines if line.title == "one.png")
    assert ("(enough)" in line.detail) == text["stop_rule_met"]


@pytest.mark.usefixtures("compiled")
def test_clicks_are_counted_alike_where_some_are_duplicates(crowd_files, tmp_path):
    *images, clicks, _ = crowd_files
    lines = clicks.read_text(encoding="utf-8").splitlines()
    table = tmp_path / "twice.csv"
    table.write_text("\n".join([*lines, *lines[1:4]]) + "\n", encoding="utf-8")
    path = tmp_path / "twice.rscope"
    assert main(["import", str(path), *map(str, images), str(table)]) == 0
    assert main(["run", str(path), "oem"]) == 0
    assert main(["export", str(path), "--what", "annotators", "-o", str(tmp_path / "annotators.csv")]) == 0
    with Study.open(path) as study:
        states = [status(read_scene(entry.id, None, study, silent), ()) for entry in study.images()]
    shown = sum(int(re.search(r"([\d,]+) clicks by", state)[1].replace(",", "")) for state in states)
    assert shown == sum(int(row["clicks"]) for row in rows_of(tmp_path / "annotators.csv")) == len(lines) - 1
    assert sum("3 duplicates not counted" in state for state in states) == 1
    report = report_of(path, tmp_path)
    assert f"{shown:,} clicks by" in report
    assert "3 duplicate clicks at the same position" in report
