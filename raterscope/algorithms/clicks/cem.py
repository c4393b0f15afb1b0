"""CEM: EM clustering of clicks without outliers (thesis, section 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import cast

from raterscope.algorithms.clicks._path import PARAMETERS, Criterion
from raterscope.algorithms.clicks.data import Clicks
from raterscope.algorithms.clicks.oem import COVARIANCES, MixtureSettings, make_path, walk_path
from raterscope.algorithms.clicks.results import Clustering
from raterscope.algorithms.progress import Watch, silent
from raterscope.algorithms.settings import choice

__all__ = ["CEMSettings", "cem"]

CRITERIA = {
    "length": "message length (thesis, section 2.2)",
    "observed": "observed likelihood, with the penalties of eq. 16",
}


@dataclass(frozen=True)
class CEMSettings(MixtureSettings):
    """Settings of `cem`."""

    covariance: str = choice("free", "Covariance", "Of the clusters.", COVARIANCES, advanced=True)
    criterion: str = choice("length", "Criterion", "What the number of clusters is chosen by.", CRITERIA)


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
    """
    settings = CEMSettings() if settings is None else settings
    criterion = cast(Criterion, settings.criterion)
    path = partial(make_path, settings, criterion=criterion, penalty=PARAMETERS / 2, outliers=False)
    return walk_path(clicks, settings, watch, path)
