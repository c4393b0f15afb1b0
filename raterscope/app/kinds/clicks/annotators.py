"""Evidence on annotators from clicks: rates, offset, scatter, courses over images, effect of an exclusion.

The clearest mistakes of an annotator are for their feedback page.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from PIL import Image

from raterscope.algorithms.annotators.agreement_statistics import vote_agreement
from raterscope.algorithms.clicks.annotator_rates import outsider_counts, pool_counts, rate_counts
from raterscope.algorithms.clicks.data import Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.dem import DEMSettings
from raterscope.algorithms.clicks.fusion import FusionPlan, learn_from_each_other
from raterscope.algorithms.clicks.result import AnnotatorRates, Fusion
from raterscope.algorithms.clicks.robustness import NO_CLUSTER, changed_decisions
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.annotator_evidence import (
    Agreement,
    AnnotatorFunctions,
    ChangedAnswer,
    Consequences,
    Course,
    Evidence,
    Measure,
    Measurements,
    Pool,
    read_shown,
)
from raterscope.app.errors import InputError, plain
from raterscope.app.kinds.clicks.image_fusion import fuse_images
from raterscope.app.kinds.clicks.runs import plan_of, read_knowledge
from raterscope.app.outcome import successful
from raterscope.app.page.contents import Gallery, Picture, Section, Table, photograph
from raterscope.app.review import ReviewState, match
from raterscope.app.study import RunEntry, Study, digest_of
from raterscope.app.study.records import ImageEntry
from raterscope.figures.canvas import Pen, PixelCanvas
from raterscope.figures.colours import DARK
from raterscope.text import counted


@dataclass(frozen=True, eq=False)
class RunInputs:
    """Inputs and results of a run, by image name."""

    plan: FusionPlan
    weights: Mapping[str, float]  # the reduced weights of annotators now
    items: dict[str, int]  # the images' numbers
    clicks: dict[str, Clicks]  # with the decisions that were held fixed
    fusions: dict[str, Fusion]
    # clicks of images on which the expert has decided or viewed spots since the run, or whose annotators have
    # been excluded or down-weighted since, with the current decisions
    decided: dict[str, Clicks]


@dataclass(frozen=True)
class ChangedSpot:
    """A spot whose decision, detected or not, would change."""

    image: int
    name: str  # of the image
    cluster: int | None  # in the run's fusion; None where there is none yet
    # x, y: position in pixels
    x: float
    y: float
    # before, after: "detected", "rejected", "no spot"
    before: str
    after: str


@dataclass(frozen=True, eq=False)
class Recount:
    """Result of excluding or down-weighting an annotator of a run."""

    changed: tuple[ChangedSpot, ...]  # image by image, the most certain first; without decided spots
    decisions: dict[int, int]  # by image: number of spots
    failed: tuple[str, ...]  # images that could not be fused


def rate_excluded(
    results: Iterable[tuple[int, RunEntry, Fusion]], study: Study, aliases: Mapping[str, str]
) -> tuple[tuple[str, ...], AnnotatorRates]:
    """Rate the annotators that runs exclude by the consensus of the others, over several images together.

    `results`: number of each image, its run and result. `aliases`: main names of joined annotators.
    """
    counts, names = [], []
    for image, run, fusion in results:
        if run.excluded:
            clicks = study.clicks(image, replace(run, excluded=()))
            clicks = clicks.without({*clicks.annotators} - {*run.excluded})
            assignment = (plan_of(run) or FusionPlan()).assignment
            counts.append(outsider_counts(clicks, fusion, assignment))
            names.append([aliases.get(name, name) for name in clicks.annotators])
    return pool_counts(counts, names)


def gather_run(run: int, study: Study, watch: Watch = silent) -> RunInputs:
    """Read a run's results, and its inputs both with the decisions held fixed and with the current ones."""
    entry = study.runs.get(run)
    plan = FusionPlan.from_dict(entry.settings)
    state = study.review_state(entry.known)
    truth_held = bool(entry.log.get("truth_held"))
    names = {image_entry.id: image_entry.name for image_entry in study.images()}
    last_view = entry.log.get("last_view")
    views = study.views.by_image(last=last_view if isinstance(last_view, int) else 0)
    state_now, views_now = study.review_state(), study.views.by_image()
    inputs = RunInputs(plan, state_now.weights, {}, {}, {}, {})
    for done, image in enumerate(entry.items):
        name = names[image]
        watch(done / len(entry.items), f"reading the clicks of {name}")
        fusion = study.runs.result(run, image)
        if fusion is not None:
            truth = study.truth(image) if truth_held else None
            inputs.items[name] = image
            clicks = study.clicks(image, entry)
            then, now = (
                replace(clicks, **read_knowledge(image, known, viewed, truth)._asdict())
                for known, viewed in ((state, views), (state_now, views_now))
            )
            now = now.without(set(state_now.excluded)).with_weights(state_now.weights)
            inputs.clicks[name] = then
            if digest_of({name: then}) != digest_of({name: now}):
                inputs.decided[name] = now
            inputs.fusions[name] = fusion
    return inputs


