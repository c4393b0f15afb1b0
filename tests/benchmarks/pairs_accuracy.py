"""Accuracy of flagged annotators in the position bias paper's simulated study and real crowds.

Usage: [RATERSCOPE_DATA=FOLDER] python -m tests.benchmarks.pairs_accuracy [RUNS]

The study (section 3.1) has 150 annotators, 50 of them biased, who compare all pairs of 16 items; rates are
means over the runs, 100 by default. "local" makes knockoffs of each annotator's own noise, "share" flags
those that half of 50 draws select, "t test" tests each bias (Benjamini-Hochberg). Then a crowd without bias.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from raterscope.algorithms.pairs import PairFusion
from raterscope.algorithms.pairs.catalogue import PairPlan, fuse
from raterscope.algorithms.pairs.knockoffs import select_annotators, selection_shares, sort_draws
from raterscope.algorithms.pairs.selection import benjamini_hochberg
from raterscope.algorithms.simulation.pair_crowds import study_crowd
from raterscope.app.papers.experiments import pairs_of

RATE = 0.1

STUDY = {
    (0.1, 0.4): ((0.096, 49.95), (0.097, 49.99), (0.077, 49.98), (0.102, 49.98)),
    (0.4, 0.4): ((0.106, 49.75), (0.130, 49.87), (0.109, 49.81), (0.097, 49.77)),
    (0.1, 0.7): ((0.123, 50.0), (0.114, 50.0), (0.090, 50.0), (0.093, 50.0)),
    (0.4, 0.7): ((0.118, 50.0), (0.148, 50.0), (0.129, 50.0), (0.091, 50.0)),
}
"""False discovery rate and true discoveries by p1 and p2: of the paper, then of an independent implementation
of knockoff, knockoff+, and knockoff+ with local noise."""

REAL = {"worldcollege": (26, 26), "lf_quality": (20, 18), "music_sigir2010": (0, 8)}
"""Numbers that an independent implementation flags by share, and by the t test."""

METHODS = ("knockoff", "knockoff+", "local", "share", "t test")


def found(fusion: PairFusion, local: PairFusion) -> dict[str, np.ndarray]:
    """Return who is flagged by each of `METHODS`."""
    item = fusion.statistic[:1]
    return {
        "knockoff": item[0] >= sort_draws(item).cuts(RATE, plus=False)[0],
        "knockoff+": item[0] >= sort_draws(item).cuts(RATE)[0],
        "local": local.statistic[0] >= sort_draws(local.statistic[:1]).cuts(RATE)[0],
        "share": select_annotators(selection_shares(fusion.statistic, RATE), 0.5),
        "t test": benjamini_hochberg(fusion.p_value, RATE),
    }


def study(p1: float, p2: float, runs: int) -> dict[str, np.ndarray]:
    """Return false discovery rate, true discoveries and share of runs with flags, of each of `METHODS`."""
    figures: dict[str, list[tuple[float, ...]]] = {name: [] for name in METHODS}
    for run in range(runs):
        crowd = study_crowd(p1, p2, run)
        fusion, local = (
            fuse(
                crowd.pairs,
                PairPlan.make("iss", {"rule": "knockoffs", "seed": str(run), "local": local, "draws": draws}),
            )
            for local, draws in (("no", "50"), ("yes", "1"))
        )
        for name, flagged in found(fusion, local).items():
            wrong = int((flagged & ~crowd.biased).sum())
            right = int((flagged & crowd.biased).sum())
            figures[name].append((wrong / max(wrong + right, 1), right, float(flagged.any())))
    return {name: np.mean(rows, axis=0) for name, rows in figures.items()}


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print(f"simulated study, {runs} runs: false discovery rate / true discoveries (known)")
    for (p1, p2), (paper, *known) in STUDY.items():
        print(f"p1 {p1:g}, p2 {p2:g}; the paper {paper[0]:.3f} / {paper[1]:.2f}")
        for name, (rate, right, _) in study(p1, p2, runs).items():
            beside = dict(zip(METHODS, known, strict=False)).get(name)
            words = f" ({beside[0]:.3f} / {beside[1]:.2f})" if beside else ""
            print(f"    {name:10s}{rate:6.3f} / {right:5.2f}{words}", flush=True)
    print("none biased, p1 .3: runs that flag an annotator (known: knockoff .52 to .56, knockoff+ none)")
    for name, (*_, some) in study(0.3, 0.0, runs).items():
        print(f"    {name:10s}{some:6.2f}", flush=True)
    if "RATERSCOPE_DATA" not in os.environ:
        print("set RATERSCOPE_DATA to the folder with the real data for the real crowds")
        return
    print("real crowds: flagged by share, and by the t test (known)")
    for name, (by_share, by_test) in REAL.items():
        pairs = pairs_of(Path(os.environ["RATERSCOPE_DATA"]), name)
        for path in ("iss", "lasso", "lbi"):
            fusion = fuse(
                pairs, PairPlan.make(path, {"rule": "knockoffs", "min_comparisons": "1", "local": "no"})
            )
            tested = int(benjamini_hochberg(fusion.p_value, RATE).sum())
            print(f"    {name:16s}{path:6s}{fusion.flagged.sum():4d} ({by_share}){tested:5d} ({by_test})")


if __name__ == "__main__":
    main()
