"""What annotators were asked in a study: questions answered by labels, and pairs that they compared."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from raterscope.app.study.comparisons import Bench, read_bench
from raterscope.app.study.opening import Hold
from raterscope.app.study.packing import last_import_for
from raterscope.app.study.records import PairQuestion, QuestionEntry, StudyError
from raterscope.app.study.rows import question_of
from raterscope.app.study.runs import StudyRuns
from raterscope.app.study.votes import Crowd, read_crowd

__all__ = ["StudyQuestions"]


class StudyQuestions(StudyRuns):
    """Annotators and questions, with the answers that were read last kept in memory."""

    def __init__(self, path: Path, connection: sqlite3.Connection, hold: Hold | None) -> None:
        super().__init__(path, connection, hold)
        # Nobody else changes the file while it is open, and no annotator ever changes.
        self._names: list[str] | None = None
        self._crowds: dict[tuple[int, int], Crowd] = {}
        self._benches: dict[tuple[int, int], Bench] = {}

    def annotators(self) -> list[str]:
        """List the annotators in the order of first appearance, which gives each a colour for good."""
        if self._names is None:
            with self.sound():
                rows = self._connection.execute("SELECT id, name FROM annotators ORDER BY id").fetchall()
            for place, (number, name) in enumerate(rows):
                if number != place or not name.strip():
                    expected = f"number {place}" if number != place else "a name"
                    raise StudyError(
                        f"is damaged: annotators, row {place + 1}: expected {expected}, found "
                        f"{number if number != place else 'an empty one'}",
                        file=self.path,
                    )
            self._names = [name for _, name in rows]
        return list(self._names)

    def forget_names(self) -> None:
        """Read the annotators anew when they are asked for next, as some are about to be added."""
        self._names = None

    def questions(self) -> tuple[QuestionEntry, ...]:
        """List the questions that annotators answered by labels, in the order in which they came."""
        with self.sound():
            rows = self._connection.execute(
                "SELECT id, name, scheme FROM questions WHERE kind = 'labels' ORDER BY id"
            )
            return tuple(question_of(row, self.path) for row in rows)

    def question(self, number: int) -> QuestionEntry:
        """Give one question."""
        found = next((one for one in self.questions() if one.id == number), None)
        if found is None:
            raise StudyError(f"has no question number {number}", file=self.path)
        return found

    def crowd(self, question: int, last: int | None = None) -> Crowd:
        """Give all votes on a question, up to an import; the last ones that were read are kept in memory."""
        key = question, self._last_answer(question, last)
        if key not in self._crowds:
            scheme, people = self.question(question).scheme, len(self.annotators())
            with self.sound():
                crowd = read_crowd(self._connection, self.path, question, scheme, people, key[1])
            self._crowds = {kept: self._crowds[kept] for kept in list(self._crowds)[-1:]}
            self._crowds[key] = crowd
        return self._crowds[key]

    def forget_crowds(self) -> None:
        """Read votes anew when they are asked for next, as what is known of a question is about to change."""
        self._crowds.clear()

    def forget(self) -> None:
        """Drop what is kept in memory of the file, as it is not what was read."""
        self._names = None
        self._crowds.clear()
        self._benches.clear()

    def pair_questions(self) -> tuple[PairQuestion, ...]:
        """List the questions that annotators answered by comparing pairs, in the order in which they came."""
        with self.sound():
            rows = self._connection.execute(
                "SELECT id, name FROM questions WHERE kind = 'pairs' ORDER BY id"
            ).fetchall()
        return tuple(PairQuestion(number, name) for number, name in rows)

    def question_names(self) -> frozenset[str]:
        """Give the names of all questions, labels' and pairs', without capitals."""
        with self.sound():
            rows = self._connection.execute("SELECT name FROM questions").fetchall()
        return frozenset(name.casefold() for (name,) in rows)

    def bench(self, question: int, last: int | None = None) -> Bench:
        """Give all comparisons for a question, up to an import; see `crowd`."""
        key = question, self._last_answer(question, last)
        if key not in self._benches:
            people = len(self.annotators())
            with self.sound():
                bench = read_bench(self._connection, self.path, question, people, key[1])
            self._benches = {kept: self._benches[kept] for kept in list(self._benches)[-1:]}
            self._benches[key] = bench
        return self._benches[key]

    def _last_answer(self, question: int, last: int | None) -> int:
        """Give the last import, up to one, that brought something for a question: others change nothing."""
        with self.sound():
            return last_import_for(self._connection, question, last)
