"""Structures in a study: what files say that each stands for, and what the expert says."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

import msgspec

from raterscope.app.coding import NOTHING_CODED, Coding, merged
from raterscope.app.errors import plain
from raterscope.app.review import described_structures, fold
from raterscope.app.study.records import StudyError
from raterscope.app.study.study import Study

__all__ = ["chosen_codings", "imported_codings", "store_codings"]


def imported_codings(study: Study) -> dict[str, Coding]:
    """Read what the files of masks said that each structure stands for."""
    with study.sound() as connection:
        rows = connection.execute("SELECT name, coding FROM structures ORDER BY name").fetchall()
    return {name: _coding_of(study, name, text) for name, text in rows}


def chosen_codings(study: Study) -> dict[str, Coding]:
    """Read what the expert said that structures stand for, undone decisions left out."""
    decisions = study.decisions()
    return described_structures(decisions, fold(decisions))


def store_codings(study: Study, connection: sqlite3.Connection, codings: Mapping[str, Coding]) -> None:
    """Store what a file says of its structures, within the present transaction; see `coding.merged`."""
    before = imported_codings(study)
    for name, coding in codings.items():
        both = merged(before.get(name, NOTHING_CODED), coding)
        if both != before.get(name, NOTHING_CODED):
            connection.execute(
                "INSERT OR REPLACE INTO structures(name, coding) VALUES (?, ?)",
                (name, msgspec.json.encode(both).decode()),
            )


def _coding_of(study: Study, name: str, text: str) -> Coding:
    try:
        return msgspec.json.decode(text, type=Coding)
    except (ValueError, msgspec.MsgspecError) as error:
        words = f"is damaged: what is known of the structure {plain(name)} cannot be read"
        raise StudyError(words, file=study.path) from error
