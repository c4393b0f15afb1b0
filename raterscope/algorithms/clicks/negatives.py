"""Runs that may hold no structure at all, which votes alone cannot tell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raterscope.algorithms.clicks._absence import BELIEVED_VOTES, log_ratio
from raterscope.algorithms.clicks._reviewing import FEWEST
from raterscope.algorithms.clicks.results import Fusion

__all__ = ["absence_notice"]

LEAST = 0.2
"""Likelihood ratio of artefacts alone, tempered, from which on the notice is given."""


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
    return (
        f"Undecided detections: {detected:,}. All of them may be artefacts: so few annotators agree on each "
        "that votes alone do not tell. Decide some spots, name control images, or set the expected share of "
        "structures."
    )
