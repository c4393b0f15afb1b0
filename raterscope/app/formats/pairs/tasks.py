"""Columns with the content shown to judges of language models: prompts, and the answers of two models.

References
----------
Zheng, L., Chiang, W.-L., Sheng, Y. and others, "Judging LLM-as-a-judge with MT-bench and Chatbot Arena",
Advances in Neural Information Processing Systems 36, 2023. https://doi.org/10.48550/arXiv.2306.05685
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.app.formats.labels.columns import LONGEST_TEXT, Columns
from raterscope.app.formats.records import TaskContents
from raterscope.app.formats.tables import LONGEST_NAME, Coded, Table, unite
from raterscope.text import counted

_IDENTIFIER = re.compile(
    r"(question|prompt|instruction|task|example)[ _.-]?(id|key|no|number)", re.IGNORECASE
)
_PROMPT = re.compile(
    r"((user|input)[ _.-]?)?(prompt|question|instruction|query|context|input|reference)([ _.-]?text)?",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"(model[ _.-]?)?(response|answer|conversation|completion|output|reply|generation|text)[ _.-]?([ab12])"
    r"|(left|right)[ _.-]?(response|answer|conversation|completion|output|reply|generation|text)",
    re.IGNORECASE,
)
_TURN = "turn"
_FIELD = "content of "


@dataclass(frozen=True)
class TaskColumns:
    """Columns of tasks: the identifier, the prompts, and the answers of the left and the right item."""

    identifier: str = ""
    turn: str = ""
    prompts: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()

    def to_read(self) -> dict[str, str]:
        """Return the columns by field; their cells are not names and can be long."""
        names = (*filter(None, (self.identifier, self.turn)), *self.prompts, *self.answers)
        return {_FIELD + name: name for name in names}


def find_task_columns(table: Table, assigned: Collection[str]) -> TaskColumns | None:
    """Find the columns of prompts and answers among the unassigned columns; None if there are none.

    A column "question" holds prompts if the table has answers or identifiers of questions; otherwise it holds
    the question to all annotators.
    """
    free = [name for name in table.header if name not in assigned]
    answers = [name for name in free if _ANSWER.fullmatch(name.strip())]
    sides = {name: _side(name) for name in answers}
    left, right = ([name for name in answers if sides[name] == side] for side in (0, 1))
    pair = (left[0], right[0]) if left and right else ()
    identifier = next((name for name in free if _IDENTIFIER.fullmatch(name.strip())), "")
    if not pair and not identifier:
        return None
    prompts = tuple(name for name in free if _PROMPT.fullmatch(name.strip()))
    turn = next((name for name in free if name.strip().casefold() == _TURN), "")
    return TaskColumns(identifier, turn if identifier else "", prompts, pair)


def _side(name: str) -> int:
    text = name.strip().casefold()
    return int(text[-1] in "b2" if not text.startswith(("left", "right")) else text.startswith("right"))


def take_contents(columns: Columns, task_columns: TaskColumns) -> dict[str, Coded]:
    """Remove the columns of tasks from the columns that were read, because their texts are not names."""
    return {name: columns.coded.pop(field) for field, name in task_columns.to_read().items()}


def number_tasks(texts: Mapping[str, Coded], task_columns: TaskColumns) -> Coded:
    """Return the task of each row: its identifier, with the turn if questions have several, or else a number.

    Without identifiers, rows with the same prompts have the same task; without prompts, rows with the same
    two answers in any order. An empty name means no task.
    """
    if task_columns.identifier:
        task = texts[task_columns.identifier]
        task = Coded([name[:LONGEST_NAME] for name in task.names], task.numbers)
        return _with_turns(task, texts[task_columns.turn]) if task_columns.turn else task
    if task_columns.prompts:
        keys = np.stack([texts[name].numbers for name in task_columns.prompts], axis=1)
    else:
        _, answers = unite(*(texts[side] for side in task_columns.answers))
        keys = np.sort(np.stack(answers, axis=1), axis=1)
    _, first, index = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int32)
    order[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    width = len(str(len(first)))
    return Coded([f"task {at + 1:0{width}d}" for at in range(len(first))], order[index.ravel()])


def _with_turns(task: Coded, turn: Coded) -> Coded:
    both = task.numbers.astype(np.int64) * len(turn.names) + turn.numbers
    distinct, first, index = np.unique(both, return_index=True, return_inverse=True)
    if len(np.unique(task.numbers[first])) == len(distinct):
        return task
    names = [
        f"{task.names[at // len(turn.names)]}, turn {turn.names[at % len(turn.names)]}"
        for at in distinct.tolist()
    ]
    return Coded(names, index.astype(np.int32))


def contents_of_tasks(
    columns: Columns,
    texts: Mapping[str, Coded],
    task_columns: TaskColumns,
    task: Coded,
    sides: tuple[NDArray[np.int32], NDArray[np.int32]],
    items: list[str],
    rows: NDArray[np.bool_],
) -> TaskContents | None:
    """Return prompts by column, and the answer of each item by its name; None if there are none.

    The first text is used; a notice counts texts that differ from it.
    """
    fields: dict[str, dict[str, str]] = {name: {} for name in task_columns.prompts}
    differing = 0
    numbers = np.flatnonzero(rows & (task.numbers >= 0))
    tasks = [task.names[at] for at in task.numbers[numbers].tolist()]
    for name in task_columns.prompts:
        coded = texts[name]
        for of, at in zip(tasks, coded.numbers[numbers].tolist(), strict=True):
            if of and coded.names[at]:
                fields[name].setdefault(of, coded.names[at][:LONGEST_TEXT])
    for name, side in zip(task_columns.answers, sides, strict=False):
        coded = texts[name]
        for of, at, item in zip(tasks, coded.numbers[numbers].tolist(), side[numbers].tolist(), strict=True):
            text = coded.names[at][:LONGEST_TEXT]
            if of and text:
                differing += fields.setdefault(items[item], {}).setdefault(of, text) != text
    filled = {name: by_task for name, by_task in fields.items() if by_task}
    notice = (
        f"{counted(differing, 'answer')} differ from the first answer of the same model to the same "
        f"prompt. The first is shown."
    )
    return TaskContents(columns.head.table.path, filled, (notice,) if differing else ()) if filled else None
