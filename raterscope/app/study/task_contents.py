"""What annotators saw of tasks, stored in a study: texts, and addresses of sounds, films and pages."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping

from raterscope.app.errors import counted
from raterscope.app.formats.records import TaskContents
from raterscope.app.study.study import Study

_INSERT = "INSERT OR REPLACE INTO contents(question, task, field, position, value) VALUES (?, ?, ?, ?, ?)"


def add_contents(study: Study, contents: TaskContents, question: int = 0) -> str:
    """Store the contents of tasks, of all questions or of one; later ones replace earlier ones.

    Returns a sentence.
    """
    rows = [
        (question, task, field, position, text)
        for position, (field, texts) in enumerate(contents.fields.items())
        for task, text in texts.items()
    ]
    with study.change() as connection:
        connection.executemany(
            _INSERT,
            rows,
        )
    return " ".join([f"the contents of {counted(len(contents), 'task')}.", *contents.notices])


def read_contents(study: Study, question: int, task: str) -> dict[str, str]:
    """Return the contents of a task by field, in the order of the file; empty if there are none."""
    with study.reading() as connection:
        rows = connection.execute(
            "SELECT field, value FROM contents WHERE task = ? AND question IN (0, ?) ORDER BY position",
            (task, question),
        )
        return dict(rows.fetchall())


def read_all_contents(study: Study, questions: Collection[int]) -> dict[str, dict[str, str]]:
    """Return the contents of all tasks of some questions, by task and field."""
    questions = {0, *questions}
    contents: dict[str, dict[str, str]] = {}
    with study.reading() as connection:
        rows = connection.execute("SELECT question, task, field, value FROM contents ORDER BY task, position")
        for question, task, field, value in rows:
            if question in questions:
                contents.setdefault(task, {}).setdefault(field, value)
    return contents


def split_comparison(
    stored: Mapping[str, str], first: str, second: str, items: Collection[str]
) -> tuple[dict[str, str], str, str]:
    """Split the contents of a task into what both items have in common, and the answer of each.

    Parameters
    ----------
    stored : mapping of field to text
        Prompts, and the answer of each item by the item's name.
    items : collection of str
        All items that are compared.
    """
    texts = {field: text for field, text in stored.items() if field not in items}
    left, right = (stored.get(name, "").split("\n\n") for name in (first, second))
    same = 0
    while same < min(len(left), len(right)) - 1 and left[same] == right[same]:
        same += 1
    if same:
        texts["prompt"] = "\n\n".join(left[:same])
    return texts, "\n\n".join(left[same:]), "\n\n".join(right[same:])


def copy_contents(old: sqlite3.Connection, new: sqlite3.Connection, questions: Mapping[int, int]) -> None:
    """Copy the contents of tasks to another study, in which questions have other numbers."""
    rows = old.execute("SELECT question, task, field, position, value FROM contents").fetchall()
    new.executemany(
        _INSERT,
        (
            (questions[number], *content)
            for question, *content in rows
            for number in ([question] if question else questions)
        ),
    )
