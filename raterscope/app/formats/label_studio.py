"""Label Studio: marks and choices of several annotators in JSON, and export of labels.

Labels are exported as Label Studio's JSON of tasks, with one choice per task: the expert's decision as
annotation, the model's label as prediction. A choice refers to the labelling interface by the names of two
tags. The interface is therefore written beside the tasks.

References
----------
HumanSignal, "Label Studio JSON format of annotated tasks",
https://labelstud.io/guide/export.html#Label-Studio-JSON-format-of-annotated-tasks;
tasks: https://labelstud.io/guide/task_format; predictions: https://labelstud.io/guide/predictions.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar
from urllib.parse import unquote
from xml.sax.saxutils import quoteattr

from raterscope.algorithms.labels.data import ClassArray, FloatArray
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.annotations import (
    Annotation,
    AnnotationSet,
    Brush,
    Content,
    Document,
    Ellipse,
    Item,
    Kind,
    Points,
    Polygons,
    Rectangle,
    Remarks,
    Shape,
)
from raterscope.app.formats.labels.writing import DecidedLabel
from raterscope.app.formats.output_files import open_text_output
from raterscope.app.formats.points.collector import size_of
from raterscope.app.formats.untrusted import answer_text, entries, is_number, text_of

_IMAGE_KEYS = ("image", "img", "url", "file", "filename", "picture")
_AREAS = ("brush", "polygon", "ellipse")
_GEOMETRY_KEYS = {"x", "points", "rle", "start"}
_NOUNS = {"brush": "brushes", "keypoint": "keypoints", "choices": "choices", "": "marks without a type"}
_SNIFFED = 100


def recognize(path: Path, content: Any) -> Document | None:
    """Recognize decoded JSON of this format, including its short form, which is refused later."""
    if not isinstance(content, list):
        return None
    head = entries(content[:_SNIFFED])
    lists = ("annotations", "completions")
    if any("data" in task and any(isinstance(task.get(key), list) for key in lists) for task in head):
        return LabelStudioDocument(path, content)
    if any({"annotation_id", "annotator"} <= task.keys() for task in head):
        return ShortDocument(path)
    return None


class LabelStudioDocument(Document):
    """A parsed file."""

    expected: ClassVar[Mapping[Kind, str]] = {
        "points": "keypoints on images", "masks": "brushes, polygons or ellipses", "labels": "choices",
    }  # fmt: skip

    def __init__(self, path: Path, tasks: list[Any]) -> None:
        self._path, self._tasks = path, tasks

    def contents(self) -> frozenset[Content]:
        """Find which sorts of annotations there are."""
        contents: set[Content] = set()
        for task in entries(self._tasks):
            for results in (task.get("annotations"), task.get("completions"), task.get("predictions")):
                for result in entries(results):
                    for region in entries(result.get("result")):
                        contents |= _contents(region)
        return frozenset(contents)

    def holds_comparisons(self) -> bool:
        """Return whether annotators only compared objects, with the tag Pairwise."""
        results = (result for task in entries(self._tasks) for result in entries(task.get("annotations")))
        kinds = {_kind(region) for result in results for region in entries(result.get("result"))}
        return kinds == {"pairwise"}

    def sets(self, kind: Kind, remarks: Remarks, watch: Watch = silent) -> Iterator[AnnotationSet]:
        """Yield the annotations and predictions of each task.

        Cancelled annotations are skipped. Predictions are those of an annotator with the model's name. Raises
        `InputError` for an entry that is not a task.
        """
        named = [_image_name(task) if isinstance(task, dict) else "" for task in self._tasks]
        shared = {name for name, count in Counter(named).items() if name and count > 1}
        for at, task in enumerate(self._tasks):
            watch(at / len(self._tasks), "reading tasks")
            if not isinstance(task, dict):
                raise InputError("is not a task", file=self._path, field=f"task {at + 1}")
            number, name = text_of(task.get("id")) or str(at + 1), named[at]
            for entry, annotator in _annotations(task, remarks):
                regions = entry["result"]
                width, height = _size_of_set(regions)
                item = Item(
                    name,
                    f"task {number}",
                    width,
                    height,
                    distinction=f"task {number}" if name in shared else "",
                )
                yield AnnotationSet(
                    item, annotator,
                    tuple(_annotation(region, at + 1, count + 1) for count, region in enumerate(regions)),
                    is_complete=True, time=text_of(entry.get("created_at")),
                    is_truth=entry.get("ground_truth") is True,
                )  # fmt: skip


class ShortDocument(Document):
    """File in the short form JSON-MIN, which lacks the sizes of images and the names of annotators."""

    expected: ClassVar[Mapping[Kind, str]] = {"masks": "JSON"}

    def __init__(self, path: Path) -> None:
        self._path = path

    def sets(self, kind: Kind, remarks: Remarks, watch: Watch = silent) -> Iterator[AnnotationSet]:
        """Raise `InputError`: the file cannot be read."""
        raise InputError("is JSON-MIN of Label Studio; export it as JSON", file=self._path)


def _annotations(task: dict[str, Any], remarks: Remarks) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Yield annotations and predictions, each with its annotator."""
    annotations = task.get("annotations")
    for entry in entries(annotations if isinstance(annotations, list) else task.get("completions")):
        if not isinstance(entry.get("result"), list):
            continue
        if entry.get("was_cancelled") is True:
            remarks.left_out["cancelled annotations"] += 1
            continue
        yield entry, annotator_name(entry.get("completed_by"))
    for entry in entries(task.get("predictions")):
        if isinstance(entry.get("result"), list):
            yield entry | {"ground_truth": None}, f"model {text_of(entry.get('model_version'))}".strip()


