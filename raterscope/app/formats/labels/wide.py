"""Wide tables: a row a task, a column an annotator."""

from __future__ import annotations

import re
from collections.abc import Mapping

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.labels.collector import VoteCollector
from raterscope.app.formats.records import LabelTable, TrueLabels
from raterscope.app.formats.tables import FIELDS, Faults, Table, UnknownColumns, assign, names

__all__ = ["VOTES", "annotators_of", "votes_of"]

VOTES = "votes"
"""What a column holds, when told by hand, that has one annotator's label of every task."""

_ANNOTATOR = re.compile(rf"({'|'.join(FIELDS['annotator'].split())})[ _-]?(\d+|[a-z])", re.IGNORECASE)


def annotators_of(table: Table, mapping: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Give the columns that are annotators: those told by hand, or several such as "rater 1", "worker_b".

    Every column that is neither the task nor the truth must be of that kind; else there are none.
    """
    by_hand = tuple(name for name, field in (mapping or {}).items() if field == VOTES)
    if by_hand or mapping:
        return by_hand
    found = tuple(name for name in table.header if _ANNOTATOR.fullmatch(name.strip()))
    try:
        column = assign(table, ("task",), ("truth",), None)
    except UnknownColumns:
        return ()
    rest = set(table.header) - set(column.values()) - set(found)
    return found if len(found) > 1 and not rest else ()


def votes_of(
    table: Table, mapping: Mapping[str, str] | None = None, watch: Watch = silent
) -> tuple[LabelTable | TrueLabels, ...]:
    """Read a wide table; an empty cell is no vote.

    Raises
    ------
    UnknownColumns
        When no column is known as the task.
    InputError
        For the first row without a task, and for columns that are not there.
    """
    people = annotators_of(table, mapping)
    by_hand = {name: "ignore" if field == VOTES else field for name, field in (mapping or {}).items()}
    column = assign(table, ("task",), ("truth", "picture"), by_hand)
    faults = Faults(table)
    tasks = names(table, column["task"], faults)
    faults.refuse()
    if len(set(tasks)) < len(tasks):
        raise InputError("names a task twice; expected one row a task", file=table.path, field=column["task"])
    pictures = table.column(column["picture"]) if "picture" in column else ("",) * len(tasks)
    gathering = VoteCollector(table.path)
    for at, person in enumerate(people):
        watch(0.8 + 0.2 * at / len(people), "reading labels")
        for task, answer, picture in zip(tasks, table.column(person), pictures, strict=True):
            gathering.add("", person.strip(), task, answer, picture=picture.strip())
    if "truth" in column:
        for task, answer in zip(tasks, table.column(column["truth"]), strict=True):
            if answer.strip():
                gathering.add_truth("", task, answer.strip())
    return gathering.tables()
