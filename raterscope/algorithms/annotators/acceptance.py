"""Acceptance sampling: how many items to check again, and how many errors to accept.

The producer's risk is the chance to reject work with an acceptable share of errors (AQL). The consumer's risk
is the chance to accept work with an unacceptable share (LQ). Plans are computed from the binomial
distribution, or for a lot of known size from the hypergeometric; ISO 2859-1 rounds similar plans to tables
([montgomery2012]_).

References
----------
.. [wald1947] A. Wald, "Sequential analysis", Wiley (1947) (chapter 5).
.. [montgomery2012] D. C. Montgomery, "Introduction to statistical quality control", 7th edition, Wiley
   (2012) (chapter 15).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from raterscope.algorithms.settings import Settings, integer, number, switch

if TYPE_CHECKING:
    import numpy as np  # imported when needed: the help of the command line uses the settings

Verdict = Literal["accept", "reject", "continue"]

_MOST = 100_000
"""Maximum number of items of a plan."""

_TRUNCATIONS = (1.5, 2.0, 3.0)
"""Maximum length of a sequential plan, as multiples of the single plan's; the first that keeps both risks is
used.
"""


class AcceptancePlan(Protocol):
    """A plan that decides after each checked item."""

    @property
    def most(self) -> int:
        """Number of items after which the plan always has a decision."""

    def limits(self, checked: int) -> tuple[int, int]:
        """Return the largest number of errors to accept and the smallest to reject, after some checked items.

        The first is -1 if nothing can be accepted yet; the second exceeds `checked` if nothing can be
        rejected.
        """


@dataclass(frozen=True)
class SingleSampling:
    """Plan that checks `size` items, and accepts with at most `accept` errors."""

    size: int
    accept: int
    # acceptable, unacceptable: shares of errors (AQL and LQ)
    acceptable: float
    unacceptable: float
    lot: int | None = None  # number of items; None for a large lot

    @property
    def most(self) -> int:
        """Number of items after which the plan always has a decision."""
        return self.size

    def limits(self, checked: int) -> tuple[int, int]:
        """Reject as soon as there are too many errors; accept once the other items cannot add too many."""
        return self.accept - max(self.size - checked, 0), self.accept + 1

    def accepted(self, share: float) -> float:
        """Return the probability of acceptance at a share of errors."""
        return _accepted(self.size, self.accept, share, self.lot)


@dataclass(frozen=True)
class SequentialSampling:
    """Wald's sequential probability ratio test, which ends at `most` items."""

    # accept_intercept, reject_intercept, slope: accept below slope * items - accept_intercept, reject above
    # slope * items + reject_intercept
    accept_intercept: float
    reject_intercept: float
    slope: float
    # acceptable, unacceptable: shares of errors (AQL and LQ)
    acceptable: float
    unacceptable: float
    most: int  # items after which the errors are compared with `slope` alone

    def limits(self, checked: int) -> tuple[int, int]:
        """Return the largest number of errors to accept and the smallest to reject."""
        middle = self.slope * checked
        if checked >= self.most:
            accept = math.floor(middle)
            return accept, accept + 1
        accept = math.floor(middle - self.accept_intercept + 1e-12)
        return max(accept, -1), max(1, math.ceil(middle + self.reject_intercept - 1e-12))

    def accepted(self, share: float) -> float:
        """Return the probability of acceptance at a share of errors."""
        return self._course(share)[0]

    def expected_items(self, share: float) -> float:
        """Return the mean number of items until the decision (average sample number)."""
        return self._course(share)[1]

    def _course(self, share: float) -> tuple[float, float]:
        """Compute the distribution of the number of errors after each item."""
        import numpy as np

        going = np.zeros(self.most + 2)
        going[0] = 1.0
        accepted, items = 0.0, 0.0
        for checked in range(1, self.most + 1):
            items += float(going.sum())
            going[1:] = going[1:] * (1 - share) + going[:-1] * share
            going[0] *= 1 - share
            accept, reject = self.limits(checked)
            accepted += float(going[: accept + 1].sum())
            going[: accept + 1] = 0.0
            going[reject:] = 0.0
        return accepted, items


@dataclass(frozen=True)
class AcceptanceSettings(Settings):
    """Limits and risks of a plan, and the seed of its sample."""

    acceptable: float = number(
        0.025, "Acceptable errors", "Work with this share of errors is accepted (AQL).", minimum=0.0,
        maximum=1.0,
    )  # fmt: skip
    unacceptable: float = number(
        0.16, "Unacceptable errors", "Work with this share of errors is rejected (LQ).", minimum=0.0,
        maximum=1.0,
    )  # fmt: skip
    sequential: bool = switch(
        False, "Sequential plan", "Decide after each item (Wald): fewer items on average, more at most."
    )
    seed: int = integer(1, "Seed", "The same seed draws the same sample.", minimum=0, maximum=2**31 - 1)
    producer_risk: float = number(
        0.05, "Producer's risk", "Of rejecting work with the acceptable share of errors.", minimum=0.0,
        maximum=0.5, advanced=True,
    )  # fmt: skip
    consumer_risk: float = number(
        0.10, "Consumer's risk", "Of accepting work with the unacceptable share of errors.", minimum=0.0,
        maximum=0.5, advanced=True,
    )  # fmt: skip


