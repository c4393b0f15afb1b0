"""Every file is sniffed once and parsed once, however many kinds of annotation are taken from it."""

import builtins
import csv
import io
import json
import os
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from raterscope.app.ambiguous_files import UnknownAnnotators
from raterscope.app.cli import main
from raterscope.app.errors import InputError
from raterscope.app.formats.sources import Sources
from raterscope.app.importing import read_files
from raterscope.app.kinds.masks.attribution import MaskOptions
from tests.app.formats.dicom_builder import write_series
from tests.app.formats.points.crowds import SIZE, WRITERS
from tests.campaigns.samples import READERS, samples_of

MARKS = {("ann", "one.png"): [(10.5, 20.25), (30, 40)], ("bob", "one.png"): [(11, 21)]}
SQUARE = [20, 20, 28, 20, 28, 28, 20, 28]


@pytest.fixture
def opens(monkeypatch):
    """Count how often each file is opened to be read, by whatever library."""
    counts: Counter[Path] = Counter()

    def counted(file, mode="r", *more, **options):
        if isinstance(file, str | Path) and "w" not in mode and not Path(file).is_dir():
            counts[Path(file)] += 1
        return opened(file, mode, *more, **options)

    opened = io.open
    for module in (builtins, io):
        monkeypatch.setattr(module, "open", counted)
    return counts


def coco_of_all_kinds(path: Path) -> Path:
    """Points, masks and classes by two annotators in one file."""
    size = {"width": SIZE[0], "height": SIZE[1]}
    annotations = [
        {"image_id": 1, "category_id": category, "attributes": {"annotator": annotator}, **shape}
        for annotator in ("ann", "bob")
        for category, shape in (
            (1, {"keypoints": [10.5, 20.25, 2]}),
            (1, {"segmentation": [SQUARE]}),
            (2, {}),
        )
    ]
    content = {
        "images": [{"id": 1, "file_name": "one.png", **size}],
        "categories": [{"id": 1, "name": "spot"}, {"id": 2, "name": "good"}],
        "annotations": annotations,
    }
    path.write_text(json.dumps(content))
    return path


def cvat_of_all_kinds(path: Path) -> Path:
    shapes = '<points label="a" points="1,2"/><polygon label="b" points="1,1;9,1;9,9"/><tag label="good"/>'
    image = f'<image id="0" name="one.png" width="{SIZE[0]}" height="{SIZE[1]}">{shapes}</image>'
    meta = "<meta><job><assignee><username>ann</username></assignee></job></meta>"
    path.write_text(f"<annotations><version>1.1</version>{meta}{image}</annotations>")
    return path


def label_studio_of_all_kinds(path: Path) -> Path:
    size = {"original_width": SIZE[0], "original_height": SIZE[1]}
    points = {"x": 10, "y": 20, "keypointlabels": ["a"]}
    polygon = {"points": [[1, 1], [9, 1], [9, 9]], "polygonlabels": ["b"]}
    result = [
        {"type": "keypointlabels", "value": points, **size},
        {"type": "polygonlabels", "value": polygon, **size},
        {"type": "choices", "value": {"choices": ["good"]}, "from_name": "kind"},
    ]
    done = [{"completed_by": {"id": 1, "email": "ann"}, "result": result}]
    path.write_text(json.dumps([{"id": 1, "data": {"image": "one.png"}, "annotations": done}]))
    return path


ALL_KINDS = {"coco.json": coco_of_all_kinds, "cvat.xml": cvat_of_all_kinds,
             "studio.json": label_studio_of_all_kinds}  # fmt: skip


@pytest.mark.parametrize("in_folder", [False, True])
@pytest.mark.parametrize("name", list(ALL_KINDS))
def test_points_masks_and_labels_come_from_one_read(
    tmp_path: Path, opens, name: str, in_folder: bool
) -> None:
    path = ALL_KINDS[name](tmp_path / name)
    readings = read_files([tmp_path if in_folder else path])
    assert opens[path] == 1
    assert [len(table) > 0 for table in readings.clicks] == [True]
    assert any(mask.mask.values.any() for mask in readings.attributed)
    assert [len(table) > 0 for table in readings.labels] == [True]


@pytest.mark.parametrize("in_folder", [False, True])
@pytest.mark.parametrize("format_name", sorted(set(WRITERS) - {"napari"}))
def test_points_of_every_format_are_read_once(
    tmp_path: Path, opens, format_name: str, in_folder: bool
) -> None:
    paths = WRITERS[format_name](tmp_path, MARKS)
    readings = read_files([tmp_path] if in_folder else paths)
    assert sum(map(len, readings.clicks)) == 3
    assert [opens[path] for path in paths] == [1] * len(paths)


def max_opens(path: Path, reader: str) -> int:
    """Annotations need no sniff; of an image the header suffices, unless it may be a mask."""
    if path.suffix == ".xml" and not any(
        root in path.read_bytes() for root in (b"<annotations", b"<LidcRead")
    ):
        return 2  # to name the tool that wrote it
    if path.suffix in (".json", ".geojson", ".xml", ".jpg", ".jpeg"):
        return 1
    holds_masks = path.stem.startswith(("mask", "rtstruct", "seg"))
    if (path.suffix == ".dcm" and not holds_masks) or reader == "enhanced-dicom":
        return 1
    return 3 if reader == "pair-tables" else 2  # to name the line of a row that was skipped


