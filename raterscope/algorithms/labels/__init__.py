"""Labels that many annotators gave to tasks: who can be trusted with which class, and what is true.

One source is cited throughout, equations, sections and figures by their own numbers: the dynamic combination
paper, E. Simpson, S. Roberts, I. Psorakis and A. Smith, "Dynamic Bayesian Combination of Multiple Imperfect
Classifiers", in Decision Making and Imperfection, Springer (2013). Where what is done departs from it, the
docstring says how and why.
"""

from raterscope.algorithms.labels.data import (
    OPEN,
    Confusion,
    Drift,
    LabelFusion,
    Labels,
    LabelsError,
    LabelTrace,
    default_prior,
)

__all__ = [
    "OPEN",
    "Confusion",
    "Drift",
    "LabelFusion",
    "LabelTrace",
    "Labels",
    "LabelsError",
    "default_prior",
]
