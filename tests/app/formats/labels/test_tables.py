"""Tables of labels and of true labels, as spreadsheets and strangers write them."""

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raterscope.algorithms.progress import Cancelled
from raterscope.app.errors import InputError
from raterscope.app.formats import UnknownColumns, table_files
from raterscope.app.formats.labels import find_labels, read_labels
from raterscope.app.formats.labels.votes import order_outputs
from raterscope.app.formats.records import LabelTable, TrueLabels

PLAIN = "task,worker,label\nt1,ann,cat\nt1,bob,dog\nt2,ann,Zoë\n"
VOTES = [("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "Zoë")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "labels.csv"


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def table_of(path: Path, mapping: dict[str, str] | None = None) -> LabelTable:
    (table,) = read_labels(path, mapping)
    assert isinstance(table, LabelTable)
    return table


def votes(table: LabelTable) -> list[tuple[str, str, str]]:
    return [
        (table.tasks[t], table.annotators[a], table.outputs[o])
        for t, a, o in zip(table.task, table.annotator, table.label, strict=True)
    ]


def truths(table: TrueLabels) -> dict[str, str]:
    return {task: table.classes[at] for task, at in zip(table.tasks, table.label, strict=True)}


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_labels(path)
    assert not isinstance(caught.value, UnknownColumns)
    return str(caught.value)


def test_a_header_that_is_repeated_is_skipped(file: Path) -> None:
    rows = "t1,ann,1,9\nt1,bob,0,10\n"
    text = f"task,worker,label,time\n{rows}task,worker,label,time\nt2,ann,1,12\n"
    table = table_of(written(file, text))
    assert votes(table) == [("t1", "ann", "1"), ("t1", "bob", "0"), ("t2", "ann", "1")]
    assert (table.outputs, table.tasks, table.annotators) == (("0", "1"), ("t1", "t2"), ("ann", "bob"))
    assert table.time is not None
    assert table.time.tolist() == [9, 10, 12]
    assert table.notices == ("Line 4 skipped: it repeats the header.",)
    (truth,) = read_labels(written(file, "task,truth\nt1,1\ntask,truth\nt2,0\ntask,truth\n"))
    assert isinstance(truth, TrueLabels)
    assert truths(truth) == {"t1": "1", "t2": "0"}
    assert truth.notices == ("2 lines skipped: they repeat the header (first: line 3).",)
    header = "task,rater 1,rater 2\n"
    wide = table_of(written(file, f"{header}t1,a,b\n{header}t2,b,b\n"))
    assert (wide.tasks, wide.outputs) == (("t1", "t2"), ("a", "b"))
    assert wide.notices[0] == "Line 3 skipped: it repeats the header."


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252"])
def test_any_encoding_delimiter_and_end_of_line(file: Path, encoding: str) -> None:
    for end, delimiter in product(("\n", "\r\n", "\r"), ",;\t"):
        text = PLAIN.replace("\n", end).replace(",", delimiter)
        assert votes(table_of(written(file, text, encoding))) == VOTES, (end, delimiter)


@pytest.mark.parametrize(
    "header",
    ["item,rater,answer", "object,user_id,response", "image,judge,class", "Question,Annotator ID,Vote",
     "unit_id,_worker_id,category", "document,coder,value", "task,expert,rating",
     "orig_id,!amt_worker_ids,response", "subject_ids,user_name,value", "image_id,rad_id,chosen_label"],
)  # fmt: skip
def test_the_usual_names_of_columns(file: Path, header: str) -> None:
    path = written(file, PLAIN.replace("task,worker,label", header))
    assert votes(table_of(path)) == VOTES
    assert find_labels(path) == "labels"


def test_a_header_may_be_mapped_by_hand(file: Path) -> None:
    path = written(file, PLAIN.replace("task,worker,label", "a,b,c"))
    with pytest.raises(UnknownColumns) as caught:
        read_labels(path)
    assert caught.value.header == ("a", "b", "c")
    assert caught.value.rows[0] == ("t1", "ann", "cat")
    assert find_labels(path) is None
    assert votes(table_of(path, {"a": "task", "b": "annotator", "c": "label"})) == VOTES


def test_a_table_without_a_header_needs_column_names(file: Path) -> None:
    path = written(file, "1,7,0\n2,7,1\n")
    with pytest.raises(UnknownColumns):
        read_labels(path)
    mapping = {"column 1": "task", "column 2": "annotator", "column 3": "label"}
    assert votes(table_of(path, mapping)) == [("1", "7", "0"), ("2", "7", "1")]


def test_numbers_are_in_order_of_value_and_equal_ones_are_one(file: Path) -> None:
    table = table_of(written(file, "task,worker,label\na,w,10\na,v,9\nb,w,1.0\nb,v,1\nc,v,-1\n"))
    assert table.outputs == ("-1", "1", "9", "10")
    assert "1 and 1.0" in table.notices[0]


def test_words_are_in_order_of_the_alphabet_and_true_is_not_1(file: Path) -> None:
    table = table_of(written(file, "task,worker,label\na,w,True\na,v,1\nb,w,1.0\nb,v, beta \nc,v,Alpha\n"))
    assert table.outputs == ("1", "1.0", "Alpha", "beta", "True")


def test_rows_without_a_label_are_counted_and_their_task_stays(file: Path) -> None:
    table = table_of(written(file, "task,worker,label\na,w,1\nb,w,\nc,v,NaN\n"))
    assert table.missing == 2
    assert votes(table) == [("a", "w", "1")]
    assert table.tasks == ("a", "b", "c")
    assert table.annotators == ("w", "v")
    assert "2 rows" in table.notices[0]


def test_nan_is_a_word_among_words(file: Path) -> None:
    table = table_of(written(file, "task,worker,label\na,w,NA\nb,w,yes\n"))
    assert (table.outputs, table.missing) == (("NA", "yes"), 0)


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (("5", "", "7.5"), (5.0, math.nan, 7.5)),
        (("1970-01-01 00:00:10 UTC", "", "1970-01-01 00:01:00 UTC"), (10.0, math.nan, 60.0)),
        (("1970-01-01T00:00:10Z", "1970-01-01T00:00:10.5Z", "1970-01-01T01:00:00Z"), (10.0, 10.5, 3600.0)),
        (("1970-01-01T01:00:10+01:00", "1970-01-02", "1970-01-01 00:00"), (10.0, 86400.0, 0.0)),
    ],
)
def test_times(file: Path, times: tuple[str, ...], expected: tuple[float, ...]) -> None:
    rows = "".join(f"a{at},w,1,{time}\n" for at, time in enumerate(times))
    table = table_of(written(file, f"task,worker,label,created_at\n{rows}"))
    assert table.time is not None
    np.testing.assert_allclose(table.time, expected)


