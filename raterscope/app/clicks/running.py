"""A run over a study: its input read, fused, and kept whole in the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from raterscope.algorithms.clicks.data import Clicks, Fusion
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.clicks.batch import fuse_images
from raterscope.app.clicks.results import image_record
from raterscope.app.outcome import Outcome, versions
from raterscope.app.review import fold, known_spots
from raterscope.app.study import RunRecord, Study, digest_of

__all__ = ["Answer", "Inputs", "fuse_inputs", "gather", "keep"]


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a run is made from.

    Attributes
    ----------
    items : mapping of an image's name to its number in the study
    clicks : mapping of name to Clicks
        With what the expert decided held fixed, and without the annotators the expert excluded.
    decision : int
        The last decision that is taken into account.
    imported : int
        The last import.
    excluded : tuple of str
        Annotators that are left out.
    truth_held : bool
        Whether imported truth is held fixed too.
    """

    items: Mapping[str, int]
    clicks: Mapping[str, Clicks]
    decision: int
    imported: int
    excluded: tuple[str, ...]
    truth_held: bool


@dataclass(frozen=True, eq=False)
class Answer:
    """What a run came to: the outcome for every image, when it started, how long it took."""

    plan: FusionPlan
    inputs: Inputs
    outcomes: Mapping[str, Outcome[Fusion]]
    started: datetime
    seconds: float

    @property
    def fusions(self) -> dict[str, Fusion]:
        """Give the images that were fused."""
        return {name: one.fusion for name, one in self.outcomes.items() if one.fusion is not None}


def gather(images: Sequence[int], study: Study, watch: Watch = silent, *, hold_truth: bool = False) -> Inputs:
    """Read the clicks on images of a study, in this order.

    What the expert decided is held fixed; with `hold_truth`, imported truth too.
    """
    decisions = study.decisions()
    state = fold(decisions)
    excluded = set(state.excluded)
    names = {entry.id: entry.name for entry in study.images()}
    clicks = {}
    for done, image in enumerate(images):
        watch(done / len(images), f"reading the clicks of {names[image]}")
        truth = study.truth(image) if hold_truth else None
        known = known_spots(state, image, None if truth is None else (truth.x, truth.y))
        clicks[names[image]] = replace(study.clicks(image).without(excluded), known=known)
    return Inputs(
        items={names[image]: image for image in images},
        clicks=clicks,
        decision=decisions[-1].id if decisions else 0,
        imported=study.last_import(),
        excluded=tuple(sorted(excluded)),
        truth_held=hold_truth,
    )


def fuse_inputs(
    inputs: Inputs, plan: FusionPlan, *, jobs: int | None = None, watch: Watch = silent
) -> Answer:
    """Fuse what was gathered; the study is not needed for it."""
    started = datetime.now(UTC)
    outcomes = fuse_images(inputs.clicks, plan, jobs=jobs, watch=watch)
    return Answer(plan, inputs, outcomes, started, (datetime.now(UTC) - started).total_seconds())


def keep(answer: Answer, study: Study, watch: Watch = silent) -> int:
    """Store a run whole, without the images that failed; gives its number."""
    plan, inputs = answer.plan, answer.inputs
    record = RunRecord(
        kind="clicks",
        algorithm=f"{plan.algorithm} + {plan.detector}",
        settings=plan.as_dict(),
        versions=versions(),
        digest=digest_of(inputs.clicks),
        started=answer.started,
        seconds=answer.seconds,
        seed=getattr(plan.clustering, "seed", None),
        log={
            "truth_held": inputs.truth_held,
            "images": [image_record(outcome) for outcome in answer.outcomes.values()],
        },
        known=inputs.decision,
        imported=inputs.imported,
        excluded=inputs.excluded,
    )
    return study.add_run(
        record, {inputs.items[name]: fusion for name, fusion in answer.fusions.items()}, watch
    )
