"""Many images fused with one plan, over processes where that is worth it, none lost because another fails."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.fusion import (
    FusionPlan,
    carries_reliability,
    fuse,
    learn_from_each_other,
    learns_across_images,
    renew_known,
)
from raterscope.algorithms.clicks.result import Clustering, Fusion
from raterscope.algorithms.clicks.robustness import with_halves
from raterscope.algorithms.progress import Watch, part, silent, wrapping
from raterscope.app.outcome import Outcome, attempt
from raterscope.app.workers import in_processes, processors

_WORTH = 4.0  # seconds of work left from which processes, which take one to start, are worth it
# Library calls that let nothing else in Python run, nor hear of cancelling: with so many clicks for 50 ms.
_DEAF = ("hac", "hdbscan")
_DEAF_FROM = 2500
_ALONE = 0.85  # share of the time for each image by itself, where they learn from each other then


@dataclass(frozen=True, eq=False)
class Draft:
    """What the clustering of an image has come to, while it is at work."""

    item: str
    clustering: Clustering


def fuse_images(
    clicks: Mapping[str, Clicks],
    plan: FusionPlan,
    *,
    jobs: int | None = None,
    watch: Watch = silent,
    others: Sequence[tuple[Clicks, Fusion]] = (),
) -> dict[str, Outcome[Fusion]]:
    """Fuse the clicks of every image.

    Each image is fused by itself with the plan's own seed; with a plan that learns across images, what all of
    them say of the crowd is used then to detect again on each. The results are the same however many
    processes work. With a plan that carries reliabilities on, images are fused one after the other in the
    order given, and each starts with what its annotators came to on the last image that they clicked.

    Parameters
    ----------
    clicks : mapping of an image's name to its clicks
    plan : FusionPlan
    jobs : int, optional
        Processes to use at most; by default one a processor. They are started only once enough work is left,
        or at once where a library's call would hold up everything else in this one.
    watch : Watch
        Called at least every 100 ms; a partial result is a `Draft` of the image at work here.
    others : sequence of (Clicks, Fusion), optional
        Images that were fused before, by the same plan: they teach too.

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
        jobs = 1
    if learns_across_images(plan):
        alone = _each_by_itself(clicks, plan, jobs, part(watch, 0.0, _ALONE))
        return _learnt(clicks, alone, plan, others, part(watch, _ALONE, 1.0))
    return _each_by_itself(clicks, plan, jobs, watch)


def _each_by_itself(
    clicks: Mapping[str, Clicks], plan: FusionPlan, jobs: int, watch: Watch
) -> dict[str, Outcome[Fusion]]:
    done: dict[str, Outcome[Fusion]] = {}
    left = dict(clicks)
    total = sum(map(_work_of, clicks.values())) or 1
    finished = first = 0
    reliability: dict[str, float] = {}
    started = time.monotonic()
    if plan.algorithm in _DEAF and max(map(len, left.values()), default=0) > _DEAF_FROM:
        done = _in_processes(left, plan, min(jobs, len(left)), watch)
        left.clear()
    while left:
        measured = finished - first
        if jobs > 1 and len(left) > 1 and measured:
            seconds = (time.monotonic() - started) * (total - finished) / measured
            if seconds > _WORTH:
                rest = part(watch, finished / total, 1.0)
                done |= _in_processes(left, plan, min(jobs, len(left)), rest)
                break
        name = next(iter(left))
        work = _work_of(left[name])
        step = wrapping(
            part(watch, finished / total, (finished + work) / total, f"{name}: "), partial(Draft, name)
        )
        own = left.pop(name)
        done[name] = outcome = _outcome(name, own, plan, step, reliability)
        if outcome.fusion is not None:
            reliability |= _reliability(own, outcome.fusion)
        finished += work
        if not first:  # which is no measure: it may have waited for the loops to be compiled
            first, started = finished, time.monotonic()
    return {name: done[name] for name in clicks}


def _learnt(
    clicks: Mapping[str, Clicks],
    alone: Mapping[str, Outcome[Fusion]],
    plan: FusionPlan,
    others: Sequence[tuple[Clicks, Fusion]],
    watch: Watch,
) -> dict[str, Outcome[Fusion]]:
    """Let the images that were fused teach each other. Where that fails, none of them has an answer."""
    fused = {name: outcome.fusion for name, outcome in alone.items() if outcome.fusion is not None}
    started = time.perf_counter()

    def together() -> list[Fusion]:
        known = [renew_known(one, fusion, plan) for one, fusion in others] if fused else []
        every = [*(clicks[name] for name in fused), *(one for one, _ in others)] if fused else []
        before = [*fused.values(), *known]
        learnt = learn_from_each_other(every, before, plan, part(watch, 0.0, 0.5))
        return with_halves(every, before, learnt, plan, part(watch, 0.5, 1.0))

    learnt, problem, details = attempt(together)
    seconds = (time.perf_counter() - started) / max(len(fused), 1)
    outcomes = dict(alone)
    for turn, name in enumerate(fused):
        outcomes[name] = Outcome(
            name, learnt[turn] if learnt else None, problem, details, alone[name].seconds + seconds
        )
    return outcomes


def _work_of(clicks: Clicks) -> int:
    return len(clicks) + 20


def _reliability(clicks: Clicks, fusion: Fusion) -> dict[str, float]:
    """Give the reliability (eq. 12) of everybody who clicked on the image."""
    found = zip(clicks.annotators, fusion.clustering.reliability.tolist(), strict=True)
    return {name: value for name, value in found if math.isfinite(value)}


def _outcome(
    name: str,
    clicks: Clicks,
    plan: FusionPlan,
    watch: Watch = silent,
    reliability: Mapping[str, float] | None = None,
) -> Outcome[Fusion]:
    started = time.perf_counter()
    fusion, problem, details = attempt(lambda: fuse(clicks, plan, watch=watch, reliability=reliability))
    return Outcome(name, fusion, problem, details, time.perf_counter() - started)


def _in_processes(
    left: Mapping[str, Clicks], plan: FusionPlan, jobs: int, watch: Watch
) -> dict[str, Outcome[Fusion]]:
    """Fuse in worker processes. An image whose worker died is tried once more, alone."""
    finished = 0

    def tick(count: int) -> None:
        nonlocal finished
        finished = count
        watch(count / len(left), f"fused {count} of {len(left)} images")

    def fuse_here(name: str) -> Outcome[Fusion]:
        return _outcome(name, left[name], plan, lambda *_, **__: tick(finished))

    # The longest first, so that no process is left alone with a long one at the end.
    order = sorted(left, key=lambda name: -len(left[name]))
    meanwhile = None if plan.algorithm in _DEAF else fuse_here
    done = in_processes(_outcome, {name: (name, left[name], plan) for name in order}, jobs, tick, meanwhile)
    for name in [name for name in left if name not in done]:
        done |= in_processes(_outcome, {name: (name, left[name], plan)}, 1, tick)
        if name not in done:
            done[name] = Outcome(name, None, "the process that fused it died.", "", 0.0)
    return done
