"""Live watching of a source of clicks: reading, storing, following and resuming.

While clicks arrive, every image is followed separately. When there is time, and before a run is stored, the
changed images are fused from all their clicks, with rates estimated from all images. The answers are then
those of `raterscope run` and of Fuse in the window, whatever the order of the clicks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.fusion import DIFFERENCE
from raterscope.algorithms.clicks.image_priors import Experience, experience_of, experiences_of
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.clicks.robustness import LIMIT, add_half_detections
from raterscope.algorithms.clicks.stopping import (
    RankedAnnotators,
    count_changes,
    rank_annotators,
    rank_images,
)
from raterscope.algorithms.clicks.stream import (
    StreamState,
    begin_stream,
    can_share_streams,
    restart_stream,
    share_streams,
)
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.formats.growing_files import Growth, Position, look
from raterscope.app.formats.records import ClickTable
from raterscope.app.formats.untrusted import refuse_special
from raterscope.app.kinds.clicks.live_watching import (
    PendingClicks,
    WatchedImage,
    WatchPlan,
    follow_image,
    read_pending,
    revise_last_step,
)
from raterscope.app.kinds.clicks.runs import gather, image_record
from raterscope.app.outcome import Answer, Outcome, keep
from raterscope.app.study import Study, digest_of, streams
from raterscope.text import counted

_ALONE = 0.6  # share of the time for the separate fusions of changed images
_SAME = 1e-3
"""Change of posteriors below which an image with unchanged detections keeps its former answer."""


def refit(
    watched: WatchedImage, pending: PendingClicks, plan: WatchPlan, watch: Watch = silent
) -> WatchedImage:
    """Fuse an image again from all its clicks, with the experience from others; revise its last step.

    The answer no longer depends on the order of the clicks.
    """
    if not can_share_streams(plan.stream):
        return watched
    clicks = pending.clicks(len(pending.arrivals))
    state = begin_stream(clicks, plan.stream, watch, experience=watched.experience)
    return revise_last_step(
        watched, clicks, replace(state, step=watched.state.step), watched.experience, plan
    )


@dataclass(frozen=True, eq=False)
class _SettledImage:
    """An image's answer when it was last settled, and the fusion of its clicks alone."""

    answer: WatchedImage
    alone: StreamState


