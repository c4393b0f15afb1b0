"""What the window would ask, the command line says in one sentence with the option that answers it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol, TypeVar

from raterscope.app.annotator_names import UnknownAnnotators
from raterscope.app.errors import InputError, plain
from raterscope.app.formats import UnknownColumns
from raterscope.app.formats.volumes.resampling import OtherGrid

__all__ = ["asked_for", "by_option"]


class Named(Protocol):
    """A question."""

    @property
    def name(self) -> str:
        """What is asked."""


Asked = TypeVar("Asked", bound=Named)


def asked_for(asked: list[Asked], question: str | None) -> list[Asked]:
    """Choose the question of that name, whatever its case; without a name, all."""
    if question is None:
        return asked
    found = [one for one in asked if one.name.casefold() == question.casefold()]
    if not found:
        known = ", ".join(plain(one.name, 40) for one in asked[:8])
        raise InputError(f"there is no question {plain(question)}; expected one of {known}")
    return found


@contextlib.contextmanager
def by_option() -> Iterator[None]:
    """Say by which option is told what a file leaves open."""
    try:
        yield
    except UnknownColumns as unknown:
        raise InputError(f"{unknown.what}, by --map column=field", file=unknown.file) from unknown
    except UnknownAnnotators as unknown:
        words = f"{unknown.what}; tell by --annotator NAME, or by --naming how names are made up, as in "
        raise InputError(words + "{item}_{annotator}", file=unknown.file) from unknown
    except OtherGrid as other:
        words = "; --resample takes it there" if other.resamplable else ""
        raise InputError(other.what + words, file=other.file) from other
