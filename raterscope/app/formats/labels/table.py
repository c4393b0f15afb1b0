"""Tables of labels with one row per vote or per task (a column per annotator), and of true labels.

References
----------
Amazon Web Services, "Amazon Mechanical Turk: results files",
https://docs.aws.amazon.com/AWSMechTurk/latest/RequesterUI/.
Toloka, "Results file", https://toloka.ai/docs/guide/result-of-eval/.
Appen, "Guide to: Reports page", https://success.appen.com/hc/en-us/articles/202703075.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.errors import InputError, plain, plain_names
from raterscope.app.formats import dialects
from raterscope.app.formats.labels.columns import (
    Columns,
    content_columns,
    contents_of,
    explain_confidence,
    find_contents,
    read_columns,
    shorten_tasks,
    without_contents,
)
from raterscope.app.formats.labels.tags import columns_as_tags, join_choice_columns
from raterscope.app.formats.labels.votes import VoteCollector, no_label_notice, order_outputs
from raterscope.app.formats.records import LabelFile, LabelTable, TaskContents, TrueLabels
from raterscope.app.formats.table_files import Head
from raterscope.app.formats.tables import (
    COLUMN_NAMES,
    CORNERS,
    LONGEST_NAME,
    NO_NAMES,
    Coded,
    Faults,
    Table,
    UnknownColumns,
    assign_columns,
    fields_of,
    find_columns,
    is_usual,
    read_names,
)
from raterscope.text import counted

_PICTURES = ("image", "picture", "photo", "img", "file")


def platform_columns(header: Sequence[str]) -> dict[str, str]:
    """Assign the columns of a platform's table to fields; empty for any other table.

    Each column of answers is "label": with several, each is a question. The columns that are not assigned are
    "ignore".

    Examples
    --------
    >>> columns = platform_columns(["HITId", "WorkerId", "Input.url", "Answer.animal", "SubmitTime"])
    >>> {name: field for name, field in columns.items() if field != "ignore"}
    {'WorkerId': 'annotator', 'Input.url': 'task', 'Answer.animal': 'label'}
    """
    names = set(header)
    if {"HITId", "WorkerId"} <= names:
        return _assigned(header, "WorkerId", "HITId", "Input.", "Answer.")
    if {"ASSIGNMENT:worker_id", "ASSIGNMENT:task_id"} <= names:
        fields = _assigned(header, "ASSIGNMENT:worker_id", "ASSIGNMENT:task_id", "INPUT:", "OUTPUT:")
        golden = [name for name in header if name.startswith("GOLDEN:")]
        if list(fields.values()).count("label") == len(golden) == 1:
            fields[golden[0]] = "truth"
        return fields | ({"ASSIGNMENT:submitted": "time"} if "ASSIGNMENT:submitted" in names else {})
    if {"_unit_id", "_worker_id"} <= names:
        answers = [name for name in header if f"{name}_gold" in names]
        fields = dict.fromkeys(header, "ignore") | {"_unit_id": "task", "_worker_id": "annotator"}
        fields |= dict.fromkeys(answers, "label")
        if len(answers) == 1:
            fields[f"{answers[0]}_gold"] = "truth"
        return fields | ({"_created_at": "time"} if "_created_at" in names else {})
    for run in ("task_run__", ""):  # PyBossa: CSV and JSON
        if {f"{run}task_id", f"{run}user_id", f"{run}user_ip"} <= names:
            fields = dict.fromkeys(header, "ignore") | {f"{run}task_id": "task", f"{run}user_id": "annotator"}
            fields |= {name: "label" for name in header if re.match(rf"({run}|task_run)info(__|[.]|$)", name)}
            return fields | ({f"{run}finish_time": "time"} if f"{run}finish_time" in names else {})
    return {}


def _assigned(header: Sequence[str], annotator: str, task: str, given: str, answer: str) -> dict[str, str]:
    """Assign columns by their prefixes; a single input column names the task."""
    fields = dict.fromkeys(header, "ignore") | {annotator: "annotator"}
    fields |= {name: "status" for name in ("AssignmentStatus", "ASSIGNMENT:status") if name in fields}
    fields |= {name: "label" for name in header if name.startswith(answer)}
    shown = [name for name in header if name.startswith(given)]
    fields[shown[0] if len(shown) == 1 else task] = "task"
    pictures = [name for name in shown if name.removeprefix(given).casefold().startswith(_PICTURES)]
    if len(shown) > 1 and pictures:
        fields[pictures[0]] = "picture"
    return fields


def find_filled_rows(
    columns: Columns, column: Mapping[str, str], fields: Sequence[str], needed: Sequence[str]
) -> NDArray[np.bool_]:
    """Find the rows that are neither empty nor equal to the header; refuse rows without a usable name.

    Raises `InputError` for the first row without a name, or with one that is too long.

    `column`: column of each field. `fields`: a row in which all of these are empty is ignored. `needed`:
    fields that every row must have.
    """
    empty = {name: rows_with(columns.coded[name], "") for name in fields}
    filled = ~np.logical_and.reduce(list(empty.values()))
    if not len(filled):
        raise InputError("has a header but no rows", file=columns.head.table.path)
    columns.skip_repeated_header(column, filled)
    for name, coded in columns.coded.items():
        if name in needed:
            refuse_rows(columns, column[name], empty[name] & filled, "is empty; expected a name")
            for text in NO_NAMES:
                problem = f'"{text}" is no name, but a missing value'
                refuse_rows(columns, column[name], rows_with(coded, text) & filled, problem)
        if max(map(len, coded.names), default=0) > LONGEST_NAME:
            too_long = [at for at, text in enumerate(coded.names) if len(text) > LONGEST_NAME]
            problem = f"is longer than {LONGEST_NAME} letters; expected a name"
            refuse_rows(columns, column[name], np.isin(coded.numbers, too_long), problem)
    return np.asarray(filled)


def rows_with(coded: Coded, name: str) -> NDArray[np.bool_]:
    """Return the rows in which a column holds a name."""
    if name not in coded.names:
        return np.zeros(len(coded.numbers), dtype=np.bool_)
    return np.asarray(coded.numbers == coded.names.index(name))


def refuse_rows(columns: Columns, field: str, bad: NDArray[np.bool_], problem: str) -> None:
    """Refuse a table with bad rows: the first is reported, the others are counted."""
    rows = np.flatnonzero(bad)
    if len(rows):
        raise InputError(
            f"{problem}{dialects.more_bad_lines(len(rows) - 1)}; nothing was imported",
            file=columns.head.table.path, line=columns.line(int(rows[0])), field=field,
        )  # fmt: skip


def select_rows(values: NDArray[Any], rows: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the values of some rows; the same array if these are all rows."""
    return values if rows.all() else values[rows]


