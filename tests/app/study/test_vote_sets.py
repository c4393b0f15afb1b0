"""Votes as a study keeps them: what a stranger's file may claim of them is refused."""

from dataclasses import replace

import numpy as np
import pytest

from raterscope.app.study.records import Scheme
from raterscope.app.study.vote_sets import (
    NameIndex,
    VotesRecord,
    are_distinct,
    join_votes,
    pack_names,
    unpack_names,
)

SCHEME = Scheme(("cat", "dog"), ("cat", "dog"), (0, 1))
RECORD = VotesRecord(
    tasks=pack_names(["t0", "t1"]), pictures=pack_names([]), outputs=("dog", "cat"),
    task=np.array([0, 1, 1], dtype=np.int32), annotator=np.array([2, 0, 2], dtype=np.int32),
    label=np.array([0, 0, 1], dtype=np.int16),
)  # fmt: skip


def test_imports_are_joined_by_the_names_of_tasks_and_outputs():
    crowd = join_votes(
        [RECORD, replace(RECORD, tasks=pack_names(["t1", "t2"]), outputs=("cat", "dog"))], SCHEME, 3
    )
    assert list(crowd.tasks) == ["t0", "t1", "t2"]
    assert crowd.task.tolist() == [0, 1, 1, 1, 2, 2]
    assert crowd.label.tolist() == [1, 1, 0, 0, 0, 1]


def test_only_tasks_with_a_picture_have_one_and_the_last_picture_of_a_task_counts():
    assert not join_votes([RECORD], SCHEME, 3).pictures
    shown = replace(RECORD, pictures=pack_names(["", "a.png"]))
    assert join_votes([shown], SCHEME, 3).pictures == {1: "a.png"}
    later = replace(RECORD, tasks=pack_names(["t1", "t2"]), pictures=pack_names(["b.png", "c.png"]))
    assert join_votes([shown, later, RECORD], SCHEME, 3).pictures == {1: "b.png", 2: "c.png"}
    with pytest.raises(ValueError, match="not those of its names"):
        join_votes([replace(RECORD, pictures=pack_names(["a.png"]))], SCHEME, 3)


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("annotator", [-1, 0, 2], "no annotator"),
        ("annotator", [0, 1, 3], "no annotator"),
        ("task", [0, -1, 1], "a vote has no task"),
        ("label", [0, -1, 1], "a vote has no task"),
        ("label", [0, 1], "differ in length"),
    ],
)
def test_votes_of_no_annotator_or_on_nothing_are_refused(column, values, words):
    kind = getattr(RECORD, column).dtype
    with pytest.raises(ValueError, match=words):
        join_votes([replace(RECORD, **{column: np.array(values, dtype=kind)})], SCHEME, 3)


def test_votes_for_a_class_that_the_question_does_not_have_are_refused():
    with pytest.raises(ValueError, match="does not have"):
        join_votes([replace(RECORD, outputs=("cat", "bird"))], SCHEME, 3)


def test_numbers_beyond_what_there_is_are_refused():
    for column in ("task", "label"):
        beyond = np.array([0, 1, 2], dtype=getattr(RECORD, column).dtype)
        with pytest.raises(IndexError):
            join_votes([replace(RECORD, **{column: beyond})], SCHEME, 3)


@pytest.mark.parametrize("many", [0, 1, 70_000])
def test_names_are_unpacked_as_packed_and_found_by_number(many):
    names = [f"tâche {number}" for number in range(many)]
    assert unpack_names(pack_names(names)) == names
    index = NameIndex(names)
    assert index.numbers([*names[::-3], "none"]) == dict(
        zip(names[::-3], range(many - 1, -1, -3), strict=True)
    )
    assert "none" not in index


def test_a_name_that_occurs_twice_is_noticed():
    names = [str(number) for number in range(1000)]
    assert are_distinct(names)
    assert not are_distinct([*names, "7"])
