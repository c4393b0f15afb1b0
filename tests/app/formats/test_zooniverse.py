"""Zooniverse classification exports."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from raterscope.app.cli import main
from raterscope.app.errors import InputError
from raterscope.app.formats import ClickTable, read
from raterscope.app.formats.labels import find_labels

HEADER = [
    "classification_id",
    "user_name",
    "user_id",
    "user_ip",
    "workflow_id",
    "workflow_name",
    "workflow_version",
    "created_at",
    "gold_standard",
    "expert",
    "metadata",
    "annotations",
    "subject_data",
    "subject_ids",
]


def point(x: Any, y: Any, frame: int = 0) -> dict[str, Any]:
    return {"tool": 0, "tool_label": "Parasite", "frame": frame, "details": [], "x": x, "y": y}


def point_2(x: Any, y: Any, frame: int = 0) -> dict[str, Any]:
    return {"toolIndex": 0, "toolType": "point", "frame": frame, "details": [], "x": x, "y": y}


def drawing(*marks: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"task": "T0", "task_label": "Mark", "value": list(marks)}]


def looked(
    person: str, subject: str, annotations: Any, sizes: Any = ((600, 400),), name: str | None = "a.png",
    workflow: str = "10",
) -> dict[str, Any]:  # fmt: skip
    frames = [
        size and {"naturalWidth": size[0], "naturalHeight": size[1], "clientWidth": 9} for size in sizes
    ]
    data: dict[str, Any] = {"retired": None}
    if name is not None:
        data["Filename"] = name
    return {
        "user_name": person,
        "workflow_id": workflow,
        "created_at": "2024-01-02 03:04:05 UTC",
        "metadata": json.dumps({"subject_dimensions": frames}),
        "annotations": annotations if isinstance(annotations, str) else json.dumps(annotations),
        "subject_data": json.dumps({subject: data}),
        "subject_ids": subject,
    }


@pytest.fixture
def export(tmp_path: Path):
    def write(*rows: dict[str, Any]) -> Path:
        path = tmp_path / "classifications.csv"
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, HEADER, restval="")
            writer.writeheader()
            writer.writerows({"classification_id": number, **row} for number, row in enumerate(rows, start=1))
        return path

    return write


def marks(path: Path) -> tuple[ClickTable, list[tuple[str, str, float, float]]]:
    table = read(path)
    assert isinstance(table, ClickTable)
    return table, [
        (table.annotators[a], table.images[i], x, y)
        for a, i, x, y in zip(table.annotator, table.image, table.x, table.y, strict=True)
    ]


def looks(table: ClickTable) -> set[tuple[str, str]]:
    return {(table.annotators[a], table.images[i]) for a, i in table.looked}


def test_points_of_both_versions(export) -> None:
    table, looks = marks(
        export(
            looked("ann", "7", drawing(point(1.5, 2), point(3, 4))),
            looked("bob", "7", [*drawing(point_2(5, 6)), {"task": "T0.0.0", "markIndex": 0, "value": 1}]),
        )
    )
    assert looks == [("ann", "a.png", 1.5, 2), ("ann", "a.png", 3, 4), ("bob", "a.png", 5, 6)]
    assert table.extents == {0: (600.0, 400.0)}
    assert table.time is not None
    assert table.time.tolist() == [1704164645.0] * 3
    assert table.notices == ()


def test_drawings_without_a_mark_are_no_answers(export, tmp_path: Path) -> None:
    path = export(looked("ann", "1", drawing(point(1, 2))), looked("bob", "1", drawing()))
    assert find_labels(path, alone=False) is None
    assert main(["import", str(tmp_path / "s.rscope"), str(path)]) == 0


def test_who_marked_nothing_has_looked(export) -> None:
    """With an empty drawing, with other shapes alone, or led past the drawing by a question."""
    polygon = {"toolIndex": 1, "toolType": "polygon", "pathX": [1, 2], "pathY": [3, 4]}
    table, points = marks(
        export(
            looked("ann", "7", drawing(point(1, 2))),
            looked("bob", "7", drawing()),
            looked("cy", "7", [{"task": "T1", "value": "No parasites"}]),
            looked("dee", "7", drawing(polygon)),
            looked("eve", "8", drawing(), name="b.png"),
            looked("flo", "9", [{"task": "T9", "value": "Yes"}], workflow="another"),
        )
    )
    assert len(points) == 1
    assert looks(table) == {
        ("ann", "a.png"), ("bob", "a.png"), ("cy", "a.png"), ("dee", "a.png"), ("eve", "b.png")
    }  # fmt: skip
    assert table.images == ("a.png", "b.png")


@pytest.mark.parametrize(
    "shape",
    [
        {"tool": 1, "x": 1, "y": 2, "r": 3, "angle": 0},
        {"tool": 1, "x": 1, "y": 2, "rx": 3, "ry": 3},
        {"tool": 1, "x": 1, "y": 2, "width": 3, "height": 3},
        {"tool": 1, "x1": 1, "y1": 2, "x2": 3, "y2": 3},
        {"tool": 1, "points": [{"x": 1, "y": 2}], "closed": True},
        {"toolIndex": 1, "toolType": "circle", "x_center": 1, "y_center": 2, "r": 3},
        {"toolIndex": 1, "toolType": "freehandLine", "pathX": [[1]], "pathY": [[2]]},
    ],
)
def test_other_shapes_are_counted_and_left_out(export, shape: dict[str, Any]) -> None:
    table, looks = marks(export(looked("ann", "7", drawing(point(1, 2), shape, shape))))
    assert len(looks) == 1
    assert "2 marks were skipped, because they are not points" in table.notices[0]


def test_frames_are_images_of_their_own(export) -> None:
    table, points = marks(
        export(
            looked(
                "ann", "7", drawing(point(1, 2), point(3, 4, frame=2)), sizes=((600, 400), None, (30, 20))
            ),
            looked("bob", "7", drawing(), sizes=((600, 400), None, (30, 20))),
        )
    )
    assert points == [("ann", "a.png", 1, 2), ("ann", "a.png frame 3", 3, 4)]
    assert table.extents == {0: (600, 400), 1: (30, 20)}
    assert ("bob", "a.png frame 3") in looks(table)
    assert "up to 3 frames" in table.notices[0]


def test_a_person_counts_once_an_image(export) -> None:
    table, looks = marks(
        export(
            *(looked("ann", "7", drawing(point(n, n))) for n in range(3)),
            looked("ann", "8", drawing(point(9, 9))),
        )
    )
    assert [row[2] for row in looks] == [0, 9]
    assert "2 repeated classifications" in table.notices[0]


def test_an_answer_in_another_workflow_is_no_repeated_classification(export) -> None:
    question = [{"task": "T0", "task_label": "Any?", "value": "Yes"}]
    table, found = marks(
        export(
            looked("ann", "7", question, workflow="20"),
            looked("ann", "7", drawing(point(1, 2))),
            looked("bob", "7", drawing(point(3, 4))),
            looked("bob", "7", question, workflow="20"),
        )
    )
    assert [row[2:] for row in found] == [(1, 2), (3, 4)]
    assert not any("repeated" in text for text in table.notices)


def test_a_mapping_for_another_file_is_none_of_an_exports(export) -> None:
    table = read(export(looked("ann", "7", drawing(point(1, 2)))), mapping={"who": "annotator"})
    assert len(table) == 1


def test_people_without_a_name(export) -> None:
    rows = [
        looked("not-logged-in-0f", "7", drawing(point(1, 2))),
        *(looked("", "7", drawing(point(n, 2))) for n in (3, 4)),
    ]
    rows[1]["user_id"] = "288147"
    table, _ = marks(export(*rows))
    assert table.annotators == ("not-logged-in-0f", "288147", "unnamed in classification 3")


def test_subjects_are_named_by_file_or_number(export) -> None:
    rows = [
        looked("ann", "7", drawing(point(1, 2)), name="folder/a.png"),
        looked("ann", "8", drawing(point(1, 2)), name=None),
        looked("ann", "9", drawing(point(1, 2)), name="a.png"),
        looked("ann", "10", drawing(point(1, 2)), name=None),
    ]
    rows[3]["subject_data"] = json.dumps({"10": {"#page": "x", "site": "field_3.JPG"}})
    table, _ = marks(export(*rows))
    assert table.images == ("a.png (subject 7)", "8", "a.png (subject 9)", "field_3.JPG")


def test_combined_tasks_are_looked_into(export) -> None:
    combined = [{"task": "T5", "value": drawing(point(1, 2))}]
    _, looks = marks(export(looked("ann", "7", combined)))
    assert [row[2:] for row in looks] == [(1, 2)]


def test_sizes_that_are_invalid_are_not_believed(export) -> None:
    for sizes in ((), (None,), (("wide", 3),), ((0, 5),), ((10**9, 5),)):
        table, _ = marks(export(looked("ann", "7", drawing(point(1, 2)), sizes=sizes)))
        assert table.extents == {}


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ("{broken", "it is not JSON"),
        ('{"task": "T0"}', "not a list of tasks"),
        ("[" * 200_000, "nested too deeply"),
        (
            json.dumps(drawing(point(float("nan"), 2))),
            "has a point at (nan, 2); expected positions in pixels",
        ),
        (json.dumps(drawing(point("12", 2))), "has a point at ('12', 2)"),
        (json.dumps(drawing(point(None, 2))), "has a point at (None, 2)"),
        (json.dumps(drawing(point(1e300, 2))), "has a point at (1e+300, 2)"),
        (json.dumps(drawing({**point(1, 2), "frame": -1})), "on frame -1"),
        (json.dumps(drawing({**point(1, 2), "frame": 10**30})), "on frame 1000"),
    ],
)
def test_what_cannot_be_read_is_named_by_line(export, annotations: str, words: str) -> None:
    path = export(looked("ann", "7", drawing(point(1, 2))), looked("bob", "7", annotations))
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value).startswith("classifications.csv, line 3, field annotations: ")
    assert words in str(caught.value)


def test_an_export_without_points_is_refused(export) -> None:
    circle = {"tool": 1, "x": 1, "y": 2, "r": 3}
    with pytest.raises(InputError, match=r"has no point marks \(marks: 2 of other shapes\)"):
        read(export(looked("ann", "7", drawing(circle, circle))))
    with pytest.raises(InputError, match="has no point marks"):
        read(export(looked("ann", "7", [{"task": "T1", "value": ["a", "b"]}])))


def test_real_exports(real_data: Path) -> None:
    samples = real_data / "formats"
    table, looks = marks(samples / "synthetic" / "zooniverse_points.csv")
    assert looks == [("alice", "img_001.png", 10.5, 20.25), ("not-logged-in-0f", "img_001.png", 10.1, 21.0)]
    assert table.extents == {0: (600.0, 400.0)}
    for name in ("ap-aas229-test-classifications.csv", "cls_export_questions.csv"):
        with pytest.raises(InputError, match="has no point marks"):
            read(samples / "zooniverse" / name)