def renumber(coded: Coded, rows: NDArray[np.bool_]) -> Coded:
    """Renumber names after some rows, and perhaps names, were dropped."""
    if rows.all():
        return coded
    seen, first = np.unique(coded.numbers[rows], return_index=True)
    seen = seen[np.argsort(first)]
    number = np.zeros(len(coded.names), dtype=np.int32)
    number[seen] = np.arange(len(seen), dtype=np.int32)
    return Coded([coded.names[at] for at in seen.tolist()], number[coded.numbers])


def first_values(values: NDArray[Any], coded: Coded, rows: NDArray[np.bool_]) -> NDArray[Any]:
    """Return each name's first value among some rows, -1 if there is none."""
    first = np.full(len(coded.names), -1, dtype=values.dtype)
    first[coded.numbers[rows][::-1]] = values[rows][::-1]
    return first


def time_notices(columns: Columns, column: Mapping[str, str]) -> list[str]:
    """Return a notice that the times were skipped, if a cell is not a time."""
    if columns.no_time is None:
        return []
    row, cell = columns.no_time
    return [
        f"The times in {plain(column['time'], 40)} were skipped: line {columns.line(row)} has"
        f' "{plain(cell, 40)}", which is not a time.'
    ]


FIELDS = (
    ("annotator", "annotator", True), ("task", "task", True), ("label", "label", True),
    ("time", "time", False), ("truth", "true label", False), ("question", "question", False),
    ("picture", "picture of the task", False), ("content", "content of the task", False),
    ("read", "number of the read", False),
)  # fmt: skip
"""Fields of a column: name, label on screen, and whether it is required."""

