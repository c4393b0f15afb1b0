"""Labels in a study: questions with their schemes, votes, truths, pictures of tasks."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import msgspec
import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.class_tree import class_tree
from raterscope.algorithms.labels.data import OPEN, ClassArray, Labels
from raterscope.algorithms.labels.programs import Program
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import StudyError, plain
from raterscope.app.formats.records import LabelTable, TaskContents, TrueLabels
from raterscope.app.formats.tables import number_or_nan
from raterscope.app.review import ReviewState, current_names
from raterscope.app.study.arrays import write_object
from raterscope.app.study.imports import describe_spellings, number_annotators, number_import
from raterscope.app.study.records import QuestionEntry, RunEntry, Scheme
from raterscope.app.study.references import ImageNames, read_image_entries
from raterscope.app.study.study import Study
from raterscope.app.study.vote_sets import VoteSet, VotesRecord, positions_of, truth_record, votes_record
from raterscope.text import counted, natural

_SOME = 20_000

UNNAMED = "labels"
"""Name of a question without a name."""


def add_votes(study: Study, table: LabelTable, watch: Watch = silent) -> str:
    """Import the votes of a file on a question, completely or not at all, and summarise what was stored.

    A file without a question belongs to the only question of the study if they have common outputs, otherwise
    to a new question.
    """
    watch(0.0, "storing votes")
    if table.probability is not None:
        table = _like_question(study, table)
    repeats = _repeats(table, part(watch, 0.0, 0.2))
    before = _question_for(study, table.question, table.outputs, table.tasks)
    repeated = 0 if before is None else _count_repeated(study, before.id, table)
    study.forget_annotators()
    with study.change() as connection:
        spellings = describe_spellings(connection, table.annotators)
        known = number_annotators(connection, table.annotators)
        annotator_ids = np.array([known[name] for name in table.annotators], dtype=np.int32)
        scheme = widened(before.scheme if before else None, table.outputs)
        name = table.question or _free_name(study, table.path.stem)
        question = _taken_up(study, before, name, scheme)
        record = votes_record(table, annotator_ids)
        _store(study, question, 0, table.path.name, table.notices, record, part(watch, 0.2, 0.8))
    link_pictures(study, part(watch, 0.8, 1.0))
    text = f"class probabilities of {counted(len(table), 'task')} by {plain(table.annotators[0], 40)}"
    if table.probability is None:
        text = (
            f"{counted(len(table), 'vote')} by {counted(len(table.annotators), 'annotator')}"
            f" on {counted(len(table.tasks), 'task')}"
        )
    remarks = [f"{repeats:,} on a task that the annotator had labelled before"] if repeats else []
    count_text = f"all {repeated:,}" if repeated == len(table) else f"{repeated:,}"
    remarks += (
        [f"{count_text} on a task that the annotator also labels in an earlier file"] if repeated else []
    )
    text += (f" ({'; '.join(remarks)})" if remarks else "") + "."
    text += " They count again; the setting Repeated votes of the fusion changes that." if repeated else ""
    return " ".join([text, *table.notices, *spellings])


def add_true_labels(study: Study, table: TrueLabels, watch: Watch = silent) -> str:
    """Import the true classes of tasks, for the question that they answer.

    Raises `StudyError` if the study has no votes on any of these tasks.
    """
    watch(0.0, "storing truths")
    question = _question_for(study, table.question, table.classes, table.tasks, votes=False)
    if question is None:
        raise StudyError(
            "has known truths of tasks without votes in the study; import the votes first", file=table.path
        )
    scheme, notices = with_classes(question.scheme, table.classes, "the question's settings change it")
    with_votes = sum(name in study.vote_set(question.id).task_index for name in table.tasks)
    with study.change():
        number = _taken_up(study, question, question.name, scheme)
        record = truth_record(table)
        _store(study, number, 1, table.path.name, (*table.notices, *notices), record, watch)
    text = f"the truth of {counted(len(table), 'task')}"
    text += f" ({len(table) - with_votes:,} of them without votes)" if with_votes < len(table) else ""
    return " ".join([text + ".", *table.notices, *notices])


def set_scheme(study: Study, question: int, scheme: Scheme) -> None:
    """Change the scheme of a question: order of answers, classes, prior.

    Raises `StudyError` if an answer that annotators gave is missing from the scheme.
    """
    present = study.question(question).scheme
    missing = sorted(set(present.outputs) - set(scheme.outputs))
    if missing:
        raise StudyError(f"{plain(missing[0])} was given by annotators; expected it among the outputs")
    study.forget_vote_sets()
    with study.change() as connection:
        connection.execute(
            "UPDATE questions SET scheme = ? WHERE id = ?", (msgspec.json.encode(scheme).decode(), question)
        )


def order_classes(study: Study, order: Sequence[str]) -> bool:
    """Set the order of grades of all questions with only these answers and classes; False if there are none.

    `order`: grades from the lowest to the highest.
    """
    ordered = False
    for entry in study.questions():
        scheme = entry.scheme
        if not {*scheme.outputs, *scheme.classes} <= set(order):
            continue
        outputs = tuple(sorted(scheme.outputs, key=order.index))
        classes = tuple(sorted(scheme.classes, key=order.index))
        of_output = dict(zip(scheme.outputs, scheme.meaning, strict=True))
        meaning = tuple(
            OPEN if of_output[name] == OPEN else classes.index(scheme.classes[of_output[name]])
            for name in outputs
        )
        prior = scheme.prior if (outputs, classes) == (scheme.outputs, scheme.classes) else None
        set_scheme(study, entry.id, Scheme(outputs, classes, meaning, prior, ordered=True))
        ordered = True
    return ordered


def usual_meaning(outputs: Sequence[str], classes: Sequence[str]) -> tuple[int, ...]:
    """Guess the class of each output: by name, otherwise by position."""
    names = {name.casefold(): number for number, name in enumerate(classes)}
    if any(name.casefold() in names for name in outputs):
        return tuple(names.get(name.casefold(), OPEN) for name in outputs)
    return tuple(index * len(classes) // max(len(outputs), 1) for index in range(len(outputs)))


def labels_of(study: Study, question: int, run: RunEntry | None = None) -> Labels:
    """Return the votes on a question; with a run, the votes that it used."""
    crowd = study.vote_set(question, None if run is None else run.imported)
    labels = crowd.labels(study.annotators())
    if run is None or not (run.excluded or run.aliases or run.programs or run.weights):
        return labels
    labels = labels.joined(current_names(labels.annotators, run.aliases))
    return labels.without({*run.excluded, *run.programs}).with_weights(run.weights)


def programs_of(
    study: Study, question: int, programs: Sequence[str], imported: int | None = None
) -> tuple[Program, ...]:
    """Return the class probabilities of programs; a vote without probabilities is certain.

    `programs`: names of annotators. `imported`: the last import that counts; by default all count.
    """
    crowd = study.vote_set(question, imported)
    names = study.annotators()
    ids = {names[number]: row for row, number in enumerate(crowd.annotator_ids.tolist())}
    meaning = np.array(crowd.scheme.meaning)
    means_class = (meaning[:, None] == np.arange(len(crowd.scheme.classes))).astype(np.float64)
    at = np.full(len(crowd.task), -1, dtype=np.int64)
    at[crowd.scored] = np.arange(len(crowd.scored))
    listed = []
    for name in sorted(set(programs) & ids.keys()):
        votes = np.flatnonzero(crowd.annotator == ids[name])
        values = means_class[crowd.label[votes]]
        scored = at[votes] >= 0
        values[scored] = crowd.probability[at[votes[scored]]] @ means_class
        total = values.sum(axis=1, keepdims=True)
        probability = np.full((len(crowd.tasks), means_class.shape[1]), np.nan)
        probability[crowd.task[votes]] = np.where(total > 0, values / np.where(total > 0, total, 1), np.nan)
        listed.append(Program(name, probability))
    return tuple(listed)


def _like_question(study: Study, table: LabelTable) -> LabelTable:
    """Replace the names of a program's classes by the question's, which may differ in letter case."""
    question = _question_for(study, table.question, table.outputs, table.tasks)
    question = question or _question_for(study, "", table.outputs, table.tasks, votes=False)
    known = () if question is None else (*question.scheme.classes, *question.scheme.outputs)
    spelling = {name.casefold(): name for name in known}
    outputs = tuple(spelling.get(name.casefold(), name) for name in table.outputs)
    return replace(table, outputs=outputs) if len(set(outputs)) == len(outputs) else table


def labels_of_voters(study: Study, question: int, state: ReviewState) -> Labels:
    """Read the votes that count, without excluded annotators and programs; joined names are one annotator."""
    labels = labels_of(study, question)
    return labels.joined(current_names(labels.annotators, state.aliases)).without(state.apart)


def excluded_votes(
    study: Study, question: int, excluded: Sequence[str], imported: int | None = None
) -> Labels | None:
    """Return the votes that do not count, of excluded annotators and programs; None if there are none.

    `imported`: the last import that counts; by default all count.
    """
    if not excluded:
        return None
    labels = study.vote_set(question, imported).labels(study.annotators())
    out = np.isin(np.array(labels.annotators, dtype=object), list(excluded))
    left_out = labels.subset(out[labels.annotator])
    return left_out if len(left_out) else None


def decided_classes(crowd: VoteSet, review: ReviewState, question: int) -> ClassArray:
    """Return the class that the expert decided for each task, (N,) int16, `OPEN` elsewhere."""
    known = np.full(len(crowd.tasks), OPEN, dtype=np.int16)
    class_index = {name: number for number, name in enumerate(crowd.scheme.classes)}
    for task, decided in review.tasks(question).items():
        task_index = crowd.task_index.get(task)
        if task_index is not None and decided.label in class_index:
            known[task_index] = class_index[decided.label]
    return known


def decided_sets(
    crowd: VoteSet, review: ReviewState, question: int, classes: tuple[str, ...] | None = None
) -> dict[int, list[int]]:
    """Return the classes below the parent that the expert decided, by index of the task.

    `classes`: names of the classes by index; by default those of the question.
    """
    tree = class_tree(crowd.scheme.classes if classes is None else classes)
    if tree is None:
        return {}
    return {
        crowd.task_index[task]: tree.below(decided.label)
        for task, decided in review.tasks(question).items()
        if task in crowd.task_index and decided.label in tree.nodes
    }


def known_truth(study: Study, question: int) -> ClassArray:
    """Return the true class of each gold task, imported or marked by the expert, (N,) int16, or `OPEN`."""
    return with_gold(study.vote_set(question), study.review_state().gold_tasks(question))


def with_gold(crowd: VoteSet, gold: Mapping[str, str]) -> ClassArray:
    """Return the imported truths of tasks, (N,) int16, with the classes that the expert marked as gold."""
    truth = crowd.truth.copy()
    classes = crowd.scheme.classes
    for task, label in gold.items():
        if task in crowd.task_index and label in classes:
            truth[crowd.task_index[task]] = classes.index(label)
    return truth


def pictures_of(study: Study, question: int) -> dict[int, int]:
    """Return the image of each task, by their numbers."""
    crowd = study.vote_set(question)
    with study.reading() as connection:
        rows = connection.execute("SELECT task, image FROM pictures WHERE question = ?", (question,))
        return {crowd.task_index[task]: image for task, image in rows if task in crowd.task_index}


def link_pictures(study: Study, watch: Watch = silent) -> int:
    """Find the images of tasks or items, by the file's name or the task's; return the number found."""
    with study.reading() as connection:
        entries = [entry for entry in read_image_entries(connection, study.path) if entry.grid is None]
        marked = {image for (image,) in connection.execute("SELECT DISTINCT image FROM marks")}
    able = [entry for entry in entries if entry.id not in marked and entry.path is not None]
    names = ImageNames(able, study.path.parent)
    links: list[tuple[int, str, int]] = []
    named = (
        (entry.id, study.vote_set(entry.id).tasks, study.vote_set(entry.id).pictures)
        for entry in study.questions()
    )
    compared = (
        (entry.id, study.comparison_set(entry.id).items, study.comparison_set(entry.id).pictures)
        for entry in study.pair_questions()
    )
    for question, tasks, pictures in chain(named, compared) if able else ():
        for index, task in enumerate(tasks):
            if index % _SOME == 0:
                watch(index / len(tasks), "looking for pictures")
            entry = names.find(pictures.get(index, task))
            if entry is not None:
                links.append((question, task, entry.id))
    with study.change() as connection:
        connection.execute("DELETE FROM pictures")
        connection.executemany("INSERT INTO pictures(question, task, image) VALUES (?, ?, ?)", links)
    return len(links)


def _question_for(
    study: Study, name: str, labels: Sequence[str], tasks: Sequence[str], *, votes: bool = True
) -> QuestionEntry | None:
    """Find the question that a file answers; None for a new question."""
    questions = study.questions()
    named = next(
        (question for question in questions if name and question.name.casefold() == name.casefold()), None
    )
    if named is not None or (name and votes):
        return named
    shares = {
        question: sum(task in study.vote_set(question.id).task_index for task in tasks)
        for question in questions
    }
    likely = [question for question in questions if not votes or set(labels) & set(question.scheme.outputs)]
    # Several questions about the same tasks are distinguished by their answers.
    alike = {
        question: bool(set(labels) & {*question.scheme.outputs, *question.scheme.classes})
        for question in likely
    }
    best = max(likely, key=lambda number: (shares[number] > 0, alike[number], shares[number]), default=None)
    if best is None or shares[best] or (votes and len(questions) == 1):
        return best
    return next((question for question in likely if votes and question.name == UNNAMED), None)


def widened(scheme: Scheme | None, outputs: Sequence[str]) -> Scheme:
    """Add outputs to a scheme; classes that equal the outputs stay equal."""
    if scheme is None:
        return Scheme(tuple(outputs), tuple(outputs), tuple(range(len(outputs))))
    new = [name for name in outputs if name not in scheme.outputs]
    if not new:
        return scheme
    together = (*scheme.outputs, *new)
    if tuple(scheme.outputs) == _ordered(scheme.outputs):
        together = _ordered(together)
    if scheme.classes == scheme.outputs:
        return Scheme(together, together, tuple(range(len(together))), ordered=scheme.ordered)
    meaning = dict(zip(scheme.outputs, scheme.meaning, strict=True))
    classes = {name: index for index, name in enumerate(scheme.classes)}
    means_class = tuple(meaning.get(name, classes.get(name, OPEN)) for name in together)
    return Scheme(together, scheme.classes, means_class, ordered=scheme.ordered)


def with_classes(scheme: Scheme, classes: Sequence[str], remedy: str) -> tuple[Scheme, list[str]]:
    """Add the classes of ground truth to a scheme.

    If none of these is an output, also return the assumed meaning of the outputs in a sentence, which ends
    with how to change it.
    """
    new = [name for name in classes if name not in scheme.classes]
    if not new:
        return scheme, []
    if scheme.classes == scheme.outputs and not set(classes) & set(scheme.outputs):
        meaning = usual_meaning(scheme.outputs, classes)
        pairings = ", ".join(
            f"{plain(output)} for {plain(classes[index]) if index != OPEN else 'none'}"
            for output, index in zip(scheme.outputs, meaning, strict=True)
        )
        return (
            Scheme(scheme.outputs, tuple(classes), meaning, ordered=scheme.ordered),
            [f"The answers are assumed to mean: {pairings}; {remedy}."],
        )
    together = (*scheme.classes, *new)
    if all(np.isfinite(number_or_nan(name)) for name in together):
        together = _ordered(together)
    names = [scheme.classes[index] if index != OPEN else "" for index in scheme.meaning]
    meaning = tuple(together.index(name) if name in together else OPEN for name in names)
    return replace(scheme, classes=together, meaning=meaning, prior=None), []


def _taken_up(study: Study, question: QuestionEntry | None, name: str, scheme: Scheme) -> int:
    """Store a question's scheme within the current change, and return its number."""
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
    """Choose an unused name for a question without a name in its file."""
    names_in_use = study.question_names()
    names = (UNNAMED, plain(file, 80), *(f"{UNNAMED} {number}" for number in range(2, len(names_in_use) + 3)))
    return next(name for name in names if name.casefold() not in names_in_use)


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
    """Count repeated votes of an annotator on a task, in parts to save memory."""
    parts = len(table) // 1_000_000 + 1
    repeats = 0
    for part_index in range(parts):
        watch(part_index / parts, "looking for repeated votes")
        in_part = table.task % parts == part_index if parts > 1 else slice(None)
        pair = table.annotator[in_part].astype(np.int64) * len(table.tasks) + table.task[in_part]
        pair.sort()
        repeats += int((pair[1:] == pair[:-1]).sum())
    return repeats


