"""Label Studio: marks and choices in JSON, several annotators a task.

References
----------
HumanSignal, "Label Studio JSON format of annotated tasks",
https://labelstud.io/guide/export.html#Label-Studio-JSON-format-of-annotated-tasks.
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
from raterscope.app.formats.output_files import replacing
from raterscope.app.formats.points.collector import size_of
from raterscope.app.formats.untrusted import answer_text, entries, is_number, text_of

__all__ = ["LabelStudioDocument", "recognize", "write_label_studio"]

_IMAGE_KEYS = ("image", "img", "url", "file", "filename", "picture")
_AREAS = ("brush", "polygon", "ellipse")
_PLACES = {"x", "points", "rle", "start"}
_NOUNS = {"brush": "brushes", "keypoint": "keypoints", "choices": "choices", "": "marks without a type"}
_SNIFFED = 100


def recognize(path: Path, content: Any) -> Document | None:
    """Take decoded JSON if it is of this format; its short form is taken too, to be refused by name."""
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
    """A parsed file.

    Parameters
    ----------
    path : Path
    tasks : list of decoded JSON
    """

    expected: ClassVar[Mapping[Kind, str]] = {
        "points": "keypoints on images", "masks": "brushes, polygons or ellipses", "labels": "choices",
    }  # fmt: skip

    def __init__(self, path: Path, tasks: list[Any]) -> None:
        self._path, self._tasks = path, tasks

    def contents(self) -> frozenset[Content]:
        """Find which sorts of annotations there are."""
        found: set[Content] = set()
        for task in entries(self._tasks):
            for made in (task.get("annotations"), task.get("completions"), task.get("predictions")):
                for one in entries(made):
                    for region in entries(one.get("result")):
                        found |= _contents(region)
        return frozenset(found)

    def sets(self, kind: Kind, remarks: Remarks, watch: Watch = silent) -> Iterator[AnnotationSet]:
        """Yield the annotations and predictions of each task.

        Cancelled annotations are left out. What a model predicted is by an annotator of the model's name.

        Raises
        ------
        InputError
            For a task that is none.
        """
        named = [_named(task) if isinstance(task, dict) else "" for task in self._tasks]
        shared = {name for name, count in Counter(named).items() if name and count > 1}
        for at, task in enumerate(self._tasks):
            watch(at / len(self._tasks), "reading tasks")
            if not isinstance(task, dict):
                raise InputError("is no task", file=self._path, field=f"task {at + 1}")
            number, name = text_of(task.get("id")) or str(at + 1), named[at]
            for one, annotator in _annotations(task, remarks):
                regions = one["result"]
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
                    is_complete=True, time=text_of(one.get("created_at")),
                    is_truth=one.get("ground_truth") is True,
                )  # fmt: skip


class ShortDocument(Document):
    """The short form JSON-MIN, which lacks the sizes of images and the names of annotators."""

    expected: ClassVar[Mapping[Kind, str]] = {"masks": "JSON"}

    def __init__(self, path: Path) -> None:
        self._path = path

    def sets(self, kind: Kind, remarks: Remarks, watch: Watch = silent) -> Iterator[AnnotationSet]:
        """Refuse the file.

        Raises
        ------
        InputError
        """
        raise InputError("is JSON-MIN of Label Studio; export it as JSON", file=self._path)


def _annotations(task: dict[str, Any], remarks: Remarks) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Give annotations and predictions, each with its annotator."""
    done = task.get("annotations")
    for one in entries(done if isinstance(done, list) else task.get("completions")):
        if not isinstance(one.get("result"), list):
            continue
        if one.get("was_cancelled") is True:
            remarks.left_out["cancelled annotations"] += 1
            continue
        yield one, _annotator(one.get("completed_by"))
    for one in entries(task.get("predictions")):
        if isinstance(one.get("result"), list):
            yield one | {"ground_truth": None}, f"model {text_of(one.get('model_version'))}".strip()


def _named(task: dict[str, Any]) -> str:
    """Give the file name of a task's picture; empty where there is none."""
    data = task.get("data")
    if not isinstance(data, dict):
        return ""
    texts = {str(key).casefold(): value for key, value in data.items() if isinstance(value, str)}
    address = next((texts[key] for key in _IMAGE_KEYS if key in texts), None)
    return text_of(_file_in(address or next(iter(texts.values()), "")))


def _file_in(address: str) -> str:
    """Give the name of the file at an address, or in its query, as in /data/local-files/?d=smears/a.png."""
    place, _, query = address.partition("?")
    name = PurePosixPath(unquote(place)).name
    if not PurePosixPath(name).suffix:
        files = (PurePosixPath(part.partition("=")[2]) for part in unquote(query).split("&"))
        name = next((file.name for file in files if file.suffix), name)
    return name


