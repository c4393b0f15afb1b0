"""Import of labels: reads files of votes, joins them by question, and stores them before truths."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from raterscope.algorithms.labels.data import OPEN
from raterscope.algorithms.progress import Watch, silent, steps_of
from raterscope.app.errors import InputError, SkippedFiles, plain, plain_names
from raterscope.app.formats.labels import FIELDS, TAGS, read_labels, split_tags
from raterscope.app.formats.labels.table import explain_few_rows
from raterscope.app.formats.labels.tags import set_of_tag, tag_questions, truths_of_tags, votes_of_tags
from raterscope.app.formats.pairs import read_pairs
from raterscope.app.formats.records import LabelFile, LabelTable, TaskContents, TrueLabels, group_by_name
from raterscope.app.formats.sources import Source, Sources
from raterscope.app.formats.tables import UnknownColumns, holds_number
from raterscope.app.kinds.labels.runs import Question
from raterscope.app.study import Study
from raterscope.app.study.labels import (
    UNNAMED,
    add_contents,
    add_true_labels,
    add_votes,
    usual_meaning,
    widened,
    with_classes,
)
from raterscope.app.study.records import Scheme
from raterscope.app.study.vote_sets import apply_truth, join_votes, truth_record, votes_record
from raterscope.text import counted

_REMEDY = "--stands output=class changes it"
_LONGEST_PRIOR = 1 << 20
"""Maximum size of a file with a prior, in bytes."""


@dataclass(frozen=True)
class QuestionTables:
    """A question with its tables: votes and true classes."""

    name: str
    votes: tuple[LabelTable, ...]
    truths: tuple[TrueLabels, ...] = ()


@dataclass(frozen=True)
class LabelInterpretation:
    """Meaning of labels as given by options."""

    # outputs, classes: in order; empty for those in the files
    outputs: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    # pairs of an output and the class that it stands for; an empty class for none
    stands: tuple[tuple[str, str], ...] = ()
    # rows of pseudo-counts: one row per class, one number per output
    prior: tuple[tuple[float, ...], ...] | None = None
    ordered: bool | None = None  # whether the classes are grades; None to detect it
    # all outputs and classes, from the lowest to the highest; empty if not declared
    grades: tuple[str, ...] = ()

    def scheme(self, labels_given: Sequence[str], truths: Sequence[TrueLabels]) -> tuple[Scheme, list[str]]:
        """Return the scheme of a question with these outputs, and the assumptions made, in sentences.

        Raises `InputError` if outputs, classes and prior do not fit together.
        """
        grades = _named(self.grades, "--grades")
        for names, source in (
            (labels_given, "was given by annotators"),
            *((truth.classes, "is the true class of a task") for truth in truths),
        ):
            if grades:
                _refuse_unexpected(names, grades, f"{source}; expected it among --grades")
        outputs = grades or _named(self.outputs, "--outputs") or tuple(labels_given)
        _refuse_unexpected(labels_given, outputs, "was given by annotators; expected it among --outputs")
        classes = grades or _named(self.classes, "--classes")
        notices: list[str] = []
        plainly = Scheme(outputs, outputs, tuple(range(len(outputs))))
        if classes:
            scheme = Scheme(outputs, classes, usual_meaning(outputs, classes))
            if not set(classes) & set(outputs) and not self.stands:
                _, notices = with_classes(plainly, classes, _REMEDY)
            for truth in truths:
                _refuse_unexpected(
                    truth.classes, classes, "is the true class of a task; expected it among --classes"
                )
        else:
            scheme = plainly
            for truth in truths:
                scheme, guessed = with_classes(scheme, truth.classes, _REMEDY)
                notices += [] if self.stands else guessed
        scheme = replace(self._apply_meanings(scheme), ordered=True if grades else self.ordered)
        if self.prior is None:
            return scheme, notices
        try:
            return replace(scheme, prior=self.prior), notices
        except ValueError:
            raise InputError(
                f"the prior has {_shape(self.prior)}; expected {len(scheme.classes)} of {len(scheme.outputs)}"
                f" numbers above 0: one row for each of {plain_names(scheme.classes)}, a number for each of "
                f"{plain_names(scheme.outputs)}"
            ) from None

    def _apply_meanings(self, scheme: Scheme) -> Scheme:
        meaning = list(scheme.meaning)
        for output, true in self.stands:
            if output not in scheme.outputs:
                raise InputError(
                    f"{plain(output)} is no output; expected one of {plain_names(scheme.outputs)}"
                )
            if true and true not in scheme.classes:
                raise InputError(f"{plain(true)} is no class; expected one of {plain_names(scheme.classes)}")
            meaning[scheme.outputs.index(output)] = scheme.classes.index(true) if true else OPEN
        return replace(scheme, meaning=tuple(meaning))


def group_by_question(tables: Sequence[LabelFile]) -> tuple[list[QuestionTables], list[str]]:
    """Group files by their question, in the order of first appearance; also return notices on unused truths.

    Votes are grouped by `group_by_name`; files have labels in common. True classes belong to the question
    with their name, otherwise to one with some of their tasks: preferably one with the same labels, then the
    one with most of their tasks.
    """
    votes = [table for table in tables if isinstance(table, LabelTable)]
    votes_of = group_by_name(votes, UNNAMED, lambda table: table.outputs)
    truths: dict[str, list[TrueLabels]] = {key: [] for key in votes_of}
    notices = []
    has_truths = len(votes) < len(tables)
    tasks = {
        key: {name for table in tables_of_question if has_truths for name in table.tasks}
        for key, tables_of_question in votes_of.items()
    }
    outputs_of = {
        key: {name for table in tables_of_question for name in table.outputs}
        for key, tables_of_question in votes_of.items()
    }
    for truth in (table for table in tables if isinstance(table, TrueLabels)):
        key = truth.question.casefold()
        if key not in votes_of:
            key = max(votes_of, key=partial(_fit, truth, tasks, outputs_of), default="")
        matching = len(tasks[key].intersection(truth.tasks)) if votes_of else 0
        if matching < len(truth):
            lost = counted(len(truth) - matching, "task")
            notices.append(f"{plain(truth.path.name)}: the truth of {lost} without votes was skipped")
        if matching:
            truths[key].append(truth)
    questions = []
    for key, tables_of_question in votes_of.items():
        name = next((table.question for table in tables_of_question if table.question), UNNAMED)
        questions.append(QuestionTables(name, tuple(tables_of_question), tuple(truths[key])))
    return questions, notices


def _fit(
    truth: TrueLabels, tasks: Mapping[str, set[str]], outputs_of: Mapping[str, set[str]], key: str
) -> tuple[bool, bool, int]:
    """Rate the fit of true classes to a question; the greatest fits best."""
    matching = len(tasks[key].intersection(truth.tasks))
    return matching > 0, not outputs_of[key].isdisjoint(truth.classes), matching


def join_question(files: QuestionTables, understanding: LabelInterpretation) -> tuple[Question, list[str]]:
    """Join the votes and the true classes of a question. Also returns the assumptions made.

    Raises `InputError` if the labels contradict the interpretation.
    """
    together: Scheme | None = None
    number: dict[str, int] = {}
    records = []
    for table in files.votes:
        together = widened(together, table.outputs)
        annotators = [number.setdefault(name, len(number)) for name in table.annotators]
        records.append(votes_record(table, np.array(annotators, dtype=np.int32), stored=False))
    assert together is not None
    scheme, notices = understanding.scheme(together.outputs, files.truths)
    crowd = join_votes(records, scheme, len(number))
    for truth in files.truths:
        apply_truth(crowd, truth_record(truth))
    return Question(crowd.labels(tuple(number)), crowd.truth), notices


def read_prior(text: str) -> tuple[tuple[float, ...], ...]:
    """Parse the pseudo-counts of a confusion matrix: "0.5 0.3 0.05; 0.18 0.36 0.41", or a CSV file.

    A file may begin with a row of the outputs' names, and its rows with the classes' names. Raises
    `InputError` for any other text.
    """
    path = Path(text)
    rows: list[list[str]]
    if re.fullmatch(r"[\d\s.,;eE+-]*", text) and not path.is_file():
        rows = [re.split(r"[\s,]+", row.strip()) for row in text.split(";") if row.strip()]
        return _numbers(rows, None)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            content = file.read(_LONGEST_PRIOR + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise InputError(f"cannot be read as a prior: {reason}", file=path) from error
    if len(content) > _LONGEST_PRIOR:
        raise InputError("is too long for a prior; expected a row of numbers per class", file=path)
    rows = [row for row in csv.reader(content.splitlines()) if any(cell.strip() for cell in row)]
    if rows and not holds_number(rows[0][-1]):
        rows = rows[1:]
    if rows and not any(holds_number(row[0]) for row in rows):
        rows = [row[1:] for row in rows]
    return _numbers(rows, path)


def _numbers(rows: Sequence[Sequence[str]], path: Path | None) -> tuple[tuple[float, ...], ...]:
    try:
        prior = tuple(tuple(float(cell) for cell in row) for row in rows)
    except ValueError as error:
        raise InputError(
            "a prior has a row per class and a number per output, as in '2 1; 1 2'", file=path
        ) from error
    for number, row in enumerate(prior, 1):
        wrong = next((value for value in row if not (value > 0 and math.isfinite(value))), None)
        if wrong is not None:
            raise InputError(f"row {number} of the prior has {wrong:g}; expected numbers above 0", file=path)
    return prior


def _named(names: tuple[str, ...], option: str) -> tuple[str, ...]:
    if len(set(names)) != len(names):
        raise InputError(f"{option} names a value twice; expected each once, with commas between them")
    return names


def _refuse_unexpected(names: Sequence[str], expected: Sequence[str], problem: str) -> None:
    unexpected = next((name for name in names if name not in expected), None)
    if unexpected is not None:
        raise InputError(f"{plain(unexpected)} {problem}")


def _shape(prior: Sequence[Sequence[float]]) -> str:
    lengths = sorted({len(row) for row in prior})
    return f"{counted(len(prior), 'row')} of {' or '.join(map(str, lengths)) or 'no'} numbers"


Tables = tuple[LabelFile, ...]

_OF_LABELS = {name for name, _, _ in FIELDS} - {"annotator", "time"} | {TAGS}
_PAIR = {"left", "right"}


def names_label_columns(mapping: Mapping[str, str] | None) -> bool:
    """Return whether a column mapping is that of a table of labels."""
    return not _OF_LABELS.isdisjoint((mapping or {}).values())


def prefer_label_columns(error: UnknownColumns, source: Source) -> UnknownColumns:
    """Return the error for an unknown header that fits labels or pairs better than clicks."""
    assert error.file is not None
    counts = [
        name
        for at, name in enumerate(error.header)
        if name not in error.guess and all(holds_number(row[at].replace(",", ".")) for row in error.rows)
    ]
    if not {"x", "y"} <= set(error.missing):
        return error
    if len(counts) > 1:
        return explain_few_rows(source.first_rows()) or error
    try:
        if {name.casefold().strip() for name in error.header} >= _PAIR:
            read_pairs(error.file)
        else:
            read_labels(error.file)
    except UnknownColumns as other:
        return other
    return error


def read_label_files(
    paths: Sequence[Path],
    *,
    truth: bool = False,
    mappings: Mapping[Path, Mapping[str, str]] | None = None,
    annotator: str | None = None,
    skipped: SkippedFiles | None = None,
    sources: Sources | None = None,
    watch: Watch = silent,
) -> Tables:
    """Read the labels of files, all or none without `skipped`; see `formats.labels.read_labels`.

    `truth`: whether all of them are true labels.
    `mappings`: fields of columns by file, named by hand.
    `annotator`: annotator of the files that do not name theirs.
    `sources`: sources of files that may be open already.
    """
    tables: list[LabelFile] = []
    skipped = SkippedFiles(paths) if skipped is None else skipped
    sources = Sources() if sources is None else sources
    for path, step in steps_of(watch, paths):
        step(0.0, f"reading {plain(path.name)}")
        mapping = (mappings or {}).get(path)
        with skipped.reading(path):
            tables += read_labels(sources.open(path), mapping, step, truth=truth, annotator=annotator)
    return split_tags(tables)


def names_of(tables: Sequence[LabelFile]) -> list[str]:
    """List the names of tasks, and of the files that show them."""
    names: list[str] = []
    for table in tables:
        names += table.tasks
        names += table.pictures.values() if isinstance(table, LabelTable) else ()
    return names


def tasks_of(study: Study) -> tuple[str, ...]:
    """List the names of a study's tasks, and of the files that show them."""
    crowds = [study.vote_set(question.id) for question in study.questions()]
    return tuple(name for crowd in crowds for name in chain(crowd.tasks, crowd.pictures.values()) if name)


