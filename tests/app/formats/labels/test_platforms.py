"""Files of labelling tools and crowd platforms, in the layout that each of them writes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from raterscope.app.errors import InputError
from raterscope.app.formats import read
from raterscope.app.formats.labels import find_labels, read_labels
from raterscope.app.formats.pairs import has_pairs, read_pairs
from raterscope.app.formats.records import ClickTable, LabelTable, TrueLabels
from raterscope.app.formats.tables import UnknownColumns

Votes = set[tuple[str, str, str]]


def votes_of(table: LabelTable | TrueLabels) -> Votes:
    """Return annotator, task and label of each vote."""
    assert isinstance(table, LabelTable)
    return {
        (table.annotators[annotator], table.tasks[task], table.outputs[label])
        for annotator, task, label in zip(table.annotator, table.task, table.label, strict=True)
    }


def write_lines(path: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def prodigy(text: str, annotator: str, **answer: Any) -> dict[str, Any]:
    hashes = {"_input_hash": 1, "_task_hash": 2, "_timestamp": 1_763_000_000}
    return {"text": text, "_annotator_id": annotator, **hashes, **answer}


@pytest.mark.parametrize("form", ["csv", "json", "older csv"])
def test_task_runs_of_pybossa_are_votes(tmp_path: Path, form: str) -> None:
    runs = [
        {"id": number, "task_id": task, "user_id": user, "user_ip": None, "project_id": 3, "info": answer,
         "created": "2024-03-01T10:00:00.1", "finish_time": f"2024-03-01T10:01:0{number}", "timeout": None}
        for number, (task, user, answer) in enumerate([(1, 5, "cat"), (1, 6, "dog"), (2, 5, "cat")])
    ]  # fmt: skip
    if form == "json":
        path = tmp_path / "task_run.json"
        path.write_text(json.dumps(runs))
    else:
        path = tmp_path / "task_run.csv"
        names = [f"task_run__{name}" for name in runs[0]]
        if form == "older csv":
            names[names.index("task_run__info")] = "task_runinfo__animal"
        lines = [",".join("" if value is None else str(value) for value in run.values()) for run in runs]
        path.write_text("\n".join([",".join(names), *lines]))
    assert find_labels(path) == "labels"
    (table,) = read_labels(path)
    assert votes_of(table) == {("5", "1", "cat"), ("6", "1", "dog"), ("5", "2", "cat")}
    assert isinstance(table, LabelTable)
    assert table.time is not None


def test_prodigy_choices_are_votes_and_ignored_tasks_are_none(tmp_path: Path) -> None:
    options = [{"id": "cat", "text": "Cat"}, {"id": "dog", "text": "Dog"}]
    path = write_lines(
        tmp_path / "animals.jsonl",
        [
            prodigy("Meow; loud, ok", "anna", options=options, accept=["cat"], answer="accept"),
            prodigy("Meow; loud, ok", "ben", options=options, accept=["dog"], answer="accept"),
            prodigy("Woof", "anna", options=options, accept=["dog", "cat"], answer="accept"),
            prodigy("Woof", "ben", options=options, accept=["dog"], answer="ignore"),
        ],
    )
    (table,) = read_labels(path)
    assert votes_of(table) == {
        ("anna", "Meow; loud, ok", "cat"),
        ("ben", "Meow; loud, ok", "dog"),
        ("anna", "Woof", "cat + dog"),
    }
    assert isinstance(table, LabelTable)
    assert table.missing == 0
    assert "1 row skipped: the answer was rejected or ignored." in " ".join(table.notices)
    assert table.time is not None
    assert table.time[0] == 1_763_000_000


def test_a_binary_prodigy_label_is_a_question(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "binary.jsonl",
        [
            prodigy("Great", "anna", label="POSITIVE", answer="accept"),
            prodigy("Great", "ben", label="POSITIVE", answer="reject"),
        ],
    )
    (table,) = read_labels(path)
    assert table.question == "POSITIVE"
    assert votes_of(table) == {("anna", "Great", "accept"), ("ben", "Great", "reject")}


@pytest.mark.parametrize("version", ["list of responses", "responses by question"])
def test_argilla_responses_are_votes_by_question(tmp_path: Path, version: str) -> None:
    answers = {"sentiment": ("good", "bad"), "grade": (4, 2)}
    if version == "list of responses":
        responses: Any = [
            {
                "user_id": user,
                "status": status,
                "values": {name: {"value": given[at]} for name, given in answers.items()},
            }
            for at, (user, status) in enumerate((("anna", "submitted"), ("ben", "draft")))
        ]
        expected = {"anna"}
    else:
        responses = {
            name: [
                {"user_id": user, "value": value} for user, value in zip(("anna", "ben"), given, strict=True)
            ]
            for name, given in answers.items()
        }
        expected = {"anna", "ben"}
    path = tmp_path / "records.json"
    path.write_text(json.dumps([{"id": "1", "fields": {"text": "Nice"}, "responses": responses}]))
    assert find_labels(path) == "labels"
    tables = {table.question: table for table in read_labels(path)}
    assert set(tables) == {"sentiment", "grade"}
    assert ("anna", "Nice", "4") in votes_of(tables["grade"])
    assert {annotator for annotator, _, _ in votes_of(tables["sentiment"])} == expected


def test_a_file_of_doccano_is_of_the_annotator_in_its_name(tmp_path: Path) -> None:
    records = [{"id": 7, "text": "Fine", "label": ["good"], "Comments": []}]
    (table,) = read_labels(write_lines(tmp_path / "anna.jsonl", records))
    assert votes_of(table) == {("anna", "Fine", "good")}


def test_json_lines_of_plain_records_are_a_table(tmp_path: Path) -> None:
    votes = [
        {"worker": "anna", "url": "https://example.org/1;a", "label": "cat", "extra": {"nested": [1, 2]}}
    ]
    (table,) = read_labels(write_lines(tmp_path / "votes.ndjson", votes))
    assert votes_of(table) == {("anna", "https://example.org/1;a", "cat")}
    battles = [{"judge": "anna", "model_a": "x", "model_b": "y", "winner": "model_b"}]
    path = write_lines(tmp_path / "arena.jsonl", battles)
    assert has_pairs(path)
    (pairs,) = read_pairs(path)
    assert pairs.choice.tolist() == [-1.0]
    clicks = [{"annotator": "anna", "image": "a.png", "x": 3.5, "y": 4}]
    read_clicks = read(write_lines(tmp_path / "clicks.jsonl", clicks))
    assert isinstance(read_clicks, ClickTable)
    assert read_clicks.x.tolist() == [3.5]


MTURK = (
    '"HITId","WorkerId","SubmitTime","Input.text","Answer.tone","Answer.topic"\n'
    '"H1","W1","Mon Nov 23 05:01:12 PST 2026","Nice day, ""really""","good","weather"\n'
    '"H1","W2","Mon Nov 23 05:01:12 PST 2026","Nice day, ""really""","bad","sport"\n'
)
TOLOKA = (
    "INPUT:image\tOUTPUT:result\tGOLDEN:result\tASSIGNMENT:task_id\tASSIGNMENT:worker_id\n"
    "https://example.org/1.jpg\tcat\tdog\tt1\tw1\nhttps://example.org/1.jpg\tdog\tdog\tt1\tw2\n"
)
APPEN = (
    "_unit_id,_worker_id,_created_at,_trust,animal,animal_gold,name\n5,w1,9/1/2026 10:00:00,0.9,cat,dog,x\n"
)