def _image_name(task: dict[str, Any]) -> str:
    """Return the file name of a task's image; empty if there is none."""
    data = task.get("data")
    if not isinstance(data, dict):
        return ""
    texts = {str(key).casefold(): value for key, value in data.items() if isinstance(value, str)}
    address = next((texts[key] for key in _IMAGE_KEYS if key in texts), None)
    return text_of(_file_in(address or next(iter(texts.values()), "")))


def _file_in(address: str) -> str:
    """Return the file name in a URL or its query, as in /data/local-files/?d=smears/a.png."""
    location, _, query = address.partition("?")
    name = PurePosixPath(unquote(location)).name
    if not PurePosixPath(name).suffix:
        files = (PurePosixPath(part.partition("=")[2]) for part in unquote(query).split("&"))
        name = next((file.name for file in files if file.suffix), name)
    return name


def annotator_name(author: Any) -> str | None:
    """Return the name of the user who completed an annotation."""
    if isinstance(author, dict):
        full = f"{text_of(author.get('first_name'))} {text_of(author.get('last_name'))}".strip()
        name = full or text_of(author.get("username")) or text_of(author.get("email"))
        return name or annotator_name(author.get("id"))
    if type(author) is int:
        return f"annotator {author}"
    return text_of(author) or None


def _annotation(region: Any, task: int, number: int) -> Annotation:
    if not isinstance(region, dict):
        return Annotation("entries that are not marks", f"task {task}, mark {number}")
    kind = _kind(region)
    field = f"task {task}, {kind or 'mark'} {number}"
    answers = _answers(region)
    if answers is not None:
        return Annotation("choices", field, answers=answers, question=text_of(region.get("from_name")))
    shape = _shape(region, kind)
    noun = _NOUNS.get(kind, f"{text_of(kind)}s")
    shapes = () if shape is None else (shape,)
    return Annotation(noun, field, shapes, _label(region), size=_size(region))


def _kind(region: dict[str, Any]) -> str:
    return str(region.get("type", "")).removesuffix("labels")


def _contents(region: dict[str, Any]) -> set[Content]:
    kind = _kind(region)
    if kind == "keypoint":
        return {"points"}
    if kind in _AREAS:
        return {"areas"}
    contents: set[Content] = {"marks"} if "original_width" in region else set()
    if _answers(region) is not None:
        contents.add("labels")
    return contents or {"others"}


def _answers(region: dict[str, Any]) -> tuple[str, ...] | None:
    """Return the choices, rating or number for the task; None for those of a mark."""
    value = region.get("value")
    if not isinstance(value, dict) or not _GEOMETRY_KEYS.isdisjoint(value):
        return None
    choices = value.get("choices", value.get("taxonomy"))
    if isinstance(choices, list):
        # A choice in a tree is a list from its root.
        paths = (choice if isinstance(choice, list) else [choice] for choice in choices)
        return tuple(" / ".join(map(answer_text, path)) for path in paths) or ("",)
    rating = value.get("rating", value.get("number"))
    return (text_of(rating),) if is_number(rating) else None


def _size(region: Any) -> tuple[Any, Any] | None:
    if not isinstance(region, dict):
        return None
    width, height = region.get("original_width"), region.get("original_height")
    return None if width is None or height is None else (width, height)


def _size_of_set(regions: list[Any]) -> tuple[Any, Any]:
    """Return the first valid size, otherwise any claimed size, which is refused later."""
    claimed = [size for region in regions if (size := _size(region)) is not None]
    likely = (size for size in claimed if size_of(*size) is not None)
    return next(likely, claimed[0] if claimed else (None, None))


def _label(region: dict[str, Any]) -> str:
    value = region.get("value")
    if not isinstance(value, dict):
        return ""
    for key in (region.get("type"), "labels", "brushlabels", "polygonlabels", "ellipselabels"):
        labels = value.get(key) if isinstance(key, str) else None
        if isinstance(labels, list) and labels:
            return text_of(labels[0])
    return ""