def make_plan(settings: AcceptanceSettings, lot: int | None = None) -> SingleSampling | SequentialSampling:
    """Make the plan of some settings, for a lot of known size.

    Raises `ValueError` for shares or risks out of order, and where no plan for the lot keeps both risks.
    """
    shares = settings.acceptable, settings.unacceptable
    risks = {"producer_risk": settings.producer_risk, "consumer_risk": settings.consumer_risk}
    if not settings.sequential:
        return single_sampling(*shares, lot=lot, **risks)
    plan = sequential_sampling(*shares, **risks)
    if lot is not None and plan.most > lot:
        raise ValueError(
            f"a sequential plan may need {plan.most:,} items, and there are {lot:,}; expected a single plan."
        )
    return plan


def single_sampling(
    acceptable: float,
    unacceptable: float,
    *,
    producer_risk: float = 0.05,
    consumer_risk: float = 0.10,
    lot: int | None = None,
) -> SingleSampling:
    """Find the smallest sample that keeps both risks.

    `acceptable`, `unacceptable`: shares of errors AQL and LQ, 0 <= AQL < LQ < 1.
    `producer_risk`, `consumer_risk`: chances to reject at AQL, and to accept at LQ.
    `lot`: number of items; None for a large lot.
    Raises `ValueError` for shares or risks out of order, and where no plan of at most 100,000 items keeps
        both.

    A lot of N items holds the whole number of errors that is nearest to its share.
    """
    _check(acceptable, unacceptable, producer_risk, consumer_risk)
    most = _MOST if lot is None else min(lot, _MOST)
    size = 1
    for accept in range(most):
        # With more accepted errors the sample has to grow; the smallest that keeps the consumer's risk.
        size = _least_size(accept, unacceptable, consumer_risk, max(size, accept + 1), most, lot)
        if size > most:
            break
        if 1 - _accepted(size, accept, acceptable, lot) <= producer_risk:
            return SingleSampling(size, accept, acceptable, unacceptable, lot)
    raise ValueError(
        f"no plan of at most {most:,} items keeps both risks; expected shares further apart or larger risks."
    )


def sequential_sampling(
    acceptable: float,
    unacceptable: float,
    *,
    producer_risk: float = 0.05,
    consumer_risk: float = 0.10,
) -> SequentialSampling:
    """Make Wald's sequential plan [wald1947]_, truncated at 1.5 to 3 times the size of the single plan."""
    _check(acceptable, unacceptable, producer_risk, consumer_risk)
    if acceptable == 0:
        raise ValueError("acceptable share 0; a sequential plan needs one above 0.")
    single = single_sampling(
        acceptable, unacceptable, producer_risk=producer_risk, consumer_risk=consumer_risk
    )
    odds = math.log(unacceptable * (1 - acceptable) / (acceptable * (1 - unacceptable)))
    plans = [
        SequentialSampling(
            accept_intercept=math.log((1 - producer_risk) / consumer_risk) / odds,
            reject_intercept=math.log((1 - consumer_risk) / producer_risk) / odds,
            slope=math.log((1 - acceptable) / (1 - unacceptable)) / odds,
            acceptable=acceptable,
            unacceptable=unacceptable,
            most=math.ceil(times * single.size),
        )
        for times in _TRUNCATIONS
    ]
    kept = (
        plan
        for plan in plans
        if 1 - plan.accepted(acceptable) <= producer_risk and plan.accepted(unacceptable) <= consumer_risk
    )
    return next(kept, plans[-1])


def decide(plan: AcceptancePlan, checked: int, errors: int) -> Verdict:
    """Return the decision of a plan after some checked items, in the order of checking."""
    if not 0 <= errors <= checked:
        raise ValueError(f"{errors} errors among {checked} items; expected 0 to {checked}.")
    accept, reject = plan.limits(checked)
    return "accept" if errors <= accept else "reject" if errors >= reject else "continue"


def _check(acceptable: float, unacceptable: float, producer_risk: float, consumer_risk: float) -> None:
    if not 0 <= acceptable < unacceptable < 1:
        raise ValueError(
            f"shares {acceptable:g} and {unacceptable:g}; expected an acceptable one below an unacceptable "
            "one, both below 1."
        )
    for name, risk in (("producer's", producer_risk), ("consumer's", consumer_risk)):
        if not 0 < risk < 0.5:
            raise ValueError(f"{name} risk {risk:g}; expected between 0 and 0.5.")


def _accepted(size: int, accept: int, share: float, lot: int | None) -> float:
    """Return the probability of at most `accept` errors."""
    if lot is None:
        from scipy.special import bdtr

        return float(bdtr(accept, size, share))
    import numpy as np

    errors = round(share * lot)
    numbers = np.arange(max(0, size - (lot - errors)), min(accept, errors, size) + 1)
    logs = _log_choose(errors, numbers) + _log_choose(lot - errors, size - numbers) - _log_choose(lot, size)
    return float(np.exp(logs).sum())


def _log_choose(total: int, chosen: int | np.ndarray) -> np.ndarray:
    import numpy as np
    from scipy.special import gammaln as gamma

    return np.asarray(gamma(total + 1) - gamma(np.add(chosen, 1)) - gamma(total - np.asarray(chosen) + 1))


def _least_size(accept: int, unacceptable: float, risk: float, start: int, most: int, lot: int | None) -> int:
    """Return the smallest sample accepted at LQ with at most the risk; `most` + 1 if there is none."""
    step, low, high = 1, start, start
    while high <= most and _accepted(high, accept, unacceptable, lot) > risk:
        low, high, step = high + 1, high + step, 2 * step
    high = min(high, most)
    if _accepted(high, accept, unacceptable, lot) > risk:
        return most + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if _accepted(middle, accept, unacceptable, lot) <= risk else (middle + 1, high)
        )
    return high
