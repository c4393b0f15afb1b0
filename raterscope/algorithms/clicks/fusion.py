"""Fusion of the clicks on an image into detections and rates of the annotators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks._vote_model import Problem
from raterscope.algorithms.clicks.annotator_rates import Tally, count_clicks, estimate_rates
from raterscope.algorithms.clicks.catalogue import CLUSTERERS, DETECTORS
from raterscope.algorithms.clicks.data import BoolArray, Clicks, FloatArray, IntArray
from raterscope.algorithms.clicks.dem import (
    DEMSettings,
    detect_each,
    detect_structures,
    posterior_by_votes,
    problem_of,
)
from raterscope.algorithms.clicks.image_priors import (
    JUDGED_AT_ONCE,
    Evidence,
    Experience,
    apply_experience,
    can_share,
    judge_each,
    weigh_together,
)
from raterscope.algorithms.clicks.oem import OEMSettings, oem
from raterscope.algorithms.clicks.result import (
    AnnotatorRates,
    Clustering,
    Detection,
    Fusion,
    Votes,
)
from raterscope.algorithms.clicks.voting import (
    AssignmentSettings,
    apply_known_spots,
    assign,
    cluster_scores,
    stray_chance,
    viewed_clusters,
    votes_of,
)
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import Algorithm, Settings, SettingsError, settings_from_texts


@dataclass(frozen=True)
class FusionPlan:
    """Algorithms that fuse the clicks of an image, with their settings.

    Attributes
    ----------
    algorithm : str
        Name of a clusterer: a key of `CLUSTERERS`.
    detector : str
        Name of a detector: a key of `DETECTORS`.
    clustering, detection : Settings
        Settings of the two algorithms.
    assignment : AssignmentSettings
        Settings of the assignment of clicks to clusters.
    """

    algorithm: str = "oem"
    detector: str = "dem"
    clustering: Settings = field(default_factory=OEMSettings)
    detection: Settings = field(default_factory=DEMSettings)
    assignment: AssignmentSettings = field(default_factory=AssignmentSettings)

    def __post_init__(self) -> None:
        for algorithm, settings in (
            (_named(CLUSTERERS, self.algorithm), self.clustering),
            (_named(DETECTORS, self.detector), self.detection),
        ):
            if type(settings) is not algorithm.settings:
                raise SettingsError(
                    f"{algorithm.title} takes {algorithm.settings.__name__}, not {type(settings).__name__}."
                )

    @classmethod
    def make(cls, algorithm: str | None = None, texts: Mapping[str, str] | None = None) -> Self:
        """Make a plan from the name of a clusterer and `field=value` pairs of a command line.

        The field `detector` names the detector.

        Raises
        ------
        SettingsError
            For an unknown algorithm or setting, or a value out of range.
        """
        algorithm = "oem" if algorithm is None else algorithm
        texts = dict(texts or {})
        detector = texts.pop("detector", "dem")
        return cls(algorithm, detector, *settings_from_texts(texts, *_kinds(algorithm, detector)))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make a plan from a dictionary of `as_dict`.

        Raises
        ------
        SettingsError
            For unknown names or values.
        """
        for name in ("algorithm", "detector"):
            if not isinstance(values.get(name), str):
                raise SettingsError(f"the plan's {name} is {values.get(name)!r}; expected a name.")
        algorithm, detector = values["algorithm"], values["detector"]
        parts = zip(_kinds(algorithm, detector), ("clustering", "detection", "assignment"), strict=True)
        stored: list[Any] = [kind.from_dict(values.get(name, {})) for kind, name in parts]
        return cls(algorithm, detector, *stored)

    def as_dict(self) -> dict[str, Any]:
        """Return names and values, ready for JSON."""
        return {
            "algorithm": self.algorithm,
            "detector": self.detector,
            "clustering": self.clustering.as_dict(),
            "detection": self.detection.as_dict(),
            "assignment": self.assignment.as_dict(),
        }

    def in_words(self) -> str:
        """Describe the plan, for the methods section of a report."""
        clusterer, detector = CLUSTERERS[self.algorithm], DETECTORS[self.detector]
        return (
            f"Clicks were clustered by {clusterer.title} ({clusterer.source}; "
            f"{self.clustering.methods_text()}), assigned to clusters with "
            f"{self.assignment.methods_text()}, "
            f"and structures detected by {detector.title} ({detector.source}; "
            f"{self.detection.methods_text()})."
        )