class Settler:
    """Settling of watched images together, with a record of images that have not changed since."""

    def __init__(self) -> None:
        self.seconds = 0.0  # duration of the last settling
        # changed, detections: number of decisions that the last settling changed, and of detections after it
        self.changed = self.detections = 0
        self.ended = 0.0  # end of the last settling; 0 before the first
        self._settled: dict[int, _SettledImage] = {}

    def has_settled(self, image: int, answer: WatchedImage | None) -> bool:
        """Return whether an image still has the answer of the last settling."""
        settled = self._settled.get(image)
        return settled is not None and settled.answer is answer

    def is_due(
        self, watched: Mapping[int, WatchedImage], pending: Mapping[int, PendingClicks], plan: WatchPlan
    ) -> bool:
        """Return whether an image changed since the last settling, and at least its duration has passed."""
        if time.monotonic() - self.ended < self.seconds:
            return False
        return self.is_needed(watched, pending, plan)

    def is_needed(
        self, watched: Mapping[int, WatchedImage], pending: Mapping[int, PendingClicks], plan: WatchPlan
    ) -> bool:
        """Return whether a complete image changed, was added or removed since the last settling."""
        if not can_share_streams(plan.stream):
            return False
        complete = _complete_answers(watched, pending)
        return complete.keys() != self._settled.keys() or any(
            answer is not self._settled[image].answer for image, answer in complete.items()
        )

    def settle(
        self,
        watched: Mapping[int, WatchedImage],
        pending: Mapping[int, PendingClicks],
        plan: WatchPlan,
        watch: Watch = silent,
    ) -> dict[int, WatchedImage]:
        """Settle the images that have no pending clicks; return those with new answers."""
        started = time.monotonic()
        complete = _complete_answers(watched, pending)
        clicks: dict[int, Clicks] = {}
        alone: dict[int, StreamState] = {}
        for (image, answer), step in steps_of(part(watch, 0.0, _ALONE), complete.items()):
            clicks[image] = pending[image].clicks(len(pending[image].arrivals))
            previous = self._settled.get(image)
            if previous is not None and previous.answer is answer:
                alone[image] = previous.alone
            else:
                alone[image] = restart_stream(clicks[image], plan.stream, answer.state, step)
        if not complete:
            return {}
        states = share_streams(
            list(clicks.values()), list(alone.values()), plan.stream, part(watch, _ALONE, _ALONE + 0.2)
        )
        self.changed = sum(
            count_changes(answer.fusion, state.fusion)
            for answer, state in zip(complete.values(), states, strict=True)
        )
        self.detections = sum(int(state.fusion.detection.detected.sum()) for state in states)
        experiences = experiences_of(
            [state.fusion for state in states],
            [image_clicks.annotators for image_clicks in clicks.values()],
            part(watch, _ALONE + 0.2, _ALONE + 0.3),
            weights=[image_clicks.weights for image_clicks in clicks.values()],
        )
        answers: dict[int, WatchedImage] = {}
        for done, (image, state) in enumerate(zip(complete, states, strict=True)):
            step = part(watch, 0.9 + 0.1 * done / len(complete), 0.9 + 0.1 * (done + 1) / len(complete))
            if not _is_unchanged(self._settled.get(image), complete[image], state.fusion):
                answers[image] = revise_last_step(
                    complete[image], clicks[image], state, experiences[done], plan, step
                )
        self._settled = {
            image: _SettledImage(answers.get(image, answer), alone[image])
            for image, answer in complete.items()
        }
        self.ended = time.monotonic()
        self.seconds = self.ended - started
        return answers

    def with_halves(
        self, watched: Mapping[int, WatchedImage], pending: Mapping[int, PendingClicks], plan: WatchPlan
    ) -> dict[int, Fusion]:
        """Return the answers of the settled images, with the detections from halves of their annotators."""
        images = [image for image in watched if image in self._settled]
        answers = add_half_detections(
            [pending[image].clicks(len(pending[image].arrivals)) for image in images],
            [self._settled[image].alone.fusion for image in images],
            [watched[image].fusion for image in images],
            plan.stream.fusion,
        )
        return dict(zip(images, answers, strict=True))


def _is_unchanged(previous: _SettledImage | None, current: WatchedImage, fusion: Fusion) -> bool:
    """Return whether settling gives the same answer as before."""
    if previous is None or previous.answer is not current:
        return False
    old, new = current.fusion.detection, fusion.detection
    return (
        old.posterior.shape == new.posterior.shape
        and np.array_equal(old.detected, new.detected)
        and bool((abs(old.posterior - new.posterior) < _SAME).all())
    )


def _complete_answers(
    watched: Mapping[int, WatchedImage], pending: Mapping[int, PendingClicks]
) -> dict[int, WatchedImage]:
    return {
        image: answer
        for image, answer in watched.items()
        if image in pending and not pending[image].has_more(answer)
    }


@dataclass(frozen=True)
class WatchRequest:
    """Source to watch, and its settings."""

    source: Path  # a file, or a folder of files, that grows
    plan: WatchPlan
    mapping: Mapping[str, str]  # column to field, as set by the user
    # (width, height): size in pixels of images whose size is in neither the study nor the source
    extent: tuple[float, float] | None = None


