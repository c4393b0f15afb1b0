"""Reliability, sensitivity and precision of annotators who click, on one or several images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from raterscope.algorithms.clicks.data import BoolArray, Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.result import (
    ERRORS,
    AnnotatorRates,
    Clustering,
    Detection,
    Fusion,
    counts_at_errors,
    error_of_marks,
    interval,
    precision_of,
    sensitivity_of,
)
from raterscope.algorithms.clicks.voting import (
    AssignmentSettings,
    assign,
    assign_outsiders,
    repeats_of,
    votes_of,
)
from raterscope.algorithms.progress import Check, no_check


class Tally(NamedTuple):
    """Counts of the R annotators of an image, (R,) unless stated."""

    clicks: IntArray  # duplicates merged
    inliers: FloatArray  # of these, votes: neither outliers nor far from the cluster
    marks: IntArray  # clicks, several on one cluster counted once
    hit: FloatArray  # hit, miss: expected votes on structures
    miss: FloatArray
    error: FloatArray  # (R, 3), see `error_of_marks`
    # hits, structures: (R, 9), see `counts_at_errors`
    hits: FloatArray
    structures: FloatArray


def count_clicks(
    clicks: Clicks,
    clustering: Clustering,
    marked: BoolArray,
    detection: Detection,
    assignment: AssignmentSettings,
) -> Tally:
    """Count the expected marks and votes of each annotator on an image, duplicates merged."""
    counts, coverage = clicks.counts(), assignment.vote_coverage
    votes = votes_of(clicks, clustering, assignment.outlier_threshold, coverage)
    return Tally(
        counts,
        np.bincount(clicks.annotator, votes, minlength=len(counts)).astype(np.float64),
        counts - repeats_of(clicks, clustering, marked, coverage),
        detection.true_positive,
        detection.false_negative,
        error_of_marks(marked, detection),
        *counts_at_errors(marked, detection),
    )


def estimate_rates(tallies: Sequence[Tally], check: Check = no_check) -> list[AnnotatorRates]:
    """Estimate the rates of the annotators of each image, with 95 % intervals, for all images at once.

    The reliability is the share of an annotator's clicks that are votes (eq. 12 counts only outliers).
    Reliability and sensitivity are means of Beta posteriors of the expected counts: with Jeffreys' prior for
    reliability, and with a prior of two votes at the mean of all annotators of the image for sensitivity, see
    `sensitivity_of`. For the precision see `precision_of`.
    """
    if not tallies:
        return []
    clicks, inliers, marks, hit, miss, error, hits, structures = (
        np.concatenate(column) for column in zip(*tallies, strict=True)
    )
    sizes = [len(tally.clicks) for tally in tallies]
    prior, other = np.repeat([_common(tally.hit, tally.miss) for tally in tallies], sizes, axis=0).T
    columns = (
        interval(inliers, clicks - inliers, 0.5, 0.5, check=check),
        sensitivity_of(hit, miss, hits, structures, prior, other, check),
        precision_of(hit, marks, error),
    )
    rows = zip(*(np.split(column, np.cumsum(sizes)[:-1]) for column in columns), strict=True)
    return [
        AnnotatorRates(tally.clicks, reliability, sensitivity, precision, marks=tally.marks)
        for tally, (reliability, sensitivity, precision) in zip(tallies, rows, strict=True)
    ]


def pool_rates(
    fusions: Sequence[Fusion], annotators: Sequence[Sequence[str]]
) -> tuple[tuple[str, ...], AnnotatorRates]:
    """Estimate the rates of annotators over several images together.

    Parameters
    ----------
    fusions : sequence of Fusion
    annotators : sequence of names
        For each fusion, the names of its annotators, in its order. A repeated name is the same annotator.

    Returns
    -------
    names : tuple of str
        All annotators, in order of first appearance.
    rates : AnnotatorRates
        From the expected counts summed over images.

    Examples
    --------
    >>> from raterscope.algorithms.clicks.fusion import fuse
    >>> from raterscope.algorithms.simulation.click_crowds import separated_crowd
    >>> clicks = [separated_crowd(20, seed=seed).clicks for seed in (3, 4)]
    >>> names, rates = pool_rates([fuse(each) for each in clicks], [each.annotators for each in clicks])
    >>> len(names), rates.sensitivity.shape
    (20, (20, 3))
    """
    return pool_counts([rate_counts(fusion) for fusion in fusions], annotators)


def rate_counts(fusion: Fusion) -> FloatArray:
    """Return the expected counts of an image's annotators, for `pool_counts`: (R, 26)."""
    rates, votes = fusion.rates, fusion.detection
    reliability = np.nan_to_num(rates.reliability[:, 0])
    return np.column_stack([
        rates.clicks,
        np.maximum(reliability * (rates.clicks + 1) - 0.5, 0),  # Jeffreys' prior taken out again
        rates.marks if len(rates.marks) else rates.clicks,
        votes.true_positive,
        votes.false_negative,
        error_of_marks(fusion.marked, votes),
        *counts_at_errors(fusion.marked, votes),
    ])  # fmt: skip


def outsider_counts(clicks: Clicks, fusion: Fusion, assignment: AssignmentSettings) -> FloatArray:
    """Return the expected counts of annotators who were not fused, by the others' consensus: (R, 26).

    `clicks`: their clicks on the image. The counts are for `pool_counts`.
    """
    marks, _ = clicks.merged()
    clustering = assign_outsiders(marks, fusion.clustering)
    votes = votes_of(marks, clustering, assignment.outlier_threshold, assignment.vote_coverage)
    marked = assign(marks, clustering, votes)
    hit = marked @ fusion.detection.posterior
    miss = fusion.detection.posterior.sum() - hit
    detection = replace(fusion.detection, true_positive=hit, false_negative=miss)
    return np.column_stack(count_clicks(marks, clustering, marked, detection, assignment))


def pool_counts(
    images: Sequence[FloatArray], annotators: Sequence[Sequence[str]]
) -> tuple[tuple[str, ...], AnnotatorRates]:
    """Estimate the rates of annotators over several images from their stored expected counts."""
    index: dict[str, int] = {}
    for names in annotators:
        for name in names:
            index.setdefault(name, len(index))
    counts = np.zeros((len(index), 8 + 2 * len(ERRORS)))
    for image, names in zip(images, annotators, strict=True):
        rows = np.array([index[name] for name in names], dtype=np.int64)
        np.add.at(counts, rows, image)  # a name may be there twice
    single, error, hits, structures = np.split(counts, [5, -2 * len(ERRORS), -len(ERRORS)], axis=1)
    clicked, inliers, marks, hit, miss = single.T
    whole = clicked.astype(np.int64), marks.astype(np.int64)
    tally = Tally(whole[0], inliers, whole[1], hit, miss, error, hits, structures)
    return tuple(index), estimate_rates([tally])[0]


def _common(right: FloatArray, wrong: FloatArray) -> tuple[float, float]:
    """Return a prior of two votes at the mean of all annotators."""
    total = float(np.sum(right) + np.sum(wrong))
    mean = (float(np.sum(right)) + 0.5) / (total + 1)
    return 2 * mean, 2 * (1 - mean)
