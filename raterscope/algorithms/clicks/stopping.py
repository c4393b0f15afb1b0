"""Stop rule and active learning: decisions on an image that further annotators would change.

The OEM-DEM paper stops when the decisions have not changed for several steps (section 6.4). On an image with
many structures, a decision changes now and then, and this rule is hardly ever met. Here the number of
decisions that k more annotators would change is predicted, with an interval, see
`raterscope.algorithms.clicks._prospects` and `raterscope.algorithms.clicks._predictive`. An image is settled
when this number is a small share of the decisions, and the last annotators changed no larger share.

Active learning ranks images and annotators by the wrong decisions that new clicks are expected to correct. A
decision is wrong if a structure is not detected, or if a detection is not a structure. An annotator corrects
uncertain decisions, and finds missed structures. Stray clicks cause further wrong detections. All three are
predicted from the annotator's rates on other images and from the posteriors on this one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, Self

import numpy as np

from raterscope.algorithms.clicks._predictive import draw_changes
from raterscope.algorithms.clicks._prospects import (
    Changes,
    FindingChances,
    ImageModel,
    Newcomers,
    finding_chances,
    image_model,
    mark_rates,
    predict_changes,
    predict_votes,
)
from raterscope.algorithms.clicks.counting import expected_count
from raterscope.algorithms.clicks.data import BoolArray, Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.dem import DEMSettings, RecursiveSettings, problem_of
from raterscope.algorithms.clicks.image_priors import Experience, advice_for
from raterscope.algorithms.clicks.result import HALF_WIDTH, Detection, Fusion, Votes, level_error, shifted
from raterscope.algorithms.clicks.voting import cluster_scores, stray_chance, viewed_clusters
from raterscope.algorithms.evaluation import match
from raterscope.algorithms.progress import Watch, silent
from raterscope.algorithms.settings import Settings, choice, integer, number


@dataclass(frozen=True, eq=False)
class StreamHistory:
    """History of a stream on one image, with S steps."""

    # annotators, clicks: (S,): numbers after each step
    annotators: IntArray
    clicks: IntArray
    detections: IntArray  # (S,): after each step
    changed: IntArray  # (S,): decisions that the step changed
    expected: FloatArray  # (S,): decisions expected to change with the further annotators of the stop rule
    chance: FloatArray  # (S,): probability that any decision changes
    # sensitivity, precision: (S, 3): rates of the detections: estimate, low, high
    sensitivity: FloatArray
    precision: FloatArray
    firm: BoolArray  # (S,): whether the stop rule needs no more annotators
    refreshed: BoolArray  # (S,): whether the step clustered all clicks again
    # (S,): expected changes by new detections. 0 in histories of earlier versions
    coming: FloatArray = field(default_factory=lambda: np.empty(0))
    # (S, 2): 95 % interval of the number of decisions that change. NaN in histories of earlier versions.
    interval: FloatArray = field(default_factory=lambda: np.empty((0, 2)))

    def __post_init__(self) -> None:
        """Fill in values that earlier versions did not store."""
        older = len(self.annotators) - len(self.coming)
        if older > 0:
            object.__setattr__(self, "coming", np.append(np.zeros(older), self.coming))
        older = len(self.annotators) - len(self.interval)
        if older > 0:
            object.__setattr__(self, "interval", np.vstack([np.full((older, 2), np.nan), self.interval]))

    @classmethod
    def none(cls) -> Self:
        """Return the history before the first step."""
        integers, real = np.empty(0, dtype=np.int64), np.empty(0)
        three, truth = np.empty((0, 3)), np.empty(0, dtype=bool)
        return cls(integers, integers, integers, integers, real, real, three, three, truth, truth)

    @property
    def share(self) -> FloatArray:
        """Expected changes over present and expected detections, (S,), see `ExpectedChanges`."""
        share: FloatArray = self.expected / np.maximum(self.detections + self.coming, 1.0)
        return share

    def __len__(self) -> int:
        return len(self.annotators)

    def until(self, end: int) -> Self:
        """Return the steps before `end`."""
        return type(self)(**{field.name: getattr(self, field.name)[:end] for field in fields(self)})

    def then(self, **step: Any) -> Self:
        """Add a step with a value for every attribute; `coming` and `interval` are optional."""
        joined = {}
        for item in fields(self):
            before = getattr(self, item.name)
            optional = {"coming": 0.0, "interval": np.full(2, np.nan)}
            new = np.asarray({**optional, **step}[item.name], dtype=before.dtype)[None]
            joined[item.name] = np.concatenate([before, new])
        return type(self)(**joined)


EDGE = 1e-9
"""Minimum sensitivity."""

MISSED_ERROR = 0.5
"""Relative standard deviation of the number of missed structures, beyond its variance by chance: the found
structures may not represent them.
"""

SAME = 2.0
"""Maximum distance, in click scatters, of the same detection in two fusions."""

RULES = {
    "share": "few decisions would still change",
    "chance": "hardly any decision would still change",
    "unchanged": "no decision changed in the last batches",
}


class DetectionPlan(Protocol):
    """Protocol of plans that have a detector."""

    @property
    def detection(self) -> Settings:
        """Settings of the detector."""
        ...


@dataclass(frozen=True)
class StoppingSettings(Settings):
    """Settings of `predict_outlook` and `is_settled`: when an image needs no further annotators."""

    rule: str = choice(
        "share", "Stop rule", "The share of decisions that more annotators would change, and that the last "
        "annotators changed, suits all images; the chance of any change suits images with few structures; "
        "the paper's rule waits until no decision changes.", RULES,
    )  # fmt: skip
    limit: float = number(
        0.02, "Limit", "Limit of the share of decisions that would change, or of the chance that any would.",
        minimum=0.0, maximum=1.0,
    )  # fmt: skip
    more: int = integer(
        3,
        "Annotators ahead",
        "Changes are predicted for this many further annotators.",
        minimum=1,
        maximum=100,
    )
    unchanged: int = integer(3, "Batches without change", "For the paper's rule.", minimum=1, maximum=1000)


@dataclass(frozen=True, eq=False)
class ExpectedChanges:
    """Expected changes by k more annotators on an image of M clusters.

    A decision changes when a detection appears or vanishes.
    """

    more: int  # k
    detections: int  # now
    chance: FloatArray  # (M,): probability that the cluster's decision changes or the cluster vanishes
    appearing: float  # expected number of detections where there is no cluster now
    fresh: float  # probability that any such detection appears
    expected: float  # expected number of decisions that change
    any: float  # probability that any decision changes
    missed: float  # expected number of structures without a cluster
    # sensitivity, precision: (3,): rates of the present detections: estimate and 95 % interval. Sensitivity
    # is relative to the structures that similar annotators could find. NaN without a detection.
    sensitivity: FloatArray
    precision: FloatArray
    coming: float = 0.0  # expected changes that are new detections. 0 in results of earlier versions
    # (2,): 95 % interval of the number of decisions that change. NaN in results of earlier versions.
    interval: FloatArray = field(default_factory=lambda: np.full(2, np.nan))
    # False if each annotator clicked once, on different spots: a missing mark then carries no information
    reliable: bool = True

    @property
    def share(self) -> float:
        """Expected changes over present and expected detections.

        At most 1. At least one detection is counted.
        """
        return self.expected / max(self.detections + self.coming, 1.0)


def predict_outlook(
    clicks: Clicks,
    fusion: Fusion,
    plan: DetectionPlan,
    settings: StoppingSettings | None = None,
    watch: Watch = silent,
    *,
    correct: Callable[[float], float] | None = None,
) -> ExpectedChanges:
    """Predict the changes that more annotators would make on an image.

    Newcomers resemble the crowd; structures and artefacts follow the vote model. The parameters of the model
    are drawn from their posterior, and so are the newcomers' votes, see `_predictive`. The draws are the same
    each time. Other images count through the reported posteriors, and not as a prior, which would treat their
    shares of structures and rates of annotators as certain on this image.

    `clicks`: N clicks of R annotators.
    `plan`: plan of the fusion.
    `correct`: returns the changes beyond the prediction, from its probability of any change; see `Replay`.
    """
    settings = StoppingSettings() if settings is None else settings
    watch(0.0, "looking ahead")
    crowd, threshold = image_model_of(clicks, fusion, plan.detection), threshold_of(plan.detection)
    chances = finding_chances(crowd, fusion, settings.more)
    prospect = predict_changes(crowd, chances, draw_newcomers(crowd, settings.more), threshold)
    watch(0.4, "looking ahead")
    drawn = draw_changes(crowd, fusion, chances, prospect, threshold)
    watch(0.9, "looking ahead")
    detected = fusion.detection.detected
    chance, appearing = drawn.chance.mean(axis=0), drawn.appearing
    additional = 0.0 if correct is None else correct(drawn.any)
    sensitivity, precision = _accuracy(crowd, fusion, prospect)
    watch(1.0, "looked ahead")
    return ExpectedChanges(
        more=settings.more,
        detections=int(detected.sum()),
        chance=chance,
        appearing=appearing,
        fresh=drawn.fresh,
        expected=float(chance.sum()) + appearing + drawn.moved + additional,
        any=1 - (1 - drawn.any) * float(np.exp(-additional)),
        missed=prospect.missed,
        sensitivity=sensitivity,
        precision=precision,
        coming=float(chance[~detected].sum()) + appearing,
        interval=drawn.interval(additional),
        reliable=not _is_one_click_each(clicks, fusion),
    )


def _is_one_click_each(clicks: Clicks, fusion: Fusion) -> bool:
    """Return whether each annotator clicked once, and no spot has the clicks of two thirds of them."""
    one_each = bool((clicks.merged()[0].counts() == 1).all())
    return one_each and int(fusion.votes.max(initial=0)) < len(clicks.annotators) * 2 / 3


def is_settled(outlook: ExpectedChanges, history: StreamHistory, settings: StoppingSettings) -> bool:
    """Return whether an image's decisions are settled: no more annotators are needed.

    The expected changes are usually underestimated at the first step at which they are few. The rule of the
    share therefore also limits the decisions changed by the last annotators: as many annotators as the
    prediction is for, if the history is long enough.

    `outlook`: changes expected with the same settings. `history`: all steps so far; the paper's rule needs a
    minimum of steps. Unreliable expectations settle no image.
    """
    if settings.rule == "unchanged":
        last = history.changed[-settings.unchanged :]
        return len(last) == settings.unchanged and not last.any()
    if not outlook.reliable:
        return False
    if settings.rule == "chance":
        return outlook.any <= settings.limit
    late = count_recent_changes(history, settings.more) / max(outlook.detections, 1)
    return max(outlook.share, late) <= settings.limit


def count_recent_changes(history: StreamHistory, annotators: int, steps: int | None = None) -> int:
    """Count the decisions that the last annotators before a step changed; the first step does not count.

    `annotators`: number of last annotators; a step that includes an earlier annotator does not count.
    `steps`: the step, from 1; by default the last one.
    """
    counts, changed = history.annotators[:steps], history.changed[:steps]
    if len(counts) < 2:
        return 0
    return int(changed[1:][counts[:-1] >= counts[-1] - annotators].sum())


def count_changes(before: Fusion, after: Fusion) -> int:
    """Count the changed decisions: detections that appeared and detections that vanished.

    A detection is the same within two click scatters, one to one.

    `before`, `after`: fusions of one image.
    """
    old, new = (fusion.clustering.mean[fusion.detection.detected] for fusion in (before, after))
    reach = SAME * _scatter(before if len(old) else after)
    same = len(match(old, new, reach)) if reach > 0 else 0
    return len(new) + len(old) - 2 * same


def _scatter(fusion: Fusion) -> float:
    """Return the click scatter; for clusterings without one, the median size of a cluster."""
    scatter, covariance = fusion.clustering.scatter, fusion.clustering.covariance
    if np.isfinite(scatter) or not len(covariance):
        return float(np.nan_to_num(scatter))
    return float(np.sqrt(np.median(np.trace(covariance, axis1=1, axis2=2)) / 2))


def _accuracy(crowd: ImageModel, fusion: Fusion, prospect: Changes) -> tuple[FloatArray, FloatArray]:
    """Estimate sensitivity and precision with 95 % intervals.

    Given the level of the run, the sensitivity has a Beta distribution with the predicted moments. Its half
    widths and those due to the level are added in quadrature. Missed and false detections are whole numbers:
    the intervals are rounded outwards.
    """
    detected, known = fusion.detection.detected, crowd.problem.known
    present = np.where(known, crowd.problem.truth, crowd.posterior)
    doubt = present * (1 - present)
    hits, missing = float(present[detected].sum()), float(present[~detected].sum()) + prospect.missed
    number = int(detected.sum())
    spread = float(doubt[~detected].sum()) + prospect.variance + (MISSED_ERROR * prospect.missed) ** 2
    total = hits + missing
    sensitivity = _beta(
        hits, missing, (hits**2 * spread + missing**2 * doubt[detected].sum()) / max(total, 1e-9) ** 4
    )
    away = sensitivity[1:] - sensitivity[0]
    levels = _sensitivity_at_levels(fusion.detection, prospect.missed) - sensitivity[0]
    sensitivity[1:] = np.clip(sensitivity[0] + [-1, 1] * np.hypot(away, levels), EDGE, 1)
    missed = hits / np.maximum(sensitivity[1:], 1e-9) - hits
    missed[:] = np.ceil(missed[0]), np.floor(missed[1])
    sensitivity[1:] = hits / np.maximum(hits + missed, 1e-9)
    return sensitivity, _precision(crowd, fusion.detection, hits, number)


def _sensitivity_at_levels(detection: Detection, missed: float) -> FloatArray:
    """Return the lowest and highest sensitivity at the ends of the 95 % interval of the run's level, (2,)."""
    low, high, detected = detection.posterior_low, detection.posterior_high, detection.detected
    if len(low) != len(detected):
        low = high = detection.posterior
    ends = detection.level_error * HALF_WIDTH * np.array([-1.0, 0.0, 1.0])
    present = shifted(detection.posterior, low, high, ends)
    hits = present[detected].sum(axis=0)
    share = hits / np.maximum(hits + present[~detected].sum(axis=0) + missed, EDGE)
    return np.array([share.min(), share.max()])