class LiveSource:
    """A watched source of clicks.

    Methods with a study as argument run in its thread; `look` and `advance` may run in another thread, one at
    a time.
    """

    def __init__(self, study: Study, request: WatchRequest) -> None:
        refuse_special(request.source)
        stream = next(
            (entry for entry in streams.streams(study) if entry.source == request.source.resolve()), None
        )
        since = study.last_import() if stream is None else _since(stream)
        settings = {"plan": request.plan.as_dict(), "since": since, "mapping": dict(request.mapping)}
        self.request = request
        self.resumed = stream is not None  # whether the study had watched the source before
        entry = streams.begin(study, request.source.resolve(), settings)
        # position up to which the source was read
        self.position = Position.from_dict(entry.position) if entry.position else Position()
        # state of each image
        self.watched: dict[int, WatchedImage] = streams.kept(study, entry.id, WatchedImage)
        self._stream = entry.id
        # numbers of clicks, annotators and images at the last `gather`
        self.counts = (0, 0, 0)
        self._received = False
        self._given: dict[int, PendingClicks] = {}
        self._since = since
        self._settler = Settler()
        self._started, self._clock = datetime.now(UTC), time.perf_counter()
        self.gather(study)

    def look(self, watch: Watch = silent, *, ended: bool = False) -> Growth:
        """Read what was appended to the source since the last position; with `ended`, up to its end."""
        growth = look(self.request.source, self.position, self.request.mapping or None, watch, ended=ended)
        self._received = True
        return growth

    def store(self, study: Study, growth: Growth, watch: Watch = silent) -> None:
        """Store new clicks in the study, with the position up to which the source was read."""
        if growth.table is not None or growth.position != self.position:
            table = None if growth.table is None else _by_annotator(growth.table)
            position = growth.position.as_dict()
            streams.take_in(study, self._stream, table, position, watch, extent=self.request.extent)
            self.position = growth.position

    def gather(self, study: Study, watch: Watch = silent) -> list[int]:
        """Read the pending clicks from the study; return the images with pending clicks."""
        images = [entry.id for entry in study.items()["clicks"]]
        self._given = read_pending(study, images, self.request.plan, self._given, self._since, watch)
        arrivals = [pending.arrivals for pending in self._given.values()]
        annotators = {number for image_arrivals in arrivals for number in image_arrivals.order.tolist()}
        self.counts = (
            sum(len(image_arrivals.x) for image_arrivals in arrivals),
            len(annotators),
            sum(len(image_arrivals) > 0 for image_arrivals in arrivals),
        )
        return [image for image in images if self._given[image].has_more(self.watched.get(image))]

    def advance(self, images: Sequence[int], watch: Watch = silent) -> Iterator[tuple[int, WatchedImage]]:
        """Process the pending clicks of images, step by step."""
        for image, step in steps_of(watch, images):
            experience = partial(self.experience, image)
            for answer in follow_image(
                self.watched.get(image), self._given[image], experience, self.request.plan, step
            ):
                self.watched[image] = answer
                yield image, answer

    @property
    def is_settled(self) -> bool:
        """Whether no complete image changed since all were settled."""
        return not self._settler.is_needed(self.watched, self._given, self.request.plan)

    @property
    def is_settling_due(self) -> bool:
        """Whether images changed since the last settling, and it is time to settle them again."""
        return self._settler.is_due(self.watched, self._given, self.request.plan)

    def is_settled_image(self, image: int) -> bool:
        """Return whether an image has the answer of the last settling."""
        return self._settler.has_settled(image, self.watched.get(image))

    @property
    def settling_text(self) -> str:
        """Description of the changes by the last settling, or of possible changes by the next."""
        settler = self._settler
        if not can_share_streams(self.request.plan.stream):
            return "With these settings, images are not settled together."
        if not settler.ended:
            return (
                f"When no clicks wait, all images are fused together, and decisions may change. {DIFFERENCE}"
            )
        return (
            f"Fusing all images together changed {counted(settler.changed, 'decision')} last time, of "
            f"{counted(settler.detections, 'detection')} now."
        )

    @property
    def settling_notice(self) -> str:
        """The `settling_text`; empty where the last settling changed few decisions."""
        settler = self._settler
        few = settler.changed <= LIMIT * settler.detections
        return "" if settler.ended and few else self.settling_text

    def settle(self, watch: Watch = silent) -> list[int]:
        """Fuse the complete images as a run over all of them does; return the changed images."""
        answers = self._settler.settle(self.watched, self._given, self.request.plan, watch)
        self.watched.update(answers)
        return list(answers)

    def clicks(self, image: int) -> Clicks:
        """Return the clicks of an image's answer, with its numbering of rows and annotators."""
        pending = self._given[image]
        return pending.clicks(pending.reached(self.watched[image]) or 0)

    def keep(self, study: Study, images: Sequence[int]) -> None:
        """Store the answers of images, to resume from them later."""
        streams.keep(study, self._stream, {image: self.watched[image] for image in images})

    def end(self, study: Study, reason: str) -> None:
        """Record why watching ended. A source that was never readable is not kept."""
        if self.resumed or self._received:
            streams.end(study, self._stream, reason)
        else:
            streams.forget(study, self._stream)

    def keep_run(self, study: Study) -> int | None:
        """Store the answers as a run without images that have pending clicks; return its number.

        Decisions and views since the last reading are held fixed; the images are settled first. The result is
        None without a complete image.
        """
        reviewed = [
            image
            for image in self.gather(study)
            if image in self.watched
            and self._given[image].reached(self.watched[image]) == len(self._given[image].arrivals)
        ]
        for _ in self.advance(reviewed):
            pass
        self.keep(study, reviewed)
        if not self.is_settled:
            self.keep(study, self.settle())
        complete = {
            image: answer for image, answer in self.watched.items() if not self._given[image].has_more(answer)
        }
        if not complete:
            return None
        inputs, plan = gather(list(complete), study), self.request.plan
        fusion = plan.stream.fusion
        answers = {image: answer.fusion for image, answer in complete.items()}
        answers |= self._settler.with_halves(complete, self._given, plan)
        outcomes = {
            name: Outcome(name, self._in_order(image, answers[image]), "", "", 0.0)
            for name, image in inputs.items.items()
        }
        answer = Answer(plan, inputs, outcomes, self._started, time.perf_counter() - self._clock)
        return keep(
            answer,
            study,
            kind="clicks",
            algorithm=f"online {fusion.algorithm} + {fusion.detector}",
            seed=getattr(fusion.clustering, "seed", None),
            digest=digest_of(inputs.given),
            log={"truth_held": False, "images": [image_record(outcome) for outcome in outcomes.values()]},
        )

    def annotators(self, image: int) -> tuple[str, ...]:
        """List the annotators of an image's answer."""
        pending, annotators = self._given[image], self.watched[image].fusion.marked.shape[0]
        return tuple(pending.names[number] for number in pending.arrivals.order[:annotators].tolist())

    def experience(self, image: int) -> Experience:
        """Return the experience with annotators from the other images."""
        other_images = [other for other in self.watched if other != image]
        return experience_of(
            [self.watched[other].fusion for other in other_images], list(map(self.annotators, other_images)),
            weights=[self.watched[other].weights for other in other_images],
        )  # fmt: skip

    def next_image(self) -> tuple[int | None, float]:
        """Return the image with the largest expected gain from another annotator, and that gain.

        None if every image meets the stop rule.
        """
        loose = [image for image, answer in self.watched.items() if not answer.firm]
        if not loose:
            return None, 0.0
        fusions = [self.watched[image].fusion for image in loose]
        best = rank_images([self.clicks(image) for image in loose], fusions, self.request.plan.stream)
        return loose[int(best.image[0])], float(best.gain[0])

    def rank_for(self, image: int) -> RankedAnnotators:
        """Rank the annotators who have not viewed an image."""
        fusion, experience = self.watched[image].fusion, self.experience(image)
        return rank_annotators(self.clicks(image), fusion, self.request.plan.stream, experience)

    def _in_order(self, image: int, answer: Fusion) -> Fusion:
        """Return an image's answer with the annotators in the study's order."""
        return answer.reordered(np.argsort(self._given[image].arrivals.order))


def _since(entry: streams.StreamEntry) -> int:
    since: Any = entry.settings.get("since")
    return since if isinstance(since, int) else 0


def _by_annotator(table: ClickTable) -> ClickTable:
    """Group clicks by annotator; annotators may alternate in the input."""
    rows = np.lexsort((np.arange(len(table)), _rank(table.annotator), table.image))
    time = None if table.time is None else table.time[rows]
    return replace(
        table, x=table.x[rows], y=table.y[rows], annotator=table.annotator[rows], image=table.image[rows],
        time=time,
    )  # fmt: skip


def _rank(annotator: np.ndarray) -> np.ndarray:
    """Return the rank of each row's annotator by first click."""
    _, first, inverse = np.unique(annotator, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse.reshape(-1)]
