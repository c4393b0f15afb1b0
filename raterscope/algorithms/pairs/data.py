"""Pairs: the input, the settings and the result of a fusion."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.names import checked_weights, reweighed, weights_by_name
from raterscope.algorithms.progress import RefusedError
from raterscope.algorithms.settings import Settings, choice, integer, number, switch

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]

BEHAVIOURS = ("good", "ugly", "bad", "not decidable")
"""Behaviours of annotators, in the paper's words, as stored in files.

In this order: no bias found; one side chosen more often; one side chosen nearly always; too few choices to
reveal a relevant bias."""

BEHAVIOUR_WORDS = ("no bias found", "leaning", "one-sided", "not decidable")
"""Behaviours in words, for the screen and the report."""

RULES = {"flip": "flip test", "knockoffs": "knockoffs of the position bias paper"}
"""Rules for flagging annotators, in words."""

CONSTRUCTIONS = {"entropy": "maximum entropy", "sdp": "semi-definite programme", "equal": "all equally far"}
"""Constructions of knockoffs: choice of s for correlated annotators. For others s is 1."""

HIGHEST_RATE = 0.25
"""Maximum false discovery rate for which the statistics W are computed."""


class PairsError(RefusedError):
    """Comparisons that cannot be fused; the message says why."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """E paired comparisons of n items by p annotators.

    Attributes
    ----------
    annotator, left, right : (E,) int32
        Indices into `annotators` and `items`; an item is never compared with itself.
    choice : (E,) float64
        Above 0 if the left item was preferred, below 0 for the right one, 0 for a tie; graded, or 1 and -1;
        finite.
    annotators, items : tuple of p and n names
        Annotators and items without comparisons are allowed.
    time : (E,) float64, optional
        Seconds from any origin; NaN where unknown.
    task : (E,) int32, optional
        Index of the subject of the comparison, such as the prompt that two models answered; -1 for none.
    weights : (p,) float64, optional
        Weight of each annotator's comparisons in the scores of the items, above 0 and at most 1; None where
        all count fully.
    """

    annotator: IndexArray
    left: IndexArray
    right: IndexArray
    choice: FloatArray
    annotators: tuple[str, ...]
    items: tuple[str, ...]
    time: FloatArray | None = None
    task: IndexArray | None = None
    weights: FloatArray | None = None

    def __post_init__(self) -> None:
        count = len(self.choice)
        for name, total in (
            ("annotator", len(self.annotators)),
            ("left", len(self.items)),
            ("right", len(self.items)),
        ):
            values = np.ascontiguousarray(getattr(self, name), dtype=np.int32)
            if values.shape != (count,):
                raise PairsError(f"{name} has the shape {values.shape}; expected one for each comparison.")
            if count and not 0 <= int(values.min()) <= int(values.max()) < total:
                raise PairsError(f"a comparison is of {name} {int(values.max())}; expected 0 to {total - 1}.")
            object.__setattr__(self, name, values)
        choice = np.ascontiguousarray(self.choice, dtype=np.float64)
        if choice.ndim != 1 or not bool(np.isfinite(choice).all()):
            raise PairsError("a choice is no number; expected above 0 for left, below 0 for right.")
        object.__setattr__(self, "choice", choice)
        if bool((self.left == self.right).any()):
            raise PairsError("an item is compared with itself.")
        if self.time is not None:
            time = np.ascontiguousarray(self.time, dtype=np.float64)
            if time.shape != (count,) or bool(np.isinf(time).any()):
                raise PairsError("times of the comparisons are missing or infinite; expected one each.")
            object.__setattr__(self, "time", None if bool(np.isnan(time).all()) else time)
        if self.task is not None and np.shape(self.task) != (count,):
            raise PairsError("tasks of the comparisons are missing; expected one each.")
        object.__setattr__(self, "weights", checked_weights(self.weights, self.annotators, PairsError))

    def __len__(self) -> int:
        return len(self.choice)

    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Count every annotator's left choices, right choices, and ties; (p,) each."""
        count = len(self.annotators)
        left, right, ties = (
            np.bincount(self.annotator[chosen], minlength=count)
            for chosen in (self.choice > 0, self.choice < 0, self.choice == 0)
        )
        return left, right, ties

    def joined(self, names: Mapping[str, str]) -> Pairs:
        """Assign the comparisons of some annotators to others, by name; all keep their indices."""
        if not names:
            return self
        rows = {name: row for row, name in enumerate(self.annotators)}
        stand = np.array([rows[names.get(name, name)] for name in self.annotators])
        return replace(self, annotator=stand[self.annotator].astype(self.annotator.dtype))

    def with_weights(self, weights: Mapping[str, float]) -> Pairs:
        """Down-weight annotators by name; weight 0 excludes them, and all others count fully."""
        if not weights and self.weights is None:
            return self
        others = self.without({name for name, weight in weights.items() if weight == 0})
        return replace(others, weights=weights_by_name(weights, self.annotators))

    def reweighed(self, annotators: Collection[str], weight: float | None) -> Pairs:
        """Set the weight of some annotators; None and 0 exclude them."""
        if not weight:
            return self.without(annotators)
        return replace(self, weights=reweighed(self.weights, self.annotators, annotators, weight))

    def each_weight(self) -> FloatArray | None:
        """Return the weight of each comparison, (E,); None where all count fully."""
        return None if self.weights is None else self.weights[self.annotator]

    def without(self, annotators: Collection[str]) -> Pairs:
        """Exclude the comparisons of some annotators; annotators and items keep their indices."""
        left_out = np.array([name in annotators for name in self.annotators], dtype=bool)
        if not left_out.any():
            return self
        kept = ~left_out[self.annotator]
        return replace(
            self,
            annotator=self.annotator[kept],
            left=self.left[kept],
            right=self.right[kept],
            choice=self.choice[kept],
            time=None if self.time is None else self.time[kept],
            task=None if self.task is None else self.task[kept],
        )


