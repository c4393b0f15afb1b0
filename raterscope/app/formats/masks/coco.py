"""COCO: polygons and run lengths of the objects in images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks.drawings import Drawing, column_major, outlined, united
from raterscope.app.formats.masks.gathering import Gathering
from raterscope.app.formats.masks.naming import NOTHING, Named
from raterscope.app.formats.masks.polygons import paired
from raterscope.app.formats.masks.runs import compressed_counts, counted_runs
from raterscope.app.formats.strangers import entries, refuse_size, text_of
from raterscope.app.formats.volumes.records import MaskTable

__all__ = ["annotator_of", "is_coco", "objects_on", "read_coco"]

Image = TypeVar("Image")
"""What a reader keeps of an image."""


_WHO = (
    "annotator", "annotator_id", "annotator_name", "rater", "reader", "worker_id", "worker", "user",
    "user_id", "username", "created_by", "completed_by",
)  # fmt: skip


def is_coco(content: Any) -> bool:
    """Tell whether decoded JSON is of this format."""
    return (
        isinstance(content, dict)
        and isinstance(content.get("annotations"), list)
        and (isinstance(content.get("images"), list))
    )


def read_coco(
    path: Path, content: Any, names: Named = NOTHING, spacing: tuple[float, float, float] | None = None,
    watch: Watch = silent,
) -> MaskTable:  # fmt: skip
    """Read the masks; the objects of one category in an image become one mask.

    A pixel spans from its number to the next, so that its centre is at one half. The annotator is what an
    object's attributes call so, else the one given.

    Raises
    ------
    InputError
        For an object that cannot be read, and for a file without masks.
    """
    images = _images(path, content["images"], spacing)
    categories = {
        one.get("id"): text_of(one.get("name"))
        for one in entries(content.get("categories"))
        if type(one.get("id")) in (int, str)
    }
    gathering = Gathering(path)
    people: dict[str | None, None] = {}
    for field, one, (item, grid) in objects_on(path, content["annotations"], images, part(watch, 0.0, 0.5)):
        try:
            drawing = _drawing(one.get("segmentation"), (grid.shape[1], grid.shape[2]))
        except ValueError as error:
            raise InputError(f"cannot be read: it has {error}", file=path, field=field) from None
        if drawing is None:
            gathering.left_out["objects without a mask"] += 1
            continue
        who = annotator_of(one) or names.annotator
        people[who] = None
        category = one.get("category_id")
        structure = categories.get(category, "") if type(category) in (int, str) else ""
        gathering.look(who, item, grid)
        gathering.add(who, item, structure, drawing, field)
    if not people:
        raise InputError("has no masks; expected polygons or run lengths", file=path)
    for item, grid in images.values():
        for who in people:
            gathering.look(who, item, grid)
    return MaskTable(path, gathering.masks(part(watch, 0.5, 1.0)), tuple(gathering.notices()))


def objects_on(
    path: Path, objects: list[Any], images: Mapping[int | str, Image], watch: Watch
) -> Iterator[tuple[str, dict[str, Any], Image]]:
    """Give the objects of a file, each with its field for sentences and its image.

    Raises
    ------
    InputError
        For an object that is on none of the images.
    """
    for at, one in enumerate(objects):
        watch(at / len(objects), "reading objects")
        field = f"annotations[{at}]"
        if not isinstance(one, dict) or type(one.get("image_id")) not in (int, str):
            raise InputError("does not tell its image", file=path, field=field)
        if one["image_id"] not in images:
            raise InputError(
                f"is on image {plain(one['image_id'], 40)}, which the file does not list",
                file=path, field=field,
            )  # fmt: skip
        yield field, one, images[one["image_id"]]


def _images(
    path: Path, images: list[Any], spacing: tuple[float, float, float] | None
) -> dict[int | str, tuple[str, Grid]]:
    found: dict[int | str, tuple[str, Grid]] = {}
    for at, image in enumerate(images):
        if not isinstance(image, dict) or type(image.get("id")) not in (int, str):
            raise InputError("has no number", file=path, field=f"images[{at}]")
        rows, columns = image.get("height"), image.get("width")
        refuse_size(path, rows, columns, field=f"images[{at}]")
        name = text_of(image.get("file_name")) or f"image {plain(image['id'], 40)}"
        found[image["id"]] = (name, flat_grid(int(rows or 0), int(columns or 0), spacing))
    return found


def flat_grid(rows: int, columns: int, spacing: tuple[float, float, float] | None) -> Grid:
    """Make the grid of an image that tells its pixels alone."""
    if spacing is None:
        return Grid.plain((1, rows, columns))
    return Grid.plain((1, rows, columns), spacing, calibrated=True)


def annotator_of(one: dict[str, Any]) -> str | None:
    """Give who made an annotation, where its attributes or itself call somebody so."""
    for source in (one.get("attributes"), one):
        if isinstance(source, dict):
            for key in _WHO:
                if key in source and (name := text_of(source[key])):
                    return name
    return None


def _drawing(segmentation: Any, shape: tuple[int, int]) -> Drawing | None:
    if isinstance(segmentation, dict):
        size, counts = segmentation.get("size"), segmentation.get("counts")
        if not isinstance(size, list) or tuple(size) != shape:
            raise ValueError(f"run lengths of another size than its image, {plain(size, 40)}")
        if isinstance(counts, str):
            counts = compressed_counts(counts)
        if not isinstance(counts, list):
            raise ValueError("no run lengths")
        return column_major(counted_runs(counts, shape[0] * shape[1]), shape)
    if not isinstance(segmentation, list) or not segmentation:
        return None
    # Polygons of one object are parts of it, and not holes: their union.
    return united([outlined([paired(polygon) - 0.5], shape) for polygon in segmentation])
