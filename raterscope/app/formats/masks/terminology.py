"""Terminology of structures: table of TG-263 names, search for coded concepts, and codes in files.

References
----------
.. [mayo2018] C. S. Mayo, J. M. Moran, W. Bosch, Y. Xiao, T. McNutt, R. Popple et al., "American Association
   of Physicists in Medicine Task Group 263: Standardizing nomenclatures in radiation oncology",
   International Journal of Radiation Oncology, Biology, Physics 100 (2018) 1057-1066,
   doi:10.1016/j.ijrobp.2017.12.013.
DICOM PS3.16, context groups 7150 and 7151 (segmentation property categories and types), 9534 (targets).

Codes in files: DICOM PS3.3, section 8.8 (code sequence macro), C.8.20.4 (segment description), C.8.8.8 (RT
ROI observations); 3D Slicer, "Segmentations", developer guide: the tag TerminologyEntry, fields separated by
~, codes by ^.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from uuid import NAMESPACE_OID, uuid5

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.coding import NOTHING_CODED, ROLES, Code, Coding, Colour
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.output_files import file_name_part, unique_name
from raterscope.app.formats.records import VolumeFile
from raterscope.app.formats.untrusted import text_of

_ANATOMY = Code("91723000", "SCT", "Anatomical Structure")
_ABNORMAL = Code("49755003", "SCT", "Morphologically Abnormal Structure")
_SPACE = Code("309825002", "SCT", "Spatial and Relational Concept")
CATEGORIES = (
    _ANATOMY,
    _ABNORMAL,
    Code("85756007", "SCT", "Tissue"),
    Code("91720002", "SCT", "Body Substance"),
    Code("246464006", "SCT", "Function"),
    Code("260787004", "SCT", "Physical object"),
    _SPACE,
    Code("105590001", "SCT", "Substance"),
)
"""Categories of structures (CID 7150), the most frequent first."""

_LEFT, _RIGHT = Code("7771000", "SCT", "Left"), Code("24028007", "SCT", "Right")
_BOTH = Code("51440002", "SCT", "Right and left")

# TG-263 name without a side, SNOMED CT code, meaning, whether it has sides, other common names.
_ORGANS: tuple[tuple[str, str, str, bool, tuple[str, ...]], ...] = (
    ("A_Aorta", "15825003", "Aorta", False, ("Aorta",)),
    ("A_Pulmonary", "81040000", "Pulmonary artery", False, ("Pulmonary artery",)),
    ("Bladder", "89837001", "Bladder", False, ("Urinary bladder",)),
    ("Bone_Mandible", "91609006", "Mandible", False, ("Mandible",)),
    ("BrachialPlexus", "36582005", "Brachial plexus", True, ("Brachial plexus",)),
    ("Brain", "12738006", "Brain", False, ()),
    ("Brainstem", "119238007", "Brain Stem", False, ("Brain stem",)),
    ("Breast", "76752008", "Breast", True, ()),
    ("Cavity_Oral", "74262004", "oral cavity", False, ("Oral cavity", "OralCavity")),
    ("Colon", "71854001", "Colon", False, ()),
    ("Duodenum", "38848004", "Duodenum", False, ()),
    ("Esophagus", "32849002", "Esophagus", False, ("Oesophagus",)),
    ("Eye", "81745001", "Eye", True, ()),
    ("Femur", "71341001", "Femur", True, ()),
    ("Femur_Head", "2812003", "Head of Femur", True, ("Femoral head", "FemoralHead")),
    ("Gallbladder", "28231008", "Gallbladder", False, ("Gall bladder",)),
    ("Glnd_Adrenal", "23451007", "Adrenal gland", True, ("Adrenal gland", "Adrenal")),
    ("Glnd_Submand", "54019009", "Submandibular gland", True, ("Submandibular gland",)),
    ("Glnd_Thyroid", "69748006", "Thyroid", False, ("Thyroid", "Thyroid gland")),
    ("Heart", "80891009", "Heart", False, ()),
    ("Hippocampus", "5366008", "Hippocampus", True, ()),
    ("Bowel_Large", "14742008", "Large intestine", False, ("Large bowel", "Large intestine")),
    ("Bowel_Small", "30315005", "Small intestine", False, ("Small bowel", "Small intestine")),
    ("Kidney", "64033007", "Kidney", True, ()),
    ("Larynx", "4596009", "Larynx", False, ()),
    ("Lens", "78076003", "Lens", True, ()),
    ("Liver", "10200004", "Liver", False, ()),
    ("Lung", "39607008", "Lung", True, ()),
    ("OpticChiasm", "244453006", "Optic chiasm", False, ("Optic chiasm", "Chiasm")),
    ("OpticNrv", "18234004", "optic nerve", True, ("Optic nerve",)),
    ("Ovary", "15497006", "Ovary", True, ()),
    ("Pancreas", "15776009", "Pancreas", False, ()),
    ("Parotid", "45289007", "Parotid gland", True, ("Parotid gland",)),
    ("Pharynx", "54066008", "Pharynx", False, ()),
    ("Pituitary", "56329008", "Pituitary", False, ("Pituitary gland",)),
    ("Prostate", "41216001", "Prostate", False, ()),
    ("Rectum", "34402009", "Rectum", False, ()),
    ("SeminalVes", "64739004", "Seminal Vesicle", False, ("Seminal vesicles", "Seminal vesicle")),
    ("Skin", "39937001", "Skin", False, ()),
    ("SpinalCord", "2748008", "Spinal cord", False, ("Spinal cord", "Myelon")),
    ("Spleen", "78961009", "Spleen", False, ()),
    ("Stomach", "69695003", "Stomach", False, ()),
    ("Testis", "40689003", "Testis", True, ()),
    ("Tongue", "21974007", "Tongue", False, ()),
    ("Trachea", "44567001", "Trachea", False, ()),
    ("Uterus", "35039007", "Uterus", False, ()),
    ("V_Venacava_S", "48345005", "Superior vena cava", False, ("Superior vena cava", "SVC")),
)
_TARGETS = {
    "GTV": Code("228791009", "SCT", "GTV"),
    "CTV": Code("228792002", "SCT", "CTV"),
    "PTV": Code("228793007", "SCT", "PTV"),
}
_ABNORMALITIES = {
    "Abscess": Code("44132006", "SCT", "Abscess"),
    "Cyst": Code("367643001", "SCT", "Cyst"),
    "Edema": Code("79654002", "SCT", "Edema"),
    "Hemorrhage": Code("50960005", "SCT", "Hemorrhage"),
    "Lesion": Code("52988006", "SCT", "Lesion"),
    "Necrosis": Code("6574001", "SCT", "Necrosis"),
    "Neoplasm": Code("108369006", "SCT", "Neoplasm"),
    "Nodule": Code("27925004", "SCT", "Nodule"),
    "Tumor": Code("108369006", "SCT", "Neoplasm"),
    "Tumour": Code("108369006", "SCT", "Neoplasm"),
}
_TARGET = re.compile(r"(gtv|ctv|ptv)(?:p|n|m|sb|vas|par)?(?:[\d ._+^~!-].*)?", re.IGNORECASE)
_BODY = Code("130047", "DCM", "External Body Model")
_SIDES = {
    "l": _LEFT, "lt": _LEFT, "left": _LEFT, "r": _RIGHT, "rt": _RIGHT, "right": _RIGHT, "both": _BOTH,
    "bilateral": _BOTH,
}  # fmt: skip
LATERALITIES = {"left": _LEFT, "right": _RIGHT, "both": _BOTH}
"""Sides of the body, as modifiers of a type (CID 244)."""

_SUFFIXES = {_LEFT: "_L", _RIGHT: "_R", _BOTH: "s"}
_MAX_MATCHES = 100


@dataclass(frozen=True)
class _Entry:
    """TG-263 name and its coding."""

    name: str
    coding: Coding


def suggest_coding(name: str) -> Coding:
    """Suggest the coding of a structure by its name; `NOTHING_CODED` if the name is unknown."""
    entry = _entries().get(_normalise(name))
    if entry is not None:
        return entry.coding
    target = _TARGET.fullmatch(name.strip())
    if target is None:
        return NOTHING_CODED
    role = target[1].upper()
    return Coding(category=_SPACE, type=_TARGETS[role], role=role)


def tg263_name(name: str) -> str:
    """Return the TG-263 name of a structure; empty if its name is unknown."""
    entry = _entries().get(_normalise(name))
    return "" if entry is None else entry.name


def tg263_names() -> tuple[str, ...]:
    """List the TG-263 names of the table, sorted, with sides if there are any."""
    names = {entry.name for entry in _entries().values() if entry.coding.role}
    return (*_TARGETS, *sorted(names, key=str.casefold))


@cache
def list_concepts() -> tuple[Code, ...]:
    """List possible concepts of a structure: CID 7151 and 9534 first, then all of SNOMED CT.

    The first call takes about a second, mostly to load the dictionary.
    """
    from pydicom.sr.codedict import codes

    concepts_by_code: dict[tuple[str, str], Code] = {}
    for group in (codes.cid7151, codes.cid9534, codes.SCT):
        listed = [getattr(group, name) for name in group.dir()]
        # Of several meanings of one concept, the shortest is used.
        for entry in sorted(listed, key=lambda code: (len(code.meaning), code.meaning.casefold())):
            if 0 < len(entry.meaning) <= 64 and "\\" not in entry.meaning:
                key = entry.value, entry.scheme_designator
                concepts_by_code.setdefault(key, Code(*key, entry.meaning))
    return tuple(concepts_by_code.values())


def usual_category(code: Code) -> Code | None:
    """Return the category of a concept in the table of names; None for any other concept."""
    return _categories().get((code.value, code.scheme))


@cache
def _categories() -> dict[tuple[str, str], Code]:
    codings = (*(entry.coding for entry in _entries().values()), *map(suggest_coding, _TARGETS))
    return {
        (coding.type.value, coding.type.scheme): coding.category
        for coding in codings
        if coding.type is not None and coding.category is not None
    }


def find_code(text: str) -> tuple[Code, ...]:
    """Find concepts by code ("SCT:80891009"), code value, or words of the meaning; the best matches first."""
    scheme, _, value = text.strip().rpartition(":")
    exact = [code for code in _by_value().get(value, ()) if scheme in ("", code.scheme)]
    if exact:
        return tuple(exact)
    words = text.casefold().split()
    matches = [(meaning, code) for meaning, code in _folded() if all(word in meaning for word in words)]
    text = " ".join(words)
    matches.sort(key=lambda pair: 0 if pair[0] == text else 1 if pair[0].startswith(text) else 2)
    return tuple(code for _, code in matches[:_MAX_MATCHES])


@cache
def _by_value() -> dict[str, list[Code]]:
    codes_by_value: dict[str, list[Code]] = {}
    for code in list_concepts():
        codes_by_value.setdefault(code.value, []).append(code)
    return codes_by_value


@cache
def _folded() -> tuple[tuple[str, Code], ...]:
    return tuple((code.meaning.casefold(), code) for code in list_concepts())


@cache
def _entries() -> dict[str, _Entry]:
    entries: dict[str, _Entry] = {}
    for name, value, meaning, sided, others in _ORGANS:
        code = Code(value, "SCT", meaning)
        bare = Coding(category=_ANATOMY, type=code, role="ORGAN")
        for alias in (name, *others):
            entries[_normalise(alias)] = _Entry(name, bare)
        if not sided:
            continue
        for word, side in _SIDES.items():
            if side is _BOTH and name.endswith("s"):
                continue
            coding = Coding(category=_ANATOMY, type=code, modifier=side, role="ORGAN")
            for alias in (name, *others):
                at_end = f"{name}{_SUFFIXES[side]}"
                entries[_normalise(f"{alias} {word}")] = entries[_normalise(f"{word} {alias}")] = _Entry(
                    at_end, coding
                )
        for alias in () if name.endswith("s") else (name, *others):
            both = Coding(category=_ANATOMY, type=code, modifier=_BOTH, role="ORGAN")
            entries[_normalise(f"{alias}s")] = _Entry(f"{name}s", both)
    for name, code in _ABNORMALITIES.items():
        entries[_normalise(name)] = _Entry(name, Coding(category=_ABNORMAL, type=code))
    for alias in ("External", "Body"):
        entries[_normalise(alias)] = _Entry("External", Coding(category=_SPACE, type=_BODY, role="EXTERNAL"))
    return entries


def _normalise(name: str) -> str:
    """Normalise the spelling of a name: lower case, words separated by one blank."""
    separated = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.strip())
    return " ".join(re.split(r"[\s_.-]+", separated.casefold()))


_LONGEST_VALUE = 16
_URN, _LONG = "URNCodeValue", "LongCodeValue"
_TAG = "TerminologyEntry:"
_CONTEXTS = ("Segmentation category and type - 3D Slicer General Anatomy list",
             "Anatomic codes - DICOM master list")  # fmt: skip


def segment_coding(segment: Any) -> Coding:
    """Read the coding of an item of the segment sequence; unreadable parts remain unknown."""
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
    """Create an item of a DICOM code sequence; its attribute depends on the length of the value."""
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
    """Add the codes of a structure to an item of the RT ROI observations."""
    if coding.type is not None:
        observation.RTROIIdentificationCodeSequence = [code_item(coding.type)]
        if coding.category is not None:
            observation.SegmentedPropertyCategoryCodeSequence = [code_item(coding.category)]
    if coding.region is not None:
        observation.AnatomicRegionSequence = [code_item(coding.region)]


def terminology_coding(tags: str, colour: str) -> Coding:
    """Read the tags and the colour of a segment of a .seg.nrrd."""
    shade = _fractions(colour)
    entry = next((tag for tag in tags.split("|") if tag.startswith(_TAG)), None)
    if entry is None:
        return Coding(colour=shade)
    fields = [_triplet(field) for field in entry.removeprefix(_TAG).split("~")]
    _, category, kind, modifier, _, region = (*fields, *[None] * 6)[:6]
    return Coding(category=category, type=kind, modifier=modifier, region=region, colour=shade)


def terminology_tag(coding: Coding) -> str:
    """Format codes as the tag of a segment; only "|" if nothing is known."""
    if coding.type is None:
        return "|"
    fields = [_CONTEXTS[0], *(_caret(code) for code in (coding.category, coding.type, coding.modifier))]
    fields += [_CONTEXTS[1], _caret(coding.region), _caret(None)]
    return f"{_TAG}{'~'.join(fields)}|"


def _code(dataset: Any, sequence: str) -> Code | None:
    items = dataset.get(sequence)
    if not items or isinstance(items, (str, bytes)):
        return None
    item = items[0]
    value = item.get("CodeValue") or item.get(_LONG) or item.get(_URN) or ""
    scheme = item.get("CodingSchemeDesignator") or ("URN" if item.get(_URN) else "")
    return _make_code(str(value), str(scheme), str(item.get("CodeMeaning") or ""))


def _make_code(value: str, scheme: str, meaning: str) -> Code | None:
    try:
        return Code(value.strip(), scheme.strip(), text_of(meaning.strip()) or value.strip())
    except ValueError:
        return None


def _triplet(text: str) -> Code | None:
    parts = text.split("^")
    return _make_code(parts[1], parts[0], parts[2]) if len(parts) == 3 and parts[1] else None


def _caret(code: Code | None) -> str:
    if code is None:
        return "^^"
    parts = (code.scheme, code.value, code.meaning)
    return "^".join("".join(letter for letter in part if letter not in "^~|\\") for part in parts)


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


class Measure(NamedTuple):
    """Measurement of a structure: code in structured reports, meaning, value and UCUM unit."""

    code: str
    meaning: str
    value: float
    unit: str = "1"


@dataclass(frozen=True, eq=False)
class Structure:
    """Mask or map for export."""

    name: str
    # (Z, Y, X) or float32: on the complete grid: a mask; a probability, 0 to 1; for NIfTI any map
    values: NDArray[np.bool_] | NDArray[np.float32]
    colour: Colour = (230, 159, 0)  # (red, green, blue): 0 to 255; used if the coding has none
    coding: Coding = NOTHING_CODED  # its coded meaning
    measures: Sequence[Measure] = ()  # for structured reports, besides its volume

    @property
    def title(self) -> str:
        """Name in files."""
        return self.coding.label or self.name

    @property
    def shade(self) -> Colour:
        """Colour in files."""
        return self.coding.colour or self.colour


@contextmanager
def reference_errors(path: Path, document: str) -> Iterator[None]:
    """Raise an `InputError` if a series lacks attributes that a DICOM document needs."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"cannot be written: the series lacks what {document} refers to ({plain(error)})"
        raise InputError(what, file=path) from error


