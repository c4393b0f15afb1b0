"""A short name for a way of behaving, read off its confusion matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["all_in_words", "in_words"]

FloatArray = NDArray[np.float64]

_BLIND = 0.12
"""Rows that differ less than this from their mean (total variation) say nothing of the class."""


_LONG = 28
"""Letters of a class that are told."""


def in_words(
    prototype: ArrayLike, classes: Sequence[str], outputs: Sequence[str], meaning: Sequence[int]
) -> str:
    """Name a way of behaving: "reliable", "always cat", "mistakes cat for dog".

    Classes count alike, however frequent they are. Who says nearly the same of every class is said to
    ("always", "mostly ..., whatever it is", "guessing"); then come those who have it the wrong way round or
    do not commit themselves, the reliable, the one class that is missed, and what is left by how often it is
    right beyond chance: by half of what there is ("reasonable") or a fifth ("fair", or "better than guessing"
    for who is wrong more often than right even so).

    Parameters
    ----------
    prototype : (J, L) array
        Probabilities, rows adding up to 1.
    classes, outputs : J and L names
    meaning : L classes
        What each output stands for, -1 for one that stands for none.

    Returns
    -------
    str
    """
    classes, outputs = _shortened(classes), _shortened(outputs)
    matrix = np.asarray(prototype, dtype=np.float64)
    stands = np.asarray(meaning)[None, :] == np.arange(len(classes))[:, None]
    right = (matrix * stands).sum(axis=1)[stands.any(axis=1)]
    use = matrix.mean(axis=0)
    differ = float(np.abs(matrix - use).sum(axis=1).mean()) / 2
    if len(classes) > 1 and differ < _BLIND:
        return _whatever_it_is(use, matrix, outputs)
    if not len(right):
        return f"mostly {outputs[int(use.argmax())]}"
    if right.max() < 0.5 and len(classes) > 1 and _is_swapped(matrix, stands):
        return "the wrong way round"
    if use[np.asarray(meaning) < 0].sum() > 0.4:
        return "non-committal"
    if right.min() >= 0.7 and right.mean() >= 0.85:
        return "very reliable" if right.min() >= 0.9 and right.mean() >= 0.95 else "reliable"
    missed = _missed(matrix, stands, classes)
    if missed:
        return missed
    beyond = (right.mean() - 1 / len(classes)) / max(1 - 1 / len(classes), 1e-9)
    if right.mean() >= 0.85:
        return "mostly reliable"
    if beyond >= 0.5:
        return "reasonable"
    if beyond >= 0.2:
        return _avoided(matrix, outputs) or ("fair" if right.mean() >= 0.5 else "better than guessing")
    return "little better than guessing" if beyond > -0.2 else "mostly wrong"


def all_in_words(
    prototypes: ArrayLike, classes: Sequence[str], outputs: Sequence[str], meaning: Sequence[int]
) -> tuple[str, ...]:
    """Name several ways of behaving, (C, J, L), each differently.

    Those of one name are told apart by the output that each uses more than the others of that name do; where
    that does not do, by their number among them, from the first.
    """
    matrices = np.asarray(prototypes, dtype=np.float64)
    plain = [in_words(matrix, classes, outputs, meaning) for matrix in matrices]
    names = list(plain)
    for name, many in Counter(plain).items():
        if many == 1:
            continue
        those = [at for at, other in enumerate(plain) if other == name]
        use = matrices[those].mean(axis=1)
        more = (use - use.mean(axis=0)).argmax(axis=1)
        for at, output in zip(those, more, strict=True):
            names[at] = f"{name}, more {_shortened(outputs)[int(output)]}"
    seen: Counter[str] = Counter()
    again = Counter(names)
    for at, name in enumerate(names):
        if again[name] > 1:
            seen[name] += 1
            names[at] = f"{name}, no. {seen[name]}"
    return tuple(names)


def _shortened(names: Sequence[str]) -> list[str]:
    """Leave out the middle of long names: what tells them apart stands at either end."""
    return [
        name if len(name) <= _LONG else f"{name[: _LONG // 2]}…{name[-_LONG // 2 + 1 :]}" for name in names
    ]


def _whatever_it_is(use: FloatArray, matrix: FloatArray, outputs: Sequence[str]) -> str:
    most = int(use.argmax())
    if use[most] >= 0.85:
        return f"always {outputs[most]}"
    if use[most] >= max(0.6, 1.5 / len(use)):
        return f"mostly {outputs[most]}, whatever it is"
    return _avoided(matrix, outputs) or "guessing"


def _avoided(matrix: FloatArray, outputs: Sequence[str]) -> str:
    """Name the output that is seldom given to any class, where there are more than two."""
    most = matrix.max(axis=0)
    at = int(most.argmin())
    return f"seldom {outputs[at]}" if len(most) > 2 and most[at] < 0.45 / len(most) else ""


def _is_swapped(matrix: FloatArray, stands: NDArray[np.bool_]) -> bool:
    """Tell whether every class is mostly said to be another, each another one."""
    share = matrix @ stands.T.astype(np.float64)
    said = share.argmax(axis=1)
    return bool(
        (said != np.arange(len(said))).all()
        and len(set(said)) == len(said)
        and (share.max(axis=1) > 0.5).all()
    )


def _missed(matrix: FloatArray, stands: NDArray[np.bool_], classes: Sequence[str]) -> str:
    """Name the one class that is wrong more often than right, where all others are right mostly."""
    share = matrix @ stands.T.astype(np.float64)
    right = np.where(stands.any(axis=1), np.diag(share), np.nan)
    weak = np.flatnonzero(right < 0.5)
    if len(weak) != 1 or not (right[np.arange(len(right)) != weak[0]] >= 0.6).any():
        return ""
    at = int(weak[0])
    wrong = np.where(np.arange(len(classes)) == at, 0.0, share[at])
    for_what = int(wrong.argmax())
    if wrong[for_what] > 0.5:
        return f"mistakes {classes[at]} for {classes[for_what]}"
    return f"unsure of {classes[at]}"
