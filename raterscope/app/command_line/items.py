"""Which images or questions of a study a command is about."""

from __future__ import annotations

from collections.abc import Sequence

from raterscope.app.errors import InputError, plain
from raterscope.app.study import ImageEntry, Study
from raterscope.app.study.places import Names
from raterscope.app.study.records import Item

__all__ = ["chosen"]


def chosen(
    study: Study, items: Sequence[str], kind: str | None = None, *, by_question: bool = False
) -> Sequence[Item]:
    """Find the images, or the questions of a kind, that are named; without a name, all that the kind has."""
    if kind is not None and by_question:
        return _questions(study, items, kind)
    entries = study.images()
    if not entries:
        raise InputError("holds no images yet; `raterscope import` reads them", file=study.path)
    if not items:
        numbers = {entry.id for entry in entries} if kind is None else {one.id for one in study.items()[kind]}
        if not numbers:
            raise InputError(f"holds no {kind}; `raterscope import` reads them", file=study.path)
        return [entry for entry in entries if entry.id in numbers]
    names = Names(entries)
    named: dict[int, ImageEntry] = {}
    for item in items:
        entry = names.find(item)
        if entry is None:
            raise _unknown(study, "image", item, entries)
        named[entry.id] = entry
    return list(named.values())


def _questions(study: Study, items: Sequence[str], kind: str) -> Sequence[Item]:
    entries = study.items()[kind]
    if not entries:
        raise InputError(f"holds no {kind}; `raterscope import` reads them", file=study.path)
    by_name = {entry.name.casefold(): entry for entry in entries}
    for item in items:
        if item.casefold() not in by_name:
            raise _unknown(study, "question", item, entries)
    wanted = {item.casefold() for item in items} or set(by_name)
    return [entry for name, entry in by_name.items() if name in wanted]


def _unknown(study: Study, what: str, item: str, entries: Sequence[Item]) -> InputError:
    known = ", ".join(plain(one.name, 40) for one in entries[:5])
    more = f" and {len(entries) - 5:,} more" if len(entries) > 5 else ""
    return InputError(f"holds no {what} {plain(item)}; it holds {known}{more}", file=study.path)
