"""Fusion runs over images of clicks: gather, fuse and keep.

A fusion holds fixed what the expert decided. It may learn from images that are not fused again, as earlier
runs have them. Images are spread over processes where that pays; a failing image does not lose the others.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from raterscope.algorithms.click_classes import add_classes, class_names
from raterscope.algorithms.clicks.data import BoolArray, Clicks, FloatArray, KnownSpots
from raterscope.algorithms.clicks.fusion import (
    FusionPlan,
    SharedVotes,
    carries_reliability,
    fuse,
    learn_from_each_other,
    learns_across_images,
    renew_known,
    share_votes,
)
from raterscope.algorithms.clicks.result import Clustering, Fusion
from raterscope.algorithms.clicks.robustness import (
    add_half_detections,
    detect_together,
    halves_of,
    run_notices,
    with_halves,
)
from raterscope.algorithms.progress import Watch, part, silent, wrapping
from raterscope.app import outcome
from raterscope.app.errors import counted
from raterscope.app.outcome import Outcome, attempt, finite_or_none, record_of
from raterscope.app.record_batches import RecordBatch, from_column, to_column
from raterscope.app.workers import Workers, processors

if TYPE_CHECKING:  # processes that fuse load no study
    from raterscope.app.review import Decision, ReviewState, View, Weighed
    from raterscope.app.study import RunEntry, Study
    from raterscope.app.study.records import TruePoints


@dataclass(frozen=True, eq=False)
class OtherImages:
    """Results of earlier runs on images that are not fused again.

    Attributes
    ----------
    images : tuple of (Clicks, Fusion)
        Clicks with what the expert knows now.
    runs : tuple of int
        The runs that they are of, each once.
    """

    images: tuple[tuple[Clicks, Fusion], ...] = ()
    runs: tuple[int, ...] = field(default=())

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

    An image is left out where its run is outdated, or clustered its clicks by another plan.

    Parameters
    ----------
    fused : collection of int
        Numbers of the images that are fused.
    views : mapping of image to views
    """
    taught: list[tuple[Clicks, Fusion]] = []
    runs: dict[int, bool] = {}
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
            taught.append((replace(study.clicks(image, entry), **held_spots), fusion))
    return OtherImages(tuple(taught), tuple(run for run, alike in runs.items() if alike))


def others_in_words(log: Mapping[str, Any]) -> str:
    """Name the earlier runs that a run learned from, by its log; empty without any.

    Parameters
    ----------
    log : mapping
        Of a `RunEntry`.
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


plan_of = partial(outcome.read_plan, FusionPlan.from_dict)


def _clusters_alike(run: RunEntry, plan: FusionPlan) -> bool:
    """Return whether a run used the same clustering and assignment as a plan."""
    run_plan = plan_of(run)
    return run_plan is not None and (run_plan.algorithm, run_plan.clustering, run_plan.assignment) == (
        plan.algorithm, plan.clustering, plan.assignment,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Inputs(outcome.Inputs[Clicks]):
    """Inputs of a run: clicks, with the expert's decisions held fixed.

    Attributes
    ----------
    truth_held : bool
        Whether imported truth is held fixed too.
    weights : mapping of annotator to float
        The reduced weights of annotators.
    last_view : int
        The last of the views of spots that were read.
    others : OtherImages
        Images that are not fused again, but inform the estimates.
    """

    truth_held: bool = False
    weights: Mapping[str, float] = field(default_factory=dict)
    last_view: int = 0
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

    What the expert decided is held fixed; with `hold_truth`, imported truth too. Spots that were viewed and
    left without a decision go along, and what control images are known to hold. With a plan, the images
    that are not fused are read too, as their shown runs have them.
    """
    from raterscope.app.review import fold, standing_names

    names = {entry.id: entry.name for entry in study.images()}

    weights: dict[str, float] = {}
    views = study.views.by_image()

    def read(image: int, state: ReviewState) -> Clicks:
        weights.update(state.weights)
        truth = study.truth(image) if hold_truth else None
        clicks = study.clicks(image)
        clicks = clicks.joined(standing_names(clicks.annotators, state.aliases))
        clicks = clicks.without(set(state.excluded)).with_weights(state.weights)
        knowledge = read_knowledge(image, state, views, truth)
        return replace(clicks, **knowledge._asdict()) if knowledge.any() else clicks

    names_by_image = {image: names[image] for image in images}
    inputs = outcome.gather(names_by_image, study, read, part(watch, 0.0, 0.6), words="reading the clicks of")
    other_images = OtherImages()
    if plan is not None:
        other_images = gather_others(
            study, set(images), plan, fold(study.decisions()), views, part(watch, 0.6, 1.0)
        )
    last_view = max((image_views[-1].id for image_views in views.values()), default=0)
    return Inputs(
        **vars(inputs), truth_held=hold_truth, weights=weights, last_view=last_view, others=other_images
    )


