"""Fusion runs over images of clicks: gather, fuse and keep.

A fusion holds the expert's decisions fixed. It may use the results of earlier runs on images that are not
fused again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from raterscope.algorithms.clicks.catalogue import CLUSTERERS, DETECTORS
from raterscope.algorithms.clicks.copying import Copies, find_copies
from raterscope.algorithms.clicks.data import Clicks, FloatArray, KnownSpots
from raterscope.algorithms.clicks.fusion import FusionPlan, learns_across_images
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.clicks.robustness import run_notices
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app import outcome
from raterscope.app.errors import plain
from raterscope.app.kinds.clicks.image_fusion import fuse_images
from raterscope.app.outcome import Outcome, curve_record, finite_or_none, record_of
from raterscope.app.workers import Workers
from raterscope.text import counted, listed

if TYPE_CHECKING:  # processes that fuse load no study
    from raterscope.app.review import ReviewState, View, Weighed
    from raterscope.app.study import RunEntry, Study
    from raterscope.app.study.records import TruePoints


@dataclass(frozen=True, eq=False)
class OtherImages:
    """Results of earlier runs on images that are not fused again."""

    images: tuple[tuple[Clicks, Fusion], ...] = ()  # clicks with the expert's current knowledge
    runs: tuple[int, ...] = field(default=())  # numbers of their runs, without repetition

    def as_log(self) -> dict[str, object]:
        """Return the number of other images and their runs for the log; empty without any."""
        return {"others": len(self.images), "other_runs": self.runs} if self.images else {}


def gather_others(
    study: Study,
    fused: Collection[int],
    plan: FusionPlan,
    state: ReviewState,
    views: Mapping[int, Sequence[View]],
    watch: Watch,
) -> OtherImages:
    """Read the results shown of all images that are not fused now.

    An image is skipped if its run is outdated, or used other settings of clustering.

    `fused`: numbers of the images that are fused. `views`: views by image.
    """
    results: list[tuple[Clicks, Fusion]] = []
    runs: dict[int, bool] = {}  # whether each run clusters like the plan
    rest = [entry.id for entry in study.items()["clicks"] if entry.id not in fused]
    for done, image in enumerate(rest if learns_across_images(plan) else ()):
        watch(done / len(rest), "reading results of the other images")
        run = study.shown.run(image, "clicks")
        if run is None:
            continue
        entry = study.runs.get(run)
        if run not in runs:
            runs[run] = _clusters_alike(entry, plan)
        fusion = (
            study.runs.result(run, image) if runs[run] and not study.shown.outdated(entry, [image]) else None
        )
        if fusion is not None:
            held_spots = read_knowledge(image, state, views)._asdict()
            results.append((replace(study.clicks(image, entry), **held_spots), fusion))
    return OtherImages(tuple(results), tuple(run for run, alike in runs.items() if alike))


def others_in_words(log: Mapping[str, Any]) -> str:
    """Name the earlier runs that informed a run, by its log; empty without any.

    `log`: log of a `RunEntry`.
    """
    images, runs = log.get("others"), log.get("other_runs")
    if not isinstance(images, int) or images < 1:
        return ""
    numbers = [str(run) for run in runs if isinstance(run, int)] if isinstance(runs, (list, tuple)) else []
    of = f"run{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}" if numbers else "earlier runs"
    return (
        f"Results of {of} on {counted(images, 'other image')} were used to estimate the annotators' rates. "
        "Fuse all images again if those runs are outdated."
    )


def copies_of(
    clicks: Mapping[str, Clicks], outcomes: Iterable[Outcome[Fusion]], others: OtherImages | None = None
) -> list[Copies]:
    """Find annotators whose clicks are copies, on the images of a run and on others that informed it."""
    images = [(clicks[own.item], own.fusion) for own in outcomes if own.fusion is not None]
    images += [] if others is None else others.images
    return find_copies([own for own, _ in images], [fusion for _, fusion in images])


def copies_in_words(copies: Iterable[Mapping[str, Any]]) -> str:
    """Name annotators whose clicks are copies; empty without any.

    `copies`: `Copies` as dictionaries, as in the log of a `RunEntry`.
    """
    try:
        groups = [
            f"{listed([plain(str(name), 40) for name in group['annotators']], 6)} "
            + (
                f"({group['distance']:.2g} px apart; independent clicks would be {group['expected']:.2g} px)"
                if group["distance"] > 0
                else "(the same positions)"
            )
            for group in copies
        ]
    except (KeyError, TypeError, ValueError):  # the log of a damaged study
        return ""
    return (
        f"Clicks of these annotators coincide: {'; '.join(groups)}. They are copies, or suggestions of one "
        "program, but count as independent. Exclude all but one of each group."
        if groups
        else ""
    )


def click_notices(
    clicks: Mapping[str, Clicks], outcomes: Iterable[Outcome[Fusion]], others: OtherImages | None = None
) -> list[str]:
    """Return all notices on the results of a run: `run_notices` and `copies_in_words`."""
    outcomes = list(outcomes)
    copies = copies_in_words(map(asdict, copies_of(clicks, outcomes, others)))
    fusions = [own.fusion for own in outcomes if own.fusion is not None]
    return run_notices(fusions) + ([copies] if copies else [])


plan_of = partial(outcome.read_plan, FusionPlan.from_dict)


def _clusters_alike(run: RunEntry, plan: FusionPlan) -> bool:
    """Return whether a run used the same clustering and assignment as a plan."""
    run_plan = plan_of(run)
    return run_plan is not None and (run_plan.algorithm, run_plan.clustering, run_plan.assignment) == (
        plan.algorithm, plan.clustering, plan.assignment,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Inputs(outcome.Inputs[Clicks]):
    """Inputs of a run: clicks, with the expert's decisions held fixed."""

    truth_held: bool = False  # whether imported truth is held fixed too
    last_view: int = 0  # number of the last view of a spot that was read
    radius: float = 0.0  # maximum distance of two programs' clicks on one spot, in pixels
    # images that are not fused again, but inform the estimates
    others: OtherImages = field(default_factory=OtherImages)

    @property
    def viewed(self) -> int:
        """Number of spots that were viewed and left without a decision."""
        return sum(0 if clicks.viewed is None else len(clicks.viewed) for clicks in self.given.values())