def require_source(path: Path, source: VolumeFile | None, grid: Grid) -> VolumeFile:
    """Return the DICOM series that a DICOM file refers to.

    Raises `InputError` if there is none, or it is on another grid.
    """
    if source is None or not source.identifier or not source.files:
        raise InputError(
            "cannot be written without the DICOM series that was marked; write NIfTI or .seg.nrrd instead",
            file=path,
        )
    if not source.grid.same_as(grid):
        raise InputError(
            f"is on a grid of {grid.in_words()}; the series has {source.grid.in_words()}", file=path
        )
    return source


def lasting_uid(name: str) -> str:
    """Return a UID that is always the same for a name."""
    return f"2.25.{uuid5(NAMESPACE_OID, name).int}"


def missing_uids(head: Any) -> tuple[str, str]:
    """Return the UIDs of the frame of reference and the study of a series; new UIDs if it lacks them."""
    series = str(head.get("SeriesInstanceUID") or head.get("SOPInstanceUID") or "")
    uids = [lasting_uid(f"{series} {purpose}") for purpose in ("frame", "study")]
    return (str(head.get("FrameOfReferenceUID") or uids[0]), str(head.get("StudyInstanceUID") or uids[1]))


def require_masks(path: Path, structures: Sequence[Structure], instead: str) -> None:
    """Refuse maps in a format that supports only masks."""
    for structure in structures:
        if structure.values.dtype != np.bool_:
            raise InputError(
                f"{plain(structure.name)} is a map, but the format supports only masks; write {instead}",
                file=path,
            )


def file_names(path: Path, suffix: str, names: Sequence[str]) -> list[Path]:
    """Name the files of several structures: liver_probability.nii.gz beside liver.nii.gz."""
    stem = path.name[: -len(suffix)] if path.name.casefold().endswith(suffix) else path.name
    used: set[str] = set()
    return [
        path.with_name(f"{unique_name(f'{stem}_{file_name_part(name)}', used)}{suffix}") for name in names
    ]
