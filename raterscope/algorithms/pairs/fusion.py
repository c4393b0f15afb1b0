"""From comparisons of pairs to biased annotators and a ranking, by any of the paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from raterscope.algorithms.catalogue import Algorithm
from raterscope.algorithms.pairs.catalogue import PATHS
from raterscope.algorithms.pairs.data import PairFusion, Pairs
from raterscope.algorithms.pairs.settings import PairSettings
from raterscope.algorithms.progress import Watch, silent
from raterscope.algorithms.settings import Settings, SettingsError

__all__ = ["PairPlan", "fuse"]


@dataclass(frozen=True)
class PairPlan:
    """Which path finds biased annotators, with which settings.

    Attributes
    ----------
    algorithm : str
        A key of `PATHS`.
    settings : Settings
        Of the kind that it takes.

    Raises
    ------
    SettingsError
        For a path that is not known, or settings of another.
    """

    algorithm: str = "iss"
    settings: Settings = field(default_factory=PairSettings)

    def __post_init__(self) -> None:
        if type(self.settings) is not _path(self.algorithm).settings:
            raise SettingsError(f"the settings are not those of {self.algorithm}.")

    @classmethod
    def make(cls, algorithm: str = "iss", texts: Mapping[str, str] | None = None) -> Self:
        """Make a plan from a name and `field=value` pairs of a command line.

        Raises
        ------
        SettingsError
            For a path or a setting that is not known, or a value that will not do.
        """
        return cls(algorithm, _path(algorithm).settings.from_text(texts or {}))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make a plan from what `as_dict` gave.

        Raises
        ------
        SettingsError
            For names and values that are not known here.
        """
        name, settings = values.get("algorithm"), values.get("settings")
        if not isinstance(name, str) or not isinstance(settings, Mapping):
            raise SettingsError("a plan names its algorithm and its settings.")
        return cls(name, _path(name).settings.from_dict(settings))

    def as_dict(self) -> dict[str, Any]:
        """Give the plan, ready for JSON."""
        return {"algorithm": self.algorithm, "settings": self.settings.as_dict()}

    def in_words(self) -> str:
        """Say the plan, for the methods section."""
        path = PATHS[self.algorithm]
        return f"Biased annotators were found by {path.title} ({path.source}): {self.settings.in_words()}."


def fuse(pairs: Pairs, plan: PairPlan | None = None, watch: Watch = silent) -> PairFusion:
    """Find the biased annotators at a controlled rate of false discoveries, and the ranking without them.

    Choices count as they are graded, or by their side alone where the plan says so; a tie is 0 and kept.

    Parameters
    ----------
    pairs : Pairs
    plan : PairPlan, optional
        By default the inverse scale space, with 50 draws of knockoff+ at a rate of 0.1.
    watch : Watch

    Raises
    ------
    PairsError
        Without comparisons, without any that are left over to tell the noise by, or with more linked items
        than fit.
    """
    plan = plan or PairPlan()
    fusion: PairFusion = PATHS[plan.algorithm].run(pairs, plan.settings, watch=watch)
    return fusion


def _path(name: str) -> Algorithm:
    if name not in PATHS:
        raise SettingsError(f"{name} is no path for pairs; expected one of {', '.join(PATHS)}.")
    return PATHS[name]