Answer = outcome.Answer[FusionPlan, Inputs, Fusion]


def gather(
    images: Sequence[int],
    study: Study,
    watch: Watch = silent,
    *,
    hold_truth: bool = False,
    plan: FusionPlan | None = None,
) -> Inputs:
    """Read the clicks on images of a study, in the given order.

    The expert's decisions are held fixed; with `hold_truth`, imported truth too. The inputs include spots
    that were viewed and left without a decision, and the known contents of control images. With a plan, they
    include the results shown of images that are not fused.
    """
    from raterscope.app.review import current_names

    entries = {entry.id: entry for entry in study.images()}

    views, radius = study.views.by_image(), study.settings.matching_radius()

    def read(image: int, state: ReviewState) -> Clicks:
        truth = study.truth(image) if hold_truth else None
        clicks = study.clicks(image, entry=entries[image])
        clicks = clicks.joined(current_names(clicks.annotators, state.aliases))
        clicks = clicks.with_programs(set(state.programs - state.excluded.keys()), radius)
        clicks = clicks.without(set(state.excluded)).with_weights(state.weights)
        knowledge = read_knowledge(image, state, views, truth)
        return replace(clicks, **knowledge._asdict()) if knowledge.any() else clicks

    names_by_image = {image: entries[image].name for image in images}
    inputs = outcome.gather(names_by_image, study, read, part(watch, 0.0, 0.6), text="reading the clicks of")
    other_images = OtherImages()
    if plan is not None:
        other_images = gather_others(
            study, set(images), plan, study.review_state(), views, part(watch, 0.6, 1.0)
        )
    last_view = max((image_views[-1].id for image_views in views.values()), default=0)
    return Inputs(
        **vars(inputs), truth_held=hold_truth, last_view=last_view, others=other_images, radius=radius
    )


def reduced_weights(run: RunEntry, study: Study) -> dict[str, Weighed]:
    """Return the annotators with reduced weight in a run, with the reason; 0 for excluded ones."""
    from raterscope.app.review import Weighed

    counted = study.review_state(run.known).counted
    weights = {**run.weights, **dict.fromkeys(run.excluded, 0.0)}
    return {
        name: Weighed(weight, counted[name].reason if name in counted else "")
        for name, weight in weights.items()
    }


def fuse_inputs(
    inputs: Inputs, plan: FusionPlan, *, jobs: int | Workers | None = None, watch: Watch = silent
) -> Answer:
    """Fuse gathered inputs, without the study. `jobs`: number of processes, or processes to use."""
    started = datetime.now(UTC)
    number, workers = (None, jobs) if isinstance(jobs, Workers) else (jobs, None)
    outcomes = fuse_images(
        inputs.given, plan, jobs=number, watch=watch, others=inputs.others.images, workers=workers
    )
    return Answer(plan, inputs, outcomes, started, (datetime.now(UTC) - started).total_seconds())


def keep(answer: Answer, study: Study, watch: Watch = silent) -> int:
    """Store a run without the images that failed; return its number."""
    from raterscope.app.study import digest_of

    plan, inputs = answer.plan, answer.inputs
    images, scores = list(map(image_record, answer.outcomes.values())), scores_record(inputs.given, {})
    copies = copies_of(inputs.given, answer.outcomes.values(), inputs.others)
    return outcome.keep(
        answer,
        study,
        watch,
        kind="clicks",
        algorithm=f"{plan.algorithm} + {plan.detector}",
        seed=getattr(plan.clustering, "seed", None),
        digest=digest_of(inputs.given),
        log={
            "truth_held": inputs.truth_held,
            **({"matching_radius": inputs.radius} if inputs.programs else {}),
            "images": images,
            **({"viewed": inputs.viewed, "last_view": inputs.last_view} if inputs.last_view else {}),
            **({"scores": scores} if scores["images"] else {}),
            **({"copies": list(map(asdict, copies))} if copies else {}),
            **inputs.others.as_log(),
        },
    )


