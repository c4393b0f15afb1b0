"""Retirement lists: subjects of Zooniverse that need no more annotators."""

import ast
import csv
import json

import numpy as np
import pytest

from raterscope.app.cli import main
from raterscope.app.review import Decision, TaskSubject
from raterscope.app.study import Study
from tests.app.tables import rows_of

SPOTS = np.array([[x, y] for x in range(50, 600, 90) for y in range(50, 400, 90)], dtype=float)
HEADER = (
    "classification_id",
    "user_name",
    "created_at",
    "metadata",
    "annotations",
    "subject_data",
    "subject_ids",
)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """One image that ten volunteers mark alike, and one that two mark at random; with a question each."""
    folder = tmp_path_factory.mktemp("retirement")
    rng = np.random.default_rng(4)
    with (folder / "export.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for subject, name, volunteers in ((11, "clear.png", 10), (12, "unclear.png", 2)):
            for volunteer in range(volunteers):
                points = SPOTS + rng.normal(0, 2, SPOTS.shape)
                if subject == 12:
                    points = rng.uniform(20, 380, (8, 2))
                marks = [{"tool": 0, "frame": 0, "details": [], "x": x, "y": y} for x, y in points.tolist()]
                tasks = [{"task": "T0", "value": marks}, {"task": "T1", "task_label": "Any?", "value": "Yes"}]
                size = {"subject_dimensions": [{"naturalWidth": 600, "naturalHeight": 400}]}
                data = {str(subject): {"Filename": name}}
                cells = [json.dumps(size), json.dumps(tasks), json.dumps(data), subject]
                writer.writerow(
                    [100 * subject + volunteer, f"v{volunteer}", "2024-01-02 03:04:05 UTC", *cells]
                )
    path = folder / "s.rscope"
    assert main(["import", str(path), str(folder / "export.csv")]) == 0
    for algorithm in ("oem", "pooled"):
        assert main(["run", str(path), algorithm]) == 0
    return path


def retired(study, kind, tmp_path):
    target = tmp_path / f"{kind}.csv"
    assert main(["export", str(study), "--what", "retirement", "--kind", kind, "-o", str(target)]) == 0
    return rows_of(target)


def test_images_retire_with_their_subject_once_few_decisions_would_change(study, tmp_path, capsys):
    (row,) = retired(study, "clicks", tmp_path)
    assert (row["subject"], row["image"], row["annotators"]) == ("11", "clear.png", "10")
    assert int(row["detections"]) == len(SPOTS)
    assert float(row["expected_changes"]) <= 0.02 * len(SPOTS)
    assert float(row["unchanged_probability"]) > 0.5
    assert "no more annotators: 1 of 2" in capsys.readouterr().err


def test_tasks_retire_with_enough_votes_or_by_a_decision(study, tmp_path):
    (row,) = retired(study, "labels", tmp_path)
    assert (row["subject"], row["task"], row["votes"]) == ("11", "clear.png", "10")
    assert float(row["probability"]) >= 0.95
    with Study.open(study) as opened:
        (question,) = opened.questions()
        subject = TaskSubject(task="unclear.png", label="No")
        opened.record(Decision(verb="label", item=question.id, subject=subject))
    rows = {row["subject"]: row for row in retired(study, "labels", tmp_path)}
    assert rows["12"]["reason"] == "decided by the expert"
    assert rows["12"]["label"] == "No"


def test_results_are_written_as_reductions_of_zooniverse(study, tmp_path):
    def reductions(what):
        target = tmp_path / f"{what}.csv"
        assert main(["export", str(study), "--what", what, "--format", "panoptes", "-o", str(target)]) == 0
        return {row["subject_id"]: row for row in rows_of(target)}

    rows = reductions("detections")
    assert rows["11"]["task"] == "T0"
    clusters = {
        key: ast.literal_eval(rows["11"][f"data.frame0.T0_tool0_clusters_{key}"])
        for key in ("x", "y", "count", "var_x", "probability")
    }
    found = np.column_stack([clusters["x"], clusters["y"]])
    nearest = np.linalg.norm(found[:, None] - SPOTS, axis=2)
    assert len(found) == len(SPOTS)
    assert (nearest.min(axis=0) < 3).all()
    assert np.median(clusters["count"]) >= 9
    assert 1 < np.mean(clusters["var_x"]) < 9  # volunteers scatter with a standard deviation of 2
    assert reductions("labels")["11"]["data.choice"] == "Yes"


def test_reductions_need_subjects(tmp_path, capsys):
    votes = tmp_path / "votes.csv"
    votes.write_text("annotator,task,label\na,1,x\nb,1,x\na,2,y\nb,2,y\n")
    own, target = str(tmp_path / "own.rscope"), str(tmp_path / "labels.csv")
    assert main(["import", own, str(votes)]) == 0
    assert main(["run", own, "majority"]) == 0
    assert main(["export", own, "--what", "labels", "--format", "panoptes", "-o", target]) == 1
    assert "the study has no Zooniverse subjects" in capsys.readouterr().err