def _absent_votes(tables: Sequence[LabelFile], study: Study) -> list[LabelTable]:
    """Return votes "absent" for tags of the study that files of the same tag set do not contain."""
    parts: dict[tuple[Path, str], dict[str, LabelTable]] = {}
    for table in tables:
        if isinstance(table, LabelTable) and TAGS in table.columns.values():
            named = set_of_tag(table.question)
            if named is not None:
                parts.setdefault((table.path, named[0].casefold()), {})[named[1].casefold()] = table
    absent = []
    questions = tag_questions((entry.name, entry.scheme.outputs) for entry in study.questions())
    for question in questions:
        name, tag = set_of_tag(question) or ("", "")
        for (_, of_set), tags in parts.items():
            if of_set == name.casefold() and tag.casefold() not in tags:
                table = next(iter(tags.values()))
                text = f"The tag {plain(tag, 40)} of earlier files is absent on the tasks of this file."
                label = np.zeros_like(table.label)
                absent.append(replace(table, question=question, label=label, notices=(text,)))
    return absent


def store_labels(tables: Sequence[LabelFile], study: Study, watch: Watch = silent) -> list[str]:
    """Store labels in a study, the votes first; return the notices on tables without repetitions."""
    sentences = []
    present = [(entry.name, entry.scheme.outputs) for entry in study.questions()]
    tables = [
        part
        for table in tables
        for part in (votes_of_tags(table, present) if isinstance(table, LabelTable) else (table,))
    ]
    tables = [*tables, *_absent_votes(tables, study)]
    in_order = sorted(tables, key=lambda table: not isinstance(table, LabelTable))
    for table, step in steps_of(watch, in_order):
        if isinstance(table, LabelTable):
            stored = [add_votes(study, table, step)]
        elif isinstance(table, TaskContents):
            stored = [add_contents(study, table)]
        else:
            tags = tag_questions((entry.name, entry.scheme.outputs) for entry in study.questions())
            truths = truths_of_tags(table, tags)
            stored = [add_true_labels(study, truth, step) for truth in truths]
            if not truths:
                stored = [f"the truth of {plain(table.question, 40)} was skipped: it has no votes."]
        sentences += [f"{plain(table.path.name)}: {sentence}" for sentence in stored]
    return list(dict.fromkeys(sentences))
