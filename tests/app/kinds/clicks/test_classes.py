"""Classes of clicks from the file to the result, the decision, the counts and the exports."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from raterscope.algorithms.simulation.click_crowds import separated_crowd
from raterscope.app.cli import main
from raterscope.app.formats import read
from raterscope.app.formats.points import read_points
from raterscope.app.formats.sources import Source
from raterscope.app.kinds.clicks.evaluation import apply_decisions
from raterscope.app.review import Decision, SpotSubject, fold, in_words, known_spots
from raterscope.app.study import Study
from tests.algorithms.clicks.crowds import name_clicks
from tests.app.tables import rows_of

CLASSES = ("ring", "trophozoite", "white blood cell")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table of clicks with classes on two images, and the images."""
    folder = tmp_path_factory.mktemp("classes")
    lines = ["annotator,image,x,y,tool"]
    for image, name in enumerate(("a.png", "b.png")):
        Image.fromarray(np.zeros((1000, 1000), dtype=np.uint8)).save(folder / name)
        crowd = separated_crowd(12, seed=5 + image)
        clicks, _ = name_clicks(crowd.clicks, crowd.mean, CLASSES, seed=2, image=image)
        for x, y, annotator, label in zip(clicks.x, clicks.y, clicks.annotator, clicks.label, strict=True):
            lines.append(f"w{annotator},{name},{x:.2f},{y:.2f},{CLASSES[label]}")
    path = folder / "clicks.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def fused(table):
    path = table.with_name("s.rscope")
    assert main(["import", str(path), *map(str, table.parent.glob("*.png")), str(table)]) == 0
    assert main(["run", str(path), "oem"]) == 0
    return path


@pytest.fixture
def study(fused, tmp_path):
    copy = tmp_path / "s.rscope"
    copy.write_bytes(fused.read_bytes())
    return copy


def decide(path, label, verb="accept", image=1, cluster=0):
    """Decide the class of a cluster, and return the number of the decision."""
    with Study.open(path) as study:
        run, fusion = study.shown.result(image, "clicks")
        x, y = fusion.clustering.mean[cluster].tolist()
        subject = SpotSubject(x=x, y=y, number=cluster + 1, label=label)
        return study.record(Decision(verb=verb, item=image, subject=subject, run=run.id)).id


def test_a_table_with_a_column_of_tools_gives_classes(table):
    clicks = read(table)
    assert set(clicks.classes) == set(CLASSES)
    rows = rows_of(table)
    assert [clicks.classes[label] for label in clicks.label[:20]] == [row["tool"] for row in rows[:20]]


def test_a_column_with_too_many_values_is_no_class(tmp_path):
    lines = [f"w{row % 5},a.png,{row},{row},note {row}" for row in range(80)]
    path = tmp_path / "clicks.csv"
    path.write_text("annotator,image,x,y,label\n" + "\n".join(lines) + "\n")
    clicks = read(path)
    assert clicks.label is None
    assert any("80 values" in notice for notice in clicks.notices)


def test_empty_cells_and_annotators_without_marks_have_no_class(tmp_path):
    path = tmp_path / "clicks.csv"
    path.write_text("annotator,image,x,y,stage\nw1,a.png,1,2,ring\nw2,a.png,,,\nw3,a.png,1,3,\n")
    clicks = read(path)
    assert clicks.label.tolist() == [0, -1]
    assert clicks.looked == {(1, 0)}


def test_tools_of_zooniverse_are_classes(tmp_path):
    marks = [
        {"tool": 0, "tool_label": "Ring", "frame": 0, "details": [], "x": 1.0, "y": 2.0},
        {"tool": 1, "tool_label": "Schizont", "frame": 0, "details": [], "x": 5.0, "y": 6.0},
        {"tool": 0, "tool_label": "Ring", "frame": 0, "details": [], "x": 9.0, "y": 2.0},
    ]
    path = tmp_path / "classifications.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["classification_id", "user_name", "workflow_id", "created_at", "metadata", "annotations",
             "subject_data", "subject_ids"]
        )  # fmt: skip
        writer.writerow(
            [1, "kim", 7, "2020-01-01 00:00:00 UTC", "{}", json.dumps([{"task": "T0", "value": marks}]),
             json.dumps({"9": {"Filename": "a.png"}}), 9]
        )  # fmt: skip
    clicks = read(path)
    assert clicks.classes == ("Ring", "Schizont")
    assert clicks.label.tolist() == [0, 1, 0]


