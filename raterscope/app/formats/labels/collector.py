"""Collector of the votes of one file, and the order of its classes."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.annotations import Document, Remarks
from raterscope.app.formats.records import LabelTable, TrueLabels
from raterscope.app.formats.tables import seconds_or_nan
from raterscope.app.natural import natural

__all__ = [
    "MOST_OUTPUTS",
    "VoteCollector",
    "joined",
    "outputs_of",
    "take_labels",
]


MOST_OUTPUTS = 1000
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?", re.ASCII)
_NOTHING = {"na", "n/a", "nan", "null", "none", "<na>"}


def outputs_of(
    found: Sequence[str], path: Path, field: str = "label"
) -> tuple[tuple[str, ...], NDArray[np.int16], tuple[str, ...]]:
    """Put answers in order: by value where all are numbers, else by the alphabet.

    Numbers that are equal are one answer, such as 1 and 1.0; words that programs write for nothing, such as
    NaN, are none where all others are numbers. Else an answer is its text, without the blanks around it.

    Parameters
    ----------
    found : sequence of str
        Each answer as it was written, once or several times.
    path : Path
    field : str

    Returns
    -------
    outputs : tuple of str
    place : (len(found),) int16
        Index of each answer into `outputs`; -1 for none.
    notices : tuple of str

    Raises
    ------
    InputError
        For more answers than anybody chooses among.
    """
    texts = [text.strip() for text in found]
    words = [text for text in texts if text and text.casefold() not in _NOTHING]
    if words and all(_NUMBER.fullmatch(word) and math.isfinite(float(word)) for word in words):
        names, notices = _numbers(words)
    else:
        names = {text: text for text in sorted({text for text in texts if text}, key=natural)}
        notices = _alike(list(names))
    outputs = tuple(dict.fromkeys(names.values()))
    if len(outputs) > MOST_OUTPUTS:
        raise InputError(
            f"has {len(outputs):,} different labels; expected at most {MOST_OUTPUTS:,} to choose among",
            file=path, field=field,
        )  # fmt: skip
    number = {name: at for at, name in enumerate(outputs)}
    place = [number[names[text]] if text in names else -1 for text in texts]
    return outputs, np.array(place, dtype=np.int16), notices


def _numbers(words: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    spellings: dict[float, set[str]] = {}
    for word in words:
        spellings.setdefault(float(word) + 0.0, set()).add(word)
    names: dict[str, str] = {}
    merged = []
    for value in sorted(spellings):
        alike = sorted(spellings[value], key=lambda word: (len(word), word))
        name = f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else alike[0]
        names.update(dict.fromkeys(alike, name))
        if len(alike) > 1 or name not in alike:
            alike = sorted({*alike, name}, key=lambda word: (len(word), word))
            merged.append(" and ".join(plain(word, 20) for word in alike[:3]))
    if not merged:
        return names, ()
    return names, (f"Labels that are the same number were taken for one: {'; '.join(merged[:3])}.",)


def _alike(outputs: Sequence[str]) -> tuple[str, ...]:
    """Say which answers differ in capitals alone."""
    pairs = [
        f"{plain(one, 20)} and {plain(other, 20)}"
        for one, other in pairwise(outputs)
        if one.casefold() == other.casefold()
    ]
    return (f"Labels that differ in capitals alone are kept apart: {'; '.join(pairs[:3])}.",) if pairs else ()


_JOINT = " + "


def joined(choices: list[str]) -> str:
    """Make one answer of several that were chosen together, whatever the order they were chosen in."""
    return _JOINT.join(sorted(set(choices), key=str.casefold))


@dataclass
class _Question:
    annotators: dict[str, int] = field(default_factory=dict)
    tasks: dict[str, int] = field(default_factory=dict)
    rows: list[tuple[int, int, float]] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    pictures: dict[int, str] = field(default_factory=dict)
    truths: dict[str, str] = field(default_factory=dict)
    words: str = ""
    missing: int = 0


@dataclass
class VoteCollector:
    """Votes while they are read.

    Attributes
    ----------
    path : Path
    left_out : Counter
        What was not read, in words, with how often.
    """

    path: Path
    left_out: Counter[str] = field(default_factory=Counter)
    _questions: dict[str, _Question] = field(default_factory=dict)

    def add(
        self, question: str, annotator: str, task: str, answer: str, *, time: float = math.nan,
        picture: str = "", words: str = "",
    ) -> None:  # fmt: skip
        """Take up one vote; `words` is how the question was put, the first time is kept."""
        asked = self._questions.setdefault(question, _Question())
        asked.words = asked.words or words
        who = asked.annotators.setdefault(annotator, len(asked.annotators))
        what = asked.tasks.setdefault(task, len(asked.tasks))
        if picture:
            asked.pictures.setdefault(what, picture)
        if not answer.strip():
            asked.missing += 1
            return
        asked.rows.append((who, what, time))
        asked.answers.append(answer)

    def add_truth(self, question: str, task: str, answer: str) -> None:
        """Take up what is said to be true; what is said first counts."""
        self._questions.setdefault(question, _Question()).truths.setdefault(task, answer)

    def tables(self) -> tuple[LabelTable | TrueLabels, ...]:
        """Give a table of votes, and one of truths, for each question that has some.

        Raises
        ------
        InputError
            For a file without any.
        """
        found: list[LabelTable | TrueLabels] = []
        left = [f"{name} {count:,}" for name, count in self.left_out.items() if count]
        general = [f"Left out, for they are no labels: {', '.join(left)}."] if left else []
        for name, asked in self._questions.items():
            if not asked.answers and not asked.truths:
                continue
            given = [*asked.answers, *asked.truths.values()]
            outputs, place, notices = outputs_of(given, self.path)
            said = [*notices, *general]
            if any(_JOINT in answer for answer in given):
                said.append('Answers that were chosen together are one label, such as "a + b".')
            label = place[: len(asked.answers)]
            votes, question = label >= 0, asked.words or name
            if votes.any():
                rows = np.array(asked.rows, dtype=np.float64)[votes]
                time = rows[:, 2].copy()
                found.append(
                    LabelTable(
                        path=self.path, question=question, annotators=tuple(asked.annotators),
                        tasks=tuple(asked.tasks), outputs=outputs, annotator=rows[:, 0].astype(np.int32),
                        task=rows[:, 1].astype(np.int32), label=label[votes],
                        time=time if np.isfinite(time).any() else None, pictures=asked.pictures,
                        missing=asked.missing + int((~votes).sum()), notices=tuple(said),
                    )
                )  # fmt: skip
            if asked.truths:
                true = place[len(asked.answers) :]
                names = tuple(task for task, at in zip(asked.truths, true, strict=True) if at >= 0)
                found.append(TrueLabels(self.path, question, names, outputs, true[true >= 0]))
        if not found:
            raise InputError("has no labels; expected some", file=self.path)
        return tuple(found)


def take_labels(
    path: Path, document: Document, annotator: str, watch: Watch = silent
) -> tuple[LabelTable | TrueLabels, ...]:
    """Take the answers about whole images and tasks; several in one set to one question are one label.

    Parameters
    ----------
    path : Path
    document : Document
    annotator : str
        The annotator of sets that do not name one.
    watch : Watch

    Raises
    ------
    InputError
        For a file without answers, and for an answer that cannot be read.
    """
    gathering = VoteCollector(path)
    for one in document.sets("labels", Remarks(gathering.left_out), watch):
        chosen: dict[str, list[str]] = {} if one.question is None else {one.question: []}
        wording = ""
        for annotation in one.annotations:
            if annotation.problem:
                raise InputError(annotation.problem, file=path, field=annotation.field)
            if annotation.answers:
                chosen.setdefault(annotation.question, []).extend(annotation.answers)
                wording = annotation.wording
            else:
                gathering.left_out[annotation.noun] += 1
        item = one.item
        task = f"{item.title} ({item.distinction})" if item.distinction else item.title
        for question, answers in chosen.items():
            label = joined([answer for answer in answers if answer])
            if one.is_truth:
                gathering.add_truth(question, task, label)
            else:
                gathering.add(
                    question, one.annotator or annotator, task, label, time=seconds_or_nan(one.time),
                    picture=item.name, words=wording,
                )  # fmt: skip
    return gathering.tables()
