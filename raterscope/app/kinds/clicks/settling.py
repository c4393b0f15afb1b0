"""What is watched, brought to where a fusion of all images is, once nothing more is to be taken up.

While clicks come, every image is followed by itself. As soon as there is time, and before a run is kept, the
images that changed are fused from all their clicks and all images learn from each other. The answers are then
those that `raterscope run` and the window's Fuse give, in whatever order the clicks came.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.experience import experiences_of
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.clicks.robustness import with_halves
from raterscope.algorithms.clicks.stream import StreamState, afresh, begin, can_settle, settle
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.kinds.clicks.watching import Waiting, Watched, WatchPlan, revised

_ALONE = 0.6  # share of the time for the images that changed, each by itself
_SAME = 1e-3
"""A change of posteriors below which an image keeps its former answer, with the same detections."""


def refit(now: Watched, given: Waiting, plan: WatchPlan, watch: Watch = silent) -> Watched:
    """Fuse an image again from all its clicks, with what the other images say; its last step is revised.

    The answer no longer depends on the order in which the clicks came.
    """
    if not can_settle(plan.stream):
        return now
    clicks = given.clicks(len(given.arrivals))
    state = begin(clicks, plan.stream, watch, experience=now.experience)
    return revised(now, clicks, replace(state, step=now.state.step), now.experience, plan)


@dataclass(frozen=True, eq=False)
class _Settled:
    """An image's answer when it was last settled, and what its clicks alone amount to."""

    answer: Watched
    alone: StreamState


class Settler:
    """Settles watched images, and remembers those that have not changed since.

    Attributes
    ----------
    seconds : float
        That it took the last time.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._ended = 0.0
        self._settled: dict[int, _Settled] = {}

    def is_due(self, watched: Mapping[int, Watched], given: Mapping[int, Waiting], plan: WatchPlan) -> bool:
        """Tell whether an image changed since; not sooner after the last time than that took."""
        if time.monotonic() - self._ended < self.seconds:
            return False
        return self.is_needed(watched, given, plan)

    def is_needed(
        self, watched: Mapping[int, Watched], given: Mapping[int, Waiting], plan: WatchPlan
    ) -> bool:
        """Tell whether an image that is followed up changed since, came or went."""
        if not can_settle(plan.stream):
            return False
        whole = _whole(watched, given)
        return whole.keys() != self._settled.keys() or any(
            one is not self._settled[image].answer for image, one in whole.items()
        )

    def settle(
        self,
        watched: Mapping[int, Watched],
        given: Mapping[int, Waiting],
        plan: WatchPlan,
        watch: Watch = silent,
    ) -> dict[int, Watched]:
        """Settle the images that are followed up.

        Parameters
        ----------
        watched : mapping of image to Watched
        given : mapping of image to Waiting
        plan : WatchPlan
        watch : Watch

        Returns
        -------
        mapping of image to Watched
            The new answers, of those that changed.
        """
        started = time.monotonic()
        whole = _whole(watched, given)
        clicks: dict[int, Clicks] = {}
        alone: dict[int, StreamState] = {}
        for done, (image, one) in enumerate(whole.items()):
            step = part(watch, _ALONE * done / len(whole), _ALONE * (done + 1) / len(whole))
            clicks[image] = given[image].clicks(len(given[image].arrivals))
            before = self._settled.get(image)
            if before is not None and before.answer is one:
                alone[image] = before.alone
            else:
                alone[image] = afresh(clicks[image], plan.stream, one.state, step)
        if not whole:
            return {}
        states = settle(
            list(clicks.values()), list(alone.values()), plan.stream, part(watch, _ALONE, _ALONE + 0.2)
        )
        experiences = experiences_of(
            [state.fusion for state in states],
            [one.annotators for one in clicks.values()],
            part(watch, _ALONE + 0.2, _ALONE + 0.3),
            weights=[one.weights for one in clicks.values()],
        )
        answers: dict[int, Watched] = {}
        for done, (image, state) in enumerate(zip(whole, states, strict=True)):
            step = part(watch, 0.9 + 0.1 * done / len(whole), 0.9 + 0.1 * (done + 1) / len(whole))
            if not _agree(self._settled.get(image), whole[image], state.fusion):
                answers[image] = revised(whole[image], clicks[image], state, experiences[done], plan, step)
        self._settled = {
            image: _Settled(answers.get(image, one), alone[image]) for image, one in whole.items()
        }
        self._ended = time.monotonic()
        self.seconds = self._ended - started
        return answers

    def with_halves(
        self, watched: Mapping[int, Watched], given: Mapping[int, Waiting], plan: WatchPlan
    ) -> dict[int, Fusion]:
        """Give the answers of the images that are settled, with what halves of them would detect."""
        images = [image for image in watched if image in self._settled]
        answers = with_halves(
            [given[image].clicks(len(given[image].arrivals)) for image in images],
            [self._settled[image].alone.fusion for image in images],
            [watched[image].fusion for image in images],
            plan.stream.fusion,
        )
        return dict(zip(images, answers, strict=True))


def _agree(before: _Settled | None, now: Watched, fusion: Fusion) -> bool:
    """Tell whether an image that was settled before comes to the same."""
    if before is None or before.answer is not now:
        return False
    old, new = now.fusion.detection, fusion.detection
    return (
        old.posterior.shape == new.posterior.shape
        and np.array_equal(old.detected, new.detected)
        and bool((abs(old.posterior - new.posterior) < _SAME).all())
    )


def _whole(watched: Mapping[int, Watched], given: Mapping[int, Waiting]) -> dict[int, Watched]:
    return {image: one for image, one in watched.items() if image in given and not given[image].has_more(one)}
