"""Clicks of many annotators on an image, fused into detections.

Clustering (`CLUSTERERS`) groups the clicks, assignment turns clusters into votes, detection (`DETECTORS`)
decides which clusters are structures; `fuse` does all three. Two sources are cited, equations and sections by
their own numbers:

- the OEM-DEM paper [pages2019]_: an unsupervised procedure of two EM stages, clustering with outliers (OEM)
and detection (DEM), also online, evaluated on data of the MalariaSpot project;
- the thesis [diazvilor2017]_.

Importing this package loads neither numba nor scikit-learn; running an algorithm does.

References
----------
.. [pages2019] A. Pagès-Zamora, M. Cabrera-Bean and C. Díaz-Vilor, "Unsupervised online clustering and
   detection algorithms using crowdsourced data for malaria diagnosis", Pattern Recognition 86 (2019).
.. [diazvilor2017] C. Díaz Vilor, "EM based algorithms for Malaria diagnose via crowdsourcing", Degree
   thesis, Universitat Politècnica de Catalunya, supervised by M. Cabrera Bean and A. Pagès Zamora (2017).
"""

from raterscope.algorithms.clicks.annotator_rates import pool_rates
from raterscope.algorithms.clicks.catalogue import CLUSTERERS, DETECTORS
from raterscope.algorithms.clicks.data import Clicks, ClicksError, KnownSpots, ellipses
from raterscope.algorithms.clicks.fusion import FusionPlan, fuse, learn_from_each_other
from raterscope.algorithms.clicks.result import AnnotatorRates, Clustering, Detection, Fusion, Trace, Votes

__all__ = [
    "CLUSTERERS",
    "DETECTORS",
    "AnnotatorRates",
    "Clicks",
    "ClicksError",
    "Clustering",
    "Detection",
    "Fusion",
    "FusionPlan",
    "KnownSpots",
    "Trace",
    "Votes",
    "ellipses",
    "fuse",
    "learn_from_each_other",
    "pool_rates",
]
