"""Decisions that other programs write as a table."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from raterscope.algorithms.masks.data import OPEN
from raterscope.app.decision_tables import record_decisions
from raterscope.app.errors import TableProblems
from raterscope.app.review import Decision, SpotOf, SpotsSubject, fold
from raterscope.app.study import Study
from raterscope.app.study.masks import settled_of
from tests.app.commands import run
from tests.app.kinds.masks.made import SHAPE, a_volume, four_raters
from tests.app.review.decisions import on, verdicts, weigh
from tests.app.study.made import a_table
from tests.app.tables import write


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    path = tmp_path / "clicks.rscope"
    with Study.create(path) as study:
        study.add_clicks(a_table(1, ("a.png", "b.png"), clicks=300))
    return path


@pytest.fixture
def labels(tmp_path: Path, capsys) -> Path:
    rows = [(f"w{n}", f"t{task}", "cat" if n else "dog") for n in range(3) for task in range(4)]
    votes = write(tmp_path / "votes.csv", ("annotator", "task", "label"), rows)
    assert run("import", tmp_path / "labels.rscope", votes) == 0
    capsys.readouterr()
    return tmp_path / "labels.rscope"


def problems(study: Path, table: Path) -> tuple[str, ...]:
    with Study.open(study) as opened:
        with pytest.raises(TableProblems) as refused:
            record_decisions(opened, table)
        assert opened.decisions() == []
    return refused.value.problems


def test_an_exported_journal_is_imported_unchanged(clicks, tmp_path, capsys):
    copy = Path(shutil.copy(clicks, tmp_path / "copy.rscope"))
    with Study.open(clicks) as study:
        names = study.annotators()
        spots = tuple(SpotOf(image=image, x=x, y=7.0) for image, x in ((1, 20.0), (1, 30.0), (2, 20.0)))
        for decision in (
            on("accept", 10, 5, reason="=1+1"), on("reject", 12, 40),
            on("move", 14, 5, from_x=10.0, from_y=5.0),
            Decision(verb="reject", item=1, subject=SpotsSubject(spots=spots)),
            Decision(verb="exclude", annotators=tuple(names[:2]), reason="robot"), weigh(names[3]),
            Decision(verb="undo", undoes=2), on("add", 50, 50),
        ):  # fmt: skip
            study.record(replace(decision, who="anna"))
        expected = study.decisions()
    table = tmp_path / "decisions.csv"
    assert run("export", clicks, "--what", "decisions", "-o", table) == 0
    capsys.readouterr()
    assert run("decide", copy, table) == 0
    assert capsys.readouterr().out == "8 decisions recorded\n"
    assert run("decide", copy, table) == 0
    assert capsys.readouterr().out == "0 decisions recorded, 8 known already\n"
    with Study.open(copy) as study:
        listed = study.decisions()
    assert [replace(decision, at=None) for decision in listed] == [
        replace(decision, at=None) for decision in expected
    ]
    assert verdicts(listed, 2) == verdicts(expected, 2)


def test_every_problem_is_listed_and_nothing_recorded(clicks, tmp_path):
    table = write(
        tmp_path / "t.csv",
        ("verb", "kind", "item", "x", "y", "annotators", "at"),
        [
            ("accept", "clicks", "a.png", 3, 4, "", ""),
            ("accept", "clicks", "c.png", 3, 4, "", ""),
            ("accept", "clicks", "a.png", "x", 4, "", ""),
            ("accept", "clicks", "a.png", 1e6, 4, "", ""),
            ("acept", "clicks", "a.png", 3, 4, "", ""),
            ("accept", "spots", "a.png", 3, 4, "", ""),
            ("exclude", "", "", "", "", "w9", ""),
            ("accept", "clicks", "a.png", 3, 4, "", "yesterday"),
            ("scale", "clicks", "a.png", 3, 4, "", ""),
            ("accept", "clicks", "", 3, 4, "", ""),
        ],
    )
    listed = problems(clicks, table)
    assert [sentence.partition(":")[0] for sentence in listed] == [f"line {line}" for line in range(3, 12)]
    words = ("no image c.png; expected one of a.png, b.png", "expected a number", "is not on a.png",
             'verb is "acept"', "expected clicks, masks", "no annotator w9", "expected a time",
             "does not contain", "item is empty")  # fmt: skip
    for sentence, word in zip(listed, words, strict=True):
        assert word in sentence


def test_unknown_columns_and_numbers(clicks, tmp_path):
    assert (
        "unknown column spots"
        in problems(clicks, write(tmp_path / "t.csv", ("verb", "spots"), [("a", 1)]))[0]
    )
    header, row = ("decision", "verb", "undoes"), (1, "undo", 7)
    assert "is not in a line above" in problems(clicks, write(tmp_path / "u.csv", header, [row]))[0]
    header = ("decision", "verb", "kind", "item", "x", "y")
    rows = [(n, "accept", "clicks", "a.png", 5, 5) for n in (1, 2, 1)]
    assert "decision 1 is already on line 2" in problems(clicks, write(tmp_path / "v.csv", header, rows))[0]


def test_tasks(labels, tmp_path):
    header = ("verb", "kind", "item", "task", "label", "who")
    with Study.open(labels) as study:
        (question,) = study.questions()
    rows = [
        ("label", "labels", question.name, "t1", "dog", "script"),
        ("skip", "labels", question.name, "t2", "", ""),
    ]
    with Study.open(labels) as study:
        assert record_decisions(study, write(tmp_path / "t.csv", header, rows)) == (2, 0)
        assert fold(study.decisions()).tasks(question.id)["t1"].label == "dog"
        assert study.decisions()[0].who == "script"
    wrong = [
        ("label", "labels", question.name, "t9", "dog", ""),
        ("label", "labels", question.name, "t1", "cow", ""),
        ("label", "labels", "votes", "t1", "dog", ""),
    ]
    with Study.open(labels) as study, pytest.raises(TableProblems) as refused:
        record_decisions(study, write(tmp_path / "w.csv", header, wrong))
    assert refused.value.problems == (
        "line 2: there is no task t9",
        "line 3: cow is no class; expected cat, dog",
        f"line 4: there is no question votes; expected one of {question.name}",
    )


def test_regions(tmp_path, capsys):
    path = tmp_path / "masks.rscope"
    files = [a_volume(tmp_path / "ct.nii.gz"), *four_raters(tmp_path, "ball_")]
    assert run("import", path, *files) == 0
    assert run("run", path, "majority") == 0
    header = ("verb", "kind", "item", "structure", "region", "rater")
    table = write(
        tmp_path / "t.csv", header, [("take", "masks", "ct.nii.gz", "ball", 1, "dora"),
                                     ("accept", "masks", "ct.nii.gz", "ball", 1, "")],
    )  # fmt: skip
    with Study.open(path) as study:
        assert record_decisions(study, table) == (2, 0)
        image = study.images()[0].id
        taken, accepted = (study.settled(decision.voxels) for decision in study.decisions())
        result = study.shown.result(image, "masks")[1]
        dispute, fusion = result.reports[0].disputes[0], result.fusions[0]
        assert len(settled_of(study, fold(study.decisions()).regions(image))) == 2
    inside = dispute.voxels()
    np.testing.assert_array_equal(taken.value != OPEN, inside)
    assert (taken.value[inside] == 1).all()  # dora alone goes beyond the others
    whole = np.zeros(SHAPE, dtype=bool)
    whole[tuple(slice(at, at + n) for at, n in zip(fusion.origin, fusion.shape, strict=True))] = fusion.mask[
        0
    ]
    region = whole[tuple(slice(at, at + n) for at, n in zip(dispute.origin, dispute.shape, strict=True))]
    np.testing.assert_array_equal(accepted.value, np.where(inside, region, OPEN))
    wrong = write(tmp_path / "w.csv", header, [("take", "masks", "ct.nii.gz", "ball", 99, "dora"),
                                               ("take", "masks", "ct.nii.gz", "ball", 1, "eve"),
                                               ("paint", "masks", "ct.nii.gz", "ball", 1, "")])  # fmt: skip
    with Study.open(path) as study, pytest.raises(TableProblems) as refused:
        record_decisions(study, wrong)
    assert [word in sentence for word, sentence in zip(
        ("expected 1 to", "eve did not mark ball", "merge"), refused.value.problems, strict=True
    )] == [True] * 3  # fmt: skip
