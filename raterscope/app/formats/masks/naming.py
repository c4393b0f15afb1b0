"""Annotator, image and structure parsed from file names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from raterscope.algorithms.annotators.names import read_name
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks.terminology import tg263_name

_SUFFIXES = re.compile(
    r"(\.(seg|ome))?\.(nii(\.gz)?|nrrd|nhdr|mha|mhd|hdr|img|png|tiff?|bmp|gif|jpe?g|(geo)?jsonl?|xml|dcm|[ct]sv|parquet|xls[xm]?|ods)$",
    re.IGNORECASE,
)
_FIELDS = ("item", "annotator", "structure")
_PEOPLE = (
    "rater|reader|annotator|annot|observer|obs|expert|radiologist|rad|doctor|dr|user|operator|worker|"
    "physician|reviewer|grader|labeler|labeller|author|model|net|network|fold|seed|member|person|crowd|"
    "student|participant|volunteer|coder|clinician|pathologist|physicist|technician"
)
_ITEM_WORDS = (
    "case|patient|pat|pt|subject|subj|sub|image|img|im|scan|study|series|volume|vol|slice|exam|item|id|ct|mr|"
    "mri|t1|t2|flair|training|train|test|visit|session|ses|timepoint|slide|core|tile|patch|frame|field|fov|"
    "p|s|c"
)
_PERSON = re.compile(rf"({_PEOPLE})\d*[a-z]?|[ar]\d{{1,2}}", re.IGNORECASE)
_ITEM = re.compile(rf"({_ITEM_WORDS})?\d+[a-z]?|({_ITEM_WORDS})", re.IGNORECASE)
_BARE_PERSON = re.compile(rf"({_PEOPLE})", re.IGNORECASE)
_BARE_ITEM = re.compile(rf"({_ITEM_WORDS})", re.IGNORECASE)
_IDLE = {
    "mask", "masks", "seg", "segs", "segmentation", "segmentations", "label", "labels", "labelmap", "gt",
    "annotation", "annotations", "contour", "contours", "roi", "prob", "probability", "pred", "prediction",
    "by", "of", "from", "binary", "output", "final", "manual", "manualsegmentation",
}  # fmt: skip
_MARK = re.compile(rf"({'|'.join(_IDLE)})\d+", re.IGNORECASE)
_MAX_FIELDS = 6
_ENTITY = re.compile(r"([A-Za-z]+)-([A-Za-z0-9+]+)")
_RATERS = ("rater", "reader", "annotator", "annot", "observer", "expert")
_STRUCTURES = ("label", "desc")
_DERIVED = {*_RATERS, *_STRUCTURES, "space", "res", "den", "hemi", "read"}
"""Entities in the name of a derived file that its source does not have."""


RATERS_IN_STRUCTURES = "{structure}_{annotator}"
"""Pattern of structure names that end with the rater: GTV_Adler."""

_RATER = re.compile(r"(?P<structure>.*[A-Za-z].*)_(?P<annotator>[^\W\d_][^\W_]+)")
_PARTS = (
    "left|right|lt|rt|both|bilateral|sup(erior)?|inf(erior)?|ant(erior)?|post(erior)?|med(ial)?|lat(eral)?|"
    "upper|lower|mid|apex|base|bed|high|low|total|whole|all|cortex|medulla|head|neck|body|tail|wall|lobe|"
    "primary|nodal|nodes?|boost|core|tumou?r|lesion|necrosis|edema|ring|outer|inner|new|old|final|copy|opt|prv"
)
"""Words at the end of a structure's name that do not name a rater."""


class NameParts(NamedTuple):
    """Parts of a name; None for a missing part."""

    item: str | None = None
    annotator: str | None = None
    structure: str | None = None


NO_NAMES = NameParts()


def strip_suffixes(path: Path) -> str:
    """Return a file's name without its suffixes: case07 for case07.seg.nrrd."""
    return _SUFFIXES.sub("", path.name) or path.name


def image_stem(name: str) -> str:
    """Return an image's name without suffixes, with the folders that distinguish it: a/case07."""
    return _SUFFIXES.sub("", name) or name