def recount(
    inputs: RunInputs,
    annotators: Collection[str],
    weight: float | None,
    state: ReviewState,
    watch: Watch = silent,
) -> Recount:
    """Fuse a run's images again without some annotators, or with another weight, and list changed decisions.

    Current decisions are held fixed, as in the next fusion. Only the images with these annotators, or with
    decisions since the run, are clustered again. With a plan that learns across images, detection is repeated
    on all images with the rates estimated from the others.

    `weight`: new weight of the annotators; None excludes them. `state`: the current decisions, which do not
    change.
    """
    plan, clicks_before = inputs.plan, inputs.clicks
    clicks_after = {
        name: _reweigh(inputs.decided.get(name, image_clicks), annotators, weight, inputs.weights)
        for name, image_clicks in clicks_before.items()
    }
    looked = {
        name: clicks_after[name]
        for name in clicks_after
        if name in inputs.decided or not set(annotators).isdisjoint(clicks_before[name].annotators)
    }
    outcomes = fuse_images(looked, _separate_plan(plan), watch=part(watch, 0.0, 0.85))
    failed = tuple(name for name, outcome in outcomes.items() if outcome.fusion is None)
    names = [name for name in inputs.items if name not in failed]
    fusions = {**inputs.fusions, **successful(outcomes)}
    fused = [fusions[name] for name in names]
    joint = learn_from_each_other([clicks_after[name] for name in names], fused, plan, part(watch, 0.85, 1.0))
    changed = [
        spot
        for name, fusion in zip(names, joint, strict=True)
        for spot in _changed_spots(name, inputs, fusion, frozenset(clicks_after[name].annotators), state)
    ]
    decisions = {inputs.items[name]: len(inputs.fusions[name].clustering) for name in names}
    return Recount(tuple(changed), decisions, failed)


def _reweigh(
    clicks: Clicks, annotators: Collection[str], weight: float | None, weights: Mapping[str, float]
) -> Clicks:
    if weight is None:
        return clicks.without(set(annotators))
    return clicks.with_weights({**weights, **dict.fromkeys(annotators, weight)})


def _separate_plan(plan: FusionPlan) -> FusionPlan:
    """Return the plan that fuses each image separately."""
    settings = plan.detection
    if not isinstance(settings, DEMSettings):
        return plan
    return replace(plan, detection=replace(settings, learn_across_images=False))