def _annotator(by: Any) -> str | None:
    if isinstance(by, dict):
        full = f"{text_of(by.get('first_name'))} {text_of(by.get('last_name'))}".strip()
        name = full or text_of(by.get("username")) or text_of(by.get("email"))
        return name or _annotator(by.get("id"))
    if type(by) is int:
        return f"annotator {by}"
    return text_of(by) or None


def _annotation(region: Any, task: int, number: int) -> Annotation:
    if not isinstance(region, dict):
        return Annotation("entries that are no marks", f"task {task}, mark {number}")
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
    found: set[Content] = {"marks"} if "original_width" in region else set()
    if _answers(region) is not None:
        found.add("labels")
    return found or {"others"}


def _answers(region: dict[str, Any]) -> tuple[str, ...] | None:
    """Give what was chosen or rated; None for what is said of a mark, and not of the task."""
    value = region.get("value")
    if not isinstance(value, dict) or not _PLACES.isdisjoint(value):
        return None
    choices = value.get("choices")
    if isinstance(choices, list):
        # The choices of a tree are lists from its root.
        paths = (one if isinstance(one, list) else [one] for one in choices)
        return tuple(" / ".join(map(answer_text, path)) for path in paths) or ("",)
    rating = value.get("rating")
    return (text_of(rating),) if is_number(rating) else None


def _size(region: Any) -> tuple[Any, Any] | None:
    if not isinstance(region, dict):
        return None
    width, height = region.get("original_width"), region.get("original_height")
    return None if width is None or height is None else (width, height)


def _size_of_set(regions: list[Any]) -> tuple[Any, Any]:
    """Give the first size that is one, or any that is claimed, so that it is refused."""
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
    """Give the shape of a region, in percent of the image but for brushes."""
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
"""The names of the two tags."""

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
    """Write tasks for Label Studio, and beside them, as .xml, the labelling interface to import them into.

    Annotations name nobody in the place for Label Studio's users, whom only the importing project knows: they
    become the importing person's. Who decided, and why, is among the task's data.

    Parameters
    ----------
    path : Path
        The JSON file.
    tasks, classes : sequence of N and J names
    posterior : (N, J) float64
    label : (N,) int16
        Index into `classes`, what the model says; below 0 for nothing.
    model : str
        What the predictions are told to come from.
    decided : mapping of task index to DecidedLabel, optional
        An empty label becomes an annotation without a choice.
    pictures : mapping of task index to a file name or address, optional
        Without any, a task is shown as a text: its name.
    watch : Watch

    Returns
    -------
    list of Path
        The tasks and the interface.

    Raises
    ------
    InputError
        When a file cannot be written.
    """
    pictures, decided = pictures or {}, decided or {}
    key = "image" if pictures else "text"
    # The interface's XML holds nothing that cannot be printed, and both files must name the classes alike.
    choices = [plain(name, _LONGEST) for name in classes]
    with replacing(path) as file:
        file.write("[")
        for at, name in enumerate(tasks):
            if at % _BLOCK == 0:
                watch(at / len(tasks), "writing tasks")
            shares = posterior[at].tolist()
            data: dict[str, object] = {key: pictures.get(at, name)}
            if pictures:
                data["task"] = name
            data["probabilities"] = {one: round(share, 9) for one, share in zip(choices, shares, strict=True)}
            task: dict[str, object] = {"data": data, "annotations": [], "predictions": []}
            if label[at] >= 0:
                result = _choice(at, choices[label[at]])
                score = round(shares[label[at]], 9)
                task["predictions"] = [{"model_version": model, "score": score, "result": result}]
            if at in decided:
                one = decided[at]
                data |= {"decided_by": one.who, "reason": one.reason}
                annotation: dict[str, object] = {
                    "ground_truth": True,
                    "result": _choice(at, plain(one.label, _LONGEST)),
                }
                if one.when is not None:
                    annotation["created_at"] = one.when.isoformat(timespec="seconds")
                task["annotations"] = [annotation]
            file.write(",\n" if at else "\n")
            file.write(json.dumps(task))
        file.write("\n]\n")
    interface = path.with_suffix(".xml")
    with replacing(interface) as file:
        file.write(_interface(choices, key))
    return [path, interface]


def _choice(at: int, label: str) -> list[dict[str, object]]:
    if not label:
        return []
    value = {"choices": [label]}
    name = f"task-{at + 1}"
    return [{"id": name, "from_name": _CONTROL, "to_name": _OBJECT, "type": "choices", "value": value}]


def _interface(classes: Sequence[str], key: str) -> str:
    """Give the labelling interface: a picture or a text, and a choice of one class with its key."""
    shown = "Image" if key == "image" else "Text"
    choices = "".join(
        f"    <Choice value={quoteattr(name)}" + (f' hotkey="{number}"' if number < 10 else "") + "/>\n"
        for number, name in enumerate(classes, start=1)
    )
    return (
        f'<View>\n  <{shown} name="{_OBJECT}" value="${key}"/>\n'
        f'  <Choices name="{_CONTROL}" toName="{_OBJECT}" choice="single">\n{choices}  </Choices>\n</View>\n'
    )
