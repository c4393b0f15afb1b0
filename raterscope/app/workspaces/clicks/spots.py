"""Spots of one image (clusters of a fusion with the expert's decisions), and its line in the queue."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.clicks.robustness import depends_on_grouping
from raterscope.algorithms.progress import Watch
from raterscope.app import review
from raterscope.app.assessment import DISPUTED, MATTERS
from raterscope.app.errors import plain
from raterscope.app.study import Study
from raterscope.app.study.runs import Answers
from raterscope.app.workspaces.review_order import Part
from raterscope.text import counted, figure, percent

CONTESTED = 0.5
"""Doubt of a spot on which two experts decided differently."""

State = Literal["detected", "rejected", "disputed", "accepted", "turned down", "added"]


class ClassShare(NamedTuple):
    """A class of a spot, its probability, and its votes; NaN and -1 if unknown."""

    name: str
    share: float
    votes: int


@dataclass(frozen=True, eq=False)
class Spot:
    """One spot of one image."""

    number: int  # its number on screen, from 1
    # x, y: position in pixels, after any move by the expert
    x: float
    y: float
    covariance: FloatArray  # (2, 2): square pixels; zero without a cluster
    # posterior, low, high: posterior probability of a structure, with its 95 % interval; NaN without a fusion
    posterior: float
    low: float
    high: float
    # votes, looked: numbers of annotators who marked the spot, and who viewed the image
    votes: int
    looked: int
    state: State  # the expert's decision, else the model's: detected, rejected, or disputed
    detected: bool  # the model's answer, even if disputed
    cluster: int | None  # its index in the fusion
    decision: int | None  # the decision in effect
    skipped: bool  # True if the expert skipped it
    contested: str = ""  # conflicting decisions of experts; empty for other spots
    classes: tuple[ClassShare, ...] = ()  # in alphabetical order; () without classes
    label: str = ""  # the class that the expert decided

    @property
    def subject(self) -> review.CommentSubject:
        """Subject of a comment or bookmark on the spot."""
        return review.CommentSubject(of="clicks", number=self.number, x=self.x, y=self.y)

    @property
    def class_name(self) -> str:
        """The decided class, else the most probable; empty without classes."""
        known = [entry for entry in self.classes if np.isfinite(entry.share)]
        return self.label or max(known, key=lambda entry: entry.share, default=ClassShare("", 0.0, 0)).name

    @property
    def class_share(self) -> float:
        """Probability of the class; 1 if it is decided, NaN without classes."""
        shares = (entry.share for entry in self.classes if entry.name == self.class_name)
        return 1.0 if self.label else next(shares, float("nan"))

    @property
    def class_in_doubt(self) -> bool:
        """True for a structure whose class is neither decided nor almost certain."""
        return self.present and bool(self.classes) and not self.class_share >= DISPUTED[1]

    @property
    def decided(self) -> bool:
        """True if the expert has decided the spot."""
        return self.state in ("accepted", "turned down", "added")

    @property
    def held(self) -> bool:
        """True if the run held the decision fixed, so that its probability says nothing of the votes."""
        return self.decided and self.posterior in (0.0, 1.0)

    @property
    def doubt(self) -> float:
        """Probability that the answer shown is wrong; 0 for a decided spot."""
        if self.contested:
            return CONTESTED
        if self.decided or not np.isfinite(self.posterior):
            return 0.0
        return min(self.posterior, 1.0 - self.posterior)

    @property
    def present(self) -> bool:
        """True if the answer is a structure."""
        return self.state in ("detected", "accepted", "added") or (self.state == "disputed" and self.detected)


@dataclass(frozen=True)
class Settling:
    """State of the stop rule for an image of a stream."""

    annotators: int  # annotators so far
    expected: float  # decisions that are expected to change with more annotators
    firm: bool  # whether the stop rule is met


class Counts(NamedTuple):
    """Numbers of detections, disputed and decided spots of an image, and of correctable errors."""

    detections: int
    disputed: int
    decided: int
    doubt: float
    at_first: int = 0
    skipped: int = 0
    matter: int = 0
    contested: int = 0


@dataclass(frozen=True, eq=False)
class ImageResult:
    """Latest result of an image in the queue: fusion, annotators, stop rule, run.

    `outline` replaces the fusion until that is read; it has the counts without decisions. `weights` are those
    of `Clicks`.
    """

    fusion: Fusion | None = None
    annotators: tuple[str, ...] = ()
    settling: Settling | None = None
    run: int | None = None
    outline: Answers | None = None
    undecided: Counts | None = None
    weights: FloatArray | None = None

    @property
    def answers(self) -> Answers | None:
        """Answers of the spots; None without a result."""
        return self.outline if self.fusion is None else Answers.of(self.fusion)


def spots_of(fusion: Fusion | None, looked: int, decided: Sequence[review.Spot]) -> tuple[Spot, ...]:
    """Join the clusters of a fusion with the expert's decisions.

    A decision belongs to the cluster nearest to its position (`review.match`). A decision without a matching
    cluster is shown separately: no decision disappears.
    """
    matched: list[int | None] = [None] * len(decided)
    spots: list[Spot] = []
    if fusion is not None:
        matched = review.match(decided, fusion.clustering.mean, fusion.clustering.covariance)
        spots += _undecided(fusion, looked)
        for spot, cluster in zip(decided, matched, strict=True):
            if cluster is not None:
                spots[cluster] = _from_cluster(fusion, cluster, spots[cluster].votes, looked, spot)
    for spot, cluster_found in zip(decided, matched, strict=True):
        if cluster_found is None and spot.verdict != "skipped":
            spots.append(_alone(spot, len(spots) + 1, looked, fusion))
    return tuple(spots)


def describe_sources(spot: Spot, fusion: Fusion | None) -> tuple[tuple[str, str], ...]:
    """Describe the expert's, the votes' and the model's answers on a spot."""
    words = {"accepted": "accepted it", "turned down": "rejected it", "added": "added it"}
    sources = [("you", words[spot.state])] if spot.decided else []
    if spot.contested:
        sources.append(("experts", f"differ: {spot.contested}"))
    if spot.cluster is not None and fusion is not None:
        share = spot.votes / max(spot.looked, 1)
        share_text = "most marked it" if share > 0.5 else "half marked it" if share == 0.5 else "most did not"
        sources.append(("votes", f"{spot.votes} of {spot.looked} ({percent(share)}): {share_text}"))
        model = _model_in_words(spot.posterior, bool(fusion.detection.detected[spot.cluster]))
        answer = f"{figure(spot.posterior, spot.low, spot.high)}: {model}"
        sources.append(("model", "your decision is held fixed" if spot.held else answer))
    return tuple(sources)


