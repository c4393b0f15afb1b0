"""GeoJSON of QuPath: points, and the centroids of outlined objects, on one image.

References
----------
Butler H. et al., "The GeoJSON Format", RFC 7946, 2016, doi:10.17487/RFC7946.
Bankhead P. et al., "QuPath: Open source software for digital pathology image analysis", Scientific Reports 7,
16878, 2017, doi:10.1038/s41598-017-17204-5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray
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
    find_annotator,
)
from raterscope.app.formats.points.collector import position_array
from raterscope.app.formats.untrusted import entries, text_of

_IGNORED = {"root", "PathRootObject", "tile", "PathTileObject", "tmaCore", "tma_core", "TMACoreObject"}
_REGION = 2
"""Minimum number of objects within an annotation's outline for a searched region."""


def recognize(path: Path, content: Any) -> GeoJsonDocument | None:
    """Recognize decoded JSON that is a collection of features, a list of them, or one feature."""
    if isinstance(content, dict):
        is_collection = content.get("type") == "FeatureCollection" and isinstance(
            content.get("features"), list
        )
        if not is_collection and not _is_feature(content):
            return None
    elif not isinstance(content, list) or not any(map(_is_feature, entries(content)[:100])):
        return None
    return GeoJsonDocument(path, content)


@dataclass(frozen=True, eq=False)
class _Object:
    """Object of a class on a plane: its points, and the outer rings of an outlined annotation."""

    name: str
    plane: tuple[str, ...]
    annotator: str | None
    points: FloatArray
    field: str
    rings: Sequence[FloatArray]
    attributes: Mapping[str, Any]


class GeoJsonDocument(Document):
    """A parsed file."""

    expected: ClassVar[Mapping[Kind, str]] = {"points": "points or outlined objects"}

    def __init__(self, path: Path, content: Any) -> None:
        self._path, self._content = path, content
        self.is_own = self._image() is not None  # only this program writes it

    def contents(self) -> frozenset[Content]:
        """Return points, even if there are none: no other kind is read from this format."""
        return frozenset({"points"})

    def items(self) -> Sequence[Item]:
        """List the single image; it has a name if this program wrote the file."""
        image = self._image()
        if image is None:
            return (Item(),)
        return (Item(text_of(image.get("name")), "", image.get("width"), image.get("height")),)

    def sets(self, kind: Kind, remarks: Remarks, watch: Watch = silent) -> Iterator[AnnotationSet]:
        """Yield points, several of one object together, and the centroids of outlined objects.

        An annotation with two or more objects within its outline is a searched region, not an object. Classes
        whose name ends in *, which QuPath ignores, are skipped. The annotator is named in an object's
        metadata. Raises `InputError` for a feature that cannot be read.
        """
        (item,) = self.items()
        objects: list[_Object] = []
        features = _features(self._content)
        for at, feature in enumerate(features):
            watch(at / len(features), "reading objects")
            field = f"features[{at}]"
            if not isinstance(feature, dict) or not isinstance(feature.get("geometry"), dict):
                raise InputError("has no geometry", file=self._path, field=field)
            properties = feature.get("properties")
            properties = properties if isinstance(properties, dict) else {}
            if _class_of(properties).endswith("*") or _type_of(feature, properties) in _IGNORED:
                remarks.left_out["ignored classes, tiles and cores"] += 1
                continue
            try:
                shape = _object(feature, properties, field)
            except ValueError as error:
                raise InputError(f"cannot be read: it has {error}", file=self._path, field=field) from None
            if shape is None:
                remarks.left_out["lines and collections"] += 1
                continue
            objects.append(shape)
        regions = _regions(objects)
        remarks.left_out["outlines of regions"] += len(regions)
        kept = [shape for index, shape in enumerate(objects) if index not in regions]
        remarks.notices += _notices(kept)
        for shape in kept:
            mark = Annotation(
                "objects", shape.field, (Points(shape.points),), shape.name, attributes=shape.attributes
            )
            yield AnnotationSet(item, shape.annotator, (mark,))
        if not kept:
            yield AnnotationSet(item, None, is_complete=True)

    def _image(self) -> dict[str, Any] | None:
        image = self._content.get("image") if isinstance(self._content, dict) else None
        return image if isinstance(image, dict) else None


def _notices(objects: Sequence[_Object]) -> Iterator[str]:
    planes = {shape.plane for shape in objects}
    classes: Counter[str] = Counter()
    for shape in objects:
        classes[shape.name] += len(shape.points)
    named = [f"{plain(name, 40)} {count:,}" for name, count in classes.most_common(6) if name]
    if len(classes) > 1 and named:
        more = f" and {len(classes) - 6:,} more" if len(classes) > 6 else ""
        yield f"Points of all classes are imported: {', '.join(named)}{more}."
    if len(planes) > 1:
        yield f"The objects of {len(planes):,} planes were combined on one plane."


def _is_feature(feature: dict[str, Any]) -> bool:
    return feature.get("type") == "Feature" and "geometry" in feature


