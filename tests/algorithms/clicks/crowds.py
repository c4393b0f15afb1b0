"""Crowds for the tests: small ones made by hand, and the real ones."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from zlib import crc32

import numpy as np
from scipy.spatial import cKDTree

from raterscope.algorithms.clicks import Clicks, Votes

MIN_PAIRS = 10
"""Pairs from which on a displacement is estimated."""


@dataclass(frozen=True)
class RealImage:
    subset: str
    clicks: Clicks
    truth: np.ndarray
    count: int


def made(points, annotator, annotators=None, extent=(0.0, 0.0, 100.0, 100.0), **more):
    points = np.asarray(points, dtype=float).reshape(-1, 2)
    annotator = np.asarray(annotator, dtype=int)
    number = annotators if annotators is not None else int(annotator.max(initial=-1)) + 1
    names = tuple(f"a{index}" for index in range(number))
    return Clicks(points[:, 0], points[:, 1], annotator, names, extent, **more)


def in_order(clicks: Clicks, order) -> Clicks:
    """Let annotators come one after the other, each with all clicks."""
    position = np.argsort(order)
    rows = np.argsort(position[clicks.annotator], kind="stable")
    return replace(
        clicks,
        x=clicks.x[rows],
        y=clicks.y[rows],
        annotator=position[clicks.annotator][rows],
        annotators=tuple(clicks.annotators[index] for index in order),
        weights=None if clicks.weights is None else clicks.weights[order],
    )


def until(clicks: Clicks, annotators: int) -> Clicks:
    """Take what the first annotators brought."""
    rows = clicks.annotator < annotators
    return replace(
        clicks,
        x=clicks.x[rows],
        y=clicks.y[rows],
        annotator=clicks.annotator[rows],
        annotators=clicks.annotators[:annotators],
        weights=None if clicks.weights is None else clicks.weights[:annotators],
    )


def votes_of_text(rows, verdict=None, stray=None, positions=0.0):
    """Make votes from one text an annotator: "1101"."""
    marked = np.array([[letter == "1" for letter in row] for row in rows], dtype=bool)
    clusters = marked.shape[1]
    verdict = np.full(clusters, -1) if verdict is None else np.asarray(verdict)
    weight = marked.sum(axis=0) / max(marked.sum(), 1)
    return Votes(marked, weight, verdict.astype(np.int8), stray, positions)


@cache
def quantius(folder: Path) -> list[RealImage]:
    """Read the paid crowd: positions are exact or an expert's."""
    position = folder / "clicks" / "quantius"
    rows = _by_image(position / "clicks.csv")
    truth = _by_image(position / "gt.csv")
    with (position / "images.csv").open() as stream:
        images = {row["image_id"]: row for row in csv.DictReader(stream)}
    result = []
    for name, marks in rows.items():
        image = images[name]
        extent = (0.0, 0.0, float(image["width"]), float(image["height"]))
        points = np.array([(float(row["x"]), float(row["y"])) for row in truth[name]])
        clicks = _clicks(marks, int(image["n_jobs"]), extent)
        result.append(RealImage(image["subset"], clicks, points, len(points)))
    return result


def displacement(positions: np.ndarray, truth: np.ndarray, reach: float) -> np.ndarray:
    """Estimate by how much the places lie beside the truth as a whole, (2,), from mutual nearest pairs.

    The expert who marked the smFISH images and the beads of `quantius` did so about two pixels beside what
    the crowd clicked on, which the radius of four pixels does not allow for.
    """
    shift = np.zeros(2)
    for _ in range(3):
        distance, nearest = cKDTree(truth + shift).query(positions)
        back = cKDTree(positions).query(truth + shift)[1]
        pairs = (back[nearest] == np.arange(len(positions))) & (distance < reach)
        if pairs.sum() < MIN_PAIRS:
            break
        shift = np.median(positions[pairs] - truth[nearest[pairs]], axis=0)
    return shift