@dataclass(frozen=True, eq=False)
class PairFusion:
    """Annotators' position biases, and the ranking with and without correction; indices as in `Pairs`.

    The model is choice = score of the left item - score of the right item + bias of the annotator + noise
    (section 2): a bias above 0 prefers the left side.

    Attributes
    ----------
    algorithm : str
    left, right, ties : (p,) int32
    untested : (p,) int8
        0 for an annotator who was tested; otherwise a key of `knockoffs.UNTESTED` with the reason.
    entry : (p,) float64
        Entry of the annotator's bias on the path, without knockoffs (Z, section 2.3); NaN if untested.
    path_at : (T,) float64
        Points on the path: decreasing lambda for LASSO, increasing time for ISS and LBI.
    path : (T, p) float32
        Biases at these points.
    statistic : (D, p) float32
        W of each of D draws of knockoffs (eq. 8), or -log10 of the p value of the flip test, with D = 1; NaN
        if untested. They give the flags at any rate without another fit.
    bias, bias_low, bias_high : (p,) float64
        Mean choice on a pair of equal items, with 95 % interval; NaN if untested. By least squares with
        knockoffs, otherwise by inversion of the test.
    p_value : (p,) float64
        p value of the flip test; with knockoffs, of the t test of each bias.
    rate, share : float
        The chosen false discovery rate, and the share of draws needed for a flag.
    flagged : (p,) bool
    behaviour : (p,) int8
        Numbers in `BEHAVIOURS`.
    match : (p,) float64
        Share of the annotator's answers that agree with the corrected ranking; NaN without answers. component
    component : (n,) int32
        Items of one component are linked by comparisons; -1 for one that was never compared.
    score, score_low, score_high : (n,) float64
        Scores without a correction for biases, mean 0 in each component, with 95 % intervals; NaN if never
        compared.
    corrected, corrected_low, corrected_high : (n,) float64
        Scores estimated together with the biases of flagged annotators (eq. 11).
    variance : float
        Variance of the noise.
    freedom : int
        Remaining degrees of freedom.
    inconsistency : float
        Share of the choices' sum of squares that no ranking explains, 0 to 1.
    notices : tuple of str
        Messages for the user, a sentence each.
    rule : str
        Key of `RULES`: how annotators are flagged.
    q_value : (p,) float64, optional
        The smallest rate at which the flip test flags each annotator; NaN if untested.
    detectable : (p,) float64, optional
        The smallest bias, in the units of `bias`, that the flip test would flag in 9 of 10 cases; NaN if no
        choices suffice.
    decidable : (p,) bool, optional
        Whether an annotator who is not flagged can be called unbiased: a relevant bias is detectable, and the
        q value is large enough.
    t_test : (p,) float64, optional
        p values of the t test in addition to the flip test.
    crowd_p, gate : float
        p value of the crowd (`crowd_probability`), and the limit above which the flip test
        flags no annotator.
    rank_low, rank_high : (n,) int32, optional
        95 % intervals of the corrected ranks within components; 0 where unknown.
    sides : str
        Evidence that sides were not drawn at random, in words; empty without evidence.
    """

    algorithm: str
    left: IndexArray
    right: IndexArray
    ties: IndexArray
    untested: NDArray[np.int8]
    entry: FloatArray
    path_at: FloatArray
    path: NDArray[np.float32]
    statistic: NDArray[np.float32]
    bias: FloatArray
    bias_low: FloatArray
    bias_high: FloatArray
    p_value: FloatArray
    rate: float
    share: float
    flagged: BoolArray
    behaviour: NDArray[np.int8]
    match: FloatArray
    component: IndexArray
    score: FloatArray
    score_low: FloatArray
    score_high: FloatArray
    corrected: FloatArray
    corrected_low: FloatArray
    corrected_high: FloatArray
    variance: float
    freedom: int
    inconsistency: float
    notices: tuple[str, ...] = ()
    rule: str = "knockoffs"
    q_value: FloatArray | None = None
    detectable: FloatArray | None = None
    decidable: BoolArray | None = None
    t_test: FloatArray | None = None
    crowd_p: float = 0.0
    gate: float = 1.0
    sides: str = ""
    rank_low: IndexArray | None = None
    rank_high: IndexArray | None = None

    def reordered(self, order: NDArray[np.int64]) -> PairFusion:
        """Return a copy with the annotators in another order, first the annotator at `order[0]`.

        Parameters
        ----------
        order : (p,) int64
            Index of every annotator, once each.
        """
        columns = {name: getattr(self, name)[:, order] for name in ("path", "statistic")}
        rows = {name: getattr(self, name) for name in _PER_ANNOTATOR}
        return replace(
            self, **columns, **{name: values[order] for name, values in rows.items() if values is not None}
        )