def reduced_weights(run: RunEntry, decisions: Sequence[Decision]) -> dict[str, Weighed]:
    """Return the annotators with reduced weight in a run, with the reason; 0 for excluded ones."""
    from raterscope.app.review import Weighed, fold

    counted = fold([decision for decision in decisions if decision.id <= run.known]).counted
    weights = {**run.weights, **dict.fromkeys(run.excluded, 0.0)}
    return {
        name: Weighed(weight, counted[name].reason if name in counted else "")
        for name, weight in weights.items()
    }


def fuse_inputs(
    inputs: Inputs, plan: FusionPlan, *, jobs: int | None = None, watch: Watch = silent
) -> Answer:
    """Fuse gathered inputs, without the study."""
    started = datetime.now(UTC)
    outcomes = fuse_images(inputs.given, plan, jobs=jobs, watch=watch, others=inputs.others.images)
    return Answer(plan, inputs, outcomes, started, (datetime.now(UTC) - started).total_seconds())


def keep(answer: Answer, study: Study, watch: Watch = silent) -> int:
    """Store a run without the images that failed. Returns its number."""
    from raterscope.app.study import digest_of

    plan, inputs = answer.plan, answer.inputs
    images = [image_record(outcome) for outcome in answer.outcomes.values()]
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
            "images": images,
            **_views(inputs),
            **_scores(inputs),
            **inputs.others.as_log(),
        },
        weights=inputs.weights,
    )


def _scores(inputs: Inputs) -> dict[str, object]:
    """Return the number of images and detections that a program's scores cover."""
    scores = [
        image_clicks.scores for image_clicks in inputs.given.values() if image_clicks.scores is not None
    ]
    record = {"images": len(scores), "detections": sum(map(len, scores))}
    return {"scores": record} if scores else {}


def _views(inputs: Inputs) -> dict[str, int]:
    """Return the number of spots viewed and left undecided, and the last view that was read."""
    return {"viewed": inputs.viewed, "last_view": inputs.last_view} if inputs.last_view else {}


