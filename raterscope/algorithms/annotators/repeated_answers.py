"""Answers that an annotator gave twice: kappa of repeated votes, consistency of repeated and swapped pairs.

References
----------
.. [wilson1927] E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal
   of the American Statistical Association 22 (1927) 209-212, doi:10.1080/01621459.1927.10502953.
.. [cohen1960] J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological
   Measurement 20 (1960) 37-46, doi:10.1177/001316446002000104.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raterscope.algorithms.annotators.agreement import cohen_kappa, kappa_interval
from raterscope.algorithms.annotators.names import split_read
from raterscope.algorithms.annotators.statistics import wilson
from raterscope.algorithms.annotators.vote_agreement import Coefficient

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class RepeatedAnswers:
    """One person's answers to what they answered before: share [wilson1927]_ and kappa [cohen1960]_."""

    person: str  # empty for all together
    agreement: Coefficient  # share of equal answers, with Wilson's interval
    kappa: Coefficient  # Cohen's, of the first and the second answer; NaN where it is not defined
    repeats: int


def repeated_answers(
    subject: ArrayLike, annotator: ArrayLike, answer: ArrayLike, names: Sequence[str]
) -> list[RepeatedAnswers]:
    """Compare each answer with the one that the same person gave to the same subject before.

    `subject`, `annotator`, `answer`: (V,), in the order of the answers; reads of a person, named by
    `read_name`, follow each other. The first result is of all persons together, then each person with repeats
    follows, most repeats first. Without repeats the list is empty.
    """
    first, second, author, people = _repeats(subject, annotator, answer, names)
    if not len(first):
        return []
    counts = np.bincount(author, minlength=len(people))
    order = np.argsort(-counts, kind="stable")
    each = [
        _compare(people[person], first[author == person], second[author == person])
        for person in order.tolist()
        if counts[person]
    ]
    return [_compare("", first, second), *each]


def shares_alike(alike: ArrayLike) -> Coefficient:
    """Return a share with Wilson's interval; NaN of nothing."""
    values = np.asarray(alike, dtype=bool)
    if not len(values):
        return Coefficient(np.nan, np.nan, np.nan)
    return Coefficient(float(values.mean()), *wilson(float(values.sum()), len(values)))


def _repeats(
    subject: ArrayLike, annotator: ArrayLike, answer: ArrayLike, names: Sequence[str]
) -> tuple[IntArray, IntArray, IntArray, list[str]]:
    """Return the earlier and the later answer of each repeat, and the index of its person."""
    numbers: dict[str, int] = {}
    split = [split_read(name) for name in names]
    person = np.array([numbers.setdefault(name, len(numbers)) for name, _ in split], dtype=np.int64)
    read = np.array([number for _, number in split], dtype=np.int64)
    subjects, annotators, answers = (
        np.asarray(values, dtype=np.int64) for values in (subject, annotator, answer)
    )
    position = np.arange(len(subjects))
    order = np.lexsort((position, read[annotators], subjects, person[annotators]))
    author, what = person[annotators][order], subjects[order]
    repeated = (author[1:] == author[:-1]) & (what[1:] == what[:-1])
    given = answers[order]
    return given[:-1][repeated], given[1:][repeated], author[1:][repeated], list(numbers)


def _compare(person: str, first: IntArray, second: IntArray) -> RepeatedAnswers:
    names, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    a, b = codes[: len(first)], codes[len(first) :]
    kappa = Coefficient(np.nan, np.nan, np.nan)
    if len(names) > 1:
        kappa = Coefficient(cohen_kappa(a, b), *kappa_interval(a, b))
    return RepeatedAnswers(person, shares_alike(first == second), kappa, len(first))


@dataclass(frozen=True)
class PairConsistency:
    """How one person answers a comparison again."""

    person: str  # empty for all together
    # same, swapped: share of equal choices where the items had the same sides as before, and where they had
    # changed sides
    same: Coefficient
    swapped: Coefficient
    same_repeats: int
    swapped_repeats: int


def pair_consistency(
    annotator: ArrayLike,
    left: ArrayLike,
    right: ArrayLike,
    choice: ArrayLike,
    names: Sequence[str],
    task: ArrayLike | None = None,
) -> list[PairConsistency]:
    """Compare each comparison with the one that the same person made of the same two items before.

    `annotator`, `left`, `right`: (E,).
    `choice`: (E,), above 0 for the left item, below for the right one, 0 for a tie.
    `task`: (E,), what the items were compared on; only comparisons on the same task are repeats.
    The first result is of all persons together, then each person with repeats follows, most repeats first.
        Without repeats the list is empty.
    """
    lefts, rights = np.asarray(left, dtype=np.int64), np.asarray(right, dtype=np.int64)
    turned = lefts > rights
    sign = np.sign(np.asarray(choice, dtype=np.float64)).astype(np.int64)
    low, high = np.minimum(lefts, rights), np.maximum(lefts, rights)
    key = low * (int(high.max(initial=0)) + 1) + high
    if task is not None:
        key = np.unique(np.stack([key, np.asarray(task, dtype=np.int64)]), axis=1, return_inverse=True)[1]
    _, pair = np.unique(key, return_inverse=True)
    # One code for the choice by item, and the sides that the items had.
    code = (np.where(turned, -sign, sign) + 1) * 2 + turned
    first, second, author, people = _repeats(pair, annotator, code, names)
    if not len(first):
        return []
    alike, swapped = first // 2 == second // 2, first % 2 != second % 2
    counts = np.bincount(author, minlength=len(people))
    order = [person for person in np.argsort(-counts, kind="stable").tolist() if counts[person]]
    chosen = [np.ones(len(author), dtype=bool), *(author == person for person in order)]
    titles = ["", *(people[person] for person in order)]
    return [
        PairConsistency(
            title, shares_alike(alike[of & ~swapped]), shares_alike(alike[of & swapped]),
            int((of & ~swapped).sum()), int((of & swapped).sum()),
        )
        for title, of in zip(titles, chosen, strict=True)
    ]  # fmt: skip