def test_a_column_of_no_times_is_skipped_with_a_notice(file: Path) -> None:
    table = table_of(written(file, "task,worker,label,time\na,w,1,5\n\nb,w,0,late\n"))
    assert table.time is None
    assert 'line 4 has "late"' in table.notices[0]


def test_pictures_of_the_tasks(file: Path) -> None:
    table = table_of(written(file, "task,worker,label,image_url\na,w,1,a.png\na,v,1,\nb,v,1,\n"))
    assert table.pictures == {0: "a.png"}


def test_gold_beside_the_votes_is_the_truth(file: Path) -> None:
    path = written(file, "task,worker,label,gold\na,w,1,1.0\na,v,0,\nb,v,0,0.0\nc,v,1,\n")
    table, truth = read_labels(path)
    assert isinstance(table, LabelTable)
    assert isinstance(truth, TrueLabels)
    assert len(table) == 4
    assert truths(truth) == {"a": "1", "b": "0"}


def test_a_column_of_other_things_is_no_gold(file: Path) -> None:
    table = table_of(written(file, "unit,worker,label,_golden\na,w,cat,TRUE\nb,v,dog,FALSE\n"))
    assert "_golden" in table.notices[0]


def test_two_truths_of_a_task_are_refused(file: Path) -> None:
    path = written(file, "task,worker,label,gold\na,w,1,1\nb,w,1,0\na,v,0,0\n")
    assert "line 4, field gold" in refusal(path)


@pytest.mark.parametrize("header", ["task,label", "item,truth", "image,ground_truth", "object,expert"])
def test_a_table_without_annotators_is_the_truth(file: Path, header: str) -> None:
    path = written(file, f"{header}\na,yes\nb,no\na,yes\n")
    (truth,) = read_labels(path)
    assert find_labels(path) == "truth"
    assert isinstance(truth, TrueLabels)
    assert truths(truth) == {"a": "yes", "b": "no"}


