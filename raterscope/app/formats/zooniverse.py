"""Zooniverse classification exports: point marks of both versions of the annotations, and answers.

One row is one classification: a person looked at a subject. Its `annotations` are JSON, a list of tasks. A
drawing task's value is a list of marks; version 1 tells a mark's shape by its keys (a point has x and y and
nothing of another shape), version 2 by `toolType`. Who classified a subject in a workflow that has a drawing
task looked at it, with marks or without: a question before the drawing may have led past it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.clicks import seconds_or_nan
from raterscope.app.formats.labels.gathering import Gathering, joined
from raterscope.app.formats.labels.records import LabelTable, TrueLabels
from raterscope.app.formats.records import ClickTable
from raterscope.app.formats.strangers import answer_text, decode_json, entries, text_of
from raterscope.app.formats.tables import FARTHEST, Faults, Table

__all__ = [
    "Look", "answers_of", "has_answers", "is_export", "looks_of", "marks_of", "sizes_in", "subject_name",
]  # fmt: skip

_NEEDED = ("classification_id", "user_name", "metadata", "annotations", "subject_data", "subject_ids")
_OTHER_SHAPE = {
    "r", "rx", "ry", "radius", "width", "height", "x1", "x2", "points", "pathX", "pathY", "angle", "rotation",
    "x_center", "y_center", "x_rotate", "x_start", "x_end", "vertices", "xRadius",
}  # fmt: skip
_NAME_KEYS = ("filename", "imagename", "image", "file", "name", "imagefile")
_IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".gif", ".bmp")
_MOST_TASKS = 10_000
_DEEPEST = 8
_MOST_FRAMES = 1000
_NO_ANSWER = "no answer"
_LONGEST_QUESTION = 120


@dataclass
class Look:
    """One classification: who looked at which subject, with points given as (frame, x, y)."""

    row: int
    person: str
    subject: str
    workflow: str
    points: list[tuple[int, float, float]] = field(default_factory=list)
    time: float = math.nan


def is_export(table: Table) -> bool:
    """Tell whether a table is a classification export."""
    return set(_NEEDED) <= set(table.header)


def marks_of(table: Table, watch: Watch = silent) -> ClickTable:
    """Read the point marks of a classification export.

    Images are named by the file name in the subject's data, else by the subject's number; the frames of a
    subject with several are images of their own. Of a person's repeated classifications of a subject the
    first counts. Marks of other shapes are counted and left out.

    Raises
    ------
    InputError
        For a file without point marks, and for the first line that cannot be read.
    """
    faults, shapes = Faults(table), Counter[str]()
    looks, drawing, repeats = looks_of(table, faults, shapes, watch)
    faults.refuse()
    looks = [look for look in looks if look.workflow in drawing]
    if not any(look.points for look in looks):
        found = ", ".join(f"{count:,} of {plain(shape, 20)}" for shape, count in shapes.most_common(6))
        raise InputError(
            f"has no point marks{f' (marks: {found})' if found else ''}; expected some", file=table.path
        )
    names, sizes = _subjects(table, looks)
    notices = _notices(looks, shapes, repeats)
    return _click_table(table, looks, names, sizes, notices)


def looks_of(
    table: Table, faults: Faults, shapes: Counter[str], watch: Watch = silent
) -> tuple[list[Look], set[str], int]:
    """Read every row: who looked at what, with which points.

    Parameters
    ----------
    table : Table
    faults : Faults
        Where rows that cannot be read are noted.
    shapes : Counter
        Where marks that are no points are counted.
    watch : Watch

    Returns
    -------
    looks : list of Look
        Of a person's repeated classifications of a subject the first.
    drawing : set of workflows that have a drawing task
    repeats : int
    """
    columns = {name: table.column(name) for name in _NEEDED}
    workflow = table.column("workflow_id") if "workflow_id" in table.header else ("",) * len(table)
    created = table.column("created_at") if "created_at" in table.header else ("",) * len(table)
    user = table.column("user_id") if "user_id" in table.header else ("",) * len(table)
    looks: list[Look] = []
    drawing: set[str] = set()
    seen: set[tuple[str, str]] = set()
    repeats = 0
    for row in range(len(table)):
        if row % 500 == 0:
            watch(0.8 + 0.2 * row / len(table), f"reading classification {row + 1:,} of {len(table):,}")
        subject = columns["subject_ids"][row].strip()
        if not subject:
            faults.add([row], "subject_ids", "is empty; expected the number of a subject")
            continue
        person = _person_of(columns["user_name"][row], user[row], columns["classification_id"][row])
        try:
            marks = list(_marks_in(decode_json(columns["annotations"][row])))
        except ValueError as error:
            faults.add([row], "annotations", f"cannot be read ({error}); expected a JSON list of tasks")
            continue
        if marks:
            drawing.add(workflow[row])
        again = (person, subject) in seen
        seen.add((person, subject))
        repeats += again
        if again:
            continue
        look = Look(row, person, subject, workflow[row], time=seconds_or_nan(created[row]))
        for mark in marks:
            _take(mark, look, shapes, faults)
        looks.append(look)
    return looks, drawing, repeats


def _person_of(name: str, number: str, classification: str) -> str:
    """Name who made a classification; who was not logged in has a name of the export's own."""
    return name.strip() or number.strip() or f"unnamed in classification {classification.strip()}"


