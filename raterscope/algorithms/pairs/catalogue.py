"""Catalogue of the paths for finding biased annotators, and fusion by any of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from raterscope.algorithms.annotators.names import read_notices
from raterscope.algorithms.pairs import paths
from raterscope.algorithms.pairs.data import LBISettings, PairFusion, Pairs, PairSettings
from raterscope.algorithms.pairs.fitting import fit_path
from raterscope.algorithms.plugins import Catalogue
from raterscope.algorithms.progress import Watch, silent
from raterscope.algorithms.settings import Algorithm, Plan, Settings


def _iss(pairs: Pairs, settings: PairSettings | None = None, watch: Watch = silent) -> PairFusion:
    return fit_path(pairs, "iss", paths.iss(), settings, watch)


def _lasso(pairs: Pairs, settings: PairSettings | None = None, watch: Watch = silent) -> PairFusion:
    return fit_path(pairs, "lasso", paths.lasso(), settings, watch)


def _lbi(pairs: Pairs, settings: LBISettings | None = None, watch: Watch = silent) -> PairFusion:
    settings = LBISettings() if settings is None else settings
    return fit_path(pairs, "lbi", paths.lbi(settings.kappa, settings.steps), settings, watch)


PATHS = Catalogue(
    "pairs",
    PairFusion,
    (
    Algorithm(
        "iss", "inverse scale space", "Biases enter with their full size, the clearest first. "
        "Recommended.",
        "[@xu2016], eq. 4", PairSettings, _iss, weighs=True,
    ),
    Algorithm(
        "lasso", "LASSO", "Biases grow from zero; they enter in nearly the same order.",
        "[@xu2016], eq. 5", PairSettings,
        _lasso, weighs=True,
    ),
    Algorithm(
        "lbi", "linearised Bregman iteration", "Approximates the inverse scale space in small steps.",
        "[@xu2016], Algorithm 1", LBISettings,
        _lbi, weighs=True,
    ),
    ),
)  # fmt: skip


def path_title(name: str) -> str:
    """Return the title of a path, or its name if it is of another version."""
    return PATHS[name].title if name in PATHS else name


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
        way = f"{path.title} ({path.source})"
        rules = {
            "flip": f"the flip test (after [@fisher1935]), and ordered by {way}",
            "knockoffs": f"{way} with knockoffs ([@xu2016], section 2.3, as corrected)",
        }
        found = rules.get(getattr(self.settings, "rule", ""), way)  # a plugin's path may have no rule
        return f"Biased annotators were found by {found}: {self.settings.in_words()}."


_WEIGHTED = (
    "Weights of annotators count for the scores and ranks; the test of each annotator's side bias uses all "
    "of their choices."
)


def fuse(pairs: Pairs, plan: PairPlan | None = None, watch: Watch = silent) -> PairFusion:
    """Find the biased annotators at a controlled false discovery rate, and the corrected ranking.

    Choices count as graded, or only by their side, as set in the plan; a tie counts as 0.

    `plan`: by default the inverse scale space and the flip test at a rate of 0.1. Raises `PairsError` without
    comparisons, with too few to estimate the noise, or with too many linked items.

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
