"""Masks of several raters of one image or volume, fused into a consensus with its uncertainty.

One source is cited throughout, equations, sections and tables by their own numbers: the robust fusion paper
[audelan2022]_. Docstrings state differences from it, with the reasons.

Importing this package loads neither numba nor scikit-learn; running an algorithm does.

References
----------
.. [audelan2022] B. Audelan, D. Hamzaoui, S. Montagne, R. Renard-Penna and H. Delingette, "Robust Bayesian
   fusion of continuous segmentation maps", Medical Image Analysis 78 (2022) 102398,
   doi:10.1016/j.media.2022.102398.
"""

from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.data import Alternative, MaskFusion, Masks, MasksError, MaskTrace, Settled
from raterscope.algorithms.masks.fusion import MaskPlan, fuse, stack
from raterscope.algorithms.masks.grid import Grid, GridError

__all__ = [
    "FUSERS",
    "Alternative",
    "Grid",
    "GridError",
    "MaskFusion",
    "MaskPlan",
    "MaskTrace",
    "Masks",
    "MasksError",
    "Settled",
    "fuse",
    "stack",
]