_NEEDED = ("annotator", "task", "label")
_WANTED = ("time", "truth", "question", "picture", "read", "status")
_REJECTED = ("rejected", "ignored")
"""Status of answers that do not count: rejected by the requester of a crowd platform, or not given."""
_TRUE = ("task", "truth")
_TRUE_FROM_LABEL = ("task", "label")


def detect_labels(table: Table) -> Literal["labels", "truth", "contents"] | None:
    """Detect from the header whether a table holds labels, true labels, contents of tasks, or none."""
    if {"x", "y"} <= {name.casefold().strip() for name in table.header}:
        return None
    if any(find_columns(table, fields) for fields in (CORNERS, ("x", "y"), ("image", "width", "height"))):
        return None
    if find_columns(table, _NEEDED) or "label" in _assumed_columns(table).values():
        return "labels"
    if find_columns(table, _TRUE) or find_columns(table, _TRUE_FROM_LABEL):
        return "truth"
    return None if find_contents(table) is None else "contents"


def read_label_table(
    head: Head, mapping: Mapping[str, str] | None = None, watch: Watch = silent
) -> tuple[LabelFile, ...]:
    """Read a table of labels, and its true labels if a column has them.

    With a column "question", each question becomes a table; with several columns of labels, each of them is a
    question. Rows without a label are skipped and counted.
    Raises `UnknownColumns` if the header does not name the columns. Raises `InputError` for the first bad
    line; a table is read completely or not at all.

    `mapping`: fields of columns, named by hand: see `FIELDS`; and ignore.
    """
    by_hand = mapping or {}
    assumed = {} if mapping or find_columns(head.table, _NEEDED) else _assumed_columns(head.table)
    mapping = mapping or assumed
    answers = [name for name, field in mapping.items() if field == "label"]
    if len(answers) > 1:
        others = {name: field for name, field in mapping.items() if field not in ("label", "question")}
        read: list[LabelTable | TrueLabels] = []
        contents: tuple[TaskContents, ...] = ()
        rest = dict.fromkeys(answers, "ignore")
        for name, step in steps_of(watch, answers):
            as_label = others | rest | {name: "label"}
            for table in _read_question(head, as_label, {**by_hand, **rest}, step, may_be_empty=True):
                if not isinstance(table, TaskContents):
                    read.append(replace(table, question=name))
                elif not contents:
                    contents = (table,)
        if not read:
            raise InputError("has no labels; expected some", file=head.table.path, field=answers[0])
        joined = join_choice_columns(read)
        apart = [table for table in joined if table in read]
        tags: Sequence[LabelFile] = columns_as_tags(apart) if assumed else apart
        if assumed and len(apart) > 1 and tags[0] is apart[0]:
            names = [table.question for table in apart if isinstance(table, LabelTable)]
            notice = _assumption(names, "a question")
            tags = [replace(apart[0], notices=(*apart[0].notices, notice)), *apart[1:]]
        return (*(table for table in joined if table not in apart), *tags, *contents)
    return _read_question(head, mapping, by_hand, watch)


