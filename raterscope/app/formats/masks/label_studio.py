"""Label Studio: brushes, polygons and ellipses in JSON, several annotators a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import numpy as np

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.masks.coco import flat_grid
from raterscope.app.formats.masks.drawings import Drawing, outlined, row_major
from raterscope.app.formats.masks.gathering import Gathering
from raterscope.app.formats.masks.naming import NOTHING, Named
from raterscope.app.formats.masks.polygons import ellipse, paired, rectangle
from raterscope.app.formats.masks.runs import studio_runs
from raterscope.app.formats.strangers import entries, is_number, refuse_size, text_of
from raterscope.app.formats.volumes.records import MaskTable

__all__ = ["Annotation", "annotations_of", "is_label_studio", "is_short", "item_of", "read_label_studio"]

_FILLED = ("brush", "polygon", "ellipse", "rectangle")
_IMAGE_KEYS = ("image", "img", "url", "file", "filename", "picture")


def is_label_studio(content: Any) -> bool:
    """Tell whether decoded JSON is of this format."""
    return isinstance(content, list) and any(
        isinstance(task, dict)
        and "data" in task
        and (isinstance(task.get("annotations"), list) or isinstance(task.get("completions"), list))
        for task in content[:100]
    )


def is_short(content: Any) -> bool:
    """Tell whether decoded JSON is the short form of it, JSON-MIN, which tells annotators by number alone."""
    return isinstance(content, list) and any(
        isinstance(task, dict) and {"annotation_id", "annotator"} <= task.keys() for task in content[:100]
    )


def read_label_studio(
    path: Path, content: Any, names: Named = NOTHING, spacing: tuple[float, float, float] | None = None,
    watch: Watch = silent,
) -> MaskTable:  # fmt: skip
    """Read brushes, polygons and ellipses; rectangles too in a file that has nothing else.

    Cancelled annotations are left out. What a model predicted counts as an annotator of the model's name.
    Places are percent of the image; the pixels of a brush are those that are not wholly transparent.

    Raises
    ------
    InputError
        For a region that cannot be read, and a file without masks.
    """
    gathering = Gathering(path)
    shapes = 0
    for at, task in enumerate(content):
        watch(0.5 * at / len(content), "reading tasks")
        if not isinstance(task, dict):
            raise InputError("is no task", file=path, field=f"task {at + 1}")
        item = item_of(task, at)
        for one in annotations_of(task, gathering.left_out):
            annotator, regions = one.annotator or names.annotator, one.regions
            sizes = [_size(region) for region in regions if isinstance(region, dict)]
            size = next((size for size in sizes if size is not None), None)
            for region in regions:
                kind = _kind(region)
                if kind not in _FILLED:
                    gathering.left_out["marks that are no masks"] += 1
                    continue
                field = f"task {at + 1}, {kind}"
                own = _size(region) or size
                if own is None:
                    raise InputError("does not tell the size of its image", file=path, field=field)
                refuse_size(path, *own, field=field)
                gathering.look(annotator, item, flat_grid(*own, spacing))
                shapes += 1
                try:
                    drawing = _drawing(kind, region["value"], own)
                except ValueError as error:
                    raise InputError(f"cannot be read: it has {error}", file=path, field=field) from None
                label = _label(region["value"], region)
                gathering.add(annotator, item, label, drawing, field, box=kind == "rectangle")
            if size is not None and not any(_kind(region) in _FILLED for region in regions):
                refuse_size(path, *size)
                gathering.look(annotator, item, flat_grid(*size, spacing))
    if not shapes:
        raise InputError("has no masks; expected brushes, polygons or ellipses", file=path)
    masks = gathering.masks(part(watch, 0.5, 1.0))
    return MaskTable(path, masks, tuple(gathering.notices()))


def item_of(task: dict[str, Any], at: int) -> str:
    """Name a task by the file name of its picture, else by its number."""
    data = task.get("data")
    if isinstance(data, dict):
        texts = {str(key).casefold(): value for key, value in data.items() if isinstance(value, str)}
        found = next((texts[key] for key in _IMAGE_KEYS if key in texts), None) or next(
            iter(texts.values()), None
        )
        if found and (name := text_of(_file_in(found))):
            return name
    return f"task {text_of(task.get('id')) or at + 1}"


def _file_in(address: str) -> str:
    """Give the name of the file that an address is of; of one that a server fetches, see its query.

    So it is with files in local storage, /data/local-files/?d=smears/a.png.
    """
    place, _, query = address.partition("?")
    name = PurePosixPath(unquote(place)).name
    if not PurePosixPath(name).suffix:
        files = (PurePosixPath(part.partition("=")[2]) for part in unquote(query).split("&"))
        name = next((file.name for file in files if file.suffix), name)
    return name


@dataclass(frozen=True)
class Annotation:
    """What one annotator, or a model, said of a task.

    Attributes
    ----------
    annotator : str or None
        None where nothing tells who.
    regions : list of decoded JSON
    made : str
        Date and time, as the file has it.
    truth : bool
        Whether it is said to be the truth.
    """

    annotator: str | None
    regions: list[Any]
    made: str = ""
    truth: bool = False


def annotations_of(task: dict[str, Any], left_out: Counter[str]) -> Iterator[Annotation]:
    """Give the annotations and predictions of a task; cancelled ones are counted and left out."""
    done = task.get("annotations")
    for one in entries(done if isinstance(done, list) else task.get("completions")):
        if not isinstance(one.get("result"), list):
            continue
        if one.get("was_cancelled") is True:
            left_out["cancelled annotations"] += 1
            continue
        made, truth = text_of(one.get("created_at")), one.get("ground_truth") is True
        yield Annotation(_who(one.get("completed_by")), one["result"], made, truth)
    for one in entries(task.get("predictions")):
        if isinstance(one.get("result"), list):
            model = f"model {text_of(one.get('model_version'))}".strip()
            yield Annotation(model, one["result"], text_of(one.get("created_at")))


def _who(by: Any) -> str | None:
    if isinstance(by, dict):
        full = f"{text_of(by.get('first_name'))} {text_of(by.get('last_name'))}".strip()
        name = full or text_of(by.get("username")) or text_of(by.get("email"))
        return name or _who(by.get("id"))
    if type(by) is int:
        return f"annotator {by}"
    return text_of(by) or None


def _kind(region: Any) -> str:
    if not isinstance(region, dict) or not isinstance(region.get("value"), dict):
        return ""
    kind = str(region.get("type", ""))
    if kind in ("relation", "keypointlabels", "keypoint"):
        return ""
    name = kind.removesuffix("labels")
    return "" if name == "brush" and "rle" not in region["value"] else name


def _size(region: Any) -> tuple[int, int] | None:
    if not isinstance(region, dict):
        return None
    rows, columns = region.get("original_height"), region.get("original_width")
    return None if rows is None or columns is None else (rows, columns)


def _label(value: dict[str, Any], region: dict[str, Any]) -> str:
    for key in (region.get("type"), "labels", "brushlabels", "polygonlabels", "ellipselabels"):
        labels = value.get(key) if isinstance(key, str) else None
        if isinstance(labels, list) and labels:
            return text_of(labels[0])
    return ""


def _drawing(kind: str, value: dict[str, Any], size: tuple[int, int]) -> Drawing:
    rows, columns = size
    if kind == "brush":
        packed = value["rle"]
        if value.get("format") not in ("rle", None) or not isinstance(packed, list):
            raise ValueError("no packed runs")
        return row_major(studio_runs(packed, rows * columns), size)
    scale = np.array([columns, rows]) / 100.0
    if kind == "polygon":
        return outlined([paired(value.get("points")) * scale - 0.5], size)
    keys = ("x", "y", "radiusX", "radiusY") if kind == "ellipse" else ("x", "y", "width", "height")
    numbers = [value.get(key) for key in keys]
    turned = value.get("rotation") or 0.0
    places = [float(number) for number in (*numbers, turned) if is_number(number)]
    if len(places) != 5:
        raise ValueError("places that are no numbers")
    x, y, across, down = places[:4] * np.tile(scale, 2)
    draw = ellipse if kind == "ellipse" else rectangle
    return outlined([draw(x, y, across, down, places[4]) - 0.5], size)
