"""Robustness of decisions to exclusions, to the grouping of images, and to runs without structures.

Images that are fused together learn from each other (see `image_priors`). With few structures among many
artefacts, and annotators who differ between images, the other images decide which clusters are structures:
half of the images may lead to other decisions. The images are therefore also fused in halves, in two ways,
and the decisions that differ are counted and listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks._observers import FEWEST
from raterscope.algorithms.clicks._structure_share import BELIEVED_VOTES, log_ratio
from raterscope.algorithms.clicks.data import BoolArray, Clicks, IntArray
from raterscope.algorithms.clicks.dem import DEMSettings
from raterscope.algorithms.clicks.fusion import FusionPlan, SharedVotes, learns_across_images, share_votes
from raterscope.algorithms.clicks.image_priors import judge_each
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.progress import Watch, silent, steps_of

NO_CLUSTER = -1


@dataclass(frozen=True, eq=False)
class ChangedDecisions:
    """Detections in only one of two fusions of an image, the most certain changes first."""

    # before, after: (K,): the cluster in the fusion of all clicks, and that in the fusion of fewer;
    # `NO_CLUSTER` if there is none. Exactly one of the two is detected
    before: IntArray
    after: IntArray

    def __len__(self) -> int:
        return len(self.before)


def changed_decisions(before: Fusion, after: Fusion, kept: NDArray[np.bool_]) -> ChangedDecisions:
    """Compare the decisions of two fusions of an image, cluster by cluster.

    `before`: fusion of N clicks. `after`: fusion of the remaining clicks, in the same order. `kept`: (N,)
    bool, True for the remaining clicks.
    """
    moved = same_clusters(before, after, kept)
    old, new = before.detection, after.detection
    removed = moved == NO_CLUSTER
    then = np.where(removed, False, new.detected[moved]) if len(new.detected) else np.zeros(len(moved), bool)
    changed = np.flatnonzero(old.detected != then)
    fresh = np.setdiff1d(np.flatnonzero(new.detected), moved)
    pairs = np.concatenate(
        [
            np.column_stack([changed, moved[changed]]),
            np.column_stack([np.full(len(fresh), NO_CLUSTER), fresh]),
        ]
    ).astype(np.int64)
    first = np.where(pairs[:, 0] == NO_CLUSTER, 0.0, _at(old.posterior, pairs[:, 0]))
    second = np.where(pairs[:, 1] == NO_CLUSTER, 0.0, _at(new.posterior, pairs[:, 1]))
    pairs = pairs[np.argsort(-np.abs(second - first), kind="stable")]
    return ChangedDecisions(before=pairs[:, 0], after=pairs[:, 1])


def same_clusters(before: Fusion, after: Fusion, kept: NDArray[np.bool_]) -> IntArray:
    """Match clusters between two fusions of an image by their common clicks.

    Clicks count by their probability of being inliers in both fusions. The matching is one to one, with the
    largest number of common clicks.

    `before`, `after`, `kept`: as in `changed_decisions`. The result, (M,), is the cluster of `after` for each
    cluster of `before`, `NO_CLUSTER` without a common click. Raises `ValueError` if the clicks are not those
    of the fusions.
    """
    from scipy.optimize import linear_sum_assignment

    if len(kept) != len(before.mark) or int(kept.sum()) != len(after.mark):
        raise ValueError(
            f"{int(kept.sum())} of {len(kept)} clicks are kept; the fusions are of "
            f"{len(before.mark)} and {len(after.mark)}"
        )
    first, other = before.mark[kept], after.mark
    was, becomes = before.clustering.nearest[first], after.clustering.nearest[other]
    inlier = before.clustering.inlier[first] * after.clustering.inlier[other]
    both = (was >= 0) & (becomes >= 0)
    common = np.zeros((len(before.clustering), len(after.clustering)))
    np.add.at(common, (was[both], becomes[both]), inlier[both])
    matched = np.full(len(common), NO_CLUSTER, dtype=np.int64)
    rows, columns = linear_sum_assignment(common, maximize=True)
    shared = common[rows, columns] > 0
    matched[rows[shared]] = columns[shared]
    return matched


def _at(values: NDArray[np.float64], positions: IntArray) -> NDArray[np.float64]:
    """Return the values at indices; at `NO_CLUSTER` they are arbitrary."""
    return values[positions] if len(values) else np.zeros(len(positions))


LEAST = 0.2
"""Minimum tempered likelihood ratio of artefacts alone for `absence_notice`."""

MIN_SPOTS = 5
"""Minimum number of spots for a contradiction of scores and votes."""

MIN_REJECTED = 5
"""Minimum number of rejections for `rejection_notice`."""

MISSED = 0.25
"""Minimum share of detected spots with a detection of a program that agrees."""

CHANCE = 0.001
"""Significance level of the test whether the order of the scores contradicts the votes."""

AGAINST = 0.25
"""Maximum probability by votes of a decision that counts as against the votes."""

MIN_AGAINST = 2
"""Minimum number of decisions against the votes for a notice."""


def decision_notice(fusions: Sequence[Fusion]) -> str | None:
    """State how many decisions contradict the votes; None if no more than the posteriors predict.

    `fusions`: fusions of all images of the run.
    """
    from scipy.special import pdtrc

    decided = 0
    against, expected = 0, 0.0
    for fusion in fusions:
        chance = fusion.detection.undecided
        known = (fusion.verdict >= 0) & ((fusion.verdict == 0) | (fusion.votes >= FEWEST))
        if chance.size:
            posterior = chance[known]
            right = np.where(fusion.verdict[known] == 1, posterior, 1 - posterior)
            least = np.minimum(posterior, 1 - posterior)
            decided += len(right)
            against += int((right <= AGAINST).sum())
            expected += float(least[least <= AGAINST].sum())
    if against < MIN_AGAINST or pdtrc(against - 1, expected) > CHANCE:
        return None
    return (
        f"{against:,} of {decided:,} decisions contradict the votes, {expected:.1f} are expected. Either "
        "annotators share mistakes, or some decisions are wrong. Check these decisions. They hold for their "
        "own spots; the more of them seem wrong, the less they change other spots."
    )


def absence_notice(fusions: Sequence[Fusion]) -> str | None:
    """State that the detections of a run may all be artefacts; None if votes or decisions rule that out.

    `fusions`: fusions of all images of the run.
    """
    detected = sum(int((fusion.detection.detected & (fusion.verdict < 0)).sum()) for fusion in fusions)
    accepted = any(bool(((fusion.verdict == 1) & (fusion.votes >= FEWEST)).any()) for fusion in fusions)
    ratio = log_ratio(
        [fusion.votes.astype(np.float64) for fusion in fusions], [len(fusion.marked) for fusion in fusions]
    )
    if accepted or not detected or np.exp(min(BELIEVED_VOTES * ratio, 0.0)) < LEAST:
        return None
    scored = any(fusion.score is not None for fusion in fusions)
    alone = "votes alone do not tell, nor do scores of a program" if scored else "votes alone do not tell"
    return (
        f"Undecided detections: {detected:,}. All of them may be artefacts: so few annotators agree on each "
        f"that {alone}. Decide some spots, name control images, or set the expected share of structures."
    )


def rejection_notice(fusions: Sequence[Fusion]) -> str | None:
    """State how many spots the rejections deny, and how to test that; None if there are acceptances or few.

    The most disputed spots may all be artefacts by chance, which is evidence of artefacts alone. Of 16
    simulated crowds of eight, twelve correct rejections did so in two, and turned 83 and 92 % of the other
    spots (log loss 0.25 to 0.92 in one); after one decision on the spot with most annotators none (0.36).

    `fusions`: fusions of all images of the run.
    """
    decided = np.concatenate([fusion.verdict for fusion in fusions]) if fusions else np.empty(0)
    rejected = int((decided == 0).sum())
    denied = sum(
        int(((fusion.detection.undecided >= 0.5) & ~fusion.detection.detected & (fusion.verdict < 0)).sum())
        for fusion in fusions
        if fusion.detection.undecided.size
    )
    if rejected < MIN_REJECTED or (decided == 1).any() or denied < MIN_SPOTS:
        return None
    return (
        f"All {rejected:,} decisions are rejections. They are why {denied:,} undecided spots are not "
        "detected, which the votes alone would detect. Decide the spot with most annotators too: if it is a "
        "structure, the votes count again."
    )


def empty_notice(fusions: Sequence[Fusion]) -> str | None:
    """State why a run has no spots; None if it has any, or no clicks.

    `fusions`: fusions of all images of the run.
    """
    clicked = [fusion for fusion in fusions if fusion.rates.clicks.any()]
    if not clicked or any(len(fusion.clustering) for fusion in fusions):
        return None
    shared = [fusion for fusion in clicked if np.count_nonzero(fusion.rates.clicks) > 1]
    if not shared:
        return "No spots: a spot needs clicks of two annotators, and each image has clicks of one."
    scatter = np.array([fusion.clustering.scatter for fusion in shared])
    known = scatter[np.isfinite(scatter)]
    at = f", at a click scatter of {np.median(known):.3g} px" if len(known) else ""
    return (
        f"No spots: clicks of different annotators agree no better than by chance{at}. From few clicks, the "
        "scatter is estimated badly. If annotators marked the same spots, set the click scatter, or add "
        "annotators."
    )


def score_notice(fusions: Sequence[Fusion]) -> str | None:
    """State that a program's scores contradict the votes; None if they do not, or there are none.

    They do if most detected spots have no detection of the program, or if spots with high scores are detected
    less often than those with low scores, beyond chance.

    `fusions`: fusions of all images of the run.
    """
    scored = [(fusion.score, fusion.detection.detected) for fusion in fusions if fusion.score is not None]
    if not scored:
        return None
    from scipy.stats import mannwhitneyu  # it takes a second to load

    score, detected = (np.concatenate(column) for column in zip(*scored, strict=True))
    finite, number = np.isfinite(score), int(detected.sum())
    both, advice = int((finite & detected).sum()), "Decide some spots, or exclude the scores."
    if number >= MIN_SPOTS and both < MISSED * number:
        return (
            f"The program has a detection on {both:,} of {number:,} detected spots: scores and votes "
            f"contradict each other. {advice}"
        )
    high, low = score[finite & detected], score[finite & ~detected]
    if min(len(high), len(low)) < MIN_SPOTS or mannwhitneyu(high, low, alternative="less").pvalue > CHANCE:
        return None
    return (
        "Spots with high scores are detected less often than those with low scores: scores and votes "
        f"contradict each other. Higher scores must mean more probably a structure. {advice}"
    )


WAYS = 2
"""Number of ways to divide the images into halves."""

LIMIT = 0.02
"""Minimum number of differing decisions for a notice, averaged over the ways, as a share of the detections.
"""


def halves_of(clicks: Sequence[Clicks], plan: FusionPlan) -> list[list[int]]:
    """Divide images into halves; return the indices of each half, two halves for each division.

    The order of images and clicks does not matter. There are no halves with a plan that does not learn across
    images.
    """
    if len(clicks) < 2 or not isinstance(plan.detection, DEMSettings) or not learns_across_images(plan):
        return []
    order = sorted(range(len(clicks)), key=lambda image: _content(clicks[image]))
    return [
        [image for rank, image in enumerate(order) if (rank >> split) % 2 == half]
        for split in range(WAYS)
        if len(order) > 1 << split
        for half in (0, 1)
    ]


def detect_together(shared: SharedVotes, plan: FusionPlan, watch: Watch = silent) -> dict[int, BoolArray]:
    """Return the detected clusters, (M,) bool, on each image that learns from the others."""
    assert isinstance(plan.detection, DEMSettings)
    evidence = shared.weigh(plan, watch)
    detections = judge_each(
        list(evidence.values()), plan.detection, silent, rated=False, at_once=len(evidence)
    )
    return {image: detection.detected for image, detection in zip(evidence, detections, strict=True)}


def with_halves(
    joint: Sequence[Fusion],
    alone: Sequence[Fusion],
    halves: Sequence[Sequence[int]],
    detected: Sequence[Mapping[int, BoolArray]],
) -> list[Fusion]:
    """Add to fusions the detections of each half, from `halves_of` and `detect_together`.

    An image that does not learn from others has the detections of `alone`.
    """
    if not halves:
        return list(joint)
    by_image: list[list[BoolArray]] = [[] for _ in joint]
    for half, answers in zip(halves, detected, strict=True):
        for image in half:
            by_image[image].append(answers[image] if image in answers else alone[image].detection.detected)
    return [replace(fusion, halves=np.array(own)) for fusion, own in zip(joint, by_image, strict=True)]


def add_half_detections(
    clicks: Sequence[Clicks],
    alone: Sequence[Fusion],
    joint: Sequence[Fusion],
    plan: FusionPlan,
    watch: Watch = silent,
    *,
    shared: SharedVotes | None = None,
) -> list[Fusion]:
    """Add to fusions the detections from fusing half of the images at a time.

    `alone`: fusions of each image by itself.
    `joint`: fusions of all images together, see `learn_from_each_other`.
    `plan`: plan of both.
    `shared`: votes of these images, as from `share_votes`.
    The result is `joint` with `Fusion.halves`; unchanged with a plan that does not learn across images.
    """
    halves = halves_of(clicks, plan)
    if not halves:
        return list(joint)
    shared = share_votes(clicks, alone, plan) if shared is None else shared
    shared.prepare(plan)
    detected = [detect_together(shared.only(set(half)), plan, step) for half, step in steps_of(watch, halves)]
    return with_halves(joint, alone, halves, detected)


def depends_on_grouping(fusion: Fusion) -> BoolArray:
    """Return whether fusing half of the images would change the decision on each cluster, (M,)."""
    detected = fusion.detection.detected
    halves = fusion.halves if len(fusion.halves) else detected[None]
    return np.asarray((halves != detected).any(axis=0))


def grouping_notice(fusions: Sequence[Fusion]) -> str | None:
    """State how many decisions of a run depend on which images are fused together; None if few do.

    `fusions`: fusions of all images of the run, as from `add_half_detections`.
    """
    known = [fusion for fusion in fusions if len(fusion.halves)]
    if not known:
        return None
    detected = sum(int(fusion.detection.detected.sum()) for fusion in known)
    by_halves = np.sum([fusion.halves.sum(axis=1) for fusion in known], axis=0)
    differ = sum(int((fusion.halves != fusion.detection.detected).sum()) for fusion in known) / len(by_halves)
    if differ <= LIMIT * max(detected, 1):
        return None
    low, high = int(by_halves.min()), int(by_halves.max())
    spots = sum(int(depends_on_grouping(fusion).sum()) for fusion in known)
    number = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    are = "decision depends" if spots == 1 else "decisions depend"
    return (
        f"{spots:,} {are} on which images are fused together: {detected:,} structures were detected, but "
        f"{number} if only half of the images are fused at a time. Votes alone cannot settle these spots: "
        "review them. A note under their votes marks them."
    )


def run_notices(fusions: Sequence[Fusion]) -> list[str]:
    """Return all notices: `empty_notice`, `absence_notice`, `rejection_notice` and the like, in this order.

    `fusions`: fusions of all images of the run.
    """
    givers = (
        empty_notice, absence_notice, rejection_notice, decision_notice, score_notice, grouping_notice,
    )  # fmt: skip
    notices = [give(fusions) for give in givers]
    return [notice for notice in notices if notice is not None]


def _content(clicks: Clicks) -> tuple[tuple[str, ...], bytes, bytes]:
    return tuple(sorted(clicks.annotators)), np.sort(clicks.x).tobytes(), np.sort(clicks.y).tobytes()