def _distinct_names(names: Mapping[str, str]) -> dict[str, str]:
    """Add the subject's number to the names that several subjects share."""
    shared = Counter(names.values())
    return {key: name if shared[name] == 1 else f"{name} (subject {key})" for key, name in names.items()}


def _marks_in(tasks: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Find the marks in a list of tasks; combined tasks hold lists of tasks."""
    if not isinstance(tasks, list) or len(tasks) > _MOST_TASKS or depth > _DEEPEST:
        raise ValueError("no list of tasks" if not isinstance(tasks, list) else "too many tasks")
    for task in tasks:
        value = task.get("value") if isinstance(task, dict) else None
        if not isinstance(value, list):
            continue
        for item in value:
            if isinstance(item, dict) and ("tool" in item or "toolIndex" in item or "toolType" in item):
                yield item
            elif isinstance(item, dict) and "task" in item:
                yield from _marks_in([item], depth + 1)


def _take(mark: dict[str, Any], look: Look, shapes: Counter[str], faults: Faults) -> None:
    kind = mark.get("toolType")
    if kind is None:
        kind = "other shapes" if _OTHER_SHAPE & mark.keys() or "x" not in mark else "point"
    if kind != "point":
        shapes[str(kind)] += 1
        return
    x, y, frame = mark.get("x"), mark.get("y"), mark.get("frame", 0)
    if not (_is_place(x) and _is_place(y)):
        faults.add(
            [look.row], "annotations", f"has a point at {plain((x, y), 40)}; expected places in pixels"
        )
    elif frame is not None and (type(frame) is not int or not 0 <= frame < _MOST_FRAMES):
        faults.add([look.row], "annotations", f"has a point on frame {plain(frame, 20)}; expected a number")
    else:
        look.points.append((frame or 0, float(x), float(y)))


def _is_place(value: Any) -> TypeGuard[float]:
    return type(value) in (int, float) and abs(value) <= FARTHEST


def _subjects(
    table: Table, looks: list[Look]
) -> tuple[dict[str, str], dict[tuple[str, int], tuple[float, float]]]:
    """Name each subject and tell the size of each of its frames, where the export says."""
    data, meta = table.column("subject_data"), table.column("metadata")
    names: dict[str, str] = {}
    sizes: dict[tuple[str, int], tuple[float, float]] = {}
    for look in looks:
        if look.subject not in names:
            names[look.subject] = subject_name(data[look.row], look.subject)
        if (look.subject, 0) not in sizes:
            for frame, size in sizes_in(meta[look.row]):
                sizes.setdefault((look.subject, frame), size)
    return _distinct_names(names), sizes


def subject_name(text: str, subject: str) -> str:
    """Name a subject by the file name in its data (JSON), else by its number."""
    try:
        data = decode_json(text)
    except ValueError:
        return subject
    inner = data.get(subject, data) if isinstance(data, dict) else None
    if not isinstance(inner, dict):
        return subject
    texts = {
        "".join(letter for letter in str(key).casefold() if letter.isalnum()): value.strip()
        for key, value in inner.items()
        if isinstance(value, str) and 0 < len(value.strip()) <= 200
    }
    named = next((texts[key] for key in _NAME_KEYS if key in texts), None)
    looks_so = next((value for value in texts.values() if value.casefold().endswith(_IMAGE_SUFFIXES)), None)
    return PurePath(named or looks_so or subject).name or subject


def sizes_in(text: str) -> Iterator[tuple[int, tuple[float, float]]]:
    """Find the size of each frame, where a classification's metadata (JSON) tells it."""
    try:
        data = decode_json(text)
    except ValueError:
        return
    frames = data.get("subject_dimensions") if isinstance(data, dict) else None
    for frame, one in enumerate(frames[:_MOST_FRAMES] if isinstance(frames, list) else ()):
        if isinstance(one, dict):
            width, height = one.get("naturalWidth"), one.get("naturalHeight")
            if _is_place(width) and _is_place(height) and width > 0 and height > 0:
                yield frame, (float(width), float(height))


def _notices(looks: list[Look], shapes: Counter[str], repeats: int) -> tuple[str, ...]:
    said = []
    if shapes:
        found = ", ".join(f"{plain(shape, 20)} {count:,}" for shape, count in shapes.most_common(6))
        said.append(f"{sum(shapes.values()):,} marks are no points and were left out ({found}).")
    if repeats:
        said.append(
            f"{repeats:,} repeated classifications by the same person were left out; the first counts."
        )
    frames = {frame for look in looks for frame, _, _ in look.points}
    if frames - {0}:
        said.append(
            f"Subjects have up to {max(frames) + 1} frames: each frame with marks is an image of its own."
        )
    return tuple(said)


def _click_table(
    table: Table,
    looks: list[Look],
    names: Mapping[str, str],
    sizes: Mapping[tuple[str, int], tuple[float, float]],
    notices: tuple[str, ...],
) -> ClickTable:
    marked: dict[str, set[int]] = {}
    for look in looks:
        marked.setdefault(look.subject, set()).update(frame for frame, _, _ in look.points)
    people: dict[str, int] = {}
    images: dict[tuple[str, int], int] = {}
    lines: list[int] = []
    looked: set[tuple[int, int]] = set()
    rows: list[tuple[int, int, float, float, float]] = []
    for look in looks:
        person = people.setdefault(look.person, len(people))
        for frame in sorted(marked[look.subject] or {0}):
            if (look.subject, frame) not in images:
                images[look.subject, frame] = len(images)
                lines.append(table.lines[look.row])
            looked.add((person, images[look.subject, frame]))
        for frame, x, y in look.points:
            rows.append((person, images[look.subject, frame], x, y, look.time))
    columns = np.array(rows, dtype=np.float64).reshape(-1, 5)
    time = columns[:, 4]
    return ClickTable(
        path=table.path,
        annotators=tuple(people),
        images=tuple(names[subject] + (f" frame {frame + 1}" if frame else "") for subject, frame in images),
        annotator=columns[:, 0].astype(np.int64),
        image=columns[:, 1].astype(np.int64),
        x=columns[:, 2].copy(),
        y=columns[:, 3].copy(),
        time=time.copy() if np.isfinite(time).any() else None,
        looked=frozenset(looked),
        extents={number: sizes[key] for key, number in images.items() if key in sizes},
        lines=tuple(lines),
        notices=notices,
    )


class _Vote(NamedTuple):
    question: str
    words: str
    annotator: str
    subject: str
    answer: str | None
    time: float


def has_answers(table: Table, *, alone: bool) -> bool:
    """Find out by some rows of an export whether it holds answers; `alone` if it holds no marks."""
    answers = 0
    for cell in table.column("annotations"):
        try:
            tasks = decode_json(cell)
            if alone and any(True for _ in _marks_in(tasks)):
                return False
            answers += any(isinstance(answer, str) for _, _, answer in _answers(tasks))
        except ValueError:
            continue
    return answers > 0


def answers_of(table: Table, watch: Watch = silent) -> tuple[LabelTable | TrueLabels, ...]:
    """Read the answers to questions with one answer, with several, and of a survey.

    Several answers at once, and several animals of a survey, are one label. Drawings, texts, sliders and
    drop-downs are counted and left out. A question is the same within a workflow.

    Raises
    ------
    InputError
        For a file without answers, and for the first line that cannot be read.
    """
    gathering = Gathering(table.path)
    column = {
        name: table.column(name) if name in table.header else ("",) * len(table)
        for name in ("user_name", "user_id", "classification_id", "workflow_id", "created_at", "annotations",
                     "subject_data", "subject_ids")
    }  # fmt: skip
    several = len(set(column["workflow_id"])) > 1
    names: dict[str, str] = {}
    for row, subject in enumerate(map(str.strip, column["subject_ids"])):
        if subject and subject not in names:
            names[subject] = subject_name(column["subject_data"][row], subject)
    tasks_of = _distinct_names(names)
    votes = list(_votes(table, column, several, watch))
    # An empty answer may be to a drawing or to a choice: the answers of others show which.
    drawn = {vote.question for vote in votes if vote.answer is None}
    for vote in votes:
        if vote.answer is None or vote.question in drawn:
            gathering.left_out["drawings, texts, sliders and drop-downs"] += 1
            continue
        name = names[vote.subject]
        gathering.add(
            vote.question, vote.annotator, tasks_of[vote.subject], vote.answer, time=vote.time,
            picture=name if name != vote.subject else "",
            words=f"{vote.question}: {vote.words}" if vote.words else vote.question,
        )  # fmt: skip
    return gathering.tables()


def _votes(table: Table, column: Mapping[str, Sequence[str]], several: bool, watch: Watch) -> Iterator[_Vote]:
    for row in range(len(table)):
        if row % 200 == 0:
            watch(0.8 + 0.2 * row / len(table), f"reading classification {row + 1:,} of {len(table):,}")
        subject = column["subject_ids"][row].strip()
        if not subject:
            raise InputError(
                "is empty; expected the number of a subject",
                file=table.path, line=table.lines[row], field="subject_ids",
            )  # fmt: skip
        person = _person_of(*(column[name][row] for name in ("user_name", "user_id", "classification_id")))
        time = seconds_or_nan(column["created_at"][row])
        try:
            found = list(_answers(decode_json(column["annotations"][row])))
        except ValueError as error:
            raise InputError(
                f"cannot be read ({error}); expected a JSON list of tasks",
                file=table.path, line=table.lines[row], field="annotations",
            ) from None  # fmt: skip
        for task, words, answer in found:
            question = f"{task} of workflow {column['workflow_id'][row]}" if several else task
            yield _Vote(question, words, person, subject, answer, time)


def _answers(tasks: Any, depth: int = 0) -> Iterator[tuple[str, str, str | None]]:
    """Find the answers in a list of tasks: task, question and answer; None for what is no label."""
    if not isinstance(tasks, list) or len(tasks) > _MOST_TASKS or depth > _DEEPEST:
        raise ValueError("no list of tasks" if not isinstance(tasks, list) else "too many tasks")
    for task in entries(tasks):
        if "markIndex" in task:
            continue  # said of a mark, and not of the subject
        value = task.get("value")
        if any("task" in one and "value" in one for one in entries(value)):
            yield from _answers(value, depth + 1)
            continue
        words = " ".join(str(task.get("task_label") or "").replace("*", "").split())
        if len(words) > _LONGEST_QUESTION:
            words = words[: _LONGEST_QUESTION - 1] + "…"
        yield text_of(task.get("task")), words, _answer(task, value)


def _answer(task: dict[str, Any], value: Any) -> str | None:
    if str(task.get("taskType", "")).startswith(("text", "slider", "dropdown", "drawing")):
        return None
    if value is None:
        return ""
    if type(value) in (str, int):
        return answer_text(value)
    if not isinstance(value, list):
        return None
    if not value and "tool" not in task:
        return _NO_ANSWER
    if all(type(one) in (str, int) for one in value):
        return joined([answer_text(one) for one in value])
    if all(isinstance(one, dict) and isinstance(one.get("choice"), str) for one in value):
        return joined([answer_text(one["choice"]) for one in value])
    return None