def _changed_spots(
    name: str, inputs: RunInputs, new_fusion: Fusion, remaining: frozenset[str], state: ReviewState
) -> list[ChangedSpot]:
    old_fusion, clicks, image = inputs.fusions[name], inputs.clicks[name], inputs.items[name]
    is_kept = np.array([annotator in remaining for annotator in clicks.annotators], dtype=bool)[
        clicks.annotator
    ]
    changes = changed_decisions(old_fusion, new_fusion, is_kept)
    if not len(changes):
        return []
    decided = _decided_clusters(old_fusion, image, state), _decided_clusters(new_fusion, image, state)
    spots = []
    for old, new in zip(changes.before.tolist(), changes.after.tolist(), strict=True):
        if old in decided[0] or new in decided[1]:
            continue
        fusion, cluster = (new_fusion, new) if old == NO_CLUSTER else (old_fusion, old)
        x, y = fusion.clustering.mean[cluster].tolist()
        number = None if old == NO_CLUSTER else old
        spots.append(
            ChangedSpot(
                image, name, number, x, y, _state_in_words(old_fusion, old), _state_in_words(new_fusion, new)
            )
        )
    return spots


def _decided_clusters(fusion: Fusion, image: int, state: ReviewState) -> set[int]:
    """Return the clusters that the expert accepted or rejected."""
    decided_spots = [spot for spot in state.spots(image) if spot.verdict != "skipped"]
    clusters = match(decided_spots, fusion.clustering.mean, fusion.clustering.covariance)
    return {cluster for cluster in clusters if cluster is not None}


def _state_in_words(fusion: Fusion, cluster: int) -> str:
    if cluster == NO_CLUSTER:
        return "no spot"
    return "detected" if fusion.detection.detected[cluster] else "rejected"


RELIABILITY = Measure(
    "reliability", "reliability", "Share of clicks that are votes for a spot", ideal=1.0, is_share=True,
    is_reliability=True,
)  # fmt: skip
SENSITIVITY = Measure(
    "sensitivity",
    "sensitivity",
    "Share of the structures found by the crowd on which the annotator has a vote",
    ideal=1.0,
    is_share=True,
)
PRECISION = Measure(
    "precision", "precision", "Share of marks that are on structures", ideal=1.0, is_share=True
)
OFFSET = Measure(
    "offset_px", "offset", "Length of the mean displacement from the centres of the structures that the "
    "annotator marked", "px", ideal=0.0,
)  # fmt: skip
SCATTER = Measure(
    "scatter_px", "scatter", "Standard deviation of the clicks about these centres, per axis, without the "
    "offset", "px", ideal=0.0,
)  # fmt: skip
MEASURES = (SENSITIVITY, PRECISION, RELIABILITY, OFFSET, SCATTER)

INLIER = 0.5
"""Minimum inlier probability of a click for offset and scatter."""
TINY = 1e-6
"""Minimum standard error of an offset, in pixels."""
LISTED = 200
"""Maximum number of changed answers in a preview."""


def _results(study: Study, watch: Watch) -> Iterator[tuple[ImageEntry, RunEntry, Fusion]]:
    images = study.items()["clicks"]
    for entry, (run, fusion) in read_shown(images, lambda item: study.shown.result(item.id, "clicks"), watch):
        assert isinstance(entry, ImageEntry)
        yield entry, run, fusion


def evidence(study: Study, watch: Watch) -> Evidence | None:
    """Return the rates of exports and reports, with offset and scatter; see `AnnotatorFunctions`."""
    state = study.review_state()
    pool = Pool(state.aliases, 0)
    counts, names, moments, verdicts = [], [], [], []  # freeing 10,000 fusions at once stops all threads
    for entry, run, fusion in _results(study, watch):
        clicks = study.clicks(entry.id, run)
        counts.append(rate_counts(fusion))
        names.append([state.aliases.get(name, name) for name in clicks.annotators])
        pool.add(clicks.annotators, np.empty((len(clicks.annotators), 0, 3)), fusion.rates.clicks)
        moments.append(_moments(clicks, fusion))
        verdicts.append(_verdicts(fusion, entry.id, state))
    if not counts:
        return None
    mains, rates = pool_counts(counts, names)
    offset, scatter = _placement(pool, moments)
    values = np.stack([rates.sensitivity, rates.precision, rates.reliability, offset, scatter], axis=1)
    return Evidence(
        kind="clicks",
        marks_are="clicks",
        names=mains,
        marks=rates.clicks,
        items=pool.counted()[1],
        measures=MEASURES,
        values=values,
        accepted=pool.total([accepted for accepted, _ in verdicts]),
        rejected=pool.total([rejected for _, rejected in verdicts]),
    )


