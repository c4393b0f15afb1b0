"""Zooniverse classification exports: point marks of both versions of the annotations, and answers.

One row is one classification of one subject by one volunteer. Its `annotations` are JSON, a list of tasks.
The value of a drawing task is a list of marks. In version 1 the keys of a mark determine its shape (a point
has x and y and no key of another shape); in version 2 `toolType` does. A volunteer who classified a subject
in a workflow with a drawing task has viewed the subject, even without marks, because a question may skip the
drawing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import PurePath
from typing import Any, ClassVar, NamedTuple, TypeGuard

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.annotations import (
    Annotation,
    AnnotationSet,
    Content,
    Document,
    Item,
    Kind,
    Points,
    Remarks,
    join_choices,
)
from raterscope.app.formats.signatures import IMAGE_SUFFIXES
from raterscope.app.formats.tables import FARTHEST, Faults, Table
from raterscope.app.formats.untrusted import answer_text, decode_json, entries, text_of

_NEEDED = ("classification_id", "user_name", "metadata", "annotations", "subject_data", "subject_ids")
_OTHER_SHAPE = {
    "r", "rx", "ry", "radius", "width", "height", "x1", "x2", "points", "pathX", "pathY", "angle", "rotation",
    "x_center", "y_center", "x_rotate", "x_start", "x_end", "vertices", "xRadius",
}  # fmt: skip
_NAME_KEYS = ("filename", "imagename", "image", "file", "name", "imagefile")
_MAX_TASKS = 10_000
_DEEPEST = 8
_MAX_FRAMES = 1000
_NO_ANSWER = "no answer"
_LONGEST_QUESTION = 120


@dataclass
class Classification:
    """Row of an export, with its points."""

    row: int
    annotator: str
    subject: str
    workflow: str
    points: list[tuple[int, float, float]] = field(default_factory=list)  # list of (frame, x, y)
    tools: list[str] = field(default_factory=list)  # label of the tool of each point
    time: str = ""  # as in the export


def is_export(table: Table) -> bool:
    """Return whether a table is a classification export."""
    return set(_NEEDED) <= set(table.header)


class ZooniverseDocument(Document):
    """Classification export. The JSON of a row is decoded when its annotations are read.

    `table`: the complete export, or its first rows, which are enough for `contents`.
    """

    expected: ClassVar[Mapping[Kind, str]] = {"points": "point marks", "labels": "answers"}

    def __init__(self, table: Table) -> None:
        self._table = table

    def contents(self) -> frozenset[Content]:
        """Detect whether there are answers and marks; rows that cannot be read are skipped.

        An empty answer may belong to a drawing, and alone does not count as an answer.
        """
        table, contents = self._table, set[Content]()
        answered: set[tuple[str, str]] = set()
        drawn: set[tuple[str, str]] = set()
        workflows = table.column("workflow_id") if "workflow_id" in table.header else ("",) * len(table)
        for cell, workflow in zip(table.column("annotations"), workflows, strict=True):
            try:
                tasks = decode_json(cell)
                if any(True for _ in _marks_in(tasks)):
                    contents.add("marks")
                for task, _, answer in _answers(tasks):
                    if answer is None:
                        drawn.add((workflow, task))
                    elif answer not in ("", _NO_ANSWER):
                        answered.add((workflow, task))
            except ValueError:
                continue
        if answered - drawn:
            contents.add("labels")
        return frozenset(contents)

    def sets(self, kind: Kind, remarks: Remarks, watch: Watch = silent) -> Iterator[AnnotationSet]:
        """Yield the points of each classification by frame, or each answer as a separate set.

        A volunteer's first classification of a subject yields points. An image has the name of the file in
        the subject's data, otherwise the subject's number; each frame with marks is an image. Several answers
        at once, and several animals of a survey, are one label. A question is the same within a workflow.
        Drawings, texts, sliders and drop-downs are not labels. Raises `InputError` for an export without
        point marks, and for the first row that cannot be read.
        """
        return self._points(remarks, watch) if kind == "points" else self._labels(watch)

    def _points(self, remarks: Remarks, watch: Watch) -> Iterator[AnnotationSet]:
        table, faults, shapes = self._table, Faults(self._table), Counter[str]()
        classifications, drawing, repeats = parse_classifications(table, faults, shapes, watch)
        faults.refuse()
        classifications = [
            classification for classification in classifications if classification.workflow in drawing
        ]
        if not any(classification.points for classification in classifications):
            others = ", ".join(f"{count:,} of {plain(shape, 20)}" for shape, count in shapes.most_common(6))
            raise InputError(
                f"has no point marks{f' (marks: {others})' if others else ''}; expected some", file=table.path
            )
        remarks.notices += _notices(classifications, shapes, repeats)
        names, sizes = _subjects(table, classifications)
        frames: dict[str, set[int]] = {}
        for classification in classifications:
            frames.setdefault(classification.subject, set()).update(
                frame for frame, _, _ in classification.points
            )
        items: dict[tuple[str, int], Item] = {}
        for classification in classifications:
            for frame in sorted(frames[classification.subject] or {0}):
                key = classification.subject, frame
                if key not in items:
                    name = names[classification.subject] + (f" frame {frame + 1}" if frame else "")
                    width, height = sizes.get(key, (None, None))
                    items[key] = Item(
                        name, width=width, height=height, line=table.lines[classification.row],
                        subject=classification.subject,
                    )  # fmt: skip
                marked = [
                    (tool, point[1:])
                    for tool, point in zip(classification.tools, classification.points, strict=True)
                    if point[0] == frame
                ]
                marks = tuple(
                    Annotation("points", "annotations", (Points([point for _, point in group]),), tool)
                    for tool, group in groupby(marked, itemgetter(0))
                )
                yield AnnotationSet(
                    items[key], classification.annotator, marks, is_complete=True, time=classification.time
                )

    def _labels(self, watch: Watch) -> Iterator[AnnotationSet]:
        table = self._table
        column = {
            name: table.column(name) if name in table.header else ("",) * len(table)
            for name in ("user_name", "user_id", "classification_id", "workflow_id", "created_at",
                         "annotations", "subject_data", "subject_ids")
        }  # fmt: skip
        several = len(set(column["workflow_id"])) > 1
        names: dict[str, str] = {}
        for row, subject in enumerate(map(str.strip, column["subject_ids"])):
            if subject and subject not in names:
                names[subject] = name_subject(column["subject_data"][row], subject)
        shared = Counter(names.values())
        items = {
            subject: Item(
                name if name != subject else "", subject,
                distinction=f"subject {subject}" if shared[name] > 1 else "", subject=subject,
            )
            for subject, name in names.items()
        }  # fmt: skip
        votes = list(_votes(table, column, several, watch))
        # An empty answer may belong to a drawing or to a choice; other answers show which.
        drawn = {vote.question for vote in votes if vote.answer is None}
        for vote in votes:
            is_label = vote.answer is not None and vote.question not in drawn
            answer = Annotation(
                "drawings, texts, sliders and drop-downs", "annotations",
                answers=(vote.answer or "",) if is_label else (), question=vote.question,
                wording=f"{vote.question}: {vote.wording}" if vote.wording else "",
            )  # fmt: skip
            yield AnnotationSet(items[vote.subject], vote.annotator, (answer,), time=vote.time)


def parse_classifications(
    table: Table, faults: Faults, shapes: Counter[str], watch: Watch = silent
) -> tuple[list[Classification], set[str], int]:
    """Read every row: annotator, subject and points; return results, workflows and repeats.

    `faults`: collects the rows that cannot be read. `shapes`: counts marks that are not points. The workflows
    are those with a drawing task. Only the first classification of a subject by each volunteer in one of them
    counts, also if they answered a question on the subject before; the number of others is returned as
    repeats.
    """
    columns = {name: table.column(name) for name in _NEEDED}
    workflow = table.column("workflow_id") if "workflow_id" in table.header else ("",) * len(table)
    created = table.column("created_at") if "created_at" in table.header else ("",) * len(table)
    user = table.column("user_id") if "user_id" in table.header else ("",) * len(table)
    parsed: list[tuple[Classification, list[dict[str, Any]]]] = []
    drawing: set[str] = set()
    for row in range(len(table)):
        if row % 500 == 0:
            watch(0.8 + 0.2 * row / len(table), f"reading classification {row + 1:,} of {len(table):,}")
        subject = columns["subject_ids"][row].strip()
        if not subject:
            faults.add([row], "subject_ids", "is empty; expected the number of a subject")
            continue
        annotator = _annotator_of(columns["user_name"][row], user[row], columns["classification_id"][row])
        try:
            marks = list(_marks_in(decode_json(columns["annotations"][row])))
        except ValueError as error:
            faults.add([row], "annotations", f"cannot be read ({error}); expected a JSON list of tasks")
            continue
        if marks:
            drawing.add(workflow[row])
        parsed.append((Classification(row, annotator, subject, workflow[row], time=created[row]), marks))
    parsed.sort(key=lambda pair: pair[0].workflow not in drawing)
    first: dict[tuple[str, str], Classification] = {}
    for classification, marks in parsed:
        key = classification.annotator, classification.subject
        if first.setdefault(key, classification) is classification:
            for mark in marks:
                _add_point(mark, classification, shapes, faults)
    drawn = sum(classification.workflow in drawing for classification, _ in parsed)
    kept = sum(classification.workflow in drawing for classification in first.values())
    return list(first.values()), drawing, drawn - kept


def _annotator_of(name: str, number: str, classification: str) -> str:
    """Return a volunteer's name, or a name from the classification if they were not logged in."""
    return name.strip() or number.strip() or f"unnamed in classification {classification.strip()}"


