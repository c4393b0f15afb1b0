"""Names of structures and what they stand for: a table of TG-263 names, and a search of coded concepts.

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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.coding import NOTHING_CODED, ROLES, Code, Coding, Colour
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.output_files import file_name_part, unique_name
from raterscope.app.formats.records import VolumeFile
from raterscope.app.formats.untrusted import text_of

__all__ = [
    "CATEGORIES",
    "LATERALITIES",
    "Structure",
    "add_codes",
    "code_item",
    "concepts",
    "file_names",
    "find_code",
    "missing_uids",
    "refuse_maps",
    "required_source",
    "roi_coding",
    "segment_coding",
    "suggested",
    "terminology_coding",
    "terminology_tag",
    "tg263_name",
    "tg263_names",
    "usual_category",
]


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
"""CID 7150, those of most structures first."""

_LEFT, _RIGHT = Code("7771000", "SCT", "Left"), Code("24028007", "SCT", "Right")
_BOTH = Code("51440002", "SCT", "Right and left")

# TG-263 name without a side, SNOMED CT code, meaning, whether it has sides, other usual names.
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
"""Sides of the body, which modify a type (CID 244)."""

_SUFFIXES = {_LEFT: "_L", _RIGHT: "_R", _BOTH: "s"}
_MOST_FOUND = 100


@dataclass(frozen=True)
class _Named:
    """A TG-263 name and what it stands for."""

    name: str
    coding: Coding


def suggested(name: str) -> Coding:
    """Suggest what a structure stands for by its name alone; nothing where the name is not a usual one."""
    found = _known().get(_plain(name))
    if found is not None:
        return found.coding
    target = _TARGET.fullmatch(name.strip())
    if target is None:
        return NOTHING_CODED
    role = target[1].upper()
    return Coding(category=_SPACE, type=_TARGETS[role], role=role)


def tg263_name(name: str) -> str:
    """Give the TG-263 name of a structure; empty where its name is not a usual one."""
    found = _known().get(_plain(name))
    return "" if found is None else found.name


def tg263_names() -> tuple[str, ...]:
    """List the TG-263 names of the table, in order, with sides where there are."""
    names = {one.name for one in _known().values() if one.coding.role}
    return (*_TARGETS, *sorted(names, key=str.casefold))


@cache
def concepts() -> tuple[Code, ...]:
    """List the concepts that a structure may be: those of CID 7151 and 9534 first, then all of SNOMED CT.

    It takes about a second the first time, most of it to load the dictionary.
    """
    from pydicom.sr.codedict import codes

    found: dict[tuple[str, str], Code] = {}
    for group in (codes.cid7151, codes.cid9534, codes.SCT):
        listed = [getattr(group, name) for name in group.dir()]
        # Of several words for one concept the shortest.
        for one in sorted(listed, key=lambda code: (len(code.meaning), code.meaning.casefold())):
            if 0 < len(one.meaning) <= 64 and "\\" not in one.meaning:
                key = one.value, one.scheme_designator
                found.setdefault(key, Code(*key, one.meaning))
    return tuple(found.values())


def usual_category(code: Code) -> Code | None:
    """Give the category of a concept of the table of names; None for any other."""
    return _categories().get((code.value, code.scheme))


@cache
def _categories() -> dict[tuple[str, str], Code]:
    known = (*(one.coding for one in _known().values()), *map(suggested, _TARGETS))
    return {
        (one.type.value, one.type.scheme): one.category
        for one in known
        if one.type is not None and one.category is not None
    }


def find_code(text: str) -> tuple[Code, ...]:
    """Find concepts by "SCT:80891009", by a value alone, or by words of the meaning; the best ones first."""
    scheme, _, value = text.strip().rpartition(":")
    exact = [one for one in _by_value().get(value, ()) if scheme in ("", one.scheme)]
    if exact:
        return tuple(exact)
    words = text.casefold().split()
    fitting = [(meaning, one) for meaning, one in _folded() if all(word in meaning for word in words)]
    wanted = " ".join(words)
    fitting.sort(key=lambda pair: 0 if pair[0] == wanted else 1 if pair[0].startswith(wanted) else 2)
    return tuple(one for _, one in fitting[:_MOST_FOUND])


@cache
def _by_value() -> dict[str, list[Code]]:
    found: dict[str, list[Code]] = {}
    for one in concepts():
        found.setdefault(one.value, []).append(one)
    return found


@cache
def _folded() -> tuple[tuple[str, Code], ...]:
    return tuple((one.meaning.casefold(), one) for one in concepts())


@cache
def _known() -> dict[str, _Named]:
    found: dict[str, _Named] = {}
    for name, value, meaning, sided, others in _ORGANS:
        code = Code(value, "SCT", meaning)
        bare = Coding(category=_ANATOMY, type=code, role="ORGAN")
        for called in (name, *others):
            found[_plain(called)] = _Named(name, bare)
        if not sided:
            continue
        for word, side in _SIDES.items():
            if side is _BOTH and name.endswith("s"):
                continue
            coding = Coding(category=_ANATOMY, type=code, modifier=side, role="ORGAN")
            for called in (name, *others):
                at_end = f"{name}{_SUFFIXES[side]}"
                found[_plain(f"{called} {word}")] = found[_plain(f"{word} {called}")] = _Named(at_end, coding)
        for called in () if name.endswith("s") else (name, *others):
            both = Coding(category=_ANATOMY, type=code, modifier=_BOTH, role="ORGAN")
            found[_plain(f"{called}s")] = _Named(f"{name}s", both)
    for name, code in _ABNORMALITIES.items():
        found[_plain(name)] = _Named(name, Coding(category=_ABNORMAL, type=code))
    for called in ("External", "Body"):
        found[_plain(called)] = _Named("External", Coding(category=_SPACE, type=_BODY, role="EXTERNAL"))
    return found


def _plain(name: str) -> str:
    """Make spellings of a name the same: no case, and one space for what parts its words."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.strip())
    return " ".join(re.split(r"[\s_.-]+", parted.casefold()))


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


