"""Sensitivity and precision against the number of annotators (OEM-DEM paper, figures 2 and 7 to 16).

Annotators are drawn at random from those of an image and join one after the other. The clicks of the first R
are clustered and detected for each R.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from raterscope.algorithms.clicks.baseline_clustering import CEMSettings, HACSettings, KMeansSettings
from raterscope.algorithms.clicks.catalogue import CLUSTERERS, DETECTORS
from raterscope.algorithms.clicks.data import Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.dem import DEMSettings
from raterscope.algorithms.clicks.fusion import FusionPlan, conclude
from raterscope.algorithms.clicks.oem import OEMSettings
from raterscope.algorithms.clicks.result import Clustering, Fusion
from raterscope.algorithms.clicks.stream import StreamPlan, StreamSettings, advance_stream, begin_stream
from raterscope.algorithms.clicks.voting import AssignmentSettings, MajoritySettings
from raterscope.algorithms.evaluation import evaluate
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.algorithms.settings import Settings, integer, switch

STAGES = ("clustering", "detection")

Scores = dict[tuple[str, str, int], list[tuple[float, float]]]
"""Sensitivity and precision for every crowd, by stage, method and size."""

CHOSEN = "chosen method"
STREAM = "chosen method, streamed"

PUBLISHED_DEM = DEMSettings(prior="none", start="paper", objective="expected", learn_across_images=False)
"""Algorithm 2 of the paper."""


PUBLISHED_VOTES = AssignmentSettings(vote_coverage=1.0)
"""Eq. 20 of the paper, without a limit on the distance of a vote from its cluster."""

DETECTORS_PUBLISHED: dict[str, tuple[str, Settings]] = {
    "DEM as published": ("dem", PUBLISHED_DEM),
    "majority vote": ("majority", MajoritySettings()),
}
"""Detectors after the published clusterings, by the suffix of the method's name."""


@dataclass(frozen=True)
class CrowdSizeSettings(Settings):
    """Settings of the curves: the crowds drawn, and the measures."""

    min_annotators: int = integer(5, "Minimum annotators", "Of the smallest crowd.", minimum=1)
    max_annotators: int | None = integer(
        None, "Maximum annotators", "Of the largest crowd. Empty: all of the image with the most.",
        minimum=1, left_open="all",
    )  # fmt: skip
    crowds: int = integer(6, "Sizes", "Number of crowd sizes to measure.", minimum=1, maximum=100)
    draws: int = integer(
        10, "Draws", "Crowds drawn at random from each image; the paper draws 300.", minimum=1, maximum=10_000
    )
    published: bool = switch(
        True, "Published methods", "Also measure OEM and CEM as published, k-means and hierarchical "
        "clustering, each with DEM as published and with majority voting.",
    )  # fmt: skip
    streamed: bool = switch(
        False, "Stream", "Also measure the chosen method as a stream and, with the published methods, the "
        "paper's Algorithm 3: annotators join one by one from the smallest crowd on (figures 15 and 16).",
    )  # fmt: skip
    draw_seed: int = integer(
        0, "Seed of draws", "Of the crowds.", minimum=0, maximum=2**31 - 1, advanced=True
    )


@dataclass(frozen=True, eq=False)
class CrowdSizeCurve:
    """Performance of one method with K sizes of crowd."""

    method: str  # "OEM as published, majority vote"; after clustering without the detector
    stage: str  # {"clustering", "detection"}
    annotators: IntArray  # (K,): R
    # sensitivity, precision: (K,): means over draws and images where they are defined; NaN without any
    sensitivity: FloatArray
    precision: FloatArray
    # sensitivity_error, precision_error: (K,): standard errors of these means over draws; NaN for fewer than
    # two draws
    sensitivity_error: FloatArray
    precision_error: FloatArray
    draws: IntArray  # (K,): number of crowds measured


