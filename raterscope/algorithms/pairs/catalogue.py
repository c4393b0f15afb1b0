"""Catalogue of the paths for finding biased annotators."""

from __future__ import annotations

from raterscope.algorithms.pairs import paths
from raterscope.algorithms.pairs.data import LBISettings, PairFusion, Pairs, PairSettings
from raterscope.algorithms.pairs.fitting import fit_path
from raterscope.algorithms.plugins import Catalogue
from raterscope.algorithms.progress import Watch, silent
from raterscope.algorithms.settings import Algorithm


def _iss(pairs: Pairs, settings: PairSettings | None = None, watch: Watch = silent) -> PairFusion:
    return fit_path(pairs, "iss", paths.iss(), settings, watch)


def _lasso(pairs: Pairs, settings: PairSettings | None = None, watch: Watch = silent) -> PairFusion:
    return fit_path(pairs, "lasso", paths.lasso(), settings, watch)


def _lbi(pairs: Pairs, settings: LBISettings | None = None, watch: Watch = silent) -> PairFusion:
    settings = LBISettings() if settings is None else settings
    return fit_path(pairs, "lbi", paths.lbi(settings.kappa, settings.steps), settings, watch)


PATHS= Catalogue(
    "pairs",
    PairFusion,
    (
    Algorithm(
        "iss", "inverse scale space", "Biases enter at their full size, the clearest first. "
        "Recommended.",
        "[@xu2016], eq. 4, with the knockoffs of section 2.3 as corrected", PairSettings, _iss, weighs=True,
    ),
    Algorithm(
        "lasso", "LASSO", "Biases grow from zero; they enter in nearly the same order.",
        "[@xu2016], eq. 5, with the knockoffs of section 2.3 as corrected", PairSettings,
        _lasso, weighs=True,
    ),
    Algorithm(
        "lbi", "linearised Bregman iteration", "Approximates the inverse scale space in small steps.",
        "[@xu2016], Algorithm 1, with the knockoffs of section 2.3 as corrected", LBISettings,
        _lbi, weighs=True,
    ),
    ),
)  # fmt: skip


def path_title(name: str) -> str:
    """Return the title of a path, or its name if it is of another version."""
    return PATHS[name].title if name in PATHS else name