@pytest.mark.parametrize("in_folder", [False, True], ids=["named", "in a folder"])
@pytest.mark.parametrize("reader", sorted(set(READERS) - {"growing"}))
def test_a_file_of_every_format_is_sniffed_once_and_parsed_once(
    tmp_path: Path, opens, reader: str, in_folder: bool
) -> None:
    data = os.environ.get("RATERSCOPE_DATA")
    for number, sample in enumerate(samples_of(reader, Path(data) if data else None)):
        folder = tmp_path / str(number)
        for name, content in sample.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        files = [folder / name for name in sample.read]
        mappings = dict.fromkeys(files, sample.columns) if sample.columns and not in_folder else {}
        opens.clear()
        with suppress(InputError):
            read_files([folder] if in_folder else files, mappings=mappings)
        for file in files:
            assert 1 <= opens[file] <= max_opens(file, reader), file.name


def test_fusing_on_the_command_line_reads_once(tmp_path: Path, opens) -> None:
    path = coco_of_all_kinds(tmp_path / "coco.json")
    for kind in ("clicks", "labels"):
        opens.clear()
        assert main(["fuse", kind, str(path), "-o", str(tmp_path / kind)]) == 0
        assert opens[path] <= 2, kind  # the other time for the checksum in run.json


def test_each_slice_of_a_series_is_opened_once(tmp_path: Path, opens) -> None:
    series = write_series(tmp_path / "ct", (5, 16, 16))
    (volume,) = read_files([tmp_path]).volumes
    assert volume.grid.shape == (5, 16, 16)
    assert [opens[path] for path in series.files] == [1] * 5


@pytest.mark.parametrize("images", [[], [{"id": 1, "file_name": "one.png", "width": 9, "height": 9}]])
def test_detections_with_scores_are_read_once(tmp_path: Path, opens, images: list) -> None:
    path = tmp_path / "found.json"
    results = [{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}]
    path.write_text(json.dumps({"images": images, "annotations": results} if images else results))
    (table,) = read_files([path]).truths
    assert table.score.tolist() == [0.5]
    assert opens[path] == 1


def test_after_a_question_the_files_are_not_read_again(tmp_path: Path, opens) -> None:
    path = tmp_path / "marks.json"
    shapes = [{"shape_type": "point", "points": [[1, 2]]}]
    size = {"imageWidth": SIZE[0], "imageHeight": SIZE[1]}
    path.write_text(json.dumps({"imagePath": "one.png", "shapes": shapes, **size}))
    held = Sources(is_lasting=True)
    with pytest.raises(UnknownAnnotators) as question:
        read_files([path], sources=held)
    by_hand = dict.fromkeys(question.value.files, "ann")
    (clicks,) = read_files([path], reading=MaskOptions(by_hand=by_hand), sources=held).clicks
    assert clicks.annotators == ("ann",)
    assert opens[path] == 1


def test_the_import_command_reads_once(tmp_path: Path, opens) -> None:
    path = coco_of_all_kinds(tmp_path / "coco.json")
    for turn in (1, 2):  # into a new study, and into one that is there
        assert main(["import", str(tmp_path / "a.rscope"), str(path)]) == 0
        assert opens[path] == turn


TABLES = {
    "clicks": "annotator,image,x,y,width,height\nann,one.png,1,2,9,9\n",
    "labels": "annotator,task,label\nann,t1,cat\nbob,t1,dog\n",
    "wide labels": "task,rater 1,rater 2\nt1,cat,dog\n",
    "pairs": "annotator,left,right,choice\nann,a,b,a\nbob,a,b,b\n",
    "ranking": "item,rank\na,1\nb,2\n",
    "napari": "index,axis-0,axis-1,annotator\n0,1.5,2.5,a\n",
}


@pytest.mark.parametrize("name", list(TABLES))
def test_a_table_is_opened_to_detect_its_format_and_to_read_it(tmp_path: Path, opens, name: str) -> None:
    path = tmp_path / "one.csv"
    path.write_text(TABLES[name])
    with suppress(UnknownAnnotators):
        read_files([path])
    assert opens[path] == 2


def test_an_export_of_marks_and_answers_is_read_once_for_both(tmp_path: Path, opens) -> None:
    tasks = [
        {"task": "T0", "task_label": "Is there a spot?", "value": "Yes"},
        {"task": "T1", "task_label": "Mark it", "value": [{"tool": 0, "x": 1.5, "y": 2.5, "frame": 0}]},
    ]
    row = ["1", "ann", json.dumps({}), json.dumps(tasks), json.dumps({"7": {"filename": "a.png"}}), "7"]
    header = ["classification_id", "user_name", "metadata", "annotations", "subject_data", "subject_ids"]
    path = tmp_path / "export.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, row])
    read_files([path])
    assert opens[path] == 2


def test_the_import_command_opens_a_table_no_more_often_for_a_study_that_is_there(
    tmp_path: Path, opens
) -> None:
    path = tmp_path / "one.csv"
    path.write_text(TABLES["clicks"])
    for turn in (1, 2):
        assert main(["import", str(tmp_path / "a.rscope"), str(path)]) == 0
        assert opens[path] == 2 * turn