def test_an_experts_own_votes_may_be_taken_for_the_truth(file: Path) -> None:
    (truth,) = read_labels(written(file, PLAIN.replace("t1,bob,dog\n", "")), truth=True)
    assert isinstance(truth, TrueLabels)
    assert truths(truth) == {"t1": "cat", "t2": "Zoë"}


@pytest.mark.parametrize("unknown", ["", "nan", "NaT", "NA", "null"])
def test_times_that_are_not_known_leave_the_others(file: Path, unknown: str) -> None:
    text = f"task,worker,label,time\na,w,1,{unknown}\nb,w,0,2024-01-01\nc,w,0,2024-01-02T00:00:00Z\n"
    table = table_of(written(file, text))
    assert table.time is not None
    np.testing.assert_allclose(table.time, [math.nan, 1704067200, 1704153600])


def test_the_line_that_has_no_time_is_reported_and_not_one_of_those_that_have(file: Path) -> None:
    text = "task,worker,label,time\na,w,1,2024-01-01\nb,w,0,inf\nc,w,0,2024-01-02T00:00:00Z\n"
    table = table_of(written(file, text))
    assert table.time is None
    assert any('line 3 has "inf"' in notice for notice in table.notices)


def test_of_dates_and_numbers_the_first_that_differs_from_the_ones_before_is_reported(file: Path) -> None:
    text = "task,worker,label,time\na,w,1,2024-01-01\nb,w,0,2024-01-02\nc,w,0,1704153600\n"
    table = table_of(written(file, text))
    assert table.time is None
    assert 'line 4 has "1704153600", which is not a time' in table.notices[0]


def test_rows_without_a_question_are_skipped_and_counted(file: Path) -> None:
    text = "task,worker,question,label\na,w,size,2\na,w,,1\nb,w,,2\nb,v,size,10\n"
    (size,) = read_labels(written(file, text))
    assert isinstance(size, LabelTable)
    assert len(size) == 2
    assert "2 rows skipped: no question in question." in size.notices


def test_true_labels_are_distinguished_by_their_question(file: Path) -> None:
    text = "task,question,label\na,size,10\nb,size,2\na,kind,cat\nb,,dog\n"
    file.write_text(text)
    size, kind = read_labels(file, truth=True)
    assert isinstance(size, TrueLabels)
    assert (size.question, size.tasks, [size.classes[at] for at in size.label]) == (
        "size", ("a", "b"), ["10", "2"],
    )  # fmt: skip
    assert (kind.question, kind.tasks, kind.classes) == ("kind", ("a",), ("cat",))
    assert "1 row skipped: no question in question." in size.notices


def test_a_question_has_the_true_classes_of_its_own_rows_alone(file: Path) -> None:
    file.write_text("task,worker,question,label,truth\na,w,size,2,2\na,w,kind,cat,cat\n")
    tables = [table for table in read_labels(file) if isinstance(table, TrueLabels)]
    assert [(table.question, table.classes) for table in tables] == [("size", ("2",)), ("kind", ("cat",))]


def test_each_question_is_a_table(file: Path) -> None:
    text = "task,worker,question,label\na,w,size,2\na,w,kind,cat\nb,v,size,10\n"
    size, kind = read_labels(written(file, text))
    assert isinstance(size, LabelTable)
    assert isinstance(kind, LabelTable)
    assert (size.question, size.outputs, size.tasks, size.annotators) == (
        "size",
        ("2", "10"),
        ("a", "b"),
        ("w", "v"),
    )
    assert (kind.question, kind.outputs, kind.tasks, kind.annotators) == ("kind", ("cat",), ("a",), ("w",))


