"""Effect of excluding or down-weighting annotators on the images of a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.dem import DEMSettings
from raterscope.algorithms.clicks.fusion import FusionPlan, learn_from_each_other
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.clicks.robustness import NO_CLUSTER, changed_decisions
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.kinds.clicks.image_fusion import fuse_images
from raterscope.app.kinds.clicks.runs import read_knowledge
from raterscope.app.outcome import successful
from raterscope.app.review import ReviewState, fold, match
from raterscope.app.study import Study


@dataclass(frozen=True, eq=False)
class RunInputs:
    """Inputs and results of a run, by image name."""

    plan: FusionPlan
    weights: Mapping[str, float]  # the reduced weights of annotators
    items: dict[str, int]  # the images' numbers
    clicks: dict[str, Clicks]  # with what was held fixed
    fusions: dict[str, Fusion]


@dataclass(frozen=True)
class ChangedSpot:
    """A spot whose decision, detected or not, would change."""

    image: int
    name: str  # of the image
    cluster: int | None  # in the run's fusion; None where there is none yet
    # x, y: place in pixels
    x: float
    y: float
    # before, after: "detected", "rejected", "no spot"
    before: str
    after: str


@dataclass(frozen=True, eq=False)
class Recount:
    """Result of excluding or down-weighting an annotator of a run."""

    changed: tuple[ChangedSpot, ...]  # image by image, the surest first; none that the expert decided
    decisions: dict[int, int]  # the spots of every image, by its number
    failed: tuple[str, ...]  # images that could not be fused so


def gather_run(run: int, study: Study, watch: Watch = silent) -> RunInputs:
    """Read the inputs of a run, with the decisions it held fixed, and its results."""
    entry = study.runs.get(run)
    plan = FusionPlan.from_dict(entry.settings)
    state = fold([decision for decision in study.decisions() if decision.id <= entry.known])
    truth_held = bool(entry.log.get("truth_held"))
    names = {image_entry.id: image_entry.name for image_entry in study.images()}
    last_view = entry.log.get("last_view")
    views = study.views.by_image(last=last_view if isinstance(last_view, int) else 0)
    inputs = RunInputs(plan, entry.weights, {}, {}, {})
    for done, image in enumerate(entry.items):
        name = names[image]
        watch(done / len(entry.items), f"reading the clicks of {name}")
        fusion = study.runs.result(run, image)
        if fusion is not None:
            truth = study.truth(image) if truth_held else None
            inputs.items[name] = image
            known_spots = read_knowledge(image, state, views, truth)._asdict()
            inputs.clicks[name] = replace(study.clicks(image, entry), **known_spots)
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

    Only the images with these annotators are clustered again. With a plan that learns across images, all are
    detected again with the others' experience of the crowd.

    `weight`: new weight of the annotators; None excludes them. `state`: the current decisions, which do not
    change.
    """
    plan, clicks_before = inputs.plan, inputs.clicks
    clicks_after = {
        name: _reweigh(image_clicks, annotators, weight, inputs.weights)
        for name, image_clicks in clicks_before.items()
    }
    looked = {
        name: clicks_after[name]
        for name in clicks_after
        if not set(annotators).isdisjoint(clicks_before[name].annotators)
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
