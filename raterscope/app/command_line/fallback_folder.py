"""Where results go when the place that they were meant for does not take them: hours of work are not lost."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from raterscope.app.errors import InputError

__all__ = ["Rescued", "rescued", "write_in_folder"]

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Rescued(Generic[Answer]):
    """What came of writing, where, and why not in the place that was meant; empty where it was there."""

    answer: Answer
    place: Path
    why: str = ""

    def tell(self, what: str) -> None:
        """Say that something is in another place than was meant, in words before that place.

        Raises
        ------
        InputError
            Where it is.
        """
        if self.why:
            raise InputError(f"{self.why} {what} {self.place}.")


def rescued(
    write: Callable[[Path], Answer], place: Path, elsewhere: Callable[[Path], Answer] | None = None
) -> Rescued[Answer]:
    """Write something, in another place if it must be.

    Parameters
    ----------
    write : callable
        ``write(place)`` gives what came of it.
    place : Path
        Where it is meant to be.
    elsewhere : callable, optional
        What is done in another place, which is not there yet, where that is not the same.

    Raises
    ------
    InputError, OSError
        Why it could not be written where it was meant, when no other place takes it either.
    """
    try:
        return Rescued(write(place), place)
    except (InputError, OSError) as refused:
        for other in _others(place):
            with suppress(InputError, OSError):
                return Rescued((elsewhere or write)(other), other, _sentence(refused))
        raise


def write_in_folder(write: Callable[[Path], Answer], folder: Path) -> Rescued[Answer]:
    """Write files into a folder that is there, or into one that is made elsewhere."""

    def elsewhere(other: Path) -> Answer:
        other.mkdir(parents=True)
        return write(other)

    return rescued(write, folder, elsewhere)


def _sentence(refused: Exception) -> str:
    if isinstance(refused, OSError) and refused.filename:
        return f"{refused.filename}: {refused.strerror}."
    return str(refused)


def _others(place: Path) -> Iterator[Path]:
    """Name a place that is not taken in the folder one is in, in one's own, in that for temporary files."""
    for folder in dict.fromkeys((Path.cwd(), Path.home(), Path(tempfile.gettempdir()))):
        names = (f"{place.stem}-rescued{number}{place.suffix}" for number in ("", *range(2, 1000)))
        yield next(folder / name for name in names if not os.path.lexists(folder / name))
