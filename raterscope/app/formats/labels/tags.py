"""Sets of tags: a vote with several tags becomes one vote for each tag, "present" or "absent".

Tags are in a list in one cell, in a cell with separators, in several rows with the same annotator and task,
or in separate columns of zeros and ones. An annotator who saw the task and did not give a tag votes "absent".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.array_operations import distinct_values
from raterscope.algorithms.progress import no_check, parts_of, run_parts
from raterscope.app.errors import plain, plain_names
from raterscope.app.formats.labels.votes import (
    COMMA,
    JOINT_NOTICE,
    MAX_OUTPUTS,
    SEPARATORS,
    no_label_notice,
    tags_of,
    too_many_outputs,
)
from raterscope.app.formats.records import LabelFile, LabelTable, TrueLabels, group_by_name
from raterscope.app.formats.tables import number_or_nan
from raterscope.text import counted, natural

TAGS = "tags"
"""Field of a column with the tags of a vote; and the name of a set of tags without a name."""

ABSENT_PRESENT = ("absent", "present")
MAX_TAGS = 200
_MIN_ROWS = 5
_MIN_SHARE = 0.05
_MIN_USES = 3
"""Minimum mean number of uses of a tag; parts of sentences are hardly repeated."""

_HASH = np.uint64(0x9E3779B97F4A7C15)
"""Multiplier of a multiplicative hash: 2^64 divided by the golden ratio."""

_HASHED_AT_ONCE = 1 << 18

_BINARY = ({"0", "1"}, {"false", "true"})
_OF_SET = ": "


def question_of_tag(question: str, tag: str) -> str:
    """Name the question of a tag; the set's name goes before it.

    Examples
    --------
    >>> question_of_tag("topics", "sport"), set_of_tag("topics: sport")
    ('topics: sport', ('topics', 'sport'))
    """
    return f"{(question or TAGS).replace(_OF_SET, ' - ')}{_OF_SET}{tag}"


def set_of_tag(question: str) -> tuple[str, str] | None:
    """Return the name of the set and the tag of a question; None for other questions."""
    name, separator, tag = question.partition(_OF_SET)
    return (name, tag) if separator else None


def split_tags(tables: Sequence[LabelFile]) -> tuple[LabelFile, ...]:
    """Split sets of tags into a question for each tag; other tables stay as they are.

    All files of a question have the same tags. Tags are detected if `LabelTable.tags` is None: if many votes
    have several labels that also occur elsewhere, or many annotators give several different labels to a task,
    and none twice.
    """
    votes = [table for table in tables if isinstance(table, LabelTable)]
    split: dict[int, list[LabelFile]] = {}
    truths = [table for table in tables if isinstance(table, TrueLabels)]
    for files in group_by_name(votes, "", lambda table: table.outputs).values():
        understood = _understand(files)
        if understood is None:
            for file in files:
                if len(file.outputs) > MAX_OUTPUTS:
                    raise too_many_outputs(file.outputs, file.path)
            continue
        name = next((file.question for file in files if file.question), "")
        for at, file in enumerate(files):
            of_tags = _votes_by_tag(file, understood, name)
            if not at:
                text = understood.notice(name, sum(len(each.unlabelled) for each in files))
                of_tags[0] = replace(of_tags[0], notices=(*of_tags[0].notices, text))
            split[id(file)] = [*of_tags]
    for truth in truths if not votes else ():
        understood = _understand([truth])
        if understood is not None:
            split[id(truth)] = [*_truths_by_tag(truth, understood, truth.question)]
    parts = [part for table in tables for part in split.get(id(table), [table])]
    questions = tag_questions((part.question, part.outputs) for part in parts if isinstance(part, LabelTable))
    return tuple(
        part
        for table in parts
        for part in (truths_of_tags(table, questions) if isinstance(table, TrueLabels) else (table,))
    )


def tag_questions(questions: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """List the questions of tags among questions with their answers."""
    return [name for name, outputs in questions if tuple(outputs) == ABSENT_PRESENT and set_of_tag(name)]


def truths_of_tags(truth: TrueLabels, questions: Iterable[str]) -> tuple[TrueLabels, ...]:
    """Return true labels as the truths of tags that are already questions.

    `questions`: names of the questions with the answers absent and present. The result is the truth itself if
    it has no tags, and empty if its tag is not a question.
    """
    of_tag: dict[str, dict[str, str]] = {}
    for question in questions:
        named = set_of_tag(question)
        if named is not None:
            of_tag.setdefault(named[0], {})[named[1]] = question
    if tuple(truth.classes) == ABSENT_PRESENT:
        name, tag = set_of_tag(truth.question) or ("", "")
        sets = [of_tag[name]] if name in of_tag else [tags for tags in of_tag.values() if tag in tags]
        named_questions = [tags[tag] for tags in sets if tag in tags]
        if not tag or not of_tag:
            return (truth,)
        return (replace(truth, question=named_questions[0]),) if len(named_questions) == 1 else ()
    for name, tags in of_tag.items():
        separators = _separators_of(truth, tags)
        parts = {part for label in truth.classes for part in tags_of(label, separators)}
        if not parts.isdisjoint(tags) and truth.question.casefold() in ("", name.casefold()):
            understood = _Tags(separators, tuple(tags), by_rows=False)
            return tuple(_truths_by_tag(truth, understood, name))
    return (truth,)


def votes_of_tags(
    table: LabelTable, questions: Sequence[tuple[str, Sequence[str]]]
) -> tuple[LabelTable, ...]:
    """Return votes as votes on tags that are already questions, if all labels are such tags.

    `questions`: name and outputs of each. The result is the table itself if it has other labels, or another
    question has some of them.
    """
    if table.tags is False or table.probability is not None:
        return (table,)
    names = tag_questions(questions)
    if any(name not in names and not set(outputs).isdisjoint(table.outputs) for name, outputs in questions):
        return (table,)
    of_tag: dict[str, list[str]] = {}
    for name, tag in filter(None, map(set_of_tag, names)):
        of_tag.setdefault(name, []).append(tag)
    for name, tags in of_tag.items():
        separators = tuple(
            mark
            for mark in SEPARATORS
            if any(mark in label for label in table.outputs) and not any(mark in tag for tag in tags)
        )
        parts = {part for label in table.outputs for part in tags_of(label, separators)}
        if parts <= set(tags) and table.question.casefold() in ("", name.casefold()):
            understood = _Tags(separators, tuple(sorted(parts, key=natural)), by_rows=not separators)
            first, *others = _votes_by_tag(table, understood, name)
            text = understood.notice(name, len(table.unlabelled))
            return replace(first, notices=(*first.notices, text)), *others
    return (table,)


def columns_as_tags(tables: Sequence[LabelFile]) -> tuple[LabelFile, ...]:
    """Rename the answers of questions that all have the answers 0 and 1: each becomes a tag of one set."""
    votes = [table for table in tables if isinstance(table, LabelTable)]
    answers = {name.casefold() for table in votes for name in table.outputs}
    if len(votes) < 2 or answers not in _BINARY:
        return tuple(tables)
    notice = f"{counted(len(votes), 'column')} of {' and '.join(sorted(answers))} are read as tags."
    renamed = [_as_tag(table) if isinstance(table, LabelTable | TrueLabels) else table for table in tables]
    at = tables.index(votes[0])
    first = renamed[at]
    assert isinstance(first, LabelTable)
    renamed[at] = replace(first, notices=(*first.notices, notice))
    return tuple(renamed)


def join_choice_columns(tables: Sequence[LabelTable | TrueLabels]) -> tuple[LabelTable | TrueLabels, ...]:
    """Join the questions Answer.GROUP.CHOICE of Mechanical Turk, true or false, to one question a group.

    Choices without a group, each a question of its own such as Answer.cat.on, are one question if every vote
    has exactly one of them. A group of which a vote has several choices is a set of tags.
    """
    groups: dict[str, dict[str, LabelTable]] = {}
    for table in tables:
        parts = table.question.split(".")
        if (
            isinstance(table, LabelTable)
            and len(parts) > 2
            and parts[0] == "Answer"
            and {name.casefold() for name in table.outputs} <= {"true", "false"}
        ):
            groups.setdefault(".".join(parts[:-1]), {})[parts[-1]] = table
    alone = {group: choices for group, choices in groups.items() if len(choices) == 1}
    if len(alone) > 1:
        groups["Answer"] = {group.partition(".")[2]: next(iter(of.values())) for group, of in alone.items()}
    joined: dict[str, tuple[LabelTable | TrueLabels, ...]] = {}  # by question
    for group, choices in groups.items():
        if len(choices) < 2:
            continue
        together = _join_choices(group, choices)
        named = [choice.question for choice in choices.values()]
        if together is not None and not (group == "Answer" and len(together.unlabelled)):
            joined |= {named[0]: (together,)} | dict.fromkeys(named[1:], ())
        elif together is None and group != "Answer":
            for name, choice in choices.items():
                joined[choice.question] = (replace(_as_tag(choice), question=question_of_tag(group, name)),)
    return tuple(new for table in tables for new in joined.get(table.question, (table,)))


def _join_choices(question: str, choices: Mapping[str, LabelTable]) -> LabelTable | None:
    """Join columns of true and false to one question; None if a vote has several choices."""
    outputs = tuple(sorted(choices, key=natural))
    annotators: dict[str, int] = {}
    tasks: dict[str, int] = {}
    pieces = []
    for choice, table in choices.items():
        is_true = np.array([name.casefold() == "true" for name in table.outputs])[table.label]
        person = np.array([annotators.setdefault(name, len(annotators)) for name in table.annotators])
        task = np.array([tasks.setdefault(name, len(tasks)) for name in table.tasks])
        time = np.full(len(table), math.nan) if table.time is None else table.time
        label, row = np.full(len(table), outputs.index(choice)), np.arange(len(table))
        pieces.append((person[table.annotator], task[table.task], label, time, row, is_true))
    rows = np.concatenate([np.stack(piece, axis=1) for piece in pieces])
    rows = rows[np.argsort(rows[:, 4], kind="stable")]
    chosen = rows[rows[:, 5] > 0]
    pairs = {tuple(pair) for pair in chosen[:, :2].tolist()}
    if len(pairs) < len(chosen) or not pairs:
        return None
    none = dict.fromkeys(pair for pair in map(tuple, rows[:, :2].tolist()) if pair not in pairs)
    first = next(iter(choices.values()))
    words = f"The choices {plain_names(outputs, 4, 20)} are one question: {plain(question, 40)}."
    missing = [no_label_notice(len(none))] if none else []
    return replace(
        first, question=question, annotators=tuple(annotators), tasks=tuple(tasks), outputs=outputs,
        annotator=chosen[:, 0].astype(np.int32), task=chosen[:, 1].astype(np.int32),
        label=chosen[:, 2].astype(np.int16), time=None if first.time is None else chosen[:, 3],
        pictures={tasks[first.tasks[task]]: picture for task, picture in first.pictures.items()},
        unlabelled=np.array(list(none), dtype=np.int32).reshape(-1, 2), missing=len(none), tags=False,
        notices=(words, *missing, *(text for text in first.notices if not text.endswith("no label."))),
        columns={name: of for table in choices.values() for name, of in table.columns.items()},
    )  # fmt: skip


def _as_tag(table: LabelTable | TrueLabels) -> LabelTable | TrueLabels:
    names = table.outputs if isinstance(table, LabelTable) else table.classes
    present = np.array([name.casefold() in ("1", "true") for name in names], dtype=np.int16)
    question, label = question_of_tag("", table.question), present[table.label]
    if isinstance(table, LabelTable):
        return replace(table, question=question, outputs=ABSENT_PRESENT, label=label, tags=False)
    return replace(table, question=question, classes=ABSENT_PRESENT, label=label)


@dataclass(frozen=True)
class _Tags:
    """Interpretation of the labels of a question as tags."""

    separators: tuple[str, ...]  # between the tags of a label
    tags: tuple[str, ...]
    by_rows: bool  # whether the rows of an annotator and a task are one set
    skipped: int = 0  # rare tags beyond `MAX_TAGS`

    def contained(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """Return whether each label contains each tag: (labels, tags)."""
        number = {tag: at for at, tag in enumerate(self.tags)}
        table = np.zeros((len(names), len(self.tags)), dtype=np.bool_)
        for row, name in enumerate(names):
            table[row, [number[tag] for tag in tags_of(name, self.separators) if tag in number]] = True
        return table

    def notice(self, question: str, empty: int) -> str:
        """Describe the interpretation in sentences; `empty`: number of votes without a tag."""
        names = plain_names(self.tags, 4, 20)
        of = f" of the question {plain(question, 40)}" if question else ""
        verb = "is fused" if len(self.tags) == 1 else "are fused separately"
        text = f"{counted(len(self.tags), 'tag')}{of} {verb}: {names}."
        text += f" {counted(empty, 'vote')} without a tag: every tag is absent." if empty else ""
        if self.skipped:
            text += f" The {counted(self.skipped, 'rarest tag')} beyond {MAX_TAGS} were skipped."
        return text


def _understand(files: Sequence[LabelTable] | Sequence[TrueLabels]) -> _Tags | None:
    """Find the tags of a question's labels; None if a vote has one label."""
    several = [file.tags for file in files if isinstance(file, LabelTable)]
    if False in several or not sum(map(len, files)):
        return None
    uses: dict[str, int] = {}
    for file in files:
        names = file.outputs if isinstance(file, LabelTable) else file.classes
        for name, count in zip(names, np.bincount(file.label, minlength=len(names)).tolist(), strict=True):
            uses[name] = uses.get(name, 0) + count
    separators = tuple(
        separator
        for separator in SEPARATORS
        if (True in several or _separates(separator, uses)) and (separator != COMMA or _commas_separate(uses))
    )
    separators = tuple(separator for separator in separators if any(separator in name for name in uses))
    votes = [file for file in files if isinstance(file, LabelTable)]
    by_rows = not separators and (True in several or _several_rows(votes))
    if not separators and not by_rows:
        return None
    of_tag: dict[str, int] = {}
    for name, count in uses.items():
        for tag in dict.fromkeys(tags_of(name, separators)):
            of_tag[tag] = of_tag.get(tag, 0) + count
    often = sorted(of_tag, key=lambda tag: (-of_tag[tag], natural(tag)))[:MAX_TAGS]
    return _Tags(separators, tuple(sorted(often, key=natural)), by_rows, len(of_tag) - len(often))


