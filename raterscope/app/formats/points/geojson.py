"""GeoJSON as QuPath writes it: points, and the middles of what is outlined, on one image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks.coco import annotator_of
from raterscope.app.formats.points.gathering import Gathering, PointFile, is_detection, places_of, size_of
from raterscope.app.formats.strangers import entries, text_of

__all__ = ["is_geojson", "read_geojson"]

_IDLE = {"root", "PathRootObject", "tile", "PathTileObject", "tmaCore", "tma_core", "TMACoreObject"}
_REGION = 2
"""So many objects within an annotation's outline make it the region in which they were looked for."""


@dataclass(frozen=True, eq=False)
class _Object:
    """One object of a class on a plane: its places, and the outer rings of an outlined annotation."""

    name: str
    plane: tuple[str, ...]
    annotator: str | None
    places: FloatArray
    rings: Sequence[FloatArray] = ()


def is_geojson(content: Any) -> bool:
    """Tell whether decoded JSON is of this format: a collection of features, a list of them, or one."""
    if isinstance(content, dict):
        kind = content.get("type")
        return (kind == "FeatureCollection" and isinstance(content.get("features"), list)) or _is_one(content)
    return isinstance(content, list) and any(map(_is_one, entries(content)[:100]))


def read_geojson(path: Path, content: Any, watch: Watch = silent) -> PointFile:
    """Read points, each place of several at once, and of outlined objects the centroid.

    An annotation with two objects or more within its outline is the region in which they were looked for, and
    no object itself. Classes whose name ends in *, which QuPath ignores, are left out. The annotator is what
    an object's metadata call so; the image is not told, unless by the member "image" that is written here.

    Raises
    ------
    InputError
        For a feature that cannot be read.
    """
    gathering = Gathering(path)
    image = _image(gathering, content)
    gathering.picture(image)
    found: list[_Object] = []
    features = _features(content)
    for at, feature in enumerate(features):
        watch(at / len(features), "reading objects")
        if not isinstance(feature, dict) or not isinstance(feature.get("geometry"), dict):
            raise InputError("has no geometry", file=path, field=f"features[{at}]")
        properties = feature.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        if _class_of(properties).endswith("*") or _type_of(feature, properties) in _IDLE:
            gathering.left_out["ignored classes, tiles and cores"] += 1
            continue
        try:
            one = _object(feature, properties)
        except ValueError as error:
            raise InputError(f"cannot be read: it has {error}", file=path, field=f"features[{at}]") from None
        if one is None:
            gathering.left_out["lines and collections"] += 1
            continue
        found.append(one)
        gathering.detections |= is_detection(_told(properties))
    regions = _regions(found)
    gathering.left_out["outlines of regions"] += len(regions)
    kept = [one for at, one in enumerate(found) if at not in regions]
    for one in kept:
        gathering.add(one.annotator, image, one.places)
    if not kept:
        gathering.detections = image is not None
        gathering.look(None, image)
    return gathering.file("points or outlined objects", list(_said(kept)))


def _said(objects: Sequence[_Object]) -> Iterator[str]:
    planes = {one.plane for one in objects}
    classes: Counter[str] = Counter()
    for one in objects:
        classes[one.name] += len(one.places)
    named = [f"{plain(name, 40)} {count:,}" for name, count in classes.most_common(6) if name]
    if len(classes) > 1 and named:
        more = f" and {len(classes) - 6:,} more" if len(classes) > 6 else ""
        yield f"Points of all classes were taken: {', '.join(named)}{more}."
    if len(planes) > 1:
        yield f"The objects lie on {len(planes):,} planes, which were laid on one another."


def _image(gathering: Gathering, content: Any) -> str | None:
    told = content.get("image") if isinstance(content, dict) else None
    if not isinstance(told, dict):
        return None
    name = text_of(told.get("name")) or None
    gathering.picture(name, size_of(told.get("width"), told.get("height")))
    return name


def _is_one(feature: dict[str, Any]) -> bool:
    return feature.get("type") == "Feature" and "geometry" in feature


def _features(content: Any) -> list[Any]:
    """List all features, those below others too."""
    if isinstance(content, dict):
        content = [content] if _is_one(content) else content["features"]
    waiting, every = list(reversed(content)), []
    while waiting:
        feature = waiting.pop()
        every.append(feature)
        properties = feature.get("properties") if isinstance(feature, dict) else None
        if isinstance(properties, dict):
            for key in ("childObjects", "children"):
                below = properties.get(key)
                waiting += reversed(below) if isinstance(below, list) else ()
    return every


