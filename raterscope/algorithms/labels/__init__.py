"""Labels that many annotators gave to tasks, fused into classes and confusion matrices.

One source is cited throughout, equations, sections and figures by their own numbers: the dynamic combination
paper [simpson2013]_. Docstrings state differences from it, with the reasons.

References
----------
.. [simpson2013] E. Simpson, S. Roberts, I. Psorakis and A. Smith, "Dynamic Bayesian combination of multiple
   imperfect classifiers", Decision Making and Imperfection, Studies in Computational Intelligence 474,
   Springer (2013) 1-35, doi:10.1007/978-3-642-36406-8_1.
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