def _separates(separator: str, uses: Mapping[str, int]) -> bool:
    """Return whether labels are joined by a separator: in many votes, with parts that occur often.

    Labels that name the same parts in another order need not be many.
    """
    parts = {name: tags_of(name, [separator]) for name in uses}
    joint = sum(uses[name] for name in parts if len(parts[name]) > 1)
    given = sum(count * len(parts[name]) for name, count in uses.items())
    different = {part for of_name in parts.values() for part in of_name}
    are_many = joint >= max(_MIN_ROWS, _MIN_SHARE * sum(uses.values()))
    return (are_many or _have_orders(parts.values())) and given >= _MIN_USES * len(different)


def _commas_separate(uses: Mapping[str, int]) -> bool:
    """Return whether commas join tags, rather than words of a name ("carcinoma, in situ") or digits.

    The order of the parts then varies, or each is a label too.
    """
    parts = [tags_of(name, [COMMA]) for name in uses]
    different = {part for of_name in parts if len(of_name) > 1 for part in of_name}
    are_numbers = all(math.isfinite(number_or_nan(part)) for part in different)
    return not are_numbers and (_have_orders(parts) or different <= uses.keys())


def _have_orders(labels: Iterable[Sequence[str]]) -> bool:
    """Return whether two labels have the same parts in another order."""
    orders = {*map(tuple, labels)}
    return len({*map(frozenset, orders)}) < len(orders)


