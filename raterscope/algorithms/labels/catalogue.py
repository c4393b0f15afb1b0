"""Catalogue of the algorithms for labels."""

from __future__ import annotations

from raterscope.algorithms.labels.data import LabelFusion, LabelSettings
from raterscope.algorithms.labels.dynamic import DynamicSettings, dynibcc
from raterscope.algorithms.labels.ebcc import EBCCSettings, ebcc
from raterscope.algorithms.labels.ibcc import (
    DawidSkeneSettings,
    GibbsSettings,
    IBCCSettings,
    dawid_skene,
    gibbs,
    ibcc,
)
from raterscope.algorithms.labels.pooled import PooledSettings, pooled
from raterscope.algorithms.labels.voting import (
    WeightedSettings,
    majority,
    mean_score,
    weighted_majority,
    weighted_sum,
)
from raterscope.algorithms.plugins import Catalogue
from raterscope.algorithms.settings import Algorithm

LABELLERS = Catalogue(
    "labels",
    LabelFusion,
    (
    Algorithm(
        "pooled", "pooled consensus", "Pools hierarchical Dawid-Skene, EBCC, mixed membership and the "
        "majority vote. Its probabilities are well calibrated. Recommended.",
        "logarithmic opinion pool, [@genest1986], of tempered hierarchical Dawid-Skene models, "
        "[@paun2018], of mixed membership, [@airoldi2008], and of EBCC, [@li2019]; for ordered classes "
        "of an ordinal model, [@lakshminarayanan2013]",
        PooledSettings, pooled, weighs=True,
    ),
    Algorithm(
        "ibcc", "IBCC", "Estimates every annotator's confusion matrix and weighs votes by it. "
        "Over-confident if annotators share mistakes.",
        "[@simpson2013], sections 2 and 3", IBCCSettings, ibcc, weighs=True,
    ),
    Algorithm(
        "dynibcc", "dynamic IBCC", "As IBCC, with confusion matrices that change over time: for "
        "annotators who learn, tire or change suddenly.",
        "[@simpson2013], section 7, as corrected", DynamicSettings, dynibcc,
    ),
    Algorithm(
        "gibbs", "IBCC by Gibbs sampling",
        "The same model as IBCC, sampled: slower and less over-confident.",
        "[@simpson2013], section 2; [@geman1984]", GibbsSettings, gibbs,
    ),
    Algorithm(
        "ebcc", "EBCC", "Classes have subtypes on which annotators share mistakes. Slower than IBCC and "
        "as confident.",
        "[@li2019]",
        EBCCSettings, ebcc, weighs=True,
    ),
    Algorithm(
        "dawid-skene", "Dawid-Skene", "Maximum-likelihood confusion matrices.",
        "[@dawid1979]", DawidSkeneSettings, dawid_skene, weighs=True,
    ),
    Algorithm(
        "majority", "majority vote", "The share of the votes; every annotator counts equally.",
        "[@simpson2013], section 4", LabelSettings, majority, weighs=True,
    ),
    Algorithm(
        "weighted-majority", "weighted majority", "An annotator's weight falls with each mistake.",
        "[@littlestone1994]", WeightedSettings,
        weighted_majority, weighs=True,
    ),
    Algorithm(
        "weighted-sum", "weighted sum", "Scores averaged with the weights of weighted majority.",
        "[@simpson2013], section 4", WeightedSettings, weighted_sum, weighs=True,
    ),
    Algorithm(
        "mean-score", "mean of scores", "Averages labels that are numbers or ordered.",
        "[@simpson2013], section 4", LabelSettings, mean_score, weighs=True,
    ),
    ),
)  # fmt: skip


def labeller_title(name: str) -> str:
    """Return the title of an algorithm, or its name if it is of another version."""
    return LABELLERS[name].title if name in LABELLERS else name
