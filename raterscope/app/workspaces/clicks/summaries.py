"""Lines of the review queue, made from outlines of results first and then from the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from raterscope.algorithms.progress import Watch
from raterscope.app import review
from raterscope.app.disputes import DISPUTED, MATTERS
from raterscope.app.errors import counted
from raterscope.app.study import Study
from raterscope.app.study.runs import Answers
from raterscope.app.workspaces.clicks.spots import Known, Settling
from raterscope.app.workspaces.review_order import Part

__all__ = ["Summary", "read_outlines", "read_results", "summarize"]


@dataclass(frozen=True)
class Summary:
    """One image in a line of the queue.

    `doubt` is the number of wrong answers that deciding the disputed spots is expected to set right or, while
    clicks come, of answers that are expected to change yet; `at_first` and `skipped` are the disputed spots
    before any decision, and those left that the expert skipped; `matter` those left on which a decision
    matters; `control` names the mark of a control image; `alone` tells that only one annotator looked, whose
    clicks nobody can confirm.
    """

    fused: bool
    looked: bool
    detections: int
    disputed: int
    decided: int
    doubt: float
    at_first: int = 0
    skipped: int = 0
    settling: Settling | None = None
    flag: str | None = None
    matter: int = 0
    control: str = ""
    alone: bool = False

    @property
    def counts(self) -> dict[str, int]:
        """What the queue can be narrowed by."""
        return {"detections": self.detections, "disputed": self.disputed, "decided": self.decided}

    @property
    def parts(self) -> tuple[Part, ...]:
        """All disputed spots of an image are reviewed in one go."""
        opened = self.disputed - self.skipped
        return (Part("", self.at_first, opened, self.skipped, self.matter),) if self.fused else ()

    def in_words(self) -> str:
        """Say it: "27 detections, 3 disputed"; of a control image, which it is first."""
        return f"{self.control}: {self._answers()}" if self.control else self._answers()

    def _answers(self) -> str:
        if not self.fused:
            return "not fused yet" if not self.decided else f"not fused yet, {self.decided} decided"
        if not self.looked:
            return "no annotator yet" if not self.decided else f"no annotator yet, {self.decided} decided"
        words = counted(self.detections, "detection")
        if self.settling is not None:
            enough = " (enough)" if self.settling.firm else ""
            words = f"{self.detections:,} found by {self.settling.annotators:,}{enough}"
        if self.alone:
            words += ", 1 annotator"
        return f"{words}, {self.disputed} disputed" if self.disputed else words

    @property
    def done(self) -> bool:
        """True where nothing is left to settle: what fewer than two annotators looked at is unknown."""
        seen = self.fused and ((self.looked and not self.alone) or self.decided > 0)
        return seen and self.disputed == 0 and (self.settling is None or self.settling.firm)


def read_outlines(images: Sequence[int], study: Study, watch: Watch) -> dict[int, Known]:
    """Read what the run shown says of images, without its results; of runs without outlines nothing."""
    watch(0.0, "reading answers")
    shown = study.shown.answers()
    outlines = {image: shown.get(image) for image in images}
    return {
        image: Known(outline=outline)
        for image, outline in outlines.items()
        if outline is not None or image not in shown
    }


def read_results(images: Sequence[int], study: Study, watch: Watch) -> dict[int, Known]:
    """Read for the queue what the run shown says of images, and whom it heard."""
    results: dict[int, Known] = {}
    for done, image in enumerate(images):
        watch(done / len(images), "reading results")
        shown = study.shown.result(image)
        if shown is None:
            results[image] = Known()
        else:
            run, fusion = shown
            clicks = study.clicks(image, run)
            results[image] = Known(fusion, clicks.annotators, run=run.id, weights=clicks.weights)
    return results


def summarize(image: int, known: Known | None, state: review.ReviewState) -> Summary:
    """Say an image's line of the queue, as `spots_of` would count."""
    known = known or Known()
    answers, flag = known.answers, state.flag(image)
    counts = _count(answers, state.spots(image))
    return Summary(
        fused=answers is not None,
        looked=answers is not None and answers.looked > 0,
        detections=counts.detections,
        disputed=counts.disputed,
        decided=counts.decided,
        doubt=counts.doubt if known.settling is None else known.settling.expected,
        at_first=counts.at_first,
        skipped=counts.skipped,
        settling=known.settling,
        flag=None if flag is None else flag.reason,
        matter=counts.matter,
        control=control_in_words(image, state),
        alone=answers is not None and answers.looked == 1,
    )


def control_in_words(image: int, state: review.ReviewState) -> str:
    """Name an image's control mark, and say where an accepted spot contradicts it."""
    mark = state.control_mark(image)
    if mark is None:
        return ""
    return mark.in_words() if state.control(image) is not None else f"{mark.in_words()}, contradicted"


class _Counts(NamedTuple):
    detections: int
    disputed: int
    decided: int
    doubt: float
    at_first: int = 0
    skipped: int = 0
    matter: int = 0


def _count(answers: Answers | None, decided: Sequence[review.Spot]) -> _Counts:
    """Count what is there, what is disputed, what is decided, and add up what decisions would set right."""
    judged = [spot for spot in decided if spot.verdict != "skipped"]
    if answers is None:
        return _Counts(sum(spot.verdict != "rejected" for spot in judged), 0, len(judged), 0.0)
    posterior = answers.posterior
    disputed = (posterior > DISPUTED[0]) & (posterior < DISPUTED[1])
    at_first, skipped = int(disputed.sum()), np.zeros(len(posterior), dtype=bool)
    present = np.where(disputed, posterior >= 0.5, answers.detected)
    doubt = np.where(disputed, np.minimum(posterior, 1.0 - posterior), 0.0)
    alone = 0
    matched = review.match(decided, answers.mean, answers.covariance)
    for spot, cluster in zip(decided, matched, strict=True):
        if spot.verdict == "skipped":
            if cluster is not None:
                skipped[cluster] = True
            continue
        there = spot.verdict != "rejected"
        if cluster is None:
            alone += there
        else:
            present[cluster], disputed[cluster], doubt[cluster] = there, False, 0.0
    passed_over = int((disputed & skipped).sum())
    matter = int((doubt >= MATTERS).sum())
    detections = int(present.sum()) + alone
    return _Counts(
        detections, int(disputed.sum()), len(judged), float(doubt.sum()), at_first, passed_over, matter
    )
