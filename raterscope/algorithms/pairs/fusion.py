"""Fusion of comparisons into biased annotators and a ranking, by any of the paths."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from raterscope.algorithms.annotators.names import read_notices
from raterscope.algorithms.pairs.catalogue import PATHS
from raterscope.algorithms.pairs.data import PairFusion, Pairs, PairSettings
from raterscope.algorithms.progress import Watch, silent
from raterscope.algorithms.settings import Plan, Settings


@dataclass(frozen=True)
class PairPlan(Plan):
    """Path of `PATHS` that finds biased annotators, with its settings; see `Plan`."""

    catalogue = PATHS
    noun = "path for pairs"

    algorithm: str = "iss"
    settings: Settings = field(default_factory=PairSettings)

    def in_words(self) -> str:
        """Describe the plan, for the methods section."""
        path = PATHS[self.algorithm]
        return f"Biased annotators were found by {path.title} ({path.source}): {self.settings.in_words()}."


_WEIGHTED = (
    "Weights of annotators count for the scores and ranks; the test of each annotator's side bias uses all "
    "of their choices."
)


def fuse(pairs: Pairs, plan: PairPlan | None = None, watch: Watch = silent) -> PairFusion:
    """Find the biased annotators at a controlled rate of false discoveries, and the ranking without them.

    Choices count as graded, or only by their side, as in the plan; a tie is 0 and counts.

    `plan`: by default the inverse scale space, with 50 draws of knockoff+ at a rate of 0.1.
    Raises `PairsError` without comparisons, with too few to estimate the noise, or with too many linked
        items.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.pair_crowds import study_crowd
    >>> crowd = study_crowd(p1=0.2, p2=0.6)
    >>> fusion = fuse(crowd.pairs)
    >>> int(fusion.flagged.sum()), int((fusion.flagged & crowd.biased).sum())
    (51, 50)
    """
    plan = plan or PairPlan()
    fusion: PairFusion = PATHS[plan.algorithm].run(pairs, plan.settings, watch=watch)
    judges = [pairs.annotators[at] for at in np.unique(pairs.annotator).tolist()]
    notices = (*read_notices(judges), *(() if pairs.weights is None else (_WEIGHTED,)))
    return replace(fusion, notices=(*fusion.notices, *notices))
