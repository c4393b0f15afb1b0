"""Notices on a run: it may hold no structure at all, or scores or decisions contradict its votes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raterscope.algorithms.clicks._absence import BELIEVED_VOTES, log_ratio
from raterscope.algorithms.clicks._reviewing import FEWEST
from raterscope.algorithms.clicks.results import Fusion

__all__ = ["absence_notice", "decision_notice", "score_notice"]

LEAST = 0.2
"""Likelihood ratio of artefacts alone, tempered, from which on the notice is given."""

FEWEST_SPOTS = 5
"""Spots from which on scores can contradict votes."""

MISSED = 0.25
"""Share of the detected spots on which a program that agrees has a detection, at least."""

CHANCE = 0.001
"""Probability by chance of an order of the scores that contradicts the votes."""

AGAINST = 0.25
"""Probability of a decision by the votes up to which the decision contradicts them."""

FEWEST_AGAINST = 2
"""Decisions against the votes from which on a notice is given."""


def decision_notice(fusions: Sequence[Fusion]) -> str | None:
    """Say how many decisions contradict the votes; None where no more do than the posteriors let expect.

    Parameters
    ----------
    fusions : sequence of Fusion
        Of all images of the run.
    """
    from scipy.stats import poisson

    decided = 0
    against, expected = 0, 0.0
    for one in fusions:
        chance = one.detection.undecided
        known = (one.verdict >= 0) & ((one.verdict == 0) | (one.votes >= FEWEST))
        if chance.size:
            posterior = chance[known]
            right = np.where(one.verdict[known] == 1, posterior, 1 - posterior)
            least = np.minimum(posterior, 1 - posterior)
            decided += len(right)
            against += int((right <= AGAINST).sum())
            expected += float(least[least <= AGAINST].sum())
    if against < FEWEST_AGAINST or poisson.sf(against - 1, expected) > CHANCE:
        return None
    return (
        f"{against:,} of {decided:,} decisions contradict the votes, {expected:.1f} are expected. Either "
        "annotators share mistakes, or some decisions are wrong. Check these decisions. They hold for their "
        "own spots; the more of them seem wrong, the less they change other spots."
    )


def absence_notice(fusions: Sequence[Fusion]) -> str | None:
    """Say that the detections of a run may all be artefacts; None where votes or decisions rule that out.

    Parameters
    ----------
    fusions : sequence of Fusion
        Of all images of the run.
    """
    detected = sum(int((one.detection.detected & (one.verdict < 0)).sum()) for one in fusions)
    accepted = any(bool(((one.verdict == 1) & (one.votes >= FEWEST)).any()) for one in fusions)
    ratio = log_ratio([one.votes.astype(np.float64) for one in fusions], [len(one.marked) for one in fusions])
    if accepted or not detected or np.exp(min(BELIEVED_VOTES * ratio, 0.0)) < LEAST:
        return None
    scored = any(one.score is not None for one in fusions)
    alone = "votes alone do not tell, nor do scores of a program" if scored else "votes alone do not tell"
    return (
        f"Undecided detections: {detected:,}. All of them may be artefacts: so few annotators agree on each "
        f"that {alone}. Decide some spots, name control images, or set the expected share of structures."
    )


def score_notice(fusions: Sequence[Fusion]) -> str | None:
    """Say that the scores of a program contradict the votes; None where they do not, or there are none.

    They do where most spots that are detected have no detection of the program, or where those with high
    scores are detected less often than those with low ones, beyond chance.

    Parameters
    ----------
    fusions : sequence of Fusion
        Of all images of the run.
    """
    from scipy.stats import mannwhitneyu

    scored = [(one.score, one.detection.detected) for one in fusions if one.score is not None]
    if not scored:
        return None
    score, detected = (np.concatenate(column) for column in zip(*scored, strict=True))
    found, number = np.isfinite(score), int(detected.sum())
    both, advice = int((found & detected).sum()), "Decide some spots, or exclude the scores."
    if number >= FEWEST_SPOTS and both < MISSED * number:
        return (
            f"The program has a detection on {both:,} of {number:,} detected spots: scores and votes "
            f"contradict each other. {advice}"
        )
    high, low = score[found & detected], score[found & ~detected]
    if min(len(high), len(low)) < FEWEST_SPOTS or mannwhitneyu(high, low, alternative="less").pvalue > CHANCE:
        return None
    return (
        "Spots with high scores are detected less often than those with low scores: scores and votes "
        f"contradict each other. Higher scores must mean more probably a structure. {advice}"
    )
