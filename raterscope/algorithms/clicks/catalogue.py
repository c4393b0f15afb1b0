"""Catalogues of the algorithms for clicks: clusterers and detectors."""

from __future__ import annotations

from raterscope.algorithms.clicks.baseline_clustering import (
    CEMSettings,
    DBSCANSettings,
    HACSettings,
    HDBSCANSettings,
    KMeansSettings,
    cem,
    dbscan,
    hac,
    hdbscan,
    kmeans,
)
from raterscope.algorithms.clicks.dem import DEMSettings, RecursiveSettings, dem, recursive
from raterscope.algorithms.clicks.oem import OEMSettings, oem
from raterscope.algorithms.clicks.result import Clustering, Detection
from raterscope.algorithms.clicks.voting import MajoritySettings, ShareSettings, majority, share
from raterscope.algorithms.plugins import Catalogue
from raterscope.algorithms.settings import Algorithm

CLUSTERERS = Catalogue(
    "clicks",
    Clustering,
    (
    Algorithm(
        "oem", "OEM clustering", "Gaussian clusters and outliers, with each annotator's "
        "reliability; estimates the number of clusters. Recommended.",
        "[@pages2019], Algorithm 1", OEMSettings, oem,
    ),
    Algorithm(
        "cem", "CEM clustering", "As OEM without outliers: for crowds without random clicks.",
        "[@diazvilor2017], section 2.2; [@figueiredo2002]", CEMSettings, cem,
    ),
    Algorithm(
        "kmeans", "k-means", "A known number of clusters; every click counts.",
        "[@pages2019], section 3.1; [@lloyd1982]", KMeansSettings, kmeans,
    ),
    Algorithm(
        "hac", "hierarchical clustering", "Merges the nearest clusters; for up to 15,000 clicks.",
        "[@pages2019], section 3.1", HACSettings, hac,
    ),
    Algorithm(
        "dbscan", "DBSCAN", "Joins clicks nearer than a known distance.",
        "[@ester1996]; scikit-learn, defaults of Zooniverse's point reducer", DBSCANSettings, dbscan,
    ),
    Algorithm(
        "hdbscan", "HDBSCAN", "Joins clicks at every density and keeps the most stable clusters.",
        "[@campello2013]; scikit-learn, defaults of Zooniverse's point reducer", HDBSCANSettings, hdbscan,
    ),
    ),
)  # fmt: skip

DETECTORS = Catalogue(
    "detection",
    Detection,
    (
    Algorithm(
        "dem", "DEM detection", "Weighs votes by each annotator's sensitivity and specificity, "
        "estimated from the data. Recommended.", "[@pages2019], Algorithm 2", DEMSettings, dem,
    ),
    Algorithm(
        "majority", "majority vote", "A structure is what half of the annotators marked.",
        "[@pages2019], eq. 33",
        MajoritySettings, majority,
    ),
    Algorithm(
        "share", "share of votes", "A structure is what a chosen share of the annotators marked.",
        "[@pages2019], eq. 32",
        ShareSettings, share,
    ),
    Algorithm(
        "recursive", "recursive EM", "DEM in one pass over the annotators, in their order of "
        "arrival.", "[@diazvilor2017], Algorithm 5", RecursiveSettings, recursive,
    ),
    ),
)  # fmt: skip
