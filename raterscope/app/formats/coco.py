"""COCO: objects in images with keypoints, polygons and run lengths, and categories of whole images.

Images and categories are decoded immediately. Each annotation remains text until it is read, and only the
needed parts are decoded. A file of 300 MB therefore needs little more memory than its text.

References
----------
Lin T.-Y., Maire M., Belongie S., Hays J., Perona P., Ramanan D., Dollar P., Zitnick C. L., "Microsoft COCO:
Common Objects in Context", ECCV 2014, LNCS 8693, 740-755, doi:10.1007/978-3-319-10602-1_48;
format: https://cocodataset.org/#format-data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from msgspec import Raw, Struct

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
    Polygons,
    Remarks,
    RunLengths,
    Shape,
    find_annotator,
)
from raterscope.app.formats.untrusted import decode_json, entries, text_of

_KEYS = (b'"images"', b'"annotations"', b'"categories"', b'"info"', b'"licenses"')
_LONGEST_EMPTY = 8
"""Maximum length of JSON that may be an empty value (null, false, [ ], { }), bytes."""


class _File(Struct):
    images: list[Any]
    annotations: list[Raw]
    categories: Any = None


class _Object(Struct, gc=False):
    """Annotation as in the file; values that may be long remain text."""

    image_id: Any = None
    category_id: Any = None
    segmentation: Raw = Raw(b"null")
    keypoints: Raw = Raw(b"null")
    bbox: Raw = Raw(b"null")
    attributes: Any = None
    annotator: Any = None
    annotator_id: Any = None
    annotator_name: Any = None
    rater: Any = None
    reader: Any = None
    worker_id: Any = None
    worker: Any = None
    user: Any = None
    user_id: Any = None
    username: Any = None
    created_by: Any = None
    completed_by: Any = None


_decode_file = msgspec.json.Decoder(_File).decode
_decode_object = msgspec.json.Decoder(_Object).decode
_FIELDS = _Object.__struct_fields__
_ANNOTATOR_FIELDS = _FIELDS[_FIELDS.index("annotator") :]


def sniff(head: bytes) -> bool:
    """Return whether a file may be of this format, by its first bytes."""
    return head.lstrip()[:1] == b"{" and any(key in head for key in _KEYS) and b'"shapes"' not in head


def parse(path: Path, text: bytes) -> CocoDocument | None:
    """Parse JSON of this format; None for other JSON, and for JSON with NaN."""
    try:
        file = _decode_file(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    return CocoDocument(path, file.images, file.annotations, file.categories)


def recognize(path: Path, content: Any) -> CocoDocument | None:
    """Recognize decoded JSON of this format."""
    if not isinstance(content, dict):
        return None
    images, objects = content.get("images"), content.get("annotations")
    if not isinstance(images, list) or not isinstance(objects, list):
        return None
    return CocoDocument(path, images, objects, content.get("categories"))


class CocoDocument(Document):
    """A parsed COCO file.

    `objects`: the file's annotations, raw or decoded.
    """

    expected: ClassVar[Mapping[Kind, str]] = {
        "points": "keypoints of objects; a box is no click",
        "masks": "polygons or run lengths; a box is no outline",
        "labels": "categories of images",
    }  # fmt: skip

    def __init__(self, path: Path, images: list[Any], objects: list[Any], categories: Any) -> None:
        self._path, self._images, self._objects = path, images, objects
        self.is_text = not objects or isinstance(objects[0], Raw)
        self._listed = categories

    def detections(self) -> dict[str, Any] | None:
        """Return images and annotations as decoded JSON if all annotations have a score, otherwise None."""
        detections = []
        for text in self._objects:
            try:
                value = _value(text)
            except ValueError:
                return None
            if not isinstance(value, dict) or "score" not in value:
                return None
            detections.append(value)
        return {"images": self._images, "annotations": detections} if detections else None

    def contents(self) -> frozenset[Content]:
        """Find which sorts of annotations there are."""
        contents: set[Content] = set()
        for at in range(len(self._objects)):
            try:
                item = self._object(at)
                if item is not None:
                    contents |= _contents(item)
            except ValueError as error:
                raise self._refusal(at, error) from None
        return frozenset(contents)

    @cached_property
    def _categories(self) -> dict[int | str, str]:
        categories: dict[int | str, str] = {}
        for at, category in enumerate(entries(self._listed)):
            if type(category.get("id")) in (int, str):
                name = text_of(category.get("name"))
                if categories.setdefault(category["id"], name) != name:
                    raise self._twice(f"categories[{at}]", "category")
        return categories

    @cached_property
    def _items(self) -> dict[int | str, Item]:
        items: dict[int | str, Item] = {}
        for at, image in enumerate(self._images):
            field = f"images[{at}]"
            if not isinstance(image, dict) or type(image.get("id")) not in (int, str):
                raise InputError("has no number", file=self._path, field=field)
            number = f"image {plain(image['id'], 40)}"
            name = text_of(image.get("file_name"))
            if items.get(image["id"], Item(name, "", None, None, "")).name != name:
                raise self._twice(field, "image")
            items[image["id"]] = Item(name, number, image.get("width"), image.get("height"), field)
        return items

    def items(self) -> Sequence[Item]:
        """List the images."""
        return tuple(self._items.values())

    def image_names(self) -> dict[str, str]:
        """Return the file name of each image by its id, as text."""
        return {str(number): item.name for number, item in self._items.items()}

    def sets(self, kind: Kind, remarks: Remarks, watch: Watch = silent) -> Iterator[AnnotationSet]:
        """Yield each object as a separate set, then the categories by annotator and image.

        The annotator is named by an object's attributes, or by the object itself. Raises `InputError` for an
        annotation of an image or a category that is not listed.
        """
        chosen: dict[tuple[str | None, int | str], list[Annotation]] = {}
        items = self._items
        for at in range(len(self._objects)):
            if not at % 1000:
                watch(at / len(self._objects), "reading objects")
            field = f"annotations[{at}]"
            try:
                if (item := self._object(at)) is None:
                    raise InputError("is not an annotation", file=self._path, field=field)
                nouns, shapes = _shapes(item, kind)
            except ValueError as error:
                raise self._refusal(at, error) from None
            is_answer = _is_answer(item)
            if kind == "labels" and not is_answer:
                remarks.left_out[nouns[-1]] += 1
                continue
            if type(item.image_id) not in (int, str):
                raise InputError("does not name its image", file=self._path, field=field)
            if item.image_id not in items:
                image_id = plain(item.image_id, 40)
                raise InputError(
                    f"is on image {image_id}, which the file does not list", file=self._path, field=field
                )
            attributes = item.attributes if isinstance(item.attributes, dict) else {}
            annotator = find_annotator(attributes) or find_annotator(
                {key: getattr(item, key) for key in _ANNOTATOR_FIELDS}
            )
            if is_answer:
                chosen.setdefault((annotator, item.image_id), []).append(
                    self._answer(item.category_id, field)
                )
                continue
            label = ""
            if type(item.category_id) in (int, str) and self._categories:
                if item.category_id not in self._categories:
                    raise InputError(_unlisted(item.category_id), file=self._path, field=field)
                label = self._categories[item.category_id]
            mark = Annotation(nouns[-1], field, shapes, label, attributes=attributes)
            yield AnnotationSet(items[item.image_id], annotator, (mark,))
        for (annotator, number), answers in chosen.items():
            yield AnnotationSet(items[number], annotator, answers)

    def _object(self, at: int) -> _Object | None:
        """Decode an annotation; None if it is not an object."""
        text = self._objects[at]
        if isinstance(text, Raw):
            try:
                return _decode_object(text)
            except msgspec.ValidationError:
                return None
            except (msgspec.DecodeError, RecursionError, UnicodeError):
                text = decode_json(bytes(text))
        if not isinstance(text, dict):
            return None
        return _Object(**{key: text[key] for key in _FIELDS if key in text})

    def _answer(self, number: Any, field: str) -> Annotation:
        """Convert the category of an image to an answer."""
        noun = "categories of images"
        if type(number) in (int, str) and number in self._categories:
            return Annotation(noun, field, answers=(self._categories[number],))
        return Annotation(noun, field, problem=_unlisted(number))

    def _twice(self, field: str, noun: str) -> InputError:
        return InputError(
            f"has the id of another {noun}; expected one of its own", file=self._path, field=field
        )

    def _refusal(self, at: int, error: ValueError) -> InputError:
        return InputError(str(error).removeprefix("it "), file=self._path, field=f"annotations[{at}]")


def _unlisted(number: Any) -> str:
    return f"is of category {plain(number, 40)}, which the file does not list"


def _contents(item: _Object) -> set[Content]:
    contents: set[Content] = set()
    keypoints = _value(item.keypoints) if _is_present(item.keypoints) else None
    if isinstance(keypoints, list) and any(keypoints[2::3]):
        contents.add("points")
    if _is_present(item.segmentation):
        contents.add("areas")
    return contents or {"labels" if _is_answer(item) else "marks"}


def _is_answer(item: _Object) -> bool:
    """Return whether an annotation is the category of an image."""
    geometry = (item.segmentation, item.keypoints, item.bbox)
    return item.category_id is not None and not any(map(_is_present, geometry))


def _shapes(item: _Object, kind: Kind) -> tuple[Sequence[str], tuple[Shape, ...]]:
    """Return the nouns of an object's shapes, and the shapes that a kind reads."""
    nouns: list[str] = []
    shapes: list[Shape] = []
    if _is_present(item.keypoints):
        nouns.append("keypoints")
        if kind == "points":
            shapes.append(Points(_value(item.keypoints), triples=True, field=".keypoints"))
    if _is_present(item.segmentation):
        nouns.append("polygons and run lengths")
        drawn = _value(item.segmentation) if kind == "masks" else None
        if isinstance(drawn, dict):
            size = drawn.get("size")
            rows, columns = size if isinstance(size, list) and len(size) == 2 else (size, None)
            shapes.append(RunLengths(drawn.get("counts"), rows, columns, down=True))
        elif isinstance(drawn, list):
            shapes.append(Polygons(drawn))
    alone = "boxes" if _is_present(item.bbox) else "objects without a shape"
    return nouns or [alone], tuple(shapes)


def _is_present(value: Any) -> bool:
    """Return whether a value is present and not empty."""
    if isinstance(value, Raw):
        text = memoryview(value)
        return len(text) > _LONGEST_EMPTY or bool(_value(value))
    return bool(value)


def _value(value: Any) -> Any:
    """Decode a value that remained text. Raises `ValueError` for damaged text."""
    return decode_json(bytes(value)) if isinstance(value, Raw) else value
