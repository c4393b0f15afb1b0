"""Zooniverse classification exports: the answers to questions, a table for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.clicks import seconds_or_nan
from raterscope.app.formats.labels.gathering import Gathering, joined
from raterscope.app.formats.labels.records import LabelTable, TrueLabels
from raterscope.app.formats.strangers import answer_text, decode_json, entries, text_of
from raterscope.app.formats.tables import Table
from raterscope.app.formats.zooniverse import marks_in, person_of, subject_name, told_apart

__all__ = ["answers_of", "asks"]

_MOST_TASKS = 10_000
_DEEPEST = 8
_NO_ANSWER = "no answer"
_LONGEST_QUESTION = 120


class _Vote(NamedTuple):
    question: str
    words: str
    annotator: str
    subject: str
    answer: str | None
    time: float


def asks(table: Table, *, alone: bool) -> bool:
    """Tell by some rows of an export whether it holds answers; `alone` if it holds no marks."""
    answers = 0
    for cell in table.column("annotations"):
        try:
            tasks = decode_json(cell)
            if alone and any(True for _ in marks_in(tasks)):
                return False
            answers += any(isinstance(answer, str) for _, _, answer in _answers(tasks))
        except ValueError:
            continue
    return answers > 0


def answers_of(table: Table, watch: Watch = silent) -> tuple[LabelTable | TrueLabels, ...]:
    """Read the answers to questions with one answer, with several, and of a survey.

    Several answers at once, and several animals of a survey, are one label. Drawings, texts, sliders and
    drop-downs are counted and left out. A question is the same within a workflow.

    Raises
    ------
    InputError
        For a file without answers, and for the first line that cannot be read.
    """
    gathering = Gathering(table.path)
    column = {
        name: table.column(name) if name in table.header else ("",) * len(table)
        for name in ("user_name", "user_id", "classification_id", "workflow_id", "created_at", "annotations",
                     "subject_data", "subject_ids")
    }  # fmt: skip
    several = len(set(column["workflow_id"])) > 1
    names: dict[str, str] = {}
    for row, subject in enumerate(map(str.strip, column["subject_ids"])):
        if subject and subject not in names:
            names[subject] = subject_name(column["subject_data"][row], subject)
    tasks_of = told_apart(names)
    votes = list(_votes(table, column, several, watch))
    # Where nothing was drawn looks as where nothing was chosen: what others drew tells.
    drawn = {vote.question for vote in votes if vote.answer is None}
    for vote in votes:
        if vote.answer is None or vote.question in drawn:
            gathering.left_out["drawings, texts, sliders and drop-downs"] += 1
            continue
        name = names[vote.subject]
        gathering.add(
            vote.question, vote.annotator, tasks_of[vote.subject], vote.answer, time=vote.time,
            picture=name if name != vote.subject else "",
            words=f"{vote.question}: {vote.words}" if vote.words else vote.question,
        )  # fmt: skip
    return gathering.tables()


def _votes(table: Table, column: Mapping[str, Sequence[str]], several: bool, watch: Watch) -> Iterator[_Vote]:
    for row in range(len(table)):
        if row % 200 == 0:
            watch(0.8 + 0.2 * row / len(table), f"reading classification {row + 1:,} of {len(table):,}")
        subject = column["subject_ids"][row].strip()
        if not subject:
            raise InputError(
                "is empty; expected the number of a subject",
                file=table.path, line=table.lines[row], field="subject_ids",
            )  # fmt: skip
        person = person_of(*(column[name][row] for name in ("user_name", "user_id", "classification_id")))
        time = seconds_or_nan(column["created_at"][row])
        try:
            found = list(_answers(decode_json(column["annotations"][row])))
        except ValueError as error:
            raise InputError(
                f"cannot be read ({error}); expected a JSON list of tasks",
                file=table.path, line=table.lines[row], field="annotations",
            ) from None  # fmt: skip
        for task, words, answer in found:
            question = f"{task} of workflow {column['workflow_id'][row]}" if several else task
            yield _Vote(question, words, person, subject, answer, time)


def _answers(tasks: Any, depth: int = 0) -> Iterator[tuple[str, str, str | None]]:
    """Find the answers in a list of tasks: task, question and answer; None for what is no label."""
    if not isinstance(tasks, list) or len(tasks) > _MOST_TASKS or depth > _DEEPEST:
        raise ValueError("no list of tasks" if not isinstance(tasks, list) else "too many tasks")
    for task in entries(tasks):
        if "markIndex" in task:
            continue  # said of a mark, and not of the subject
        value = task.get("value")
        if any("task" in one and "value" in one for one in entries(value)):
            yield from _answers(value, depth + 1)
            continue
        words = " ".join(str(task.get("task_label") or "").replace("*", "").split())
        if len(words) > _LONGEST_QUESTION:
            words = words[: _LONGEST_QUESTION - 1] + "…"
        yield text_of(task.get("task")), words, _answer(task, value)


def _answer(task: dict[str, Any], value: Any) -> str | None:
    if str(task.get("taskType", "")).startswith(("text", "slider", "dropdown", "drawing")):
        return None
    if value is None:
        return ""
    if type(value) in (str, int):
        return answer_text(value)
    if not isinstance(value, list):
        return None
    if not value and "tool" not in task:
        return _NO_ANSWER
    if all(type(one) in (str, int) for one in value):
        return joined([answer_text(one) for one in value])
    if all(isinstance(one, dict) and isinstance(one.get("choice"), str) for one in value):
        return joined([answer_text(one["choice"]) for one in value])
    return None
