"""Exports of labels, read as the next program reads them."""

import json
import shutil
from xml.etree import ElementTree

import numpy as np
import pytest

from raterscope.app.formats.labels import read_labels
from raterscope.app.formats.records import LabelTable, TrueLabels
from raterscope.app.review import Decision, TaskSubject
from raterscope.app.study import Study
from tests.app.commands import run
from tests.app.kinds.labels.made import (
    CLASSES,
    LAZY,
    LIAR,
    PEOPLE,
    TASKS,
    all_answers,
    make_study,
    truth,
    write_truth,
    write_votes,
)
from tests.app.tables import rows_of

WRONG = CLASSES[1 - truth()[5]]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Fused, then one task decided otherwise than all but the liar say, and one in a class of its own."""
    folder = tmp_path_factory.mktemp("labels")
    path = make_study(folder / "s.rscope", write_votes(folder / "votes.csv"))
    assert run("run", path, "ibcc") == 0
    with Study.open(path) as opened:
        question = opened.questions()[0].id
        for task, label in (("t5", WRONG), ("t6", "cow")):
            subject = TaskSubject(task=task, label=label)
            opened.record(Decision(verb="label", item=question, subject=subject, reason="=seen"))
    return path


@pytest.fixture
def study(tmp_path, original):
    return shutil.copy(original, tmp_path / "s.rscope")


@pytest.fixture
def export(study, capsys):
    def leave(kind, *more, suffix=".csv"):
        out = study.with_name(f"{kind}{suffix}")
        capsys.readouterr()
        assert run("export", study, "--what", kind, *more, "-o", out) == 0, capsys.readouterr().err
        return out

    return leave


def test_decided_tasks_have_the_last_word(export):
    rows = {row["task"]: row for row in rows_of(export("labels"))}
    assert len(rows) == TASKS
    assert rows["t5"] == {
        "task": "t5", "label": WRONG, "cat": str(int(WRONG == "cat")), "dog": str(int(WRONG == "dog")),
        "cow": "0", "entropy": "0", "votes": str(len(PEOPLE)),
    }  # fmt: skip
    assert (rows["t6"]["label"], rows["t6"]["cow"]) == ("cow", "1")
    others = [row for task, row in rows.items() if task not in ("t5", "t6")]
    assert all(row["label"] == CLASSES[truth()[int(row["task"][1:])]] for row in others)


def test_labels_for_crowd_kit_are_read_back(export):
    stored = read_labels(export("labels", "--format", "crowd-kit"))
    (table,) = stored
    assert isinstance(table, TrueLabels)
    labels = {task: table.classes[at] for task, at in zip(table.tasks, table.label, strict=True)}
    assert labels == {f"t{t}": CLASSES[number] for t, number in enumerate(truth())} | {
        "t5": WRONG,
        "t6": "cow",
    }


def test_label_studio_gets_answers_as_predictions_and_decisions_as_annotations(export):
    path = export("labels", suffix=".json")
    tasks = {task["data"]["text"]: task for task in json.loads(path.read_text(encoding="utf-8"))}
    assert len(tasks) == TASKS
    assert [name for name, task in tasks.items() if task["annotations"]] == ["t5", "t6"]
    five = tasks["t5"]
    assert five["annotations"][0]["result"][0]["value"]["choices"] == [WRONG]
    assert five["predictions"][0]["result"][0]["value"]["choices"] == [CLASSES[truth()[5]]]
    interface = ElementTree.parse(path.with_suffix(".xml"))
    assert {choice.get("value") for choice in interface.iter("Choice")} == {*CLASSES, "cow"}


def test_votes_are_read_back_unchanged(export):
    (table,) = read_labels(export("votes"))
    assert isinstance(table, LabelTable)
    votes = np.full((TASKS, len(PEOPLE)), -1)
    for t, k, label in zip(table.task, table.annotator, table.label, strict=True):
        votes[int(table.tasks[t][1:]), PEOPLE.index(table.annotators[k])] = CLASSES.index(
            table.outputs[label]
        )
    np.testing.assert_array_equal(votes, all_answers())


def test_annotators_and_communities(export):
    people = {row["annotator"]: row for row in rows_of(export("annotators"))}
    assert set(people) == set(PEOPLE)
    assert float(people[LIAR]["accuracy"]) < 0.1 < float(people[LAZY]["accuracy"])
    groups = rows_of(export("communities"))
    for row in groups:
        members = [name for name in people if people[name]["community"] == row["community"]]
        assert len(members) == int(row["members"])
    confusion = rows_of(export("confusion"))
    assert {(row["annotator"], row["true"], row["given"]) for row in confusion} == {
        (name, true, output) for name in PEOPLE for true in CLASSES for output in CLASSES
    }


def test_decided_tasks_get_no_votes(tmp_path):
    votes = write_votes(tmp_path / "votes.csv")
    lines = [line for line in votes.read_text(encoding="utf-8").splitlines() if ",t7," not in line]
    votes.write_text("\n".join([*lines, "good 0,t7,cat", "good 1,t7,dog"]), encoding="utf-8")
    path = make_study(tmp_path / "s.rscope", votes)
    assert run("run", path, "ibcc") == 0
    out = tmp_path / "next.csv"
    assert run("export", path, "--what", "next-votes", "-o", out) == 0
    assert rows_of(out)[0]["task"] == "t7"
    with Study.open(path) as opened:
        question = opened.questions()[0].id
        opened.record(Decision(verb="label", item=question, subject=TaskSubject(task="t7", label="cat")))
    assert run("export", path, "--what", "next-votes", "-o", out) == 0
    assert "t7" not in {row["task"] for row in rows_of(out)}


def test_what_was_decided_is_exported_as_a_truth(export):
    rows = rows_of(export("decided"))
    assert [(row["task"], row["label"], row["reason"]) for row in rows] == [
        ("t5", WRONG, "'=seen"), ("t6", "cow", "'=seen")
    ]  # fmt: skip
    assert all(row["who"] and row["when"] for row in rows)
    (table,) = read_labels(export("decided", "--format", "crowd-kit"))
    assert isinstance(table, TrueLabels)
    assert table.tasks == ("t5", "t6")


def test_several_questions_go_into_a_folder(tmp_path, capsys):
    files = [write_votes(tmp_path / f"{name}.csv", question=f"{name}?") for name in ("first", "second")]
    path = make_study(tmp_path / "two.rscope", *files)
    assert run("run", path, "majority") == 0
    out = tmp_path / "out"
    assert run("export", path, "--what", "labels", "-o", out) == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "first_labels.csv",
        "labels.run.json",
        "second_labels.csv",
    ]
    single = tmp_path / "alone.csv"
    assert run("export", path, "--what", "labels", "--item", "Second?", "-o", single) == 0
    assert single.read_bytes() == (out / "second_labels.csv").read_bytes()


def test_what_is_not_there_is_reported_in_a_sentence(tmp_path, refusal):
    path = make_study(tmp_path / "bare.rscope", write_votes(tmp_path / "votes.csv"))
    out = tmp_path / "x.csv"
    assert "`raterscope run` makes one" in refusal("export", path, "--what", "labels", "-o", out)
    assert "no decision on a task" in refusal("export", path, "--what", "decided", "-o", out)
    assert "contains no question third?" in refusal(
        "export", path, "--what", "votes", "--item", "third?", "-o", out
    )
    assert "expected one of csv" in refusal("export", path, "--what", "votes", "--format", "nifti", "-o", out)
    assert run("run", path, "majority", "--set", "communities=no") == 0
    assert "communities=behaviour" in refusal("export", path, "--what", "communities", "-o", out)
    assert not out.exists()


def test_labels_of_an_answer_from_before_another_order_was_set(export, study):
    """The outputs are counted otherwise now; what was answered stays what it was."""
    from dataclasses import replace

    from raterscope.app.study.labels import set_scheme

    labels_before = {row["task"]: row["label"] for row in rows_of(export("labels"))}
    with Study.open(study) as opened:
        (question,) = opened.questions()
        scheme = question.scheme
        turned = replace(scheme, outputs=scheme.outputs[::-1], classes=scheme.classes[::-1])
        set_scheme(opened, question.id, turned)
    assert {row["task"]: row["label"] for row in rows_of(export("labels"))} == labels_before
    assert float(rows_of(export("annotators"))[0]["accuracy"]) > 0.8


def test_a_truth_that_was_imported_is_not_taken_for_a_decision(tmp_path, refusal):
    files = [write_votes(tmp_path / "votes.csv"), write_truth(tmp_path / "truth.csv")]
    path = make_study(tmp_path / "s.rscope", *files)
    assert run("run", path, "ibcc", "--hold-truth") == 0
    assert "no decision" in refusal("export", path, "--what", "decided", "-o", tmp_path / "x.csv")


@pytest.mark.parametrize("kind", ["roc-curves", "rates-over-time"])
def test_curves_are_exported_as_tables_and_drawings(study, tmp_path, export, refusal, kind):
    if kind == "roc-curves":
        assert "contains no known truths" in refusal(
            "export", study, "--what", kind, "-o", tmp_path / "x.csv"
        )
        assert run("import", study, write_truth(tmp_path / "truth.csv"), "--kind", "true-labels") == 0
    assert len({row["method"] for row in rows_of(export(kind))}) >= 2
    assert export(kind, suffix=".svg").read_bytes().startswith(b"<svg ")


def test_a_training_table_has_soft_labels_and_keeps_patients_apart(study, export, tmp_path):
    (tmp_path / "patients.csv").write_text(
        "task,patient\n" + "".join(f"t{t},P{t % 7}\n" for t in range(TASKS))
    )
    rows = rows_of(export("training", "--groups", tmp_path / "patients.csv"))
    labels = rows_of(export("labels"))
    assert len(rows) == TASKS
    for row, label in zip(rows, labels, strict=True):
        assert (row["task"], row["label"]) == (label["task"], label["label"])
        for name in (*CLASSES, "cow"):
            assert float(row[f"p({name})"]) == pytest.approx(float(label[name]), abs=1e-6)
        assert float(row["entropy"]) == pytest.approx(float(label["entropy"]), abs=1e-6)
    assert [row["task"] for row in rows if row["decided"] == "1"] == ["t5", "t6"]
    splits = {row["group"]: row["split"] for row in rows}
    assert all(splits[row["group"]] == row["split"] for row in rows)
    assert sorted(splits.values()).count("val") == 2


def test_groups_without_any_task_are_refused(study, tmp_path, capsys):
    (tmp_path / "patients.csv").write_text("task,patient\nz,P1\n")
    more = ("--groups", tmp_path / "patients.csv", "-o", tmp_path / "out.csv")
    assert run("export", study, "--what", "training", *more) == 1
    assert "none of the question's tasks" in capsys.readouterr().err