def parse_name(text: str, pattern: str) -> NameParts | None:
    """Parse a name by a pattern.

    Raises `InputError` for a pattern with an unknown or repeated field, or without fields.

    `text`: a name without its suffix, preceded by the number of folders in the pattern, separated by "/".
    `pattern`: a name with {item}, {annotator} and {structure}, each at most once, and * for any other text:
    "{item}_{annotator}_{structure}", "{annotator}/{item}". If there are several solutions, the item is as
    long as possible, then the first of the other fields as short as possible. The result is None if the name
    does not match the pattern.
    """
    parts = re.split(r"(\{[^{}]*\}|\*)", pattern)
    fields = [part[1:-1] for part in parts if part.startswith("{") and part.endswith("}")]
    if (
        not fields
        or len(set(fields)) != len(fields)
        or set(fields) - set(_FIELDS)
        or len(parts) > 2 * _MAX_FIELDS
    ):
        raise InputError(
            f'"{plain(pattern)}" is not a pattern of names; expected {{item}}, {{annotator}} or '
            "{structure}, each at most once, as in {item}_{annotator}"
        )
    expression = ""
    for part in parts:
        if part == "*":
            expression += "[^/]*?"
        elif part.startswith("{") and part.endswith("}"):
            expression += f"(?P<{part[1:-1]}>[^/]+{'' if part == '{item}' else '?'})"
        else:
            expression += re.escape(part)
    match = re.fullmatch(expression, text[-400:])
    return None if match is None else NameParts(**match.groupdict())


def suggest_structure_naming(structures: Iterable[str]) -> str:
    """Return the pattern of structure names that end with the rater; empty if they do not seem to.

    They do if a structure occurs with at least two endings that are words and not sides or parts of the body.

    Examples
    --------
    >>> suggest_structure_naming(["GTV_Adler", "GTV_Brandt"])
    '{structure}_{annotator}'
    >>> suggest_structure_naming(["Lung_L", "Lung_R", "PTV_High", "PTV_Low"])
    ''
    """
    raters: dict[str, set[str]] = defaultdict(set)
    for name in structures:
        match = _RATER.fullmatch(name)
        if match is None or tg263_name(name) or re.fullmatch(_PARTS, match["annotator"], re.IGNORECASE):
            return ""
        raters[match["structure"].casefold()].add(match["annotator"].casefold())
    return RATERS_IN_STRUCTURES if any(len(names) > 1 for names in raters.values()) else ""


def parse_path(path: Path, pattern: str) -> NameParts | None:
    """Parse the name of a file, and of the folders above it that the pattern contains."""
    folders = path.parent.parts[-pattern.count("/") :] if "/" in pattern else ()
    return parse_name("/".join([*folders, strip_suffixes(path)]), pattern)


def parse_bids(path: Path) -> NameParts | None:
    """Parse a name of the Brain Imaging Data Structure that has an entity for the rater.

    In sub-01_ses-2_rater-A_label-lesion_mask.nii.gz, the image is sub-01_ses-2, the annotator A, and the
    structure the value of label, otherwise of desc.

    References
    ----------
    Gorgolewski et al., "The brain imaging data structure, a format for organizing and describing outputs of
    neuroimaging experiments", Scientific Data 3, 160044, 2016; specification 1.9, "Derivatives".
    """
    entities = [
        match.groups() for word in strip_suffixes(path).split("_") if (match := _ENTITY.fullmatch(word))
    ]
    values = {name.casefold(): value for name, value in entities}
    rater = next((values[name] for name in _RATERS if name in values), None)
    if "sub" not in values or rater is None:
        return None
    item = "_".join(f"{name}-{value}" for name, value in entities if name.casefold() not in _DERIVED)
    return NameParts(item, rater, next((values[name] for name in _STRUCTURES if name in values), None))