def first_annotators(clicks: Clicks, order: Sequence[int], count: int) -> Clicks:
    """Keep the clicks of the first annotators in an order.

    `order`: indices of annotators, each once. `count`: R.
    """
    chosen = np.asarray(order, dtype=np.int64)[:count]
    rank = np.full(len(clicks.annotators), -1)
    rank[chosen] = np.arange(len(chosen))
    rows = np.flatnonzero(rank[clicks.annotator] >= 0)
    rows = rows[np.argsort(rank[clicks.annotator[rows]], kind="stable")]
    return replace(
        clicks,
        x=clicks.x[rows],
        y=clicks.y[rows],
        annotator=rank[clicks.annotator[rows]],
        annotators=tuple(clicks.annotators[at] for at in chosen),
        time=None if clicks.time is None else clicks.time[rows],
        weights=None if clicks.weights is None else clicks.weights[chosen],
    )


def crowd_sizes(settings: CrowdSizeSettings, annotators: int) -> tuple[int, ...]:
    """Return the crowd sizes to measure, given the largest number of annotators of an image."""
    most = annotators if settings.max_annotators is None else min(settings.max_annotators, annotators)
    fewest = min(settings.min_annotators, most)
    return tuple(dict.fromkeys(np.linspace(fewest, most, settings.crowds).round().astype(int).tolist()))


def methods_of(plan: FusionPlan, *, published: bool) -> dict[str, dict[str, FusionPlan]]:
    """Return the plans, by name of the clustering and name of the method after detection.

    `plan`: the chosen plan. `published`: whether to include the methods of the paper.
    """
    methods = {CHOSEN: {CHOSEN: plan}}
    if published:
        clusterings: dict[str, tuple[str, Settings]] = {
            "OEM as published": ("oem", OEMSettings(as_published=True)),
            "CEM as published": ("cem", CEMSettings(version="paper")),
            "k-means": ("kmeans", KMeansSettings()),
            "hierarchical": ("hac", HACSettings(linkage="single")),
        }
        for name, (algorithm, clustering) in clusterings.items():
            methods[name] = {
                f"{name}, {text}": FusionPlan(algorithm, detector, clustering, detection, PUBLISHED_VOTES)
                for text, (detector, detection) in DETECTORS_PUBLISHED.items()
            }
    return methods


def measure_crowd_sizes(
    images: Sequence[tuple[Clicks, FloatArray]],
    radius: float,
    plan: FusionPlan | None = None,
    settings: CrowdSizeSettings | None = None,
    watch: Watch = silent,
) -> tuple[CrowdSizeCurve, ...]:
    """Measure methods on crowds of several sizes, drawn at random from the annotators of each image.

    Each image is fused alone, without learning across images. A cluster or a detection matches a true
    position within the radius, one to one.

    `images`: clicks of each image, and its true positions, (T, 2).
    `radius`: in pixels.
    `plan`: the chosen method. Returns the curves of every method after clustering, then after detection. An
    image counts only for crowds no larger than its number of annotators.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import separated_crowd
    >>> crowd = separated_crowd(20, seed=1)
    >>> settings = CrowdSizeSettings(crowds=2, draws=1, published=False)
    >>> curves = measure_crowd_sizes([(crowd.clicks, crowd.mean)], 50.0, settings=settings)
    >>> [curve.stage for curve in curves]
    ['clustering', 'detection']
    """
    plan, settings = plan or FusionPlan(), settings or CrowdSizeSettings()
    sizes = crowd_sizes(settings, max((len(clicks.annotators) for clicks, _ in images), default=1))
    methods = methods_of(plan, published=settings.published)
    streams = _streams(plan, published=settings.published) if settings.streamed else {}
    scores: Scores = {}
    total, done = max(1, settings.draws * len(images) * (len(sizes) + len(streams))), 0
    for draw in range(settings.draws):
        for number, (clicks, truth) in enumerate(images):
            generator = np.random.default_rng([settings.draw_seed, draw, number])
            order = generator.permutation(len(clicks.annotators)).tolist()
            note = partial(_note, scores, truth, radius)
            for size in sizes:
                if size <= len(order):
                    step = part(watch, done / total, (done + 1) / total)
                    _measure(first_annotators(clicks, order, size), methods, partial(note, size), step)
                done += 1
            for streamed, stream in streams.items():
                step = part(watch, done / total, (done + 1) / total)
                _follow(clicks, order, sizes, stream, partial(note, names=streamed), step)
                done += 1
    names = dict.fromkeys((stage, method) for stage in STAGES for of, method, _ in scores if of == stage)
    return tuple(_curve(stage, method, sizes, scores) for stage, method in names)