def test_keypoint_labels_and_categories_are_classes(tmp_path):
    def region(x, label):
        value = {"x": x, "y": 50.0, "width": 1, "keypointlabels": [label]}
        return {"type": "keypointlabels", "original_width": 100, "original_height": 100, "value": value}

    results = [region(10.0, "ring"), region(30.0, "schizont")]
    tasks = [{"id": 1, "data": {"image": "a.png"}, "annotations": [{"completed_by": 4, "result": results}]}]
    path = tmp_path / "studio.json"
    path.write_text(json.dumps(tasks))
    clicks = read_points(Source(path)).clicks
    assert [clicks.classes[label] for label in clicks.label] == ["ring", "schizont"]
    objects = [
        {
            "id": at,
            "image_id": 1,
            "category_id": category,
            "keypoints": [10 * at, 5, 2],
            "attributes": {"annotator": "kim"},
        }
        for at, category in enumerate((2, 1), start=1)
    ]
    content = {
        "images": [{"id": 1, "file_name": "a.png", "width": 100, "height": 100}],
        "categories": [{"id": 1, "name": "ring"}, {"id": 2, "name": "gametocyte"}],
        "annotations": objects,
    }
    path = tmp_path / "coco.json"
    path.write_text(json.dumps(content))
    clicks = read_points(Source(path)).clicks
    assert [clicks.classes[label] for label in clicks.label] == ["gametocyte", "ring"]


def test_exports_name_the_class_of_detections_and_clicks(study, tmp_path):
    decide(study, "white blood cell")
    out = tmp_path / "out"
    out.mkdir()
    for what in ("detections", "clicks", "annotators"):
        assert main(["export", str(study), "--what", what, "-o", str(out / f"{what}.csv")]) == 0
    detections = rows_of(out / "detections.csv")
    assert {row["class"] for row in detections} <= set(CLASSES)
    first = next(row for row in detections if row["verdict"] == "accepted")
    assert (first["class"], first["class_posterior"], first["p(white blood cell)"]) == (
        "white blood cell",
        "1",
        "1",
    )
    for row in detections:
        assert sum(float(row[f"p({name})"]) for name in CLASSES) == pytest.approx(1, abs=1e-4)
        assert float(row["class_posterior"]) == pytest.approx(float(row[f"p({row['class']})"]))
    assert {row["class"] for row in rows_of(out / "clicks.csv")} == set(CLASSES)
    assert all(0 < float(row["class_accuracy"]) < 1 for row in rows_of(out / "annotators.csv"))
    assert (
        main(["export", str(study), "--what", "detections", "--format", "coco", "-o", str(out / "c.json")])
        == 0
    )
    coco = json.loads((out / "c.json").read_text())
    assert {category["name"] for category in coco["categories"]} == {
        row["class"] for row in detections if row["detected"] == "1"
    }
    assert all(
        sum(each["attributes"]["class_probabilities"].values()) == pytest.approx(1, abs=1e-4)
        for each in coco["annotations"]
    )
    again = read(out / "clicks.csv")
    assert set(again.classes) == set(CLASSES)


def test_without_a_study_the_same_columns_are_written(table, tmp_path):
    assert main(["fuse", "clicks", str(table), "--extent", "1000", "1000", "-o", str(tmp_path / "r")]) == 0
    header = (tmp_path / "r" / "detections.csv").read_text().splitlines()[0]
    assert header.endswith("detected,class,class_posterior," + ",".join(f"p({name})" for name in CLASSES))


def test_a_decided_class_is_kept_undone_and_held_by_the_next_fusion(study):
    number = decide(study, "trophozoite")
    with Study.open(study) as opened:
        (spot,) = fold(opened.decisions()).spots(1)
        assert (spot.verdict, spot.label) == ("accepted", "trophozoite")
        assert in_words(opened.decisions()[-1]) == "accept spot 1 as trophozoite"
        known = known_spots([spot])
        assert known.classes == ("trophozoite",)
    assert main(["run", str(study), "oem"]) == 0
    with Study.open(study) as opened:
        classes = opened.shown.result(1, "clicks")[1].classes
        assert classes.names[classes.known[0]] == "trophozoite"
        opened.record(Decision(verb="undo", undoes=number))
        assert fold(opened.decisions()).spots(1) == []


