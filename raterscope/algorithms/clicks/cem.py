"""CEM: EM clustering of clicks without outliers (thesis, section 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import cast

from raterscope.algorithms.clicks._path import PARAMETERS, Criterion, Form
from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.oem import COVARIANCES, MixtureSettings, make_path, walk_path
from raterscope.algorithms.clicks.result import Clustering
from raterscope.algorithms.progress import Watch, silent
from raterscope.algorithms.settings import choice

__all__ = ["CEMSettings", "cem"]

CRITERIA = {
    "length": "message length (thesis, section 2.2)",
    "observed": "observed likelihood, with the penalties of eq. 16",
}


VERSIONS = {
    "corrected": "corrected",
    "paper": "as in the OEM-DEM paper",
    "thesis": "as in the thesis",
}


@dataclass(frozen=True)
class CEMSettings(MixtureSettings):
    """Settings of `cem`."""

    covariance: str = choice("free", "Covariance", "Of the clusters.", COVARIANCES, advanced=True)
    criterion: str = choice("length", "Criterion", "What the number of clusters is chosen by.", CRITERIA)
    version: str = choice(
        "corrected", "Version", "The paper's begins exactly as OEM as printed: scatter from the variance of "
        "the clicks, no cap on the initial number, one-sided eq. 17, 10 to 500 iterations. The thesis's "
        "(section 2.2) annihilates components all at once. Both choose by message length.", VERSIONS,
    )  # fmt: skip

    def departures(self) -> tuple[str, ...]:
        """List in what the algorithm differs from the published one.

        Returns
        -------
        tuple of str
            Clauses for the methods text of a report.
        """
        if self.version == "paper":
            return (
                "covariances have a floor",
                "components are updated all at once, as the thesis prints (eqs. 2.14 to 2.17): the paper "
                "prints no equations of CEM",
            )
        if self.version == "thesis":
            return (
                "covariances have a floor",
                "the initial number and scatter, which the thesis does not state, are those of the settings",
                "convergence is relative to the criterion",
            )
        return (
            "covariances have a floor",
            "eq. 2.17 annihilates one component after the other",
            "removal may go on to no cluster at all",
            *(
                ()
                if self.criterion == "length"
                else (
                    "the observed likelihood with the penalties of eq. 16 takes "
                    "the place of the message length",
                )
            ),
        )


def cem(clicks: Clicks, settings: CEMSettings | None = None, watch: Watch = silent) -> Clustering:
    """Cluster the clicks of one image where every click belongs to some cluster (thesis, section 2.2).

    Parameters
    ----------
    clicks : Clicks
        N clicks of R annotators.
    settings : CEMSettings, optional
    watch : Watch
        Called with every iteration.

    Returns
    -------
    Clustering
        Its `inlier` and `reliability` are one wherever there are clicks.

    Notes
    -----
    The OEM-DEM paper compares with CEM "initialized exactly as OEM" (section 3.1) and prints no equations of
    it; its version here has the thesis's equations in the paper's Algorithm 1 without outliers.
    `CEMSettings.departures` lists the differences from what is published.

    References
    ----------
    .. [figueiredo2002] M. A. T. Figueiredo and A. K. Jain, "Unsupervised learning of finite mixture
       models", IEEE Transactions on Pattern Analysis and Machine Intelligence 24 (2002) 381-396,
       doi:10.1109/34.990138.

    Examples
    --------
    >>> from raterscope.algorithms.simulation.click_crowds import separated_crowd
    >>> found = cem(separated_crowd(20, seed=1).clicks, CEMSettings(version="thesis"))
    >>> bool((found.inlier == 1).all())
    True
    """
    settings = CEMSettings() if settings is None else settings
    published = settings.version != "corrected"
    forms: dict[str, Form] = {"corrected": "corrected", "paper": "literal", "thesis": "thesis"}
    path = partial(
        make_path,
        settings,
        criterion="length" if published else cast(Criterion, settings.criterion),
        penalty=PARAMETERS / 2,
        form=forms[settings.version],
        outliers=False,
    )
    return walk_path(clicks, settings, watch, path, settings.version == "paper")
