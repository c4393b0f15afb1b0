"""The algorithms for labels, by name."""

from __future__ import annotations

from raterscope.algorithms.catalogue import Algorithm
from raterscope.algorithms.labels.dawid_skene import DawidSkeneSettings, dawid_skene
from raterscope.algorithms.labels.dynamic import DynamicSettings, dynibcc
from raterscope.algorithms.labels.ebcc import EBCCSettings, ebcc
from raterscope.algorithms.labels.gibbs import GibbsSettings, gibbs
from raterscope.algorithms.labels.ibcc import IBCCSettings, ibcc
from raterscope.algorithms.labels.pooled import PooledSettings, pooled
from raterscope.algorithms.labels.prior import LabelSettings
from raterscope.algorithms.labels.voting import (
    WeightedSettings,
    majority,
    mean_score,
    weighted_majority,
    weighted_sum,
)

__all__ = ["LABELLERS", "labeller_title"]

LABELLERS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm(
            "pooled", "pooled consensus", "Hierarchical Dawid-Skene, EBCC, mixed membership and the vote, "
            "pooled: probabilities that are right about as often as they claim. Recommended.",
            "logarithmic opinion pool, Genest and Zidek, Statistical Science 1 (1986) 114-135, of tempered "
            "hierarchical Dawid-Skene models, Paun et al., TACL 6 (2018) 571-585, and EBCC, Li et al., ICML "
            "(2019)",
            PooledSettings, pooled,
        ),
        Algorithm(
            "ibcc", "IBCC", "Learns every annotator's confusion matrix and weighs votes by it. Too sure "
            "where annotators err together.",
            "dynamic combination paper, sections 2 and 3", IBCCSettings, ibcc,
        ),
        Algorithm(
            "dynibcc", "dynamic IBCC", "As IBCC, with confusion matrices that move from vote to vote: who "
            "learns, tires or jumps.",
            "dynamic combination paper, section 7, as corrected", DynamicSettings, dynibcc,
        ),
        Algorithm(
            "gibbs", "IBCC by Gibbs sampling", "The same model as IBCC, sampled: slower, and sure of less.",
            "dynamic combination paper, sections 2 and 4", GibbsSettings, gibbs,
        ),
        Algorithm(
            "ebcc", "EBCC", "Classes have subtypes on which annotators err together. Takes longer, and is as "
            "sure as IBCC.",
            "Li, Rubinstein and Cohn, International Conference on Machine Learning (2019)",
            EBCCSettings, ebcc,
        ),
        Algorithm(
            "dawid-skene", "Dawid-Skene", "Confusion matrices of the greatest likelihood, as many know them.",
            "Dawid and Skene, Applied Statistics 28 (1979) 20-28", DawidSkeneSettings, dawid_skene,
        ),
        Algorithm(
            "majority", "majority vote", "The share of the votes; every annotator counts alike.",
            "dynamic combination paper, section 4", LabelSettings, majority,
        ),
        Algorithm(
            "weighted-majority", "weighted majority", "An annotator counts for less with each mistake.",
            "Littlestone and Warmuth, Foundations of Computer Science (1989) 256-261", WeightedSettings,
            weighted_majority,
        ),
        Algorithm(
            "weighted-sum", "weighted sum", "Scores averaged with the weights of weighted majority.",
            "dynamic combination paper, section 4", WeightedSettings, weighted_sum,
        ),
        Algorithm(
            "mean-score", "mean of scores", "Labels that are numbers, or in order, are averaged.",
            "dynamic combination paper, section 4", LabelSettings, mean_score,
        ),
    )
}  # fmt: skip


def labeller_title(name: str) -> str:
    """Say the algorithm of that name as people do; one of another version as it is written."""
    return LABELLERS[name].title if name in LABELLERS else name