def _separators_of(truth: TrueLabels, tags: Iterable[str]) -> tuple[str, ...]:
    """Find the separators by which labels split into known tags."""
    known = set(tags)
    joined = {separator: [name for name in truth.classes if separator in name] for separator in SEPARATORS}
    return tuple(
        separator
        for separator, names in joined.items()
        if any(known.intersection(tags_of(name, [separator])) for name in names)
    )


def _several_rows(files: Sequence[LabelTable]) -> bool:
    """Return whether annotators give several labels to a task, never the same label twice."""
    repeats = sum(map(_most_repeats, files))
    if repeats < _fewest_several(sum(map(len, files)) - repeats):
        return False
    several = pairs = 0
    for file in files:
        pair = _pairs(file.annotator, file.task, file)
        if len(distinct_values(pair * len(file.outputs) + file.label)) < len(pair):
            return False
        numbers = np.unique(pair, return_counts=True)[1]
        several, pairs = several + int((numbers > 1).sum()), pairs + len(numbers)
    return several >= _fewest_several(pairs)


def _fewest_several(pairs: int) -> float:
    return max(_MIN_ROWS, 2 * _MIN_SHARE * pairs)


def _most_repeats(table: LabelTable) -> int:
    """Return an upper bound of the votes that repeat an annotator's vote on a task, without sorting them."""
    bits = (8 * len(table) + 1).bit_length()
    marked = np.zeros(1 << bits, dtype=np.bool_)

    def mark(first: int, last: int) -> None:
        pair = _pairs(table.annotator[first:last], table.task[first:last], table).view(np.uint64)
        marked[pair * _HASH >> np.uint64(64 - bits)] = True

    run_parts(mark, parts_of(len(table), _HASHED_AT_ONCE), no_check)
    return len(table) - int(np.count_nonzero(marked))


