"""A run over a study: its input read, fused, and kept whole in the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app import outcome, running
from raterscope.app.kinds.clicks.batch import fuse_images
from raterscope.app.kinds.clicks.held_fixed import held_fixed
from raterscope.app.kinds.clicks.other_images import OtherImages, gather_others
from raterscope.app.kinds.clicks.result_files import image_record
from raterscope.app.review import Decision, ReviewState, Weighed, fold
from raterscope.app.study import RunEntry, Study, digest_of


@dataclass(frozen=True, eq=False)
class Inputs(outcome.Inputs[Clicks]):
    """What a run is made from: clicks, with what the expert decided held fixed.

    Attributes
    ----------
    truth_held : bool
        Whether imported truth is held fixed too.
    weights : mapping of annotator to float
        As how much of one each of those counts who do not count fully.
    last_view : int
        The last of the views of spots that were read.
    others : OtherImages
        Images that are not fused again, but teach.
    """

    truth_held: bool = False
    weights: Mapping[str, float] = field(default_factory=dict)
    last_view: int = 0
    others: OtherImages = field(default_factory=OtherImages)

    @property
    def viewed(self) -> int:
        """How many spots were viewed and left without a decision."""
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
    """Read the clicks on images of a study, in this order.

    What the expert decided is held fixed; with `hold_truth`, imported truth too. Spots that were viewed and
    left without a decision go along, and what control images are known to hold. With a plan, the images
    that are not fused are read too, as their shown runs have them.
    """
    names = {entry.id: entry.name for entry in study.images()}

    weights: dict[str, float] = {}
    views = study.views.by_image()

    def read(image: int, state: ReviewState) -> Clicks:
        weights.update(state.weights)
        truth = study.truth(image) if hold_truth else None
        clicks = study.clicks(image).without(set(state.excluded)).weighed(state.weights)
        return replace(clicks, **held_fixed(image, state, views, truth)._asdict())

    asked = {image: names[image] for image in images}
    found = running.gather(asked, study, read, part(watch, 0.0, 0.6), words="reading the clicks of")
    others = OtherImages()
    if plan is not None:
        others = gather_others(
            study, set(images), plan, fold(study.decisions()), views, part(watch, 0.6, 1.0)
        )
    last_view = max((one[-1].id for one in views.values()), default=0)
    return Inputs(**vars(found), truth_held=hold_truth, weights=weights, last_view=last_view, others=others)


def counted_in(run: RunEntry, decisions: Sequence[Decision]) -> dict[str, Weighed]:
    """Tell who did not count fully in a run, and why; who was left out, at 0."""
    then = fold([one for one in decisions if one.id <= run.known]).counted
    weights = {**run.weights, **dict.fromkeys(run.excluded, 0.0)}
    return {
        name: Weighed(weight, then[name].reason if name in then else "") for name, weight in weights.items()
    }


def fuse_inputs(
    inputs: Inputs, plan: FusionPlan, *, jobs: int | None = None, watch: Watch = silent
) -> Answer:
    """Fuse what was gathered; the study is not needed for it."""
    started = datetime.now(UTC)
    outcomes = fuse_images(inputs.given, plan, jobs=jobs, watch=watch, others=inputs.others.images)
    return Answer(plan, inputs, outcomes, started, (datetime.now(UTC) - started).total_seconds())


def keep(answer: Answer, study: Study, watch: Watch = silent) -> int:
    """Store a run whole, without the images that failed; gives its number."""
    plan, inputs = answer.plan, answer.inputs
    images = [image_record(one) for one in answer.outcomes.values()]
    return running.keep(
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
    """Give on how many images a program was weighed as well, and with how many detections."""
    searched = [one.scores for one in inputs.given.values() if one.scores is not None]
    found = {"images": len(searched), "detections": sum(map(len, searched))}
    return {"scores": found} if searched else {}


def _views(inputs: Inputs) -> dict[str, int]:
    """Give how many spots were viewed and left without a decision, and the last view that was read."""
    return {"viewed": inputs.viewed, "last_view": inputs.last_view} if inputs.last_view else {}
