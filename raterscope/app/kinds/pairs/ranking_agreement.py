"""The rankings of a fusion, before and after biases are taken out, beside a ground-truth ranking."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from raterscope.algorithms.pairs.data import FloatArray, IndexArray
from raterscope.algorithms.pairs.ranking_agreement import RankingAgreement, TrueRanking, compare_rankings

__all__ = ["Agreements", "agreements"]


@dataclass(frozen=True)
class Agreements:
    """How far the ranking of all answers and the corrected one agree with the ground truth."""

    original: RankingAgreement
    corrected: RankingAgreement

    def as_dict(self) -> dict[str, Any]:
        """Give the figures, ready for JSON."""
        return {
            name: {
                "items": one.items, "agreeing": one.agreeing, "opposed": one.opposed,
                "kendall_tau": one.tau if math.isfinite(one.tau) else None,
                "best_found": {str(k): share for k, share in one.best},
            }
            for name, one in (("original", self.original), ("corrected", self.corrected))
        }  # fmt: skip

    def in_words(self) -> str:
        """State both values of Kendall's tau in a sentence without its full stop."""
        if not math.isfinite(self.original.tau):
            return "the ground-truth ranking orders no two items that comparisons link"
        return (
            f"Kendall's tau with the ground-truth ranking is {self.corrected.tau:.3f}, "
            f"{self.original.tau:.3f} before biases are taken out ({self.corrected.items:,} items)"
        )


def agreements(
    original: FloatArray, corrected: FloatArray, component: IndexArray, truth: TrueRanking
) -> Agreements:
    """Compare both rankings of n items with the known one."""
    before, after = (compare_rankings(score, component, truth) for score in (original, corrected))
    return Agreements(before, after)