def _precision(crowd: ImageModel, detection: Detection, hits: float, number: int) -> FloatArray:
    """Estimate the share of structures among the detections, (3,), by the method of `expected_count`."""
    if not number:
        return np.full(3, np.nan)
    low, high = detection.posterior_low, detection.posterior_high
    if len(low) == len(detection.posterior):
        posterior, low, high = (values[detection.detected] for values in (detection.posterior, low, high))
        _, least, most = expected_count(posterior, low, high, detection.level_error)
    else:  # an image that was not rated
        free, posterior = detection.detected & ~crowd.problem.known, crowd.posterior
        error = level_error(crowd.structure_share.decisions) * crowd.structure_share.deviation(
            crowd.share[free]
        )
        variance = float(crowd.looks.present[free] @ error) ** 2
        variance += float((posterior[free] * (1 - posterior[free])).sum())
        spread = HALF_WIDTH * np.sqrt(variance)
        least, most = max(np.floor(hits - spread), 0.0), min(np.ceil(hits + spread), float(number))
    return np.array([hits, min(least, hits), max(most, hits)]) / number


def _beta(part: float, complement: float, variance: float) -> FloatArray:
    """Return part / (part + rest) with a 95 % Beta interval of that mean and variance."""
    from scipy.special import betaincinv

    total = part + complement
    if part <= 0:
        return np.full(3, np.nan)
    mean = min(max(part / total, 1e-6), 1 - 1e-6)
    weight = max(mean * (1 - mean) / max(variance, 1e-12) - 1, 0.1)
    low, high = (float(betaincinv(mean * weight, (1 - mean) * weight, level)) for level in (0.025, 0.975))
    return np.array([part / total, min(low, part / total), max(high, part / total)])