def _read_question(
    head: Head,
    mapping: Mapping[str, str],
    by_hand: Mapping[str, str],
    watch: Watch,
    *,
    may_be_empty: bool = False,
) -> tuple[LabelFile, ...]:
    """Read the labels of one column; `by_hand` is the mapping that was not assumed."""
    column = assign_columns(head.table, _NEEDED, _WANTED, without_contents(mapping))
    shown = content_columns(head.table, column, by_hand)
    columns = read_columns(head, column | {name: name for name in shown}, part(watch, 0.0, 0.9))
    shorten_tasks(columns, column["task"])
    shown_contents = contents_of(columns, shown)
    coded = {name: cells for name, cells in columns.coded.items() if name not in shown}
    columns.coded = coded
    filled = find_filled_rows(columns, column, ("task", "annotator", "label"), ("task", "annotator"))
    refused = _refused_rows(columns) & filled
    filled &= ~refused
    watch(0.92, "sorting labels")
    tables: list[LabelFile] = []
    questions = _questions(columns, filled)
    for at, (words, rows) in enumerate(questions):
        watch(0.92 + 0.08 * at / len(questions), "sorting labels")
        if rows.any():
            keep_all = "question" not in coded and not columns.repeated
            tables += _tables(columns, column, words, rows, all_outputs=keep_all)
    if not any(len(table) for table in tables):
        if may_be_empty:
            return ()
        raise InputError("has no labels; expected some", file=head.table.path, field=column["label"])
    notices = [*tables[0].notices, *_question_notices(columns, column, filled)]
    notices += explain_confidence(head.table, {*column.values(), *by_hand})
    if refused.any():
        notices.append(f"{counted(int(refused.sum()), 'row')} skipped: the answer was rejected or ignored.")
    tables[0] = replace(tables[0], notices=tuple(notices))
    return tuple(tables) if shown_contents is None else (*tables, shown_contents)


def _refused_rows(columns: Columns) -> NDArray[np.bool_]:
    """Find the rows of rejected assignments."""
    status = columns.coded.pop("status", None)
    if status is None:
        return np.zeros(len(columns.coded["task"].numbers), dtype=np.bool_)
    rejected = [at for at, name in enumerate(status.names) if name.casefold() in _REJECTED]
    return np.isin(status.numbers, rejected)


def read_true_labels(
    head: Head, mapping: Mapping[str, str] | None = None, watch: Watch = silent
) -> tuple[TrueLabels, ...]:
    """Read a table of true labels, one for each question of a column "question".

    Raises `UnknownColumns` if the header does not name the columns. Raises `InputError` for the first bad
    line, and for a task with two different true labels.
    """
    by_hand = {name: "truth" if field == "label" else field for name, field in (mapping or {}).items()}
    try:
        column = assign_columns(head.table, _TRUE, ("question",), by_hand)
    except UnknownColumns:
        column = assign_columns(head.table, _TRUE_FROM_LABEL, ("question",), mapping)
        column = {"truth" if field == "label" else field: name for field, name in column.items()}
    columns = read_columns(head, column, part(watch, 0.0, 0.9))
    filled = find_filled_rows(columns, column, ("task", "truth"), ("task",))
    truths: list[TrueLabels] = []
    for words, rows in _questions(columns, filled):
        truth = _truth(columns, column, rows, columns.coded["task"], words)
        if truth is not None:
            task, named = columns.coded["task"], set(truth.tasks)
            names = (task.names[at] for at in np.unique(task.numbers[rows]).tolist())
            truths.append(replace(truth, unlabelled=tuple(name for name in names if name not in named)))
    if not truths:
        raise InputError("has no labels; expected some", file=head.table.path, field=column["truth"])
    truths[0] = replace(truths[0], notices=(*truths[0].notices, *_question_notices(columns, column, filled)))
    return tuple(truths)


def _questions(columns: Columns, filled: NDArray[np.bool_]) -> list[tuple[str, NDArray[np.bool_]]]:
    """Return the questions of a table, and the rows of each; without questions, all rows."""
    question = columns.coded.get("question")
    if question is None:
        return [("", filled)]
    named = [(name, filled & (question.numbers == at)) for at, name in enumerate(question.names) if name]
    return named or [("", filled)]