def explain_weights(spot: Spot, fusion: Fusion | None, programs: Sequence[str] = ()) -> str:
    """Explain the model's weighting of the votes: expected votes, reliability of voters, score."""
    if spot.cluster is None or fusion is None:
        if spot.state == "added":
            return "It has no cluster of clicks."
        return "The clicks no longer form a cluster here."
    parts = (
        _expected(fusion),
        _voters_in_words(spot.cluster, fusion),
        _grouping_in_words(spot.cluster, fusion),
        _score_in_words(spot.cluster, fusion, programs),
    )
    return " ".join(part for part in parts if part)


def _score_in_words(cluster: int, fusion: Fusion, programs: Sequence[str]) -> str:
    """Describe a program's score of a spot and its rank on the image, or how many programs marked it."""
    if fusion.score is None:
        return ""
    score = fusion.score[cluster]
    if programs:
        marked = int(np.nan_to_num(score))
        names = ", ".join(plain(name, 40) for name in programs)
        if len(programs) == 1:
            return f"The program {names} {'marked' if marked else 'did not mark'} it."
        return f"{marked} of {len(programs)} programs ({names}) marked it."
    if not np.isfinite(score):
        return "The program has no detection here."
    others = fusion.score[np.isfinite(fusion.score)]
    below = int((others < score).sum())
    rank = f", higher than {below:,} of the {len(others) - 1:,} others here" if len(others) > 1 else ""
    return f"The program's score is {score:.4g}{rank}."


