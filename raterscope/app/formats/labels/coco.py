"""COCO: the categories of whole images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.labels.gathering import Gathering, joined
from raterscope.app.formats.labels.records import LabelTable, TrueLabels
from raterscope.app.formats.masks.coco import annotator_of
from raterscope.app.formats.strangers import entries, text_of

__all__ = ["has_categories", "read_coco_labels"]

_PLACES = ("segmentation", "keypoints", "bbox")


def has_categories(content: Any, *, alone: bool) -> bool:
    """Tell whether annotations name categories of whole images; `alone` if no other names a place."""
    found = entries(content["annotations"])
    whole = ["category_id" in one and not _is_placed(one) for one in found]
    return bool(found) and (all(whole) if alone else any(whole))


def read_coco_labels(
    path: Path, content: Any, annotator: str, watch: Watch = silent
) -> tuple[LabelTable | TrueLabels, ...]:
    """Read the categories that images were given; several by one annotator are one label.

    The annotator is what an annotation's attributes call so, else the one given.

    Raises
    ------
    InputError
        For an annotation of an image or category that is not listed, and for a file without any.
    """
    pictures = _named(content["images"], "file_name")
    categories = _named(content.get("categories"), "name")
    gathering = Gathering(path)
    chosen: dict[tuple[str, Any], list[str]] = {}
    for at, one in enumerate(content["annotations"]):
        watch(0.8 * at / len(content["annotations"]), "reading annotations")
        field = f"annotations[{at}]"
        if not isinstance(one, dict):
            raise InputError("is no annotation", file=path, field=field)
        if _is_placed(one):
            gathering.left_out["objects in an image"] += 1
            continue
        image, category = (one.get(key) for key in ("image_id", "category_id"))
        for number, known, noun in ((image, pictures, "image"), (category, categories, "category")):
            if type(number) not in (int, str) or number not in known:
                raise InputError(
                    f"is of {noun} {plain(number, 40)}, which the file does not list", file=path, field=field
                )
        chosen.setdefault((annotator_of(one) or annotator, image), []).append(categories[category])
    for (who, image), names in chosen.items():
        name = pictures[image]
        gathering.add("", who, name or f"image {plain(image, 40)}", joined(names), picture=name)
    return gathering.tables()


def _is_placed(one: dict[str, Any]) -> bool:
    return any(one.get(key) for key in _PLACES)


def _named(listed: Any, key: str) -> dict[Any, str]:
    return {one["id"]: text_of(one.get(key)) for one in entries(listed) if type(one.get("id")) in (int, str)}