def test_a_spot_that_is_rejected_has_no_class_and_a_plain_accept_keeps_it(study):
    decide(study, "ring")
    decide(study, "", verb="accept")
    with Study.open(study) as opened:
        assert fold(opened.decisions()).spots(1)[0].label == "ring"
    decide(study, "", verb="reject")
    with Study.open(study) as opened:
        assert fold(opened.decisions()).spots(1)[0].label == ""


def test_decisions_replace_the_shares_of_a_spot_and_an_added_spot_has_its_class(study):
    with Study.open(study) as opened:
        run, fusion = opened.shown.result(1, "clicks")
        x, y = fusion.clustering.mean[0].tolist()
        ring = SpotSubject(x=x, y=y, number=1, label="ring")
        opened.record(Decision(verb="accept", item=1, run=run.id, subject=ring))
        opened.record(Decision(verb="add", item=1, subject=SpotSubject(x=-200.0, y=-200.0, number=99)))
        spots = apply_decisions(fusion, fold(opened.decisions()).spots(1))
        assert [spots.shares[name][0] for name in CLASSES] == [1, 0, 0]
        assert all(np.isnan(spots.shares[name][-1]) for name in CLASSES)
        plain = apply_decisions(replace(fusion, classes=None), [])
        assert plain.shares == {}


def test_counts_are_by_class_and_leukocytes_are_what_parasites_are_counted_against(study, tmp_path):
    assert main(["export", str(study), "--what", "counts", "-o", str(tmp_path / "counts.csv")]) == 0
    rows = {(row["image"], row["quantity"]): row for row in rows_of(tmp_path / "counts.csv")}
    together = {name: float(rows["", name]["value"]) for name in (*CLASSES, "Parasites")}
    assert together["Parasites"] == pytest.approx(together["ring"] + together["trophozoite"], abs=0.01)
    per_white_cell = rows["", "Per microlitre, by leukocytes"]
    assert float(per_white_cell["value"]) == pytest.approx(
        together["Parasites"] * 8000 / together["white blood cell"], rel=0.01
    )
    assert float(per_white_cell["low"]) < float(per_white_cell["value"]) < float(per_white_cell["high"])
    ring = rows["", "ring: per microlitre, by leukocytes"]
    assert float(ring["value"]) == pytest.approx(
        together["ring"] * 8000 / together["white blood cell"], rel=0.01
    )
    assert ("", "white blood cell: per microlitre, by leukocytes") not in rows


def test_the_report_has_the_counts_by_class_and_the_method(study, tmp_path):
    assert main(["report", str(study), "-o", str(tmp_path / "r.html")]) == 0
    text = (tmp_path / "r.html").read_text()
    assert "Counts by class" in text
    assert all(name in text for name in CLASSES)
    assert "Classes of clicks" in text
    assert "Dawid" in text


def test_renamed_classes_are_those_of_clicks_results_decisions_and_exports(study, tmp_path):
    decide(study, "ring")
    assert main(["rename", str(study), "class:ring=early", "class:white blood cell=leukocyte"]) == 0
    with Study.open(study) as opened:
        _, fusion = opened.shown.result(1, "clicks")
        assert fusion.classes.names == ("early", "leukocyte", "trophozoite")
        assert set(opened.clicks(1).classes) == {"early", "leukocyte", "trophozoite"}
        assert [spot.label for spot in fold(opened.decisions()).spots(1)] == ["early"]
    assert main(["export", str(study), "--what", "clicks", "-o", str(tmp_path / "clicks.csv")]) == 0
    assert {row["class"] for row in rows_of(tmp_path / "clicks.csv")} == {"early", "leukocyte", "trophozoite"}
    assert main(["rename", str(study), "class:trophozoite=early"]) == 0
    with Study.open(study) as opened:
        run, fusion = opened.shown.result(1, "clicks")
        assert fusion.classes.names == ("early", "leukocyte")
        np.testing.assert_allclose(fusion.classes.posterior.sum(axis=1), 1.0)
        assert "merged now" in opened.shown.outdated(run, [1])[0]
    assert main(["run", str(study), "oem"]) == 0