def _count_repeated(study: Study, question: int, table: LabelTable) -> int:
    """Count the votes on tasks for which the study already has a vote of the same annotator."""
    crowd, names = study.vote_set(question), study.annotators()
    annotators = [names[number] for number in crowd.annotator_ids.tolist()]
    annotator = positions_of(table.annotators, annotators)[table.annotator]
    task = positions_of(table.tasks, crowd.tasks)[table.task]
    known = (annotator >= 0) & (task >= 0)
    if not known.any():
        return 0
    present = crowd.annotator.astype(np.int64) * len(crowd.tasks) + crowd.task
    return int(np.isin(annotator[known] * len(crowd.tasks) + task[known], present).sum())


def _ordered(names: Sequence[str]) -> tuple[str, ...]:
    numbers: NDArray[np.float64] = np.array([number_or_nan(name) for name in names])
    if np.isfinite(numbers).all():
        return tuple(names[index] for index in np.argsort(numbers, kind="stable"))
    return tuple(sorted(names, key=natural))


_INSERT = "INSERT OR REPLACE INTO contents(question, task, field, position, value) VALUES (?, ?, ?, ?, ?)"


def add_contents(study: Study, contents: TaskContents, question: int = 0) -> str:
    """Store the contents of tasks, of all questions or of one; return a sentence.

    Later contents replace earlier contents.
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
    """Split the contents of a task into the part common to both items, and the answer of each.

    Parameters
    ----------
    stored : mapping of field to text
        Prompts, and the answer of each item by the item's name.
    items : collection of str
        All compared items.
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
    """Copy the contents of tasks to another study, where questions have other numbers."""
    rows = old.execute("SELECT question, task, field, position, value FROM contents").fetchall()
    new.executemany(
        _INSERT,
        (
            (questions[number], *content)
            for question, *content in rows
            for number in ([question] if question else questions)
        ),
    )
