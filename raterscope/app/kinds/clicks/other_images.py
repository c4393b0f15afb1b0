"""Images of a study that are not fused again, as earlier runs have them: they teach those that are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.fusion import FusionPlan, learns_across_images
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.progress import Watch
from raterscope.algorithms.settings import SettingsError
from raterscope.app.errors import counted
from raterscope.app.kinds.clicks.held_fixed import held_fixed
from raterscope.app.review import ReviewState, View
from raterscope.app.study import RunEntry, Study


@dataclass(frozen=True, eq=False)
class OtherImages:
    """What earlier runs made of images that are not fused again.

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
        """Give how many images taught a run, and of which runs, as its log has it; nothing where none."""
        return {"others": len(self.images), "other_runs": self.runs} if self.images else {}


def gather_others(
    study: Study,
    fused: Collection[int],
    plan: FusionPlan,
    state: ReviewState,
    views: Mapping[int, Sequence[View]],
    watch: Watch,
) -> OtherImages:
    """Read what the runs shown say of all images but those that are fused.

    An image is left out where its run is outdated, or clustered its clicks by another plan.

    Parameters
    ----------
    study : Study
    fused : collection of int
        Numbers of the images that are fused.
    plan : FusionPlan
    state : ReviewState
    views : mapping of image to views
    watch : Watch
    """
    found: list[tuple[Clicks, Fusion]] = []
    runs: dict[int, bool] = {}
    rest = [entry.id for entry in study.items()["clicks"] if entry.id not in fused]
    for done, image in enumerate(rest if learns_across_images(plan) else ()):
        watch(done / len(rest), "reading what is known of the other images")
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
            held = held_fixed(image, state, views)._asdict()
            found.append((replace(study.clicks(image, entry), **held), fusion))
    return OtherImages(tuple(found), tuple(run for run, alike in runs.items() if alike))


def others_in_words(log: Mapping[str, Any]) -> str:
    """Say which earlier runs a run learned from, as far as its log has them; empty where from none.

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
        f"What {of} found on {counted(images, 'other image')} was used to judge the annotators. Fuse all "
        "images again if those runs are outdated."
    )


def _clusters_alike(run: RunEntry, plan: FusionPlan) -> bool:
    """Tell whether a run found its clusters and votes as a plan would."""
    try:
        other = FusionPlan.from_dict(run.settings)
    except SettingsError:  # of an older version
        return False
    return (other.algorithm, other.clustering, other.assignment) == (
        plan.algorithm, plan.clustering, plan.assignment,
    )  # fmt: skip
