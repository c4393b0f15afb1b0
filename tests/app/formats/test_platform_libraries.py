"""The platforms' own libraries read what Raterscope writes, and write what it reads: the same numbers."""

import csv
import json
import re
from collections import Counter
from shutil import copy
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from raterscope.app.formats import ClickTable, read
from raterscope.app.formats.labels import read_labels
from raterscope.app.formats.masks import read_masks
from raterscope.app.formats.points import read_points
from raterscope.app.formats.records import TrueLabels
from raterscope.app.review import Decision, TaskSubject
from raterscope.app.study import Study
from tests.app.commands import run
from tests.app.formats import test_zooniverse as zooniverse
from tests.app.formats.masks.test_annotations import cvat
from tests.app.kinds.labels.made import make_study, write_votes
from tests.app.tables import rows_of, write

pytestmark = pytest.mark.filterwarnings("default")  # of the libraries
SPOTS = ((30.0, 40.0), (90.0, 40.0), (60.0, 120.0), (150.0, 60.0))


@pytest.fixture(scope="module")
def smears(tmp_path_factory):
    """A study of two images, clicked by ten annotators and fused."""
    folder = tmp_path_factory.mktemp("smears")
    random = np.random.default_rng(3)
    rows = []
    for name in ("one.png", "two.png"):
        Image.fromarray(random.integers(0, 255, (180, 200, 3), dtype=np.uint8)).save(folder / name)
        for annotator in range(10):
            for x, y in random.normal(SPOTS, 1.2):
                rows.append((f"w{annotator}", name, round(x, 2), round(y, 2)))
    write(folder / "clicks.csv", ("annotator", "image", "x", "y"), rows)
    path = folder / "s.rscope"
    assert run("import", path, folder / "one.png", folder / "two.png", folder / "clicks.csv") == 0
    assert run("run", path, "oem") == 0
    return path


def detections_of(smears, folder):
    assert run("export", smears, "--what", "detections", "-o", folder / "d.csv") == 0
    rows = [row for row in rows_of(folder / "d.csv") if row["detected"] == "1"]
    return sorted((row["image"].removesuffix(".png"), float(row["x"]), float(row["y"])) for row in rows)


def test_label_studio_validates_predictions_and_reviews(tmp_path):
    interface = pytest.importorskip("label_studio_sdk.label_interface").LabelInterface
    converter = pytest.importorskip("label_studio_sdk.converter").Converter
    study = make_study(tmp_path / "s.rscope", write_votes(tmp_path / "votes.csv"))
    assert run("run", study, "majority") == 0
    with Study.open(study) as opened:
        subject = TaskSubject(task="t5", label="dog")
        opened.record(Decision(verb="label", item=opened.questions()[0].id, subject=subject))
    file = tmp_path / "tasks.json"
    assert run("export", study, "--what", "labels", "--format", "label-studio", "-o", file) == 0
    config = interface(file.with_suffix(".xml").read_text())
    config.validate()
    tasks = json.loads(file.read_text())
    for task in tasks:
        assert not any(config.validate_prediction(entry, return_errors=True) for entry in task["predictions"])
        assert all(map(config.validate_annotation, task["annotations"]))
    converted = converter(config=str(file.with_suffix(".xml")), project_dir=None)
    converted.convert_to_csv(str(file), str(tmp_path / "csv"), is_dir=False, sep=",")
    (table,) = (tmp_path / "csv").rglob("*.csv")
    reviewed = [(row["text"], row["label"]) for row in rows_of(table) if row["label"]]
    assert reviewed == [("t5", "dog")]


def test_datumaro_reads_keypoints_and_its_cvat_file_comes_back(smears, tmp_path):
    datumaro = pytest.importorskip("datumaro")
    for name in ("annotations", "images/train"):
        (tmp_path / "coco" / name).mkdir(parents=True)
    file = tmp_path / "coco" / "annotations" / "person_keypoints_train.json"
    assert run("export", smears, "--what", "detections", "--format", "coco", "-o", file) == 0
    file.with_name(f"{file.stem}.run.json").unlink()  # datumaro reads all files beside it
    dataset = datumaro.Dataset.import_from(str(tmp_path / "coco"), "coco_person_keypoints")
    expected = detections_of(smears, tmp_path)
    read_back = sorted(
        (item.id, *annotation.points[:2])
        for item in dataset
        for annotation in item.annotations
        if type(annotation).__name__ == "Points"
    )
    assert [name for name, _, _ in read_back] == [name for name, _, _ in expected]
    positions = [entry[1:] for entry in expected]
    np.testing.assert_allclose([entry[1:] for entry in read_back], positions, atol=0.01)

    dataset.export(str(tmp_path / "cvat"), "cvat", save_media=False)
    (file,) = (tmp_path / "cvat").glob("*.xml")
    clicks = read_points(file).clicks
    names = [clicks.images[image].removesuffix(".png") for image in clicks.image]
    back = sorted(zip(names, clicks.x, clicks.y, strict=True))
    np.testing.assert_allclose([entry[1:] for entry in back], positions, atol=0.01)