def _distinct_names(names: Mapping[str, str]) -> dict[str, str]:
    """Add the subject's number to the names that several subjects share."""
    shared = Counter(names.values())
    return {key: name if shared[name] == 1 else f"{name} (subject {key})" for key, name in names.items()}


def _marks_in(tasks: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Find the marks in a list of tasks; combined tasks hold lists of tasks."""
    if not isinstance(tasks, list) or len(tasks) > _MAX_TASKS or depth > _DEEPEST:
        raise ValueError("not a list of tasks" if not isinstance(tasks, list) else "too many tasks")
    for task in tasks:
        value = task.get("value") if isinstance(task, dict) else None
        if not isinstance(value, list):
            continue
        for item in value:
            if isinstance(item, dict) and ("tool" in item or "toolIndex" in item or "toolType" in item):
                yield item
            elif isinstance(item, dict) and "task" in item:
                yield from _marks_in([item], depth + 1)


def _add_point(
    mark: dict[str, Any], classification: Classification, shapes: Counter[str], faults: Faults
) -> None:
    kind = mark.get("toolType")
    if kind is None:
        kind = "other shapes" if _OTHER_SHAPE & mark.keys() or "x" not in mark else "point"
    if kind != "point":
        shapes[str(kind)] += 1
        return
    x, y, frame = mark.get("x"), mark.get("y"), mark.get("frame", 0)
    if not (_is_coordinate(x) and _is_coordinate(y)):
        problem = f"has a point at {plain((x, y), 40)}; expected positions in pixels"
    elif frame is not None and (type(frame) is not int or not 0 <= frame < _MAX_FRAMES):
        problem = f"has a point on frame {plain(frame, 20)}; expected a number"
    else:
        classification.points.append((frame or 0, float(x), float(y)))
        classification.tools.append(_tool_of(mark))
        return
    faults.add([classification.row], "annotations", problem)


def _tool_of(mark: dict[str, Any]) -> str:
    """Return the label of a mark's tool, otherwise its number."""
    label = text_of(mark.get("tool_label"))
    number = mark.get("toolIndex", mark.get("tool"))
    return label or (f"tool {number + 1}" if type(number) is int and number >= 0 else "")


def _is_coordinate(value: Any) -> TypeGuard[float]:
    return type(value) in (int, float) and abs(value) <= FARTHEST


def _subjects(
    table: Table, classifications: list[Classification]
) -> tuple[dict[str, str], dict[tuple[str, int], tuple[float, float]]]:
    """Return the name of each subject, and the sizes of its frames if the export has them."""
    data, meta = table.column("subject_data"), table.column("metadata")
    names: dict[str, str] = {}
    sizes: dict[tuple[str, int], tuple[float, float]] = {}
    for classification in classifications:
        if classification.subject not in names:
            names[classification.subject] = name_subject(data[classification.row], classification.subject)
        if (classification.subject, 0) not in sizes:
            for frame, size in read_frame_sizes(meta[classification.row]):
                sizes.setdefault((classification.subject, frame), size)
    return _distinct_names(names), sizes


def name_subject(text: str, subject: str) -> str:
    """Name a subject by the file name in its data (JSON), otherwise by its number."""
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
    by_key = next((texts[key] for key in _NAME_KEYS if key in texts), None)
    by_suffix = next((value for value in texts.values() if value.casefold().endswith(IMAGE_SUFFIXES)), None)
    return PurePath(by_key or by_suffix or subject).name or subject


def read_frame_sizes(text: str) -> Iterator[tuple[int, tuple[float, float]]]:
    """Yield the size of each frame, if a classification's metadata (JSON) contains it."""
    try:
        data = decode_json(text)
    except ValueError:
        return
    frames = data.get("subject_dimensions") if isinstance(data, dict) else None
    for frame, size in enumerate(frames[:_MAX_FRAMES] if isinstance(frames, list) else ()):
        if isinstance(size, dict):
            width, height = size.get("naturalWidth"), size.get("naturalHeight")
            if _is_coordinate(width) and _is_coordinate(height) and width > 0 and height > 0:
                yield frame, (float(width), float(height))


def _notices(classifications: list[Classification], shapes: Counter[str], repeats: int) -> list[str]:
    messages = []
    if shapes:
        kinds = ", ".join(f"{plain(shape, 20)} {count:,}" for shape, count in shapes.most_common(6))
        messages.append(
            f"{sum(shapes.values()):,} marks were skipped, because they are not points ({kinds})."
        )
    if repeats:
        messages.append(
            f"{repeats:,} repeated classifications by the same person were skipped; the first counts."
        )
    frames = {frame for classification in classifications for frame, _, _ in classification.points}
    if frames - {0}:
        messages.append(
            f"Subjects have up to {max(frames) + 1} frames; each frame with marks becomes an image."
        )
    return messages


class _Vote(NamedTuple):
    question: str
    wording: str
    annotator: str
    subject: str
    answer: str | None
    time: str


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
        annotator = _annotator_of(
            *(column[name][row] for name in ("user_name", "user_id", "classification_id"))
        )
        try:
            answers = list(_answers(decode_json(column["annotations"][row])))
        except ValueError as error:
            raise InputError(
                f"cannot be read ({error}); expected a JSON list of tasks",
                file=table.path, line=table.lines[row], field="annotations",
            ) from None  # fmt: skip
        for task, wording, answer in answers:
            question = f"{task} of workflow {column['workflow_id'][row]}" if several else task
            yield _Vote(question, wording, annotator, subject, answer, column["created_at"][row])


def _answers(tasks: Any, depth: int = 0) -> Iterator[tuple[str, str, str | None]]:
    """Yield task, question and answer of a list of tasks; the answer is None if it is not a label."""
    if not isinstance(tasks, list) or len(tasks) > _MAX_TASKS or depth > _DEEPEST:
        raise ValueError("not a list of tasks" if not isinstance(tasks, list) else "too many tasks")
    for task in entries(tasks):
        if "markIndex" in task:
            continue  # about a mark, not about the subject
        value = task.get("value")
        if any("task" in entry and "value" in entry for entry in entries(value)):
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
    if all(type(choice) in (str, int) for choice in value):
        return join_choices([answer_text(choice) for choice in value])
    if all(isinstance(choice, dict) and isinstance(choice.get("choice"), str) for choice in value):
        return join_choices([answer_text(choice["choice"]) for choice in value])
    return None