def run_record(
    plan: FusionPlan,
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
    """Make the contents of run.json: everything needed to reproduce the results, and how the fusion went.

    `weights` are the reduced weights of annotators, `controls` states for control images whether they contain
    structures, and `scores` is the source of a program's scores.
    """
    record = record_of(
        plan, seed=getattr(plan.clustering, "seed", None), digest=digest, inputs=inputs, started=started,
        seconds=seconds,
    )  # fmt: skip
    outcomes = list(outcomes)
    fusions = [outcome.fusion for outcome in outcomes if outcome.fusion is not None]
    images = [image_record(outcome) for outcome in outcomes]
    notices = run_notices(fusions)
    named: dict[str, Any] = {"controls": dict(controls)} if controls else {}
    named |= {"scores": dict(scores)} if scores else {}
    return record | {"weights": dict(weights), **named, "notices": notices, "images": images}


def scores_record(clicks: Mapping[str, Clicks], source: Mapping[str, object]) -> dict[str, object]:
    """Describe the source of a program's scores, ready for JSON: file, images and detections."""
    scores = [image_clicks.scores for image_clicks in clicks.values() if image_clicks.scores is not None]
    return {**source, "images": len(scores), "detections": sum(map(len, scores))}


def image_record(outcome: Outcome[Fusion]) -> dict[str, Any]:
    """Describe the fusion of one image, ready for JSON: counts, iterations, objective, seconds."""
    record: dict[str, Any] = {"image": outcome.item, "seconds": round(outcome.seconds, 4)}
    if outcome.fusion is None:
        return record | {"problem": outcome.problem}
    clusters, detection = outcome.fusion.clustering, outcome.fusion.detection
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
    """Return the knowledge of an image that a fusion holds fixed.

    Parameters
    ----------
    image : int
        Its number in the study.
    views : mapping of image to views
        Spots that were viewed and left without a decision; empty where views were never recorded.
    truth : TruePoints, optional
        Imported true places to be held fixed too.
    """
    from raterscope.app.review import known_spots, viewed_places

    spots, control = state.spots(image), state.control(image)
    return ExpertKnowledge(
        known=known_spots(spots, None if truth is None else (truth.x, truth.y)),
        viewed=viewed_places(views.get(image, ()), spots) if views else None,
        control=None if control is None else control.holds,
    )


_WORTH_PROCESSES = 4.0  # seconds of work left from which processes, which take one to start, are worth it
# Library calls that hold the GIL and cannot be cancelled: with so many clicks for 50 ms.
_HOLDS_GIL = ("hac", "hdbscan")
_HOLDS_GIL_FROM = 2500
_NAMED = 0.9  # share of the time for positions, where the clicks have classes
_ALONE = 0.85  # share of the time for each image by itself, where they learn from each other then


@dataclass(frozen=True, eq=False)
class Draft:
    """Clustering of an image in progress."""

    item: str
    clustering: Clustering


def fuse_images(
    clicks: Mapping[str, Clicks],
    plan: FusionPlan,
    *,
    jobs: int | None = None,
    watch: Watch = silent,
    others: Sequence[tuple[Clicks, Fusion]] = (),
    workers: Workers | None = None,
) -> dict[str, Outcome[Fusion]]:
    """Fuse the clicks of every image.

    Each image is fused by itself with the seed of the plan. If the plan learns across images, detection is
    then repeated on each image with the rates from all of them. Results do not depend on the number of
    processes. If the plan carries reliabilities over, images are fused in the given order, and each starts
    with its annotators' reliabilities on their previous image.

    Parameters
    ----------
    clicks : mapping of an image's name to its clicks
    jobs : int, optional
        Processes to use at most; by default one a processor. They are started only once enough work is left,
        or at once where a library's call would hold up everything else in this one.
    watch : Watch
        Called at least every 100 ms; a partial result is a `Draft` of the image at work here.
    others : sequence of (Clicks, Fusion), optional
        Images that were fused before by the same plan: they inform the rates too.
    workers : Workers, optional
        Used instead of new processes; they may have started already.

    Returns
    -------
    dict
        An outcome for every image, in the order given.

    Raises
    ------
    Cancelled
        By the watch; processes are stopped first.
    """
    jobs = processors() if jobs is None else jobs
    if carries_reliability(plan):
        jobs, workers = 1, None
    with Workers(jobs) if workers is None else nullcontext(workers) as workers:
        named = len(class_names([*clicks.values(), *(other_clicks for other_clicks, _ in others)])) > 1
        end = _NAMED if named else 1.0
        if learns_across_images(plan):
            separate = _fuse_separately(clicks, plan, workers, part(watch, 0.0, _ALONE * end))
            outcomes = _fuse_jointly(clicks, separate, plan, others, workers, part(watch, _ALONE * end, end))
        else:
            outcomes = _fuse_separately(clicks, plan, workers, part(watch, 0.0, end))
        return _classify(clicks, outcomes, others, part(watch, end, 1.0)) if named else outcomes


def _classify(
    clicks: Mapping[str, Clicks],
    outcomes: Mapping[str, Outcome[Fusion]],
    others: Sequence[tuple[Clicks, Fusion]],
    watch: Watch,
) -> dict[str, Outcome[Fusion]]:
    """Estimate the classes of the clusters of all images together. If it fails, all fail."""
    fused = outcome.successful(outcomes)
    images = [clicks[name] for name in fused]
    classified, problem, details = attempt(lambda: add_classes(images, list(fused.values()), others, watch))
    done = dict(outcomes)
    for index, name in enumerate(fused):
        fusion = classified[index] if classified else None
        done[name] = replace(outcomes[name], fusion=fusion, problem=problem, details=details)
    return done


def _fuse_separately(
    clicks: Mapping[str, Clicks], plan: FusionPlan, workers: Workers, watch: Watch
) -> dict[str, Outcome[Fusion]]:
    done: dict[str, Outcome[Fusion]] = {}
    remaining = dict(clicks)
    total = sum(map(_work_of, clicks.values())) or 1
    finished = first = 0
    reliability: dict[str, float] = {}
    started = time.monotonic()
    if (workers.running and len(remaining) > 1) or (
        plan.algorithm in _HOLDS_GIL and max(map(len, remaining.values()), default=0) > _HOLDS_GIL_FROM
    ):
        done = _fuse_in_processes(remaining, plan, workers, watch)
        remaining.clear()
    while remaining:
        measured = finished - first
        if workers.jobs > 1 and len(remaining) > 1 and measured:
            seconds = (time.monotonic() - started) * (total - finished) / measured
            if seconds > _WORTH_PROCESSES:
                watch_rest = part(watch, finished / total, 1.0)
                done |= _fuse_in_processes(remaining, plan, workers, watch_rest)
                break
        name = next(iter(remaining))
        work = _work_of(remaining[name])
        step = wrapping(
            part(watch, finished / total, (finished + work) / total, f"{name}: "), partial(Draft, name)
        )
        image_clicks = remaining.pop(name)
        done[name] = outcome = _outcome(name, image_clicks, plan, step, reliability)
        if outcome.fusion is not None:
            reliability |= _reliability(image_clicks, outcome.fusion)
        finished += work
        if not first:  # which is no measure: it may have waited for the loops to be compiled
            first, started = finished, time.monotonic()
    return {name: done[name] for name in clicks}


def _fuse_jointly(
    clicks: Mapping[str, Clicks],
    separate: Mapping[str, Outcome[Fusion]],
    plan: FusionPlan,
    others: Sequence[tuple[Clicks, Fusion]],
    workers: Workers,
    watch: Watch,
) -> dict[str, Outcome[Fusion]]:
    """Detect again on the fused images, which learn from each other. If it fails, all fail."""
    fused = outcome.successful(separate)
    started = time.perf_counter()

    def together() -> list[Fusion]:
        renewed = (
            [renew_known(image_clicks, fusion, plan) for image_clicks, fusion in others] if fused else []
        )
        all_clicks = (
            [*(clicks[name] for name in fused), *(other_clicks for other_clicks, _ in others)]
            if fused
            else []
        )
        fusions = [*fused.values(), *renewed]
        if workers.running:
            return _learn_in_processes(all_clicks, fusions, plan, workers, watch)
        shared = share_votes(all_clicks, fusions, plan)
        shared.prepare(plan)
        learnt = learn_from_each_other(all_clicks, fusions, plan, part(watch, 0.0, 0.5), shared=shared)
        return add_half_detections(all_clicks, fusions, learnt, plan, part(watch, 0.5, 1.0), shared=shared)

    learnt, problem, details = attempt(together)
    seconds = (time.perf_counter() - started) / max(len(fused), 1)
    outcomes = dict(separate)
    for index, name in enumerate(fused):
        outcomes[name] = Outcome(
            name, learnt[index] if learnt else None, problem, details, separate[name].seconds + seconds
        )
    return outcomes


def _learn_in_processes(
    clicks: Sequence[Clicks], fusions: Sequence[Fusion], plan: FusionPlan, workers: Workers, watch: Watch
) -> list[Fusion]:
    """Learn from all images, and from each half of them, in worker processes."""
    if not fusions:
        return []
    halves = halves_of(clicks, plan)
    shared = share_votes(clicks, fusions, plan)
    tasks: dict[str, tuple[Any, ...]] = {
        str(number): (_detect_half, *map(to_column, vars(shared.only(set(half))).values()), plan)
        for number, half in enumerate(halves)
    }
    everything = RecordBatch.of(clicks), RecordBatch.of(fusions), plan
    tasks = {"all": (_learn_from_all, *everything), **tasks}
    answers = workers.answer(
        _answer, tasks, lambda done: watch(done / len(tasks), "learning from each other")
    )
    learnt, *detected = [
        answers.get(name) or function(*arguments)  # it failed or its process died: say why here
        for name, (function, *arguments) in tasks.items()
    ]
    return with_halves(learnt.records(), fusions, halves, detected)


def _learn_from_all(
    clicks: RecordBatch[Clicks], fusions: RecordBatch[Fusion], plan: FusionPlan
) -> RecordBatch[Fusion]:
    return RecordBatch.of(learn_from_each_other(clicks.records(), fusions.records(), plan))


def _detect_half(*columns: Any) -> dict[int, BoolArray]:
    *fields, plan = columns
    return detect_together(SharedVotes(*map(from_column, fields)), plan)


def _answer(function: Callable[..., Any], *arguments: Any) -> Any:
    return attempt(partial(function, *arguments))[0]


def _work_of(clicks: Clicks) -> int:
    return len(clicks) + 20


def _reliability(clicks: Clicks, fusion: Fusion) -> dict[str, float]:
    """Return the reliability (eq. 12) of the annotators of an image."""
    pairs = zip(clicks.annotators, fusion.clustering.reliability.tolist(), strict=True)
    return {name: value for name, value in pairs if math.isfinite(value)}


def _outcome(
    name: str,
    clicks: Clicks,
    plan: FusionPlan,
    watch: Watch = silent,
    reliability: Mapping[str, float] | None = None,
) -> Outcome[Fusion]:
    started = time.perf_counter()
    fusion, problem, details = attempt(
        lambda: fuse(clicks, plan, watch=watch, reliability=reliability, rated=False)
    )
    return Outcome(name, fusion, problem, details, time.perf_counter() - started)


_TASK = 6000
"""Clicks of a task for a process, some 300 ms of work; a larger image is a task of its own."""

_FEWEST_TASKS = 8
"""Tasks for each process, so that none waits long for the last of the others."""


def _outcomes(
    fuse_one: Callable[..., Outcome[Fusion]],
    names: Sequence[str],
    clicks: RecordBatch[Clicks],
    plan: FusionPlan,
) -> RecordBatch[Outcome[Fusion]]:
    """Fuse several images in a process."""
    pairs = zip(names, clicks.records(), strict=True)
    return RecordBatch.of([fuse_one(name, image_clicks, plan) for name, image_clicks in pairs])


def _tasks_of(clicks: Mapping[str, Clicks], jobs: int) -> list[list[str]]:
    """Divide images into tasks, the longest first: no process is left alone with a long one at the end."""
    most = min(_TASK, sum(map(_work_of, clicks.values())) / (_FEWEST_TASKS * jobs))
    tasks: list[list[str]] = []
    work = math.inf
    for name in sorted(clicks, key=lambda name: -len(clicks[name])):
        own = _work_of(clicks[name])
        if work + own > most:
            tasks.append([])
            work = 0
        tasks[-1].append(name)
        work += own
    return tasks


def _fuse_in_processes(
    remaining: Mapping[str, Clicks], plan: FusionPlan, workers: Workers, watch: Watch
) -> dict[str, Outcome[Fusion]]:
    """Fuse in worker processes. An image whose worker died is tried once more, alone."""
    finished = 0
    tasks = {str(number): names for number, names in enumerate(_tasks_of(remaining, workers.jobs))}

    def report(*_: object, **__: object) -> None:
        watch(finished / len(remaining), f"fused {finished} of {len(remaining)} images")

    def tick(count: int) -> None:
        nonlocal finished
        finished = max(finished, len(remaining) * count // len(tasks))
        report()

    def fuse_here(task: str) -> RecordBatch[Outcome[Fusion]]:
        return RecordBatch.of([_outcome(name, remaining[name], plan, report) for name in tasks[task]])

    def arguments(names: Sequence[str]) -> tuple[Any, ...]:
        return _outcome, names, RecordBatch.of([remaining[name] for name in names]), plan

    meanwhile = None if plan.algorithm in _HOLDS_GIL or workers.running else fuse_here
    given = {task: arguments(names) for task, names in tasks.items()}
    first = workers.answer(_outcomes, given, tick, meanwhile)
    lost = [name for task, names in tasks.items() if task not in first for name in names]
    again = {name: arguments([name]) for name in lost}
    answers = (*first.values(), *workers.answer(_outcomes, again, report).values())
    done = {outcome.item: outcome for batch in answers for outcome in batch.records()}
    return done | {
        name: Outcome(name, None, "the process that fused it died.", "", 0.0)
        for name in remaining
        if name not in done
    }