@pytest.mark.parametrize(
    "header",
    ["annotator,left,right,label", "annotator,image,x,y,label", "image,width,height,class", "a,b,c"],
)
def test_other_tables_are_none_of_labels(file: Path, header: str) -> None:
    width = header.count(",") + 1
    assert find_labels(written(file, f"{header}\n{','.join('pqrst'[:width])}\n")) is None


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "empty"),
        ("task,worker,label\n", "no rows"),
        ("task,worker,label\na,w,1\na,w\n", "line 3"),
        ("task,worker,label\na,w,1\n\na,w,1,2\n", "line 4"),
        ("task,worker,label\na,w,1\n\n,w,1\n", "line 4, field task"),
        ('task,worker,label\n"a\nb",w,1\nc,,1\n', "line 4, field worker"),
        ("task,worker,label\na,w,1,\n,,,\nb,,1,\n", "line 4, field worker"),
        (f"task,worker,label\na,{'w' * 501},1\n", "line 2, field worker"),
        ("task,worker,label\na,w,\nb,w,\n", "no labels"),
        (
            "task,worker,label\n" + "".join(f"a,w,{number}\n" for number in range(1001)),
            "1,001 different labels",
        ),
        ("\x01\x02,\x03\n", "neither text"),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(file: Path, text: str, where: str) -> None:
    assert where in refusal(written(file, text))


def test_a_column_an_annotator(file: Path) -> None:
    path = written(file, "item,rater 1,rater_2,gold\na,1,0,1\nb,,1,\n")
    table, truth = read_labels(path)
    assert isinstance(table, LabelTable)
    assert votes(table) == [("a", "rater 1", "1"), ("a", "rater_2", "0"), ("b", "rater_2", "1")]
    assert table.missing == 0
    assert not any("skipped" in notice for notice in table.notices)
    assert isinstance(truth, TrueLabels)
    assert truths(truth) == {"a": "1"}
    assert find_labels(path) == "labels"


def test_a_short_table_with_shared_answers_is_asked_about(file: Path) -> None:
    path = written(file, "task,anna,ben,carl\nt1,cat,dog,cat\nt2,dog,dog,dog\nt3,cat,cat,dog\n")
    with pytest.raises(
        UnknownColumns, match="the labels of 3 tasks do not show whether anna, ben, carl"
    ) as e:
        read_labels(path)
    votes_of_all = {"task": "task", "anna": "votes", "ben": "votes", "carl": "votes"}
    assert e.value.guess == votes_of_all
    assert len(votes(table_of(path, votes_of_all))) == 9
    with pytest.raises(UnknownColumns, match="no column is recognised as annotator or label"):
        read_labels(written(file, "task,anna,ben\nt1,cat,1\nt2,dog,2\nt3,cat,3\n"))


def test_classes_that_may_be_missing_answers_are_named(file: Path) -> None:
    lines = [f"t{at},ann,{label}" for at, label in enumerate(("cat", "N/A", "dog", "skip", "?", "cat"))]
    table = table_of(written(file, "\n".join(["task,annotator,label", *lines])))
    assert table.outputs == ("?", "cat", "dog", "N/A", "skip")
    assert "?, N/A, skip are classes" in table.notices[0]
    only = table_of(written(file, "task,annotator,label\nt1,ann,unsure\nt2,ann,none\n"))
    assert only.notices == ()


def test_a_confidence_beside_labels_is_reported_as_unused(file: Path) -> None:
    path = written(file, "task,annotator,label,Confidence\nt1,ann,cat,0.9\nt2,ann,dog,0.1\n")
    assert "Confidence is not used" in table_of(path).notices[0]
    by_hand = {"task": "task", "annotator": "annotator", "label": "label", "Confidence": "ignore"}
    assert table_of(path, by_hand).notices == ()


def test_a_wide_table_has_truths_and_summaries_beside_its_annotators(file: Path) -> None:
    path = written(file, "image,age,rater 1,rater 2,majority_vote,final\na,40,1,0,1,1\nb,50,1,1,1,0\n")
    table, truth = read_labels(path)
    assert isinstance(table, LabelTable)
    assert {annotator for _, annotator, _ in votes(table)} == {"rater 1", "rater 2"}
    assert isinstance(truth, TrueLabels)
    assert truths(truth) == {"a": "1", "b": "0"}
    named = written(file, "task,alice,bob,consensus\n" + "a,x,x,x\nb,y,y,y\nc,x,y,x\nd,y,y,y\n")
    assert {annotator for _, annotator, _ in votes(table_of(named))} == {"alice", "bob"}


