"""Comparisons of several files by question."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from raterscope.algorithms.pairs import Pairs
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.pairs.records import PairTable

__all__ = ["UNNAMED", "Asked", "by_question", "joined"]

UNNAMED = "pairs"
"""What a question is called that no file names."""


@dataclass(frozen=True)
class Asked:
    """A question with what several files bring for it."""

    name: str
    tables: tuple[PairTable, ...]


def by_question(tables: Sequence[PairTable]) -> list[Asked]:
    """Sort files by the question that they answer, in the order of first appearance.

    A file that does not name its question answers the only one that is, if they have an item in common.
    """
    named = dict.fromkeys(table.question.casefold() for table in tables if table.question)
    found: dict[str, list[PairTable]] = {}
    for table in tables:
        key = (table.question or UNNAMED).casefold()
        if not table.question and len(named) == 1:
            (only,) = named
            others = {item for one in tables if one.question.casefold() == only for item in one.items}
            key = only if others.intersection(table.items) else key
        found.setdefault(key, []).append(table)
    return [
        Asked(next((one.question for one in those if one.question), UNNAMED), tuple(those))
        for those in found.values()
    ]


def joined(tables: Sequence[PairTable], excluded: Collection[str] = ()) -> tuple[Pairs, list[str]]:
    """Join the comparisons of one question, those of some annotators left out.

    Who is left out is no annotator of what is given; items stay.

    Returns
    -------
    Pairs
    list of str
        What the person should know, a sentence each.

    Raises
    ------
    InputError
        Where nobody is left.
    """
    people: dict[str, int] = {}
    items: dict[str, int] = {}
    annotator, left, right, choice, time = [], [], [], [], []
    timed = any(table.time is not None for table in tables)
    for table in tables:
        who = np.array(
            [-1 if name in excluded else people.setdefault(name, len(people)) for name in table.annotators],
            dtype=np.int32,
        )[table.annotator]
        item = np.array([items.setdefault(name, len(items)) for name in table.items], dtype=np.int32)
        kept = who >= 0 if excluded else slice(None)
        annotator.append(who[kept])
        left.append(item[table.left[kept]])
        right.append(item[table.right[kept]])
        choice.append(table.choice[kept])
        if timed:
            time.append((np.full(len(table), np.nan) if table.time is None else table.time)[kept])
    if not any(len(part) for part in choice):
        raise InputError("no comparisons are left without the annotators that --exclude names")
    pairs = Pairs(
        np.concatenate(annotator), np.concatenate(left), np.concatenate(right), np.concatenate(choice),
        tuple(people), tuple(items), np.concatenate(time) if timed else None,
    )  # fmt: skip
    return pairs, _of_grades(tables)


def _of_grades(tables: Sequence[PairTable]) -> list[str]:
    """Tell where graded answers meet bare sides, since a large number then counts for many answers."""
    graded = {bool((np.abs(table.choice) > 1).any()): table for table in tables if len(table)}
    if len(graded) < 2:
        return []
    numbers, sides = (plain(graded[one].path.name) for one in (True, False))
    return [
        f"{numbers} has graded choices and {sides} none above 1; each counts by its size, and by its side "
        "alone with --set graded=no."
    ]
