"""What other methods say of the same comparisons, and what is promised of those who are flagged."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raterscope.algorithms.pairs import PairFusion, Pairs
from raterscope.algorithms.pairs.data import BoolArray
from raterscope.algorithms.pairs.fusion import PairPlan
from raterscope.algorithms.pairs.ranking import bradley_terry, scores
from raterscope.algorithms.pairs.ranking_agreement import Consistency, consistency
from raterscope.algorithms.pairs.selection import t_test_flags
from raterscope.algorithms.progress import Watch, part, silent

__all__ = ["Beside", "beside", "not_promised"]

_CHEAP = 200_000
"""Comparisons up to which the Bradley-Terry model, which takes longer than all else, is fitted too."""

_HALF = 0.5


@dataclass(frozen=True, eq=False)
class Beside:
    """What stands beside a fusion, to compare with.

    Attributes
    ----------
    by_t_test : (p,) bool
        Whom the t test finds by Benjamini-Hochberg at the same rate.
    consistency : Consistency
        How much of the choices a ranking explains.
    bradley_terry : float
        Correlation of the scores, before biases are taken out, with the log odds of the Bradley-Terry model;
        NaN where it was not fitted.
    """

    by_t_test: BoolArray
    consistency: Consistency
    bradley_terry: float

    def as_dict(self) -> dict[str, Any]:
        """Give the figures, ready for JSON."""
        found = self.consistency
        figures = {
            "explained_by_ranking": found.ranking, "disagreement": found.disagreement,
            "cyclic": found.cyclic, "curl": found.curl, "harmonic": found.harmonic,
            "bradley_terry_correlation": self.bradley_terry,
        }  # fmt: skip
        known = {name: value if math.isfinite(value) else None for name, value in figures.items()}
        return {"t_test": int(self.by_t_test.sum()), **known}


def beside(pairs: Pairs, plan: PairPlan, fusion: PairFusion, watch: Watch = silent) -> Beside:
    """Ask the other methods about the comparisons that were fused."""
    if not getattr(plan.settings, "graded", True):
        pairs = replace(pairs, choice=np.sign(pairs.choice))
    split = consistency(pairs, fusion.component, fusion.score, part(watch, 0.0, 0.5))
    like = float("nan")
    if len(pairs) <= _CHEAP:
        odds = bradley_terry(pairs, part(watch, 0.5, 1.0))
        # the model knows no grades
        sided = fusion.score
        if (np.abs(pairs.choice) > 1).any():
            sided = scores(replace(pairs, choice=np.sign(pairs.choice))).score
        told = np.isfinite(odds) & np.isfinite(sided)
        size = math.sqrt(float(odds[told] @ odds[told]) * float(sided[told] @ sided[told]))
        like = float(odds[told] @ sided[told]) / size if size else like
    return Beside(t_test_flags(fusion), split, like)


def not_promised(plan: PairPlan, fusion: PairFusion) -> str:
    """Say why the rate of false discoveries is not promised of a fusion; nothing where it is.

    It is proved of knockoff+ in a single draw. Of those whom half of the draws select or more, and of the
    flip test where sides are drawn at random, simulated crowds show it.
    """
    if fusion.rule != "knockoffs":
        return f"sides were not drawn at random, {fusion.sides}" if fusion.sides else ""
    settings = plan.settings.as_dict()
    tested = int((fusion.untested == 0).sum())
    if not settings["plus"]:
        return "the plain knockoff keeps the rate only nearly"
    if not settings["local"]:
        return (
            "knockoffs take all annotators for equally noisy; where they are not, more are wrong: 13% at a "
            "rate of 10% in the simulated study where good annotators err in 40% of answers"
        )
    if settings["draws"] > 1 and settings["share"] < _HALF:
        return f"they are selected by {100 * fusion.share:g}% of the draws or more, and not by half of them"
    if fusion.freedom < tested:
        return f"there are but {fusion.freedom:,} degrees of freedom for {tested:,} annotators"
    return ""