def fuse(
    clicks: Clicks,
    plan: FusionPlan | None = None,
    watch: Watch = silent,
    *,
    experience: Experience | None = None,
    reliability: Mapping[str, float] | None = None,
    rated: bool = True,
) -> Fusion:
    """Fuse the clicks of one image: cluster, assign, detect, and rate the annotators.

    Clicks of one annotator at exactly the same position are merged first. Known truths are held fixed.

    Parameters
    ----------
    clicks : Clicks
        N clicks of R annotators; N may be 0.
    plan : FusionPlan, optional
    watch : Watch
    experience : Experience, optional
        Experience with the annotators on other images, if the plan learns across images.
    reliability : mapping of annotator to float, optional
        Initial reliabilities, if the plan carries them from image to image (OEM-DEM paper, section 4); see
        `carries_reliability`.
    rated : bool
        False omits intervals and rates with a plan that learns across images: `learn_from_each_other` adds
        them.

    Returns
    -------
    Fusion

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import separated_crowd
    >>> crowd = separated_crowd(20, seed=3)
    >>> fusion = fuse(crowd.clicks)
    >>> len(fusion.clustering), int(fusion.detection.detected.sum())
    (15, 14)
    """
    plan = FusionPlan() if plan is None else plan
    clustered = _cluster(clicks, plan, reliability or {}, part(watch, 0.0, 0.9))
    rated = rated or not learns_across_images(plan)

    def detect(votes: Votes) -> Detection:
        settings = plan.detection
        if isinstance(settings, DEMSettings) and (experience is not None or not rated):
            problem = problem_of(votes, settings)
            if experience is not None and can_share(votes, settings):
                problem = apply_experience(problem, clicks.annotators, experience)
            return detect_structures(problem, votes, settings, part(watch, 0.9, 1.0), rated=rated)
        return _detect_alone(votes, plan, part(watch, 0.9, 1.0))

    return _fusion_of(clustered, detect(clustered.votes), rated=rated)


def fuse_each(clicks: Sequence[Clicks], plan: FusionPlan) -> list[Fusion]:
    """Fuse several images as `fuse` does without rating, with a plan that learns across images.

    That is faster for small images: structures are detected on all of them in one compiled loop.
    """
    assert isinstance(plan.detection, DEMSettings)
    clustered = [_cluster(own, plan, {}, silent) for own in clicks]
    detections = detect_each([own.votes for own in clustered], plan.detection)
    return [
        _fusion_of(own, detection, rated=False) for own, detection in zip(clustered, detections, strict=True)
    ]


class _Clustered(NamedTuple):
    """Clusters of an image, and the annotators who marked them."""

    marks: Clicks
    mark: IntArray  # (N,): row of every click among the marks
    clustering: Clustering
    assignment: AssignmentSettings
    votes: Votes


def _detect_alone(votes: Votes, plan: FusionPlan, watch: Watch) -> Detection:
    detection: Detection = DETECTORS[plan.detector].run(votes, plan.detection, watch=watch)
    return detection


def _cluster(clicks: Clicks, plan: FusionPlan, reliability: Mapping[str, float], watch: Watch) -> _Clustered:
    watch(0.0, "merging repeated clicks")
    marks, mark = clicks.merged()
    if carries_reliability(plan):
        assert isinstance(plan.clustering, OEMSettings)
        known = [reliability.get(name, np.nan) for name in marks.annotators]
        clustering = oem(marks, plan.clustering, watch, reliability=np.array(known, dtype=np.float64))
    else:
        clustering = CLUSTERERS[plan.algorithm].run(marks, plan.clustering, watch=watch)
    return _assigned(marks, mark, clustering, plan.assignment)


def carries_reliability(plan: FusionPlan) -> bool:
    """Return whether the reliabilities of one image start the clustering of the next."""
    return isinstance(plan.clustering, OEMSettings) and plan.clustering.carry_reliability


def conclude(
    marks: Clicks,
    mark: IntArray,
    clustering: Clustering,
    assignment: AssignmentSettings,
    detect: Callable[[Votes], Detection],
    *,
    rated: bool = True,
) -> Fusion:
    """Continue a fusion from the clusters of the merged marks: detections and rates of the annotators.

    `mark`: (N,), row of every click among the marks. `detect`: detector of the votes. `rated`: whether the
    annotators are rated.
    """
    clustered = _assigned(marks, mark, clustering, assignment)
    return _fusion_of(clustered, detect(clustered.votes), rated=rated)


def _assigned(
    marks: Clicks, mark: IntArray, clustering: Clustering, assignment: AssignmentSettings
) -> _Clustered:
    bounds = (assignment.outlier_threshold, assignment.vote_coverage)
    chosen = votes_of(marks, clustering, *bounds)
    clustered = clustering
    clustering, verdict = apply_known_spots(marks, clustered, marks.known, chosen)
    if clustering is not clustered:
        chosen = votes_of(marks, clustering, *bounds)
    votes = _votes(marks, clustering, assign(marks, clustering, chosen), verdict)
    return _Clustered(marks, mark, clustering, assignment, votes)


