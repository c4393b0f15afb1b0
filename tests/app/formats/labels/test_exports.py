"""Labels in the files of other programs: Zooniverse, Label Studio, CVAT and COCO."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raterscope.app.errors import InputError
from raterscope.app.formats.labels import find_labels, read_labels
from raterscope.app.formats.records import LabelTable, TrueLabels

HEADER = [
    "classification_id",
    "user_name",
    "user_id",
    "workflow_id",
    "created_at",
    "metadata",
    "annotations",
    "subject_data",
    "subject_ids",
]

Vote = tuple[str, str, str]
Write = Callable[..., Path]


def votes(table: LabelTable | TrueLabels) -> list[Vote]:
    assert isinstance(table, LabelTable)
    return [
        (table.tasks[t], table.annotators[a], table.outputs[o])
        for t, a, o in zip(table.task, table.annotator, table.label, strict=True)
    ]


@pytest.fixture
def zooniverse(tmp_path: Path) -> Write:
    def write(*rows: tuple[str, str, Any], name: str | None = "a.png") -> Path:
        path = tmp_path / "classifications.csv"
        with path.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(HEADER)
            for number, (person, subject, tasks) in enumerate(rows):
                data = {subject: {"Filename": f"{subject}{name}"} if name else {}}
                built = f"1970-01-01 00:00:{number:02} UTC"
                text = tasks if isinstance(tasks, str) else json.dumps(tasks)
                writer.writerow([number, person, "", "10", built, "{}", text, json.dumps(data), subject])
        return path

    return write


def question(task: str, value: Any, words: str = "What is it?") -> dict[str, Any]:
    return {"task": task, "task_label": words, "value": value}


def test_zooniverse_questions_are_a_table_each(zooniverse: Write) -> None:
    path = zooniverse(
        ("ann", "1", [question("T0", "Yes"), question("T1", ["red", "big"], "Which?")]),
        ("not-logged-in-ab", "1", [question("T0", "No"), question("T1", ["big", "red"], "Which?")]),
        ("ann", "2", [question("T0", None), question("T1", [], "Which?")]),
    )
    first, second = read_labels(path)
    assert isinstance(first, LabelTable)
    assert votes(first) == [("1a.png", "ann", "Yes"), ("1a.png", "not-logged-in-ab", "No")]
    assert first.question == "T0: What is it?"
    assert first.missing == 1
    assert first.pictures == {0: "1a.png", 1: "2a.png"}
    assert first.time is not None
    assert first.time.tolist() == [0.0, 1.0]
    assert [answer for _, _, answer in votes(second)] == ["big + red", "big + red", "no answer"]
    assert find_labels(path) == "labels"


def test_zooniverse_drawings_are_no_answers(zooniverse: Write) -> None:
    mark = {"tool": 0, "x": 3, "y": 4, "frame": 0, "details": []}
    path = zooniverse(
        ("ann", "1", [question("T0", [mark]), question("T1", "Good")]),
        ("bob", "1", [question("T0", []), {"task": "T2", "taskType": "slider", "value": "0.5"}]),
    )
    (table,) = read_labels(path)
    assert votes(table) == [("1a.png", "ann", "Good")]
    assert "3" in table.notices[0]
    assert find_labels(path) is None


def test_zooniverse_surveys_and_combined_tasks(zooniverse: Write) -> None:
    animals = [{"choice": "ZEBRA", "answers": {"HOWMANY": "2"}, "filters": {}}, {"choice": "BABOON"}]
    path = zooniverse(("ann", "1", [{"task": "C", "value": [question("T1", animals)]}]), name=None)
    (table,) = read_labels(path)
    assert votes(table) == [("1", "ann", "BABOON + ZEBRA")]


@pytest.mark.parametrize("text", ["[{", "{}", "[" * 5000])
def test_zooniverse_bad_json_is_refused_with_its_line(zooniverse: Write, text: str) -> None:
    path = zooniverse(("ann", "1", [question("T0", "Yes")]), ("bob", "1", text))
    with pytest.raises(InputError, match="line 3, field annotations"):
        read_labels(path)


@pytest.fixture
def document(tmp_path: Path) -> Write:
    def write(content: Any, name: str = "labels.json") -> Path:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def choice(name: str, *chosen: Any, **more: Any) -> dict[str, Any]:
    return {"type": "choices", "from_name": name, "value": {"choices": list(chosen)}, **more}


def annotation(by: Any, *results: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"completed_by": by, "result": list(results), **more}


def test_label_studio_choices(document: Write) -> None:
    tasks = [
        {
            "id": 1,
            "data": {"image": "/data/upload/1/a.png"},
            "annotations": [
                annotation(
                    7, choice("kind", "cat"), choice("state", "ill", "old"), created_at="1970-01-01T00:00:09Z"
                ),
                annotation({"id": 8, "email": "b@x.test"}, choice("kind", "dog")),
                annotation(9, choice("kind", "dog"), was_cancelled=True),
                annotation(7, choice("kind", "dog"), ground_truth=True),
            ],
            "predictions": [{"model_version": "v2", "result": [choice("kind", "cat")]}],
        },
        {"id": 2, "data": {"text": ""}, "annotations": [annotation(None, choice("kind", ["pet", "cat"]))]},
    ]
    path = document(tasks)
    kind, truth, state = read_labels(path)
    assert isinstance(kind, LabelTable)
    assert votes(kind) == [
        ("a.png", "annotator 7", "cat"), ("a.png", "b@x.test", "dog"), ("a.png", "model v2", "cat"),
        ("task 2", "labels", "pet / cat"),
    ]  # fmt: skip
    assert kind.pictures == {0: "a.png"}
    assert kind.time is not None
    assert kind.time[0] == 9.0
    assert isinstance(truth, TrueLabels)
    assert [truth.classes[at] for at in truth.label] == ["dog"]
    assert votes(state) == [("a.png", "annotator 7", "ill + old")]
    assert "cancelled" in kind.notices[0]
    assert find_labels(path) == "labels"


def test_label_studio_marks_go_to_the_masks(document: Write) -> None:
    brush = {"type": "brushlabels", "value": {}, "original_width": 5, "original_height": 5}
    tasks = [{"data": {}, "annotations": [annotation(1, choice("kind", "cat"), brush)]}]
    assert find_labels(document(tasks)) is None


CVAT = (
    "<annotations><meta><job><assignee><username>ann</username></assignee></job></meta>"
    '<image name="a.png" width="9" height="9"><tag label="cat"/><tag label="big"/>{shape}</image>'
    '<image name="b.png" width="9" height="9"/></annotations>'
)


def test_cvat_tags(document: Write) -> None:
    path = document(CVAT.format(shape=""), "job.xml")
    (table,) = read_labels(path)
    assert isinstance(table, LabelTable)
    assert votes(table) == [("a.png", "ann", "big + cat")]
    assert (table.missing, table.tasks) == (1, ("a.png", "b.png"))
    assert find_labels(path) == "labels"
    assert find_labels(document(CVAT.format(shape='<box label="x"/>'), "job.xml")) is None


def coco(*annotations: dict[str, Any]) -> dict[str, Any]:
    return {
        "images": [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "b.png"}],
        "categories": [{"id": 5, "name": "cat"}, {"id": 6, "name": "dog"}],
        "annotations": list(annotations),
    }


def test_coco_categories(document: Write) -> None:
    path = document(
        coco(
            {"image_id": 1, "category_id": 5, "attributes": {"annotator": "ann"}},
            {"image_id": 2, "category_id": 6, "attributes": {"annotator": "ann"}},
            {"image_id": 1, "category_id": 6},
        )
    )
    (table,) = read_labels(path)
    assert votes(table) == [("a.png", "ann", "cat"), ("b.png", "ann", "dog"), ("a.png", "labels", "dog")]
    assert find_labels(path) == "labels"


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (coco({"image_id": 3, "category_id": 5}), "annotations[0]"),
        (coco({"image_id": 1, "category_id": [5]}), "annotations[0]"),
        (coco({"image_id": 1, "category_id": 5, "bbox": [1, 1, 1, 1]}), "no labels"),
        ([{"data": {}, "annotations": []}, 5], "task 2"),
        ({"shapes": []}, "no readable labels"),
        ("[{", "not JSON"),
        ("[" * 100_000, "nested"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(document: Write, content: Any, where: str) -> None:
    path = document(content)
    with pytest.raises(InputError) as caught:
        read_labels(path)
    assert where in str(caught.value)
    assert str(caught.value).startswith("labels.json")


def test_real_exports(real_data: Path) -> None:
    formats = real_data / "formats"
    rising, close = read_labels(formats / "zooniverse" / "cls_export_questions.csv")
    assert (len(rising), len(close)) == (7, 3)
    assert rising.question.startswith("T0: Has the lightcurve been rising")
    (survey,) = read_labels(formats / "zooniverse" / "wildcam_gorongosa_survey_sample.csv")
    assert {"BBN", "WTRBCK"} <= set(survey.outputs if isinstance(survey, LabelTable) else ())
    (two,) = read_labels(formats / "synthetic" / "label_studio_two_annotators.json")
    assert votes(two) == [
        ("ab12-img_001.png", "a@x.test", "good"), ("ab12-img_001.png", "annotator 8", "good"),
    ]  # fmt: skip