def parse_reads(paths: Iterable[Path]) -> dict[Path, NameParts]:
    """Parse names with entities for rater and read, of files or of their folders.

    case07_rater-anna_read-2 and rater-anna_read-2/case07 name the image case07 and the annotator "anna (read
    2)". If no name has a read, the result is empty; otherwise a name without a read is the first read.
    """
    parsed: dict[Path, NameParts] = {}
    any_read = False
    for path in paths:
        stem = strip_suffixes(path)
        for text in (stem, path.parent.name):
            values: dict[str, str] = {}
            words = []
            for word in text.split("_"):
                match = _ENTITY.fullmatch(word)
                name = match[1].casefold() if match else ""
                if match and name in _DERIVED:
                    values[name] = match[2]
                elif word.casefold() not in _IDLE:
                    words.append(word)
            rater = next((values[name] for name in _RATERS if name in values), None)
            read = values.get("read", "1")
            if rater is None or not re.fullmatch(r"[1-9]\d{0,5}", read, re.ASCII):
                continue
            any_read |= "read" in values
            structure = next((values[name] for name in _STRUCTURES if name in values), None)
            item = "_".join(words) if text is stem else stem
            parsed[path] = NameParts(item or None, read_name(rater, int(read)), structure)
            break
    return parsed if any_read else {}


def compare_names(paths: Iterable[Path]) -> dict[Path, NameParts]:
    """Derive annotator, image and structure from the differences between the names of related files.

    Names, and folders below the common folder, are split at _ - . and blanks. Words such as "reader" and
    "case" determine the parts. Otherwise a differing piece with a number is the image, and a differing piece
    of letters the annotator. A piece common to all names is the image (with a number) or the structure
    (without).
    """
    files = list(dict.fromkeys(Path(path) for path in paths))
    shared = 0
    for level in zip(*(file.parent.parts for file in files), strict=False):
        if len(set(level)) > 1:
            break
        shared += 1
    pieces = {path: _pieces(path, shared) for path in files}
    folders = len(files[0].parent.parts) - shared if files else 0
    if len({len(row) for row in pieces.values()}) > 1:
        parsed = {path: _parse_words(row) for path, row in pieces.items()}
        if all(name.annotator for name in parsed.values()) or not _are_crossed(files, shared):
            return parsed
        folders, pieces = 1, {path: [_without_idle(path.parent.name), strip_suffixes(path)] for path in files}
    columns = [column for column in zip(*pieces.values(), strict=True) if column]
    if not columns:
        return {}
    role = _roles(columns, folders)
    return {path: _parts(row, role) for path, row in pieces.items()}


def _parts(row: Sequence[str], role: Mapping[int, str]) -> NameParts:
    """Return the parts of a name; the pieces of a part are joined."""
    parts: dict[str, list[str]] = defaultdict(list)
    for at in sorted(role):
        parts[role[at]].append(row[at])
    return NameParts(**{name: "_".join(words) for name, words in parts.items()})


def _are_crossed(files: Sequence[Path], shared: int) -> bool:
    """Return whether folders contain files with the same names, as CASE/RATER.png and RATER/CASE.png do."""
    names = {strip_suffixes(file) for file in files}
    folders = {file.parent.name for file in files}
    one_level = all(len(file.parent.parts) == shared + 1 for file in files)
    return one_level and 2 * max(len(names), len(folders)) <= len(files)


def _pieces(path: Path, shared: int) -> list[str]:
    """Split a name, and the folders after the first `shared` ones, into words."""
    folders = tuple(map(_without_idle, path.parent.parts[shared:]))
    words: list[str] = []
    for word in (*folders, *(word for word in re.split(r"[_\-. ]+", strip_suffixes(path)) if word)):
        numbers = word.isdigit() or (len(word) == 1 and word.isalpha())
        may_join = words and numbers and len(words) > len(folders)
        if may_join and (
            _BARE_PERSON.fullmatch(words[-1])
            or _BARE_ITEM.fullmatch(words[-1])
            or (word.isdigit() and words[-1].casefold() in _IDLE)
        ):
            words[-1] = f"{words[-1]} {word}"
        else:
            words.append(word)
    return words


def _without_idle(folder: str) -> str:
    """Return the part that distinguishes a folder: "anna" of labels_anna, "mask 1" of mask_1, "Anna K."."""
    words = [word for word in re.split(r"[_\-. ]+", folder) if word]
    if _is_mark(" ".join(words)):
        return " ".join(words)
    kept = [word for word in words if word.casefold() not in _IDLE]
    return "_".join(kept) if 0 < len(kept) < len(words) else folder