def _classes_of(fusion: Fusion | None, cluster: int | None) -> tuple[ClassShare, ...]:
    classes = None if fusion is None else fusion.classes
    if classes is None:
        return ()
    if cluster is None:
        return tuple(ClassShare(name, float("nan"), -1) for name in classes.names)
    columns = classes.names, classes.posterior[cluster].tolist(), classes.votes[cluster].tolist()
    return tuple(map(ClassShare, *columns))


def _alone(spot: review.Spot, number: int, looked: int, fusion: Fusion | None) -> Spot:
    unknown = float("nan")
    return Spot(
        number=number, x=spot.x, y=spot.y, covariance=np.zeros((2, 2)), posterior=unknown, low=unknown,
        high=unknown, votes=0, looked=looked, state=_state(spot), detected=False, cluster=None,
        decision=spot.decision, skipped=False, classes=_classes_of(fusion, None), label=spot.label,
    )  # fmt: skip


@lru_cache(maxsize=8)
def _undecided(fusion: Fusion, looked: int) -> tuple[Spot, ...]:
    """Return the spots of a fusion without decisions, cached because each decision needs them."""
    votes = fusion.votes.tolist()
    return tuple(
        _from_cluster(fusion, cluster, votes[cluster], looked, None) for cluster in range(len(votes))
    )


def _from_cluster(fusion: Fusion, cluster: int, votes: int, looked: int, expert: review.Spot | None) -> Spot:
    posterior = float(fusion.detection.posterior[cluster])
    detected = bool(fusion.detection.detected[cluster])
    state: State = "detected" if detected else "rejected"
    if DISPUTED[0] < posterior < DISPUTED[1]:
        state = "disputed"
    x, y = (float(value) for value in fusion.clustering.mean[cluster])
    skipped, contested = expert is not None and expert.verdict == "skipped", ""
    if expert is not None and expert.contested:
        state = "disputed"
        skipped, contested = False, expert.contested
    elif expert is not None and not skipped:
        state = _state(expert)
        x, y = expert.x, expert.y
    return Spot(
        number=cluster + 1, x=x, y=y, covariance=fusion.clustering.covariance[cluster], posterior=posterior,
        low=float(fusion.detection.posterior_low[cluster]),
        high=float(fusion.detection.posterior_high[cluster]),
        votes=votes, looked=looked, state=state, detected=detected, cluster=cluster,
        decision=None if expert is None else expert.decision, skipped=skipped, contested=contested,
        classes=_classes_of(fusion, cluster), label="" if expert is None else expert.label,
    )  # fmt: skip


def _state(spot: review.Spot) -> State:
    if spot.verdict == "accepted":
        return "accepted"
    return "added" if spot.verdict == "added" else "turned down"


def _model_in_words(posterior: float, detected: bool) -> str:
    if DISPUTED[0] < posterior < DISPUTED[1]:
        return "disputed"
    if detected:
        return "real"
    return "an artefact" if posterior <= DISPUTED[0] else "below the threshold of this run"


def _expected(fusion: Fusion) -> str:
    """Describe how many of the annotators are expected to mark a structure."""
    sensitivity = fusion.rates.sensitivity[:, 0]
    known = np.isfinite(sensitivity)
    if not known.any():
        return ""
    count = len(known) if known.all() else f"{int(known.sum())} known"
    return (
        f"If this is a structure, about {float(sensitivity[known].sum()):.0f} of {count} annotators mark it."
    )


def _grouping_in_words(cluster: int, fusion: Fusion) -> str:
    """Note that the answer differs if the two halves of the images are fused separately."""
    if not depends_on_grouping(fusion)[cluster]:
        return ""
    other = "reject" if fusion.detection.detected[cluster] else "detect"
    return f"Half of the images, fused without the others, would {other} it."