_PER_ANNOTATOR = (
    "left", "right", "ties", "untested", "entry", "bias", "bias_low", "bias_high", "p_value", "flagged",
    "behaviour", "match", "q_value", "detectable", "decidable", "t_test",
)  # fmt: skip


_OF_FLIP_TEST = ("effect", "gate")
_OF_KNOCKOFFS = ("draws", "share", "plus", "knockoffs", "local", "seed")


@dataclass(frozen=True)
class PairSettings(Settings):
    """Settings of the exact paths, and of the rule that flags annotators."""

    rule: str = choice(
        "flip", "Rule", "The flip test finds single biased annotators, needs no draws and adapts to each "
        "annotator's noise. Knockoffs cannot flag fewer than 1 / rate annotators.", RULES,
    )  # fmt: skip
    rate: float = number(
        0.1, "False discovery rate", "Of the flagged annotators, at most this share is flagged wrongly, on "
        "average.",
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
        0.04, "Crowd test", "No annotator is flagged if the p value of the crowd is larger. 1 removes this "
        "safeguard and finds more single biased annotators. For the flip test.",
        minimum=0.001, maximum=1.0, advanced=True,
    )  # fmt: skip
    draws: int = integer(
        50, "Draws", "Number of random knockoffs. Results of one draw vary strongly: the next list may be "
                     "half as long.",
        minimum=1, maximum=1000,
    )  # fmt: skip
    share: float = number(
        0.5, "Share of draws", "Annotators selected by at least this share of the draws are flagged.",
        minimum=0.01, maximum=1.0,
    )  # fmt: skip
    plus: bool = switch(
        True, "Knockoff+", "Controls the rate itself; without biased annotators it flags none, while the "
        "plain knockoff flags some in half of all crowds. It cannot flag fewer than 1 / rate.",
    )  # fmt: skip
    knockoffs: str = choice(
        "entropy", "Knockoffs", "Distance of knockoffs from annotators who are hard to separate.",
        CONSTRUCTIONS, advanced=True,
    )  # fmt: skip
    local: bool = switch(
        True, "Noise of each annotator", "Knockoffs use each annotator's own noise: the rate holds even if "
        "some are noisier than others. Without it, as in the paper, the rate may be exceeded. Up to 4 "
        "times slower.", advanced=True,
    )  # fmt: skip
    min_comparisons: int = integer(
        5, "Minimum comparisons", "Annotators with fewer comparisons are not tested, and treated as "
        "unbiased.", minimum=1, maximum=1_000_000,
    )  # fmt: skip
    graded: bool = switch(
        True, "Graded choices", "Use the size of a choice; otherwise only its side counts. A tie is 0.",
    )  # fmt: skip
    seed: int = integer(0, "Seed", "Of the draws.", minimum=0, maximum=2**32 - 1, advanced=True)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make settings from stored values; those stored without a rule used knockoffs with common noise."""
        return super().from_dict({"rule": "knockoffs", "local": False, **values} if values else values)

    def unused(self) -> Collection[str]:
        """Return the settings of the other rule."""
        return _OF_KNOCKOFFS if self.rule == "flip" else _OF_FLIP_TEST


@dataclass(frozen=True)
class LBISettings(PairSettings):
    """Settings of the linearised Bregman iteration."""

    kappa: float = number(
        100.0, "Kappa", "A larger value is closer to the inverse scale space, and slower; 1 finds no biases.",
        minimum=1.0, maximum=1e5, advanced=True,
    )  # fmt: skip
    steps: int = integer(
        20_000, "Steps", "Maximum number. Annotators who have not entered by then count as entering last.",
        minimum=100, maximum=10_000_000, advanced=True,
    )  # fmt: skip