def _streams(plan: FusionPlan, *, published: bool) -> dict[tuple[str, str], StreamPlan]:
    """Return the plans of streams by name of the clustering and of the method after detection."""
    results = {}
    if isinstance(plan.clustering, OEMSettings) and isinstance(plan.detection, DEMSettings):
        results[STREAM, STREAM] = StreamPlan(plan.clustering, plan.detection, plan.assignment)
    if published:
        name = "OEM as published, streamed"
        results[name, f"{name}, DEM as published"] = StreamPlan(
            OEMSettings(as_published=True), PUBLISHED_DEM, PUBLISHED_VOTES, StreamSettings(update="printed")
        )
    return results


def _note(
    scores: Scores,
    truth: FloatArray,
    radius: float,
    size: int,
    names: tuple[str, str],
    fusion: Fusion,
) -> None:
    """Measure the results of a method after clustering and after detection; an empty name is skipped."""
    mean = fusion.clustering.mean
    for stage, name, positions in zip(STAGES, names, (mean, mean[fusion.detection.detected]), strict=True):
        if name:
            score = evaluate(positions, truth, radius)
            scores.setdefault((stage, name, size), []).append((score.sensitivity, score.precision))


def _measure(
    clicks: Clicks, methods: dict[str, dict[str, FusionPlan]], note: Callable[..., None], watch: Watch
) -> None:
    """Cluster by each method, and detect among the clusters by each of its detectors."""
    marks, mark = clicks.merged()
    for (clustered, plans), step in steps_of(watch, methods.items()):
        first = next(iter(plans.values()))
        clustering: Clustering = CLUSTERERS[first.algorithm].run(marks, first.clustering, watch=step)
        name = clustered
        for method, plan in plans.items():
            detect = partial(DETECTORS[plan.detector].run, settings=plan.detection)
            fusion = conclude(marks, mark, clustering, plan.assignment, detect)
            note(names=(name, method), fusion=fusion)
            name = ""


def _follow(
    clicks: Clicks,
    order: Sequence[int],
    sizes: Sequence[int],
    plan: StreamPlan,
    note: Callable[..., None],
    watch: Watch,
) -> None:
    """Follow a stream in which annotators join one by one, from the smallest crowd on."""
    most = min(sizes[-1], len(order))
    state = begin_stream(first_annotators(clicks, order, sizes[0]), plan)
    for count in range(sizes[0], most + 1):
        watch((count - sizes[0]) / (most - sizes[0] + 1), f"following {count} annotators")
        if count > sizes[0]:
            state = advance_stream(state, first_annotators(clicks, order, count), plan)
        if count in sizes:
            note(count, fusion=state.fusion)


def _curve(
    stage: str,
    method: str,
    sizes: Sequence[int],
    measured: Scores,
) -> CrowdSizeCurve:
    mean, error = np.full((2, len(sizes)), np.nan), np.full((2, len(sizes)), np.nan)
    draws = np.zeros(len(sizes), dtype=np.int64)
    for at, size in enumerate(sizes):
        scores = np.array(measured.get((stage, method, size), [])).reshape(-1, 2)
        draws[at] = len(scores)
        for index in range(2):
            known = scores[np.isfinite(scores[:, index]), index]
            if len(known):
                mean[index, at] = known.mean()
            if len(known) > 1:
                error[index, at] = known.std(ddof=1) / np.sqrt(len(known))
    return CrowdSizeCurve(method, stage, np.array(sizes), mean[0], mean[1], error[0], error[1], draws)
