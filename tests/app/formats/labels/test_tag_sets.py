"""Sets of tags in files: each tag becomes a question, and every annotator who saw a task votes on it."""

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from raterscope.app.errors import InputError
from raterscope.app.formats.labels import read_labels, split_tags
from raterscope.app.formats.labels.tags import truths_of_tags
from raterscope.app.formats.records import LabelFile, LabelTable, TrueLabels

GIVEN = {
    (annotator, f"t{task}"): tags
    for task in range(6)
    for annotator, tags in (("ann", ["sport", "war"]), ("bob", ["sport"] if task % 2 else []))
}


def present(tables: Sequence[LabelFile]) -> dict[tuple[str, str], list[str]]:
    """Return the tags by annotator and task; an empty list if all are absent."""
    result: dict[tuple[str, str], list[str]] = {}
    for table in tables:
        if isinstance(table, LabelTable):
            assert table.outputs == ("absent", "present")
            for annotator, task, label in zip(table.annotator, table.task, table.label, strict=True):
                tags = result.setdefault((table.annotators[annotator], table.tasks[task]), [])
                tags += [table.question.partition(": ")[2]] if label else []
    return result


def read_tags(*paths: Path) -> tuple[LabelFile, ...]:
    return split_tags([table for path in paths for table in read_labels(path)])


def write_cells(path: Path, separator: str) -> Path:
    rows = [f"{who},{task},{separator.join(tags)}" for (who, task), tags in GIVEN.items()]
    path.write_text("\n".join(["annotator,task,topics", *rows]))
    return path


@pytest.mark.parametrize("separator", [";", " | ", "; ", " + "])
def test_a_cell_with_several_tags_is_a_vote_on_each(tmp_path: Path, separator: str) -> None:
    tables = read_tags(write_cells(tmp_path / "topics.csv", separator))
    assert [table.question for table in tables if isinstance(table, LabelTable)] == [
        "tags: sport",
        "tags: war",
    ]
    assert present(tables) == GIVEN
    (notice,) = [words for words in tables[0].notices if "fused separately" in words]
    assert notice.startswith("2 tags are fused separately: sport, war.")
    assert "3 votes without a tag" in notice


