"""Detections leave for other programs: an independent reader opens each, and they come back as they were."""

import csv
import json
import uuid
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import shapely
import shapely.geometry
from PIL import Image
from pycocotools.coco import COCO

from raterscope.app.cli import main
from raterscope.app.review import Decision, SpotSubject
from raterscope.app.study import Study

SPOTS = ((30.0, 40.0), (90.0, 40.0), (60.0, 120.0), (150.0, 60.0))
FORMATS = {"geojson": ".geojson", "coco": ".json", "cvat": ".xml", "napari": ".csv"}


@pytest.fixture(scope="module")
def fused(tmp_path_factory):
    """A study of two images by ten annotators, fused; on the first the expert had something to say."""
    folder = tmp_path_factory.mktemp("fused")
    rng = np.random.default_rng(3)
    lines = ["annotator,image,x,y"]
    for name in ("smear é.png", "two.png"):
        Image.fromarray(rng.integers(0, 255, (180, 200, 3), dtype=np.uint8)).save(folder / name)
        for index in range(10):
            for x, y in SPOTS:
                dx, dy = rng.normal(0, 1.2, 2)
                lines.append(f"w{index},{name},{x + dx:.2f},{y + dy:.2f}")
    (folder / "clicks.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    path = folder / "s.rscope"
    assert (
        main(["import", str(path), *map(str, sorted(folder.glob("*.png"))), str(folder / "clicks.csv")]) == 0
    )
    assert main(["run", str(path), "oem"]) == 0
    with Study.open(path) as study:
        first = study.images()[0].id

        def decide(verb, **position):
            study.record(Decision(verb=verb, item=first, subject=SpotSubject(**position)))

        decide("reject", x=30.0, y=40.0)
        decide("move", x=92.0, y=41.0, from_x=90.0, from_y=40.0)
        decide("skip", x=60.0, y=120.0)
        decide("add", x=10.0, y=170.25)
    return path


@pytest.fixture
def leave(fused, tmp_path, capsys):
    def export(format_name, name="out", *more):
        out = tmp_path / f"{name}{FORMATS.get(format_name, '.csv')}"
        options = ["--what", "detections", "--format", format_name, "-o", str(out), *more]
        assert main(["export", str(fused), *options]) == 0
        return capsys.readouterr().out.split("\n")[:-1]

    return export


@pytest.fixture
def detected(leave):
    """Return the positions that the table contains, by image."""
    (path,) = leave("csv", "table")
    points_of = {}
    with Path(path).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["detected"] == "1":
                points_of.setdefault(row["image"], []).append((float(row["x"]), float(row["y"])))
    assert {name: len(points) for name, points in points_of.items()} == {"smear é.png": 4, "two.png": 4}
    assert {(92.0, 41.0), (10.0, 170.25)} < set(points_of["smear é.png"])
    return points_of


def test_geojson_opens_as_geometries_and_as_qupath_reads_it(leave, detected, tmp_path):
    paths = leave("geojson")
    assert len(paths) == 2
    points_of, states = {}, Counter()
    for path in paths:
        with Path(path).open(encoding="ascii") as file:
            content = json.load(file)
        geometries = shapely.from_geojson(json.dumps(content))
        assert all(isinstance(point, shapely.Point) for point in geometries.geoms)
        points_of[content["image"]["name"]] = [(point.x, point.y) for point in geometries.geoms]
        assert len({uuid.UUID(feature["id"]) for feature in content["features"]}) == len(content["features"])
        for feature in content["features"]:
            properties_found = feature["properties"]
            assert properties_found["objectType"] == "annotation"
            assert set(properties_found["classification"]) == {"name", "color"}
            assert len(properties_found["classification"]["color"]) == 3
            states[properties_found["metadata"]["state"]] += 1
            # QuPath takes measurements for numbers and metadata for text.
            assert all(isinstance(value, (int, float)) for value in properties_found["measurements"].values())
            assert all(isinstance(value, str) for value in properties_found["metadata"].values())
    assert points_of == detected
    assert states == {"undecided": 5, "accepted": 1, "skipped": 1, "added": 1}


def test_cvat_holds_points_with_declared_labels_and_attributes(leave, detected):
    (path,) = leave("cvat")
    root = ElementTree.parse(path).getroot()
    assert root.findtext("version") == "1.1"
    declared = {
        label.findtext("name"): [attribute.findtext("name") for attribute in label.iter("attribute")]
        for label in root.find("meta/task/labels")
    }
    points_of, sources = {}, Counter()
    for image in root.iterfind("image"):
        assert (image.get("width"), image.get("height")) == ("200", "180")
        for points in image.iterfind("points"):
            x, y = points.get("points").split(",")
            points_of.setdefault(image.get("name"), []).append((float(x), float(y)))
            names = [attribute.get("name") for attribute in points.iterfind("attribute")]
            assert names == declared[points.get("label")]
            sources[points.get("source")] += 1
    assert sources == {"manual": 2, "auto": 6}
    for name, expected in detected.items():
        np.testing.assert_allclose(points_of[name], expected, atol=0.006)


def test_detections_in_a_file_of_cvat_are_recognised_as_truth(leave, fused, tmp_path, capsys):
    (path,) = leave("cvat")
    images = map(str, sorted(fused.parent.glob("*.png")))
    assert main(["import", str(tmp_path / "new.rscope"), *images, path]) == 0
    assert (
        "detections exported from Raterscope, which were imported as ground truth" in capsys.readouterr().out
    )


def test_coco_opens_in_its_own_reader(leave, detected, capsys):
    (path,) = leave("coco")
    coco = COCO(path)
    capsys.readouterr()
    points_of = {}
    for number in coco.getImgIds():
        (image,) = coco.loadImgs(number)
        assert (image["width"], image["height"]) == (200, 180)
        objects = coco.loadAnns(coco.getAnnIds(imgIds=number, catIds=coco.getCatIds("Detection")))
        points_of[image["file_name"]] = [tuple(entry["keypoints"][:2]) for entry in objects]
        for entry in objects:
            x, y, width, height = entry["bbox"]
            assert x < entry["keypoints"][0] < x + width
            assert y < entry["keypoints"][1] < y + height
            assert entry["area"] == pytest.approx(width * height)
            assert entry["num_keypoints"] == sum(v > 0 for v in entry["keypoints"][2::3]) == 1
            assert 0 <= entry["score"] <= 1
            certain = entry["attributes"]["state"] in ("accepted", "added")
            assert entry["score"] == (1.0 if certain else entry["attributes"]["posterior"])
    assert points_of == detected


def test_napari_counts_rows_first_and_from_the_centre_of_the_first_pixel(leave, detected):
    points_of = {}
    for path in leave("napari"):
        with Path(path).open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        # As napari's reader does: the axes are the data, the index is passed over, the others are properties.
        assert header[0] == "index"
        axes = [column.startswith("axis-") for column in header]
        data = np.array(rows)[:, axes].astype(float)
        (image,) = {row[header.index("image")] for row in rows}
        points_of[image] = [tuple(point) for point in data[:, ::-1] + 0.5]
    assert {name: len(points) for name, points in points_of.items()} == {"smear é.png": 4, "two.png": 4}
    for name, points in detected.items():
        np.testing.assert_allclose(points_of[name], points, atol=1e-9)


@pytest.mark.parametrize("name", [*FORMATS, "csv"])
def test_exported_detections_are_imported_as_the_same_truth(leave, detected, fused, tmp_path, name):
    back = tmp_path / "back.rscope"
    images = [str(path) for path in fused.parent.glob("*.png")]
    paths = leave(name)
    assert main(["import", str(back), *images]) == 0
    assert main(["import", str(back), "--kind", "truth", *paths]) == 0
    with Study.open(back) as study:
        for entry in study.images():
            true = study.truth(entry.id)
            true_points = sorted(zip(true.x.tolist(), true.y.tolist(), strict=True))
            np.testing.assert_allclose(true_points, sorted(detected[entry.name]), atol=1e-6)


@pytest.mark.parametrize("name", [*FORMATS, "csv"])
def test_own_detections_come_back_as_truth_unless_an_annotator_is_named(
    leave, detected, fused, tmp_path, capsys, name
):
    images = [str(path) for path in fused.parent.glob("*.png")]
    paths = leave(name)
    assert main(["import", str(tmp_path / "truth.rscope"), *images, *paths]) == 0
    output = capsys.readouterr().out
    with Study.open(tmp_path / "truth.rscope") as study:
        assert not study.annotators()
        assert [len(study.truth(entry.id).x) for entry in study.images()] == [4, 4]
    if name == "csv":  # a table without annotators can be nothing else
        return
    assert (
        "detections exported from Raterscope, which were imported as ground truth. --annotator NAME imports"
        in output
    )
    assert main(["import", str(tmp_path / "me.rscope"), *images, *paths, "--annotator", "me"]) == 0
    assert "left Raterscope" not in capsys.readouterr().out
    with Study.open(tmp_path / "me.rscope") as study:
        assert list(study.annotators()) == ["me"]


@pytest.mark.parametrize("version", ["0.5", "0.4", "0.3"])
def test_detections_edited_in_qupath_come_back_as_truth(leave, tmp_path, capsys, version):
    """QuPath leaves the member "image" out, up to 0.4 metadata too; up to 0.3 measurements were a list."""
    (path,) = leave("geojson", "two", "--item", "two.png")
    features = json.loads(Path(path).read_text(encoding="utf-8"))["features"]
    features[0]["geometry"]["coordinates"][0] += 3
    del features[1]
    for properties in (feature["properties"] for feature in features):
        if version != "0.5":
            del properties["metadata"]
        if version == "0.3":
            properties_found = properties["measurements"].items()
            properties["measurements"] = [{"name": name, "value": value} for name, value in properties_found]
    shapes = {
        "type": "Feature",
        "id": str(uuid.uuid4()),
        "geometry": {"type": "MultiPoint", "coordinates": [[5.5, 6.5], [7, 8]]},
        "properties": {
            "objectType": "annotation",
            "name": "by hand",
            "classification": {"name": "Gametocyte", "color": [200, 0, 0]},
            "isLocked": True,
        },
    }
    edited = tmp_path / "two.geojson"
    edited.write_text(json.dumps({"type": "FeatureCollection", "features": [*features, shapes]}))
    Image.effect_noise((200, 180), 60).save(tmp_path / "two.png")
    study = tmp_path / "back.rscope"
    assert main(["import", str(study), str(tmp_path / "two.png"), str(edited)]) == 0
    assert "Points of all classes are imported: Detection 3, Gametocyte 2." in capsys.readouterr().out
    with Study.open(study) as opened:
        true = opened.truth(opened.images()[0].id)
    points = set(zip(true.x.tolist(), true.y.tolist(), strict=True))
    coordinates = {tuple(feature["geometry"]["coordinates"]) for feature in features}
    assert points == {*coordinates, (5.5, 6.5), (7.0, 8.0)}


def test_one_image_is_exported_as_one_file_of_the_name_given(leave, tmp_path):
    assert leave("geojson", "one", "--item", "two.png") == [str(tmp_path / "one.geojson")]
    assert leave("geojson", "both") == [
        str(tmp_path / "both" / f"{name}_detections.geojson") for name in ("smear-é", "two")
    ]


def test_an_image_on_which_all_was_rejected_is_empty_and_no_layer(fused, tmp_path, capsys):
    path = tmp_path / "s.rscope"
    path.write_bytes(fused.read_bytes())
    with Study.open(path) as study:
        second = study.images()[1].id
        for x, y in SPOTS:
            study.record(Decision(verb="reject", item=second, subject=SpotSubject(x=x, y=y)))
    export = ["export", str(path), "--what", "detections", "--item", "two.png", "-o", str(tmp_path / "out")]
    assert main([*export, "--format", "geojson"]) == 0
    assert json.loads((tmp_path / "out.geojson").read_text())["features"] == []
    (tmp_path / "out.geojson").rename(tmp_path / "two_detections.geojson")
    back = [str(fused.parent / "two.png"), str(tmp_path / "two_detections.geojson")]
    assert main(["import", str(tmp_path / "back.rscope"), *back]) == 0
    assert "0 true points" in capsys.readouterr().out
    assert main([*export, "--format", "napari"]) == 1
    assert "contains no detections to write" in capsys.readouterr().err


def test_the_detections_of_a_real_crowd_are_at_the_positions_of_the_table(real_data, tmp_path, capsys):
    quantius = real_data / "clicks" / "quantius"
    with (quantius / "clicks.csv").open() as file:
        lines = [line for line in file if line.startswith(("image_id", "cells__MAX_C3_ISP_300_1_nspots50_"))]
    (tmp_path / "clicks.csv").write_text("".join(lines))
    path = tmp_path / "s.rscope"
    images = sorted(map(str, (quantius / "images").glob("cells__MAX_C3_ISP_300_1_nspots50_*")))
    assert main(["import", str(path), *images, str(tmp_path / "clicks.csv")]) == 0
    assert main(["run", str(path), "oem"]) == 0
    assert (
        main(
            ["export", str(path), "--what", "detections", "--format", "coco", "-o", str(tmp_path / "d.json")]
        )
        == 0
    )
    assert main(["export", str(path), "--what", "detections", "-o", str(tmp_path / "d.csv")]) == 0
    with (tmp_path / "d.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["detected"] == "1"]
    objects = COCO(str(tmp_path / "d.json")).dataset["annotations"]
    assert len(objects) == len(rows) > 100
    assert [entry["keypoints"][:2] for entry in objects] == [
        [float(row["x"]), float(row["y"])] for row in rows
    ]
    with Study.open(path) as study:
        image = study.images()[0]
        x, y = study.runs.result(1, image.id).clustering.mean[0]
        subject = SpotSubject(number=1, x=float(x), y=float(y))
        study.record(Decision(verb="accept", item=image.id, subject=subject, run=1))
    assert main(["export", str(path), "--what", "detections", "-o", str(tmp_path / "e.csv")]) == 0
    texts = []
    for name in ("d.csv", "e.csv"):
        with (tmp_path / name).open(newline="") as file:
            texts.append([(row["image"], row["x"], row["y"]) for row in csv.DictReader(file)])
    assert texts[0] == texts[1]


def test_a_name_without_a_suffix_gets_that_of_the_format(fused, tmp_path) -> None:
    for name in FORMATS:
        out = tmp_path / name
        assert main(["export", str(fused), "--what", "detections", "--format", name, "-o", str(out)]) == 0
    assert (tmp_path / "coco.json").is_file()
    assert (tmp_path / "cvat.xml").is_file()
    assert len(list((tmp_path / "geojson").glob("*.geojson"))) == 2
    assert len(list((tmp_path / "napari").glob("*.csv"))) == 2


def test_a_file_too_long_or_too_deep_for_a_record_does_not_stop_an_export(fused, tmp_path):
    long, deep = tmp_path / "a.run.json", tmp_path / "b.run.json"
    with long.open("wb") as file:
        file.truncate(200_000_000)
    deep.write_text("[" * 100_000, encoding="utf-8")
    for name in ("a", "b"):
        assert main(["export", str(fused), "--what", "detections", "-o", str(tmp_path / f"{name}.csv")]) == 0
    assert long.stat().st_size == 200_000_000
    for record in ("a-2.run.json", "b.run.json"):
        assert json.loads((tmp_path / record).read_text(encoding="utf-8"))["what"] == "detections"