def _shape(region: dict[str, Any], kind: str) -> Shape | None:
    """Return the shape of a region, in percent of the image except for brushes."""
    value = region.get("value")
    if not isinstance(value, dict):
        return Points(None, percent=True) if kind == "keypoint" else None
    if kind == "keypoint":
        return Points([[value.get("x"), value.get("y")]], percent=True)
    if kind == "brush":
        return Brush(value["rle"], value.get("format")) if "rle" in value else None
    if kind == "polygon":
        return Polygons([value.get("points")], percent=True)
    rotation = value.get("rotation") or 0.0
    if kind == "ellipse":
        keys = ("x", "y", "radiusX", "radiusY")
        return Ellipse({key: value.get(key) for key in keys}, rotation, percent=True)
    if kind == "rectangle":
        keys = ("x", "y", "width", "height")
        return Rectangle({key: value.get(key) for key in keys}, rotation, about_corner=True, percent=True)
    return None


_CONTROL, _OBJECT = "label", "task"
"""Names of the two tags."""

_BLOCK = 2000
_LONGEST = 10_000


def write_label_studio(
    path: Path,
    tasks: Sequence[str],
    classes: Sequence[str],
    posterior: FloatArray,
    label: ClassArray,
    *,
    model: str,
    decided: Mapping[int, DecidedLabel] | None = None,
    pictures: Mapping[int, str] | None = None,
    watch: Watch = silent,
) -> list[Path]:
    """Write tasks for Label Studio, and beside them the labelling interface to import them into, as .xml.

    Annotations have no Label Studio user, because only the importing project knows its users. They become
    those of the importing user. The expert's name and reason are in the task's data. Raises `InputError` if a
    file cannot be written.

    `path`: the JSON file.
    `tasks`, `classes`: N and J names.
    `posterior`: (N, J).
    `label`: (N,), the model's label as an index into `classes`; below 0 for none.
    `model`: name of the model of the predictions.
    `decided`: by index of the task; an empty label becomes an annotation without a choice. `pictures`: by
    index of the task; tasks without a picture show their name.
    """
    pictures, decided = pictures or {}, decided or {}
    key = "image" if pictures else "text"
    # XML cannot hold unprintable characters, and both files must use the same class names.
    choices = [plain(name, _LONGEST) for name in classes]
    with open_text_output(path) as file:
        file.write("[")
        for at, name in enumerate(tasks):
            if at % _BLOCK == 0:
                watch(at / len(tasks), "writing tasks")
            shares = posterior[at].tolist()
            data: dict[str, object] = {key: pictures.get(at, name)}
            if pictures:
                data["task"] = name
            data["probabilities"] = {
                choice: round(share, 9) for choice, share in zip(choices, shares, strict=True)
            }
            task: dict[str, object] = {"id": at + 1, "data": data, "annotations": [], "predictions": []}
            if label[at] >= 0:
                result = _choice(at, choices[label[at]])
                score = round(shares[label[at]], 9)
                task["predictions"] = [{"model_version": model, "score": score, "result": result}]
            if at in decided:
                decision = decided[at]
                data |= {"decided_by": decision.who, "reason": decision.reason}
                annotation: dict[str, object] = {
                    "ground_truth": True,
                    "result": _choice(at, plain(decision.label, _LONGEST)),
                }
                if decision.when is not None:
                    annotation["created_at"] = decision.when.isoformat(timespec="seconds")
                task["annotations"] = [annotation]
            file.write(",\n" if at else "\n")
            file.write(json.dumps(task))
        file.write("\n]\n")
    interface = path.with_suffix(".xml")
    with open_text_output(interface) as file:
        file.write(_interface(choices, key))
    return [path, interface]


def _choice(at: int, label: str) -> list[dict[str, object]]:
    if not label:
        return []
    value = {"choices": [label]}
    name = f"task-{at + 1}"
    return [{"id": name, "from_name": _CONTROL, "to_name": _OBJECT, "type": "choices", "value": value}]


def _interface(classes: Sequence[str], key: str) -> str:
    """Return the labelling interface: an image or a text, and a choice of one class with its key."""
    shown = "Image" if key == "image" else "Text"
    choices = "".join(
        f"    <Choice value={quoteattr(name)}" + (f' hotkey="{number}"' if number < 10 else "") + "/>\n"
        for number, name in enumerate(classes, start=1)
    )
    return (
        f'<View>\n  <{shown} name="{_OBJECT}" value="${key}"/>\n'
        f'  <Choices name="{_CONTROL}" toName="{_OBJECT}" choice="single">\n{choices}  </Choices>\n</View>\n'
    )