@pytest.mark.parametrize(
    "header", ["answer1,answer2", "answer_1,answer_2", "Answer A,Answer B", "response1,response2"]
)
def test_numbered_answers_are_votes_although_pairs_have_such_columns(file: Path, header: str) -> None:
    rows = "a,yes,no\nb,no,no\nc,yes,yes\nd,no,yes\n"
    table = table_of(written(file, f"task,{header}\n{rows}"))
    assert {annotator for _, annotator, _ in votes(table)} == set(header.split(","))


def test_the_final_answer_of_each_annotator_is_no_truth(file: Path) -> None:
    path = written(file, "task,annotator,label,final\na,kim,x,x\na,lee,x,y\nb,kim,y,y\n")
    (table,) = read_labels(path)
    assert isinstance(table, LabelTable)
    assert votes(table) == [("a", "kim", "x"), ("a", "lee", "x"), ("b", "kim", "y")]


def test_columns_are_assigned_as_annotators(file: Path) -> None:
    path = written(file, "case,blurred,dark\na,yes,no\n")
    assert find_labels(path) is None
    table = table_of(path, {"case": "task", "blurred": "votes", "dark": "votes"})
    assert votes(table) == [("a", "blurred", "yes"), ("a", "dark", "no")]


def test_many_annotators_with_few_votes_each_are_recognised_in_a_wide_table(file: Path) -> None:
    rng = np.random.default_rng(1)
    cells = rng.integers(1, 6, (80, 177)).astype(str)
    cells[rng.random(cells.shape) > 0.05] = ""
    cells[:, :4] = ""
    header = ",".join(["task", *(f"w{number}" for number in range(177))])
    rows = [",".join([f"t{number}", *row]) for number, row in enumerate(cells)]
    table = table_of(written(file, "\n".join([header, *rows]) + "\n"))
    assert len(table) == (cells != "").sum()
    assert table.outputs == ("1", "2", "3", "4", "5")
    # Sparse columns with answers of their own are no annotators.
    cells[:, 4:] = ""
    cells[:3, :4] = [[f"note {row} {column}" for column in range(4)] for row in range(3)]
    rows = [",".join([f"t{number}", *row]) for number, row in enumerate(cells)]
    with pytest.raises(UnknownColumns):
        read_labels(written(file, "\n".join([header, *rows]) + "\n"))


@pytest.mark.parametrize("first", ["", "id", "index"])
def test_a_column_of_row_names_may_stand_before_annotators_with_numbers(file: Path, first: str) -> None:
    rows = "".join(f"t{row},{row % 2},{row % 3 // 2}\n" for row in range(8))
    table = table_of(written(file, f"{first},0,1\n{rows}"), {first or "column 1": "task"})
    assert table.annotators == ("0", "1")
    assert table.tasks == tuple(f"t{row}" for row in range(8))


def test_columns_without_a_common_answer_are_no_annotators(file: Path) -> None:
    rows = "".join(f"t{row},web,MIT\n" for row in range(8))
    with pytest.raises(UnknownColumns):
        read_labels(written(file, f"task,source,license\n{rows}"))


@pytest.mark.parametrize("name", ["id", "project_id", "Batch ID", "batchId"])
def test_an_identifier_is_no_question(file: Path, name: str) -> None:
    rows = "".join(f"ann,t{row},{row % 3},{'ab'[row % 2]}\n" for row in range(8))
    (table,) = read_labels(written(file, f"annotator,text,{name},mood\n{rows}"))
    assert (table.question, table.outputs) == ("", ("a", "b"))


def test_a_task_twice_in_a_wide_table_is_refused(file: Path) -> None:
    assert "twice" in refusal(written(file, "task,w1,w2\na,1,0\na,1,1\n".replace("w", "worker ")))


def test_rows_may_end_in_empty_cells(file: Path) -> None:
    assert votes(table_of(written(file, PLAIN.replace("cat", "cat,,")))) == VOTES


def test_a_formulas_apostrophe_is_taken_away(file: Path) -> None:
    table = table_of(written(file, "task,worker,label\n'=a,w,1\n'b,'@v,1\n"))
    assert (table.tasks, table.annotators) == (("=a", "'b"), ("w", "@v"))