def run_record(
    plan: FusionPlan,
    clicks: Mapping[str, Clicks],
    outcomes: Iterable[Outcome[Fusion]],
    *,
    started: datetime,
    seconds: float,
    digest: str,
    inputs: Sequence[Mapping[str, object]],
    weights: Mapping[str, float],
    controls: Mapping[str, bool] | None = None,
    scores: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Return the contents of run.json: all that is needed to reproduce the results, and the fusion's log.

    `weights` are the reduced weights of annotators, `controls` states for control images whether they contain
    structures, and `scores` is the source of a program's scores.
    """
    record = record_of(
        plan, seed=getattr(plan.clustering, "seed", None), digest=digest, inputs=inputs, started=started,
        seconds=seconds,
    )  # fmt: skip
    outcomes = list(outcomes)
    images = [image_record(image_outcome) | _curve(image_outcome) for image_outcome in outcomes]
    notices = click_notices(clicks, outcomes)
    named: dict[str, Any] = {"controls": dict(controls)} if controls else {}
    named |= {"scores": dict(scores)} if scores else {}
    return record | {"weights": dict(weights), **named, "notices": notices, "images": images}


def scores_record(clicks: Mapping[str, Clicks], source: Mapping[str, object]) -> dict[str, object]:
    """Describe the source of a program's scores, ready for JSON: file, images and detections."""
    scores = [image_clicks.scores for image_clicks in clicks.values() if image_clicks.scores is not None]
    return {**source, "images": len(scores), "detections": sum(map(len, scores))}


def image_record(image_outcome: Outcome[Fusion]) -> dict[str, Any]:
    """Describe the fusion of one image, ready for JSON: counts, iterations, objective, seconds."""
    record: dict[str, Any] = {"image": image_outcome.item, "seconds": round(image_outcome.seconds, 4)}
    if image_outcome.fusion is None:
        return record | {"problem": image_outcome.problem}
    clusters, detection = image_outcome.fusion.clustering, image_outcome.fusion.detection
    trace = clusters.trace
    return record | {
        "clusters": len(clusters),
        "detections": int(detection.detected.sum()),
        "click_scatter": finite_or_none(clusters.scatter),
        "iterations": len(trace.objective),
        "kept_iteration": trace.best,
        "converged": trace.converged,
        "objective": finite_or_none(trace.objective[trace.best]) if trace.best >= 0 else None,
        "detection_iterations": len(detection.objective),
        "detection_converged": detection.converged,
        "detection_objective": finite_or_none(detection.objective[-1]) if len(detection.objective) else None,
    }


def _curve(image_outcome: Outcome[Fusion]) -> dict[str, Any]:
    if image_outcome.fusion is None:
        return {}
    return {"objective_by_iteration": curve_record(image_outcome.fusion.clustering.trace.objective)}


class ExpertKnowledge(NamedTuple):
    """The expert's knowledge of an image; see the fields of the same names in `Clicks`."""

    known: KnownSpots
    viewed: FloatArray | None
    control: bool | None

    def any(self) -> bool:
        """Return whether anything is known."""
        return len(self.known) > 0 or self.viewed is not None or self.control is not None


def read_knowledge(
    image: int, state: ReviewState, views: Mapping[int, Sequence[View]], truth: TruePoints | None = None
) -> ExpertKnowledge:
    """Return the expert's knowledge of an image, which a fusion holds fixed.

    `image`: number of the image in the study. `views`: spots by image that were viewed and left without a
    decision; empty if views were never recorded. `truth`: imported true positions to be held fixed too.
    """
    from raterscope.app.review import known_spots, viewed_places

    spots, control = state.spots(image), state.control(image)
    return ExpertKnowledge(
        known=known_spots(spots, None if truth is None else (truth.x, truth.y)),
        viewed=viewed_places(views.get(image, ()), spots) if views else None,
        control=None if control is None else control.holds,
    )


def explain_not_converged(fusion: Fusion, plan: Mapping[str, Any]) -> str:
    """Report that clustering or detection did not converge, with advice; empty if both did.

    `plan`: algorithms and settings, as stored with the run.
    """
    clustering, detection = fusion.clustering.trace, fusion.detection
    first = [] if clustering.converged else [len(clustering.objective)]
    second = [] if detection.converged else [len(detection.objective)]
    words = (
        outcome.explain_limit(CLUSTERERS.get(str(plan.get("algorithm"))), plan.get("clustering"), first),
        outcome.explain_limit(DETECTORS.get(str(plan.get("detector"))), plan.get("detection"), second),
    )
    return " ".join(sentence for sentence in words if sentence)
