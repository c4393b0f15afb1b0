"""CVAT for images 1.1: shapes in XML, one file a job, a task or a project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.masks.coco import flat_grid
from raterscope.app.formats.masks.drawings import Drawing, outlined, row_major
from raterscope.app.formats.masks.gathering import Gathering
from raterscope.app.formats.masks.naming import NOTHING, Named
from raterscope.app.formats.masks.polygons import ellipse, paired, rectangle
from raterscope.app.formats.masks.runs import counted_runs
from raterscope.app.formats.strangers import refuse_size, text_of
from raterscope.app.formats.volumes.records import MaskTable

__all__ = ["assignees", "read_cvat"]

_FILLED = ("polygon", "mask", "ellipse", "box")
_KINDS = {
    "points": "points", "polyline": "polylines", "cuboid": "cuboids", "skeleton": "skeletons", "tag": "tags",
}  # fmt: skip


def read_cvat(
    path: Path, root: Any, names: Named = NOTHING, spacing: tuple[float, float, float] | None = None,
    watch: Watch = silent,
) -> MaskTable:  # fmt: skip
    """Read polygons, masks and ellipses; boxes too in a file that has nothing else.

    The annotator is the assignee of the job or task, and in a project's file that of the image's task.

    Raises
    ------
    InputError
        For a shape that cannot be read, and a file without masks.
    """
    whole, tasks = assignees(root)
    gathering = Gathering(path)
    images = root.findall("image")
    if root.find("track") is not None:
        gathering.left_out["tracks of a video"] += len(root.findall("track"))
    shapes = 0
    for at, image in enumerate(images):
        watch(0.5 * at / len(images), "reading images")
        item = text_of(image.get("name", "")) or f"image {at + 1}"
        grid = _grid(path, image, item, spacing)
        who = tasks.get(image.get("task_id", ""), whole) or names.annotator
        gathering.look(who, item, grid)
        for shape in image:
            if shape.tag not in _FILLED:
                gathering.left_out[_KINDS.get(shape.tag, "other shapes")] += 1
                continue
            shapes += 1
            field = f"{shape.tag} on {item}"
            try:
                drawing = _drawing(path, shape, (grid.shape[1], grid.shape[2]))
            except ValueError as error:
                raise InputError(f"cannot be read: it has {error}", file=path, field=field) from None
            label = text_of(shape.get("label", ""))
            gathering.add(who, item, label, drawing, field, box=shape.tag == "box")
    if not shapes and root.find("track") is not None:
        raise InputError("follows objects through a video; export it as CVAT for images 1.1", file=path)
    if not shapes:
        raise InputError("has no masks; expected polygons, masks or ellipses on images", file=path)
    return MaskTable(path, gathering.masks(part(watch, 0.5, 1.0)), tuple(gathering.notices()))


def assignees(root: Any) -> tuple[str | None, dict[str, str]]:
    """Give whom the file is assigned to, and whom each task of a project is."""
    meta = root.find("meta")
    if meta is None:
        return None, {}
    whole = None
    for kind in ("job", "task", "project"):
        if (found := meta.find(kind)) is not None:
            whole = whole or _assignee(found)
    tasks = {}
    for task in meta.iterfind("project/tasks/task"):
        number, who = text_of(task.findtext("id") or ""), _assignee(task)
        if number and who:
            tasks[number] = who
    return whole, tasks


def _assignee(element: Any) -> str | None:
    found = element.find("assignee")
    if found is None:
        return None
    return text_of(found.findtext("username") or found.text or "") or None


def _grid(path: Path, image: Any, item: str, spacing: tuple[float, float, float] | None) -> Grid:
    sizes = [_whole(image.get(name)) for name in ("height", "width")]
    refuse_size(path, *sizes, field=f"image {item}")
    rows, columns = (size or 0 for size in sizes)
    return flat_grid(rows, columns, spacing)


def _whole(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None


def _numbers(shape: Any, *keys: str) -> list[float]:
    try:
        values = [float(shape.get(key) or "") for key in keys]
    except ValueError:
        raise ValueError(f"no numbers for {', '.join(keys)}") from None
    if not np.isfinite(values).all():
        raise ValueError("places that are no numbers")
    return values


def _drawing(path: Path, shape: Any, size: tuple[int, int]) -> Drawing:
    turned = float(shape.get("rotation") or 0.0)
    if shape.tag == "mask":
        return _mask(path, shape, size)
    if shape.tag == "ellipse":
        x, y, across, down = _numbers(shape, "cx", "cy", "rx", "ry")
        return outlined([ellipse(x, y, across, down, turned) - 0.5], size)
    if shape.tag == "box":
        left, top, right, bottom = _numbers(shape, "xtl", "ytl", "xbr", "ybr")
        corners = rectangle(0.0, 0.0, right - left, bottom - top)
        middle = corners.mean(axis=0)
        centred = corners - middle
        turn = np.radians(turned)
        cosine, sine = np.cos(turn), np.sin(turn)
        return outlined([centred @ [[cosine, sine], [-sine, cosine]] + middle + [left, top] - 0.5], size)
    pairs = [point.split(",") for point in (shape.get("points") or "").split(";")]
    return outlined([paired(pairs) - 0.5], size)


def _mask(path: Path, shape: Any, size: tuple[int, int]) -> Drawing:
    rows, columns, top, left = (_whole(shape.get(key)) for key in ("height", "width", "top", "left"))
    refuse_size(path, rows, columns, field="mask")
    if rows is None or columns is None or top is None or left is None:
        raise ValueError("no place")
    if not (0 <= top <= size[0] - rows and 0 <= left <= size[1] - columns):
        raise ValueError("a mask beyond its image")
    counts = [_whole(count) for count in (shape.get("rle") or "").split(",")]
    return row_major(counted_runs(counts, rows * columns), (rows, columns), (top, left))
