"""Labels in a study: questions and how to understand their answers, votes, truths, pictures of tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import msgspec
import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import OPEN, ClassArray, Labels
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import counted, plain
from raterscope.app.formats.labels.records import LabelTable, TrueLabels
from raterscope.app.natural import natural
from raterscope.app.review import ReviewState
from raterscope.app.study.arrays import write_object
from raterscope.app.study.imports import number_annotators, number_import
from raterscope.app.study.places import Names
from raterscope.app.study.records import QuestionEntry, RunEntry, Scheme, StudyError
from raterscope.app.study.references import read_image_entries
from raterscope.app.study.study import Study
from raterscope.app.study.vote_sets import VoteSet, VotesRecord, truth_record, votes_record

__all__ = [
    "add_true_labels",
    "add_votes",
    "decided_classes",
    "excluded_votes",
    "labels_of",
    "link_pictures",
    "pictures_of",
    "set_scheme",
    "usual_meaning",
    "widened",
    "with_classes",
]

_SOME = 20_000

UNNAMED = "labels"
"""What a question is called that nobody named."""


def add_votes(study: Study, table: LabelTable, watch: Watch = silent) -> str:
    """Take up the votes of one file on one question, whole or not at all.

    A file that does not name its question answers the only one there is, if their outputs have anything in
    common, else one of its own.

    Returns
    -------
    str
        What came in, in a sentence or more.
    """
    watch(0.0, "storing votes")
    repeats = _repeats(table, part(watch, 0.0, 0.2))
    before = _question_for(study, table.question, table.outputs, table.tasks)
    again = 0 if before is None else _given_again(study, before.id, table)
    study.forget_annotators()
    with study.change() as connection:
        known = number_annotators(connection, table.annotators)
        people = np.array([known[name] for name in table.annotators], dtype=np.int32)
        scheme = widened(before.scheme if before else None, table.outputs)
        name = table.question or _free_name(study, table.path.stem)
        question = _taken_up(study, before, name, scheme)
        record = votes_record(table, people)
        _store(study, question, 0, table.path.name, table.notices, record, part(watch, 0.2, 0.8))
    link_pictures(study, part(watch, 0.8, 1.0))
    words = (
        f"{counted(len(table), 'vote')} by {counted(len(table.annotators), 'annotator')}"
        f" on {counted(len(table.tasks), 'task')}"
    )
    remarks = [f"{table.missing:,} without a label, left out"] if table.missing else []
    remarks += [f"{repeats:,} of a task that its annotator had labelled before"] if repeats else []
    whole = f"all {again:,}" if again == len(table) else f"{again:,}"
    remarks += [f"{whole} of a task that its annotator labels in an earlier file too"] if again else []
    return " ".join([words + (f" ({'; '.join(remarks)})" if remarks else "") + ".", *table.notices])


def add_true_labels(study: Study, table: TrueLabels, watch: Watch = silent) -> str:
    """Take up the true classes of tasks, for the question that they answer.

    Raises
    ------
    StudyError
        When the study has no votes on any of these tasks.
    """
    watch(0.0, "storing truths")
    question = _question_for(study, table.question, table.classes, table.tasks, votes=False)
    if question is None:
        raise StudyError(
            "tells what is true of tasks that the study has no votes on; import the votes first",
            file=table.path,
        )
    scheme, notices = with_classes(question.scheme, table.classes, "the question's settings change it")
    there = sum(name in study.vote_set(question.id).task_index for name in table.tasks)
    with study.change():
        number = _taken_up(study, question, question.name, scheme)
        record = truth_record(table)
        _store(study, number, 1, table.path.name, (*table.notices, *notices), record, watch)
    words = f"the truth of {counted(len(table), 'task')}"
    words += f" ({len(table) - there:,} of them without votes)" if there < len(table) else ""
    return " ".join([words + ".", *table.notices, *notices])


def set_scheme(study: Study, question: int, scheme: Scheme) -> None:
    """Understand the answers to a question in another way: other order, other classes, another prior.

    Raises
    ------
    StudyError
        When an output that was given is missing from it.
    """
    present = study.question(question).scheme
    missing = sorted(set(present.outputs) - set(scheme.outputs))
    if missing:
        raise StudyError(f"{plain(missing[0])} was said by annotators; expected it among the outputs")
    study.forget_vote_sets()
    with study.change() as connection:
        connection.execute(
            "UPDATE questions SET scheme = ? WHERE id = ?",
            (msgspec.json.encode(scheme).decode(), question),
        )


def usual_meaning(outputs: Sequence[str], classes: Sequence[str]) -> tuple[int, ...]:
    """Say which class each output is likely to stand for: that of its name, else the one at its place."""
    names = {name.casefold(): number for number, name in enumerate(classes)}
    if any(name.casefold() in names for name in outputs):
        return tuple(names.get(name.casefold(), OPEN) for name in outputs)
    return tuple(at * len(classes) // max(len(outputs), 1) for at in range(len(outputs)))


def labels_of(study: Study, question: int, run: RunEntry | None = None) -> Labels:
    """Give the votes on a question; with a run those that went into it, of nobody who was excluded then."""
    crowd = study.vote_set(question, None if run is None else run.imported)
    labels = crowd.labels(study.annotators())
    return labels if run is None or not run.excluded else labels.without(set(run.excluded))


def excluded_votes(
    study: Study, question: int, excluded: Sequence[str], imported: int | None = None
) -> Labels | None:
    """Give the votes of excluded annotators; None without any.

    Parameters
    ----------
    study : Study
    question : int
    excluded : sequence of names
    imported : int, optional
        The last import that counts; all of them by default.
    """
    if not excluded:
        return None
    labels = study.vote_set(question, imported).labels(study.annotators())
    out = np.isin(np.array(labels.annotators, dtype=object), list(excluded))
    left_out = labels.subset(out[labels.annotator])
    return left_out if len(left_out) else None


def decided_classes(crowd: VoteSet, review: ReviewState, question: int) -> ClassArray:
    """Give the class that the expert decided for each task, (N,) int16, `OPEN` elsewhere."""
    known = np.full(len(crowd.tasks), OPEN, dtype=np.int16)
    place = {name: number for number, name in enumerate(crowd.scheme.classes)}
    for task, decided in review.tasks(question).items():
        at = crowd.task_index.get(task)
        if at is not None and decided.label in place:
            known[at] = place[decided.label]
    return known


def pictures_of(study: Study, question: int) -> dict[int, int]:
    """Give the image that shows each task, by their numbers."""
    crowd = study.vote_set(question)
    with study.reading() as connection:
        rows = connection.execute("SELECT task, image FROM pictures WHERE question = ?", (question,))
        return {crowd.task_index[task]: image for task, image in rows if task in crowd.task_index}


def link_pictures(study: Study, watch: Watch = silent) -> int:
    """Find the images that show tasks or items, by the name that their file gives or by their own.

    Returns
    -------
    int
        How many of them have a picture now.
    """
    with study.reading() as connection:
        entries = [one for one in read_image_entries(connection, study.path) if one.grid is None]
        marked = {image for (image,) in connection.execute("SELECT DISTINCT image FROM marks")}
    able = [one for one in entries if one.id not in marked and one.path is not None]
    names = Names(able)
    found: list[tuple[int, str, int]] = []
    named = (
        (one.id, study.vote_set(one.id).tasks, study.vote_set(one.id).pictures) for one in study.questions()
    )
    compared = (
        (one.id, study.comparison_set(one.id).items, study.comparison_set(one.id).pictures)
        for one in study.pair_questions()
    )
    for question, tasks, pictures in chain(named, compared) if able else ():
        for at, (task, picture) in enumerate(zip(tasks, pictures, strict=True)):
            if at % _SOME == 0:
                watch(at / len(tasks), "looking for pictures")
            entry = names.find(picture or task)
            if entry is not None:
                found.append((question, task, entry.id))
    with study.change() as connection:
        connection.execute("DELETE FROM pictures")
        connection.executemany("INSERT INTO pictures(question, task, image) VALUES (?, ?, ?)", found)
    return len(found)


def _question_for(
    study: Study, name: str, labels: Sequence[str], tasks: Sequence[str], *, votes: bool = True
) -> QuestionEntry | None:
    """Find the question that a file is about; None where it is one of its own."""
    questions = study.questions()
    named = next((one for one in questions if name and one.name.casefold() == name.casefold()), None)
    if named is not None or (name and votes):
        return named
    shares = {one: sum(task in study.vote_set(one.id).task_index for task in tasks) for one in questions}
    likely = [one for one in questions if not votes or set(labels) & set(one.scheme.outputs)]
    # Several questions about the same tasks are told apart by what is said of them.
    alike = {one: bool(set(labels) & {*one.scheme.outputs, *one.scheme.classes}) for one in likely}
    best = max(likely, key=lambda one: (shares[one] > 0, alike[one], shares[one]), default=None)
    if best is None or shares[best] or (votes and len(questions) == 1):
        return best
    return next((one for one in likely if votes and one.name == UNNAMED), None)


def widened(scheme: Scheme | None, outputs: Sequence[str]) -> Scheme:
    """Let a scheme take outputs that it does not have; while classes are outputs, they stay so."""
    if scheme is None:
        return Scheme(tuple(outputs), tuple(outputs), tuple(range(len(outputs))))
    new = [name for name in outputs if name not in scheme.outputs]
    if not new:
        return scheme
    together = _ordered([*scheme.outputs, *new]) if _in_order(scheme.outputs) else (*scheme.outputs, *new)
    if scheme.classes == scheme.outputs:
        return Scheme(together, together, tuple(range(len(together))))
    meaning = dict(zip(scheme.outputs, scheme.meaning, strict=True))
    return Scheme(together, scheme.classes, tuple(meaning.get(name, OPEN) for name in together))


def with_classes(scheme: Scheme, classes: Sequence[str], remedy: str) -> tuple[Scheme, list[str]]:
    """Let a scheme know the classes that truths name.

    Gives also, where none of them is an output, what the outputs are taken to stand for, in a sentence that
    ends with how that is changed.
    """
    new = [name for name in classes if name not in scheme.classes]
    if not new:
        return scheme, []
    if scheme.classes == scheme.outputs and not set(classes) & set(scheme.outputs):
        meaning = usual_meaning(scheme.outputs, classes)
        said = ", ".join(
            f"{plain(output)} for {plain(classes[at]) if at != OPEN else 'none'}"
            for output, at in zip(scheme.outputs, meaning, strict=True)
        )
        return (
            Scheme(scheme.outputs, tuple(classes), meaning),
            [f"The answers are taken to stand so: {said}; {remedy}."],
        )
    together = (*scheme.classes, *new)
    return replace(scheme, classes=together, prior=None), []


def _taken_up(study: Study, question: QuestionEntry | None, name: str, scheme: Scheme) -> int:
    """Store a question's scheme within the present change and give its number."""
    study.forget_vote_sets()
    with study.reading() as connection:
        text = msgspec.json.encode(scheme).decode()
        if question is not None:
            connection.execute("UPDATE questions SET scheme = ? WHERE id = ?", (text, question.id))
            return question.id
        row = connection.execute(
            "INSERT INTO questions(kind, name, scheme) VALUES ('labels', ?, ?) RETURNING id", (name, text)
        ).fetchone()
        return int(row[0])