def test_blocks_are_one_table(file: Path) -> None:
    """Of a file that is read in several pieces, every name has one number, in the order of appearance."""
    rng = np.random.default_rng(0)
    count = 400_000
    task, worker, label = rng.integers(0, (90_000, 500, 4), (count, 3)).T.tolist()
    rows = [f"task {t},worker {w},{'abcd'[o]}" for t, w, o in zip(task, worker, label, strict=True)]
    fractions: list[float] = []
    (table,) = read_labels(
        written(file, "task,worker,label\n" + "\n".join(rows)),
        None,
        lambda done, words, **_: fractions.append(done),
    )
    assert isinstance(table, LabelTable)
    assert table.tasks == tuple(dict.fromkeys(f"task {t}" for t in task))
    assert table.annotators == tuple(dict.fromkeys(f"worker {w}" for w in worker))
    assert np.array(table.tasks)[table.task].tolist() == [f"task {t}" for t in task]
    assert np.array(table.annotators)[table.annotator].tolist() == [f"worker {w}" for w in worker]
    assert table.label.tolist() == label
    assert fractions == sorted(fractions)
    assert len(set(fractions)) > 5


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("quoted", [range(0), range(60_000), range(59_999, 60_000)])
def test_halves_of_a_large_file_are_one_table(
    file: Path, monkeypatch: pytest.MonkeyPatch, end: str, quoted: range
) -> None:
    """Quotation marks may contain line breaks, which do not end a row."""
    monkeypatch.setattr(table_files, "_LARGE", 0)
    rows = [
        (f"task {n // 3}", f"worker {n * 7 % 101}", f"a{f'{end}b,c,d' * 9}" if n in quoted else "efgh"[n % 4])
        for n in range(60_000)
    ]
    lines = [",".join(f'"{cell}"' if end in cell else cell for cell in row) for row in rows]
    (table,) = read_labels(written(file, f"task,worker,label{end}{end.join(lines)}"), None)
    assert isinstance(table, LabelTable)
    names = table.tasks, table.annotators, table.outputs
    numbers = table.task, table.annotator, table.label
    columns = [np.array(some)[index].tolist() for some, index in zip(names, numbers, strict=True)]
    assert list(zip(*columns, strict=True)) == rows


def test_reading_is_cancelled(file: Path) -> None:
    calls = 0

    def watch(fraction: float, words: str, **more: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise Cancelled

    with pytest.raises(Cancelled):
        read_labels(written(file, PLAIN), None, watch)


@given(st.lists(st.floats(-1e6, 1e6) | st.integers(-50, 50), min_size=1, max_size=30))
def test_equal_numbers_and_no_others_are_one_output(values: list[float]) -> None:
    outputs, position, _ = order_outputs([repr(value) for value in values], Path("labels.csv"))
    assert [float(outputs[at]) for at in position] == pytest.approx(values, abs=0)
    assert [float(name) for name in outputs] == sorted(set(map(float, values)))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=20), st.integers(0, len(PLAIN)), st.integers(0, 8))
def test_a_damaged_file_is_read_or_refused_in_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int, cut: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.csv"
    data = PLAIN.encode()
    path.write_bytes(data[:at] + noise + data[at + cut :])
    try:
        tables = read_labels(path)
    except InputError as error:
        message = str(error)
    else:
        assert all(len(table) for table in tables)
        return
    assert message.startswith("damaged.csv")
    assert message.endswith(".")


@pytest.mark.parametrize(
    ("name", "count", "tasks", "workers", "classes", "true"),
    [
        ("bluebirds", 4212, 108, 39, 2, 108), ("rte", 8000, 800, 164, 2, 800),
        ("duchenne", 30319, 2134, 64, 2, 159), ("dog", 8070, 807, 109, 4, 807),
        ("product", 24945, 8315, 176, 2, 8315), ("cf_amt", 6030, 300, 110, 5, 300),
        ("sp_amt", 10000, 500, 143, 2, 500), ("adult2", 92721, 11040, 825, 4, 333),
    ],
)  # fmt: skip
def test_real_crowds(
    real_data: Path, name: str, count: int, tasks: int, workers: int, classes: int, true: int
) -> None:
    table = table_of(real_data / "labels" / f"{name}.csv")
    (truth,) = read_labels(real_data / "labels" / f"{name}_truth.csv")
    assert isinstance(truth, TrueLabels)
    assert (len(table), len(table.tasks), len(table.annotators)) == (count, tasks, workers)
    assert len(table.outputs) == classes
    assert len(set(table.tasks) & set(truth.tasks)) == true
