"""Detections of a program with scores: tables and COCO, and one sentence for each that is bad."""

from __future__ import annotations

import json

import numpy as np
import pytest

from raterscope.app.errors import InputError
from raterscope.app.formats import UnknownColumns, read
from raterscope.app.formats.points import read_scores

TABLE = "image,x,y,score\na.png,10,20,-3.5\na.png,30.5,40,1e12\nb.png,,,\n"
BOX = {"image_id": 7, "category_id": 1, "bbox": [10, 20, 4, 6], "score": 0.75}


def written(folder, name, content):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize(("name", "mark"), [("found.csv", ","), ("found.tsv", "\t")])
def test_a_table_is_read(tmp_path, name, mark):
    table = read(written(tmp_path, name, TABLE.replace(",", mark)))
    assert table.images == ("a.png", "b.png")
    assert table.searched == {0, 1}
    np.testing.assert_array_equal(table.x, [10, 30.5])
    np.testing.assert_array_equal(table.score, [-3.5, 1e12])


def test_a_table_called_truth_is_truth(tmp_path):
    assert read(written(tmp_path, "truth.csv", TABLE)).score is None


def test_coco_results_are_read(tmp_path):
    table = read_scores(written(tmp_path, "results.json", [BOX, BOX | {"image_id": "c", "score": 2}]))
    assert table.images == ("7", "c")
    assert (table.x[0], table.y[0], table.score[0]) == (12, 23, 0.75)


def test_coco_with_images_is_read(tmp_path):
    images = [{"id": 7, "file_name": "a.png", "width": 100, "height": 80}, {"id": 8, "file_name": "b.png"}]
    table = read_scores(written(tmp_path, "found.json", {"images": images, "annotations": [BOX]}))
    assert table.images == ("a.png", "b.png")
    assert table.searched == {0, 1}
    assert table.extents == {0: (100.0, 80.0)}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("image,x,y,score\na,1,2,high\n", 'line 2.*score.*"high" is not a score; expected a number'),
        ("image,x,y,score\na,1,2,3\na,1,2,nan\n", "line 3.*score"),
        ("image,x,y,score\na,1,2,\n", "line 2.*score"),
        ("image,x,y,score\na,1,,3\n", "line 2.*y"),
        ("image,x,y,score\n,1,2,3\n", "line 2.*image"),
        ("image,x,y,score\na,1e9,2,3\n", "line 2.*x"),
        ("image,x,y,score\n", "has a header but no rows"),
        ([BOX | {"score": None}], r"results\[0\].score"),
        ([BOX | {"score": "high"}], r"results\[0\].score"),
        ([BOX, BOX | {"bbox": [1, 2, 3]}], r"results\[1\].bbox"),
        ([BOX | {"image_id": [1]}], r"results\[0\].image_id"),
        ({"images": [], "annotations": [BOX]}, r"annotations\[0\].image_id.*not listed"),
        ({"images": [{"file_name": "a"}], "annotations": [BOX]}, r"images\[0\]"),
        ({"images": [], "annotations": [{"bbox": [1, 2, 3, 4]}]}, "contains no scores"),
        ([], "contains no scores"),
    ],
)
def test_what_is_bad_is_named(tmp_path, content, words):
    path = written(tmp_path, "found.csv" if isinstance(content, str) else "found.json", content)
    with pytest.raises(InputError, match=words) as caught:
        read_scores(path)
    assert "\n" not in str(caught.value)


def test_columns_can_be_named(tmp_path):
    path = written(tmp_path, "found.csv", "image,x,y,logit\na,1,2,3\n")
    with pytest.raises(UnknownColumns, match="score"):
        read_scores(path)
    assert read_scores(path, {"logit": "score"}).score.tolist() == [3.0]