def _free_name(study: Study, file: str) -> str:
    """Name a question that its file does not: as its file, where another unnamed one is there already."""
    taken = study.question_names()
    names = (UNNAMED, plain(file, 80), *(f"{UNNAMED} {number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name.casefold() not in taken)


def _store(
    study: Study, question: int, truth: int, file: str, notices: Sequence[str], record: VotesRecord,
    watch: Watch,
) -> None:  # fmt: skip
    with study.reading() as connection:
        number = number_import(connection, "true labels" if truth else "labels", file, notices)
        connection.execute(
            "INSERT INTO votes(question, import, truth, object) VALUES (?, ?, ?, ?)",
            (question, number, truth, write_object(connection, record, watch)),
        )


def _repeats(table: LabelTable, watch: Watch) -> int:
    """Count the votes on a task that its annotator had labelled before, some tasks at a time."""
    parts = len(table) // 1_000_000 + 1
    repeats = 0
    for at in range(parts):
        watch(at / parts, "looking for repeated votes")
        mine = table.task % parts == at if parts > 1 else slice(None)
        pair = table.annotator[mine].astype(np.int64) * len(table.tasks) + table.task[mine]
        pair.sort()
        repeats += int((pair[1:] == pair[:-1]).sum())
    return repeats


def _given_again(study: Study, question: int, table: LabelTable) -> int:
    """Count the votes of annotators on tasks of which the study has a vote of theirs."""
    crowd, names = study.vote_set(question), study.annotators()
    number = {names[person]: at for at, person in enumerate(crowd.annotator_ids.tolist())}
    person = np.array([number.get(name, -1) for name in table.annotators], dtype=np.int64)
    task = np.array([crowd.task_index.get(name, -1) for name in table.tasks], dtype=np.int64)
    if not (person >= 0).any() or not (task >= 0).any():
        return 0
    there = np.unique(crowd.annotator.astype(np.int64) * len(crowd.tasks) + crowd.task)
    who, which = person[table.annotator], task[table.task]
    met = (who >= 0) & (which >= 0)
    pair = who[met] * len(crowd.tasks) + which[met]
    at = np.minimum(np.searchsorted(there, pair), len(there) - 1)
    return int((there[at] == pair).sum())


def _number(name: str) -> float:
    try:
        return float(name)
    except ValueError:
        return math.nan


def _ordered(names: Sequence[str]) -> tuple[str, ...]:
    numbers: NDArray[np.float64] = np.array([_number(name) for name in names])
    if np.isfinite(numbers).all():
        return tuple(names[at] for at in np.argsort(numbers, kind="stable"))
    return tuple(sorted(names, key=natural))


def _in_order(names: Sequence[str]) -> bool:
    return tuple(names) == _ordered(names)