def mturk_table(
    path: Path, choices: Sequence[str], rows: Sequence[tuple[str, str, str, Sequence[str]]]
) -> Path:
    columns = ",".join(f'"Answer.{choice}"' for choice in choices)
    lines = [f'"HITId","WorkerId","AssignmentStatus","Input.url",{columns}']
    lines += [
        f'"{task}","{who}","{status}","{task}.png",{",".join(cells)}' for task, who, status, cells in rows
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


T, F = "true", "false"
GROUP = ("animal.Cat", "animal.Dog", "animal.None", "sure")


@pytest.mark.parametrize("no", ["false", ""])
def test_a_radio_group_of_mechanical_turk_is_one_question(tmp_path: Path, no: str) -> None:
    rows = [
        ("t1", "w1", "Submitted", (T, no, no, "yes")),
        ("t1", "w2", "Rejected", (no, T, no, "no")),
        ("t1", "w3", "Approved", (no, no, T, "no")),
        ("t2", "w1", "Submitted", (no, no, no, "yes")),
        ("t2", "w2", "Submitted", (no, T, no, "yes")),
    ]
    animal, sure = read_labels(mturk_table(tmp_path / "batch.csv", GROUP, rows))
    assert isinstance(animal, LabelTable)
    assert (animal.question, animal.outputs) == ("Answer.animal", ("Cat", "Dog", "None"))
    assert votes_of(animal) == {
        ("w1", "t1.png", "Cat"),
        ("w3", "t1.png", "None"),
        ("w2", "t2.png", "Dog"),
    }
    assert animal.missing == len(animal.unlabelled) == (no == F)
    assert isinstance(sure, LabelTable)
    assert sure.question == "Answer.sure"
    assert len(sure) == 4


def test_radio_buttons_without_a_group_are_one_question(tmp_path: Path) -> None:
    rows = [("t1", "w1", "Submitted", (T, F)), ("t1", "w2", "Submitted", (F, T))]
    (table,) = read_labels(mturk_table(tmp_path / "batch.csv", ("cat.on", "dog.on"), rows))
    assert votes_of(table) == {("w1", "t1.png", "cat"), ("w2", "t1.png", "dog")}


def test_a_group_of_checkboxes_is_a_set_of_tags(tmp_path: Path) -> None:
    rows = [("t1", "w1", "Submitted", (T, T, F, "yes")), ("t1", "w2", "Submitted", (T, F, F, "no"))]
    *tags, sure = read_labels(mturk_table(tmp_path / "batch.csv", GROUP, rows))
    names = [f"Answer.animal: {name}" for name in ("Cat", "Dog", "None")]
    assert [tag.question for tag in tags if isinstance(tag, LabelTable)] == names
    assert votes_of(tags[1]) == {("w1", "t1.png", "present"), ("w2", "t1.png", "absent")}
    assert votes_of(sure) == {("w1", "t1.png", "yes"), ("w2", "t1.png", "no")}


def test_taxonomies_and_numbers_of_label_studio_are_labels(tmp_path: Path) -> None:
    results = [
        {"from_name": "kind", "type": "taxonomy", "value": {"taxonomy": [["Animal", "Cat"]]}},
        {"from_name": "count", "type": "number", "value": {"number": 3}},
    ]
    path = tmp_path / "studio.json"
    task = {"id": 1, "data": {"text": "a"}, "annotations": [{"completed_by": 1, "result": results}]}
    path.write_text(json.dumps([task]), encoding="utf-8")
    kind, count = read_labels(path)
    assert votes_of(kind) == {("annotator 1", "a", "Animal / Cat")}
    assert votes_of(count) == {("annotator 1", "a", "3")}


def test_a_missing_number_is_no_label(tmp_path: Path) -> None:
    votes = [("ann", 1.0), ("bob", float("nan")), ("cid", 2.0)]
    records = [{"annotator": name, "task": "t", "label": label} for name, label in votes]
    (table,) = read_labels(write_lines(tmp_path / "votes.jsonl", records))
    assert votes_of(table) == {("ann", "t", "1"), ("cid", "t", "2")}


def test_columns_in_one_record_are_refused(tmp_path: Path) -> None:
    columns = {"annotator": ["ann", "bob"], "task": ["s", "t"], "label": ["cat", "dog"]}
    with pytest.raises(InputError, match="list in every field"):
        read_labels(write_lines(tmp_path / "columns.jsonl", [columns]))


def test_answers_of_mechanical_turk_are_questions_about_the_input(tmp_path: Path) -> None:
    path = tmp_path / "batch.csv"
    path.write_text(MTURK, encoding="utf-8")
    tables = {table.question: table for table in read_labels(path)}
    assert votes_of(tables["Answer.tone"]) == {
        ("W1", 'Nice day, "really"', "good"),
        ("W2", 'Nice day, "really"', "bad"),
    }
    assert set(tables) == {"Answer.tone", "Answer.topic"}


@pytest.mark.parametrize(
    ("name", "text", "vote"),
    [
        ("assignments.tsv", TOLOKA, ("w1", "https://example.org/1.jpg", "cat")),
        ("f123.csv", APPEN, ("w1", "5", "cat")),
    ],
)
def test_gold_answers_of_a_platform_are_true_labels(
    tmp_path: Path, name: str, text: str, vote: tuple[str, str, str]
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    tables = read_labels(path)
    assert vote in votes_of(tables[0])
    truths = [table for table in tables if isinstance(table, TrueLabels)]
    assert [truth.classes[truth.label[0]] for truth in truths] == (["dog"] if name.endswith("tsv") else [])


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(",".join(row) for row in [columns, *rows]) + "\n"


def test_columns_with_the_same_answers_are_annotators_with_a_notice(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    rows = [("t0", "cat", "dog"), *((f"t{at}", "cat", "cat") for at in range(1, 6)), ("t9", "dog", "dog")]
    path.write_text(table(("task", "anna", "ben"), rows))
    (wide,) = read_labels(path)
    assert ("ben", "t0", "dog") in votes_of(wide)
    assert isinstance(wide, LabelTable)
    assert any("anna, ben" in notice for notice in wide.notices)


def test_an_annotator_with_one_answer_and_one_with_few_are_columns_too(tmp_path: Path) -> None:
    path = tmp_path / "breit.csv"
    classes = ("Käfer", "Läuse", "Wespe", "Würmer", "Spinne")
    rows = [
        (f"Bild {at}", *(classes[(at + rater) % 5] for rater in range(6)), "Wespe", "Käfer" if at < 2 else "")
        for at in range(20)
    ]
    names = ("anna", "ben", "cleo", "dora", "emil", "fee", "gil", "test")
    path.write_text(table(("Bild", *names), rows), encoding="utf-8")
    with pytest.raises(UnknownColumns, match="the columns are Bild, anna"):
        read_labels(path)
    (wide,) = read_labels(path, {"Bild": "task"})
    assert isinstance(wide, LabelTable)
    assert set(wide.annotators) == set(names)
    assert ("gil", "Bild 3", "Wespe") in votes_of(wide)
    assert any("anna, ben" in notice for notice in wide.notices)


def test_columns_with_few_answers_are_questions(tmp_path: Path) -> None:
    path = tmp_path / "questions.csv"
    rows = [(f"i{at}.png", "anna", "owl" if at % 2 else "fox", str(at % 3), str(at)) for at in range(8)]
    path.write_text(table(("image", "annotator", "species", "count", "serial"), rows))
    tables = read_labels(path)
    assert {table.question for table in tables} == {"species", "count"}


@pytest.mark.parametrize(
    "text",
    [
        table(("image", "width", "height"), [(f"{at}.png", "512", "256") for at in range(6)]),
        table(
            ("worker", "image", "px", "py"), [("w", f"{at}.png", str(7 * at), str(9 * at)) for at in range(6)]
        ),
        table(
            ("image", "xmin", "ymin", "xmax", "ymax"), [(f"{at}.png", "0", "0", "9", "9") for at in range(6)]
        ),
    ],
)
def test_tables_of_positions_and_sizes_are_no_labels(tmp_path: Path, text: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    assert find_labels(path) is None


def test_winners_and_losers_are_comparisons_with_sides_drawn_at_random(tmp_path: Path) -> None:
    path = tmp_path / "games.csv"
    games = [("kim", "better", "worse") for _ in range(200)]
    path.write_text(table(("judge", "winner", "loser"), games))
    assert has_pairs(path)
    (pairs,) = read_pairs(path)
    better = pairs.items.index("better")
    assert ((pairs.choice > 0) == (pairs.left == better)).all()
    assert 60 < (pairs.left == better).sum() < 140
    assert any("sides were drawn at random" in notice for notice in pairs.notices)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"a": 1, "label": "x"}\n{"a": 1,\n', "line 2: is not JSON"),
        ('{"a": 1, "label": "x"}\n[1]\n', "line 2: is not a JSON object"),
        ("\n\n", "is empty"),
        ('{"a": 1}\n', "two fields"),
    ],
)
def test_bad_json_lines_name_the_line(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=problem):
        read_labels(path)
