"""Votes of one file: collection and order of the classes."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain, plain_names
from raterscope.app.formats.annotations import JOINT, Document, Remarks, join_choices
from raterscope.app.formats.records import LabelTable, TrueLabels
from raterscope.app.formats.tables import NO_NAMES, seconds_or_nan
from raterscope.text import counted, natural

MAX_OUTPUTS = 1000
COMMA = ","
SEPARATORS = (JOINT, ";", "|", COMMA)
"""Separators of the tags of an answer; the first joins the values of a list."""

JOINT_NOTICE = 'Answers chosen together are one label, such as "a + b".'
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?", re.ASCII)
_TEXT = r'"(?:[^"\\]|\\.)*"|\'[^\'\\]*\''
_LIST = re.compile(rf"\[\s*((?:{_TEXT})(\s*,\s*(?:{_TEXT}))*)?\s*\]")
"""A list of texts as JSON and Python write it."""
_NOTHING = {"na", "n/a", "nan", "null", "none", "<na>"}
_PERHAPS_NOTHING = {
    *_NOTHING, "?", "??", "skip", "skipped", "unsure", "not sure", "unknown", "idk", "no answer",
    "don't know", "dont know", "do not know", "i don't know", "cannot tell", "can't tell",
}  # fmt: skip
"""Classes that may stand for a missing answer, in lower case."""


def order_outputs(
    answers: Sequence[str], path: Path, field: str = "label"
) -> tuple[tuple[str, ...], NDArray[np.int16], tuple[str, ...]]:
    """Sort answers by value if all are numbers, or by text; return outputs, indices and notices.

    Equal numbers, such as 1 and 1.0, are one answer. Words for missing values, such as NaN, are not answers
    if all others are numbers; NaN never is one. Otherwise an answer is its text without surrounding blanks,
    in one coding of accents. If all answers are lists of texts, the texts of each are joined.
    Raises `InputError` for more than a thousand different answers that are not sets of tags.

    `answers`: the answers as written, possibly repeated. The second result is the index of each answer into
    the outputs, -1 for none.
    """
    texts = [normalize("NFC", text.strip()) for text in answers]
    are_lists = all(_LIST.fullmatch(text) for text in texts if text) and any(texts)
    texts = [join_choices(_parse_list(text)) for text in texts] if are_lists else texts
    words = [text for text in texts if text and text.casefold() not in _NOTHING]
    if words and all(_NUMBER.fullmatch(word) and math.isfinite(float(word)) for word in words):
        names, notices = _numbers(words)
    else:
        names = {text: text for text in sorted({text for text in texts if text} - {*NO_NAMES}, key=natural)}
        notices = (*_case_notices(list(names)), *_nothing_notices(list(names)))
        if are_lists and any(JOINT in name for name in names):
            notices = (*notices, JOINT_NOTICE)
    outputs = tuple(dict.fromkeys(names.values()))
    if len(outputs) > MAX_OUTPUTS and not _have_common_tags(outputs):
        raise too_many_outputs(outputs, path, field)
    number = {name: at for at, name in enumerate(outputs)}
    output = [number[names[text]] if text in names else -1 for text in texts]
    dtype = np.int16 if len(outputs) < 1 << 15 else np.int32
    return outputs, np.array(output, dtype=dtype), notices


def _parse_list(text: str) -> list[str]:
    parts = [part[0] for part in re.finditer(_TEXT, text)]
    try:
        return [json.loads(part) if part.startswith('"') else part[1:-1] for part in parts]
    except ValueError:
        return [part[1:-1] for part in parts]


def _have_common_tags(outputs: Sequence[str]) -> bool:
    """Return whether many answers consist of few tags."""
    return 2 * len({part for name in outputs for part in tags_of(name)}) < len(outputs)


def _numbers(words: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    spellings: dict[float, set[str]] = {}
    for word in words:
        spellings.setdefault(float(word) + 0.0, set()).add(word)
    names: dict[str, str] = {}
    merged = []
    for value in sorted(spellings):
        variants = sorted(spellings[value], key=lambda word: (len(word), word))
        name = f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else variants[0]
        names.update(dict.fromkeys(variants, name))
        if len(variants) > 1 or name not in variants:
            variants = sorted({*variants, name}, key=lambda word: (len(word), word))
            merged.append(" and ".join(plain(word, 20) for word in variants[:3]))
    if not merged:
        return names, ()
    return names, (f"Labels with the same number were merged: {'; '.join(merged[:3])}.",)


def _case_notices(outputs: Sequence[str]) -> tuple[str, ...]:
    """Return a notice on answers that differ only in upper and lower case."""
    pairs = [
        f"{plain(name, 20)} and {plain(other, 20)}"
        for name, other in pairwise(outputs)
        if name.casefold() == other.casefold()
    ]
    return (
        (f"Labels that differ only in upper and lower case stay separate: {'; '.join(pairs[:3])}.",)
        if pairs
        else ()
    )


def _nothing_notices(outputs: Sequence[str]) -> tuple[str, ...]:
    """Return a notice on answers that may stand for none."""
    names = [name for name in outputs if name.casefold().replace("_", " ") in _PERHAPS_NOTHING]
    if not names or len(names) == len(outputs):
        return ()
    words = "are classes. If they stand" if len(names) > 1 else "is a class. If it stands"
    example = plain(names[0], 20)
    return (
        f"{plain_names(names, 4)} {words} for no answer, clear the name under Classes, or --rename "
        f'"class:{example}=".',
    )


def no_label_notice(rows: int) -> str:
    """Return the notice on rows that are skipped because they have no label."""
    return f"{counted(rows, 'row')} skipped: no label."


@dataclass
class _Question:
    annotators: dict[str, int] = field(default_factory=dict)
    tasks: dict[str, int] = field(default_factory=dict)
    rows: list[tuple[int, int, float]] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    pictures: dict[int, str] = field(default_factory=dict)
    truths: dict[str, str] = field(default_factory=dict)
    text: str = ""
    missing: int = 0
    unlabelled: list[tuple[int, int]] = field(default_factory=list)

    def add_unanswered(self, viewed: Sequence[tuple[str, str]]) -> None:
        """Add tasks that were seen but not answered."""
        answered = {(annotator, task) for annotator, task, _ in self.rows} | set(self.unlabelled)
        for annotator, task in viewed:
            pair = (
                self.annotators.setdefault(annotator, len(self.annotators)),
                self.tasks.setdefault(task, len(self.tasks)),
            )
            if pair not in answered:
                self.unlabelled.append(pair)


@dataclass
class VoteCollector:
    """Collector of the votes of a file."""

    path: Path
    left_out: Counter[str] = field(default_factory=Counter)  # number of skipped annotations by plural noun
    notices: list[str] = field(default_factory=list)  # messages about the file
    # list of (annotator, task): tasks that annotators saw, even if they answered nothing
    viewed: list[tuple[str, str]] = field(default_factory=list)
    subjects: dict[str, str] = field(default_factory=dict)  # by task: subjects of Zooniverse
    _questions: dict[str, _Question] = field(default_factory=dict)

    def add(
        self, question: str, annotator: str, task: str, answer: str, *, time: float = math.nan,
        picture: str = "", text: str = "",
    ) -> None:  # fmt: skip
        """Add one vote; `text` is the wording of the question; the first wording is used."""
        polled = self._questions.setdefault(question, _Question())
        polled.text = polled.text or text
        annotator_index = polled.annotators.setdefault(annotator, len(polled.annotators))
        task_index = polled.tasks.setdefault(task, len(polled.tasks))
        if picture:
            polled.pictures.setdefault(task_index, picture)
        if not answer.strip():
            polled.missing += 1
            polled.unlabelled.append((annotator_index, task_index))
            return
        polled.rows.append((annotator_index, task_index, time))
        polled.answers.append(answer)

    def add_truth(self, question: str, task: str, answer: str) -> None:
        """Add a true answer; the first one of a task counts."""
        self._questions.setdefault(question, _Question()).truths.setdefault(task, answer)

    def tables(self) -> tuple[LabelTable | TrueLabels, ...]:
        """Return a table of votes, and one of true labels, for each question that has any.

        Raises `InputError` for a file without labels.
        """
        tables: list[LabelTable | TrueLabels] = []
        skipped = [f"{name} {count:,}" for name, count in self.left_out.items() if count]
        general = [*self.notices]
        if skipped:
            general.append(f"Skipped, because they are not labels: {', '.join(skipped)}.")
        for name, polled in self._questions.items():
            if not polled.answers and not polled.truths:
                continue
            answers = [*polled.answers, *polled.truths.values()]
            outputs, index, notices = order_outputs(answers, self.path)
            messages = [*notices, *general]
            if any(JOINT in answer for answer in answers):
                messages.append(JOINT_NOTICE)
                polled.add_unanswered(self.viewed)
            label = index[: len(polled.answers)]
            votes, question = label >= 0, polled.text or name
            missing = polled.missing + int((~votes).sum())
            if missing:
                messages.append(no_label_notice(missing))
            if votes.any():
                rows = np.array(polled.rows, dtype=np.float64)[votes]
                time = rows[:, 2].copy()
                tables.append(
                    LabelTable(
                        path=self.path, question=question, annotators=tuple(polled.annotators),
                        tasks=tuple(polled.tasks), outputs=outputs, annotator=rows[:, 0].astype(np.int32),
                        task=rows[:, 1].astype(np.int32), label=label[votes],
                        time=time if np.isfinite(time).any() else None, pictures=polled.pictures,
                        missing=missing, notices=tuple(messages),
                        subjects=self.subjects,
                        unlabelled=np.array(polled.unlabelled, dtype=np.int32).reshape(-1, 2),
                    )
                )  # fmt: skip
            if polled.truths:
                true = index[len(polled.answers) :]
                names = tuple(task for task, at in zip(polled.truths, true, strict=True) if at >= 0)
                tables.append(TrueLabels(self.path, question, names, outputs, true[true >= 0]))
        if not tables:
            raise InputError("has no labels; expected some", file=self.path)
        return tuple(tables)


def collect_labels(
    path: Path, document: Document, annotator: str, watch: Watch = silent
) -> tuple[LabelTable | TrueLabels, ...]:
    """Collect the answers about images and tasks; several answers to a question in one set are one label.

    Raises `InputError` for a file without answers, and for an answer that cannot be read.

    `annotator`: the annotator of sets that do not name one.
    """
    collector = VoteCollector(path)
    for annotation_set in document.sets("labels", Remarks(collector.left_out), watch):
        chosen: dict[str, list[str]] = (
            {} if annotation_set.question is None else {annotation_set.question: []}
        )
        wording = ""
        for annotation in annotation_set.annotations:
            if annotation.problem:
                raise InputError(annotation.problem, file=path, field=annotation.field)
            if annotation.answers:
                chosen.setdefault(annotation.question, []).extend(annotation.answers)
                wording = annotation.wording
            else:
                collector.left_out[annotation.noun] += 1
        item = annotation_set.item
        task = f"{item.title} ({item.distinction})" if item.distinction else item.title
        if annotation_set.is_complete and not annotation_set.is_truth:
            collector.viewed.append((annotation_set.annotator or annotator, task))
        if item.subject:
            collector.subjects[task] = item.subject
        for question, answers in chosen.items():
            label = join_choices([answer for answer in answers if answer])
            if annotation_set.is_truth:
                collector.add_truth(question, task, label)
            else:
                collector.add(
                    question, annotation_set.annotator or annotator, task, label,
                    time=seconds_or_nan(annotation_set.time), picture=item.name, text=wording,
                )  # fmt: skip
    return collector.tables()


def tags_of(answer: str, separators: Sequence[str] = SEPARATORS) -> list[str]:
    """Return the tags of an answer, which separators join."""
    parts = [answer]
    for separator in separators:
        parts = [piece for part in parts for piece in part.split(separator)]
    return [part.strip() for part in parts if part.strip()]


def too_many_outputs(outputs: Sequence[str], path: Path, field: str = "label") -> InputError:
    """Return the error for more different answers than can be fused."""
    return InputError(
        f"has {len(outputs):,} different labels; expected at most {MAX_OUTPUTS:,}", file=path, field=field
    )
