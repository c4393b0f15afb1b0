"""What can be set where biased annotators are sought."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from raterscope.algorithms.pairs.data import RULES
from raterscope.algorithms.pairs.knockoffs import CONSTRUCTIONS, HIGHEST_RATE
from raterscope.algorithms.settings import Settings, choice, integer, number, switch

__all__ = ["LBISettings", "PairSettings"]


@dataclass(frozen=True)
class PairSettings(Settings):
    """Settings of the exact paths, and of the knockoffs that control them."""

    rule: str = choice(
        "flip", "Rule", "The flip test finds single offenders, needs no draws and adapts to each annotator's "
        "noise. Knockoffs cannot flag fewer than 1 / rate annotators.", RULES,
    )  # fmt: skip
    rate: float = number(
        0.1, "False discovery rate", "Of those that are flagged, at most this share is flagged wrongly.",
        minimum=0.001, maximum=HIGHEST_RATE,
    )  # fmt: skip
    effect: float = number(
        0.03, "Minimum bias", "Mean choice on an even pair: 0.03 is 51.5 % left. Smaller biases are not "
        "flagged. 0 flags any bias. For the flip test.", minimum=0.0, maximum=0.9,
    )  # fmt: skip
    relevant: float = number(
        0.5, "Bias that matters", "Mean choice on an even pair: 0.5 is 75 % left. An annotator with too few "
        "choices to reveal it is not decidable.", minimum=0.01, maximum=1.0,
    )  # fmt: skip
    gate: float = number(
        0.04, "Crowd test", "Nobody is flagged if the p value of the crowd is above. 1 removes this "
        "safeguard and finds more lone offenders. For the flip test.",
        minimum=0.001, maximum=1.0, advanced=True,
    )  # fmt: skip
    draws: int = integer(
        50, "Draws", "Of random knockoffs. One draw is a lottery: the list of the next may be half as long.",
        minimum=1, maximum=1000,
    )  # fmt: skip
    share: float = number(
        0.5, "Share of draws", "Those are flagged whom at least this share of the draws selects.",
        minimum=0.01, maximum=1.0,
    )  # fmt: skip
    plus: bool = switch(
        True, "Knockoff+", "Controls the rate itself; with nobody biased it flags nobody, where the plain "
        "knockoff flags somebody in half of all crowds. It cannot flag fewer than 1 / rate.",
    )  # fmt: skip
    knockoffs: str = choice(
        "entropy", "Knockoffs", "How far they are from their annotators, where these are hard to tell apart.",
        CONSTRUCTIONS, advanced=True,
    )  # fmt: skip
    local: bool = switch(
        True, "Noise of each annotator", "Knockoffs are made of each annotator's own noise, which keeps the "
        "rate where some are noisier than others. Off, as published, it is exceeded there. Up to 4 times "
        "slower.", advanced=True,
    )  # fmt: skip
    least: int = integer(
        5, "Least comparisons", "Annotators with fewer are not tested, and treated as unbiased.",
        minimum=1, maximum=1_000_000,
    )  # fmt: skip
    graded: bool = switch(
        True, "As graded", "How far a choice is from 0 counts; else its side alone does. A tie is 0.",
    )  # fmt: skip
    seed: int = integer(0, "Seed", "Of the draws.", minimum=0, maximum=2**32 - 1, advanced=True)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make settings from stored values; those stored without a rule used knockoffs of common noise."""
        return super().from_dict({"rule": "knockoffs", "local": False, **values} if values else values)


@dataclass(frozen=True)
class LBISettings(PairSettings):
    """Settings of the linearised Bregman iteration."""

    kappa: float = number(
        100.0, "Kappa", "The greater the nearer to the inverse scale space, and the slower; 1 finds nobody.",
        minimum=1.0, maximum=1e5, advanced=True,
    )  # fmt: skip
    steps: int = integer(
        20_000, "Steps", "At most. Who has not come in by then counts as coming in last.",
        minimum=100, maximum=10_000_000, advanced=True,
    )  # fmt: skip
