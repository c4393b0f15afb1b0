"""Pairs: false discoveries, accused crowds, intervals and detectable biases of the flip test, by simulation.

Usage: [RATERSCOPE_DATA=FOLDER] python -m tests.benchmarks.calibration.pairs [--full]

Crowds compare 60 items whose scores have a normal distribution; the bias of an offender is 0.7 standard
deviations of the scores to either side, the noise of each annotator 0.5 to 1.5. The oracle tests each
annotator with the true scores and noise. "--full" draws 200 crowds a row instead of 30.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.special import expit, ndtr

from raterscope.algorithms.pairs import PairFusion, Pairs
from raterscope.algorithms.pairs.catalogue import PairPlan, fuse
from raterscope.algorithms.pairs.ranking import scores
from raterscope.algorithms.pairs.selection import (
    benjamini_hochberg,
    crowd_probability,
    false_discovery_rates,
    flip_flags,
)
from raterscope.algorithms.simulation.pair_crowds import study_crowd
from tests.benchmarks.calibration import Row

RATE, ITEMS, BIAS = 0.1, 60, 0.7
RUNS, FULL = 30, 200

GRID = (
    (20, 80, 0.1), (20, 340, 0.04), (60, 30, 0.04), (60, 80, 0.01), (60, 80, 0.1), (60, 80, 0.24),
    (60, 80, 0.36), (300, 40, 0.04), (300, 80, 0.1),
)  # fmt: skip
"""Votes of an annotator, annotators, share of biased ones."""

FAIR = ((20, 80), (60, 30), (60, 80), (300, 40))


class Crowd:
    """A simulated crowd, and what it was drawn from."""

    def __init__(self, votes: int, people: int, biased: int, run: int) -> None:
        rng = np.random.default_rng([votes, people, biased, run])
        score = rng.normal(size=ITEMS)
        annotator = np.repeat(np.arange(people), votes)
        left = rng.integers(ITEMS, size=len(annotator))
        right = (left + rng.integers(1, ITEMS, size=len(annotator))) % ITEMS
        bias = np.zeros(people)
        bias[:biased] = BIAS * rng.choice([-1, 1], biased)
        self.noise = rng.uniform(0.5, 1.5, people)
        self.score = score
        self.difference = score[left] - score[right]
        observed = self.difference + bias[annotator] + self.noise[annotator] * rng.normal(size=len(annotator))
        self.pairs = Pairs(
            annotator,
            left,
            right,
            np.sign(observed),
            tuple(map(str, range(people))),
            tuple(map(str, range(ITEMS))),
        )
        self.biased = bias != 0
        self.bias = 2 * ndtr(bias / self.noise) - 1

    def oracle(self) -> np.ndarray:
        """Flag with the true scores and noise."""
        return benjamini_hochberg(self.oracle_probability(), RATE)

    def careful_oracle(self, gate: float) -> np.ndarray:
        """Flag with the true scores and noise, and with the program's rule and crowd test."""
        p = self.oracle_probability()
        return flip_flags(false_discovery_rates(p), RATE, crowd_probability(p), gate)

    def oracle_probability(self) -> np.ndarray:
        """Test each annotator with the true scores and noise."""
        annotator, people = self.pairs.annotator, len(self.biased)
        mean = 2 * ndtr(self.difference / self.noise[annotator]) - 1
        total = np.bincount(annotator, self.pairs.choice - mean, people)
        spread = np.sqrt(np.bincount(annotator, 1 - mean**2, people))
        return np.asarray(2 * ndtr(-np.abs(total / spread)))


