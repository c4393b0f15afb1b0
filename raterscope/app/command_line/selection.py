"""Selection of items and questions by the command line, and hints at options that resolve an ambiguity."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from raterscope.app.ambiguous_files import UnknownAnnotators
from raterscope.app.errors import InputError, plain, plain_names
from raterscope.app.formats import UnknownColumns
from raterscope.app.formats.volumes.resampling import OtherGrid
from raterscope.app.study import ImageEntry, Study
from raterscope.app.study.records import Item
from raterscope.app.study.references import ImageNames


def select_items(
    study: Study, items: Sequence[str], kind: str | None = None, *, by_question: bool = False
) -> Sequence[Item]:
    """Select named images, or questions of a kind; without a name, all of the kind."""
    if kind is not None and by_question:
        return _questions(study, items, kind)
    entries = study.images()
    if not entries:
        raise InputError("contains no images yet; `raterscope import` reads them", file=study.path)
    if not items:
        numbers = (
            {entry.id for entry in entries} if kind is None else {item.id for item in study.items()[kind]}
        )
        if not numbers:
            raise InputError(f"contains no {kind}; `raterscope import` reads them", file=study.path)
        return [entry for entry in entries if entry.id in numbers]
    names = ImageNames(entries, study.path.parent)
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
        raise InputError(f"contains no {kind}; `raterscope import` reads them", file=study.path)
    by_name = {entry.name.casefold(): entry for entry in entries}
    for item in items:
        if item.casefold() not in by_name:
            raise _unknown(study, "question", item, entries)
    names = {item.casefold() for item in items} or set(by_name)
    return [entry for name, entry in by_name.items() if name in names]


def _unknown(study: Study, noun: str, item: str, entries: Sequence[Item]) -> InputError:
    examples = plain_names((entry.name for entry in entries), 5, 40)
    return InputError(f"contains no {noun} {plain(item)}; it contains {examples}", file=study.path)


class Named(Protocol):
    """A question."""

    @property
    def name(self) -> str:
        """Name of the question."""


QuestionType = TypeVar("QuestionType", bound=Named)


def select_question(questions: list[QuestionType], question: str | None) -> list[QuestionType]:
    """Select the question with this name, ignoring case; without a name, all."""
    if question is None:
        return questions
    matches = [entry for entry in questions if entry.name.casefold() == question.casefold()]
    if not matches:
        examples = ", ".join(plain(entry.name, 40) for entry in questions[:8])
        raise InputError(f"there is no question {plain(question)}; expected one of {examples}")
    return matches


@contextlib.contextmanager
def answered_by_options() -> Iterator[None]:
    """Add to the error of an ambiguity the option that resolves it."""
    try:
        yield
    except UnknownColumns as unknown:
        raise InputError(f"{unknown.what}, by --map column=field", file=unknown.file) from unknown
    except UnknownAnnotators as unknown:
        text = f"{unknown.what}; give --annotator NAME, or the pattern of names by --naming, as in "
        skipped = "".join(f". {notice.rstrip('.')}" for notice in unknown.skipped)
        raise InputError(text + "{item}_{annotator}" + skipped, file=unknown.file) from unknown
    except OtherGrid as other:
        text = "; --resample resamples it" if other.resamplable else ""
        raise InputError(other.what + text, file=other.file) from other
