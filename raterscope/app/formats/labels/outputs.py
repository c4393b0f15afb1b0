"""What was answered, as text: which answers are one, in which order they stand, and what is none."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.app.errors import InputError, plain
from raterscope.app.natural import natural

__all__ = ["MOST_OUTPUTS", "outputs_of"]

MOST_OUTPUTS = 1000
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?", re.ASCII)
_NOTHING = {"na", "n/a", "nan", "null", "none", "<na>"}


def outputs_of(
    found: Sequence[str], path: Path, field: str = "label"
) -> tuple[tuple[str, ...], NDArray[np.int16], tuple[str, ...]]:
    """Put answers in order: by value where all are numbers, else by the alphabet.

    Numbers that are equal are one answer, such as 1 and 1.0; words that programs write for nothing, such as
    NaN, are none where all others are numbers. Else an answer is its text, without the blanks around it.

    Parameters
    ----------
    found : sequence of str
        Each answer as it was written, once or several times.
    path : Path
    field : str

    Returns
    -------
    outputs : tuple of str
    place : (len(found),) int16
        Index of each answer into `outputs`; -1 for none.
    notices : tuple of str

    Raises
    ------
    InputError
        For more answers than anybody chooses among.
    """
    texts = [text.strip() for text in found]
    words = [text for text in texts if text and text.casefold() not in _NOTHING]
    if words and all(_NUMBER.fullmatch(word) and math.isfinite(float(word)) for word in words):
        names, notices = _numbers(words)
    else:
        names = {text: text for text in sorted({text for text in texts if text}, key=natural)}
        notices = _alike(list(names))
    outputs = tuple(dict.fromkeys(names.values()))
    if len(outputs) > MOST_OUTPUTS:
        raise InputError(
            f"has {len(outputs):,} different labels; expected at most {MOST_OUTPUTS:,} to choose among",
            file=path, field=field,
        )  # fmt: skip
    number = {name: at for at, name in enumerate(outputs)}
    place = [number[names[text]] if text in names else -1 for text in texts]
    return outputs, np.array(place, dtype=np.int16), notices


def _numbers(words: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    spellings: dict[float, set[str]] = {}
    for word in words:
        spellings.setdefault(float(word) + 0.0, set()).add(word)
    names: dict[str, str] = {}
    merged = []
    for value in sorted(spellings):
        alike = sorted(spellings[value], key=lambda word: (len(word), word))
        name = f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else alike[0]
        names.update(dict.fromkeys(alike, name))
        if len(alike) > 1 or name not in alike:
            alike = sorted({*alike, name}, key=lambda word: (len(word), word))
            merged.append(" and ".join(plain(word, 20) for word in alike[:3]))
    if not merged:
        return names, ()
    return names, (f"Labels that are the same number were taken for one: {'; '.join(merged[:3])}.",)


def _alike(outputs: Sequence[str]) -> tuple[str, ...]:
    """Say which answers differ in capitals alone."""
    pairs = [
        f"{plain(one, 20)} and {plain(other, 20)}"
        for one, other in pairwise(outputs)
        if one.casefold() == other.casefold()
    ]
    return (f"Labels that differ in capitals alone are kept apart: {'; '.join(pairs[:3])}.",) if pairs else ()