def _question_notices(
    columns: Columns, column: Mapping[str, str], filled: NDArray[np.bool_]
) -> tuple[str, ...]:
    """Return notices on rows that repeat the header, and on those without a question, if others have one."""
    question, repeated = columns.coded.get("question"), columns.header_notices()
    lost = 0 if question is None or question.names == [""] else int((filled & rows_with(question, "")).sum())
    if not lost:
        return repeated
    return (*repeated, f"{counted(lost, 'row')} skipped: no question in {plain(column['question'], 40)}.")


def _tables(
    columns: Columns, column: Mapping[str, str], question: str, rows: NDArray[np.bool_], *, all_outputs: bool
) -> list[LabelFile]:
    """Return the labels and the true labels of a question; `all_outputs`: also labels of other questions."""
    path, coded = columns.head.table.path, columns.coded
    written = coded["label"]
    used = np.arange(len(written.names)) if all_outputs else np.unique(written.numbers[rows])
    outputs, output, notices = order_outputs([written.names[at] for at in used], path, column["label"])
    number = np.full(len(written.names), -1, dtype=output.dtype)
    number[used] = output
    label = number[written.numbers]
    voted, empty = rows & (label >= 0), rows & (label < 0)
    missing = int(empty.sum())
    messages = list(notices)
    if missing:
        messages.append(no_label_notice(missing))
    task, annotator = (renumber(coded[name], rows) for name in ("task", "annotator"))
    time = None if columns.time is None else select_rows(columns.time, voted)
    messages += time_notices(columns, column)
    tables: list[LabelFile] = []
    truth = _truth(columns, column, rows, task, question) if "truth" in coded else None
    if truth is not None and not set(truth.classes) & set(outputs):
        messages.append(f"The column {plain(column['truth'], 40)} was skipped: it holds none of the labels.")
        truth = None
    if len(outputs):
        tables.append(
            LabelTable(
                path=path, question=question, annotators=tuple(annotator.names), tasks=tuple(task.names),
                outputs=outputs, annotator=select_rows(annotator.numbers, voted),
                task=select_rows(task.numbers, voted),
                label=select_rows(label, voted), time=time,
                pictures=_pictures(coded.get("picture"), task, rows),
                missing=missing, notices=tuple(messages), columns=fields_of(column),
                unlabelled=np.stack([annotator.numbers[empty], task.numbers[empty]], axis=1),
            )
        )  # fmt: skip
    return tables if truth is None else [*tables, truth]


def _pictures(picture: Coded | None, task: Coded, rows: NDArray[np.bool_]) -> dict[int, str]:
    """Return the first picture of each task that has one, by the task's index."""
    if picture is None:
        return {}
    first = first_values(picture.numbers, task, rows & ~rows_with(picture, ""))
    return {at: picture.names[first[at]] for at in np.flatnonzero(first >= 0).tolist()}


def _truth(
    columns: Columns, column: Mapping[str, str], rows: NDArray[np.bool_], task: Coded, question: str
) -> TrueLabels | None:
    """Return the true labels in some rows; None without any."""
    path, truth = columns.head.table.path, columns.coded["truth"]
    used = np.unique(truth.numbers[rows])
    classes, output, notices = order_outputs([truth.names[at] for at in used], path, column["truth"])
    if not classes:
        return None
    number = np.full(len(truth.names), -1, dtype=output.dtype)
    number[used] = output
    label = number[truth.numbers]
    known = rows & (label >= 0)
    first = first_values(label, task, known)
    problem = "gives the task another true label than the lines before"
    refuse_rows(columns, column["truth"], known & (first[task.numbers] != label), problem)
    tasks_with_truth = np.flatnonzero(first >= 0)
    names = tuple(task.names[at] for at in tasks_with_truth.tolist())
    label = first[tasks_with_truth]
    return TrueLabels(path, question, names, classes, label, notices, fields_of(column))


VOTES = "votes"
"""Field of a column with one annotator's label of every task."""

_BESIDE_VOTES = frozenset({"task", "truth", "picture", "ignore"})