def _fusion_of(clustered: _Clustered, detection: Detection, *, rated: bool) -> Fusion:
    marks, mark, clustering, assignment, votes = clustered
    return Fusion(
        clustering=clustering,
        marked=votes.marked,
        detection=detection,
        verdict=votes.verdict,
        rates=estimate_rates([count_clicks(marks, clustering, votes.marked, detection, assignment)])[0]
        if rated
        else AnnotatorRates(marks.counts(), np.empty((0, 3)), np.empty((0, 3))),
        mark=mark,
        score=votes.score,
    )


def learns_across_images(plan: FusionPlan) -> bool:
    """Return whether the plan learns across images, see `learn_from_each_other`."""
    settings = plan.detection
    return isinstance(settings, DEMSettings) and settings.prior == "crowd" and settings.learn_across_images


DIFFERENCE = (
    "For images fused alone, about 1 % of the decisions differed in tests on a real crowd, 0 to 35 % in "
    "simulated crowds, and most detections where structures are few among artefacts."
)
"""Measured share of decisions that differ between an image fused alone and all images fused together."""


def isolation_notice(plan: FusionPlan, fused: int, images: int) -> str | None:
    """Return a notice if images were fused without others to learn from; None otherwise.

    `fused`, `images`: number of images used by the run, including those of earlier runs, and of images with
    clicks.
    """
    missing = images - fused
    if missing <= 0 or not learns_across_images(plan):
        return None
    others = "Another image was" if missing == 1 else f"{missing:,} other images were"
    return (
        f"{others} not fused in this run. Their votes do not count for the annotators' rates: detections "
        f"may differ from those of a fusion of all images. {DIFFERENCE}"
    )


def learn_from_each_other(
    clicks: Sequence[Clicks],
    fusions: Sequence[Fusion],
    plan: FusionPlan,
    watch: Watch = silent,
    *,
    shared: SharedVotes | None = None,
) -> list[Fusion]:
    """Detect again on every image of a run, with priors from the other images.

    The same name is the same annotator. Clusters do not change. Nothing changes with a plan that does not
    learn across images, or with fewer than two images with clusters.

    Parameters
    ----------
    clicks : sequence of Clicks
    fusions : sequence of Fusion
        Fusion of each image by `fuse`, with the same plan, rated or not.
    plan : FusionPlan
    watch : Watch
    shared : SharedVotes, optional
        Votes of these images, from `share_votes`.

    Returns
    -------
    list of Fusion
        In the order of the input; the results do not depend on the order.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import separated_crowd
    >>> clicks = [separated_crowd(20, seed=seed).clicks for seed in (3, 4)]
    >>> fusions = [fuse(each) for each in clicks]
    >>> [len(fusion.clustering) for fusion in learn_from_each_other(clicks, fusions, FusionPlan())]
    [15, 15]
    """
    if not learns_across_images(plan):
        return list(fusions)
    shared = share_votes(clicks, fusions, plan) if shared is None else shared
    evidence = shared.weigh(plan, part(watch, 0.0, 0.75))
    own = [evidence.get(image) for image in range(len(clicks))]
    return judge_images(clicks, fusions, own, plan, part(watch, 0.75, 1.0))


def judge_images(
    clicks: Sequence[Clicks],
    fusions: Sequence[Fusion],
    evidence: Sequence[Evidence | None],
    plan: FusionPlan,
    watch: Watch = silent,
    *,
    at_once: int = JUDGED_AT_ONCE,
) -> list[Fusion]:
    """Detect structures on images with evidence from all images, and rate their annotators.

    `evidence`: by `SharedVotes.weigh`; None for an image that does not learn from others. `at_once`: as for
    `judge_each`.
    """
    assert isinstance(plan.detection, DEMSettings)
    shared = {image: own for image, own in enumerate(evidence) if own is not None}
    judged = judge_each(list(shared.values()), plan.detection, part(watch, 0.0, 0.6), at_once=at_once)
    detections = dict(zip(shared, judged, strict=True))
    tallies: dict[int, Tally] = {}
    for image, (own, fusion) in enumerate(zip(clicks, fusions, strict=True)):
        watch(0.6 + 0.4 * image / len(clicks), "rating the annotators")
        if image not in detections and fusion.is_rated:
            continue
        marks = _marks_of(own, fusion)
        if image not in detections:
            votes = _votes(marks, fusion.clustering, fusion.marked, fusion.verdict)
            detections[image] = _detect_alone(votes, plan, silent)
        tallies[image] = count_clicks(
            marks, fusion.clustering, fusion.marked, detections[image], plan.assignment
        )
    joint, check = list(fusions), partial(watch, 1.0, "rating the annotators")
    for image, rates in zip(tallies, estimate_rates(list(tallies.values()), check), strict=True):
        joint[image] = replace(fusions[image], detection=detections[image], rates=rates)
    return joint