def _voters_in_words(cluster: int, fusion: Fusion) -> str:
    """Compare the reliability of annotators who marked the spot with that of the other annotators."""
    reliability = fusion.rates.reliability[:, 0]
    marked = fusion.marked[:, cluster]
    yes, no = reliability[marked], reliability[~marked]
    yes, no = yes[np.isfinite(yes)], no[np.isfinite(no)]
    if not len(yes) or not len(no):
        return ""
    middle_yes, middle_no = float(np.median(yes)), float(np.median(no))
    gap = middle_yes - middle_no
    comparison = "less" if gap < -0.1 else "more" if gap > 0.1 else "about as"
    word = "as" if comparison == "about as" else "than"
    compared = f"{comparison} reliable ({middle_yes:.2f}) {word}"
    return f"Those who marked it are {compared} those who did not ({middle_no:.2f})."


@dataclass(frozen=True)
class Summary:
    """Summary of an image for its line in the queue.

    `doubt` is the number of errors that decisions on the disputed spots are expected to correct or, in a
    stream, of answers that are expected to change; `at_first` counts the disputed spots of the run and the
    decided ones, `skipped` the remaining spots that the expert skipped; `matter` the remaining spots on which
    a decision matters, `contested` those with conflicting decisions of experts; `control` names the mark of a
    control image; `alone` is True if only one annotator viewed the image.
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
    comments: int = 0
    bookmarks: int = 0
    matter: int = 0
    control: str = ""
    alone: bool = False
    contested: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """Numbers for the filters of the queue."""
        return {
            "detections": self.detections,
            "disputed": self.disputed,
            "decided": self.decided,
            "comments": self.comments,
            "bookmarks": self.bookmarks,
        }

    @property
    def amount(self) -> str:
        """The number of errors that decisions are expected to correct."""
        return f"{self.doubt:.2f} errors"

    @property
    def parts(self) -> tuple[Part, ...]:
        """The only part: all disputed spots of an image are reviewed together."""
        opened = self.disputed - self.skipped
        return (Part("", self.at_first, opened, self.skipped, self.matter),) if self.fused else ()

    def in_words(self) -> str:
        """Describe the image: "27 detections, 3 disputed"; a control mark comes first."""
        return f"{self.control}: {self._answers()}" if self.control else self._answers()

    def _answers(self) -> str:
        if not self.fused:
            return "not fused yet" if not self.decided else f"not fused yet, {self.decided} decided"
        if not self.looked:
            return "no annotator yet" if not self.decided else f"no annotator yet, {self.decided} decided"
        text = counted(self.detections, "detection")
        if self.settling is not None:
            enough = " (enough)" if self.settling.firm else ""
            text = f"{self.detections:,} found by {self.settling.annotators:,}{enough}"
        if self.alone:
            text += ", 1 annotator"
        if self.contested:
            return f"{self.contested} contested, {self.disputed} disputed"
        return f"{text}, {self.disputed} disputed" if self.disputed else text

    @property
    def done(self) -> bool:
        """True if no disputed spot remains, and a spot was decided or two annotators viewed the image."""
        seen = self.fused and ((self.looked and not self.alone) or self.decided > 0)
        return seen and self.disputed == 0 and (self.settling is None or self.settling.firm)


def read_outlines(images: Sequence[int], study: Study, watch: Watch) -> dict[int, ImageResult]:
    """Read the outlines of the runs shown, without their results; none of runs without outlines."""
    watch(0.0, "reading answers")
    shown = study.shown.answers()
    outlines = {image: outline for image in images if (outline := shown.get(image)) is not None}
    results = {image: ImageResult() for image in images if image not in shown}
    for (image, outline), counts in zip(outlines.items(), _count_undecided(outlines.values()), strict=True):
        results[image] = ImageResult(outline=outline, undecided=counts)
    return results


def read_results(images: Sequence[int], study: Study, watch: Watch) -> dict[int, ImageResult]:
    """Read the results of the runs shown, and their annotators."""
    results: dict[int, ImageResult] = {}
    for done, image in enumerate(images):
        watch(done / len(images), "reading results")
        shown = study.shown.result(image, "clicks")
        if shown is None:
            results[image] = ImageResult()
        else:
            run, fusion = shown
            clicks = study.clicks(image, run)
            results[image] = ImageResult(fusion, clicks.annotators, run=run.id, weights=clicks.weights)
    return results


def summarize(image: int, result: ImageResult | None, state: review.ReviewState) -> Summary:
    """Summarize an image for its line in the queue, with the same counts as `spots_of`."""
    result = result or ImageResult()
    answers, flag = result.answers, state.flag(image)
    spots = state.spots(image)
    counts = result.undecided if result.undecided is not None and not spots else _count(answers, spots)
    return Summary(
        fused=answers is not None,
        looked=answers is not None and answers.looked > 0,
        detections=counts.detections,
        disputed=counts.disputed,
        decided=counts.decided,
        doubt=counts.doubt if result.settling is None else result.settling.expected,
        at_first=counts.at_first,
        skipped=counts.skipped,
        settling=result.settling,
        flag=None if flag is None else flag.reason,
        matter=counts.matter,
        control=control_in_words(image, state),
        alone=answers is not None and answers.looked == 1,
        contested=counts.contested,
        comments=len(state.comments("clicks", image)),
        bookmarks=len(state.bookmarks("clicks", image)),
    )


def control_in_words(image: int, state: review.ReviewState) -> str:
    """Name an image's control mark, and whether an accepted spot contradicts it."""
    mark = state.control_mark(image)
    if mark is None:
        return ""
    return mark.in_words() if state.control(image) is not None else f"{mark.in_words()}, contradicted"