def _moments(clicks: Clicks, fusion: Fusion) -> FloatArray:
    """Return sums of each annotator's displacements from structures, (5, R), for `_placement`.

    The rows are number, sums along both axes, sum of squares, and weight. The centre of k clicks includes the
    annotator's own: a displacement has (k - 1) / k of the offset, and of the variance.
    """
    cluster = fusion.clustering.nearest[fusion.mark]
    on = cluster >= 0
    on[on] = fusion.detection.detected[cluster[on]] & (fusion.clustering.inlier[fusion.mark[on]] >= INLIER)
    clicks_of = np.bincount(cluster[on], minlength=len(fusion.clustering))
    on[on] = clicks_of[cluster[on]] > 1
    centre = fusion.clustering.mean[cluster[on]]
    x, y, annotator = clicks.x[on] - centre[:, 0], clicks.y[on] - centre[:, 1], clicks.annotator[on]
    count, kept = len(clicks.annotators), 1 - 1 / clicks_of[cluster[on]]
    columns = (None, x, y, (x**2 + y**2) / kept, kept)
    return np.stack([np.bincount(annotator, column, count).astype(np.float64) for column in columns])


def _placement(pool: Pool, moments: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return offset and scatter of each annotator with 95 % intervals, two (K, 3).

    The mean displacement is normally distributed along both axes, and the square of its length has a
    noncentral chi-squared distribution. The ends of the interval are the offsets for which the measured
    length is the 97.5 and 2.5 % quantile. For a small offset the length overestimates it, and the interval
    begins at 0.
    """
    from scipy.special import chdtri, chndtrinc

    number, x, y, squares, weight = pool.sums(moments)
    enough = number > 1
    offset, scatter = np.full((len(number), 3), np.nan), np.full((len(number), 3), np.nan)
    n = number[enough]
    weight = weight[enough]
    along, down = x[enough] / weight, y[enough] / weight
    freedom = 2 * (n - 1)
    spread = np.maximum(squares[enough] - weight * (along**2 + down**2), 0.0)
    deviation, length = np.sqrt(spread / freedom), np.hypot(along, down)
    error = np.maximum(deviation / np.sqrt(weight), TINY)
    least, most = (error * np.sqrt(chndtrinc((length / error) ** 2, 2, tail)) for tail in (0.975, 0.025))
    least = np.where(least > TINY * error, least, 0.0)
    offset[enough] = np.column_stack([length, least, np.maximum(most, length)])
    ends = (np.sqrt(spread / chdtri(freedom, tail)) for tail in (0.025, 0.975))
    scatter[enough] = np.column_stack([deviation, *ends])
    return offset, scatter


def _verdicts(fusion: Fusion, image: int, state: ReviewState) -> tuple[IntArray, IntArray]:
    """Count each annotator's marks on accepted spots, and on rejected spots."""
    spots = [spot for spot in state.spots(image) if spot.verdict != "skipped"]
    clusters = match(spots, fusion.clustering.mean, fusion.clustering.covariance)
    counts = []
    for rejected in (False, True):
        decided = [
            cluster
            for spot, cluster in zip(spots, clusters, strict=True)
            if cluster is not None and (spot.verdict == "rejected") == rejected
        ]
        counts.append(fusion.marked[:, decided].sum(axis=1, dtype=np.int64))
    return counts[0], counts[1]


def courses(study: Study, names: Collection[str], watch: Watch) -> Sequence[Course]:
    """Return sensitivity, precision and reliability by image; see `AnnotatorFunctions`."""
    points, values = [], []
    for entry, run, fusion in _results(study, watch):
        marked = [row for row, name in enumerate(study.clicks(entry.id, run).annotators) if name in names]
        for row in marked[:1]:
            rates = fusion.rates
            points.append(entry.name)
            values.append([rates.sensitivity[row], rates.precision[row], rates.reliability[row]])
    table = np.array(values).reshape(len(points), 3, 3)
    return [
        Course("clicks", measure, tuple(points), "image", table[:, at])
        for at, measure in enumerate((SENSITIVITY, PRECISION, RELIABILITY))
        if points
    ]


def preview(study: Study, names: Collection[str], weight: float | None, watch: Watch) -> Consequences | None:
    """Fuse the images shown again without annotators, or with a weight; see `AnnotatorFunctions`."""
    state = study.review_state()
    shown: dict[int, list[int]] = {}
    for entry in study.items()["clicks"]:
        run = study.shown.run(entry.id, "clicks")
        if run is not None:
            shown.setdefault(run, []).append(entry.id)
    changed: list[ChangedAnswer] = []
    count = total = 0
    notes: list[str] = []
    affected = False
    for (run, images), step in steps_of(watch, shown.items()):
        fused = study.runs.get(run)
        if not set(fused.programs).isdisjoint(names):
            notes.append(
                f"Run {run} scores spots by all its programs: changes by a program are not previewed."
            )
        if "stream" in fused.settings:
            notes.append(f"Run {run} comes from live watching: its changes are not previewed.")
            continue
        inputs = gather_run(run, study, part(step, 0.0, 0.1))
        present = {name for clicks in inputs.clicks.values() for name in clicks.annotators}
        if present.isdisjoint(names):
            continue
        affected = True
        result = recount(inputs, names, weight, state, part(step, 0.1, 1.0))
        spots = [spot for spot in result.changed if spot.image in images]
        count += len(spots)
        total += sum(result.decisions.get(image, 0) for image in images)
        changed += [
            ChangedAnswer(f"{spot.name} at {spot.x:.0f}, {spot.y:.0f}", spot.before, spot.after)
            for spot in spots[: LISTED - len(changed)]
        ]
        if result.failed:
            notes.append(f"{len(result.failed):,} images could not be fused for the preview.")
    if not affected and not notes:
        return None
    return Consequences("clicks", "detection", count, total, tuple(changed), tuple(notes))


def measurements(study: Study, watch: Watch) -> Sequence[Measurements]:
    """Return the counts of observer variability; see `AnnotatorFunctions`."""
    from raterscope.app.kinds.clicks.variability import measure_counts

    variability = measure_counts(study, watch=watch)
    return () if variability is None else (Measurements("count of clicks", "", variability.counts),)


def agreement(study: Study, names: Collection[str], watch: Watch) -> Sequence[Agreement]:
    """Return Krippendorff's alpha of the marks of annotators on the spots of the runs shown.

    An annotator either marked a spot of an image or did not. See `AnnotatorFunctions`.
    """
    spots, marks, total = [], [], 0
    state = study.review_state()
    for entry, run, fusion in _results(study, watch):
        annotators = study.clicks(entry.id, run).annotators
        rows = [
            row
            for row, name in enumerate(annotators)
            if name not in state.excluded and (not names or name in names)
        ]
        marked = fusion.marked[rows]
        spot = np.arange(total, total + marked.shape[1])
        spots.append(np.broadcast_to(spot, marked.shape).ravel())
        marks.append(marked.astype(np.int64).ravel())
        total += marked.shape[1]
    if not spots:
        return ()
    measured = vote_agreement(np.concatenate(spots), np.concatenate(marks), 2)
    return (Agreement("clicks", measured.krippendorff, counted(measured.tasks, "spot")),)


MISTAKES = 5
CLEAR = 0.9
_SIDE, _SHOWN = 96, 288
"""Width of a picture, in pixels of the image and of the page."""


class _Mistake(NamedTuple):
    """A structure that the annotator missed, or a mark where there is no structure."""

    certain: float
    name: str
    image: int
    x: float
    y: float
    missed: bool
    why: str


def mistakes(study: Study, names: Collection[str], watch: Watch) -> list[Section]:
    """List up to five structures that an annotator clearly missed, or marks that are clearly wrong."""
    state = study.review_state()
    listed: list[_Mistake] = []
    marked_any = False
    for entry, run, fusion in _results(study, part(watch, 0.0, 0.7)):
        rows = [row for row, name in enumerate(study.clicks(entry.id, run).annotators) if name in names]
        if not rows:
            continue
        marked_any = True
        posterior = fusion.detection.posterior.astype(np.float64)
        verdict = np.full(len(posterior), np.nan)
        spots = [spot for spot in state.spots(entry.id) if spot.verdict != "skipped"]
        clusters = match(spots, fusion.clustering.mean, fusion.clustering.covariance)
        for spot, cluster in zip(spots, clusters, strict=True):
            if cluster is not None:
                verdict[cluster] = spot.verdict != "rejected"
        present = np.where(np.isfinite(verdict), verdict == 1, posterior >= 0.5)
        certain = np.where(np.isfinite(verdict), 2.0, np.maximum(posterior, 1 - posterior))
        marked = fusion.marked[rows].any(axis=0)
        for at in np.flatnonzero((marked != present) & (certain >= CLEAR)).tolist():
            why = "decided by the expert" if certain[at] > 1 else f"probability {posterior[at]:.2f}"
            x, y = fusion.clustering.mean[at].tolist()
            listed.append(_Mistake(float(certain[at]), entry.name, entry.id, x, y, bool(present[at]), why))
    if not marked_any:
        return []
    title = "Your clearest mistakes"
    if not listed:
        return [Section(title, [Table("", ("",), [("No clear mistake among your clicks.",)])])]
    listed.sort(key=lambda mistake: -mistake.certain)
    rows_of_table = [
        (
            plain(mistake.name, 80), f"{mistake.x:.0f}, {mistake.y:.0f}",
            "missed" if mistake.missed else "marked, no structure", mistake.why,
        )
        for mistake in listed[:MISTAKES]
    ]  # fmt: skip
    note = f"The clearest of {len(listed):,} spots that the expert decided or whose probability is clear."
    heads = ("Image", "Position, px", "Mistake", "Known from")
    table = Table("", heads, rows_of_table, note, frozenset({2, 3}))
    pictures = [
        picture
        for mistake, step in steps_of(part(watch, 0.7, 1.0), listed[:MISTAKES])
        if (picture := _crop(study, mistake, step)) is not None
    ]
    return [Section(title, [table, Gallery("", pictures)] if pictures else [table])]


def _crop(study: Study, mistake: _Mistake, watch: Watch) -> Picture | None:
    """Cut out the surroundings of a spot; None if the image is missing or too large."""
    from raterscope.app.formats.images import load_image
    from raterscope.app.formats.pyramids import is_large

    watch(0.0, "cutting pictures")
    entry = study.image(mistake.image)
    path = study.locate(entry)
    if path is None or path.is_dir() or is_large(entry.width, entry.height):
        return None
    try:
        image = Image.fromarray(load_image(path)).convert("RGB")
    except (InputError, OSError, MemoryError):
        return None
    left, top = round(mistake.x - _SIDE / 2), round(mistake.y - _SIDE / 2)
    cut = image.crop((left, top, left + _SIDE, top + _SIDE))
    cut = cut.resize((_SHOWN, _SHOWN), Image.Resampling.BICUBIC)
    canvas = PixelCanvas.over(cut)
    ink = DARK.accent if mistake.missed else DARK.rejected
    centre = np.array([[_SHOWN / 2, _SHOWN / 2]])
    for radius, pen in ((37.0, Pen("#000000", 1.0)), (36.0, Pen(ink, 2.0))):
        canvas.symbols(centre, "disc", np.array([2 * radius]), pen, "")
    caption = "missed" if mistake.missed else "marked, no structure"
    return photograph(canvas.pixels(), plain(entry.name, 60), f"{caption} ({mistake.why})")


ANNOTATORS = AnnotatorFunctions(evidence, courses, preview, measurements, agreement, mistakes)