def image_model_of(clicks: Clicks, fusion: Fusion, detection: Settings) -> ImageModel:
    """Return the vote model of an image, or the default model if the detector has none."""
    judged = isinstance(detection, (DEMSettings, RecursiveSettings))
    settings = detection if isinstance(detection, DEMSettings) else DEMSettings()
    return image_model(problem_of(votes_on(clicks, fusion), settings), fusion, reported=judged)


def votes_on(clicks: Clicks, fusion: Fusion) -> Votes:
    """Return the votes behind a fusion of clicks."""
    # the merged marks are in the order of their first clicks
    marks = clicks.select(np.flatnonzero(np.diff(np.maximum.accumulate(fusion.mark), prepend=-1)))
    clustering = fusion.clustering
    stray, viewed = stray_chance(marks, clustering), viewed_clusters(marks, clustering, fusion.verdict)
    return Votes(
        fusion.marked, clustering.weight, fusion.verdict, *stray, clicks.weights, viewed, clicks.control,
        cluster_scores(marks, clustering),
    )  # fmt: skip


def draw_newcomers(crowd: ImageModel, number: int) -> Newcomers:
    """Return newcomers that resemble the crowd: each annotator is a possible newcomer, by weight."""
    if not len(crowd.rate):
        return Newcomers(np.full((number, len(crowd.state.share)), 0.5), np.zeros(number))
    worth = crowd.problem.worth
    rate, stray = np.average(crowd.rate, axis=0, weights=worth), np.average(crowd.state.chance, weights=worth)
    return Newcomers(np.tile(rate, (number, 1)), np.full(number, stray))


