"""Exports by groups of images: patients from a table, folders; figures of a group are those of its images."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pycocotools.coco import COCO

from raterscope.algorithms.simulation.click_crowds import separated_crowd
from raterscope.app.cli import main
from raterscope.app.errors import InputError
from raterscope.app.review import Decision, SpotSubject, fold, undo
from raterscope.app.study import Study
from raterscope.app.study.image_groups import present_groups, read_groups, store_groups
from tests.app.tables import rows_of

PATIENTS = {"a.png": "P1", "b.png": "P1", "c.png": "P2"}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("groups")
    lines = ["annotator,image,x,y"]
    for image, (name, patient) in enumerate(PATIENTS.items()):
        path = folder / patient / name
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(np.random.default_rng(image).integers(0, 255, (1000, 1000), np.uint8)).save(path)
        clicks = separated_crowd(12, seed=5 + image).clicks
        lines += [
            f"w{annotator},{name},{x:.2f},{y:.2f}"
            for x, y, annotator in zip(clicks.x, clicks.y, clicks.annotator, strict=True)
        ]
    (folder / "clicks.csv").write_text("\n".join(lines) + "\n")
    table = ["image,patient,hospital", *(f"{name},{patient},H" for name, patient in PATIENTS.items())]
    (folder / "patients.csv").write_text("\n".join(table) + "\n")
    path = folder / "s.rscope"
    images = [str(folder / patient / name) for name, patient in PATIENTS.items()]
    assert main(["import", str(path), *images, str(folder / "clicks.csv")]) == 0
    assert main(["run", str(path), "oem"]) == 0
    return path


def export(study, tmp_path, what, *options, name="out.csv"):
    target = tmp_path / name
    assert main(["export", str(study), "--what", what, "-o", str(target), *options]) == 0
    return target


def test_counts_of_a_group_are_the_sums_over_its_images(study, tmp_path):
    groups = ["--groups", str(study.with_name("patients.csv"))]
    by_group = rows_of(export(study, tmp_path, "counts", *groups, name="groups.csv"))
    by_image = rows_of(export(study, tmp_path, "counts", name="images.csv"))
    value = {(row["image"], row["quantity"]): float(row["value"]) for row in by_image}
    figures = {(row["group"], row["quantity"]): row for row in by_group}
    assert {row["group"] for row in by_group} == {"P1", "P2"}
    assert figures["P1", "Structures"]["images"] == "2"
    total = value["a.png", "Structures"] + value["b.png", "Structures"]
    assert float(figures["P1", "Structures"]["value"]) == pytest.approx(total)
    assert float(figures["P2", "Structures"]["value"]) == pytest.approx(value["c.png", "Structures"])
    low, high = (float(figures["P1", "Per field"][end]) for end in ("low", "high"))
    assert low < total / 2 < high


def test_folders_are_groups_too(study, tmp_path):
    by_table, _ = grouped(study, study.with_name("patients.csv"))
    by_folder, _ = grouped(study, "folders")
    assert by_table == by_folder
    (tmp_path / "sites.csv").write_text("image,where\na.png,north\nb.png,south\n")
    by_column, notices = grouped(study, tmp_path / "sites.csv", "where")
    assert by_column == {"north": (1,), "south": (2,)}
    assert notices == ["1 image without a group skipped."]


def test_a_training_set_keeps_patients_apart_and_has_the_boxes_of_the_detections(study, tmp_path):
    groups = ["--groups", str(study.with_name("patients.csv"))]
    target = export(study, tmp_path, "training", *groups, name="set.yaml")
    folder = target.with_suffix("")
    assert not target.exists()
    assert (folder / "data.yaml").read_text() == (
        'train: images/train\nval: images/val\nnames:\n  0: "structure"\n'
    )
    stems = {
        split: {path.stem for path in (folder / "images" / split).iterdir()} for split in ("train", "val")
    }
    assert sorted(map(sorted, stems.values())) == [["a", "b"], ["c"]]
    detections = rows_of(export(study, tmp_path, "detections", name="detections.csv"))
    for split, names in stems.items():
        for stem in names:
            lines = (folder / "labels" / split / f"{stem}.txt").read_text().splitlines()
            expected = [row for row in detections if row["image"] == f"{stem}.png" and row["detected"] == "1"]
            centres = [[float(row[axis]) / 1000 for axis in "xy"] for row in expected]
            np.testing.assert_allclose(
                [list(map(float, line.split()[1:3])) for line in lines], centres, atol=0.03
            )
            assert all(line.split()[0] == "0" and len(line.split()) == 5 for line in lines)
    again = ["export", str(study), "--what", "training", "-o", str(folder), *groups]
    assert main(again) == 1  # an image in train must not be left from another split
    soft = rows_of(folder / "soft_labels.csv")
    assert len(soft) == sum(row["detected"] == "1" for row in detections)
    assert {(row["group"], row["split"]) for row in soft} == {
        (PATIENTS[f"{stem}.png"], split) for split, names in stems.items() for stem in names
    }


def test_a_training_set_of_coco_has_the_boxes_of_yolo(study, tmp_path):
    groups = ["--groups", str(study.with_name("patients.csv"))]
    yolo = export(study, tmp_path, "training", *groups, name="yolo")
    folder = export(study, tmp_path, "training", *groups, "--format", "coco-boxes", name="coco")
    assert {path.name for path in (folder / "annotations").iterdir()} == {"train.json", "val.json"}
    assert (folder / "training.run.json").exists()
    assert (folder / "soft_labels.csv").read_bytes() == (yolo / "soft_labels.csv").read_bytes()
    for split in ("train", "val"):
        coco = COCO(folder / "annotations" / f"{split}.json")
        assert [category["name"] for category in coco.loadCats(coco.getCatIds())] == ["structure"]
        pictures = coco.loadImgs(coco.getImgIds())
        assert {image["file_name"] for image in pictures} == {
            path.name for path in (folder / "images" / split).iterdir()
        }
        for image in pictures:
            size = np.array([image["width"], image["height"]] * 2)
            boxes = [item["bbox"] for item in coco.loadAnns(coco.getAnnIds(image["id"]))]
            boxes = [[left + wide / 2, top + high / 2, wide, high] for left, top, wide, high in boxes]
            label = yolo / "labels" / split / f"{Path(image['file_name']).stem}.txt"
            lines = [list(map(float, line.split()[1:])) for line in label.read_text().splitlines()]
            np.testing.assert_allclose(boxes / size, lines, atol=1e-6)


def test_crops_show_the_spots_in_the_pixels_of_the_image(study, tmp_path):
    folder = tmp_path / "study"
    shutil.copytree(study.parent, folder)
    copy, source = folder / study.name, np.asarray(Image.open(folder / "P1" / "a.png"))
    with Study.open(copy) as opened:
        opened.record(Decision(verb="add", item=1, subject=SpotSubject(x=3.0, y=5.0)))
        x, y = opened.shown.result(1, "clicks")[1].clustering.mean[0].tolist()
        opened.record(Decision(verb="reject", item=1, subject=SpotSubject(x=x, y=y, number=0)))
    folder = export(copy, tmp_path, "training", "--format", "crops", "--item", "a.png", name="crops")
    rows = rows_of(folder / "crops.csv")
    assert {row["image"] for row in rows} == {"a.png"}
    detections = [row for row in rows_of(export(copy, tmp_path, "detections")) if row["image"] == "a.png"]
    assert [row["posterior"] for row in rows] == [row["posterior"] for row in detections]
    assert [row["decision"] for row in rows] == [row["verdict"] for row in detections]
    assert {(row["detected"], row["decision"]) for row in rows} == {
        ("1", ""), ("1", "added"), ("0", "rejected")
    }  # fmt: skip
    for row in rows:
        crop, side = np.asarray(Image.open(folder / row["file"])), int(row["side"])
        assert crop.shape == (side, side)
        left, top = (round(float(row[axis])) - side // 2 for axis in "xy")
        inside = source[max(top, 0) : top + side, max(left, 0) : left + side]
        height, width = inside.shape
        shown = crop[max(-top, 0) :, max(-left, 0) :][:height, :width]
        np.testing.assert_array_equal(shown, inside)


def grouped(path, source, column=None):
    with Study.open(path, to_read=True) as study:
        return read_groups(study, Path(source), column)


@pytest.mark.parametrize("what", ["detections", "clicks", "annotators", "variability"])
def test_other_exports_are_split_into_a_file_for_each_group(study, tmp_path, what):
    groups = ["--groups", str(study.with_name("patients.csv"))]
    folder = export(study, tmp_path, what, *groups, name="split")
    assert sorted(path.name for path in folder.glob("*.csv")) == [f"P1_{what}.csv", f"P2_{what}.csv"]
    if what in ("detections", "clicks"):
        assert {row["image"] for row in rows_of(folder / f"P1_{what}.csv")} == {"a.png", "b.png"}
        assert {row["image"] for row in rows_of(folder / f"P2_{what}.csv")} == {"c.png"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("image,patient\na.png,P1\na.png,P2\n", "is in the groups P1 and P2"),
        ("image,patient\nz.png,P1\n", "contains none of the study's images"),
        ("picture_no,thing\n1,2\n", "no columns of images and groups"),
    ],
)
def test_bad_tables_of_groups_are_refused(study, tmp_path, text, words):
    (tmp_path / "groups.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        grouped(study, tmp_path / "groups.csv")


def test_a_count_of_all_images_together_is_not_that_of_a_group(study, tmp_path):
    from raterscope.app.review import CountingSubject

    copy = tmp_path / "s.rscope"
    shutil.copy(study, copy)
    with Study.open(copy) as opened:
        opened.record(Decision(verb="count", item=1, subject=CountingSubject(leukocytes=500.0)))
        own = CountingSubject(leukocytes=200.0, everywhere=False)
        opened.record(Decision(verb="count", item=3, subject=own))
    rows = rows_of(export(copy, tmp_path, "counts", "--groups", str(study.with_name("patients.csv"))))
    per_cell = {row["group"]: row for row in rows if row["quantity"] == "Per 200 leukocytes"}
    assert set(per_cell) == {"P2"}
    assert "200 leukocytes" in per_cell["P2"]["formula"]


def test_a_study_keeps_its_groups_for_window_and_exports(study, tmp_path, capsys):
    own = shutil.copy(study, study.with_name("own.rscope"))
    assert main(["import", str(own)]) == 1
    assert "expected a file to import, or --groups TABLE" in capsys.readouterr().err
    assert main(["export", str(own), "--what", "counts", "--groups", "study", "-o", "x.csv"]) == 1
    assert "contains no groups" in capsys.readouterr().err
    assert main(["import", str(own), "--groups", str(study.with_name("patients.csv"))]) == 0
    assert "3 images in 2 groups." in capsys.readouterr().out
    with Study.open(own, to_read=True) as opened:
        groups, _ = read_groups(opened, Path("study"))
        assert {name: len(images) for name, images in groups.items()} == {"P1": 2, "P2": 1}
        assert opened.decisions()[-1].verb == "group"
    rows = rows_of(export(own, tmp_path, "counts", "--groups", "study"))
    assert {row["group"] for row in rows} == {"P1", "P2"}


def test_groups_of_an_older_study_stay_until_others_are_decided(study, tmp_path):
    own = shutil.copy(study, study.with_name("older.rscope"))
    with Study.open(own) as opened:
        first, *others = [entry.id for entry in opened.images()]
        opened.settings.store("groups", f'{{"{first}": "old"}}')
        assert present_groups(opened, fold(opened.decisions())) == {first: "old"}
        store_groups(opened, study.with_name("patients.csv"))
        assert len(present_groups(opened, fold(opened.decisions()))) == 1 + len(others)
        opened.record(undo(fold(opened.decisions())))
        assert present_groups(opened, fold(opened.decisions())) == {first: "old"}
