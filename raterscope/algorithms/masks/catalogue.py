"""Catalogue of the algorithms for masks."""

from __future__ import annotations

from raterscope.algorithms.masks.continuous_staple import ContinuousSTAPLESettings, continuous_staple
from raterscope.algorithms.masks.data import MaskFusion
from raterscope.algorithms.masks.mixture import MixtureSettings, mixture
from raterscope.algorithms.masks.robust import (
    GaussianSettings,
    GDPSettings,
    LaplaceSettings,
    StudentSettings,
    gaussian,
    gdp,
    laplace,
    student,
)
from raterscope.algorithms.masks.staple import PSTAPLESettings, STAPLESettings, pstaple, staple
from raterscope.algorithms.masks.voting import MajoritySettings, majority
from raterscope.algorithms.plugins import Catalogue
from raterscope.algorithms.settings import Algorithm

FUSERS = Catalogue(
    "masks",
    MaskFusion,
    (
    Algorithm(
        "laplace", "Laplace", "Robust; gives each rater's local weight and the outline's uncertainty. "
        "Recommended.",
        "[@audelan2022], section 2, Laplace likelihood", LaplaceSettings, laplace, weighs=True,
    ),
    Algorithm(
        "student", "Student's t", "As Laplace, with tails estimated for each rater.",
        "[@audelan2022], section 2, Student's t likelihood", StudentSettings, student, weighs=True,
    ),
    Algorithm(
        "gdp", "generalised double Pareto", "As Laplace, with heavier tails: far outliers count very "
        "little.",
        "[@audelan2022], section 2, generalised double Pareto likelihood", GDPSettings, gdp, weighs=True,
    ),
    Algorithm(
        "gaussian", "Gaussian", "One variance for each rater over the whole image; not robust.",
        "[@audelan2022], section 2.1", GaussianSettings, gaussian, weighs=True,
    ),
    Algorithm(
        "mixture", "mixture of consensuses", "Finds whether raters follow one outline or several, and "
        "which rater follows which. A variant of the paper's method.",
        "[@audelan2022], section 3, a variant", MixtureSettings, mixture,
    ),
    Algorithm(
        "staple", "STAPLE", "Weighs votes by each rater's sensitivity and specificity over the image.",
        "[@warfield2004]", STAPLESettings,
        staple, weighs=True,
    ),
    Algorithm(
        "pstaple", "PSTAPLE", "STAPLE for probabilities, with a prior that joins neighbouring voxels.",
        "[@akhondi2013], derived from its description", PSTAPLESettings, pstaple,
    ),
    Algorithm(
        "continuous-staple", "continuous STAPLE", "One bias and one variance for each rater, on signed "
        "distances.",
        "[@warfield2008]", ContinuousSTAPLESettings, continuous_staple,
    ),
    Algorithm(
        "majority", "majority vote", "The structure is what more than half of the raters marked.",
        "[@audelan2022], section 1", MajoritySettings, majority, weighs=True,
    ),
    ),
)  # fmt: skip


def fuser_title(name: str) -> str:
    """Return the title of an algorithm, or its name if it is of another version."""
    return FUSERS[name].title if name in FUSERS else name