def _features(content: Any) -> list[Any]:
    """List all features, including nested ones."""
    if isinstance(content, dict):
        content = [content] if _is_feature(content) else content["features"]
    stack, every = list(reversed(content)), []
    while stack:
        feature = stack.pop()
        every.append(feature)
        properties = feature.get("properties") if isinstance(feature, dict) else None
        if isinstance(properties, dict):
            for key in ("childObjects", "children"):
                nested = properties.get(key)
                stack += reversed(nested) if isinstance(nested, list) else ()
    return every


def _type_of(feature: dict[str, Any], properties: dict[str, Any]) -> str:
    for object_type in (properties.get("objectType"), properties.get("object_type"), properties.get("type")):
        if isinstance(object_type, str):
            return object_type
    identifier = feature.get("id")  # up to QuPath 0.2 it was the type
    if isinstance(identifier, str) and identifier.startswith(("Path", "TMA")):
        return identifier
    return "annotation"


def _class_of(properties: dict[str, Any]) -> str:
    classification = properties.get("classification")
    if not isinstance(classification, dict):
        return ""
    names = classification.get("names")
    return ": ".join(map(text_of, names)) if isinstance(names, list) else text_of(classification.get("name"))


def _attributes(properties: dict[str, Any]) -> dict[str, Any]:
    """Collect measurements and metadata of an object."""
    measured = properties.get("measurements")
    if isinstance(measured, list):  # as QuPath wrote them up to 0.3
        measured = {
            text_of(measurement.get("name")): measurement.get("value") for measurement in entries(measured)
        }
    parts = (measured, properties.get("metadata"))
    return {name: value for part in parts if isinstance(part, dict) for name, value in part.items()}


def _object(feature: dict[str, Any], properties: dict[str, Any], field: str) -> _Object | None:
    geometry = feature["geometry"]
    kind, coordinates = geometry.get("type"), geometry.get("coordinates")
    annotator = find_annotator(properties.get("metadata"), properties)
    plane = geometry.get("plane")
    levels = tuple(text_of(plane.get(axis)) for axis in "zt") if isinstance(plane, dict) else ("0", "0")
    name, attributes = _class_of(properties), _attributes(properties)
    if kind in ("Point", "MultiPoint"):
        points = position_array([coordinates] if kind == "Point" else coordinates)
        return _Object(name, levels, annotator, points, field, (), attributes)
    if kind not in ("Polygon", "MultiPolygon"):
        return None
    polygons = [coordinates] if kind == "Polygon" else coordinates
    if not isinstance(polygons, list) or not all(isinstance(rings, list) and rings for rings in polygons):
        raise ValueError("no rings of positions")
    rings = [[position_array(ring) for ring in polygon] for polygon in polygons]
    if not rings or not all(len(ring) > 2 for polygon in rings for ring in polygon):
        raise ValueError("a ring of fewer than three positions")
    outlined = _type_of(feature, properties) in ("annotation", "PathAnnotationObject")
    outer = [polygon[0] for polygon in rings] if outlined else ()
    return _Object(name, levels, annotator, _centroid(rings)[None], field, outer, attributes)


def _centroid(polygons: Sequence[Sequence[FloatArray]]) -> FloatArray:
    """Compute the centroid of polygons; the first ring of each is its outline, the others are holes."""
    total, moment = 0.0, np.zeros(2)
    for rings in polygons:
        for number, ring in enumerate(rings):
            # Relative to the first position, because cross products of large coordinates lose digits.
            shifted = ring - ring[0]
            following = np.roll(shifted, -1, axis=0)
            cross = shifted[:, 0] * following[:, 1] - following[:, 0] * shifted[:, 1]
            twice = float(cross.sum())
            area = abs(twice) / (-2 if number else 2)
            if area:
                total += area
                moment += area * (
                    ((shifted + following) * cross[:, None]).sum(axis=0) / (3 * twice) + ring[0]
                )
    if total <= 0:
        return np.asarray(np.concatenate([rings[0] for rings in polygons]).mean(axis=0))
    return moment / total


def _regions(objects: Sequence[_Object]) -> set[int]:
    """Find the outlined annotations that contain other objects."""
    inner = [shape.points for shape in objects if not shape.rings]
    if not inner or len(inner) == len(objects):
        return set()
    points = np.concatenate(inner)
    points = points[np.argsort(points[:, 0], kind="stable")]
    return {
        index
        for index, shape in enumerate(objects)
        if shape.rings and sum(_count_within(ring, points) for ring in shape.rings) >= _REGION
    }


def _count_within(ring: FloatArray, points: FloatArray) -> int:
    """Count the points (sorted by x) within a ring, by the even-odd rule."""
    low, high = ring.min(axis=0), ring.max(axis=0)
    points = points[slice(*np.searchsorted(points[:, 0], [low[0], high[0]]))]
    points = points[(points[:, 1] >= low[1]) & (points[:, 1] <= high[1])]
    inside = np.zeros(len(points), dtype=bool)
    for (x, y), (to_x, to_y) in zip(ring, np.roll(ring, -1, axis=0), strict=True):
        crossed = np.flatnonzero((points[:, 1] < y) != (points[:, 1] < to_y))
        across = x + (points[crossed, 1] - y) * (to_x - x) / (to_y - y)
        inside[crossed] ^= points[crossed, 0] < across
    return int(inside.sum())