_MAX_COMMON = 30
"""Maximum number of distinct answers in a table whose annotator columns are detected only by their answers.
"""

_ANNOTATOR = re.compile(rf"({'|'.join(COLUMN_NAMES['annotator'].split())})[ _-]?(\d+|[a-z])", re.IGNORECASE)

_ANSWER = re.compile(r"answer[ _-]?(\d+|[a-z])|response[ _-]?\d+", re.IGNORECASE)
"""Names of columns that contain votes or questions here, but texts of the two sides in a table of pairs."""

_IDENTIFIER = re.compile(r"(?i:id)|.*([ _.-](?i:id)|[a-z]I[Dd])")
_SUMMARY = re.compile(
    r"(consensus|majority|mode|median|mean|average)([ _-]?(label|vote|answer))?", re.IGNORECASE
)

_FINAL = re.compile(r"final([ _-]?(label|vote|answer))?", re.IGNORECASE)


def find_annotator_columns(table: Table, mapping: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Find the columns of annotators: named by hand, several such as "rater 1", or with the same answers.

    In the last case every other column must be the task, the truth, named by hand, or a summary of the
    annotators such as "consensus"; otherwise the result is empty.
    """
    mapping = mapping or {}
    by_hand = tuple(name for name, field in mapping.items() if field == VOTES)
    if by_hand or not _BESIDE_VOTES.issuperset(mapping.values()):
        return by_hand
    try:
        column = _assign_wide_columns(table, mapping)
    except UnknownColumns:
        return ()
    others = tuple(name for name in table.header if name not in (*column.values(), *mapping))
    named = tuple(name for name in others if _ANNOTATOR.fullmatch(name.strip()))
    if len(named) > 1:
        return named
    others = tuple(name for name in others if not _SUMMARY.fullmatch(name.strip()))
    return others if len(others) > 1 and _hold_same_answers(table, others) else ()


def _assign_wide_columns(table: Table, by_hand: Mapping[str, str]) -> dict[str, str]:
    """Assign the columns other than those of annotators.

    Only here a column "final" is the truth; with one row per vote it may be each annotator's last answer.
    """
    column = assign_columns(table, ("task",), ("truth", "picture"), by_hand)
    final = [name for name in table.header if name not in by_hand and _FINAL.fullmatch(name.strip())]
    return {"truth": final[0], **column} if final else column


def _assumed_columns(table: Table) -> dict[str, str]:
    """Assign the columns of a crowd platform, or every column with few answers next to task and annotator."""
    fields = platform_columns(table.header)
    column = None if fields else find_columns(table, _NEEDED[:2])
    if column is None:
        return fields
    assigned = assign_columns(table, _NEEDED[:2], [name for name in _WANTED if name != "question"], None)
    others = [name for name in table.header if name not in assigned.values()]
    questions = [name for name in others if not _has_meaning(name) and _holds_few_answers(table, name)]
    fields = dict.fromkeys(others, "ignore") | {name: field for field, name in assigned.items()}
    return fields | dict.fromkeys(questions, "label") if questions else {}


def _assumption(columns: Sequence[str], meaning: str) -> str:
    """Return a notice on columns that were interpreted without usual names."""
    return f"Each of these columns is read as {meaning}: {plain_names(columns, 4)}."


def _has_meaning(name: str) -> bool:
    """Return whether a column's usual name, or an identifier, means that it contains no answers."""
    if _IDENTIFIER.fullmatch(name.strip()):
        return True
    return is_usual(name) and _ANSWER.fullmatch(name.strip()) is None


def _holds_few_answers(table: Table, name: str) -> bool:
    answers = {cell.strip() for cell in table.column(name)} - {""}
    return 1 < len(answers) <= min(_MAX_COMMON, len(table) // 2)


def explain_few_rows(table: Table) -> UnknownColumns | None:
    """Return the question whether columns that share answers in too few rows are annotators, or None."""
    try:
        column = _assign_wide_columns(table, {})
    except UnknownColumns:
        return None
    others = [name for name in table.header if name not in column.values()]
    answers = [{cell.strip() for cell in table.column(name)} - {""} for name in others]
    together = set().union(*answers)
    shared = len(together) < sum(map(len, answers))
    if not shared or 2 * len(together) <= len(table) or any(map(_has_meaning, others)):
        return None
    guess = fields_of(column) | dict.fromkeys(others, VOTES)
    problem = (
        f"the labels of {counted(len(table), 'task')} do not show whether {plain_names(others, 4)} are "
        "annotators; name the columns of annotators by hand (field votes)"
    )
    return UnknownColumns(
        table.path, table.header, table.first_rows(), guess, ("annotator", "label"), problem
    )


def _hold_same_answers(table: Table, columns: Sequence[str]) -> bool:
    """Return whether columns without a usual name hold few answers, nearly the same in most columns.

    At least two columns have an answer in common.

    A quarter of the columns may hold fewer: annotators with few votes, or with one answer to everything. More
    may if these have too few cells for half of the answers, and three columns hold each answer.
    """
    if any(_has_meaning(name) for name in columns):
        return False
    cells = [[text for cell in table.column(name) if (text := cell.strip())] for name in columns]
    answers = [set(given) for given in cells]
    together = set().union(*answers)
    held = Counter(itertools.chain(*answers))
    if not 1 < len(together) <= min(_MAX_COMMON, len(table) // 2) or max(held.values()) < 2:
        return False
    usual = [some for some in answers if 2 * len(some) >= len(together)]
    if 4 * len(usual) >= 3 * len(answers) and set().union(*usual) == together:
        return True
    able = [
        2 * len(some) >= min(len(together), len(given)) for some, given in zip(answers, cells, strict=True)
    ]
    return 4 * sum(able) >= 3 * len(able) and min(held.values()) >= 3


def read_wide_table(
    table: Table, mapping: Mapping[str, str] | None = None, watch: Watch = silent
) -> tuple[LabelFile, ...]:
    """Read a table with one row per task and one column per annotator; an empty cell is not a vote.

    Raises `UnknownColumns` if no column is recognised as the task. Raises `InputError` for the first row
    without a task, and for missing columns.
    """
    annotators = find_annotator_columns(table, mapping)
    by_hand = {name: "ignore" if field == VOTES else field for name, field in (mapping or {}).items()}
    column = _assign_wide_columns(table, by_hand)
    faults = Faults(table)
    tasks = read_names(table, column["task"], faults)
    faults.refuse()
    if len(set(tasks)) < len(tasks):
        raise InputError(
            "names a task twice; expected one row per task", file=table.path, field=column["task"]
        )
    pictures = table.column(column["picture"]) if "picture" in column else ("",) * len(tasks)
    collector = VoteCollector(table.path, notices=list(table.notices))
    for at, annotator in enumerate(annotators):
        watch(0.8 + 0.2 * at / len(annotators), "reading labels")
        for task, answer, picture in zip(tasks, table.column(annotator), pictures, strict=True):
            collector.add("", annotator.strip(), task, answer, picture=picture.strip())
    if VOTES not in (mapping or {}).values():
        collector.notices.append(_assumption(annotators, "an annotator"))
    if "truth" in column:
        for task, answer in zip(tasks, table.column(column["truth"]), strict=True):
            if answer.strip():
                collector.add_truth("", task, answer.strip())
    fields = fields_of(column) | dict.fromkeys(annotators, VOTES)
    read = (replace(part, columns=fields) for part in collector.tables())
    return tuple(_without_empty(part) if isinstance(part, LabelTable) else part for part in read)


def _without_empty(table: LabelTable) -> LabelTable:
    """Return a wide table without a count of its empty cells, because these are not rows."""
    notices = tuple(words for words in table.notices if words != no_label_notice(table.missing))
    return replace(table, unlabelled=table.unlabelled[:0], missing=0, notices=notices)
