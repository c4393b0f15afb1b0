"""Coded types, colours and roles of structures as files have them: DICOM code sequences and Slicer's tags.

References
----------
DICOM PS3.3, section 8.8 (code sequence macro), C.8.20.4 (segment description), C.8.8.8 (RT ROI observations).
3D Slicer, "Segmentations", developer guide: the tag TerminologyEntry, fields separated by ~, codes by ^.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from raterscope.app.coding import ROLES, Code, Coding, Colour
from raterscope.app.formats.strangers import text_of

__all__ = ["add_codes", "code_item", "roi_coding", "segment_coding", "terminology_coding", "terminology_tag"]

_LONGEST_VALUE = 16
_URN, _LONG = "URNCodeValue", "LongCodeValue"
_TAG = "TerminologyEntry:"
_CONTEXTS = ("Segmentation category and type - 3D Slicer General Anatomy list",
             "Anatomic codes - DICOM master list")  # fmt: skip


def segment_coding(segment: Any) -> Coding:
    """Read what an item of the segment sequence says; what cannot be read is left unknown."""
    category = _code(segment, "SegmentedPropertyCategoryCodeSequence")
    kind = _code(segment, "SegmentedPropertyTypeCodeSequence")
    first = next(iter(segment.get("SegmentedPropertyTypeCodeSequence") or ()), None)
    modifier = None if first is None else _code(first, "SegmentedPropertyTypeModifierCodeSequence")
    return Coding(
        category=category,
        type=kind,
        modifier=modifier,
        region=_code(segment, "AnatomicRegionSequence"),
        colour=_colour_of_lab(segment.get("RecommendedDisplayCIELabValue")),
    )


def roi_coding(contours: Any, observation: Any) -> Coding:
    """Read colour, role and codes of a structure of an RTSTRUCT; `observation` may be None."""
    colour = _colour(contours.get("ROIDisplayColor"))
    if observation is None:
        return Coding(colour=colour)
    kind = _code(observation, "RTROIIdentificationCodeSequence")
    role = str(observation.get("RTROIInterpretedType") or "").strip()
    return Coding(
        category=None if kind is None else _code(observation, "SegmentedPropertyCategoryCodeSequence"),
        type=kind,
        region=_code(observation, "AnatomicRegionSequence"),
        colour=colour,
        role=role if role in ROLES else "",
    )


def code_item(code: Code) -> Any:
    """Make an item of a DICOM code sequence; its attribute depends on the length of the value."""
    from pydicom.dataset import Dataset

    item = Dataset()
    if len(code.value) <= _LONGEST_VALUE:
        item.CodeValue = code.value
    else:
        setattr(item, _URN if code.value.startswith(("urn:", "http")) else _LONG, code.value)
    if _URN not in item:
        item.CodingSchemeDesignator = code.scheme
    item.CodeMeaning = code.meaning
    return item


def add_codes(observation: Any, coding: Coding) -> None:
    """State the codes of a structure in an item of the RT ROI observations."""
    if coding.type is not None:
        observation.RTROIIdentificationCodeSequence = [code_item(coding.type)]
        if coding.category is not None:
            observation.SegmentedPropertyCategoryCodeSequence = [code_item(coding.category)]
    if coding.region is not None:
        observation.AnatomicRegionSequence = [code_item(coding.region)]


def terminology_coding(tags: str, colour: str) -> Coding:
    """Read the tags and the colour of a segment of a .seg.nrrd."""
    shade = _fractions(colour)
    entry = next((one for one in tags.split("|") if one.startswith(_TAG)), None)
    if entry is None:
        return Coding(colour=shade)
    fields = [_triplet(one) for one in entry.removeprefix(_TAG).split("~")]
    _, category, kind, modifier, _, region = (*fields, *[None] * 6)[:6]
    return Coding(category=category, type=kind, modifier=modifier, region=region, colour=shade)


def terminology_tag(coding: Coding) -> str:
    """Write codes as the tag of a segment; "|" alone where nothing is known."""
    if coding.type is None:
        return "|"
    fields = [_CONTEXTS[0], *(_caret(one) for one in (coding.category, coding.type, coding.modifier))]
    fields += [_CONTEXTS[1], _caret(coding.region), _caret(None)]
    return f"{_TAG}{'~'.join(fields)}|"


def _code(dataset: Any, sequence: str) -> Code | None:
    items = dataset.get(sequence)
    if not items or isinstance(items, (str, bytes)):
        return None
    item = items[0]
    value = item.get("CodeValue") or item.get(_LONG) or item.get(_URN) or ""
    scheme = item.get("CodingSchemeDesignator") or ("URN" if item.get(_URN) else "")
    return _made(str(value), str(scheme), str(item.get("CodeMeaning") or ""))


def _made(value: str, scheme: str, meaning: str) -> Code | None:
    try:
        return Code(value.strip(), scheme.strip(), text_of(meaning.strip()) or value.strip())
    except ValueError:
        return None


def _triplet(text: str) -> Code | None:
    parts = text.split("^")
    return _made(parts[1], parts[0], parts[2]) if len(parts) == 3 and parts[1] else None


def _caret(code: Code | None) -> str:
    if code is None:
        return "^^"
    parts = (code.scheme, code.value, code.meaning)
    return "^".join("".join(one for one in part if one not in "^~|\\") for part in parts)


def _colour(values: object) -> Colour | None:
    try:
        red, green, blue = (int(value) for value in values)  # type: ignore[attr-defined]
        return Coding(colour=(red, green, blue)).colour
    except (TypeError, ValueError):
        return None


def _fractions(text: str) -> Colour | None:
    try:
        return _colour([round(255 * float(value)) for value in text.split()])
    except (ValueError, OverflowError):
        return None


def _colour_of_lab(values: Sequence[int] | None) -> Colour | None:
    from highdicom.color import CIELabColor

    try:
        return _colour(CIELabColor.from_dicom_value([int(value) for value in values or ()]).to_rgb(clip=True))
    except (TypeError, ValueError):
        return None