def threshold_of(detection: Settings) -> float:
    """Return the posterior threshold of detection."""
    return detection.detection_threshold if isinstance(detection, DEMSettings) else 0.5


FAIR = 20.0
"""Weight of the prior of an annotator's stray clicks, in marks."""


DOUBT = 5.0
"""Weight of the prior that treats an annotator as average, in votes."""


@dataclass(frozen=True, eq=False)
class RankedAnnotators:
    """C annotators who may mark an image next, the most informative first."""

    annotators: tuple[str, ...]  # (C,)
    gain: FloatArray  # (C,): wrong decisions that the clicks of each are expected to correct
    sensitivity: FloatArray  # (C,): expected on this image
    reliability: FloatArray  # (C,): expected share of marks that are part of a cluster
    images: int  # number of images behind the experience
    gain_of_new: float  # the same for a new annotator who resembles those of this image

    def __len__(self) -> int:
        return len(self.annotators)

    def why(self, row: int) -> str:
        """State the expected contribution of an annotator in a sentence."""
        gain = self.gain[row]
        decisions = "decision" if f"{gain:.1f}" == "1.0" else "decisions"
        return (
            f"Marks {100 * self.sensitivity[row]:.0f} % of the structures; "
            f"{100 * self.reliability[row]:.0f} % of the marks agree with others. Expected to correct "
            f"{gain:.1f} {decisions}, a new annotator {self.gain_of_new:.1f}."
        )


