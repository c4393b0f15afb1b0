"""Zooniverse classification exports that are replaced by longer ones."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from raterscope.app.formats import ClickTable, read
from raterscope.app.formats.growing_files import state
from tests.app.formats.growing_files.following import Follower, looks_of, rows_of
from tests.app.formats.test_zooniverse import HEADER, drawing, looked, point

CROWD = [
    looked(
        f"volunteer {person}",
        subject,
        drawing(*(point(person + 10 * mark, 5) for mark in range(marks))),
        name=name,
    )
    for person in range(6)
    for subject, name, marks in (("7", "a.png", 3), ("8", "b.png", person % 2), ("9", "c.png", 1))
]


@pytest.fixture
def follower(tmp_path: Path) -> Follower:
    return Follower(tmp_path / "classifications.csv")


def export(path: Path, rows: list[dict[str, Any]], header: list[str] = HEADER, first: int = 1) -> None:
    other = path.with_suffix(".tmp")
    with other.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, header, restval="")
        writer.writeheader()
        writer.writerows({"classification_id": number, **row} for number, row in enumerate(rows, start=first))
    other.replace(path)


def test_an_export_replaced_by_longer_ones_gives_what_the_last_holds(follower: Follower) -> None:
    for size in (1, 4, 4, 11, len(CROWD)):
        retired = json.dumps({"retired": size})
        export(follower.source, [{**row, "gold_standard": retired} for row in CROWD[:size]])
        follower.catch_up()
    full = read(follower.source)
    assert isinstance(full, ClickTable)
    assert follower.rows == rows_of(full)
    assert follower.looked | {row[:2] for row in follower.rows} == looks_of(full)
    assert follower.sizes == dict.fromkeys(("a.png", "b.png", "c.png"), (600.0, 400.0))


def test_an_export_that_is_appended_to_comes_in_pieces(follower: Follower, tmp_path: Path) -> None:
    full = tmp_path / "whole.csv"
    export(full, CROWD)
    data = full.read_bytes()
    for at in range(0, len(data), 700):
        with follower.source.open("ab") as stream:
            stream.write(data[at : at + 700])
        follower.catch_up()
    assert follower.rows == rows_of(read(full))  # type: ignore[arg-type]
    assert follower.notices == []


def test_columns_in_another_order_and_lines_at_other_places_change_nothing(follower: Follower) -> None:
    export(follower.source, CROWD[:9])
    follower.catch_up()
    export(follower.source, CROWD[5:] + CROWD[:5], header=HEADER[::-1], first=100)
    assert len(follower.catch_up()) == sum(
        len(json.loads(row["annotations"])[0]["value"]) for row in CROWD[9:]
    )


def test_of_repeated_classifications_the_first_counts(follower: Follower) -> None:
    export(
        follower.source, [looked("ann", "7", drawing(point(1, 2))), looked("ann", "7", drawing(point(8, 9)))]
    )
    assert [row[2:4] for row in follower.catch_up()] == [(1.0, 2.0)]
    assert follower.notices == ["classifications.csv: 1 row skipped: they were read before."]


def test_who_marked_nothing_counts_once_the_workflow_is_known_to_have_a_drawing(follower: Follower) -> None:
    rows = [
        looked("ann", "7", drawing()),
        looked("bob", "7", [{"task": "T1", "value": "No parasites"}]),
        looked("cy", "7", [{"task": "T9", "value": "Yes"}], workflow="another"),
    ]
    export(follower.source, rows)
    assert follower.catch_up() == []
    assert follower.looked == set()
    export(follower.source, [*rows, looked("dee", "7", drawing(point(1, 2))), looked("eve", "7", drawing())])
    follower.catch_up()
    assert follower.looked == {("ann", "a.png"), ("bob", "a.png"), ("eve", "a.png")}
    assert follower.sizes == {"a.png": (600.0, 400.0)}


def test_looks_that_wait_for_a_drawing_without_end_are_forgotten_aloud(
    follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "_MAX_WAITING", 2)
    rows = [looked(person, "7", drawing()) for person in ("ann", "bob", "cy")]
    export(follower.source, rows)
    follower.catch_up()
    assert follower.notices == ["1 view without a mark skipped: no marks in their workflow so far."]
    export(follower.source, [*rows, looked("dee", "7", drawing(point(1, 2)))])
    follower.catch_up()
    assert follower.looked == {("bob", "a.png"), ("cy", "a.png")}


def test_a_bad_classification_is_refused_and_the_others_go_on(follower: Follower) -> None:
    export(
        follower.source,
        [
            looked("ann", "7", "[nonsense"),
            looked("ann", "", drawing(point(1, 2))),
            looked("ann", "7", drawing(point("left", 2))),
            looked("ann", "7", drawing(point(3, 4)), name="\ud800.png"),
            looked("ann" * 200, "7", drawing(point(3, 4))),
            looked("ann", "7", drawing(point(3, 4))),
        ],
    )
    assert [row[2:4] for row in follower.catch_up()] == [(3.0, 4.0)]
    assert [notice.split(":")[0] for notice in follower.notices] == [
        "classifications.csv, line 2, field annotations",
        "classifications.csv, line 3, field subject_ids",
        "classifications.csv, line 4, field annotations",
        "classifications.csv, line 5, field subject_data",
        "classifications.csv, line 6, field subject_data",
    ]


def test_frames_are_images_and_shared_names_are_distinguished(follower: Follower) -> None:
    two = ((600, 400), (300, 200))
    export(
        follower.source,
        [
            looked("ann", "7", drawing(point(1, 2), point(3, 4, frame=1)), sizes=two),
            looked("bob", "7", drawing(point(5, 6, frame=1)), sizes=two),
        ],
    )
    follower.catch_up()
    export(
        follower.source, [looked("cy", "8", drawing(point(7, 8))), looked("dee", "7", drawing(), sizes=two)]
    )
    follower.catch_up()
    assert [row[:2] for row in follower.rows] == [
        ("ann", "a.png"), ("ann", "a.png frame 2"), ("bob", "a.png frame 2"), ("cy", "a.png (subject 8)")
    ]  # fmt: skip
    assert follower.looked == {("bob", "a.png"), ("dee", "a.png"), ("dee", "a.png frame 2")}
    assert follower.sizes["a.png frame 2"] == (300.0, 200.0)


def test_other_shapes_are_counted(follower: Follower) -> None:
    circle = {"tool": 1, "x": 1, "y": 2, "r": 5}
    rows = [looked(person, "7", drawing(point(1, 2), circle, circle)) for person in ("ann", "bob")]
    export(follower.source, rows[:1])
    follower.catch_up()
    export(follower.source, rows[::-1])
    follower.catch_up()
    assert follower.notices == [
        "classifications.csv: marks that are not points were skipped (other shapes 2).",
        "classifications.csv was replaced and is read from its beginning.",
        "classifications.csv: 1 row skipped: they were read before.",
        "classifications.csv: marks that are not points were skipped (other shapes 2).",
    ]


def test_names_in_the_encoding_of_old_spreadsheets_are_read(follower: Follower) -> None:
    export(follower.source, [looked("J\u00fcrgen", "7", drawing(point(1, 2)))])
    follower.source.write_bytes(follower.source.read_text().encode("cp1252"))
    assert [row[0] for row in follower.catch_up()] == ["J\u00fcrgen"]
