"""GeoJSON as QuPath writes it: points, and the centroids of what is outlined, on one image.

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
from raterscope.app.formats.points.collector import places_of
from raterscope.app.formats.untrusted import entries, text_of

__all__ = ["GeoJsonDocument", "recognize"]

_IGNORED = {"root", "PathRootObject", "tile", "PathTileObject", "tmaCore", "tma_core", "TMACoreObject"}
_REGION = 2
"""So many objects within an annotation's outline make it the region in which they were looked for."""


def recognize(path: Path, content: Any) -> GeoJsonDocument | None:
    """Take decoded JSON if it is a collection of features, a list of them, or one."""
    if isinstance(content, dict):
        listed = content.get("type") == "FeatureCollection" and isinstance(content.get("features"), list)
        if not listed and not _is_feature(content):
            return None
    elif not isinstance(content, list) or not any(map(_is_feature, entries(content)[:100])):
        return None
    return GeoJsonDocument(path, content)


@dataclass(frozen=True, eq=False)
class _Object:
    """An object of a class on a plane: its places, and the outer rings of an outlined annotation."""

    name: str
    plane: tuple[str, ...]
    annotator: str | None
    places: FloatArray
    field: str
    rings: Sequence[FloatArray]
    attributes: Mapping[str, Any]


class GeoJsonDocument(Document):
    """A parsed file.

    Parameters
    ----------
    path : Path
    content : decoded JSON
    """

    expected: ClassVar[Mapping[Kind, str]] = {"points": "points or outlined objects"}

    def __init__(self, path: Path, content: Any) -> None:
        self._path, self._content = path, content
        self.is_own = self._image() is not None  # which this program alone writes

    def contents(self) -> frozenset[Content]:
        """Claim points, be there none: the format holds no other kind that is read."""
        return frozenset({"points"})

    def items(self) -> Sequence[Item]:
        """List the one image, with a name if this program wrote the file."""
        image = self._image()
        if image is None:
            return (Item(),)
        return (Item(text_of(image.get("name")), "", image.get("width"), image.get("height")),)

    def sets(self, kind: Kind, remarks: Remarks, watch: Watch = silent) -> Iterator[AnnotationSet]:
        """Yield points, several of one object together, and the centroids of outlined objects.

        An annotation with two objects or more within its outline is the region in which they were looked for,
        and no object itself. Classes whose name ends in *, which QuPath ignores, are left out. The annotator
        is what an object's metadata call so.

        Raises
        ------
        InputError
            For a feature that cannot be read.
        """
        (item,) = self.items()
        found: list[_Object] = []
        features = _features(self._content)
        for at, feature in enumerate(features):
            watch(at / len(features), "reading objects")
            where = f"features[{at}]"
            if not isinstance(feature, dict) or not isinstance(feature.get("geometry"), dict):
                raise InputError("has no geometry", file=self._path, field=where)
            properties = feature.get("properties")
            properties = properties if isinstance(properties, dict) else {}
            if _class_of(properties).endswith("*") or _type_of(feature, properties) in _IGNORED:
                remarks.left_out["ignored classes, tiles and cores"] += 1
                continue
            try:
                one = _object(feature, properties, where)
            except ValueError as error:
                raise InputError(f"cannot be read: it has {error}", file=self._path, field=where) from None
            if one is None:
                remarks.left_out["lines and collections"] += 1
                continue
            found.append(one)
        regions = _regions(found)
        remarks.left_out["outlines of regions"] += len(regions)
        kept = [one for at, one in enumerate(found) if at not in regions]
        remarks.notices += _notices(kept)
        for one in kept:
            mark = Annotation(
                "objects", one.field, (Points(one.places),), one.name, attributes=one.attributes
            )
            yield AnnotationSet(item, one.annotator, (mark,))
        if not kept:
            yield AnnotationSet(item, None, is_complete=True)

    def _image(self) -> dict[str, Any] | None:
        image = self._content.get("image") if isinstance(self._content, dict) else None
        return image if isinstance(image, dict) else None


def _notices(objects: Sequence[_Object]) -> Iterator[str]:
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


def _is_feature(feature: dict[str, Any]) -> bool:
    return feature.get("type") == "Feature" and "geometry" in feature


def _features(content: Any) -> list[Any]:
    """List all features, those below others too."""
    if isinstance(content, dict):
        content = [content] if _is_feature(content) else content["features"]
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


def _attributes(properties: dict[str, Any]) -> dict[str, Any]:
    """Gather measurements and metadata of an object."""
    measured = properties.get("measurements")
    if isinstance(measured, list):  # as QuPath wrote them up to 0.3
        measured = {text_of(one.get("name")): one.get("value") for one in entries(measured)}
    parts = (measured, properties.get("metadata"))
    return {name: value for part in parts if isinstance(part, dict) for name, value in part.items()}


def _object(feature: dict[str, Any], properties: dict[str, Any], where: str) -> _Object | None:
    geometry = feature["geometry"]
    kind, coordinates = geometry.get("type"), geometry.get("coordinates")
    annotator = find_annotator(properties.get("metadata"), properties)
    plane = geometry.get("plane")
    levels = tuple(text_of(plane.get(axis)) for axis in "zt") if isinstance(plane, dict) else ("0", "0")
    name, attributes = _class_of(properties), _attributes(properties)
    if kind in ("Point", "MultiPoint"):
        places = places_of([coordinates] if kind == "Point" else coordinates)
        return _Object(name, levels, annotator, places, where, (), attributes)
    if kind not in ("Polygon", "MultiPolygon"):
        return None
    polygons = [coordinates] if kind == "Polygon" else coordinates
    if not isinstance(polygons, list) or not all(isinstance(rings, list) and rings for rings in polygons):
        raise ValueError("no rings of places")
    rings = [[places_of(ring) for ring in polygon] for polygon in polygons]
    if not rings or not all(len(ring) > 2 for polygon in rings for ring in polygon):
        raise ValueError("a ring of fewer than three places")
    outlined = _type_of(feature, properties) in ("annotation", "PathAnnotationObject")
    outer = [one[0] for one in rings] if outlined else ()
    return _Object(name, levels, annotator, _centroid(rings)[None], where, outer, attributes)


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
