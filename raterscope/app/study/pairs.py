"""Pairs in a study: questions answered by comparing, the comparisons, pictures of the items."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import numpy as np

from raterscope.algorithms.pairs.data import Pairs
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import counted, plain
from raterscope.app.formats.pair_records import PairTable
from raterscope.app.study.comparisons import record_of_pairs
from raterscope.app.study.labels import link_pictures
from raterscope.app.study.objects import write_object
from raterscope.app.study.records import RunEntry
from raterscope.app.study.study import Study

__all__ = ["add_pairs", "item_pictures", "pairs_of"]

UNNAMED = "pairs"
"""What a question is called that nobody named."""


def add_pairs(study: Study, table: PairTable, watch: Watch = silent) -> str:
    """Take up the comparisons of one file, whole or not at all.

    A file that does not name its question is of the only one there is, if they have items in common, else of
    one of its own.

    Returns
    -------
    str
        What came in, in a sentence or more.
    """
    watch(0.0, "storing comparisons")
    number, name = _question_for(study, table)
    study.forget_names()
    with study.change() as connection:
        known: dict[str, int] = dict(connection.execute("SELECT name, id FROM annotators"))
        new = [one for one in table.annotators if one not in known]
        numbers = {one: at for at, one in enumerate(new, start=len(known))}
        connection.executemany(
            "INSERT INTO annotators(id, name) VALUES (?, ?)", ((at, one) for one, at in numbers.items())
        )
        known |= numbers
        people = np.array([known[one] for one in table.annotators], dtype=np.int32)
        if number is None:
            (number,) = connection.execute(
                "INSERT INTO questions(kind, name, scheme) VALUES ('pairs', ?, '') RETURNING id", (name,)
            ).fetchone()
        (imported,) = connection.execute(
            "INSERT INTO imports(kind, file, at, notices) VALUES ('pairs', ?, ?, ?) RETURNING id",
            (
                plain(table.path.name, 200), datetime.now(UTC).isoformat(), json.dumps(list(table.notices)),
            ),
        ).fetchone()  # fmt: skip
        connection.execute(
            "INSERT INTO votes(question, import, truth, object) VALUES (?, ?, 0, ?)",
            (number, imported, write_object(connection, record_of_pairs(table, people), watch)),
        )
    link_pictures(study, watch)
    words = (
        f"{counted(len(table), 'comparison')} of {counted(len(table.items), 'item')}"
        f" by {counted(len(table.annotators), 'annotator')}"
    )
    return " ".join([f"{words}.", *table.notices])


def pairs_of(study: Study, question: int, run: RunEntry | None = None) -> Pairs:
    """Give the comparisons; with a run those that went into it, of nobody who was excluded then."""
    bench = study.bench(question, None if run is None else run.imported)
    pairs = bench.pairs(study.annotators())
    return pairs if run is None or not run.excluded else pairs.without(set(run.excluded))


def item_pictures(study: Study, question: int) -> dict[int, int]:
    """Give the image that shows each item, by their numbers."""
    place = {name: at for at, name in enumerate(study.bench(question).items)}
    with study.sound() as connection:
        rows = connection.execute("SELECT task, image FROM pictures WHERE question = ?", (question,))
        return {place[item]: image for item, image in rows if item in place}


def _question_for(study: Study, table: PairTable) -> tuple[int | None, str]:
    """Find the question that a file is about; one of its own has no number yet."""
    questions = study.pair_questions()
    taken = study.question_names()
    if table.question:
        named = next((one for one in questions if one.name.casefold() == table.question.casefold()), None)
        if named is not None:
            return named.id, named.name
        wanted = [table.question]
    else:
        mine = set(table.items)
        alike = [one for one in questions if mine & set(study.bench(one.id).items)]
        if len(alike) == 1:
            return alike[0].id, alike[0].name
        wanted = [UNNAMED, plain(table.path.name, 80)]
    wanted += [f"{wanted[0]} {number}" for number in range(2, len(taken) + 3)]
    return None, next(name for name in wanted if name.casefold() not in taken)