def test_datumaro_reads_points_of_cvat(smears, tmp_path):
    datumaro = pytest.importorskip("datumaro")
    (tmp_path / "cvat" / "images").mkdir(parents=True)  # datumaro refuses the file without its images
    with Study.open(smears) as study:
        for entry in study.images():
            copy(smears.parent / entry.path, tmp_path / "cvat" / "images" / entry.name)
    file = tmp_path / "cvat" / "annotations.xml"
    assert run("export", smears, "--what", "detections", "--format", "cvat", "-o", file) == 0
    dataset = datumaro.Dataset.import_from(str(tmp_path / "cvat"), "cvat")
    read_back = sorted((item.id, *points.points) for item in dataset for points in item.annotations)
    expected = detections_of(smears, tmp_path)
    assert [name for name, _, _ in read_back] == [name for name, _, _ in expected]
    np.testing.assert_allclose([p[1:] for p in read_back], [e[1:] for e in expected], atol=0.01)


def test_datumaro_reads_the_boxes_of_a_yolo_set(smears, tmp_path):
    datumaro = pytest.importorskip("datumaro")
    folder = tmp_path / "yolo"
    assert run("export", smears, "--what", "training", "--format", "yolo", "-o", folder) == 0
    dataset = datumaro.Dataset.import_from(str(folder), "yolo")
    middles = sorted(
        (item.id, box.x + box.w / 2, box.y + box.h / 2) for item in dataset for box in item.annotations
    )
    expected = detections_of(smears, tmp_path)
    assert Counter(name for name, _, _ in middles) == Counter(name for name, _, _ in expected)
    np.testing.assert_allclose([m[1:] for m in middles], [e[1:] for e in expected], atol=0.02)