@dataclass(frozen=True, eq=False)
class SharedVotes:
    """Votes of those images of a run that can learn from each other."""

    images: list[int]  # indices of the images in the run
    votes: list[Votes]
    annotators: list[tuple[str, ...]]  # list of names: for each image, the names of its annotators
    posteriors: list[FloatArray]  # list of (M,): of each image alone, without scores
    problems: list[Problem] = field(default_factory=list)  # empty until `prepare`

    def prepare(self, plan: FusionPlan) -> None:
        """Prepare the votes once, for use by several selections of the images."""
        assert isinstance(plan.detection, DEMSettings)
        if not self.problems:
            self.problems.extend(problem_of(votes, plan.detection) for votes in self.votes)

    def only(self, images: Collection[int]) -> SharedVotes:
        """Select some images of the run."""
        rows = [row for row, image in enumerate(self.images) if image in images]
        columns = (self.images, self.votes, self.annotators, self.posteriors, self.problems)
        return SharedVotes(*([column[row] for row in rows if column] for column in columns))  # type: ignore[arg-type]

    def weigh(self, plan: FusionPlan, watch: Watch) -> dict[int, Evidence]:
        """Run EM on every image, with priors from the others; return nothing for fewer than two images."""
        assert isinstance(plan.detection, DEMSettings)
        if len(self.images) < 2:
            return {}
        evidence = weigh_together(
            self.votes, self.annotators, self.posteriors, plan.detection, watch, self.problems or None
        )
        return dict(zip(self.images, evidence, strict=True))


def share_votes(clicks: Sequence[Clicks], fusions: Sequence[Fusion], plan: FusionPlan) -> SharedVotes:
    """Gather the votes of images by a plan that learns across images.

    The posteriors follow from the votes alone, not from earlier fusions. The same clicks thus give the same
    result.
    """
    assert isinstance(plan.detection, DEMSettings)
    shared = SharedVotes([], [], [], [])
    for image, (own, fusion) in enumerate(zip(clicks, fusions, strict=True)):
        votes = _votes(_marks_of(own, fusion), fusion.clustering, fusion.marked, fusion.verdict)
        if can_share(votes, plan.detection):
            shared.images.append(image)
            shared.votes.append(votes)
            shared.annotators.append(own.annotators)
            alone = not fusion.is_rated and votes.score is None and not (votes.verdict >= 0).any()
            shared.posteriors.append(
                fusion.detection.posterior if alone else posterior_by_votes(votes, plan.detection, silent)
            )
    return shared


def _marks_of(clicks: Clicks, fusion: Fusion) -> Clicks:
    """Return the merged marks that were clustered."""
    return clicks if len(fusion.clustering.inlier) == len(clicks) else clicks.merged()[0]


def renew_known(clicks: Clicks, fusion: Fusion, plan: FusionPlan) -> Fusion:
    """Update a fusion with the currently known spots; its clusters stay, and known structures are added.

    `clicks`: the same clicks, with the currently known spots. `plan`: as before. If no known spot changed,
    `fusion` itself is returned.
    """
    marks, mark = clicks.merged()
    bounds = (plan.assignment.outlier_threshold, plan.assignment.vote_coverage)
    votes = votes_of(marks, fusion.clustering, *bounds)
    if np.array_equal(apply_known_spots(marks, fusion.clustering, marks.known, votes)[1], fusion.verdict):
        return fusion

    return conclude(
        marks, mark, fusion.clustering, plan.assignment, lambda votes: _detect_alone(votes, plan, silent)
    )


def _votes(marks: Clicks, clustering: Clustering, marked: BoolArray, verdict: NDArray[np.int8]) -> Votes:
    stray, viewed = stray_chance(marks, clustering), viewed_clusters(marks, clustering, verdict)
    score = cluster_scores(marks, clustering)
    return Votes(marked, clustering.weight, verdict, *stray, marks.weights, viewed, marks.control, score)


def _named(catalogue: Mapping[str, Algorithm], name: str) -> Algorithm:
    if name not in catalogue:
        raise SettingsError(
            f"{name!r} is not an algorithm for clicks; expected one of {', '.join(catalogue)}."
        )
    return catalogue[name]


def _kinds(algorithm: str, detector: str) -> tuple[type[Settings], type[Settings], type[Settings]]:
    return (
        _named(CLUSTERERS, algorithm).settings,
        _named(DETECTORS, detector).settings,
        AssignmentSettings,
    )