def _is_person(word: str) -> bool:
    return _PERSON.fullmatch(word.replace(" ", "")) is not None


def _is_item(word: str) -> bool:
    return _ITEM.fullmatch(word.replace(" ", "")) is not None


def _is_mark(word: str) -> bool:
    """Return whether a word numbers the masks of an image, as "annotation 2" and mask2 do."""
    return _MARK.fullmatch(word.replace(" ", "")) is not None


def _are_structures(columns: Sequence[Sequence[str]]) -> bool:
    """Return whether all words are names of structures; True without words."""
    return all(tg263_name(word) for words in columns for word in words)


def _is_crossed(columns: Sequence[Sequence[str]], at: int) -> bool:
    """Return whether each word of a column is combined with all words that any of them is combined with."""
    beside = set(zip(*(column for other, column in enumerate(columns) if other != at), strict=True))
    return len(beside) * len(set(columns[at])) <= len(columns[at])


def _has_number(word: str) -> bool:
    return any(letter.isdigit() for letter in word)


def _roles(columns: Sequence[Sequence[str]], folders: int) -> dict[int, str]:
    """Assign roles to the columns of pieces, the first of which are folders."""
    role: dict[int, str] = {}
    varying = [at for at, column in enumerate(columns) if len(set(column)) > 1]
    idle = {at for at, column in enumerate(columns) if all(word.casefold() in _IDLE for word in column)}

    def assign(name: str, candidates: Iterable[int]) -> None:
        if name not in role.values():
            for at in candidates:
                if at not in role and at not in idle:
                    role[at] = name
                    return

    all_columns = range(len(columns))
    assign("annotator", (at for at in all_columns if all(map(_is_person, columns[at]))))
    numbered = [at for at in varying if all(map(_has_number, columns[at]))]
    marks = [at for at in all_columns if all(map(_is_mark, columns[at]))]
    words = [
        at
        for at in varying
        if not any(map(_has_number, columns[at])) and not _are_structures([columns[at]])
        if at >= folders or (not set(numbered).issubset(marks) and _is_crossed(columns, at))
    ]
    if any(at >= folders for at in marks):  # label1_anna is the first structure by anna
        assign("annotator", words)
        assign("structure", marks if words else ())
    if not set(numbered).issubset(marks):
        assign("annotator", (at for at in marks if at in varying))
    items = [at for at in varying if at not in role and all(map(_is_item, columns[at]))]
    # A case may have pieces: patient and slice, training01_02, a date. What follows them is the structure.
    if items and "annotator" in role.values():
        role |= {at: "item" for at in numbered if at not in role and at <= items[-1]}
    elif not _are_structures([columns[at] for at in varying if at not in items]):
        role |= dict.fromkeys(items, "item")
    assign("item", items)
    if len(varying) > 1:
        same_words = (at for at in numbered if len({re.sub(r"\d+", "#", word) for word in columns[at]}) == 1)
        assign("item", same_words)
        assign("item", numbered)
        for name in ("annotator", "item", "structure"):
            assign(name, varying)
    elif "item" not in role.values() or any(_is_item(columns[at][0]) for at in set(all_columns) - set(role)):
        assign("annotator", varying)
    constant = [at for at in all_columns if at not in varying]
    if len(columns[0]) == 1 and "annotator" not in role.values():
        return role
    assign("item", (at for at in constant if _has_number(columns[at][0]) or _is_item(columns[at][0])))
    assign("structure", (at for at in constant if not _has_number(columns[at][0])))
    if {"item", "annotator"} <= set(role.values()):
        assign("structure", (at for at in constant if not columns[at][0].isdigit()))
    return role


def _parse_words(row: Sequence[str]) -> NameParts:
    """Derive the parts from the words of a single name."""
    person = next((word for word in row if _is_person(word)), None)
    item = next((word for word in row if word != person and _is_item(word) and _has_number(word)), None)
    others = [word for word in row if word not in (person, item) and word.casefold() not in _IDLE]
    return NameParts(item, person, "_".join(others) or None)