def test_tools_with_lists_of_choices_give_the_same_tags(tmp_path: Path) -> None:
    plain, prodigy, argilla, studio = (tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.json", "d.json"))
    records = [{"annotator": who, "task": task, "label": tags} for (who, task), tags in GIVEN.items()]
    plain.write_text("\n".join(map(json.dumps, records)))
    accepted = [
        {"text": task, "_annotator_id": who, "options": [], "accept": tags, "answer": "accept"}
        for (who, task), tags in GIVEN.items()
    ]
    accepted.append(accepted[0] | {"text": "t9", "accept": [], "answer": "ignore"})
    prodigy.write_text("\n".join(map(json.dumps, accepted)))
    argilla.write_text(
        json.dumps(
            [
                {"fields": {"text": task}, "responses": {"topics": [{"user_id": who, "value": tags}]}}
                for (who, task), tags in GIVEN.items()
            ]
        )
    )
    tasks = sorted({task for _, task in GIVEN})
    studio.write_text(
        json.dumps(
            [
                {
                    "id": number,
                    "data": {"text": task},
                    "annotations": [
                        {
                            "completed_by": {"username": who},
                            "result": [{"from_name": "topics", "type": "choices", "value": {"choices": tags}}]
                            if tags
                            else [],
                        }
                        for (who, of), tags in GIVEN.items()
                        if of == task
                    ],
                }
                for number, task in enumerate(tasks)
            ]
        )
    )
    for path, prefix in ((plain, "tags"), (prodigy, "tags"), (argilla, "topics"), (studio, "topics")):
        tables = read_tags(path)
        assert present(tables) == GIVEN, path
        assert tables[0].question == f"{prefix}: sport"


def test_rows_of_an_annotator_and_task_are_one_set_unless_a_label_repeats(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rows = [f"{who},{task},{tag}" for (who, task), tags in GIVEN.items() for tag in tags]
    path.write_text("\n".join(["annotator,task,label", *rows]))
    assert present(read_tags(path)) == {pair: tags for pair, tags in GIVEN.items() if tags}
    path.write_text("\n".join(["annotator,task,label", *rows, rows[0]]))
    (repeated,) = read_tags(path)
    assert isinstance(repeated, LabelTable)
    assert repeated.outputs == ("sport", "war")


def test_columns_of_zeros_and_ones_are_tags(tmp_path: Path) -> None:
    path = tmp_path / "columns.csv"
    rows = [
        f"{who},{task},{int('sport' in tags)},{int('war' in tags)}" for (who, task), tags in GIVEN.items()
    ]
    path.write_text("\n".join(["annotator,task,sport,war", *rows]))
    assert present(read_tags(path)) == GIVEN


def test_a_column_can_be_named_as_tags_or_as_a_label(tmp_path: Path) -> None:
    path = write_cells(tmp_path / "topics.csv", ";")
    columns = {"annotator": "annotator", "task": "task"}
    (whole,) = split_tags(read_labels(path, columns | {"topics": "label"}))
    assert isinstance(whole, LabelTable)
    assert whole.outputs == ("sport", "sport;war")
    path.write_text("who,case,what\nann,t1,sport;war\nbob,t1,war\n")
    tables = split_tags(read_labels(path, {"who": "annotator", "case": "task", "what": "tags"}))
    assert present(tables) == {("ann", "t1"): ["sport", "war"], ("bob", "t1"): ["war"]}


def test_every_file_of_a_question_has_all_tags(tmp_path: Path) -> None:
    """One file per annotator, as doccano writes them: a tag that one never gives is absent in theirs."""
    for who in ("ann", "bob"):
        records = [{"text": task, "label": tags} for (name, task), tags in GIVEN.items() if name == who]
        (tmp_path / f"{who}.jsonl").write_text("\n".join(map(json.dumps, records)))
    assert present(read_tags(tmp_path / "ann.jsonl", tmp_path / "bob.jsonl")) == GIVEN


def test_sentences_and_a_few_double_answers_stay_whole(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    rows = [f"a{n % 3},t{n},word{n}; and word{n + 1}" for n in range(40)]
    path.write_text("\n".join(["annotator,task,label", *rows]))
    (table,) = read_tags(path)
    assert len(table.outputs if isinstance(table, LabelTable) else ()) == 40
    rows = [f"a{n % 3},t{n},{'cat;dog' if n < 4 else 'cat'}" for n in range(40)]
    path.write_text("\n".join(["annotator,task,label", *rows]))
    (table,) = read_tags(path)
    assert isinstance(table, LabelTable)
    assert table.outputs == ("cat", "cat;dog")


@pytest.mark.parametrize("cell", [json.dumps, repr, ", ".join])
def test_lists_as_json_python_and_with_commas_are_tags_in_any_order(
    tmp_path: Path, cell: Callable[[list[str]], str]
) -> None:
    path = tmp_path / "topics.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["annotator", "task", "topics"])
        for (who, task), tags in GIVEN.items():
            rows.writerow([who, task, cell(tags[:: -1 if task == "t1" else 1])])
    assert present(read_tags(path)) == GIVEN


def test_commas_in_names_and_numbers_separate_no_tags(tmp_path: Path) -> None:
    for names in (["carcinoma, in situ", "melanoma, in situ", "carcinoma, invasive"], ["1,5", "5,1", "1"]):
        path = tmp_path / f"{names[2]}.csv"
        rows = [f"{who};t{task};{names[task % 3]}" for task in range(30) for who in ("ann", "bob")]
        path.write_text("\n".join(["annotator;task;label", *rows]))
        (table,) = read_tags(path)
        assert isinstance(table, LabelTable)
        assert sorted(table.outputs) == sorted(names)


def test_labels_in_two_codings_of_an_accent_are_one(tmp_path: Path) -> None:
    path = tmp_path / "drinks.csv"
    coded = ("caf\N{LATIN SMALL LETTER E WITH ACUTE}", "cafe\N{COMBINING ACUTE ACCENT}")
    path.write_text(f"annotator,task,label\nann,t1,{coded[0]}\nbob,t1,{coded[1]}\n", encoding="utf-8")
    (table,) = read_labels(path)
    assert isinstance(table, LabelTable)
    assert table.outputs == coded[:1]


def test_true_tags_are_absent_where_a_task_does_not_name_them(tmp_path: Path) -> None:
    votes = write_cells(tmp_path / "topics.csv", ";")
    truth = tmp_path / "truth.csv"
    truth.write_text("task,truth\nt0,sport;war\nt1,war\nt2,\n")
    truths = [table for table in read_tags(votes, truth) if isinstance(table, TrueLabels)]
    assert {
        table.question: dict(zip(table.tasks, table.label.tolist(), strict=True)) for table in truths
    } == {
        "tags: sport": {"t0": 1, "t1": 0, "t2": 0},
        "tags: war": {"t0": 1, "t1": 1, "t2": 0},
    }


def test_truths_find_their_tag_in_columns_and_sets_of_another_name(tmp_path: Path) -> None:
    """Cells of tags as truth of a column per tag, and truths without the name of the set."""
    truth = tmp_path / "truth.csv"
    truth.write_text("task,truth\nt0,sport;war\nt1,war\nt2,art\n")
    rows = [f"{who},{task},topics,{';'.join(tags)}" for (who, task), tags in GIVEN.items()]
    named, columns = tmp_path / "named.csv", tmp_path / "columns.csv"
    named.write_text("\n".join(["annotator,task,question,label", *rows]))
    rows = [
        f"{who},{task},{int('sport' in tags)},{int('war' in tags)}" for (who, task), tags in GIVEN.items()
    ]
    columns.write_text("\n".join(["annotator,task,sport,war", *rows]))
    for path, name in ((named, "topics"), (columns, "tags")):
        truths = [table for table in read_tags(path, truth) if isinstance(table, TrueLabels)]
        assert {table.question: table.label.tolist() for table in truths} == {
            f"{name}: sport": [1, 0, 0],
            f"{name}: war": [1, 1, 0],
        }
    alone = TrueLabels(truth, "tags: art", ("t2",), ("absent", "present"), np.array([1], dtype=np.int16))
    assert truths_of_tags(alone, ["topics: sport", "topics: war"]) == ()
    (moved,) = truths_of_tags(replace(alone, question="tags: war"), ["topics: sport", "topics: war"])
    assert moved.question == "topics: war"


def test_thousands_of_combinations_of_few_tags_are_read_and_rare_tags_skipped(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    rows = [
        f"a{n % 4},t{n // 4},{';'.join(f'g{bit}' for bit in range(12) if n >> bit & 1)}" for n in range(4096)
    ]
    path.write_text("\n".join(["annotator,task,label", *rows]))
    assert len(read_tags(path)) == 12
    rows = [f"a{n % 4},t{n // 4},g{n % 300};h{n % 7}" for n in range(3000)]
    path.write_text("\n".join(["annotator,task,label", *rows]))
    tables = read_tags(path)
    assert len(tables) == 200
    assert any("107 rarest tags beyond 200 were skipped" in words for words in tables[0].notices)
    path.write_text("\n".join(["annotator,task,label", *(f"a,t{n},x{n}" for n in range(2000))]))
    with pytest.raises(InputError, match="at most 1,000"):
        read_tags(path)