@dataclass(frozen=True, eq=False)
class Structure:
    """One mask or map to be written.

    Attributes
    ----------
    name : str
    values : (Z, Y, X) bool or float32
        On the whole grid: a mask; a probability, 0 to 1; for NIfTI any map.
    colour : (red, green, blue)
        0 to 255; used where the coding has none.
    coding : Coding
        What it stands for.
    """

    name: str
    values: NDArray[np.bool_] | NDArray[np.float32]
    colour: Colour = (230, 159, 0)
    coding: Coding = NOTHING_CODED

    @property
    def title(self) -> str:
        """The name in files."""
        return self.coding.label or self.name

    @property
    def shade(self) -> Colour:
        """The colour in files."""
        return self.coding.colour or self.colour


def required_source(path: Path, source: VolumeFile | None, grid: Grid) -> VolumeFile:
    """Give the DICOM series that a DICOM file refers to.

    Raises
    ------
    InputError
        Where there is none, or it is on another grid.
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


def missing_uids(head: Any) -> tuple[str, str]:
    """Give the frame of reference and the study of a series; or new ones, always the same."""
    series = str(head.get("SeriesInstanceUID") or head.get("SOPInstanceUID") or "")
    made = [f"2.25.{uuid5(NAMESPACE_OID, f'{series} {what}').int}" for what in ("frame", "study")]
    return (
        str(head.get("FrameOfReferenceUID") or made[0]),
        str(head.get("StudyInstanceUID") or made[1]),
    )


def refuse_maps(path: Path, structures: Sequence[Structure], instead: str) -> None:
    """Refuse what is no mask, in a format that holds masks alone."""
    for one in structures:
        if one.values.dtype != np.bool_:
            raise InputError(
                f"{plain(one.name)} is a map, and the format holds masks alone; write {instead}", file=path
            )


def file_names(path: Path, suffix: str, names: Sequence[str]) -> list[Path]:
    """Name the files of several structures: liver_probability.nii.gz beside liver.nii.gz."""
    stem = path.name[: -len(suffix)] if path.name.casefold().endswith(suffix) else path.name
    taken: set[str] = set()
    return [
        path.with_name(f"{unique_name(f'{stem}_{file_name_part(name)}', taken)}{suffix}") for name in names
    ]