@cache
def iguanas(folder: Path) -> list[RealImage]:
    """Read the volunteers: an expert counted, places are not known, sizes neither."""
    position = folder / "clicks" / "iguanas"
    rows = _by_image(position / "clicks.csv")
    result = []
    with (position / "expert_counts.csv").open() as stream:
        for image in csv.DictReader(stream):
            marks = rows[image["image_id"]]
            edges = [max(1000.0, *(float(row[axis]) for row in marks)) for axis in ("x", "y")]
            clicks = _clicks(marks, int(float(image["users"])), (0.0, 0.0, edges[0], edges[1]))
            result.append(RealImage("", clicks, np.empty((0, 2)), int(image["expert_count"])))
    return result


def _by_image(path: Path) -> dict[str, list[dict[str, str]]]:
    rows: dict[str, list[dict[str, str]]] = defaultdict(list)
    with path.open() as stream:
        for row in csv.DictReader(stream):
            rows[row["image_id"]].append(row)
    return rows


def _clicks(rows: list[dict[str, str]], looked: int, extent: tuple[float, float, float, float]) -> Clicks:
    names = sorted({row["annotator_id"] for row in rows})
    index = {name: number for number, name in enumerate(names)}
    quiet = [f"marked nothing {number}" for number in range(looked - len(names))]
    return Clicks(
        np.array([float(row["x"]) for row in rows]),
        np.array([float(row["y"]) for row in rows]),
        np.array([index[row["annotator_id"]] for row in rows]),
        (*names, *quiet),
        extent,
    )


def name_clicks(
    clicks: Clicks,
    structures: np.ndarray,
    classes: tuple[str, ...],
    seed: int,
    *,
    image: int = 0,
    shares: Sequence[float] | None = None,
    accuracy: tuple[float, float] = (0.6, 0.95),
    reach: float = 50.0,
) -> tuple[Clicks, np.ndarray]:
    """Give clicks classes, with some mistakes; return clicks and the classes of the K structures.

    A click has the class of the nearest structure, or a wrong one. An annotator's wrong classes are drawn
    from their own distribution, as if they took trophozoites for schizonts. Clicks far from all structures
    have random classes.

    `structures`: (K, 2).
    `classes`: (C,).
    `image`: number of the image; an annotator of one name and seed confuses the same classes on all images.
    `shares`: C numbers, share of each class among the structures; equal by default.
    `accuracy`: (low, high), share of an annotator's right classes, uniform between the two.
    `reach`: largest distance of a click to its structure, in pixels.
    """
    rng, count = np.random.default_rng([seed, image]), len(classes)
    truth = rng.choice(count, len(structures), p=shares)
    confusion = np.array([_confusion(name, seed, count, accuracy) for name in clicks.annotators])
    label = rng.choice(count, len(clicks), p=shares)
    distance, nearest = cKDTree(structures).query(clicks.points)
    near = np.flatnonzero(distance <= reach)
    rows = confusion[clicks.annotator[near], truth[nearest[near]]]
    label[near] = (rows.cumsum(axis=1) < rng.random((len(near), 1)) * rows.sum(axis=1, keepdims=True)).sum(
        axis=1
    )
    return replace(clicks, classes=classes, label=np.minimum(label, count - 1)), truth.astype(np.int64)


def _confusion(name: str, seed: int, count: int, accuracy: tuple[float, float]) -> np.ndarray:
    """Draw the confusion matrix of an annotator, (C, C)."""
    rng = np.random.default_rng([seed, crc32(name.encode())])
    right, wrong = rng.uniform(*accuracy), rng.dirichlet(np.full(count, 0.5), count)
    np.fill_diagonal(wrong, 0.0)
    wrong *= (1 - right) / np.maximum(wrong.sum(axis=1, keepdims=True), 1e-12)
    np.fill_diagonal(wrong, right)
    return wrong