def _pairs(annotator: NDArray[np.integer], task: NDArray[np.integer], table: LabelTable) -> NDArray[np.int64]:
    return np.asarray(annotator.astype(np.int64) * len(table.tasks) + task)


def _votes_by_tag(table: LabelTable, understood: _Tags, question: str) -> list[LabelTable]:
    """Return the votes on each tag."""
    empty = table.unlabelled
    annotator = np.concatenate([table.annotator, empty[:, 0]])
    task = np.concatenate([table.task, empty[:, 1]])
    time = None if table.time is None else np.concatenate([table.time, np.full(len(empty), np.nan)])
    has = np.vstack(
        [understood.contained(table.outputs), np.zeros((1, len(understood.tags)), dtype=np.bool_)]
    )
    label = np.concatenate([table.label, np.full(len(empty), len(table.outputs), dtype=table.label.dtype)])
    group = np.arange(len(task))
    if understood.by_rows:
        _, first, group = np.unique(_pairs(annotator, task, table), return_index=True, return_inverse=True)
        order = np.argsort(first)
        first, group = first[order], np.argsort(order)[group]
        annotator, task, time = annotator[first], task[first], None if time is None else time[first]
    columns = {name: TAGS if field == "label" else field for name, field in table.columns.items()}
    parts = []
    for number, tag in enumerate(understood.tags):
        present = np.zeros(len(task), dtype=np.int16)
        present[group[has[label, number]]] = 1
        parts.append(
            replace(
                table, question=question_of_tag(question, tag), outputs=ABSENT_PRESENT,
                annotator=annotator, task=task, label=present, time=time, missing=0, columns=columns,
                notices=(), unlabelled=empty[:0], tags=False,
            )
        )  # fmt: skip
    notices = [
        words for words in table.notices if words not in (JOINT_NOTICE, no_label_notice(table.missing))
    ]
    parts[0] = replace(parts[0], notices=tuple(notices))
    return parts


def _truths_by_tag(truth: TrueLabels, understood: _Tags, question: str) -> Iterable[TrueLabels]:
    """Yield the truth of each tag: absent if a task's true labels do not contain it."""
    has = understood.contained([*truth.classes, ""])
    tasks = (*truth.tasks, *truth.unlabelled)
    label = np.concatenate([truth.label, np.full(len(truth.unlabelled), len(truth.classes), dtype=np.int16)])
    for number, tag in enumerate(understood.tags):
        yield replace(
            truth, question=question_of_tag(question, tag), classes=ABSENT_PRESENT,
            tasks=tasks, label=has[label, number].astype(np.int16), unlabelled=(),
            notices=() if number else truth.notices,
        )  # fmt: skip
