"""The commands `structures`, which shows or sets their coding, and `rename`, of structures and classes."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from raterscope.app.coding import ROLES, Code, Coding
from raterscope.app.command_line.output import one_line
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks.terminology import CATEGORIES, LATERALITIES, find_code, usual_category
from raterscope.app.import_preview import parse_changes
from raterscope.app.kinds.masks.exports import coding_source, known_coding
from raterscope.app.review import Decision, StructureSubject
from raterscope.app.study import Study
from raterscope.app.study.masks import chosen_codings, imported_codings, mask_entries
from raterscope.app.study.runs import make_renaming

_FROM = {"chosen": "chosen", "file": "from a file", "name": "by its name", "": "unknown"}
_NAMED = 5


def structures(options: argparse.Namespace) -> int:
    """List structures with their coding, or set the coding of one structure."""
    if options.find is not None:
        for code in find_code(options.find):
            print(f"{code.scheme}:{code.value}\t{one_line(code.meaning)}")
        return 0
    changes = _changes(options)
    if changes and options.structure is None:
        raise InputError("name the structure to set; without one, structures are listed")
    with Study.open(options.study, to_read=not changes) as study:
        images: dict[str, int] = {}
        for entry in mask_entries(study):
            images.setdefault(entry.structure, entry.image)
        if not images:
            raise InputError("contains no masks; `raterscope import` reads them", file=study.path)
        names = list(images) if options.structure is None else [_named(images, options.structure)]
        if changes:
            chosen, imported = chosen_codings(study), imported_codings(study)
            try:
                coding = replace(known_coding(chosen, imported, names[0]), **changes)
            except ValueError as error:
                raise InputError(str(error)) from error
            subject = StructureSubject(structure=names[0], coding=coding)
            study.record(Decision(verb="describe", item=images[names[0]], subject=subject))
        chosen, imported = chosen_codings(study), imported_codings(study)
    for name in names:
        lines = _in_words(known_coding(chosen, imported, name))
        print(one_line(f"{plain(name)}: {lines} ({_FROM[coding_source(chosen, imported, name)]})"))
    return 0


def _named(images: dict[str, int], name: str) -> str:
    matches = [candidate for candidate in images if candidate == name] or [
        candidate for candidate in images if candidate.casefold() == name.casefold()
    ]
    if not matches:
        raise InputError(f"there is no structure {plain(name)}; there is {', '.join(map(plain, images))}")
    return matches[0]


def _changes(options: argparse.Namespace) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for name in ("type", "category", "region"):
        text = getattr(options, name)
        if text is not None:
            changes[name] = _code(text, CATEGORIES if name == "category" else ())
    if options.type is not None and options.category is None:
        changes["category"] = usual_category(changes["type"]) or CATEGORIES[0]
    if options.side is not None:
        changes["modifier"] = LATERALITIES.get(options.side)
    if options.colour is not None:
        changes["colour"] = _colour(options.colour)
    if options.role is not None:
        role = options.role.upper().replace(" ", "_")
        if role not in (*ROLES, "NONE"):
            raise InputError(f"{plain(options.role)} is no role; expected none or one of {', '.join(ROLES)}")
        changes["role"] = "" if role == "NONE" else role
    if options.label is not None:
        changes["label"] = options.label
    return changes


def _code(text: str, among: tuple[Code, ...]) -> Code:
    """Parse a code: SCHEME:VALUE=MEANING, a value alone, or words of the meaning."""
    parts, _, meaning = text.partition("=")
    if meaning:
        scheme, _, value = parts.partition(":")
        try:
            return Code(value.strip(), scheme.strip(), meaning.strip())
        except ValueError as error:
            raise InputError(f"{plain(text)}: {error}") from error
    searched = text.strip().casefold()
    codes = [
        code
        for code in among
        if searched in (code.value, f"{code.scheme}:{code.value}".casefold(), code.meaning.casefold())
    ] or ([] if among else list(find_code(text)))
    exact = [code for code in codes if code.meaning.casefold() == searched]
    if len(exact) == 1 or len(codes) == 1:
        return (exact or codes)[0]
    listed = ", ".join(
        f"{code.scheme}:{code.value} {code.meaning}" for code in (codes or list(among))[:_NAMED]
    )
    more = f"; it may be {listed}" if listed else "; --find TEXT lists codes"
    raise InputError(f"{plain(text)} is not the name of one code{more}")


def _colour(text: str) -> tuple[int, int, int]:
    digits = text.strip().removeprefix("#")
    if len(digits) != 6 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
        raise InputError(f"{plain(text)} is no colour; expected red, green and blue as in #e69f00")
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)


def _in_words(coding: Coding) -> str:
    kind = coding.type
    words = [f"{kind.meaning} ({kind.scheme}:{kind.value})" if kind is not None else "no code"]
    words += [code.meaning for code in (coding.modifier, coding.region, coding.category) if code is not None]
    words += [coding.role] if coding.role else []
    words += ["#{:02x}{:02x}{:02x}".format(*coding.colour)] if coding.colour is not None else []
    words += [f"exported as {coding.label}"] if coding.label else []
    return ", ".join(words)


def rename(options: argparse.Namespace) -> int:
    """Record new names, all or none; print each change."""
    changes = parse_changes(options.names)
    if not all(changes.class_.values()):
        raise InputError("a class has no new name; expected class:NAME=NEW")
    if changes.annotator:
        raise InputError("annotators keep their names; join several in the window (workspace Annotators, J)")
    pairs = [("masks", *pair) for pair in changes.structure.items()]
    pairs += [("clicks", *pair) for pair in changes.class_.items()]
    with Study.open(options.study) as study, study.change():
        for kind, name, new in pairs:
            try:
                decision = study.record(make_renaming(study, kind, name, new))
            except ValueError as refusal:
                raise InputError(str(refusal).rstrip("."), file=study.path) from refusal
            assert decision.subject is not None
            print(one_line(decision.subject.in_words(decision.verb)))
    return 0
