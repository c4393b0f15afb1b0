"""Annotator, image and structure from the names of files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from raterscope.app.errors import InputError, plain

__all__ = ["NOTHING", "Named", "bare", "by_path", "by_pattern", "common_parts"]

_SUFFIXES = re.compile(
    r"(\.seg)?\.(nii(\.gz)?|nrrd|nhdr|mha|mhd|hdr|img|png|tiff?|bmp|gif|jpe?g|(geo)?json|xml|dcm|[ct]sv)$",
    re.IGNORECASE,
)
_FIELDS = ("item", "annotator", "structure")
_PEOPLE = (
    "rater|reader|annotator|annot|observer|obs|expert|radiologist|rad|doctor|dr|user|operator|worker|"
    "physician|reviewer|grader|labeler|labeller|author|model|net|network|fold|seed|member"
)
_THINGS = (
    "case|patient|pat|pt|subject|subj|sub|image|img|im|scan|study|series|volume|vol|slice|exam|item|id|ct|mr|"
    "mri|t1|t2|flair"
)
_PERSON = re.compile(rf"({_PEOPLE})\d*[a-z]?|[ar]\d{{1,2}}", re.IGNORECASE)
_THING = re.compile(rf"({_THINGS})?\d+[a-z]?|({_THINGS})", re.IGNORECASE)
_BARE_PERSON = re.compile(rf"({_PEOPLE})", re.IGNORECASE)
_BARE_THING = re.compile(rf"({_THINGS})", re.IGNORECASE)
_IDLE = {
    "mask", "masks", "seg", "segs", "segmentation", "segmentations", "label", "labels", "labelmap", "gt",
    "annotation", "annotations", "contour", "contours", "roi", "prob", "probability", "pred", "prediction",
    "by", "of", "from", "binary", "output", "final",
}  # fmt: skip
_MOST_WILD = 6


class Named(NamedTuple):
    """What a name tells; None where it does not."""

    item: str | None = None
    annotator: str | None = None
    structure: str | None = None


NOTHING = Named()


def bare(path: Path) -> str:
    """Give a file's name without its suffixes: case07 for case07.seg.nrrd."""
    return _SUFFIXES.sub("", path.name) or path.name


def by_pattern(text: str, pattern: str) -> Named | None:
    """Take a name apart.

    Parameters
    ----------
    text : str
        A name without its suffix, with as many folders before it as the pattern has, "/" between.
    pattern : str
        A name with {item}, {annotator} and {structure}, each at most once, and * for what does not matter:
        "{item}_{annotator}_{structure}", "{annotator}/{item}". Where it can be read in several ways, the item
        takes the most, and the first of the others the least.

    Returns
    -------
    Named, or None when the name is not of that pattern.

    Raises
    ------
    InputError
        For a pattern with another field, a field twice, or none.
    """
    parts = re.split(r"(\{[^{}]*\}|\*)", pattern)
    wild = [part[1:-1] for part in parts if part.startswith("{") and part.endswith("}")]
    if not wild or len(set(wild)) != len(wild) or set(wild) - set(_FIELDS) or len(parts) > 2 * _MOST_WILD:
        raise InputError(
            f'"{plain(pattern)}" is no pattern of names; expected {{item}}, {{annotator}} or {{structure}}, '
            "each at most once, as in {item}_{annotator}"
        )
    expression = ""
    for part in parts:
        if part == "*":
            expression += "[^/]*?"
        elif part.startswith("{") and part.endswith("}"):
            expression += f"(?P<{part[1:-1]}>[^/]+{'' if part == '{item}' else '?'})"
        else:
            expression += re.escape(part)
    found = re.fullmatch(expression, text[-400:])
    return None if found is None else Named(**found.groupdict())


def by_path(path: Path, pattern: str) -> Named | None:
    """Take the name of a file apart, and of as many folders above it as the pattern has."""
    folders = path.parent.parts[-pattern.count("/") :] if "/" in pattern else ()
    return by_pattern("/".join([*folders, bare(path)]), pattern)