def test_panoptes_extracts_the_same_points(tmp_path):
    extractor = pytest.importorskip(
        "panoptes_aggregation.extractors.point_extractor_by_frame", exc_type=ImportError
    )
    utilities = pytest.importorskip("panoptes_aggregation.extractors.utilities")
    marks = [(12.5, 30.0), (80.25, 41.0)]
    annotations = zooniverse.drawing(*(zooniverse.point(x, y) for x, y in marks))
    by_task = utilities.annotation_by_task({"annotations": annotations})
    extracted = extractor.point_extractor_by_frame(by_task, task="T0", tools=[0])
    frame = extracted["frame0"]
    assert list(zip(frame["T0_tool0_x"], frame["T0_tool0_y"], strict=True)) == marks
    row = dict.fromkeys(zooniverse.HEADER, "") | {
        "classification_id": "1",
        "user_name": "anna",
        "metadata": "{}",
        "annotations": json.dumps(annotations),
        "subject_data": json.dumps({"7": {"Filename": "one.png"}}),
        "subject_ids": "7",
    }
    with (tmp_path / "classifications.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, zooniverse.HEADER)
        writer.writeheader()
        writer.writerow(row)
    table = read(tmp_path / "classifications.csv")
    assert isinstance(table, ClickTable)
    assert list(zip(table.x.tolist(), table.y.tolist(), strict=True)) == marks


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """A study of two pictures with masks of three raters, and the true masks: the majority of the raters."""
    folder = tmp_path_factory.mktemp("cells")
    random, rows, columns = np.random.default_rng(7), *np.mgrid[:60, :80]
    truths = {}
    for name, middle in (("one", 30), ("two", 50)):
        Image.fromarray(random.integers(0, 255, (60, 80, 3), dtype=np.uint8)).save(folder / f"{name}.png")
        drawn = [
            (columns - middle) ** 2 + (rows - 25) ** 2 < radius**2
            for radius in random.permutation([9, 12, 16])
        ]
        for rater, mask in zip(("anna", "ben", "cleo"), drawn, strict=True):
            Image.fromarray(np.uint8(255 * mask)).save(folder / f"{name}_mask_{rater}.png")
        truths[f"{name}.png"] = np.sum(drawn, axis=0) >= 2
    path = folder / "m.rscope"
    assert run("import", path, *sorted(folder.glob("*.png"))) == 0
    assert run("run", path, "majority") == 0
    return path, truths


def test_a_consensus_of_pictures_goes_to_cvat_and_comes_back(cells, tmp_path, capsys):
    (study, truths), file = cells, tmp_path / "c.xml"
    truths = dict(truths)
    assert run("export", study, "--what", "consensus", "--format", "cvat", "-o", file) == 0
    for mask in read_masks(file).masks:
        values = np.zeros(mask.grid.shape, dtype=bool)
        box = tuple(slice(at, at + n) for at, n in zip(mask.origin, mask.values.shape, strict=True))
        values[box] = mask.values
        np.testing.assert_array_equal(values[0], truths.pop(mask.item))
    assert not truths
    assert run("import", tmp_path / "n.rscope", study.with_name("one.png"), file) == 0
    assert "is a consensus of Raterscope" in capsys.readouterr().out
    job = "<job><assignee>zoe</assignee></job><task><name>My task</name>"
    edited = file.read_text().replace("<task>", job, 1).replace("<name>Raterscope", "<name>")
    file.write_text(edited)
    assert {mask.annotator for mask in read_masks(file).masks} == {"zoe"}


def test_cvat_decodes_a_consensus(cells, tmp_path):
    decode_mask = pytest.importorskip("cvat_sdk.masks").decode_mask
    datumaro = pytest.importorskip("datumaro")
    (study, truths), file = cells, tmp_path / "cvat" / "annotations.xml"
    (tmp_path / "cvat" / "images").mkdir(parents=True)
    for name in truths:
        copy(study.with_name(name), tmp_path / "cvat" / "images" / name)
    assert run("export", study, "--what", "consensus", "--format", "cvat", "-o", file) == 0
    for image in ElementTree.parse(file).getroot().iterfind("image"):
        (mask,) = image
        left, top, width, height = (int(mask.get(side)) for side in ("left", "top", "width", "height"))
        points = [*map(int, mask.get("rle").split(",")), left, top, left + width - 1, top + height - 1]
        decoded = decode_mask(points, image_width=80, image_height=60)
        np.testing.assert_array_equal(decoded, truths[image.get("name")])
    for item in datumaro.Dataset.import_from(str(tmp_path / "cvat"), "cvat"):
        (mask,) = item.annotations
        np.testing.assert_array_equal(mask.image, truths[f"{item.id}.png"])


def test_tags_go_to_cvat_and_come_back_as_truth(tmp_path):
    study = make_study(tmp_path / "s.rscope", write_votes(tmp_path / "votes.csv"))
    assert run("run", study, "majority") == 0
    (tmp_path / "cvat" / "images").mkdir(parents=True)
    file = tmp_path / "cvat" / "annotations.xml"
    assert run("export", study, "--what", "labels", "--format", "cvat", "-o", file) == 0
    assert run("export", study, "--what", "labels", "-o", tmp_path / "labels.csv") == 0
    expected = {row["task"]: row["label"] for row in rows_of(tmp_path / "labels.csv")}
    (table,) = read_labels(file)
    assert isinstance(table, TrueLabels)
    assert dict(zip(table.tasks, (table.classes[at] for at in table.label), strict=True)) == expected
    datumaro = pytest.importorskip("datumaro")
    for task in expected:  # datumaro refuses the file without its images
        Image.new("RGB", (4, 3)).save(file.parent / "images" / f"{task}.png")
    file.write_text(re.sub(r'name="(t\d+)"', r'name="\1.png"', file.read_text()))
    dataset = datumaro.Dataset.import_from(str(file.parent), "cvat")
    names = [label.name for label in dataset.categories()[datumaro.AnnotationType.label]]
    assert {item.id: names[item.annotations[0].label] for item in dataset} == expected


def test_masks_as_cvat_encodes_them(tmp_path):
    encode_mask = pytest.importorskip("cvat_sdk.masks").encode_mask
    drawn = np.random.default_rng(5).random((17, 23)) < 0.4
    *counts, left, top, right, bottom = map(int, encode_mask(drawn))
    shape = (
        f'<mask label="cell" rle="{", ".join(map(str, counts))}" left="{left}" top="{top}" '
        f'width="{right - left + 1}" height="{bottom - top + 1}"/>'
    )
    (tmp_path / "a.xml").write_text(cvat(shape).replace('width="20" height="10"', 'width="23" height="17"'))
    (mask,) = read_masks(tmp_path / "a.xml").masks
    values = np.zeros(mask.grid.shape, dtype=bool)
    box = tuple(slice(at, at + n) for at, n in zip(mask.origin, mask.values.shape, strict=True))
    values[box] = mask.values
    np.testing.assert_array_equal(values[0], drawn)
