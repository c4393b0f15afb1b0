"""Names of repeated reads, and weights of annotators.

The second read of anna is the annotator "anna (read 2)".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import RefusedError

_READ = re.compile(r"(?P<person>.+) \(read (?P<read>[1-9]\d{0,5})\)", re.DOTALL)


def read_name(person: str, read: int) -> str:
    """Return the name under which a person's read is stored; the first read has the person's name.

    Examples
    --------
    >>> read_name("anna", 1), read_name("anna", 2)
    ('anna', 'anna (read 2)')
    """
    if read < 1:
        raise ValueError(f"read {read}; expected 1 or more.")
    return person if read == 1 else f"{person} (read {read})"


def split_read(name: str) -> tuple[str, int]:
    """Split an annotator's name into the person and the number of the read.

    Examples
    --------
    >>> split_read("anna (read 2)"), split_read("anna")
    (('anna', 2), ('anna', 1))
    """
    match = _READ.fullmatch(name)
    return (name, 1) if match is None else (match["person"], int(match["read"]))


def reads_of(names: Iterable[str]) -> dict[str, dict[int, str]]:
    """Group annotators by person: their names by the number of the read, in order.

    Examples
    --------
    >>> reads_of(["anna (read 2)", "ben", "anna"])
    {'anna': {1: 'anna', 2: 'anna (read 2)'}, 'ben': {1: 'ben'}}
    """
    people: dict[str, dict[int, str]] = {}
    for name in names:
        person, read = split_read(name)
        people.setdefault(person, {})[read] = name
    return {person: dict(sorted(reads.items())) for person, reads in people.items()}


def read_notices(names: Iterable[str]) -> tuple[str, ...]:
    """Return a notice if there are later reads, which a fusion counts as further annotators.

    Examples
    --------
    >>> read_notices(["anna", "anna (read 2)", "ben"])[0][:60]
    '1 annotator is a later read of another one: each read counts'
    >>> read_notices(["anna", "ben"])
    ()
    """
    later = sum(len(reads) - 1 for reads in reads_of(names).values())
    if not later:
        return ()
    are = "1 annotator is a later read" if later == 1 else f"{later:,} annotators are later reads"
    return (
        f"{are} of another one: each read counts as an annotator of its own. People agree with themselves "
        "more than with others, so the result is less sure than it looks. Exclude later reads to avoid this.",
    )


FloatArray = NDArray[np.float64]


def checked_weights(
    values: FloatArray | None, annotators: Sequence[str], refuse: type[RefusedError]
) -> FloatArray | None:
    """Return the weights of annotators as (K,), or None where all count fully.

    Raises an error of the given class unless there is one weight above 0 and at most 1 for each annotator.
    """
    if values is None:
        return None
    weights = np.ascontiguousarray(values, dtype=np.float64)
    if weights.shape != (len(annotators),):
        raise refuse(f"{weights.size} weights for {len(annotators)} annotators.")
    bad = np.flatnonzero(~((weights > 0) & (weights <= 1)))
    if len(bad):
        raise refuse(
            f"the weight of {annotators[bad[0]]} is {weights[bad[0]]}; expected more than 0, at most 1."
        )
    return None if bool((weights == 1).all()) else weights


def weights_by_name(weights: Mapping[str, float], annotators: Sequence[str]) -> FloatArray | None:
    """Return the weight of each annotator, 1 by default and if excluded; None if there are no weights."""
    if not weights:
        return None
    return np.array([weights.get(name, 1.0) or 1.0 for name in annotators], dtype=np.float64)


def reweighed(
    weights: FloatArray | None, annotators: Sequence[str], chosen: Collection[str], weight: float
) -> FloatArray:
    """Return the weights, (K,), with another weight for the chosen annotators."""
    others = np.ones(len(annotators)) if weights is None else weights
    return np.where([name in chosen for name in annotators], weight, others)