def _type_of(feature: dict[str, Any], properties: dict[str, Any]) -> str:
    for told in (properties.get("objectType"), properties.get("object_type"), properties.get("type")):
        if isinstance(told, str):
            return told
    before = feature.get("id")  # up to QuPath 0.2 the kind stood there
    return before if isinstance(before, str) and before.startswith(("Path", "TMA")) else "annotation"


def _class_of(properties: dict[str, Any]) -> str:
    told = properties.get("classification")
    if not isinstance(told, dict):
        return ""
    names = told.get("names")
    return ": ".join(map(text_of, names)) if isinstance(names, list) else text_of(told.get("name"))


def _told(properties: dict[str, Any]) -> dict[str, object]:
    """Gather what is told of an object beside its class and place."""
    measured = properties.get("measurements")
    if isinstance(measured, list):  # as QuPath wrote them up to 0.3
        measured = {text_of(one.get("name")): one.get("value") for one in entries(measured)}
    parts = (measured, properties.get("metadata"))
    return {name: value for part in parts if isinstance(part, dict) for name, value in part.items()}


def _object(feature: dict[str, Any], properties: dict[str, Any]) -> _Object | None:
    geometry = feature["geometry"]
    kind, coordinates = geometry.get("type"), geometry.get("coordinates")
    annotator = annotator_of(properties | {"attributes": properties.get("metadata")})
    plane = geometry.get("plane")
    levels = tuple(text_of(plane.get(axis)) for axis in "zt") if isinstance(plane, dict) else ("0", "0")
    told = (_class_of(properties), levels, annotator)
    if kind in ("Point", "MultiPoint"):
        return _Object(*told, places_of([coordinates] if kind == "Point" else coordinates))
    if kind not in ("Polygon", "MultiPolygon"):
        return None
    polygons = [coordinates] if kind == "Polygon" else coordinates
    if not isinstance(polygons, list) or not all(isinstance(rings, list) and rings for rings in polygons):
        raise ValueError("no rings of places")
    rings = [[places_of(ring) for ring in polygon] for polygon in polygons]
    if not rings or not all(len(ring) > 2 for polygon in rings for ring in polygon):
        raise ValueError("a ring of fewer than three places")
    outlined = _type_of(feature, properties) in ("annotation", "PathAnnotationObject")
    return _Object(*told, _centroid(rings)[None], [one[0] for one in rings] if outlined else ())


def _centroid(polygons: Sequence[Sequence[FloatArray]]) -> FloatArray:
    """Give the centroid of polygons, whose first rings are their outlines and the others holes."""
    total, moment = 0.0, np.zeros(2)
    for rings in polygons:
        for number, ring in enumerate(rings):
            # Seen from the first place, for the cross products of far places lose digits.
            here = ring - ring[0]
            after = np.roll(here, -1, axis=0)
            cross = here[:, 0] * after[:, 1] - after[:, 0] * here[:, 1]
            twice = float(cross.sum())
            area = abs(twice) / (-2 if number else 2)
            if area:
                total += area
                moment += area * (((here + after) * cross[:, None]).sum(axis=0) / (3 * twice) + ring[0])
    if total <= 0:
        return np.asarray(np.concatenate([rings[0] for rings in polygons]).mean(axis=0))
    return moment / total


def _regions(objects: Sequence[_Object]) -> set[int]:
    """Find the annotations within whose outline there are objects that are no outlined annotations."""
    inner = [one.places for one in objects if not one.rings]
    if not inner or len(inner) == len(objects):
        return set()
    places = np.concatenate(inner)
    places = places[np.argsort(places[:, 0], kind="stable")]
    return {
        at
        for at, one in enumerate(objects)
        if one.rings and sum(_within(ring, places) for ring in one.rings) >= _REGION
    }


def _within(ring: FloatArray, places: FloatArray) -> int:
    """Count the places within a ring; they are in the order of x."""
    from skimage.measure import points_in_poly

    low, high = ring.min(axis=0), ring.max(axis=0)
    near = places[slice(*np.searchsorted(places[:, 0], [low[0], high[0]]))]
    near = near[(near[:, 1] >= low[1]) & (near[:, 1] <= high[1])]
    return int(points_in_poly(near, ring).sum()) if len(near) else 0