@dataclass(frozen=True, eq=False)
class RankedImages:
    """M images, first those where another annotator would correct most."""

    image: IntArray  # (M,)
    gain: FloatArray  # (M,): wrong decisions that another annotator is expected to correct


def rank_annotators(
    clicks: Clicks,
    fusion: Fusion,
    plan: DetectionPlan,
    experience: Experience,
    annotators: Collection[str] | None = None,
    watch: Watch = silent,
) -> RankedAnnotators:
    """Rank the annotators who may mark an image next.

    Experience gives an annotator's relative ability on other images; the annotators who marked this image
    show how easy it is. Annotators with little experience are treated as average.

    `clicks`: clicks on the image so far; their annotators are excluded. `experience`: experience on other
    images. `annotators`: candidates; by default all annotators of `experience`.
    """
    visited = frozenset(clicks.annotators)
    free = [
        name
        for name in experience.annotators
        if name not in visited and (annotators is None or name in annotators)
    ]
    crowd, threshold = image_model_of(clicks, fusion, plan.detection), threshold_of(plan.detection)
    chances = finding_chances(crowd, fusion, 1)
    candidates = _transfer(crowd, clicks.annotators, free, experience)
    gain = np.zeros(len(free))
    for row in range(len(free)):
        candidate = Newcomers(candidates.rate[row : row + 1], candidates.stray[row : row + 1])
        gain[row] = _gain(crowd, chances, candidate, threshold)
        watch((row + 1) / len(free), "ranking annotators")
    order = np.argsort(-gain, kind="stable")
    ranked = tuple(free[index] for index in order)
    return RankedAnnotators(
        annotators=ranked,
        gain=gain[order],
        sensitivity=candidates.rate[order] @ crowd.state.share,
        reliability=_reliability(ranked, experience),
        images=experience.images,
        gain_of_new=_gain(crowd, chances, draw_newcomers(crowd, 1), threshold),
    )