def common_parts(paths: Iterable[Path]) -> dict[Path, Named]:
    """Find out what differs between the names of files that belong together.

    Names and the folders below the first that all share are cut at _ - . and blanks. Words such as "reader"
    and "case" tell which piece is whose; else a piece with a number that differs is the image, one of letters
    the annotator, and what all names share is the image (with a number) or the structure (without).
    """
    files = list(dict.fromkeys(Path(path) for path in paths))
    shared = 0
    for level in zip(*(file.parent.parts for file in files), strict=False):
        if len(set(level)) > 1:
            break
        shared += 1
    pieces = {path: _pieces(path, shared) for path in files}
    if len({len(row) for row in pieces.values()}) > 1:
        return {path: _by_words(row) for path, row in pieces.items()}
    columns = [column for column in zip(*pieces.values(), strict=True) if column]
    if not columns:
        return {}
    role = _roles(columns)
    return {path: _named(row, role) for path, row in pieces.items()}


def _pieces(path: Path, shared: int) -> list[str]:
    """Cut a name, and the folders below the first so many, which all files share, into words."""
    folders = path.parent.parts[shared:]
    joined: list[str] = []
    for word in (*folders, *(word for word in re.split(r"[_\-. ]+", bare(path)) if word)):
        both = joined and word.isdigit() and len(joined) > len(folders)
        if both and (_BARE_PERSON.fullmatch(joined[-1]) or _BARE_THING.fullmatch(joined[-1])):
            joined[-1] = f"{joined[-1]} {word}"
        else:
            joined.append(word)
    return joined


def _is_person(word: str) -> bool:
    return _PERSON.fullmatch(word.replace(" ", "")) is not None


def _is_thing(word: str) -> bool:
    return _THING.fullmatch(word.replace(" ", "")) is not None


def _has_number(word: str) -> bool:
    return any(letter.isdigit() for letter in word)


def _roles(columns: Sequence[Sequence[str]]) -> dict[int, str]:
    """Tell which column of pieces is what."""
    role: dict[int, str] = {}
    varying = [at for at, column in enumerate(columns) if len(set(column)) > 1]
    idle = {at for at, column in enumerate(columns) if all(word.casefold() in _IDLE for word in column)}

    def take(name: str, candidates: Iterable[int]) -> None:
        if name not in role.values():
            for at in candidates:
                if at not in role and at not in idle:
                    role[at] = name
                    return

    everywhere = range(len(columns))
    take("annotator", (at for at in everywhere if all(map(_is_person, columns[at]))))
    take("item", (at for at in varying if all(map(_is_thing, columns[at]))))
    if len(varying) > 1:
        take("item", (at for at in varying if all(map(_has_number, columns[at]))))
        take("annotator", (at for at in varying))
        take("item", (at for at in varying))
        take("structure", (at for at in varying))
    elif "item" not in role.values() or any(_is_thing(columns[at][0]) for at in set(everywhere) - set(role)):
        take("annotator", varying)
    constant = [at for at in everywhere if at not in varying]
    if len(columns[0]) == 1 and "annotator" not in role.values():
        return role
    take("item", (at for at in constant if _has_number(columns[at][0]) or _is_thing(columns[at][0])))
    take("structure", (at for at in constant if not _has_number(columns[at][0])))
    return role


def _named(row: Sequence[str], role: dict[int, str]) -> Named:
    return Named(**{name: row[at] for at, name in role.items()})


def _by_words(row: Sequence[str]) -> Named:
    """Name what the words of one name alone tell."""
    person = next((word for word in row if _is_person(word)), None)
    thing = next((word for word in row if word != person and _is_thing(word) and _has_number(word)), None)
    rest = [word for word in row if word not in (person, thing) and word.casefold() not in _IDLE]
    return Named(thing, person, rest[0] if len(rest) == 1 else None)
