"""Names of structures and what they stand for: a table of TG-263 names, and a search of coded concepts.

References
----------
.. [mayo2018] C. S. Mayo, J. M. Moran, W. Bosch, Y. Xiao, T. McNutt, R. Popple et al., "American Association
   of Physicists in Medicine Task Group 263: Standardizing nomenclatures in radiation oncology",
   International Journal of Radiation Oncology, Biology, Physics 100 (2018) 1057-1066,
   doi:10.1016/j.ijrobp.2017.12.013.
DICOM PS3.16, context groups 7150 and 7151 (segmentation property categories and types), 9534 (targets).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from raterscope.app.coding import NOTHING_CODED, Code, Coding

__all__ = [
    "CATEGORIES",
    "LATERALITIES",
    "concepts",
    "find_code",
    "suggested",
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