def rank_images(
    clicks: Sequence[Clicks], fusions: Sequence[Fusion], plan: DetectionPlan, watch: Watch = silent
) -> RankedImages:
    """Rank images by the wrong decisions that one more annotator would correct.

    `fusions`: fusion of each image.
    """
    gain = np.zeros(len(fusions))
    threshold = threshold_of(plan.detection)
    for row, (own, fusion) in enumerate(zip(clicks, fusions, strict=True)):
        crowd = image_model_of(own, fusion, plan.detection)
        gain[row] = _gain(crowd, finding_chances(crowd, fusion, 1), draw_newcomers(crowd, 1), threshold)
        watch((row + 1) / len(fusions), "ranking images")
    order = np.argsort(-gain, kind="stable").astype(np.int64)
    return RankedImages(order, gain[order])


def _transfer(
    crowd: ImageModel, present: Sequence[str], names: Sequence[str], experience: Experience
) -> Newcomers:
    """Transfer annotators' experience on other images to this one."""
    prior = crowd.problem.prior
    own = advice_for(prior, present, experience).cross_image
    elsewhere = advice_for(prior, names, experience).cross_image
    worth = crowd.problem.worth
    trust = worth * own.votes * own.seen / (own.votes + own.seen)
    ease = float(trust @ (crowd.state.odds - own.odds)) / (float(trust.sum()) + 1)
    usual = float(np.average(crowd.state.odds, weights=worth)) if len(present) else ease
    trust = elsewhere.votes * elsewhere.seen / (elsewhere.votes + elsewhere.seen)
    odds = (trust * (elsewhere.odds + ease) + DOUBT * usual) / (trust + DOUBT)
    stray = draw_newcomers(crowd, 1).stray * (1 - _reliability(names, experience)) / _usual_share(experience)
    return Newcomers(mark_rates(odds, prior.shift), np.minimum(stray, 0.5))


def _reliability(names: Sequence[str], experience: Experience) -> FloatArray:
    """Return the expected share of an annotator's marks in clusters."""
    rows = experience.rows(names)
    inliers, outliers = experience.inliers[rows], experience.outliers[rows]
    return np.asarray(1 - (outliers + FAIR * _usual_share(experience)) / (inliers + outliers + FAIR))


def _usual_share(experience: Experience) -> float:
    """Return the share of all marks outside of clusters, with half a mark added to both kinds."""
    return float(
        (experience.outliers.sum() + 0.5) / (experience.inliers.sum() + experience.outliers.sum() + 1)
    )


def _risk(crowd: ImageModel, posterior: FloatArray) -> FloatArray:
    """Return the chance that each cluster's decision is wrong; 0 where the truth is known."""
    known = crowd.problem.known.reshape(-1, *[1] * (posterior.ndim - 1))
    return np.where(known, 0.0, np.minimum(posterior, 1 - posterior))


def _gain(crowd: ImageModel, chances: FindingChances, newcomer: Newcomers, threshold: float) -> float:
    """Return the expected number of wrong decisions that a newcomer corrects, minus those added."""
    chance, posterior = predict_votes(crowd, newcomer)
    before = _risk(crowd, crowd.posterior).sum()
    after = (chance * _risk(crowd, posterior)).sum()
    prospect = predict_changes(crowd, chances, newcomer, threshold)
    return float(before - after + prospect.structures - prospect.meetings)