def rows() -> list[Row]:
    """Measure on simulated crowds, the study of the position bias paper, and real crowds."""
    runs = FULL if "--full" in sys.argv else RUNS
    return [
        *_grid(runs), *_fair(runs), *_paper(max(runs // 5, 4)), *_real(max(runs // 3, 8)), *_decisions(runs),
        *_tastes(runs), *_halves(max(runs // 4, 4)),
    ]  # fmt: skip


def _grid(runs: int) -> Iterator[Row]:
    for votes, people, share in GRID:
        data = f"{votes} votes x {people}, {share:.0%} biased"
        count = max(round(share * people), 1)
        results, open_, oracle, careful, inside, reached = [], [], [], [], [], []
        for run in range(runs):
            crowd = Crowd(votes, people, count, run)
            fusion = fuse(crowd.pairs)
            results.append(_rates(fusion.flagged, crowd.biased))
            assert fusion.q_value is not None
            assert fusion.detectable is not None
            open_.append(_rates(fusion.q_value <= RATE, crowd.biased))
            oracle.append(_rates(crowd.oracle(), crowd.biased))
            careful.append(_rates(crowd.careful_oracle(fusion.gate), crowd.biased))
            inside.append(np.mean((fusion.bias_low <= crowd.bias) & (crowd.bias <= fusion.bias_high)))
            # offenders whose bias is as large as the one that is reported as detectable, or a little more
            near = crowd.biased & (np.abs(np.abs(crowd.bias) - fusion.detectable) < 0.05)
            reached += fusion.flagged[near].tolist()
        wrong, right = np.array(results).T
        yield _row("false discovery rate", data, RATE, wrong)
        yield _row("power (nominal: the oracle's)", data, float(np.mean(oracle, axis=0)[1]), right)
        with_test = float(np.mean(careful, axis=0)[1])
        yield _row("power (nominal: the oracle's with the crowd test)", data, with_test, right)
        yield _row(
            "power without the crowd test", data, float(np.mean(oracle, axis=0)[1]), np.array(open_)[:, 1]
        )
        yield _row("interval of the bias, 95 %", data, 0.95, np.array(inside))
        if len(reached) >= 10:
            yield _row("power at the detectable bias", data, 0.9, np.array(reached, dtype=float))


def _fair(runs: int) -> Iterator[Row]:
    for votes, people in FAIR:
        data = f"{votes} votes x {people}, none biased"
        fusions = [fuse(Crowd(votes, people, 0, run).pairs) for run in range(3 * runs)]
        some = np.array([fusion.flagged.any() for fusion in fusions], dtype=float)
        yield _row("crowds with an annotator flagged", data, 0.05, some)
        without = [bool((_known(fusion) <= RATE).any()) for fusion in fusions]
        yield _row("the same without the crowd test", data, RATE, np.array(without, dtype=float))
        plain = [fuse(Crowd(votes, people, 0, run).pairs, PairPlan.make("iss", {"effect": "0"}))
                 for run in range(runs)]  # fmt: skip
        p = np.concatenate([fusion.p_value for fusion in plain])
        yield _row("p < 0.05, without a minimum bias", data, 0.05, (p < 0.05).astype(float))


def decide(
    crowd: Crowd, fusion: PairFusion, count: int, wrong: float = 0.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Decide annotators whose q value is nearest the rate; gives who counts as biased, who is decided."""
    rng = np.random.default_rng([5, seed])
    order = np.argsort(np.abs(np.log(np.maximum(_known(fusion), 1e-12) / RATE)), kind="stable")[:count]
    flagged = fusion.flagged.copy()
    flagged[order] = crowd.biased[order] ^ (rng.random(len(order)) < wrong)
    decided = np.zeros(len(flagged), dtype=bool)
    decided[order] = True
    return flagged, decided


def ranking_error(crowd: Crowd, flagged: np.ndarray) -> float:
    """Return 1 - correlation of the corrected scores with the true ones."""
    return 1.0 - float(np.corrcoef(scores(crowd.pairs, flagged).score, crowd.score)[0, 1])


def _decisions(runs: int) -> Iterator[Row]:
    """Decide annotators, and look how far the ranking is from the truth before and after."""
    for votes, people, biased in ((60, 80, 20), (20, 80, 30)):
        data = f"{votes} votes x {people}, {biased / people:.0%} biased"
        fused = []
        for run in range(max(runs // 2, 10)):
            crowd = Crowd(votes, people, biased, 500 + run)
            fused.append((crowd, fuse(crowd.pairs)))
        before = np.array([ranking_error(crowd, fusion.flagged) for crowd, fusion in fused])
        for name, wrong in (("", 0.0), (", 1/5 wrong", 0.2)):
            for count in (1, 3, 10, 30, people):
                after = np.array(
                    [
                        ranking_error(crowd, decide(crowd, fusion, count, wrong, run)[0])
                        for run, (crowd, fusion) in enumerate(fused)
                    ]
                )
                number = f"k={count}{name}: ranking error over before"
                yield _row(number, data, 1.0, after / before)


def _paper(runs: int) -> Iterator[Row]:
    for p1, p2 in ((0.1, 0.4), (0.4, 0.4), (0.4, 0.7)):
        results = []
        for run in range(runs):
            crowd = study_crowd(p1, p2, run)
            results.append(_rates(fuse(crowd.pairs).flagged, crowd.biased))
        wrong, right = np.array(results).T
        data = f"paper's study, p1 {p1:g}, p2 {p2:g}"
        yield _row("false discovery rate", data, RATE, wrong)
        yield _row("power", data, 1.0, right)


def _real(runs: int) -> Iterator[Row]:
    """Redraw the sides of real comparisons, which removes all biases."""
    if "RATERSCOPE_DATA" not in os.environ:
        return
    from raterscope.app.papers.experiments import pairs_of  # the rest needs the algorithms alone
    from tests.benchmarks.pairs_accuracy import REAL

    for name in REAL:
        pairs = pairs_of(Path(os.environ["RATERSCOPE_DATA"]), name)
        some = []
        for run in range(runs):
            turned = np.random.default_rng(run).random(len(pairs)) < 0.5
            left, right = np.where(turned, pairs.right, pairs.left), np.where(turned, pairs.left, pairs.right)
            choice = np.where(turned, -pairs.choice, pairs.choice)
            redrawn = Pairs(pairs.annotator, left, right, choice, pairs.annotators, pairs.items)
            some.append(float(fuse(redrawn).flagged.any()))
        yield _row("crowds with an annotator flagged", f"{name}, sides redrawn", 0.05, np.array(some))


TASTES = ((8, 250, 15), (40, 40, 25), (200, 15, 25))
"""Annotators, comparisons of each, and items, where tastes differ."""


def _tastes(runs: int) -> Iterator[Row]:
    """Let annotators have tastes of their own; count the intervals that hold scores and ranks."""
    for people, each, items in TASTES:
        for spread in (0.0, 0.7):
            inside, ranked = [], []
            for run in range(runs):
                rng = np.random.default_rng([people, each, items, run])
                score, own = rng.normal(size=items), rng.normal(0, spread, (people, items))
                annotator = np.repeat(np.arange(people), each)
                left = rng.integers(items, size=len(annotator))
                right = (left + rng.integers(1, items, len(annotator))) % items
                gap = score[left] - score[right]
                seen = gap + own[annotator, left] - own[annotator, right]
                choice = np.where(rng.random(len(gap)) < expit(seen), 1.0, -1.0)
                names = tuple(map(str, range(people))), tuple(map(str, range(items)))
                result = scores(Pairs(annotator, left, right, choice, *names))
                nodes = spread * math.sqrt(2) * rng.normal(size=2000)
                expected = 2 * expit(gap[:, None] + nodes[None, :]).mean(axis=1) - 1
                # the best linear description of the expected choices
                true = scores(Pairs(annotator, left, right, expected, *names)).score
                inside.append(np.mean((result.low <= true) & (true <= result.high)))
                rank = 1 + np.argsort(np.argsort(-score))
                ranked.append(np.mean((result.rank_low <= rank) & (rank <= result.rank_high)))
            data = f"{each} votes x {people}, {items} items, tastes {spread:g}"
            yield _row("interval of the score, 95 %", data, 0.95, np.array(inside))
            yield _row("interval of the rank, 95 %", data, 0.95, np.array(ranked))


def _halves(runs: int) -> Iterator[Row]:
    """Score the items of real crowds by two halves of the annotators; compare differences with intervals."""
    if "RATERSCOPE_DATA" not in os.environ:
        return
    from raterscope.app.papers.experiments import pairs_of  # the rest needs the algorithms alone
    from tests.benchmarks.pairs_accuracy import REAL

    for name in REAL:
        pairs, agreed = pairs_of(Path(os.environ["RATERSCOPE_DATA"]), name), []
        for run in range(runs):
            order = np.random.default_rng(run).permutation(len(pairs.annotators))
            first = {pairs.annotators[at] for at in order[: len(order) // 2].tolist()}
            one, other = (scores(pairs.without(others)) for others in (first, set(pairs.annotators) - first))
            wide = np.hypot(one.high - one.low, other.high - other.low) / 2
            known = np.isfinite(wide)
            agreed.append(np.mean((np.abs(one.score - other.score) <= wide)[known]))
        yield _row("scores by two halves of the annotators, 95 %", name, 0.95, np.array(agreed))


def _known(fusion: PairFusion) -> np.ndarray:
    assert fusion.q_value is not None
    return fusion.q_value


def _rates(flagged: np.ndarray, biased: np.ndarray) -> tuple[float, float]:
    """Return the share of the flagged who are not biased, and of the biased who are flagged."""
    return (
        float((flagged & ~biased).sum() / max(flagged.sum(), 1)),
        float((flagged & biased).sum() / max(biased.sum(), 1)),
    )


def _row(number: str, data: str, nominal: float, values: np.ndarray) -> Row:
    error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    return Row("pairs", number, data, nominal, float(np.mean(values)), len(values), error)


def main() -> None:
    for row in rows():
        print(f"{row.number:36s}{row.data:34s}{row.nominal:8.3f}{row.measured:8.3f} +- {row.error:.3f}")


if __name__ == "__main__":
    main()
