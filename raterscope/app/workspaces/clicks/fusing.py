"""Fusing in the background: inputs from the study, work in a thread, the whole run back into it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.progress import Watch
from raterscope.app import batch
from raterscope.app.document import Document
from raterscope.app.jobs import Job, Jobs
from raterscope.app.review import ReviewState, fold, known_spots
from raterscope.app.study import RunRecord, Study, digest_of

__all__ = ["Fusing", "gather"]


@dataclass(frozen=True)
class Inputs:
    """What a run is made from: the clicks of each image, decisions held fixed, annotators left out."""

    images: Mapping[str, int]
    clicks: Mapping[str, Clicks]
    decision: int
    imported: int
    excluded: tuple[str, ...]


@dataclass(frozen=True)
class _Answer:
    plan: FusionPlan
    inputs: Inputs
    outcomes: Mapping[str, batch.Outcome]
    started: datetime
    seconds: float


class Fusing(QObject):
    """One fusion at a time; a new one takes the place of the one under way.

    Signals
    -------
    changed(Job or None)
        The fusion under way, or that there is none.
    partial(image, Clustering)
        What the clustering of an image has come to.
    stored(int)
        The run that is now in the study.
    said(str), refused(str)
        How it ended, where it was not as wished.
    """

    changed = Signal(object)
    partial = Signal(int, object)
    stored = Signal(int)
    said = Signal(str)
    refused = Signal(str)

    def __init__(self, document: Document, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._jobs = jobs
        self._job: Job | None = None

    @property
    def job(self) -> Job | None:
        """The fusion under way."""
        return self._job

    def start(self, plan: FusionPlan, images: Sequence[int]) -> None:
        """Fuse images, in this order."""
        self.cancel()
        reading = self._document.ask("Reading the clicks", partial(gather, tuple(images)))
        reading.finished.connect(partial(self._on_gathered, plan))

    def cancel(self) -> None:
        """Stop the fusion under way; the study stays as it was."""
        if self._job is not None:
            self._job.cancel()

    def _on_gathered(self, plan: FusionPlan, inputs: Inputs) -> None:
        names = list(inputs.images)
        title = f"Fusing {names[0]}" if len(names) == 1 else f"Fusing {len(names)} images"
        job = self._jobs.start(title, partial(_fuse, inputs, plan))
        self._job = job
        job.progressed.connect(partial(self._on_progress, job))
        job.partial.connect(partial(self._on_partial, inputs))
        job.finished.connect(self._on_fused)
        job.ended.connect(partial(self._on_ended, job))
        self.changed.emit(job)

    def _on_progress(self, job: Job) -> None:
        if job is self._job:
            self.changed.emit(job)

    def _on_partial(self, inputs: Inputs, draft: batch.Draft) -> None:
        self.partial.emit(inputs.images[draft.image], draft.clustering)

    def _on_fused(self, answer: _Answer) -> None:
        failed = [outcome for outcome in answer.outcomes.values() if outcome.fusion is None]
        if failed:
            others = f" {len(failed) - 1} more failed too." if len(failed) > 1 else ""
            self.refused.emit(f"{failed[0].image} could not be fused: {failed[0].problem}{others}")
        if len(failed) < len(answer.outcomes):
            storing = self._document.ask("Keeping the run", partial(_store, answer), changes=True)
            storing.finished.connect(self.stored)

    def _on_ended(self, job: Job) -> None:
        if job is self._job:
            self._job = None
            self.changed.emit(None)
        if job.state == "failed":
            self.refused.emit(job.error)
        elif job.state == "cancelled":
            self.said.emit("The fusion was cancelled; the study is as it was.")


def gather(images: Sequence[int], study: Study, watch: Watch) -> Inputs:
    """Read the clicks of images, with what the expert decided held fixed and the excluded left out."""
    decisions = study.decisions()
    state = fold(decisions)
    names = {entry.id: entry.name for entry in study.images()}
    clicks = {}
    for done, image in enumerate(images):
        watch(done / len(images), f"reading the clicks of {names[image]}")
        clicks[names[image]] = _input(study, image, state)
    return Inputs(
        images={names[image]: image for image in images},
        clicks=clicks,
        decision=decisions[-1].id if decisions else 0,
        imported=study.last_import(),
        excluded=tuple(sorted(state.excluded)),
    )


def _input(study: Study, image: int, state: ReviewState) -> Clicks:
    clicks = study.clicks(image).without(set(state.excluded))
    return replace(clicks, known=known_spots(state, image))


def _fuse(inputs: Inputs, plan: FusionPlan, watch: Watch) -> _Answer:
    started = datetime.now(UTC)
    outcomes = batch.fuse_images(inputs.clicks, plan, watch=watch)
    return _Answer(plan, inputs, outcomes, started, (datetime.now(UTC) - started).total_seconds())


def _store(answer: _Answer, study: Study, watch: Watch) -> int:
    record = RunRecord(
        kind="clicks",
        algorithm=f"{answer.plan.algorithm} + {answer.plan.detector}",
        settings=answer.plan.as_dict(),
        versions=batch.versions(),
        digest=digest_of(answer.inputs.clicks),
        started=answer.started,
        seconds=answer.seconds,
        known=answer.inputs.decision,
        imported=answer.inputs.imported,
        excluded=answer.inputs.excluded,
    )
    results = {
        answer.inputs.images[name]: outcome.fusion
        for name, outcome in answer.outcomes.items()
        if outcome.fusion is not None
    }
    return study.add_run(record, results, watch)