def _count(answers: Answers | None, decided: Sequence[review.Spot]) -> Counts:
    """Count detections, disputed and decided spots, and sum the errors that decisions would correct."""
    judged = [spot for spot in decided if spot.verdict != "skipped"]
    if answers is None:
        return Counts(sum(spot.verdict != "rejected" for spot in judged), 0, len(judged), 0.0)
    posterior = answers.posterior
    disputed = (posterior > DISPUTED[0]) & (posterior < DISPUTED[1])
    at_first, skipped = int(disputed.sum()), np.zeros(len(posterior), dtype=bool)
    present = answers.detected.copy()
    doubt = np.where(disputed, np.minimum(posterior, 1.0 - posterior), 0.0)
    unmatched = contested = 0
    matched = review.match(decided, answers.mean, answers.covariance)
    for spot, cluster in zip(decided, matched, strict=True):
        if spot.verdict == "skipped":
            if cluster is not None and spot.contested:
                at_first += not disputed[cluster]
                contested += 1
                disputed[cluster], doubt[cluster] = True, CONTESTED
            elif cluster is not None:
                skipped[cluster] = True
            continue
        is_present = spot.verdict != "rejected"
        at_first += cluster is None or not disputed[cluster]
        if cluster is None:
            unmatched += is_present
        else:
            present[cluster], disputed[cluster], doubt[cluster] = is_present, False, 0.0
    passed_over = int((disputed & skipped).sum())
    matter = int((doubt >= MATTERS).sum())
    detections = int(present.sum()) + unmatched
    return Counts(
        detections, int(disputed.sum()), len(judged), float(doubt.sum()), at_first, passed_over, matter,
        contested,
    )  # fmt: skip


def _count_undecided(outlines: Collection[Answers]) -> list[Counts]:
    """Count the spots of many images without decisions in one call; `_count` does so for one image."""
    ends = np.cumsum([0, *(len(outline.posterior) for outline in outlines)])
    posterior = np.concatenate([np.empty(0), *(outline.posterior for outline in outlines)])
    detected = np.concatenate([np.empty(0, dtype=bool), *(outline.detected for outline in outlines)])
    disputed = (posterior > DISPUTED[0]) & (posterior < DISPUTED[1])
    doubt = np.where(disputed, np.minimum(posterior, 1.0 - posterior), 0.0)
    columns = (detected, disputed, doubt >= MATTERS)
    detections, open_spots, matter = (
        np.diff(np.concatenate([[0], np.cumsum(column)])[ends]).tolist() for column in columns
    )
    sums = [float(doubt[first:end].sum()) for first, end in pairwise(ends.tolist())]
    return [
        Counts(found, spots, 0, errors, spots, 0, matters)
        for found, spots, errors, matters in zip(detections, open_spots, sums, matter, strict=True)
    ]
